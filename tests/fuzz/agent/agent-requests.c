/* SPDX-License-Identifier: MIT */
/* Dictionaries as anybody on the bus can send them to vgpud: an a{sv} in GVariant's text format. */
#include <stdint.h>
#include <stdlib.h>

#include "host-agent/model/request.h"

static void check_request(GVariant *dict)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(Request) request = request_parse(dict, &error);

    if (!request != !!error || (error && !*error->message))
        abort();
    if (!request)
        return;
    if (request->count < 1 || request->count > REQUEST_MAX_COUNT ||
        g_strv_length(request->uuids) != request->count || !request->wanted->tenant ||
        !request->wanted->job ||
        (*request->wanted->name && !slice_name_valid(request->wanted->name)) ||
        (*request->wanted->owner && !slice_owner_valid(request->wanted->part)))
        abort();
    if (request->wanted->transport != SLICE_TRANSPORT_VM && request->count != 1)
        abort();
}

static void check_change(GVariant *dict)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(Change) change = change_parse(dict, &error);

    if (!change != !!error || (error && !*error->message))
        abort();
    if (change && change_has(change, "Weight") &&
        (change->values->weight < 1 || change->values->weight > 10000))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    g_autoptr(GVariant) dict = NULL;

    /* The bus passes nothing else on. */
    if (g_utf8_validate_len(text, size, NULL))
        dict = g_variant_parse(G_VARIANT_TYPE_VARDICT, text, text + size, NULL, NULL);
    if (!dict)
        return 0;
    check_request(dict);
    check_change(dict);
    return 0;
}
