// SPDX-License-Identifier: MIT
#include "mover.h"

#include "captures.h"
#include "chunks.h"
#include "clock.h"
#include "contexts.h"
#include "drain.h"
#include "fronts.h"
#include "mover_hold.h"
#include "transfer.h"
#include "vault.h"

#include <signal.h>
#include <stdlib.h>

/* A thread in the driver, and the work in flight, may take so long to end. */
#define LEAVE_NS (2 * NS_PER_S)

/**
 * struct gpu_mover - of a GPU's memory
 * @copies, @returns: the last orders of these that were carried out, of @connection; @copying: the
 * period in which one to copy is
 */
struct gpu_mover {
    struct gpu *gpu;
    pthread_t thread;
    uint64_t connection;
    uint64_t copies;
    uint64_t returns;
    uint64_t copying;
};

static _Atomic bool stays;

/* A chunk with its allocation. */
struct place {
    struct chunked *chunked;
    struct chunk *chunk;
};

struct places {
    struct place *list;
    uint64_t count;
    uint64_t room;
    bool displaced;
    bool failed;
};

static void add_place(struct places *places, struct chunked *chunked, struct chunk *chunk)
{
    if (places->count == places->room) {
        uint64_t room = places->room ? 2 * places->room : 64;
        struct place *list = realloc(places->list, room * sizeof(*list));

        places->failed |= !list;
        if (!list)
            return;
        places->list = list;
        places->room = room;
    }
    places->list[places->count++] = (struct place){chunked, chunk};
}

static void add_places(struct chunked *chunked, void *data)
{
    struct places *places = data;

    for (unsigned int i = 0; i < chunked->count && !chunked->stays; i++)
        if (chunked->list[i].displaced == places->displaced)
            add_place(places, chunked, &chunked->list[i]);
}

/* Whether nothing has been written to it since it was copied, as far as is known. */
static bool is_copied(const struct chunk *chunk)
{
    return chunk->piece && chunk->copied == mover_period() && contexts_are_known();
}

static int by_copies_and_bytes(const void *a, const void *b)
{
    const struct chunk *left = ((const struct place *)a)->chunk;
    const struct chunk *right = ((const struct place *)b)->chunk;

    if (is_copied(left) != is_copied(right))
        return is_copied(left) ? -1 : 1;
    return (left->bytes < right->bytes) - (left->bytes > right->bytes);
}

/* Those that are displaced, or those that are not and can move; what is copied, and the largest,
 * first. */
static struct places find_places(const struct gpu *gpu, bool displaced)
{
    struct places places = {.displaced = displaced};

    chunks_each(gpu, add_places, &places);
    if (places.count)
        qsort(places.list, places.count, sizeof(*places.list), by_copies_and_bytes);
    return places;
}

static void add_bytes(struct chunked *chunked, void *data)
{
    *(uint64_t *)data += chunked->stays || stays ? 0 : chunked->reserved;
}

static void tell_unmovable(const struct gpu *gpu)
{
    uint64_t movable = 0;

    chunks_each(gpu, add_bytes, &movable);
    governor_member_unmovable(gpu->member, movable);
}

void mover_tell_unmovable(struct gpu *gpu)
{
    if (gpu->mover)
        tell_unmovable(gpu);
}

static void tell_unmovable_of(struct gpu *gpu, void *data)
{
    (void)data;
    mover_tell_unmovable(gpu);
}

void mover_stay(void)
{
    atomic_store(&stays, true);
    gpu_each(tell_unmovable_of, NULL);
}

struct contexts {
    CUcontext list[DRAIN_CONTEXTS];
    unsigned int count;
    bool too_many;
};

static void add_context(CUcontext context, void *data)
{
    struct contexts *contexts = data;

    for (unsigned int i = 0; i < contexts->count; i++)
        if (contexts->list[i] == context)
            return;
    if (contexts->count < DRAIN_CONTEXTS)
        contexts->list[contexts->count++] = context;
    else
        contexts->too_many = true;
}

static void add_its_context(struct chunked *chunked, void *data)
{
    add_context(chunked->context, data);
}

