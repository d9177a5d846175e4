// SPDX-License-Identifier: MIT
/* A channel for each thread of the program, and requests that are waited for. */
#include "remote.h"

#include "channels.h"
#include "context.h"
#include "transport.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SPINS      4000
#define BULK_LEAST (1u << 20)
#define BULK_KEPT  (32u << 20)

#define CUDA_ERROR_NOT_PERMITTED ((CUresult)800)

/* @after: of the last record. @expected: the count of tickets, if nobody else has posted since.
 * @is_refused: the thread is in a function that the driver calls. Its thread of the worker's begins
 * without a context. */
struct channel {
    struct channel_shared *shared;
    struct known_context context;
    uint64_t asked;
    uint64_t after, expected;
    uint8_t *bulk;
    size_t bulk_bytes;
    pid_t pid;
    bool is_refused;
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;

static void end_channel(void *data)
{
    struct channel *channel = data;

    if (channel->pid == getpid()) {
        if (channel->bulk)
            shared_end(channel->bulk);
        shared_end_channel(channel->shared);
    }
    free(channel);
}

static _Atomic bool has_key;

static void make_key(void)
{
    pthread_key_create(&key, end_channel);
    atomic_store(&has_key, true);
}

static struct channel *new_channel(void)
{
    struct channel *channel = calloc(1, sizeof(*channel));

    pthread_once(&once, make_key);
    if (!channel)
        return NULL;
    channel->shared = shared_new_channel();
    channel->pid = getpid();
    if (channel->shared && pthread_setspecific(key, channel) == 0)
        return channel;
    if (channel->shared)
        shared_end_channel(channel->shared);
    free(channel);
    return NULL;
}

/* NULL: it has none yet. */
static struct channel *find_channel(void)
{
    return atomic_load_explicit(&has_key, memory_order_acquire) ? pthread_getspecific(key) : NULL;
}

static struct channel *own_channel(void)
{
    struct channel *own = find_channel();

    return own ? own : new_channel();
}

/* A variable of the thread would make the library need the loader of glibc, which musl has not. */
struct known_context *exchange_context(void)
{
    struct channel *own = find_channel();

