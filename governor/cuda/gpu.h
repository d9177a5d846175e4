/* SPDX-License-Identifier: MIT */
/* The GPUs that this process uses, each with its membership. */
#ifndef GOVERNOR_CUDA_GPU_H
#define GOVERNOR_CUDA_GPU_H

#include "cuda_abi.h"
#include "member.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct meter;
struct gpu_mover;

/**
 * struct gpu - a GPU with a slice
 * @pci: its address, in small letters, as sysfs has it
 * @member: NULL: it was required to join, and that failed
 * @seen_ns: when what the driver has for itself was last asked for; 0: never
 * @charged: bytes that were charged, by all threads
 * @displaced: bytes of @charged that are in the host's memory
 * @changes: how often @charged or @displaced has changed
 * @owed: nanoseconds of the GPU's work that were not charged yet, by class (meter_owe())
 *
 * @primary_lock: held while the driver may begin or end the primary context, so that what it says
 *                afterwards is still so; before @own_lock and the meter's
 * @primary: its primary context, once this process has been given it; read without the lock, too
 *
 * @own_lock: over what follows
 * @own: bytes that were charged for what the driver has for itself; @own_beyond: the rest of it,
 * which was beyond the limit when it was found, and is charged all the same
 * @graphs: bytes that were charged for memory of graphs; written under @own_lock
 * @meter: of its time; NULL: no launch was measured so far
 * @mover: of its memory; NULL: none moves so far
 * @shut: it keeps threads out of the driver; under mover_hold()
 */
struct gpu {
    CUdevice device;
    char pci[32];
    GovernorMember *member;
    _Atomic uint64_t seen_ns;
    _Atomic uint64_t charged;
    _Atomic uint64_t displaced;
    _Atomic uint64_t changes;
    _Atomic uint64_t owed[GOVERNOR_CLASSES];

    pthread_mutex_t primary_lock;
    CUcontext _Atomic primary;

    pthread_mutex_t own_lock;
    uint64_t own;
    uint64_t own_beyond;
    _Atomic uint64_t graphs;
    struct meter *_Atomic meter;
    struct gpu_mover *_Atomic mover;
    bool shut;
};

#define GPUS_MAX 64

/* By device; NULL: not looked up so far. join.h looks them up, under the lock. */
extern struct gpu *_Atomic gpus[GPUS_MAX] __attribute__((visibility("hidden")));
extern pthread_mutex_t gpus_lock __attribute__((visibility("hidden")));
/* In place of one without a slice. */
extern struct gpu gpu_ungoverned __attribute__((visibility("hidden")));

/* Calls @func for each GPU with a slice that was used so far. */
void gpu_each(void (*func)(struct gpu *gpu, void *data), void *data);

#endif
