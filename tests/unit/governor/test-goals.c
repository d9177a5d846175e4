// SPDX-License-Identifier: MIT
/*
 * What the governor is to reach on a card that divides its time among processes, each goal a row:
 * in simulated time, with the numbers of a card (tests/cuda/RESULTS-h200.md). What a row needs of
 * the doors is said beside it.
 */
#include "simulation.h"

#define LENGTH (10 * NS_PER_S)
/* One timed event behind each batch. */
#define EVENT_NS (3 * NS_PER_US)
/* How long a training's launches take to be ahead of the card again, after each wait for a turn. */
#define RAMP_NS (500 * NS_PER_US)

static struct sim_tenant *add(struct simulation *sim, uint64_t batch_ns)
{
    struct sim_tenant *tenant = sim_add(sim, 100, batch_ns);

    tenant->async = true;
    tenant->batch_jitter_ns = batch_ns / 20;
    tenant->event_ns = EVENT_NS;
    return tenant;
}

/* A door makes batches of 600 us of kernels of 200 us. */
static void check_total(unsigned count, uint64_t batch_ns)
{
    struct simulation *sim = sim_new(POLICY_SHARES, CARD_SLICED);
    struct sim_tenant *visitor;
    double busy;

    for (unsigned i = 0; i < count; i++)
        add(sim, batch_ns);
    visitor = sim_add(sim, 100, NS_PER_MS);
    visitor->start_ns = 16 * NS_PER_S;
    visitor->burst = 1;
    visitor->period_ns = 1500 * NS_PER_MS;
    sim_run(sim, 6 * NS_PER_S);
    sim_reset_counts(sim);
    sim_run(sim, LENGTH);
    busy = (double)sim->busy_ns / LENGTH;
    sim_run(sim, LENGTH);
    g_test_message("total of %u, batches of %.1f ms: %.4f (0.992); a visitor's ms took %.1f ms",
                   count, (double)batch_ns / 1e6, busy, (double)visitor->worst_ns / 1e6);
    g_assert_cmpfloat(busy, >=, 0.992);
    g_assert_cmpuint(visitor->worst_ns, <, 25 * NS_PER_MS);
    sim_free(sim);
}

static void test_total(void)
{
    for (unsigned count = 2; count <= 8; count += 6) {
        check_total(count, 600 * NS_PER_US);
        check_total(count, 2 * NS_PER_MS);
    }
}

/* 50 jobs of 1 ms a second, each behind a copy, beside a program that fills the card. */
struct online_case {
    uint64_t batch_ns;
    uint64_t copy_ns;
    bool hints;
    double goal;
};

static void check_online(const struct online_case *c)
{
    struct simulation *sim = sim_new(POLICY_SHARES, CARD_SLICED);
    struct sim_tenant *online = sim_add(sim, 100, NS_PER_MS), *offline = add(sim, c->batch_ns);
    double alone = (double)(online->batch_ns + c->copy_ns), left, p99;

    online->slice->settings.priority = 1;
    online->burst = 1;
    online->period_ns = 20 * NS_PER_MS + 7 * NS_PER_US;
    online->copy_ns = c->copy_ns;
    online->hints = c->hints;
    sim_run(sim, NS_PER_S);
    sim_reset_counts(sim);
    sim_run(sim, LENGTH);
    left = (double)offline->done_ns / (double)(LENGTH - online->done_ns);
    p99 = sim_took_ns(online, 0.99) / alone;
    g_test_message("online beside %.2f ms, copies of %.2f ms%s: p50 %.2f, p99 %.2f (%.2f) of "
                   "alone, offline %.3f of the rest",
                   (double)c->batch_ns / 1e6, (double)c->copy_ns / 1e6, c->hints ? ", said" : "",
                   sim_took_ns(online, 0.5) / alone, p99, c->goal, left);
    g_assert_cmpfloat(p99, <=, c->goal);
    g_assert_cmpfloat(left, >=, 0.95);
    sim_free(sim);
}

/*
 * Doors make the batches of a slice that is outranked no longer than its depth. Of kernels that are
 * longer, and of the longer batches of other doors, the online program waits for one.
 */
