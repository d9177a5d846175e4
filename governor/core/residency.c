// SPDX-License-Identifier: MIT
#include "residency.h"

#include <string.h>

#include "clock.h"

/* A turn is so many times as long as the exchange before it, within these limits. */
#define TURN_COSTS  9
#define TURN_MIN_NS (2 * NS_PER_S)
#define TURN_MAX_NS (60 * NS_PER_S)
/* One exchange for a slice, or at its cost while it works, in so many times what it takes. */
#define REPEAT_COSTS 10
/* How long an idle member keeps its memory for others of its rank, and for lower ones. */
#define KEEP_MAX_NS   (NS_PER_S / 2)
#define KEEP_LOWER_NS NS_PER_S
#define STUCK_NS      NS_PER_S
/* Best effort that moves has given way by then. */
#define MISSING_NS (5 * NS_PER_S)
/* Who has been idle for so long may stay so. */
#define COPY_NS (2 * NS_PER_S)
/* Who has joined says within this whether its memory moves. */
#define JOINING_NS NS_PER_S
#define STARVED_NS (60 * NS_PER_S)
#define MINUTE_NS  (60 * NS_PER_S)
/* The part of a minute that moves may take before turns become longer, five times at most. */
#define MOVING_MAX  0.2
#define STRETCH_MAX 4
/* Copies in both directions at once take so much longer than in one. */
#define BOTH_WAYS 1.25
#define LEARN     (1.0 / 8)
/* So many times as long as the link should take is not believed: turns would have no end. */
#define SLOWEST 16
/* No card has more. Sums of members do not overflow. */
#define BYTES_MAX (1ull << 52)

#define SLICE(residency, i)  ((struct residency_slice *)g_ptr_array_index((residency)->slices, i))
#define MEMBER(residency, i) ((struct residency_member *)g_ptr_array_index((residency)->members, i))

static uint64_t excess(uint64_t bytes, uint64_t of)
{
    return bytes > of ? bytes - of : 0;
}

static uint64_t pool_of(const struct residency *residency)
{
    return excess(residency->capacity, residency->promised);
}

static uint64_t free_pool(const struct residency *residency)
{
    return excess(pool_of(residency), residency->lent);
}

static uint64_t borrowed_by(const struct residency_slice *slice)
{
    return excess(slice->on_card, slice->settings.promised);
}

/* What the pool must have for @bytes more of the slice on the card. */
static uint64_t pool_cost(const struct residency_slice *slice, uint64_t bytes)
{
    return excess(slice->on_card + bytes, slice->settings.promised) - borrowed_by(slice);
}

static void set_on_card(struct residency *residency, struct residency_slice *slice, uint64_t bytes)
{
    residency->lent -= borrowed_by(slice);
    slice->on_card = bytes;
    residency->lent += borrowed_by(slice);
}

static uint64_t rank_of(const struct residency_member *member)
{
    const struct residency_settings *settings = &member->slice->settings;

    return ((uint64_t)member->claims << 33) + ((uint64_t)!settings->best_effort << 32) +
           settings->priority;
}

/* What it waits for, but for what it is granted already. */
static uint64_t needed_by(const struct residency_member *member)
{
    bool comes = member->asks || member->state == RESIDENCY_COMING;

    return excess((comes ? member->out : 0) + member->wanted, member->granted);
}

/* What a slice may have, so that all of it can be there while others have their promises only. */
static uint64_t most_of(const struct residency *residency, const struct residency_slice *slice)
{
    return slice->settings.promised + pool_of(residency);
}

/* It may have what is promised, whatever its slice has kept. */
static bool is_held(const struct residency_member *member)
{
    const struct residency_slice *slice = member->slice;

    return slice->kept &&
           excess(slice->on_card, slice->kept) + needed_by(member) > slice->settings.promised;
}

/* Who has joined with more than that waits in vain, and does not hold up others. */
static bool member_waits(const struct residency *residency, const struct residency_member *member)
{
    const struct residency_slice *slice = member->slice;

    return member->state != RESIDENCY_LEAVING && !is_held(member) && needed_by(member) > 0 &&
           excess(slice->total, slice->kept) <= most_of(residency, slice);
}

