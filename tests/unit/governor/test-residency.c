// SPDX-License-Identifier: MIT
/* Whose memory is on the card: rules that hold whatever members say, and turns. */
#include "residency.h"

#include "clock.h"

#define GIB  (1ull << 30)
#define RATE (55e9)

/* With @out bytes that are not on the card. */
static struct residency_member *join_slice(struct residency *residency,
                                           struct residency_slice *slice, uint64_t out)
{
    struct residency_member *member = g_new0(struct residency_member, 1);

    member->slice = slice;
    member->out = out;
    residency_join(residency, member, NS_PER_S);
    return member;
}

/* Random messages against a model. */

#define CAPACITY 1000
#define SLICES   6
#define MEMBERS  18
#define MESSAGES 600000
#define ROUNDS   400

/* What a member has, by its own account. */
struct account {
    struct residency_member *member;
    uint64_t resident;
    uint64_t out;
};

struct storm {
    struct residency residency;
    struct residency_slice *slices[SLICES];
    struct account accounts[MEMBERS];
    uint64_t now;
    unsigned waits;
    unsigned granted;
    unsigned covered;
};

static struct residency_settings random_settings(void)
{
    return (struct residency_settings){
        .vram = g_random_boolean() ? 0 : (uint64_t)g_random_int_range(100, 900),
        .promised = g_random_boolean() ? 0 : (uint64_t)g_random_int_range(0, 200),
        .priority = (uint32_t)g_random_int_range(0, 3),
        .weight = (uint32_t)g_random_int_range(1, 200),
        .best_effort = g_random_boolean(),
    };
}

static uint64_t random_below(uint64_t limit)
{
    return limit ? (uint64_t)g_random_int_range(0, (gint32)limit + 1) : 0;
}

/* Sums are right, what is on the card fits, and at most one member has a part of what it needs. */
static void check_sums(const struct storm *storm)
{
    const struct residency *residency = &storm->residency;
    uint64_t lent = 0, promised = 0, all = 0;
    unsigned halves = 0;

    for (unsigned i = 0; i < SLICES; i++) {
        const struct residency_slice *slice = storm->slices[i];
        uint64_t on_card = slice->fixed, total = slice->fixed, leaving = 0;

        for (unsigned j = 0; j < MEMBERS; j++) {
            const struct account *account = &storm->accounts[j];
            const struct residency_member *member = account->member;
            uint64_t needs;

            if (member->slice != slice)
                continue;
            g_assert_cmpuint(member->resident, ==, account->resident);
            g_assert_cmpuint(member->out, ==, account->out);
            g_assert_true(!member->out || member->state != RESIDENCY_HOME);
            g_assert_true(!member->leave == (member->state != RESIDENCY_LEAVING));
            g_assert_cmpuint(member->leave, <=, member->resident - member->floor);
            needs = member->state == RESIDENCY_COMING ? member->out : member->wanted;
            halves += member->granted > 0 && member->granted < needs;
            on_card += member->resident + member->granted;
            total += member->resident + member->out + member->wanted;
            leaving += member->leave;
        }
        g_assert_cmpuint(slice->on_card, ==, on_card);
        g_assert_cmpuint(slice->total, ==, total);
        g_assert_cmpuint(slice->leaving, ==, leaving);
        lent += on_card > slice->settings.promised ? on_card - slice->settings.promised : 0;
        promised += slice->settings.promised;
        all += on_card;
    }
    g_assert_cmpuint(residency->lent, ==, lent);
    g_assert_cmpuint(residency->promised, ==, promised);
    g_assert_cmpuint(lent + promised, <=, CAPACITY);
    g_assert_cmpuint(all, <=, CAPACITY);
    g_assert_cmpuint(halves, <=, 1);
}

