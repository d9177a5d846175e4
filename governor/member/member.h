/* SPDX-License-Identifier: MIT */
/*
 * A process that uses a GPU, as a member of a slice. This is the interface for doors (the Vulkan
 * layer, the CUDA door). It knows nothing of any GPU API.
 *
 * Thread-safe. Nothing here writes to standard output, changes signals, or leaves a descriptor to a
 * program that is executed; standard error is written to as governor_member_set_log() says. After
 * fork() the child becomes a member of its own on its first call; what it inherited is not charged
 * twice.
 *
 * Without an arbiter (never there, gone, restarting) a member that was welcomed once keeps its last
 * share and its last memory limit, and rejoins by itself within 100 ms of the arbiter's return. A
 * member that was never welcomed is governed according to @required.
 */
#ifndef GOVERNOR_MEMBER_H
#define GOVERNOR_MEMBER_H

#include "governor_protocol.h"

#include <stdbool.h>
#include <stdint.h>

/* What libvgpu-member.so.1 offers; all else is hidden. */
#pragma GCC visibility push(default)

typedef struct GovernorMember GovernorMember;

/* The path at which the units of engines and guards have their slice's socket. */
#define GOVERNOR_DEFAULT_SOCKET "/run/vgpu/governor/governor.sock"

/*
 * Joins the slice behind @socket_path. NULL: the process has no slice and is never governed. With
 * @required, or if a mark is beside the socket, a member that cannot join fails (NULL, errno set:
 * ENOENT, EACCES, ECONNREFUSED, EPROTO, EUSERS, ETIMEDOUT). Without, it returns ungoverned and
 * keeps trying. Waits, once in a process: for an arbiter that is about to come, 2 s; for one that
 * is there and does not answer, because it hangs or the host is busy, 2 s, and 30 s if it is
 * required. What the arbiter refuses is final.
 */
GovernorMember *governor_member_new(const char *socket_path, bool required);

/*
 * Who is told, in one sentence without an end of line, that a start waits for an arbiter that is
 * late. Without a call, it is a line on standard error.
 */
void governor_member_set_log(void (*log)(const char *sentence));

/* Returns everything. No other thread may be in a call with @member. */
void governor_member_free(GovernorMember *member);

/*
 * The member of this process in the slice behind @socket_path, the same for all of its doors. The
 * first call makes it, as governor_member_new() does. Each get needs a put; the last put frees it.
 */
GovernorMember *governor_member_get(const char *socket_path, bool required);
void governor_member_put(GovernorMember *member);

/*
 * True if submissions of the class must be measured now. One atomic load; callers ask before each
 * submission.
 */
bool governor_member_class_is_metered(const GovernorMember *member, enum governor_class class);

/* Counts a submission that is not measured. */
void governor_member_class_count(GovernorMember *member, enum governor_class class);

/*
 * Before each submission, instead of the two above, by a door that can place markers: an empty
 * submission of its own whose end it sees. While the class is free, the submission is counted.
 */
enum governor_pass {
    GOVERNOR_PASS_FREE,    /* submit */
    GOVERNOR_PASS_MARK,    /* call governor_member_mark(), place a marker, then submit */
    GOVERNOR_PASS_METERED, /* it is to be measured: governor_member_submit_work() */
};
enum governor_pass governor_member_pass(GovernorMember *member, enum governor_class class);

/*
 * Before a marker is placed behind what was submitted so far. Waits while the member has more
 * queued on the GPU than a free one may, 1 s at most without a marker that passes; the class may be
 * metered afterwards. 0: place none. Otherwise governor_member_marked() is to be called when the
 * GPU has come to the marker, or governor_member_unmarked() if it could not be placed. @count: so
 * many submissions of the queue are not behind another marker; 0: the door has one queue, or does
 * not know. @look, which may be NULL, is called with @data before all that, and again and again
 * meanwhile, by a door without a thread that sees markers.
 */
uint64_t governor_member_mark(GovernorMember *member, enum governor_class class, uint64_t count,
                              void (*look)(void *data), void *data);
void governor_member_unmarked(GovernorMember *member, enum governor_class class, uint64_t marker);
/* @at_ns: when, by this process's CLOCK_MONOTONIC; 0: now. */
void governor_member_marked(GovernorMember *member, enum governor_class class, uint64_t marker,
                            uint64_t at_ns);