/* What of it can move, and is not covered by its slice's promise. */
static uint64_t movable_of(const struct residency_member *member)
{
    const struct residency_slice *slice = member->slice;

    if (member->stays || member->state == RESIDENCY_COMING || member->state == RESIDENCY_LEAVING ||
        member->granted)
        return 0;
    return MIN(member->resident - member->floor, excess(borrowed_by(slice), slice->leaving));
}

static void set_state(struct residency_member *member, enum residency_state state)
{
    member->state = state;
    member->changed = true;
}

/* All that it waits for is there. */
static void come_home(struct residency_member *member, uint64_t now)
{
    set_state(member, RESIDENCY_HOME);
    member->asks = false;
    member->home_since = now;
    if (!member->busy)
        member->idle_since = now;
}

static void end_wait(struct residency *residency, struct residency_member *member)
{
    if (residency->claimant == member && !needed_by(member))
        residency->claimant = NULL;
    if (!needed_by(member))
        member->told_starved = false;
}

static void answer_reserve(struct residency_member *member)
{
    if (member->state != RESIDENCY_HOME || !member->wanted || member->granted < member->wanted)
        return;
    member->resident += member->wanted;
    member->granted -= member->wanted;
    member->wanted = 0;
    member->answered = true;
    member->changed = true;
}

static void set_leave(struct residency_member *member, uint64_t bytes)
{
    member->slice->leaving += bytes - member->leave;
    member->leave = bytes;
    member->changed = true;
}

/* It has given all that it was told to, or cannot. */
static void end_leaving(struct residency_member *member)
{
    set_leave(member, 0);
    set_state(member, member->out ? RESIDENCY_AWAY : RESIDENCY_HOME);
    member->asks &= member->out > 0;
}

void residency_init(struct residency *residency, uint64_t capacity, double rate)
{
    memset(residency, 0, sizeof(*residency));
    residency->capacity = capacity;
    residency->slices = g_ptr_array_new_with_free_func(g_free);
    residency->members = g_ptr_array_new();
    residency->ns_per_byte[RESIDENCY_OUT] = residency->ns_per_byte[RESIDENCY_IN] = 1e9 / rate;
    residency->slowest = SLOWEST / rate * 1e9;
    residency->stretch = 1;
}

void residency_clear(struct residency *residency)
{
    g_ptr_array_unref(residency->members);
    g_ptr_array_unref(residency->slices);
}

/* A pool of that size has room for what is lent, and for each slice but @except alone. */
static bool has_room(const struct residency *residency, const struct residency_slice *except,
                     uint64_t pool, uint64_t lent)
{
    for (guint i = 0; i < residency->slices->len; i++) {
        const struct residency_slice *slice = SLICE(residency, i);

        if (slice != except && excess(slice->total, slice->settings.promised) > pool)
            return false;
    }
    return lent <= pool;
}

bool residency_set_slice(struct residency *residency, struct residency_slice *slice,
                         const struct residency_settings *settings)
{
    uint64_t promised = residency->promised - slice->settings.promised;
    uint64_t lent = residency->lent - borrowed_by(slice);

    if (settings->promised > excess(residency->capacity, promised))
        return false;
    promised += settings->promised;
    lent += excess(slice->on_card, settings->promised);
    if (settings->promised > slice->settings.promised &&
        !has_room(residency, slice, residency->capacity - promised, lent))
        return false;
    residency->promised = promised;
    residency->lent = lent;
    slice->settings = *settings;
    slice->settings.weight = MAX(settings->weight, 1);
    return true;
}

struct residency_slice *residency_add_slice(struct residency *residency,
                                            const struct residency_settings *settings)
{
    struct residency_slice *slice = g_new0(struct residency_slice, 1);

    if (!residency_set_slice(residency, slice, settings)) {
        g_free(slice);
        return NULL;
    }
    g_ptr_array_add(residency->slices, slice);
    return slice;
}

void residency_remove_slice(struct residency *residency, struct residency_slice *slice)
{
    residency->lent -= borrowed_by(slice);
    residency->promised -= slice->settings.promised;
    g_ptr_array_remove(residency->slices, slice);
}

