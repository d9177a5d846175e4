/* SPDX-License-Identifier: MIT */
/* Quantities, seats, names and parameters of slices: what needs neither a kubelet nor an API. */
#include <string.h>

#include "fleet/kubernetes/dra/claim.h"
#include "fleet/kubernetes/dra/quantity.h"
#include "fleet/kubernetes/dra/slice_config.h"
#include "fleet/kubernetes/names.h"
#include "fleet/kubernetes/nvlink.h"
#include "fleet/kubernetes/plugin/choose.h"

#define GIB (G_GUINT64_CONSTANT(1) << 30)

/* @linked: of four cards, a row for each, "x" for a link. */
static void assert_domains(const char *linked, int a, int b, int c, int d)
{
    const int wanted[4] = {a, b, c, d};
    g_auto(GStrv) lines = g_strsplit(linked, " ", -1);
    g_autoptr(GVariant) rows = NULL;
    GVariantBuilder all;
    int domains[4];

    g_variant_builder_init(&all, G_VARIANT_TYPE("aas"));
    for (guint i = 0; lines[i]; i++) {
        g_variant_builder_open(&all, G_VARIANT_TYPE("as"));
        for (const char *at = lines[i]; *at; at++)
            g_variant_builder_add(&all, "s", *at == 'x' ? "NV12" : "NODE");
        g_variant_builder_close(&all);
    }
    rows = g_variant_ref_sink(g_variant_builder_end(&all));
    nvlink_domains(rows, 4, domains);
    for (guint i = 0; i < 4; i++)
        g_assert_cmpint(domains[i], ==, wanted[i]);
}

static void test_nvlink(void)
{
    assert_domains("---- ---- ---- ----", -1, -1, -1, -1);
    assert_domains("-x-- x--- ---x --x-", 0, 0, 2, 2);
    assert_domains("-xxx x-xx xx-x xxx-", 0, 0, 0, 0);
    assert_domains("-xx- x-x- xx-- ----", 0, 0, 0, -1);
    /* A ring: each is linked to two, and equality of a name could not say to which. */
    assert_domains("-x-x x-x- -x-x x-x-", -1, -1, -1, -1);
    /* One side says so only, as while the readings are written, and rows that are too short. */
    assert_domains("-x-- ---- ---- ----", -1, -1, -1, -1);
    assert_domains("-x x", 0, 0, -1, -1);
}

static void test_quantities(void)
{
    static const struct {
        const char *text;
        guint64 value;
    } good[] = {
        {"0", 0},
        {"30", 30},
        {"+7", 7},
        {"8Gi", 8 * GIB},
        {"1.5Gi", GIB + GIB / 2},
        {"8G", G_GUINT64_CONSTANT(8000000000)},
        {"2e3", 2000},
        {"2E3", 2000},
        {"1E", G_GUINT64_CONSTANT(1000000000000000000)},
        {"1500m", 2},
        {"1m", 1},
        {"1n", 1},
        {"0.000001k", 1},
        {"100k", 100000},
        {".5Ki", 512},
        {"5.", 5},
        {"15Ei", 15 * (GIB << 30)},
        {"18446744073709551615", G_MAXUINT64},
    };
    static const char *const bad[] = {"",
                                      "Gi",
                                      ".",
                                      "-1",
                                      "1gi",
                                      "1 Gi",
                                      "1Gi ",
                                      "0x10",
                                      "1e",
                                      "1e99",
                                      "1..2",
                                      "16Ei",
                                      "18446744073709551616",
                                      "99999999999999999999999999999999999999999999",
                                      "0.0000000000000000001",
                                      "1e-",
                                      "8GiB"};
    guint64 value;

    for (guint i = 0; i < G_N_ELEMENTS(good); i++) {
        g_test_message("%s", good[i].text);
        g_assert_true(quantity_parse(good[i].text, &value));
        g_assert_cmpuint(value, ==, good[i].value);
    }
    for (guint i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_test_message("%s", bad[i]);
        g_assert_false(quantity_parse(bad[i], &value));
    }
}

static void test_formats(void)
{
    static const struct {
        guint64 bytes;
        const char *text;
    } all[] = {{0, "0"},
               {1, "1"},
               {1023, "1023"},
               {1024, "1Ki"},
               {80 * GIB, "80Gi"},
               {81921 * (GIB >> 10), "81921Mi"},
               {1024 * GIB, "1Ti"},
               {GIB << 30, "1Ei"}};

    for (guint i = 0; i < G_N_ELEMENTS(all); i++) {
        g_autofree char *text = quantity_format(all[i].bytes);

        g_assert_cmpstr(text, ==, all[i].text);
    }
}

