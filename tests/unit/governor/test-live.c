// SPDX-License-Identifier: MIT
/* Arbiter and members as they are: processes that share, die, fork, and come back. */
#include "compute.h"
#include "live.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/*
 * A half without weights, and 0.95 with them if nobody is ever late. How exact shares are is shown
 * in simulated time by test-scheduler.c, and `make bench-governor` measures the real ones.
 */
#define LEAST_OF_HEAVIER 0.6

static const char *const two_slices[] = {"a", "[slice]\nweight=20\nvram=1000000\n", "b",
                                         "[slice]\nweight=80\n", NULL};

static void test_shares(void)
{
    struct live live;

    live_open(&live, two_slices);
    live_spawn(&live, "a", live_work);
    live_spawn(&live, "b", live_work);
    live_await(&live, "a", "pids", live.members[0]);
    live_await_ready(&live, 1);
    g_assert_cmpfloat(live_part_of_heavier(&live, 0, 1), >, LEAST_OF_HEAVIER);
    live_close(&live);
}

#define SUBMISSIONS 150

/*
 * The part of the GPU's time that the first one uses for so many submissions of 2 ms. At most, so a
 * clock that is read late makes it less.
 */
static double use_of_next(struct live *live)
{
    uint64_t began = clock_now();
    double use;

    live_reset(live);
    live_await_word(&live->reports[0].done, SUBMISSIONS);
    use = (double)live->reports[0].used_ns / (double)(clock_now() - began);
    g_test_message("%.4f", use);
    return use;
}

/* It has used up what it had saved. */
static void await_throttled(const struct live *live)
{
    gint64 before = live_status(live, "a", "throttled_ns");

    while (live_status(live, "a", "throttled_ns") < before + (gint64)NS_PER_S / 2)
        g_usleep(5000);
}

static void test_hard_cap(void)
{
    const char *const slices[] = {"a", "[slice]\ncap=20\nhard=true\nvram=1\n", NULL};
    struct live live;
    double capped;

    live_open(&live, slices);
    live_spawn(&live, "a", live_work);
    await_throttled(&live);
    capped = use_of_next(&live);
    g_assert_cmpfloat(capped, <, 0.25);
    /* The control: it would take more. */
    live_configure(&live, "a", "[slice]\nvram=2\n");
    live_await(&live, "a", "vram_limit", 2);
    g_assert_cmpfloat(use_of_next(&live), >, capped);
    live_close(&live);
}

static void hold_and_work(struct live *live, const char *socket_path, struct live_report *report)
{
    live_hold(live, socket_path, report);
    live_work(live, socket_path, report);
}

/* Members die at any instant: peers go on, and nothing of theirs stays. */
static void test_killed_members(void)
{
    struct live live;

    live_open(&live, two_slices);
    live_spawn(&live, "a", live_work);
    live_spawn(&live, "b", live_work);
    live_await_ready(&live, 0);
    live_await_ready(&live, 1);
    for (unsigned i = 0; i < 40; i++) {
        unsigned victim = live_spawn(&live, "a", hold_and_work);

        live_await_ready(&live, victim);
        g_usleep((gulong)g_test_rand_int_range(0, 20000));
        live_kill(&live, victim, SIGKILL);
        live_go_on(&live, 2);
    }
    live_await(&live, "a", "members", 1);
    live_await(&live, "a", "vram_used", 0);
    live_close(&live);
}

/* One that is stopped, wherever it is, and dies, holds up nobody. */
static void test_stopped_members(void)
{
    struct live live;

    live_open(&live, two_slices);
    live_spawn(&live, "a", live_work);
    live_await_ready(&live, 0);
    for (unsigned i = 1; i < 15; i++) {
        unsigned victim = live_spawn(&live, "b", live_work);

        live_await_ready(&live, victim);
        g_usleep((gulong)g_test_rand_int_range(0, 20000));
        live_kill(&live, victim, SIGSTOP);
        /* A lock of the test's GPU may be held by it: real ones have none. */
        g_usleep(100000);
        live_kill(&live, victim, SIGKILL);
        live_go_on(&live, 1);
    }
    live_close(&live);
}

