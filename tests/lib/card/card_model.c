// SPDX-License-Identifier: MIT
#include "card_model.h"

#include <string.h>

/* What is left of an operation when it counts as ended: less than the clocks tell. */
#define NOTHING_NS 0.5

const struct model_kind model_kinds[] = {
    [MODEL_IN_ORDER] = {"in order", 0, 0, 1, 0},
    [MODEL_SLICED] = {"sliced", 2090000, 140000, 1.3, 0},
    [MODEL_QUICK] = {"quick", 2000000, 10000, 1.3, 0},
    [MODEL_SLOW] = {"slow", 2000000, 250000, 1.3, 0},
    [MODEL_BEHIND_BUS] = {"behind a bus", 0, 0, 1, 1.6},
};

void model_init(struct model *model, enum model_kinds kind, uint64_t now)
{
    memset(model, 0, sizeof(*model) - sizeof(model->ops));
    model->kind = model_kinds[kind];
    model->now = now;
    for (unsigned i = 0; i < MODEL_ENGINES; i++)
        model->engines[i].current = -1;
    model->engine_count = MODEL_OF_CARD;
}

void model_set_kind(struct model *model, enum model_kinds kind)
{
    model->kind = model_kinds[kind];
    model_kick(model);
}

void model_kick(struct model *model)
{
    model->next_at = 0;
}

static const struct model_op *first_of(const struct model *model, uint32_t stream)
{
    const struct model_stream *of = &model->streams[stream];

    return of->count ? &model->ops[of->first] : NULL;
}

struct model_op *model_first(struct model *model, uint32_t stream)
{
    return (struct model_op *)first_of(model, stream);
}

bool model_passed(const struct model *model, uint32_t stream, uint64_t number)
{
    const struct model_op *first = first_of(model, stream);

    return !first || first->number > number;
}

uint64_t model_least_ns(const struct model *model, uint32_t stream)
{
    const struct model_op *first = first_of(model, stream);
    double ns = model->streams[stream].pending_ns;

    if (first && first->length_ns < MODEL_ENDLESS)
        ns -= first->length_ns - first->left_ns;
    return ns > 0 ? (uint64_t)ns : 0;
}

bool model_take(struct model *model, uint32_t process, uint64_t bytes)
{
    if (bytes > model->memory - model->memory_used)
        return false;
    model->memory_used += bytes;
    model->memory_of[process] += bytes;
    return true;
}

bool model_give(struct model *model, uint32_t process, uint64_t bytes)
{
    if (bytes > model->memory_of[process])
        return false;
    model->memory_used -= bytes;
    model->memory_of[process] -= bytes;
    return true;
}

static uint32_t take_free(struct model *model)
{
    uint32_t at = model->free;

    if (!at)
        return model->used++;
    model->free = model->ops[at - 1].next;
    return at - 1;
}

bool model_add(struct model *model, uint32_t stream, const struct model_op *op)
{
    struct model_stream *to = &model->streams[stream];
    uint32_t at;

    if (!model->free && model->used == MODEL_OPS)
        return false;
    if (op->engine != MODEL_NONE && op->engine >= model->engine_count)
        model->engine_count = op->engine + 1;
    at = take_free(model);
    model->ops[at] = *op;
    model->ops[at].number = ++model->numbers;
    model->ops[at].left_ns = op->length_ns;
    model->ops[at].began_at = 0;
    if (to->count++) {
        model->ops[to->last].next = at;
    } else {
        to->first = at;
        to->place = model->active_count;
        model->active[model->active_count++] = stream;
    }
    to->last = at;
    to->pending_ns += op->length_ns < MODEL_ENDLESS ? op->length_ns : 0;
    model_kick(model);
    return true;
}

static void deactivate_stream(struct model *model, const struct model_stream *stream)
{
    uint32_t other = model->active[--model->active_count];

    model->active[stream->place] = other;
    model->streams[other].place = stream->place;
}

static struct model_op pop_op(struct model *model, uint32_t stream)
{
    struct model_stream *from = &model->streams[stream];
    uint32_t at = from->first;
    struct model_op op = model->ops[at];

    from->first = op.next;
    from->pending_ns -= op.length_ns < MODEL_ENDLESS ? op.length_ns : 0;
    model->ops[at].next = model->free;
    model->free = at + 1;
    if (!--from->count) {
        from->pending_ns = 0;
        deactivate_stream(model, from);
    }
    return op;
}

void model_drop(struct model *model, uint32_t stream)
{
    while (model->streams[stream].count)
        pop_op(model, stream);
    model_kick(model);
}