static void test_names(void)
{
    g_autofree char *plain = kube_device_name("0000:41:00.0");
    g_autofree char *soft = kube_device_name("soft:Live_1.");
    g_autofree char *longest = g_strnfill(100, 'a');
    g_autofree char *cut = kube_device_name(longest);

    g_assert_cmpstr(plain, ==, "gpu-0000-41-00-0");
    g_assert_cmpstr(soft, ==, "gpu-soft-live-1");
    g_assert_cmpuint(strlen(cut), ==, 53);
}

static void check_choice(const char *available, const char *required, guint count, gboolean spread,
                         const char *wanted)
{
    g_auto(GStrv) has = g_strsplit_set(available, " ", -1),
                  must = g_strsplit_set(required, " ", -1);
    g_auto(GStrv) chosen =
        choose_seats((const char *const *)has, g_strv_length(has), (const char *const *)must,
                     *required ? g_strv_length(must) : 0, count, spread);
    g_autofree char *text = chosen ? g_strjoinv(" ", chosen) : NULL;

    g_assert_cmpstr(text, ==, wanted);
}

static void test_choices(void)
{
    const char *free_ones = "b-seat-1 a-seat-0 a-seat-1 a-seat-2 c-seat-3 c-seat-1";

    check_choice(free_ones, "", 1, FALSE, "b-seat-1");
    check_choice(free_ones, "", 3, FALSE, "b-seat-1 c-seat-1 c-seat-3");
    check_choice(free_ones, "", 3, TRUE, "a-seat-0 b-seat-1 c-seat-1");
    check_choice(free_ones, "", 5, TRUE, "a-seat-0 b-seat-1 c-seat-1 a-seat-1 c-seat-3");
    check_choice(free_ones, "a-seat-2", 2, FALSE, "a-seat-2 b-seat-1");
    check_choice(free_ones, "", 0, FALSE, "");
    check_choice(free_ones, "", 7, FALSE, NULL);
    check_choice(free_ones, "a-seat-0 a-seat-1", 1, FALSE, NULL);
    check_choice("x y", "", 1, FALSE, "x");
}

/* Adds "source:json" each; FALSE: one was refused. */
static gboolean add_settings(SliceSettings *settings, const char *const *texts, GError **error)
{
    for (guint i = 0; texts[i]; i++) {
        g_autoptr(JsonNode) node = json_from_string(strchr(texts[i], '{'), NULL);
        JsonObject *object = json_node_get_object(node);

        json_object_set_string_member(object, "apiVersion", "mdev-vgpu.org/v1");
        if (!json_object_has_member(object, "kind"))
            json_object_set_string_member(object, "kind", "SliceConfig");
        if (!slice_settings_add(settings, object, g_str_has_prefix(texts[i], "class"), error))
            return FALSE;
    }
    return TRUE;
}

/* @wanted: "door class engines cap priority oversubscribe", or a part of the error. */
static void check_settings(const char *const *texts, const char *wanted)
{
    g_auto(SliceSettings) settings = SLICE_SETTINGS_INIT;
    g_autoptr(AgentSlice) slice = g_new0(AgentSlice, 1);
    g_autoptr(GError) error = NULL;
    g_autofree char *text = NULL;

    if (add_settings(&settings, texts, &error) && slice_settings_apply(&settings, slice, &error)) {
        text = g_strdup_printf("%s %s %s %u %u %" G_GUINT64_FORMAT, slice->door, slice->class,
                               slice->engines ? slice->engines : "-", slice->cap, slice->priority,
                               slice->oversubscribe);
        g_assert_cmpstr(text, ==, wanted);
    } else {
        g_test_message("%s", error->message);
        g_assert_nonnull(strstr(error->message, wanted));
    }
}

#define CHECK(wanted, ...) check_settings((const char *const[]){__VA_ARGS__, NULL}, wanted)
#define LIMITS(fields)     "class{\"kind\": \"SliceLimits\", " fields "}"

/* A claim of 64 bytes that may have @vram of them, of which @resident do not move. */
static void check_vram(guint64 vram, guint64 resident, const char *const *texts)
{
    g_auto(SliceSettings) settings = SLICE_SETTINGS_INIT;
    g_autoptr(AgentSlice) slice = g_new0(AgentSlice, 1);
    g_autoptr(GError) error = NULL;

    slice->vram = 64;
    g_assert_true(add_settings(&settings, texts, &error));
    g_assert_true(slice_settings_apply(&settings, slice, &error));
    g_assert_cmpuint(slice->vram, ==, vram);
    g_assert_cmpuint(slice->resident, ==, resident);
}

