// SPDX-License-Identifier: MIT
/*
 * What a stream waits for: events, values in memory, functions of the host. Memory of the card has
 * no content but what was written by cuStreamWriteValue. The host's memory is read by its own
 * process.
 */
#include "timing.h"

#include <semaphore.h>

#define LOOK_NS 50000u

static struct timing_word *word_of(struct timing *timing, uint32_t runner, uint64_t address)
{
    struct timing_word *word = &timing->words[address / 4 % TIMING_WORDS];

    if (word->address != address || word->runner != runner + 1)
        *word = (struct timing_word){.runner = runner + 1, .address = address};
    return word;
}

static bool is_of_card(uint64_t address)
{
    CUdeviceptr base;

    return address < 4096 || fake_size_of(address, &base);
}

static uint64_t read_value(struct timing *timing, uint32_t runner, const struct model_op *op)
{
    if (is_of_card(op->data[0]))
        return word_of(timing, runner, op->data[0])->value;
    if (op->state & VALUE_IS_64)
        return *(volatile uint64_t *)(uintptr_t)op->data[0];
    return *(volatile uint32_t *)(uintptr_t)op->data[0];
}

static bool has_come(uint64_t value, const struct model_op *op)
{
    uint64_t wanted = op->data[1];

    if (op->state & VALUE_AND)
        return value & wanted;
    if (op->state & VALUE_EQUAL)
        return value == wanted;
    return op->state & VALUE_IS_64 ? (int64_t)(value - wanted) >= 0
                                   : (int32_t)((uint32_t)value - (uint32_t)wanted) >= 0;
}

static void write_value(struct timing *timing, uint32_t runner, const struct model_op *op)
{
    if (is_of_card(op->data[0]))
        word_of(timing, runner, op->data[0])->value = op->data[1];
    else if (op->state & VALUE_IS_64)
        *(volatile uint64_t *)(uintptr_t)op->data[0] = op->data[1];
    else
        *(volatile uint32_t *)(uintptr_t)op->data[0] = (uint32_t)op->data[1];
}

bool timing_reach(struct timing *timing, uint32_t stream, struct model_op *op)
{
    uint32_t runner = timing->model.streams[stream].process;

    if (op->kind == TIMING_WAIT_EVENT)
        return model_passed(&timing->model, (uint32_t)op->data[0], op->data[1]);
    if (op->kind == TIMING_FREE)
        return true;
    /* The rest needs its own process. */
    if (runner != timing_self(timing))
        return false;
    if (op->kind == TIMING_WAIT_VALUE)
        return has_come(read_value(timing, runner, op), op);
    if (op->kind == TIMING_WRITE_VALUE)
        write_value(timing, runner, op);
    else if (op->state != HOST_RAN)
        op->state = HOST_REACHED;
    return op->kind == TIMING_WRITE_VALUE || op->state == HOST_RAN;
}

static sem_t wanted;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* The first of this process's streams at which a function is to be called. @has_work: any has
 * something to do. */
static struct model_op *find_function(struct timing *timing, uint32_t *stream, bool *has_work)
{
    struct model *model = &timing->model;
    uint32_t self = timing_self(timing);
    struct model_op *found = NULL;

    *has_work = false;
    for (uint32_t i = 0; i < model->active_count; i++) {
        struct model_op *op = model_first(model, model->active[i]);

        if (model->streams[model->active[i]].process != self)
            continue;
        *has_work = true;
        if (op->kind != TIMING_HOST || op->state != HOST_REACHED)
            continue;
        found = op;
        *stream = model->active[i];
    }
    return found;
}

static void call(const struct model_op *op)
{
    void (*function)(void *) = NULL;

    *(void **)&function = (void *)(uintptr_t)op->data[0];
    function((void *)(uintptr_t)op->data[1]);
}

static void note_ran(uint32_t stream, uint64_t number)
{
    struct timing *timing = timing_enter();
    struct model_op *op = model_first(&timing->model, stream);

    if (op && op->number == number)
        op->state = HOST_RAN;
    model_kick(&timing->model);
    timing_leave(timing);
}

static void *serve(void *data)
{
    for (;;) {
        struct timing *timing = timing_enter();
        struct model_op *found, op;
        uint32_t stream = 0;
        bool has_work;

        /* What it waits for may have changed in this process's memory. */
        model_kick(&timing->model);
        timing_leave(timing);
        timing = timing_enter();
        found = find_function(timing, &stream, &has_work);
        if (found)
            op = *found;
        timing_leave(timing);
        if (found) {
            call(&op);
            note_ran(stream, op.number);
        } else if (has_work) {
            timing_sleep(LOOK_NS);
        } else {
            sem_wait(&wanted);
        }
    }
    return data;
}

static void start(void)
{
    pthread_t thread;

    sem_init(&wanted, 0, 0);
    if (!pthread_create(&thread, NULL, serve, NULL))
        pthread_detach(thread);
}

void timing_serve(void)
{
    pthread_once(&once, start);
    sem_post(&wanted);
}

static CUresult submit_value(CUstream stream, bool per_thread, enum timing_kind kind,
                             uint32_t state, CUdeviceptr at, uint64_t value)
{
    const struct model_op op = {
        .engine = MODEL_NONE, .kind = kind, .state = state, .data = {at, value}};
    CUresult result = timing_submit(stream, per_thread, &op);

    if (!is_of_card(at))
        timing_serve();
    return result;
}

#define VALUE(name, per_thread, kind, type, is_64)                                                 \
    CUresult name(CUstream stream, CUdeviceptr at, type value, unsigned int flags)                 \
    {                                                                                              \
        ENTER();                                                                                   \
        return submit_value(stream, per_thread, kind, (flags & 3) | (is_64), at, value);           \
    }
#define VALUES(name, kind, type, is_64)                                                            \
    VALUE(name, false, kind, type, is_64)                                                          \
    VALUE(name##_ptsz, true, kind, type, is_64)
VALUES(cuStreamWaitValue32, TIMING_WAIT_VALUE, uint32_t, 0)
VALUES(cuStreamWaitValue32_v2, TIMING_WAIT_VALUE, uint32_t, 0)
VALUES(cuStreamWaitValue64, TIMING_WAIT_VALUE, uint64_t, VALUE_IS_64)
VALUES(cuStreamWaitValue64_v2, TIMING_WAIT_VALUE, uint64_t, VALUE_IS_64)
VALUES(cuStreamWriteValue32, TIMING_WRITE_VALUE, uint32_t, 0)
VALUES(cuStreamWriteValue32_v2, TIMING_WRITE_VALUE, uint32_t, 0)
VALUES(cuStreamWriteValue64, TIMING_WRITE_VALUE, uint64_t, VALUE_IS_64)
VALUES(cuStreamWriteValue64_v2, TIMING_WRITE_VALUE, uint64_t, VALUE_IS_64)

static CUresult host(CUstream stream, bool per_thread, void *function, void *argument)
{
    const struct model_op op = {.engine = MODEL_NONE,
                                .kind = TIMING_HOST,
                                .data = {(uintptr_t)function, (uintptr_t)argument}};
    CUresult result;

    if (!function)
        return CUDA_ERROR_INVALID_VALUE;
    result = timing_submit(stream, per_thread, &op);
    timing_serve();
    return result;
}

#define HOST(name, per_thread)                                                                     \
    CUresult name(CUstream stream, void *function, void *argument)                                 \
    {                                                                                              \
        ENTER();                                                                                   \
        return host(stream, per_thread, function, argument);                                       \
    }
HOST(cuLaunchHostFunc, false)
HOST(cuLaunchHostFunc_ptsz, true)
