// SPDX-License-Identifier: MIT
/*
 * Oversubscription: what a slice may have beyond its limit stays in the host's memory, to the byte
 * of its spill. What can't be there fails at the limit, as without a spill.
 */
#include "kit.h"

#define LIMIT (64 * MIB)
#define SPILL (32 * MIB)

/* The card has only what is charged as the slice's memory. */
static void both(uint64_t device, uint64_t spilled)
{
    kit_charged(device);
    g_assert_cmpuint(kit_on_card(), ==, device);
    g_assert_cmpint(live_status(&kit_live, "a", "spill_used"), ==, spilled);
}

static void with_spill(void (*program)(void))
{
    g_autofree char *a = g_strdup_printf("[slice]\nvram=%llu\nspill=%llu\n", LIMIT, SPILL);

    kit_open_two(a, "[slice]\n");
    kit_run(program);
    kit_close();
}

static CUdeviceptr fill(void)
{
    CUdeviceptr filling;

    kit_enter("a");
    ok(cuMemAlloc_v2(&filling, 60 * MIB));
    both(60 * MIB, 0);
    return filling;
}

static void beyond(void)
{
    CUdeviceptr filling = fill(), plain, managed, pitched, small, never = 7;
    size_t pitch;

    ok(cuMemAlloc_v2(&plain, 13 * MIB));
    both(60 * MIB, 14 * MIB);
    ok(cuMemAllocManaged(&managed, 8 * MIB, CU_MEM_ATTACH_GLOBAL));
    both(60 * MIB, 22 * MIB);
    ok(cuMemAllocPitch_v2(&pitched, &pitch, 600, 8192, 4));
    g_assert_cmpuint(pitch, ==, 1024);
    both(60 * MIB, 30 * MIB);
    /* Each is kept in the host's memory, and the GPU reaches it there. */
    g_assert_cmpuint(kit_calls("cuMemAdvise"), ==, 6);
    /* The limit has room for this, and the spill has none for that. */
    ok(cuMemAlloc_v2(&small, 4 * MIB));
    both(64 * MIB, 30 * MIB);
    full(cuMemAlloc_v2(&never, 4 * MIB));
    full(cuMemAllocManaged(&never, 4 * MIB, CU_MEM_ATTACH_GLOBAL));
    full(cuMemAllocPitch_v2(&never, &pitch, 4 * MIB, 1, 4));
    g_assert_cmpuint(never, ==, 7);
    ok(cuMemFree_v2(plain));
    both(64 * MIB, 16 * MIB);
    ok(cuMemFree_v2(filling));
    both(4 * MIB, 16 * MIB);
    ok(cuMemFree_v2(managed));
    ok(cuMemFree_v2(pitched));
    ok(cuMemFree_v2(small));
    both(0, 0);
}

static void test_beyond(void)
{
    with_spill(beyond);
}

/* What can't be managed memory. */
static void only_on_card(void)
{
    CUDA_ARRAY_DESCRIPTOR flat = {
        .Width = 8192, .Height = 1024, .Format = CU_AD_FORMAT_UNSIGNED_INT8, .NumChannels = 1};
    CUmemAllocationProp property = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                    .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
    CUmemGenericAllocationHandle handle;
    CUdeviceptr_v1 narrow;
    CUdeviceptr wide;
    CUarray array;

    fill();
    full(cuMemAlloc(&narrow, 8 * MIB));
    full(cuArrayCreate_v2(&array, &flat));
    full(cuMemCreate(&handle, 8 * MIB, &property, 0));
    full(cuMemAllocAsync(&wide, 8 * MIB, NULL));
    both(60 * MIB, 0);
}

static void test_only_on_card(void)
{
    with_spill(only_on_card);
}

/* What a pool keeps unused is given back before anything is spilled. */
static void room_first(void)
{
    CUdeviceptr pooled, plain;

    kit_enter("a");
    ok(cuMemAllocAsync(&pooled, 40 * MIB, NULL));
    ok(cuMemFreeAsync(pooled, NULL));
    ok(cuMemAlloc_v2(&plain, 60 * MIB));
    both(60 * MIB, 0);
}

static void test_room_first(void)
{
    with_spill(room_first);
}

/* The driver can't keep it where it should be. */
static void refused(void)
{
    unsigned int *refused = kit_driver("fake_advice_refused");
    int *concurrent = kit_driver("fake_concurrent_managed");
    CUdeviceptr never;

    fill();
    for (*refused = CU_MEM_ADVISE_SET_PREFERRED_LOCATION; *refused <= CU_MEM_ADVISE_SET_ACCESSED_BY;
         *refused += 2) {
        full(cuMemAlloc_v2(&never, 8 * MIB));
        full(cuMemAllocManaged(&never, 8 * MIB, CU_MEM_ATTACH_GLOBAL));
    }
    *concurrent = 0;
    full(cuMemAlloc_v2(&never, 8 * MIB));
    full(cuMemAllocManaged(&never, 8 * MIB, CU_MEM_ATTACH_GLOBAL));
    both(60 * MIB, 0);
}

static void test_refused(void)
{
    with_spill(refused);
}

static void context_ends(void)
{
    CUcontext context;
    CUdeviceptr spilled;

    fill();
    ok(cuCtxCreate_v2(&context, 0, 0));
    ok(cuMemAlloc_v2(&spilled, 8 * MIB));
    both(60 * MIB, 8 * MIB);
    ok(cuCtxDestroy_v2(context));
    both(60 * MIB, 0);
}

static void test_context_ends(void)
{
    with_spill(context_ends);
}

/* Programs are told of the slice's memory alone: those that take all there is stay on the card. */
static void view(void)
{
    size_t free, total;
    CUdeviceptr spilled;

    fill();
    ok(cuMemAlloc_v2(&spilled, 8 * MIB));
    ok(cuMemGetInfo_v2(&free, &total));
    g_assert_cmpuint(total, ==, LIMIT);
    g_assert_cmpuint(free, ==, 4 * MIB);
}

static void test_view(void)
{
    with_spill(view);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/spill/beyond", test_beyond);
    g_test_add_func("/spill/only-on-card", test_only_on_card);
    g_test_add_func("/spill/room-first", test_room_first);
    g_test_add_func("/spill/refused", test_refused);
    g_test_add_func("/spill/context-ends", test_context_ends);
    g_test_add_func("/spill/view", test_view);
    return g_test_run();
}
