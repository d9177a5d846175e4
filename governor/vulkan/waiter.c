// SPDX-License-Identifier: MIT
#include "waiter.h"

#include <signal.h>

#include "retire.h"

/* How often to look at work that has begun. */
#define PATIENT_NS (1 * NS_PER_S)
/* How often to check whether the application comes for its work. */
#define LEFT_NS (40 * NS_PER_MS)

/* Whether @slot's work is executing, as far as can be seen. */
static bool has_begun(struct layer_queue *queue, const struct meter_slot *slot)
{
    struct layer_device *device = queue->device;

    if (!slot->work.wrap)
        return !slot->work.deferred;
    return device->next.GetEventStatus(device->handle, slot->begun) == VK_EVENT_SET;
}

/* Looks at the oldest work, which has not ended @waited_ns after it became the oldest. */
static uint64_t look_at_oldest(struct layer_queue *queue, struct meter_slot *slot,
                               uint64_t waited_ns)
{
    bool tell, was_stuck;

    if (has_begun(queue, slot)) {
        pthread_mutex_lock(&queue->lock);
        retire_unstick(queue, slot);
        /* Whoever ends the work ends the debit that replaces the first. */
        lane_begun(queue->device->member, &slot->lane);
        pthread_mutex_unlock(&queue->lock);
        return PATIENT_NS;
    }
    pthread_mutex_lock(&queue->lock);
    was_stuck = slot->lane.stuck;
    tell = lane_waits(&slot->lane, waited_ns, false);
    /* The application may have seen its end meanwhile. */
    slot->lane.stuck &= was_stuck || !slot->seen_ns;
    queue->stuck += slot->lane.stuck && !was_stuck;
    pthread_mutex_unlock(&queue->lock);
    if (tell)
        governor_member_class_stalled(queue->device->member, queue->class);
    return LANE_LOOK_NS;
}

/* Until @ns, or until something was submitted that cannot be left. Under the queue's lock. */
static void sleep_until(struct layer_queue *queue, uint64_t ns)
{
    struct timespec until = {.tv_sec = (time_t)(ns / NS_PER_S), .tv_nsec = (long)(ns % NS_PER_S)};

    queue->left = true;
    pthread_cond_timedwait(&queue->submitted, &queue->lock, &until);
    queue->left = false;
}

/* The oldest work ends by the application's fence, which may be reset while the lock is free. */
static void look_at_borrowed(struct layer_queue *queue)
{
    VkResult status = retire_status(queue);

    if (status == VK_NOT_READY) {
        sleep_until(queue, clock_now() + LANE_LOOK_NS);
        return;
    }
    queue->unvisited++;
    retire_oldest(queue, status);
}

/* Waits for the oldest work's end. Under the queue's lock, which is released meanwhile. */
static void watch_oldest(struct layer_queue *queue)
{
    struct layer_device *device = queue->device;
    struct meter_slot *slot = queue->first;
    uint64_t since = clock_now();
    /* Not sooner than there may be something to report: each look takes a turn on a processor. */
    uint64_t patience = slot->work.deferred ? LANE_LOOK_NS : LANE_STALLED_NS;
    VkResult result;

    queue->watched = true;
    pthread_mutex_unlock(&queue->lock);
    while ((result = device->next.WaitForFences(device->handle, 1, &slot->fence, VK_TRUE,
                                                patience)) == VK_TIMEOUT)
        patience = look_at_oldest(queue, slot, clock_now() - since);
    pthread_mutex_lock(&queue->lock);
    queue->watched = false;
    queue->unvisited += !slot->seen_ns && !slot->marker;
    retire_oldest(queue, result);
}

/*
 * Leaves the work to the application, and checks now and then whether it comes for it. Waking for
 * each submission would cost as much as waiting for it.
 */
static void leave_queue(struct layer_queue *queue)
{
    uint64_t now = clock_now();
    bool none_since = queue->host_end_ns == queue->left_at_ns;

    queue->left_at_ns = queue->host_end_ns;
    if (queue->first && now >= retire_due_ns(queue))
        queue->visits = 0;
    else if (queue->first || !none_since)
        sleep_until(queue, now + LEFT_NS);
    else
        pthread_cond_wait(&queue->submitted, &queue->lock);
}

static void *waiter_main(void *data)
{
    struct layer_queue *queue = data;

    pthread_mutex_lock(&queue->lock);
    while (queue->first || !queue->stopping) {
        if (retire_is_expected(queue, queue->first))
            leave_queue(queue);
        else if (!queue->first)
            pthread_cond_wait(&queue->submitted, &queue->lock);
        else if (queue->first->ends_by != queue->first->fence)
            look_at_borrowed(queue);
        else
            watch_oldest(queue);
    }
    pthread_mutex_unlock(&queue->lock);
    return NULL;
}

static bool start_thread(struct layer_queue *queue)
{
    sigset_t all, before;
    bool started;

    /* Signals belong to the application's own threads. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    started = pthread_create(&queue->waiter, NULL, waiter_main, queue) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}

bool waiter_start(struct layer_queue *queue)
{
    bool started = atomic_load_explicit(&queue->waiting, memory_order_relaxed);

    if (started)
        return true;
    /* Several threads may submit here at once: VK_KHR_internally_synchronized_queues. */
    pthread_mutex_lock(&queue->lock);
    started = queue->waiting || start_thread(queue);
    atomic_store(&queue->waiting, started);
    pthread_mutex_unlock(&queue->lock);
    return started;
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
