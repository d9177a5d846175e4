// SPDX-License-Identifier: MIT
#include "real.h"

#include <dlfcn.h>
#include <pthread.h>

#define REAL_PATH VGPU_REAL_DIR "/" VGPU_REAL_LIBRARY

_Thread_local unsigned int real_depth;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static void *library;

/* Stands in for functions that this driver lacks. */
static int return_missing(void)
{
    return VGPU_MISSING;
}

static void open_library(void)
{
    library = dlopen(REAL_PATH, RTLD_NOW | RTLD_NOLOAD);
}

void *real_find(const char *name)
{
    pthread_once(&once, open_library);
    return library ? dlsym(library, name) : NULL;
}

void *real_resolve(unsigned int entry)
{
    void *before = atomic_load_explicit(&entry_slots[entry], memory_order_relaxed);
    void *found = real_find(entry_points[entry].name);

    if (!found)
        found = (void *)return_missing;
    /* Something may stand in front of the driver by now. */
    atomic_compare_exchange_strong(&entry_slots[entry], &before, found);
    return found;
}
