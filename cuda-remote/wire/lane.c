// SPDX-License-Identifier: MIT
#include "lane.h"

#include <limits.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

_Static_assert(sizeof(struct lane_record) % LANE_ALIGN == 0, "records begin aligned");

static size_t align(size_t bytes)
{
    return (bytes + LANE_ALIGN - 1) & ~(size_t)(LANE_ALIGN - 1);
}

/* Only the client writes its tail; so it can be read without order. */
struct lane_record *lane_reserve(struct lane_shared *lane, size_t bytes)
{
    uint64_t tail = atomic_load_explicit(&lane->client.tail, memory_order_relaxed);
    uint64_t head = atomic_load_explicit(&lane->worker.head, memory_order_acquire);
    size_t place = tail % LANE_RING_BYTES, wanted = align(bytes);
    size_t pad = place + wanted > LANE_RING_BYTES ? LANE_RING_BYTES - place : 0;
    struct lane_record *record;

    if (tail - head > LANE_RING_BYTES || LANE_RING_BYTES - (tail - head) < pad + wanted)
        return NULL;
    if (pad) {
        record = (struct lane_record *)(lane->ring + place);
        *record = (struct lane_record){.bytes = (uint32_t)pad};
        place = 0;
        atomic_store_explicit(&lane->client.tail, tail + pad, memory_order_release);
    }
    record = (struct lane_record *)(lane->ring + place);
    *record = (struct lane_record){.bytes = (uint32_t)wanted};
    return record;
}

/*
 * The exchange is a full barrier: either the worker, which marks itself asleep before it looks at
 * the tail for the last time, sees the new tail, or this sees the mark.
 */
bool lane_publish(struct lane_shared *lane, const struct lane_record *record)
{
    uint64_t tail = atomic_load_explicit(&lane->client.tail, memory_order_relaxed);

    atomic_exchange(&lane->client.tail, tail + record->bytes);
    return atomic_load_explicit(&lane->worker.state, memory_order_relaxed) == LANE_ASLEEP;
}

/* The size is read once, from the copy of the header. */
int lane_take(struct lane_shared *lane, uint64_t *head, void *to)
{
    struct lane_record *record = to;

    for (;;) {
        uint64_t tail = atomic_load_explicit(&lane->client.tail, memory_order_acquire);
        uint64_t filled = tail - *head;
        size_t place = *head % LANE_RING_BYTES, left = LANE_RING_BYTES - place;

        if (!filled)
            return 0;
        if (filled > LANE_RING_BYTES || filled < sizeof(*record) || left < sizeof(*record))
            return -1;
        memcpy(record, lane->ring + place, sizeof(*record));
        if (record->bytes < sizeof(*record) || record->bytes % LANE_ALIGN ||
            record->bytes > filled || record->bytes > left)
            return -1;
        if (record->number) {
            if (record->bytes > LANE_RECORD_MOST)
                return -1;
            memcpy(record + 1, lane->ring + place + sizeof(*record),
                   record->bytes - sizeof(*record));
        }
        *head += record->bytes;
        if (record->number)
            return 1;
        atomic_store_explicit(&lane->worker.head, *head, memory_order_release);
    }
}

/* The ends are in different processes: the futex is not a private one. */
void lane_sleep(_Atomic uint32_t *word, uint32_t is, unsigned int milliseconds)
{
    const struct timespec most = {.tv_sec = milliseconds / 1000,
                                  .tv_nsec = (long)(milliseconds % 1000) * 1000000};

    syscall(SYS_futex, word, FUTEX_WAIT, is, milliseconds ? &most : NULL, NULL, 0);
}

void lane_wake(_Atomic uint32_t *word)
{
    atomic_store(word, LANE_AWAKE);
    syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}
