/* SPDX-License-Identifier: MIT */
/* The messages themselves: the first byte says which; what can be read is written again. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "fleet/kubernetes/plugin/choose.h"
#include "deviceplugin.pb-c.h"
#include "dra.pb-c.h"
#include "registration.pb-c.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const ProtobufCMessageDescriptor *const types[] = {
    &v1beta1__preferred_allocation_request__descriptor,
    &v1beta1__allocate_request__descriptor,
    &k8s__io__kubelet__pkg__apis__dra__v1__node_prepare_resources_request__descriptor,
    &k8s__io__kubelet__pkg__apis__dra__v1__node_unprepare_resources_request__descriptor,
    &pluginregistration__registration_status__descriptor,
    &v1beta1__list_and_watch_response__descriptor,
};

static void choose(const V1beta1__PreferredAllocationRequest *request, gboolean spread)
{
    for (gsize i = 0; i < request->n_container_requests; i++) {
        const V1beta1__ContainerPreferredAllocationRequest *one = request->container_requests[i];
        gsize count = (gsize)MAX(one->allocation_size, 0);
        GStrv seats =
            choose_seats((const char *const *)one->available_deviceids, one->n_available_deviceids,
                         (const char *const *)one->must_include_deviceids,
                         one->n_must_include_deviceids, count, spread);

        assert(!seats || g_strv_length(seats) == count);
        g_strfreev(seats);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ProtobufCMessage *message;
    const ProtobufCMessageDescriptor *type;
    g_autofree uint8_t *packed = NULL;
    size_t length;

    if (!size)
        return 0;
    type = types[data[0] % G_N_ELEMENTS(types)];
    message = protobuf_c_message_unpack(type, NULL, size - 1, data + 1);
    if (!message)
        return 0;
    if (type == types[0])
        choose((const V1beta1__PreferredAllocationRequest *)message, data[0] & 128);
    length = protobuf_c_message_get_packed_size(message);
    packed = g_malloc(length + 1);
    assert(protobuf_c_message_pack(message, packed) == length);
    protobuf_c_message_free_unpacked(message, NULL);
    return 0;
}
