/* SPDX-License-Identifier: MIT */
/*
 * What NVIDIA's library says that processes have on the GPU, as vgpu-nvidia-readings writes it.
 * Members say themselves what they have given; this is what a lie is found by.
 */
#ifndef GOVERNOR_READINGS_H
#define GOVERNOR_READINGS_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

/**
 * struct readings
 * @path: of the GPU's file; @wanted: whoever writes to it gets the next one at once
 * @at: when the last one was made, ns of CLOCK_MONOTONIC; 0: there was none
 * @memory: bytes by process
 */
struct readings {
    char *path;
    char *wanted;
    uint64_t at;
    GHashTable *memory;
};

void readings_init(struct readings *readings, const char *tree, const char *gpu);
void readings_clear(struct readings *readings);

/* True: there is one that was not seen before. */
bool readings_look(struct readings *readings);
/* So that there is one soon. Where there is no such library, nothing happens. */
void readings_want(const struct readings *readings);
/* Bytes; 0: it has none. */
uint64_t readings_of(const struct readings *readings, pid_t pid);

#endif
