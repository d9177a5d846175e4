/* SPDX-License-Identifier: MIT */
/*
 * A slice of the GPU: its socket, its memory, its members.
 */
#ifndef GOVERNOR_SLICE_H
#define GOVERNOR_SLICE_H

#include "connection.h"
#include "rate_limit.h"

/* More members than that, and the next is refused. */
#define SLICE_MAX_MEMBERS 512

/**
 * struct slice
 * @number: of no meaning but to tell slices apart; goes to the members
 * @scheduled: what the scheduler knows of it
 * @connections: of struct connection
 * @limit: of what they may have the arbiter do
 * @told_of_version: it is in the log that one of another version came; it comes again and again
 */
struct slice {
    struct arbiter *arbiter;
    char *id;
    char *socket_path;
    uint64_t number;
    int fd;
    sd_event_source *io;
    struct sched_slice *scheduled;
    struct ledger ledger;
    GPtrArray *connections;
    struct rate_limit limit;
    bool told_of_version;
};

/* Whether @id can be the name of a slice, which is also a file's. */
bool slice_id_valid(const char *id);

/* With its socket; NULL: the reason is logged. */
struct slice *slice_new(struct arbiter *arbiter, const char *id,
                        const struct slice_settings *settings);

/* Drops its members. The socket's file stays. */
void slice_free(struct slice *slice);

void slice_change(struct slice *slice, const struct slice_settings *settings);

/* Tells the members what the slice has of memory. */
void slice_publish_memory(struct slice *slice);

/* Tells all members which engines they may use. */
void slice_publish_engines(struct slice *slice);

#endif