/* Nobody is told to give what its slice's promise covers. */
static uint64_t run_and_check(struct storm *storm)
{
    uint64_t before[SLICES], next;

    for (unsigned i = 0; i < SLICES; i++)
        before[i] = storm->slices[i]->leaving;
    next = residency_run(&storm->residency, storm->now);
    for (unsigned i = 0; i < SLICES; i++) {
        const struct residency_slice *slice = storm->slices[i];

        if (slice->leaving > before[i])
            g_assert_cmpuint(slice->on_card - slice->leaving, >=, slice->settings.promised);
    }
    for (unsigned i = 0; i < MEMBERS; i++) {
        struct account *account = &storm->accounts[i];

        if (!account->member->answered)
            continue;
        account->resident = account->member->resident;
        account->member->answered = false;
        storm->granted++;
    }
    check_sums(storm);
    return next;
}

static void say_reserve(struct storm *storm, struct account *account)
{
    struct residency_member *member = account->member;
    uint64_t bytes = random_below(g_random_boolean() ? 300 : 20);
    bool covered = bytes && !member->wanted && member->state == RESIDENCY_HOME &&
                   member->slice->total + bytes <= member->slice->settings.promised &&
                   (!member->slice->settings.vram ||
                    member->slice->total + bytes <= member->slice->settings.vram);

    switch (residency_reserve(&storm->residency, member, bytes, storm->now)) {
    case RESIDENCY_GRANTED:
        account->resident += bytes;
        storm->granted++;
        storm->covered += covered;
        break;
    case RESIDENCY_WAITS:
        storm->waits++;
        g_assert_false(covered);
        break;
    case RESIDENCY_REFUSED:
        g_assert_false(covered);
        break;
    }
}

static void say_gave(struct storm *storm, struct account *account)
{
    uint64_t bytes = random_below(account->member->leave + 20);

    if (!residency_gave(&storm->residency, account->member, bytes, 1000))
        return;
    account->resident -= bytes;
    account->out += bytes;
}

static void say_took(struct storm *storm, struct account *account)
{
    uint64_t bytes = random_below(account->member->granted + 20);

    if (!residency_took(&storm->residency, account->member, bytes, 1000, storm->now))
        return;
    account->resident += bytes;
    account->out -= bytes;
}

static void say_released(struct storm *storm, struct account *account)
{
    uint64_t resident = random_below(account->resident + 5), out = random_below(account->out + 5);

    if (!residency_release(&storm->residency, account->member, resident, out))
        return;
    account->resident -= resident;
    account->out -= out;
}

/* As far as there is room: what is said of it is believed. */
static void set_fixed(struct storm *storm, struct residency_slice *slice)
{
    struct residency *residency = &storm->residency;
    uint64_t before = slice->fixed;

    residency_set_fixed(residency, slice, random_below(slice->settings.promised / 3));
    if (residency->lent + residency->promised > CAPACITY)
        residency_set_fixed(residency, slice, before);
}

/* A process ends, and another of the slice begins. */
static void end_member(struct storm *storm, struct account *account)
{
    struct residency_slice *slice = account->member->slice;

    residency_leave(&storm->residency, account->member);
    g_free(account->member);
    *account = (struct account){.member = join_slice(&storm->residency, slice, 0)};
}

/* What answers a message may come with it. */
static void take_answer(struct account *account)
{
    if (account->member->answered)
        account->resident = account->member->resident;
    account->member->answered = false;
}

