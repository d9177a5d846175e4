/* SPDX-License-Identifier: MIT */
/* The ledger's rules, quotas, and placement. */
#include <string.h>

#include "host-agent/model/placement.h"
#include "host-agent/model/slice.h"
#include "lib/bus.h"
#include "lib/conf.h"

#define GIB (G_GUINT64_CONSTANT(1) << 30)

/* A GPU of 16 GiB at that NUMA node. */
static Room *room_new(const char *gpu, int node)
{
    Room *room = g_new0(Room, 1);

    room->gpu = g_strdup(gpu);
    room->ids = g_strdup("1002:73bf");
    room->name = g_strdup("Navi 21");
    room->numa_node = node;
    room->vram = room->capacity = 16 * GIB;
    return room;
}

static Slice *make_slice(SliceClass class, guint64 gib, guint compute)
{
    Slice *slice = g_new0(Slice, 1);

    slice->uuid = g_strdup("");
    slice->request = g_strdup("");
    slice->gpu = g_strdup("");
    slice->type = g_strdup("half");
    slice->tenant = g_strdup("red");
    slice->job = g_strdup("");
    slice->replica = g_strdup("");
    slice->domain = g_strdup("");
    slice->class = class;
    slice->vram = gib * GIB;
    slice->compute = compute;
    slice->cap = 100;
    slice->present = TRUE;
    return slice;
}

static void assert_refusal(const Room *room, SliceClass class, guint64 gib, guint compute,
                           const char *words)
{
    g_autoptr(Slice) slice = make_slice(class, gib, compute);
    g_autofree char *why = room_refusal(room, slice);

    g_test_message("%s", why ? why : "it fits");
    if (words)
        g_assert_nonnull(strstr(why, words));
    else
        g_assert_null(why);
}

static void promise(Room *room, SliceClass class, guint64 gib, guint compute)
{
    g_autoptr(Slice) slice = make_slice(class, gib, compute);

    room_add(room, slice);
}

static void test_room(void)
{
    g_autoptr(Room) room = room_new("a", 0);

    assert_refusal(room, SLICE_GUARANTEED, 16, 100, NULL);
    assert_refusal(room, SLICE_GUARANTEED, 17, 100, "16 GiB of 16 GiB are free");
    promise(room, SLICE_GUARANTEED, 12, 50);
    assert_refusal(room, SLICE_BEST_EFFORT, 5, 0, "4 GiB of 16 GiB are free");
    assert_refusal(room, SLICE_BEST_EFFORT, 4, 0, NULL);
    assert_refusal(room, SLICE_GUARANTEED, 4, 51, "50 % of its compute are free, of 100 %");
    assert_refusal(room, SLICE_GUARANTEED, 4, 50, NULL);
}

/* Overcommitted memory is never guaranteed. */
static void test_overcommit(void)
{
    g_autoptr(Room) room = room_new("a", 0);
    g_autoptr(Slice) first = make_slice(SLICE_GUARANTEED, 12, 50);

    room->capacity = 24 * GIB;
    room_add(room, first);
    assert_refusal(room, SLICE_GUARANTEED, 8, 10, "4 GiB of 16 GiB for guaranteed slices");
    assert_refusal(room, SLICE_BURSTABLE, 12, 100, NULL);
    assert_refusal(room, SLICE_BURSTABLE, 12, 101, "100 % of its compute are free, of 150 %");
    promise(room, SLICE_BURSTABLE, 1, 40);
    assert_refusal(room, SLICE_GUARANTEED, 1, 51, "50 % of its compute are free for guaranteed");
    room_subtract(room, first);
    assert_refusal(room, SLICE_GUARANTEED, 16, 100, NULL);
}

static Slice *make_lent(SliceClass class, guint64 gib, guint64 resident)
{
    Slice *slice = make_slice(class, gib, 0);

    slice->resident = resident * GIB;
    return slice;
}

static void assert_lent(const Room *room, const Slice *slice, const char *words)
{
    g_autofree char *why = room_refusal(room, slice);

    g_test_message("%s", why ? why : "it fits");
    g_assert_true(words ? why && strstr(why, words) : !why);
}

