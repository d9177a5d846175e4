/* SPDX-License-Identifier: MIT */
/*
 * vgpu-cuda-worker: carries out the CUDA calls of one program on the host's driver. It is the
 * program's own process on the host's side: what it does to itself ends it and nobody else. But it
 * believes nothing: it holds the limits of a slice, and a place in the host.
 */
#ifndef CUDA_WORKER_H
#define CUDA_WORKER_H

#include "control.h"
#include "cuda_abi.h"
#include "channel.h"
#include "signature.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* For a worker of a slice's guard (confine.c). False, and said why: it must not go on. */
bool worker_confine(void);

/* The driver (driver.c): functions by their numbers; NULL: it lacks the call. */
bool driver_load(const char *library);
/* No GPU reaches this process's own memory (host_memory.c); after cuInit(). */
bool driver_keeps_out(void);
void *driver_function(unsigned int number);
void driver_fill_has(uint64_t *has);
/*
 * Objects (objects.c). A number is index | type << 32 | generation << 40. The driver gets nothing
 * that it has not handed out itself.
 */
/* False: there is none such; *real is unchanged then. 0 is NULL, and 1 and 2 are streams. */
bool object_find(unsigned int type, uint64_t number, void **real);
/* The number of what the driver handed out; it is the same for the same object. 0: no room. */
uint64_t object_number(unsigned int type, void *real, uint64_t parent);
/* It, and all that ends with it. */
void object_end(uint64_t number);
/* All that ends with it, but not itself. */
void object_end_children(uint64_t number);
uint64_t object_parent(uint64_t number);
/* From now on it ends with @parent. False: that ends with it. */
bool object_adopt(uint64_t number, uint64_t parent);
static inline unsigned int object_type(uint64_t number)
{
    return (number >> 32) & 0xff;
}

/* Memory that both ends have (shared.c). Results are of enum control_result. */
int shared_reserve(uint64_t address, uint64_t bytes);
int shared_add(uint64_t address, uint64_t bytes, int *fd);
/* Memory of a VM's, of which @fd is a file. */
int shared_borrow(uint64_t address, uint64_t bytes, int fd);
/* CONTROL_REFUSED: there is none that begins there, or the driver has it registered. */
int shared_end(uint64_t address);
/* Until shared_leave() all these bytes stay; false: they are not shared. */
bool shared_use(uint64_t address, uint64_t bytes);
void shared_leave(uint64_t address);
/* What the driver has registered at @address, in a part that is in use. False: there is no memory
 * to note it. */
bool shared_add_pin(uint64_t address, uint64_t context);
void shared_end_pin(uint64_t address);
/* The address of one of the context's; 0: it has none. */
uint64_t shared_pin_of(uint64_t context);

/* Channels (channels.c). */
struct worker_channel;
int channels_add(uint64_t address, int *fd);
int channels_end(uint64_t address);
/* One lies there, whose thread uses the memory. */
bool channels_has(uint64_t address);

/* For a program that asks by NVML and does not compute (nvml.c); the exit status. */
bool nvml_is_asked(int socket);
int nvml_serve(int socket, const char *cuda);
/* Of the process, with the number that its program has for itself behind it. */
#define WORKER_NAME "cuda:"

/* To a client that no futex wakes, from any thread (control.c). */
void control_tell_answered(uint64_t channel);

/* Memory of a channel for its requests, which is used again. */
struct scratch_block {
    struct scratch_block *next;
    _Alignas(16) uint8_t bytes[];
};

struct scratch {
    struct scratch_block *blocks;
    size_t used, kept_used;
    _Alignas(16) uint8_t kept[128u << 10];
};

#define REQUEST_USES 24

/* A request of a channel, copied (carry.c). */
struct request {
    unsigned int number;
    uint16_t flags;
    const uint8_t *head; /* what is in the record, copied */
    size_t head_bytes;
    uint64_t bulk;
    /* The answer: */
    uint32_t result;
    uint64_t extra;
    uint8_t *out;
    size_t out_most, out_bytes;
    bool is_broken;     /* the client broke the rules */
    bool makes_objects; /* or something else that would be lost with an error */
    struct scratch *scratch;
    uint64_t used[REQUEST_USES]; /* addresses that stay until it has ended */
    unsigned int used_count;
};

/* NULL: there is no memory, or it is more than a request may have. What is in it is of earlier
 * requests, and must not reach the program. */
