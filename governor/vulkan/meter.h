/* SPDX-License-Identifier: MIT */
/*
 * Work that is debited and measured: one submission of the driver's. Timestamps before and after it
 * are written by command buffers of ours that were recorded once; a fence says when they can be
 * read. Where a queue has no timestamps, or the work may not stand next to command buffers of ours,
 * the host's clock is read when the fence is seen. So it is where timestamps would be of that clock
 * too (the GPU is a processor, which would write them instead of working), unless the work waits
 * for semaphores: who knows then when it begins. Where it waits for others' work, it is one in some
 * that has them; the others are told by what is known of it, and of what it waits for.
 *
 * Used in the application's own calls on a queue, so for one queue by one thread at a time.
 */
#ifndef GOVERNOR_VULKAN_METER_H
#define GOVERNOR_VULKAN_METER_H

#include "device.h"

struct meter_work {
    uint64_t key;      /* of its command buffers, see estimate.h */
    uint32_t commands; /* how many */
    bool waits;        /* for semaphores */
    bool deferred;     /* waits for something that has not been signalled */
    bool wrap;         /* command buffers of ours may stand next to its own */
    VkFence fence;     /* the application's, or VK_NULL_HANDLE */
    uint64_t most_ns;  /* not charged more than this; 0: no bound */
};

struct meter_slot {
    struct meter_slot *next; /* in flight or idle */
    VkFence fence;
    VkFence ends_by; /* what its work is submitted with: @fence or the application's own */
    bool ended;      /* known, and @ends_by is not to be asked any more */
    /* NULL where the queue has no timestamps. */
    VkCommandBuffer begin, end;
    VkEvent begun;                  /* set by begin */
    const volatile uint64_t *ticks; /* of begin and end, there once the fence is signalled */

    struct meter_work work;
    uint64_t debit;
    uint64_t estimate_ns;
    uint64_t behind_ns;    /* of others' work, as far as is known, when it was submitted */
    uint64_t submitted_ns; /* just before, CLOCK_MONOTONIC */
    uint64_t seen_ns;      /* its end, by who was not to retire it; 0: by nobody */
    bool stuck;            /* counted in the queue's stuck */
    bool unbegun;          /* the member was told that it waits, and not yet that it has begun */
    uint64_t told_ns;      /* into its wait the member was last told that it is stalled; 0: never */
};

/* What work that starts now would cost; see estimate.h. */
uint64_t meter_estimate(struct layer_queue *queue, uint64_t key, uint32_t commands);

/*
 * Waits for the slice's turn and debits @work. NULL: there is no slot; submit unmeasured, the
 * estimate has been charged. Its work.wrap says whether to put begin and end around it.
 */
struct meter_slot *meter_begin(struct layer_queue *queue, const struct meter_work *work);

/* It was submitted, with the fence that it ends by. The slot belongs to the queue from here on. */
void meter_submitted(struct layer_queue *queue, struct meter_slot *slot);

/* It was not submitted. */
void meter_cancel(struct layer_queue *queue, struct meter_slot *slot);

/* Until all that was submitted has been accounted for. The driver must be idle. */
void meter_drain(struct layer_queue *queue);

void meter_queue_init(struct layer_queue *queue);

/* Drains, ends the thread, destroys what was created. */
void meter_queue_destroy(struct layer_queue *queue);

uint64_t meter_now_ns(void);

#endif /* GOVERNOR_VULKAN_METER_H */
