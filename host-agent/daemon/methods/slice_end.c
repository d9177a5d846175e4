/* SPDX-License-Identifier: MIT */
/* Ends the programs of a native slice. */
#include "lib/bus.h"
#include "lib/process_end.h"
#include "host-agent/daemon/containers/claim_process.h"
#include "host-agent/daemon/containers/share_group.h"
#include "host-agent/daemon/methods/vgpu_call.h"

/**
 * End
 * @cancellable: cancelled: nobody waits for it any more
 */
typedef struct {
    Slice *slice;
    GCancellable *cancellable;
    ProgramsEndedFunc *func;
    void *data;
} End;

static void programs_ended(const char *output, const GError *error, void *data)
{
    End *end = data;

    (void)output;
    if (!g_cancellable_is_cancelled(end->cancellable))
        end->func(end->slice, error, end->data);
    g_object_unref(end->cancellable);
    slice_free(end->slice);
    g_free(end);
}

/* Of guint: the processes of the slice as its arbiter names them now; may be empty. */
static GArray *pids_of(const Vgpus *vgpus, const Slice *slice)
{
    g_autoptr(GHashTable) all = arbiters_members(host_arbiters(vgpus->host), slice->gpu);
    const SliceMembers *members = all ? g_hash_table_lookup(all, slice->uuid) : NULL;

    return members ? g_array_ref(members->pids) : g_array_new(FALSE, FALSE, sizeof(guint));
}

static gboolean has_pid(const GArray *pids, guint pid)
{
    for (guint i = 0; i < pids->len; i++)
        if (g_array_index(pids, guint, i) == pid)
            return TRUE;
    return FALSE;
}

/*
 * Their names for process_end(), to be freed. The arbiter is asked once more when their starts have
 * been read: a process that it still names then is the one that began at that time.
 */
static GStrv processes_of(const Vgpus *vgpus, const Slice *slice)
{
    HostRoot *root = host_root(vgpus->host);
    g_autoptr(GArray) pids = pids_of(vgpus, slice);
    g_autofree guint64 *starts = g_new0(guint64, pids->len + 1);
    g_autoptr(GStrvBuilder) processes = g_strv_builder_new();
    g_autoptr(GArray) still = NULL;

    for (guint i = 0; i < pids->len; i++)
        starts[i] = claim_process_started(root, g_array_index(pids, guint, i));
    still = pids_of(vgpus, slice);
    for (guint i = 0; i < pids->len; i++) {
        guint pid = g_array_index(pids, guint, i);

        if (starts[i] && has_pid(still, pid))
            g_strv_builder_take(processes, process_end_name(pid, starts[i]));
    }
    return g_strv_builder_end(processes);
}

/* Its programs have nothing but best effort's. */
static gboolean check_group(const Vgpus *vgpus, const Slice *slice, GError **error)
{
    if (!share_group_is_mixed(vgpus->slices, vgpus->claims, slice))
        return TRUE;
    g_set_error(error, AGENT_ERROR, AGENT_ERROR_IN_USE,
                "cannot end the programs of slice %s: its container has slices of GPU %s that are "
                "not best effort, too, and their programs are not told apart",
                slice->uuid, slice->gpu);
    return FALSE;
}

/* The arbiter names the processes of a container's slices with the first of them. */
static gboolean has_processes(const Vgpus *vgpus, const Slice *slice)
{
    return g_str_equal(share_group_first(vgpus->slices, vgpus->claims, slice), slice->uuid);
}

gboolean slice_end_for_room(const Slice *slice, const ProgramsEnded *done, void *data,
                            GError **error)
{
    const Vgpus *vgpus = data;
    g_auto(GStrv) processes = NULL;
    End *end;

    if (!check_group(vgpus, slice, error))
        return FALSE;
    if (!has_processes(vgpus, slice))
        return TRUE;
    processes = processes_of(vgpus, slice);
    if (!processes[0])
        return TRUE;
    end = g_new0(End, 1);
    end->slice = slice_copy(slice);
    end->cancellable = g_object_ref(done->cancellable);
    end->func = done->func;
    end->data = done->data;
    process_end((const char *const *)processes, end->cancellable, programs_ended, end);
    return TRUE;
}
