/* SPDX-License-Identifier: MIT */
/*
 * The driver that the door stands in front of: a library of the same name, in the folder
 * VGPU_REAL_DIR, which this one needs by its absolute path. So the loader has mapped it before.
 * libcuda.so.1 and libnvidia-ml.so.1 are made alike.
 */
#ifndef GOVERNOR_CUDA_REAL_H
#define GOVERNOR_CUDA_REAL_H

#include "entry_points.h"
#include "wrappers.h"

/* The driver's function for an entry, which its slot leads to from now on. One that the driver
 * hasn't got is a function that returns CUDA_ERROR_NOT_FOUND, or NVML_ERROR_FUNCTION_NOT_FOUND. */
void *real_resolve(unsigned int entry);

/* What the driver exports by @name; NULL: nothing. */
void *real_find(const char *name);

/*
 * Not 0 while this thread is in a call that the door makes. A driver that isn't linked with
 * -Bsymbolic calls its own exports by way of this library; what it does so is part of that call,
 * and charged with it.
 */
extern _Thread_local unsigned int real_depth __attribute__((visibility("hidden")));

/* The driver's function of that name. */
#define REAL(name)                                                                                 \
    ((name##_function *)atomic_load_explicit(&entry_slots[ENTRY_##name], memory_order_relaxed))

/* Calls it. */
#define DRIVER(name, ...)                                                                          \
    __extension__({                                                                                \
        __typeof__(REAL(name)(__VA_ARGS__)) driver_result;                                         \
        real_depth++;                                                                              \
        driver_result = REAL(name)(__VA_ARGS__);                                                   \
        real_depth--;                                                                              \
        driver_result;                                                                             \
    })

#endif