static void add_contexts_of(struct gpu *gpu, void *data)
{
    chunks_each(gpu, add_its_context, data);
}

/* A copy between two GPUs may be submitted to either, and a kernel may write to another's memory.
 */
static bool drain_all(uint64_t limit_ns, enum governor_stuck *why)
{
    struct contexts contexts = {0};
    enum drained drained;

    gpu_each(add_contexts_of, &contexts);
    contexts_each(add_context, &contexts);
    drained = contexts.too_many ? DRAIN_FAILED : drain(contexts.list, contexts.count, limit_ns);
    *why = drained == DRAIN_LATE ? GOVERNOR_STUCK_WORK : GOVERNOR_STUCK_DRIVER;
    return drained == DRAINED;
}

/*
 * Nobody is in the driver, and the GPU has nothing to do for the process. Else all is as before,
 * and @why says why.
 */
static bool shut_out(struct gpu *gpu, enum governor_stuck *why)
{
    uint64_t until = clock_now() + LEAVE_NS, now;

    if (gpu->shut)
        return true;
    *why = GOVERNOR_STUCK_FLOOR;
    if (stays)
        return false;
    *why = GOVERNOR_STUCK_THREAD;
    if (!mover_shut_out(gpu, LEAVE_NS))
        return false;
    *why = GOVERNOR_STUCK_CAPTURE;
    now = clock_now();
    if (!captures_any() && drain_all(until > now ? until - now : 0, why))
        return true;
    mover_let_in(gpu);
    return false;
}

/* What a part's copy is behind. */
struct part {
    struct place place;
    struct copy copy;
};

/* The copies that are on their way, the oldest first. */
struct window {
    struct part parts[TRANSFER_DEPTH];
    unsigned int first, count;
    uint64_t since;
};

/* An order that is carried out. */
struct errand {
    struct gpu_mover *mover;
    const struct governor_orders *orders;
    struct transfer transfer;
    struct window window;
    uint64_t rest;
    bool failed;
    enum governor_stuck why;
};

static void fail_with(struct errand *errand, enum governor_stuck why)
{
    if (!errand->failed)
        errand->why = why;
    errand->failed = true;
}

static uint64_t ns_since(struct window *window)
{
    uint64_t now = clock_now(), ns = now - window->since;

    window->since = now;
    return ns ? ns : 1;
}

typedef void part_step(struct errand *errand, struct part *part);

static void finish_oldest(struct errand *errand, part_step *finish)
{
    struct window *window = &errand->window;
    struct part *part = &window->parts[window->first];

    window->first = (window->first + 1) % TRANSFER_DEPTH;
    window->count--;
    finish(errand, part);
}

static void finish_parts(struct errand *errand, part_step *finish)
{
    while (errand->window.count)
        finish_oldest(errand, finish);
}

/* It is in its piece, and its memory on the card goes. Else it is as it was. */
static void drop_copied(struct errand *errand, const struct place *place, uint64_t ns)
{
    struct chunk *chunk = place->chunk;

    if (chunks_drop(place->chunked, chunk) != CUDA_SUCCESS) {
        fail_with(errand, GOVERNOR_STUCK_DRIVER);
        return;
    }
    chunk->displaced = true;
    chunks_count_displaced(errand->mover->gpu, chunk->bytes);
    governor_member_gave(errand->mover->gpu->member, errand->orders, chunk->bytes, ns);
}

/* Until then the chunk's memory is there. */
static bool finish_copy(struct errand *errand, struct part *part)
{
    if (!transfer_await(&errand->transfer, &part->copy)) {
        fail_with(errand, GOVERNOR_STUCK_DRIVER);
        return false;
    }
    part->place.chunk->copied = mover_period();
    return true;
}

static void finish_leaving(struct errand *errand, struct part *part)
{
    if (finish_copy(errand, part))
        drop_copied(errand, &part->place, ns_since(&errand->window));
}