void residency_join(struct residency *residency, struct residency_member *member, uint64_t now)
{
    struct residency_slice *slice = member->slice;

    member->resident = MIN(member->resident, BYTES_MAX);
    member->out = MIN(member->out, BYTES_MAX);
    member->state = member->out ? RESIDENCY_AWAY : RESIDENCY_HOME;
    member->home_since = member->idle_since = now;
    g_ptr_array_add(residency->members, member);
    slice->total += member->resident + member->out;
    set_on_card(residency, slice, slice->on_card + member->resident);
}

void residency_set_fixed(struct residency *residency, struct residency_slice *slice, uint64_t bytes)
{
    bytes = MIN(bytes, BYTES_MAX);
    slice->total += bytes - slice->fixed;
    set_on_card(residency, slice, slice->on_card + bytes - slice->fixed);
    slice->fixed = bytes;
}

void residency_set_kept(struct residency_slice *slice, uint64_t bytes)
{
    slice->kept = bytes;
}

void residency_leave(struct residency *residency, struct residency_member *member)
{
    struct residency_slice *slice = member->slice;

    set_leave(member, 0);
    slice->total -= member->resident + member->out + member->wanted;
    set_on_card(residency, slice, slice->on_card - member->resident - member->granted);
    if (residency->claimant == member)
        residency->claimant = NULL;
    g_ptr_array_remove_fast(residency->members, member);
}

/* What of it may move at some time; of one that has just joined it is not known yet. */
static uint64_t may_move(const struct residency_member *member, uint64_t now)
{
    if (member->stays && now > member->home_since + JOINING_NS)
        return 0;
    return member->resident + member->granted - member->floor;
}

/*
 * What the slice could give, if all of its members but @except gave what they can. Best effort
 * gives way to others in any case (vgpud's steps when memory is short).
 */
static uint64_t most_given_by(const struct residency *residency,
                              const struct residency_slice *slice,
                              const struct residency_member *except, uint64_t now)
{
    uint64_t bytes = 0;

    if (slice->settings.best_effort && !except->slice->settings.best_effort)
        return borrowed_by(slice);
    for (guint i = 0; i < residency->members->len; i++) {
        const struct residency_member *member = MEMBER(residency, i);

        if (member->slice == slice && member != except)
            bytes += may_move(member, now);
    }
    return MIN(bytes, borrowed_by(slice));
}

/* Whether the pool has @cost when all others have given what they can. */
static bool can_be_given(const struct residency *residency, const struct residency_member *member,
                         uint64_t cost, uint64_t now)
{
    uint64_t bytes = free_pool(residency);

    for (guint i = 0; i < residency->slices->len; i++)
        bytes += most_given_by(residency, SLICE(residency, i), member, now);
    return cost <= bytes;
}

/*
 * Who could not bring its memory back is not granted any for a while. A claim that cannot be met
 * yet holds up nobody.
 */
static bool is_next_possible(const struct residency *residency,
                             const struct residency_member *member, uint64_t now)
{
    if (!member_waits(residency, member) || now < member->away_until)
        return false;
    return !member->claims || residency->claimant == member ||
           can_be_given(residency, member, pool_cost(member->slice, needed_by(member)), now);
}

static bool has_waiters(const struct residency *residency, uint64_t now)
{
    for (guint i = 0; i < residency->members->len; i++)
        if (is_next_possible(residency, MEMBER(residency, i), now))
            return true;
    return false;
}

enum residency_answer residency_reserve(struct residency *residency,
                                        struct residency_member *member, uint64_t bytes,
                                        uint64_t now)
{
    struct residency_slice *slice = member->slice;
    uint64_t cost, most = most_of(residency, slice);

    if (slice->settings.vram)
        most = MIN(most, slice->settings.vram);
    if (!bytes || member->wanted || bytes > excess(most, slice->total))
        return RESIDENCY_REFUSED;
    cost = pool_cost(slice, bytes);
    if (!member->claims && !can_be_given(residency, member, cost, now))
        return RESIDENCY_REFUSED;
    slice->total += bytes;
    if (member->state == RESIDENCY_HOME && cost <= free_pool(residency) &&
        (!cost || !has_waiters(residency, now))) {
        member->resident += bytes;
        set_on_card(residency, slice, slice->on_card + bytes);
        return RESIDENCY_GRANTED;
    }
    if (!needed_by(member))
        member->waits_since = now;
    member->wanted = bytes;
    member->asks |= member->state != RESIDENCY_HOME;
    return RESIDENCY_WAITS;
}

