/* SPDX-License-Identifier: MIT */
/*
 * The agent's settings of a GPU and of a slice of it, from keyfiles. Reading is all or nothing: a
 * file with an error changes nothing.
 */
#ifndef GOVERNOR_SETTINGS_H
#define GOVERNOR_SETTINGS_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#define SETTINGS_WEIGHT_MAX   10000u
#define SETTINGS_PRIORITY_MAX 15u
#define SETTINGS_OWNER_NONE   UINT32_MAX
#define SETTINGS_PARTNERS_MAX 64

enum gpu_policy {
    POLICY_SHARES,      /* by each slice's settings */
    POLICY_BEST_EFFORT, /* equal weights, no caps, no priorities */
    POLICY_EQUAL,       /* 1/N of the GPU, never more, N being the slices that have members */
    POLICY_FIXED,       /* the share of the slice's type, never more */
};

/**
 * struct gpu_settings
 * @vram: the GPU's memory, for the status; 0: unknown
 * @capacity: what slices can have of it at one time; 0: unknown, and no memory moves
 * @displaced: bytes of the host's memory for what moves, of all its GPUs
 */
struct gpu_settings {
    enum gpu_policy policy;
    uint64_t vram;
    uint64_t capacity;
    uint64_t displaced;
};

/**
 * struct slice_settings
 * @weight: 1 to 10000, 100 is usual
 * @cap: per cent of the GPU's time, 1 to 99; 0: none. Applies if @hard
 * @priority: 0 to 15, higher goes first
 * @vram, @spill: bytes; 0: no limit, no spilling
 * @resident: the part of @vram that is always on the card; the rest is lent, and moves
 * @best_effort: what it has that is lent leaves first
 * @share_ppm: promised to it of the GPU's time, 0: nothing; for POLICY_FIXED also the most that it
 * gets. @guaranteed: before the promises of those that are not
 * @engines: allowed ones, of enum governor_engine; 0: all
 * @owner: who may connect; SETTINGS_OWNER_NONE: everybody who sees the socket's directory
 * @partners: the same word for all slices of one program on this host's GPUs; "": it has one GPU
 */
struct slice_settings {
    uint32_t weight;
    uint32_t cap;
    bool hard;
    uint32_t priority;
    uint64_t vram;
    uint64_t spill;
    uint64_t resident;
    uint32_t share_ppm;
    bool guaranteed;
    bool best_effort;
    uint32_t engines;
    uint32_t owner;
    char partners[SETTINGS_PARTNERS_MAX + 1];
};

/* Whether the slice's memory is more than what is always on the card. */
static inline bool slice_settings_moves(const struct slice_settings *settings)
{
    return settings->resident < settings->vram;
}

/* Missing keys have their defaults. The error names the key and its allowed values. */
bool gpu_settings_parse(struct gpu_settings *settings, const char *text, gsize length,
                        GError **error);
bool slice_settings_parse(struct slice_settings *settings, const char *text, gsize length,
                          GError **error);

/**
 * struct slice_ungoverned - what a slice's processes use that no member reports
 * @memory: bytes of device memory now
 * @gpu_ns: of the GPU's time so far; a counter of the agent's, which may begin again
 */
struct slice_ungoverned {
    uint64_t memory;
    uint64_t gpu_ns;
};

bool slice_ungoverned_parse(struct slice_ungoverned *ungoverned, const char *text, gsize length,
                            GError **error);

/* As in gpu.conf. */
const char *gpu_policy_name(enum gpu_policy policy);

#endif
