// SPDX-License-Identifier: MIT
#include "sync.h"

#include "guard_limits.h"
#include "vtest.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

struct sync {
    guint refs; /* of the table's number, waits and fences */
    uint64_t value;
};

struct target {
    struct sync *sync;
    uint64_t value;
};

/* A wait for less is not deferred: that would make it longer. */
#define DEFERRED_MIN_MS 10u

struct wait {
    int fd; /* the pipe's write end; -1: it is deferred */
    gint64 since;
    gint64 until;
    bool any;
    uint32_t count;
    struct target targets[];
};

struct fence {
    uint64_t id;
    uint32_t ring_idx;
    uint32_t count;
    struct target targets[];
};

static void sync_put(void *data)
{
    struct sync *sync = data;

    if (--sync->refs == 0)
        g_free(sync);
}

static void put_targets(struct sync_table *table, struct target *targets, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        sync_put(targets[i].sync);
    table->entries -= count;
}

static void free_wait(struct sync_table *table, struct wait *wait)
{
    if (wait->fd >= 0)
        close(wait->fd);
    put_targets(table, wait->targets, wait->count);
    g_free(wait);
}

static void free_fence(struct sync_table *table, struct fence *fence)
{
    put_targets(table, fence->targets, fence->count);
    g_free(fence);
}

void sync_table_init(struct sync_table *table)
{
    *table = (struct sync_table){.reached = -1};
    g_mutex_init(&table->lock);
    slots_init(&table->syncs, sync_put);
    g_queue_init(&table->waits);
    g_queue_init(&table->fences);
}

void sync_table_clear(struct sync_table *table)
{
    void *item;

    while ((item = g_queue_pop_head(&table->waits)))
        free_wait(table, item);
    table->deferred = NULL;
    while ((item = g_queue_pop_head(&table->fences)))
        free_fence(table, item);
    slots_clear(&table->syncs);
    if (table->reached >= 0)
        close(table->reached);
    g_mutex_clear(&table->lock);
}

static struct sync *sync_find(struct sync_table *table, uint32_t id, const char **fault)
{
    struct sync *sync = slots_find(&table->syncs, id);

    if (!sync)
        *fault = "it names a sync that it does not have";
    return sync;
}

uint32_t sync_create(struct sync_table *table, uint64_t value, const char **fault)
{
    g_autoptr(GMutexLocker) locker = g_mutex_locker_new(&table->lock);
    struct sync *sync;

    if (slots_count(&table->syncs) >= GUARD_SYNCS_MAX) {
        *fault = "it has too many syncs";
        return 0;
    }
    sync = g_new(struct sync, 1);
    *sync = (struct sync){.refs = 1, .value = value};
    return slots_add(&table->syncs, sync);
}

bool sync_unref(struct sync_table *table, uint32_t id, const char **fault)
{
    g_autoptr(GMutexLocker) locker = g_mutex_locker_new(&table->lock);

    if (!sync_find(table, id, fault))
        return false;
    sync_put(slots_take(&table->syncs, id));
    return true;
}

bool sync_read(struct sync_table *table, uint32_t id, uint64_t *value, const char **fault)
{
    g_autoptr(GMutexLocker) locker = g_mutex_locker_new(&table->lock);
    const struct sync *sync = sync_find(table, id, fault);

    if (sync)
        *value = sync->value;
    return sync != NULL;
}

/* Takes a reference on each of the syncs. */
static bool take_targets(struct sync_table *table, struct sync_entries entries,
                         struct target *targets, const char **fault)
{
    if (entries.count > GUARD_SYNC_ENTRIES_MAX - table->entries) {
        *fault = "it waits for too many syncs";
        return false;
    }
    for (uint32_t i = 0; i < entries.count; i++) {
        const uint32_t *words = entries.words + (size_t)i * VTEST_SYNC_ENTRY_WORDS;
        struct sync *sync = sync_find(table, words[0], fault);

        if (!sync) {
            table->entries += i;
            put_targets(table, targets, i);
            return false;
        }
        sync->refs++;
        targets[i] = (struct target){.sync = sync, .value = vtest_u64(words + 1)};
    }
    table->entries += entries.count;
    return true;
}

