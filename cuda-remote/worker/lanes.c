// SPDX-License-Identifier: MIT
/* A thread for each lane, which has the driver's state of the program's thread: the current
 * context, a default stream of its own. */
#include "worker.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LANES_MOST 1024u
#define SPIN_NS    50000ull /* after the last record, before it sleeps */

struct worker_lane {
    struct worker_lane *next;
    struct lane_shared *shared;
    _Atomic bool is_ending;
    pthread_t thread;
    uint64_t head, done;
    struct scratch scratch;
    _Alignas(8) uint8_t record[LANE_RECORD_MOST];
};

/* Of the thread that serves the socket alone. */
static struct worker_lane *lanes;
static unsigned int lanes_count;

static uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void answer(struct worker_lane *lane, const struct request *request, bool is_bulk)
{
    struct lane_answer *answer = (struct lane_answer *)lane->shared->answer;
    void *parts = is_bulk ? (void *)(uintptr_t)request->bulk : (void *)(answer + 1);

    *answer = (struct lane_answer){
        .result = request->result, .bytes = (uint32_t)request->out_bytes, .extra = request->extra};
    if (request->out_bytes)
        memcpy(parts, request->out, request->out_bytes);
    atomic_exchange(&lane->shared->worker.done, ++lane->done);
    if (atomic_load(&lane->shared->client.state) == LANE_ASLEEP)
        lane_wake(&lane->shared->client.state);
}

/* False: the client broke the rules. */
static bool serve(struct worker_lane *lane)
{
    const struct lane_record *record = (const struct lane_record *)lane->record;
    struct request request = {.number = record->number,
                              .flags = record->flags,
                              .head = (const uint8_t *)(record + 1),
                              .head_bytes = record->bytes - sizeof(*record),
                              .bulk = record->bulk,
                              .scratch = &lane->scratch};
    bool is_bulk = record->flags & RECORD_BULK;

    scratch_empty(&lane->scratch);
    shared_hold();
    request.out_most = LANE_ANSWER_BYTES - sizeof(struct lane_answer);
    request_carry_out(&request);
    if (is_bulk && !shared_contains(request.bulk, request.out_bytes))
        request.is_broken = true;
    if (!request.is_broken && (record->flags & RECORD_ANSWER))
        answer(lane, &request, is_bulk);
    shared_release();
    if (!(record->flags & RECORD_ANSWER) && request.result) {
        uint32_t none = 0;

        atomic_compare_exchange_strong(&lane->shared->worker.posted_error, &none, request.result);
    }
    return !request.is_broken;
}

/* Looks once more behind the mark; see lane_publish(). */
static void wait_for_record(struct worker_lane *lane)
{
    struct lane_shared *shared = lane->shared;
    uint64_t until = now_ns() + SPIN_NS;

    while (now_ns() < until)
        for (int i = 0; i < 64; i++) {
            if (atomic_load_explicit(&shared->client.tail, memory_order_relaxed) != lane->head)
                return;
            lane_pause();
        }
    atomic_exchange(&shared->worker.state, LANE_ASLEEP);
    if (atomic_load(&shared->client.tail) == lane->head && !lane->is_ending)
        lane_sleep(&shared->worker.state, LANE_ASLEEP, 0);
    atomic_store(&shared->worker.state, LANE_AWAKE);
}

static void *run(void *data)
{
    struct worker_lane *lane = data;

    while (!lane->is_ending) {
        int taken = lane_take(lane->shared, &lane->head, lane->record);

        if (!taken) {
            wait_for_record(lane);
            continue;
        }
        atomic_store_explicit(&lane->shared->worker.head, lane->head, memory_order_release);
        if (taken < 0 || !serve(lane)) {
            worker_say("the program broke the rules of the protocol: it is dropped");
            _exit(1);
        }
    }
    scratch_empty(&lane->scratch);
    return NULL;
}

int lanes_add(uint64_t address, int *fd)
{
    struct worker_lane *lane;
    int result;

    if (lanes_count == LANES_MOST)
        return CONTROL_NO_MEMORY;
    result = shared_add(address, sizeof(struct lane_shared), fd);
    if (result != CONTROL_OK)
        return result;
    lane = aligned_alloc(_Alignof(struct worker_lane), sizeof(*lane));
    if (lane) {
        memset(lane, 0, sizeof(*lane));
        lane->shared = (struct lane_shared *)(uintptr_t)address;
        lane->shared->magic = LANE_MAGIC;
        if (pthread_create(&lane->thread, NULL, run, lane) == 0) {
            lane->next = lanes;
            lanes = lane;
            lanes_count++;
            return CONTROL_OK;
        }
    }
    free(lane);
    close(*fd);
    shared_end(address);
    return CONTROL_NO_MEMORY;
}

/* What it does now ends first. */
int lanes_end(uint64_t address)
{
    struct worker_lane **at = &lanes, *lane;

    while (*at && (uint64_t)(uintptr_t)(*at)->shared != address)
        at = &(*at)->next;
    lane = *at;
    if (!lane)
        return CONTROL_REFUSED;
    *at = lane->next;
    lanes_count--;
    lane->is_ending = true;
    lane_wake(&lane->shared->worker.state);
    pthread_join(lane->thread, NULL);
    free(lane);
    return shared_end(address);
}