/* Grants of more than it still needs go back. A part of an allocation is the claimant's only. */
static void trim_granted(struct residency *residency, struct residency_member *member)
{
    uint64_t needs = member->out + member->wanted, more;

    if (residency->claimant != member && member->granted < needs)
        needs = member->out;
    more = excess(member->granted, needs);
    member->granted -= more;
    set_on_card(residency, member->slice, member->slice->on_card - more);
    member->changed |= more > 0;
    end_wait(residency, member);
}

bool residency_is_promised(const struct residency_slice *slice, uint64_t bytes)
{
    return !pool_cost(slice, bytes);
}

bool residency_has_room(const struct residency *residency, const struct residency_slice *slice,
                        uint64_t bytes)
{
    return pool_cost(slice, bytes) <= free_pool(residency);
}

void residency_cancel(struct residency *residency, struct residency_member *member)
{
    member->slice->total -= member->wanted;
    member->wanted = 0;
    trim_granted(residency, member);
}

bool residency_release(struct residency *residency, struct residency_member *member,
                       uint64_t resident, uint64_t out)
{
    struct residency_slice *slice = member->slice;

    if (resident > member->resident || out > member->out)
        return false;
    member->resident -= resident;
    member->out -= out;
    member->floor = MIN(member->floor, member->resident);
    slice->total -= resident + out;
    set_on_card(residency, slice, slice->on_card - resident);
    trim_granted(residency, member);
    if (member->leave > member->resident - member->floor)
        set_leave(member, member->resident - member->floor);
    if (member->state == RESIDENCY_LEAVING && !member->leave)
        end_leaving(member);
    if (member->state != RESIDENCY_HOME && member->state != RESIDENCY_LEAVING && !member->out)
        come_home(member, member->home_since);
    answer_reserve(member);
    return true;
}

bool residency_set_floor(struct residency_member *member, uint64_t bytes)
{
    if (bytes > member->resident)
        return false;
    member->floor = bytes;
    if (member->leave > member->resident - bytes)
        set_leave(member, member->resident - bytes);
    if (member->state == RESIDENCY_LEAVING && !member->leave)
        end_leaving(member);
    return true;
}

void residency_ask(struct residency_member *member, uint64_t now)
{
    if (member->state == RESIDENCY_HOME || member->asks)
        return;
    member->asks = true;
    if (!member->wanted)
        member->waits_since = now;
}

void residency_set_busy(struct residency_member *member, bool busy, uint64_t now)
{
    if (member->busy && !busy)
        member->idle_since = now;
    member->busy = busy;
    if (busy)
        member->clean = false;
}

/* There is more than the card has. */
static bool is_contested(const struct residency *residency)
{
    uint64_t bytes = 0;

    for (guint i = 0; i < residency->slices->len; i++)
        bytes += SLICE(residency, i)->total;
    return bytes > residency->capacity;
}

uint64_t residency_to_copy(const struct residency *residency, const struct residency_member *member,
                           uint64_t now)
{
    bool copies = member->state == RESIDENCY_HOME && !member->busy && !member->clean &&
                  now >= member->idle_since + COPY_NS && is_contested(residency);

    return copies ? movable_of(member) : 0;
}

uint64_t residency_missing(const struct residency *residency, const struct residency_member *member,
                           uint64_t now)
{
    uint64_t free = free_pool(residency), held = 0, cost;

    if (member->slice->settings.best_effort || !member_waits(residency, member) ||
        now < member->waits_since + MISSING_NS)
        return 0;
    for (guint i = 0; i < residency->slices->len; i++)
        if (SLICE(residency, i)->settings.best_effort)
            held += borrowed_by(SLICE(residency, i));
    cost = excess(pool_cost(member->slice, needed_by(member)), free);
    return cost <= held ? cost : 0;
}

