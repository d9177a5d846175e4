/* SPDX-License-Identifier: MIT */
/*
 * vgpu-cuda-worker, as engine and guard start it: one for each program that computes, which it
 * serves by a connection. It ends with whoever has started it, and has no other files of theirs.
 */
#ifndef ENGINE_CUDA_WORKER_H
#define ENGINE_CUDA_WORKER_H

#include <glib.h>
#include <stdbool.h>
#include <sys/types.h>

/**
 * struct cuda_worker - the program
 * @path: NULL: there is no CUDA
 * @is_confined: it restricts itself further, for which the kernel must have Landlock
 * @is_of_vm: its connection is an engine's, which sends it memory of the VM's, and not its
 * program's
 */
struct cuda_worker {
    const char *path;
    bool is_confined;
    bool is_of_vm;
};

/*
 * Its environment: what this process was given, and nothing of systemd's protocol. It must be a
 * member of the slice, or it has no GPU.
 */
GStrv cuda_worker_environment(void);

/*
 * In a new process, whose parent is @parent: becomes the worker of the program at the other end of
 * @fd. Allocates nothing, for which the parent's threads may have had the lock.
 */
G_NORETURN void cuda_worker_become(const struct cuda_worker *worker, char **environment,
                                   pid_t parent, int fd);

/* Starts one, and returns the connection to it; -1: it cannot be started (errno). */
int cuda_worker_start(const struct cuda_worker *worker, char **environment, pid_t *pid);

#endif /* ENGINE_CUDA_WORKER_H */
