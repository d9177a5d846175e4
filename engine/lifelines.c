// SPDX-License-Identifier: MIT
#include "lifelines.h"

#include <sys/epoll.h>
#include <unistd.h>

static void close_connection(void *connection)
{
    close(GPOINTER_TO_INT(connection));
}

void lifelines_init(struct lifelines *lines)
{
    g_mutex_init(&lines->lock);
    lines->connections = g_hash_table_new_full(NULL, NULL, NULL, close_connection);
    lines->fd = epoll_create1(EPOLL_CLOEXEC);
}

void lifelines_clear(struct lifelines *lines)
{
    g_hash_table_destroy(lines->connections);
    g_mutex_clear(&lines->lock);
    if (lines->fd >= 0)
        close(lines->fd);
}

/* The edge is the message: a level would have to be read away. */
bool lifelines_wake_by(struct lifelines *lines, int eventfd)
{
    struct epoll_event written = {.events = EPOLLIN | EPOLLET};

    return epoll_ctl(lines->fd, EPOLL_CTL_ADD, eventfd, &written) == 0;
}

/* Its end is reported without being requested. */
bool lifelines_add(struct lifelines *lines, uint32_t ctx_id, int connection, bool is_read)
{
    g_autoptr(GMutexLocker) locker = g_mutex_locker_new(&lines->lock);
    struct epoll_event end = {.events = is_read ? EPOLLIN : 0, .data.u32 = ctx_id};

    if (epoll_ctl(lines->fd, EPOLL_CTL_ADD, connection, &end) < 0) {
        close(connection);
        return false;
    }
    g_hash_table_insert(lines->connections, GUINT_TO_POINTER(ctx_id), GINT_TO_POINTER(connection));
    return true;
}

/* virglrenderer has the same connection open, so closing this one would not end its events. */
void lifelines_remove(struct lifelines *lines, uint32_t ctx_id)
{
    g_autoptr(GMutexLocker) locker = g_mutex_locker_new(&lines->lock);
    void *connection;

    if (!g_hash_table_lookup_extended(lines->connections, GUINT_TO_POINTER(ctx_id), NULL,
                                      &connection))
        return;
    epoll_ctl(lines->fd, EPOLL_CTL_DEL, GPOINTER_TO_INT(connection), NULL);
    g_hash_table_remove(lines->connections, GUINT_TO_POINTER(ctx_id));
}

int lifelines_borrow(struct lifelines *lines, uint32_t ctx_id)
{
    void *connection;

    g_mutex_lock(&lines->lock);
    return g_hash_table_lookup_extended(lines->connections, GUINT_TO_POINTER(ctx_id), NULL,
                                        &connection)
               ? GPOINTER_TO_INT(connection)
               : -1;
}

void lifelines_return(struct lifelines *lines)
{
    g_mutex_unlock(&lines->lock);
}

uint32_t lifelines_next_cut(struct lifelines *lines)
{
    struct epoll_event end;

    return epoll_wait(lines->fd, &end, 1, 0) == 1 ? end.data.u32 : 0;
}
