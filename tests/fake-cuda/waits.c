// SPDX-License-Identifier: MIT
/*
 * What a stream waits for: events, values in memory, functions of the host. Memory of the card has
 * no content but what was written by cuStreamWriteValue. The host's memory is read by its own
 * process.
 */
#include "timing.h"

#include <semaphore.h>
#include <stdlib.h>

#define LOOK_NS 50000u

/* As many are looked at before one is forgotten. */
#define TRIES 16

static struct timing_word *word_of(struct timing *timing, uint32_t runner, uint64_t address)
{
    struct timing_word *word = NULL, *at;

    for (unsigned int i = 0; i < TRIES; i++) {
        at = &timing->words[(address / 4 + i) % TIMING_WORDS];
        if (at->address == address && at->runner == runner + 1)
            return at;
        if (!word && !at->runner)
            word = at;
    }
    word = word ? word : at;
    *word = (struct timing_word){.runner = runner + 1, .address = address};
    return word;
}

static bool is_of_card(uint64_t address)
{
    CUdeviceptr base;

    return address < 4096 || fake_size_of(address, &base) || address >= FAKE_RESERVED;
}

static uint64_t read_value(struct timing *timing, uint32_t runner, const struct model_op *op)
{
    if (is_of_card(op->data[0])) {
        uint64_t value = word_of(timing, runner, op->data[0])->value;

        return op->state & VALUE_IS_64 ? value : (uint32_t)value;
    }
    if (op->state & VALUE_IS_64)
        return *(volatile uint64_t *)(uintptr_t)op->data[0];
    return *(volatile uint32_t *)(uintptr_t)op->data[0];
}