void *scratch_take(struct scratch *scratch, size_t bytes);
void *scratch_take_zeros(struct scratch *scratch, size_t bytes);
void scratch_empty(struct scratch *scratch);
void request_carry_out(struct request *request);
/* All these bytes are shared, and stay so until request_end(). */
bool request_uses(struct request *request, uint64_t address, uint64_t bytes);
void request_end(struct request *request);
/*
 * The next part, of so many bytes, of what the client sent, copied; *at is where the parts before
 * it end, at first the bytes of the head. NULL: it has sent less, or there is no memory.
 */
const void *request_part(struct request *request, size_t *at, size_t bytes);
/* Room for a part of the answer, zeroed; NULL as above. */
void *request_answer(struct request *request, size_t bytes);

/* A CUdevResource, from the driver and to it (resources.c). */
CUresult resource_hide(uint8_t *resource);
CUresult resource_reveal(uint8_t *resource);

/*
 * What kernels print (output.c). The process's standard output, and error, are pipes from then on;
 * false: there are none. @is_known: the program fetches what there is if an answer says so.
 */
bool output_begin(bool with_errors);
void output_is_read(bool is_known);
bool output_is_waiting(uint32_t result);
CUresult hand_output(struct request *request);

/* Calls whose requests have a form of their own (hand_*.c); false: it is none of them. */
bool hand_carry_out(struct request *request);
CUresult hand_launch(struct request *request);
CUresult hand_occupancy(struct request *request);
CUresult hand_layout(struct request *request);
CUresult hand_load(struct request *request);
CUresult hand_link(struct request *request);
CUresult hand_callback(struct request *request);
CUresult hand_called(struct request *request);
CUresult hand_host_memory(struct request *request);
/* The context has ended, and with it the driver's registrations. */
void host_memory_end_context(uint64_t context);
CUresult hand_pointer(struct request *request);
CUresult hand_copy(struct request *request);
CUresult hand_capture(struct request *request);
CUresult hand_node(struct request *request);
CUresult hand_node_get(struct request *request);
CUresult hand_export(struct request *request);
CUresult hand_import(struct request *request);
CUresult hand_dot(struct request *request);
/* What was exported of objects that have ended cannot be imported any more (hand_share.c). */
void share_forget_ended(void);

/* The driver's objects in place of the program's numbers in structures of @each bytes, and the
 * addresses there are checked (carry.c). */
CUresult structures_find(struct request *request, unsigned int structure, size_t each,
                         uint8_t *part, size_t bytes);
/* A handle of a condition that the driver has given out, for a graph (hand_node.c). */
void condition_remember(uint64_t handle, uint64_t graph);
/* A function of a launch, or a kernel, which serves wherever a function is launched. */
bool launch_function(uint64_t number, void **real, bool *is_kernel);
/* Where a parameter lies. An error: there are fewer, or the driver does not say. */
CUresult launch_parameter(bool is_kernel, void *function, size_t at, size_t *offset, size_t *bytes);
/* The driver's structure of a copy; @in, @out: where there is what is sent. */
struct hand_copy;
CUresult copy_make(struct request *request, const struct hand_copy *copy, void *in, void *out,
                   CUDA_MEMCPY3D *to);
/* A function of the program that a graph may call again and again; callback_call() does it. NULL:
 * there is no memory. */
struct callback;
struct hand_callback;
struct hand_called;
struct callback *callback_new(const struct hand_callback *head);
void callback_call(void *callback);
struct hand_called callback_what(const void *callback);

/* All @bytes there are memory that the driver gave out, or that is shared (places.c). */
bool place_is_usable(struct request *request, uint64_t address, uint64_t bytes);
/* This thread asks the driver about an address, for itself. */
bool place_is_asking(void);
/* What a node of a graph allocates is such memory until the node ends. False: no memory. */
bool place_remember(uint64_t node, uint64_t address, uint64_t bytes);
/* What work is put into @stream by a call of this number becomes a graph's, and is done later, or
 * never (streams.c). */
bool stream_is_capturing(unsigned int number, void *stream);
/* Until all of it that was put into it before is done. */
CUresult stream_await(unsigned int number, void *stream);
#define CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED ((CUresult)900)
/* The number of the current context; 0: there is none. */
uint64_t current_context(void);

/* One line on standard error, which a confined worker has by this number or a later one. */
#define WORKER_LOG_FD 100
void worker_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
