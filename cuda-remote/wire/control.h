/* SPDX-License-Identifier: MIT */
/*
 * The messages beside the channels: over a socket of packets (SOCK_SEQPACKET) between a program and
 * its worker. The program asks, the worker answers each with one reply, in order. Memory is made by
 * the worker, so that its size cannot change under it, and comes as a descriptor with the reply.
 *
 * A program in a VM has no socket: it sends the same messages with EXECBUFFER in a context of
 * virtio-gpu of CONTROL_CAPSET. Its vGPU's engine passes them on to the worker, and the replies
 * into the context's first blob (struct control_page). Memory is a blob whose id is its address.
 *
 * Both ends have the arena at the same addresses: what they share lies in it, so a pointer into
 * shared memory means the same at both. The program chooses where it is.
 */
#ifndef CUDA_REMOTE_CONTROL_H
#define CUDA_REMOTE_CONTROL_H

#include <stdint.h>

#define CONTROL_MAGIC        0x56475543u
#define CONTROL_MAJOR        1u
#define CONTROL_MINOR        3u
#define CONTROL_MINOR_OUTPUT 1u /* from then on a program knows ANSWER_OUTPUT */
#define CONTROL_MINOR_END    2u /* from then on an engine knows CONTROL_END */
#define CONTROL_MINOR_NVML   3u /* from then on an engine knows CONTROL_NVML */

#define CONTROL_SOCKET   "/run/vgpu/cuda.sock"
#define CONTROL_CALLS    2048u /* numbers of calls that a worker can have */
#define CONTROL_SHARE    (64ull << 30)
#define CONTROL_SETTINGS 2048u

#define CONTROL_CAPSET    27u /* Linux' driver takes none above 30 */
#define CONTROL_PAGE_BLOB 1u  /* id of the blob with the page */
#define CONTROL_RINGS     64u /* timelines of a context */
#define CONTROL_RING_ASK  1u  /* a fence on it is signalled when the reply is in the page */
#define CONTROL_RING_WAIT 2u  /* this and later ones: when a CONTROL_WAIT is over */

enum control_kind {
    CONTROL_HELLO = 1, /* struct control_hello; reply: struct control_welcome */
    CONTROL_CHANNEL,   /* @address: where the channel lies; reply with its descriptor */
    CONTROL_CHANNEL_END,
    CONTROL_SHARE_NEW, /* @address, @bytes: memory for both; reply with its descriptor */
    CONTROL_SHARE_END,
    /* In a VM, where the two can't wake each other; for the engine, without a reply: */
    CONTROL_WAKE, /* @address: of a channel whose worker sleeps */
    CONTROL_WAIT, /* @address: of a channel, @bytes: for so many answers; it may end early */
    CONTROL_END,  /* the worker ends; all fences of the context are signalled when it has */
    /* In place of CONTROL_HELLO, of a program that does not compute (nvml.h). */
    CONTROL_NVML,
    /*
     * In a VM: the blob with this id is of guest memory (HOST3D_GUEST), and the program has it at
     * that address, @address. The engine sends the worker a file of it. CONTROL_REFUSED: the VM's
     * memory is of a kind of which that cannot be; it will be refused again.
     */
    CONTROL_SHARE_GUEST,
};

struct control_message {
    uint32_t magic;
    uint32_t kind;
    uint64_t address;
    uint64_t bytes;
};

#define CONTROL_PID "VGPU_PID=" /* a setting: the program's number, as it knows it */

/* @settings: NAME=VALUE texts, each with its 0: variables of the program that the driver reads. */
struct control_hello {
    struct control_message message; /* @address, @bytes: the arena */
    uint16_t major, minor;
    uint32_t settings_bytes;
    char settings[CONTROL_SETTINGS];
};

enum control_result {
    CONTROL_OK,
    CONTROL_REFUSED,  /* the version differs, or a rule was broken */
    CONTROL_OCCUPIED, /* the worker has something at these addresses: choose others */
    CONTROL_NO_MEMORY,
    CONTROL_NO_DRIVER, /* cuda_result says why */
    CONTROL_ANSWERED,  /* no reply: in the channel at @value, whose client is CHANNEL_ASLEEP_FAR */
};

struct control_reply {
    uint32_t magic;
    uint32_t result;
    uint64_t value;
};

/* @has: a bit for each number of a call that the driver has. */
struct control_welcome {
    struct control_reply reply;
    uint16_t major, minor;
    uint32_t cuda_result;
    int32_t driver_version;
    uint32_t reserved;
    uint64_t has[CONTROL_CALLS / 64];
};

/*
 * What a guest gets of the capset. A program goes on only with its own @major, and sends nothing
 * that an engine of @minor does not know: the guest's kernel would log each such message.
 * @window: bytes of memory that all programs of the VM can share with their workers
 * @flags: CONTROL_CAPS_*
 */
struct control_caps {
    uint32_t magic;
    uint16_t major, minor;
    uint64_t window;
    uint64_t flags;
    uint64_t reserved[29];
};

#define CONTROL_CAPS_GUEST_MEMORY 1u /* CONTROL_SHARE_GUEST, beside the window */

#define CONTROL_REPLY_MOST 512u

/*
 * @alive: CONTROL_MAGIC while there is a worker. Of an engine that was killed the page stays as it
 * is
 * @replies: how many there were
 * @taken: how many messages the engine has taken, before it signals a fence for the last one. If a
 * fence is signalled and it is the same as before, there is no engine
 */
struct control_page {
    uint32_t alive;
    uint32_t reserved;
    uint64_t replies;
    uint64_t taken;
    uint64_t reply[CONTROL_REPLY_MOST / sizeof(uint64_t)];
};

#endif
