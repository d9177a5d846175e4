/* SPDX-License-Identifier: MIT */
/*
 * The protocol between a process that uses a GPU (a member of a slice) and the GPU's arbiter.
 *
 * A member connects to the socket of its slice: the socket identifies the slice. On a
 * SOCK_SEQPACKET connection it sends GOVERNOR_JOIN and gets GOVERNOR_WELCOME with two memfds:
 *
 *   [0] struct governor_grant   written by the arbiter only; the member cannot map it writable
 *   [1] struct governor_usage   written by this member only; read by the arbiter
 *
 * Neither page has a lock. Every field is read and written as one atomic word, and counters only
 * grow. If a member dies between two writes, nothing has to be repaired: the end of its connection
 * returns all that was promised to it.
 *
 * Times are nanoseconds of GPU time, or of CLOCK_MONOTONIC if "at" is in the name. Sizes are bytes.
 *
 * Memory that moves. A slice may be promised less of the card than it may have in all; then
 * governor_grant.moves is set. What it uses beyond the promise is lent, and may be displaced into
 * the host's memory. A member that can do that says MOVABLE. It runs with all of its memory on the
 * card or not at all, and follows two words of its grant, which are sums over the connection:
 *
 *   leave_until   keep all threads out of the driver, then give memory, GAVE after each part, until
 *                 the sum of all GAVE is that. Then stay out, as long as something is displaced
 *   take_until    bring memory back, TOOK after each part, until the sum of all TOOK is that
 *
 * A part is a whole allocation, so the last one may make the first sum larger than it was told. A
 * part is not taken before the whole of it is granted. When nothing is displaced any more and
 * nothing is to be given, threads go on. The first one that finds itself kept out says COME. A
 * member that cannot do what it was told says STUCK for all of the rest, which is then counted as
 * if it had been done: it gives, or takes, nothing more until the word has grown again. A member
 * that joins again says MOVABLE again, and COME if a thread is kept out.
 *
 * Displaced memory lies in pieces of host memory that the member gets by VAULT, and nobody else
 * has. They are its own until it says VAULT_RETURN or ends, whatever becomes of the arbiter. After
 * VAULT_RETURN their content is gone.
 */
#ifndef GOVERNOR_PROTOCOL_H
#define GOVERNOR_PROTOCOL_H

#include <stdatomic.h>
#include <stdint.h>

/*
 * The arbiter speaks a member's version if it is not older than the oldest one whose pages and
 * messages begin like its own; otherwise it refuses. docs/architecture.md lists the changes.
 */
#define GOVERNOR_PROTOCOL_VERSION 5
#define GOVERNOR_PROTOCOL_OLDEST  4

/*
 * A file beside a slice's socket: whoever has the slice needs the arbiter. The arbiter makes it,
 * and members that find it wait for the socket, and fail without.
 */
#define GOVERNOR_REQUIRED_MARK "required"

/* How a member may submit work, in governor_grant.mode. */
enum governor_mode {
    /* Unmeasured and without limit: nobody else wants the GPU, and the slice has no hard cap. */
    GOVERNOR_MODE_FREE = 0,
    /*
     * Each submission is measured, and is allowed while governor_usage's debit is below
     * governor_grant.limit_ns.
     */
    GOVERNOR_MODE_METERED = 1,
};

/* In governor_grant.room. */
enum governor_room {
    GOVERNOR_ROOM_NONE,    /* no RESERVE has waited */
    GOVERNOR_ROOM_AWAITED, /* others are to make room */
    GOVERNOR_ROOM_GRANTED, /* it is the member's, as after an answer of 0 */
    GOVERNOR_ROOM_REFUSED, /* there was none in time */
};

/* Why a member does not do what it was told. */
enum governor_stuck {
    GOVERNOR_STUCK_CAPTURE, /* a stream captures */
    GOVERNOR_STUCK_WORK,    /* work in flight does not end */
    GOVERNOR_STUCK_THREAD,  /* a thread does not leave the driver */
    GOVERNOR_STUCK_VAULT,   /* there is no host memory for it */
    GOVERNOR_STUCK_DRIVER,  /* the driver fails to copy or to release */
    GOVERNOR_STUCK_FLOOR,   /* nothing is left that can move */
    GOVERNOR_STUCK_CARD,    /* to take: the driver has less memory than was granted */
    GOVERNOR_STUCK_REASONS,
};

/* Pieces of the vault are so large at most, and multiples of the second. */
#define GOVERNOR_VAULT_MOST (256ull << 20)
#define GOVERNOR_VAULT_UNIT (2ull << 20)