static void let_piece_go(struct chunked *chunked, void *data)
{
    (void)data;
    for (unsigned int i = 0; i < chunked->count; i++) {
        struct chunk *chunk = &chunked->list[i];

        if (chunk->piece && !chunk->displaced) {
            vault_put(chunked->gpu, chunk->piece);
            chunk->piece = NULL;
        }
    }
}

/* For the chunk. If there is no more, those that have copies of others do without. */
static bool take_piece(struct errand *errand, struct chunk *chunk, part_step *finish)
{
    struct gpu *gpu = errand->mover->gpu;

    if (!chunk->piece)
        chunk->piece = vault_take(gpu, chunk->bytes);
    if (chunk->piece || !finish)
        return chunk->piece;
    finish_parts(errand, finish);
    chunks_each(gpu, let_piece_go, NULL);
    chunk->piece = vault_take(gpu, chunk->bytes);
    return chunk->piece;
}

static void begin_copy(struct errand *errand, struct part *part, part_step *finish)
{
    struct chunk *chunk = part->place.chunk;

    CUcontext context = part->place.chunked->context;

    if (!transfer_enter(&errand->transfer, context)) {
        fail_with(errand, GOVERNOR_STUCK_DRIVER);
        return;
    }
    if (!take_piece(errand, chunk, finish)) {
        fail_with(errand, GOVERNOR_STUCK_VAULT);
        return;
    }
    /* Copies in other contexts may have been finished for the piece. */
    if (!transfer_enter(&errand->transfer, context)) {
        fail_with(errand, GOVERNOR_STUCK_DRIVER);
        return;
    }
    chunk->copied = 0;
    part->copy.piece = chunk->piece;
    if (transfer_out(&errand->transfer, &part->copy, part->place.chunked->at + chunk->offset))
        errand->window.count++;
    else
        fail_with(errand, GOVERNOR_STUCK_DRIVER);
}

/* What has not been written since its copy goes without another one. */
static void begin_leaving(struct errand *errand, struct part *part)
{
    if (is_copied(part->place.chunk))
        drop_copied(errand, &part->place, 0);
    else
        begin_copy(errand, part, finish_leaving);
}

/* The chunk is whole again. Until then its content is in the host's memory. */
static void finish_coming(struct errand *errand, struct part *part)
{
    struct chunk *chunk = part->place.chunk;

    if (!transfer_await(&errand->transfer, &part->copy)) {
        chunks_drop(part->place.chunked, chunk);
        fail_with(errand, GOVERNOR_STUCK_DRIVER);
        return;
    }
    chunk->displaced = false;
    chunk->copied = mover_period();
    chunks_count_displaced(errand->mover->gpu, -chunk->bytes);
    governor_member_took(errand->mover->gpu->member, errand->orders, chunk->bytes,
                         ns_since(&errand->window));
}

static void begin_coming(struct errand *errand, struct part *part)
{
    const struct chunked *chunked = part->place.chunked;
    struct chunk *chunk = part->place.chunk;
    CUdeviceptr at = chunked->at + chunk->offset;
    CUresult result = CUDA_SUCCESS;

    if (!transfer_enter(&errand->transfer, chunked->context)) {
        fail_with(errand, GOVERNOR_STUCK_DRIVER);
        return;
    }
    result = chunks_make(chunked, chunk);
    if (result != CUDA_SUCCESS) {
        fail_with(errand,
                  result == CUDA_ERROR_OUT_OF_MEMORY ? GOVERNOR_STUCK_CARD : GOVERNOR_STUCK_DRIVER);
        return;
    }
    part->copy.piece = chunk->piece;
    if (chunks_allow(chunked, at, chunk->bytes) == CUDA_SUCCESS &&
        transfer_in(&errand->transfer, &part->copy, at)) {
        errand->window.count++;
        return;
    }
    chunks_drop(chunked, chunk);
    fail_with(errand, GOVERNOR_STUCK_DRIVER);
}

