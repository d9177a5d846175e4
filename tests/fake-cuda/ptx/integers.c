// SPDX-License-Identifier: MIT
/* Instructions of integers and bits. */
#include "inside.h"

#define INTEGER(name) int run_##name(struct thread *thread, const struct instruction *at)
#define A             get_as(thread, &at->a[1], at->type)
#define B             get_as(thread, &at->a[2], at->type)
#define C             get_as(thread, &at->a[3], at->type)
#define PUT(value)                                                                                 \
    do {                                                                                           \
        put(thread, &at->a[0], at->type, (value));                                                 \
        return STEP_ON;                                                                            \
    } while (0)
#define BITS      (8u * types[at->type].bytes)
#define IS_SIGNED (types[at->type].is_signed)

typedef __int128 wide;
typedef unsigned __int128 unsigned_wide;

static wide wide_of(uint64_t value, const struct instruction *at)
{
    return IS_SIGNED ? (wide)(int64_t)value : (wide)value;
}

/* To what the type holds. */
static uint64_t clamp(wide value, const struct instruction *at)
{
    wide most = IS_SIGNED ? ((wide)1 << (BITS - 1)) - 1 : ((wide)1 << BITS) - 1;
    wide least = IS_SIGNED ? -((wide)1 << (BITS - 1)) : 0;

    return (uint64_t)(value > most ? most : value < least ? least : value);
}

/* The sum, and the carry out of it. */
static uint64_t add_with_carry(struct thread *thread, const struct instruction *at, uint64_t a,
                               uint64_t b, bool carry)
{
    unsigned_wide sum =
        (unsigned_wide)cut(a, types[at->type].bytes) + cut(b, types[at->type].bytes) + carry;

    if (at->flags & FLAG_CARRY)
        thread->carry = (sum >> BITS) != 0;
    return (uint64_t)sum;
}

static uint64_t subtract_with_borrow(struct thread *thread, const struct instruction *at,
                                     uint64_t a, uint64_t b, bool borrow)
{
    unsigned_wide wanted = (unsigned_wide)cut(b, types[at->type].bytes) + borrow;

    if (at->flags & FLAG_CARRY)
        thread->carry = wanted > cut(a, types[at->type].bytes);
    return cut(a, types[at->type].bytes) - (uint64_t)wanted;
}

INTEGER(add)
{
    if (at->flags & FLAG_SAT)
        PUT(clamp(wide_of(A, at) + wide_of(B, at), at));
    if (at->flags & FLAG_CARRY)
        PUT(add_with_carry(thread, at, A, B, false));
    PUT(A + B);
}

INTEGER(sub)
{
    if (at->flags & FLAG_SAT)
        PUT(clamp(wide_of(A, at) - wide_of(B, at), at));
    if (at->flags & FLAG_CARRY)
        PUT(subtract_with_borrow(thread, at, A, B, false));
    PUT(A - B);
}

INTEGER(addc)
{
    PUT(add_with_carry(thread, at, A, B, thread->carry));
}

INTEGER(subc)
{
    PUT(subtract_with_borrow(thread, at, A, B, thread->carry));
}

/* The half that the instruction wants. */
static uint64_t product(const struct instruction *at, uint64_t a, uint64_t b)
{
    unsigned_wide all = (unsigned_wide)wide_of(a, at) * (unsigned_wide)wide_of(b, at);

    return (uint64_t)(at->flags & FLAG_HI ? all >> BITS : all);
}

static void put_wide(struct thread *thread, const struct instruction *at, uint64_t value)
{
    static const uint8_t wider[] = {[1] = T_S16, [2] = T_S32, [4] = T_S64};
    static const uint8_t wider_unsigned[] = {[1] = T_U16, [2] = T_U32, [4] = T_U64};
    unsigned int bytes = types[at->type].bytes > 4 ? 4 : types[at->type].bytes;

    put(thread, &at->a[0], IS_SIGNED ? wider[bytes] : wider_unsigned[bytes], value);
}

INTEGER(mul)
{
    if (at->flags & FLAG_WIDE)
        put_wide(thread, at, A * B);
    else
        put(thread, &at->a[0], at->type, product(at, A, B));
    return STEP_ON;
}

INTEGER(mad)
{
    if (at->flags & FLAG_WIDE) {
        put_wide(thread, at, A * B + get(thread, &at->a[3]));
        return STEP_ON;
    }
    if (at->flags & FLAG_SAT)
        PUT(clamp((wide)widen(product(at, A, B), types[at->type].bytes) + wide_of(C, at), at));
    if (at->flags & FLAG_CARRY)
        PUT(add_with_carry(thread, at, product(at, A, B), C, false));
    PUT(product(at, A, B) + C);
}

INTEGER(madc)
{
    PUT(add_with_carry(thread, at, product(at, A, B), C, thread->carry));
}