/* The arbiter dies and comes back: members go on, and what they hold is in its books again. */
static void test_arbiter_restart(void)
{
    static const int signals[] = {SIGKILL, SIGTERM, SIGKILL};
    struct live live;

    live_open(&live, two_slices);
    live_spawn(&live, "a", live_work);
    live_spawn(&live, "b", live_work);
    live_spawn(&live, "a", live_hold);
    for (unsigned i = 0; i < 3; i++)
        live_await_ready(&live, i);
    g_assert_cmpint(live_gpu_status(&live, "restarted_ns"), ==, 0);
    for (gsize i = 0; i < G_N_ELEMENTS(signals); i++) {
        live_kill_arbiter(&live, signals[i]);
        live_go_on(&live, 2);
        live_start_arbiter(&live);
        live_await(&live, "a", "members", 2);
        live_await(&live, "b", "members", 1);
        live_await(&live, "a", "vram_used", 1000);
        g_assert_cmpint(live_gpu_status(&live, "restarted_ns"), >, 0);
        live_go_on(&live, 2);
    }
    g_assert_cmpfloat(live_part_of_heavier(&live, 0, 1), >, LEAST_OF_HEAVIER);
    live_close(&live);
}

/*
 * No arbiter for long: shares hold. Each keeps to its own by its clock, so it never has more,
 * however late it is.
 */
static void test_orphans(void)
{
    struct live live;
    double use;

    live_open(&live, two_slices);
    live_spawn(&live, "a", live_work);
    live_spawn(&live, "b", live_work);
    live_await_ready(&live, 0);
    live_await_ready(&live, 1);
    live_go_on(&live, 2);
    live_kill_arbiter(&live, SIGKILL);
    live_go_on(&live, 2);
    use = use_of_next(&live);
    g_assert_cmpfloat(use, <, 0.3);
    live_start_arbiter(&live);
    live_await(&live, "a", "members", 1);
    /* The control: alone, it takes more. */
    live_kill(&live, 1, SIGKILL);
    live_await(&live, "b", "members", 0);
    g_assert_cmpfloat(use_of_next(&live), >, use);
    live_close(&live);
}

static void grab(struct live *live, const char *socket_path, struct live_report *report)
{
    GovernorMember *member = governor_member_new(socket_path, true);

    (void)live;
    g_assert_nonnull(member);
    report->ready = 1;
    while (!report->go)
        g_usleep(100);
    for (int i = 0; i < 100; i++) {
        if (governor_member_reserve(member, 300, false) == GOVERNOR_MEMORY_DEVICE)
            report->granted += 300;
        if (i % 5 == 4 && report->granted) {
            governor_member_release(member, 300, GOVERNOR_MEMORY_DEVICE);
            report->granted -= 300;
        }
    }
    report->done = 1;
}

/* 64 processes ask at once for more than there is: all of it is given out, and not a byte more. */
static void test_memory_at_once(void)
{
    const char *const slices[] = {"a", "[slice]\nvram=600000\n", NULL};
    struct live live;
    uint64_t sum = 0;

    live_open(&live, slices);
    for (unsigned i = 0; i < 64; i++)
        live_spawn(&live, "a", grab);
    for (unsigned i = 0; i < 64; i++)
        live_await_ready(&live, i);
    for (unsigned i = 0; i < 64; i++)
        live.reports[i].go = 1;
    for (unsigned i = 0; i < 64; i++) {
        while (!live.reports[i].done) {
            g_assert_cmpint(live_status(&live, "a", "vram_used"), <=, 600000);
            g_usleep(2000);
        }
        sum += live.reports[i].granted;
    }
    g_assert_cmpuint(sum, <=, 600000);
    g_assert_cmpuint(sum, >, 550000);
    live_await(&live, "a", "vram_used", (gint64)sum);
    /* Lowered below what is in use: nobody gets more. */
    live_configure(&live, "a", "[slice]\nvram=1000\n");
    live_await(&live, "a", "vram_limit", 1000);
    live_spawn(&live, "a", grab);
    live.reports[64].go = 1;
    live_await_ready(&live, 64);
    live_await_word(&live.reports[64].done, 1);
    g_assert_cmpuint(live.reports[64].granted, ==, 0);
    live_close(&live);
}

