// SPDX-License-Identifier: MIT
/*
 * Members that send as much as they can. The time of the arbiter that they get is bounded, and what
 * two other slices get done beside them is compared with what they did before.
 */
#include "raw.h"
#include "tenant.h"

#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define FLOODERS    4
#define CONNECTIONS 100
/* Part of a processor for one slice; without a limit it takes all that it can get. */
#define MOST_OF_ARBITER 0.2
/* Of what the others did while the flooders had the processors and sent nothing. */
#define LEAST_OF_OTHERS 0.2

static void await_go(struct live_report *report)
{
    report->ready = 1;
    while (!report->go)
        ;
}

/* By one connection. */
static void flood(struct live *live, const char *socket_path, struct live_report *report)
{
    int fd = raw_member(socket_path);

    (void)live;
    g_assert_cmpint(fd, >=, 0);
    for (await_go(report); raw_send(fd, GOVERNOR_WANT, 0, 0, 0);)
        report->done++;
}

/* By many, and to none of them more than it takes. */
static void flood_by_many(struct live *live, const char *socket_path, struct live_report *report)
{
    struct pollfd fds[CONNECTIONS];

    (void)live;
    for (unsigned i = 0; i < CONNECTIONS; i++) {
        fds[i] = (struct pollfd){.fd = raw_member(socket_path), .events = POLLOUT};
        g_assert_cmpint(fds[i].fd, >=, 0);
    }
    await_go(report);
    while (poll(fds, CONNECTIONS, -1) > 0) {
        for (unsigned i = 0; i < CONNECTIONS; i++)
            report->done +=
                raw_send(fds[i].fd, i % 2 ? GOVERNOR_WANT : GOVERNOR_IDLE, 0, 0, MSG_DONTWAIT);
    }
}

/* Joins and leaves. */
static void churn(struct live *live, const char *socket_path, struct live_report *report)
{
    (void)live;
    for (await_go(report);;) {
        int fd = raw_member(socket_path);

        close(fd);
        report->done += fd >= 0;
    }
}

/* Is dropped each time, which is logged. */
static void offend(struct live *live, const char *socket_path, struct live_report *report)
{
    (void)live;
    for (await_go(report);;) {
        int fd = raw_connect(socket_path);

        report->done += fd >= 0 && raw_send(fd, GOVERNOR_WANT, 0, 0, 0);
        close(fd);
    }
}

/* Of processor time, in seconds. */
static double cpu_of(GPid pid)
{
    g_autofree char *path = g_strdup_printf("/proc/%d/schedstat", (int)pid);
    g_autofree char *text = NULL;

    g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
    return (double)g_ascii_strtoull(text, NULL, 10) / 1e9;
}

struct window {
    double seconds;
    double arbiter; /* processors that it took */
    double others;  /* batches a second of the first two */
    double flood;   /* messages a second of the rest */
};

static struct window measure(struct live *live, gulong us)
{
    struct window window = {0};
    uint64_t began = clock_now();
    double cpu = cpu_of(live->arbiter);

    live_reset(live);
    g_usleep(us);
    window.seconds = (double)(clock_now() - began) / 1e9;
    window.arbiter = (cpu_of(live->arbiter) - cpu) / window.seconds;
    for (unsigned i = 0; i < live->count; i++) {
        double rate = (double)live->reports[i].done / window.seconds;

        *(i < 2 ? &window.others : &window.flood) += rate;
    }
    g_test_message("%.3f of a processor, the others %.0f/s, the flood %.0f/s", window.arbiter,
                   window.others, window.flood);
    return window;
}

static void check(LiveFunc flooder)
{
    const char *const slices[] = {"a", "[slice]\n", "b", "[slice]\n", "evil", "[slice]\n", NULL};
    struct window before, flooded, after;
    struct live live;

    tenant_open(&live, slices);
    live_spawn(&live, "a", tenant_batches);
    live_spawn(&live, "b", tenant_batches);
    live_await_word(&live.reports[0].done, 5);
    live_await_word(&live.reports[1].done, 5);
    for (unsigned i = 0; i < FLOODERS; i++)
        live_await_ready(&live, live_spawn(&live, "evil", flooder));
    before = measure(&live, 1000000);
    for (unsigned i = 0; i < FLOODERS; i++)
        live.reports[2 + i].go = 1;
    g_usleep(300000);
    flooded = measure(&live, 2000000);
    g_assert_cmpfloat(flooded.flood, >, 10);
    g_assert_cmpfloat(flooded.arbiter, <, before.arbiter + MOST_OF_ARBITER);
    g_assert_cmpfloat(flooded.others, >, LEAST_OF_OTHERS * before.others);
    /* When it has stopped, its messages are read again like any other's. */
    for (unsigned i = 0; i < FLOODERS; i++)
        live_kill(&live, 2 + i, SIGKILL);
    live_await(&live, "evil", "members", 0);
    live_spawn(&live, "evil", tenant_batches);
    live_await_word(&live.reports[live.count - 1].done, 5);
    after = measure(&live, 300000);
    g_assert_cmpfloat(after.arbiter, <, before.arbiter + MOST_OF_ARBITER);
    tenant_close(&live);
}