static void learn_move(struct residency *residency, enum residency_way way, uint64_t bytes,
                       uint64_t ns)
{
    double *rate = &residency->ns_per_byte[way];

    ns = (uint64_t)MIN((double)ns, residency->slowest * (double)bytes);
    if (bytes)
        *rate += ((double)ns / (double)bytes - *rate) * LEARN;
    /* Others leave at the same time. */
    if (way == RESIDENCY_IN)
        residency->moving_ns += (double)ns;
}

bool residency_gave(struct residency *residency, struct residency_member *member, uint64_t bytes,
                    uint64_t ns)
{
    if (member->state != RESIDENCY_LEAVING || bytes > member->resident - member->floor)
        return false;
    if (ns)
        learn_move(residency, RESIDENCY_OUT, bytes, ns);
    member->resident -= bytes;
    member->out += bytes;
    set_on_card(residency, member->slice, member->slice->on_card - bytes);
    set_leave(member, excess(member->leave, bytes));
    if (!member->leave)
        end_leaving(member);
    return true;
}

bool residency_took(struct residency *residency, struct residency_member *member, uint64_t bytes,
                    uint64_t ns, uint64_t now)
{
    if (member->state != RESIDENCY_COMING || bytes > MIN(member->granted, member->out))
        return false;
    learn_move(residency, RESIDENCY_IN, bytes, ns);
    member->granted -= bytes;
    member->out -= bytes;
    member->resident += bytes;
    if (!member->out)
        come_home(member, now);
    answer_reserve(member);
    end_wait(residency, member);
    return true;
}

/* It stays away for now, and others may have what it was granted. */
static void return_grant(struct residency *residency, struct residency_member *member)
{
    set_on_card(residency, member->slice, member->slice->on_card - member->granted);
    member->granted = 0;
    member->asks = true;
    if (residency->claimant == member)
        residency->claimant = NULL;
    set_state(member, RESIDENCY_AWAY);
}

void residency_stuck(struct residency *residency, struct residency_member *member, uint64_t now)
{
    if (member->state == RESIDENCY_COMING) {
        member->away_until = now + STUCK_NS;
        return_grant(residency, member);
    } else if (member->state == RESIDENCY_LEAVING) {
        member->stuck_until = now + STUCK_NS;
        end_leaving(member);
    }
}

uint64_t residency_cost(const struct residency *residency, uint64_t bytes)
{
    const double *rates = residency->ns_per_byte;

    return (uint64_t)(MAX(rates[RESIDENCY_OUT], rates[RESIDENCY_IN]) * BOTH_WAYS * (double)bytes);
}

/* Of slices that have something on the card or wait for it. */
static double mean_weight(const struct residency *residency)
{
    double sum = 0, count = 0;

    for (guint i = 0; i < residency->slices->len; i++) {
        const struct residency_slice *slice = SLICE(residency, i);

        sum += slice->total ? slice->settings.weight : 0;
        count += slice->total > 0;
    }
    return count ? sum / count : 1;
}

uint64_t residency_turn(const struct residency *residency, const struct residency_member *member,
                        uint64_t cost)
{
    uint64_t turn = CLAMP(TURN_COSTS * cost, TURN_MIN_NS, TURN_MAX_NS) * residency->stretch;

    return (uint64_t)((double)turn * member->slice->settings.weight / mean_weight(residency));
}

/* From when on @member may be told to leave for @waiter; TIME_NEVER: not while it works. */
static uint64_t leaves_at(const struct residency *residency, const struct residency_member *member,
                          const struct residency_member *waiter)
{
    uint64_t cost = residency_cost(residency, needed_by(waiter));
    uint64_t rank = rank_of(member), waiting = rank_of(waiter), at = member->stuck_until;
    const struct residency_slice *slice = member->slice;

    if (member->state == RESIDENCY_AWAY || slice->kept)
        return at;
    if (!member->busy) {
        uint64_t keep = rank > waiting ? MAX(2 * cost, KEEP_LOWER_NS) : MIN(cost / 2, KEEP_MAX_NS);

        at = MAX(at, member->idle_since + keep);
    } else if (rank > waiting) {
        return TIME_NEVER;
    } else if (rank == waiting) {
        at = MAX(at, member->home_since + residency_turn(residency, member, cost));
    } else if (slice->settings.best_effort && slice->gave_way_at) {
        at = MAX(at, slice->gave_way_at + REPEAT_COSTS * cost);
    }
    if (rank >= waiting && waiter->slice->exchanged_at && residency->claimant != waiter)
        at = MAX(at, waiter->slice->exchanged_at + REPEAT_COSTS * cost);
    return at;
}