/* All memory that is left without an arbiter is divided, so that no two take the same. */
static void reserve_alone(struct live *live, const char *socket_path, struct live_report *report)
{
    GovernorMember *member = governor_member_new(socket_path, true);

    (void)live;
    g_assert_nonnull(member);
    report->ready = 1;
    while (!report->go)
        g_usleep(1000);
    while (governor_member_reserve(member, 1000, false) == GOVERNOR_MEMORY_DEVICE)
        report->granted += 1000;
    report->done = 1;
}

static void test_memory_alone(void)
{
    struct live live;

    live_open(&live, two_slices);
    live_spawn(&live, "a", reserve_alone);
    live_spawn(&live, "a", reserve_alone);
    live_await_ready(&live, 0);
    live_await_ready(&live, 1);
    live_kill_arbiter(&live, SIGKILL);
    live.reports[0].go = live.reports[1].go = 1;
    live_await_word(&live.reports[0].done, 1);
    live_await_word(&live.reports[1].done, 1);
    g_assert_cmpuint(live.reports[0].granted, ==, 500000);
    g_assert_cmpuint(live.reports[1].granted, ==, 500000);
    live_start_arbiter(&live);
    live_await(&live, "a", "vram_used", 1000000);
    live_close(&live);
}

static void fork_later(struct live *live, const char *socket_path, struct live_report *report)
{
    GovernorMember *member = governor_member_new(socket_path, true);
    pid_t pid;

    (void)live;
    g_assert_cmpint(governor_member_reserve(member, 1000, false), ==, GOVERNOR_MEMORY_DEVICE);
    pid = fork();
    report->ready = 1;
    while (!report->go)
        g_usleep(1000);
    if (pid)
        pause();
    /* The child: a member of its own from here on, without what its parent holds. */
    governor_member_release(member, 1000, GOVERNOR_MEMORY_DEVICE);
    g_assert_cmpint(governor_member_reserve(member, 500, false), ==, GOVERNOR_MEMORY_DEVICE);
    report->granted = (uint64_t)getpid();
    pause();
}

/* It is charged before it says who it is; 0 would be this test's own process group. */
static void kill_child(struct live *live)
{
    while (!live->reports[0].granted)
        g_usleep(1000);
    kill((pid_t)live->reports[0].granted, SIGKILL);
}

static void test_fork(void)
{
    struct live live;

    live_open(&live, two_slices);
    live_spawn(&live, "a", fork_later);
    live_await_ready(&live, 0);
    live_await(&live, "a", "members", 1);
    live.reports[0].go = 1;
    live_await(&live, "a", "members", 2);
    live_await(&live, "a", "vram_used", 1500);
    live_kill(&live, 0, SIGKILL);
    live_await(&live, "a", "vram_used", 500);
    kill_child(&live);
    live_await(&live, "a", "members", 0);
    live_await(&live, "a", "vram_used", 0);
    live_close(&live);
}

/* A child has the socket, and never calls: its parent's death is its parent's end all the same. */
static void test_fork_outlives(void)
{
    struct live live;

    live_open(&live, two_slices);
    live_spawn(&live, "a", fork_later);
    live_await_ready(&live, 0);
    live_kill(&live, 0, SIGKILL);
    live_await(&live, "a", "members", 0);
    live_await(&live, "a", "vram_used", 0);
    live.reports[0].go = 1;
    live_await(&live, "a", "vram_used", 500);
    kill_child(&live);
    live_close(&live);
}

/* As when its cgroup has as many processes as it may. */
static void forbid_threads(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EAGAIN),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = G_N_ELEMENTS(filter), .filter = filter};

    g_assert_cmpint(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), ==, 0);
    g_assert_cmpint(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), ==, 0);
}

static void fork_without_threads(struct live *live, const char *socket_path,
                                 struct live_report *report)
{
    GovernorMember *member = governor_member_new(socket_path, true);

    (void)live;
    if (fork())
        pause();
    forbid_threads();
    g_assert_cmpint(governor_member_reserve(member, 100, false), ==, GOVERNOR_MEMORY_DEVICE);
    report->ready = 1;
    while (!report->go)
        g_usleep(1000);
    report->granted = (uint64_t)getpid();
    report->done = governor_member_reserve(member, 100, false) == GOVERNOR_MEMORY_DEVICE;
    pause();
}

