// SPDX-License-Identifier: MIT
#include "retire.h"

#include "calibrate.h"
#include "slot.h"

/* After this many ends in a row that the application came for one by one, it is expected again. */
#define VISITS_EXPECTED 8
/* The end of known work is seen later than it is, by so much as was learnt, within these bounds. */
#define NOTICE_LEAST_NS 150000u
#define NOTICE_MOST_NS  1000000u
/* Beyond the estimate; then the waiter takes the fence at its next look. */
#define LATE_NS 4000000u

/* When it could begin, by the host's clock. */
static uint64_t begin_of(const struct layer_queue *queue, const struct meter_slot *slot)
{
    return slot->lane.submitted_at > queue->host_end_ns ? slot->lane.submitted_at
                                                        : queue->host_end_ns;
}

/* How much later than the end it is usually seen. */
static uint64_t notice_of(const struct layer_queue *queue)
{
    uint64_t ns = queue->notice_ns + 2 * queue->notice_deviation_ns;

    return ns < NOTICE_LEAST_NS ? NOTICE_LEAST_NS : ns > NOTICE_MOST_NS ? NOTICE_MOST_NS : ns;
}

static uint64_t moved_mean(uint64_t mean, uint64_t to)
{
    return to > mean ? mean + (to - mean) / 8 : mean - (mean - to) / 8;
}

/* The GPU took @ns, and by the host's clock it were @host_ns. */
static void learn_notice(struct layer_queue *queue, uint64_t ns, uint64_t host_ns)
{
    uint64_t late = host_ns > ns ? host_ns - ns : 0, error;

    late = late < NOTICE_MOST_NS ? late : NOTICE_MOST_NS;
    error = late > queue->notice_ns ? late - queue->notice_ns : queue->notice_ns - late;
    queue->notice_ns = moved_mean(queue->notice_ns, late);
    queue->notice_deviation_ns = moved_mean(queue->notice_deviation_ns, error);
}

/* Of known work: what it took before, unless it clearly took longer. */
static uint64_t by_estimate(const struct layer_queue *queue, const struct meter_slot *slot,
                            uint64_t elapsed_ns)
{
    if (elapsed_ns > slot->lane.estimate_ns + notice_of(queue))
        return elapsed_ns;
    return elapsed_ns < slot->lane.estimate_ns ? elapsed_ns : slot->lane.estimate_ns;
}

static uint64_t measure_slot(struct layer_queue *queue, struct meter_slot *slot, uint64_t end)
{
    uint64_t host_ns = lane_own(&slot->lane, end - begin_of(queue, slot), end), ns = host_ns;

    if (slot->work.wrap)
        ns = ticks_measure(&queue->ticks, slot->ticks[0], slot->ticks[1]);
    if (slot->work.wrap && !slot->work.waits && !slot->work.deferred)
        learn_notice(queue, ns, host_ns);
    if (slot->work.known)
        ns = by_estimate(queue, slot, ns);
    queue->host_end_ns = end;
    return slot->work.most_ns && ns > slot->work.most_ns ? slot->work.most_ns : ns;
}

static bool make_reusable(struct layer_device *device, struct meter_slot *slot)
{
    return (slot->ends_by != slot->fence ||
            device->next.ResetFences(device->handle, 1, &slot->fence) == VK_SUCCESS) &&
           (!slot->work.wrap || device->next.ResetEvent(device->handle, slot->begun) == VK_SUCCESS);
}

void retire_unstick(struct layer_queue *queue, struct meter_slot *slot)
{
    queue->stuck -= slot->lane.stuck;
    slot->lane.stuck = false;
}

static void take_oldest(struct layer_queue *queue)
{
    retire_unstick(queue, queue->first);
    queue->first = queue->first->next;
    if (queue->first)
        return;
    queue->last = NULL;
    pthread_cond_broadcast(&queue->drained);
}

