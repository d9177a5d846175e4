/* SPDX-License-Identifier: MIT */
/*
 * Batches of fixed work on a Vulkan device: one dispatch of a loop with a constant number of
 * multiply-adds, so that finished work can be counted without asking anyone. Every failure ends the
 * process with a message (job_fail()).
 */
#ifndef GOVERNOR_LOAD_CARD_H
#define GOVERNOR_LOAD_CARD_H

#include "vk-dispatch.h"

#define CARD_MAX_DEPTH 256u

/**
 * struct card - the device, and a ring of fences for the work in flight on its one queue
 * @depth: maximum of batches in flight, CARD_MAX_DEPTH at most
 */
struct card {
    struct job job;
    struct vk_device dev;
    struct vk_buffer data;
    struct vk_dispatch dispatch;
    struct vk_kernel kernel;
    VkFence fences[CARD_MAX_DEPTH];
    uint32_t depth;
};

/* @device_name: part of the device's name, NULL: the first. */
void card_open(struct card *card, const char *program, const char *device_name, uint32_t depth);
void card_close(struct card *card);

/* Sets the work of a batch from now on. Nothing may be in flight. */
void card_set_work(struct card *card, uint32_t iterations);

/*
 * Submits a batch; @slot, below depth, has nothing in flight. It may block if a governor makes it
 * wait.
 */
void card_submit(struct card *card, uint32_t slot);

/* Submits a batch whose end nobody is told. */
void card_submit_silent(struct card *card);

/* Waits for the batch of @slot until @timeout_ns; false if that passes first. */
bool card_wait(struct card *card, uint32_t slot, uint64_t timeout_ns);

#endif /* GOVERNOR_LOAD_CARD_H */
