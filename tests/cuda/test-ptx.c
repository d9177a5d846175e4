// SPDX-License-Identifier: MIT
/*
 * The interpreter of PTX by itself: each kernel here is PTX written for it, and what it computes is
 * compared with what the host computes.
 */
#include "ptx/ptx.h"

#include <glib.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define HEADER  ".version 8.0\n.target sm_80\n.address_size 64\n"
#define CARD    0x200000000000ull
#define CARD_MB 1
#define MOST    20000000u

static uint8_t card[CARD_MB << 20];

static struct ptx_range find(void *user, uint64_t address)
{
    (void)user;
    if (address - CARD < sizeof(card))
        return (struct ptx_range){CARD, sizeof(card), card};
    return (struct ptx_range){0};
}

static struct ptx_module *parse(const char *text)
{
    struct ptx_error error;
    struct ptx_module *module = ptx_parse(text, strlen(text), &error);

    if (!module)
        g_error("line %u: %s", error.line, error.reason);
    return module;
}

/* Kernel "k" of the text, with parameters as bytes. */
static enum ptx_result launch(const char *text, uint32_t blocks, uint32_t threads,
                              const void *parameters, uint32_t dynamic)
{
    struct ptx_module *module = parse(text);
    struct ptx_launch is = {.module = module,
                            .kernel = ptx_kernel(module, "k"),
                            .grid = {blocks, 1, 1},
                            .block = {threads, 1, 1},
                            .dynamic_shared = dynamic,
                            .parameters = parameters,
                            .find = find,
                            .steps = MOST};
    uint64_t place = CARD + (512u << 10);
    enum ptx_result result;

    g_assert_nonnull(is.kernel);
    for (struct ptx_variable *at = ptx_variables(module); at; at = at->next) {
        at->address = place;
        place += (at->bytes + 255) / 256 * 256;
    }
    for (struct ptx_variable *at = ptx_variables(module); at; at = at->next)
        ptx_initialise(module, at, card + (at->address - CARD));
    result = ptx_run(&is);
    if (result != PTX_DONE && *is.error.reason)
        g_test_message("line %u: %s", is.error.line, is.error.reason);
    ptx_free(module);
    return result;
}

/* Most kernels here have one parameter: where they read and write. */
#define BEGIN                                                                                      \
    HEADER                                                                                         \
    ".visible .entry k(.param .u64 at) {\n"                                                        \
    " .reg .pred %p<8>; .reg .b16 %h<8>; .reg .b32 %r<40>; .reg .b64 %rd<20>;\n"                   \
    " .reg .f32 %f<20>; .reg .f64 %d<20>;\n"                                                       \
    " ld.param.u64 %rd1, [at]; cvta.to.global.u64 %rd1, %rd1;\n"                                   \
    " mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x;\n"                         \
    " mad.lo.s32 %r4, %r2, %r3, %r1; mul.wide.u32 %rd2, %r4, 4; add.s64 %rd2, %rd1, %rd2;\n"
#define END " ret;\n}\n"

static enum ptx_result run(const char *text, uint32_t blocks, uint32_t threads)
{
    const uint64_t at = CARD;

    return launch(text, blocks, threads, &at, 0);
}

#define done(result) g_assert_cmpint(result, ==, PTX_DONE)

/* One thread computes what @code says of %r10 and %r11, into %r12. */
static uint32_t compute(const char *code, uint32_t a, uint32_t b)
{
    g_autofree char *text =
        g_strconcat(BEGIN " ld.global.u32 %r10, [%rd1]; ld.global.u32 %r11, [%rd1+4];\n", code,
                    " st.global.u32 [%rd1+8], %r12;\n", END, NULL);
    uint32_t *words = (uint32_t *)card;

    words[0] = a;
    words[1] = b;
    done(run(text, 1, 1));
    return words[2];
}

static uint64_t compute_long(const char *code, uint64_t a, uint64_t b)
{
    g_autofree char *text =
        g_strconcat(BEGIN " ld.global.u64 %rd10, [%rd1]; ld.global.u64 %rd11, [%rd1+8];\n", code,
                    " st.global.u64 [%rd1+16], %rd12;\n", END, NULL);
    uint64_t *words = (uint64_t *)card;

    words[0] = a;
    words[1] = b;
    done(run(text, 1, 1));
    return words[2];
}

