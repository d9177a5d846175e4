// SPDX-License-Identifier: MIT
/*
 * A day of 40 slices on 8 cards that have half of the memory that the slices have together: who
 * waits for it, what moves, and how many cards that saves. In simulated time, on the card of the
 * other simulations. The arbiter does not use residency.c yet; this is what it would decide.
 */
#include "card.h"
#include "clock.h"
#include "residency.h"

#include <math.h>

#define GIB     (1ull << 30)
#define CARDS   8
#define HOUR_NS (3600 * NS_PER_S)
#define DAY_NS  (24 * HOUR_NS)
/* Of an H100 with 80 GB, less 2 per cent; PCIe 5, each way. */
#define CAPACITY (78 * GIB)
#define RATE     55e9
#define CHUNK    (256ull << 20)
#define CHUNKS   2
#define OP_NS    NS_PER_S

/**
 * struct profile - of a slice
 * @vram, @promised: GiB
 * @from, @to: hours of the day in which bursts of work begin
 * @burst_ns, @gap_ns: GPU time of a burst, and time to the next one, in the mean
 */
struct profile {
    const char *name;
    uint64_t vram;
    uint64_t promised;
    bool best_effort;
    unsigned from, to;
    uint64_t burst_ns;
    uint64_t gap_ns;
};

/* Each card has one of each. */
static const struct profile profiles[] = {
    {"service by day", 40, 2, false, 8, 20, 120 * NS_PER_S, 180 * NS_PER_S},
    {"service by night", 40, 2, false, 20, 8, 120 * NS_PER_S, 180 * NS_PER_S},
    {"bursts", 30, 1, false, 0, 24, 60 * NS_PER_S, HOUR_NS},
    {"within its promise", 16, 16, false, 0, 24, NS_PER_S / 5, 10 * NS_PER_S},
    {"training, best effort", 30, 0, true, 0, 24, DAY_NS, 0},
};

#define PROFILES G_N_ELEMENTS(profiles)

/* Of a profile, on all cards. */
struct sum {
    uint64_t work_ns;
    uint64_t returns;
    uint64_t waited_ns;
    uint64_t worst_ns;
    uint64_t moved;
};

/**
 * struct day_slice - with one process
 * @left_ns: of its burst; @next_at: when the next one begins
 * @working: it has an operation on the card; @copies: chunks that are being copied, of @copying
 * bytes
 * @asked_at: since when it waits for its memory; 0: it does not
 */
struct day_slice {
    const struct profile *profile;
    struct sum *sum;
    struct day *day;
    unsigned number;
    struct residency_member member;
    uint64_t left_ns;
    uint64_t next_at;
    bool working;
    unsigned copies;
    uint64_t copying;
    uint64_t asked_at;
};

/* Of one card; cards have nothing to do with each other. */
struct day {
    struct card card;
    struct residency residency;
    struct day_slice slices[PROFILES];
    uint64_t now;
    uint64_t random;
    uint64_t longest_turn_ns;
    uint64_t longest_cost_ns;
    bool told;
};

static double random_part(struct day *day)
{
    day->random ^= day->random << 13;
    day->random ^= day->random >> 7;
    day->random ^= day->random << 17;
    return ((double)(day->random >> 11) + 1) / (double)(1ull << 53);
}

static uint64_t random_length(struct day *day, uint64_t mean)
{
    return (uint64_t)(-log(random_part(day)) * (double)mean) + 1;
}

static bool is_open(const struct profile *profile, uint64_t now)
{
    unsigned hour = (unsigned)(now / HOUR_NS % 24);

    if (profile->from < profile->to)
        return hour >= profile->from && hour < profile->to;
    return hour >= profile->from || hour < profile->to;
}

static void submit(struct day_slice *slice, enum card_engine engine, uint64_t ns)
{
    const struct card_job job = {.owner = slice, .length_ns = ns};

    card_submit(&slice->day->card, engine, slice->number, 0, &job);
}

/* The next chunk of @bytes; 0: as many are on the way as may be, or that is all. */
static uint64_t next_chunk(struct day_slice *slice, uint64_t bytes)
{
    uint64_t chunk = bytes > slice->copying ? MIN(bytes - slice->copying, CHUNK) : 0;

    if (!chunk || slice->copies == CHUNKS)
        return 0;
    slice->copies++;
    slice->copying += chunk;
    slice->sum->moved += chunk;
    return chunk;
}