static bool is_reached(const struct wait *wait)
{
    uint32_t reached = 0;

    for (uint32_t i = 0; i < wait->count; i++)
        reached += wait->targets[i].sync->value >= wait->targets[i].value;
    return reached == wait->count || (wait->any && reached > 0);
}

/* Ends the waits that @over says are over. */
static void sweep_waits(struct sync_table *table,
                        bool (*over)(struct sync_table *table, const struct wait *wait))
{
    GList *next;

    for (GList *link = table->waits.head; link; link = next) {
        struct wait *wait = link->data;

        next = link->next;
        if (!over(table, wait))
            continue;
        g_queue_delete_link(&table->waits, link);
        free_wait(table, wait);
    }
}

/* One for all: a client that reads its byte harms its own waits. */
static int reached_pipe(struct sync_table *table, const char **fault)
{
    int fds[2];

    if (table->reached >= 0)
        return table->reached;
    if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) < 0) {
        *fault = "there are no pipes left for its waits";
        return -1;
    }
    if (write(fds[1], "", 1) < 0) {
        /* Not in a new pipe. */
    }
    close(fds[1]);
    table->reached = fds[0];
    return table->reached;
}

static bool wake_if_reached(struct sync_table *table, const struct wait *wait)
{
    const char *fault = NULL;
    int fd;

    if (!is_reached(wait))
        return false;
    table->quick = g_get_monotonic_time() - wait->since <= SYNC_QUICK_US;
    if (wait == table->deferred) {
        /* Without a pipe it stays, and sync_wait_settle() says why. */
        fd = reached_pipe(table, &fault);
        if (fd < 0 || !table->answer(table->data, fd))
            return false;
        table->deferred = NULL;
        return true;
    }
    if (write(wait->fd, "", 1) < 0) {
        /* EPIPE: the client does not wait any more. */
    }
    return true;
}

static bool nobody_waits(struct sync_table *table G_GNUC_UNUSED, const struct wait *wait)
{
    struct pollfd end = {.fd = wait->fd};

    return wait->until <= g_get_monotonic_time() ||
           (poll(&end, 1, 0) > 0 && (end.revents & POLLERR));
}

static void move_targets(const struct target *targets, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        targets[i].sync->value = targets[i].value;
}

bool sync_write(struct sync_table *table, struct sync_entries entries, const char **fault)
{
    g_autoptr(GMutexLocker) locker = g_mutex_locker_new(&table->lock);
    g_autofree struct target *targets = g_new(struct target, entries.count);

    if (!take_targets(table, entries, targets, fault))
        return false;
    move_targets(targets, entries.count);
    put_targets(table, targets, entries.count);
    sweep_waits(table, wake_if_reached);
    return true;
}

/* Waits that are over are searched only if there is no room: it costs a call for each. */
static bool has_room(struct sync_table *table, uint32_t count, const char **fault)
{
    for (int try = 0; try < 2; try++) {
        if (table->waits.length < GUARD_WAITS_MAX &&
            count <= GUARD_SYNC_ENTRIES_MAX - table->entries)
            return true;
        if (try == 0)
            sweep_waits(table, nobody_waits);
    }
    *fault = "it waits for too many syncs";
    return false;
}

/* Whether a wait for them would be over now; false with @fault set if one does not exist. */
static bool entries_are_reached(struct sync_table *table, struct sync_entries entries, bool any,
                                const char **fault)
{
    uint32_t reached = 0;

    for (uint32_t i = 0; i < entries.count; i++) {
        const uint32_t *words = entries.words + (size_t)i * VTEST_SYNC_ENTRY_WORDS;
        const struct sync *sync = sync_find(table, words[0], fault);

        if (!sync)
            return false;
        reached += sync->value >= vtest_u64(words + 1);
    }
    return reached == entries.count || (any && reached > 0);
}

/* A pipe of its own; returns the read end. */
static int open_pipe(struct wait *wait, const char **fault)
{
    int fds[2];

    if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) < 0) {
        *fault = "there are no pipes left for its waits";
        return -1;
    }
    wait->fd = fds[1];
    return fds[0];
}

