/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/containers/claim_process.h"

#include <errno.h>
#include <fcntl.h>
#include <glib-unix.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/host_root.h"

/* Of /proc/PID/stat after the name, which may contain any character. */
#define FIELD_STATE   0
#define FIELD_STARTED 19
#define FIELD_STACK   25
#define CGROUPS       "/sys/fs/cgroup"
#define OWN_HIERARCHY "0::"

struct ClaimWatch {
    HostRoot *root;
    char *events; /* path of the scope's cgroup.events; NULL: it has no scope */
    guint process;
    guint scope;
    int process_fd;
    int scope_fd;
    void (*func)(void *data);
    void *data;
};

/* A zombie keeps its number until its parent reaps it, but uses nothing any more. */
static gboolean has_ended(const char *state)
{
    return *state == 'Z' || *state == 'X';
}

/* 0: there is none, or the process has ended. */
static guint64 field_of(const char *text, guint field)
{
    const char *after = strrchr(text, ')');
    g_auto(GStrv) fields = after ? g_strsplit(after + 1, " ", -1) : NULL;

    /* Before the first of them there is a blank. */
    if (!fields || g_strv_length(fields) <= field + 1 || has_ended(fields[FIELD_STATE + 1]))
        return 0;
    return g_ascii_strtoull(fields[field + 1], NULL, 10);
}

/* FALSE: it can't be told now, as without a free descriptor. 0: as above. */
static gboolean read_field(HostRoot *root, guint pid, guint field, guint64 *value)
{
    g_autofree char *dir = g_strdup_printf("/proc/%u", pid);
    g_autofree char *text = sysfs_read(root, dir, "stat");

    *value = 0;
    if (!text)
        return errno == ENOENT || errno == ESRCH;
    *value = field_of(text, field);
    return TRUE;
}

guint64 claim_process_started(HostRoot *root, guint pid)
{
    guint64 started;

    read_field(root, pid, FIELD_STARTED, &started);
    return started;
}

guint64 claim_process_stack(HostRoot *root, guint pid)
{
    guint64 stack;

    read_field(root, pid, FIELD_STACK, &stack);
    return stack;
}

char *claim_process_scope(HostRoot *root, guint pid, const char *uuid)
{
    g_autofree char *dir = g_strdup_printf("/proc/%u", pid);
    g_autofree char *text = sysfs_read(root, dir, "cgroup");
    g_auto(GStrv) lines = g_strsplit(text ? text : "", "\n", -1);
    g_autofree char *unit = g_strdup_printf("/vgpu-run-%s.scope", uuid);

    for (guint i = 0; lines[i]; i++)
        if (g_str_has_prefix(lines[i], OWN_HIERARCHY) && g_str_has_suffix(lines[i], unit))
            return g_strdup(lines[i] + strlen(OWN_HIERARCHY));
    return g_strdup("");
}

/* Runtimes' ids have at least these; most have 64. */
#define SHORTEST_ID 12

/* A unit has the processes of many, or is a container's by the id in its name. */
static gboolean is_unit(const char *name)
{
    static const char *const kinds[] = {".slice", ".service", ".scope"};

    for (guint i = 0; i < G_N_ELEMENTS(kinds); i++)
        if (g_str_has_suffix(name, kinds[i]))
            return TRUE;
    return FALSE;
}

/* "libpod-ID.scope", "docker-ID.scope", "ID": the runtimes' names for the cgroup of container ID.
 */
static gboolean is_named_after(const char *name, const char *container)
{
    g_autofree char *unit = g_strconcat("-", container, ".scope", NULL);

    return !is_unit(container) && (g_str_equal(name, container) || g_str_has_suffix(name, unit));
}

/* systemd has given it to that user: only the user's own processes are there. */
static gboolean is_delegated_to(const char *cgroup, gint64 user)
{
    g_autofree char *own = g_strdup_printf("/user.slice/user-%" G_GINT64_FORMAT
                                           ".slice/user@%" G_GINT64_FORMAT ".service/",
                                           user, user);

    return g_str_has_prefix(cgroup, own);
}

/* A member chooses the id, and with it the name. An administrator's runtime does for the others. */
static gboolean may_be_of(const char *cgroup, const Claim *claim)
{
    return claim->member == CLAIM_NO_USER ||
           (strlen(claim->container) >= SHORTEST_ID && is_delegated_to(cgroup, claim->member));
}

/* The first @count names of @path. To be freed. */
static char *first_names(const char *path, guint count)
{
    const char *end = path;

    for (; *end && (*end != '/' || count); end++)
        count -= *end == '/';
    return g_strndup(path, (gsize)(end - path));
}

/* Of a line of /proc/PID/cgroup. To be freed; NULL: none there is named after the container. */
static char *named_after(const char *line, const char *container)
{
    g_auto(GStrv) names = g_strsplit(line, "/", -1);

    for (guint i = 1; names[0] && names[i]; i++)
        if (is_named_after(names[i], container))
            return first_names(line + strlen(OWN_HIERARCHY), i);
    return NULL;
}

