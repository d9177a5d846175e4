/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/sync/arbiter_sync.h"

#include "host-agent/daemon/containers/claims.h"
#include "host-agent/daemon/containers/share_group.h"
#include "host-agent/daemon/engines/alone_time.h"
#include "host-agent/daemon/engines/arbiter.h"
#include "lib/systemd.h"

struct ArbiterSync {
    Host *host;
    Offers *offers;
    const Slices *slices;
    const Claims *claims;
    GDBusConnection *bus;
    GHashTable *served;  /* addresses of GPUs whose arbiter was started */
    GHashTable *homes;   /* UUID of a slice to its GPU's address */
    GHashTable *reports; /* of arbiters, Report by the GPU's address */
    AloneTime *alone;
    GHashTable *hung;    /* addresses of GPUs whose arbiter does not answer; only a thread queries
                          * it */
    GPtrArray *monitors; /* of the arbiters' rests; NULL: nobody waits for their end */
    GCancellable *freed;
};

typedef struct {
    char *slice;
    SliceUse use;
    GArray *pids;
} ReportedUse;

/**
 * Report - an arbiter's last
 * @rest: as arbiter_rest_read() was just before; while it is the same, so are @uses
 */
typedef struct {
    char *rest;
    GArray *uses; /* of ReportedUse */
} Report;

/* How long a thread waits before it queries an arbiter again that has not answered. */
#define AGAIN_US G_USEC_PER_SEC

typedef struct {
    ArbiterSync *link;
    HostRoot *root;
    char *gpu;
} Probe;

static void ask_systemd(const ArbiterSync *link, const char *method, const char *gpu)
{
    g_autofree char *unit = g_strdup_printf("vgpu-arbiter@%s.service", gpu);

    unit_call(link->bus, method, unit);
}

static void note_home(ArbiterSync *link, const Slice *slice)
{
    g_hash_table_insert(link->homes, g_strdup(slice->uuid), g_strdup(slice->gpu));
}

/* All slices in the form for the arbiters. */
static GPtrArray *shares_of_all(const ArbiterSync *link)
{
    const GPtrArray *slices = slices_all(link->slices);
    GPtrArray *shares = g_ptr_array_new_with_free_func((GDestroyNotify)slice_free);

    for (guint i = 0; i < slices->len; i++) {
        Slice *share = share_group_share(link->slices, link->claims, g_ptr_array_index(slices, i));

        if (share)
            g_ptr_array_add(shares, share);
    }
    return shares;
}

static gboolean was_told(HostRoot *root, const char *address)
{
    g_autofree char *path = g_build_filename(GOVERNOR_DIR, address, "gpu.conf", NULL);

    return root_has(root, path);
}

/* While a file of /etc/vgpu is wrong, an arbiter keeps the policy that it had. */
static void tell(const ArbiterSync *link, const Gpu *gpu)
{
    const char *address = gpu->pci->address;
    HostRoot *root = host_root(link->host);
    const GpuEntry *settings = offers_settings(link->offers, address);
    g_autoptr(GPtrArray) shares = shares_of_all(link);
    g_autoptr(GError) error = NULL;
    guint64 vram;

    if (!offers_capacity(link->offers, gpu, &vram) && was_told(root, address))
        return;
    if (!shares_sync(root, address, vram, settings ? settings->policy : GPU_POLICY_SHARES, shares,
                     &error))
        g_warning("the arbiter of GPU %s can't be told of its slices: %s", address, error->message);
}

static void serve(ArbiterSync *link, const Gpu *gpu)
{
    const char *address = gpu->pci->address;
    const GPtrArray *slices = slices_all(link->slices);

    tell(link, gpu);
    for (guint i = 0; i < slices->len; i++)
        note_home(link, g_ptr_array_index(slices, i));
    if (g_hash_table_add(link->served, g_strdup(address)))
        ask_systemd(link, "StartUnit", address);
}

static gboolean has_slices(const ArbiterSync *link, const char *address)
{
    const GPtrArray *slices = slices_all(link->slices);

    for (guint i = 0; i < slices->len; i++) {
        const Slice *slice = g_ptr_array_index(slices, i);

        if (slice->present && g_str_equal(slice->gpu, address))
            return TRUE;
    }
    return FALSE;
}