static uint64_t narrow24(uint64_t value, const struct instruction *at)
{
    return IS_SIGNED ? (uint64_t)((int64_t)(value << 40) >> 40) : value & 0xffffff;
}

static uint64_t product24(const struct instruction *at, uint64_t a, uint64_t b)
{
    uint64_t all = narrow24(a, at) * narrow24(b, at);

    return at->flags & FLAG_HI ? all >> 16 : all;
}

INTEGER(mul24)
{
    PUT(product24(at, A, B));
}

INTEGER(mad24)
{
    PUT(product24(at, A, B) + C);
}

/* Nothing is said of a division by zero: all bits are set, as the hardware does it. */
INTEGER(div)
{
    uint64_t a = A, b = B;

    if (!b)
        PUT(UINT64_MAX);
    PUT((uint64_t)(wide_of(a, at) / wide_of(b, at)));
}

INTEGER(rem)
{
    uint64_t a = A, b = B;

    if (!b)
        PUT(UINT64_MAX);
    PUT((uint64_t)(wide_of(a, at) % wide_of(b, at)));
}

INTEGER(abs)
{
    PUT((int64_t)A < 0 ? 0 - A : A);
}

INTEGER(neg)
{
    PUT(0 - A);
}

INTEGER(min)
{
    PUT(wide_of(A, at) < wide_of(B, at) ? A : B);
}

INTEGER(max)
{
    uint64_t value = wide_of(A, at) > wide_of(B, at) ? A : B;

    PUT((at->flags & FLAG_RELU) && (int64_t)value < 0 ? 0 : value);
}

INTEGER(and)
{
    PUT(A & B);
}

INTEGER(or)
{
    PUT(A | B);
}

INTEGER(xor)
{
    PUT(A ^ B);
}

INTEGER(not)
{
    PUT(at->type == T_PRED ? !A : ~A);
}

INTEGER(cnot)
{
    PUT(!A);
}

INTEGER(shl)
{
    uint64_t by = cut(get(thread, &at->a[2]), 4);

    PUT(by < BITS ? A << by : 0);
}

INTEGER(shr)
{
    uint64_t by = cut(get(thread, &at->a[2]), 4);

    by = by < BITS ? by : BITS - 1;
    if (IS_SIGNED)
        PUT((uint64_t)((int64_t)A >> by));
    PUT(cut(get(thread, &at->a[2]), 4) < BITS ? A >> by : 0);
}

/* A funnel: of b:a, moved by c. */
INTEGER(shf)
{
    uint64_t both = A | B << 32, by = cut(get(thread, &at->a[3]), 4);

    by = at->flags & FLAG_WRAP ? by & 31 : by > 32 ? 32 : by;
    put(thread, &at->a[0], T_B32, at->flags & FLAG_LEFT ? (both << by) >> 32 : both >> by);
    return STEP_ON;
}

INTEGER(popc)
{
    put(thread, &at->a[0], T_U32, (uint64_t)__builtin_popcountll(A));
    return STEP_ON;
}

INTEGER(clz)
{
    uint64_t a = A;

    put(thread, &at->a[0], T_U32, a ? (uint64_t)__builtin_clzll(a) - (64 - BITS) : BITS);
    return STEP_ON;
}

/* The highest bit that is not the sign's. */
INTEGER(bfind)
{
    uint64_t a = cut((int64_t)A < 0 && IS_SIGNED ? ~A : A, types[at->type].bytes);
    uint64_t found = a ? 63 - (uint64_t)__builtin_clzll(a) : UINT32_MAX;

    if ((at->flags & FLAG_SHIFT) && a)
        found = BITS - 1 - found;
    put(thread, &at->a[0], T_U32, found);
    return STEP_ON;
}

INTEGER(brev)
{
    uint64_t a = A, reversed = 0;

    for (unsigned int i = 0; i < BITS; i++)
        reversed |= (a >> i & 1) << (BITS - 1 - i);
    PUT(reversed);
}

static uint64_t ones(uint64_t count)
{
    return count >= 64 ? UINT64_MAX : (1ull << count) - 1;
}

INTEGER(bfe)
{
    uint64_t a = cut(get(thread, &at->a[1]), types[at->type].bytes);
    uint64_t from = get(thread, &at->a[2]) & 0xff, count = get(thread, &at->a[3]) & 0xff;
    uint64_t sign = from + count ? from + count - 1 : 0;
    uint64_t value = from < BITS ? a >> from & ones(count) : 0;
    bool is_set;

    sign = sign < BITS ? sign : BITS - 1;
    is_set = IS_SIGNED && count && (a >> sign & 1);
    if (is_set)
        value |= ~ones(from + count > BITS ? (from < BITS ? BITS - from : 0) : count);
    PUT(value);
}

