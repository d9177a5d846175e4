/* SPDX-License-Identifier: MIT */
/*
 * What a GPU does with its time. Engines work at the same time. On one engine, processes take turns
 * in slices, and a change between two of them costs; streams of one process overlap. A stream is in
 * order, and its operations may be of several engines, or of none.
 *
 * Its memory is counted by process, and the two directions of its bus share what that can move.
 *
 * The simulation of the governor (tests/unit/governor/card.c) and the fake CUDA driver
 * (tests/fake-cuda) are the two users. The time is the caller's; between two events of the card
 * nothing is computed. The model has no pointers, so processes may share one, under a lock of
 * theirs.
 */
#ifndef TESTS_CARD_MODEL_H
#define TESTS_CARD_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#define MODEL_CARDS 3

/* Copies to the card and from it have an engine each. A further card has the same engines again,
 * MODEL_OF_CARD after those of the one before. */
enum model_engine {
    MODEL_COMPUTE,
    MODEL_COPY,
    MODEL_VIDEO,
    MODEL_COPY_OUT,
    MODEL_OF_CARD,
    MODEL_ENGINES = MODEL_OF_CARD * MODEL_CARDS,
    MODEL_NONE = MODEL_ENGINES,
};

#define MODEL_PROCESSES 512
#define MODEL_STREAMS   2048
#define MODEL_OPS       16384
/* As many streams of one process run at once. */
#define MODEL_RUNNING 64
#define MODEL_NEVER   UINT64_MAX
/* The length of work that ends only when model_cut() says so. */
#define MODEL_ENDLESS 1e15

/**
 * struct model_kind - a kind of hardware
 * @slice_ns: how long a process has an engine while others have work for it, too; 0: until its
 * operation ends, and operations run in the order in which they came
 * @handover_ns: what a change between two processes costs the engine
 * @overlap: how much faster streams of one process get on together than one after the other
 * @both_ways: what copies to the card and from it move together, by what one direction does alone;
 * 0: twice as much
 */
struct model_kind {
    const char *name;
    uint64_t slice_ns;
    uint64_t handover_ns;
    double overlap;
    double both_ways;
};

enum model_kinds {
    /* Software Vulkan, seen by the governor: one operation after the other. */
    MODEL_IN_ORDER,
    /*
     * A card that the driver divides into time slices: lengths and changes are those of an NVIDIA
     * H200 (tests/cuda/RESULTS-h200.md). What streams gain by overlapping is an assumption.
     */
    MODEL_SLICED,
    /* The same with changes between processes that are short and long. */
    MODEL_QUICK,
    MODEL_SLOW,
    /* In order, behind a bus whose directions slow each other down: an assumption. */
    MODEL_BEHIND_BUS,
};

extern const struct model_kind model_kinds[];

/**
 * struct model_op - of a stream
 * @number: in the order in which operations came, whatever their stream
 * @engine: MODEL_NONE: none; the user says when it has passed
 * @length_ns, @left_ns: of the engine's work
 * @began_at: when an engine came to it, 0: not yet
 * @kind, @state, @data: the user's
 */
struct model_op {
    uint64_t number;
    uint32_t next;
    uint32_t engine;
    double length_ns;
    double left_ns;
    uint64_t began_at;
    uint32_t kind;
    uint32_t state;
    uint64_t data[2];
};

/* The order of a stream among those of its group. */
enum model_order {
    MODEL_ORDINARY,
    /* Waits for all earlier operations of ordinary streams, and later ones wait for it. */
    MODEL_JOINS,
    MODEL_APART,
};

/**
 * struct model_stream
 * @group, @order: 0: it is in no group
 * @joining: the stream of the group that joins, plus one; 0: there is none
 * @pending_ns: of its operations that have not ended, except endless ones
 */
struct model_stream {
    uint32_t process;
    uint32_t first, last, count;
    uint32_t place;
    enum model_order order;
    uint32_t joining;
    uint64_t group;
    double pending_ns;
};

/* @current: the process whose turn it is, -1: none. @running: streams whose operations advance. */
struct model_engine_state {
    int32_t current;
    uint32_t running[MODEL_RUNNING];
    uint32_t running_count;
    uint64_t slice_left_ns;
    uint64_t handover_left_ns;
    uint64_t busy_ns;
    uint64_t ran_ns[MODEL_PROCESSES];
    uint64_t cost_ns[MODEL_PROCESSES];
};

/**
 * struct model
 * @now: all has been computed up to here; @next_at: when something happens next, 0: not known
 * @engine_count: no engine after these was ever used
 * @active: streams that have operations
 * @ops: @used of them were used so far; @free: the first of those that are free again, plus one
 * @memory: bytes that the card has, 0: it is not counted; @memory_used of them, by process
 * @memory_of
 * @busy_ns and @ran_ns of an engine: how long it worked, and for whom, without changes; @cost_ns:
 * with those to it
 */
struct model {
    struct model_kind kind;
    uint64_t now;
    uint64_t next_at;
    uint64_t numbers;
    struct model_engine_state engines[MODEL_ENGINES];
    uint32_t engine_count;
    struct model_stream streams[MODEL_STREAMS];
    uint32_t active[MODEL_STREAMS];
    uint32_t active_count;
    uint32_t used, free;
    uint64_t memory, memory_used;
    uint64_t memory_of[MODEL_PROCESSES];
    struct model_op ops[MODEL_OPS];
};

/**
 * struct model_user
 * @reach: a stream has come to an operation without an engine: true if it has passed it; asked
 * again after each event
 * @begins, @ends: an engine has come to an operation; it has ended, and is no longer of the stream
 */
struct model_user {
    void *data;
    bool (*reach)(void *data, uint32_t stream, struct model_op *op);
    void (*begins)(void *data, uint32_t stream, struct model_op *op);
    void (*ends)(void *data, uint32_t stream, const struct model_op *op);
};

void model_init(struct model *model, enum model_kinds kind, uint64_t now);

/* Another kind from now on; work goes on. */
void model_set_kind(struct model *model, enum model_kinds kind);

void model_advance(struct model *model, uint64_t now, const struct model_user *user);

/* False: there is no room for it. Its number is model->numbers then. To be advanced first. */
bool model_add(struct model *model, uint32_t stream, const struct model_op *op);

/* The stream has passed that operation. */
bool model_passed(const struct model *model, uint32_t stream, uint64_t number);

/* Something that @reach asks for may have changed. */
void model_kick(struct model *model);

/* Endless work ends now. */
void model_cut(struct model *model, struct model_op *op);

/* All operations of the stream are gone, without an end. */
void model_drop(struct model *model, uint32_t stream);

/* Its first operation; NULL: it has none. */
struct model_op *model_first(struct model *model, uint32_t stream);

/* The process takes memory of the card. False: there is not so much. */
bool model_take(struct model *model, uint32_t process, uint64_t bytes);

/* It gives some back. False: it has not so much. */
bool model_give(struct model *model, uint32_t process, uint64_t bytes);

/* No earlier than after so long has it done all that it has to do now. */
uint64_t model_least_ns(const struct model *model, uint32_t stream);

#endif
