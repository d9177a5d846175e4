// SPDX-License-Identifier: MIT
/*
 * The watch over a main thread that hangs, on a clock and a timer of the test's. The loop comes by
 * at every turn: that must not cost a system call.
 */
#include "fixture.h"

#include "exit_code.h"
#include "stuck.h"

#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define FIRST (5 * G_TIME_SPAN_SECOND)
#define NEXT  (2 * G_TIME_SPAN_SECOND)

/* Volatile: raise() is declared as calling nothing here. */
static volatile gint64 now = 1;
static volatile gint64 rings_at; /* 0: the timer does not run */
static volatile unsigned int calls;

/* The names of the real ones, in whose place these are linked. */
gint64 g_get_monotonic_time(void)
{
    return now;
}

int setitimer(__itimer_which_t which G_GNUC_UNUSED, const struct itimerval *timer,
              struct itimerval *old G_GNUC_UNUSED)
{
    gint64 delay = timer->it_value.tv_sec * G_TIME_SPAN_SECOND + timer->it_value.tv_usec;

    rings_at = delay ? now + delay : 0;
    calls++;
    return 0;
}

static void pass_time(gint64 time)
{
    gint64 until = now + time;

    while (rings_at && rings_at <= until) {
        now = rings_at;
        rings_at = 0;
        raise(SIGALRM);
    }
    now = until;
}

/* In a child, because it may end. 77: it did not. */
static int end_of_child(struct fixture *f, void (*live)(struct fixture *f))
{
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        live(f);
        _exit(77);
    }
    g_assert_cmpint(waitpid(pid, &status, 0), ==, pid);
    g_assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void test_turns(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    for (int i = 0; i < 1000; i++) {
        stuck_watch_begin(&f->engine);
        pass_time(G_TIME_SPAN_MILLISECOND);
        stuck_watch_end();
        pass_time(G_TIME_SPAN_MILLISECOND);
    }
    g_assert_cmpuint(calls, ==, 1);
    /* An engine that has nothing to do is not woken for it. */
    pass_time(2 * FIRST);
    g_assert_cmpint(rings_at, ==, 0);
    g_assert_cmpuint(calls, ==, 1);
    stuck_watch_begin(&f->engine);
    stuck_watch_end();
    g_assert_cmpuint(calls, ==, 2);
    pass_time(FIRST);
}

static void hang_renderer(struct fixture *f)
{
    stuck_watch_begin(&f->engine);
    pass_time(FIRST);
    pass_time(NEXT);
    f->driver.info.epoch++;
    pass_time(NEXT - 1);
    pass_time(1);
}

static void hang_removed(struct fixture *f)
{
    f->driver.info.state |= VGPU_STATE_REMOVED;
    stuck_watch_begin(&f->engine);
    pass_time(FIRST);
}

static void many_steps(struct fixture *f)
{
    stuck_watch_begin(&f->engine);
    f->driver.info.epoch++;
    for (int i = 0; i < 10; i++) {
        pass_time(FIRST - 1);
        stuck_watch_progress();
    }
    stuck_watch_end();
    pass_time(FIRST);
}

static void not_before_its_time(struct fixture *f)
{
    stuck_watch_begin(&f->engine);
    stuck_watch_end();
    pass_time(FIRST - 1); /* the timer of the first turn rings in the second */
    stuck_watch_begin(&f->engine);
    f->driver.info.epoch++;
    pass_time(FIRST - 1);
    stuck_watch_end();
}

/* A hang concerns only the guest until it resets the device or the vGPU is removed. */
static void test_hangs(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    g_assert_cmpint(end_of_child(f, hang_renderer), ==, EXIT_CODE_LOST);
    g_assert_cmpint(end_of_child(f, hang_removed), ==, EXIT_CODE_OK);
    g_assert_cmpint(end_of_child(f, many_steps), ==, 77);
    g_assert_cmpint(end_of_child(f, not_before_its_time), ==, 77);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    fixture_test("/stuck/turns", test_turns);
    fixture_test("/stuck/hangs", test_hangs);
    return g_test_run();
}
