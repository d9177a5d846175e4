/* SPDX-License-Identifier: MIT */
/*
 * Between a process that uses a GPU (a member of a slice) and the arbiter of that GPU.
 *
 * A member connects to the socket of its slice: which socket it can reach is what says which slice
 * it is of. On a SOCK_SEQPACKET connection it sends GOVERNOR_JOIN and gets GOVERNOR_WELCOME with
 * two memfds:
 *
 *   [0] struct governor_grant   written by the arbiter only; the member's mapping can't be made
 * writable [1] struct governor_usage   written by this member only; read by the arbiter
 *
 * Nothing in either page is a lock. Every field is read and written as one atomic word, counters
 * only grow, and a member that dies between any two writes has said nothing that has to be taken
 * back: the end of its connection gives back all that was promised to it.
 *
 * Times are nanoseconds of GPU time, or of CLOCK_MONOTONIC where "at" is in the name. Sizes are
 * bytes.
 */
#ifndef GOVERNOR_PROTOCOL_H
#define GOVERNOR_PROTOCOL_H

#include <stdatomic.h>
#include <stdint.h>

/* Either side refuses another number. docs/architecture.md has what changed when. */
#define GOVERNOR_PROTOCOL_VERSION 3

/* How a member may submit work, in governor_grant.mode. */
enum governor_mode {
    /* As it likes, unmeasured: nobody else wants the GPU, and the slice has no hard cap. */
    GOVERNOR_MODE_FREE = 0,
    /* Each submission is measured, and made while governor_usage's debit is below
       governor_grant.limit_ns. */
    GOVERNOR_MODE_METERED = 1,
};

/* Parts of a GPU that a slice may be kept from, in governor_grant.engines. */
enum governor_engine {
    GOVERNOR_ENGINE_GRAPHICS = 1 << 0,
    GOVERNOR_ENGINE_COMPUTE = 1 << 1,
    GOVERNOR_ENGINE_TRANSFER = 1 << 2,
    GOVERNOR_ENGINE_DECODE = 1 << 3,
    GOVERNOR_ENGINE_ENCODE = 1 << 4,
    GOVERNOR_ENGINES_ALL = (1 << 5) - 1,
};

/* A word for each thing the arbiter tells a member, on a page of its own. */
struct governor_grant {
    /* The futex that members wait on; moves after a change that may let a submission go on. The arbiter
     * wakes one thread, which wakes the next when it has had its turn. */
    _Atomic uint32_t sequence;
    _Atomic uint32_t mode;
    /*
     * Metered: submissions are made while gpu_ns + in_flight_ns < limit_ns. It is raised to grant a
     * lease, and set back to take one away; work that was submitted before goes on.
     */
    _Atomic uint64_t limit_ns;
    /* Metered: a submission waits while more than this is in flight, so that others need not wait
     * long. */
    _Atomic uint64_t depth_ns;
    /* Not 0 for who has the lease while others want it: tell the arbiter at once when nothing is in
     * flight any more. */
    _Atomic uint32_t contended;
    /* Not 0 while the slice's hard cap, and not others, is what its submissions wait for. */
    _Atomic uint32_t throttled;
    /* How many members the slice has: without an arbiter they divide what is left of it. */
    _Atomic uint32_t members;
    /* Share of the GPU in millionths that holds while there is no arbiter: what it was entitled to
     * at last. */
    _Atomic uint32_t share_ppm;
    /* The slice's hard limit of device memory, 0: none; and what all its members have of it now. */
    _Atomic uint64_t memory_limit;
    _Atomic uint64_t memory_used;
    /* How much more may be spilled into host memory when the limit is reached, 0: none; and how
     * much is. */
    _Atomic uint64_t spill_limit;
    _Atomic uint64_t spill_used;
    /* Which engines the slice may use, of enum governor_engine; 0, as from an arbiter that knows of
     * none: all. */
    _Atomic uint32_t engines;
    /*
     * CLOCK_MONOTONIC when the arbiter looks at the usage page by itself. WANT need not be sent
     * before, for it would change nothing. It is taken back before each look, and set anew after.
     * 0, as from an arbiter that knows of none: it doesn't.
     */
    _Atomic uint64_t looks_at_ns;
    /*
     * CLOCK_MONOTONIC until when the GPU may be at others' work that was submitted before this
     * lease was given: what is submitted sooner does not begin at once. 0: there is none.
     */
    _Atomic uint64_t others_until_ns;
};