/* Slices that exist need their arbiter also while the types are not known. */
static gboolean needs_arbiter(const ArbiterSync *link, const Gpu *gpu)
{
    guint64 vram;

    return gpu->mode == GPU_MODE_SHARED &&
           (offers_capacity(link->offers, gpu, &vram) > 0 || has_slices(link, gpu->pci->address));
}

/* Work may run on a shared GPU even if it has nothing to offer now: its memory is not known. */
static gboolean leave_unshared(void *address, void *value, void *data)
{
    ArbiterSync *link = data;
    const Gpu *gpu = host_gpu(link->host, address);

    (void)value;
    if (gpu && gpu->mode == GPU_MODE_SHARED)
        return FALSE;
    ask_systemd(link, "StopUnit", address);
    shares_drop(host_root(link->host), address);
    g_hash_table_remove(link->reports, address);
    return TRUE;
}

void arbiter_sync_refresh(ArbiterSync *link)
{
    const GPtrArray *gpus = host_gpus(link->host);

    if (!link->bus)
        return;
    g_hash_table_foreach_remove(link->served, leave_unshared, link);
    for (guint i = 0; i < gpus->len; i++) {
        const Gpu *gpu = g_ptr_array_index(gpus, i);

        if (needs_arbiter(link, gpu))
            serve(link, gpu);
    }
}

void arbiter_sync_start_again(ArbiterSync *link)
{
    GHashTableIter iter;
    void *address;

    g_hash_table_iter_init(&iter, link->served);
    while (link->bus && g_hash_table_iter_next(&iter, &address, NULL))
        ask_systemd(link, "StartUnit", address);
}

static void put(const ArbiterSync *link, const Slice *slice)
{
    g_autoptr(Slice) share = share_group_share(link->slices, link->claims, slice);
    HostRoot *root = host_root(link->host);
    g_autoptr(GError) error = NULL;

    if (!share)
        shares_forget(root, slice->gpu, slice->uuid);
    else if (!shares_put(root, share, &error))
        g_warning("the arbiter of GPU %s can't be told of vGPU %s: %s", slice->gpu, slice->uuid,
                  error->message);
}

/* Containers' slices may form, or have formed, one share with the changed one. */
static void put_claimed(const ArbiterSync *link, const char *gpu)
{
    const GPtrArray *slices = slices_all(link->slices);

    for (guint i = 0; i < slices->len; i++) {
        const Slice *slice = g_ptr_array_index(slices, i);

        if (slice->transport == SLICE_TRANSPORT_NATIVE && g_str_equal(slice->gpu, gpu) &&
            claims_container(link->claims, slice->uuid))
            put(link, slice);
    }
}

void arbiter_sync_update(ArbiterSync *link, const char *uuid)
{
    const Slice *slice = slices_find(link->slices, uuid);
    g_autofree char *home = g_strdup(g_hash_table_lookup(link->homes, uuid));
    const char *gpu = slice ? slice->gpu : home;

    if (slice && slice->present) {
        if (g_hash_table_contains(link->served, slice->gpu))
            put(link, slice);
        note_home(link, slice);
    } else if (home) {
        shares_forget(host_root(link->host), home, uuid);
        alone_time_forget(link->alone, uuid);
        g_hash_table_remove(link->homes, uuid);
    }
    if (gpu && g_hash_table_contains(link->served, gpu) && (!slice || !slice_is_vgpu(slice)))
        put_claimed(link, gpu);
}

static void probe_free(void *data)
{
    Probe *probe = data;

    host_root_unref(probe->root);
    g_free(probe->gpu);
    g_free(probe);
}

static void look_away(const char *uuid, const SliceUse *use, GArray *pids, void *data)
{
    (void)uuid;
    (void)use;
    (void)pids;
    (void)data;
}

/* One that does not exist is not waited for. */
static gboolean was_waited_for_since(gint64 begin)
{
    return g_get_monotonic_time() - begin >= arbiter_wait_us;
}