static void say_anything(struct storm *storm)
{
    struct account *account = &storm->accounts[g_random_int_range(0, MEMBERS)];
    struct residency_member *member = account->member;
    struct residency_settings settings = random_settings();

    switch (g_random_int_range(0, 25)) {
    case 0:
        end_member(storm, account);
        break;
    case 1:
        residency_set_slice(&storm->residency, member->slice, &settings);
        break;
    case 2:
        residency_stuck(&storm->residency, member, storm->now);
        break;
    case 3:
        residency_cancel(&storm->residency, member);
        break;
    case 4:
        /* What cannot move is promised. */
        if (member->slice->settings.promised / 3 >= member->floor)
            residency_set_floor(member, random_below(member->slice->settings.promised / 3));
        break;
    case 5 ... 7:
        say_released(storm, account);
        break;
    case 8 ... 10:
        residency_ask(member, storm->now);
        break;
    case 11 ... 12:
        residency_set_busy(member, g_random_boolean(), storm->now);
        break;
    case 13 ... 16:
        say_gave(storm, account);
        break;
    case 17 ... 20:
        say_took(storm, account);
        break;
    case 21:
        set_fixed(storm, member->slice);
        residency_set_kept(member->slice, g_random_boolean() ? random_below(100) : 0);
        break;
    default:
        say_reserve(storm, account);
        break;
    }
    take_answer(account);
}

static void open_storm(struct storm *storm)
{
    *storm = (struct storm){.now = NS_PER_S};
    residency_init(&storm->residency, CAPACITY, 1e6);
    for (unsigned i = 0; i < SLICES; i++) {
        struct residency_settings settings = random_settings();

        settings.promised = MIN(settings.promised, CAPACITY / SLICES);
        storm->slices[i] = residency_add_slice(&storm->residency, &settings);
        g_assert_nonnull(storm->slices[i]);
    }
    for (unsigned i = 0; i < MEMBERS; i++)
        storm->accounts[i].member = join_slice(&storm->residency, storm->slices[i % SLICES], 0);
}

/*
 * Everybody is idle, does what it is told, and has no floor: all that wait are served, one after
 * the other.
 */
static void settle_all(struct storm *storm)
{
    unsigned waiting = MEMBERS;

    for (unsigned i = 0; i < SLICES; i++)
        residency_set_kept(storm->slices[i], 0);
    for (unsigned i = 0; i < MEMBERS; i++) {
        g_assert_true(residency_set_floor(storm->accounts[i].member, 0));
        residency_set_busy(storm->accounts[i].member, false, storm->now);
        residency_ask(storm->accounts[i].member, storm->now);
    }
    for (unsigned round = 0; waiting; round++) {
        uint64_t next;

        g_assert_cmpuint(round, <, 1000);
        waiting = 0;
        for (unsigned i = 0; i < MEMBERS; i++) {
            struct account *account = &storm->accounts[i];
            struct residency_member *member = account->member;
            uint64_t bytes = MIN(member->granted, member->out);

            if (member->state == RESIDENCY_COMING) {
                g_assert_true(residency_took(&storm->residency, member, bytes, 1000, storm->now));
                account->resident += bytes;
                account->out -= bytes;
            }
            bytes = member->leave;
            if (member->state == RESIDENCY_LEAVING) {
                g_assert_true(residency_gave(&storm->residency, member, bytes, 1000));
                account->resident -= bytes;
                account->out += bytes;
            }
            take_answer(account);
            waiting += member->wanted || member->asks;
        }
        next = run_and_check(storm);
        storm->now = MAX(storm->now + NS_PER_MS, next == TIME_NEVER ? 0 : next);
    }
}

static void close_storm(struct storm *storm)
{
    for (unsigned i = 0; i < MEMBERS; i++) {
        residency_leave(&storm->residency, storm->accounts[i].member);
        g_free(storm->accounts[i].member);
    }
    for (unsigned i = 0; i < SLICES; i++)
        residency_set_fixed(&storm->residency, storm->slices[i], 0);
    g_assert_cmpuint(storm->residency.lent, ==, 0);
    residency_clear(&storm->residency);
}

static void test_storm(void)
{
    static struct storm storm;
    unsigned waits = 0, granted = 0, covered = 0;

    for (unsigned round = 0; round < ROUNDS; round++) {
        open_storm(&storm);
        for (unsigned i = 0; i < MESSAGES / ROUNDS; i++) {
            say_anything(&storm);
            run_and_check(&storm);
            storm.now += random_below(8) ? NS_PER_MS : NS_PER_S;
        }
        waits += storm.waits;
        granted += storm.granted;
        covered += storm.covered;
        settle_all(&storm);
        close_storm(&storm);
    }
    g_test_message("%u grants, %u of them covered by a promise; %u waits", granted, covered, waits);
    g_assert_cmpuint(waits, >, 1000);
    g_assert_cmpuint(covered, >, 1000);
}