/* Nobody tells such a child that its arbiter is gone. It must not wait for it. */
static void test_fork_without_threads(void)
{
    struct live live;

    live_open(&live, two_slices);
    live_spawn(&live, "a", fork_without_threads);
    live_await_ready(&live, 0);
    live_kill_arbiter(&live, SIGKILL);
    live.reports[0].go = 1;
    live_await_word(&live.reports[0].done, 1);
    kill_child(&live);
    live_kill(&live, 0, SIGKILL);
    live_close(&live);
}

/* Nothing of ours is left to a program that is executed. */
static void test_exec(void)
{
    struct live live;
    g_autofree char *path = NULL;
    GovernorMember *member;
    bool before[256];
    unsigned ours = 0;

    live_open(&live, two_slices);
    path = live_socket(&live, "a");
    for (int fd = 0; fd < 256; fd++)
        before[fd] = fcntl(fd, F_GETFD) >= 0;
    member = governor_member_new(path, true);
    g_assert_nonnull(member);
    for (int fd = 0; fd < 256; fd++) {
        int flags = fcntl(fd, F_GETFD);

        if (flags < 0 || before[fd])
            continue;
        ours++;
        g_assert_cmpint(flags & FD_CLOEXEC, !=, 0);
    }
    /* The connection, and the pair that wakes its thread. */
    g_assert_cmpuint(ours, ==, 3);
    governor_member_free(member);
    live_await(&live, "a", "members", 0);
    live_close(&live);
}

static void *wake_arbiter(void *live)
{
    g_usleep(50000);
    kill(((const struct live *)live)->arbiter, SIGCONT);
    return NULL;
}

/* What was returned is free, however late the arbiter sees it. */
static void test_returned(void)
{
    uint64_t limit = 0, used = 0;
    g_autofree char *path = NULL;
    GovernorMember *member;
    GThread *thread;
    struct live live;

    live_open(&live, two_slices);
    path = live_socket(&live, "a");
    member = governor_member_new(path, true);
    g_assert_nonnull(member);
    g_assert_cmpint(governor_member_reserve(member, 300, false), ==, GOVERNOR_MEMORY_DEVICE);
    governor_member_memory(member, &limit, &used);
    g_assert_cmpuint(used, ==, 300);
    kill(live.arbiter, SIGSTOP);
    governor_member_release(member, 200, GOVERNOR_MEMORY_DEVICE);
    thread = g_thread_new("wake", wake_arbiter, &live);
    governor_member_memory(member, &limit, &used);
    g_assert_cmpuint(used, ==, 100);
    g_thread_join(thread);
    governor_member_free(member);
    live_await(&live, "a", "members", 0);
    live_close(&live);
}

/* Of no slice: nothing holds it, it has no thread and no descriptor, and its child neither. */
static void test_of_none(void)
{
    GovernorMember *member = governor_member_new(NULL, true);
    uint64_t limit = 1, used = 1;
    int before = open("/dev/null", O_RDONLY | O_CLOEXEC), after, status;
    pid_t child;

    g_assert_nonnull(member);
    close(before);
    g_assert_false(compute_is_metered(member));
    g_assert_cmpint(governor_member_reserve(member, 1ull << 40, false), ==, GOVERNOR_MEMORY_DEVICE);
    governor_member_memory(member, &limit, &used);
    g_assert_cmpuint(limit, ==, 0);
    child = fork();
    if (!child) {
        bool free_still = governor_member_reserve(member, 1, false) == GOVERNOR_MEMORY_DEVICE;

        compute_count(member);
        governor_member_free(member);
        _exit(free_still ? 0 : 1);
    }
    g_assert_cmpint(waitpid(child, &status, 0), ==, child);
    g_assert_cmpint(status, ==, 0);
    governor_member_release(member, 1ull << 40, GOVERNOR_MEMORY_DEVICE);
    after = open("/dev/null", O_RDONLY | O_CLOEXEC);
    g_assert_cmpint(after, ==, before);
    close(after);
    governor_member_free(member);
}

static void remove_mark(const char *socket_path)
{
    g_autofree char *dir = g_path_get_dirname(socket_path);
    g_autofree char *mark = g_build_filename(dir, GOVERNOR_REQUIRED_MARK, NULL);

    g_assert_no_errno(unlink(mark));
}

