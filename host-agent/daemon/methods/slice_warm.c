/* SPDX-License-Identifier: MIT */
/*
 * WarmSlice: what of a slice's memory is displaced comes back before its programs work again. The
 * arbiter does that, and a program that works, or waits, goes before it as ever.
 */
#include "lib/bus.h"
#include "host-agent/daemon/engines/arbiter.h"
#include "host-agent/daemon/host/call.h"
#include "host-agent/daemon/methods/vgpu_call.h"
#include "host-agent/model/request.h"

static gboolean check_moves(const Slice *slice, GError **error)
{
    if (slice_lent(slice) && !slice->suspended)
        return TRUE;
    g_set_error(error, AGENT_ERROR, AGENT_ERROR_INVALID,
                slice->suspended ? "slice %s is suspended: resume it"
                                 : "all memory of slice %s is resident, so none of it is away",
                slice->uuid);
    return FALSE;
}

void slice_warm(GDBusMethodInvocation *invocation, const Caller *caller, void *data)
{
    const Vgpus *vgpus = data;
    g_autoptr(GVariant) dict = NULL;
    g_autoptr(GError) error = NULL;
    const Slice *slice = NULL;
    const char *asked;

    g_variant_get(g_dbus_method_invocation_get_parameters(invocation), "(&s@a{sv})", &asked, &dict);
    if (dict_read(dict, NULL, 0, &error))
        slice = vgpu_call_slice(vgpus, asked, caller, &error);
    if (slice && check_moves(slice, &error) && shares_warm(host_root(vgpus->host), slice, &error))
        call_answer(invocation, NULL);
    else
        call_fail(invocation, error);
}
