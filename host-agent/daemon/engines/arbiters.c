/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/engines/arbiters.h"

/* How long a thread waits before it asks an arbiter again that has not answered. */
#define AGAIN_US G_USEC_PER_SEC

_Atomic gint64 arbiters_away_us = ARBITERS_AWAY_US;

/**
 * Arbiters
 * @silent: addresses of GPUs whose arbiter a thread asks
 * @seen: addresses of GPUs whose arbiter has answered before: NULL if it answered when last asked;
 * else when it counts as one that does not start (gint64), of the monotonic clock
 */
struct Arbiters {
    HostRoot *root;
    GHashTable *silent;
    GHashTable *seen;
    GCancellable *freed;
};

typedef struct {
    Arbiters *arbiters;
    HostRoot *root;
    char *gpu;
} Probe;

static void probe_free(void *data)
{
    Probe *probe = data;

    host_root_unref(probe->root);
    g_free(probe->gpu);
    g_free(probe);
}

static void ignore_use(const char *uuid, const SliceUse *use, GArray *pids, void *data)
{
    (void)uuid;
    (void)use;
    (void)pids;
    (void)data;
}

/* Until it answers, or does not exist any more. */
static void await_answer(GTask *task, void *source, void *data, GCancellable *cancellable)
{
    const Probe *probe = data;

    (void)source;
    do {
        g_usleep(AGAIN_US);
    } while (!g_cancellable_is_cancelled(cancellable) &&
             arbiter_read_status(probe->root, probe->gpu, ignore_use, NULL) == ARBITER_SILENT);
    g_task_return_boolean(task, TRUE);
}

static void answers_again(GObject *source, GAsyncResult *answer, void *data)
{
    const Probe *probe = g_task_get_task_data(G_TASK(answer));

    (void)source;
    (void)data;
    if (g_task_propagate_boolean(G_TASK(answer), NULL)) /* else freed meanwhile */
        g_hash_table_remove(probe->arbiters->silent, probe->gpu);
}

static void leave_to_thread(Arbiters *arbiters, const char *gpu)
{
    g_autoptr(GTask) task = g_task_new(NULL, arbiters->freed, answers_again, NULL);
    Probe *probe = g_new0(Probe, 1);

    g_message("the arbiter of GPU %s does not answer; who uses its slices, and how much, is not "
              "known until it does",
              gpu);
    g_hash_table_add(arbiters->silent, g_strdup(gpu));
    probe->arbiters = arbiters;
    probe->root = host_root_ref(arbiters->root);
    probe->gpu = g_strdup(gpu);
    g_task_set_task_data(task, probe, probe_free);
    g_task_run_in_thread(task, await_answer);
}

/* One that has never answered may have been configured and never started. */
static void note_presence(Arbiters *arbiters, const char *gpu, gboolean answers)
{
    gint64 until = g_get_monotonic_time() + arbiters_away_us;
    void *away;
    gboolean seen = g_hash_table_lookup_extended(arbiters->seen, gpu, NULL, &away);

    if (answers)
        g_hash_table_insert(arbiters->seen, g_strdup(gpu), NULL);
    else if (seen && !away)
        g_hash_table_insert(arbiters->seen, g_strdup(gpu), g_memdup2(&until, sizeof(until)));
}

static gboolean is_being_restarted(const Arbiters *arbiters, const char *gpu)
{
    const gint64 *until = g_hash_table_lookup(arbiters->seen, gpu);

    return until && g_get_monotonic_time() < *until;
}

/* What the main loop was told. */
static ArbiterAnswer note_answer(Arbiters *arbiters, const char *gpu, ArbiterAnswer answer)
{
    if (answer == ARBITER_SILENT)
        leave_to_thread(arbiters, gpu);
    else
        note_presence(arbiters, gpu, answer != ARBITER_AWAY);
    return answer;
}

gboolean arbiters_is_silent(const Arbiters *arbiters, const char *gpu)
{
    return g_hash_table_contains(arbiters->silent, gpu);
}

ArbiterAnswer arbiters_read_status(Arbiters *arbiters, const char *gpu, SliceUseFunc func,
                                   void *data)
{
    if (arbiters_is_silent(arbiters, gpu))
        return ARBITER_SILENT;
    return note_answer(arbiters, gpu, arbiter_read_status(arbiters->root, gpu, func, data));
}

ArbiterAnswer arbiters_read_members(Arbiters *arbiters, const char *gpu, GHashTable *members)
{
    if (arbiters_is_silent(arbiters, gpu))
        return ARBITER_SILENT;
    return note_answer(arbiters, gpu, arbiter_read_members(arbiters->root, gpu, members));
}

GHashTable *arbiters_members(Arbiters *arbiters, const char *gpu)
{
    g_autoptr(GHashTable) members = slice_members_new();
    ArbiterAnswer answer = arbiters_read_members(arbiters, gpu, members);

    if (answer == ARBITER_ANSWERS || (answer == ARBITER_AWAY && !is_being_restarted(arbiters, gpu)))
        return g_steal_pointer(&members);
    return NULL;
}

Arbiters *arbiters_new(HostRoot *root)
{
    Arbiters *arbiters = g_new0(Arbiters, 1);

    arbiters->root = host_root_ref(root);
    arbiters->silent = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    arbiters->seen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    arbiters->freed = g_cancellable_new();
    return arbiters;
}

void arbiters_free(Arbiters *arbiters)
{
    g_cancellable_cancel(arbiters->freed);
    g_object_unref(arbiters->freed);
    g_hash_table_unref(arbiters->silent);
    g_hash_table_unref(arbiters->seen);
    host_root_unref(arbiters->root);
    g_free(arbiters);
}
