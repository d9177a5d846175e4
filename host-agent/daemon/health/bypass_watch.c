/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/health/bypass_watch.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host-agent/daemon/containers/claim_process.h"
#include "host-agent/daemon/containers/share_group.h"
#include "host-agent/daemon/containers/transport.h"
#include "lib/drm_clients.h"
#include "lib/program.h"

/* No kernel reports it. */
#define LOOK_SECONDS 10
#define KILL_SECONDS 10
/* Of a container: nobody keeps vgpud busy with more, which takes some 150 ms. */
#define MOST_PROCESSES 1024
#define MOST_FILES     16384
#define MOST_MAPS      (16u << 20)

/**
 * Seen - a process that uses the GPU and is no member
 * @started: a number that is used again belongs to another process
 * @told: it was seen before, and reported
 */
typedef struct {
    char *uuid;
    guint64 started;
    guint round;
    gboolean told;
} Seen;

struct BypassWatch {
    Host *host;
    const Slices *slices;
    const Claims *claims;
    ArbiterSync *arbiters;
    OnBypass policy;
    GHashTable *seen; /* pid to Seen */
    guint round;
    guint timer;
};

static void seen_free(void *data)
{
    Seen *seen = data;

    g_free(seen->uuid);
    g_free(seen);
}

/* Those of @dir and of the cgroups below it. */
static void add_processes(HostRoot *root, const char *dir, GArray *pids)
{
    g_autofree char *path = g_build_filename(dir, "cgroup.procs", NULL);
    g_autofree char *text = root_read(root, path, NULL);
    g_auto(GStrv) lines = g_strsplit(text ? text : "", "\n", -1);
    g_auto(GStrv) names = sysfs_list(root, dir);

    for (guint i = 0; lines[i] && pids->len < MOST_PROCESSES; i++) {
        guint pid = (guint)g_ascii_strtoull(lines[i], NULL, 10);

        if (pid)
            g_array_append_val(pids, pid);
    }
    for (guint i = 0; names[i] && pids->len < MOST_PROCESSES; i++) {
        g_autofree char *below = g_build_filename(dir, names[i], NULL);

        if (root_is(root, below, G_FILE_TEST_IS_DIR))
            add_processes(root, below, pids);
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

/* A training process has thousands of mappings, in no order that helps. */
static gboolean maps_node(HostRoot *root, guint pid, const char *node, gsize *rest)
{
    g_autofree char *path = g_strdup_printf("/proc/%u/maps", pid);
    g_autofree char *end = g_strdup_printf(" /dev/%s\n", node);
    int fd = root_open(root, path, O_RDONLY, 0);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "r");
    gboolean found = FALSE;
    char *line = NULL;
    size_t size = 0;

    if (!file)
        return FALSE;
    while (!found && next_line(file, &line, &size, rest))
        found = g_str_has_suffix(line, end);
    free(line);
    fclose(file);
    return found;
}

/* NVIDIA's driver has no fdinfo. Who has a channel of the GPU has its node mapped. */
static gboolean has_channel(HostRoot *root, guint pid, const char *gpu, Rest *rest)
{
    g_auto(GStrv) nodes = cuda_door_nodes(root, gpu);

    return nodes[0] && maps_node(root, pid, nodes[0], &rest->maps);
}

static gboolean contains(const GArray *pids, guint pid)
{
    for (guint i = 0; i < pids->len; i++)
        if (g_array_index(pids, guint, i) == pid)
            return TRUE;
    return FALSE;
}

/**
 * Members - the processes that the slice's arbiter knows
 * @clients: ids of their files of the GPU
 * @stacks: where their stacks begin, of guint64
 */
typedef struct {
    const GArray *pids;
    GHashTable *clients;
    GArray *stacks;
} Members;

static void members_clear(Members *members)
{
    g_hash_table_unref(members->clients);
    g_array_unref(members->stacks);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Members, members_clear)

/*
 * NULL: there was no answer, so nobody is known to be a member. @answers: of this look: GPU's
 * address to arbiter_sync_members(), which is asked once for all slices there.
 */
static const GArray *pids_of(const BypassWatch *watch, const Slice *slice, GHashTable *answers)
{
    GHashTable *answer = g_hash_table_lookup(answers, slice->gpu);

    if (!answer) {
        answer = arbiter_sync_members(watch->arbiters, slice->gpu);
        g_hash_table_insert(answers, g_strdup(slice->gpu), answer);
    }
    return g_hash_table_lookup(answer, slice->uuid);
}

static void read_members(HostRoot *root, const Slice *slice, Members *members)
{
    guint files = MOST_FILES;

    for (guint i = 0; i < members->pids->len; i++) {
        guint pid = g_array_index(members->pids, guint, i);
        guint64 stack = claim_process_stack(root, pid);

        drm_process_clients(root, pid, slice->gpu, members->clients, &files);
        g_array_append_val(members->stacks, stack);
    }
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
    if (contains(members->pids, pid))
        return FALSE;
    return drm_process_uses(root, pid, gpu, members->clients, &rest->files) ||
           (!is_forked(root, pid, members) && has_channel(root, pid, gpu, rest));
}

static char *name_of(HostRoot *root, guint pid)
{
    g_autofree char *dir = g_strdup_printf("/proc/%u", pid);
    char *name = sysfs_read(root, dir, "comm");

    return name ? name : g_strdup("?");
}

static void ended(const char *output, const GError *error, void *data)
{
    (void)output;
    if (error)
        g_message("cannot end process %u, which goes round its slice's governor; end it by hand: "
                  "%s",
                  GPOINTER_TO_UINT(data), error->message);
}

/* vgpud itself has no right to. */
static void end_process(guint pid)
{
    g_autofree char *number = g_strdup_printf("%u", pid);
    const char *argv[] = {"systemd-run", "--quiet", "--collect", "--wait", "--",
                          "/bin/kill",   "-KILL",   number,      NULL};
    Program program = {.argv = argv, .seconds = KILL_SECONDS};

    program_start(&program, NULL, ended, GUINT_TO_POINTER(pid));
}

static void tell(const BypassWatch *watch, const Slice *slice, guint pid)
{
    g_autofree char *name = name_of(host_root(watch->host), pid);
    gboolean kill = watch->policy == ON_BYPASS_KILL;

    host_event(watch->host, "bypass", slice->gpu, slice->uuid,
               "process %u (%s) uses GPU %s in slice %s without the slice's governor, so neither "
               "its share nor its memory is limited there%s",
               pid, name, slice->gpu, slice->uuid, kill ? "; it is ended" : "");
    if (kill)
        end_process(pid);
}

static void saw(BypassWatch *watch, const Slice *slice, guint pid)
{
    guint64 started = claim_process_started(host_root(watch->host), pid);
    Seen *seen = g_hash_table_lookup(watch->seen, GUINT_TO_POINTER(pid));

    if (!started)
        return;
    if (!seen || seen->started != started) {
        seen = g_new0(Seen, 1);
        seen->started = started;
        seen->uuid = g_strdup(slice->uuid);
        g_hash_table_insert(watch->seen, GUINT_TO_POINTER(pid), seen);
    } else if (!seen->told) {
        seen->told = TRUE;
        tell(watch, slice, pid);
    }
    seen->round = watch->round;
}

static void look_at(BypassWatch *watch, const Slice *slice, const char *cgroup, const GArray *known)
{
    HostRoot *root = host_root(watch->host);
    g_auto(Members)
        members = {.pids = known,
                   .clients = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL),
                   .stacks = g_array_new(FALSE, FALSE, sizeof(guint64))};
    g_autoptr(GArray) pids = g_array_new(FALSE, FALSE, sizeof(guint));
    Rest rest = {MOST_FILES, MOST_MAPS};

    read_members(root, slice, &members);
    add_processes(root, cgroup, pids);
    for (guint i = 0; i < pids->len; i++) {
        guint pid = g_array_index(pids, guint, i);

        if (goes_round(root, pid, slice->gpu, &members, &rest))
            saw(watch, slice, pid);
    }
}

