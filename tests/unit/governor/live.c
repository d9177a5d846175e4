// SPDX-License-Identifier: MIT
#include "compute.h"
#include "live.h"

#include "refuse_option.h"

#include <fcntl.h>
#include <glib/gstdio.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define GPU    "gpu0"
#define SECOND "gpu1"

/* What has not come after so long never comes. */
#define NEVER_US (60 * G_USEC_PER_SEC)

static struct {
    int option;
    int error;
} refused;
static bool are_processes_hidden;

void live_refuse_option(int option, int error)
{
    refused.option = option;
    refused.error = error;
}

void live_hide_processes(bool hide)
{
    are_processes_hidden = hide;
}

static gint64 never(void)
{
    return g_get_monotonic_time() + NEVER_US;
}

static char *conf_dir_of(const struct live *live, const char *gpu)
{
    return g_build_filename(live->root, "run/vgpu/governor", gpu, NULL);
}

static char *conf_dir(const struct live *live)
{
    return conf_dir_of(live, GPU);
}

int live_connect_status(const struct live *live)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    g_autofree char *dir = conf_dir(live);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    g_snprintf(address.sun_path, sizeof(address.sun_path), "%s/status.sock", dir);
    if (connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0)
        return fd;
    close(fd);
    return -1;
}

static char *read_status(const struct live *live)
{
    char *text = g_malloc0(65536);
    gsize length = 0;
    ssize_t got;
    int fd = live_connect_status(live);

    if (fd < 0)
        return text;
    while ((got = read(fd, text + length, 65535 - length)) > 0)
        length += (gsize)got;
    close(fd);
    return text;
}

/*
 * Without gid=, root's group sees all. Its unit leaves the arbiter no more capabilities than
 * that.
 */
static void hide_processes(void)
{
    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/proc", NULL, MS_PRIVATE, NULL) < 0 ||
        mount("proc", "/proc", "proc", 0, "hidepid=2,gid=65534") < 0 ||
        prctl(PR_CAPBSET_DROP, CAP_SYS_PTRACE) < 0)
        abort();
}

/* The arbiter does not outlive a test that is ended. */
static void set_up(void *data)
{
    (void)data;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (are_processes_hidden)
        hide_processes();
    if (refused.option)
        refuse_option(refused.option, refused.error);
}

