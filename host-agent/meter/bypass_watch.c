/* SPDX-License-Identifier: MIT */
#include "host-agent/meter/bypass_watch.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host-agent/daemon/containers/claim_process.h"
#include "host-agent/daemon/containers/transport.h"
#include "host-agent/meter/job_cgroup.h"
#include "host-agent/meter/ungoverned.h"
#include "lib/drm_clients.h"
#include "lib/nvidia_readings.h"
#include "lib/process_end.h"

/* No kernel reports it. */
#define LOOK_SECONDS 10
/* Between the parts of a look that would keep the main loop from others for too long. */
#define PAUSE_SECONDS 1
/* Of a container: nobody keeps vgpud busy with more, which takes some 150 ms. */
#define MOST_PROCESSES 1024
#define MOST_CGROUPS   1024
#define MOST_FILES     16384
#define MOST_MAPS      (16u << 20)
/*
 * What is read is counted in processes: as much as the most of a container ends a part of a look.
 * The part may end with a container that takes as much again.
 */
#define PART_COST      MOST_PROCESSES
#define FILES_PER_COST (MOST_FILES / PART_COST)
#define MAPS_PER_COST  (MOST_MAPS / PART_COST)

/**
 * Seen - a process that uses the GPU and is no member
 * @started: a number that is used again belongs to another process
 * @first: when it was first seen, of CLOCK_MONOTONIC in us
 * @counts: it was seen before, and is charged
 * @told: it was reported as well
 */
typedef struct {
    char *uuid;
    guint64 started;
    gint64 first;
    guint round;
    gboolean counts;
    gboolean told;
} Seen;

struct BypassWatch {
    const HostView *view;
    const AgentLink *agent;
    OnBypass policy;
    Ungoverned *ungoverned;
    GHashTable *seen; /* pid to Seen */
    GQueue rest;      /* of char *: UUIDs of slices that this look has still to come to */
    guint cost;       /* of the part of a look that is under way */
    guint round;
    guint timer;
};

static void seen_free(void *data)
{
    Seen *seen = data;

    g_free(seen->uuid);
    g_free(seen);
}

/* Those of @dir and of the cgroups below it. @rest: how many cgroups may still be looked at. */
static void add_processes(HostRoot *root, const char *dir, GArray *pids, guint *rest)
{
    g_autofree char *path = g_build_filename(dir, "cgroup.procs", NULL);
    g_autofree char *text = root_read(root, path, NULL);
    g_auto(GStrv) lines = g_strsplit(text ? text : "", "\n", -1);
    g_auto(GStrv) names = NULL;

    --*rest;
    for (guint i = 0; lines[i] && pids->len < MOST_PROCESSES; i++) {
        guint pid = (guint)g_ascii_strtoull(lines[i], NULL, 10);

        if (pid)
            g_array_append_val(pids, pid);
    }
    /* A cgroup has some dozens of files of its own. */
    names = sysfs_list_some(root, dir, *rest + MOST_PROCESSES);
    for (guint i = 0; names[i] && *rest && pids->len < MOST_PROCESSES; i++) {
        g_autofree char *below = g_build_filename(dir, names[i], NULL);

        if (root_is(root, below, G_FILE_TEST_IS_DIR))
            add_processes(root, below, pids, rest);
    }
}

/**
 * Rest - what may still be read of a container's processes
 * @maps: bytes of their mappings
 */
typedef struct {
    guint files;
    gsize maps;
} Rest;

static gboolean next_line(FILE *file, char **line, size_t *size, gsize *rest)
{
    gssize length = *rest ? getline(line, size, file) : -1;

    *rest -= MIN(*rest, (gsize)MAX(length, 0));
    return length >= 0;
}

static gboolean ends_with_any(const char *line, const GPtrArray *ends)
{
    for (guint i = 0; i < ends->len; i++)
        if (g_str_has_suffix(line, g_ptr_array_index(ends, i)))
            return TRUE;
    return FALSE;
}