/* FALSE: there is no answer; @hangs: it was waited for in vain. */
static gboolean ask(HostRoot *root, const char *gpu, SliceUseFunc func, void *data, gboolean *hangs)
{
    gint64 begin = g_get_monotonic_time();
    gboolean answered = arbiter_status_read(root, gpu, func, data);

    *hangs = !answered && was_waited_for_since(begin);
    return answered;
}

/* Until it answers, or does not exist any more. */
static void watch(GTask *task, void *source, void *data, GCancellable *cancellable)
{
    const Probe *probe = data;
    gboolean hangs = TRUE;

    (void)source;
    while (hangs && !g_cancellable_is_cancelled(cancellable)) {
        g_usleep(AGAIN_US);
        ask(probe->root, probe->gpu, look_away, NULL, &hangs);
    }
    g_task_return_boolean(task, TRUE);
}

static void answers_again(GObject *source, GAsyncResult *answer, void *data)
{
    const Probe *probe = g_task_get_task_data(G_TASK(answer));

    (void)source;
    (void)data;
    if (g_task_propagate_boolean(G_TASK(answer), NULL)) /* else freed meanwhile */
        g_hash_table_remove(probe->link->hung, probe->gpu);
}

/* The main loop has waited for it once, and does not again. */
static void leave_alone(ArbiterSync *link, const char *gpu)
{
    g_autoptr(GTask) task = g_task_new(NULL, link->freed, answers_again, NULL);
    Probe *probe = g_new0(Probe, 1);

    g_message("the arbiter of GPU %s does not answer; the usage of its slices, and who goes round "
              "it, is unknown until it does",
              gpu);
    g_hash_table_add(link->hung, g_strdup(gpu));
    probe->link = link;
    probe->root = host_root_ref(host_root(link->host));
    probe->gpu = g_strdup(gpu);
    g_task_set_task_data(task, probe, probe_free);
    g_task_run_in_thread(task, watch);
}

static void clear_use(void *data)
{
    ReportedUse *reported = data;

    g_free(reported->slice);
    g_array_unref(reported->pids);
}

static void report_free(void *data)
{
    Report *report = data;

    g_free(report->rest);
    g_array_unref(report->uses);
    g_free(report);
}

static void take_use(const char *slice, const SliceUse *use, GArray *pids, void *uses)
{
    const ReportedUse reported = {g_strdup(slice), *use, g_array_ref(pids)};

    g_array_append_val((GArray *)uses, reported);
}

/* @rest: as arbiter_rest_read() is now. */
static gboolean holds(const Report *report, const char *rest)
{
    return report && rest && g_strcmp0(rest, report->rest) == 0;
}

/* An arbiter that is at rest since its last report is not asked again. */
static const Report *report_of(ArbiterSync *link, const char *gpu)
{
    const Report *last = g_hash_table_lookup(link->reports, gpu);
    g_autofree char *rest = arbiter_rest_read(host_root(link->host), gpu);
    Report *report;
    gboolean hangs;

    if (holds(last, rest))
        return last;
    counters_note_change(host_counters(link->host));
    report = g_new0(Report, 1);
    report->rest = g_steal_pointer(&rest);
    report->uses = g_array_new(FALSE, FALSE, sizeof(ReportedUse));
    g_array_set_clear_func(report->uses, clear_use);
    g_hash_table_insert(link->reports, g_strdup(gpu), report);
    if (!ask(host_root(link->host), gpu, take_use, report->uses, &hangs))
        g_clear_pointer(&report->rest, g_free);
    if (hangs)
        leave_alone(link, gpu);
    return report;
}

static guint64 measured_of(const Report *report)
{
    guint64 ns = 0;

    for (guint i = 0; i < report->uses->len; i++)
        ns += g_array_index(report->uses, ReportedUse, i).use.gpu_ns;
    return ns;
}

GHashTable *arbiter_sync_members(ArbiterSync *link, const char *gpu)
{
    GHashTable *members = slice_members_new();
    gint64 begin = g_get_monotonic_time();

    if (!g_hash_table_contains(link->hung, gpu) &&
        !arbiter_all_members_read(host_root(link->host), gpu, members) &&
        was_waited_for_since(begin))
        leave_alone(link, gpu);
    return members;
}