static void test_online(void)
{
    static const struct online_case cases[] = {
        {150 * NS_PER_US, 0, false, 1.6},
        {200 * NS_PER_US, 0, false, 1.6},
        {600 * NS_PER_US, 0, false, 1.95},
        {2 * NS_PER_MS, 0, false, 2.3},
        /* Without a word. */
        {150 * NS_PER_US, 500 * NS_PER_US, false, 1.4},
        {150 * NS_PER_US, 500 * NS_PER_US, true, 1.1},
        {200 * NS_PER_US, 500 * NS_PER_US, true, 1.1},
        {150 * NS_PER_US, 300 * NS_PER_US, true, 1.2},
        {150 * NS_PER_US, 150 * NS_PER_US, true, 1.35},
        {2 * NS_PER_MS, 500 * NS_PER_US, true, 1.55},
    };

    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++)
        check_online(&cases[i]);
}

/*
 * A training loses the begin of each lease, in which its launches are no faster than the card. It
 * does not, if the door charges no more than the sum of its kernels' estimates for that.
 */
static void check_cap(bool charges_sum, double least)
{
    struct simulation *sim = sim_new(POLICY_SHARES, CARD_SLICED);
    struct sim_tenant *training = add(sim, 600 * NS_PER_US);
    double steps;

    training->ramp_ns = RAMP_NS;
    training->charges_sum = charges_sum;
    training->slice->settings.cap = 20;
    training->slice->settings.hard = true;
    sim_run(sim, NS_PER_S);
    sim_reset_counts(sim);
    sim_run(sim, 2 * LENGTH);
    steps = (double)training->done_ns / (2 * LENGTH) * (double)(training->batch_ns + EVENT_NS) /
            (double)training->batch_ns;
    g_test_message("training, cap 20 %%, begins charged by the %s: %.2f %% of its steps",
                   charges_sum ? "estimates" : "clock", 100 * steps);
    g_assert_cmpfloat(steps, >=, least);
    g_assert_cmpfloat(steps, <=, 0.202);
    sim_free(sim);
}

/* A program that waits for each of its kernels. */
static void check_cap_sync(uint64_t batch_ns)
{
    struct simulation *sim = sim_new(POLICY_SHARES, CARD_SLICED);
    struct sim_tenant *sync = sim_add(sim, 100, batch_ns);
    double part[3];

    sync->think_ns = 20 * NS_PER_US;
    sync->think_jitter_ns = 20 * NS_PER_US;
    sync->slice->settings.cap = 20;
    sync->slice->settings.hard = true;
    sim_run(sim, NS_PER_S);
    for (gsize i = 0; i < G_N_ELEMENTS(part); i++) {
        sim_reset_counts(sim);
        sim_run(sim, LENGTH);
        part[i] = (double)sync->done_ns / LENGTH;
        g_assert_cmpfloat(part[i], >=, 0.198);
        g_assert_cmpfloat(part[i], <=, 0.202);
    }
    g_test_message("kernels of %.1f ms, each waited for, cap 20 %%: %.2f, %.2f, %.2f %%",
                   (double)batch_ns / 1e6, 100 * part[0], 100 * part[1], 100 * part[2]);
    sim_free(sim);
}

static void test_cap(void)
{
    check_cap(false, 0.194);
    check_cap(true, 0.198);
    check_cap_sync(NS_PER_MS);
    check_cap_sync(200 * NS_PER_US);
}

/* Alone, without a cap. */
static void test_lone(void)
{
    struct simulation *sim = sim_new(POLICY_SHARES, CARD_SLICED);
    struct sim_tenant *lone = sim_add(sim, 100, 200 * NS_PER_US);
    double done;

    lone->async = lone->tracked = true;
    lone->ahead = 16;
    sim_run(sim, NS_PER_S);
    sim_reset_counts(sim);
    sim_run(sim, NS_PER_S);
    done = (double)lone->done_ns / NS_PER_S;
    g_test_message("a lone program: %.4f of bare (0.99), %u looks", done, (unsigned)sim->looks);
    g_assert_cmpfloat(done, >=, 0.99);
    sim_free(sim);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/governor/goals/total", test_total);
    g_test_add_func("/governor/goals/online", test_online);
    g_test_add_func("/governor/goals/cap", test_cap);
    g_test_add_func("/governor/goals/lone", test_lone);
    return g_test_run();
}
