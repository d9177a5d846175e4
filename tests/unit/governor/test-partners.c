// SPDX-License-Identifier: MIT
/*
 * A program that spans two cards: in each step it launches a kernel on both, and each spins until
 * the other runs, too. Each card has an arbiter of its own.
 */
#include "compute.h"
#include "simulation.h"
#include "tenant.h"

#define CARDS   2
#define TICK_NS (100 * NS_PER_US)
#define WORK_NS NS_PER_MS
/* How often an arbiter asks the others while its slice waits. */
#define ASK_NS (2 * NS_PER_MS)
#define SPIN   (1000 * NS_PER_S)

struct program {
    struct simulation *cards[CARDS];
    struct sim_tenant *tenants[CARDS];
    uint64_t steps;
    uint64_t asked_at;
    bool partners;
};

static struct program *program_new(bool partners)
{
    struct program *program = g_new0(struct program, 1);

    program->partners = partners;
    for (unsigned i = 0; i < CARDS; i++) {
        program->cards[i] = g_new(struct simulation, 1);
        sim_init(program->cards[i], POLICY_SHARES);
        program->tenants[i] = sim_add(program->cards[i], 100, SPIN);
        program->tenants[i]->estimate_ns = WORK_NS;
    }
    return program;
}

static void program_free(struct program *program)
{
    for (unsigned i = 0; i < CARDS; i++) {
        sim_clear(program->cards[i]);
        g_free(program->cards[i]);
    }
    g_free(program);
}

/* The kernel of a card that runs; NULL: none. */
static struct model_op *kernel(const struct program *program, unsigned i)
{
    return card_running(&program->cards[i]->card, CARD_COMPUTE, 0, 0);
}

static void meet(struct program *program)
{
    struct model_op *jobs[CARDS];

    for (unsigned i = 0; i < CARDS; i++) {
        jobs[i] = kernel(program, i);
        if (!jobs[i] || jobs[i]->length_ns != (double)SPIN)
            return;
    }
    for (unsigned i = 0; i < CARDS; i++)
        card_set_left(&program->cards[i]->card, jobs[i], WORK_NS);
}

static void ask(struct program *program)
{
    uint64_t now = program->cards[0]->now;

    if (!program->partners || now < program->asked_at + ASK_NS)
        return;
    program->asked_at = now;
    for (unsigned i = 0; i < CARDS; i++) {
        const struct governor_class_usage *other = &program->tenants[!i]->usage;

        program->tenants[i]->slice->partner_since = other->in_flight_ns ? other->began_at_ns : 0;
    }
}

/* The doors learn how long a kernel takes, and its waiting is part of it. */
static void learn(struct program *program, unsigned i, uint64_t before_ns)
{
    struct sim_tenant *tenant = program->tenants[i];

    if (tenant->usage.gpu_ns > before_ns)
        tenant->estimate_ns = (3 * tenant->estimate_ns + tenant->usage.gpu_ns - before_ns) / 4;
}

static void run(struct program *program, uint64_t ns)
{
    for (uint64_t end = program->cards[0]->now + ns; program->cards[0]->now < end;) {
        for (unsigned i = 0; i < CARDS; i++) {
            uint64_t before = program->tenants[i]->usage.gpu_ns;

            sim_run(program->cards[i], TICK_NS);
            learn(program, i, before);
        }
        meet(program);
        ask(program);
        program->steps = MIN(program->tenants[0]->done, program->tenants[1]->done);
    }
}

static struct program *program_capped(bool partners)
{
    struct program *program = program_new(partners);

    for (unsigned i = 0; i < CARDS; i++) {
        program->tenants[i]->slice->settings.cap = 20;
        program->tenants[i]->slice->settings.hard = true;
    }
    /* It has had work on one of them alone. */
    run(program, NS_PER_S / 10);
    budget_spend(&program->tenants[0]->slice->cap, 30.0 * NS_PER_MS);
    return program;
}

static struct program *program_with_rivals(bool partners)
{
    struct program *program = program_new(partners);

    for (unsigned i = 0; i < CARDS; i++) {
        program->tenants[i]->slice->settings.weight = 20;
        sim_add(program->cards[i], 80, (5 + 3 * i) * NS_PER_MS);
    }
    return program;
}

