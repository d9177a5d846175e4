/* SPDX-License-Identifier: MIT */
/* A GPU's sensors and error counters, and the memory of its clients. */
#ifndef LIB_READINGS_H
#define LIB_READINGS_H

#include <glib.h>

#include "lib/host_root.h"
#include "lib/pci.h"

/**
 * GpuReadings
 * @aer_fatal, @aer_nonfatal, @aer_correctable: PCI Express errors since the device was found
 * @link_width, @link_width_max: lanes now, and the maximum of the GPU in its slot; 0: no link
 * @temperature: of the sensor that is nearest to its limit, 1/1000 degree Celsius
 * @temperature_limit: start of that sensor's critical range; 0: not known
 * @sensor: that sensor's name, "edge"; "": none
 * @power: microwatts
 * @energy: microjoules since some time; may begin again
 * @ecc_uncorrectable, @ecc_correctable: of the GPU's memories, since the driver was loaded
 */
typedef struct {
    gboolean has_aer;
    guint64 aer_fatal;
    guint64 aer_nonfatal;
    guint64 aer_correctable;
    guint link_width;
    guint link_width_max;
    gboolean has_temperature;
    gint64 temperature;
    gint64 temperature_limit;
    char sensor[32];
    gboolean has_power;
    gint64 power;
    gboolean has_energy;
    guint64 energy;
    gboolean has_ecc;
    guint64 ecc_uncorrectable;
    guint64 ecc_correctable;
} GpuReadings;

/* Reads all of it now. */
void gpu_readings_read(HostRoot *root, const PciDevice *pci, GpuReadings *readings);

/*
 * Reads the energy alone; FALSE: the GPU's driver has no counter of it. @at: when the counter had
 * this value, of CLOCK_MONOTONIC in us; some are read twice a minute only.
 */
gboolean gpu_energy_read(HostRoot *root, const PciDevice *pci, guint64 *energy, gint64 *at);

/* The GPU has readings that change without an event, so it must be polled. */
gboolean gpu_readings_need_a_timer(const GpuReadings *readings);

/*
 * How much of their GPU the processes of a vGPU's engine use, if the GPU's driver reports it: in
 * the fdinfo of their files (the kernel's Documentation/gpu/drm-usage-stats.rst).
 */

/**
 * DrmUse
 * @known: the driver reports GPU time; else @gpu_ns is 0
 * @gpu_ns: of all engines of the GPU, since the first look at the vGPU; never decreases
 * @vram_known, @vram: bytes of the GPU's own memory now
 */
typedef struct {
    gboolean known;
    guint64 gpu_ns;
    gboolean vram_known;
    guint64 vram;
} DrmUse;

typedef struct DrmClients DrmClients;

/* @uuid: of the vGPU, whose unit's cgroup has the processes; @gpu: address of its GPU. */
DrmClients *drm_clients_new(HostRoot *root, const char *uuid, const char *gpu);

void drm_clients_free(DrmClients *clients);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(DrmClients, drm_clients_free)

/*
 * Adds to @use what has accumulated since the last call. The set of files is searched at most once
 * in DRM_SCAN_US, because an engine may have thousands.
 */
void drm_clients_read(DrmClients *clients, DrmUse *use);

/*
 * A process's files of a GPU, by their fdinfo. One that a child has from its parent, or that was
 * passed on, has the same client id in both processes, and the use of both.
 */

/* Adds the client ids of process @pid on GPU @gpu to @ids. @files: as below. */
void drm_process_clients(HostRoot *root, guint pid, const char *gpu, GHashTable *ids, guint *files);

/*
 * Whether process @pid has used GPU @gpu by a client that is none of @ids: it has had time of an
 * engine, or has memory. A process that only looks which GPUs there are has neither. @files: how
 * many files may be looked at; decreased.
 */
gboolean drm_process_uses(HostRoot *root, guint pid, const char *gpu, GHashTable *ids,
                          guint *files);

#endif
