/* SPDX-License-Identifier: MIT */
/*
 * What NVIDIA's driver reports of its GPUs only through its library: vgpu-nvidia-readings writes it
 * to a file for each GPU, twice a minute.
 */
#ifndef LIB_NVIDIA_READINGS_H
#define LIB_NVIDIA_READINGS_H

#include <glib.h>

#include "lib/gpu_readings.h"
#include "lib/host_root.h"

#define NVIDIA_DRIVER "nvidia"

/* All of the GPU's memory that programs can have, in bytes. FALSE: there was no reading yet. */
gboolean nvidia_memory(HostRoot *root, const char *address, guint64 *bytes);

/*
 * What all programs had of it. FALSE: unknown, or the last reading is too old. @at: when it was
 * read, of CLOCK_MONOTONIC in us.
 */
gboolean nvidia_memory_used(HostRoot *root, const char *address, guint64 *bytes, gint64 *at);

/* It uses the host's memory, and NVIDIA's library does not report how much. */
gboolean nvidia_is_unified(HostRoot *root, const char *address);

/* What the GPU can do at most, in operations of 32 bits and in bytes a second; 0: not known. */
void nvidia_speeds(HostRoot *root, const char *address, guint64 *flops, guint64 *bandwidth);

/*
 * The number of NVLinks between two GPUs, directly or by a switch; of the latter each GPU has some,
 * and the smaller number counts. 0: none, or not known.
 */
guint nvidia_links(HostRoot *root, const char *address, const char *other);

/* As gpu_energy_read(). */
gboolean nvidia_energy(HostRoot *root, const char *address, guint64 *energy, gint64 *at);

/* Adds the sensors' values and the error counters. Nothing, if the last reading is too old. */
void nvidia_sensors(HostRoot *root, const char *address, GpuReadings *readings);

/* How much of the last half minute the GPU computed, in per cent. FALSE: it is not known. */
gboolean nvidia_busy(HostRoot *root, const char *address, guint *percent);

/**
 * NvidiaProcess - one that has memory of the GPU
 * @vram: bytes
 * @busy: how much of the last half minute the GPU computed for it, in per cent
 */
typedef struct {
    guint64 vram;
    guint busy;
} NvidiaProcess;

/*
 * A table of pids to NvidiaProcess, to be unreferenced. NULL: it is not known. @at: when it was
 * read, of CLOCK_MONOTONIC in us.
 */
GHashTable *nvidia_processes(HostRoot *root, const char *address, gint64 *at);

#endif
