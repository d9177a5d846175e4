// SPDX-License-Identifier: MIT
#include "card.h"

#include <glib.h>

static struct card_job job_of(const struct model_op *op)
{
    return (struct card_job){.owner = (void *)(uintptr_t)op->data[0],
                             .length_ns = (uint64_t)op->length_ns,
                             .began_at = op->began_at};
}

static bool reach_job(void *data, uint32_t stream, struct model_op *op)
{
    (void)data;
    (void)stream;
    (void)op;
    return true;
}

static void begins(void *data, uint32_t stream, struct model_op *op)
{
    struct card *card = data;
    struct card_job job = job_of(op);

    (void)stream;
    card->begins(card->data, &job);
}

static void ends(void *data, uint32_t stream, const struct model_op *op)
{
    struct card *card = data;
    struct card_job job = job_of(op);

    (void)stream;
    job.ended_at = card->model.now;
    card->ends(card->data, &job);
}

void card_init(struct card *card, enum card_kind kind, CardFunc begin, CardFunc end, void *data)
{
    model_init(&card->model, (enum model_kinds)kind, 0);
    card->begins = begin;
    card->ends = end;
    card->data = data;
    for (unsigned i = 0; i < CARD_ENGINES * CARD_PROCESSES * CARD_QUEUES; i++)
        card->model.streams[i].process = i / CARD_QUEUES % CARD_PROCESSES;
}

static uint32_t stream_of(enum card_engine engine, unsigned process, unsigned queue)
{
    return ((uint32_t)engine * CARD_PROCESSES + process) * CARD_QUEUES + queue;
}

unsigned card_waiting(const struct card *card, enum card_engine engine, unsigned process)
{
    unsigned count = 0;

    for (unsigned i = 0; i < CARD_QUEUES; i++)
        count += card->model.streams[stream_of(engine, process, i)].count;
    return count;
}

void card_submit(struct card *card, enum card_engine engine, unsigned process, unsigned queue,
                 const struct card_job *job)
{
    uint32_t stream = stream_of(engine, process, queue);
    const struct model_op op = {
        .engine = (uint32_t)engine,
        .length_ns = (double)job->length_ns,
        .data = {(uintptr_t)job->owner},
    };

    g_assert_cmpuint(card->model.streams[stream].count, <, CARD_JOBS);
    g_assert_true(model_add(&card->model, stream, &op));
}

struct model_op *card_running(struct card *card, enum card_engine engine, unsigned process,
                              unsigned queue)
{
    struct model_op *op = model_first(&card->model, stream_of(engine, process, queue));

    return op && op->began_at ? op : NULL;
}

void card_set_left(struct card *card, struct model_op *job, uint64_t ns)
{
    job->length_ns += (double)ns - job->left_ns;
    job->left_ns = (double)ns;
    model_kick(&card->model);
}

void card_run(struct card *card, uint64_t now, uint64_t ns)
{
    const struct model_user user = {card, reach_job, begins, ends};

    (void)ns;
    /* The first time that it hears of the time. */
    if (!card->model.now)
        card->model.now = now;
    model_advance(&card->model, now, &user);
}
