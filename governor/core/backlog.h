/* SPDX-License-Identifier: MIT */
/*
 * How much work a member has queued on the GPU while nobody measures it. Now and then the door puts
 * a marker behind its work. When the GPU has come to it, all work before it has ended, and the time
 * since the last one says how long a submission takes.
 *
 * Plain memory; not thread-safe. Times are ns of one clock.
 */
#ifndef GOVERNOR_BACKLOG_H
#define GOVERNOR_BACKLOG_H

#include <stdbool.h>
#include <stdint.h>

/* Markers on their way. */
#define BACKLOG_MARKERS 64u

/*
 * Behind @count submissions, of which the last one had @number of all. @of_queue: only of its own
 * queue, which has no order with others
 */
struct backlog_marker {
    uint64_t number;
    uint64_t count;
    bool of_queue;
    uint64_t placed_at;
};

/**
 * struct backlog
 * @placed: the number of the last marker; @done: without what markers wait for; @done_at: since
 * when
 * @mean_ns: of a submission, @recent_ns by @recent_count of the last ones; 0: not known
 * @due: the number at which the next marker is to be placed, after @every submissions or about
 * @apart_ns
 * @given_up: nothing has moved since backlog_give_up()
 * @markers: as they were placed; those of several queues may pass in another order
 */
struct backlog {
    uint64_t placed;
    uint64_t done;
    uint64_t done_at;
    uint64_t mean_ns;
    uint64_t recent_ns;
    uint64_t recent_count;
    uint64_t apart_ns;
    uint64_t due;
    uint32_t every;
    bool given_up;
    struct backlog_marker markers[BACKLOG_MARKERS];
    uint32_t marker_count;
};

void backlog_init(struct backlog *backlog);

/*
 * Whether the next submission, which would be behind @number of them and is due for a marker, is to
 * wait until one has passed: more than @most_ns is queued, or it is not known yet how much.
 */
bool backlog_is_full(const struct backlog *backlog, uint64_t number, uint64_t most_ns,
                     uint64_t now);

/*
 * A marker is placed behind submission @number, while @most_ns may be queued. @count: so many of
 * its queue are not behind another one; 0: all that came since the last one. False: too many are on
 * their way, place none.
 */
bool backlog_place(struct backlog *backlog, uint64_t number, uint64_t count, uint64_t most_ns,
                   uint64_t now);

/* The marker behind @number has passed at @at. */
void backlog_pass(struct backlog *backlog, uint64_t number, uint64_t at);

/* It was not placed after all: what it was to be behind counts with the next one. */
void backlog_cancel(struct backlog *backlog, uint64_t number);

/* How long to wait for a marker, if none passes: twice what is queued, in bounds. */
uint64_t backlog_patience_ns(const struct backlog *backlog, uint64_t number, uint64_t now);

/*
 * Nothing has moved for so long: what the markers are behind waits for something else than the GPU.
 * It does not count any more, and nobody waits again before a marker has passed.
 */
void backlog_give_up(struct backlog *backlog, uint64_t now);

/* Whether a marker is on its way: more will become known by itself. */
bool backlog_waits(const struct backlog *backlog);

/* Since when the GPU has worked on what is not known to have ended. */
uint64_t backlog_since(const struct backlog *backlog);

/* What is left @now of @count submissions that it has worked on since @from; 10 s at most. */
uint64_t backlog_left(uint64_t count, uint64_t mean_ns, uint64_t from, uint64_t now);

/* How long the GPU needs for what was submitted up to @number, as far as known. */
uint64_t backlog_ns(const struct backlog *backlog, uint64_t number, uint64_t now);

#endif