/* To be freed; NULL: it is not looked at, or its share's first slice is. */
static char *cgroup_to_look_at(const BypassWatch *watch, const Slice *slice)
{
    if (watch->policy == ON_BYPASS_IGNORE || slice->transport != SLICE_TRANSPORT_NATIVE ||
        !g_str_equal(share_group_first(watch->slices, watch->claims, slice), slice->uuid))
        return NULL;
    return claims_cgroup(watch->claims, slice->uuid);
}

static gboolean is_past(void *pid, void *seen, void *data)
{
    (void)pid;
    return ((const Seen *)seen)->round != ((const BypassWatch *)data)->round;
}

void bypass_watch_look(BypassWatch *watch)
{
    const GPtrArray *slices = slices_all(watch->slices);
    g_autoptr(GHashTable) answers =
        g_hash_table_new_full(g_str_hash, g_str_equal, g_free, (GDestroyNotify)g_hash_table_unref);

    watch->round++;
    for (guint i = 0; i < slices->len; i++) {
        const Slice *slice = g_ptr_array_index(slices, i);
        g_autofree char *cgroup = cgroup_to_look_at(watch, slice);
        const GArray *known = cgroup ? pids_of(watch, slice, answers) : NULL;

        if (known)
            look_at(watch, slice, cgroup, known);
    }
    g_hash_table_foreach_remove(watch->seen, is_past, watch);
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

static gboolean tick(void *data)
{
    bypass_watch_look(data);
    return G_SOURCE_CONTINUE;
}

static gboolean is_needed(const BypassWatch *watch)
{
    const GPtrArray *slices = slices_all(watch->slices);

    for (guint i = 0; i < slices->len && watch->policy != ON_BYPASS_IGNORE; i++) {
        const Slice *slice = g_ptr_array_index(slices, i);

        if (slice->transport == SLICE_TRANSPORT_NATIVE &&
            claims_claimed_by(watch->claims, slice->uuid))
            return TRUE;
    }
    return FALSE;
}

void bypass_watch_refresh(BypassWatch *watch)
{
    gboolean needed = is_needed(watch);

    if (needed && !watch->timer)
        watch->timer = g_timeout_add_seconds(LOOK_SECONDS, tick, watch);
    if (needed)
        return;
    g_clear_handle_id(&watch->timer, g_source_remove);
    g_hash_table_remove_all(watch->seen);
}

void bypass_watch_set_policy(BypassWatch *watch, OnBypass policy)
{
    watch->policy = policy;
    bypass_watch_refresh(watch);
}

BypassWatch *bypass_watch_new(Host *host, const Slices *slices, const Claims *claims,
                              ArbiterSync *arbiters, OnBypass policy)
{
    BypassWatch *watch = g_new0(BypassWatch, 1);

    watch->host = host;
    watch->slices = slices;
    watch->claims = claims;
    watch->arbiters = arbiters;
    watch->policy = policy;
    watch->seen = g_hash_table_new_full(NULL, NULL, NULL, seen_free);
    return watch;
}

void bypass_watch_free(BypassWatch *watch)
{
    g_clear_handle_id(&watch->timer, g_source_remove);
    g_hash_table_unref(watch->seen);
    g_free(watch);
}
