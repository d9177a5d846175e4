// SPDX-License-Identifier: MIT
#include "channel.h"

#include <limits.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* tests/cuda/remote/steps.c waits there for a random time, so that the other end is anywhere. */
#ifdef CHANNEL_STEPS
void channel_step(void);
#else
#define channel_step() ((void)0)
#endif

_Static_assert(sizeof(struct channel_record) % CHANNEL_ALIGN == 0, "records begin aligned");

static size_t align_record(size_t bytes)
{
    return (bytes + CHANNEL_ALIGN - 1) & ~(size_t)(CHANNEL_ALIGN - 1);
}

/* Only the client writes its tail; so it can be read without order. */
struct channel_record *channel_reserve(struct channel_shared *channel, size_t bytes)
{
    uint64_t tail = atomic_load_explicit(&channel->client.tail, memory_order_relaxed);
    uint64_t head = atomic_load_explicit(&channel->worker.head, memory_order_acquire);
    size_t place = tail % CHANNEL_RING_BYTES, wanted = align_record(bytes);
    size_t pad = place + wanted > CHANNEL_RING_BYTES ? CHANNEL_RING_BYTES - place : 0;
    struct channel_record *record;

    if (tail - head > CHANNEL_RING_BYTES || CHANNEL_RING_BYTES - (tail - head) < pad + wanted)
        return NULL;
    if (pad) {
        record = (struct channel_record *)(channel->ring + place);
        *record = (struct channel_record){.bytes = (uint32_t)pad};
        place = 0;
        atomic_store_explicit(&channel->client.tail, tail + pad, memory_order_release);
    }
    record = (struct channel_record *)(channel->ring + place);
    *record = (struct channel_record){.bytes = (uint32_t)wanted};
    return record;
}

/*
 * Nobody sleeps while there is something for him. Who sleeps marks himself asleep before he looks
 * for the last time; who gives changes what is looked at before he looks at the mark. All four are
 * sequentially consistent, so one of the two sees what the other did: a weaker load may come before
 * the store of the exchange ahead of it on arm64.
 */
bool channel_publish(struct channel_shared *channel, const struct channel_record *record)
{
    uint64_t tail = atomic_load_explicit(&channel->client.tail, memory_order_relaxed);

    channel_step();
    atomic_exchange(&channel->client.tail, tail + record->bytes);
    channel_step();
    return atomic_load(&channel->worker.state) == CHANNEL_ASLEEP;
}

void channel_answer(struct channel_shared *channel, uint64_t done)
{
    channel_step();
    atomic_exchange(&channel->worker.done, done);
    channel_step();
}

void channel_await_answer(struct channel_shared *channel, uint64_t done, unsigned int milliseconds)
{
    channel_step();
    atomic_exchange(&channel->client.state, CHANNEL_ASLEEP);
    channel_step();
    if (atomic_load(&channel->worker.done) != done)
        channel_sleep(&channel->client.state, CHANNEL_ASLEEP, milliseconds);
    channel_step();
    atomic_store(&channel->client.state, CHANNEL_AWAKE);
}

void channel_await_record(struct channel_shared *channel, uint64_t head,
                          const _Atomic bool *is_ending)
{
    channel_step();
    atomic_exchange(&channel->worker.state, CHANNEL_ASLEEP);
    channel_step();
    if (atomic_load(&channel->client.tail) == head && !atomic_load(is_ending))
        channel_sleep(&channel->worker.state, CHANNEL_ASLEEP, 0);
    channel_step();
    atomic_store(&channel->worker.state, CHANNEL_AWAKE);
}

/* The size is read once, from the copy of the header. */
int channel_take(struct channel_shared *channel, uint64_t *head, void *to)
{
    struct channel_record *record = to;

    for (;;) {
        uint64_t tail = atomic_load_explicit(&channel->client.tail, memory_order_acquire);
        uint64_t filled = tail - *head;
        size_t place = *head % CHANNEL_RING_BYTES, left = CHANNEL_RING_BYTES - place;

        if (!filled)
            return 0;
        if (filled > CHANNEL_RING_BYTES || filled < sizeof(*record) || left < sizeof(*record))
            return -1;
        memcpy(record, channel->ring + place, sizeof(*record));
        if (record->bytes < sizeof(*record) || record->bytes % CHANNEL_ALIGN ||
            record->bytes > filled || record->bytes > left)
            return -1;
        if (record->number) {
            if (record->bytes > CHANNEL_RECORD_MOST)
                return -1;
            memcpy(record + 1, channel->ring + place + sizeof(*record),
                   record->bytes - sizeof(*record));
        }
        *head += record->bytes;
        if (record->number)
            return 1;
        atomic_store_explicit(&channel->worker.head, *head, memory_order_release);
    }
}

/* The ends are in different processes: the futex is not a private one. */
void channel_sleep(_Atomic uint32_t *word, uint32_t is, unsigned int milliseconds)
{
    const struct timespec most = {.tv_sec = milliseconds / 1000,
                                  .tv_nsec = (long)(milliseconds % 1000) * 1000000};

    syscall(SYS_futex, word, FUTEX_WAIT, is, milliseconds ? &most : NULL, NULL, 0);
}

void channel_wake(_Atomic uint32_t *word)
{
    channel_step();
    atomic_store(word, CHANNEL_AWAKE);
    channel_step();
    syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}
