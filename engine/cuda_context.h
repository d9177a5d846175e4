/* SPDX-License-Identifier: MIT */
/*
 * A guest program's CUDA (cuda-remote/wire/control.h): a worker of its own on the host, to which
 * the engine passes on what the program asks for beside its calls. The calls themselves go through
 * memory that both share, and which the engine only publishes: it sees no CUDA.
 *
 * A program can also lend memory of its VM's to its worker: a blob of guest memory, of which the
 * driver makes a file. The worker's GPU may use it until the worker has given it back, or has been
 * reaped. The guest uses it for others when its blob has ended, so until then that has to wait.
 *
 * The engine waits for no worker. What a program waits for is a fence: for a reply, or for an
 * answer to a call. Errors are negative errno values.
 */
#ifndef ENGINE_CUDA_CONTEXT_H
#define ENGINE_CUDA_CONTEXT_H

#include "cuda_worker.h"

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct cuda_context;
struct engine;
struct host_memory;

/*
 * Of all programs: each answer that is waited for occupies an entry of the guest's control queue,
 * which has 256. The others look again after a moment.
 */
#define CUDA_WAITS_MAX 96u

/*
 * Of all programs: parts of the VM's memory that workers have. The end of each, if its program was
 * killed, occupies such an entry until the worker is reaped.
 */
#define CUDA_LOANS_MAX 96u

/**
 * struct cuda_host - what an engine needs to offer CUDA
 * @program: no path: it does not
 * @environment: of workers
 * @children: workers that have not been reaped, by their pids
 * @waits: of all contexts
 */
struct cuda_host {
    struct cuda_worker program;
    GStrv environment;
    GHashTable *children;
    unsigned int waits;
};

void cuda_host_init(struct cuda_host *host);
void cuda_host_clear(struct cuda_host *host);
/* Workers are started with what is the environment now. */
void cuda_host_offer(struct cuda_host *host, const struct cuda_worker *program);
/* A worker was started, for the context with this serial. */
void cuda_host_add(struct cuda_host *host, pid_t pid, uint64_t serial);
bool cuda_host_knows(const struct cuda_host *host, pid_t pid);
/* True: it was a worker of CUDA's, which has ended. */
bool cuda_host_reaped(struct cuda_host *host, pid_t pid);
/* Whether the worker of the context with this serial has not been reaped. */
bool cuda_host_has(const struct cuda_host *host, uint64_t serial);
/* Kills those that are left; returns how many there are. @borrowers: of them, those to which memory
 * of the VM's is lent; or NULL. */
unsigned int cuda_host_kill(const struct cuda_host *host, unsigned int *borrowers);

/* The content of the capset, a struct control_caps. */
void cuda_context_fill_caps(const struct engine *engine, void *caps);

/* @connection: a duplicate of the connection to the worker, owned by the caller; it is readable
 * when cuda_context_receive() has something to do. NULL: there is no worker. */
struct cuda_context *cuda_context_new(struct engine *engine, uint32_t ctx_id, uint64_t serial,
                                      int *connection);

/* Ends the worker. Fences that were waited for stay as they are. */
void cuda_context_free(struct cuda_context *cuda);

/* One message. -EINVAL: it is none, or comes before the reply to another; -EPIPE. @dismissed: it
 * becomes true if the program ends its worker with it. */
int cuda_context_submit(struct cuda_context *cuda, const void *message, size_t bytes,
                        bool *dismissed);

/* A fence for what was submitted just before it. */
void cuda_context_fence(struct cuda_context *cuda, uint32_t ring_idx, uint64_t id);

/* The memory behind a blob, with another user; NULL: there is none of that id and size. */
struct host_memory *cuda_context_blob(struct cuda_context *cuda, uint64_t blob_id, uint64_t size);

/* False: the worker has ended, or broke the rules. */
bool cuda_context_receive(struct cuda_context *cuda);

/* Tells the program that its worker has ended, and if it has @dismissed it, which it then waits
 * for, without an error: the guest's kernel would log one for each program. */
void cuda_context_fail(struct cuda_context *cuda, bool dismissed);

#endif /* ENGINE_CUDA_CONTEXT_H */