/* A training process has thousands of mappings, in no order that helps. */
static gboolean maps_node(HostRoot *root, guint pid, const GPtrArray *ends, gsize *rest)
{
    g_autofree char *path = g_strdup_printf("/proc/%u/maps", pid);
    int fd = root_open(root, path, O_RDONLY, 0);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "r");
    gboolean found = FALSE;
    char *line = NULL;
    size_t size = 0;

    if (!file)
        return FALSE;
    while (!found && next_line(file, &line, &size, rest))
        found = ends_with_any(line, ends);
    free(line);
    fclose(file);
    return found;
}

/* As a line of maps ends: with the path, in which a line break is written so. */
static char *end_of_line(const char *path)
{
    GString *text = g_string_new(path);

    g_string_replace(text, "\n", "\\012", 0);
    g_string_prepend_c(text, ' ');
    return g_string_free(g_string_append_c(text, '\n'), FALSE);
}

/* The node by other names: containers may make nodes. */
static void add_renamed(HostRoot *root, guint pid, const char *node, GPtrArray *ends, guint *files)
{
    g_autofree char *dir = g_strdup_printf("/proc/%u/fd", pid);
    g_auto(GStrv) names = NULL;
    dev_t number, own;

    if (!*files || root_device(root, node, &number) != S_IFCHR)
        return;
    names = sysfs_list_some(root, dir, *files);
    for (guint i = 0; names[i]; i++, --*files) {
        g_autofree char *link = g_build_filename(dir, names[i], NULL);
        g_autofree char *target = root_link(root, link);

        if (target && target[0] == '/' && !g_str_equal(target, node) &&
            root_device(root, link, &own) == S_IFCHR && own == number)
            g_ptr_array_add(ends, end_of_line(target));
    }
}

/*
 * NVIDIA's driver has no fdinfo, and lists those who compute twice a minute. Who has a channel of
 * the GPU has its node mapped.
 */
static gboolean has_channel(HostRoot *root, guint pid, const char *gpu, Rest *rest)
{
    g_auto(GStrv) nodes = cuda_door_nodes(root, gpu);
    g_autofree char *node = nodes[0] ? g_build_filename("/dev", nodes[0], NULL) : NULL;
    g_autoptr(GPtrArray) ends = g_ptr_array_new_with_free_func(g_free);

    if (!node)
        return FALSE;
    g_ptr_array_add(ends, end_of_line(node));
    add_renamed(root, pid, node, ends, &rest->files);
    return maps_node(root, pid, ends, &rest->maps);
}

static gboolean has_pid(const GArray *pids, guint pid)
{
    for (guint i = 0; i < pids->len; i++)
        if (g_array_index(pids, guint, i) == pid)
            return TRUE;
    return FALSE;
}

/**
 * Members - the processes that the slice's arbiter knows
 * @clients: of their files of the GPU, as of drm_process_add()
 * @stacks: where their stacks begin, of guint64
 */
typedef struct {
    const SliceMembers *known;
    GHashTable *clients;
    GArray *stacks;
} Members;

static void members_clear(Members *members)
{
    g_hash_table_unref(members->clients);
    g_array_unref(members->stacks);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Members, members_clear)

/**
 * GpuLook - what is known of a GPU in one look
 * @members: as of arbiter_reports_members()
 * @nvidia, @nvidia_at: as of nvidia_processes()
 */
typedef struct {
    GHashTable *members;
    GHashTable *nvidia;
    gint64 nvidia_at;
} GpuLook;

static void gpu_look_free(void *data)
{
    GpuLook *look = data;

    g_hash_table_unref(look->members);
    g_clear_pointer(&look->nvidia, g_hash_table_unref);
    g_free(look);
}

