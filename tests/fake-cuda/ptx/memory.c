// SPDX-License-Identifier: MIT
/* Loads, stores and atomic instructions, in all spaces. */
#include "inside.h"

static uint8_t *inside(uint8_t *bytes, uint64_t room, uint64_t at, uint32_t wanted)
{
    return at < room && wanted <= room - at ? bytes + at : NULL;
}

static uint8_t *look_at_card(struct run *run, uint64_t address, uint32_t bytes)
{
    for (unsigned int i = 0; i < sizeof(run->recent) / sizeof(run->recent[0]); i++) {
        const struct ptx_range *range = &run->recent[i];

        if (address - range->address < range->bytes &&
            bytes <= range->bytes - (address - range->address))
            return range->host + (address - range->address);
    }
    return NULL;
}

static uint8_t *find_on_card(struct run *run, uint64_t address, uint32_t bytes)
{
    uint8_t *found = look_at_card(run, address, bytes);
    struct ptx_range range;

    if (found || !run->launch->find)
        return found;
    range = run->launch->find(run->launch->user, address);
    if (!range.bytes)
        return NULL;
    run->recent[run->next_recent++ % (sizeof(run->recent) / sizeof(run->recent[0]))] = range;
    return look_at_card(run, address, bytes);
}

static uint8_t *find_generic(struct thread *thread, uint64_t address, uint32_t bytes)
{
    struct block *block = thread->block;
    const struct ptx_launch *launch = block->launch;

    if (address - SHARED_WINDOW < WINDOW_BYTES)
        return inside(block->shared, block->shared_bytes, address - SHARED_WINDOW, bytes);
    if (address - LOCAL_WINDOW < WINDOW_BYTES)
        return inside(thread->memory, thread->memory_room, address - LOCAL_WINDOW, bytes);
    if (address - PARAM_WINDOW < WINDOW_BYTES)
        return inside((uint8_t *)(uintptr_t)launch->parameters, launch->kernel->parameter_bytes,
                      address - PARAM_WINDOW, bytes);
    return find_on_card(block->run, address, bytes);
}

void *memory_at(struct thread *thread, enum ptx_space space, uint64_t address, uint32_t bytes,
                int *result)
{
    uint8_t *found;

    if (space == SPACE_SHARED)
        address = SHARED_WINDOW + (uint32_t)address;
    else if (space == SPACE_LOCAL)
        address = LOCAL_WINDOW + (uint32_t)address;
    else if (space == SPACE_PARAM)
        address = PARAM_WINDOW + (uint32_t)address;
    found = find_generic(thread, address, bytes);
    if (address % bytes)
        *result = PTX_MISALIGNED;
    else if (!found)
        *result = PTX_BAD_ADDRESS;
    return address % bytes ? NULL : found;
}

/* The parameters of a function that is called are in its frame. */
static enum ptx_space space_of(const struct thread *thread, const struct instruction *at,
                               const struct operand *operand)
{
    if (operand->kind == OPERAND_FRAME)
        return SPACE_LOCAL;
    if (operand->kind == OPERAND_PARAM)
        return SPACE_PARAM;
    if (at->space == SPACE_PARAM && !thread->frames[thread->depth - 1].function->is_kernel)
        return SPACE_LOCAL;
    return (enum ptx_space)at->space;
}

static uint64_t address_in(const struct thread *thread, const struct operand *operand)
{
    uint64_t address = get(thread, operand);

    return operand->kind == OPERAND_REGISTER ? address + (uint64_t)operand->offset : address;
}

/* Host memory of the operand; what is only read may be a parameter. */
static void *reach(struct thread *thread, const struct instruction *at,
                   const struct operand *operand, bool writes, int *result)
{
    enum ptx_space space = space_of(thread, at, operand);
    uint64_t address = address_in(thread, operand);
    uint32_t width = at->width > 1 ? at->width : 1;
    uint32_t bytes = types[at->type].bytes * width;

    /* Vectors are of two, four or eight. */
    if (width & (width - 1)) {
        *result = PTX_MISALIGNED;
        return NULL;
    }
    if (writes && (space == SPACE_PARAM || space == SPACE_CONST ||
                   (space == SPACE_GENERIC && address - PARAM_WINDOW < WINDOW_BYTES))) {
        *result = PTX_BAD_ADDRESS;
        return NULL;
    }
    return memory_at(thread, space, address, bytes, result);
}