/* Who gives first: who does not run anyway, then who is idle, then who works. */
static int order_of(const struct residency_member *member)
{
    if (member->slice->kept)
        return 0;
    if (member->state == RESIDENCY_AWAY)
        return 1;
    return member->busy ? 3 : 2;
}

/* Negative: @a gives first. @missing: bytes that are wanted. */
static int compare_givers(const struct residency_member *a, const struct residency_member *b,
                          uint64_t missing)
{
    uint64_t more_a = excess(movable_of(a), missing), more_b = excess(movable_of(b), missing);

    if (order_of(a) != order_of(b))
        return order_of(a) - order_of(b);
    if (rank_of(a) != rank_of(b))
        return rank_of(a) < rank_of(b) ? -1 : 1;
    if (a->clean != b->clean)
        return a->clean ? -1 : 1;
    if (!a->busy && a->idle_since != b->idle_since)
        return a->idle_since < b->idle_since ? -1 : 1;
    return (more_a > more_b) - (more_a < more_b);
}

/* The next that may give something to @waiter now; NULL: none. Notes when the next one may. */
static struct residency_member *next_giver(struct residency *residency,
                                           const struct residency_member *waiter, uint64_t missing,
                                           uint64_t now)
{
    struct residency_member *best = NULL;

    for (guint i = 0; i < residency->members->len; i++) {
        struct residency_member *member = MEMBER(residency, i);
        uint64_t at;

        if (member == waiter || !movable_of(member))
            continue;
        at = leaves_at(residency, member, waiter);
        if (at > now)
            residency->next_at = MIN(residency->next_at, at);
        else if (!best || compare_givers(member, best, missing) < 0)
            best = member;
    }
    return best;
}

/* What members that leave will have given to the pool. */
static uint64_t leaving_pool(const struct residency *residency)
{
    uint64_t bytes = 0;

    for (guint i = 0; i < residency->slices->len; i++)
        bytes += MIN(SLICE(residency, i)->leaving, borrowed_by(SLICE(residency, i)));
    return bytes;
}

/* What all that may leave for @waiter now could give. */
static uint64_t available_for(const struct residency *residency,
                              const struct residency_member *waiter, uint64_t now)
{
    uint64_t bytes = 0;

    for (guint i = 0; i < residency->slices->len; i++) {
        const struct residency_slice *slice = SLICE(residency, i);
        uint64_t movable = 0;

        for (guint j = 0; j < residency->members->len; j++) {
            const struct residency_member *member = MEMBER(residency, j);

            if (member->slice == slice && member != waiter &&
                leaves_at(residency, member, waiter) <= now)
                movable += movable_of(member);
        }
        bytes += MIN(movable, excess(borrowed_by(slice), slice->leaving));
    }
    return bytes;
}

static void order_leave(struct residency_member *member, const struct residency_member *waiter,
                        uint64_t bytes, uint64_t now)
{
    if (member->busy && member->state == RESIDENCY_HOME && rank_of(member) < rank_of(waiter))
        member->slice->gave_way_at = now;
    if (member->state == RESIDENCY_HOME)
        member->asks = member->wanted > 0;
    set_leave(member, bytes);
    set_state(member, RESIDENCY_LEAVING);
}

/*
 * @waiter becomes the claimant, and others are told to give what is missing for it. False: they
 * cannot, and nothing is done.
 */
