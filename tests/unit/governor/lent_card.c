// SPDX-License-Identifier: MIT
#include "lent_card.h"

#include <math.h>

/* Copies are in chunks, of which so many are on the way. */
#define CHUNK_BYTES (256ull << 20)
#define CHUNKS_MAX  2

static uint64_t excess(uint64_t at, uint64_t before)
{
    return at > before ? at - before : 0;
}

static double random_part(struct lent_card *on)
{
    on->random ^= on->random << 13;
    on->random ^= on->random >> 7;
    on->random ^= on->random << 17;
    return ((double)(on->random >> 11) + 1) / (double)(1ull << 53);
}

static uint64_t random_length(struct lent_card *on, uint64_t mean)
{
    return (uint64_t)(-log(random_part(on)) * (double)mean) + 1;
}

static bool is_open(const struct lent_profile *profile, uint64_t now)
{
    unsigned hour = (unsigned)(now / HOUR_NS % 24);

    if (profile->from == profile->to)
        return true;
    if (profile->from < profile->to)
        return hour >= profile->from && hour < profile->to;
    return hour >= profile->from || hour < profile->to;
}

static void submit_job(struct lent_slice *slice, enum card_engine engine, uint64_t ns)
{
    const struct card_job job = {.owner = slice, .length_ns = ns};

    card_submit(&slice->on->card, engine, slice->number, 0, &job);
}

/* The next chunk of @bytes; 0: as many are on the way as may be, or that is all. */
static uint64_t next_chunk(struct lent_slice *slice, uint64_t bytes)
{
    uint64_t chunk = bytes > slice->copying ? MIN(bytes - slice->copying, CHUNK_BYTES) : 0;

    if (!chunk || slice->copies == CHUNKS_MAX)
        return 0;
    slice->copies++;
    slice->copying += chunk;
    return chunk;
}

static void copy_chunks(struct lent_slice *slice)
{
    struct residency_member *member = &slice->member;
    bool leaves = member->state == RESIDENCY_LEAVING, copied = leaves && member->clean;
    double rate = copied ? LENT_RELEASE_RATE : LENT_RATE;
    uint64_t bytes = leaves ? member->leave : MIN(member->granted, member->out), chunk;

    if (slice->working || slice->copies_ahead || (!leaves && member->state != RESIDENCY_COMING))
        return;
    while ((chunk = next_chunk(slice, bytes))) {
        /* What is granted is there. */
        if (!leaves)
            g_assert_true(model_take(&slice->on->card.model, slice->number, chunk));
        slice->use->moved += copied ? 0 : chunk;
        submit_job(slice, leaves ? CARD_COPY_OUT : CARD_COPY,
                   (uint64_t)((double)chunk / rate * NS_PER_S));
    }
}

/* One chunk at a time, as long as it does not work. */
static void copy_ahead(struct lent_slice *slice)
{
    struct lent_card *on = slice->on;
    uint64_t rest = slice->member.resident - slice->ahead, chunk = MIN(rest, CHUNK_BYTES);

    if (!on->ahead || slice->working || slice->copies_ahead ||
        !residency_to_copy(&on->residency, &slice->member, on->now))
        return;
    slice->member.clean = !chunk;
    if (!chunk)
        return;
    slice->copies_ahead = true;
    slice->use->moved += chunk;
    submit_job(slice, CARD_COPY_OUT, (uint64_t)((double)chunk / LENT_RATE * NS_PER_S));
}

static void end_copy(struct lent_slice *slice, uint64_t ns)
{
    struct lent_card *on = slice->on;
    struct residency_member *member = &slice->member;
    uint64_t chunk = MIN(slice->copying, CHUNK_BYTES);

    slice->copies--;
    slice->copying -= chunk;
    if (member->state == RESIDENCY_LEAVING) {
        g_assert_true(model_give(&on->card.model, slice->number, chunk));
        g_assert_true(residency_gave(&on->residency, member, chunk, ns));
    } else {
        g_assert_true(residency_took(&on->residency, member, chunk, ns, on->now));
        slice->use->returns += residency_is_home(member);
    }
}

static void begin_work(void *data, struct card_job *job)
{
    (void)data;
    (void)job;
}

static void end_work(void *data, struct card_job *job)
{
    struct lent_card *on = data;
    struct lent_slice *slice = job->owner;

    on->now = job->ended_at;
    on->told = true;
    if (slice->copies_ahead) {
        slice->copies_ahead = false;
        slice->ahead += MIN(slice->member.resident - slice->ahead, CHUNK_BYTES);
        return;
    }
    if (slice->copies) {
        end_copy(slice, job->ended_at - job->began_at);
        return;
    }
    slice->working = false;
    slice->use->work_ns += job->length_ns;
    slice->left_ns -= job->length_ns;
    if (!slice->left_ns && !slice->profile->period_ns)
        slice->next_at = on->now + random_length(on, slice->profile->gap_ns);
    residency_set_busy(&slice->member, false, on->now);
}

static void ask_for_memory(struct lent_slice *slice)
{
    struct lent_card *on = slice->on;

    if (slice->asked_at)
        return;
    slice->asked_at = on->now;
    residency_ask(&slice->member, on->now);
    on->told = true;
}

