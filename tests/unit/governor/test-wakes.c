// SPDX-License-Identifier: MIT
/* Threads that wait for a grant: how many the arbiter wakes, and that none is forgotten. */
#include "compute.h"
#include "raw.h"
#include "tenant.h"

#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SLEEPERS 100
#define THREADS  16

static struct governor_class_grant *grant;
static _Atomic int asleep;

static void *sleep_once(void *data)
{
    uint32_t sequence = atomic_load(&grant->sequence);

    (void)data;
    asleep++;
    syscall(SYS_futex, &grant->sequence, FUTEX_WAIT, sequence, NULL, NULL, 0);
    asleep--;
    return NULL;
}

/* In any state but running: the sleepers have nothing else to wait for. */
static bool all_sleep(void)
{
    g_autofree char *status = NULL;
    g_autoptr(GDir) dir = g_dir_open("/proc/self/task", 0, NULL);
    const char *name;
    int running = 0;

    while ((name = g_dir_read_name(dir))) {
        g_autofree char *path = g_strdup_printf("/proc/self/task/%s/stat", name);
        g_autofree char *text = NULL;

        if (g_file_get_contents(path, &text, NULL, NULL))
            running += g_strrstr(text, ") R ") != NULL;
    }
    return asleep == SLEEPERS && running <= 1;
}

/* A member can have as many threads as it likes wait on its page. The arbiter does not wake them
 * all. */
static void test_many_sleepers(void)
{
    const char *const slices[] = {"a", "[slice]\n", NULL};
    g_autofree char *path = NULL;
    struct governor_grant *page;
    struct live live;
    int fds[2], fd;

    live_open(&live, slices);
    path = live_socket(&live, "a");
    fd = raw_connect(path);
    g_assert_true(raw_join(fd, fds));
    page = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fds[0], 0);
    g_assert_true(page != MAP_FAILED);
    grant = &page->classes[GOVERNOR_CLASS_COMPUTE];
    for (int i = 0; i < SLEEPERS; i++)
        g_thread_unref(g_thread_new("sleep", sleep_once, NULL));
    while (!all_sleep())
        g_usleep(10000);
    /* From free to metered: a change that each thread that waits would want to know of. */
    live_configure(&live, "a", "[slice]\ncap=20\nhard=true\n");
    while (atomic_load(&grant->mode) == GOVERNOR_MODE_FREE)
        g_usleep(1000);
    while (asleep == SLEEPERS)
        g_usleep(1000);
    g_usleep(200000);
    g_test_message("%d of %d were woken", SLEEPERS - asleep, SLEEPERS);
    g_assert_cmpint(asleep, >=, SLEEPERS - 5);
    live_close(&live);
}

struct crowd {
    GovernorMember *member;
    struct live_report *report;
    _Atomic uint64_t done[THREADS];
    _Atomic unsigned joined;
};

static void *submit_all(void *data)
{
    struct crowd *crowd = data;
    unsigned number = crowd->joined++;

    for (;;) {
        uint64_t debit = compute_begin(crowd->member, NS_PER_MS, false);

        line_await(line_submit(line, NS_PER_MS));
        governor_member_end(crowd->member, debit, NS_PER_MS);
        crowd->report->used_ns += NS_PER_MS;
        crowd->report->done++;
        crowd->done[number]++;
        /* The fewest of any of them. */
        crowd->report->granted = UINT64_MAX;
        for (unsigned i = 0; i < THREADS; i++)
            crowd->report->granted = MIN(crowd->report->granted, crowd->done[i]);
    }
    return NULL;
}

static void submit_by_many(struct live *live, const char *socket_path, struct live_report *report)
{
    static struct crowd crowd;

    (void)live;
    crowd.report = report;
    crowd.member = tenant_join(socket_path, report);
    for (unsigned i = 1; i < THREADS; i++)
        g_thread_new("submit", submit_all, &crowd);
    submit_all(&crowd);
}

/* Many threads of one member get as much done as one that is alone with its page, and each of them
 * something. */
static void test_crowd(void)
{
    const char *const slices[] = {"a", "[slice]\n", "b", "[slice]\n", NULL};
    struct live live;
    double part;

    tenant_open(&live, slices);
    live_spawn(&live, "a", submit_by_many);
    live_spawn(&live, "b", tenant_batches);
    live_await_word(&live.reports[0].granted, 2);
    live_await_word(&live.reports[1].done, 10);
    live_reset(&live);
    live_await_word(&live.reports[0].granted, 20);
    part = (double)live.reports[0].used_ns /
           (double)(live.reports[0].used_ns + live.reports[1].used_ns);
    g_test_message("%.3f of what was done", part);
    g_assert_cmpfloat(part, >, 0.35);
    g_assert_cmpfloat(part, <, 0.65);
    tenant_close(&live);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/governor/wakes/many-sleepers", test_many_sleepers);
    g_test_add_func("/governor/wakes/crowd", test_crowd);
    return g_test_run();
}