static void copy(struct day_slice *slice)
{
    struct residency_member *member = &slice->member;
    bool leaves = member->state == RESIDENCY_LEAVING;
    uint64_t bytes = leaves ? member->leave : MIN(member->granted, member->out), chunk;

    if (slice->working || (!leaves && member->state != RESIDENCY_COMING))
        return;
    while ((chunk = next_chunk(slice, bytes))) {
        /* What is granted is there. */
        if (!leaves)
            g_assert_true(model_take(&slice->day->card.model, slice->number, chunk));
        submit(slice, leaves ? CARD_COPY_OUT : CARD_COPY,
               (uint64_t)((double)chunk / RATE * NS_PER_S));
    }
}

static void end_copy(struct day_slice *slice, uint64_t ns)
{
    struct day *day = slice->day;
    struct residency_member *member = &slice->member;
    uint64_t chunk = MIN(slice->copying, CHUNK);

    slice->copies--;
    slice->copying -= chunk;
    if (member->state == RESIDENCY_LEAVING) {
        g_assert_true(model_give(&day->card.model, slice->number, chunk));
        g_assert_true(residency_gave(&day->residency, member, chunk, ns));
    } else {
        g_assert_true(residency_took(&day->residency, member, chunk, ns, day->now));
        slice->sum->returns += residency_is_home(member);
    }
}

static void begin_work(void *data, struct card_job *job)
{
    (void)data;
    (void)job;
}

static void end_work(void *data, struct card_job *job)
{
    struct day *day = data;
    struct day_slice *slice = job->owner;

    day->now = job->ended_at;
    day->told = true;
    if (slice->copies) {
        end_copy(slice, job->ended_at - job->began_at);
        return;
    }
    slice->working = false;
    slice->sum->work_ns += job->length_ns;
    slice->left_ns -= job->length_ns;
    if (!slice->left_ns)
        slice->next_at = day->now + random_length(day, slice->profile->gap_ns);
    residency_set_busy(&slice->member, false, day->now);
}

static void ask(struct day_slice *slice)
{
    struct day *day = slice->day;

    if (slice->asked_at)
        return;
    slice->asked_at = day->now;
    residency_ask(&slice->member, day->now);
    day->told = true;
}

static void work(struct day_slice *slice)
{
    struct day *day = slice->day;
    uint64_t waited = slice->asked_at ? day->now - slice->asked_at : 0;

    slice->asked_at = 0;
    slice->sum->waited_ns += waited;
    slice->sum->worst_ns = MAX(slice->sum->worst_ns, waited);
    if (slice->working)
        return;
    slice->working = true;
    residency_set_busy(&slice->member, true, day->now);
    submit(slice, CARD_COMPUTE, MIN(slice->left_ns, OP_NS));
}

static void step(struct day_slice *slice)
{
    struct day *day = slice->day;

    if (!slice->left_ns && day->now >= slice->next_at) {
        if (is_open(slice->profile, day->now))
            slice->left_ns = random_length(day, slice->profile->burst_ns);
        else
            slice->next_at = day->now + random_length(day, slice->profile->gap_ns);
    }
    if (slice->left_ns && residency_is_home(&slice->member))
        work(slice);
    else if (slice->left_ns)
        ask(slice);
    copy(slice);
}

/* The longest turn and exchange that there can be, for the bound of a wait. */
static void note_bound(struct day *day)
{
    for (unsigned i = 0; i < PROFILES; i++) {
        uint64_t cost = residency_cost(&day->residency, profiles[i].vram * GIB);
        uint64_t turn = residency_turn(&day->residency, &day->slices[i].member, cost);

        day->longest_cost_ns = MAX(day->longest_cost_ns, cost);
        day->longest_turn_ns = MAX(day->longest_turn_ns, turn);
    }
}

static void run(struct day *day)
{
    uint64_t call_at = 0;

    while (day->now < NS_PER_S + DAY_NS) {
        uint64_t next;

        do {
            for (unsigned i = 0; i < PROFILES; i++)
                step(&day->slices[i]);
            if (!day->told && day->now < call_at)
                break;
            day->told = false;
            call_at = residency_run(&day->residency, day->now);
            note_bound(day);
            for (unsigned i = 0; i < PROFILES; i++)
                step(&day->slices[i]);
        } while (day->told);
        card_run(&day->card, day->now, 0);
        next = MIN(call_at, day->card.model.next_at);
        for (unsigned i = 0; i < PROFILES; i++)
            if (!day->slices[i].left_ns)
                next = MIN(next, day->slices[i].next_at);
        day->now = MAX(next, day->now + 1);
        card_run(&day->card, day->now, 0);
    }
}

