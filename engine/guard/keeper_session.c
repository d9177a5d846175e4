// SPDX-License-Identifier: MIT
#include "keeper_session.h"

#include "keeper_wire.h"

#include <sys/socket.h>

/* What waits for a fence. */
struct release {
    uint64_t fence;
    uint32_t number;
};

void keeper_session_init(struct keeper_session *keeper)
{
    *keeper = (struct keeper_session){.connection = -1};
    g_mutex_init(&keeper->lock);
    g_queue_init(&keeper->releases);
}

void keeper_session_clear(struct keeper_session *keeper)
{
    g_queue_clear_full(&keeper->releases, g_free);
    g_mutex_clear(&keeper->lock);
}

uint32_t keeper_keep(struct keeper_session *keeper, int fd, bool shm, bool *gone)
{
    const struct keeper_packet packet = {
        .call = shm ? KEEPER_KEEP_SHM : KEEPER_KEEP,
        .id = ++keeper->last,
    };
    char answer = 0;

    *gone = !keeper_send(keeper->connection, &packet, fd) ||
            recv(keeper->connection, &answer, 1, 0) != 1;
    return !*gone && answer ? packet.id : 0;
}

void keeper_release_after(struct keeper_session *keeper, uint32_t number, uint64_t fence)
{
    g_autoptr(GMutexLocker) locker = g_mutex_locker_new(&keeper->lock);
    struct release *release = g_new(struct release, 1);

    *release = (struct release){.fence = fence, .number = number};
    g_queue_push_tail(&keeper->releases, release);
}

void keeper_fence_done(struct keeper_session *keeper, uint64_t fence)
{
    g_autoptr(GMutexLocker) locker = g_mutex_locker_new(&keeper->lock);
    const struct release *first;

    while ((first = g_queue_peek_head(&keeper->releases)) && first->fence <= fence) {
        const struct keeper_packet packet = {.call = KEEPER_RELEASE, .id = first->number};

        keeper_send(keeper->connection, &packet, -1);
        g_free(g_queue_pop_head(&keeper->releases));
    }
}