static uint32_t bits_of(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

static uint32_t reversed(uint32_t a)
{
    uint32_t made = 0;

    for (int i = 0; i < 32; i++)
        made |= (a >> i & 1) << (31 - i);
    return made;
}

static void test_integers(void)
{
    static const uint32_t values[] = {0,          1,          7,          31,         32,
                                      0x7fffffff, 0x80000000, 0xfffffff9, 0xffffffff, 0x12345678};

    for (unsigned int i = 0; i < G_N_ELEMENTS(values); i++)
        for (unsigned int k = 0; k < G_N_ELEMENTS(values); k++) {
            uint32_t a = values[i], b = values[k];
            int32_t x = (int32_t)a, y = (int32_t)b;
            int64_t sum = (int64_t)x + y;

#define R(code, wanted)                                                                            \
    g_assert_cmphex(compute(code " %r12, %r10, %r11;", a, b), ==, (uint32_t)(wanted))
            R("add.s32", a + b);
            R("sub.u32", a - b);
            R("add.sat.s32", sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : sum);
            R("mul.lo.u32", a * b);
            R("mul.hi.u32", (uint64_t)a * b >> 32);
            R("mul.hi.s32", (uint64_t)((int64_t)x * y) >> 32);
            R("min.s32", x < y ? x : y);
            R("max.u32", a > b ? a : b);
            R("xor.b32", a ^ b);
            R("shl.b32", b < 32 ? a << b : 0);
            R("shr.u32", b < 32 ? a >> b : 0);
            R("shr.s32", x >> (b < 32 ? b : 31));
            if (b) {
                R("div.u32", a / b);
                R("rem.u32", a % b);
                R("div.s32", (int64_t)x / y);
                R("rem.s32", (int64_t)x % y);
            }
#undef R
        }
}

static void test_bits(void)
{
    static const uint32_t values[] = {0, 1, 0x80000000, 0xffffffff, 0x12345678, 0x00f0};

    for (unsigned int i = 0; i < G_N_ELEMENTS(values); i++) {
        uint32_t a = values[i];

#define R(code, wanted) g_assert_cmphex(compute(code, a, 5), ==, (uint32_t)(wanted))
        R("popc.b32 %r12, %r10;", __builtin_popcount(a));
        R("clz.b32 %r12, %r10;", a ? __builtin_clz(a) : 32);
        R("brev.b32 %r12, %r10;", reversed(a));
        R("bfe.u32 %r12, %r10, %r11, 8;", a >> 5 & 0xff);
        R("bfe.s32 %r12, %r10, %r11, 8;", (int8_t)(a >> 5));
        R("bfi.b32 %r12, 21, %r10, %r11, 8;", (a & ~0x1fe0u) | 21 << 5);
        R("lop3.b32 %r12, %r10, %r11, 12, 0x96;", a ^ 5 ^ 12);
        R("prmt.b32 %r12, %r10, %r11, 0x4321;", a >> 8 | 5u << 24);
        R("shf.l.wrap.b32 %r12, %r10, %r11, 8;", 5u << 8 | a >> 24);
        R("bfind.u32 %r12, %r10;", a ? 31 - __builtin_clz(a) : -1);
        R("dp4a.u32.u32 %r12, %r10, 0x01010101, 1;",
          1 + (a & 255) + (a >> 8 & 255) + (a >> 16 & 255) + (a >> 24));
#undef R
    }
}

static void compare_wide(uint64_t a, uint64_t b)
{

#define R(code, wanted) g_assert_cmphex(compute_long(code, a, b), ==, (uint64_t)(wanted))
    R("add.s64 %rd12, %rd10, %rd11;", a + b);
    R("mul.hi.u64 %rd12, %rd10, %rd11;", (uint64_t)((unsigned __int128)a * b >> 64));
    R("mul.lo.s64 %rd12, %rd10, %rd11;", a * b);
    R("shr.s64 %rd12, %rd10, 60;", (int64_t)a >> 60);
    R("mad.hi.u64 %rd12, %rd10, %rd11, 5;", (uint64_t)((unsigned __int128)a * b >> 64) + 5);
    R("mov.b64 {%r10, %r11}, %rd10; mov.b64 %rd12, {%r11, %r10};", a << 32 | a >> 32);
    /* In halves, with carries. */
    R("mov.b64 {%r10, %r11}, %rd10; mov.b64 {%r12, %r13}, %rd11; add.cc.u32 %r14, %r10, %r12;"
      " addc.u32 %r15, %r11, %r13; mov.b64 %rd12, {%r14, %r15};",
      a + b);
    R("mov.b64 {%r10, %r11}, %rd11; mov.b64 {%r12, %r13}, %rd10; sub.cc.u32 %r14, %r10, %r12;"
      " subc.u32 %r15, %r11, %r13; mov.b64 %rd12, {%r14, %r15};",
      b - a);
    /* A product of 64 bits in quarters. */
    R("mov.b64 {%r10, %r11}, %rd10; mov.b64 {%r12, %r13}, %rd11; mul.lo.u32 %r14, %r10, %r12;"
      " mul.hi.u32 %r15, %r10, %r12; mad.lo.cc.u32 %r15, %r10, %r13, %r15;"
      " mad.lo.cc.u32 %r15, %r11, %r12, %r15; mov.b64 %rd12, {%r14, %r15};",
      a * b);
#undef R
}

/* Halves whose sums carry, and whose differences borrow. */
static void test_wide(void)
{
    const uint64_t a = 0xfedcba9876543210u, b = 0x0123456789abcdefu;

    compare_wide(a, b);
    compare_wide(b, a);
    compare_wide(a, 0x1111111189abcdf0u);
    compare_wide(0x00000000ffffffffu, 1);
#define R(code, wanted) g_assert_cmphex(compute_long(code, a, b), ==, (uint64_t)(wanted))
    /* Narrow values are extended. */
    R("ld.global.s8 %r10, [%rd1+1]; cvt.s64.s32 %rd12, %r10;", 0x32);
    R("ld.global.s8 %r10, [%rd1+3]; cvt.s64.s32 %rd12, %r10;", 0x76);
    R("ld.global.s16 %r10, [%rd1+6]; cvt.s64.s32 %rd12, %r10;", (int64_t)-292);
    R("cvt.u64.u16 %rd12, %rd10;", 0x3210);
#undef R
}

static void test_floats(void)
{
    static const float values[] = {0, 1, -1.5f, 3.25f, 1e30f, -1e-30f, 0.1f};

    for (unsigned int i = 0; i < G_N_ELEMENTS(values); i++)
        for (unsigned int k = 0; k < G_N_ELEMENTS(values); k++) {
            float a = values[i], b = values[k];

#define R(code, wanted)                                                                            \
    g_assert_cmphex(compute("mov.b32 %f1, %r10; mov.b32 %f2, %r11; " code " mov.b32 %r12, %f3;",   \
                            bits_of(a), bits_of(b)),                                               \
                    ==, bits_of(wanted))
            R("add.f32 %f3, %f1, %f2;", a + b);
            R("mul.f32 %f3, %f1, %f2;", a * b);
            R("fma.rn.f32 %f3, %f1, %f2, 0f3F800000;", fmaf(a, b, 1));
            R("max.f32 %f3, %f1, %f2;", a > b ? a : b);
            R("neg.f32 %f3, %f1;", -a);
            R("mov.f32 %f3, 0f40490FDB;", 3.14159274f);
            R("selp.f32 %f3, %f1, %f2, 1;", a);
            if (b != 0)
                R("div.rn.f32 %f3, %f1, %f2;", a / b);
            if (a >= 0)
                R("sqrt.rn.f32 %f3, %f1;", sqrtf(a));
#undef R
        }
    /* Directed rounding: 1/3 is between two floats. */
    g_assert_cmphex(compute("div.rm.f32 %f3, 0f3F800000, 0f40400000; mov.b32 %r12, %f3;", 0, 0), ==,
                    0x3eaaaaaa);
    g_assert_cmphex(compute("div.rp.f32 %f3, 0f3F800000, 0f40400000; mov.b32 %r12, %f3;", 0, 0), ==,
                    0x3eaaaaab);
}

static void test_conversions(void)
{
    const float f = -2.5f;

#define R(code, a, wanted) g_assert_cmphex(compute(code, a, 0), ==, (uint32_t)(wanted))
    R("mov.b32 %f1, %r10; cvt.rni.s32.f32 %r12, %f1;", bits_of(f), -2);
    R("mov.b32 %f1, %r10; cvt.rzi.s32.f32 %r12, %f1;", bits_of(f), -2);
    R("mov.b32 %f1, %r10; cvt.rmi.s32.f32 %r12, %f1;", bits_of(f), -3);
    R("mov.b32 %f1, %r10; cvt.rpi.s32.f32 %r12, %f1;", bits_of(2.25f), 3);
    R("mov.b32 %f1, %r10; cvt.rzi.u32.f32 %r12, %f1;", bits_of(f), 0);
    R("mov.b32 %f1, %r10; cvt.rzi.s32.f32 %r12, %f1;", bits_of(1e20f), INT32_MAX);
    R("mov.b32 %f1, %r10; cvt.rzi.s32.f32 %r12, %f1;", bits_of(NAN), 0);
    R("cvt.rn.f32.s32 %f1, %r10; mov.b32 %r12, %f1;", 0xffffffff, bits_of(-1));
    R("cvt.rn.f32.u32 %f1, %r10; mov.b32 %r12, %f1;", 0xffffffff, bits_of(4294967296.0f));
    R("cvt.rz.f32.u32 %f1, %r10; mov.b32 %r12, %f1;", 0xffffffff, bits_of(4294967040.0f));
    R("mov.b32 %f1, %r10; cvt.rn.f16.f32 %h1, %f1; cvt.u32.u16 %r12, %h1;", bits_of(1.5f), 0x3e00);
    R("mov.b32 %f1, %r10; cvt.rn.bf16.f32 %h1, %f1; cvt.u32.u16 %r12, %h1;", bits_of(1.5f), 0x3fc0);
    R("cvt.u16.u32 %h1, %r10; cvt.f32.f16 %f1, %h1; mov.b32 %r12, %f1;", 0x3e00, bits_of(1.5f));
    R("cvt.sat.u8.s32 %r12, %r10;", 300, 255);
    R("cvt.sat.u8.s32 %r12, %r10;", -3, 0);
    R("cvt.s32.s8 %r12, %r10;", 0x1ff, -1);
#undef R
}

/* z[i] = x[i] + y[i], in as many threads as there are numbers, and some more. */
static void test_predicates(void)
{
    static const char text[] =
        HEADER ".visible .entry k(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 n)\n{\n"
               " .reg .pred %p<2>; .reg .f32 %f<4>; .reg .b32 %r<6>; .reg .b64 %rd<11>;\n"
               " ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b]; ld.param.u64 %rd3, [c];\n"
               " ld.param.u32 %r2, [n];\n"
               " mov.u32 %r3, %ctaid.x; mov.u32 %r4, %ntid.x; mov.u32 %r5, %tid.x;\n"
               " mad.lo.s32 %r1, %r3, %r4, %r5;\n"
               " setp.ge.s32 %p1, %r1, %r2;\n @%p1 bra $DONE;\n"
               " mul.wide.s32 %rd5, %r1, 4; add.s64 %rd6, %rd1, %rd5; add.s64 %rd7, %rd2, %rd5;\n"
               " ld.global.f32 %f1, [%rd6]; ld.global.f32 %f2, [%rd7]; add.f32 %f3, %f1, %f2;\n"
               " add.s64 %rd8, %rd3, %rd5; st.global.f32 [%rd8], %f3;\n"
               "$DONE: ret;\n}\n";
    float *x = (float *)card, *y = x + 4096, *z = x + 8192;
    struct {
        uint64_t a, b, c;
        uint32_t n;
    } parameters = {CARD, CARD + 16384, CARD + 32768, 1000};

    for (int i = 0; i < 1024; i++) {
        x[i] = (float)i * 0.5f;
        y[i] = (float)(i * i);
        z[i] = -1;
    }
    done(launch(text, 4, 256, &parameters, 0));
    for (int i = 0; i < 1024; i++)
        g_assert_true(z[i] == (i < 1000 ? x[i] + y[i] : -1));
}

/* Of shared memory whose size the launch says, through barriers. */
static void test_reduction(void)
{
    static const char text[] = HEADER
        ".extern .shared .align 4 .b8 room[];\n"
        ".visible .entry k(.param .u64 at)\n{\n"
        " .reg .pred %p<4>; .reg .b32 %r<12>; .reg .b64 %rd<6>;\n"
        " ld.param.u64 %rd1, [at]; mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x;\n"
        " mov.u32 %r3, %ntid.x; mad.lo.s32 %r4, %r2, %r3, %r1;\n"
        " mul.wide.u32 %rd2, %r4, 4; add.s64 %rd3, %rd1, %rd2; ld.global.u32 %r5, [%rd3+4];\n"
        " shl.b32 %r6, %r1, 2; mov.u32 %r7, room; add.u32 %r7, %r7, %r6;\n"
        " st.shared.u32 [%r7], %r5; shr.u32 %r8, %r3, 1;\n"
        "$LOOP: bar.sync 0; setp.ge.u32 %p1, %r1, %r8; @%p1 bra $SKIP;\n"
        " shl.b32 %r9, %r8, 2; add.u32 %r9, %r7, %r9; ld.shared.u32 %r10, [%r9];\n"
        " ld.shared.u32 %r11, [%r7]; add.u32 %r11, %r11, %r10; st.shared.u32 [%r7], %r11;\n"
        "$SKIP: shr.u32 %r8, %r8, 1; setp.ne.u32 %p2, %r8, 0; @%p2 bra $LOOP;\n"
        " setp.ne.u32 %p3, %r1, 0; @%p3 bra $END; ld.shared.u32 %r11, [%r7];\n"
        " red.global.add.u32 [%rd1], %r11;\n$END: ret;\n}\n";
    uint32_t *words = (uint32_t *)card, sum = 0;
    const uint64_t at = CARD;

    words[0] = 0;
    for (uint32_t i = 0; i < 1024; i++)
        sum += words[i + 1] = i * 7 % 100;
    done(launch(text, 4, 256, &at, 1024));
    g_assert_cmpuint(words[0], ==, sum);
    /* Without room it reaches beyond what the launch gives. */
    g_assert_cmpint(launch(text, 4, 256, &at, 512), ==, PTX_BAD_ADDRESS);
}

static void test_histogram(void)
{
    static const char text[] =
        BEGIN ".shared .align 4 .u32 bins[16];\n"
              " setp.lt.u32 %p1, %r1, 16; shl.b32 %r5, %r1, 2; mov.u32 %r6, bins;\n"
              " add.u32 %r7, %r6, %r5; @%p1 st.shared.u32 [%r7], 0; barrier.sync 0;\n"
              " ld.global.u8 %r8, [%rd2+4096]; and.b32 %r8, %r8, 15; mad.lo.u32 %r9, %r8, 4, %r6;\n"
              " atom.shared.add.u32 %r10, [%r9], 1; bar.sync 0; @!%p1 bra $END;\n"
              " ld.shared.u32 %r11, [%r7]; cvt.u64.u32 %rd3, %r5; add.s64 %rd3, %rd1, %rd3;\n"
              " red.global.add.u32 [%rd3], %r11;\n$END:" END;
    uint32_t *words = (uint32_t *)card, wanted[16] = {0};

    memset(card, 0, 4096);
    for (uint32_t i = 0; i < 2048; i++) {
        words[1024 + i] = i * i * 13;
        wanted[i * i * 13 & 15]++;
    }
    done(run(text, 8, 256));
    g_assert_cmpmem(words, sizeof(wanted), wanted, sizeof(wanted));
}

static void test_atomics(void)
{
#define R(code, a, b, wanted, left)                                                                \
    do {                                                                                           \
        g_assert_cmphex(compute("atom.global." code "; ", a, b), ==, (uint32_t)(wanted));          \
        g_assert_cmphex(*(uint32_t *)card, ==, (uint32_t)(left));                                  \
    } while (0)
    R("exch.b32 %r12, [%rd1], %r11", 5, 7, 5, 7);
    R("cas.b32 %r12, [%rd1], 5, %r11", 5, 7, 5, 7);
    R("cas.b32 %r12, [%rd1], 6, %r11", 5, 7, 5, 5);
    R("min.s32 %r12, [%rd1], %r11", 5, -7, 5, -7);
    R("max.u32 %r12, [%rd1], %r11", 5, -7, 5, -7);
    R("inc.u32 %r12, [%rd1], %r11", 7, 7, 7, 0);
    R("dec.u32 %r12, [%rd1], %r11", 0, 7, 0, 7);
    R("add.f32 %r12, [%rd1], %r11", bits_of(1.5f), bits_of(2), bits_of(1.5f), bits_of(3.5f));
#undef R
}

static void test_shuffle(void)
{
    static const char text[] = BEGIN
        " ld.global.u32 %r5, [%rd2+4096]; mov.u32 %r6, 16;\n"
        "$L: shfl.sync.down.b32 %r7|%p1, %r5, %r6, 31, 0xffffffff; @%p1 add.u32 %r5, %r5, %r7;\n"
        " shr.u32 %r6, %r6, 1; setp.ne.u32 %p2, %r6, 0; @%p2 bra $L;\n"
        " setp.ne.u32 %p3, %r1, 0; vote.sync.ballot.b32 %r8, %p3, 0xffffffff;\n"
        " shfl.sync.bfly.b32 %r9, %r1, 1, 31, 0xffffffff; shfl.sync.up.b32 %r10, %r1, 1, 0, -1;\n"
        " and.b32 %r11, %r1, 3; match.any.sync.b32 %r12, %r11, -1;\n"
        " redux.sync.max.s32 %r13, %r1, -1;\n"
        " st.global.u32 [%rd2], %r5; st.global.u32 [%rd2+512], %r8; st.global.u32 [%rd2+1024], "
        "%r9;\n"
        " st.global.u32 [%rd2+1536], %r10; st.global.u32 [%rd2+2048], %r12;"
        " st.global.u32 [%rd2+2560], %r13;" END;
    uint32_t *words = (uint32_t *)card, sum = 0;

    for (uint32_t i = 0; i < 32; i++)
        sum += words[1024 + i] = i * 3 + 1;
    done(run(text, 1, 32));
    g_assert_cmpuint(words[0], ==, sum);
    for (uint32_t i = 0; i < 32; i++) {
        g_assert_cmphex(words[128 + i], ==, 0xfffffffe);
        g_assert_cmpuint(words[256 + i], ==, i ^ 1);
        g_assert_cmpuint(words[384 + i], ==, i ? i - 1 : 0);
        g_assert_cmphex(words[512 + i], ==, 0x11111111u << (i & 3));
        g_assert_cmpuint(words[640 + i], ==, 31);
    }
}

/* Functions: by name and by address, recursive, with a structure, from a table of labels. */
static void test_calls(void)
{
    static const char text[] =
        HEADER ".func (.param .b32 out) twice(.param .b32 in);\n"
               ".global .align 8 .u64 table[2] = {twice, fact};\n"
               ".func (.param .b32 out) fact(.param .b32 in)\n{ .reg .pred %p; .reg .b32 %r<5>;\n"
               " ld.param.u32 %r1, [in]; setp.gt.u32 %p, %r1, 1; mov.u32 %r2, 1; @!%p bra $E;\n"
               " sub.u32 %r3, %r1, 1;\n { .param .b32 a; st.param.b32 [a+0], %r3; .param .b32 r;\n"
               " call.uni (r), fact, (a); ld.param.b32 %r4, [r+0]; } mul.lo.u32 %r2, %r1, %r4;\n"
               "$E: st.param.b32 [out+0], %r2; ret; }\n"
               ".func (.param .b32 out) twice(.param .b32 in)\n{ .reg .b32 %r<3>;\n"
               " ld.param.u32 %r1, [in]; add.u32 %r2, %r1, %r1; st.param.b32 [out], %r2; ret; }\n"
               ".func (.reg .u32 out) last(.param .align 4 .b8 s[12])\n{ .reg .b32 %r<2>;\n"
               " ld.param.u32 %r1, [s+8]; mov.u32 out, %r1; ret; }\n"
               ".visible .entry k(.param .u64 at)\n{ .reg .b32 %r<12>; .reg .b64 %rd<6>;\n"
               " .reg .pred %p<3>; .local .align 8 .b8 depot[16]; .reg .b64 %SP, %SPL;\n"
               " ld.param.u64 %rd1, [at]; mov.u64 %rd2, table;\n"
               " mov.u32 %r1, %tid.x; mul.wide.u32 %rd3, %r1, 8; add.u64 %rd2, %rd2, %rd3;\n"
               " ld.global.u64 %rd4, [%rd2];\n"
               " { .param .b32 a; st.param.b32 [a], 7; .param .b32 r;\n"
               " P: .callprototype (.param .b32 _) _ (.param .b32 _);\n"
               " call (r), %rd4, (a), P; ld.param.b32 %r2, [r]; }\n"
               " mul.wide.u32 %rd3, %r1, 4; add.u64 %rd5, %rd1, %rd3; st.global.u32 [%rd5], %r2;\n"
               " { .param .align 4 .b8 s[12]; st.param.b32 [s+8], 99; call (%r3), last, (s); }\n"
               " st.global.u32 [%rd5+8], %r3;\n"
               " L: .branchtargets A, B;\n brx.idx %r1, L;\n"
               "A: mov.u32 %r4, 10; bra C;\nB: mov.u32 %r4, 11;\nC: st.global.u32 [%rd5+16], %r4;\n"
               " mov.u64 %SPL, depot; cvta.local.u64 %SP, %SPL; st.u32 [%SP+4], %r4;\n"
               " ld.local.u32 %r5, [%SPL+4]; st.global.u32 [%rd5+24], %r5;\n ret; }\n";
    uint32_t *words = (uint32_t *)card;

    done(run(text, 1, 2));
    g_assert_cmpuint(words[0], ==, 14);
    g_assert_cmpuint(words[1], ==, 5040);
    for (int i = 0; i < 2; i++) {
        g_assert_cmpuint(words[2 + i], ==, 99);
        g_assert_cmpuint(words[4 + i], ==, (unsigned)(10 + i));
        g_assert_cmpuint(words[6 + i], ==, (unsigned)(10 + i));
    }
}

static void test_vectors(void)
{
    static const char text[] = HEADER
        ".const .align 16 .f32 four[4] = {1.5, 2.0, 0f40400000, -4.0};\n"
        ".visible .entry k(.param .u64 at)\n{ .reg .f32 %f<9>; .reg .b64 %rd<3>; .reg .b32 %r<3>;\n"
        " ld.param.u64 %rd1, [at]; ld.const.v4.f32 {%f1, %f2, %f3, %f4}, [four];\n"
        " st.global.v2.f32 [%rd1], {%f4, %f3}; st.global.v2.f32 [%rd1+8], {%f2, %f1};\n"
        " ld.global.v2.u32 {%r1, _}, [%rd1+8]; st.global.u32 [%rd1+16], %r1; ret; }\n";
    float *values = (float *)card;

    done(run(text, 1, 1));
    g_assert_true(values[0] == -4 && values[1] == 3 && values[2] == 2 && values[3] == 1.5f);
    g_assert_true(values[4] == 2);
}

/* Blocks of a cooperative launch wait for each other. */
static void test_cooperative(void)
{
    static const char text[] =
        BEGIN " atom.global.add.u32 %r5, [%rd1], 1;\n"
              "$W: ld.volatile.global.u32 %r6, [%rd1]; setp.lt.u32 %p1, %r6, 4; @%p1 bra $W;\n" END;
    struct ptx_module *module = parse(text);
    const uint64_t at = CARD;
    struct ptx_launch is = {.module = module,
                            .kernel = ptx_kernel(module, "k"),
                            .grid = {4, 1, 1},
                            .block = {1, 1, 1},
                            .parameters = (const uint8_t *)&at,
                            .find = find,
                            .steps = MOST / 20,
                            .is_cooperative = true};

    *(uint32_t *)card = 0;
    done(ptx_run(&is));
    /* One after the other they would wait for ever. */
    *(uint32_t *)card = 0;
    is.is_cooperative = false;
    is.steps = MOST / 20;
    g_assert_cmpint(ptx_run(&is), ==, PTX_TOO_LONG);
    ptx_free(module);
}

static void test_faults(void)
{
    static const struct {
        const char *code;
        enum ptx_result result;
    } faults[] = {
        {" st.global.u32 [%rd1+1048576], 1;", PTX_BAD_ADDRESS},
        {" st.global.u64 [%rd1+1048572], 1;", PTX_MISALIGNED},
        {" .shared .b8 s[48]; st.shared.v4.u64 [s+32], {1, 1, 1, 1};", PTX_BAD_ADDRESS},
        {" ld.global.u32 %r5, [0];", PTX_BAD_ADDRESS},
        {" ld.global.u32 %r5, [-4];", PTX_BAD_ADDRESS},
        {" ld.u32 %r5, [%rd1+-4];", PTX_BAD_ADDRESS},
        {" ld.global.u32 %r5, [%rd1+2];", PTX_MISALIGNED},
        {" ld.shared.u32 %r5, [0];", PTX_BAD_ADDRESS},
        {" st.local.u32 [65536], 1;", PTX_BAD_ADDRESS},
        {" st.param.u32 [at], 1;", PTX_BAD_ADDRESS},
        {" ld.param.u64 %rd3, [at+8];", PTX_BAD_ADDRESS},
        {"$L: bra $L;", PTX_TOO_LONG},
        {" setp.eq.u32 %p1, %r1, 0; @%p1 bra $L; bar.sync 0; exit; $L: bar.sync 1;", PTX_TOO_LONG},
        {" trap;", PTX_FAILED},
        {" mov.u64 %rd3, 12; call %rd3, ();", PTX_BAD_CODE_ADDRESS},
        {" tex.1d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [%rd1, {%r1}];", PTX_UNSUPPORTED},
        {" cp.async.ca.shared.global [%r1], [%rd1], 4;", PTX_UNSUPPORTED},
    };

    for (unsigned int i = 0; i < G_N_ELEMENTS(faults); i++) {
        g_autofree char *text = g_strconcat(BEGIN, faults[i].code, END, NULL);

        g_test_message("%s", faults[i].code);
        g_assert_cmpint(run(text, 1, 2), ==, faults[i].result);
    }
    g_assert_cmpint(run(HEADER ".func f() { call f, (); ret; }\n"
                               ".visible .entry k(.param .u64 at) { call f, (); ret; }\n",
                        1, 1),
                    ==, PTX_FAILED);
}

/* Each is refused, with a line, and so is each beginning of a right one. */
static void test_bad_text(void)
{
    static const char *const texts[] = {
        "",
        "no PTX",
        HEADER ".entry k(",
        HEADER ".entry k() { frobnicate.u32 %r1; }",
        HEADER ".entry k() { mov.u32 %r1, 5; }",
        HEADER ".entry k() { .reg .b32 %r<5>; mov.u32 %r5, 5; }",
        HEADER ".entry k() { .reg .b32 %r<5>; add.u32 %r1, %r2; }",
        HEADER ".entry k() { .reg .b32 %r<4000000000>; }",
        HEADER ".entry k() { bra $L; }",
        HEADER ".entry k() { .local .b8 x[99999999999]; }",
        HEADER ".global .b8 x[99999999999999999999];",
        HEADER ".global .b32 x[1] = {1, 2};",
        HEADER ".entry k() { .reg .b32 %r<5>; mov.u32 %r1, 5",
        HEADER "/* no end",
        HEADER ".entry k(.param .align 3 .b8 x[4]) { }",
        HEADER ".entry k(.param .b8 x[40000]) { }",
        HEADER
        ".entry k() {{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{",
    };

    for (unsigned int i = 0; i < G_N_ELEMENTS(texts); i++) {
        struct ptx_error error;

        g_test_message("%s", texts[i]);
        g_assert_null(ptx_parse(texts[i], strlen(texts[i]), &error));
        g_assert_cmpuint(strlen(error.reason), >, 0);
    }
}

/* Texts with a part cut out or a character changed: any answer, and no fault of the parser's. */
static void test_mangled(void)
{
    static const char text[] = HEADER
        ".global .align 8 .u64 t[2] = {f, 5};\n.shared .align 4 .b8 s[64];\n"
        ".func (.param .b32 o) f(.param .b32 i) { .reg .b32 %r<3>; ld.param.u32 %r1, [i];\n"
        " st.param.b32 [o], %r1; ret; }\n"
        ".visible .entry k(.param .u64 at) { .reg .pred %p<3>; .reg .b32 %r<9>;\n"
        " .reg .b64 %rd<9>; .reg .f32 %f<9>; ld.param.u64 %rd1, [at]; mov.u32 %r1, %tid.x;\n"
        " { .param .b32 a; st.param.b32 [a], %r1; .param .b32 r; call (r), f, (a);\n"
        " ld.param.b32 %r2, [r]; } setp.lt.u32 %p1|%p2, %r1, 5; @!%p1 bra $E;\n"
        " shfl.sync.down.b32 %r3|%p2, %r1, 1, 31, -1; mov.u32 %r4, s; st.shared.u32 [%r4], %r3;\n"
        " L: .branchtargets $E, $E; brx.idx %r1, L;\n"
        " fma.rn.f32 %f1, %f2, 0f3F800000, 1.5; st.global.v2.f32 [%rd1+8], {%f1, %f2};\n"
        " mov.b64 %rd2, {%r1, %r2}; bar.sync 0; $E: ret; }\n";
    const uint64_t at = CARD;
    GRand *random = g_rand_new_with_seed(7);

    for (unsigned int round = 0; round < 3000; round++) {
        g_autofree char *mangled = g_strdup(text);
        size_t length = strlen(mangled);
        struct ptx_error error;
        struct ptx_module *module;
        struct ptx_launch is = {.grid = {2, 1, 1},
                                .block = {33, 1, 1},
                                .parameters = (const uint8_t *)&at,
                                .find = find,
                                .steps = 3000};

        for (int i = g_rand_int_range(random, 1, 4); i; i--) {
            size_t from = (size_t)g_rand_int_range(random, (gint32)strlen(HEADER), (gint32)length);
            size_t to = (size_t)g_rand_int_range(random, 0, (gint32)length);

            mangled[from] = mangled[to];
        }
        module = ptx_parse(mangled, round % 3 ? length : length / (1 + round % 7), &error);
        if (!module)
            continue;
        is.module = module;
        is.kernel = ptx_kernel(module, "k");
        if (is.kernel && ptx_parameter_bytes(is.kernel) <= sizeof(at))
            ptx_run(&is);
        ptx_free(module);
    }
    g_rand_free(random);
}

#define ENTRY 64

/* A fat binary with one entry, as the text or as literals of LZ4. */
static uint8_t *make_container(const char *text, bool packs, size_t *bytes)
{
    size_t length = strlen(text) + 1, room = 16 + ENTRY + length + length / 255 + 16;
    uint8_t *image = g_malloc0(room), *payload = image + 16 + ENTRY, *at = payload;

    if (packs) {
        *at++ = 0xf0;
        size_t left = length - 15;
        for (; left >= 255; left -= 255)
            *at++ = 255;
        *at++ = (uint8_t)left;
    }
    memcpy(at, text, length);
    at += length;
    *bytes = (size_t)(at - image);
    memcpy(image, (uint32_t[]){0xba55ed50}, 4);
    memcpy(image + 4, (uint16_t[]){1, 16}, 4);
    memcpy(image + 8, (uint64_t[]){*bytes - 16}, 8);
    memcpy(image + 16, (uint16_t[]){1, 0x101}, 4);
    memcpy(image + 20, (uint32_t[]){ENTRY}, 4);
    memcpy(image + 24, (uint64_t[]){(uint64_t)(at - payload)}, 8);
    memcpy(image + 32, (uint32_t[]){packs ? (uint32_t)(at - payload) : 0}, 4);
    memcpy(image + 44, (uint32_t[]){80}, 4);
    memcpy(image + 56, (uint64_t[]){packs ? 0x2011 : 0x11}, 8);
    memcpy(image + 72, (uint64_t[]){packs ? length : 0}, 8);
    return image;
}

static void test_container(void)
{
    for (int packs = 0; packs < 2; packs++) {
        size_t bytes;
        g_autofree uint8_t *image = make_container(BEGIN END, packs, &bytes);
        uint64_t wrapper[3] = {0x1466243b1, (uintptr_t)image, 0};
        g_autofree char *text = NULL;
        bool is_image;

        text = ptx_unpack(wrapper, 100, &is_image);
        g_assert_cmpstr(text, ==, BEGIN END);
        /* Its architecture is above the card's. */
        g_assert_null(ptx_unpack(image, 70, &is_image));
        g_assert_true(is_image);
        /* What it says of its lengths is wrong. */
        for (size_t i = 16; i < 16 + ENTRY; i++) {
            uint8_t before = image[i];
            char *any;

            image[i] = 0xff;
            any = ptx_unpack(image, 100, &is_image);
            free(any);
            image[i] = before;
        }
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/ptx/integers", test_integers);
    g_test_add_func("/ptx/bits", test_bits);
    g_test_add_func("/ptx/wide", test_wide);
    g_test_add_func("/ptx/floats", test_floats);
    g_test_add_func("/ptx/conversions", test_conversions);
    g_test_add_func("/ptx/predicates", test_predicates);
    g_test_add_func("/ptx/reduction", test_reduction);
    g_test_add_func("/ptx/histogram", test_histogram);
    g_test_add_func("/ptx/atomics", test_atomics);
    g_test_add_func("/ptx/shuffle", test_shuffle);
    g_test_add_func("/ptx/calls", test_calls);
    g_test_add_func("/ptx/vectors", test_vectors);
    g_test_add_func("/ptx/cooperative", test_cooperative);
    g_test_add_func("/ptx/faults", test_faults);
    g_test_add_func("/ptx/bad-text", test_bad_text);
    g_test_add_func("/ptx/mangled", test_mangled);
    g_test_add_func("/ptx/container", test_container);
    return g_test_run();
}
