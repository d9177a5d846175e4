/* SPDX-License-Identifier: MIT */
/*
 * State of one engine: one vGPU, one virglrenderer.
 *
 * Threads. Everything runs on the main thread, with one exception: virglrenderer reports fences on
 * threads of its own, and those only touch engine->fences (its lock) and transport push().
 *
 * Guest input. A request is a copy that the guest can't change any more, but everything in it is
 * the guest's choice. What a handler doesn't check goes nowhere.
 */
#ifndef ENGINE_ENGINE_H
#define ENGINE_ENGINE_H

#include "fence.h"
#include "scanout.h"
#include "transport.h"

#include <glib.h>
#include <linux/virtio_gpu.h>
#include <stdbool.h>

#if G_BYTE_ORDER != G_LITTLE_ENDIAN
#error "virtio and virglrenderer structures are used in place, which needs a little-endian host"
#endif

/* Bounds of what one guest can make the engine hold. */
#define ENGINE_MAX_RESOURCES   65536u
#define ENGINE_MAX_CONTEXTS    128u /* each is a process; Debian's render server stops at 256 */
#define ENGINE_MAX_REQUEST     (16u << 20)
#define ENGINE_MAX_CAPSETS     4u
#define ENGINE_MAX_CAPSET_SIZE 65536u

#define ENGINE_PAGE_SIZE 4096u

struct engine_capset {
    uint32_t id;
    uint32_t max_version;
    uint32_t max_size;
};

struct engine {
    struct vgpu_transport *transport;
    struct vgpu_engine_info info;
    uint64_t epoch;

    bool virgl; /* OpenGL commands run in this process; see renderer.h */
    struct engine_capset capsets[ENGINE_MAX_CAPSETS];
    uint32_t num_capsets;

    GHashTable *resources; /* id -> struct resource */
    GHashTable *contexts;  /* id -> struct context */
    uint64_t shm_bytes;    /* of resources that are host shared memory */
    uint64_t image_bytes;  /* of images of 2D resources */
    struct fence_table fences;
    struct scanout scanout;

    uint8_t *request_buf;
    size_t request_buf_size;
    GByteArray *response;

    uint64_t requests; /* handled so far */
    bool polling;      /* the control queue is looked at without doorbells; see poller.h */
};

/* A command of the guest: a private copy. */
struct request {
    const uint8_t *data;
    size_t size;
    size_t response_size; /* the guest's room for the answer */
    uint64_t epoch;
    uint32_t queue;
    uint32_t token;
    struct virtio_gpu_ctrl_hdr hdr; /* zero-filled where the request is shorter */
};

void engine_init(struct engine *engine, struct vgpu_transport *transport);
void engine_clear(struct engine *engine);

/*
 * Starts virglrenderer with as much of @capsets (enum capset_bits) as there is, at least one, and
 * fills in engine->capsets; @render_node as of renderer_start().
 */
bool engine_start_renderer(struct engine *engine, uint32_t capsets, const char *render_node,
                           GError **error);

/* Forgets everything that the guest has made; answers nothing. False: the renderer is gone. */
bool engine_reset(struct engine *engine);

/*
 * Handles at most @budget chains of a queue. 1: there may be more; 0: it is empty; negative errno:
 * ESTALE, EPROTO and ENOTCONN as of pop, all mean to wait for the next event.
 */
int engine_run_queue(struct engine *engine, uint32_t queue, unsigned int budget);

/*
 * For handlers: makes engine->response @size zeroed bytes, beginning with the header that the
 * dispatcher fills in. Valid until the next call.
 */
void *engine_response(struct engine *engine, size_t size);

#endif /* ENGINE_ENGINE_H */