static void put_report(const ArbiterSync *link, Counters *counters, const char *gpu,
                       const Report *report)
{
    AloneReport alone = {.measured = measured_of(report), .now = g_get_monotonic_time()};

    for (guint i = 0; i < report->uses->len; i++) {
        ReportedUse *reported = &g_array_index(report->uses, ReportedUse, i);

        alone.pids = reported->pids;
        if (slices_find(link->slices, reported->slice))
            alone_time_add(link->alone, gpu, reported->slice, &reported->use, &alone);
        counters_put_use(counters, reported->slice, &reported->use);
    }
}

/* Before counters are read: the values that only the arbiters have. */
static void read_uses(Counters *counters, void *data)
{
    ArbiterSync *link = data;
    GHashTableIter iter;
    void *gpu;

    g_hash_table_iter_init(&iter, link->served);
    while (g_hash_table_iter_next(&iter, &gpu, NULL))
        if (!g_hash_table_contains(link->hung, gpu))
            put_report(link, counters, gpu, report_of(link, gpu));
}

static gboolean all_rest(void *data)
{
    const ArbiterSync *link = data;
    GHashTableIter iter;
    void *gpu;

    g_hash_table_iter_init(&iter, link->served);
    while (g_hash_table_iter_next(&iter, &gpu, NULL)) {
        g_autofree char *rest = arbiter_rest_read(host_root(link->host), gpu);

        if (!holds(g_hash_table_lookup(link->reports, gpu), rest))
            return FALSE;
    }
    return TRUE;
}

static void rest_changed(GFileMonitor *monitor, GFile *file, GFile *other, GFileMonitorEvent event,
                         void *data)
{
    const ArbiterSync *link = data;

    (void)monitor, (void)file, (void)other, (void)event;
    counters_end_rest(host_counters(link->host));
}

static void monitor_free(void *monitor)
{
    g_file_monitor_cancel(monitor);
    g_object_unref(monitor);
}

/* An arbiter whose rest can't be watched is looked at when the use is sampled next. */
static void monitor_rest(ArbiterSync *link, const char *gpu)
{
    g_autoptr(GFile) file = arbiter_rest_file(host_root(link->host), gpu);
    GFileMonitor *monitor = g_file_monitor_file(file, G_FILE_MONITOR_NONE, NULL, NULL);

    if (!monitor)
        return;
    g_signal_connect(monitor, "changed", G_CALLBACK(rest_changed), link);
    g_ptr_array_add(link->monitors, monitor);
}

static void watch_rests(gboolean watch, void *data)
{
    ArbiterSync *link = data;
    GHashTableIter iter;
    void *gpu;

    g_clear_pointer(&link->monitors, g_ptr_array_unref);
    if (!watch)
        return;
    link->monitors = g_ptr_array_new_with_free_func(monitor_free);
    g_hash_table_iter_init(&iter, link->served);
    while (g_hash_table_iter_next(&iter, &gpu, NULL))
        monitor_rest(link, gpu);
}

static const CountersSource uses = {.read = read_uses, .rests = all_rest, .watch = watch_rests};

ArbiterSync *arbiter_sync_new(Host *host, Offers *offers, const Slices *slices,
                              const Claims *claims)
{
    ArbiterSync *link = g_new0(ArbiterSync, 1);

    link->host = host;
    link->offers = offers;
    link->slices = slices;
    link->claims = claims;
    link->served = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    link->homes = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    link->reports = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, report_free);
    link->hung = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    link->alone = alone_time_new(host_root(host));
    link->freed = g_cancellable_new();
    counters_set_source(host_counters(host), &uses, link);
    return link;
}

void arbiter_sync_free(ArbiterSync *link)
{
    counters_set_source(host_counters(link->host), NULL, NULL);
    g_clear_pointer(&link->monitors, g_ptr_array_unref);
    g_cancellable_cancel(link->freed);
    g_object_unref(link->freed);
    g_hash_table_unref(link->hung);
    alone_time_free(link->alone);
    g_hash_table_unref(link->reports);
    g_clear_object(&link->bus);
    g_hash_table_unref(link->served);
    g_hash_table_unref(link->homes);
    g_free(link);
}

void arbiter_sync_start(ArbiterSync *link, GDBusConnection *bus)
{
    link->bus = g_object_ref(bus);
    arbiter_sync_refresh(link);
}
