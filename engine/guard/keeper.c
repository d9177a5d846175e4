// SPDX-License-Identifier: MIT
#include "keeper.h"

#include "kept.h"
#include "keeper_wire.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

/* Most have no other holder at once, some a moment later. */
#define SWEEP_FIRST_MS 1
#define SWEEP_MAX_MS   1000

/* The only descriptor of the process' own. */
#define CONTROL (STDERR_FILENO + 1)

/**
 * struct keeping
 * @socket_path: of the slice
 * @connections: of struct pollfd: the guard's first, then sessions'
 * @sweep_ms: time between two checks of released buffers; @sweep_at: the next one (monotonic)
 * @told: the journal already says that clients keep memory
 */
struct keeping {
    const char *socket_path;
    GArray *connections;
    struct kept_table kept;
    int sweep_ms;
    gint64 sweep_at;
    bool told;
};

static void sweep_soon(struct keeping *keeping)
{
    keeping->sweep_ms = SWEEP_FIRST_MS;
    keeping->sweep_at = g_get_monotonic_time() + SWEEP_FIRST_MS * G_TIME_SPAN_MILLISECOND;
}

static void watch_connection(struct keeping *keeping, int fd)
{
    const struct pollfd connection = {.fd = fd, .events = POLLIN};

    g_array_append_val(keeping->connections, connection);
}

static void leave_slice(struct keeping *keeping)
{
    governor_member_free(keeping->kept.member);
    keeping->kept.member = NULL;
}

/* Answers whether it is kept. */
static bool keep_buffer(struct keeping *keeping, int connection, uint32_t id, int fd, bool shm)
{
    char answer = 0;

    /* It becomes a member with the first: a slice with idle members still counts for others. */
    if (fd >= 0 && !shm && !keeping->kept.member)
        keeping->kept.member = governor_member_new(keeping->socket_path, false);
    if (fd >= 0 && (shm || keeping->kept.member))
        answer = kept_add(&keeping->kept, connection, id, fd, shm);
    else if (fd >= 0)
        close(fd);
    return send(connection, &answer, 1, MSG_NOSIGNAL | MSG_DONTWAIT) == 1;
}

/* False: the session must not be listened to any more. */
static bool take_packet(struct keeping *keeping, int connection)
{
    struct keeper_packet packet;
    int fd;

    switch (keeper_receive(connection, &packet, &fd)) {
    case KEEPER_NOTHING:
        return true;
    case KEEPER_END:
        return false;
    case KEEPER_PACKET:
        break;
    }
    if (packet.call == KEEPER_KEEP || packet.call == KEEPER_KEEP_SHM)
        return keep_buffer(keeping, connection, packet.id, fd, packet.call == KEEPER_KEEP_SHM);
    if (fd >= 0)
        close(fd);
    if (packet.call != KEEPER_RELEASE)
        return false;
    /* If one buffer after the other is released, not all of them must be checked each time. */
    if (!keeping->kept.released->len)
        sweep_soon(keeping);
    kept_release(&keeping->kept, connection, packet.id);
    return true;
}

/* False: the guard has ended. */
static bool take_control(struct keeping *keeping, int control)
{
    struct keeper_packet packet;
    int fd;
    enum keeper_received received = keeper_receive(control, &packet, &fd);

    if (fd >= 0)
        watch_connection(keeping, fd);
    return received != KEEPER_END;
}

static void forget_session(struct keeping *keeping, guint index)
{
    int connection = g_array_index(keeping->connections, struct pollfd, index).fd;

    sweep_soon(keeping);
    kept_release_all(&keeping->kept, connection);
    close(connection);
    g_array_remove_index_fast(keeping->connections, index);
}

static void sweep_released(struct keeping *keeping)
{
    if (kept_sweep(&keeping->kept))
        keeping->sweep_ms = SWEEP_FIRST_MS;
    else
        keeping->sweep_ms = MIN(keeping->sweep_ms * 2, SWEEP_MAX_MS);
    keeping->sweep_at = g_get_monotonic_time() + keeping->sweep_ms * G_TIME_SPAN_MILLISECOND;
    if (keeping->kept.released->len && !keeping->told && keeping->sweep_ms >= SWEEP_MAX_MS)
        g_message("%" G_GUINT64_FORMAT " bytes of GPU memory that clients have freed are "
                  "still open in the container: they stay charged to the slice until the "
                  "processes that have them end",
                  kept_released_bytes(&keeping->kept));
    if (keeping->sweep_ms >= SWEEP_MAX_MS || !keeping->kept.released->len)
        keeping->told = keeping->kept.released->len > 0;
}

/* Milliseconds, as of poll(). */
static int sleep_time(const struct keeping *keeping)
{
    gint64 left = keeping->sweep_at - g_get_monotonic_time();

    if (!keeping->kept.released->len)
        return -1;
    return left > 0 ? (int)(left / G_TIME_SPAN_MILLISECOND) + 1 : 0;
}

/* False: the guard has ended. */
static bool keeper_turn(struct keeping *keeping)
{
    struct pollfd *connections = (struct pollfd *)keeping->connections->data;
    guint count = keeping->connections->len;

    if (poll(connections, count, sleep_time(keeping)) < 0 && errno != EINTR)
        return false;
    /* From the last: a removed entry is replaced by one that had its turn. */
    for (guint i = count; i-- > 1;) {
        connections = (struct pollfd *)keeping->connections->data;
        if (connections[i].revents && !take_packet(keeping, connections[i].fd))
            forget_session(keeping, i);
    }
    connections = (struct pollfd *)keeping->connections->data;
    if (connections[0].revents && !take_control(keeping, connections[0].fd))
        return false;
    if (keeping->kept.released->len && g_get_monotonic_time() >= keeping->sweep_at)
        sweep_released(keeping);
    if (keeping->kept.member && keeping->connections->len == 1 && !keeping->kept.buffers)
        leave_slice(keeping);
    return true;
}

void keeper_run(int control, const char *socket_path)
{
    struct keeping keeping = {.socket_path = socket_path, .sweep_ms = SWEEP_FIRST_MS};

    keeping.connections = g_array_new(FALSE, FALSE, sizeof(struct pollfd));
    kept_init(&keeping.kept);
    watch_connection(&keeping, control);
    while (keeper_turn(&keeping))
        ;
    for (guint i = 1; i < keeping.connections->len; i++)
        close(g_array_index(keeping.connections, struct pollfd, i).fd);
    kept_clear(&keeping.kept);
    g_array_unref(keeping.connections);
    if (keeping.kept.member)
        leave_slice(&keeping);
}

bool keeper_start(struct keeper *keeper, const char *socket_path)
{
    pid_t guard = getpid();
    int ends[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return false;
    keeper->pid = fork();
    if (keeper->pid == 0) {
        dup2(ends[1], CONTROL);
        close_range(CONTROL + 1, UINT_MAX, 0);
        prctl(PR_SET_NAME, "vgpu-keeper");
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() == guard)
            keeper_run(CONTROL, socket_path);
        _exit(EXIT_SUCCESS);
    }
    close(ends[1]);
    keeper->control = ends[0];
    if (keeper->pid > 0)
        return true;
    keeper->pid = 0;
    close(ends[0]);
    return false;
}

int keeper_connect(const struct keeper *keeper)
{
    const struct keeper_packet packet = {.call = KEEPER_CONNECT};
    int ends[2];
    bool sent;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return -1;
    sent = keeper_send(keeper->control, &packet, ends[1]);
    close(ends[1]);
    if (sent)
        return ends[0];
    close(ends[0]);
    return -1;
}
