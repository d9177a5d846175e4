// SPDX-License-Identifier: MIT
/* One thread: its functions, its memory, its turn. */
#include "inside.h"

#include <stdlib.h>
#include <time.h>

/* @room becomes at least @wanted; what is new is zero. */
static void *grow(void *memory, uint32_t *room, uint32_t wanted, size_t size)
{
    uint32_t more = *room ? *room : 64;
    char *grown;

    while (more < wanted)
        more *= 2;
    if (more == *room)
        return memory;
    grown = realloc(memory, more * size);
    if (!grown)
        return NULL;
    memset(grown + *room * size, 0, (more - *room) * size);
    *room = more;
    return grown;
}

static bool make_room(struct thread *thread, uint32_t registers, uint32_t memory)
{
    void *grown = grow(thread->all_registers, &thread->registers_room, registers,
                       sizeof(*thread->all_registers));

    if (!grown)
        return false;
    thread->all_registers = grown;
    grown = grow(thread->memory, &thread->memory_room, memory, 1);
    if (!grown)
        return false;
    thread->memory = grown;
    grown = grow(thread->frames, &thread->frames_room, thread->depth + 1, sizeof(*thread->frames));
    if (!grown)
        return false;
    thread->frames = grown;
    return true;
}

/* False: it is too deep, or has too much local memory. */
bool thread_enter(struct thread *thread, const struct ptx_function *function,
                  const struct call *call)
{
    struct frame next = {.function = function, .call = call};

    if (thread->depth) {
        struct frame *from = &thread->frames[thread->depth - 1];

        from->pc = thread->pc;
        next.registers_at = from->registers_at + from->function->registers;
        next.memory_at = (uint32_t)round_up(from->memory_at + from->function->frame_bytes, 16);
    }
    if (thread->depth >= MOST_DEPTH || next.memory_at + function->frame_bytes > MOST_LOCAL ||
        next.registers_at + function->registers > MOST_DEEP ||
        !make_room(thread, next.registers_at + function->registers + 1,
                   next.memory_at + function->frame_bytes + 8))
        return false;
    thread->frames[thread->depth++] = next;
    thread->registers = thread->all_registers + next.registers_at;
    thread->memory_at = next.memory_at;
    memset(thread->registers, 0, (function->registers + 1) * sizeof(*thread->registers));
    thread->code = function->code;
    thread->pc = 0;
    return true;
}

void thread_reset(struct thread *thread)
{
    thread->depth = 0;
    thread->carry = false;
    thread->wait = WAIT_NOT;
}

void thread_free(struct thread *thread)
{
    free(thread->all_registers);
    free(thread->memory);
    free(thread->frames);
}

static bool is_guarded_off(const struct thread *thread, const struct instruction *at)
{
    return at->has_guard && !thread->registers[at->guard] == !at->guard_is_negated;
}

/* Until it waits, ends, or had its turn: STEP_ON then. */
int thread_run(struct thread *thread, uint64_t turn)
{
    struct run *run = thread->block->run;
    uint64_t steps = 0;
    int result = STEP_ON;

    while (result == STEP_ON && steps < turn) {
        const struct instruction *at = &thread->code[thread->pc++];

        steps++;
        if (!is_guarded_off(thread, at))
            result = at->run(thread, at);
    }
    run->steps += steps;
    if (result == STEP_EXIT)
        thread->wait = WAIT_ENDED;
    return run->steps > run->most && result <= 0 ? PTX_TOO_LONG : result;
}

static uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static uint64_t read_mask(const struct thread *thread, uint64_t which)
{
    uint64_t own = 1ull << thread->lane;

    if (which == S_EQ)
        return own;
    if (which == S_LT)
        return own - 1;
    if (which == S_LE)
        return 2 * own - 1;
    return which == S_GT ? ~(2 * own - 1) & UINT32_MAX : ~(own - 1) & UINT32_MAX;
}

uint64_t special_read(const struct thread *thread, uint64_t which)
{
    const struct block *block = thread->block;
    const struct ptx_launch *launch = block->launch;

    if (which < S_NTID)
        return thread->tid[which - S_TID];
    if (which < S_CTAID)
        return launch->block[which - S_NTID];
    if (which < S_NCTAID)
        return block->ctaid[which - S_CTAID];
    if (which < S_LANE)
        return launch->grid[which - S_NCTAID];
    if (which >= S_EQ && which <= S_GE)
        return read_mask(thread, which);
    switch (which) {
    case S_LANE:
        return thread->lane;
    case S_WARP:
        return thread->number / WARP;
    case S_WARPS:
        return (block->count + WARP - 1) / WARP;
    case S_SMS:
    case S_GRID:
        return 1;
    case S_CLOCK:
        return block->run->steps;
    case S_TIMER:
        return now_ns();
    case S_DYNAMIC_BYTES:
        return launch->dynamic_shared;
    case S_SHARED_BYTES:
        return block->shared_bytes;
    default:
        return 0;
    }
}

uint64_t operand_other(const struct thread *thread, const struct operand *operand)
{
    uint64_t offset = (uint64_t)operand->offset;

    switch (operand->kind) {
    case OPERAND_SPECIAL:
        return special_read(thread, operand->value);
    case OPERAND_FRAME:
        return thread->memory_at + operand->value + offset;
    case OPERAND_PARAM:
        return operand->value + offset;
    case OPERAND_VARIABLE:
        return operand->variable->address + offset;
    case OPERAND_DYNAMIC:
        return thread->block->dynamic_at + offset;
    default:
        return 0;
    }
}
