// SPDX-License-Identifier: MIT
/* A thread for each channel, which has the driver's state of the program's thread: the current
 * context, a default stream of its own. */
#include "hand.h"
#include "worker.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define CHANNELS_MOST 1024u
#define SPIN_NS       50000ull /* after the last record, before it sleeps */
#define BLOCKED_S     30       /* in the driver, before others go on */

struct worker_channel {
    struct worker_channel *next;
    struct channel_shared *shared;
    _Atomic bool is_ending;
    pthread_t thread;
    _Atomic uint64_t head;   /* others look at the ticket there */
    _Atomic uint64_t ticket; /* of the posted record that is carried out; 0: none */
    _Atomic time_t since;    /* seconds of a clock: when that began; 0: it has not */
    uint64_t seen;           /* all earlier tickets of others were carried out */
    uint64_t done;
    uint32_t posted_error; /* of the first posted call that failed, until it is told */
    struct scratch scratch;
    _Alignas(8) uint8_t record[CHANNEL_RECORD_MOST];
};

/* Changed by the thread that serves the socket alone. */
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static struct worker_channel *channels;
static unsigned int channels_count;

static uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* A look at it costs next to nothing. */
static time_t now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return now.tv_sec;
}

static void give_answer(struct worker_channel *channel, const struct request *request, bool is_bulk)
{
    struct channel_answer *answer = (struct channel_answer *)channel->shared->answer;
    void *parts = is_bulk ? (void *)(uintptr_t)request->bulk : (void *)(answer + 1);

    *answer = (struct channel_answer){
        .result = request->result | (output_is_waiting(request->result) ? ANSWER_OUTPUT : 0),
        .bytes = (uint32_t)request->out_bytes,
        .extra = request->extra};
    if (request->out_bytes)
        memcpy(parts, request->out, request->out_bytes);
    channel_answer(channel->shared, ++channel->done);
    if (channel_wake_client(channel->shared))
        control_tell_answered((uintptr_t)channel->shared);
}

/*
 * The earliest ticket that is left in another's channel; 0: none. Behind a record that is waited
 * for there is nothing, so the one that is carried out and the next one tell all. A record that is
 * taken has its ticket told first, and then its place left: so it is seen in one of them if these
 * are looked at the other way round. If its place was left meanwhile, what is there now may be
 * another's, and the record behind it may be the earliest: that is looked for again.
 */
static uint64_t earliest_of(struct worker_channel *other)
{
    for (;;) {
        uint64_t head = atomic_load(&other->head), tail = atomic_load(&other->shared->client.tail);
        uint64_t ticket = atomic_load(&other->ticket);
        const struct channel_record *record;

        if (ticket || head == tail)
            return ticket;
        record = (const struct channel_record *)(other->shared->ring + head % CHANNEL_RING_BYTES);
        if (!record->number && head % CHANNEL_RING_BYTES)
            record = (const struct channel_record *)other->shared->ring;
        ticket = *(const volatile uint64_t *)&record->ticket;
        channel_step();
        if (atomic_load(&other->head) == head)
            return ticket;
    }
}

/*
 * A posted call may wait in the door for its slice's turn, however long that takes, and what comes
 * after it must not overtake it. But one that waits in the driver, for room, may wait for what
 * another channel has behind it: natively its thread would still be in it, and nobody could have
 * come after it. The two cannot be told apart, so a program of that kind goes on very slowly.
 */
static bool is_in_the_way(struct worker_channel *other, uint64_t after)
{
    uint64_t earliest = earliest_of(other);
    time_t since = atomic_load(&other->since);

    return earliest && earliest <= after && !(since && now_s() > since + BLOCKED_S);
}

__attribute__((noinline)) static void await_others(struct worker_channel *own, uint64_t after,
                                                   bool is_settled)
{
    bool is_waiting = true;

    while (is_waiting) {
        is_waiting = false;
        pthread_rwlock_rdlock(&lock);
        for (struct worker_channel *at = channels; at && !is_waiting; at = at->next)
            is_waiting = at != own && is_in_the_way(at, after);
        pthread_rwlock_unlock(&lock);
        if (is_waiting)
            sched_yield();
    }
    /* A ticket whose record comes later must be looked for again. */
    if (is_settled)
        own->seen = after;
}

/* All but @used, which is filled as far as it is counted. */
static void begin_request(struct worker_channel *channel, const struct channel_record *record,
                          struct request *request)
{
    request->number = record->number;
    request->flags = record->flags;
    request->head = (const uint8_t *)(record + 1);
    request->head_bytes = record->bytes - sizeof(*record);
    request->bulk = record->bulk;
    request->result = CUDA_SUCCESS;
    request->extra = 0;
    request->out = NULL;
    request->out_most = CHANNEL_ANSWER_BYTES - sizeof(struct channel_answer);
    request->out_bytes = 0;
    request->is_broken = request->makes_objects = false;
    request->scratch = &channel->scratch;
    request->used_count = 0;
}