INTEGER(bfi)
{
    uint64_t from = get(thread, &at->a[3]) & 0xff, count = get(thread, &at->a[4]) & 0xff;
    uint64_t mask = from < BITS ? ones(count) << from : 0;

    PUT((B & ~mask) | (from < BITS ? A << from & mask : 0));
}

INTEGER(sad)
{
    uint64_t apart = wide_of(A, at) > wide_of(B, at) ? A - B : B - A;

    PUT(C + apart);
}

static int64_t part_of(uint64_t value, unsigned int number, unsigned int bytes, bool is_signed)
{
    uint64_t part = value >> (8 * bytes * number);

    return is_signed ? widen(part, bytes) : (int64_t)cut(part, bytes);
}

INTEGER(dp4a)
{
    uint64_t a = get(thread, &at->a[1]), b = get(thread, &at->a[2]);
    int64_t sum = (int64_t)get(thread, &at->a[3]);

    for (unsigned int i = 0; i < 4; i++)
        sum += part_of(a, i, 1, IS_SIGNED) * part_of(b, i, 1, types[at->second].is_signed);
    put(thread, &at->a[0], T_B32, (uint64_t)sum);
    return STEP_ON;
}

INTEGER(dp2a)
{
    uint64_t a = get(thread, &at->a[1]);
    uint64_t b = get(thread, &at->a[2]) >> (at->flags & FLAG_HI ? 16 : 0);
    int64_t sum = (int64_t)get(thread, &at->a[3]);

    for (unsigned int i = 0; i < 2; i++)
        sum += part_of(a, i, 2, IS_SIGNED) * part_of(b, i, 1, types[at->second].is_signed);
    put(thread, &at->a[0], T_B32, (uint64_t)sum);
    return STEP_ON;
}

/* Which of the eight bytes becomes byte @i; by the mode, of compare. */
static unsigned int choose_byte(const struct instruction *at, uint64_t control, unsigned int i)
{
    unsigned int n = control & 3;

    switch (at->compare) {
    case 1:
        return n + i;
    case 2:
        return (8 + n - i) & 7;
    case 3:
        return n;
    case 4:
        return i > n ? i : n;
    case 5:
        return i < n ? i : n;
    case 6:
        return (n & 1) * 2 + (i & 1);
    default:
        return control >> (4 * i) & 15;
    }
}

INTEGER(prmt)
{
    uint64_t both = cut(get(thread, &at->a[1]), 4) | get(thread, &at->a[2]) << 32;
    uint64_t control = get(thread, &at->a[3]), value = 0;

    for (unsigned int i = 0; i < 4; i++) {
        unsigned int which = choose_byte(at, control, i);
        uint64_t byte = both >> (8 * (which & 7)) & 0xff;

        if (which & 8)
            byte = byte & 0x80 ? 0xff : 0;
        value |= byte << (8 * i);
    }
    put(thread, &at->a[0], T_B32, value);
    return STEP_ON;
}

INTEGER(lop3)
{
    uint64_t a = get(thread, &at->a[1]), b = get(thread, &at->a[2]), c = get(thread, &at->a[3]);
    uint64_t table = get(thread, &at->a[4]), value = 0;

    for (unsigned int i = 0; i < 8; i++)
        if (table >> i & 1)
            value |= (i & 4 ? a : ~a) & (i & 2 ? b : ~b) & (i & 1 ? c : ~c);
    put(thread, &at->a[0], T_B32, value);
    return STEP_ON;
}

INTEGER(bmsk)
{
    uint64_t from = cut(get(thread, &at->a[1]), 4), count = cut(get(thread, &at->a[2]), 4);

    if (at->flags & FLAG_WRAP) {
        from &= 31;
        count &= 31;
    }
    put(thread, &at->a[0], T_B32, from < 32 ? ones(count) << from : 0);
    return STEP_ON;
}

INTEGER(szext)
{
    uint64_t count = cut(get(thread, &at->a[2]), 4);
    uint64_t value;

    count = at->flags & FLAG_WRAP ? count & 31 : count > 32 ? 32 : count;
    value = cut(get(thread, &at->a[1]), 4) & ones(count);
    if (IS_SIGNED && count && (value >> (count - 1) & 1))
        value |= ~ones(count);
    PUT(value);
}

/* The n-th bit that is set, from a base upwards or downwards. */
INTEGER(fns)
{
    uint64_t mask = cut(get(thread, &at->a[1]), 4), base = get(thread, &at->a[2]) & 31;
    int64_t wanted = widen(get(thread, &at->a[3]), 4);
    int step = wanted < 0 ? -1 : 1;
    uint64_t found = UINT32_MAX;

    wanted = wanted < 0 ? -wanted : wanted ? wanted : 1;
    for (int64_t i = (int64_t)base; i >= 0 && i < 32 && found == UINT32_MAX; i += step)
        if ((mask >> i & 1) && !--wanted)
            found = (uint64_t)i;
    put(thread, &at->a[0], T_B32, found);
    return STEP_ON;
}
