/* SPDX-License-Identifier: MIT */
/*
 * The vtest protocol, version 3, as Mesa's Venus speaks it: the part of virglrenderer's
 * vtest/vtest_protocol.h that this client uses. A message is two words, length and command, and
 * that many words of data; so is an answer. A descriptor follows its answer as SCM_RIGHTS of one
 * byte more.
 *
 * The protocol has no errors: a client that is refused something sees its connection end, or, if it
 * requested memory, gets a descriptor that cannot be mapped.
 */
#ifndef GUARD_VTEST_H
#define GUARD_VTEST_H

#include <stdint.h>

#define VTEST_PROTOCOL_VERSION 3u
#define VTEST_HEADER_WORDS     2u

enum vtest_command {
    VTEST_RESOURCE_UNREF = 3,
    VTEST_RESOURCE_BUSY_WAIT = 7, /* with id 0, which asks whether the server knows PING */
    VTEST_CREATE_RENDERER = 8,    /* the one whose length counts bytes */
    VTEST_PING_PROTOCOL_VERSION = 10,
    VTEST_PROTOCOL_VERSION_COMMAND = 11,
    VTEST_GET_PARAM = 15,
    VTEST_GET_CAPSET = 16,
    VTEST_CONTEXT_INIT = 17,
    VTEST_RESOURCE_CREATE_BLOB = 18,
    VTEST_SYNC_CREATE = 19,
    VTEST_SYNC_UNREF = 20,
    VTEST_SYNC_READ = 21,
    VTEST_SYNC_WRITE = 22,
    VTEST_SYNC_WAIT = 23,
    VTEST_SUBMIT_CMD2 = 24,
    VTEST_NUM_COMMANDS,
};

#define VTEST_PARAM_MAX_TIMELINE_COUNT 1u
/* virglrenderer's, of a context. */
#define VTEST_TIMELINES 64u

#define VTEST_SYNC_WAIT_ANY    (1u << 0)
#define VTEST_SUBMIT_RING_IDX  (1u << 0)
#define VTEST_SYNC_ENTRY_WORDS 3u /* id, low and high word of a value */

/* Words of VTEST_RESOURCE_CREATE_BLOB. */
struct vtest_blob {
    uint32_t type; /* as VIRGL_RENDERER_BLOB_MEM_* */
    uint32_t flags;
    uint32_t size[2];
    uint32_t id[2];
};

/*
 * VTEST_SUBMIT_CMD2 is a count, that many of these, commands and sync entries; offsets and sizes in
 * words.
 */
struct vtest_batch {
    uint32_t flags;
    uint32_t cmd_offset;
    uint32_t cmd_size;
    uint32_t sync_offset;
    uint32_t sync_count;
    uint32_t ring_idx;
};

static inline uint64_t vtest_u64(const uint32_t *words)
{
    return words[0] | (uint64_t)words[1] << 32;
}

#endif /* GUARD_VTEST_H */