int run_ld(struct thread *thread, const struct instruction *at)
{
    unsigned int width = at->width > 1 ? at->width : 1, bytes = types[at->type].bytes;
    int result = STEP_ON;
    const uint8_t *from = reach(thread, at, &at->a[width], false, &result);

    for (unsigned int i = 0; from && i < width; i++) {
        uint64_t value = 0;

        memcpy(&value, from + i * bytes, bytes);
        put(thread, &at->a[i], at->type, value);
    }
    return result;
}

int run_st(struct thread *thread, const struct instruction *at)
{
    unsigned int width = at->width > 1 ? at->width : 1, bytes = types[at->type].bytes;
    int result = STEP_ON;
    uint8_t *to = reach(thread, at, &at->a[0], true, &result);

    for (unsigned int i = 0; to && i < width; i++) {
        uint64_t value = get(thread, &at->a[1 + i]);

        memcpy(to + i * bytes, &value, bytes);
    }
    return result;
}

static uint64_t change_integer(const struct instruction *at, uint64_t old, uint64_t b, uint64_t c)
{
    bool is_less = types[at->type].is_signed ? (int64_t)b < (int64_t)old : b < old;

    switch (at->how) {
    case HOW_ADD:
        return old + b;
    case HOW_MIN:
        return is_less ? b : old;
    case HOW_MAX:
        return is_less ? old : b;
    case HOW_AND:
        return old & b;
    case HOW_OR:
        return old | b;
    case HOW_XOR:
        return old ^ b;
    case HOW_INC:
        return old >= b ? 0 : old + 1;
    case HOW_DEC:
        return !old || old > b ? b : old - 1;
    case HOW_CAS:
        return old == b ? c : old;
    default:
        return b;
    }
}

static uint64_t change(const struct instruction *at, uint64_t old, uint64_t b, uint64_t c)
{
    if (types[at->type].is_float && at->how == HOW_ADD)
        return float_add(at->type, old, b);
    if (types[at->type].is_float && (at->how == HOW_MIN || at->how == HOW_MAX))
        return float_min_max(at->type, old, b, at->how == HOW_MAX);
    return change_integer(at, old, b, c);
}

static uint64_t read_as(const uint8_t *from, unsigned int type)
{
    uint64_t value = 0;

    memcpy(&value, from, types[type].bytes);
    return types[type].is_signed ? (uint64_t)widen(value, types[type].bytes) : value;
}

int run_atom(struct thread *thread, const struct instruction *at)
{
    int result = STEP_ON;
    uint8_t *to = at->width > 1 ? NULL : reach(thread, at, &at->a[1], true, &result);
    uint64_t old, new;

    if (!to)
        return at->width > 1 ? run_unsupported(thread, at) : result;
    old = read_as(to, at->type);
    new = change(at, old, get_as(thread, &at->a[2], at->type), get_as(thread, &at->a[3], at->type));
    memcpy(to, &new, types[at->type].bytes);
    put(thread, &at->a[0], at->type, old);
    return STEP_ON;
}

int run_red(struct thread *thread, const struct instruction *at)
{
    unsigned int width = at->width > 1 ? at->width : 1, bytes = types[at->type].bytes;
    int result = STEP_ON;
    uint8_t *to = reach(thread, at, &at->a[0], true, &result);

    for (unsigned int i = 0; to && i < width && i + 1 < at->count; i++) {
        uint64_t new = change(at, read_as(to + i * bytes, at->type),
                              get_as(thread, &at->a[1 + i], at->type), 0);

        memcpy(to + i * bytes, &new, bytes);
    }
    return result;
}