/* Parts of a GPU that a slice may be barred from, in governor_grant.engines. */
enum governor_engine {
    GOVERNOR_ENGINE_GRAPHICS = 1 << 0,
    GOVERNOR_ENGINE_COMPUTE = 1 << 1,
    GOVERNOR_ENGINE_TRANSFER = 1 << 2,
    GOVERNOR_ENGINE_DECODE = 1 << 3,
    GOVERNOR_ENGINE_ENCODE = 1 << 4,
    GOVERNOR_ENGINES_ALL = (1 << 5) - 1,
};

/*
 * Classes of work. Engines of different classes work at the same time, so each class is shared by
 * itself: it has leases, ledgers and modes of its own.
 */
enum governor_class {
    GOVERNOR_CLASS_COMPUTE, /* shaders: graphics, compute, ray tracing */
    GOVERNOR_CLASS_COPY,    /* engines that only copy */
    GOVERNOR_CLASS_VIDEO,   /* engines that decode and encode */
    GOVERNOR_CLASSES,
};

/* Work in flight never counts for more than this: it may wait for something else than the GPU. */
#define GOVERNOR_IN_FLIGHT_MOST_NS 10000000000ull

/* What is expected comes within this time. */
#define GOVERNOR_EXPECTED_MOST_NS 2000000ull

/* What the arbiter tells a member about one class. */
struct governor_class_grant {
    /*
     * The futex that members wait on. It changes after a change that may let a submission go on.
     * The arbiter wakes one thread, which wakes the next after its turn.
     */
    _Atomic uint32_t sequence;
    _Atomic uint32_t mode;
    /*
     * Metered: submissions are allowed while gpu_ns and what is in flight are less than limit_ns.
     * In flight counts by its estimate or by the time since it began, whichever is longer, up to
     * GOVERNOR_IN_FLIGHT_MOST_NS: the arbiter counts no more when it sets the limit. Raising it
     * grants a lease, lowering it revokes the lease. Work that was submitted before is not
     * affected. A lease is the slice's: all its members may submit while it holds.
     */
    _Atomic uint64_t limit_ns;
    /*
     * Metered: a submission waits while more than this is in flight on its queue, so that others do
     * not wait long.
     */
    _Atomic uint64_t depth_ns;
    /*
     * Nonzero while the slice has the lease and others want it: tell the arbiter at once when
     * nothing is in flight any more.
     */
    _Atomic uint32_t contended;
    /* Nonzero while submissions wait for the slice's hard cap, and not for others. */
    _Atomic uint32_t throttled;
    /*
     * The share of the GPU, in millionths, that applies without an arbiter: the slice's last
     * entitlement.
     */
    _Atomic uint32_t share_ppm;
    /*
     * Counts passes. When it changes, one submission that waits for limit_ns may be made without:
     * work in flight is late, and may wait for it. It is one that need not come after that work.
     */
    _Atomic uint32_t passes;
    /*
     * CLOCK_MONOTONIC when the arbiter looks at the usage page by itself. WANT need not be sent
     * before that, because it would change nothing. The arbiter clears the time before each look
     * and sets it again after. 0: the arbiter does not look by itself.
     */
    _Atomic uint64_t looks_at_ns;
    /*
     * CLOCK_MONOTONIC until when the GPU may run others' work that was submitted before this lease
     * was given. Work that is submitted sooner does not begin at once. 0: there is no such work.
     */
    _Atomic uint64_t others_until_ns;
    /* Free: how much a member may have queued on the GPU, as far as it knows. */
    _Atomic uint64_t backlog_ns;
};

