// SPDX-License-Identifier: MIT
#include "gpu.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "forks.h"
#include "mover.h"
#include "real.h"
#include "slices.h"

#define GPUS_MAX 64

/* Represents a GPU without a slice. */
static struct gpu ungoverned;
static struct gpu *_Atomic gpus[GPUS_MAX];
/* Held while a GPU is looked up. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void forget_owed(struct gpu *gpu)
{
    for (unsigned int i = 0; i < GOVERNOR_CLASSES; i++)
        gpu->owed[i] = 0;
}

void gpu_forget_parent(void)
{
    pthread_mutex_init(&lock, NULL);
    for (unsigned int i = 0; i < GPUS_MAX; i++) {
        struct gpu *gpu = atomic_load(&gpus[i]);

        if (!gpu || gpu == &ungoverned)
            continue;
        pthread_mutex_init(&gpu->primary_lock, NULL);
        pthread_mutex_init(&gpu->own_lock, NULL);
        /* A child has none of its parent's memory. */
        gpu->charged = gpu->displaced = gpu->own = gpu->own_beyond = gpu->graphs = 0;
        forget_owed(gpu);
        gpu->seen_ns = 0;
        /* Its thread is the parent's, and so are its events. */
        gpu->meter = NULL;
        gpu->mover = NULL;
    }
}

/* The driver returns upper case. */
static bool address_of(CUdevice device, char *pci, size_t size)
{
    if (DRIVER(cuDeviceGetPCIBusId, pci, (int)size, device) != CUDA_SUCCESS)
        return false;
    for (char *at = pci; *at; at++)
        *at = (char)tolower((unsigned char)*at);
    return true;
}

/* &ungoverned: no slice; NULL: unknown for now. */
static struct gpu *look(CUdevice device)
{
    char pci[32] = "";
    struct gpu *gpu;
    char *path;

    if (!address_of(device, pci, sizeof(pci)))
        return NULL;
    path = slices_socket_of(pci);
    if (!path && !slices_are_required())
        return &ungoverned;
    gpu = calloc(1, sizeof(*gpu));
    if (gpu) {
        gpu->device = device;
        memcpy(gpu->pci, pci, sizeof(pci));
        pthread_mutex_init(&gpu->primary_lock, NULL);
        pthread_mutex_init(&gpu->own_lock, NULL);
        gpu->member = path ? governor_member_get(path, slices_is_required(path)) : NULL;
        if (gpu->member && governor_member_moves(gpu->member))
            mover_start(gpu);
    }
    free(path);
    return gpu;
}

/* A required slice may have become available. */
static void join_again(struct gpu *gpu)
{
    char *path = slices_socket_of(gpu->pci);

    if (path)
        gpu->member = governor_member_get(path, slices_is_required(path));
    free(path);
}

static __attribute__((noinline)) struct gpu *look_up(CUdevice device)
{
    struct gpu *gpu;

    forks_watch();
    pthread_mutex_lock(&lock);
    gpu = atomic_load(&gpus[device]);
    if (!gpu)
        gpu = look(device);
    else if (gpu != &ungoverned && !gpu->member)
        join_again(gpu);
    atomic_store_explicit(&gpus[device], gpu, memory_order_release);
    pthread_mutex_unlock(&lock);
    return gpu == &ungoverned ? NULL : gpu;
}

/* Each launch asks. */
static inline struct gpu *find(CUdevice device)
{
    struct gpu *gpu;

    if (device < 0 || device >= GPUS_MAX)
        return NULL;
    gpu = atomic_load_explicit(&gpus[device], memory_order_acquire);
    if (gpu == &ungoverned)
        return NULL;
    return gpu && gpu->member ? gpu : look_up(device);
}

struct gpu *gpu_of(CUdevice device)
{
    return find(device);
}

struct gpu *gpu_current(void)
{
    CUdevice device;

    return DRIVER(cuCtxGetDevice, &device) == CUDA_SUCCESS ? find(device) : NULL;
}

CUresult gpu_refusal(const struct gpu *gpu)
{
    return gpu->member ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_SYSTEM_NOT_READY;
}

void gpu_each(void (*func)(struct gpu *gpu, void *data), void *data)
{
    for (unsigned int i = 0; i < GPUS_MAX; i++) {
        struct gpu *gpu = atomic_load_explicit(&gpus[i], memory_order_acquire);

        if (gpu && gpu != &ungoverned)
            func(gpu, data);
    }
}