void model_cut(struct model *model, struct model_op *op)
{
    op->left_ns = 0;
    model_kick(model);
}

static bool op_precedes(const struct model_op *a, const struct model_op *b)
{
    return a && a->number < b->number;
}

/* Nothing that the stream's first operation comes after is before it. */
static bool may_begin(const struct model *model, uint32_t stream, const struct model_op *op)
{
    const struct model_stream *of = &model->streams[stream];

    if (!of->group || of->order == MODEL_APART)
        return true;
    if (of->order == MODEL_ORDINARY)
        return !of->joining || !op_precedes(first_of(model, of->joining - 1), op);
    for (uint32_t i = 0; i < model->active_count; i++) {
        const struct model_stream *other = &model->streams[model->active[i]];

        if (other != of && other->group == of->group && other->order == MODEL_ORDINARY &&
            op_precedes(&model->ops[other->first], op))
            return false;
    }
    return true;
}

/* One may let another pass. */
static void pass_turn(struct model *model, const struct model_user *user)
{
    bool again;

    do {
        again = false;
        for (uint32_t i = model->active_count; i-- > 0;) {
            uint32_t stream = model->active[i];
            struct model_op *op = model_first(model, stream);

            while (op && op->engine == MODEL_NONE && may_begin(model, stream, op) &&
                   user->reach(user->data, stream, op)) {
                pop_op(model, stream);
                op = model_first(model, stream);
                again = true;
            }
        }
    } while (again);
}

/*
 * Who is next on an engine, by what is ready: in order, what came first; with slices, the next
 * process after the current one.
 */
struct choice {
    bool current_has_work;
    const struct model_op *earliest;
    uint32_t earliest_stream;
    int32_t next;
    uint32_t distance;
};

static void consider_stream(const struct model *model, struct choice *choice, uint32_t stream,
                            const struct model_op *op)
{
    int32_t process = (int32_t)model->streams[stream].process;
    int32_t current = model->engines[op->engine].current;
    uint32_t distance =
        (uint32_t)(process - current - 1 + MODEL_PROCESSES) % (uint32_t)MODEL_PROCESSES;

    choice->current_has_work |= process == current;
    if (!choice->earliest || op_precedes(op, choice->earliest)) {
        choice->earliest = op;
        choice->earliest_stream = stream;
    }
    if (choice->next < 0 || distance < choice->distance) {
        choice->next = process;
        choice->distance = distance;
    }
}

static void choose_in_order(struct model *model, struct model_engine_state *engine,
                            const struct choice *choice)
{
    /* What runs is not interrupted. */
    if (engine->running_count && first_of(model, engine->running[0]) &&
        first_of(model, engine->running[0])->began_at)
        return;
    engine->running_count = choice->earliest != NULL;
    engine->current = -1;
    if (!choice->earliest)
        return;
    engine->running[0] = choice->earliest_stream;
    engine->current = (int32_t)model->streams[choice->earliest_stream].process;
}

static void choose_sliced(const struct model *model, struct model_engine_state *engine,
                          const struct choice *choice)
{
    engine->running_count = 0;
    if (choice->next < 0 || (engine->slice_left_ns && choice->current_has_work))
        return;
    engine->slice_left_ns = model->kind.slice_ns;
    if (choice->next != engine->current)
        engine->handover_left_ns = model->kind.handover_ns;
    engine->current = choice->next;
}

static void run_op(struct model *model, uint32_t stream, const struct model_op *op)
{
    struct model_engine_state *engine = &model->engines[op->engine];

    if (engine->current == (int32_t)model->streams[stream].process &&
        engine->running_count < MODEL_RUNNING)
        engine->running[engine->running_count++] = stream;
}

static void begin_op(struct model *model, const struct model_engine_state *engine,
                     const struct model_user *user)
{
    for (uint32_t i = 0; i < engine->running_count && !engine->handover_left_ns; i++) {
        struct model_op *op = model_first(model, engine->running[i]);

        if (op->began_at)
            continue;
        op->began_at = model->now;
        user->begins(user->data, engine->running[i], op);
    }
}

/* The other direction of the bus has something to copy, too. */
static bool is_both_ways(const struct model *model, const struct model_engine_state *engine)
{
    unsigned at = (unsigned)(engine - model->engines), card = at - at % MODEL_OF_CARD;

    if (!model->kind.both_ways || (at != card + MODEL_COPY && at != card + MODEL_COPY_OUT))
        return false;
    return model->engines[card + MODEL_COPY].running_count &&
           model->engines[card + MODEL_COPY_OUT].running_count;
}