/* Work that was measured has ended. */
static void settle_slot(struct layer_queue *queue, struct meter_slot *slot)
{
    uint64_t seen = slot->seen_ns ? slot->seen_ns : clock_now();
    uint64_t ns = measure_slot(queue, slot, seen), end = 0;
    bool alone = !slot->lane.behind_ns;

    if (slot->work.wrap && calibrate_time(queue, slot->ticks[1], &end)) {
        end = end < seen ? end : seen;
        /* What others ran meanwhile is in it. */
        alone |= end - ns >= slot->lane.submitted_at + slot->lane.behind_ns;
    } else {
        alone |= slot->work.wrap;
    }
    lane_end(queue->device->member, &slot->lane, ns, end);
    if (alone && !slot->work.known && lane_teaches(queue->device->member, &slot->lane))
        learn_add(&queue->learned, slot->work.key, slot->work.commands, ns);
}

void retire_oldest(struct layer_queue *queue, VkResult waited)
{
    struct layer_device *device = queue->device;
    struct meter_slot *slot = queue->first;

    if (slot->marker)
        governor_member_marked(device->member, queue->class, slot->marker, 0);
    else if (waited == VK_SUCCESS)
        settle_slot(queue, slot);
    else
        governor_member_cancel(device->member, slot->lane.debit);
    take_oldest(queue);
    if (waited == VK_SUCCESS && make_reusable(device, slot))
        slot_give(queue, slot);
}

/*
 * The number of slots that the waiter retired since the last visit shows whether the application
 * comes for each.
 */
static void learn_visit(struct layer_queue *queue, bool seen)
{
    if (queue->unvisited > 1)
        queue->visits = 0;
    else if ((seen || queue->unvisited) && queue->visits < VISITS_EXPECTED)
        queue->visits++;
    queue->unvisited = 0;
}

VkResult retire_status(const struct layer_queue *queue)
{
    struct layer_device *device = queue->device;

    return queue->first->ended ? VK_SUCCESS
                               : device->next.GetFenceStatus(device->handle, queue->first->ends_by);
}

static bool note_seen(struct meter_slot *slot)
{
    if (slot->seen_ns)
        return false;
    slot->seen_ns = clock_now();
    return true;
}

/*
 * Under the lock. True if there was something. The waiter retires the one that it waits for, but it
 * may be woken later than the application.
 */
static bool retire_ended(struct layer_queue *queue)
{
    bool any = false;

    while (queue->first && retire_status(queue) == VK_SUCCESS) {
        bool marker = queue->first->marker != 0;

        if (queue->watched) {
            retire_unstick(queue, queue->first);
            return (note_seen(queue->first) && !marker) || any;
        }
        retire_oldest(queue, VK_SUCCESS);
        any |= !marker;
    }
    return any;
}

void retire_seen(struct layer_queue *queue)
{
    bool wake;

    if (!atomic_load_explicit(&queue->waiting, memory_order_relaxed))
        return;
    pthread_mutex_lock(&queue->lock);
    learn_visit(queue, retire_ended(queue));
    wake = queue->first && !queue->watched && !retire_is_expected(queue, queue->first);
    pthread_mutex_unlock(&queue->lock);
    if (wake)
        pthread_cond_signal(&queue->submitted);
}

bool retire_unexpected(struct layer_queue *queue)
{
    if (!queue->first)
        return false;
    retire_ended(queue);
    if (!queue->first)
        return false;
    queue->visits = 0;
    return !queue->watched;
}

void retire_fence(struct layer_queue *queue, VkFence fence)
{
    if (!atomic_load_explicit(&queue->waiting, memory_order_relaxed))
        return;
    pthread_mutex_lock(&queue->lock);
    for (struct meter_slot *slot = queue->first; slot; slot = slot->next)
        slot->ended |= slot->ends_by == fence;
    retire_ended(queue);
    pthread_mutex_unlock(&queue->lock);
}

bool retire_is_expected(const struct layer_queue *queue, const struct meter_slot *slot)
{
    /* Whether to check if waiting work has begun. */
    return queue->visits == VISITS_EXPECTED &&
           (!slot || (!slot->marker && !slot->work.waits && !slot->work.deferred));
}

bool retire_may_borrow(struct layer_queue *queue, const struct meter_slot *slot)
{
    bool may;

    if (!slot->work.fence || queue->device->shares_fences)
        return false;
    pthread_mutex_lock(&queue->lock);
    may = retire_is_expected(queue, slot);
    pthread_mutex_unlock(&queue->lock);
    return may;
}

uint64_t retire_due_ns(const struct layer_queue *queue)
{
    return begin_of(queue, queue->first) + queue->first->lane.estimate_ns + LATE_NS;
}
