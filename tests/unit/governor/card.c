// SPDX-License-Identifier: MIT
#include "card.h"

#include "clock.h"

#include <glib.h>
#include <string.h>

const struct card_model card_models[] = {
    [CARD_IN_ORDER] = {"in order", 0, 0, 1},
    [CARD_SLICED] = {"sliced", 2090 * NS_PER_US, 150 * NS_PER_US, 1.3},
    [CARD_QUICK] = {"quick", 2 * NS_PER_MS, 10 * NS_PER_US, 1.3},
    [CARD_SLOW] = {"slow", 2 * NS_PER_MS, 250 * NS_PER_US, 1.3},
};

void card_init(struct card *card, enum card_kind kind, CardFunc begins, CardFunc ends, void *data)
{
    memset(card, 0, sizeof(*card));
    card->model = &card_models[kind];
    card->begins = begins;
    card->ends = ends;
    card->data = data;
    for (unsigned i = 0; i < CARD_ENGINES; i++)
        card->engines[i].current = -1;
}

static struct card_job *first(struct card_queue *queue)
{
    return queue->head == queue->tail ? NULL : &queue->jobs[queue->head % CARD_JOBS];
}

unsigned card_waiting(const struct card *card, enum card_engine engine, unsigned process)
{
    unsigned count = 0;

    for (unsigned i = 0; i < CARD_QUEUES; i++) {
        const struct card_queue *queue = &card->engines[engine].queues[process][i];

        count += queue->tail - queue->head;
    }
    return count;
}

void card_submit(struct card *card, enum card_engine engine, unsigned process, unsigned queue,
                 const struct card_job *job)
{
    struct card_queue *in = &card->engines[engine].queues[process][queue];
    struct card_job *at = &in->jobs[in->tail++ % CARD_JOBS];

    g_assert_cmpuint(in->tail - in->head, <, CARD_JOBS);
    *at = *job;
    at->number = card->submitted++;
    card->engines[engine].waiting++;
}

static bool runs(struct card_queue *queue)
{
    const struct card_job *job = first(queue);

    return job && job->began_at;
}

static bool has_work(const struct card *card, const struct card_engine_state *engine, int process)
{
    return process >= 0 &&
           card_waiting(card, (enum card_engine)(engine - card->engines), (unsigned)process);
}

static void advance_job(struct card *card, struct card_engine_state *engine,
                        struct card_queue *queue, double ns)
{
    struct card_job *job = first(queue), ended;

    if (!job || !job->began_at)
        return;
    job->done_ns += ns;
    if (job->done_ns < (double)job->length_ns)
        return;
    ended = *job;
    queue->head++;
    engine->waiting--;
    card->ends(card->data, &ended);
}

/* Of the process whose turn it is: in order, one job; with slices, the first of each queue. */
static void work(struct card *card, struct card_engine_state *engine, uint64_t ns)
{
    struct card_queue *queues = engine->queues[engine->current];
    bool both = runs(&queues[0]) && runs(&queues[1]);
    double each = both ? (double)ns * card->model->overlap / 2 : (double)ns;

    if (!runs(&queues[0]) && !runs(&queues[1]))
        return;
    engine->busy_ns += ns;
    engine->ran_ns[engine->current] += ns;
    engine->cost_ns[engine->current] += ns;
    if (!card->model->slice_ns) {
        advance_job(card, engine, &queues[engine->queue], (double)ns);
        return;
    }
    for (unsigned i = 0; i < CARD_QUEUES; i++)
        advance_job(card, engine, &queues[i], each);
}

/* The job that was submitted first. */
static void choose_in_order(struct card_engine_state *engine)
{
    const struct card_job *best = NULL;

    engine->current = -1;
    for (int i = 0; i < CARD_PROCESSES; i++) {
        for (unsigned j = 0; j < CARD_QUEUES; j++) {
            const struct card_job *job = first(&engine->queues[i][j]);

            if (!job || (best && job->number > best->number))
                continue;
            best = job;
            engine->current = i;
            engine->queue = j;
        }
    }
}

static void choose_sliced(struct card *card, struct card_engine_state *engine)
{
    int before = engine->current;

    if (engine->slice_left_ns && has_work(card, engine, before))
        return;
    engine->slice_left_ns = card->model->slice_ns;
    for (int i = 1; i <= CARD_PROCESSES; i++) {
        int next = (before + i) % CARD_PROCESSES;

        if (!has_work(card, engine, next))
            continue;
        if (next != before)
            engine->handover_left_ns = card->model->handover_ns;
        engine->current = next;
        return;
    }
}

static void begin(struct card *card, struct card_engine_state *engine, uint64_t now)
{
    for (unsigned i = 0; i < CARD_QUEUES; i++) {
        struct card_job *job = first(&engine->queues[engine->current][i]);

        if (!job || job->began_at || (!card->model->slice_ns && i != engine->queue))
            continue;
        job->began_at = now;
        card->begins(card->data, job);
    }
}

static void run_engine(struct card *card, struct card_engine_state *engine, uint64_t now,
                       uint64_t ns)
{
    const struct card_job *running;

    if (engine->handover_left_ns) {
        engine->handover_left_ns -= MIN(engine->handover_left_ns, ns);
        engine->cost_ns[engine->current] += ns;
    } else if (has_work(card, engine, engine->current)) {
        engine->slice_left_ns -= MIN(engine->slice_left_ns, ns);
        work(card, engine, ns);
    }
    if (!engine->waiting)
        return;
    running = engine->current < 0 ? NULL : first(&engine->queues[engine->current][engine->queue]);
    if (card->model->slice_ns)
        choose_sliced(card, engine);
    else if (!running || !running->began_at)
        choose_in_order(engine);
    if (!engine->handover_left_ns)
        begin(card, engine, now);
}

void card_run(struct card *card, uint64_t now, uint64_t ns)
{
    for (unsigned i = 0; i < CARD_ENGINES; i++) {
        if (card->engines[i].waiting)
            run_engine(card, &card->engines[i], now, ns);
    }
}
