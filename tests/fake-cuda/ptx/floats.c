// SPDX-License-Identifier: MIT
/*
 * Instructions of floats. Sums, products, quotients and roots are rounded as the instruction says;
 * what is only approximate on the card is as exact here as the host's library has it.
 */
#include "inside.h"

#include <fenv.h>
#include <math.h>

void rounding_set(unsigned int rounding)
{
    static const int modes[] = {[ROUND_NEAREST] = FE_TONEAREST,
                                [ROUND_ZERO] = FE_TOWARDZERO,
                                [ROUND_DOWN] = FE_DOWNWARD,
                                [ROUND_UP] = FE_UPWARD};

    fesetround(modes[rounding]);
}

float half_read(uint64_t bits)
{
    uint16_t narrow = (uint16_t)bits;
    _Float16 value;

    memcpy(&value, &narrow, sizeof(value));
    return (float)value;
}

uint64_t half_write(double value)
{
    _Float16 narrow = (_Float16)value;
    uint16_t bits;

    memcpy(&bits, &narrow, sizeof(bits));
    return bits;
}

float bfloat_read(uint64_t bits)
{
    return float_of(bits << 16);
}

/* To the nearest, or to the even one of two. */
uint64_t bfloat_write(float value)
{
    uint64_t bits = bits_of_float(value);

    if (isnan(value))
        return 0x7fff;
    return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}

enum operation {
    DO_ADD,
    DO_SUB,
    DO_MUL,
    DO_DIV,
    DO_FMA,
    DO_MIN,
    DO_MAX,
    DO_ABS,
    DO_NEG,
    DO_RCP,
    DO_SQRT,
    DO_RSQRT,
    DO_SIN,
    DO_COS,
    DO_LG2,
    DO_EX2,
    DO_TANH,
};

/* What is volatile is computed in the mode that is set, and not before. */
#define COMPUTE(name, type, suffix)                                                                \
    static type name(enum operation what, volatile type a, volatile type b, volatile type c)       \
    {                                                                                              \
        volatile type value = a;                                                                   \
                                                                                                   \
        switch (what) {                                                                            \
        case DO_ADD:                                                                               \
            value = a + b;                                                                         \
            break;                                                                                 \
        case DO_SUB:                                                                               \
            value = a - b;                                                                         \
            break;                                                                                 \
        case DO_MUL:                                                                               \
            value = a * b;                                                                         \
            break;                                                                                 \
        case DO_DIV:                                                                               \
            value = a / b;                                                                         \
            break;                                                                                 \
        case DO_FMA:                                                                               \
            value = fma##suffix(a, b, c);                                                          \
            break;                                                                                 \
        case DO_RCP:                                                                               \
            value = 1 / a;                                                                         \
            break;                                                                                 \
        case DO_SQRT:                                                                              \
            value = sqrt##suffix(a);                                                               \
            break;                                                                                 \
        case DO_RSQRT:                                                                             \
            value = (type)(1 / sqrt((double)a));                                                   \
            break;                                                                                 \
        case DO_SIN:                                                                               \
            value = sin##suffix(a);                                                                \
            break;                                                                                 \
        case DO_COS:                                                                               \
            value = cos##suffix(a);                                                                \
            break;                                                                                 \
        case DO_LG2:                                                                               \
            value = log2##suffix(a);                                                               \
            break;                                                                                 \
        case DO_EX2:                                                                               \
            value = exp2##suffix(a);                                                               \
            break;                                                                                 \
        case DO_TANH:                                                                              \
            value = tanh##suffix(a);                                                               \
            break;                                                                                 \
        default:                                                                                   \
            break;                                                                                 \
        }                                                                                          \
        return value;                                                                              \
    }
COMPUTE(compute_single, float, f)
COMPUTE(compute_double, double, )

