// SPDX-License-Identifier: MIT
/* Comparisons, and what chooses and moves values. */
#include "inside.h"

#include <math.h>

static double float_operand(const struct thread *thread, const struct operand *operand,
                            unsigned int type, bool flushes)
{
    uint64_t bits = get(thread, operand);
    double value = type == T_F64    ? double_of(bits)
                   : type == T_F16  ? (double)half_read(bits)
                   : type == T_BF16 ? (double)bfloat_read(bits)
                                    : (double)float_of(bits);

    return flushes && type == T_F32 && fabs(value) < 0x1p-126 ? copysign(0, value) : value;
}

static bool compare_floats(unsigned int compare, double a, double b)
{
    bool is_unordered = isnan(a) || isnan(b);

    switch (compare) {
    case C_EQ:
        return a == b;
    case C_NE:
        return !is_unordered && a != b;
    case C_LT:
        return a < b;
    case C_LE:
        return a <= b;
    case C_GT:
        return a > b;
    case C_GE:
        return a >= b;
    case C_EQU:
        return is_unordered || a == b;
    case C_NEU:
        return is_unordered || a != b;
    case C_LTU:
        return is_unordered || a < b;
    case C_LEU:
        return is_unordered || a <= b;
    case C_GTU:
        return is_unordered || a > b;
    case C_GEU:
        return is_unordered || a >= b;
    case C_NUM:
        return !is_unordered;
    default:
        return is_unordered;
    }
}

static bool compare_integers(unsigned int compare, uint64_t a, uint64_t b, bool is_signed)
{
    bool is_less = is_signed ? (int64_t)a < (int64_t)b : a < b;

    switch (compare) {
    case C_EQ:
        return a == b;
    case C_NE:
        return a != b;
    case C_LT:
        return is_less;
    case C_LE:
        return is_less || a == b;
    case C_GT:
        return !is_less && a != b;
    default:
        return !is_less;
    }
}

/* .lo and .hi are said as of a product, too. */
static unsigned int comparison(const struct instruction *at)
{
    if (at->compare != C_NONE)
        return at->compare;
    return at->flags & FLAG_LO ? C_LT : C_GT;
}

static bool compare(const struct thread *thread, const struct instruction *at,
                    const struct operand *operands)
{
    unsigned int type = at->second;

    if (types[type].is_float)
        return compare_floats(comparison(at),
                              float_operand(thread, &operands[0], type, at->flags & FLAG_FTZ),
                              float_operand(thread, &operands[1], type, at->flags & FLAG_FTZ));
    return compare_integers(comparison(at), get_as(thread, &operands[0], type),
                            get_as(thread, &operands[1], type), types[type].is_signed);
}

/* With a third operand, a predicate. */
static bool join(const struct instruction *at, bool is, bool other)
{
    if (at->how == HOW_AND)
        return is && other;
    if (at->how == HOW_OR)
        return is || other;
    return at->how == HOW_XOR ? is != other : is;
}

int run_setp(struct thread *thread, const struct instruction *at)
{
    unsigned int first = at->flags & FLAG_PAIR ? 2 : 1;
    bool is = compare(thread, at, &at->a[first]);
    bool other = get(thread, &at->a[first + 2]);

    put(thread, &at->a[0], T_PRED, join(at, is, other));
    if (first == 2)
        put(thread, &at->a[1], T_PRED, join(at, !is, other));
    return STEP_ON;
}

int run_set(struct thread *thread, const struct instruction *at)
{
    bool is = join(at, compare(thread, at, &at->a[1]), get(thread, &at->a[3]));
    uint64_t yes = types[at->type].is_float ? bits_of_float(1) : UINT64_MAX;

    put(thread, &at->a[0], at->type, is ? yes : 0);
    return STEP_ON;
}

int run_selp(struct thread *thread, const struct instruction *at)
{
    put(thread, &at->a[0], at->type, get(thread, &at->a[get(thread, &at->a[3]) ? 1 : 2]));
    return STEP_ON;
}

/* By the sign of the third. */
int run_slct(struct thread *thread, const struct instruction *at)
{
    bool is_first = types[at->second].is_float
                        ? float_operand(thread, &at->a[3], at->second, true) >= 0
                        : widen(get(thread, &at->a[3]), 4) >= 0;

    put(thread, &at->a[0], at->type, get(thread, &at->a[is_first ? 1 : 2]));
    return STEP_ON;
}

/* Of one value, or between one and the parts of it. */
int run_mov(struct thread *thread, const struct instruction *at)
{
    static const uint8_t parts[] = {
        [0] = T_B8, [1] = T_B8, [2] = T_B16, [3] = T_B16, [4] = T_B32, [8] = T_B64};
    unsigned int width = at->width > 1 ? at->width : 1;
    unsigned int bytes = types[at->type].bytes / width;
    uint64_t value = 0;

    if (width == 1) {
        put(thread, &at->a[0], at->type, get(thread, &at->a[1]));
    } else if (at->flags & FLAG_PACKS) {
        for (unsigned int i = 0; i < width; i++)
            value |= cut(get(thread, &at->a[1 + i]), bytes) << (8 * bytes * i & 63);
        put(thread, &at->a[0], at->type, value);
    } else {
        value = get(thread, &at->a[width]);
        for (unsigned int i = 0; i < width; i++)
            put(thread, &at->a[i], parts[bytes > 4 ? 4 : bytes], value >> (8 * bytes * i & 63));
    }
    return STEP_ON;
}

static uint64_t window_of(const struct thread *thread, unsigned int space)
{
    if (space == SPACE_SHARED)
        return SHARED_WINDOW;
    if (space == SPACE_PARAM)
        return thread->frames[thread->depth - 1].function->is_kernel ? PARAM_WINDOW : LOCAL_WINDOW;
    return space == SPACE_LOCAL ? LOCAL_WINDOW : 0;
}

int run_cvta(struct thread *thread, const struct instruction *at)
{
    uint64_t address = get(thread, &at->a[1]), window = window_of(thread, at->space);

    if (at->a[1].kind == OPERAND_REGISTER)
        address += (uint64_t)at->a[1].offset;
    put(thread, &at->a[0], at->type, at->flags & FLAG_TO ? address - window : address + window);
    return STEP_ON;
}

int run_isspacep(struct thread *thread, const struct instruction *at)
{
    uint64_t address = get(thread, &at->a[1]), window = window_of(thread, at->space);
    bool is = window ? address - window < WINDOW_BYTES
                     : address >= CODE_WINDOW + WINDOW_BYTES || address < SHARED_WINDOW;

    put(thread, &at->a[0], T_PRED, is);
    return STEP_ON;
}
