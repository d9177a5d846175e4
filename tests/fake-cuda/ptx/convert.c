// SPDX-License-Identifier: MIT
/* cvt: between integers and floats of all widths. */
#include "inside.h"

#include <math.h>

static double read_float(const struct thread *thread, const struct operand *operand,
                         unsigned int type, bool flushes)
{
    uint64_t bits = get(thread, operand);
    double value;

    if (type == T_F64)
        return double_of(bits);
    if (type == T_F16)
        return (double)half_read(bits);
    value = (double)(type == T_BF16 ? bfloat_read(bits) : float_of(bits));
    return flushes && fabs(value) < 0x1p-126 ? copysign(0, value) : value;
}

static double round_to_integer(double value, unsigned int rounding)
{
    switch (rounding) {
    case ROUND_ZERO:
        return trunc(value);
    case ROUND_DOWN:
        return floor(value);
    case ROUND_UP:
        return ceil(value);
    default:
        return rint(value);
    }
}

/* What does not fit becomes what fits best; no number becomes 0. */
static uint64_t integer_of(double value, unsigned int type)
{
    unsigned int bits = 8u * types[type].bytes;
    double most = ldexp(1, (int)bits - types[type].is_signed);

    if (isnan(value))
        return 0;
    if (types[type].is_signed) {
        if (value >= most)
            return UINT64_MAX >> (65 - bits);
        return value < -most ? 1ull << (bits - 1) : (uint64_t)(int64_t)value;
    }
    if (value >= most)
        return UINT64_MAX >> (64 - bits);
    return value <= 0 ? 0 : (uint64_t)value;
}

static uint64_t clamp_integer(uint64_t value, unsigned int from, unsigned int to)
{
    unsigned int bits = 8u * types[to].bytes;
    __int128 wide = types[from].is_signed ? (__int128)(int64_t)value : (__int128)value;
    __int128 most = ((__int128)1 << (bits - types[to].is_signed)) - 1;
    __int128 least = types[to].is_signed ? -most - 1 : 0;

    return (uint64_t)(wide > most ? most : wide < least ? least : wide);
}

/* Rounded once, to the type. */
static uint64_t float_bits_of(double value, unsigned int type, const struct instruction *at)
{
    volatile double wide = value;
    volatile float narrow;

    if (at->flags & FLAG_SAT)
        wide = isnan(value) || value < 0 ? 0 : value > 1 ? 1 : value;
    if ((at->flags & FLAG_RELU) && value < 0)
        wide = 0;
    if (type == T_F64)
        return bits_of_double(wide);
    if (type == T_F16)
        return half_write(wide);
    if (!(at->flags & FLAG_INTEGRAL))
        rounding_set(at->rounding);
    narrow = (float)wide;
    rounding_set(ROUND_NEAREST);
    if (type == T_BF16)
        return at->rounding == ROUND_ZERO ? bits_of_float(narrow) >> 16 : bfloat_write(narrow);
    if ((at->flags & FLAG_FTZ) && fabsf(narrow) < 0x1p-126f)
        narrow = copysignf(0, narrow);
    return bits_of_float(narrow);
}

/* An integer of 64 bits has more of them than a double. */
static uint64_t float_of_integer(uint64_t value, const struct instruction *at)
{
    volatile uint64_t plain = value;
    bool is_signed = types[at->second].is_signed;
    volatile double wide;
    volatile float narrow;
    uint64_t bits;

    rounding_set(at->rounding);
    if (at->type == T_F32) {
        narrow = is_signed ? (float)(int64_t)plain : (float)plain;
        bits = bits_of_float(narrow);
        rounding_set(ROUND_NEAREST);
        return bits;
    }
    wide = is_signed ? (double)(int64_t)plain : (double)plain;
    rounding_set(ROUND_NEAREST);
    return float_bits_of(wide, at->type, at);
}

/* Two floats into one register: the first is the upper one. */
static int convert_pair(struct thread *thread, const struct instruction *at)
{
    unsigned int type = at->type == T_F16X2 ? T_F16 : T_BF16;
    uint64_t high = float_bits_of(read_float(thread, &at->a[1], at->second, false), type, at);
    uint64_t low = float_bits_of(read_float(thread, &at->a[2], at->second, false), type, at);

    put(thread, &at->a[0], at->type, high << 16 | low);
    return STEP_ON;
}

int run_cvt(struct thread *thread, const struct instruction *at)
{
    bool to_float = types[at->type].is_float, from_float = types[at->second].is_float;
    uint64_t value;

    if (at->type == T_F16X2 || at->type == T_BF16X2)
        return convert_pair(thread, at);
    if (from_float) {
        double read = read_float(thread, &at->a[1], at->second, at->flags & FLAG_FTZ);

        if (!to_float || (at->flags & FLAG_INTEGRAL))
            read = round_to_integer(read, at->rounding);
        value = to_float ? float_bits_of(read, at->type, at) : integer_of(read, at->type);
    } else {
        value = get_as(thread, &at->a[1], at->second);
        if (to_float)
            value = float_of_integer(value, at);
        else if (at->flags & FLAG_SAT)
            value = clamp_integer(value, at->second, at->type);
    }
    put(thread, &at->a[0], at->type, value);
    return STEP_ON;
}
