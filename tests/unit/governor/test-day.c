// SPDX-License-Identifier: MIT
/*
 * What lending memory gives and costs, in simulated time (lent_card.h): a day of 40 slices on 8
 * cards that have half of the memory that the slices have together, and the goals of two services
 * on one card. As tables:
 *
 *     tests/prove -v build/unit/governor/test-day | grep '# |'
 */
#include "goal.h"
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
    g_test_message(
        "| 8 slices each | GPU hours | returns | waited s | longest wait s | moved TiB |");
    g_test_message("| --- | --- | --- | --- | --- | --- |");
    for (unsigned i = 0; i < PROFILES; i++)
        g_test_message("| %s | %.1f | %u | %.0f | %.1f | %.1f |", profiles[i].name,
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
        struct lent_card *on = lent_card_new(i, true);

        for (unsigned j = 0; j < PROFILES; j++)
            lent_card_add(on, &profiles[j], &uses[j]);
        lent_card_run(on, 24 * HOUR_NS);
        /* Three that are not best effort, and the work in flight of each. */
        bound_ns = MAX(bound_ns, 2 * on->longest_turn_ns + 3 * (on->longest_cost_ns + LENT_OP_NS));
        moving_ns = MAX(moving_ns, lent_card_moving_ns(on));
        lent_card_free(on);
    }
    print_table(uses);
    goal_say_head();
    goal_check("cards for the day of 40 slices", CARDS,
               (struct goal){0, (double)cards_with_promises() / 2, 0});
    goal_check("a day's part in which a card moves memory", (double)moving_ns / (24.0 * HOUR_NS),
               (struct goal){0, 0.1, 0});
    for (unsigned i = 0; i < PROFILES; i++) {
        g_assert_cmpuint(uses[i].work_ns, >, 0);
        if (profiles[i].vram == profiles[i].promised)
            goal_check("seconds that slices within their promise wait",
                       (double)(uses[i].waited_ns + uses[i].moved) / 1e9, (struct goal){0, 0, 0});
        else if (!profiles[i].best_effort)
            g_assert_cmpuint(uses[i].worst_ns, <=, bound_ns);
    }
    g_assert_cmpuint(cards_with_promises(), >, CARDS);
}

/* Nine tenths of the card. */
#define MOST (LENT_CAPACITY / 10 * 9)

/* How soon after its first call one of two services that work in turn has its memory again. */
static double first_token_s(bool ahead, uint64_t burst_ns)
{
    const struct lent_profile pair[] = {
        {.vram = MOST, .burst_ns = burst_ns, .period_ns = 120 * NS_PER_S},
        {.vram = MOST,
         .burst_ns = burst_ns,
         .start_ns = 60 * NS_PER_S,
         .period_ns = 120 * NS_PER_S},
    };
    struct lent_card *on = lent_card_new(0, ahead);
    struct lent_use uses[2] = {{0}};

    for (unsigned i = 0; i < 2; i++)
        lent_card_add(on, &pair[i], &uses[i]);
    lent_card_run(on, 600 * NS_PER_S);
    g_assert_cmpuint(uses[0].work_ns, ==, 5 * burst_ns);
    g_assert_cmpuint(uses[1].work_ns, ==, 5 * burst_ns);
    lent_card_free(on);
    return (double)MAX(uses[0].worst_ns, uses[1].worst_ns) / 1e9;
}

static void test_first_token(void)
{
    double link = (double)MOST / LENT_RATE;

    goal_say_head();
    goal_check("first token after a return, in s of which the link takes 1.37: the other one clean",
               first_token_s(true, 50 * NS_PER_S), (struct goal){0, 1.15 * link + 0.1, 0});
    goal_check("the other one dirty", first_token_s(false, 57 * NS_PER_S),
               (struct goal){0, 1.35 * link + 0.1, 0});
}

/* Two that are used for a minute each, one after the other: what they do of what two cards do. */
static void test_alternate(void)
{
    static const struct lent_profile pair[] = {
        {.vram = MOST, .burst_ns = 60 * NS_PER_S, .period_ns = 120 * NS_PER_S, .by_clock = true},
        {.vram = MOST,
         .burst_ns = 60 * NS_PER_S,
         .start_ns = 60 * NS_PER_S,
         .period_ns = 120 * NS_PER_S,
         .by_clock = true},
    };
    struct lent_card *on = lent_card_new(0, true);
    struct lent_use uses[2] = {{0}};

    for (unsigned i = 0; i < 2; i++)
        lent_card_add(on, &pair[i], &uses[i]);
    lent_card_run(on, 600 * NS_PER_S);
    goal_say_head();
    goal_check("alternating pair, of two cards' work in 10 minutes",
               (double)(uses[0].work_ns + uses[1].work_ns) / (600.0 * NS_PER_S),
               (struct goal){0.94, INFINITY, 0});
    lent_card_free(on);
}

/* Two that always work: what both do of one card's work, and each of that. */
static void check_always_busy(unsigned weight)
{
    const struct lent_profile heavy = {
        .vram = MOST, .weight = weight, .burst_ns = 24 * HOUR_NS, .period_ns = 24 * HOUR_NS};
    const struct lent_profile light = {
        .vram = MOST, .burst_ns = 24 * HOUR_NS, .period_ns = 24 * HOUR_NS};
    struct lent_card *on = lent_card_new(0, true);
    struct lent_use uses[2] = {{0}};
    double sum, wanted = weight / (weight + 100.0);
    g_autofree char *what = g_strdup_printf("its first one's share, weights %u and 100", weight);

    lent_card_add(on, &heavy, &uses[0]);
    lent_card_add(on, &light, &uses[1]);
    lent_card_run(on, HOUR_NS);
    sum = (double)(uses[0].work_ns + uses[1].work_ns);
    goal_check("always-busy pair, of one card's work", sum / HOUR_NS,
               (struct goal){0.88, INFINITY, 0});
    goal_check(what, (double)uses[0].work_ns / sum, (struct goal){wanted - 0.03, wanted + 0.03, 0});
    lent_card_free(on);
}

static void test_always_busy(void)
{
    goal_say_head();
    check_always_busy(100);
    check_always_busy(200);
}

/* One alone is never moved, and loses nothing. */
static void test_alone(void)
{
    static const struct lent_profile profile = {
        .vram = MOST, .burst_ns = 24 * HOUR_NS, .period_ns = 24 * HOUR_NS};
    struct lent_card *on = lent_card_new(0, true);
    struct lent_use use = {0};

    lent_card_add(on, &profile, &use);
    lent_card_run(on, HOUR_NS);
    goal_say_head();
    goal_check("alone, with moving on, of off", (double)use.work_ns / HOUR_NS,
               (struct goal){0.995, INFINITY, 0});
    g_assert_cmpuint(use.returns, ==, 1);
    lent_card_free(on);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/governor/day/day", test_day);
    g_test_add_func("/governor/day/first-token", test_first_token);
    g_test_add_func("/governor/day/alternate", test_alternate);
    g_test_add_func("/governor/day/always-busy", test_always_busy);
    g_test_add_func("/governor/day/alone", test_alone);
    return g_test_run();
}
