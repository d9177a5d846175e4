/* SPDX-License-Identifier: MIT */
/* A GPU's sensors and error counters, as readings.h reads them. */
#ifndef LIB_GPU_READINGS_H
#define LIB_GPU_READINGS_H

#include <glib.h>

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
 * @busy: how much of the time the GPU computes, in per cent; of NVIDIA's, in the last half minute
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
    gboolean has_busy;
    guint busy;
} GpuReadings;

#endif