/* A number before none; a negative zero is less. */
static double choose(double a, double b, bool is_max, bool keeps_nan)
{
    if (isnan(a) || isnan(b))
        return keeps_nan ? (double)NAN : isnan(a) ? b : a;
    if (a == b)
        return (signbit(a) != 0) == is_max ? b : a;
    return (a > b) == is_max ? a : b;
}

static double flush(double value, bool flushes)
{
    return flushes && value != 0 && fabs(value) < 0x1p-126 ? copysign(0, value) : value;
}

static double saturate(double value)
{
    return isnan(value) || value < 0 ? 0 : value > 1 ? 1 : value;
}

/* As the bits of one value of a type. */
static double read_one(unsigned int type, uint64_t bits, bool flushes)
{
    if (type == T_F64)
        return double_of(bits);
    if (type == T_F16)
        return (double)half_read(bits);
    return flush((double)(type == T_BF16 ? bfloat_read(bits) : float_of(bits)), flushes);
}

static uint64_t write_one(unsigned int type, double value, bool flushes)
{
    if (type == T_F64)
        return bits_of_double(value);
    if (type == T_F16)
        return half_write(value);
    if (type == T_BF16)
        return bfloat_write((float)value);
    return bits_of_float((float)flush(value, flushes));
}

/* Halves are computed as doubles, which is exact before their one rounding. */
static uint64_t compute_one(unsigned int type, const struct instruction *at, enum operation what,
                            const uint64_t in[3])
{
    bool flushes = at->flags & FLAG_FTZ;
    double a = read_one(type, in[0], flushes), b = read_one(type, in[1], flushes);
    double c = read_one(type, in[2], flushes), value;

    if (what == DO_ABS || what == DO_NEG) {
        uint64_t sign = 1ull << (8 * types[type].bytes - 1);

        return what == DO_ABS ? in[0] & ~sign : in[0] ^ sign;
    }
    if (what == DO_MIN || what == DO_MAX) {
        value = choose(a, b, what == DO_MAX, at->flags & FLAG_NAN);
    } else {
        if (at->rounding != ROUND_NEAREST)
            rounding_set(at->rounding);
        value = type == T_F32 ? (double)compute_single(what, (float)a, (float)b, (float)c)
                              : compute_double(what, a, b, c);
        if (at->rounding != ROUND_NEAREST)
            rounding_set(ROUND_NEAREST);
    }
    if (at->flags & FLAG_SAT)
        value = saturate(value);
    if ((at->flags & FLAG_RELU) && value < 0)
        value = 0;
    return write_one(type, value, flushes);
}

/* Two values in one register. */
static unsigned int lane_type(unsigned int type)
{
    return type == T_F16X2 ? T_F16 : type == T_BF16X2 ? T_BF16 : type == T_F32X2 ? T_F32 : T_NONE;
}

static uint64_t compute_lanes(const struct instruction *at, enum operation what,
                              const uint64_t in[3])
{
    unsigned int type = lane_type(at->type), bits = 4u * types[at->type].bytes;
    uint64_t low[3], high[3];

    if (type == T_NONE)
        return compute_one(at->type, at, what, in);
    for (unsigned int i = 0; i < 3; i++) {
        low[i] = cut(in[i], bits / 8);
        high[i] = cut(in[i] >> bits, bits / 8);
    }
    return compute_one(type, at, what, low) | compute_one(type, at, what, high) << bits;
}

/* What most kernels do most. */
static bool compute_plainly(struct thread *thread, const struct instruction *at,
                            enum operation what)
{
    float a, b, value;

    if (at->type != T_F32 || at->rounding != ROUND_NEAREST ||
        (at->flags & (FLAG_FTZ | FLAG_SAT | FLAG_RELU)))
        return false;
    a = float_of(get(thread, &at->a[1]));
    b = float_of(get(thread, &at->a[2]));
    switch (what) {
    case DO_ADD:
        value = a + b;
        break;
    case DO_SUB:
        value = a - b;
        break;
    case DO_MUL:
        value = a * b;
        break;
    case DO_FMA:
        value = fmaf(a, b, float_of(get(thread, &at->a[3])));
        break;
    default:
        return false;
    }
    put(thread, &at->a[0], T_F32, bits_of_float(value));
    return true;
}