/* What the arbiter tells a member: one word each, on a page of its own. */
struct governor_grant {
    /*
     * The number of the slice's members. Without an arbiter they divide what is left of the memory.
     */
    _Atomic uint32_t members;
    /* The engines that the slice may use, of enum governor_engine. 0: all. */
    _Atomic uint32_t engines;
    /* The slice's hard limit of device memory, 0: none; and what all its members use of it now. */
    _Atomic uint64_t memory_limit;
    _Atomic uint64_t memory_used;
    /*
     * How much more may be spilled into host memory at the limit, 0: none; and how much is spilled.
     */
    _Atomic uint64_t spill_limit;
    _Atomic uint64_t spill_used;
    struct governor_class_grant classes[GOVERNOR_CLASSES];
    /*
     * Nonzero while slices of a lower priority use the class, for whose leases this one does not
     * wait: it pays to say what is expected.
     */
    _Atomic uint32_t preempts[GOVERNOR_CLASSES];
    /* Nonzero: memory of the slice moves. What is allocated from now on should be able to. */
    _Atomic uint32_t moves;
    /*
     * A futex: it changes after each change of the words below, and all that wait are woken. Their
     * sums begin with 0 at each welcome.
     */
    _Atomic uint32_t orders;
    _Atomic uint64_t leave_until;
    _Atomic uint64_t take_until;
    /* What became of the last RESERVE that was answered with EINPROGRESS, of enum governor_room. */
    _Atomic uint32_t room;
    /*
     * When it grows: copy what can move into host memory, where it stays on the card as well,
     * until a thread enters the driver; CLEAN when that is done. What has a copy is given without
     * another one. @orders changes with it.
     */
    _Atomic uint64_t copies;
    /* Of that so many bytes, which are the part that may be told to leave; 0: all. */
    _Atomic uint64_t copies_most;
    /*
     * When it grows: another process of the slice needs host memory. Pieces for what is on the card
     * go back, copies among them. @orders changes with it.
     */
    _Atomic uint64_t returns;
};

/* From when until when the GPU worked for a member, in CLOCK_MONOTONIC. */
struct governor_span {
    _Atomic uint64_t begin_at_ns;
    _Atomic uint64_t end_at_ns;
};

#define GOVERNOR_SPANS 64

#define GOVERNOR_BESIDE_SHIFT 32

/* What a member counts of one class: one word each. */
struct governor_class_usage {
    /* Submissions that were measured, or of which nothing is known. */
    _Atomic uint64_t submissions;
    /*
     * Submissions that were not measured but tracked: their number, how many of them have ended as
     * far as is known, how long one takes, and since when, in CLOCK_MONOTONIC, the GPU has worked
     * on those that have not ended. The arbiter charges those when the class becomes metered.
     */
    _Atomic uint64_t free_submissions;
    _Atomic uint64_t free_done;
    _Atomic uint64_t free_mean_ns;
    _Atomic uint64_t free_since_ns;
    /* Measured GPU time of all work that has ended. What overlaps on several queues counts once. */
    _Atomic uint64_t gpu_ns;
    /* Estimated GPU time of the work in flight. */
    _Atomic uint64_t in_flight_ns;
    /*
     * Wall-clock time that submissions have waited for their turn, and the part that was for a hard
     * cap.
     */
    _Atomic uint64_t waited_ns;
    _Atomic uint64_t throttled_ns;
    /*
     * CLOCK_MONOTONIC of the last submission that found nothing in flight, and of the end of the
     * last measured work.
     */
    _Atomic uint64_t began_at_ns;
    _Atomic uint64_t ended_at_ns;
    /*
     * Threads that wait for limit_ns; from GOVERNOR_BESIDE_SHIFT on, those of them whose submission
     * need not come after the process's work in flight, so that this may be waiting for it.
     */
    _Atomic uint64_t waiting;
    /* CLOCK_MONOTONIC since when threads wait; stored before @waiting. 0: unknown. */
    _Atomic uint64_t waiting_at_ns;
    /*
     * A ring: span number i is at i modulo GOVERNOR_SPANS, and @span_count of them have been
     * written. A span is stored before it is counted in @span_count and in @gpu_ns. Work whose
     * begin and end are not known has none.
     */
    _Atomic uint64_t span_count;
    struct governor_span spans[GOVERNOR_SPANS];
};

/* What a member writes. */
struct governor_usage {
    /*
     * Nonzero: spilled memory is left to the driver, which pages device memory by itself. 0: it is
     * allocated in host memory.
     */
    _Atomic uint64_t pages;
    struct governor_class_usage classes[GOVERNOR_CLASSES];
    /*
     * CLOCK_MONOTONIC of the first submission that was made under the last lease that a thread
     * waited for, for each class. 0: unknown. It is here, and not in @classes, so that all else is
     * where members of an earlier version write it.
     */
    _Atomic uint64_t came_at_ns[GOVERNOR_CLASSES];
    /*
     * Bytes of device memory that were RELEASEd over this connection, or will be in some ten
     * milliseconds. The member may use those again without asking.
     */
    _Atomic uint64_t returned;
    /*
     * CLOCK_MONOTONIC since when work of the class is expected to follow soon, because the program
     * has begun to copy after a pause. 0: none is. WANT is sent after it. The arbiter believes it
     * until work begins, for GOVERNOR_EXPECTED_MOST_NS at most.
     */
    _Atomic uint64_t expects_at_ns[GOVERNOR_CLASSES];
};