char *claim_process_own_cgroup(HostRoot *root, const Claim *claim)
{
    g_autofree char *dir = g_strdup_printf("/proc/%u", claim->pid);
    g_autofree char *text = sysfs_read(root, dir, "cgroup");
    g_auto(GStrv) lines = g_strsplit(text ? text : "", "\n", -1);

    if (*claim->cgroup || claim->user != CLAIM_NO_USER)
        return *claim->cgroup ? g_strdup(claim->cgroup) : NULL;
    for (guint i = 0; lines[i]; i++) {
        g_autofree char *cgroup = g_str_has_prefix(lines[i], OWN_HIERARCHY)
                                      ? named_after(lines[i], claim->container)
                                      : NULL;

        if (cgroup)
            return may_be_of(cgroup, claim) ? g_steal_pointer(&cgroup) : NULL;
    }
    return NULL;
}

static char *events_path(const Claim *claim)
{
    return *claim->cgroup ? g_build_filename(CGROUPS, claim->cgroup, "cgroup.events", NULL) : NULL;
}

static ClaimState state_of_first(HostRoot *root, const Claim *claim)
{
    guint64 started;

    if (!read_field(root, claim->pid, FIELD_STARTED, &started))
        return CLAIM_STATE_UNKNOWN;
    return started == claim->started ? CLAIM_STATE_ALIVE : CLAIM_STATE_ENDED;
}

static ClaimState state_of_scope(HostRoot *root, const Claim *claim)
{
    g_autofree char *path = events_path(claim);
    g_autoptr(GError) error = NULL;
    g_autofree char *text = path ? root_read(root, path, &error) : NULL;

    if (text)
        return strstr(text, "populated 1") ? CLAIM_STATE_ALIVE : CLAIM_STATE_ENDED;
    /* The second: it was removed while it was read. */
    return !path || g_error_matches(error, G_FILE_ERROR, G_FILE_ERROR_NOENT) ||
                   g_error_matches(error, G_FILE_ERROR, G_FILE_ERROR_NODEV)
               ? CLAIM_STATE_ENDED
               : CLAIM_STATE_UNKNOWN;
}

ClaimState claim_process_state(HostRoot *root, const Claim *claim)
{
    ClaimState first = claim->past ? CLAIM_STATE_ENDED : state_of_first(root, claim);

    if (claim->past || first == CLAIM_STATE_ALIVE)
        return first;
    return MAX(first, state_of_scope(root, claim));
}

gboolean claim_process_is_alive(HostRoot *root, const Claim *claim)
{
    return claim_process_state(root, claim) != CLAIM_STATE_ENDED;
}

static gboolean process_ended(int fd, GIOCondition condition, void *data)
{
    ClaimWatch *watch = data;

    (void)fd;
    (void)condition;
    watch->process = 0;
    watch->func(watch->data);
    return G_SOURCE_REMOVE;
}

/* The kernel reports the next change only after the file was read. */
static void read_events(const ClaimWatch *watch)
{
    char text[256];

    while (pread(watch->scope_fd, text, sizeof(text), 0) < 0 && errno == EINTR)
        ;
}

static gboolean scope_changed(int fd, GIOCondition condition, void *data)
{
    ClaimWatch *watch = data;
    gboolean gone = !root_has(watch->root, watch->events);

    (void)fd;
    (void)condition;
    read_events(watch);
    if (gone)
        watch->scope = 0;
    watch->func(watch->data);
    return gone ? G_SOURCE_REMOVE : G_SOURCE_CONTINUE;
}

static void watch_scope(ClaimWatch *watch)
{
    watch->scope_fd = root_open(watch->root, watch->events, O_RDONLY, 0);
    if (watch->scope_fd < 0)
        return;
    read_events(watch);
    watch->scope = g_unix_fd_add(watch->scope_fd, G_IO_PRI | G_IO_ERR, scope_changed, watch);
}

ClaimWatch *claim_watch_new(HostRoot *root, const Claim *claim, void (*func)(void *data),
                            void *data)
{
    ClaimWatch *watch = g_new0(ClaimWatch, 1);

    watch->root = host_root_ref(root);
    watch->func = func;
    watch->data = data;
    watch->events = events_path(claim);
    watch->scope_fd = -1;
    watch->process_fd = (int)syscall(SYS_pidfd_open, (pid_t)claim->pid, 0);
    if (watch->process_fd >= 0)
        watch->process = g_unix_fd_add(watch->process_fd, G_IO_IN, process_ended, watch);
    if (watch->events)
        watch_scope(watch);
    return watch;
}

void claim_watch_free(ClaimWatch *watch)
{
    g_clear_handle_id(&watch->process, g_source_remove);
    g_clear_handle_id(&watch->scope, g_source_remove);
    if (watch->process_fd >= 0)
        close(watch->process_fd);
    if (watch->scope_fd >= 0)
        close(watch->scope_fd);
    host_root_unref(watch->root);
    g_free(watch->events);
    g_free(watch);
}

gboolean claim_watch_is_complete(const ClaimWatch *watch)
{
    return watch->process_fd >= 0 && (!watch->events || watch->scope_fd >= 0);
}
