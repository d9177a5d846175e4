// SPDX-License-Identifier: MIT
/* A lane for each thread of the program, and requests that are waited for. */
#include "remote.h"

#include "lanes.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SPINS      4000
#define LOOK_AFTER 50u /* milliseconds after which a worker that does not answer is looked at */
#define BULK_LEAST (1u << 20)
#define BULK_KEPT  (32u << 20)

struct lane {
    struct lane_shared *shared;
    uint64_t asked;
    uint8_t *bulk;
    size_t bulk_bytes;
    pid_t pid;
};

static _Thread_local struct lane *own;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;

static void end_lane(void *data)
{
    struct lane *lane = data;

    if (lane->pid == getpid()) {
        if (lane->bulk)
            shared_end(lane->bulk);
        shared_end_lane(lane->shared);
    }
    free(lane);
}

static void make_key(void)
{
    pthread_key_create(&key, end_lane);
}

static struct lane *new_lane(void)
{
    struct lane *lane = calloc(1, sizeof(*lane));

    pthread_once(&once, make_key);
    if (!lane)
        return NULL;
    lane->shared = shared_new_lane();
    lane->pid = getpid();
    if (lane->shared && pthread_setspecific(key, lane) == 0)
        return lane;
    if (lane->shared)
        shared_end_lane(lane->shared);
    free(lane);
    return NULL;
}

static struct lane *own_lane(void)
{
    if (!own)
        own = new_lane();
    return own;
}

static bool has_answer(const struct lane *lane)
{
    return atomic_load_explicit(&lane->shared->worker.done, memory_order_acquire) >= lane->asked;
}

/* False: the worker is gone. */
static bool await(struct lane *lane)
{
    struct lane_shared *shared = lane->shared;

    for (int i = 0; i < SPINS; i++) {
        if (has_answer(lane))
            return true;
        lane_pause();
    }
    while (!has_answer(lane)) {
        atomic_exchange(&shared->client.state, LANE_ASLEEP);
        if (!has_answer(lane))
            lane_sleep(&shared->client.state, LANE_ASLEEP, LOOK_AFTER);
        atomic_store(&shared->client.state, LANE_AWAKE);
        if (!has_answer(lane) && connect_is_dead())
            return has_answer(lane);
    }
    return true;
}

static bool grow_bulk(struct lane *lane, size_t bytes)
{
    size_t wanted = BULK_LEAST;

    if (bytes <= lane->bulk_bytes)
        return true;
    while (wanted < bytes)
        wanted *= 2;
    if (lane->bulk)
        shared_end(lane->bulk);
    lane->bulk = shared_new(wanted);
    lane->bulk_bytes = lane->bulk ? wanted : 0;
    return lane->bulk != NULL;
}

static void shrink_bulk(struct lane *lane)
{
    if (lane->bulk_bytes <= BULK_KEPT)
        return;
    shared_end(lane->bulk);
    lane->bulk = NULL;
    lane->bulk_bytes = 0;
}

static size_t sum_of(const struct part *parts, unsigned int count)
{
    size_t sum = 0;

    for (unsigned int i = 0; i < count; i++)
        sum += signature_align(parts[i].bytes);
    return sum;
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

/* There is always room: nothing is under way in this lane while a request is made. */
static void send_request(struct lane *lane, const struct exchange *exchange, size_t in,
                         bool is_bulk)
{
    size_t head = signature_align(exchange->head_bytes);
    struct lane_record *record =
        lane_reserve(lane->shared, sizeof(*record) + head + (is_bulk ? 0 : in));

    record->number = (uint16_t)exchange->number;
    record->flags = RECORD_ANSWER | (is_bulk ? RECORD_BULK : 0);
    record->bulk = is_bulk ? (uintptr_t)lane->bulk : 0;
    memcpy(record + 1, exchange->head, exchange->head_bytes);
    put_parts(is_bulk ? lane->bulk : (uint8_t *)(record + 1) + head, exchange);
    lane->asked++;
    if (lane_publish(lane->shared, record))
        lane_wake(&lane->shared->worker.state);
}

static CUresult take_answer(struct lane *lane, struct exchange *exchange, bool is_bulk)
{
    const struct lane_answer *answer = (const struct lane_answer *)lane->shared->answer;
    const uint8_t *parts = is_bulk ? lane->bulk : (const uint8_t *)(answer + 1);
    size_t most = is_bulk ? lane->bulk_bytes : LANE_ANSWER_BYTES - sizeof(*answer);
    uint32_t result = answer->result;

    exchange->extra = answer->extra;
    exchange->out_bytes = answer->bytes < most ? answer->bytes : most;
    if (result == CUDA_SUCCESS || !exchange->keeps_failed)
        get_parts(parts, exchange);
    return (CUresult)result;
}

CUresult exchange(struct exchange *exchange)
{
    size_t in = sum_of(exchange->in, exchange->in_count);
    size_t out = sum_of(exchange->out, exchange->out_count);
    size_t head = sizeof(struct lane_record) + signature_align(exchange->head_bytes);
    bool is_bulk = head + in > LANE_RECORD_MOST - LANE_ALIGN ||
                   out > LANE_ANSWER_BYTES - sizeof(struct lane_answer);
    CUresult result = connect_state();
    struct lane *lane;

    if (result != CUDA_SUCCESS)
        return result;
    if (connect_is_dead_known())
        return CUDA_ERROR_LAUNCH_FAILED;
    lane = own_lane();
    if (!lane || (is_bulk && !grow_bulk(lane, in > out ? in : out)))
        return connect_is_dead() ? CUDA_ERROR_LAUNCH_FAILED : CUDA_ERROR_OUT_OF_MEMORY;
    send_request(lane, exchange, in, is_bulk);
    if (!await(lane))
        return CUDA_ERROR_LAUNCH_FAILED;
    result = take_answer(lane, exchange, is_bulk);
    if (is_bulk)
        shrink_bulk(lane);
    return result;
}
