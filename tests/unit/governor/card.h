/* SPDX-License-Identifier: MIT */
/*
 * A GPU in simulated time, for simulation.c: engines, processes and their queues, which are streams
 * of tests/lib/card/card_model.h. That has the numbers of each kind of hardware.
 */
#ifndef GOVERNOR_CARD_H
#define GOVERNOR_CARD_H

#include "card_model.h"

enum card_engine { CARD_COMPUTE, CARD_COPY, CARD_VIDEO, CARD_COPY_OUT, CARD_ENGINES };

#define CARD_PROCESSES 72
#define CARD_QUEUES    2
#define CARD_JOBS      512

_Static_assert(CARD_ENGINES *CARD_PROCESSES *CARD_QUEUES <= MODEL_STREAMS, "streams");
_Static_assert(CARD_PROCESSES <= MODEL_PROCESSES, "processes");

enum card_kind {
    CARD_IN_ORDER = MODEL_IN_ORDER,
    CARD_SLICED = MODEL_SLICED,
    CARD_QUICK = MODEL_QUICK,
    CARD_SLOW = MODEL_SLOW,
    CARD_BEHIND_BUS = MODEL_BEHIND_BUS,
};

#define card_models model_kinds

/* @owner is the caller's. @began_at: when an engine came to it, 0: not yet. */
struct card_job {
    void *owner;
    uint64_t length_ns;
    uint64_t began_at;
    uint64_t ended_at;
};

typedef void (*CardFunc)(void *data, struct card_job *job);

/**
 * struct card
 * @begins, @ends: called with @data when an engine comes to a job, and when the job has ended
 */
struct card {
    struct model model;
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

/* What runs of that queue; NULL: nothing. */
struct model_op *card_running(struct card *card, enum card_engine engine, unsigned process,
                              unsigned queue);

/* It takes so much longer from now on. */
void card_set_left(struct card *card, struct model_op *job, uint64_t ns);

#endif