#define CHECK_VRAM(vram, ...) check_vram(vram, 0, (const char *const[]){__VA_ARGS__, NULL})

static void check_refused_vram(const char *words, const char *text)
{
    g_auto(SliceSettings) settings = SLICE_SETTINGS_INIT;
    g_autoptr(AgentSlice) slice = g_new0(AgentSlice, 1);
    g_autoptr(GError) error = NULL;

    slice->vram = 64;
    g_assert_true(add_settings(&settings, (const char *const[]){text, NULL}, &error));
    g_assert_false(slice_settings_apply(&settings, slice, &error));
    g_assert_nonnull(strstr(error->message, words));
}

static void test_vram(void)
{
    CHECK_VRAM(64, "claim{}");
    CHECK_VRAM(64, "class{\"vram\": \"64\"}");
    CHECK_VRAM(1024, "class{\"vram\": \"1Ki\", \"class\": \"best-effort\"}");
    CHECK_VRAM(100, "class{\"vram\": \"1Ki\"}",
               "claim{\"vram\": \"100\", \"class\": \"burstable\"}");
    CHECK_VRAM(2048, LIMITS("\"vram\": \"2Ki\""),
               "claim{\"vram\": \"2Ki\", \"class\": \"best-effort\"}");
    check_vram(1024, 64,
               (const char *const[]){
                   "class{\"vram\": \"1Ki\", \"class\": \"burstable\", \"moves\": true}", NULL});
    CHECK_VRAM(64, "claim{\"class\": \"burstable\", \"moves\": true}");
    check_vram(6400, 64,
               (const char *const[]){
                   "class{\"vram\": \"6400\", \"class\": \"best-effort\", \"moves\": true}", NULL});
    CHECK_VRAM(6500, "class{\"vram\": \"6500\", \"class\": \"best-effort\"}");
    check_refused_vram("at least a hundredth of its \"vram\", and not 64 bytes of 6500",
                       "class{\"vram\": \"6500\", \"class\": \"best-effort\", \"moves\": true}");
    CHECK("must be true or false", "claim{\"moves\": 1}");
    CHECK("0 at most", "claim{\"vram\": \"1Ki\", \"class\": \"best-effort\"}");
    CHECK("2048 at most", LIMITS("\"vram\": \"2Ki\""),
          "claim{\"vram\": \"3Ki\", \"class\": \"best-effort\"}");
    CHECK("a guaranteed slice", "class{\"vram\": \"1Ki\"}");
    CHECK("must be an amount", "class{\"vram\": 5}");
}

static void test_settings(void)
{
    CHECK("auto guaranteed - 0 0 0", "claim{}");
    CHECK(
        "native burstable all 50 3 1024",
        "class{\"door\": \"native\", \"class\": \"burstable\", \"engines\": \"all\", \"cap\": 50, "
        "\"priority\": 3, \"oversubscribe\": \"1Ki\"}");
    CHECK("native guaranteed - 0 0 0", "class{\"door\": \"native\"}",
          "claim{\"door\": \"native\"}");
    CHECK("does not allow the door", "class{\"door\": \"native\"}", "claim{\"door\": \"guarded\"}");
    CHECK("guarded guaranteed - 0 0 0", "class{\"door\": \"native\"}",
          LIMITS("\"doors\": [\"guarded\"]"), "claim{\"door\": \"guarded\"}");
    CHECK("does not allow the door", LIMITS("\"doors\": []"), "claim{\"door\": \"guarded\"}");
    CHECK("guarded guaranteed - 0 0 0", "claim{\"door\": \"guarded\"}");
    CHECK("does not allow the door", "claim{\"door\": \"native\"}");
    CHECK("native guaranteed - 0 0 0", LIMITS("\"doors\": [\"native\", \"guarded\"]"), "claim{}");
    CHECK("auto guaranteed - 0 0 0", LIMITS("\"doors\": [\"native\", \"auto\"]"), "claim{}");
    CHECK("guarded guaranteed - 0 0 0", LIMITS("\"doors\": []"), "claim{}");
    CHECK("auto best-effort - 0 0 0", "claim{\"class\": \"best-effort\"}");
    CHECK("does not allow the class", LIMITS("\"classes\": [\"best-effort\"]"),
          "claim{\"class\": \"guaranteed\"}");
    CHECK("0 at most", "claim{\"priority\": 1}");
    CHECK("3 at most", "class{\"priority\": 3}", "claim{\"priority\": 4}");
    CHECK("auto guaranteed - 0 2 0", "class{\"priority\": 3}", "claim{\"priority\": 2}");
    CHECK("auto guaranteed - 0 9 0", LIMITS("\"priority\": 9"), "claim{\"priority\": 9}");
    CHECK("auto guaranteed - 30 0 0", LIMITS("\"cap\": 30"), "claim{\"cap\": 90}");
    CHECK("auto guaranteed - 20 0 0", LIMITS("\"cap\": 30"), "claim{\"cap\": 20}");
    CHECK("auto guaranteed - 30 0 0", LIMITS("\"cap\": 30"));
    CHECK("0 at most", "claim{\"oversubscribe\": \"4Gi\"}");
    CHECK("auto guaranteed - 0 0 4294967296", LIMITS("\"oversubscribe\": \"8Gi\""),
          "claim{\"oversubscribe\": \"4Gi\"}");
    CHECK("must be a number from 1 to 100", "claim{\"cap\": 0}");
    CHECK("must be a number from 0 to 15", "claim{\"priority\": \"3\"}");
    CHECK("must be one of", "claim{\"door\": 5}");
    CHECK("must be one of", "claim{\"door\": \"window\"}");
    CHECK("no field \"doors\"", "claim{\"doors\": []}");
    CHECK("for a DeviceClass", "claim{\"kind\": \"SliceLimits\"}");
    CHECK("must have the kind", "claim{\"kind\": 4}");
}

