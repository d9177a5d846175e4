// SPDX-License-Identifier: MIT
#include "server.h"

#include "clients.h"
#include "exit_code.h"
#include "keeper.h"
#include "member.h"
#include "renderer.h"
#include "session.h"
#include "shader_cache.h"
#include "watchdog.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/*
 * Programs that are started one after the other have one cache of shaders. They are of one
 * container, or of containers of one tenant: for another tenant vgpud starts another guard.
 */
#define CACHE_KEPT (30 * G_TIME_SPAN_SECOND)

static volatile sig_atomic_t terminated;
static volatile sig_atomic_t child_died;
static struct server_doors doors = {.vulkan = -1, .cuda = -1};
static struct keeper keeper;
static gint64 empty_cache_at; /* unless somebody has come until then; 0: it is empty, or in use */

static void on_signal(int signum)
{
    if (signum == SIGCHLD)
        child_died = 1;
    else
        terminated = 1;
}

/* They are blocked except in ppoll(), and sessions unblock them (clients.c). */
void server_setup(void)
{
    static const int signals[] = {SIGTERM, SIGINT, SIGCHLD};
    struct sigaction action = {.sa_handler = on_signal};
    sigset_t set;

    sigemptyset(&action.sa_mask);
    sigemptyset(&set);
    for (size_t i = 0; i < G_N_ELEMENTS(signals); i++) {
        sigaction(signals[i], &action, NULL);
        sigaddset(&set, signals[i]);
    }
    sigprocmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
}

static struct session session; /* of a session's process */

/* virglrenderer asks nothing of the session before it has a context. */
static bool prepare_renderer(void)
{
    g_autoptr(GError) error = NULL;

    close(doors.vulkan);
    if (doors.cuda >= 0)
        close(doors.cuda);
    if (keeper.pid)
        close(keeper.control);
    if (renderer_start(session_fence_done, &session, &error))
        return true;
    g_message("no client can be served: %s", error->message);
    return false;
}

static int serve_client(int fd, int keeper_connection, const char *who)
{
    session_init(&session, fd);
    session.keeper.connection = keeper_connection;
    if (!session_run(&session)) {
        g_message("client %s, %s, is dropped: %s", who, session.name[0] ? session.name : "?",
                  session.fault);
        /* At once, and without another word to a worker that may hang. */
        return EXIT_FAILURE;
    }
    session_clear(&session);
    renderer_stop();
    return EXIT_SUCCESS;
}

static void take_client(struct clients *clients)
{
    int fd = accept4(doors.vulkan, NULL, NULL, SOCK_CLOEXEC);
    int connection = -1;

    if (fd < 0)
        return;
    if (!doors.has_vulkan) {
        clients_refuse(clients, fd);
        return;
    }
    if (keeper.pid)
        connection = keeper_connect(&keeper);
    if (keeper.pid && connection < 0) {
        g_message("a client is refused: no connection to the keeper: %s", g_strerror(errno));
        clients_refuse(clients, fd);
        return;
    }
    clients_add(clients, fd, connection);
    if (connection >= 0)
        close(connection);
}

static void take_cuda_client(struct clients *clients)
{
    int fd = accept4(doors.cuda, NULL, NULL, SOCK_CLOEXEC);

    if (fd < 0)
        return;
    if (doors.worker.path)
        clients_add_cuda(clients, fd, &doors.worker);
    else
        clients_refuse(clients, fd);
}

/* Only if memory is charged: the same condition as in the governor's layer. */
static bool start_keeper(struct clients *clients, GError **error)
{
    const char *governed = g_getenv("VGPU_GOVERNOR");
    const char *path = g_getenv("VGPU_GOVERNOR_SOCKET");

    if (g_strcmp0(governed, "1") != 0 || !doors.has_vulkan)
        return true;
    if (!keeper_start(&keeper, path && *path ? path : GOVERNOR_DEFAULT_SOCKET)) {
        g_set_error(error, ENGINE_ERROR, EXIT_CODE_INTERNAL, "cannot start the keeper: %s",
                    g_strerror(errno));
        return false;
    }
    clients->keeper = keeper.pid;
    return true;
}

static bool look_at_cache(const struct clients *clients, GError **error)
{
    if (!empty_cache_at || g_get_monotonic_time() < empty_cache_at)
        return true;
    empty_cache_at = 0;
    if (!clients_none(clients) || shader_cache_empty())
        return true;
    g_set_error(error, ENGINE_ERROR, EXIT_CODE_INTERNAL, "the compiled shaders cannot be removed");
    return false;
}

static gint64 earlier_time(gint64 a, gint64 b)
{
    return a < 0 || (b >= 0 && b < a) ? b : a;
}

/* Microseconds until there is something to do without a request; -1: never. */
static gint64 sleep_time(const struct clients *clients)
{
    gint64 next = earlier_time(clients_next(clients), empty_cache_at ? empty_cache_at : -1);
    gint64 dog = watchdog_sleep();
    gint64 left = next < 0 ? -1 : MAX(next - g_get_monotonic_time(), 0);

    return earlier_time(left, dog < 0 ? -1 : dog * 1000);
}

#define LISTENING 2

static int wait_for_work(struct clients *clients, struct pollfd *fds, nfds_t *count)
{
    short events = clients_ready(clients) ? POLLIN : 0;
    gint64 time = sleep_time(clients);
    struct timespec limit = {.tv_sec = time / G_USEC_PER_SEC,
                             .tv_nsec = time % G_USEC_PER_SEC * 1000};
    sigset_t none;

    sigemptyset(&none);
    fds[0] = (struct pollfd){.fd = doors.vulkan, .events = events};
    fds[1] = (struct pollfd){.fd = doors.cuda, .events = events};
    *count = LISTENING + clients_poll(clients, fds + LISTENING);
    return ppoll(fds, *count, time < 0 ? NULL : &limit, &none);
}

bool server_run(const struct server_doors *offered, GError **error)
{
    struct pollfd fds[LISTENING + GUARD_CLIENTS_MAX];
    const struct session_calls calls = {prepare_renderer, serve_client};
    struct clients clients;

    doors = *offered;
    clients_init(&clients, doors.has_vulkan ? &calls : NULL);
    if (!start_keeper(&clients, error))
        return false;
    watchdog_setup();
    while (!terminated) {
        nfds_t count;
        int ready;

        clients_close(&clients);
        clients_prepare(&clients);
        ready = wait_for_work(&clients, fds, &count);
        if (ready < 0 && errno != EINTR) {
            g_set_error(error, ENGINE_ERROR, EXIT_CODE_INTERNAL, "ppoll: %s", g_strerror(errno));
            return false;
        }
        watchdog_alive(g_get_monotonic_time());
        clients_look(&clients, fds + LISTENING, ready > 0 ? count - LISTENING : 0);
        if (child_died) {
            child_died = 0;
            clients_reap(&clients);
            if (clients_none(&clients))
                empty_cache_at = g_get_monotonic_time() + CACHE_KEPT;
        }
        if (!look_at_cache(&clients, error))
            return false;
        if (keeper.pid && !clients.keeper) {
            g_set_error(error, ENGINE_ERROR, EXIT_CODE_INTERNAL,
                        "the keeper has ended: what clients keep would not be charged");
            return false;
        }
        if (ready > 0 && fds[0].revents)
            take_client(&clients);
        if (ready > 0 && fds[1].revents && clients_ready(&clients))
            take_cuda_client(&clients);
    }
    return true;
}
