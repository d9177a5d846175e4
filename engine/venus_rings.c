// SPDX-License-Identifier: MIT
/* The wire format is Mesa's and virglrenderer's "venus-protocol", VK_MESA_venus_protocol. */
#include "venus_rings.h"

#include <glib.h>

enum venus_command {
    VENUS_CREATE_RING = 188,
    VENUS_DESTROY_RING = 189,
    VENUS_NOTIFY_RING = 190,
    VENUS_WRITE_RING_EXTRA = 191,
    VENUS_SUBMIT_VIRTQUEUE_SEQNO = 251,
    VENUS_WAIT_RING_SEQNO = 253,
};

/* Words of whole commands. */
#define SEQNO_WORDS 6u
#define EXTRA_WORDS 7u

/* For how long a ring is looked at before it counts as not there yet. */
#define LOOK_US 10

/* Nanoseconds after which a worker sleeps over its ring. Mesa's value is 1 ms. */
#define IDLE_TIMEOUT 20000000u

/* VkRingStatusFlagsMESA */
#define VENUS_RING_IDLE  0x1u
#define VENUS_RING_FATAL 0x2u

/* VkStructureType */
#define VENUS_RING_CREATE_INFO   1000384000u
#define VENUS_RING_MONITOR_INFO  1000384006u
#define VENUS_RING_PRIORITY_INFO 1000384007u

/* A missing number reads as 0, and so does everything behind it. */
struct reader {
    const uint32_t *words;
    size_t left;
    bool ended;
};

static uint32_t read_u32(struct reader *reader)
{
    reader->ended |= reader->left == 0;
    if (reader->ended)
        return 0;
    reader->left--;
    return *reader->words++;
}

static uint64_t read_u64(struct reader *reader)
{
    uint64_t low = read_u32(reader);

    return low | (uint64_t)read_u32(reader) << 32;
}

/*
 * Structures nest: the fields of each come behind the chain that begins in it. False: one is
 * unknown, and so is its length.
 */
static bool skip_chain(struct reader *reader)
{
    uint32_t fields = 0;

    while (read_u64(reader)) {
        uint32_t type = read_u32(reader);

        if (type != VENUS_RING_MONITOR_INFO && type != VENUS_RING_PRIORITY_INFO)
            return false;
        fields++;
    }
    while (fields--)
        read_u32(reader);
    return true;
}

/* The used part of vkCreateRingMESA; @idle_timeout: how many words are left where that begins. */
struct create_info {
    struct venus_ring ring;
    size_t idle_timeout;
};

/* vkCreateRingMESA, after the ring's id. */
static bool read_create_info(struct reader *reader, struct create_info *info)
{
    struct venus_ring *ring = &info->ring;
    uint64_t offset;

    if (!read_u64(reader) || read_u32(reader) != VENUS_RING_CREATE_INFO || !skip_chain(reader))
        return false;
    read_u32(reader); /* flags */
    ring->resource = read_u32(reader);
    offset = read_u64(reader);
    read_u64(reader); /* size */
    info->idle_timeout = reader->left;
    read_u64(reader); /* idleTimeout */
    ring->head = offset + read_u64(reader);
    ring->tail = offset + read_u64(reader);
    ring->status = offset + read_u64(reader);
    return !reader->ended;
}

void venus_rings_clear(struct venus_rings *rings)
{
    g_free(rings->rings);
    *rings = (struct venus_rings){0};
}

static struct venus_ring *find_ring(const struct venus_rings *rings, uint64_t id)
{
    for (uint32_t i = 0; i < rings->count; i++) {
        if (rings->rings[i].id == id)
            return &rings->rings[i];
    }
    return NULL;
}

bool venus_rings_learn(struct venus_rings *rings, const uint32_t *commands, size_t words)
{
    struct reader reader = {.words = commands, .left = words};
    uint32_t command = read_u32(&reader);
    struct create_info info = {0};
    struct venus_ring *known;

    if (command != VENUS_CREATE_RING && command != VENUS_DESTROY_RING)
        return true;
    read_u32(&reader); /* flags */
    info.ring.id = read_u64(&reader);
    if (reader.ended)
        return true;
    known = find_ring(rings, info.ring.id);
    if (known)
        *known = rings->rings[--rings->count];
    if (command != VENUS_CREATE_RING || !read_create_info(&reader, &info))
        return true;
    if (rings->count >= VENUS_RINGS_MAX)
        return false;
    if (rings->count == rings->room) {
        rings->room = rings->room ? 2 * rings->room : 8;
        rings->rings = g_renew(struct venus_ring, rings->rings, rings->room);
    }
    rings->rings[rings->count++] = info.ring;
    return true;
}

void venus_rings_patch(uint32_t *commands, size_t words)
{
    struct reader reader = {.words = commands, .left = words};
    uint32_t command = read_u32(&reader);
    struct create_info info = {0};
    uint32_t *timeout;

    read_u32(&reader); /* flags */
    read_u64(&reader); /* the ring's id */
    if (command != VENUS_CREATE_RING || !read_create_info(&reader, &info))
        return;
    timeout = commands + words - info.idle_timeout;
    if (timeout[1] == 0 && timeout[0] < IDLE_TIMEOUT)
        timeout[0] = IDLE_TIMEOUT;
}

