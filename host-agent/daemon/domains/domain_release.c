/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/domains/domain_release.h"

#include "host-agent/daemon/methods/vgpu_call.h"
#include "lib/audit.h"
#include "lib/vgpu.h"

/**
 * Release
 * @left: removals that have not ended
 * @error: of the first that failed
 */
typedef struct {
    guint left;
    GError *error;
    OperationDone func;
    void *data;
} Release;

static void ended(const GError *error, void *data)
{
    Release *release = data;

    if (error && !release->error)
        release->error = g_error_copy(error);
    if (--release->left)
        return;
    release->func(release->error, release->data);
    g_clear_error(&release->error);
    g_free(release);
}

static gboolean end_first(void *data)
{
    ended(NULL, data);
    return G_SOURCE_REMOVE;
}

/* A vGPU that a VM has open stays. */
static gboolean may_go(const Lifecycle *life, const Slice *slice)
{
    g_autoptr(Vgpu) vgpu = vgpu_read(host_root(life->host), slice->uuid);

    return !slice->leaving && (!vgpu || g_str_equal(vgpu->device, "closed"));
}

static void begin(Release *release, const Lifecycle *life, const char *uuid)
{
    const OperationRequest request = {.kind = &removal_kind,
                                      .objects = (const char *[]){uuid, NULL},
                                      .source = AUDIT_BY_LIBVIRT,
                                      .waits = TRUE,
                                      .background = TRUE,
                                      .done = ended,
                                      .data = release};
    g_autoptr(GError) error = NULL;

    release->left++;
    if (!operations_start(life->operations, &request, &error))
        ended(error, release);
}

void domain_release_run(const Lifecycle *life, const char *const *uuids, OperationDone func,
                        void *data)
{
    Release *release = g_new0(Release, 1);

    release->left = 1;
    release->func = func;
    release->data = data;
    for (guint i = 0; uuids[i]; i++) {
        const Slice *slice = slices_find(life->slices, uuids[i]);

        if (!slice || !may_go(life, slice))
            continue;
        g_message("vGPU %s was made for VM %s, which has ended: it is removed", slice->uuid,
                  slice->domain);
        begin(release, life, uuids[i]);
    }
    g_idle_add(end_first, release);
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
    domain_release_run(vgpus->life, (const char *const *)list, vgpu_call_ended,
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
