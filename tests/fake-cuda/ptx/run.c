// SPDX-License-Identifier: MIT
/* A launch: its blocks, and turns of their threads. */
#include "inside.h"

#include <stdlib.h>

/* Instructions of a thread before others have their turn, for those that wait in a loop. */
#define TURN 20000

static bool open_block(struct block *block, struct run *run)
{
    const struct ptx_launch *launch = run->launch;
    const struct ptx_function *kernel = launch->kernel;
    uint32_t declared = kernel->shared_bytes > launch->module->shared_bytes
                            ? kernel->shared_bytes
                            : launch->module->shared_bytes;

    *block = (struct block){.launch = run->launch, .run = run};
    block->dynamic_at = (uint32_t)round_up(declared, 16);
    block->shared_bytes = block->dynamic_at + launch->dynamic_shared;
    block->count = launch->block[0] * launch->block[1] * launch->block[2];
    block->shared = calloc(1, block->shared_bytes + 8);
    block->threads = calloc(block->count, sizeof(*block->threads));
    return block->shared && block->threads;
}

static void close_block(struct block *block)
{
    for (uint32_t i = 0; block->threads && i < block->count; i++)
        thread_free(&block->threads[i]);
    free(block->threads);
    free(block->shared);
}

/* Block @number begins. False: there is no memory. */
static bool begin_block(struct block *block, uint64_t number)
{
    const struct ptx_launch *launch = block->launch;

    block->ctaid[0] = (uint32_t)(number % launch->grid[0]);
    block->ctaid[1] = (uint32_t)(number / launch->grid[0] % launch->grid[1]);
    block->ctaid[2] = (uint32_t)(number / launch->grid[0] / launch->grid[1]);
    block->ended = 0;
    memset(block->arrivals, 0, sizeof(block->arrivals));
    memset(block->shared, 0, block->shared_bytes);
    for (uint32_t i = 0; i < block->count; i++) {
        struct thread *thread = &block->threads[i];

        thread_reset(thread);
        thread->block = block;
        thread->number = i;
        thread->lane = i % WARP;
        thread->tid[0] = i % launch->block[0];
        thread->tid[1] = i / launch->block[0] % launch->block[1];
        thread->tid[2] = i / launch->block[0] / launch->block[1];
        if (!thread_enter(thread, launch->kernel, NULL))
            return false;
    }
    return true;
}

/* Of those that wait at the barrier: who arrived, and how many the first of them expects. */
struct barrier {
    uint32_t arrived;
    uint32_t expected;
    uint32_t set;
    bool all, any;
};

static struct barrier count_barrier(const struct block *block, uint32_t number)
{
    struct barrier barrier = {
        .arrived = block->arrivals[number], .expected = block->count - block->ended, .all = true};

    for (uint32_t i = 0; i < block->count; i++) {
        const struct thread *thread = &block->threads[i];

        if (thread->wait != WAIT_BARRIER || thread->barrier != number)
            continue;
        barrier.arrived++;
        if (thread->expected && thread->expected < barrier.expected)
            barrier.expected = thread->expected;
        barrier.set += thread->given != 0;
        barrier.all &= thread->given != 0;
        barrier.any |= thread->given != 0;
    }
    return barrier;
}

static void leave_barrier(struct thread *thread, const struct barrier *barrier)
{
    const struct instruction *at = thread->meeting;

    thread->wait = WAIT_NOT;
    if (!(at->flags & FLAG_RED))
        return;
    put(thread, &at->a[0], at->type,
        at->how == HOW_POPC  ? barrier->set
        : at->how == HOW_AND ? barrier->all
                             : barrier->any);
}

static bool open_barrier(struct block *block, uint32_t number)
{
    struct barrier barrier = count_barrier(block, number);

    if (!barrier.arrived || barrier.arrived < barrier.expected)
        return false;
    for (uint32_t i = 0; i < block->count; i++)
        if (block->threads[i].wait == WAIT_BARRIER && block->threads[i].barrier == number)
            leave_barrier(&block->threads[i], &barrier);
    block->arrivals[number] = 0;
    return true;
}