/**
 * struct governor_work - one submission
 * @queue: tells queues of the process apart, any number: what waits for the GPU on one of them does
 * not hold up another
 * @deferred: it waits for something that has not been signalled. It needs its turn; otherwise a
 * slice that defers all its work would have no limit. But nothing is debited before it runs, and no
 * lease is kept for it. It does not wait for the member's own work, which may wait for what comes
 * after; but while 32 ms of deferred work or 256 submissions have not begun, the next one waits, 1
 * s at most.
 * @behind: the process has work in flight that must end before this one begins. So that cannot wait
 * for this one.
 * @still_behind: whether that is still so; needed with @behind. Its thread asks, with @data, while
 * it waits for its turn, without a lock of the member's
 */
struct governor_work {
    enum governor_class class;
    uint32_t queue;
    uint64_t estimate_ns;
    bool deferred;
    bool behind;
    bool (*still_behind)(void *data);
    void *data;
};

/*
 * Work of the class will follow soon, after a pause. If it is of a higher priority than others'
 * work, that leaves the GPU meanwhile; otherwise nothing happens. Does not wait. Whoever asks to
 * copy says this of compute by that.
 */
void governor_member_expect(GovernorMember *member, enum governor_class class);

/**
 * struct governor_turn - that a submission has had
 * @behind_ns: for so long the GPU may still run others' work that was submitted before
 * @passes: as governor_member_passes()
 * @waited_for_cap: it had to wait for the slice's hard cap
 */
struct governor_turn {
    uint64_t behind_ns;
    uint32_t passes;
    bool waited_for_cap;
};

/*
 * Waits until @work may be submitted, and debits it. Returns the debit for governor_member_end() or
 * governor_member_ran() when the work has ended, or for _cancel() if it could not be submitted.
 * @turn may be NULL.
 */
uint64_t governor_member_submit_work(GovernorMember *member, const struct governor_work *work,
                                     struct governor_turn *turn);

/*
 * How often a submission had no lease, because work in flight was late and may have waited for it.
 * While that changes, the length of the work in flight says nothing: it is partly that of the wait.
 */
uint32_t governor_member_passes(const GovernorMember *member, enum governor_class class);

/*
 * How much work may be one submission: little while others wait, or if little is left of the lease,
 * so that its end is kept. Between 0.15 and 2 ms.
 */
uint64_t governor_member_batch_ns(const GovernorMember *member, enum governor_class class);

/* The work of a debit has ended: @measured_ns replaces the estimate. The excess is owed. */
void governor_member_end(GovernorMember *member, uint64_t debit, uint64_t measured_ns);

/*
 * The same if it is known from when until when the GPU worked for it, by this process's
 * CLOCK_MONOTONIC. Time that overlaps with others' is divided among them, and what overlaps on
 * queues of this process counts once. Returns what counts.
 */
uint64_t governor_member_ran(GovernorMember *member, uint64_t debit, uint64_t begin_at_ns,
                             uint64_t end_at_ns);

/* Work that had no debit took so long, it is not known when. */
void governor_member_also(GovernorMember *member, enum governor_class class, uint64_t ns);

/*
 * The work of a debit will take @estimate_ns, which was not known when it was debited. Returns the
 * debit that replaces it.
 */
uint64_t governor_member_revise(GovernorMember *member, uint64_t debit, uint64_t estimate_ns);

void governor_member_cancel(GovernorMember *member, uint64_t debit);

/*
 * The work of a debit was deferred or had stalled, and now it has begun. It counts as in flight
 * from here on, so that a process that is killed before its end is charged for it. Returns the
 * debit that replaces it.
 */
uint64_t governor_member_begun(GovernorMember *member, uint64_t debit);

/*
 * The work in flight has not begun: it waits for a semaphore. The lease goes to someone who can use
 * it. To be called now and then while that lasts: the arbiter may lose the report.
 */
void governor_member_class_stalled(GovernorMember *member, enum governor_class class);

enum governor_memory {
    GOVERNOR_MEMORY_DEVICE, /* charged to device memory: allocate it there */
    GOVERNOR_MEMORY_SPILL,  /* charged to the slice's spill: allocate it in host memory, or leave it
                             * to a driver that pages */
    GOVERNOR_MEMORY_NONE,   /* beyond the limit: the allocation fails */
};

/* Charges @bytes before they are allocated. Blocks for the arbiter's answer, 2 s at most. */
enum governor_memory governor_member_reserve(GovernorMember *member, uint64_t bytes,
                                             bool may_spill);

/*
 * From now on, spilled memory is left to the driver, which pages device memory by itself; before,
 * it was allocated in host memory. For the slice's status.
 */
void governor_member_pages(GovernorMember *member);

