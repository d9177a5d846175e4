/* SPDX-License-Identifier: MIT */
/*
 * What each vGPU had and used, added up by the hour. It knows no clock and stores nothing.
 */
#ifndef MODEL_USAGE_H
#define MODEL_USAGE_H

#include <glib.h>

#define USAGE_HOUR 3600

/**
 * UsageSample - a vGPU at one moment
 * @tenant: "": nobody's
 * @vram, @compute: promised: bytes, per cent of the GPU
 * @requests, @doorbells, @gpu_ns, @cpu_us: counters of the vGPU and its engine so far; they may
 * begin anew
 * @vram_used: bytes now; 0: not known
 */
typedef struct {
    const char *uuid;
    const char *tenant;
    const char *gpu;
    const char *type;
    guint64 vram;
    guint compute;
    guint64 requests;
    guint64 doorbells;
    guint64 gpu_ns;
    guint64 cpu_us;
    guint64 vram_used;
} UsageSample;

/**
 * UsageRow - a vGPU in an hour, or in the part of it that was not taken yet
 * @hour: seconds since 1970 at its begin
 * @seconds: that it was promised
 * @busy_seconds: of them those in which it was used
 */
typedef struct {
    gint64 hour;
    char *uuid;
    char *tenant;
    char *gpu;
    char *type;
    guint64 seconds;
    guint64 busy_seconds;
    guint64 vram;
    guint compute;
    guint64 peak_vram;
    guint64 gpu_ns;
    guint64 requests;
} UsageRow;

typedef struct Usage Usage;

Usage *usage_new(void);

void usage_free(Usage *usage);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Usage, usage_free)

/*
 * The vGPU was promised in the @seconds until @now (seconds since 1970). It was busy in them where
 * a counter moved, or its engine had more than 1 % of a CPU. The first sample of a vGPU only says
 * where counters begin.
 */
void usage_add(Usage *usage, const UsageSample *sample, gint64 now, guint seconds);

/* Forgets where the counters of vGPUs stood that had no sample since the last call of this. */
void usage_forget_gone(Usage *usage);

/* What was added since the last call, of UsageRow; the caller's. */
GPtrArray *usage_take(Usage *usage);

/*
 * What an operator is told of a vGPU's month: what was promised, what was used, and what to do
 * about it.
 */
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