static int compute(struct thread *thread, const struct instruction *at, enum operation what)
{
    const uint64_t in[3] = {get(thread, &at->a[1]), get(thread, &at->a[2]), get(thread, &at->a[3])};

    if (!compute_plainly(thread, at, what))
        put(thread, &at->a[0], at->type, compute_lanes(at, what, in));
    return STEP_ON;
}

#define FLOATS(name, what)                                                                         \
    int run_##name(struct thread *thread, const struct instruction *at)                            \
    {                                                                                              \
        return compute(thread, at, what);                                                          \
    }
FLOATS(float_add, DO_ADD)
FLOATS(float_sub, DO_SUB)
FLOATS(float_mul, DO_MUL)
FLOATS(float_div, DO_DIV)
FLOATS(float_abs, DO_ABS)
FLOATS(float_neg, DO_NEG)
FLOATS(fma, DO_FMA)
FLOATS(rcp, DO_RCP)
FLOATS(sqrt, DO_SQRT)
FLOATS(rsqrt, DO_RSQRT)
FLOATS(sin, DO_SIN)
FLOATS(cos, DO_COS)
FLOATS(lg2, DO_LG2)
FLOATS(ex2, DO_EX2)
FLOATS(tanh, DO_TANH)

/* Of two, or of three. */
static int compute_extreme(struct thread *thread, const struct instruction *at, enum operation what)
{
    uint64_t in[3] = {get(thread, &at->a[1]), get(thread, &at->a[2]), 0};

    in[0] = compute_lanes(at, what, in);
    if (at->count > 3) {
        in[1] = get(thread, &at->a[3]);
        in[0] = compute_lanes(at, what, in);
    }
    put(thread, &at->a[0], at->type, in[0]);
    return STEP_ON;
}

int run_float_min(struct thread *thread, const struct instruction *at)
{
    return compute_extreme(thread, at, DO_MIN);
}

int run_float_max(struct thread *thread, const struct instruction *at)
{
    return compute_extreme(thread, at, DO_MAX);
}

uint64_t float_add(unsigned int type, uint64_t a, uint64_t b)
{
    const struct instruction at = {.type = (uint8_t)type};
    const uint64_t in[3] = {a, b, 0};

    return compute_lanes(&at, DO_ADD, in);
}

uint64_t float_min_max(unsigned int type, uint64_t a, uint64_t b, bool is_max)
{
    const struct instruction at = {.type = (uint8_t)type};
    const uint64_t in[3] = {a, b, 0};

    return compute_lanes(&at, is_max ? DO_MAX : DO_MIN, in);
}

int run_testp(struct thread *thread, const struct instruction *at)
{
    double value = read_one(at->type, get(thread, &at->a[1]), false);
    double least = at->type == T_F32 ? 0x1p-126 : 0x1p-1022;
    bool is = false;

    if (at->compare == 1 || at->compare == 2)
        is = at->compare == 1 ? isfinite(value) : isinf(value);
    else if (at->compare == 3 || at->compare == 4)
        is = isnan(value) == (at->compare == 4);
    else if (at->compare == 5)
        is = isfinite(value) && fabs(value) >= least;
    else
        is = value != 0 && fabs(value) < least;
    put(thread, &at->a[0], T_PRED, is);
    return STEP_ON;
}

/* The sign of the first, the rest of the second. */
int run_copysign(struct thread *thread, const struct instruction *at)
{
    uint64_t sign = 1ull << (8 * types[at->type].bytes - 1);

    put(thread, &at->a[0], at->type,
        (get(thread, &at->a[1]) & sign) | (get(thread, &at->a[2]) & ~sign));
    return STEP_ON;
}