static GPid spawn_arbiter(const struct live *live, const char *gpu)
{
    const char *argv[] = {ARBITER, "--root", live->root, gpu, NULL};
    int log = open(live->log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    GError *error = NULL;
    GPid pid;

    g_assert_true(g_spawn_async_with_fds(NULL, (char **)argv, NULL, G_SPAWN_DO_NOT_REAP_CHILD,
                                         set_up, NULL, &pid, -1, log, log, &error));
    g_assert_no_error(error);
    close(log);
    return pid;
}

void live_start_arbiter(struct live *live)
{
    live->arbiter = spawn_arbiter(live, GPU);
    for (gint64 until = never(); g_get_monotonic_time() < until; g_usleep(10000)) {
        g_autofree char *status = read_status(live);

        if (*status)
            return;
    }
    g_error("the arbiter does not come up");
}

static void kill_arbiter(GPid *arbiter, int signal)
{
    int status;

    if (!*arbiter)
        return;
    kill(*arbiter, signal);
    waitpid(*arbiter, &status, 0);
    *arbiter = 0;
    if (signal == SIGTERM)
        g_assert_cmpint(status, ==, 0);
}

void live_kill_arbiter(struct live *live, int signal)
{
    kill_arbiter(&live->arbiter, signal);
}

static void put_file(const char *path, const char *content)
{
    if (content)
        g_assert_true(g_file_set_contents(path, content, -1, NULL));
    else
        g_assert_cmpint(g_unlink(path), ==, 0);
}

void live_configure(struct live *live, const char *slice, const char *content)
{
    g_autofree char *dir = conf_dir(live);
    g_autofree char *path = slice ? g_strconcat(dir, "/slices/", slice, ".conf", NULL)
                                  : g_build_filename(dir, "gpu.conf", NULL);

    put_file(path, content);
}

void live_tell_ungoverned(struct live *live, const char *slice, const char *content)
{
    g_autofree char *dir = conf_dir(live);
    g_autofree char *path = g_strconcat(dir, "/slices/", slice, ".ungoverned", NULL);

    put_file(path, content);
}

char *live_socket(const struct live *live, const char *slice)
{
    return g_build_filename(live->root, "run/vgpu/slices", slice, "governor.sock", NULL);
}

void live_open(struct live *live, const char *const *slices)
{
    g_autofree char *dir = NULL;
    g_autofree char *made = NULL;
    g_autofree char *gpu = NULL;

    *live = (struct live){.root = g_dir_make_tmp("governor-XXXXXX", NULL)};
    g_assert_nonnull(live->root);
    dir = conf_dir(live);
    made = g_build_filename(dir, "slices", NULL);
    g_assert_cmpint(g_mkdir_with_parents(made, 0755), ==, 0);
    live->log = g_build_filename(live->root, "log", NULL);
    gpu = g_build_filename(live->root, "gpu", NULL);
    live->reports = mmap(NULL, LIVE_MAX * sizeof(*live->reports), PROT_READ | PROT_WRITE,
                         MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    g_assert_true(live->reports != MAP_FAILED);
    for (; *slices; slices += 2)
        live_configure(live, slices[0], slices[1]);
    g_assert_true(g_file_set_contents(gpu, "", -1, NULL));
    live_start_arbiter(live);
}

void live_add_gpu(struct live *live, const char *slice, const char *content)
{
    g_autofree char *dir = conf_dir_of(live, SECOND);
    g_autofree char *slices = g_build_filename(dir, "slices", NULL);
    g_autofree char *path = g_strconcat(slices, "/", slice, ".conf", NULL);
    g_autofree char *socket_path = live_socket(live, slice);

    g_assert_cmpint(g_mkdir_with_parents(slices, 0755), ==, 0);
    g_assert_true(g_file_set_contents(path, content, -1, NULL));
    live->second = spawn_arbiter(live, SECOND);
    for (gint64 until = never();
         !g_file_test(socket_path, G_FILE_TEST_EXISTS) && g_get_monotonic_time() < until;)
        g_usleep(10000);
    g_assert_true(g_file_test(socket_path, G_FILE_TEST_EXISTS));
}

void live_close(struct live *live)
{
    g_autofree char *command = g_strdup_printf("rm -rf '%s'", live->root);

    for (unsigned i = 0; i < live->count; i++)
        live_kill(live, i, SIGKILL);
    live_kill_arbiter(live, SIGTERM);
    kill_arbiter(&live->second, SIGTERM);
    munmap(live->reports, LIVE_MAX * sizeof(*live->reports));
    g_assert_cmpint(system(command), ==, 0);
    g_free(live->root);
    g_free(live->log);
}

unsigned live_spawn(struct live *live, const char *slice, LiveFunc function)
{
    g_autofree char *path = live_socket(live, slice);
    unsigned number = live->count++;
    pid_t pid;

    g_assert_cmpuint(number, <, LIVE_MAX);
    pid = fork();
    g_assert_cmpint(pid, >=, 0);
    if (!pid) {
        g_autofree char *gpu = g_build_filename(live->root, "gpu", NULL);

        prctl(PR_SET_PDEATHSIG, SIGKILL);
        /* A lock is of an open file: one of its own. */
        live->gpu = open(gpu, O_RDONLY | O_CLOEXEC);
        function(live, path, &live->reports[number]);
        pause();
        _exit(0);
    }
    live->members[number] = pid;
    return number;
}

void live_kill(struct live *live, unsigned member, int signal)
{
    if (!live->members[member])
        return;
    kill(live->members[member], signal);
    if (signal != SIGKILL)
        return;
    waitpid(live->members[member], NULL, 0);
    live->members[member] = 0;
}

/* What follows @key. */
static const char *find_value(const char *status, const char *slice, const char *key)
{
    g_autofree char *id = g_strdup_printf("{\"id\":\"%s\"", slice);
    g_autofree char *name = g_strdup_printf("\"%s\":", key);
    const char *at = strstr(status, id);

    at = at ? strstr(at, name) : NULL;
    return at ? at + strlen(name) : NULL;
}

gint64 live_status(const struct live *live, const char *slice, const char *key)
{
    g_autofree char *status = read_status(live);
    const char *value = find_value(status, slice, key);

    /* The first of a list. */
    return value ? g_ascii_strtoll(value + (*value == '['), NULL, 10) : -1;
}

gint64 live_gpu_status(const struct live *live, const char *key)
{
    g_autofree char *status = read_status(live);
    g_autofree char *name = g_strdup_printf("\"%s\":", key);
    const char *at = strstr(status, name);

    return at ? g_ascii_strtoll(at + strlen(name), NULL, 10) : -1;
}

char *live_status_text(const struct live *live, const char *slice, const char *key)
{
    g_autofree char *status = read_status(live);
    const char *value = find_value(status, slice, key);

    return value && *value == '"' ? g_strndup(value + 1, strcspn(value + 1, "\"")) : NULL;
}

void live_await(const struct live *live, const char *slice, const char *key, gint64 value)
{
    gint64 until = never(), seen = live_status(live, slice, key);

    while (seen != value && g_get_monotonic_time() < until) {
        g_usleep(5000);
        seen = live_status(live, slice, key);
    }
    if (seen != value)
        g_test_message("%s of %s", key, slice);
    g_assert_cmpint(seen, ==, value);
}

void live_await_log(const struct live *live, const char *text)
{
    g_autofree char *log = NULL;

    for (gint64 until = never(); g_get_monotonic_time() < until; g_usleep(5000)) {
        g_clear_pointer(&log, g_free);
        if (g_file_get_contents(live->log, &log, NULL, NULL) && strstr(log, text))
            return;
    }
    g_error("not in the log: %s\n%s", text, log);
}

void live_await_ready(const struct live *live, unsigned member)
{
    live_await_word(&live->reports[member].ready, 1);
}

void live_await_word(const _Atomic uint64_t *word, uint64_t value)
{
    gint64 until = never();
    uint64_t seen = *word;

    while (seen < value && g_get_monotonic_time() < until) {
        uint64_t now = *word;

        if (now != seen)
            until = never();
        seen = now;
        g_usleep(1000);
    }
    g_assert_cmpuint(*word, >=, value);
}

static void report_done(struct live_report *report, uint64_t used, uint64_t now)
{
    uint64_t last = report->last_at, gap = now - last;

    if (last && gap > report->longest_gap_ns)
        report->longest_gap_ns = gap;
    report->last_at = now;
    report->used_ns += used;
    report->done++;
}

void live_work(struct live *live, const char *socket_path, struct live_report *report)
{
    GovernorMember *member = governor_member_new(socket_path, true);
    const uint64_t length = 2 * NS_PER_MS;

    g_assert_nonnull(member);
    for (report->ready = 1;;) {
        bool metered = compute_is_metered(member);
        uint64_t debit = 0, began, ended;

        if (metered)
            debit = compute_begin(member, length, false);
        else
            compute_count(member);
        flock(live->gpu, LOCK_EX);
        began = clock_now();
        g_usleep(length / NS_PER_US);
        ended = clock_now();
        flock(live->gpu, LOCK_UN);
        if (metered)
            governor_member_end(member, debit, ended - began);
        report_done(report, ended - began, ended);
    }
}

void live_reset(struct live *live)
{
    for (unsigned i = 0; i < live->count; i++) {
        live->reports[i].used_ns = 0;
        live->reports[i].done = 0;
        live->reports[i].last_at = 0;
        live->reports[i].longest_gap_ns = 0;
    }
}

void live_go_on(struct live *live, unsigned count)
{
    uint64_t before[LIVE_MAX];

    for (unsigned i = 0; i < count; i++)
        before[i] = live->reports[i].done;
    for (unsigned i = 0; i < count; i++)
        live_await_word(&live->reports[i].done, before[i] + 2);
}

#define WINDOWS 8
/* Of 2 ms each. */
#define WINDOW_SUBMISSIONS 100

/* And waits until the arbiter has read it, for which the memory differs each time. */
static void set_weight(struct live *live, const char *slice, unsigned weight, unsigned window)
{
    gint64 vram = 1000000 + window;
    g_autofree char *content =
        g_strdup_printf("[slice]\nweight=%u\nvram=%" G_GINT64_FORMAT "\n", weight, vram);

    live_configure(live, slice, content);
    live_await(live, slice, "vram_limit", vram);
}

double live_part_of_heavier(struct live *live, unsigned a, unsigned b)
{
    struct live_report *one = &live->reports[a], *other = &live->reports[b];
    uint64_t heavier = 0, all = 0;
    double part;

    for (unsigned i = 0; i < WINDOWS; i++) {
        set_weight(live, "a", i % 2 ? 95 : 5, 1 + i);
        set_weight(live, "b", i % 2 ? 5 : 95, 1 + i);
        live_reset(live);
        while (one->done + other->done < WINDOW_SUBMISSIONS)
            g_usleep(1000);
        heavier += i % 2 ? one->used_ns : other->used_ns;
        all += one->used_ns + other->used_ns;
    }
    part = (double)heavier / (double)all;
    g_test_message("the heavier one has %.3f", part);
    return part;
}

void live_hold(struct live *live, const char *socket_path, struct live_report *report)
{
    GovernorMember *member = governor_member_new(socket_path, true);

    (void)live;
    g_assert_nonnull(member);
    g_assert_cmpint(governor_member_reserve(member, 1000, false), ==, GOVERNOR_MEMORY_DEVICE);
    report->ready = 1;
}
