// SPDX-License-Identifier: MIT
#include "fake_member.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "governor_protocol.h"
#include "member.h"

/* Debits are numbered from 1; what became of each is kept, modulo. */
#define MOST_DEBITS 65536

__attribute__((visibility("default"))) struct fake_member fake_member;

struct GovernorMember {
    int unused;
};

static _Atomic bool open_debits[MOST_DEBITS];

GovernorMember *governor_member_new(const char *socket_path, bool required)
{
    (void)socket_path;
    if (required && getenv("FAKE_MEMBER_REFUSE")) {
        errno = ENOENT;
        return NULL;
    }
    fake_member.metered = fake_member.metered || getenv("FAKE_MEMBER_METERED");
    if (getenv("FAKE_MEMBER_LIMIT"))
        fake_member.limit = strtoull(getenv("FAKE_MEMBER_LIMIT"), NULL, 10);
    fake_member.joined++;
    return calloc(1, sizeof(GovernorMember));
}

void governor_member_free(GovernorMember *member)
{
    fake_member.left++;
    free(member);
}

GovernorMember *governor_member_get(const char *socket_path, bool required)
{
    return governor_member_new(socket_path, required);
}

void governor_member_put(GovernorMember *member)
{
    governor_member_free(member);
}

bool governor_member_class_is_metered(const GovernorMember *member, enum governor_class class)
{
    (void)member;
    (void)class;
    return fake_member.metered;
}

void governor_member_class_count(GovernorMember *member, enum governor_class class)
{
    (void)member;
    (void)class;
    atomic_fetch_add_explicit(&fake_member.counted, 1, memory_order_relaxed);
}

enum governor_pass governor_member_pass(GovernorMember *member, enum governor_class class)
{
    if (fake_member.metered)
        return GOVERNOR_PASS_METERED;
    governor_member_class_count(member, class);
    return fake_member.marks ? GOVERNOR_PASS_MARK : GOVERNOR_PASS_FREE;
}

uint64_t governor_member_mark(GovernorMember *member, enum governor_class class, uint64_t count,
                              void (*look)(void *data), void *data)
{
    (void)count;
    (void)look;
    (void)data;
    (void)member;
    (void)class;
    return ++fake_member.placed;
}

void governor_member_marked(GovernorMember *member, enum governor_class class, uint64_t marker,
                            uint64_t at_ns)
{
    (void)at_ns;
    (void)member;
    (void)class;
    if (marker != ++fake_member.passed)
        fake_member.wrong++;
}

void governor_member_unmarked(GovernorMember *member, enum governor_class class, uint64_t marker)
{
    governor_member_marked(member, class, marker, 0);
}

static void hold_until_beside(const struct governor_work *work)
{
    if (!fake_member.holds_until_beside || !work->behind)
        return;
    while (work->still_behind(work->data))
        usleep(200);
    fake_member.came_beside++;
}

uint64_t governor_member_submit_work(GovernorMember *member, const struct governor_work *work,
                                     struct governor_turn *turn)
{
    uint64_t debit = ++fake_member.begun;

    (void)member;
    hold_until_beside(work);
    fake_member.last_estimate_ns = work->estimate_ns;
    if (work->deferred)
        fake_member.deferred++;
    open_debits[debit % MOST_DEBITS] = true;
    *turn =
        (struct governor_turn){.behind_ns = fake_member.behind_ns, .passes = fake_member.passes};
    return debit;
}

static void close_debit(uint64_t debit)
{
    if (!atomic_exchange(&open_debits[debit % MOST_DEBITS], false))
        fake_member.wrong++;
}

void governor_member_end(GovernorMember *member, uint64_t debit, uint64_t measured_ns)
{
    (void)member;
    close_debit(debit);
    fake_member.measured_ns += measured_ns;
    fake_member.last_measured_ns = measured_ns;
    fake_member.ended++;
}

uint64_t governor_member_ran(GovernorMember *member, uint64_t debit, uint64_t begin_at_ns,
                             uint64_t end_at_ns)
{
    fake_member.last_begin_ns = begin_at_ns;
    fake_member.last_end_ns = end_at_ns;
    fake_member.ran++;
    governor_member_end(member, debit, end_at_ns - begin_at_ns);
    return end_at_ns - begin_at_ns;
}

void governor_member_cancel(GovernorMember *member, uint64_t debit)
{
    (void)member;
    close_debit(debit);
    fake_member.cancelled++;
}

/* Another debit, so that it is seen whether the old one is ended. */
uint64_t governor_member_begun(GovernorMember *member, uint64_t debit)
{
    uint64_t renewed = MOST_DEBITS / 2 + ++fake_member.executing;

    (void)member;
    close_debit(debit);
    open_debits[renewed % MOST_DEBITS] = true;
    return renewed;
}

uint32_t governor_member_passes(const GovernorMember *member, enum governor_class class)
{
    (void)member;
    (void)class;
    return fake_member.passes;
}

void governor_member_class_stalled(GovernorMember *member, enum governor_class class)
{
    (void)member;
    (void)class;
    fake_member.stalled++;
}

/* Takes @bytes of what @limit leaves over @used. */
static bool take(_Atomic uint64_t *used, uint64_t bytes, uint64_t limit)
{
    uint64_t now = atomic_load(used);

    do {
        if (limit && (now > limit || bytes > limit - now))
            return false;
    } while (!atomic_compare_exchange_weak(used, &now, now + bytes));
    return true;
}

enum governor_memory governor_member_reserve(GovernorMember *member, uint64_t bytes, bool may_spill)
{
    (void)member;
    fake_member.reserved++;
    if (take(&fake_member.used, bytes, fake_member.limit))
        return GOVERNOR_MEMORY_DEVICE;
    if (may_spill && fake_member.spill_limit &&
        take(&fake_member.spilled, bytes, fake_member.spill_limit))
        return GOVERNOR_MEMORY_SPILL;
    fake_member.refused++;
    return GOVERNOR_MEMORY_NONE;
}

void governor_member_pages(GovernorMember *member)
{
    (void)member;
    fake_member.pages++;
}

void governor_member_driver(GovernorMember *member, uint64_t bytes)
{
    (void)member;
    fake_member.driver = bytes;
}

void governor_member_release(GovernorMember *member, uint64_t bytes, enum governor_memory kind)
{
    (void)member;
    fake_member.released++;
    if (kind == GOVERNOR_MEMORY_SPILL)
        fake_member.spilled -= bytes;
    else
        fake_member.used -= bytes;
}

void governor_member_export(GovernorMember *member, struct governor_object *object, uint64_t bytes,
                            enum governor_memory kind)
{
    (void)member;
    fake_member.exported++;
    object->bytes = bytes;
    object->kind = kind;
}

/* Nobody else is in the slice: what this process imports, no other has. */
bool governor_member_import(GovernorMember *member, struct governor_object *object, uint64_t bytes)
{
    object->bytes = bytes;
    object->kind = governor_member_reserve(member, bytes, false);
    if (object->kind == GOVERNOR_MEMORY_NONE)
        return false;
    fake_member.imported++;
    return true;
}

void governor_member_forget(GovernorMember *member, struct governor_object *object)
{
    fake_member.forgotten++;
    governor_member_release(member, object->bytes, object->kind);
}

uint32_t governor_member_engines(const GovernorMember *member)
{
    (void)member;
    return fake_member.engines ? fake_member.engines : GOVERNOR_ENGINES_ALL;
}

void governor_member_memory(GovernorMember *member, uint64_t *limit, uint64_t *used)
{
    (void)member;
    *limit = fake_member.limit;
    *used = fake_member.used;
}