/* How much of an operation is done in a nanosecond. */
static double engine_rate(const struct model *model, const struct model_engine_state *engine)
{
    if (is_both_ways(model, engine))
        return model->kind.both_ways / 2;
    return engine->running_count < 2 ? 1 : model->kind.overlap / engine->running_count;
}

static uint64_t event_of(const struct model *model, const struct model_engine_state *engine)
{
    double left = model->kind.slice_ns ? (double)engine->slice_left_ns : MODEL_ENDLESS;

    if (engine->handover_left_ns && engine->running_count)
        return model->now + engine->handover_left_ns;
    if (!engine->running_count)
        return MODEL_NEVER;
    for (uint32_t i = 0; i < engine->running_count; i++) {
        double ns = first_of(model, engine->running[i])->left_ns / engine_rate(model, engine);

        left = ns < left ? ns : left;
    }
    if (left <= 1)
        return model->now + 1;
    return model->now + (uint64_t)left + (left > (double)(uint64_t)left);
}

/* Who runs from now on, and until when that is so. */
static void settle_user(struct model *model, const struct model_user *user)
{
    struct choice choices[MODEL_ENGINES];

    pass_turn(model, user);
    for (unsigned i = 0; i < model->engine_count; i++)
        choices[i] = (struct choice){.next = -1};
    for (uint32_t i = 0; i < model->active_count; i++) {
        uint32_t stream = model->active[i];
        const struct model_op *op = first_of(model, stream);

        if (op->engine != MODEL_NONE && may_begin(model, stream, op))
            consider_stream(model, &choices[op->engine], stream, op);
    }
    for (unsigned i = 0; i < model->engine_count; i++) {
        if (model->kind.slice_ns)
            choose_sliced(model, &model->engines[i], &choices[i]);
        else
            choose_in_order(model, &model->engines[i], &choices[i]);
    }
    for (uint32_t i = 0; i < model->active_count && model->kind.slice_ns; i++) {
        uint32_t stream = model->active[i];
        const struct model_op *op = first_of(model, stream);

        if (op->engine != MODEL_NONE && may_begin(model, stream, op))
            run_op(model, stream, op);
    }
    for (unsigned i = 0; i < model->engine_count; i++)
        begin_op(model, &model->engines[i], user);
    model->next_at = MODEL_NEVER;
    for (unsigned i = 0; i < model->engine_count; i++) {
        uint64_t at = event_of(model, &model->engines[i]);

        model->next_at = at < model->next_at ? at : model->next_at;
    }
}

static void advance_engine(struct model *model, struct model_engine_state *engine, uint64_t ns)
{
    double each = (double)ns * engine_rate(model, engine);

    if (!engine->running_count)
        return;
    engine->cost_ns[engine->current] += ns;
    if (engine->handover_left_ns) {
        engine->handover_left_ns -= ns < engine->handover_left_ns ? ns : engine->handover_left_ns;
        return;
    }
    engine->slice_left_ns -= ns < engine->slice_left_ns ? ns : engine->slice_left_ns;
    engine->busy_ns += ns;
    engine->ran_ns[engine->current] += ns;
    for (uint32_t i = 0; i < engine->running_count; i++)
        model_first(model, engine->running[i])->left_ns -= each;
}

static void end_op(struct model *model, struct model_engine_state *engine,
                   const struct model_user *user)
{
    uint32_t count = engine->running_count, running[MODEL_RUNNING];

    memcpy(running, engine->running, sizeof(running));
    engine->running_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct model_op op;

        if (first_of(model, running[i])->left_ns > NOTHING_NS) {
            engine->running[engine->running_count++] = running[i];
            continue;
        }
        op = pop_op(model, running[i]);
        user->ends(user->data, running[i], &op);
    }
}

void model_advance(struct model *model, uint64_t now, const struct model_user *user)
{
    for (;;) {
        uint64_t until;

        if (!model->next_at)
            settle_user(model, user);
        until = model->next_at < now ? model->next_at : now;
        for (unsigned i = 0; i < model->engine_count && until > model->now; i++)
            advance_engine(model, &model->engines[i], until - model->now);
        model->now = until > model->now ? until : model->now;
        if (model->next_at > now)
            return;
        for (unsigned i = 0; i < model->engine_count; i++)
            end_op(model, &model->engines[i], user);
        model->next_at = 0;
    }
}
