/* SPDX-License-Identifier: MIT */
/* Each vGPU's promises and usage, summed by the hour. It has no clock and stores nothing. */
#ifndef MODEL_USAGE_H
#define MODEL_USAGE_H

#include <glib.h>

#include "host-agent/model/memory_use.h"

#define USAGE_HOUR 3600

/**
 * UsageSample - a vGPU at one moment
 * @tenant: "": none
 * @vram, @compute: promised: bytes, per cent of the GPU
 * @requests, @doorbells, @gpu_ns, @cpu_us: counters of the vGPU and its engine so far; each may
 * restart
 * @alone_ns: GPU time beside @gpu_ns, another such counter
 * @vram_used: bytes now; 0: none, or not known, which @vram_known says
 * @vram_peak: the most so far, which may restart; 0: not known
 * @unknown: none of these counters is known now
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
    guint64 alone_ns;
    guint64 cpu_us;
    guint64 vram_used;
    guint64 vram_peak;
    gboolean vram_known;
    gboolean unknown;
} UsageSample;

/**
 * UsageRow - a vGPU in an hour, or in the part of it that was not taken yet
 * @hour: its start, seconds since 1970
 * @seconds: promised time
 * @busy_seconds: busy part of it
 * @memory: how much was in use, as far as that is known
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
    MemoryUse memory;
} UsageRow;

typedef struct Usage Usage;

Usage *usage_new(void);

void usage_free(Usage *usage);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Usage, usage_free)

/*
 * The vGPU was promised in the @seconds until @now (seconds since 1970). It was busy in them if a
 * counter moved, or if its engine used more than 1 % of a CPU. The first sample of a vGPU only sets
 * the counters' start, which is 0 if they are unknown then.
 */
void usage_add(Usage *usage, const UsageSample *sample, gint64 now, guint seconds);

/*
 * All vGPUs with a sample were promised, and idle, in the @seconds until @now, which are those
 * after their last sample.
 */
void usage_add_idle(Usage *usage, gint64 now, guint seconds);

/* Forgets the counters of vGPUs without a sample since the last call of this. */
void usage_forget_gone(Usage *usage);

/* The rows added since the last call, of UsageRow; owned by the caller. */
GPtrArray *usage_take(Usage *usage);

/* Takes back @rows, which are as usage_take() has just returned them, and leaves none in it. */
void usage_give_back(Usage *usage, GPtrArray *rows);

/* The report of a vGPU's month: promises, usage, and advice. */
/**
 * ReportRow - a vGPU
 * @vram_seconds: bytes times seconds
 * @compute_seconds: per cent of the GPU times seconds
 * @vram: maximum of bytes promised
 * @peak_vram: maximum of bytes used; 0: not known
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

/*
 * A sentence, or "" if there is no advice or too little is known. @sizes: of ReportSize. To be
 * freed.
 */
char *report_advice(const ReportRow *row, const GArray *sizes);

/* "2026-11", or "2026", a year, in UTC; "": the month of @now. FALSE: neither. */
gboolean report_month(const char *month, gint64 now, gint64 *begin, gint64 *end);

#endif
