// SPDX-License-Identifier: MIT
/*
 * What lending memory gives and costs, in simulated time (lent_card.h): a day of 40 slices on 8
 * cards that have half of the memory that the slices have together, and the goals of two services
 * on one card. The arbiter does not use residency.c yet; this is what it would decide.
 */
#include "lent_card.h"

#define CARDS 8

/* Each card has one of each. */
static const struct lent_profile profiles[] = {
    {.name = "service by day",
     .vram = 40 * GIB,
     .promised = 2 * GIB,
     .from = 8,
     .to = 20,
     .burst_ns = 120 * NS_PER_S,
     .gap_ns = 180 * NS_PER_S},
    {.name = "service by night",
     .vram = 40 * GIB,
     .promised = 2 * GIB,
     .from = 20,
     .to = 8,
     .burst_ns = 120 * NS_PER_S,
     .gap_ns = 180 * NS_PER_S},
    {.name = "bursts",
     .vram = 30 * GIB,
     .promised = GIB,
     .burst_ns = 60 * NS_PER_S,
     .gap_ns = HOUR_NS},
    {.name = "within its promise",
     .vram = 16 * GIB,
     .promised = 16 * GIB,
     .burst_ns = NS_PER_S / 5,
     .gap_ns = 10 * NS_PER_S},
    {.name = "training, best effort",
     .vram = 30 * GIB,
     .best_effort = true,
     .burst_ns = 24 * HOUR_NS},
};

#define PROFILES G_N_ELEMENTS(profiles)

/* First fit, the largest first: with all of their memory promised. */
static unsigned cards_with_promises(void)
{
    uint64_t used[CARDS * PROFILES] = {0};
    unsigned count = 0;

    for (uint64_t vram = LENT_CAPACITY; vram; vram -= GIB)
        for (unsigned i = 0; i < CARDS * PROFILES; i++) {
            unsigned card = 0;

            if (profiles[i % PROFILES].vram != vram)
                continue;
            while (used[card] + vram > LENT_CAPACITY)
                card++;
            used[card] += vram;
            count = MAX(count, card + 1);
        }
    return count;
}

static void print_table(const struct lent_use *uses)
{
    g_test_message("%-22s %6s %9s %8s %10s %9s %9s", "slices", "", "GPU hours", "returns",
                   "waited s", "longest s", "moved TiB");
    for (unsigned i = 0; i < PROFILES; i++)
        g_test_message("%-22s %6d %9.1f %8u %10.0f %9.1f %9.1f", profiles[i].name, CARDS,
                       (double)uses[i].work_ns / HOUR_NS, (unsigned)uses[i].returns,
                       (double)uses[i].waited_ns / 1e9, (double)uses[i].worst_ns / 1e9,
                       (double)uses[i].moved / (double)(1024 * GIB));
}

static void test_day(void)
{
    struct lent_use uses[PROFILES] = {{0}};
    uint64_t bound_ns = 0, moving_ns = 0;

    /* Cards have nothing to do with each other. */
    for (unsigned i = 0; i < CARDS; i++) {
        struct lent_card *on = lent_card_new(i);

        for (unsigned j = 0; j < PROFILES; j++)
            lent_card_add(on, &profiles[j], &uses[j]);
        lent_card_run(on, 24 * HOUR_NS);
        /* Three that are not best effort, and the work in flight of each. */
        bound_ns = MAX(bound_ns, 2 * on->longest_turn_ns + 3 * (on->longest_cost_ns + LENT_OP_NS));
        moving_ns = MAX(moving_ns, lent_card_moving_ns(on));
        lent_card_free(on);
    }
    print_table(uses);
    g_test_message(
        "%d cards, %u with fixed promises; at most %.3f of a card's day moved something; "
        "no wait of more than %.1f s may be",
        CARDS, cards_with_promises(), (double)moving_ns / (24.0 * HOUR_NS), (double)bound_ns / 1e9);
    for (unsigned i = 0; i < PROFILES; i++) {
        g_assert_cmpuint(uses[i].work_ns, >, 0);
        if (profiles[i].vram == profiles[i].promised)
            g_assert_cmpuint(uses[i].waited_ns + uses[i].moved, ==, 0);
        else if (!profiles[i].best_effort)
            g_assert_cmpuint(uses[i].worst_ns, <=, bound_ns);
    }
    g_assert_cmpuint(moving_ns, <=, 24 * HOUR_NS / 10);
    g_assert_cmpuint(cards_with_promises(), >, CARDS);
}