static void test_one(void)
{
    check(flood);
}

static void test_many(void)
{
    check(flood_by_many);
}

static void test_churn(void)
{
    check(churn);
}

static void test_offend(void)
{
    check(offend);
}

#define SOFT_US 200000
#define HARD_US 1000000

/*
 * At real-time priority as the unit has it, with limits that are as far apart as the unit's, but
 * sooner: many slices together find no way to keep it busy until it is killed. False: not allowed
 * here.
 */
static bool make_real_time(pid_t pid)
{
    const struct rlimit limit = {.rlim_cur = SOFT_US, .rlim_max = HARD_US};
    const struct sched_param param = {.sched_priority = 1};

    return prlimit(pid, RLIMIT_RTTIME, &limit, NULL) == 0 &&
           sched_setscheduler(pid, SCHED_RR, &param) == 0;
}

static void test_no_pause(void)
{
    const char *const slices[] = {"a",         "[slice]\n", "b",         "[slice]\n", "c",
                                  "[slice]\n", "d",         "[slice]\n", "e",         "[slice]\n",
                                  "f",         "[slice]\n", NULL};
    struct live live;

    tenant_open(&live, slices);
    for (const char *const *slice = slices; *slice; slice += 2)
        live_await_ready(&live, live_spawn(&live, *slice, flood_by_many));
    if (!make_real_time(live.arbiter))
        g_test_message("no real-time priority here: as it is");
    for (unsigned i = 0; i < live.count; i++)
        live.reports[i].go = 1;
    g_usleep(3 * G_USEC_PER_SEC);
    for (unsigned i = 0; i < live.count; i++)
        live_kill(&live, i, SIGKILL);
    live_await(&live, "a", "members", 0);
    /* What the kernel sends at the soft limit. */
    kill(live.arbiter, SIGXCPU);
    live_await_log(&live, "busy without a pause");
    live_spawn(&live, "a", tenant_batches);
    live_await_word(&live.reports[live.count - 1].done, 5);
    tenant_close(&live);
}

/* A connection that cannot be accepted waits, and is ready again at once. */
static void test_no_descriptors(void)
{
    const char *const slices[] = {"evil", "[slice]\n", NULL};
    g_autofree char *path = NULL;
    struct rlimit limit, none;
    struct window window;
    struct live live;
    int fds[2];

    tenant_open(&live, slices);
    path = live_socket(&live, "evil");
    g_assert_no_errno(prlimit(live.arbiter, RLIMIT_NOFILE, NULL, &limit));
    none = (struct rlimit){.rlim_cur = 3, .rlim_max = limit.rlim_max};
    for (unsigned i = 0; i < 2; i++) {
        g_assert_no_errno(prlimit(live.arbiter, RLIMIT_NOFILE, &none, NULL));
        fds[i] = i ? live_connect_status(&live) : raw_connect(path);
        g_assert_cmpint(fds[i], >=, 0);
        window = measure(&live, 1000000);
        g_assert_cmpfloat(window.arbiter, <, MOST_OF_ARBITER);
        g_assert_no_errno(prlimit(live.arbiter, RLIMIT_NOFILE, &limit, NULL));
        close(fds[i]);
    }
    live_spawn(&live, "evil", tenant_batches);
    live_await_word(&live.reports[live.count - 1].done, 5);
    live_await(&live, "evil", "members", 1);
    tenant_close(&live);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/governor/flood/one", test_one);
    g_test_add_func("/governor/flood/many", test_many);
    g_test_add_func("/governor/flood/churn", test_churn);
    g_test_add_func("/governor/flood/offend", test_offend);
    g_test_add_func("/governor/flood/no-pause", test_no_pause);
    g_test_add_func("/governor/flood/no-descriptors", test_no_descriptors);
    return g_test_run();
}
