/* SPDX-License-Identifier: MIT */
/*
 * A gate in front of the driver. Closed, it keeps the threads of a process outside, so that nobody
 * calls the driver while the process's memory is not on the GPU. To pass it while it is open costs
 * two plain stores and a load: no atomic operation and no fence. Who closes it pays for that, by
 * membarrier(2), which orders the stores and loads of all threads.
 */
#ifndef GOVERNOR_GATE_H
#define GOVERNOR_GATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Bits of gate.state. Whoever finds none passes. */
#define GATE_CLOSED 1u
/* Without membarrier(2), which a container may refuse: who passes needs a fence. */
#define GATE_FENCED 2u
/* Nobody has passed since it was opened: the first one resets it. */
#define GATE_UNPASSED 4u

/**
 * struct gate_seat - of a thread; its own, and read by who closes the gate
 * @inside: 1: it has entered and not left
 * @taken: by a thread; else free for the next one
 * @known_at: where its thread remembers it, to be reset when the thread ends; NULL: nowhere
 */
struct gate_seat {
    _Atomic uint32_t inside;
    _Atomic bool taken;
    struct gate_seat **known_at;
    struct gate_seat *next;
};

/**
 * struct gate - of a process
 * @ask: called with @data by the first thread that is kept outside, each time the gate was closed
 */
struct gate {
    _Atomic uint32_t state;
    _Atomic bool asked;
    struct gate_seat *_Atomic seats;
    pthread_key_t key;
    void (*ask)(void *data);
    void *data;
};

/* Open. False: no more thread-specific data is there. Not while threads are inside: its end. */
bool gate_init(struct gate *gate, void (*ask)(void *data), void *data);
void gate_clear(struct gate *gate);

/* That of the calling thread, until it ends. NULL: no memory. */
struct gate_seat *gate_seat(struct gate *gate);

/* For gate_enter(): until the gate is open. */
void gate_wait(struct gate *gate, struct gate_seat *seat);

/* Not by a thread that is inside, as when the driver calls back: doors know how deep they are. */
static inline void gate_enter(struct gate *gate, struct gate_seat *seat)
{
    atomic_store_explicit(&seat->inside, 1, memory_order_relaxed);
    /* For the compiler. The processor is told by who closes the gate. */
    atomic_signal_fence(memory_order_seq_cst);
    if (__builtin_expect(atomic_load_explicit(&gate->state, memory_order_acquire) != 0, 0))
        gate_wait(gate, seat);
}

static inline void gate_leave(struct gate_seat *seat)
{
    atomic_store_explicit(&seat->inside, 0, memory_order_release);
}

/*
 * By one thread at a time, which is not inside. True: all threads are outside, and stay there until
 * gate_open(). False: some were inside for longer than @limit_ns, and the gate is open.
 */
bool gate_close(struct gate *gate, uint64_t limit_ns);
void gate_open(struct gate *gate);
/* Whether a thread has passed since it was opened. For certain only while it is closed. */
bool gate_was_passed(const struct gate *gate);

/* In a child, after fork(): its only thread's seat is @own, and the gate is open. */
void gate_renew(struct gate *gate, const struct gate_seat *own);

#endif
