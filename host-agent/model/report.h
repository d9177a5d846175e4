/* SPDX-License-Identifier: MIT */
/*
 * What an operator is told of a vGPU's month: what was promised, what was used, and what to do
 * about it.
 */
#ifndef METRICS_REPORT_H
#define METRICS_REPORT_H

#include <glib.h>

/**
 * ReportRow - a vGPU
 * @vram_seconds: bytes times seconds
 * @compute_seconds: per cent of the GPU times seconds
 * @vram: bytes promised, at most
 * @peak_vram: bytes used, at most; 0: not known
 * @gpu_ns: 0: none, or not known
 */
typedef struct {
    char *uuid;
    char *tenant;
    char *gpu;
    char *type;
    guint64 seconds;
    guint64 busy_seconds;
    double vram_seconds;
    double compute_seconds;
    guint64 vram;
    guint64 peak_vram;
    guint64 gpu_ns;
} ReportRow;

/* For GDestroyNotify. */
void report_row_free(void *row);

/* A type that the GPU offers. */
typedef struct {
    const char *name;
    guint64 vram;
} ReportSize;

/* A sentence, or "": there is nothing to say, or too little is known. @sizes: of ReportSize. To be
 * freed. */
char *report_advice(const ReportRow *row, const GArray *sizes);

/* "2026-11", in UTC; "": the month of @now. FALSE: it is no month. */
gboolean report_month(const char *month, gint64 now, gint64 *begin, gint64 *end);

#endif