/* Single members of slices on a card of 100 GiB that do what they are told at the link's rate. */

struct borrower {
    struct residency_member *member;
    uint64_t asked_at;
    uint64_t worst_ns;
    uint64_t home_ns;
};

struct turns {
    struct residency residency;
    struct borrower borrowers[4];
    unsigned count;
    uint64_t now;
    uint64_t moved;
};

#define STEP_NS (10 * NS_PER_MS)

static void turns_open(struct turns *turns)
{
    *turns = (struct turns){.now = NS_PER_S};
    residency_init(&turns->residency, 100 * GIB, RATE);
}

static struct borrower *turns_add(struct turns *turns, uint64_t bytes,
                                  struct residency_settings settings)
{
    struct borrower *borrower = &turns->borrowers[turns->count++];
    struct residency_slice *slice = residency_add_slice(&turns->residency, &settings);

    borrower->member = join_slice(&turns->residency, slice, bytes);
    return borrower;
}

static void turns_close(struct turns *turns)
{
    for (unsigned i = 0; i < turns->count; i++) {
        residency_leave(&turns->residency, turns->borrowers[i].member);
        g_free(turns->borrowers[i].member);
    }
    residency_clear(&turns->residency);
}

static void move_memory(struct turns *turns, struct residency_member *member)
{
    uint64_t step = (uint64_t)(RATE * 0.8 * STEP_NS / 1e9), bytes;

    if (member->state == RESIDENCY_LEAVING) {
        bytes = MIN(step, member->leave);
        g_assert_true(residency_gave(&turns->residency, member, bytes, STEP_NS * bytes / step));
        turns->moved += bytes;
    } else if (member->state == RESIDENCY_COMING) {
        bytes = MIN(MIN(step, member->granted), member->out);
        g_assert_true(
            residency_took(&turns->residency, member, bytes, STEP_NS * bytes / step, turns->now));
    }
}

/* All that are @busy (a bit each) work whenever they can. */
static void turns_run(struct turns *turns, uint64_t ns, unsigned busy)
{
    for (uint64_t until = turns->now + ns; turns->now < until; turns->now += STEP_NS) {
        for (unsigned i = 0; i < turns->count; i++) {
            struct borrower *borrower = &turns->borrowers[i];
            struct residency_member *member = borrower->member;
            bool works = busy & 1u << i;

            move_memory(turns, member);
            if (works && residency_is_home(member)) {
                if (borrower->asked_at)
                    borrower->worst_ns = MAX(borrower->worst_ns, turns->now - borrower->asked_at);
                borrower->asked_at = 0;
                borrower->home_ns += STEP_NS;
            } else if (works && !borrower->asked_at) {
                borrower->asked_at = turns->now;
                residency_ask(member, turns->now);
            }
            if (member->busy != (works && residency_is_home(member)))
                residency_set_busy(member, !member->busy, turns->now);
        }
        residency_run(&turns->residency, turns->now);
    }
}

static double share_of(const struct turns *turns, unsigned of)
{
    double sum = 0;

    for (unsigned i = 0; i < turns->count; i++)
        sum += (double)turns->borrowers[i].home_ns;
    return (double)turns->borrowers[of].home_ns / sum;
}

/*
 * Three that each need nearly all of it, and always work: who has left waits for two turns, and for
 * three exchanges, the one by which it left among them.
 */
