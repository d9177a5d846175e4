// SPDX-License-Identifier: MIT
/*
 * External semaphores: eight bytes in a file that processes share. A binary one has 1 in them while
 * it is signalled, a timeline's is its value.
 */
#include "timing.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { OPAQUE_FD = 1, TIMELINE_FD = 9 };

/* CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC, as far as it is looked at. */
struct description {
    uint32_t type;
    union {
        int fd;
        void *others[2];
    } handle;
    uint32_t flags;
};

/* CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS, _WAIT_PARAMS. */
struct parameters {
    uint64_t value;
    char others[136];
};

_Static_assert(sizeof(struct parameters) == 144, "CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS");

/* @state: stays mapped, for what streams still have to do with it. */
struct semaphore {
    bool is_timeline;
    uint64_t *state;
};

/* The descriptor is the driver's from now on. */
CUresult cuImportExternalSemaphore(struct semaphore **made, const struct description *of)
{
    void *state;

    ENTER();
    if (!made || !of || (of->type != OPAQUE_FD && of->type != TIMELINE_FD))
        return CUDA_ERROR_INVALID_VALUE;
    state = mmap(NULL, sizeof(uint64_t), PROT_READ | PROT_WRITE, MAP_SHARED, of->handle.fd, 0);
    if (state == MAP_FAILED)
        return CUDA_ERROR_INVALID_HANDLE;
    close(of->handle.fd);
    *made = malloc(sizeof(**made));
    **made = (struct semaphore){.is_timeline = of->type == TIMELINE_FD, .state = state};
    return CUDA_SUCCESS;
}

CUresult cuDestroyExternalSemaphore(struct semaphore *semaphore)
{
    ENTER();
    if (!semaphore)
        return CUDA_ERROR_INVALID_VALUE;
    free(semaphore);
    return CUDA_SUCCESS;
}

unsigned int semaphores_operations(bool signals, void *const *list, const void *parameters,
                                   unsigned int count, struct model_op *ops, unsigned int room)
{
    const struct parameters *of = parameters;

    if (!list || !of || count > room)
        return 0;
    for (unsigned int i = 0; i < count; i++) {
        const struct semaphore *semaphore = list[i];

        if (!semaphore)
            return 0;
        ops[i] = (struct model_op){
            .engine = MODEL_NONE,
            .kind = signals                  ? TIMING_WRITE_VALUE
                    : semaphore->is_timeline ? TIMING_WAIT_VALUE
                                             : TIMING_TAKE,
            .state = VALUE_IS_64,
            .data = {(uintptr_t)semaphore->state, semaphore->is_timeline ? of[i].value : 1}};
    }
    return count;
}

#define MOST 64

static CUresult enqueue(bool signals, void *const *list, const void *parameters, unsigned int count,
                        CUstream stream, bool per_thread)
{
    struct model_op ops[MOST];
    unsigned int made = semaphores_operations(signals, list, parameters, count, ops, MOST);

    return made ? waits_submit(stream, per_thread, ops, made) : CUDA_ERROR_INVALID_VALUE;
}

#define SEMAPHORES(name, signals, per_thread)                                                      \
    CUresult name(void *const *list, const void *parameters, unsigned int count, CUstream stream)  \
    {                                                                                              \
        ENTER();                                                                                   \
        return enqueue(signals, list, parameters, count, stream, per_thread);                      \
    }
SEMAPHORES(cuSignalExternalSemaphoresAsync, true, false)
SEMAPHORES(cuSignalExternalSemaphoresAsync_ptsz, true, true)
SEMAPHORES(cuWaitExternalSemaphoresAsync, false, false)
SEMAPHORES(cuWaitExternalSemaphoresAsync_ptsz, false, true)