static struct wait *add_wait(struct sync_table *table, struct sync_entries entries, bool any,
                             uint32_t timeout, const char **fault)
{
    struct wait *wait = g_malloc(sizeof(*wait) + entries.count * sizeof(wait->targets[0]));

    if (!take_targets(table, entries, wait->targets, fault)) {
        g_free(wait);
        return NULL;
    }
    wait->fd = -1;
    wait->since = g_get_monotonic_time();
    wait->until = timeout > G_MAXINT32 ? G_MAXINT64 : wait->since + (gint64)timeout * 1000;
    wait->any = any;
    wait->count = entries.count;
    g_queue_push_tail(&table->waits, wait);
    return wait;
}

int sync_wait(struct sync_table *table, struct sync_entries entries, bool any, uint32_t timeout,
              bool *fresh, const char **fault)
{
    g_autoptr(GMutexLocker) locker = g_mutex_locker_new(&table->lock);
    struct wait *wait;
    int fd;

    *fresh = false;
    if (entries_are_reached(table, entries, any, fault))
        return reached_pipe(table, fault);
    if (*fault || !has_room(table, entries.count, fault))
        return -1;
    wait = add_wait(table, entries, any, timeout, fault);
    if (!wait)
        return -1;
    if (table->answer && table->quick && timeout >= DEFERRED_MIN_MS) {
        table->deferred = wait;
        return SYNC_DEFERRED;
    }
    fd = open_pipe(wait, fault);
    if (fd < 0)
        free_wait(table, g_queue_pop_tail(&table->waits));
    *fresh = fd >= 0;
    return fd;
}

bool sync_wait_settle(struct sync_table *table, const char **fault)
{
    g_autoptr(GMutexLocker) locker = g_mutex_locker_new(&table->lock);
    bool sent;
    int fd;

    if (!table->deferred)
        return true;
    fd = open_pipe(table->deferred, fault);
    if (fd < 0)
        return false;
    sent = table->answer(table->data, fd);
    close(fd);
    table->deferred = NULL;
    if (!sent) {
        *fault = "the answer to its wait cannot be sent";
        return false;
    }
    /* It may have been over before: then there was no pipe for its answer. */
    sweep_waits(table, wake_if_reached);
    return true;
}

uint64_t sync_fence_begin(struct sync_table *table, uint32_t ring_idx, struct sync_entries entries,
                          const char **fault)
{
    g_autoptr(GMutexLocker) locker = g_mutex_locker_new(&table->lock);
    struct fence *fence;

    /* One more, so that fences without syncs count, too. */
    if (table->fences.length >= GUARD_SYNC_ENTRIES_MAX) {
        *fault = "it has too many pending fences";
        return 0;
    }
    fence = g_malloc(sizeof(*fence) + entries.count * sizeof(fence->targets[0]));
    if (!take_targets(table, entries, fence->targets, fault)) {
        g_free(fence);
        return 0;
    }
    fence->id = ++table->last_fence;
    fence->ring_idx = ring_idx;
    fence->count = entries.count;
    g_queue_push_tail(&table->fences, fence);
    return fence->id;
}

void sync_fence_cancel(struct sync_table *table, uint64_t id)
{
    g_autoptr(GMutexLocker) locker = g_mutex_locker_new(&table->lock);

    for (GList *link = table->fences.tail; link; link = link->prev) {
        if (((const struct fence *)link->data)->id == id) {
            free_fence(table, link->data);
            g_queue_delete_link(&table->fences, link);
            return;
        }
    }
}

void sync_fence_done(struct sync_table *table, uint32_t ring_idx, uint64_t id)
{
    g_autoptr(GMutexLocker) locker = g_mutex_locker_new(&table->lock);
    GList *next;

    for (GList *link = table->fences.head; link; link = next) {
        struct fence *fence = link->data;

        next = link->next;
        if (fence->id > id)
            break;
        if (fence->ring_idx != ring_idx)
            continue;
        move_targets(fence->targets, fence->count);
        g_queue_delete_link(&table->fences, link);
        free_fence(table, fence);
    }
    sweep_waits(table, wake_if_reached);
}

bool sync_fence_pending(struct sync_table *table, uint32_t ring_idx)
{
    g_autoptr(GMutexLocker) locker = g_mutex_locker_new(&table->lock);

    for (const GList *link = table->fences.head; link; link = link->next) {
        if (((const struct fence *)link->data)->ring_idx == ring_idx)
            return true;
    }
    return false;
}