static bool make_room(struct residency *residency, struct residency_member *waiter, uint64_t now)
{
    uint64_t have = free_pool(residency) + leaving_pool(residency);
    uint64_t missing = excess(pool_cost(waiter->slice, needed_by(waiter)), have);
    struct residency_member *giver;

    if (!missing) {
        residency->claimant = waiter;
        return true;
    }
    giver = next_giver(residency, waiter, missing, now);
    if (residency->claimant != waiter && available_for(residency, waiter, now) < missing)
        return false;
    residency->claimant = waiter;
    if (giver)
        waiter->slice->exchanged_at = now;
    for (; giver && missing; giver = next_giver(residency, waiter, missing, now)) {
        uint64_t bytes = MIN(missing, movable_of(giver));

        order_leave(giver, waiter, bytes, now);
        missing -= bytes;
    }
    return true;
}

/* As much of what it needs as there is. True: that is all. */
static bool grant_bytes(struct residency *residency, struct residency_member *member)
{
    struct residency_slice *slice = member->slice;
    uint64_t room = excess(slice->settings.promised, slice->on_card) + free_pool(residency);
    uint64_t bytes = MIN(needed_by(member), room);

    if (bytes) {
        member->granted += bytes;
        set_on_card(residency, slice, slice->on_card + bytes);
        member->changed = true;
        if (member->state == RESIDENCY_AWAY)
            set_state(member, RESIDENCY_COMING);
    }
    answer_reserve(member);
    return !needed_by(member);
}

/* Whom it is next: the highest rank, and in it who has waited longest; NULL: nobody. */
static struct residency_member *next_waiter(const struct residency *residency, uint64_t now)
{
    struct residency_member *best = NULL;

    for (guint i = 0; i < residency->members->len; i++) {
        struct residency_member *member = MEMBER(residency, i);

        if (!is_next_possible(residency, member, now))
            continue;
        if (!best || rank_of(member) > rank_of(best) ||
            (rank_of(member) == rank_of(best) && member->waits_since < best->waits_since))
            best = member;
    }
    return best;
}

/* What a promise covers waits for nobody. */
static void grant_covered(struct residency *residency, uint64_t now)
{
    for (guint i = 0; i < residency->members->len; i++) {
        struct residency_member *member = MEMBER(residency, i);

        if (is_next_possible(residency, member, now) &&
            !pool_cost(member->slice, needed_by(member))) {
            grant_bytes(residency, member);
            end_wait(residency, member);
        }
    }
}

/* Who could not bring its memory back may try again then. */
static void note_away(struct residency *residency, uint64_t now)
{
    for (guint i = 0; i < residency->members->len; i++) {
        const struct residency_member *member = MEMBER(residency, i);

        if (member_waits(residency, member) && member->away_until > now)
            residency->next_at = MIN(residency->next_at, member->away_until);
    }
}

static void note_starved(struct residency *residency, uint64_t now)
{
    for (guint i = 0; i < residency->members->len; i++) {
        struct residency_member *member = MEMBER(residency, i);
        uint64_t at = member->waits_since + STARVED_NS;

        if (!member_waits(residency, member) || member->told_starved)
            continue;
        if (now >= at)
            member->starved = member->told_starved = true;
        else
            residency->next_at = MIN(residency->next_at, at);
    }
}

/* Turns are twice as long after a minute with too many moves, and as before after a calm one. */
static void watch_moves(struct residency *residency, uint64_t now)
{
    if (now < residency->minute_at + MINUTE_NS)
        return;
    if (residency->moving_ns > MOVING_MAX * (double)(now - residency->minute_at))
        residency->stretch = MIN(2 * residency->stretch, STRETCH_MAX);
    else
        residency->stretch = MAX(residency->stretch / 2, 1);
    residency->moving_ns = 0;
    residency->minute_at = now;
}

uint64_t residency_run(struct residency *residency, uint64_t now)
{
    struct residency_member *waiter;

    residency->next_at = TIME_NEVER;
    watch_moves(residency, now);
    grant_covered(residency, now);
    while ((waiter = residency->claimant ? residency->claimant : next_waiter(residency, now))) {
        if (!make_room(residency, waiter, now) || !grant_bytes(residency, waiter))
            break;
        residency->claimant = NULL;
        waiter->told_starved = false;
    }
    note_away(residency, now);
    note_starved(residency, now);
    return residency->next_at;
}
