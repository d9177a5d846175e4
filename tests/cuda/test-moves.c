// SPDX-License-Identifier: MIT
/*
 * Copies and fills: large ones are measured and held as launches are, whichever function makes
 * them; small ones wait for nothing and are charged by their bytes.
 */
#include "entry_points.h"
#include "fake.h"
#include "kit.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#define MS 1000000u

struct call {
    const char *name;
    int class;
    const char *words;
};

#define C(name, base, since, class, kind, words) {#name, class, words},
static const struct call calls[] = {
#include "calls.inc"
};
#undef C

static bool is_move(const struct call *call)
{
    static const char *const managed[] = {"cuMemPrefetch", "cuMemDiscardAndPrefetch",
                                          "cuMemBatchDecompress"};

    for (unsigned int i = 0; i < G_N_ELEMENTS(managed); i++)
        if (g_str_has_prefix(call->name, managed[i]))
            return true;
    return call->class == CLASS_COPY || call->class == CLASS_SET;
}

#define ARGUMENTS 16
/* Of a list or a structure; all of its words have one value. */
static uint64_t memory[ARGUMENTS][64];

/*
 * Numbers that make each of these calls one of a MiB at least: 1024 * 1024, or 128 * 128 * 128. Old
 * structures have two in a word.
 */
static uint64_t word_for(const char *name)
{
    static const char *const old[] = {"cuMemcpy2D", "cuMemcpy2DAsync", "cuMemcpy2DUnaligned",
                                      "cuMemcpy3D", "cuMemcpy3DAsync"};
    bool of_three = strstr(name, "3D") != NULL;

    for (unsigned int i = 0; i < G_N_ELEMENTS(old); i++)
        if (!strcmp(name, old[i]))
            return of_three ? 128ull << 32 | 128 : 1024ull << 32 | 1024;
    if (of_three)
        return 128;
    return strstr(name, "2D") ? 1024 : 2 * MIB;
}

static long value_for(const char *name)
{
    if (strstr(name, "Batch"))
        return 1;
    return strstr(name, "D2D") ? 1024 : (long)(2 * MIB);
}

typedef long any_function(long, long, long, long, long, long, long, long, long, long, long, long,
                          long, long, long, long);

/* @size: of what it moves, for a value; 0: as value_for() says. */
static void move(const struct call *call, long size)
{
    long a[ARGUMENTS] = {0};
    any_function *function = NULL;
    size_t count = strlen(call->words);

    for (unsigned int i = 0; i < ARGUMENTS; i++)
        for (unsigned int k = 0; k < G_N_ELEMENTS(memory[i]); k++)
            memory[i][k] = size ? 0 : word_for(call->name);
    for (size_t i = 0; i < count; i++)
        a[i] = call->words[i] == 'p' ? (long)memory[i] : size ? size : value_for(call->name);
    /* The last one may be a stream. */
    if (strstr(call->name, "Async"))
        a[count - 1] = 0;
    *(void **)&function = dlsym(RTLD_DEFAULT, call->name);
    function(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11], a[12], a[13],
             a[14], a[15]);
}

/* How often it was asked whether a stream captures: before each call that is measured. */
static unsigned int asked(void)
{
    return kit_calls("cuStreamIsCapturing") + kit_calls("cuStreamIsCapturing_ptsz");
}

static void each_large(void)
{
    unsigned int moves = 0;

    kit_enter_measured("a");
    for (unsigned int i = 0; i < G_N_ELEMENTS(calls); i++) {
        unsigned int before = asked();

        if (!is_move(&calls[i]))
            continue;
        move(&calls[i], 0);
        moves++;
        if (asked() == before)
            g_error("%s is not measured", calls[i].name);
    }
    g_assert_cmpuint(moves, ==, 118);
}

static void each_small(void)
{
    unsigned int before;

    kit_enter_measured("a");
    before = kit_calls("cuEventRecord");
    for (unsigned int i = 0; i < G_N_ELEMENTS(calls); i++)
        if (is_move(&calls[i]))
            move(&calls[i], 16);
    g_assert_cmpuint(kit_calls("cuEventRecord"), ==, before);
}

