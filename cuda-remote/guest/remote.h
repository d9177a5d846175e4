/* SPDX-License-Identifier: MIT */
/*
 * libcuda.so.1 of a program whose GPU is elsewhere: each call becomes a request to the program's
 * worker (worker/worker.h), over shared memory. Nothing happens when the library is loaded.
 */
#ifndef CUDA_REMOTE_GUEST_H
#define CUDA_REMOTE_GUEST_H

#include "control.h"
#include "cuda_abi.h"
#include "hand.h"
#include "channel.h"
#include "numbers.h"
#include "signature.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EXPORT __attribute__((visibility("default")))
/* A worker that has ended is to the program what a fault of a kernel is: its contexts are lost. */
#define CUDA_ERROR_LAUNCH_FAILED ((CUresult)719)

/*
 * The connection (connect.c). CUDA_SUCCESS after the first cuInit() that succeeds; before it
 * CUDA_ERROR_NOT_INITIALIZED, and so in children of fork(), which have none.
 */
CUresult connect_worker(void);
CUresult connect_state(void);
int connect_driver_version(void);
bool connect_has(unsigned int number);
/* The same, and CUDA_ERROR_LAUNCH_FAILED if it is known that the worker is gone. */
CUresult connect_usable(void);
/* True: the worker is gone. */
bool connect_is_dead(void);

/*
 * What worker and program share (shared.c). Memory at the same address in both, in whole pages.
 * NULL: there is no more.
 */
void *shared_new(size_t bytes);
void shared_end(void *at);
/* A program's, that the driver has registered. */
void shared_mark_pinned(const void *at);
/* All such of which the driver has none registered any more. */
void shared_end_unregistered(void);
bool shared_contains(const void *at, size_t bytes);
/* A context has ended, and with it what the program pinned there (memory.c). */
void memory_end_context(void);
void memory_begin_child(void);
/* Where the arena lies, that connect_worker() has chosen. */
void shared_begin(uint64_t address, uint64_t bytes);

/* To the worker, and its reply (connect.c). */
enum control_result connect_ask(const struct control_message *message);
/* The same for memory, which is mapped where the message says. @end: by what the worker is told
 * that the program can't have it. */
bool connect_share(const struct control_message *message, enum control_kind end);
/* The worker sleeps at this channel, and is woken; waits a while for so many answers, or for none
 * if it is gone. */
void connect_wake(struct channel_shared *channel);
void connect_await(struct channel_shared *channel, uint64_t answers);

/* A request that is waited for (exchange.c). */
struct part {
    void *at;
    size_t bytes;
};

#define PARTS_MOST 20

struct exchange {
    unsigned int number;
    const void *head;
    size_t head_bytes;
    struct part in[PARTS_MOST], out[PARTS_MOST];
    unsigned int in_count, out_count;
    size_t in_room, out_room; /* of all parts, each from a multiple of 8 bytes on */
    uint64_t extra;           /* of the answer */
    size_t out_bytes;         /* that the answer has; parts are filled as far as these go */
    bool keeps_failed;        /* the parts stay as they are if the call failed */
    bool is_short;            /* the last part may be shorter than its room */
    bool has_output;          /* kernels have printed something */
    bool is_posted;           /* it need not be waited for, if it has no answer and is small */
};

CUresult exchange_run(struct exchange *exchange);
/* One without parts yet; the room for them is not written, for calls that have to be quick. */
static inline void exchange_begin(struct exchange *exchange, unsigned int number, const void *head,
                                  size_t head_bytes)
{
    exchange->number = number;
    exchange->head = head;
    exchange->head_bytes = head_bytes;
    exchange->in_count = exchange->out_count = 0;
    exchange->in_room = exchange->out_room = 0;
    exchange->extra = 0;
    exchange->out_bytes = 0;
    exchange->keeps_failed = exchange->is_short = exchange->is_posted = false;
    exchange->has_output = false;
}
static inline void exchange_in(struct exchange *exchange, const void *at, size_t bytes)
{
    exchange->in[exchange->in_count++] = (struct part){(void *)at, bytes};
    exchange->in_room += signature_align(bytes);
}
static inline void exchange_out(struct exchange *exchange, void *at, size_t bytes)
{
    exchange->out[exchange->out_count++] = (struct part){at, bytes};
    exchange->out_room += signature_align(bytes);
}

