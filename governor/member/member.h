/* SPDX-License-Identifier: MIT */
/*
 * A process that uses a GPU, as a member of a slice: what a door (the Vulkan layer,
 * the CUDA door) calls. Knows nothing of any API for GPUs.
 *
 * Thread-safe. Nothing here writes to standard output or error, changes signals, or leaves a
 * descriptor to a program that is executed. After fork() the child is a member of its own from its
 * first call on; what it inherited is not charged twice.
 *
 * Without an arbiter (never there, gone, restarting) a member that has been welcomed once keeps to
 * its last share and to its last memory limit, and joins again by itself within 100 ms of the
 * arbiter's return; one that never was is governed according to @required.
 */
#ifndef GOVERNOR_MEMBER_H
#define GOVERNOR_MEMBER_H

#include <stdbool.h>
#include <stdint.h>

/* What libvgpu-member.so.1 offers; all else is hidden. */
#pragma GCC visibility push(default)

typedef struct GovernorMember GovernorMember;

/* Where the units of engines and guards have the socket of their slice. */
#define GOVERNOR_DEFAULT_SOCKET "/run/vgpu/governor/governor.sock"

/*
 * Joins the slice behind @socket_path; NULL: it is of none, and never governed. With @required, a
 * member that can't join fails (NULL, errno set: ENOENT, EACCES, ECONNREFUSED, EPROTO); without, it
 * comes back ungoverned and goes on trying.
 */
GovernorMember *governor_member_new(const char *socket_path, bool required);

/* Gives all back. No other thread may be in a call with @member. */
void governor_member_free(GovernorMember *member);

/*
 * The member of this process in the slice behind @socket_path, whichever of its doors asks: made at
 * first, as governor_member_new() does. Each that is got is to be put; the last one frees it.
 */
GovernorMember *governor_member_get(const char *socket_path, bool required);
void governor_member_put(GovernorMember *member);

/* True where submissions must be measured now. One atomic load; callers ask before each submission.
 */
bool governor_member_is_metered(const GovernorMember *member);

/* Counts a submission that is made without being measured. */
void governor_member_count(GovernorMember *member);

/*
 * Waits until work of about @estimate_ns may be submitted, and debits it. Returns the debit, to be
 * given to governor_member_end() when the work has ended, or _cancel() where it could not be
 * submitted.
 * @deferred: the work waits for something that has not been signalled. It has to have its turn, or
 * who lets all its work wait would have no share; but nothing is debited before it has run, and no
 * lease is kept for it. Nor does it wait for work of its own, which may wait for what comes after.
 */
uint64_t governor_member_begin(GovernorMember *member, uint64_t estimate_ns, bool deferred);

/* For how many ns more the GPU may be at others' work that was submitted before what is submitted
 * now, though it is this member's turn. */
uint64_t governor_member_behind_ns(const GovernorMember *member);

/* The work of a debit has ended: @measured_ns replaces the estimate. What is beyond it is owed. */
void governor_member_end(GovernorMember *member, uint64_t debit, uint64_t measured_ns);

void governor_member_cancel(GovernorMember *member, uint64_t debit);

/*
 * The work of a debit was deferred or has stalled, and now it has begun: it counts as in flight from
 * here on, so that a process that is killed before its end is charged for it. Returns the debit that
 * stands for it from now on.
 */
uint64_t governor_member_begun(GovernorMember *member, uint64_t debit);

/* What is in flight has not begun: it waits for a semaphore. The lease goes to who can use it. */
void governor_member_stalled(GovernorMember *member);

enum governor_memory {
    GOVERNOR_MEMORY_DEVICE, /* charged to device memory: allocate it there */
    GOVERNOR_MEMORY_SPILL,  /* charged to the slice's spill: allocate it in host memory, or leave it
                               to  a driver that pages */
    GOVERNOR_MEMORY_NONE,   /* beyond the limit: the allocation fails */
};

/* Charges @bytes before they are allocated. Blocks for an answer of the arbiter, 2 s at most. */
enum governor_memory governor_member_reserve(GovernorMember *member, uint64_t bytes,
                                             bool may_spill);

/* From now on what is spilled is left to the driver, which pages device memory by itself; before,
 * it is allocated in host memory. For the slice's status. */
void governor_member_pages(GovernorMember *member);

/* Gives back what was charged as @kind. Doesn't wait. */
void governor_member_release(GovernorMember *member, uint64_t bytes, enum governor_memory kind);

/**
 * struct governor_object - memory that several processes of a slice may have: charged once
 * @device, @inode: st_dev and st_ino of what stands for it, the same in each of them; a caller's to
 * say
 *
 * The rest is the member's, from a call that takes it until governor_member_forget(). The caller
 * keeps it where it is.
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
 * What was charged as @bytes of @kind is shared from now on, and given back by
 * governor_member_forget() only. Before others can import it. Blocks as governor_member_reserve().
 */
void governor_member_export(GovernorMember *member, struct governor_object *object, uint64_t bytes,
                            enum governor_memory kind);

/* What another may have exported: charges @bytes where no other process of the slice has it. Blocks
 * likewise. False: beyond the limit. */
bool governor_member_import(GovernorMember *member, struct governor_object *object, uint64_t bytes);

/* This process hasn't got it any more. Doesn't wait. */
void governor_member_forget(GovernorMember *member, struct governor_object *object);

/* What the driver has of device memory for itself in this process now: charged, beyond the limit
 * too. Doesn't wait. */
void governor_member_driver(GovernorMember *member, uint64_t bytes);

/* The slice as its members see it; @limit 0: none. */
void governor_member_memory(const GovernorMember *member, uint64_t *limit, uint64_t *used);

/* Engines of the GPU that the slice may use, of enum governor_engine. */
uint32_t governor_member_engines(const GovernorMember *member);

#pragma GCC visibility pop

#endif /* GOVERNOR_MEMBER_H */