static bool open_barriers(struct block *block)
{
    bool opened = false;

    for (uint32_t i = 0; i < block->count; i++)
        if (block->threads[i].wait == WAIT_BARRIER)
            opened |= open_barrier(block, block->threads[i].barrier);
    return opened;
}

static int run_threads(struct block *block, uint32_t first, uint32_t end, bool *moved)
{
    for (uint32_t i = first; i < end; i++) {
        struct thread *thread = &block->threads[i];
        int result;

        if (thread->wait != WAIT_NOT)
            continue;
        *moved = true;
        result = thread_run(thread, TURN);
        block->ended += thread->wait == WAIT_ENDED;
        if (result > 0)
            return result;
    }
    return PTX_DONE;
}

/* Each thread has a turn; those of a warp meet at once. Nobody can go on: they wait for ever. */
static int turn_block(struct block *block)
{
    bool moved = false;

    for (uint32_t first = 0; first < block->count; first += WARP) {
        uint32_t end = first + WARP < block->count ? first + WARP : block->count;

        do {
            int result = run_threads(block, first, end, &moved);

            if (result != PTX_DONE)
                return result;
        } while (warp_meet(block, first));
    }
    if (block->ended < block->count && !open_barriers(block) && !moved)
        return PTX_TOO_LONG;
    return PTX_DONE;
}

static uint64_t blocks_of(const struct ptx_launch *launch)
{
    return (uint64_t)launch->grid[0] * launch->grid[1] * launch->grid[2];
}

static int run_in_order(struct run *run)
{
    uint64_t count = blocks_of(run->launch);
    struct block block;
    int result = open_block(&block, run) ? PTX_DONE : PTX_NO_MEMORY;

    for (uint64_t i = 0; i < count && result == PTX_DONE; i++) {
        if (!begin_block(&block, i))
            result = PTX_NO_MEMORY;
        while (result == PTX_DONE && block.ended < block.count)
            result = turn_block(&block);
    }
    close_block(&block);
    return result;
}

#define MOST_TOGETHER 4096

/* All blocks exist at once, and may wait for each other. */
static int run_together(struct run *run)
{
    uint64_t count = blocks_of(run->launch), ended = 0;
    struct block *blocks = calloc(count, sizeof(*blocks));
    int result = blocks ? PTX_DONE : PTX_NO_MEMORY;

    for (uint64_t i = 0; i < count && result == PTX_DONE; i++)
        if (!open_block(&blocks[i], run) || !begin_block(&blocks[i], i))
            result = PTX_NO_MEMORY;
    while (result == PTX_DONE && ended < count) {
        ended = 0;
        for (uint64_t i = 0; i < count && result == PTX_DONE; i++) {
            if (blocks[i].ended < blocks[i].count)
                result = turn_block(&blocks[i]);
            ended += blocks[i].ended == blocks[i].count;
        }
    }
    for (uint64_t i = 0; blocks && i < count; i++)
        close_block(&blocks[i]);
    free(blocks);
    return result;
}

static bool is_sane(const struct ptx_launch *launch)
{
    uint64_t threads = (uint64_t)launch->block[0] * launch->block[1];

    for (unsigned int i = 0; i < 3; i++)
        if (!launch->grid[i] || !launch->block[i] || launch->block[i] > MOST_THREADS ||
            (i && launch->grid[i] > UINT16_MAX) || launch->grid[i] > INT32_MAX)
            return false;
    return threads * launch->block[2] <= MOST_THREADS && launch->dynamic_shared <= MOST_SHARED &&
           (!launch->is_cooperative || blocks_of(launch) <= MOST_TOGETHER);
}

enum ptx_result ptx_run(struct ptx_launch *launch)
{
    struct run run = {.launch = launch, .most = launch->steps};
    int result = PTX_FAILED;

    launch->error = (struct ptx_error){0};
    if (is_sane(launch))
        result = launch->is_cooperative ? run_together(&run) : run_in_order(&run);
    launch->steps = run.steps;
    return (enum ptx_result)result;
}
