// SPDX-License-Identifier: MIT
#include "waiter.h"

#include <signal.h>

#include "slot.h"

#define MS 1000000u

/* Work that is known to wait for a semaphore, or is not, has stalled when it hasn't begun after so
 * long. */
#define STALLED_DEFERRED_NS (1 * MS)
#define STALLED_NS          (3 * MS)
/* Then what comes behind it must not be held up either, see meter_begin(). And as often it is said
 * again: what was submitted since may wait for the same. */
#define STUCK_NS (20 * MS)
/* How often work that has not begun is looked at, and work that has. */
#define LOOK_NS    (1 * MS)
#define PATIENT_NS (1000 * MS)

/* Whether @slot's work is executing, as far as can be seen. */
static bool has_begun(struct layer_queue *queue, const struct meter_slot *slot)
{
    struct layer_device *device = queue->device;

    if (!slot->work.wrap)
        return !slot->work.deferred;
    return device->next.GetEventStatus(device->handle, slot->begun) == VK_EVENT_SET;
}

/* Looks at the oldest work, which has not ended @waited_ns after it became the oldest. */
static uint64_t look(struct layer_queue *queue, struct meter_slot *slot, uint64_t waited_ns)
{
    if (has_begun(queue, slot)) {
        pthread_mutex_lock(&queue->lock);
        if (slot->stuck) {
            slot->stuck = false;
            queue->stuck--;
        }
        pthread_mutex_unlock(&queue->lock);
        return PATIENT_NS;
    }
    if (waited_ns >= slot->told_ns + (slot->told_ns         ? STUCK_NS
                                      : slot->work.deferred ? STALLED_DEFERRED_NS
                                                            : STALLED_NS)) {
        slot->told_ns = waited_ns;
        governor_member_stalled(queue->device->member);
    }
    if (!slot->stuck && waited_ns >= STUCK_NS) {
        pthread_mutex_lock(&queue->lock);
        slot->stuck = true;
        queue->stuck++;
        pthread_mutex_unlock(&queue->lock);
    }
    return LOOK_NS;
}

/* From when it could begin until its end was seen. */
static uint64_t measure_host(struct layer_queue *queue, const struct meter_slot *slot, uint64_t now)
{
    uint64_t begin = slot->submitted_ns;

    if (queue->host_end_ns > begin)
        begin = queue->host_end_ns;
    return now - begin;
}

static uint64_t measure(struct layer_queue *queue, struct meter_slot *slot)
{
    uint64_t now = meter_now_ns();
    uint64_t ns = slot->work.wrap ? ticks_measure(&queue->ticks, slot->ticks[0], slot->ticks[1])
                                  : measure_host(queue, slot, now);

    queue->host_end_ns = now;
    return slot->work.most_ns && ns > slot->work.most_ns ? slot->work.most_ns : ns;
}

/* @slot's fence is signalled, or the device is lost. */
static void retire(struct layer_queue *queue, struct meter_slot *slot, VkResult waited)
{
    struct layer_device *device = queue->device;
    uint64_t ns = waited == VK_SUCCESS ? measure(queue, slot) : 0;
    bool reusable =
        waited == VK_SUCCESS &&
        device->next.ResetFences(device->handle, 1, &slot->fence) == VK_SUCCESS &&
        (!slot->begun || device->next.ResetEvent(device->handle, slot->begun) == VK_SUCCESS);

    if (waited == VK_SUCCESS)
        governor_member_end(device->member, slot->debit, ns);
    else
        governor_member_cancel(device->member, slot->debit);
    pthread_mutex_lock(&queue->lock);
    if (waited == VK_SUCCESS)
        estimate_learn(&queue->estimates, slot->work.key, slot->work.commands, ns);
    if (slot->stuck)
        queue->stuck--;
    queue->first = slot->next;
    if (!queue->first)
        queue->last = NULL;
    if (reusable)
        slot_give(queue, slot);
    if (!queue->first)
        pthread_cond_broadcast(&queue->drained);
    pthread_mutex_unlock(&queue->lock);
}

static void wait_for(struct layer_queue *queue, struct meter_slot *slot)
{
    struct layer_device *device = queue->device;
    uint64_t since = meter_now_ns();
    /* Not sooner than there may be something to tell: each look takes a turn on a processor. */
    uint64_t patience = slot->work.deferred ? LOOK_NS : STALLED_NS;
    VkResult result;

    while ((result = device->next.WaitForFences(device->handle, 1, &slot->fence, VK_TRUE,
                                                patience)) == VK_TIMEOUT)
        patience = look(queue, slot, meter_now_ns() - since);
    retire(queue, slot, result);
}

static void *waiter_main(void *data)
{
    struct layer_queue *queue = data;
    struct meter_slot *slot;

    do {
        pthread_mutex_lock(&queue->lock);
        while (!queue->first && !queue->stopping)
            pthread_cond_wait(&queue->submitted, &queue->lock);
        slot = queue->first;
        pthread_mutex_unlock(&queue->lock);
        if (slot)
            wait_for(queue, slot);
    } while (slot);
    return NULL;
}

bool waiter_start(struct layer_queue *queue)
{
    sigset_t all, before;

    if (queue->waiting)
        return true;
    /* Signals are for the application's own threads. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    queue->waiting = pthread_create(&queue->waiter, NULL, waiter_main, queue) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return queue->waiting;
}

void waiter_stop(struct layer_queue *queue)
{
    if (!queue->waiting)
        return;
    pthread_mutex_lock(&queue->lock);
    queue->stopping = true;
    pthread_cond_signal(&queue->submitted);
    pthread_mutex_unlock(&queue->lock);
    pthread_join(queue->waiter, NULL);
    queue->waiting = false;
}
