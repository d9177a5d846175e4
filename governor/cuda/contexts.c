// SPDX-License-Identifier: MIT
#include "contexts.h"

#include "forks.h"
#include "fronts.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* Those that the program made, but for primary ones. */
static CUcontext *list;
static unsigned int count, room;
static _Atomic bool unknown;

/* Under the lock. */
static bool make_room(void)
{
    unsigned int more = room ? 2 * room : 16;
    CUcontext *grown;

    if (count < room)
        return true;
    grown = realloc(list, more * sizeof(*grown));
    if (!grown)
        return false;
    list = grown;
    room = more;
    return true;
}

void contexts_add(CUcontext context)
{
    pthread_mutex_lock(&lock);
    if (make_room())
        list[count++] = context;
    else
        unknown = true;
    pthread_mutex_unlock(&lock);
}

void contexts_remove(CUcontext context)
{
    pthread_mutex_lock(&lock);
    for (unsigned int i = 0; i < count; i++)
        if (list[i] == context)
            list[i--] = list[--count];
    pthread_mutex_unlock(&lock);
}

void contexts_remove_detached(CUcontext context)
{
    contexts_remove(context);
    unknown = true;
}

bool contexts_are_known(void)
{
    return !unknown;
}

CUcontext contexts_find_primary(CUdevice device)
{
    CUcontext primary;
    unsigned int flags;
    int active = 0;

    if (CARD(cuDevicePrimaryCtxGetState, device, &flags, &active) != CUDA_SUCCESS || !active ||
        CARD(cuDevicePrimaryCtxRetain, &primary, device) != CUDA_SUCCESS)
        return NULL;
    CARD(cuDevicePrimaryCtxRelease_v2, device);
    return primary;
}

void contexts_each(void (*func)(CUcontext context, void *data), void *data)
{
    CUcontext primary;
    int devices = 0;

    pthread_mutex_lock(&lock);
    for (unsigned int i = 0; i < count; i++)
        func(list[i], data);
    pthread_mutex_unlock(&lock);
    CARD(cuDeviceGetCount, &devices);
    for (CUdevice device = 0; device < devices; device++)
        if ((primary = contexts_find_primary(device)))
            func(primary, data);
}

void contexts_forget_parent(void)
{
    pthread_mutex_init(&lock, NULL);
    count = 0;
    unknown = false;
}
