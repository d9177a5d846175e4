/* SPDX-License-Identifier: MIT */
/*
 * The way to the program's worker. There is one worker for each library, and so at most one way is
 * open. connect.c (of NVML nvml.c) opens and closes it, and asks one question at a time; the rest
 * may come from any thread.
 */
#ifndef CUDA_REMOTE_GUEST_TRANSPORT_H
#define CUDA_REMOTE_GUEST_TRANSPORT_H

#include "channel.h"
#include "control.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * struct transport
 * @name, @why: for a message: what was reached, if there was no worker behind it
 * @open: @path: where; @minor: the least that an engine must know, of control.h. False: there is no
 * such way here (errno)
 * @ask: a message, and the reply of exactly so many bytes; false: the worker is gone
 * @share: a message for memory, which is mapped at its address: @is_mapped; false: the worker is
 * gone
 * @lend: the same for memory of the program's VM, which the worker maps; NULL: there is no VM
 * @wake: the worker, which sleeps at the channel
 * @await: waits for so many answers; it may return early, and does so if the worker is gone
 * @is_gone: whether the worker is
 * @end: ends the worker, and waits for that, but no longer than so many milliseconds
 */
struct transport {
    const char *name, *why;
    bool (*open)(const char *path, uint16_t minor);
    bool (*ask)(const void *message, size_t bytes, void *reply, size_t reply_bytes);
    bool (*share)(const struct control_message *message, struct control_reply *reply,
                  bool *is_mapped);
    bool (*lend)(const struct control_message *message, struct control_reply *reply,
                 bool *is_mapped);
    void (*wake)(struct channel_shared *channel);
    void (*await)(struct channel_shared *channel, uint64_t answers);
    bool (*is_gone)(void);
    void (*end)(int milliseconds);
    void (*close)(void);
};

extern const struct transport transport_socket, transport_virtio;

/* The one that leads to a worker here, which is open then. NULL: none does; *@path, which was
 * tried, and @why. */
const struct transport *transport_find(uint16_t minor, const char **path, const char **why);

/*
 * As many as the client has asked for: the worker gives no more. Whoever has marked himself asleep
 * looks by this for the last time, so it may not come before the mark (channel_publish()). A
 * channel of a VM that was moved has another content.
 */
static inline bool transport_has_answers(const struct channel_shared *channel, uint64_t answers)
{
    return atomic_load(&channel->worker.done) == answers &&
           *(const volatile uint32_t *)&channel->magic == CHANNEL_MAGIC;
}

#endif
