/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/domains/domains.h"

#include "lib/bus.h"
#include "lib/processes.h"
#include "lib/vgpu.h"
#include "host-agent/daemon/methods/vgpu_call.h"

/* vGPUs that were made for a VM are removed when it has ended. */

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

static void removal_ended(const GError *error, void *data)
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
    removal_ended(NULL, data);
    return G_SOURCE_REMOVE;
}

/* A vGPU that a VM has open stays. */
static gboolean may_go(const Lifecycle *life, const Slice *slice)
{
    g_autoptr(Vgpu) vgpu = vgpu_read(host_root(life->host), slice->uuid);

    return !slice->leaving && (!vgpu || g_str_equal(vgpu->device, "closed"));
}

static void begin_removal(Release *release, const Lifecycle *life, const char *uuid)
{
    const OperationRequest request = {.kind = &removal_kind,
                                      .objects = (const char *[]){uuid, NULL},
                                      .source = AUDIT_BY_LIBVIRT,
                                      .waits = TRUE,
                                      .background = TRUE,
                                      .done = removal_ended,
                                      .data = release};
    g_autoptr(GError) error = NULL;

    release->left++;
    if (!operations_start(life->operations, &request, &error))
        removal_ended(error, release);
}

/*
 * Removes those of @uuids that no VM has open. If an operation works on one, the removal comes
 * after it. Calls @func, from the main loop, at the end; @error: the first failure; the others were
 * still tried. @uuids: not the slices' own.
 */
static void domain_release_run(const Lifecycle *life, const char *const *uuids, OperationDone func,
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
        begin_removal(release, life, uuids[i]);
    }
    g_idle_add(end_first, release);
}

void domain_release(GDBusMethodInvocation *invocation, const Caller *caller, void *data)
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

/* vGPUs that were made for a VM whose end was not reported to vgpud. */

#define PERIOD_S 30

/**
 * DomainWatch
 * @since: UUID to gint64: when it was first found unused
 * @timer: 0: none has to be looked at before a slice changes
 */
struct DomainWatch {
    const Lifecycle *life;
    GHashTable *since;
    guint timer;
};

/* The driver reports when that ends. */
static gboolean is_open(const DomainWatch *watch, const Slice *slice)
{
    g_autoptr(Vgpu) vgpu = vgpu_read(host_root(watch->life->host), slice->uuid);

    return vgpu && !g_str_equal(vgpu->device, "closed");
}

/* Nothing reports the end of a VM's process. */
static gboolean must_be_watched(const DomainWatch *watch, const Slice *slice)
{
    return slice->domain[0] && !is_open(watch, slice);
}

/* Unused for long enough at @now. */
static gboolean is_over(DomainWatch *watch, const Slice *slice, gint64 now)
{
    const gint64 *since = g_hash_table_lookup(watch->since, slice->uuid);

    if (!must_be_watched(watch, slice) || operations_doing(watch->life->operations, slice->uuid) ||
        vm_is_running(host_root(watch->life->host), slice->domain)) {
        g_hash_table_remove(watch->since, slice->uuid);
        return FALSE;
    }
    if (!since) {
        g_hash_table_insert(watch->since, g_strdup(slice->uuid), g_memdup2(&now, sizeof(now)));
        return FALSE;
    }
    return now - *since >= DOMAIN_WATCH_GRACE;
}

static void domain_released(const GError *error, void *data)
{
    (void)data;
    if (error)
        g_warning("cannot remove a vGPU whose VM has ended: %s; it will be tried again",
                  error->message);
}

void domain_watch_look(DomainWatch *watch, gint64 now)
{
    const GPtrArray *slices = slices_all(watch->life->slices);
    g_autoptr(GStrvBuilder) over = g_strv_builder_new();
    g_auto(GStrv) uuids = NULL;

    for (guint i = 0; i < slices->len; i++) {
        const Slice *slice = g_ptr_array_index(slices, i);

        if (is_over(watch, slice, now))
            g_strv_builder_add(over, slice->uuid);
    }
    uuids = g_strv_builder_end(over);
    for (guint i = 0; uuids[i]; i++)
        g_hash_table_remove(watch->since, uuids[i]);
    if (uuids[0])
        domain_release_run(watch->life, (const char *const *)uuids, domain_released, NULL);
}

gboolean domain_watch_is_needed(const DomainWatch *watch)
{
    const GPtrArray *slices = slices_all(watch->life->slices);

    for (guint i = 0; i < slices->len; i++)
        if (must_be_watched(watch, g_ptr_array_index(slices, i)))
            return TRUE;
    return FALSE;
}

static gboolean look_again(void *data)
{
    DomainWatch *watch = data;

    domain_watch_look(watch, g_get_monotonic_time());
    if (domain_watch_is_needed(watch))
        return G_SOURCE_CONTINUE;
    watch->timer = 0;
    return G_SOURCE_REMOVE;
}

/* Which slices there are is asked later, so that a change costs the same however many they are. */
void domain_watch_refresh(DomainWatch *watch)
{
    if (!watch->timer)
        watch->timer = g_timeout_add_seconds(PERIOD_S, look_again, watch);
}

DomainWatch *domain_watch_new(const Lifecycle *life)
{
    DomainWatch *watch = g_new0(DomainWatch, 1);

    watch->life = life;
    watch->since = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    domain_watch_refresh(watch);
    return watch;
}

void domain_watch_free(DomainWatch *watch)
{
    g_clear_handle_id(&watch->timer, g_source_remove);
    g_hash_table_unref(watch->since);
    g_free(watch);
}