/* Of a slice that is refused: it fits when others have less that moves. */
static void assert_passes(const Room *room, const Slice *slice, gboolean passes)
{
    g_autofree char *why = room_refusal(room, slice);

    g_assert_nonnull(why);
    g_assert_cmpint(room_refusal_passes(room, slice), ==, passes);
}

/*
 * What is resident fits, each slice can have the rest while the others have that, and the host has
 * the memory for it.
 */
static void test_resident(void)
{
    g_autoptr(Room) room = room_new("a", 0);
    g_autoptr(Slice) first = make_lent(SLICE_BURSTABLE, 14, 1);
    g_autoptr(Slice) second = make_lent(SLICE_BURSTABLE, 14, 1);
    g_autoptr(Slice) third = make_lent(SLICE_BURSTABLE, 14, 2);
    g_autoptr(Slice) offline = make_lent(SLICE_BEST_EFFORT, 13, 1);

    g_assert_cmpuint(slice_resident(first), ==, GIB);
    g_assert_cmpuint(slice_lent(first), ==, 13 * GIB);
    room->displaced_most = 27 * GIB;
    assert_lent(room, first, NULL);
    room_add(room, first);
    assert_lent(room, second, NULL);
    room_add(room, second);
    g_assert_cmpuint(room->promised_vram, ==, 2 * GIB);
    assert_lent(room, third,
                "another slice has 13 GiB that are not resident, and the resident "
                "memory of all slices would leave 11.68 GiB for that");
    assert_passes(room, third, TRUE);
    assert_refusal(room, SLICE_GUARANTEED, 2, 0, "would leave 11.68 GiB for that");
    room_subtract(room, first);
    room_subtract(room, second);
    assert_lent(room, third, NULL);
    third->vram = 16 * GIB;
    assert_lent(room, third, "it has 14 GiB that are not resident");
    assert_passes(room, third, FALSE);
    third->resident = 15 * GIB;
    room->promised_vram = 2 * GIB;
    assert_passes(room, third, FALSE);
    room->promised_vram = 0;
    room->displaced = 20 * GIB;
    assert_passes(room, first, TRUE);
    room->displaced = 0;
    room->displaced_most = 3 * GIB;
    assert_passes(room, first, FALSE);
    assert_lent(room, first,
                "its memory that is not resident needs 13 GiB of the host's, and "
                "3 GiB of 3 GiB are free for that (displaced= in vgpud.conf)");
    assert_lent(room, offline, NULL);
}

static void assert_moves(const char *ids, Slice *slice, const char *words)
{
    g_autoptr(Room) room = room_new("a", 0);
    g_autofree char *why = NULL;

    slice_set_text(&room->ids, ids);
    room->displaced_most = 64 * GIB;
    why = admission_refusal(
        &(AdmissionRequest){.way = ADMISSION_CREATE, .room = room, .wanted = slice});
    g_test_message("%s", why ? why : "it can");
    g_assert_true(words ? why && strstr(why, words) : !why);
}

/* Where memory cannot move, a request for it is refused with the reason. */
static void test_cannot_move(void)
{
    g_autoptr(Slice) slice = make_lent(SLICE_BURSTABLE, 8, 1);

    slice->transport = SLICE_TRANSPORT_NATIVE;
    assert_moves("10de:2330", slice, NULL);
    assert_moves("1002:73bf", slice, "memory moves only on GPUs with CUDA");
    slice->class = SLICE_GUARANTEED;
    assert_moves("10de:2330", slice, "all memory of a guaranteed slice is resident");
    slice->class = SLICE_BURSTABLE;
    slice->transport = SLICE_TRANSPORT_VM;
    assert_moves("10de:2330", slice, "a vGPU's memory does not move");
    slice->resident = 9 * GIB;
    assert_moves("10de:2330", slice, "9 GiB can't be resident of 8 GiB");
}