/* @looks: of all GPUs, by their addresses. Each is asked once for all of its slices. */
static const GpuLook *gpu_look(const BypassWatch *watch, const char *gpu, GHashTable *looks)
{
    GpuLook *look = g_hash_table_lookup(looks, gpu);

    if (!look) {
        look = g_new0(GpuLook, 1);
        look->members = arbiter_reports_members(host_view_reports(watch->view), gpu);
        look->nvidia = nvidia_processes(host_view_root(watch->view), gpu, &look->nvidia_at);
        g_hash_table_insert(looks, g_strdup(gpu), look);
    }
    return look;
}

/* How many files were read. */
static guint read_members(HostRoot *root, const Slice *slice, Members *members)
{
    guint files = MOST_FILES;

    for (guint i = 0; i < members->known->pids->len; i++) {
        guint pid = g_array_index(members->known->pids, guint, i);
        guint64 stack = claim_process_stack(root, pid);

        drm_process_add(root, pid, slice->gpu, members->clients, &files);
        g_array_append_val(members->stacks, stack);
    }
    return MOST_FILES - files;
}

/* It, or a parent of both, was forked and has executed nothing since: its mappings are copies. */
static gboolean is_forked(HostRoot *root, guint pid, const Members *members)
{
    guint64 stack = claim_process_stack(root, pid);

    for (guint i = 0; stack && i < members->stacks->len; i++)
        if (g_array_index(members->stacks, guint64, i) == stack)
            return TRUE;
    return FALSE;
}

/*
 * A child that a member has forked, as PyTorch's loaders are, has the member's files and mappings.
 * It joins with its first call, which may never come.
 */
static gboolean goes_round(HostRoot *root, guint pid, const char *gpu, const Members *members,
                           Rest *rest)
{
    return drm_process_uses(root, pid, gpu, members->clients, &rest->files) ||
           (!is_forked(root, pid, members) && has_channel(root, pid, gpu, rest));
}

static gboolean is_listed(guint pid, const GpuLook *look)
{
    return look->nvidia && g_hash_table_contains(look->nvidia, GUINT_TO_POINTER(pid));
}

static void process_ended(const char *output, const GError *error, void *data)
{
    (void)output;
    if (error)
        g_message("cannot end process %u, which goes round its slice's governor; end it by hand: "
                  "%s",
                  GPOINTER_TO_UINT(data), error->message);
}

static void end_process(guint pid, guint64 started)
{
    g_autofree char *name = process_end_name(pid, started);
    const char *const names[] = {name, NULL};

    process_end(names, NULL, process_ended, GUINT_TO_POINTER(pid));
}

static void tell_bypass(const BypassWatch *watch, const Slice *slice, guint pid, guint64 started)
{
    g_autofree char *dir = g_strdup_printf("/proc/%u", pid);
    g_autofree char *name = process_name(host_view_root(watch->view), dir);
    gboolean kill = watch->policy == ON_BYPASS_KILL;

    agent_tell_event(
        watch->agent, "bypass", slice->gpu, slice->uuid,
        "process %u (%s) uses GPU %s in slice %s without the slice's governor, so neither "
        "its share nor its memory is limited there%s",
        pid, name, slice->gpu, slice->uuid, kill ? "; it is ended" : "");
    if (kill)
        end_process(pid, started);
}

/*
 * It may have been a member of an earlier arbiter: one that is frozen, or that the present arbiter
 * does not understand, cannot join again. It is charged, and that is all.
 */
static gboolean is_older(guint64 started, const SliceMembers *known)
{
    return started <
           known->since_ns / (G_GUINT64_CONSTANT(1000000000) / (guint64)sysconf(_SC_CLK_TCK));
}

/*
 * Whether it was seen before. @at: when it used the GPU. A member that has just left may be listed
 * of a time in which it was one.
 */
