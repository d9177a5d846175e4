/* SPDX-License-Identifier: MIT */
/*
 * virglrenderer for the engine, without a GPU: linked instead of the library. It records its
 * arguments, fails when told to, and asserts what the real one only assumes.
 */
#ifndef FAKE_VIRGL_H
#define FAKE_VIRGL_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#define FAKE_VIRGL_WORDS 40

/*
 * Packets that a worker's socket has room for. A worker that is held up reads none, so the next one
 * would stop whoever sends it.
 */
#define FAKE_VIRGL_ROOM 277u

/**
 * struct fake_worker - a worker and the connection to it
 * @connection: the first file that virglrenderer opens for a context
 * @worker: the other end; -1: it is dead
 * @sent: packets, in all
 * @waits: @sent behind the last one that may make it wait
 * @answered: @sent at the last fence on ring 0 that it has answered, or at the last blob
 * @resources: those that it has
 */
struct fake_worker {
    int connection;
    int worker;
    uint64_t sent;
    uint64_t waits;
    uint64_t answered;
    GHashTable *resources;
};

struct fake_fence {
    uint32_t ctx_id;
    uint32_t ring_idx;
    uint64_t id;
    uint64_t sent; /* by then to its worker */
};

/**
 * struct fake_virgl
 * @flags: of its initialisation
 * @governed: VGPU_GOVERNOR was set then
 * @refuse_flags: initialisation fails with any of these
 * @..._result: what the call returns
 * @may_block: its caller serves nobody else, and may wait for its worker
 * @no_connection: a context's connection to its worker cannot be told from other files
 * @signal_at_once: fences are done in another thread before create_fence returns
 * @fences: struct fake_fence, still pending
 * @map_misaligned: maps begin in the middle of a page
 * @export_opaque: blobs are exported in a form that only Vulkan can map
 * @export_shm: as shared memory
 * @map_content: the beginning of a map, of @map_content_words; NULL: zeroes
 * @submitted: dwords of the last command buffer, or -1
 * @submitted_words: the first of them
 * @resources: ids
 * @contexts: id -> struct fake_worker
 */
struct fake_virgl {
    int flags;
    bool governed;
    int refuse_flags;
    unsigned int resets;
    int context_result;
    int submit_result;
    int fence_result;
    int blob_result;
    int map_result;
    uint64_t map_size;
    bool map_misaligned;
    bool may_block;
    bool no_connection;
    bool signal_at_once;
    bool export_opaque;
    bool export_shm;
    uint32_t venus_capset_size;
    GArray *fences;
    const uint32_t *map_content;
    size_t map_content_words;
    int submitted;
    uint32_t submitted_words[FAKE_VIRGL_WORDS];
    unsigned int attached;
    unsigned int detached;
    GHashTable *resources;
    GHashTable *contexts;
};

extern struct fake_virgl fake_virgl;

void fake_virgl_init(void);
void fake_virgl_clear(void);

/* The GPU, or the worker, has finished the @index-th pending fence. */
void fake_virgl_signal(guint index);

/* The workers answer all that they were sent on ring 0. */
void fake_virgl_answer(void);

/* A context's worker dies, and all its fences are reported as done. */
void fake_virgl_kill_worker(uint32_t ctx_id);

#endif /* FAKE_VIRGL_H */