static void test_quota(void)
{
    char *models[] = {(char *)"10de:*", (char *)"Navi*", NULL};
    g_autoptr(Room) room = room_new("a", 0);
    Tenant tenant = {.name = (char *)"red", .vram = 8 * GIB, .compute = 150, .vgpus = 2};
    g_autoptr(GError) error = NULL;

    g_assert_true(tenant_admit(&tenant, &(TenantUse){8 * GIB, 150, 2, 0}, &error));
    g_assert_false(tenant_admit(&tenant, &(TenantUse){8 * GIB + 1, 1, 1, 0}, &error));
    g_assert_error(error, AGENT_ERROR, AGENT_ERROR_QUOTA);
    g_clear_error(&error);
    g_assert_false(tenant_admit(&tenant, &(TenantUse){GIB, 151, 1, 0}, &error));
    g_assert_nonnull(strstr(error->message, "151 % of compute, and may have 150 %"));
    g_clear_error(&error);
    g_assert_false(tenant_admit(&tenant, &(TenantUse){GIB, 1, 3, 0}, &error));
    tenant.displaced = 4 * GIB;
    g_assert_true(tenant_admit(&tenant, &(TenantUse){GIB, 1, 1, 4 * GIB}, NULL));
    g_clear_error(&error);
    g_assert_false(tenant_admit(&tenant, &(TenantUse){GIB, 1, 1, 5 * GIB}, &error));
    g_assert_nonnull(strstr(error->message, "5 GiB of the host's memory for what moves"));
    g_assert_true(tenant_may_use(&tenant, room));
    tenant.models = models;
    g_assert_true(tenant_may_use(&tenant, room));
    models[1] = NULL;
    g_assert_false(tenant_may_use(&tenant, room));
}

/*
 * A host for placement: GPUs a and b on node 0, c and d on node 1, each of 16 GiB, none of it
 * promised.
 */
typedef struct {
    GPtrArray *candidates;
    GPtrArray *slices;
} Board;

static void free_candidate(void *candidate)
{
    candidate_free(candidate);
}

static void free_slice(void *slice)
{
    slice_free(slice);
}

static void board_open(Board *board)
{
    board->candidates = g_ptr_array_new_with_free_func(free_candidate);
    board->slices = g_ptr_array_new_with_free_func(free_slice);
    for (guint i = 0; i < 4; i++) {
        char name[] = {(char)('a' + i), 0};
        Slice *slice = make_slice(SLICE_GUARANTEED, 8, 50);

        g_free(slice->gpu);
        slice->gpu = g_strdup(name);
        g_ptr_array_add(board->candidates, candidate_new(room_new(name, (int)i / 2), slice));
    }
}

static void board_close(Board *board)
{
    g_ptr_array_unref(board->candidates);
    g_ptr_array_unref(board->slices);
}

/* The distance of the letters; node 0 and node 1 are further apart. */
static guint distance(const char *gpu, const char *other, void *data)
{
    (void)data;
    if (g_str_equal(gpu, other))
        return 0;
    return (gpu[0] < 'c') == (other[0] < 'c') ? 1 : 5;
}

/* @text: without a door. */
static Request *parse_for_vm(const char *text, GError **error)
{
    g_autoptr(GVariant) asked = g_variant_parse(G_VARIANT_TYPE_VARDICT, text, NULL, NULL, NULL);
    g_autoptr(GVariant) dict = NULL;
    GVariantBuilder builder;

    g_variant_builder_init(&builder, G_VARIANT_TYPE_VARDICT);
    for (gsize i = 0; i < g_variant_n_children(asked); i++) {
        g_autoptr(GVariant) entry = g_variant_get_child_value(asked, i);

        g_variant_builder_add_value(&builder, entry);
    }
    g_variant_builder_add(&builder, "{sv}", "Door", g_variant_new_string("vm"));
    dict = g_variant_ref_sink(g_variant_builder_end(&builder));
    return request_parse(dict, error);
}

/* The GPUs of a request, as letters, or the error's message. To be freed. */
static char *place(Board *board, const char *text, GError **error)
{
    g_autoptr(Request) request = parse_for_vm(text, error);
    const Placement placement = {board->candidates, board->slices, NULL, distance, NULL};
    g_autoptr(GPtrArray) chosen = NULL;
    GString *letters = g_string_new(NULL);

    g_assert_nonnull(request);
    for (guint i = 0; i < board->candidates->len; i++) {
        const Candidate *candidate = g_ptr_array_index(board->candidates, i);

        g_free(candidate->slice->job);
        candidate->slice->job = g_strdup(request->wanted->job);
        g_free(candidate->slice->replica);
        candidate->slice->replica = g_strdup(request->wanted->replica);
    }
    chosen = placement_find(&placement, request, error);
    for (guint i = 0; chosen && i < chosen->len; i++)
        g_string_append(letters, ((Slice *)g_ptr_array_index(chosen, i))->gpu);
    return g_string_free(letters, FALSE);
}

