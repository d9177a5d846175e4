// SPDX-License-Identifier: MIT
/*
 * Programs that end before they have reported their use, with a real arbiter: test-adversary.c has
 * the same in simulated time. A busy machine makes them slower, so only too much of the GPU is red.
 */
#include "compute.h"
#include "tenant.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define CAP_SLACK 0.1

/* What one program submits, and how it ends. */
struct program {
    uint64_t estimate_ns;
    uint64_t length_ns;
    bool deferred;
    bool says_end;
};

static const struct program short_one = {3 * NS_PER_MS, 3 * NS_PER_MS, false, true};
static const struct program killed = {100 * NS_PER_US, 50 * NS_PER_MS, false, false};
static const struct program killed_deferred = {100 * NS_PER_US, 50 * NS_PER_MS, true, false};

/* Killed at once when its work has ended, with all threads that could report it. */
static void run(const struct program *program, const char *socket_path, struct live_report *report)
{
    GovernorMember *member = governor_member_new(socket_path, true);
    uint64_t debit, end;

    /*
     * The test is over, and the arbiter has ended. Before that, a tenant without work makes the
     * test red.
     */
    if (!member)
        _exit(1);
    debit = compute_begin(member, program->estimate_ns, program->deferred);
    end = line_submit(line, program->length_ns);
    /* The layer's thread notices within 1 ms that deferred work has begun. */
    if (program->deferred)
        debit = governor_member_begun(member, debit);
    line_await(end);
    tenant_done(report, program->length_ns);
    if (program->says_end)
        governor_member_end(member, debit, program->length_ns);
    kill(getpid(), SIGKILL);
}

/* One after the other. */
static void run_all(const struct program *program, const char *socket_path,
                    struct live_report *report)
{
    for (;;) {
        pid_t pid = fork();

        g_assert_cmpint(pid, >=, 0);
        if (!pid) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            run(program, socket_path, report);
        }
        waitpid(pid, NULL, 0);
    }
}

static void run_short(struct live *live, const char *socket_path, struct live_report *report)
{
    (void)live;
    run_all(&short_one, socket_path, report);
}

static void run_killed(struct live *live, const char *socket_path, struct live_report *report)
{
    (void)live;
    run_all(&killed, socket_path, report);
}

static void run_killed_deferred(struct live *live, const char *socket_path,
                                struct live_report *report)
{
    (void)live;
    run_all(&killed_deferred, socket_path, report);
}

/* All of a slice's programs together keep to its hard cap. */
static void check(LiveFunc programs)
{
    const char *const slices[] = {"a", "[slice]\ncap=20\nhard=true\n", NULL};
    struct live live;
    uint64_t began;
    double use;

    tenant_open(&live, slices);
    live_spawn(&live, "a", programs);
    /* Until the savings are used up. */
    live_await_word(&live.reports[0].done, 10);
    live_reset(&live);
    began = clock_now();
    live_await_word(&live.reports[0].used_ns, 400 * NS_PER_MS);
    use = (double)live.reports[0].used_ns / (double)(clock_now() - began);
    g_test_message("%.3f of the GPU's time, of 0.2", use);
    g_assert_cmpfloat(use, <, 0.2 + CAP_SLACK);
    tenant_close(&live);
}

static void test_short(void)
{
    check(run_short);
}

static void test_killed(void)
{
    check(run_killed);
}

static void test_killed_deferred(void)
{
    check(run_killed_deferred);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/governor/exits/short", test_short);
    g_test_add_func("/governor/exits/killed", test_killed);
    g_test_add_func("/governor/exits/killed-deferred", test_killed_deferred);
    return g_test_run();
}
