/* SPDX-License-Identifier: MIT */
/*
 * What a client of our sockets sends: frames of HTTP/2 with calls of gRPC. The first byte says in
 * how large pieces the rest arrives, and whether the client's preface is put before it.
 */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <nghttp2/nghttp2.h>

#include "fleet/kubernetes/grpc/session.h"
#include "deviceplugin.pb-c.h"
#include "dra.pb-c.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static GrpcCall *watching;

static void on_answer(GrpcCall *call, const ProtobufCMessage *message, void *data)
{
    assert(data == &watching && !grpc_call_is_over(call));
    grpc_call_answer(call, message);
    assert(grpc_call_is_over(call));
    grpc_call_send(call, message);
    grpc_call_end(call, GRPC_UNKNOWN, "never sent");
}

/* Held beyond the call, as a watch is. */
static void on_watch(GrpcCall *call, const ProtobufCMessage *message, void *data)
{
    (void)data;
    grpc_call_send(call, message);
    g_clear_pointer(&watching, grpc_call_unref);
    watching = grpc_call_ref(call);
}

static void on_refuse(GrpcCall *call, const ProtobufCMessage *message, void *data)
{
    (void)message;
    (void)data;
    grpc_call_end(call, GRPC_NOT_FOUND, "50 % \n\xc3\xa4");
}

static const GrpcMethod methods[] = {
    {"/v1beta1.DevicePlugin/Allocate", &v1beta1__allocate_request__descriptor, on_answer},
    {"/v1beta1.DevicePlugin/ListAndWatch", &v1beta1__empty__descriptor, on_watch},
    {"/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/NodePrepareResources",
     &k8s__io__kubelet__pkg__apis__dra__v1__node_prepare_resources_request__descriptor, on_refuse},
    {NULL, NULL, NULL},
};

static void on_writable(void *data)
{
    (*(unsigned *)data)++;
}

static void drain(GrpcSession *session)
{
    const guint8 *bytes;
    gssize count;

    while ((count = grpc_session_take(session, &bytes)) > 0)
        assert(bytes && count < (1 << 20));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const GrpcService service = {methods, &watching};
    const V1beta1__Empty empty = V1BETA1__EMPTY__INIT;
    unsigned wakes = 0;
    GrpcSession *session = grpc_session_new(&service, on_writable, &wakes);
    gboolean good = TRUE;
    size_t piece = 1, at = 1;

    if (size) {
        piece = (size_t)1 << (data[0] & 15);
        if (data[0] & 16)
            good = grpc_session_feed(session, (const guint8 *)NGHTTP2_CLIENT_MAGIC,
                                     NGHTTP2_CLIENT_MAGIC_LEN);
    }
    for (; good && at < size; at += piece) {
        good = grpc_session_feed(session, data + at, MIN(piece, size - at));
        if (data[0] & 32)
            drain(session);
    }
    if (watching && !grpc_call_is_over(watching))
        grpc_call_answer(watching, &empty.base);
    drain(session);
    grpc_session_free(session);
    assert(!watching || grpc_call_is_over(watching));
    g_clear_pointer(&watching, grpc_call_unref);
    return 0;
}