static void test_turns(void)
{
    struct turns turns;
    uint64_t cost, turn;
    double home = 0;

    turns_open(&turns);
    for (unsigned i = 0; i < 3; i++)
        turns_add(&turns, 90 * GIB, (struct residency_settings){.weight = 100});
    turns_run(&turns, 3600 * NS_PER_S, 7);
    cost = residency_cost(&turns.residency, 90 * GIB);
    turn = residency_turn(&turns.residency, turns.borrowers[0].member, cost);
    for (unsigned i = 0; i < 3; i++) {
        g_test_message("share %.3f, longest wait %.1f s", share_of(&turns, i),
                       (double)turns.borrowers[i].worst_ns / 1e9);
        g_assert_cmpfloat(ABS(share_of(&turns, i) - 1.0 / 3), <, 0.03);
        g_assert_cmpuint(turns.borrowers[i].worst_ns, <=, 2 * turn + 3 * cost);
        home += (double)turns.borrowers[i].home_ns;
    }
    g_test_message("a turn of %.1f s after %.1f s; %.3f of the time is work", (double)turn / 1e9,
                   (double)cost / 1e9, home / 3600e9);
    g_assert_cmpfloat(home / 3600e9, >=, 0.88);
    turns_close(&turns);
}

static void test_weights(void)
{
    struct turns turns;

    turns_open(&turns);
    turns_add(&turns, 90 * GIB, (struct residency_settings){.weight = 300});
    turns_add(&turns, 90 * GIB, (struct residency_settings){.weight = 100});
    turns_run(&turns, 3600 * NS_PER_S, 3);
    g_test_message("share %.3f of 0.75", share_of(&turns, 0));
    g_assert_cmpfloat(ABS(share_of(&turns, 0) - 0.75), <, 0.03);
    turns_close(&turns);
}

/* One that is idle gives at once, and a higher priority does not wait for one that works. */
static void test_at_once(void)
{
    struct turns turns;
    struct borrower *idle, *works, *first;
    uint64_t cost;

    turns_open(&turns);
    idle = turns_add(&turns, 60 * GIB, (struct residency_settings){.weight = 100});
    works = turns_add(&turns, 60 * GIB, (struct residency_settings){.weight = 100});
    first = turns_add(&turns, 60 * GIB, (struct residency_settings){.weight = 100, .priority = 4});
    turns_run(&turns, 20 * NS_PER_S, 1);
    turns_run(&turns, 20 * NS_PER_S, 0);
    turns_run(&turns, 5 * NS_PER_S, 2);
    cost = residency_cost(&turns.residency, 60 * GIB);
    g_assert_cmpuint(works->worst_ns, <=, cost + 5 * STEP_NS);
    g_assert_false(residency_is_home(idle->member));
    turns_run(&turns, 5 * NS_PER_S, 2 | 4);
    g_assert_cmpuint(first->worst_ns, <=, cost + 5 * STEP_NS);
    g_assert_false(residency_is_home(works->member));
    /* It comes back when the other has been idle for a while, and then does not leave for an equal.
     */
    turns_run(&turns, 10 * NS_PER_S, 2);
    g_assert_true(residency_is_home(works->member));
    turns_close(&turns);
}

/* Best effort that works gives way at once, but is not chased: not again within ten exchanges. */
static void test_best_effort(void)
{
    const struct residency_settings better = {.weight = 100},
                                    worse = {.weight = 100, .best_effort = true};
    struct turns turns;
    struct borrower *online, *offline;
    uint64_t cost;

    turns_open(&turns);
    online = turns_add(&turns, 95 * GIB, better);
    offline = turns_add(&turns, 95 * GIB, worse);
    turns_run(&turns, 5 * NS_PER_S, 2);
    turns_run(&turns, 4 * NS_PER_S, 3);
    cost = residency_cost(&turns.residency, 90 * GIB);
    g_assert_cmpuint(online->worst_ns, <=, cost + 5 * STEP_NS);
    turns_run(&turns, 10 * NS_PER_S, 2);
    g_assert_true(residency_is_home(offline->member));
    online->worst_ns = 0;
    turns_run(&turns, 40 * NS_PER_S, 3);
    g_assert_true(residency_is_home(online->member));
    g_assert_cmpuint(online->worst_ns, >, 2 * cost);
    g_assert_cmpuint(online->worst_ns, <=, 11 * cost);
    turns_close(&turns);
}

