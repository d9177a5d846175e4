/* SPDX-License-Identifier: MIT */
/*
 * A fake engine: a separate process that attaches to /dev/vgpu/<uuid>, answers events and requests
 * by itself, and runs any function from the test.
 *
 * It is forked from the test without exec, so function pointers and constants mean the same on both
 * sides; memory is not shared, except EngineState.
 */
#ifndef ENGINE_PEER_H
#define ENGINE_PEER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <linux/vgpu.h>

#include "virtio_guest.h"

/* Duties that the engine neglects; may be changed while it runs (EngineState.hold). */
#define ENGINE_HOLD_RESET   (1u << 0) /* events of a reset are read, but not answered */
#define ENGINE_HOLD_QUEUES  (1u << 1) /* kicks are counted, nothing is popped */
#define ENGINE_HOLD_ANSWERS (1u << 2) /* requests are popped and stay in flight */
#define ENGINE_HOLD_EVENTS  (1u << 3) /* events are not even read */
#define ENGINE_HOLD_SAVE    (1u << 4) /* its state is not given */
/* How it starts. */
#define ENGINE_NO_ATTACH (1u << 8)
#define ENGINE_NOT_READY (1u << 9)
#define ENGINE_NO_SAVE   (1u << 10) /* as one that knows nothing of saved VMs */
#define ENGINE_OTHER     (1u << 11) /* of another renderer */

#define ENGINE_NUM_CAPSETS 2
#define ENGINE_STATE_SIZE  5000 /* bytes of what it saves: the low bits of their numbers */
#define ENGINE_MAX_HELD    256

typedef struct {
    atomic_uint hold;
    atomic_ulong kicks;
    atomic_ulong resets;
    atomic_ulong configs;
    atomic_ulong removed;
    atomic_ulong hangups;
    atomic_ulong pops;
    atomic_ulong pushes;
    atomic_ulong saves;
    /* Loads of a state as it saves one. */
    atomic_ulong loads;
    /* Epoch of the last reset event. */
    _Atomic uint64_t reset_epoch;
    /* Last unexpected errno of a pop or push; 0: none. */
    atomic_int error;
} EngineState;

/* A request that the engine keeps in flight. */
typedef struct {
    uint64_t epoch;
    uint32_t queue;
    uint32_t token;
    uint64_t response_size;
    struct virtio_gpu_ctrl_hdr header;
} EngineHeld;

/* The engine's own state, in its process. */
typedef struct EngineCtx EngineCtx;

struct EngineCtx {
    const char *uuid;
    unsigned flags;
    int fd;
    int sock;
    bool hung_up;
    EngineState *state;
    uint8_t *request;
    uint8_t *response;
    EngineHeld held[ENGINE_MAX_HELD];
    unsigned nheld;
};

typedef struct {
    pid_t pid;
    int sock;
    EngineState *state;
} EnginePeer;

/* Starts it; NULL and *error (a negative errno) if attaching fails. */
EnginePeer *engine_peer_try_start(const char *uuid, unsigned flags, int *error);
EnginePeer *engine_peer_start(const char *uuid, unsigned flags);
/* Ends it by closing its file, or by SIGKILL. Both free @peer. */
void engine_peer_stop(EnginePeer *peer);
void engine_peer_kill(EnginePeer *peer);

/*
 * Runs @fn in the engine with a copy of @arg, and copies that back. Returns @fn's result, or -EPIPE
 * if the engine died of it. @size: 32 KiB at most.
 */
typedef int (*EngineCall)(EngineCtx *ctx, void *arg);
int engine_peer_call(EnginePeer *peer, EngineCall fn, void *arg, size_t size);

/* From now on the engine does not do @what (ENGINE_HOLD_...). It has read that when this returns.
 */
void engine_peer_hold(EnginePeer *peer, unsigned int what);

/* ---- for use in the engine's process; 0 or a negative errno ---- */

/*
 * Makes the response to a request, with its header's fence and its payload; returns its size, at
 * most @resp_size.
 */
size_t engine_echo(const uint8_t *req, size_t req_size, uint8_t *resp, size_t resp_size);
int engine_ioctl(EngineCtx *ctx, unsigned long request, void *arg);
/*
 * The engine's VM has ended, so the driver has detached it: from now on this process is the next
 * engine, which systemd would have started. The file keeps its number.
 */
int engine_replace(EngineCtx *ctx);
int engine_info(EngineCtx *ctx, struct vgpu_engine_info *info);
/* The present epoch, from the driver. */
uint64_t engine_epoch(EngineCtx *ctx);
/* Arguments of QUEUE_EXCHANGE: takes one request, gives one answer. */
struct vgpu_queue_exchange exchange_for_pop(unsigned queue, uint64_t epoch, void *buf, size_t size,
                                            struct vgpu_queue_request *request);
struct vgpu_queue_exchange exchange_for_push(uint64_t epoch, struct vgpu_queue_answer *answer);
/*
 * They, carried out. EAGAIN: there is no request; ESTALE, EPROTO: epoch over, queue broken;
 * EMSGSIZE: larger than the buffer, and only request->request_size is set.
 */
int engine_exchange_pop(EngineCtx *ctx, struct vgpu_queue_exchange *x);
int engine_pop(EngineCtx *ctx, unsigned queue, uint64_t epoch, void *buf, size_t size,
               struct vgpu_queue_request *request);
int engine_push(EngineCtx *ctx, unsigned queue, uint64_t epoch, uint32_t token, const void *buf,
                size_t size);
/* Pops and answers until nothing is left. */
void engine_serve_queue(EngineCtx *ctx, unsigned queue);

/* ---- the same from the test ---- */

int peer_info(EnginePeer *peer, struct vgpu_engine_info *info);
uint64_t peer_epoch(EnginePeer *peer);
int peer_ready(EnginePeer *peer, uint32_t num_capsets);
int peer_reset_done(EnginePeer *peer, uint64_t epoch);
int peer_fail(EnginePeer *peer, const char *reason);

/* In the present epoch. */
int peer_publish(EnginePeer *peer, uint64_t offset, uint64_t size, uint64_t addr);
int peer_unpublish(EnginePeer *peer, uint64_t offset, uint64_t size);
/* Pins ranges of guest memory (64 at most) and maps them; the mapping's address in @addr. */
int peer_pin(EnginePeer *peer, const struct vgpu_mem_entry *entries, unsigned nentries,
             uint32_t flags, uint64_t *offset, uint64_t *addr);
int peer_unpin(EnginePeer *peer, uint64_t offset);

#endif /* ENGINE_PEER_H */
