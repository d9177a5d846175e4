/* SPDX-License-Identifier: MIT */
/*
 * A driver to test the engine against: the test adds chains, answers are kept, guest memory is
 * plain memory. Everything that the uapi forbids (a second push, an unpublish of something
 * unpublished …) is an assertion.
 */
#ifndef FAKE_DRIVER_H
#define FAKE_DRIVER_H

#include "engine.h"

struct fake_range;

/**
 * struct fake_driver
 * @pin_result, @publish_result: errno to fail with, or 0
 * @pins, @published: keyed by offset
 * @picture_result, @scanout_result: the same
 * @display: the VMM's settings of the monitor; the test sets @info.num_scanouts
 * @picture: the engine's mapping, or NULL
 * @scanout: the engine's last setting
 * @reset_dones, @scanouts: counters
 * @next_event: 0, -EAGAIN: none, or an error of the exchange; NULL: there never is one
 * @export: a file of what is pinned, or a negative errno; NULL: EOPNOTSUPP
 * @saved: what the engine saved last, or NULL
 * @to_load: what it can load, or NULL
 */
struct fake_driver {
    struct vgpu_transport base;
    struct vgpu_engine_info info;
    GMutex lock; /* pushes come from other threads, too */
    GQueue chains[VGPU_NUM_QUEUES];
    GHashTable *answers;
    uint32_t last_token;
    uint64_t next_pin;
    int pin_result;
    int publish_result;
    int reset_result;
    int picture_result;
    int scanout_result;
    struct vgpu_display display;
    uint8_t *picture;
    struct vgpu_scanout scanout;
    unsigned int scanouts;
    GHashTable *pins;
    GHashTable *published;
    unsigned int reset_dones;
    char *failure;
    int (*next_event)(struct fake_driver *driver, struct vgpu_engine_event *event);
    int (*export)(struct fake_driver *driver, const struct fake_range *range);
    GByteArray *saved;
    GBytes *to_load;
};

/* @iova: where a pin begins in the guest */
struct fake_range {
    uint64_t offset;
    uint64_t iova;
    uint64_t size;
    void *addr;
};

void fake_driver_init(struct fake_driver *driver);
void fake_driver_clear(struct fake_driver *driver);

/* Puts a chain on a queue; returns its token. */
uint32_t fake_driver_send(struct fake_driver *driver, uint32_t queue, const void *request,
                          size_t size, size_t response_size);

/* The answer to a chain, owned by the driver; NULL while there is none. */
const GByteArray *fake_driver_answer(struct fake_driver *driver, uint32_t token);

/*
 * Lets the engine handle @budget chains of a queue at most. 1: there may be more; 0: it is empty;
 * ESTALE: the epoch is over.
 */
int queue_run(struct engine *engine, uint32_t queue, unsigned int budget);

/* Sleeps as an exchange does that has found nothing; false: it has, or is not to sleep. */
bool fake_driver_sleep(struct fake_driver *driver, struct vgpu_queue_exchange *x);

/* Chains without an answer, popped or not. */
unsigned int fake_driver_waiting(struct fake_driver *driver);

#endif /* FAKE_DRIVER_H */