#define STATUS(reason, kind, message)                                                              \
    "{\"kind\":\"Status\",\"reason\":\"" reason "\",\"message\":\"" message                        \
    "\",\"details\":{\"kind\":\"" kind "\",\"name\":\"c\"}}"
#define RESULTS(list)                                                                              \
    "{\"metadata\":{\"uid\":\"u\"},\"status\":{\"allocation\":{\"devices\":{\"results\":[" list    \
    "]}}}}"
#define OURS(pool) "{\"driver\":\"" KUBE_DRIVER "\",\"pool\":\"" pool "\"}"
#define NO_POD     "no relationship found between node 'n' and this object"

static void test_over(void)
{
    static const struct {
        guint status;
        const char *text;
        gboolean is_over;
    } cases[] = {
        {404, STATUS("NotFound", "resourceclaims", ""), TRUE},
        {404, STATUS("NotFound", "namespaces", ""), FALSE},
        {404, STATUS("", "resourceclaims", ""), FALSE},
        {404, "404 page not found", FALSE},
        {403, STATUS("Forbidden", "resourceclaims", NO_POD), TRUE},
        {403, STATUS("Forbidden", "resourceclaims", "RBAC: not allowed"), FALSE},
        {403, STATUS("NotFound", "resourceclaims", NO_POD), FALSE},
        {401, STATUS("Unauthorized", "resourceclaims", NO_POD), FALSE},
        {500, STATUS("NotFound", "resourceclaims", ""), FALSE},
        {200, "{\"metadata\":{\"uid\":\"v\"}}", TRUE},
        {200, "{\"metadata\":{\"uid\":7}}", FALSE},
        {200, "{}", FALSE},
        {200, "[]", FALSE},
        {200, "", FALSE},
        {200, "{\"metadata\":{\"uid\":\"u\"}}", TRUE},
        {200, RESULTS(""), TRUE},
        {200, RESULTS(OURS("n")), FALSE},
        {200, RESULTS(OURS("m")), TRUE},
        {200, RESULTS("7"), FALSE},
        {200, RESULTS("{\"driver\":\"other\",\"pool\":\"n\"}"), TRUE},
    };

    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_test_message("%u %s", cases[i].status, cases[i].text);
        g_assert_cmpint(
            claim_is_over(cases[i].status, cases[i].text, strlen(cases[i].text), "u", "n"), ==,
            cases[i].is_over);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/quantity/parse", test_quantities);
    g_test_add_func("/quantity/format", test_formats);
    g_test_add_func("/names", test_names);
    g_test_add_func("/seats", test_choices);
    g_test_add_func("/settings", test_settings);
    g_test_add_func("/settings/vram", test_vram);
    g_test_add_func("/claim/over", test_over);
    g_test_add_func("/nvlink", test_nvlink);
    return g_test_run();
}