/* 2,000 copies that take 8 us each, without an event for each. */
static void charged(void)
{
    gint64 charged_ns = 0;
    unsigned int before;

    kit_enter_measured("a");
    before = kit_calls("cuEventRecord");
    for (unsigned int i = 0; i < 2000; i++)
        ok(cuMemcpyHtoDAsync_v2(0, NULL, 8000 * FAKE_COPIES, NULL));
    g_assert_cmpuint(kit_calls("cuEventRecord") - before, >, 2);
    g_assert_cmpuint(kit_calls("cuEventRecord") - before, <, 400);
    for (unsigned int i = 0; i < 200 && charged_ns < 10 * MS; i++) {
        g_usleep(10000);
        charged_ns = live_status(&kit_live, "a", "copy_ns");
    }
    g_assert_cmpint(charged_ns, >, 10 * MS);
    g_assert_cmpint(charged_ns, <, 40 * MS);
}

static void run_measured(void (*program)(void))
{
    kit_open_two("[slice]\ncap=50\nhard=true\n", "[slice]\n");
    kit_run(program);
    kit_close();
}

#define PIECE (16 * MIB)
#define LARGE MIB

typedef CUresult copy_function(uintptr_t to, uintptr_t from, size_t bytes);

static copy_function *copy_called(const char *name)
{
    copy_function *function = NULL;

    *(void **)&function = dlsym(RTLD_DEFAULT, name);
    g_assert_nonnull(function);
    return function;
}

/* Those that the caller waits for, from one address to another. */
static const char *const linear[] = {"cuMemcpyHtoD",    "cuMemcpyHtoD_v2_ptds", "cuMemcpyDtoH",
                                     "cuMemcpyDtoH_v2", "cuMemcpyDtoH_v2_ptds", "cuMemcpy",
                                     "cuMemcpy_ptds"};

/* As many calls as there are pieces, one after the other; the last one is the rest. */
static void pieces(void)
{
    const long *given = kit_driver("fake_arguments");

    kit_enter("a");
    for (unsigned int i = 0; i < G_N_ELEMENTS(linear); i++) {
        unsigned int before = kit_calls(linear[i]);

        ok(copy_called(linear[i])(0x1000, 0x70001000, 3 * PIECE + 5));
        g_assert_cmpuint(kit_calls(linear[i]) - before, ==, 4);
        g_assert_cmphex((unsigned long)given[0], ==, 0x1000 + 3 * PIECE);
        g_assert_cmphex((unsigned long)given[1], ==, 0x70001000 + 3 * PIECE);
        g_assert_cmpuint((unsigned long)given[2], ==, 5);
        ok(copy_called(linear[i])(0x1000, 0x70001000, PIECE));
        g_assert_cmpuint(kit_calls(linear[i]) - before, ==, 5);
    }
}

/* Each has its own turn. */
static void pieces_measured(void)
{
    unsigned int before;

    kit_enter_measured("a");
    before = asked();
    ok(cuMemcpyHtoD_v2(0, (void *)0x70001000, 3 * PIECE + LARGE));
    g_assert_cmpuint(asked() - before, ==, 4);
}

static CUdeviceptr some_memory(void)
{
    CUdeviceptr at;

    ok(cuMemAlloc_v2(&at, 4 * PIECE));
    return at;
}

/* What is locked the driver copies without buffers. */
static void whole(void)
{
    kit_enter("a");
    ok(copy_called("cuMemHostRegister_v2")(0x70000000, 8 * PIECE, 0));
    ok(cuMemcpyHtoD_v2(some_memory(), (void *)0x70001000, 4 * PIECE));
    g_assert_cmpuint(kit_calls("cuMemcpyHtoD_v2"), ==, 1);
    ok(cuMemcpyHtoD_v2(some_memory(), (void *)0x10001000, 4 * PIECE));
    g_assert_cmpuint(kit_calls("cuMemcpyHtoD_v2"), ==, 5);
}

/* Without a slice nothing is changed. */
static void whole_outside(void)
{
    kit_enter(NULL);
    ok(cuMemcpyHtoD_v2(0, (void *)0x70001000, 4 * PIECE));
    g_assert_cmpuint(kit_calls("cuMemcpyHtoD_v2"), ==, 1);
}

static void test_pieces(void)
{
    kit_open_two("[slice]\n", "[slice]\n");
    kit_run(pieces);
    kit_run(whole);
    kit_run(whole_outside);
    kit_close();
    run_measured(pieces_measured);
}

