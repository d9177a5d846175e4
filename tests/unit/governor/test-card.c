// SPDX-License-Identifier: MIT
/* The card of the simulation: what the governor's goals are shown on. */
#include "card.h"
#include "clock.h"

#include <glib.h>

#define STEP (5 * NS_PER_US)

struct run {
    struct card card;
    uint64_t now;
    uint64_t ended_at[CARD_PROCESSES];
};

static void begins(void *data, struct card_job *job)
{
    (void)data;
    g_assert_cmpuint(job->began_at, >, 0);
}

static void ends(void *data, struct card_job *job)
{
    struct run *run = data;

    run->ended_at[GPOINTER_TO_UINT(job->owner)] = run->now;
}

static struct run *run_new(enum card_kind kind)
{
    struct run *run = g_new0(struct run, 1);

    card_init(&run->card, kind, begins, ends, run);
    run->now = NS_PER_S;
    return run;
}

static void submit(struct run *run, enum card_engine engine, unsigned process, unsigned queue,
                   uint64_t ns)
{
    struct card_job job = {.owner = GUINT_TO_POINTER(process), .length_ns = ns};

    card_submit(&run->card, engine, process, queue, &job);
}

static void advance(struct run *run, uint64_t ns)
{
    for (uint64_t until = run->now + ns; run->now < until; run->now += STEP)
        card_run(&run->card, run->now, STEP);
}

static double ended_ms(const struct run *run, unsigned process)
{
    return ((double)run->ended_at[process] - NS_PER_S) / 1e6;
}

/* Whoever was first is served first, and wholly. */
static void test_in_order(void)
{
    struct run *run = run_new(CARD_IN_ORDER);

    submit(run, CARD_COMPUTE, 1, 0, 10 * NS_PER_MS);
    submit(run, CARD_COMPUTE, 0, 0, 2 * NS_PER_MS);
    advance(run, 20 * NS_PER_MS);
    g_assert_cmpfloat(ended_ms(run, 1), ==, 10);
    g_assert_cmpfloat(ended_ms(run, 0), ==, 12);
    g_free(run);
}

/* Two processes take turns, and each change costs; who is alone has the engine without a change. */
static void test_sliced(void)
{
    const struct model_kind *model = &card_models[CARD_SLICED];
    struct run *run = run_new(CARD_SLICED);
    const struct model_engine_state *engine = &run->card.model.engines[CARD_COMPUTE];
    double turn = (double)(model->slice_ns + model->handover_ns) / 1e6;

    submit(run, CARD_COMPUTE, 0, 0, 10 * model->slice_ns);
    submit(run, CARD_COMPUTE, 1, 0, model->slice_ns);
    advance(run, 100 * NS_PER_MS);
    g_assert_cmpfloat(ABS(ended_ms(run, 1) - 2 * turn), <, 0.05);
    g_assert_cmpfloat(ABS(ended_ms(run, 0) - 8 * (double)model->slice_ns / 1e6 - 3 * turn), <,
                      0.06);
    g_assert_cmpuint(engine->busy_ns, ==, 11 * model->slice_ns);
    g_assert_cmpuint(engine->ran_ns[0], ==, 10 * model->slice_ns);
    g_free(run);
}

/* Two queues of one process get on together faster than one after the other. */
static void test_overlap(void)
{
    struct run *run = run_new(CARD_SLICED);

    submit(run, CARD_COMPUTE, 0, 0, 10 * NS_PER_MS);
    submit(run, CARD_COMPUTE, 0, 1, 10 * NS_PER_MS);
    advance(run, 30 * NS_PER_MS);
    g_assert_cmpfloat(ABS(ended_ms(run, 0) - 20 / card_models[CARD_SLICED].overlap), <, 0.2);
    g_free(run);
}

/* Engines do not wait for each other. */
static void test_engines(void)
{
    struct run *run = run_new(CARD_SLICED);

    submit(run, CARD_COMPUTE, 0, 0, 10 * NS_PER_MS);
    submit(run, CARD_COPY, 1, 0, 10 * NS_PER_MS);
    submit(run, CARD_VIDEO, 2, 0, 10 * NS_PER_MS);
    advance(run, 20 * NS_PER_MS);
    for (unsigned i = 0; i < 3; i++)
        g_assert_cmpfloat(ended_ms(run, i), <, 10.2);
    g_free(run);
}

/* Copies to the card and from it slow each other down, and then not. */
static void test_bus(void)
{
    struct run *run = run_new(CARD_BEHIND_BUS);

    submit(run, CARD_COPY, 0, 0, 8 * NS_PER_MS);
    submit(run, CARD_COPY_OUT, 1, 0, 16 * NS_PER_MS);
    submit(run, CARD_COMPUTE, 2, 0, 10 * NS_PER_MS);
    advance(run, 30 * NS_PER_MS);
    g_assert_cmpfloat(ABS(ended_ms(run, 0) - 10), <, 0.01);
    g_assert_cmpfloat(ABS(ended_ms(run, 1) - 18), <, 0.01);
    g_assert_cmpfloat(ABS(ended_ms(run, 2) - 10), <, 0.01);
    g_free(run);
}

static void test_memory(void)
{
    struct run *run = run_new(CARD_BEHIND_BUS);
    struct model *model = &run->card.model;

    model->memory = 100;
    g_assert_true(model_take(model, 0, 60));
    g_assert_false(model_take(model, 1, 41));
    g_assert_true(model_take(model, 1, 40));
    g_assert_false(model_give(model, 1, 41));
    g_assert_true(model_give(model, 0, 60));
    g_assert_cmpuint(model->memory_used, ==, 40);
    g_free(run);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/governor/card/in-order", test_in_order);
    g_test_add_func("/governor/card/sliced", test_sliced);
    g_test_add_func("/governor/card/overlap", test_overlap);
    g_test_add_func("/governor/card/engines", test_engines);
    g_test_add_func("/governor/card/bus", test_bus);
    g_test_add_func("/governor/card/memory", test_memory);
    return g_test_run();
}
