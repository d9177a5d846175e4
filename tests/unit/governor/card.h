/* SPDX-License-Identifier: MIT */
/*
 * A GPU in simulated time: engines that work at the same time, processes that take turns on one
 * engine, and queues of one process that overlap on it. The numbers of each model are in
 * card_models and nowhere else.
 */
#ifndef GOVERNOR_CARD_H
#define GOVERNOR_CARD_H

#include <stdbool.h>
#include <stdint.h>

enum card_engine { CARD_COMPUTE, CARD_COPY, CARD_VIDEO, CARD_ENGINES };

#define CARD_PROCESSES 16
#define CARD_QUEUES    2
#define CARD_JOBS      512

/**
 * struct card_model - a kind of hardware
 * @slice_ns: how long a process has an engine while others have work for it, too; 0: until its job
 * ends, and jobs run in the order of their submission
 * @handover_ns: what a change between two processes costs the engine
 * @overlap: how much faster two queues of one process get on together than one after the other
 */
struct card_model {
    const char *name;
    uint64_t slice_ns;
    uint64_t handover_ns;
    double overlap;
};

enum card_kind {
    /* Software Vulkan, seen by the governor: one job after the other. */
    CARD_IN_ORDER,
    /*
     * A card that the driver divides into time slices: lengths and changes are those of an NVIDIA
     * H200 (docs/card.md). What queues gain by overlapping is an assumption.
     */
    CARD_SLICED,
    /* The same with changes between processes that are short and long. */
    CARD_QUICK,
    CARD_SLOW,
};

extern const struct card_model card_models[];

/* @owner and @ended_at are the caller's. @began_at: when an engine came to it, 0: not yet. */
struct card_job {
    void *owner;
    uint64_t number;
    uint64_t length_ns;
    double done_ns;
    uint64_t began_at;
    uint64_t ended_at;
};

struct card_queue {
    struct card_job jobs[CARD_JOBS];
    unsigned head, tail;
};

/* @current: the process whose turn it is, -1: none; @queue: of the job that runs in order. */
struct card_engine_state {
    struct card_queue queues[CARD_PROCESSES][CARD_QUEUES];
    unsigned waiting;
    int current;
    unsigned queue;
    uint64_t slice_left_ns;
    uint64_t handover_left_ns;
    uint64_t busy_ns;
    uint64_t ran_ns[CARD_PROCESSES];
    uint64_t cost_ns[CARD_PROCESSES];
};

typedef void (*CardFunc)(void *data, struct card_job *job);

/**
 * struct card
 * @begins, @ends: called with @data when an engine comes to a job, and when the job has ended
 * @busy_ns and @ran_ns of an engine: how long it worked, and for whom, without handovers; @cost_ns:
 * with those to it
 */
struct card {
    const struct card_model *model;
    struct card_engine_state engines[CARD_ENGINES];
    uint64_t submitted;
    CardFunc begins, ends;
    void *data;
};

void card_init(struct card *card, enum card_kind kind, CardFunc begins, CardFunc ends, void *data);

void card_submit(struct card *card, enum card_engine engine, unsigned process, unsigned queue,
                 const struct card_job *job);

/* Time has advanced to @now, by @ns. */
void card_run(struct card *card, uint64_t now, uint64_t ns);

/* Jobs that have not ended. */
unsigned card_waiting(const struct card *card, enum card_engine engine, unsigned process);

#endif