enum governor_message_type {
    /*
     * Member to arbiter; each is a struct governor_message. WANT and IDLE only say that the arbiter
     * should look at the usage page, so a late one does no harm.
     */
    GOVERNOR_JOIN = 1, /* value: bytes of device memory already held; other: bytes spilled */
    /* Of these three, other: the class of work. */
    GOVERNOR_WANT,    /* a submission waits for limit_ns; value: its estimated GPU time */
    GOVERNOR_IDLE,    /* nothing is in flight any more */
    GOVERNOR_STALLED, /* work in flight waits for something that has not been signalled */
    GOVERNOR_RESERVE, /* value: bytes of device memory; other: nonzero if it may be spilled;
                       * answered */
    GOVERNOR_RELEASE, /* value: bytes returned; other: the spilled part of them */
    /*
     * Objects are memory that several members of a slice may hold. The slice is charged once for an
     * object, as long as any of its members holds it; a member may hold it several times. SHARE is
     * for an export, and after JOIN for each object that is held: what the member was charged
     * becomes the object's charge, or is returned if the object is charged already. ATTACH is for
     * an import: it charges the object if the slice does not hold it. Both are answered. ENOSPC:
     * the arbiter can remember no more objects of the member or of its slice, and nothing has
     * changed.
     */
    GOVERNOR_SHARE,  /* value: bytes; other: the spilled part of them */
    GOVERNOR_ATTACH, /* value: bytes */
    GOVERNOR_DETACH, /* holds it one time less */
    /*
     * The device memory that the GPU's driver uses for itself in this process now; replaces the
     * last value. It is charged even beyond the limit, because it exists already. value: bytes
     */
    GOVERNOR_DRIVER,
    /*
     * Since version 5. Only from members whose slice's memory moves, but for RESERVE's new answer.
     */
    /*
     * After JOIN, once: the member can move memory. value: how much of what JOIN declared is
     * displaced; other: how much of the rest cannot move. What is reserved from now on can.
     */
    GOVERNOR_MOVABLE,
    /*
     * How much of what the member has on the card cannot move, without what it said by DRIVER and
     * what it shares; replaces the last value.
     */
    GOVERNOR_FLOOR,
    /* value: nonzero: the host has a copy of all that can move, until the next work is submitted */
    GOVERNOR_CLEAN,
    GOVERNOR_COME, /* a thread is kept out */
    /* Of these two, value: bytes; other: ns since the order, or since the last part */
    GOVERNOR_GAVE, /* other: 0 if nothing was copied */
    GOVERNOR_TOOK,
    GOVERNOR_STUCK,             /* value: the rest of the order; other: enum governor_stuck */
    GOVERNOR_RELEASE_DISPLACED, /* value: bytes returned that were displaced */
    GOVERNOR_VAULT,             /* value: bytes; answered by VAULTED */
    GOVERNOR_VAULT_RETURN,      /* value: a piece's number */
    /* Arbiter to member. */
    /*
     * With two descriptors. value: the slice's number on this GPU; other: CLOCK_MONOTONIC. A member
     * in another time namespace has another clock: its times in "at" fields are by the arbiter's
     * clock.
     */
    GOVERNOR_WELCOME = 64,
    GOVERNOR_REFUSED, /* answer to JOIN, then the connection ends; value: errno */
    /*
     * value: 0, or errno; other: bytes to spill. ENOMEM: beyond the limit. EAGAIN: beyond
     * the limit until other members' RELEASEs arrive, which are on their way. Since version 5, and
     * only for RESERVE: EINPROGRESS: governor_grant.room will tell, within seconds. EBUSY: another
     * RESERVE of this member waits for that.
     */
    GOVERNOR_RESERVED,
    /*
     * With one descriptor if value is 0: a memfd of so many bytes, which cannot change its size.
     * value: 0, or errno: ENOMEM: the slice, or the host, has no more for it; other: the piece's
     * number
     */
    GOVERNOR_VAULTED,
};

/*
 * Identifies an object: st_dev and st_ino of its file descriptors. Names are believed, like sizes.
 * A member that gives two objects one name, or names one that it does not hold, is charged too
 * little, like one that never asks. That makes only its own slice's ledger wrong: each slice has
 * names of its own.
 */
struct governor_object_name {
    uint64_t device;
    uint64_t inode;
};

/* The version comes first in every version's messages. */
struct governor_message {
    uint32_t version;
    uint32_t type;
    uint64_t value;
    uint64_t other;
    struct governor_object_name object; /* SHARE, ATTACH, DETACH */
};

#endif /* GOVERNOR_PROTOCOL_H */