static void assert_placed(const char *text, const char *letters)
{
    Board board;
    g_autofree char *found = NULL;
    g_autoptr(GError) error = NULL;

    board_open(&board);
    found = place(&board, text, &error);
    g_assert_no_error(error);
    g_assert_cmpstr(found, ==, letters);
    board_close(&board);
}

static void test_placement(void)
{
    assert_placed("{'Type': <'half'>, 'Count': <uint32 3>}", "aab");
    assert_placed("{'Type': <'half'>, 'Count': <uint32 5>, 'Policy': <'spread'>}", "abcda");
    assert_placed("{'Type': <'half'>, 'Count': <uint32 3>, 'NumaNode': <1>}", "ccd");
    assert_placed("{'Type': <'half'>, 'Count': <uint32 5>, 'NumaNode': <1>}", "ccdda");
    assert_placed("{'Type': <'half'>, 'Count': <uint32 3>, 'Replica': <'web'>}", "abc");
    assert_placed("{'Type': <'half'>, 'Count': <uint32 4>, 'Job': <'train'>}", "aabb");
    assert_placed("{'Type': <'half'>, 'Gpus': <['d']>}", "d");
    assert_placed("{'Type': <'half'>, 'NotGpus': <['a', 'b']>}", "c");
    assert_placed("{'Type': <'half'>, 'Count': <uint32 8>}", "aabbccdd");
}

/* All or none, and the reason. */
static void test_no_room(void)
{
    Board board;
    Candidate *first;
    g_autofree char *found = NULL;
    g_autoptr(GError) error = NULL;

    board_open(&board);
    first = g_ptr_array_index(board.candidates, 0);
    first->room->draining = TRUE;
    found = place(&board, "{'Type': <'half'>, 'Count': <uint32 7>}", &error);
    g_assert_cmpstr(found, ==, "");
    g_assert_error(error, AGENT_ERROR, AGENT_ERROR_NO_ROOM);
    g_test_message("%s", error->message);
    g_assert_nonnull(strstr(error->message, "room for 6 of 7"));
    g_assert_nonnull(strstr(error->message, "a: it is being drained"));
    g_assert_nonnull(strstr(error->message, "d: 0 MiB of 16 GiB are free"));
    board_close(&board);
}

/* All of a card is lent to who is there: the error says that it passes. */
static void test_no_room_now(void)
{
    Board board;
    g_autoptr(Slice) lent = make_lent(SLICE_BURSTABLE, 15, 1);
    g_autofree char *found = NULL;
    g_autoptr(GError) error = NULL;

    board_open(&board);
    for (guint i = 0; i < board.candidates->len; i++)
        room_add(((Candidate *)g_ptr_array_index(board.candidates, i))->room, lent);
    found = place(&board, "{'Type': <'half'>, 'Gpus': <['b']>}", &error);
    g_assert_error(error, AGENT_ERROR, AGENT_ERROR_NO_ROOM_NOW);
    g_test_message("%s", error->message);
    g_assert_nonnull(strstr(error->message, "b: another slice has 14 GiB that are not resident"));
    board_close(&board);
}

/* What other reason a GPU has does not pass, nor does a request that it was left out of. */
static void test_no_room_ever(void)
{
    Board board;
    g_autoptr(Slice) lent = make_lent(SLICE_BURSTABLE, 15, 1);
    g_autofree char *found = NULL;
    g_autoptr(GError) error = NULL;

    board_open(&board);
    for (guint i = 0; i < board.candidates->len; i++) {
        Room *room = ((Candidate *)g_ptr_array_index(board.candidates, i))->room;

        room_add(room, lent);
        room->draining = g_str_equal(room->gpu, "b");
    }
    found = place(&board, "{'Type': <'half'>, 'Gpus': <['b']>}", &error);
    g_assert_error(error, AGENT_ERROR, AGENT_ERROR_NO_ROOM);
    board_close(&board);
}