/* Any call whose signature says all (call.c). */
unsigned int remote_call(unsigned int number, const uint64_t *words);
/* The same, posted if it has no answer, though calls.def does not say so. */
unsigned int remote_post(unsigned int number, const uint64_t *words);
/* Those whose answer is kept (kept.h), or kept for the thread's current context. */
unsigned int remote_keep(unsigned int number, const uint64_t *words);
unsigned int remote_keep_here(unsigned int number, const uint64_t *words);
/* The same, while the program counts as much as @since. */
unsigned int remote_keep_since(unsigned int number, const uint64_t *words, uint64_t since);
/* Those after which the thread may have another current context; and those after which no answer
 * of before holds, and so neither. */
unsigned int remote_turn(unsigned int number, const uint64_t *words);
unsigned int remote_alter(unsigned int number, const uint64_t *words);
/* One that is refused by name; why, with VGPU_CUDA_VERBOSE=1. */
unsigned int remote_refuse(const char *name, const char *reason);

/*
 * The program's objects (objects.c): addresses that nobody can read, 64 bytes apart, each for a
 * number of the worker's.
 */
uint64_t object_to_number(uint64_t value);
uint64_t object_of_number(uint64_t number);
/* The object that had this number there does not exist any more. */
void object_forget(uint64_t value, uint64_t number);
static inline unsigned int object_type(uint64_t number)
{
    return (number >> 32) & 0xff;
}
bool objects_begin(void);

/* How a kernel's parameters lie (launch.c forgets them when the object of that place is another).
 */
struct layout {
    uint32_t count;
    uint32_t bytes;
    _Atomic uint64_t shape; /* of the last launch that was waited for, and succeeded */
    struct hand_parameter parameters[];
};
/* What is kept for an object; NULL: nothing. */
void *object_kept(uint64_t value, uint64_t *number);
/* Returns what is kept then: @kept, or what another thread was earlier with; @kept is freed then.
 */
void *object_keep(uint64_t value, uint64_t number, void *kept);
/* The same, but @kept takes the place of what is kept, which stays. */
void *object_keep_last(uint64_t value, uint64_t number, void *kept);

/* A kernel's parameters as they lie in its parameter space: at @at. */
struct launch_parameters {
    uint64_t function; /* the worker's number */
    struct layout *layout;
    const void *at;
    size_t bytes;
    uint8_t buffer[HAND_PARAMETER_BYTES];
};
/* NULL: it is no function, or the worker is gone. */
struct layout *launch_layout(CUfunction function, uint64_t *number);
CUresult launch_pack(CUfunction function, void **parameters, void **extra,
                     struct launch_parameters *to);
/* The head of a copy of memory that stays where it is until a graph makes it (copy_rows.c).
 * CUDA_ERROR_NOT_SUPPORTED: an end is memory of the program alone. */
CUresult copy_for_graph(const CUDA_MEMCPY3D *of, struct hand_copy *head);
/* There is a thread that calls what the driver wants to have called (callback.c). */
bool callback_thread_runs(void);

/* What the program's kernels have printed since the last time (output.c). */
void output_print(void);

/* This thread is in a function that the driver calls, in which nothing of CUDA's may be called. */
void exchange_refuse(bool is_calling);

/* What the thread knows of its current context; NULL: it has asked for nothing yet. */
struct known_context *exchange_context(void);

/* True: @address is the driver's, and not one of the program's own. */
bool place_is_device(uint64_t address);

#endif
