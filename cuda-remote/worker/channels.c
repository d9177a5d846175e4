// SPDX-License-Identifier: MIT
/* A thread for each channel, which has the driver's state of the program's thread: the current
 * context, a default stream of its own. */
#include "worker.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define CHANNELS_MOST 1024u
#define SPIN_NS    50000ull /* after the last record, before it sleeps */

struct worker_channel {
    struct worker_channel *next;
    struct channel_shared *shared;
    _Atomic bool is_ending;
    pthread_t thread;
    uint64_t head, done;
    struct scratch scratch;
    _Alignas(8) uint8_t record[CHANNEL_RECORD_MOST];
};

/* Of the thread that serves the socket alone. */
static struct worker_channel *channels;
static unsigned int channels_count;

static uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void answer(struct worker_channel *channel, const struct request *request, bool is_bulk)
{
    struct channel_answer *answer = (struct channel_answer *)channel->shared->answer;
    void *parts = is_bulk ? (void *)(uintptr_t)request->bulk : (void *)(answer + 1);

    *answer = (struct channel_answer){
        .result = request->result, .bytes = (uint32_t)request->out_bytes, .extra = request->extra};
    if (request->out_bytes)
        memcpy(parts, request->out, request->out_bytes);
    atomic_exchange(&channel->shared->worker.done, ++channel->done);
    if (atomic_load(&channel->shared->client.state) == CHANNEL_ASLEEP)
        channel_wake(&channel->shared->client.state);
}

/* False: the client broke the rules. */
static bool serve(struct worker_channel *channel)
{
    const struct channel_record *record = (const struct channel_record *)channel->record;
    struct request request = {.number = record->number,
                              .flags = record->flags,
                              .head = (const uint8_t *)(record + 1),
                              .head_bytes = record->bytes - sizeof(*record),
                              .bulk = record->bulk,
                              .scratch = &channel->scratch};
    bool is_bulk = record->flags & RECORD_BULK;

    scratch_empty(&channel->scratch);
    shared_hold();
    request.out_most = CHANNEL_ANSWER_BYTES - sizeof(struct channel_answer);
    request_carry_out(&request);
    if (is_bulk && !shared_contains(request.bulk, request.out_bytes))
        request.is_broken = true;
    if (!request.is_broken && (record->flags & RECORD_ANSWER))
        answer(channel, &request, is_bulk);
    shared_release();
    if (!(record->flags & RECORD_ANSWER) && request.result) {
        uint32_t none = 0;

        atomic_compare_exchange_strong(&channel->shared->worker.posted_error, &none, request.result);
    }
    return !request.is_broken;
}

/* Looks once more behind the mark; see channel_publish(). */
static void wait_for_record(struct worker_channel *channel)
{
    struct channel_shared *shared = channel->shared;
    uint64_t until = now_ns() + SPIN_NS;

    while (now_ns() < until)
        for (int i = 0; i < 64; i++) {
            if (atomic_load_explicit(&shared->client.tail, memory_order_relaxed) != channel->head)
                return;
            channel_pause();
        }
    atomic_exchange(&shared->worker.state, CHANNEL_ASLEEP);
    if (atomic_load(&shared->client.tail) == channel->head && !channel->is_ending)
        channel_sleep(&shared->worker.state, CHANNEL_ASLEEP, 0);
    atomic_store(&shared->worker.state, CHANNEL_AWAKE);
}

static void *run(void *data)
{
    struct worker_channel *channel = data;

    while (!channel->is_ending) {
        int taken = channel_take(channel->shared, &channel->head, channel->record);

        if (!taken) {
            wait_for_record(channel);
            continue;
        }
        atomic_store_explicit(&channel->shared->worker.head, channel->head, memory_order_release);
        if (taken < 0 || !serve(channel)) {
            worker_say("the program broke the rules of the protocol: it is dropped");
            _exit(1);
        }
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
        if (pthread_create(&channel->thread, NULL, run, channel) == 0) {
            channel->next = channels;
            channels = channel;
            channels_count++;
            return CONTROL_OK;
        }
    }
    free(channel);
    close(*fd);
    shared_end(address);
    return CONTROL_NO_MEMORY;
}

/* What it does now ends first. */
int channels_end(uint64_t address)
{
    struct worker_channel **at = &channels, *channel;

    while (*at && (uint64_t)(uintptr_t)(*at)->shared != address)
        at = &(*at)->next;
    channel = *at;
    if (!channel)
        return CONTROL_REFUSED;
    *at = channel->next;
    channels_count--;
    channel->is_ending = true;
    channel_wake(&channel->shared->worker.state);
    pthread_join(channel->thread, NULL);
    free(channel);
    return shared_end(address);
}