/* Several copies are on their way while memory of others is taken, or given back. */
static void move_part(struct errand *errand, const struct place *place, part_step *begin,
                      part_step *finish)
{
    struct window *window = &errand->window;
    struct part *part;

    if (window->count == TRANSFER_DEPTH)
        finish_oldest(errand, finish);
    if (errand->failed)
        return;
    part = &window->parts[(window->first + window->count) % TRANSFER_DEPTH];
    *part = (struct part){.place = *place};
    begin(errand, part);
    if (!errand->failed)
        errand->rest -= place->chunk->bytes < errand->rest ? place->chunk->bytes : errand->rest;
}

static void finish_all(struct errand *errand, part_step *finish)
{
    finish_parts(errand, finish);
    transfer_close(&errand->transfer);
}

/* The largest ones that are not too large, and one that is, for the rest. */
static void give_parts(struct errand *errand)
{
    struct places places = find_places(errand->mover->gpu, false);
    const struct place *last = NULL;

    for (uint64_t i = 0; i < places.count && errand->rest && !errand->failed; i++) {
        if (places.list[i].chunk->bytes > errand->rest)
            last = &places.list[i];
        else
            move_part(errand, &places.list[i], begin_leaving, finish_leaving);
    }
    if (last && errand->rest && !errand->failed)
        move_part(errand, last, begin_leaving, finish_leaving);
    finish_all(errand, finish_leaving);
    free(places.list);
}

static void leave_card(struct gpu_mover *mover, const struct governor_orders *orders)
{
    struct errand errand = {.mover = mover, .orders = orders, .rest = orders->leave};

    errand.window.since = clock_now();
    tell_unmovable(mover->gpu);
    if (!shut_out(mover->gpu, &errand.why)) {
        governor_member_stuck(mover->gpu->member, orders, true, errand.why);
        return;
    }
    give_parts(&errand);
    if (errand.rest && !errand.failed)
        fail_with(&errand, GOVERNOR_STUCK_FLOOR);
    if (errand.failed)
        governor_member_stuck(mover->gpu->member, orders, true, errand.why);
    /*
     * Whoever waits for its turn gets none before all is back. And who was kept out may have said
     * so before there was anything to come back for.
     */
    if (atomic_load(&mover->gpu->displaced) &&
        (fronts_were_asked() || governor_member_is_waiting(mover->gpu->member)))
        governor_member_come(mover->gpu->member);
}

/* None is taken before the whole of it is granted. True: something was done. */
static bool bring_back(struct gpu_mover *mover, const struct governor_orders *orders)
{
    struct errand errand = {.mover = mover, .orders = orders, .rest = orders->take};
    struct places places = find_places(mover->gpu, true);

    errand.window.since = clock_now();
    for (uint64_t i = 0; i < places.count && !errand.failed; i++)
        if (places.list[i].chunk->bytes <= errand.rest)
            move_part(&errand, &places.list[i], begin_coming, finish_coming);
    finish_all(&errand, finish_coming);
    if (!places.count)
        fail_with(&errand, GOVERNOR_STUCK_FLOOR);
    if (errand.failed)
        governor_member_stuck(mover->gpu->member, orders, false, errand.why);
    free(places.list);
    return errand.failed || errand.rest < orders->take;
}

/* Copies of so much are made before others may free memory. */
#define COPY_AT_ONCE GOVERNOR_VAULT_MOST

static void begin_copying(struct errand *errand, struct part *part)
{
    begin_copy(errand, part, NULL);
}

static void finish_copying(struct errand *errand, struct part *part)
{
    finish_copy(errand, part);
}

/*
 * Copies some of what is not copied, while the gate is open and nobody passes. False: that was all
 * that is wanted, or it is in vain.
 */
static bool copy_some(struct gpu_mover *mover, const struct governor_orders *orders)
{
    struct errand errand = {.mover = mover, .orders = orders, .rest = COPY_AT_ONCE};
    struct places places = find_places(mover->gpu, false);
    uint64_t most = orders->copies_most ? orders->copies_most : UINT64_MAX, bytes = 0;
    bool all = true;

    for (uint64_t i = 0; i < places.count && bytes < most && errand.rest && !errand.failed; i++) {
        bytes += places.list[i].chunk->bytes;
        if (is_copied(places.list[i].chunk))
            continue;
        all = false;
        if (fronts_were_passed())
            break;
        move_part(&errand, &places.list[i], begin_copying, finish_copying);
    }
    finish_all(&errand, finish_copying);
    free(places.list);
    if (all && !fronts_were_passed())
        governor_member_clean(mover->gpu->member, orders);
    return !all && !errand.failed && !fronts_were_passed();
}

