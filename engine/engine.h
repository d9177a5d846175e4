/* SPDX-License-Identifier: MIT */
/*
 * State of one engine: one vGPU, one virglrenderer.
 *
 * Threads. Everything runs on the main thread, with two exceptions: virglrenderer reports fences on
 * threads of its own, and those only touch engine->fences and engine->lifelines (each has a lock)
 * and transport push(); and a thread copies the picture, with engine->scanout under its own lock.
 */
#ifndef ENGINE_ENGINE_H
#define ENGINE_ENGINE_H

#include "cuda_context.h"
#include "fence.h"
#include "lifelines.h"
#include "parking.h"
#include "request.h"
#include "scanout.h"
#include "transport.h"

#include <glib.h>
#include <stdbool.h>
#include <sys/types.h>

#if G_BYTE_ORDER != G_LITTLE_ENDIAN
#error "virtio and virglrenderer structures are used in place, which needs a little-endian host"
#endif

/* Limits of what one guest can make the engine hold. */
#define ENGINE_MAX_RESOURCES   65536u
#define ENGINE_MAX_CONTEXTS    128u   /* each is a process; Debian's render server stops at 256 */
#define ENGINE_MAX_MAPPINGS    49152u /* without any left, of 65,530, malloc() fails, too */
#define ENGINE_MAX_REQUEST     (16u << 20)
#define ENGINE_MAX_CAPSETS     2u /* Venus and CUDA */
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

    bool has_renderer;   /* virglrenderer runs */
    pid_t render_server; /* the one child beside CUDA's workers; 0: unknown, or there is none */
    bool opaque;         /* the driver exports memory in no other form; see resource_map() */
    struct engine_capset capsets[ENGINE_MAX_CAPSETS];
    uint32_t num_capsets;

    GHashTable *resources;  /* id -> struct resource */
    GHashTable *contexts;   /* id -> struct context */
    uint64_t contexts_made; /* since the start */
    uint64_t shm_bytes;     /* of host shared memory, see host_memory.h */
    uint64_t image_bytes;   /* of images of 2D resources */
    unsigned int mappings;  /* of the guest's memory and of what it shares with workers */
    struct cuda_host cuda;
    struct fence_table fences;
    struct lifelines lifelines;
    struct parking parking;
    struct scanout scanout;

    uint8_t *request_buf;
    size_t request_buf_size;
    GByteArray *response;

    bool closed;        /* the VM has ended; the next one gets another engine */
    uint64_t requests;  /* handled so far */
    unsigned int rests; /* see watch_contexts() */
};

void engine_init(struct engine *engine, struct vgpu_transport *transport);
void engine_clear(struct engine *engine);

/* Starts virglrenderer, and fills in engine->capsets. */
bool engine_start_renderer(struct engine *engine, GError **error);

/* For CUDA alone, which has been offered: there is no virglrenderer, and none is asked anything. */
void engine_start_without_renderer(struct engine *engine);

/* What requests are taken into. */
void engine_set_request_buf(struct engine *engine, size_t size);

/* Forgets everything that the guest has made; answers nothing. */
void engine_reset(struct engine *engine);

#endif /* ENGINE_ENGINE_H */
