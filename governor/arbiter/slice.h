/* SPDX-License-Identifier: MIT */
/*
 * A slice of the GPU: its socket, its memory, its members.
 */
#ifndef GOVERNOR_SLICE_H
#define GOVERNOR_SLICE_H

#include "connection.h"
#include "moves.h"
#include "rate_limit.h"

/* Limit of members; the next one is refused. */
#define SLICE_MAX_MEMBERS 512

/**
 * struct slice
 * @number: only tells slices apart; is sent to the members
 * @since_ns: when this arbiter began to know it, of CLOCK_BOOTTIME
 * @vram_peak: the most device memory that it has had at one time, bytes, since this arbiter started
 * @ungoverned: as the agent said last; @ungoverned_ns: GPU time of that kind since this arbiter
 * started
 * @scheduled: the state of each class's scheduler of it
 * @connections: of struct connection
 * @limit: of the work that they may cause the arbiter
 * @partner_heard: what its partners have said since its arbiter asked last, as
 * sched_slice.partner_since
 * @told_of_version: the log already has that a member of another version tried to join; it retries
 * again and again
 */
struct slice {
    struct arbiter *arbiter;
    char *id;
    char *socket_path;
    uint64_t number;
    int fd;
    sd_event_source *io;
    struct sched_slice *scheduled[GOVERNOR_CLASSES];
    struct ledger ledger;
    struct moves_slice moves;
    uint64_t since_ns;
    uint64_t vram_peak;
    struct slice_ungoverned ungoverned;
    uint64_t ungoverned_ns;
    GPtrArray *connections;
    struct rate_limit limit;
    uint64_t partner_heard[GOVERNOR_CLASSES];
    bool told_of_version;
};

/* Whether @id is a valid name of a slice, which is also a file name. */
bool slice_id_valid(const char *id);

/*
 * With its socket, and the mark beside it that tells programs to wait for it. Logs and returns NULL
 * on failure.
 */
struct slice *slice_new(struct arbiter *arbiter, const char *id,
                        const struct slice_settings *settings);

/* Drops its members. Its files stay, and tell the next arbiter that there were members. */
void slice_free(struct slice *slice);
/* The slice is no more. */
void slice_remove_files(const struct slice *slice);

/* Closes a member's connection. Descriptors that wait there are the slice's to pay. */
void slice_close(struct slice *slice, int connection);

void slice_change(struct slice *slice, const struct slice_settings *settings);

/*
 * What it uses that no member reports is charged to it: its memory beyond the limit as well, and
 * the time by which the counter has grown. False: an impossible number, and nothing has changed.
 */
bool slice_set_ungoverned(struct slice *slice, const struct slice_ungoverned *ungoverned);

/* Tells the members how many they are. */
void slice_publish_members(struct slice *slice);

/* After each change of the ledger: notes the peak, and tells the members the numbers. */
void slice_publish_memory(struct slice *slice);

/* Tells all members which engines they may use. */
void slice_publish_engines(struct slice *slice);

#endif