static gboolean was_seen(BypassWatch *watch, const Slice *slice, guint pid,
                         const SliceMembers *known, gint64 at)
{
    guint64 started = claim_process_started(host_view_root(watch->view), pid);
    Seen *seen = g_hash_table_lookup(watch->seen, GUINT_TO_POINTER(pid));

    if (!started)
        return FALSE;
    if (!seen || seen->started != started) {
        seen = g_new0(Seen, 1);
        seen->started = started;
        seen->first = g_get_monotonic_time();
        seen->uuid = g_strdup(slice->uuid);
        g_hash_table_insert(watch->seen, GUINT_TO_POINTER(pid), seen);
    } else if (!seen->counts && at >= seen->first) {
        seen->counts = TRUE;
        seen->told = !is_older(started, known);
        if (seen->told)
            tell_bypass(watch, slice, pid, started);
    }
    seen->round = watch->round;
    return seen->counts;
}

/* Those of the cgroup that go round the door, and were seen to before. */
static GArray *find_others(BypassWatch *watch, const Slice *slice, const char *cgroup,
                           const GpuLook *look, const Members *members)
{
    HostRoot *root = host_view_root(watch->view);
    g_autoptr(GArray) pids = g_array_new(FALSE, FALSE, sizeof(guint));
    GArray *others = g_array_new(FALSE, FALSE, sizeof(guint));
    Rest rest = {MOST_FILES, MOST_MAPS};
    guint cgroups = MOST_CGROUPS;

    add_processes(root, cgroup, pids, &cgroups);
    for (guint i = 0; i < pids->len; i++) {
        guint pid = g_array_index(pids, guint, i);
        gboolean found = FALSE;

        if (has_pid(members->known->pids, pid))
            continue;
        if (goes_round(root, pid, slice->gpu, members, &rest))
            found = was_seen(watch, slice, pid, members->known, g_get_monotonic_time());
        else if (is_listed(pid, look))
            found = was_seen(watch, slice, pid, members->known, look->nvidia_at);
        if (found)
            g_array_append_val(others, pid);
    }
    watch->cost += pids->len + (MOST_CGROUPS - cgroups) +
                   (MOST_FILES - rest.files) / FILES_PER_COST +
                   (guint)((MOST_MAPS - rest.maps) / MAPS_PER_COST);
    return others;
}

static void look_at(BypassWatch *watch, const Slice *slice, const char *cgroup, const GpuLook *look,
                    const SliceMembers *known)
{
    g_auto(Members) members = {.known = known,
                               .clients = drm_uses_new(),
                               .stacks = g_array_new(FALSE, FALSE, sizeof(guint64))};
    g_autoptr(GArray) others = NULL;

    watch->cost += members.known->pids->len +
                   read_members(host_view_root(watch->view), slice, &members) / FILES_PER_COST;
    others = find_others(watch, slice, cgroup, look, &members);
    ungoverned_look(
        watch->ungoverned, slice,
        &(UngovernedLook){known, members.clients, others, look->nvidia, look->nvidia_at});
}

/* To be freed; NULL: it is not looked at, or its share's first slice is. */
static char *cgroup_to_look_at(const BypassWatch *watch, const Slice *slice)
{
    const SliceUsers *users = host_view_users(watch->view, slice->uuid);

    if (watch->policy == ON_BYPASS_IGNORE || slice->transport != SLICE_TRANSPORT_NATIVE ||
        !g_str_equal(users->first, slice->uuid))
        return NULL;
    if (!users->claimed)
        return job_cgroup_find(host_view_root(watch->view), slice->owner);
    return g_strdup(users->cgroup);
}

static gboolean is_past(void *pid, void *seen, void *data)
{
    (void)pid;
    return ((const Seen *)seen)->round != ((const BypassWatch *)data)->round;
}

/* Without an answer of its arbiter, nobody is known to be a member. */
static void look_at_slice(BypassWatch *watch, const Slice *slice, const char *cgroup,
                          GHashTable *looks)
{
    const GpuLook *look = gpu_look(watch, slice->gpu, looks);
    const SliceMembers *known = g_hash_table_lookup(look->members, slice->uuid);

    if (known)
        look_at(watch, slice, cgroup, look, known);
    else
        ungoverned_keep(watch->ungoverned, slice);
}

