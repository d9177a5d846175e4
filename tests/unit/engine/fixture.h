/* SPDX-License-Identifier: MIT */
/* An engine between a fake driver and a fake virglrenderer, and helpers to talk to it. */
#ifndef ENGINE_FIXTURE_H
#define ENGINE_FIXTURE_H

#include "engine.h"
#include "fake_driver.h"
#include "fake_virgl.h"

#define ANSWER_ROOM 4096u

struct fixture {
    struct fake_driver driver;
    struct engine engine;
};

void fixture_set_up(struct fixture *f, gconstpointer data);
void fixture_tear_down(struct fixture *f, gconstpointer data);

/* Sends a control command and lets the engine run. Returns the chain's token. */
uint32_t fixture_send(struct fixture *f, const void *request, size_t size);

/* The type of the answer to a chain; 0 while there is none. */
uint32_t fixture_answer_type(struct fixture *f, uint32_t token);

/* Both in one. */
uint32_t fixture_ask(struct fixture *f, const void *request, size_t size);

/* Commands that most tests begin with. They assert success. */
void fixture_create_context(struct fixture *f, uint32_t ctx_id);
void fixture_create_blob(struct fixture *f, uint32_t ctx_id, uint32_t resource_id, uint64_t size);

/* An execbuffer without commands, fenced on a ring. */
uint32_t fixture_send_fence(struct fixture *f, uint32_t ctx_id, uint8_t ring_idx,
                            uint64_t fence_id);

/* The guest's reset of the device, up to RESET_DONE. */
void fixture_reset(struct fixture *f);

#define fixture_test(path, function)                                                               \
    g_test_add(path, struct fixture, NULL, fixture_set_up, function, fixture_tear_down)

#endif /* ENGINE_FIXTURE_H */