/* Near the job's present GPUs, away from existing replicas. */
static void test_neighbours(void)
{
    Board board;
    Slice *known;
    g_autofree char *job = NULL;
    g_autofree char *replica = NULL;

    board_open(&board);
    known = make_slice(SLICE_GUARANTEED, 8, 50);
    g_free(known->gpu);
    known->gpu = g_strdup("c");
    g_free(known->job);
    known->job = g_strdup("train");
    g_free(known->replica);
    known->replica = g_strdup("web");
    g_ptr_array_add(board.slices, known);
    job = place(&board, "{'Type': <'half'>, 'Count': <uint32 3>, 'Job': <'train'>}", NULL);
    g_assert_cmpstr(job, ==, "ccd");
    board_close(&board);
    board_open(&board);
    g_ptr_array_add(board.slices, make_slice(SLICE_GUARANTEED, 8, 50));
    g_free(((Slice *)g_ptr_array_index(board.slices, 0))->gpu);
    ((Slice *)g_ptr_array_index(board.slices, 0))->gpu = g_strdup("a");
    g_free(((Slice *)g_ptr_array_index(board.slices, 0))->replica);
    ((Slice *)g_ptr_array_index(board.slices, 0))->replica = g_strdup("web");
    replica = place(&board, "{'Type': <'half'>, 'Count': <uint32 3>, 'Replica': <'web'>}", NULL);
    g_assert_cmpstr(replica, ==, "bcd");
    board_close(&board);
}

static void assert_invalid(const char *text, const char *words)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(Request) request = parse_for_vm(text, &error);

    g_assert_null(request);
    g_assert_error(error, AGENT_ERROR, AGENT_ERROR_INVALID);
    g_test_message("%s", error->message);
    g_assert_nonnull(strstr(error->message, words));
}

static void test_requests(void)
{
    assert_invalid("{'Type': <1>}", "Type must be of the D-Bus type \"s\", not \"i\"");
    assert_invalid("{'Typ': <'half'>}", "unknown key Typ");
    assert_invalid("{'Type': <'half'>, 'Type': <'half'>}", "Type is there twice");
    assert_invalid("@a{sv} {}", "Type is missing");
    assert_invalid("{'Type': <'half'>, 'Vram': <uint64 0>}", "Vram must be from 1048576");
    assert_invalid("{'Type': <'half'>, 'Priority': <uint32 16>}", "Priority must be from 0 to 15");
    assert_invalid("{'Type': <'half'>, 'Uuids': <['x']>}", "no UUID");
    assert_invalid("{'Type': <'half'>, 'Domain': <'red'>, 'Autostart': <true>}",
                   "Define and Autostart can't be set for Domain");
    assert_invalid("{'Type': <'half'>, 'Job': <'a\\u001b[2J'>}",
                   "Job can't have control characters");
    assert_invalid("{'Type': <'half'>, 'Replica': <'a\\nb'>}",
                   "Replica can't have control characters");
    assert_invalid("{'Type': <'half'>, 'Domain': <'red\\n'>}",
                   "Domain can't have control characters");
}

/* A member's vGPU of a type with weight 100, cap 50 and priority 4. */
static void assert_entitled(guint weight, guint cap, guint priority, const Slice *before,
                            gboolean entitled)
{
    const struct vgpu_type_desc desc = {.weight = 100, .cap = 50, .priority = 4};
    const Offer offer = {.id = "half", .desc = &desc};
    g_autoptr(Slice) slice = make_slice(SLICE_BURSTABLE, 4, 10);
    g_autoptr(GError) error = NULL;

    slice->weight = weight;
    slice->cap = cap;
    slice->priority = priority;
    g_assert_cmpint(entitlement_check(slice, before, &offer, &error), ==, entitled);
    if (!entitled)
        g_assert_error(error, AGENT_ERROR, AGENT_ERROR_NOT_AUTHORIZED);
}

static void test_entitlement(void)
{
    g_autoptr(Slice) before = make_slice(SLICE_BURSTABLE, 4, 25);

    assert_entitled(100, 50, 4, NULL, TRUE);
    assert_entitled(1, 10, 0, NULL, TRUE);
    assert_entitled(101, 50, 4, NULL, FALSE);
    assert_entitled(100, 51, 4, NULL, FALSE);
    assert_entitled(100, 0, 4, NULL, FALSE);
    assert_entitled(100, 50, 5, NULL, FALSE);
    /* Values that an administrator has set stay. */
    before->weight = 500;
    before->cap = 0;
    before->priority = 9;
    assert_entitled(500, 0, 9, before, TRUE);
    assert_entitled(501, 0, 9, before, FALSE);
}