/* Nobody is in the driver, and nothing is in flight: from here on a thread that passes is seen. */
static bool begin_period(struct gpu_mover *mover)
{
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    enum governor_stuck why;

    if (!shut_out(mover->gpu, &why))
        return false;
    /* What others capture does not forbid this thread anything. */
    CARD(cuThreadExchangeStreamCaptureMode, &mode);
    mover_let_in(mover->gpu);
    return true;
}

/* True: there is more to do. */
static bool copy_ahead(struct gpu_mover *mover, const struct governor_orders *orders)
{
    bool goes_on = !atomic_load(&mover->gpu->displaced) && contexts_are_known();

    if (!orders->copies || orders->copies == mover->copies)
        return false;
    if (goes_on && mover->copying != mover_period()) {
        goes_on = begin_period(mover);
        mover->copying = mover_period();
    }
    if (goes_on && copy_some(mover, orders))
        return true;
    mover->copies = orders->copies;
    mover->copying = 0;
    return false;
}

static void note_context(CUcontext context, void *data)
{
    *(CUcontext *)data = context;
}

/* Another process of the slice needs the host's memory more than what is on the card does. */
static void return_pieces(struct gpu_mover *mover, const struct governor_orders *orders)
{
    CUcontext context = NULL;

    if (orders->returns == mover->returns)
        return;
    mover->returns = orders->returns;
    contexts_each(note_context, &context);
    CARD(cuCtxSetCurrent, context);
    chunks_each(mover->gpu, let_piece_go, NULL);
    vault_return(mover->gpu);
    CARD(cuCtxSetCurrent, NULL);
}

/* Another arbiter counts from 0. */
static void note_connection(struct gpu_mover *mover, const struct governor_orders *orders)
{
    if (mover->connection != orders->connection)
        mover->copies = mover->returns = 0;
    mover->connection = orders->connection;
}

static void *follow_orders(void *data)
{
    struct gpu_mover *mover = data;
    struct governor_orders orders;

    for (;;) {
        bool done = false;

        governor_member_orders(mover->gpu->member, &orders);
        note_connection(mover, &orders);
        mover_hold();
        if (!orders.leave && !orders.take)
            return_pieces(mover, &orders);
        if (orders.leave)
            leave_card(mover, &orders);
        else if (orders.take)
            done = bring_back(mover, &orders);
        else
            done = copy_ahead(mover, &orders);
        mover_settle(mover->gpu);
        mover_release();
        if (!orders.leave && !done)
            governor_member_await_orders(mover->gpu->member, &orders);
    }
    return NULL;
}

/* The thread begins with a look at @gpu's mover. */
static bool start_thread(struct gpu *gpu)
{
    struct gpu_mover *mover = calloc(1, sizeof(*mover));
    sigset_t all, before;
    bool started;

    if (!mover)
        return false;
    mover->gpu = gpu;
    atomic_store_explicit(&gpu->mover, mover, memory_order_release);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    started = pthread_create(&mover->thread, NULL, follow_orders, mover) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (started)
        return true;
    gpu->mover = NULL;
    free(mover);
    return false;
}

static void come_back(struct gpu *gpu, void *data)
{
    (void)data;
    if (gpu->mover)
        governor_member_come(gpu->member);
}

static void ask_for_all(void)
{
    gpu_each(come_back, NULL);
}

bool mover_start(struct gpu *gpu)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    bool started;

    if (atomic_load_explicit(&gpu->mover, memory_order_acquire))
        return true;
    pthread_mutex_lock(&lock);
    started = gpu->mover ||
              (chunks_are_possible(gpu) && fronts_install(ask_for_all) && start_thread(gpu));
    if (started)
        governor_member_movable(gpu->member);
    pthread_mutex_unlock(&lock);
    return started;
}
