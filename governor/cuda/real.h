/* SPDX-License-Identifier: MIT */
/*
 * The driver behind the door: a library of the same name in VGPU_REAL_DIR. This library needs it by
 * its absolute path, so the loader maps it first. libcuda.so.1 and libnvidia-ml.so.1 work the same
 * way.
 */
#ifndef GOVERNOR_CUDA_REAL_H
#define GOVERNOR_CUDA_REAL_H

#include "entry_points.h"
#include "wrappers.h"

/*
 * The driver's function for an entry. The entry's slot leads to it from now on. If the driver lacks
 * the function, this is one that returns CUDA_ERROR_NOT_FOUND or NVML_ERROR_FUNCTION_NOT_FOUND.
 */
void *real_resolve(unsigned int entry);

/* What the driver exports as @name; NULL: nothing. */
void *real_find(const char *name);

/*
 * Not 0 while this thread is in a call that the door made. A driver that is not linked with
 * -Bsymbolic calls its own exports through this library. Such calls are part of the outer one,
 * which is charged for them.
 */
extern _Thread_local unsigned int real_depth __attribute__((visibility("hidden")));

/* The driver's function @name. */
#define REAL(name)                                                                                 \
    ((name##_function *)atomic_load_explicit(&entry_slots[ENTRY_##name], memory_order_relaxed))

/* Calls the driver's function @name. */
#define DRIVER(name, ...)                                                                          \
    __extension__({                                                                                \
        __typeof__(REAL(name)(__VA_ARGS__)) driver_result;                                         \
        real_depth++;                                                                              \
        driver_result = REAL(name)(__VA_ARGS__);                                                   \
        real_depth--;                                                                              \
        driver_result;                                                                             \
    })

#endif
