/* SPDX-License-Identifier: MIT */
/*
 * The card's time, which all processes share: what is launched goes to a stream of
 * tests/lib/card/card_model.h. Everybody who asks computes what happened until then. What only a
 * process itself can do, such as reading its memory, it does when it asks next; if the card waits
 * for that, a thread of the driver's asks (waits.c).
 */
#ifndef FAKE_CUDA_TIMING_H
#define FAKE_CUDA_TIMING_H

#include <pthread.h>

#include "card_model.h"
#include "fake.h"

#define TIMING_EVENTS 16384
#define TIMING_WORDS  256
/* As many operations a stream takes before a launch waits, as NVIDIA's. */
#define TIMING_DEPTH 1024
/* An event costs its stream so much, on the engine that it last used. */
#define TIMING_EVENT_NS 3000

enum timing_kind {
    TIMING_WORK,
    TIMING_SPIN,
    TIMING_RELEASE,
    TIMING_FAULT,
    TIMING_EVENT,       /* data: the event */
    TIMING_WAIT_EVENT,  /* data: stream and number of its record */
    TIMING_WAIT_VALUE,  /* data: address, value; state: enum value_kind */
    TIMING_WRITE_VALUE, /* the same */
    TIMING_TAKE,        /* data: address of a binary semaphore's state */
    TIMING_HOST,        /* data: function, argument; state: enum host_state */
    TIMING_FREE,
};

/* How cuStreamWaitValue compares, by its flags, and how wide the value is. */
enum value_kind { VALUE_AT_LEAST, VALUE_EQUAL, VALUE_AND, VALUE_NOR, VALUE_IS_64 = 16 };
#define VALUE_COMPARES 3u
enum host_state { HOST_WAITS, HOST_REACHED, HOST_RAN };

struct timing_runner {
    int pid;
    uint32_t error;
};

/* @handle: as the program has it. @made: by cuStreamCreate; else it is any number. @engine: that it
 * last used. */
struct timing_stream {
    bool used;
    bool gone;
    bool made;
    uint64_t context;
    uint64_t handle;
    uint64_t thread;
    uint32_t device;
    uint32_t engine;
};

/* @number: of its last record; 0: none. @at: 0: it has not come. @ended: with its context.
 * @serial: no other event ever has it. @of, @of_serial: it is another process's event, plus one */
struct timing_event {
    bool used;
    bool ended;
    uint32_t flags;
    uint32_t of;
    uint64_t serial;
    uint64_t of_serial;
    uint32_t runner;
    uint32_t stream;
    uint64_t context;
    uint64_t number;
    uint64_t at;
};

/* What was written to memory of the card, which has no content otherwise. */
struct timing_word {
    uint64_t runner;
    uint64_t address;
    uint64_t value;
};

struct timing {
    pthread_mutex_t lock;
    bool ready;
    uint64_t reaped_at;
    /* What spins and is older ends. */
    uint64_t released;
    struct timing_runner runners[MODEL_PROCESSES];
    struct timing_stream streams[MODEL_STREAMS];
    /* No stream after these was ever used. */
    uint32_t stream_count;
    struct timing_event events[TIMING_EVENTS];
    uint64_t event_serials;
    struct timing_word words[TIMING_WORDS];
    struct model model;
};

/* Up to now; with the lock, for which it returns. */
struct timing *timing_enter(void);
void timing_leave(struct timing *timing);

uint32_t timing_self(struct timing *timing);

/* To the end of the stream, or to the graph that it captures. May wait for room. */
CUresult timing_submit(CUstream stream, bool per_thread, const struct model_op *op);

/* To the end of each stream of the context that was used so far. */
CUresult timing_submit_to_all(CUcontext context, const struct model_op *op);

/* Under the lock. */
uint32_t timing_stream_of(struct timing *timing, CUstream stream, bool per_thread);
/* The handle by which a stream is known, and the thread that it is of, or 0. */
uint64_t timing_key(CUstream stream, bool per_thread, uint64_t *thread);

/* Until the card has done what the stream has now, or all of the current context. */
CUresult timing_await(CUstream stream, bool per_thread);
CUresult timing_await_context(CUcontext context);
/* CUDA_ERROR_NOT_READY: it has not. */
CUresult timing_ask(CUstream stream, bool per_thread);

/* What the process did is the reason why it can do nothing any more. */
CUresult timing_error(void);

/* Streams, events and work of the context are gone. */
void timing_end_context(CUcontext context);

/* Work of the first device that has not ended, in nanoseconds: for tests. */
uint64_t fake_waiting_ns(unsigned int engine);

void timing_sleep(uint64_t ns);

/* Some operation waits for what only this process can do. */
void timing_serve(void);
bool timing_reach(struct timing *timing, uint32_t stream, struct model_op *op);

/*
 * capture.c: true if the stream captures, or must not be used because of a capture; @result is the
 * call's then. @op: what becomes a part of the graph; NULL: nothing.
 */
bool capture_takes(CUstream stream, bool per_thread, const struct model_op *op, CUresult *result);
/* A call that may wait for what a capture has not launched: it ends captures that forbid it. */
CUresult capture_unsafe(void);
/* The event was recorded while its stream captured. */
bool capture_waits(CUstream stream, bool per_thread, unsigned int event);
void capture_forget(unsigned int event);

/* graphs.c */
CUgraph graph_new(void);
/* The node that was added last; NULL: there is none. */
CUgraphNode graph_last(CUgraph graph);
void graph_add(CUgraph graph, const struct model_op *op);

/* launch.c */
struct model_op launch_operation(CUfunction f);

/* events.c */
CUresult event_record(CUevent event, CUstream stream, bool per_thread);
CUresult event_wait(CUstream stream, bool per_thread, CUevent event);

/* waits.c: what the driver does for a stream, as operations of it. 0: they are none. */
struct memory_operation;
unsigned int waits_of_batch(const struct memory_operation *list, unsigned int count,
                            struct model_op *ops, unsigned int room);
struct model_op waits_of_host(void *function, void *argument);
/* In order, and looked after by a thread of the driver's. */
CUresult waits_submit(CUstream stream, bool per_thread, const struct model_op *ops,
                      unsigned int count);

/* semaphores.c: the same of external semaphores, by their handles and parameters. */
unsigned int semaphores_operations(bool signals, void *const *list, const void *parameters,
                                   unsigned int count, struct model_op *ops, unsigned int room);

#endif