/* Without an arbiter from the start: an error, or ungoverned until there is one. */
static void test_not_required(void)
{
    struct live live;
    g_autofree char *path = NULL;
    GovernorMember *member;

    live_open(&live, two_slices);
    live_kill_arbiter(&live, SIGKILL);
    path = live_socket(&live, "a");
    /* The arbiter that was there says that programs need it, whatever these think. */
    g_assert_null(governor_member_new(path, false));
    g_assert_cmpint(errno, ==, ECONNREFUSED);
    remove_mark(path);
    g_assert_null(governor_member_new(path, true));
    g_assert_cmpint(errno, ==, ECONNREFUSED);
    g_assert_null(governor_member_new("/nowhere/governor.sock", true));
    g_assert_cmpint(errno, ==, ENOENT);
    member = governor_member_new(path, false);
    g_assert_nonnull(member);
    g_assert_false(compute_is_metered(member));
    g_assert_cmpint(governor_member_reserve(member, 2000, false), ==, GOVERNOR_MEMORY_DEVICE);
    live_start_arbiter(&live);
    live_await(&live, "a", "members", 1);
    live_await(&live, "a", "vram_used", 2000);
    governor_member_free(member);
    live_close(&live);
}

static void join_late(struct live *live, const char *socket_path, struct live_report *report)
{
    GovernorMember *member;
    uint64_t limit, used;

    (void)live;
    report->ready = 1;
    member = governor_member_new(socket_path, false);
    g_assert_nonnull(member);
    governor_member_memory(member, &limit, &used);
    report->granted = limit;
    report->done = 1;
    for (;;)
        pause();
}

/* A program that starts while the arbiter restarts waits for it, and is governed from the start. */
static void test_starts_between(void)
{
    struct live live;

    live_open(&live, two_slices);
    live_kill_arbiter(&live, SIGKILL);
    live_spawn(&live, "a", join_late);
    live_await_ready(&live, 0);
    g_usleep(100000);
    live_start_arbiter(&live);
    live_await_word(&live.reports[0].done, 1);
    g_assert_cmpuint(live.reports[0].granted, ==, (uint64_t)live_status(&live, "a", "vram_limit"));
    g_assert_cmpuint(live.reports[0].granted, >, 0);
    live_close(&live);
}

/* The arbiter ends when a program has asked to join, and has no answer yet. */
static void test_ends_while_joining(void)
{
    struct live live;

    live_open(&live, two_slices);
    kill(live.arbiter, SIGSTOP);
    live_spawn(&live, "a", join_late);
    live_await_ready(&live, 0);
    g_usleep(100000);
    live_kill_arbiter(&live, SIGKILL);
    g_usleep(50000);
    live_start_arbiter(&live);
    live_await_word(&live.reports[0].done, 1);
    g_assert_cmpuint(live.reports[0].granted, >, 0);
    live_close(&live);
}

static void test_configuration(void)
{
    struct live live;

    live_open(&live, two_slices);
    g_assert_cmpint(live_status(&live, "c", "members"), ==, -1);
    live_configure(&live, "c", "[slice]\nvram=5\n");
    live_await(&live, "c", "vram_limit", 5);
    live_configure(&live, "c", "[slice]\nvram=no\n");
    live_await_log(&live, "c.conf: vram=no: must be a number from 0 to");
    g_assert_cmpint(live_status(&live, "c", "vram_limit"), ==, 5);
    live_configure(&live, NULL, "[gpu]\npolicy=nonsense\n");
    live_await_log(&live, "policy=nonsense: must be shares, best-effort, equal or fixed");
    live_configure(&live, "c", "[slice]\nvram=5000\n");
    live_await(&live, "c", "vram_limit", 5000);
    live_spawn(&live, "c", live_hold);
    live_await_ready(&live, 0);
    live_configure(&live, "c", NULL);
    live_await(&live, "c", "members", -1);
    live_close(&live);
}

/* NULL: the file does not exist. */
static char *rest_of(const struct live *live)
{
    g_autofree char *path = g_build_filename(live->root, "run/vgpu/governor/gpu0/rest", NULL);
    char *text = NULL;

    g_file_get_contents(path, &text, NULL, NULL);
    return text;
}