/* Only what is borrowed leaves, and what a promise covers is there at once. */
static void test_promise(void)
{
    struct turns turns;
    struct borrower *promised, *other;

    turns_open(&turns);
    promised = turns_add(&turns, 60 * GIB,
                         (struct residency_settings){.weight = 100, .promised = 40 * GIB});
    other = turns_add(&turns, 55 * GIB, (struct residency_settings){.weight = 100});
    turns_run(&turns, 5 * NS_PER_S, 1);
    turns_run(&turns, 5 * NS_PER_S, 2);
    g_assert_true(residency_is_home(other->member));
    g_assert_cmpuint(promised->member->out, ==, 15 * GIB);
    /* Without what it had borrowed it is covered. */
    g_assert_true(residency_release(&turns.residency, promised->member, 30 * GIB, 0));
    turns_run(&turns, 5 * NS_PER_S, 3);
    g_assert_true(residency_is_home(promised->member));
    g_assert_true(residency_is_home(other->member));
    g_assert_cmpint(residency_reserve(&turns.residency, promised->member, 10 * GIB, turns.now), ==,
                    RESIDENCY_GRANTED);
    g_assert_cmpint(residency_reserve(&turns.residency, promised->member, 61 * GIB, turns.now), ==,
                    RESIDENCY_REFUSED);
    turns_close(&turns);
}

/* Who cannot bring its memory back lets another do so, and tries again. */
static void test_no_room(void)
{
    struct turns turns;
    struct borrower *first, *second;
    struct residency *residency = &turns.residency;

    turns_open(&turns);
    first = turns_add(&turns, 60 * GIB, (struct residency_settings){.weight = 100});
    second = turns_add(&turns, 60 * GIB, (struct residency_settings){.weight = 100});
    residency_ask(first->member, turns.now);
    residency_run(residency, turns.now);
    g_assert_cmpint(first->member->state, ==, RESIDENCY_COMING);
    g_assert_true(residency_took(residency, first->member, GIB, 1000, turns.now));
    residency_stuck(residency, first->member, turns.now);
    g_assert_cmpint(first->member->state, ==, RESIDENCY_AWAY);
    g_assert_cmpuint(residency->lent, ==, GIB);
    residency_ask(second->member, turns.now);
    residency_run(residency, turns.now);
    g_assert_cmpuint(second->member->granted, ==, 60 * GIB);
    g_assert_cmpuint(first->member->granted, ==, 0);
    turns_run(&turns, 20 * NS_PER_S, 0);
    g_assert_true(residency_is_home(first->member));
    turns_close(&turns);
}

/* What a member says of its moves makes no turn, and no pause between two, longer than a while. */
static void test_slow(void)
{
    struct turns turns;
    struct residency_member *member;

    turns_open(&turns);
    member = turns_add(&turns, 60 * GIB, (struct residency_settings){.weight = 100})->member;
    residency_ask(member, turns.now);
    residency_run(&turns.residency, turns.now);
    for (unsigned i = 0; i < 1000; i++)
        g_assert_true(residency_took(&turns.residency, member, 1, UINT64_MAX, turns.now));
    g_assert_cmpuint(residency_cost(&turns.residency, 60 * GIB), <, 60 * NS_PER_S);
    turns_close(&turns);
}