/* The type's values are unknown: no more than the vGPU has. */
static void test_entitlement_unknown(void)
{
    g_autoptr(Slice) slice = make_slice(SLICE_BURSTABLE, 4, 25);
    g_autoptr(Slice) before = slice_copy(slice);
    g_autoptr(GError) error = NULL;

    g_assert_true(entitlement_check(slice, before, NULL, &error));
    slice->weight = before->weight + 1;
    g_assert_false(entitlement_check(slice, before, NULL, &error));
    g_assert_error(error, AGENT_ERROR, AGENT_ERROR_NOT_AUTHORIZED);
    g_clear_error(&error);
    g_assert_false(entitlement_check(slice, NULL, NULL, &error));
    g_assert_error(error, AGENT_ERROR, AGENT_ERROR_NOT_AUTHORIZED);
}

/* The host's memory is shared by all, too. */
static void test_oversubscription(void)
{
    const struct vgpu_type_desc desc = {.weight = 100, .cap = 100};
    const Offer offer = {.id = "half", .desc = &desc, .oversubscribe = MIB};
    g_autoptr(Slice) slice = make_slice(SLICE_BURSTABLE, 4, 25);
    g_autoptr(Slice) before = slice_copy(slice);
    g_autoptr(GError) error = NULL;

    slice->oversubscribe = MIB;
    g_assert_true(entitlement_check(slice, NULL, &offer, &error));
    slice->oversubscribe = 2 * MIB;
    g_assert_false(entitlement_check(slice, before, &offer, &error));
    g_assert_error(error, AGENT_ERROR, AGENT_ERROR_NOT_AUTHORIZED);
    before->oversubscribe = 2 * MIB;
    g_clear_error(&error);
    g_assert_true(entitlement_check(slice, before, &offer, &error));
}

/* A member cannot add engines that an administrator has excluded. */
static void test_engines(void)
{
    const struct vgpu_type_desc desc = {.weight = 100, .cap = 100};
    const Offer offer = {.id = "half", .desc = &desc};
    g_autoptr(Slice) slice = make_slice(SLICE_BURSTABLE, 4, 25);
    g_autoptr(Slice) before = slice_copy(slice);
    g_autoptr(GError) error = NULL;

    slice->engines = ENGINE_COMPUTE;
    g_assert_true(entitlement_check(slice, NULL, &offer, &error));
    g_assert_true(entitlement_check(slice, before, &offer, &error));
    before->engines = ENGINE_COMPUTE | ENGINE_ENCODE;
    g_assert_true(entitlement_check(slice, before, &offer, &error));
    slice->engines = ENGINE_COMPUTE | ENGINE_DECODE;
    g_assert_false(entitlement_check(slice, before, &offer, &error));
    g_assert_error(error, AGENT_ERROR, AGENT_ERROR_NOT_AUTHORIZED);
    g_clear_error(&error);
    slice->engines = 0;
    g_assert_false(entitlement_check(slice, before, &offer, &error));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/ledger/room", test_room);
    g_test_add_func("/ledger/overcommit", test_overcommit);
    g_test_add_func("/ledger/resident", test_resident);
    g_test_add_func("/ledger/cannot-move", test_cannot_move);
    g_test_add_func("/ledger/quota", test_quota);
    g_test_add_func("/ledger/placement", test_placement);
    g_test_add_func("/ledger/no-room", test_no_room);
    g_test_add_func("/ledger/no-room-now", test_no_room_now);
    g_test_add_func("/ledger/no-room-ever", test_no_room_ever);
    g_test_add_func("/ledger/neighbours", test_neighbours);
    g_test_add_func("/ledger/requests", test_requests);
    g_test_add_func("/ledger/entitlement", test_entitlement);
    g_test_add_func("/ledger/entitlement-unknown", test_entitlement_unknown);
    g_test_add_func("/ledger/oversubscription", test_oversubscription);
    g_test_add_func("/ledger/engines", test_engines);
    return g_test_run();
}