static void do_work(struct lent_slice *slice)
{
    struct lent_card *on = slice->on;
    uint64_t waited = slice->asked_at ? on->now - slice->asked_at : 0;

    slice->asked_at = 0;
    slice->use->waited_ns += waited;
    slice->use->worst_ns = MAX(slice->use->worst_ns, waited);
    if (slice->working)
        return;
    if (slice->copies_ahead)
        return;
    slice->working = true;
    slice->ahead = 0;
    residency_set_busy(&slice->member, true, on->now);
    submit_job(slice, CARD_COMPUTE, MIN(slice->left_ns, LENT_OP_NS));
}

/* If it is time for it. */
static void begin_burst(struct lent_slice *slice)
{
    const struct lent_profile *profile = slice->profile;
    struct lent_card *on = slice->on;

    if (slice->left_ns || on->now < slice->next_at)
        return;
    if (profile->period_ns) {
        slice->left_ns = profile->burst_ns;
        slice->ends_at = slice->next_at + profile->burst_ns;
        slice->next_at += profile->period_ns;
    } else if (is_open(profile, on->now)) {
        slice->left_ns = random_length(on, profile->burst_ns);
    } else {
        slice->next_at = on->now + random_length(on, profile->gap_ns);
    }
}

static void step_slice(struct lent_slice *slice)
{
    begin_burst(slice);
    if (slice->profile->by_clock && slice->left_ns && !slice->working)
        slice->left_ns = excess(slice->ends_at, slice->on->now);
    if (slice->left_ns && residency_is_home(&slice->member))
        do_work(slice);
    else if (slice->left_ns)
        ask_for_memory(slice);
    copy_chunks(slice);
    copy_ahead(slice);
}

static void note_bound(struct lent_card *on)
{
    for (unsigned i = 0; i < on->count; i++) {
        const struct residency_member *member = &on->slices[i].member;
        uint64_t cost = residency_cost(&on->residency, on->slices[i].profile->vram);

        on->longest_cost_ns = MAX(on->longest_cost_ns, cost);
        on->longest_turn_ns =
            MAX(on->longest_turn_ns, residency_turn(&on->residency, member, cost));
    }
}

/* All do what they do at this time. Returns when residency.c is to be called at the latest. */
static uint64_t act_now(struct lent_card *on, uint64_t call_at)
{
    do {
        for (unsigned i = 0; i < on->count; i++)
            step_slice(&on->slices[i]);
        if (!on->told && on->now < call_at)
            break;
        on->told = false;
        call_at = residency_run(&on->residency, on->now);
        note_bound(on);
        for (unsigned i = 0; i < on->count; i++)
            step_slice(&on->slices[i]);
    } while (on->told);
    card_run(&on->card, on->now, 0);
    return call_at;
}

/* When it does something without being told. */
static uint64_t wakes_at(const struct lent_slice *slice)
{
    uint64_t copies_at = slice->member.idle_since + 2 * NS_PER_S;
    uint64_t at = slice->left_ns ? TIME_NEVER : slice->next_at;

    return copies_at > slice->on->now && !slice->member.busy ? MIN(at, copies_at) : at;
}

void lent_card_run(struct lent_card *on, uint64_t ns)
{
    uint64_t until = on->now + ns, call_at = 0;

    while (on->now < until) {
        uint64_t next;

        call_at = act_now(on, call_at);
        next = MIN(call_at, on->card.model.next_at);
        for (unsigned i = 0; i < on->count; i++)
            next = MIN(next, wakes_at(&on->slices[i]));
        on->now = MAX(next, on->now + 1);
        card_run(&on->card, on->now, 0);
    }
}

void lent_card_add(struct lent_card *on, const struct lent_profile *profile, struct lent_use *use)
{
    unsigned number = on->count++;
    struct lent_slice *slice = &on->slices[number];
    const struct residency_settings settings = {
        .vram = profile->vram,
        .promised = profile->promised,
        .best_effort = profile->best_effort,
        .weight = profile->weight ? profile->weight : 100,
    };

    g_assert_cmpuint(number, <, LENT_SLICES);
    *slice = (struct lent_slice){.profile = profile, .use = use, .on = on, .number = number};
    slice->next_at =
        on->now + (profile->period_ns ? profile->start_ns : random_length(on, profile->gap_ns));
    slice->member.slice = residency_add_slice(&on->residency, &settings);
    g_assert_nonnull(slice->member.slice);
    slice->member.resident = profile->promised;
    slice->member.out = profile->vram - profile->promised;
    g_assert_true(model_take(&on->card.model, number, slice->member.resident));
    residency_join(&on->residency, &slice->member, on->now);
}

struct lent_card *lent_card_new(uint64_t seed, bool ahead)
{
    struct lent_card *on = g_new0(struct lent_card, 1);

    card_init(&on->card, CARD_BEHIND_BUS, begin_work, end_work, on);
    on->card.model.memory = LENT_CAPACITY;
    on->now = NS_PER_S;
    on->ahead = ahead;
    on->random = 88172645463325252ull + seed;
    residency_init(&on->residency, LENT_CAPACITY, LENT_RATE);
    return on;
}

void lent_card_free(struct lent_card *on)
{
    residency_clear(&on->residency);
    g_free(on);
}

uint64_t lent_card_moving_ns(const struct lent_card *on)
{
    return on->card.model.engines[CARD_COPY].busy_ns;
}
