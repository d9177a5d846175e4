// SPDX-License-Identifier: MIT
#include "join.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "forks.h"
#include "mover.h"
#include "real.h"
#include "slices.h"

/* The driver returns upper case. */
static bool address_of(CUdevice device, char *pci, size_t size)
{
    if (DRIVER(cuDeviceGetPCIBusId, pci, (int)size, device) != CUDA_SUCCESS)
        return false;
    for (char *at = pci; *at; at++)
        *at = (char)tolower((unsigned char)*at);
    return true;
}

/* &gpu_ungoverned: no slice; NULL: unknown for now. */
static struct gpu *look_for_slice(CUdevice device)
{
    char pci[32] = "";
    struct gpu *gpu;
    char *path;

    if (!address_of(device, pci, sizeof(pci)))
        return NULL;
    path = slices_socket_of(pci);
    if (!path && !slices_are_required())
        return &gpu_ungoverned;
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
    pthread_mutex_lock(&gpus_lock);
    gpu = atomic_load(&gpus[device]);
    if (!gpu)
        gpu = look_for_slice(device);
    else if (gpu != &gpu_ungoverned && !gpu->member)
        join_again(gpu);
    atomic_store_explicit(&gpus[device], gpu, memory_order_release);
    pthread_mutex_unlock(&gpus_lock);
    return gpu == &gpu_ungoverned ? NULL : gpu;
}

/* Each launch asks. */
struct gpu *gpu_of(CUdevice device)
{
    struct gpu *gpu;

    if (device < 0 || device >= GPUS_MAX)
        return NULL;
    gpu = atomic_load_explicit(&gpus[device], memory_order_acquire);
    if (gpu == &gpu_ungoverned)
        return NULL;
    return gpu && gpu->member ? gpu : look_up(device);
}

struct gpu *gpu_current(void)
{
    CUdevice device;

    return DRIVER(cuCtxGetDevice, &device) == CUDA_SUCCESS ? gpu_of(device) : NULL;
}

CUresult gpu_refusal(const struct gpu *gpu)
{
    return gpu->member ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_SYSTEM_NOT_READY;
}