static void open_slice(struct day *day, unsigned number, struct sum *sum)
{
    const struct profile *profile = &profiles[number];
    struct day_slice *slice = &day->slices[number];
    const struct residency_settings settings = {
        .vram = profile->vram * GIB,
        .promised = profile->promised * GIB,
        .best_effort = profile->best_effort,
        .weight = 100,
    };

    *slice = (struct day_slice){.profile = profile, .sum = sum, .day = day, .number = number};
    slice->next_at = day->now + random_length(day, profile->gap_ns);
    slice->member.slice = residency_add_slice(&day->residency, &settings);
    g_assert_nonnull(slice->member.slice);
    /* What is promised is there from the beginning, and the rest comes with the first work. */
    slice->member.resident = profile->promised * GIB;
    slice->member.out = (profile->vram - profile->promised) * GIB;
    g_assert_true(model_take(&day->card.model, number, slice->member.resident));
    residency_join(&day->residency, &slice->member, day->now);
}

/* The part of the day in which something came to the card. */
static double run_card(unsigned number, struct sum *sums, uint64_t *bound_ns)
{
    struct day *day = g_new0(struct day, 1);
    double moving;

    card_init(&day->card, CARD_BEHIND_BUS, begin_work, end_work, day);
    day->card.model.memory = CAPACITY;
    day->now = NS_PER_S;
    day->random = 88172645463325252ull + number;
    residency_init(&day->residency, CAPACITY, RATE);
    for (unsigned i = 0; i < PROFILES; i++)
        open_slice(day, i, &sums[i]);
    run(day);
    moving = (double)day->card.model.engines[CARD_COPY].busy_ns / DAY_NS;
    /* Three that are not best effort, and the work in flight of each. */
    *bound_ns = MAX(*bound_ns, 2 * day->longest_turn_ns + 3 * (day->longest_cost_ns + OP_NS));
    residency_clear(&day->residency);
    g_free(day);
    return moving;
}

/* First fit, the largest first: with all of their memory promised. */
static unsigned cards_with_promises(void)
{
    uint64_t used[CARDS * PROFILES] = {0};
    unsigned count = 0;

    for (uint64_t vram = CAPACITY / GIB; vram; vram--)
        for (unsigned i = 0; i < CARDS * PROFILES; i++) {
            unsigned card = 0;

            if (profiles[i % PROFILES].vram != vram)
                continue;
            while (used[card] + vram > CAPACITY / GIB)
                card++;
            used[card] += vram;
            count = MAX(count, card + 1);
        }
    return count;
}

static void test_day(void)
{
    struct sum sums[PROFILES] = {{0}};
    uint64_t bound_ns = 0;
    double moving = 0;

    for (unsigned i = 0; i < CARDS; i++) {
        double part = run_card(i, sums, &bound_ns);

        moving = MAX(moving, part);
    }
    g_test_message("%-22s %6s %9s %8s %10s %9s %9s", "slices", "", "GPU hours", "returns",
                   "waited s", "longest s", "moved TiB");
    for (unsigned i = 0; i < PROFILES; i++)
        g_test_message("%-22s %6d %9.1f %8u %10.0f %9.1f %9.1f", profiles[i].name, CARDS,
                       (double)sums[i].work_ns / HOUR_NS, (unsigned)sums[i].returns,
                       (double)sums[i].waited_ns / 1e9, (double)sums[i].worst_ns / 1e9,
                       (double)sums[i].moved / (double)(1024 * GIB));
    g_test_message(
        "%d cards, %u with fixed promises; at most %.3f of a card's day moved something; "
        "no wait of more than %.1f s may be",
        CARDS, cards_with_promises(), moving, (double)bound_ns / 1e9);
    for (unsigned i = 0; i < PROFILES; i++) {
        g_assert_cmpuint(sums[i].work_ns, >, 0);
        if (profiles[i].vram == profiles[i].promised)
            g_assert_cmpuint(sums[i].waited_ns + sums[i].moved, ==, 0);
        else if (!profiles[i].best_effort)
            g_assert_cmpuint(sums[i].worst_ns, <=, bound_ns);
    }
    g_assert_cmpfloat(moving, <=, 0.1);
    g_assert_cmpuint(cards_with_promises(), >, CARDS);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/governor/day", test_day);
    return g_test_run();
}