/* A word for each thing a member counts. */
struct governor_usage {
    /* Submissions, measured or not. */
    _Atomic uint64_t submissions;
    /* Measured GPU time of all that has ended. */
    _Atomic uint64_t gpu_ns;
    /* Estimated GPU time of what was submitted and has not ended. */
    _Atomic uint64_t in_flight_ns;
    /* Wall-clock time that submissions have waited for their turn, and of it, for a hard cap. */
    _Atomic uint64_t waited_ns;
    _Atomic uint64_t throttled_ns;
    /* CLOCK_MONOTONIC of the last submission that found nothing in flight, and of the end of the
     * last work measured. */
    _Atomic uint64_t began_at_ns;
    _Atomic uint64_t ended_at_ns;
    /* Threads that wait for limit_ns. */
    _Atomic uint64_t waiting;
    /* Not 0: what is spilled is left to the driver, which pages device memory by itself; 0: it is
     * allocated in host memory. */
    _Atomic uint64_t pages;
    /* CLOCK_MONOTONIC since when threads wait; stored before @waiting. 0, as from a member that
     * knows of none: not told. */
    _Atomic uint64_t waiting_at_ns;
};

enum governor_message_type {
    /*
     * Member to arbiter; each struct governor_message. WANT and IDLE say only that the usage page
     * is worth a look, so that one which comes late does no harm.
     */
    GOVERNOR_JOIN = 1, /* value: bytes of device memory held already; other: bytes spilled */
    GOVERNOR_WANT,     /* a submission waits for limit_ns; value: its estimated GPU time */
    GOVERNOR_IDLE,     /* nothing is in flight any more */
    GOVERNOR_STALLED,  /* what is in flight waits for something that has not been signalled */
    GOVERNOR_RESERVE,  /* value: bytes of device memory; other: not 0, may be spilled; answered */
    GOVERNOR_RELEASE,  /* value: bytes given back; other: of them, spilled ones */
    /*
     * Objects are memory that several members of a slice may have. The slice is charged for one
     * once, as long as any of its members has it; a member may have it several times. SHARE is for
     * an export, and after JOIN for each object that is held: what the member was charged becomes
     * the object's, or is given back where the object has been charged already. ATTACH is for an
     * import: charges the object where the slice hasn't got it. Both are answered; ENOSPC: the
     * arbiter remembers no more objects of the member or of its slice, and nothing has changed.
     */
    GOVERNOR_SHARE,  /* value: bytes; other: of them, spilled ones */
    GOVERNOR_ATTACH, /* value: bytes */
    GOVERNOR_DETACH, /* has it one time less */
    /* What the GPU's driver has of device memory for itself in this process now, in place of what
     * was said before. Charged beyond the limit too: it is there already. value: bytes */
    GOVERNOR_DRIVER,
    /* Arbiter to member. */
    /* With two descriptors. value: the slice's number on this GPU; other: CLOCK_MONOTONIC. A member in
     * another time namespace has another clock: what it writes and reads as "at" is by the arbiter's. */
    GOVERNOR_WELCOME = 64,
    GOVERNOR_REFUSED,      /* to JOIN, then the connection ends; value: errno */
    GOVERNOR_RESERVED, /* value: 0, or errno (ENOMEM: beyond the limit); other: bytes to be spilled
                        */
};

/*
 * Tells objects apart: st_dev and st_ino of their file descriptors. It is believed as the sizes
 * are: a member that gives two objects one name, or names one that it hasn't got, is charged less
 * than it has, as is one that never asks. It is its own slice's ledger that is wrong then, no
 * other's: each slice has names of its own.
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
