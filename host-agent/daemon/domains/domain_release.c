/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/domains/domain_release.h"

#include "host-agent/daemon/methods/vgpu_call.h"
#include "host-agent/daemon/slices/erasure.h"
#include "lib/vgpu.h"

/**
 * Release
 * @uuids: what is to be ended, from @at on
 */
typedef struct {
    Host *host;
    Slices *slices;
    GStrv uuids;
    guint at;
    GError *error;
    MdevctlFunc func;
    void *data;
} Release;

static gboolean go_on(void *data);

static void ended(const GError *error, void *data)
{
    Release *release = data;

    if (error && !release->error)
        release->error = g_error_copy(error);
    if (error)
        slices_settle(release->slices, release->uuids[release->at]);
    release->at++;
    go_on(release);
}

/* It may be ended, and that it shall is stored. */
static gboolean condemn(const Release *release, const char *uuid)
{
    const Slice *slice = slices_find(release->slices, uuid);
    g_autoptr(Vgpu) vgpu = vgpu_read(host_root(release->host), uuid);
    Slice *condemned;

    if (!slice || slice->state != SLICE_READY || (vgpu && !g_str_equal(vgpu->device, "closed")))
        return FALSE;
    g_message("vGPU %s was made for VM %s, which has ended: it is given back", uuid, slice->domain);
    condemned = slice_copy(slice);
    condemned->state = SLICE_REMOVING;
    return slices_put(release->slices, condemned, NULL);
}

static gboolean go_on(void *data)
{
    Release *release = data;

    while (release->uuids[release->at] && !condemn(release, release->uuids[release->at]))
        release->at++;
    if (release->uuids[release->at]) {
        erasure_run(release->host, release->slices, release->uuids[release->at], ended, release);
        return G_SOURCE_REMOVE;
    }
    release->func(release->error, release->data);
    g_clear_error(&release->error);
    g_strfreev(release->uuids);
    g_free(release);
    return G_SOURCE_REMOVE;
}

void domain_release_run(Host *host, Slices *slices, const char *const *uuids, MdevctlFunc func,
                        void *data)
{
    Release *release = g_new0(Release, 1);

    release->host = host;
    release->slices = slices;
    release->uuids = g_strdupv((char **)uuids);
    release->func = func;
    release->data = data;
    g_idle_add(go_on, release);
}

static void released(const GError *error, void *data)
{
    VgpuCall *call = data;

    if (error)
        g_dbus_method_invocation_return_gerror(call->invocation, error);
    else
        vgpu_manager_complete_release_domain(host_manager(call->vgpus->host), call->invocation);
    vgpu_call_free(call);
}

static void release_domain(GDBusMethodInvocation *invocation, const Caller *caller, void *data)
{
    Vgpus *vgpus = data;
    const GPtrArray *slices = slices_all(vgpus->slices);
    g_autoptr(GStrvBuilder) uuids = g_strv_builder_new();
    g_auto(GStrv) list = NULL;
    const char *domain;

    (void)caller;
    g_variant_get(g_dbus_method_invocation_get_parameters(invocation), "(&s)", &domain);
    for (guint i = 0; domain[0] && i < slices->len; i++) {
        const Slice *slice = g_ptr_array_index(slices, i);

        if (g_str_equal(slice->domain, domain))
            g_strv_builder_add(uuids, slice->uuid);
    }
    list = g_strv_builder_end(uuids);
    domain_release_run(vgpus->host, vgpus->slices, (const char *const *)list, released,
                       vgpu_call_new(vgpus, invocation, list));
}

gboolean domain_release_handle(VgpuManager *interface, GDBusMethodInvocation *invocation,
                               const char *domain, void *data)
{
    (void)interface;
    (void)domain;
    authority_ask(invocation, ACTION_ADMINISTER, release_domain, data);
    return TRUE;
}
