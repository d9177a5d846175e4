// SPDX-License-Identifier: MIT
/* What is before a submission: whether it is measured, and if not, a marker now and then. */
#include "slot.h"
#include "submit.h"

enum governor_class submit_class(struct layer_device *device, VkQueue handle)
{
    const struct layer_queue *queue = device_queue(device, handle);

    return queue ? queue->class : device->class;
}

/*
 * An empty submission with a fence, before the application's: when it is signalled, all that was
 * submitted to the queue so far has ended.
 */
static void place_marker(struct layer_queue *queue)
{
    struct layer_device *device = queue->device;
    uint64_t marker = governor_member_mark(device->member, queue->class, 0, NULL, NULL);
    struct meter_slot *slot;

    pthread_mutex_lock(&queue->lock);
    slot = marker ? slot_take(queue) : NULL;
    pthread_mutex_unlock(&queue->lock);
    if (slot && device->next.QueueSubmit(queue->handle, 0, NULL, slot->fence) == VK_SUCCESS) {
        meter_marker(queue, slot, marker);
        return;
    }
    if (slot) {
        pthread_mutex_lock(&queue->lock);
        slot_give(queue, slot);
        pthread_mutex_unlock(&queue->lock);
    }
    if (marker)
        governor_member_unmarked(device->member, queue->class, marker);
}

struct layer_queue *submit_not_free(struct layer_device *device, VkQueue handle, uint32_t count,
                                    enum governor_pass pass)
{
    struct layer_queue *queue = device_queue(device, handle);

    if (pass == GOVERNOR_PASS_MARK && queue) {
        place_marker(queue);
        if (!governor_member_class_is_metered(device->member, queue->class))
            return NULL;
    }
    if (pass == GOVERNOR_PASS_METERED && (!queue || !count))
        governor_member_class_count(device->member, queue ? queue->class : device->class);
    return count ? queue : NULL;
}
