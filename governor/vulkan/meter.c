// SPDX-License-Identifier: MIT
#include "meter.h"

#include "retire.h"
#include "slot.h"
#include "waiter.h"

uint64_t meter_estimate(struct layer_queue *queue, uint64_t key, uint32_t commands)
{
    uint64_t ns;

    pthread_mutex_lock(&queue->lock);
    ns = learn_estimate(&queue->learned, key, commands);
    pthread_mutex_unlock(&queue->lock);
    return ns;
}

/* Whether the earlier measurements of its work are enough. */
static bool is_known(struct layer_queue *queue, const struct meter_slot *slot)
{
    bool stands_in;

    pthread_mutex_lock(&queue->lock);
    stands_in = learn_stands_in(&queue->learned, slot->work.key);
    pthread_mutex_unlock(&queue->lock);
    return stands_in;
}

/*
 * By the GPU's own timestamps: command buffers of ours around it cost the processor and the GPU
 * time, so of known work only one in some has them. If the host's clock is as good, only work
 * behind others' has, because that clock cannot separate the two.
 */
static void choose_clock(struct layer_queue *queue, struct meter_slot *slot)
{
    struct meter_work *work = &slot->work;
    bool host = queue->device->timed_by_host;

    work->known = false;
    work->wrap &= slot->begin != VK_NULL_HANDLE;
    if (!work->wrap || work->waits || work->deferred)
        return;
    if (host && !slot->lane.behind_ns) {
        work->wrap = false;
        return;
    }
    work->known = is_known(queue, slot);
    work->wrap = !work->known;
    /* As ever: the host's clock, without others' part. */
    work->known &= !host;
}

/* Of the device's other queues. */
static void expect_none(struct layer_queue *queue)
{
    struct layer_device *device = queue->device;

    for (uint32_t i = 0; i < device->queue_count; i++) {
        struct layer_queue *other = &device->queues[i];
        bool wake;

        if (other == queue || !atomic_load_explicit(&other->waiting, memory_order_relaxed))
            continue;
        pthread_mutex_lock(&other->lock);
        wake = retire_unexpected(other);
        pthread_mutex_unlock(&other->lock);
        if (wake)
            pthread_cond_signal(&other->submitted);
    }
}

static bool is_behind(void *data)
{
    struct layer_queue *queue = data;
    bool behind;

    pthread_mutex_lock(&queue->lock);
    behind = queue->first != NULL;
    pthread_mutex_unlock(&queue->lock);
    return behind;
}

#define SLOT_TRIES   1000
#define SLOT_WAIT_NS 1000000

/*
 * An idle slot. If too many are in flight, or there is no memory, it waits for a second at most: no
 * work runs without. Under the queue's lock, which is released meanwhile.
 */
static struct meter_slot *take_slot(struct layer_queue *queue)
{
    const struct timespec moment = {.tv_nsec = SLOT_WAIT_NS};
    struct meter_slot *slot = slot_take(queue);

    for (unsigned i = 0; !slot && i < SLOT_TRIES; i++) {
        pthread_mutex_unlock(&queue->lock);
        nanosleep(&moment, NULL);
        pthread_mutex_lock(&queue->lock);
        slot = slot_take(queue);
    }
    return slot;
}

/* All that needs the queue's lock before the turn, because each time costs as much as the rest. */
static struct meter_slot *prepare_slot(struct layer_queue *queue, const struct meter_work *work,
                                       struct governor_work *asked)
{
    struct meter_slot *slot;
    bool wake;

    pthread_mutex_lock(&queue->lock);
    wake = retire_unexpected(queue);
    slot = take_slot(queue);
    asked->estimate_ns = learn_estimate(&queue->learned, work->key, work->commands);
    /*
     * This cannot begin behind work that cannot begin: the thread that would signal may be this
     * one.
     */
    asked->deferred = work->deferred || queue->stuck > 0;
    asked->behind = queue->first != NULL;
    pthread_mutex_unlock(&queue->lock);
    if (wake)
        pthread_cond_signal(&queue->submitted);
    return slot;
}

struct meter_slot *meter_begin(struct layer_queue *queue, const struct meter_work *work)
{
    struct governor_work asked = {
        .class = queue->class, .queue = queue->number, .still_behind = is_behind, .data = queue};
    struct meter_slot *slot;

    expect_none(queue);
    slot = prepare_slot(queue, work, &asked);
    if (!slot)
        return NULL;
    lane_begin(queue->device->member, &slot->lane, &asked);
    slot->marker = 0;
    slot->work = *work;
    slot->work.deferred = asked.deferred;
    choose_clock(queue, slot);
    slot->ends_by = retire_may_borrow(queue, slot) ? work->fence : slot->fence;
    slot->ended = false;
    slot->seen_ns = 0;
    /* Work that is only behind others' waits is not waited for once those have ended. */
    slot->lane.stuck = work->deferred;
    slot->lane.submitted_at = clock_now();
    return slot;
}

void meter_marker(struct layer_queue *queue, struct meter_slot *slot, uint64_t marker)
{
    slot->marker = marker;
    slot->work = (struct meter_work){0};
    slot->ends_by = slot->fence;
    slot->ended = false;
    slot->seen_ns = 0;
    slot->lane = (struct lane_work){.submitted_at = clock_now()};
    meter_submitted(queue, slot);
}

/* Nobody waits for its fence: it is not reused. */
static void give_up(struct layer_queue *queue, const struct meter_slot *slot)
{
    GovernorMember *member = queue->device->member;

    if (slot->marker)
        governor_member_marked(member, queue->class, slot->marker, 0);
    else
        lane_end(member, &slot->lane, slot->lane.estimate_ns, 0);
}

void meter_submitted(struct layer_queue *queue, struct meter_slot *slot)
{
    bool wake;

    if (!waiter_start(queue)) {
        give_up(queue, slot);
        return;
    }
    pthread_mutex_lock(&queue->lock);
    slot->next = NULL;
    if (queue->last)
        queue->last->next = slot;
    else
        queue->first = slot;
    queue->last = slot;
    queue->stuck += slot->lane.stuck;
    wake = !queue->watched && !(queue->left && retire_is_expected(queue, queue->first));
    pthread_mutex_unlock(&queue->lock);
    /* Not earlier: if the waiter preempts the lock's holder, both have a turn for nothing. */
    if (wake)
        pthread_cond_signal(&queue->submitted);
}

void meter_cancel(struct layer_queue *queue, struct meter_slot *slot)
{
    governor_member_cancel(queue->device->member, slot->lane.debit);
    pthread_mutex_lock(&queue->lock);
    slot_give(queue, slot);
    pthread_mutex_unlock(&queue->lock);
}

void meter_drain(struct layer_queue *queue)
{
    retire_seen(queue);
    pthread_mutex_lock(&queue->lock);
    while (queue->first)
        pthread_cond_wait(&queue->drained, &queue->lock);
    pthread_mutex_unlock(&queue->lock);
}

void meter_queue_init(struct layer_queue *queue)
{
    pthread_condattr_t monotonic;

    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&queue->lock, NULL);
    queue->learned.random = clock_now() ^ (uintptr_t)queue;
    pthread_cond_init(&queue->submitted, &monotonic);
    pthread_cond_init(&queue->drained, NULL);
    pthread_condattr_destroy(&monotonic);
}

void meter_queue_destroy(struct layer_queue *queue)
{
    meter_drain(queue);
    waiter_stop(queue);
    slot_destroy_all(queue);
    pthread_cond_destroy(&queue->drained);
    pthread_cond_destroy(&queue->submitted);
    pthread_mutex_destroy(&queue->lock);
}