static void begin_look(BypassWatch *watch)
{
    const GPtrArray *slices = host_view_slices(watch->view);

    watch->round++;
    for (guint i = 0; i < slices->len; i++)
        g_queue_push_tail(&watch->rest,
                          g_strdup(((const Slice *)g_ptr_array_index(slices, i))->uuid));
}

gboolean bypass_watch_look(BypassWatch *watch)
{
    g_autoptr(GHashTable) looks =
        g_hash_table_new_full(g_str_hash, g_str_equal, g_free, gpu_look_free);

    if (g_queue_is_empty(&watch->rest))
        begin_look(watch);
    watch->cost = 0;
    while (!g_queue_is_empty(&watch->rest) && watch->cost < PART_COST) {
        g_autofree char *uuid = g_queue_pop_head(&watch->rest);
        const Slice *slice = host_view_slice(watch->view, uuid);
        g_autofree char *cgroup = slice ? cgroup_to_look_at(watch, slice) : NULL;

        if (cgroup)
            look_at_slice(watch, slice, cgroup, looks);
    }
    if (!g_queue_is_empty(&watch->rest))
        return FALSE;
    ungoverned_end_round(watch->ungoverned);
    g_hash_table_foreach_remove(watch->seen, is_past, watch);
    return TRUE;
}

guint bypass_watch_count(const BypassWatch *watch, const char *uuid)
{
    GHashTableIter iter;
    void *seen;
    guint count = 0;

    g_hash_table_iter_init(&iter, watch->seen);
    while (g_hash_table_iter_next(&iter, NULL, &seen))
        count += ((const Seen *)seen)->told && g_str_equal(((const Seen *)seen)->uuid, uuid);
    return count;
}

static gboolean look_again(void *data)
{
    BypassWatch *watch = data;

    watch->timer = g_timeout_add_seconds(bypass_watch_look(watch) ? LOOK_SECONDS : PAUSE_SECONDS,
                                         look_again, watch);
    return G_SOURCE_REMOVE;
}

static gboolean is_needed(const BypassWatch *watch)
{
    const GPtrArray *slices = host_view_slices(watch->view);

    for (guint i = 0; i < slices->len && watch->policy != ON_BYPASS_IGNORE; i++) {
        const Slice *slice = g_ptr_array_index(slices, i);

        if (slice->transport == SLICE_TRANSPORT_NATIVE &&
            (host_view_users(watch->view, slice->uuid)->claimed ||
             job_cgroup_is_known(slice->owner)))
            return TRUE;
    }
    return FALSE;
}

void bypass_watch_refresh(BypassWatch *watch)
{
    gboolean needed = is_needed(watch);

    if (needed && !watch->timer)
        watch->timer = g_timeout_add_seconds(LOOK_SECONDS, look_again, watch);
    if (needed)
        return;
    g_clear_handle_id(&watch->timer, g_source_remove);
    g_queue_clear_full(&watch->rest, g_free);
    g_hash_table_remove_all(watch->seen);
    ungoverned_end_round(watch->ungoverned);
}

void bypass_watch_set_policy(BypassWatch *watch, OnBypass policy)
{
    watch->policy = policy;
    bypass_watch_refresh(watch);
}

BypassWatch *bypass_watch_new(const HostView *view, const AgentLink *agent, OnBypass policy)
{
    BypassWatch *watch = g_new0(BypassWatch, 1);

    watch->view = view;
    watch->agent = agent;
    watch->policy = policy;
    watch->ungoverned = ungoverned_new(host_view_root(view));
    watch->seen = g_hash_table_new_full(NULL, NULL, NULL, seen_free);
    return watch;
}

void bypass_watch_free(BypassWatch *watch)
{
    g_clear_handle_id(&watch->timer, g_source_remove);
    g_queue_clear_full(&watch->rest, g_free);
    g_hash_table_unref(watch->seen);
    ungoverned_free(watch->ungoverned);
    g_free(watch);
}
