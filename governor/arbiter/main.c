// SPDX-License-Identifier: MIT
#include "arbiter.h"

#include <errno.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <systemd/sd-daemon.h>
#include <time.h>

#define EXIT_USAGE 2

struct options {
    char *root;
    char **rest;
    gboolean version;
};

static bool parse_options(struct options *options, int *argc, char ***argv, GError **error)
{
    const GOptionEntry entries[] = {
        {"root", 0, 0, G_OPTION_ARG_FILENAME, &options->root, "Directory that replaces /", "DIR"},
        {"version", 0, 0, G_OPTION_ARG_NONE, &options->version, "Print the version", NULL},
        {G_OPTION_REMAINING, 0, 0, G_OPTION_ARG_STRING_ARRAY, &options->rest, NULL, NULL},
        {0},
    };
    g_autoptr(GOptionContext) context = g_option_context_new("GPU");

    g_option_context_set_summary(context, "Shares one GPU among its slices; see vgpu-arbiter(8).");
    g_option_context_add_main_entries(context, entries, NULL);
    if (!g_option_context_parse(context, argc, argv, error))
        return false;
    if (options->version)
        return true;
    if (options->rest && options->rest[0] && !options->rest[1] &&
        strspn(options->rest[0], "0123456789abcdefghijklmnopqrstuvwxyzABCDEF:._-") ==
            strlen(options->rest[0]))
        return true;
    g_set_error(error, G_OPTION_ERROR, G_OPTION_ERROR_FAILED,
                "usage: vgpu-arbiter [--root DIR] GPU, such as 0000:03:00.0");
    return false;
}

/* A decision must not wait for a page that was swapped out, least of all when memory is short. */
static void lock_memory(void)
{
    if (mlockall(MCL_CURRENT | MCL_FUTURE) < 0)
        g_message("cannot lock memory: %s; decisions may be late when memory is short",
                  g_strerror(errno));
}

/* Each member takes two, and there may be hundreds. */
static void raise_descriptors(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

/*
 * The signal comes after this time without a pause. At the hard limit, which the unit sets, the
 * kernel kills the arbiter.
 */
#define NO_PAUSE_US 1000000
#define RAISED_US   1000000

/* SIGXCPU is blocked, because it would end the arbiter as well. */
static void limit_real_time(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_RTTIME, &limit) < 0 || limit.rlim_cur <= NO_PAUSE_US)
        return;
    limit.rlim_cur = NO_PAUSE_US;
    setrlimit(RLIMIT_RTTIME, &limit);
}

/* With each signal the kernel raises the soft limit by a second, in the end up to the hard one. */
static void lower_real_time(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_RTTIME, &limit) < 0 || limit.rlim_cur <= RAISED_US ||
        limit.rlim_cur == RLIM_INFINITY)
        return;
    limit.rlim_cur -= RAISED_US;
    setrlimit(RLIMIT_RTTIME, &limit);
}

/*
 * The arbiter has had no pause for as long as the soft limit of RLIMIT_RTTIME allows. The rate
 * limits prevent that, unless very many slices use up theirs. Then it yields for a moment, which
 * also restarts the kernel's count. At the hard limit it would be killed.
 */
static int on_no_pause(sd_event_source *source, const struct signalfd_siginfo *info, void *data)
{
    const struct timespec moment = {.tv_nsec = 2000000};

    (void)source;
    (void)info;
    (void)data;
    g_message(
        "busy without a pause: the members send more than it can handle, so decisions are late");
    nanosleep(&moment, NULL);
    lower_real_time();
    return 0;
}

static int run_arbiter(const struct options *options)
{
    struct arbiter arbiter;
    sd_event_source *no_pause = NULL;
    sd_event *event = NULL;
    sigset_t signals;
    int ret = -1;

    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGXCPU);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    limit_real_time();
    raise_descriptors();
    lock_memory();
    prctl(PR_SET_TIMERSLACK, 1);
    if (sd_event_default(&event) < 0 || sd_event_add_signal(event, NULL, SIGTERM, NULL, NULL) < 0 ||
        sd_event_add_signal(event, NULL, SIGINT, NULL, NULL) < 0 ||
        sd_event_add_signal(event, &no_pause, SIGXCPU, on_no_pause, NULL) < 0)
        return EXIT_FAILURE;
    /* Before hundreds of sockets: the hard limit is near. */
    sd_event_source_set_priority(no_pause, SD_EVENT_PRIORITY_IMPORTANT);
    /* If the unit asks for it. */
    sd_event_set_watchdog(event, true);
    arbiter_init(&arbiter, event, options->root ? options->root : "/", options->rest[0]);
    if (partners_listen(&arbiter) && conf_watch(&arbiter) && status_listen(&arbiter)) {
        sd_notify(0, "READY=1");
        ret = sd_event_loop(event);
        sd_notify(0, "STOPPING=1");
    }
    arbiter_clear(&arbiter);
    sd_event_source_unref(no_pause);
    sd_event_unref(event);
    return ret < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    g_autoptr(GError) error = NULL;
    struct options options = {0};
    int status;

    setlocale(LC_ALL, "");
    if (!parse_options(&options, &argc, &argv, &error)) {
        g_printerr("vgpu-arbiter: %s\n", error->message);
        status = EXIT_USAGE;
    } else if (options.version) {
        printf("vgpu-arbiter %s\n", VGPU_VERSION);
        status = EXIT_SUCCESS;
    } else {
        status = run_arbiter(&options);
    }
    g_free(options.root);
    g_strfreev(options.rest);
    return status;
}
