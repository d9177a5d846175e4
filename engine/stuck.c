// SPDX-License-Identifier: MIT
#include "stuck.h"

#include "engine.h"
#include "exit_code.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

/* Well below the 10 s after which the driver gives up by itself. */
#define FIRST_LOOK_S 5
#define NEXT_LOOK_S  2

static struct engine *watched;

static void say(const char *text)
{
    if (write(STDERR_FILENO, text, strlen(text)) < 0) {
        /* There is nobody else to tell. */
    }
}

/* In a signal handler, over whatever the main thread is in: system calls only. */
static void look(int signum G_GNUC_UNUSED)
{
    int saved = errno;
    struct vgpu_engine_info info;

    if (watched->transport->ops->info(watched->transport, &info) == 0) {
        if (info.state & VGPU_STATE_REMOVED)
            _exit(EXIT_CODE_OK);
        if (info.epoch != watched->epoch) {
            say("vgpu-engine: the renderer hangs while the guest resets the device; giving up\n");
            _exit(EXIT_CODE_LOST);
        }
    }
    errno = saved;
}

static void set_timer(time_t first, time_t next)
{
    struct itimerval timer = {.it_value.tv_sec = first, .it_interval.tv_sec = next};

    setitimer(ITIMER_REAL, &timer, NULL);
}

void stuck_watch_begin(struct engine *engine)
{
    if (!watched) {
        struct sigaction action = {.sa_handler = look, .sa_flags = SA_RESTART};

        sigemptyset(&action.sa_mask);
        watched = engine;
        sigaction(SIGALRM, &action, NULL);
    }
    set_timer(FIRST_LOOK_S, NEXT_LOOK_S);
}

void stuck_watch_end(void)
{
    set_timer(0, 0);
}

void stuck_watch_progress(void)
{
    if (watched)
        set_timer(FIRST_LOOK_S, NEXT_LOOK_S);
}