/* A promise that is lent when its slice is made comes before what others wait for. */
static void test_claim(void)
{
    struct turns turns;
    struct borrower *works, *claim;

    turns_open(&turns);
    works = turns_add(&turns, 90 * GIB, (struct residency_settings){.weight = 100, .priority = 9});
    turns_run(&turns, 20 * NS_PER_S, 1);
    g_assert_true(residency_is_home(works->member));
    claim = turns_add(&turns, 0, (struct residency_settings){.weight = 100});
    claim->member->claims = true;
    g_assert_cmpint(residency_reserve(&turns.residency, claim->member, 50 * GIB, turns.now), ==,
                    RESIDENCY_WAITS);
    g_assert_true(works->member->busy);
    for (unsigned i = 0; i < 200 && !claim->member->answered; i++)
        turns_run(&turns, STEP_NS, 1);
    g_assert_true(claim->member->answered);
    turns_close(&turns);
}

static void set_kept(struct turns *turns, struct residency_slice *slice, uint64_t bytes)
{
    residency_set_fixed(&turns->residency, slice, bytes);
    residency_set_kept(slice, bytes);
}

/* What members have kept holds back what is lent, and nothing that is promised. */
static void test_kept(void)
{
    const struct residency_settings settings = {.weight = 100, .promised = 40 * GIB};
    struct turns turns;
    struct residency_member *lent, *promised;

    turns_open(&turns);
    lent = turns_add(&turns, 60 * GIB, settings)->member;
    promised = turns_add(&turns, 40 * GIB, settings)->member;
    set_kept(&turns, lent->slice, 2 * GIB);
    set_kept(&turns, promised->slice, 2 * GIB);
    residency_ask(lent, turns.now);
    residency_ask(promised, turns.now);
    turns_run(&turns, 5 * NS_PER_S, 0);
    g_assert_false(residency_is_home(lent));
    g_assert_true(residency_is_home(promised));
    set_kept(&turns, lent->slice, 0);
    set_kept(&turns, promised->slice, 0);
    turns_run(&turns, 10 * NS_PER_S, 0);
    g_assert_true(residency_is_home(lent));
    turns_close(&turns);
}

/* What nobody can give is claimed all the same, and others do not wait for it. */
static void test_claim_of_fixed(void)
{
    struct turns turns;
    struct borrower *fixed, *claim, *other;

    turns_open(&turns);
    fixed = turns_add(&turns, 0, (struct residency_settings){.weight = 100});
    g_assert_cmpint(residency_reserve(&turns.residency, fixed->member, 80 * GIB, turns.now), ==,
                    RESIDENCY_GRANTED);
    fixed->member->stays = true;
    turns_run(&turns, 2 * NS_PER_S, 0);
    claim = turns_add(&turns, 0, (struct residency_settings){.weight = 100});
    claim->member->claims = true;
    g_assert_cmpint(residency_reserve(&turns.residency, claim->member, 50 * GIB, turns.now), ==,
                    RESIDENCY_WAITS);
    other = turns_add(&turns, 10 * GIB, (struct residency_settings){.weight = 100});
    turns_run(&turns, 5 * NS_PER_S, 4);
    g_assert_true(residency_is_home(other->member));
    g_assert_false(claim->member->answered);
    g_assert_true(residency_release(&turns.residency, fixed->member, 60 * GIB, 0));
    turns_run(&turns, STEP_NS, 4);
    g_assert_true(claim->member->answered);
    turns_close(&turns);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/governor/residency/storm", test_storm);
    g_test_add_func("/governor/residency/no-room", test_no_room);
    g_test_add_func("/governor/residency/slow", test_slow);
    g_test_add_func("/governor/residency/claim", test_claim);
    g_test_add_func("/governor/residency/claim-of-fixed", test_claim_of_fixed);
    g_test_add_func("/governor/residency/kept", test_kept);
    g_test_add_func("/governor/residency/turns", test_turns);
    g_test_add_func("/governor/residency/weights", test_weights);
    g_test_add_func("/governor/residency/at-once", test_at_once);
    g_test_add_func("/governor/residency/best-effort", test_best_effort);
    g_test_add_func("/governor/residency/promise", test_promise);
    return g_test_run();
}
