// SPDX-License-Identifier: MIT
#include "gpu.h"

#include "forks.h"

struct gpu gpu_ungoverned;
struct gpu *_Atomic gpus[GPUS_MAX];
pthread_mutex_t gpus_lock = PTHREAD_MUTEX_INITIALIZER;

static void forget_owed(struct gpu *gpu)
{
    for (unsigned int i = 0; i < GOVERNOR_CLASSES; i++)
        gpu->owed[i] = 0;
}

void gpu_forget_parent(void)
{
    pthread_mutex_init(&gpus_lock, NULL);
    for (unsigned int i = 0; i < GPUS_MAX; i++) {
        struct gpu *gpu = atomic_load(&gpus[i]);

        if (!gpu || gpu == &gpu_ungoverned)
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
        gpu->shut = false;
    }
}

void gpu_each(void (*func)(struct gpu *gpu, void *data), void *data)
{
    for (unsigned int i = 0; i < GPUS_MAX; i++) {
        struct gpu *gpu = atomic_load_explicit(&gpus[i], memory_order_acquire);

        if (gpu && gpu != &gpu_ungoverned)
            func(gpu, data);
    }
}