    return own ? &own->context : NULL;
}

void exchange_refuse(bool is_calling)
{
    struct channel *own = own_channel();

    if (own)
        own->is_refused = is_calling;
}

static bool has_answer(const struct channel *channel)
{
    return transport_has_answers(channel->shared, channel->asked);
}

/* False: the worker is gone. */
__attribute__((noinline)) static bool await_answer(struct channel *channel)
{
    for (int i = 0; i < SPINS; i++) {
        if (has_answer(channel))
            return true;
        channel_pause();
    }
    while (!has_answer(channel)) {
        connect_await(channel->shared, channel->asked);
        if (!has_answer(channel) && connect_is_dead())
            return has_answer(channel);
    }
    return true;
}

static bool grow_bulk(struct channel *channel, size_t bytes)
{
    size_t wanted = BULK_LEAST;

    if (bytes <= channel->bulk_bytes)
        return true;
    while (wanted < bytes)
        wanted *= 2;
    if (channel->bulk)
        shared_end(channel->bulk);
    channel->bulk = shared_new(wanted);
    channel->bulk_bytes = channel->bulk ? wanted : 0;
    return channel->bulk != NULL;
}

static void put_parts(uint8_t *to, const struct exchange *exchange)
{
    for (unsigned int i = 0; i < exchange->in_count; i++) {
        if (exchange->in[i].bytes)
            memcpy(to, exchange->in[i].at, exchange->in[i].bytes);
        to += signature_align(exchange->in[i].bytes);
    }
}

static void get_parts(const uint8_t *from, const struct exchange *exchange)
{
    size_t left = exchange->out_bytes;

    for (unsigned int i = 0; i < exchange->out_count; i++) {
        const struct part *part = &exchange->out[i];
        bool is_last = i + 1 == exchange->out_count;
        size_t bytes = is_last && exchange->is_short && part->bytes > left ? left : part->bytes;

        if (bytes > left)
            return;
        if (bytes)
            memcpy(part->at, from, bytes);
        from += signature_align(part->bytes);
        left -= signature_align(part->bytes) < left ? signature_align(part->bytes) : left;
    }
}

/* Of the program: how many calls were posted; in the lower 16 bits, how many threads have a ticket
 * whose record is not yet in their ring. */
static _Atomic uint64_t tickets;
#define TICKET       (1ull << 16)
#define NOT_EXPECTED UINT64_MAX

/* Room in the ring, which may be full of what was posted. NULL: the worker is gone. */
__attribute__((noinline)) static struct channel_record *await_room(struct channel *channel,
                                                                   size_t bytes)
{
    struct channel_record *record = NULL;

    for (unsigned int i = 1; !record; i++) {
        if (i % SPINS)
            channel_pause();
        else if (connect_is_dead())
            return NULL;
        else
            sched_yield();
        record = channel_reserve(channel->shared, bytes);
    }
    return record;
}

/* @before: the count before the ticket was taken, @old: as it was then. If nobody else has changed
 * it, the thread's next call comes after no other ones than this one. */
static void settle_posted(struct channel *channel, uint64_t before, uint64_t old)
{
    bool is_alone = atomic_fetch_sub(&tickets, 1) == old + TICKET + 1 && old == before;

    channel->expected = is_alone ? old + TICKET : NOT_EXPECTED;
}

static bool send_request(struct channel *channel, const struct exchange *exchange, bool is_bulk,
                         bool is_posted)
{
    size_t head = signature_align(exchange->head_bytes);
    size_t bytes = sizeof(struct channel_record) + head + (is_bulk ? 0 : exchange->in_room);
    uint64_t before = atomic_load(&tickets), old = 0;
    struct channel_record *record = channel_reserve(channel->shared, bytes);
    bool is_asleep;

    if (!record)
        record = await_room(channel, bytes);
    if (!record)
        return false;
    if (before != channel->expected)
        channel->after = before / TICKET;
    record->number = (uint16_t)exchange->number;
    record->flags = (is_posted ? 0 : RECORD_ANSWER) | (is_bulk ? RECORD_BULK : 0) |
                    (before % TICKET ? RECORD_UNSETTLED : 0);
    record->bulk = is_bulk ? (uintptr_t)channel->bulk : 0;
    record->after = channel->after;
    memcpy(record + 1, exchange->head, exchange->head_bytes);
    put_parts(is_bulk ? channel->bulk : (uint8_t *)(record + 1) + head, exchange);
    if (is_posted) {
        old = atomic_fetch_add(&tickets, TICKET + 1);
        record->ticket = old / TICKET + 1;
    } else {
        channel->asked++;
        channel->expected = before;
    }
    is_asleep = channel_publish(channel->shared, record);
    if (is_posted)
        settle_posted(channel, before, old);
    if (is_asleep)
        connect_wake(channel->shared);
    return true;
}

static CUresult take_answer(struct channel *channel, struct exchange *exchange, bool is_bulk)
{
    const struct channel_answer *answer = (const struct channel_answer *)channel->shared->answer;
    const uint8_t *parts = is_bulk ? channel->bulk : (const uint8_t *)(answer + 1);
    size_t most = is_bulk ? channel->bulk_bytes : CHANNEL_ANSWER_BYTES - sizeof(*answer);
    uint32_t result = answer->result & ~ANSWER_OUTPUT;

    exchange->has_output = answer->result & ANSWER_OUTPUT;
    exchange->extra = answer->extra;
    exchange->out_bytes = answer->bytes < most ? answer->bytes : most;
    if (result == CUDA_SUCCESS || !exchange->keeps_failed)
        get_parts(parts, exchange);
    return (CUresult)result;
}

/* The program wants to see each error at its call. */
static bool is_blocking(void)
{
    static _Atomic int known;

    if (!known) {
        const char *set = getenv("CUDA_LAUNCH_BLOCKING");

        known = set && *set == '1' ? 2 : 1;
    }
    return known == 2;
}

CUresult exchange_run(struct exchange *exchange)
{
    size_t in = exchange->in_room, out = exchange->out_room;
    size_t head = sizeof(struct channel_record) + signature_align(exchange->head_bytes);
    bool is_bulk = head + in > CHANNEL_RECORD_MOST - CHANNEL_ALIGN ||
                   out > CHANNEL_ANSWER_BYTES - sizeof(struct channel_answer);
    CUresult result = connect_usable();
    struct channel *channel;
    bool is_posted;

    if (result != CUDA_SUCCESS)
        return result;
    channel = own_channel();
    if (channel && channel->is_refused)
        return CUDA_ERROR_NOT_PERMITTED;
    if (!channel || (is_bulk && !grow_bulk(channel, in > out ? in : out)))
        return connect_is_dead() ? CUDA_ERROR_LAUNCH_FAILED : CUDA_ERROR_OUT_OF_MEMORY;
    is_posted = exchange->is_posted && !exchange->out_count && !is_bulk && !is_blocking();
    if (!send_request(channel, exchange, is_bulk, is_posted))
        return CUDA_ERROR_LAUNCH_FAILED;
    if (is_posted)
        return CUDA_SUCCESS;
    if (!await_answer(channel))
        return CUDA_ERROR_LAUNCH_FAILED;
    result = take_answer(channel, exchange, is_bulk);
    if (!has_answer(channel) && connect_is_dead())
        return CUDA_ERROR_LAUNCH_FAILED;
    if (is_bulk && channel->bulk_bytes > BULK_KEPT) {
        shared_end(channel->bulk);
        channel->bulk = NULL;
        channel->bulk_bytes = 0;
    }
    if (exchange->has_output && exchange->number != HAND_OUTPUT)
        output_print();
    return result;
}