/* A single command, as Mesa sends them. If another follows, the effect is unknown. */
bool venus_rings_is_instant(const uint32_t *commands, size_t words)
{
    switch (words ? commands[0] : 0) {
    case VENUS_NOTIFY_RING:
    case VENUS_SUBMIT_VIRTQUEUE_SEQNO:
        return words == SEQNO_WORDS;
    case VENUS_WRITE_RING_EXTRA:
        return words == EXTRA_WORDS;
    default:
        return false;
    }
}

static bool is_inside(uint64_t size, uint64_t offset)
{
    return offset % sizeof(uint32_t) == 0 && size >= sizeof(uint32_t) &&
           offset <= size - sizeof(uint32_t);
}

/* The guest and the worker write there at any time. */
static bool load_word(const void *memory, uint64_t size, uint64_t offset, uint32_t *value)
{
    if (!is_inside(size, offset))
        return false;
    *value = __atomic_load_n((const uint32_t *)((const char *)memory + offset), __ATOMIC_ACQUIRE);
    return true;
}

/* @left: whether there are commands that it has not executed. */
static bool ring_is_idle(const struct venus_ring *ring, const void *memory, uint64_t size,
                         bool *left)
{
    uint32_t head, tail, status;

    if (!load_word(memory, size, ring->status, &status) ||
        !load_word(memory, size, ring->head, &head) || !load_word(memory, size, ring->tail, &tail))
        return false;
    *left = head != tail;
    return status & VENUS_RING_IDLE;
}

bool venus_ring_sleeps(const struct venus_ring *ring, const void *memory, uint64_t size)
{
    bool left;

    return ring_is_idle(ring, memory, size, &left) && left;
}

static bool venus_ring_rests(const struct venus_ring *ring, const void *memory, uint64_t size)
{
    bool left;

    return ring_is_idle(ring, memory, size, &left) && !left;
}

/* Sequence numbers are compared as virglrenderer does: they wrap. */
static bool venus_ring_comes_to(const struct venus_ring *ring, uint32_t seqno, const void *memory,
                                uint64_t size)
{
    gint64 until = g_get_monotonic_time() + LOOK_US;
    uint32_t head;

    do {
        if (!load_word(memory, size, ring->head, &head))
            return false;
        if (head - seqno <= INT32_MAX)
            return true;
    } while (g_get_monotonic_time() < until);
    return false;
}

/* One that is to be answered by the worker is left to it. */
bool venus_rings_wait_is_over(const struct venus_rings *rings, const uint32_t *commands,
                              size_t words, const struct venus_ring_access *access, void *data)
{
    struct reader reader = {.words = commands, .left = words};
    const struct venus_ring *ring;
    uint64_t size;
    void *memory;
    bool over;

    if (words != SEQNO_WORDS || read_u32(&reader) != VENUS_WAIT_RING_SEQNO || read_u32(&reader))
        return false;
    ring = find_ring(rings, read_u64(&reader));
    memory = ring ? access->map(data, ring->resource, &size) : NULL;
    if (!memory)
        return false;
    over = venus_ring_comes_to(ring, read_u32(&reader), memory, size);
    access->unmap(data, ring->resource);
    return over;
}

/* @without: the answer for a ring without memory */
static bool ask_ring(const struct venus_ring *ring, const struct venus_ring_access *access,
                     void *data,
                     bool (*question)(const struct venus_ring *, const void *, uint64_t),
                     bool without)
{
    uint64_t size;
    const void *memory = access->map(data, ring->resource, &size);
    bool answer = memory ? question(ring, memory, size) : without;

    if (memory)
        access->unmap(data, ring->resource);
    return answer;
}

bool venus_rings_rest(const struct venus_rings *rings, const struct venus_ring_access *access,
                      void *data)
{
    for (uint32_t i = 0; i < rings->count; i++) {
        if (!ask_ring(&rings->rings[i], access, data, venus_ring_rests, true))
            return false;
    }
    return true;
}

bool venus_rings_wake(const struct venus_rings *rings, const struct venus_ring_access *access,
                      void *data)
{
    bool any = false;

    for (uint32_t i = 0; i < rings->count; i++) {
        const struct venus_ring *ring = &rings->rings[i];
        uint32_t notify[VENUS_NOTIFY_WORDS] = {
            VENUS_NOTIFY_RING, 0, (uint32_t)ring->id, (uint32_t)(ring->id >> 32), 0, 0,
        };

        if (!ask_ring(ring, access, data, venus_ring_sleeps, false))
            continue;
        access->send(data, notify, VENUS_NOTIFY_WORDS);
        any = true;
    }
    return any;
}

void venus_rings_fail(const struct venus_rings *rings, const struct venus_ring_access *access,
                      void *data)
{
    for (uint32_t i = 0; i < rings->count; i++) {
        const struct venus_ring *ring = &rings->rings[i];
        uint64_t size;
        void *memory = access->map(data, ring->resource, &size);

        if (!memory)
            continue;
        if (is_inside(size, ring->status))
            __atomic_fetch_or((uint32_t *)((char *)memory + ring->status), VENUS_RING_FATAL,
                              __ATOMIC_SEQ_CST);
        access->unmap(data, ring->resource);
    }
}