static bool has_come(uint64_t value, const struct model_op *op)
{
    uint64_t mask = op->state & VALUE_IS_64 ? UINT64_MAX : UINT32_MAX;
    uint64_t wanted = op->data[1] & mask;

    switch (op->state & VALUE_COMPARES) {
    case VALUE_EQUAL:
        return value == wanted;
    case VALUE_AND:
        return value & wanted;
    case VALUE_NOR:
        return ~(value | wanted) & mask;
    default:
        return op->state & VALUE_IS_64 ? (int64_t)(value - wanted) >= 0
                                       : (int32_t)((uint32_t)value - (uint32_t)wanted) >= 0;
    }
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

/* A semaphore that was signalled once lets one pass. */
static bool take(const struct model_op *op)
{
    _Atomic uint64_t *state = (_Atomic uint64_t *)(uintptr_t)op->data[0];
    uint64_t signalled = 1;

    return atomic_compare_exchange_strong(state, &signalled, 0);
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
    if (op->kind == TIMING_TAKE)
        return take(op);
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

CUresult waits_submit(CUstream stream, bool per_thread, const struct model_op *ops,
                      unsigned int count)
{
    CUresult result = CUDA_SUCCESS;

    for (unsigned int i = 0; i < count && result == CUDA_SUCCESS; i++)
        result = timing_submit(stream, per_thread, &ops[i]);
    for (unsigned int i = 0; i < count; i++)
        if (ops[i].kind == TIMING_HOST || ops[i].kind == TIMING_TAKE ||
            ((ops[i].kind == TIMING_WAIT_VALUE || ops[i].kind == TIMING_WRITE_VALUE) &&
             !is_of_card(ops[i].data[0])))
            timing_serve();
    return result;
}

static struct model_op value_operation(enum timing_kind kind, uint32_t state, CUdeviceptr at,
                                       uint64_t value)
{
    return (struct model_op){
        .engine = MODEL_NONE, .kind = kind, .state = state, .data = {at, value}};
}

#define VALUE(name, per_thread, kind, type, is_64)                                                 \
    CUresult name(CUstream stream, CUdeviceptr at, type value, unsigned int flags)                 \
    {                                                                                              \
        const struct model_op op =                                                                 \
            value_operation(kind, (flags & VALUE_COMPARES) | (is_64), at, value);                  \
                                                                                                   \
        ENTER();                                                                                   \
        return waits_submit(stream, per_thread, &op, 1);                                           \
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

/* CUstreamBatchMemOpParams. */
struct memory_operation {
    uint32_t operation;
    CUdeviceptr address;
    uint64_t value;
    uint32_t flags;
    CUdeviceptr alias;
    uint64_t padding;
};

_Static_assert(sizeof(struct memory_operation) == 48, "CUstreamBatchMemOpParams");

enum {
    WAIT_VALUE_32 = 1,
    WRITE_VALUE_32 = 2,
    FLUSH_REMOTE_WRITES = 3,
    WAIT_VALUE_64 = 4,
    WRITE_VALUE_64 = 5,
    BARRIER = 6,
};

#define BATCH_MOST 256

/* Whatever is asked for is in order here, so there is nothing to flush, and no barrier. */
unsigned int waits_of_batch(const struct memory_operation *list, unsigned int count,
                            struct model_op *ops, unsigned int room)
{
    unsigned int made = 0;

    if (!list || count > BATCH_MOST || count > room)
        return 0;
    for (unsigned int i = 0; i < count; i++) {
        uint32_t how = list[i].operation;
        bool is_64 = how == WAIT_VALUE_64 || how == WRITE_VALUE_64;
        bool waits = how == WAIT_VALUE_32 || how == WAIT_VALUE_64;

        if (how < WAIT_VALUE_32 || how > BARRIER)
            return 0;
        if (how != FLUSH_REMOTE_WRITES && how != BARRIER)
            ops[made++] =
                value_operation(waits ? TIMING_WAIT_VALUE : TIMING_WRITE_VALUE,
                                (list[i].flags & VALUE_COMPARES) | (is_64 ? VALUE_IS_64 : 0),
                                list[i].address, is_64 ? list[i].value : (uint32_t)list[i].value);
    }
    return made;
}

static CUresult batch(CUstream stream, bool per_thread, const struct memory_operation *list,
                      unsigned int count)
{
    struct model_op ops[BATCH_MOST];
    unsigned int made = waits_of_batch(list, count, ops, BATCH_MOST);

    return made ? waits_submit(stream, per_thread, ops, made) : CUDA_ERROR_INVALID_VALUE;
}

#define BATCH(name, per_thread)                                                                    \
    CUresult name(CUstream stream, unsigned int count, const struct memory_operation *list,        \
                  unsigned int flags)                                                              \
    {                                                                                              \
        ENTER();                                                                                   \
        (void)flags;                                                                               \
        return batch(stream, per_thread, list, count);                                             \
    }
BATCH(cuStreamBatchMemOp, false)
BATCH(cuStreamBatchMemOp_ptsz, true)
BATCH(cuStreamBatchMemOp_v2, false)
BATCH(cuStreamBatchMemOp_v2_ptsz, true)

struct model_op waits_of_host(void *function, void *argument)
{
    return (struct model_op){.engine = MODEL_NONE,
                             .kind = TIMING_HOST,
                             .data = {(uintptr_t)function, (uintptr_t)argument}};
}

static CUresult host(CUstream stream, bool per_thread, void *function, void *argument)
{
    const struct model_op op = waits_of_host(function, argument);

    return function ? waits_submit(stream, per_thread, &op, 1) : CUDA_ERROR_INVALID_VALUE;
}

#define HOST(name, per_thread)                                                                     \
    CUresult name(CUstream stream, void *function, void *argument)                                 \
    {                                                                                              \
        ENTER();                                                                                   \
        return host(stream, per_thread, function, argument);                                       \
    }
HOST(cuLaunchHostFunc, false)
HOST(cuLaunchHostFunc_ptsz, true)

struct callback {
    void (*function)(CUstream stream, CUresult status, void *data);
    CUstream stream;
    void *data;
};

static void call_back(void *data)
{
    struct callback callback = *(struct callback *)data;

    free(data);
    callback.function(callback.stream, CUDA_SUCCESS, callback.data);
}

static CUresult add_callback(CUstream stream, bool per_thread, const struct callback *of)
{
    struct callback *callback;

    if (!of->function)
        return CUDA_ERROR_INVALID_VALUE;
    callback = malloc(sizeof(*callback));
    *callback = *of;
    return host(stream, per_thread, (void *)call_back, callback);
}

#define CALLBACK(name, per_thread)                                                                 \
    CUresult name(CUstream stream, CUstreamCallback function, void *data, unsigned int flags)      \
    {                                                                                              \
        ENTER();                                                                                   \
        (void)flags;                                                                               \
        return add_callback(stream, per_thread, &(struct callback){function, stream, data});       \
    }
CALLBACK(cuStreamAddCallback, false)
CALLBACK(cuStreamAddCallback_ptsz, true)

/* With a mode, which makes no difference here. */
#define HOST_V2(name, per_thread)                                                                  \
    CUresult name(CUstream stream, void *function, void *argument, unsigned int mode)              \
    {                                                                                              \
        ENTER();                                                                                   \
        (void)mode;                                                                                \
        return host(stream, per_thread, function, argument);                                       \
    }
HOST_V2(cuLaunchHostFunc_v2, false)
HOST_V2(cuLaunchHostFunc_v2_ptsz, true)