/*
 * False: the client broke the rules.
 *
 * HAND_CALLED comes after nothing: a callback that has returned lets its stream go on with what was
 * put into it before, and what was posted before it may be a call that waits for the stream. No
 * result depends on the order of the two: what another thread has posted meanwhile has its place
 * among the calls of its streams by its own ticket, whether the callback has returned or not.
 */
static bool serve_record(struct worker_channel *channel)
{
    const struct channel_record *record = (const struct channel_record *)channel->record;
    struct request request;
    bool is_bulk = record->flags & RECORD_BULK, is_waited = record->flags & RECORD_ANSWER;

    scratch_empty(&channel->scratch);
    begin_request(channel, record, &request);
    if (record->after > channel->seen && record->number != HAND_CALLED)
        await_others(channel, record->after, !(record->flags & RECORD_UNSETTLED));
    atomic_store(&channel->since, record->ticket ? now_s() : 0);
    request_carry_out(&request);
    atomic_store(&channel->since, 0);
    if (is_bulk && !request_uses(&request, request.bulk, request.out_bytes ? request.out_bytes : 1))
        request.is_broken = true;
    if (!is_waited && request.result && !channel->posted_error)
        channel->posted_error = request.result;
    /* Of an earlier call: as with the driver, the next one that can says it. */
    if (is_waited && channel->posted_error && !request.result && !request.makes_objects) {
        request.result = channel->posted_error;
        channel->posted_error = 0;
    }
    if (!request.is_broken && is_waited)
        give_answer(channel, &request, is_bulk);
    request_end(&request);
    return !request.is_broken;
}

__attribute__((noinline)) static void await_record(struct worker_channel *channel)
{
    struct channel_shared *shared = channel->shared;
    uint64_t until = now_ns() + SPIN_NS;

    while (now_ns() < until)
        for (int i = 0; i < 64; i++) {
            if (atomic_load_explicit(&shared->client.tail, memory_order_relaxed) != channel->head)
                return;
            channel_pause();
        }
    channel_await_record(shared, channel->head, &channel->is_ending);
}

/* What was posted is carried out, though the thread that did it has ended. */
static void *serve_channel(void *data)
{
    struct worker_channel *channel = data;
    uint64_t head = 0;

    for (;;) {
        int taken = channel_take(channel->shared, &head, channel->record);

        if (!taken && channel->is_ending)
            break;
        if (!taken) {
            /* Behind what only filled the end of the ring, too. */
            atomic_store(&channel->head, head);
            await_record(channel);
            continue;
        }
        /* Before its place in the ring is another's. */
        atomic_store(&channel->ticket, ((struct channel_record *)channel->record)->ticket);
        atomic_store(&channel->head, head);
        atomic_store_explicit(&channel->shared->worker.head, head, memory_order_release);
        if (taken < 0 || !serve_record(channel)) {
            worker_say("the program is dropped: it broke the rules of the protocol. If it is no "
                       "attack, its libcuda.so.1 is not of this version");
            _exit(1);
        }
        atomic_store(&channel->ticket, 0);
        channel_step();
    }
    scratch_empty(&channel->scratch);
    return NULL;
}

int channels_add(uint64_t address, int *fd)
{
    struct worker_channel *channel;
    int result;

    if (channels_count == CHANNELS_MOST)
        return CONTROL_NO_MEMORY;
    result = shared_add(address, sizeof(struct channel_shared), fd);
    if (result != CONTROL_OK)
        return result;
    channel = aligned_alloc(_Alignof(struct worker_channel), sizeof(*channel));
    if (channel) {
        memset(channel, 0, sizeof(*channel));
        channel->shared = (struct channel_shared *)(uintptr_t)address;
        channel->shared->magic = CHANNEL_MAGIC;
        if (pthread_create(&channel->thread, NULL, serve_channel, channel) == 0) {
            pthread_rwlock_wrlock(&lock);
            channel->next = channels;
            channels = channel;
            pthread_rwlock_unlock(&lock);
            channels_count++;
            return CONTROL_OK;
        }
    }
    free(channel);
    close(*fd);
    *fd = -1;
    shared_end(address);
    return CONTROL_NO_MEMORY;
}

/* Where it is in the list; behind the last one: there is none. */
static struct worker_channel **find_channel(uint64_t address)
{
    struct worker_channel **at = &channels;

    while (*at && (uint64_t)(uintptr_t)(*at)->shared != address)
        at = &(*at)->next;
    return at;
}

bool channels_has(uint64_t address)
{
    return *find_channel(address) != NULL;
}

/* What it does now ends first. */
int channels_end(uint64_t address)
{
    struct worker_channel **at = find_channel(address), *channel = *at;

    if (!channel)
        return CONTROL_REFUSED;
    channel->is_ending = true;
    channel_wake(&channel->shared->worker.state);
    pthread_join(channel->thread, NULL);
    pthread_rwlock_wrlock(&lock);
    *at = channel->next;
    pthread_rwlock_unlock(&lock);
    channels_count--;
    free(channel);
    return shared_end(address);
}
