// SPDX-License-Identifier: MIT
#include "stuck.h"

#include "engine.h"
#include "exit_code.h"
#include "watchdog.h"

#include <errno.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

/* Well below the 10 s after which the driver gives up by itself. */
#define FIRST_LOOK (5 * G_TIME_SPAN_SECOND)
#define NEXT_LOOK  (2 * G_TIME_SPAN_SECOND)

static struct engine *watched;

/*
 * Since when the main thread has been in a call that may hang; 0: it is not. The loop writes this
 * at every turn, and sets the timer only if it does not run. A timer that finds nothing is not set
 * again.
 */
static gint64 busy_since;
static bool timer_runs;

static void check_reset(void)
{
    static const char gives_up[] =
        "vgpu-engine: the renderer hangs while the guest resets the device; giving up\n";
    struct vgpu_engine_info info;

    if (watched->transport->ops->info(watched->transport, &info) != 0)
        return;
    if (info.state & VGPU_STATE_REMOVED)
        _exit(EXIT_CODE_OK);
    if (info.epoch != watched->epoch) {
        if (write(STDERR_FILENO, gives_up, sizeof(gives_up) - 1) < 0) {
            /* There is nobody else to tell. */
        }
        _exit(EXIT_CODE_LOST);
    }
}

static void start_timer(gint64 delay)
{
    struct itimerval timer = {
        .it_value = {.tv_sec = delay / G_USEC_PER_SEC, .tv_usec = delay % G_USEC_PER_SEC}};

    __atomic_store_n(&timer_runs, true, __ATOMIC_SEQ_CST);
    setitimer(ITIMER_REAL, &timer, NULL);
}

/*
 * Runs in a signal handler, whatever the main thread does, and maybe on another thread: system
 * calls only. The timer is marked as ended before the main thread's state is read; the main thread
 * stores its state before it reads the mark. So one of the two starts the timer.
 */
static void on_timer(int signum G_GNUC_UNUSED)
{
    int saved = errno;
    gint64 since, left;

    __atomic_store_n(&timer_runs, false, __ATOMIC_SEQ_CST);
    since = __atomic_load_n(&busy_since, __ATOMIC_SEQ_CST);
    if (since) {
        left = since + FIRST_LOOK - g_get_monotonic_time();
        if (left <= 0)
            check_reset();
        start_timer(left > 0 ? left : NEXT_LOOK);
    }
    errno = saved;
}

static void note_busy(gint64 since)
{
    __atomic_store_n(&busy_since, since, __ATOMIC_SEQ_CST);
}

void stuck_watch_begin(struct engine *engine)
{
    if (!watched) {
        struct sigaction action = {.sa_handler = on_timer, .sa_flags = SA_RESTART};

        sigemptyset(&action.sa_mask);
        sigaction(SIGALRM, &action, NULL);
    }
    watched = engine;
    note_busy(g_get_monotonic_time());
    if (!__atomic_load_n(&timer_runs, __ATOMIC_SEQ_CST))
        start_timer(FIRST_LOOK);
}

void stuck_watch_end(void)
{
    note_busy(0);
}

void stuck_watch_progress(void)
{
    gint64 now = g_get_monotonic_time();

    if (__atomic_load_n(&busy_since, __ATOMIC_SEQ_CST))
        note_busy(now);
    watchdog_alive(now);
}
