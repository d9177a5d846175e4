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

/* The connection to a worker: the first file that virglrenderer opens for a context. */
struct fake_worker {
    int connection;
    int worker; /* its end; -1: it is dead */
};

struct fake_fence {
    bool global;
    uint32_t ctx_id;
    uint32_t ring_idx;
    uint64_t id;
};

/**
 * struct fake_virgl
 * @flags: of its initialisation
 * @governed: VGPU_GOVERNOR was set then
 * @refuse_flags: initialisation fails with any of these
 * @..._result: what the call returns
 * @signal_at_once: fences are done in another thread before create_fence returns
 * @fences: struct fake_fence, still pending
 * @map_misaligned: maps begin in the middle of a page
 * @export_opaque: blobs are exported in a form that only Vulkan can map
 * @export_shm: as shared memory
 * @map_content: the beginning of a map, of @map_content_words; NULL: zeroes
 * @busy_context: its worker has not finished its messages: whatever waits for its answer would hang
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
    int attach_iov_result;
    uint64_t map_size;
    bool map_misaligned;
    bool signal_at_once;
    bool export_opaque;
    bool export_shm;
    uint32_t venus_capset_size;
    uint32_t drm_capset_size;
    GArray *fences;
    const uint32_t *map_content;
    size_t map_content_words;
    uint32_t busy_context;
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

/* The GPU has finished the @index-th pending fence. */
void fake_virgl_signal(guint index);

/* A context's worker dies, and all its fences are reported as done. */
void fake_virgl_kill_worker(uint32_t ctx_id);

#endif /* FAKE_VIRGL_H */