/* Nine tenths of the card. */
#define MOST (LENT_CAPACITY / 10 * 9)

/* Two services that work in turn: how soon after its first call one has its memory again. */
static void test_alternate(void)
{
    static const struct lent_profile pair[] = {
        {.vram = MOST, .burst_ns = 57 * NS_PER_S, .period_ns = 120 * NS_PER_S},
        {.vram = MOST,
         .burst_ns = 57 * NS_PER_S,
         .start_ns = 60 * NS_PER_S,
         .period_ns = 120 * NS_PER_S},
    };
    struct lent_card *on = lent_card_new(0);
    struct lent_use uses[2] = {{0}};
    double link = (double)MOST / LENT_RATE, worst, goal = 1.35 * link + 0.1;

    for (unsigned i = 0; i < 2; i++)
        lent_card_add(on, &pair[i], &uses[i]);
    lent_card_run(on, 600 * NS_PER_S);
    worst = (double)MAX(uses[0].worst_ns, uses[1].worst_ns) / 1e9;
    g_test_message("in turn: memory is back after %.2f s at most (goal %.2f, the link alone %.2f)",
                   worst, goal, link);
    g_assert_cmpfloat(worst, <=, goal);
    g_assert_cmpuint(uses[0].work_ns, ==, 5 * 57 * NS_PER_S);
    g_assert_cmpuint(uses[1].work_ns, ==, 5 * 57 * NS_PER_S);
    lent_card_free(on);
}

/* Two that always work: what both do of one card's work, and each of that. */
static void test_always_busy(void)
{
    static const struct lent_profile both = {
        .vram = MOST, .burst_ns = 24 * HOUR_NS, .period_ns = 24 * HOUR_NS};
    struct lent_card *on = lent_card_new(0);
    struct lent_use uses[2] = {{0}};
    double sum, share;

    for (unsigned i = 0; i < 2; i++)
        lent_card_add(on, &both, &uses[i]);
    lent_card_run(on, HOUR_NS);
    sum = (double)(uses[0].work_ns + uses[1].work_ns);
    share = (double)uses[0].work_ns / sum;
    g_test_message("both busy: %.3f of one card's work (goal 0.88), shares %.3f and %.3f",
                   sum / HOUR_NS, share, 1 - share);
    g_assert_cmpfloat(sum / HOUR_NS, >=, 0.88);
    g_assert_cmpfloat(ABS(share - 0.5), <=, 0.03);
    lent_card_free(on);
}

/* One alone is never moved, and loses nothing. */
static void test_alone(void)
{
    static const struct lent_profile profile = {
        .vram = MOST, .burst_ns = 24 * HOUR_NS, .period_ns = 24 * HOUR_NS};
    struct lent_card *on = lent_card_new(0);
    struct lent_use use = {0};

    lent_card_add(on, &profile, &use);
    lent_card_run(on, HOUR_NS);
    g_test_message("alone: %.4f of the card's work (goal 0.995)", (double)use.work_ns / HOUR_NS);
    g_assert_cmpfloat((double)use.work_ns / HOUR_NS, >=, 0.995);
    g_assert_cmpuint(use.returns, ==, 1);
    lent_card_free(on);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/governor/day/day", test_day);
    g_test_add_func("/governor/day/alternate", test_alternate);
    g_test_add_func("/governor/day/always-busy", test_always_busy);
    g_test_add_func("/governor/day/alone", test_alone);
    return g_test_run();
}