/* How many steps the program makes, and how much it uses of a card at most, after some seconds. */
static double steps_per_second(struct program *program, double *most_used)
{
    const unsigned seconds = 10;
    uint64_t steps, used[CARDS];

    run(program, 3 * NS_PER_S);
    steps = program->steps;
    for (unsigned i = 0; i < CARDS; i++)
        used[i] = program->tenants[i]->usage.gpu_ns;
    run(program, seconds * NS_PER_S);
    *most_used = 0;
    for (unsigned i = 0; i < CARDS; i++)
        *most_used =
            MAX(*most_used, (double)(program->tenants[i]->usage.gpu_ns - used[i]) / 1e9 / seconds);
    return (double)(program->steps - steps) / seconds;
}

/* As partners it goes on within its part of each card; otherwise each step takes longer. */
static void compare(struct program *(*make)(bool partners), double least)
{
    double steps[2], used[2];

    for (unsigned partners = 0; partners < 2; partners++) {
        struct program *program = make(partners);

        steps[partners] = steps_per_second(program, &used[partners]);
        program_free(program);
    }
    g_test_message("%.1f steps a second alone, %.1f as partners, by %.3f of a card", steps[0],
                   steps[1], used[1]);
    g_assert_cmpfloat(steps[0], <, least / 4);
    g_assert_cmpfloat(steps[1], >, least);
    g_assert_cmpfloat(used[1], <, 0.22);
}

static void test_caps(void)
{
    compare(program_capped, 40);
}

static void test_rivals(void)
{
    compare(program_with_rivals, 40);
}

/* A kernel of the program runs on another card for ever: the cap of this one holds. */
static void test_endless(void)
{
    const unsigned seconds = 30;
    struct simulation *card = g_new(struct simulation, 1);
    struct sim_tenant *tenant;
    double used;

    sim_init(card, POLICY_SHARES);
    tenant = sim_add(card, 100, NS_PER_S / 2);
    tenant->slice->settings.cap = 20;
    tenant->slice->settings.hard = true;
    tenant->slice->partner_since = card->now;
    sim_run(card, seconds * NS_PER_S);
    used = (double)tenant->done_ns / 1e9;
    g_test_message("%.2f s used in %u s", used, seconds);
    /* It owes a second at most, and then makes one more submission. */
    g_assert_cmpfloat(used, <, 0.2 * seconds + 1 + 0.5 + 0.2);
    sim_clear(card);
    g_free(card);
}

#define STEPS 100

/* The same with arbiters and members that are real: each process has the kernels of one card. */
static void half(struct live *live, const char *socket_path, struct live_report *report)
{
    GovernorMember *member = tenant_join(socket_path, report);
    const struct live_report *other = &live->reports[report == &live->reports[0]];

    while (!report->go)
        g_usleep(100);
    for (uint64_t step = 1;; step++) {
        bool metered = compute_is_metered(member);
        uint64_t debit = metered ? compute_begin(member, WORK_NS, false) : 0;
        uint64_t began = clock_now();

        report->granted = step;
        while (other->granted < step)
            g_usleep(50);
        g_usleep(WORK_NS / NS_PER_US);
        if (metered)
            governor_member_end(member, debit, clock_now() - began);
        tenant_done(report, WORK_NS);
    }
}

static void test_arbiters(void)
{
    static const char conf[] = "[slice]\ncap=20\nhard=true\npartners=slurm:7\n";
    const char *const slices[] = {"a", conf, "b", "[slice]\npartners=slurm:8\n", NULL};
    struct live live;

    tenant_open(&live, slices);
    live_add_gpu(&live, "c", conf);
    live_spawn(&live, "a", half);
    live_spawn(&live, "c", half);
    for (unsigned i = 0; i < CARDS; i++)
        live_await_ready(&live, i);
    for (unsigned i = 0; i < CARDS; i++)
        live.reports[i].go = 1;
    /* Otherwise the steps take longer and longer: the 42nd took minutes. */
    live_await_word(&live.reports[0].done, STEPS);
    tenant_close(&live);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/governor/partners/caps", test_caps);
    g_test_add_func("/governor/partners/rivals", test_rivals);
    g_test_add_func("/governor/partners/endless", test_endless);
    g_test_add_func("/governor/partners/arbiters", test_arbiters);
    return g_test_run();
}