static gint64 copies_charged(void)
{
    g_usleep(30000);
    return live_status(&kit_live, "a", "copy_ns");
}

/* On a busy machine the charge of what has ended may come late. */
static void await_charge_above(gint64 charged_ns)
{
    for (unsigned int i = 0; i < 1000 && copies_charged() <= charged_ns; i++)
        ;
    g_assert_cmpint(copies_charged(), >, charged_ns);
}

typedef CUresult between(CUdeviceptr to, CUdeviceptr from);

#define BYTES (4 * PIECE)
#define CALL(name, ...)                                                                            \
    static CUresult between_##name(CUdeviceptr to, CUdeviceptr from)                               \
    {                                                                                              \
        return __VA_ARGS__;                                                                        \
    }
CALL(plain, cuMemcpy(to, from, BYTES))
CALL(async, cuMemcpyAsync(to, from, BYTES, NULL))
CALL(peer, cuMemcpyPeerAsync(to, NULL, from, NULL, BYTES, NULL))
CALL(attributes, cuMemcpyWithAttributesAsync(to, from, BYTES, NULL, NULL))
CALL(batch, cuMemcpyBatchAsync_v2(&to, &from, &(size_t){BYTES}, 1, NULL, NULL, 0, NULL))
CALL(flat, cuMemcpy2D_v2(&(CUDA_MEMCPY2D){.srcMemoryType = CU_MEMORYTYPE_UNIFIED,
                                          .srcDevice = from,
                                          .dstMemoryType = CU_MEMORYTYPE_UNIFIED,
                                          .dstDevice = to,
                                          .WidthInBytes = MIB,
                                          .Height = BYTES / MIB}))
CALL(deep,
     cuMemcpy3DWithAttributesAsync(&(CUDA_MEMCPY3D_BATCH_OP){.src = {.type = 1, .where = {from}},
                                                             .dst = {.type = 1, .where = {to}},
                                                             .extent = {MIB, BYTES / MIB, 1}},
                                   0, NULL))

static between *const generic[] = {between_plain, between_async, between_peer, between_attributes,
                                   between_batch, between_flat,  between_deep};

/* How often the driver was asked where memory is. */
static unsigned int places_asked(void)
{
    return kit_calls("cuPointerGetAttributes");
}

/* A copy within the card is no copy to the copy engines, by whichever function it is made. */
static void inside(void)
{
    CUdeviceptr to, from, managed;
    unsigned int before;
    gint64 charged_ns;

    kit_enter_measured("a");
    to = some_memory();
    from = some_memory();
    ok(cuMemAllocManaged(&managed, BYTES, 1));
    before = places_asked();
    charged_ns = copies_charged();
    for (unsigned int i = 0; i < G_N_ELEMENTS(generic); i++)
        for (unsigned int k = 0; k < 3; k++)
            ok(generic[i](to, from));
    ok(cuCtxSynchronize());
    g_assert_cmpint(copies_charged(), ==, charged_ns);
    g_assert_cmpuint(places_asked() - before, ==, 2);
    /* Small ones are not asked for. */
    ok(cuMemcpyAsync(to, from, 4096, NULL));
    ok(cuMemFree_v2(from));
    from = some_memory();
    before = places_asked();
    ok(between_async(to, from));
    g_assert_cmpuint(places_asked() - before, ==, 2);
    for (unsigned int i = 0; i < G_N_ELEMENTS(generic); i++) {
        charged_ns = copies_charged();
        ok(generic[i](i % 2 ? to : managed, i % 2 ? managed : from));
        ok(cuCtxSynchronize());
        await_charge_above(charged_ns);
    }
}

static void test_inside(void)
{
    run_measured(inside);
}

static void test_each_large(void)
{
    run_measured(each_large);
}

static void test_each_small(void)
{
    run_measured(each_small);
}

static void test_charged(void)
{
    run_measured(charged);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/moves/each-large", test_each_large);
    g_test_add_func("/moves/each-small", test_each_small);
    g_test_add_func("/moves/charged", test_charged);
    g_test_add_func("/moves/pieces", test_pieces);
    g_test_add_func("/moves/inside", test_inside);
    return g_test_run();
}