/* Returns what was charged as @kind. Does not wait. */
void governor_member_release(GovernorMember *member, uint64_t bytes, enum governor_memory kind);

/**
 * struct governor_object - memory that several processes of a slice may hold: charged once
 * @device, @inode: st_dev and st_ino of its file descriptor, the same in each process; set by the
 * caller
 *
 * The member uses the rest, from a call that takes the object until governor_member_forget(). The
 * caller keeps it at its address.
 */
struct governor_object {
    uint64_t device;
    uint64_t inode;
    uint64_t bytes;
    enum governor_memory kind;
    bool shared; /* the arbiter knows of it */
    struct governor_object *next;
};

/*
 * What was charged as @bytes of @kind is shared from now on, and returned only by
 * governor_member_forget(). To be called before others can import it. Blocks like
 * governor_member_reserve().
 */
void governor_member_export(GovernorMember *member, struct governor_object *object, uint64_t bytes,
                            enum governor_memory kind);

/*
 * An import: charges @bytes if no other process of the slice holds the object. Blocks likewise.
 * False: beyond the limit. Once more, if the object is larger than was known.
 */
bool governor_member_import(GovernorMember *member, struct governor_object *object, uint64_t bytes);

/* This process does not hold it any more. Does not wait. */
void governor_member_forget(GovernorMember *member, struct governor_object *object);

/*
 * The device memory that the driver uses for itself in this process now: charged even beyond the
 * limit. Does not wait.
 */
void governor_member_driver(GovernorMember *member, uint64_t bytes);

/*
 * The slice as its members see it; @limit 0: none. What this member returned before is not in @used
 * any more: blocks like governor_member_reserve() if the arbiter may not have seen that yet.
 */
void governor_member_memory(GovernorMember *member, uint64_t *limit, uint64_t *used);

/*
 * Memory of the slice moves (governor_protocol.h): the door says once that it can move its own, and
 * has a thread that follows the orders.
 */
bool governor_member_moves(const GovernorMember *member);
void governor_member_movable(GovernorMember *member);

/**
 * struct governor_orders - what is left to do
 * @leave: bytes to give; @take: bytes that may be brought back
 * @copies: grows when @copies_most bytes of what can move are to be copied; 0: all
 * @returns: grows when pieces for what is on the card are to go back
 * @sequence, @connection: for the calls below
 */
struct governor_orders {
    uint64_t leave;
    uint64_t take;
    uint64_t copies;
    uint64_t copies_most;
    uint64_t returns;
    uint32_t sequence;
    uint64_t connection;
};

void governor_member_orders(GovernorMember *member, struct governor_orders *orders);
/* Until there are others than those seen, or for a second. */
void governor_member_await_orders(GovernorMember *member, const struct governor_orders *seen);
/* @bytes were moved in @ns by these orders. */
void governor_member_gave(GovernorMember *member, const struct governor_orders *by, uint64_t bytes,
                          uint64_t ns);
void governor_member_took(GovernorMember *member, const struct governor_orders *by, uint64_t bytes,
                          uint64_t ns);
/* What is to be copied has been, and nobody has been in the driver since. */
void governor_member_clean(GovernorMember *member, const struct governor_orders *by);
/* The rest of what was ordered, to leave or to take, cannot be done. */
void governor_member_stuck(GovernorMember *member, const struct governor_orders *by, bool leaving,
                           enum governor_stuck reason);
/* A thread is kept out of the driver. Said again to the next arbiter, until all is back. */
void governor_member_come(GovernorMember *member);
/* Threads wait for their turn, which they do not get while memory is displaced. */
bool governor_member_is_waiting(GovernorMember *member);
/* So much of what is charged can move; the rest cannot. */
void governor_member_unmovable(GovernorMember *member, uint64_t movable);
/* So much of what is released next was displaced. */
void governor_member_freed_displaced(GovernorMember *member, uint64_t bytes);
/*
 * A piece of host memory, for displaced memory: its descriptor, which the caller closes, and its
 * number. -1: there is no more. @bytes: a multiple of GOVERNOR_VAULT_UNIT, GOVERNOR_VAULT_MOST at
 * most.
 */
int governor_member_vault(GovernorMember *member, uint64_t bytes, uint64_t *number);
void governor_member_vault_return(GovernorMember *member, uint64_t number);

/* Engines of the GPU that the slice may use, of enum governor_engine. */
uint32_t governor_member_engines(const GovernorMember *member);

#pragma GCC visibility pop

#endif /* GOVERNOR_MEMBER_H */
