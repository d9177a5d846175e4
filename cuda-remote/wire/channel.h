/* SPDX-License-Identifier: MIT */
/*
 * A channel: a ring in shared memory, through which one thread of a program gives records to one
 * thread of its worker. Each side writes only its own part. The client trusts nothing that the
 * worker writes to be in range, and the worker nothing of the client's.
 *
 * Offsets into the ring grow for ever; their place is taken modulo its size. A record never wraps:
 * what is left at the end is filled with one of number 0.
 */
#ifndef CUDA_REMOTE_CHANNEL_H
#define CUDA_REMOTE_CHANNEL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define CHANNEL_MAGIC        0x314c5543u
#define CHANNEL_RING_BYTES   (256u << 10)
#define CHANNEL_ANSWER_BYTES (64u << 10)
#define CHANNEL_ALIGN        32u
/* What does not fit goes into bulk memory, which the channel_record says. */
#define CHANNEL_RECORD_MOST (16u << 10)

/* FAR: a client in a VM, which no futex wakes; its worker sends CONTROL_ANSWERED. */
enum channel_state { CHANNEL_AWAKE, CHANNEL_ASLEEP, CHANNEL_ASLEEP_FAR };

struct channel_client {
    _Atomic uint64_t tail;
    _Atomic uint32_t state; /* a futex: ASLEEP or FAR while it waits for an answer */
    uint32_t reserved[13];
};

/* @done: answers given. @is_gone: the worker will answer nothing any more. */
struct channel_worker {
    _Atomic uint64_t head;
    _Atomic uint64_t done;
    _Atomic uint32_t state; /* a futex: ASLEEP while it waits for a record */
    _Atomic uint32_t is_gone;
    uint32_t reserved[10];
};

struct channel_shared {
    uint32_t magic;
    uint32_t reserved[31];
    _Alignas(128) struct channel_client client;
    _Alignas(128) struct channel_worker worker;
    _Alignas(4096) uint8_t ring[CHANNEL_RING_BYTES];
    uint8_t answer[CHANNEL_ANSWER_BYTES];
};

/*
 * Calls that are posted return before they are carried out. So that one thread's call comes after
 * what another thread had posted before, each posted record has a ticket, from one counter of the
 * program; and each record says how far the counter was when it was made, or when the thread's
 * record before it was, if nobody else has posted since. It is carried out when no record with an
 * earlier ticket is left in another channel.
 */
struct channel_record {
    uint32_t bytes; /* with this header; a multiple of CHANNEL_ALIGN */
    uint16_t number;
    uint16_t flags;  /* RECORD_* */
    uint64_t ticket; /* 0: the client waits for its answer, and nothing is behind it */
    uint64_t after;
    uint64_t bulk; /* where the parts lie, if they are not in the record */
};

#define RECORD_ANSWER    1u /* the client waits for one */
#define RECORD_BULK      2u /* the parts are in bulk memory, and so is the answer */
#define RECORD_UNSETTLED 4u /* a ticket up to @after may be of a record that is still to come */

#define ANSWER_OUTPUT 0x80000000u /* kernels have printed something (HAND_OUTPUT) */

/* At the beginning of each answer; the parts that the call wrote follow. */
struct channel_answer {
    uint32_t result; /* and ANSWER_OUTPUT */
    uint32_t bytes;  /* of the parts */
    uint64_t extra;
};

/* tests/cuda/remote/steps.c waits there for a random time, so that the other end is anywhere. */
#ifdef CHANNEL_STEPS
void channel_step(void);
#else
#define channel_step() ((void)0)
#endif

static inline size_t channel_align_record(size_t bytes)
{
    return (bytes + CHANNEL_ALIGN - 1) & ~(size_t)(CHANNEL_ALIGN - 1);
}

/*
 * Room for a record of so many bytes, at most CHANNEL_RECORD_MOST; NULL: the ring is full. Nothing
 * is seen by the worker before channel_publish(). Only the client writes its tail; so it can be
 * read without order.
 */
static inline struct channel_record *channel_reserve(struct channel_shared *channel, size_t bytes)
{
    uint64_t tail = atomic_load_explicit(&channel->client.tail, memory_order_relaxed);
    uint64_t head = atomic_load_explicit(&channel->worker.head, memory_order_acquire);
    size_t place = tail % CHANNEL_RING_BYTES, wanted = channel_align_record(bytes);
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
 * @record: what channel_reserve() returned last. True: the worker sleeps and has to be woken.
 *
 * Nobody sleeps while there is something for him. Who sleeps marks himself asleep before he looks
 * for the last time; who gives changes what is looked at before he looks at the mark. All four are
 * sequentially consistent, so one of the two sees what the other did: a weaker load may come before
 * the store of the exchange ahead of it on arm64.
 */
static inline bool channel_publish(struct channel_shared *channel,
                                   const struct channel_record *record)
{
    uint64_t tail = atomic_load_explicit(&channel->client.tail, memory_order_relaxed);

    channel_step();
    atomic_exchange(&channel->client.tail, tail + record->bytes);
    channel_step();
    return atomic_load(&channel->worker.state) == CHANNEL_ASLEEP;
}

/*
 * The worker's side: the next record, copied to @to, which has CHANNEL_RECORD_MOST bytes. 0: there
 * is none; -1: the client has broken the rules, and is not to be served any more. @head is the
 * worker's own copy, which no other can write. The size is read once, from the copy of the header.
 */
static inline int channel_take(struct channel_shared *channel, uint64_t *head, void *to)
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

/* The worker's side: so many answers are given. Afterwards it wakes the client, if that sleeps. */
void channel_answer(struct channel_shared *channel, uint64_t done);

/* True: the client is FAR, and has to be told. Its mark stays, for it may already be of its next
 * call, which would then be answered without a word. */
bool channel_wake_client(struct channel_shared *channel);

/* Sleep until there are so many answers, or records behind @head, or it is time to look what else
 * is the matter; they may return earlier. @milliseconds: 0: for ever. */
void channel_await_answer(struct channel_shared *channel, uint64_t done, unsigned int milliseconds);
void channel_await_record(struct channel_shared *channel, uint64_t head,
                          const _Atomic bool *is_ending);

/* Futexes; they return at once if *@word is not @is. */
void channel_sleep(_Atomic uint32_t *word, uint32_t is, unsigned int milliseconds);
void channel_wake(_Atomic uint32_t *word);
static inline void channel_pause(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

#endif
