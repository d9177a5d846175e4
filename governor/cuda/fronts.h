/* SPDX-License-Identifier: MIT */
/*
 * What stands in front of the driver once memory of the process moves. Then the slots of the
 * entries in away.def lead here, and from here to the driver; until then, and in all other
 * processes, they lead to the driver, and nothing here costs anything.
 *
 * There is one gate for all of the process's GPUs. While it is closed, calls that may reach memory
 * of the program's wait, and those that the driver can answer without go on.
 */
#ifndef GOVERNOR_CUDA_FRONTS_H
#define GOVERNOR_CUDA_FRONTS_H

#include "gate.h"
#include "real.h"

#include <stdbool.h>

/* From now on; once. @ask: called by the first thread that is kept out. False: no memory. */
bool fronts_install(void (*ask)(void));
bool fronts_are_installed(void);

/* What the program is to call in place of the driver's function; NULL: there is no such. */
void *fronts_stub(unsigned int entry);
/* The driver's function is another one than it exports. */
void fronts_set_driver(unsigned int entry, void *function);

/* The driver's function, past the gate. */
void *fronts_driver(unsigned int entry);
#define CARD(name, ...)                                                                            \
    __extension__({                                                                                \
        CUresult card_result;                                                                      \
        real_depth++;                                                                              \
        card_result = ((name##_function *)fronts_driver(ENTRY_##name))(__VA_ARGS__);               \
        real_depth--;                                                                              \
        card_result;                                                                               \
    })

/* The driver's functions that have something in front, or that it does not export. */
extern void *_Atomic fronts_behind[ENTRIES_COUNT] __attribute__((visibility("hidden")));
extern struct gate fronts_gate __attribute__((visibility("hidden")));
/* This thread's, once it has one: in processes whose memory does not move, none has. */
extern _Thread_local struct gate_seat *fronts_seat __attribute__((visibility("hidden")));

/*
 * DRIVER() for launches, which are many. By its front, the arguments would be copied twice. A
 * thread that is behind the gate already, and one without a seat, go that way.
 */
#define LAUNCH(name, ...)                                                                          \
    __extension__({                                                                                \
        struct gate_seat *launch_seat = fronts_seat;                                               \
        CUresult launch_result;                                                                    \
        real_depth++;                                                                              \
        if (__builtin_expect(!launch_seat || launch_seat->inside, 1)) {                            \
            launch_result = REAL(name)(__VA_ARGS__);                                               \
        } else {                                                                                   \
            gate_enter(&fronts_gate, launch_seat);                                                 \
            launch_result = ((name##_function *)atomic_load_explicit(                              \
                &fronts_behind[ENTRY_##name], memory_order_relaxed))(__VA_ARGS__);                 \
            gate_leave(launch_seat);                                                               \
        }                                                                                          \
        real_depth--;                                                                              \
        launch_result;                                                                             \
    })

/**
 * struct visit - of a thread behind the gate
 * @seat: to be left; NULL: it was behind the gate already
 */
struct visit {
    struct gate_seat *seat;
};

/* Waits while the gate is closed. False: no memory. */
bool fronts_enter(struct visit *visit);
void fronts_leave(const struct visit *visit);

/* By one thread at a time. False: somebody did not leave the driver in time, and it is open. */
bool fronts_close(uint64_t limit_ns);
void fronts_open(void);
/* A thread was behind the gate since it was opened. For certain only while it is closed. */
bool fronts_were_passed(void);
/* A thread was kept out since it was closed. */
bool fronts_were_asked(void);

#endif