/* Whoever reads the status can see whether it is still the same. */
static void test_rest(void)
{
    struct live live;
    char *texts[4];

    live_open(&live, two_slices);
    texts[0] = rest_of(&live);
    g_assert_nonnull(texts[0]);
    live_configure(&live, "c", "[slice]\nvram=5\n");
    live_await(&live, "c", "vram_limit", 5);
    texts[1] = rest_of(&live);
    g_assert_cmpstr(texts[1], !=, texts[0]);
    live_spawn(&live, "a", live_hold);
    live_spawn(&live, "b", live_hold);
    live_await_ready(&live, 0);
    live_await_ready(&live, 1);
    g_assert_null(rest_of(&live));
    live_kill(&live, 0, SIGKILL);
    live_await(&live, "a", "members", 0);
    g_assert_null(rest_of(&live));
    live_kill(&live, 1, SIGKILL);
    live_await(&live, "b", "members", 0);
    texts[2] = rest_of(&live);
    g_assert_nonnull(texts[2]);
    g_assert_cmpstr(texts[2], !=, texts[1]);
    live_kill_arbiter(&live, SIGKILL);
    live_start_arbiter(&live);
    texts[3] = rest_of(&live);
    g_assert_cmpstr(texts[3], !=, texts[2]);
    live_kill_arbiter(&live, SIGTERM);
    g_assert_null(rest_of(&live));
    for (guint i = 0; i < G_N_ELEMENTS(texts); i++)
        g_free(texts[i]);
    live_close(&live);
}

#define MANY_SLICES 2000

/* More than a socket's buffer takes: it comes as it is read, and the arbiter waits for nobody. */
static void test_long_status(void)
{
    g_autoptr(GPtrArray) slices = g_ptr_array_new_with_free_func(g_free);
    g_autofree char *text = g_malloc0(MANY_SLICES * 1024);
    gsize length = 0;
    ssize_t got;
    struct live live;
    int slow, gone;

    for (unsigned i = 0; i < MANY_SLICES; i++) {
        g_ptr_array_add(slices,
                        g_strdup_printf("a-slice-whose-name-is-as-long-as-a-uuid-%010u", i));
        g_ptr_array_add(slices, g_strdup("[slice]\n"));
    }
    g_ptr_array_add(slices, NULL);
    /* A kernel that gives the socket no more than the usual buffer. */
    live_refuse_option(SO_SNDBUF, ENOBUFS);
    live_open(&live, (const char *const *)slices->pdata);
    live_refuse_option(0, 0);
    gone = live_connect_status(&live);
    slow = live_connect_status(&live);
    g_usleep(200000);
    close(gone);
    close(live_connect_status(&live));
    while ((got = read(slow, text + length, MANY_SLICES * 1024 - 1 - length)) > 0)
        length += (gsize)got;
    close(slow);
    g_test_message("%" G_GSIZE_FORMAT " bytes", length);
    g_assert_true(g_str_has_suffix(text, "]}\n"));
    live_close(&live);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/governor/live/shares", test_shares);
    g_test_add_func("/governor/live/hard-cap", test_hard_cap);
    g_test_add_func("/governor/live/killed-members", test_killed_members);
    g_test_add_func("/governor/live/stopped-members", test_stopped_members);
    g_test_add_func("/governor/live/arbiter-restart", test_arbiter_restart);
    g_test_add_func("/governor/live/orphans", test_orphans);
    g_test_add_func("/governor/live/memory-at-once", test_memory_at_once);
    g_test_add_func("/governor/live/memory-alone", test_memory_alone);
    g_test_add_func("/governor/live/fork", test_fork);
    g_test_add_func("/governor/live/fork-outlives", test_fork_outlives);
    g_test_add_func("/governor/live/fork-without-threads", test_fork_without_threads);
    g_test_add_func("/governor/live/exec", test_exec);
    g_test_add_func("/governor/live/returned", test_returned);
    g_test_add_func("/governor/live/of-none", test_of_none);
    /* A process waits once. */
    g_test_add_func("/governor/live/starts-between", test_starts_between);
    g_test_add_func("/governor/live/ends-while-joining", test_ends_while_joining);
    g_test_add_func("/governor/live/not-required", test_not_required);
    g_test_add_func("/governor/live/configuration", test_configuration);
    g_test_add_func("/governor/live/rest", test_rest);
    g_test_add_func("/governor/live/long-status", test_long_status);
    return g_test_run();
}
