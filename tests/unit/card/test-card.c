/* SPDX-License-Identifier: MIT */
/* vgpu-card without a GPU: its programs always end, and its page contains only its sheet. */
#include "card.h"
#include "numbers.h"
#include "place.h"
#include "program.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <string.h>

static char *run_script(const char *script, guint limit_s, GError **error)
{
    const char *argv[] = {"/bin/sh", "-c", script, NULL};
    const char *env[] = {"PATH=/usr/bin:/bin", NULL};
    const ProgramSpec spec = {argv, env, limit_s, -1};

    return program_run(&spec, error);
}

static void test_program_output(void)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *text = run_script("echo one; echo two >&2; echo three", 10, &error);

    g_assert_no_error(error);
    g_assert_cmpstr(text, ==, "one\nthree\n");
}

/* The page has the program's last message. */
static void test_program_fails(void)
{
    g_autoptr(GError) error = NULL;

    g_assert_null(run_script("echo first >&2; echo the reason >&2; exit 3", 10, &error));
    g_assert_cmpstr(error->message, ==, "sh: the reason");
}

static void test_program_hangs(void)
{
    g_autoptr(GError) error = NULL;

    g_assert_null(run_script("exec sleep 600", 1, &error));
    g_assert_error(error, G_IO_ERROR, G_IO_ERROR_TIMED_OUT);
}

static void test_program_missing(void)
{
    const char *argv[] = {"/nowhere/at-all", NULL};
    const char *env[] = {"PATH=/usr/bin:/bin", NULL};
    const ProgramSpec spec = {argv, env, 10, -1};
    g_autoptr(GError) error = NULL;

    g_assert_null(program_run(&spec, &error));
    g_assert_nonnull(error);
    g_assert_nonnull(strstr(error->message, "at-all"));
}

/* A program's children end with it. */
static void test_program_children(void)
{
    const char *argv[] = {"/bin/sh", "-c", "sleep 600 & echo $!; wait", NULL};
    const char *env[] = {"PATH=/usr/bin:/bin", NULL};
    const ProgramSpec spec = {argv, env, 30, -1};
    g_autoptr(GError) error = NULL;
    Program *program = program_start(&spec, &error);
    g_autofree char *line = NULL;
    GPid child;

    g_assert_no_error(error);
    line = program_line(program, &error);
    g_assert_no_error(error);
    child = (GPid)g_ascii_strtoll(line, NULL, 10);
    g_assert_cmpint(child, >, 1);
    g_assert_cmpint(kill(child, 0), ==, 0);
    program_free(program);
    for (int i = 0; i < 500 && kill(child, 0) == 0; i++)
        g_usleep(10 * G_TIME_SPAN_MILLISECOND);
    g_assert_cmpint(kill(child, 0), ==, -1);
    g_assert_cmpint(errno, ==, ESRCH);
}

static void test_numbers(void)
{
    static const double values[] = {5, 1, 4, 2, 3};
    g_autoptr(GArray) array = g_array_new(FALSE, FALSE, sizeof(double));
    g_autoptr(JsonObject) summary = NULL;

    g_assert_true(isnan(values_quantile(array, 0.5)));
    g_array_append_vals(array, values, G_N_ELEMENTS(values));
    summary = summary_of(array);
    g_assert_cmpfloat(json_object_get_double_member(summary, "median"), ==, 3);
    g_assert_cmpfloat(json_object_get_double_member(summary, "low"), ==, 1);
    g_assert_cmpfloat(json_object_get_double_member(summary, "high"), ==, 5);
}

/* What the parts found on a GPU whose driver has @dma_buf, and where only the native door computes.
 */
static JsonObject *make_sheet(gboolean dma_buf)
{
    g_autofree char *text = g_strdup_printf(
        "{\"version\": \"1\","
        " \"machine\": {\"date\": \"2026-01-01\", \"kernel\": \"6.13\", \"system\": \"Debian\", "
        "\"processor\": \"P\","
        "  \"processors\": 2, \"memory_mib\": 1024},"
        " \"gpu\": {\"name\": \"Card\", \"driver\": \"radv\", \"driver_info\": \"Mesa 25\", "
        "\"api\": \"1.4.0\","
        "  \"heaps\": [{\"mib\": 512, \"device_local\": true, \"host_visible\": false}], "
        "\"queues\": []},"
        " \"abilities\": [{\"name\": \"memory as dma-buf\", \"has\": %s, \"for\": \"VMs\"},"
        "  {\"name\": \"host-visible dma-buf, mapped by the CPU\", \"has\": true, \"for\": "
        "\"VMs\"}],"
        " \"correct\": [{\"place\": \"governed\", \"right\": true},"
        "  {\"place\": \"guarded\", \"right\": false, \"why\": \"the data was wrong\"}],"
        " \"governor\": [], \"speed\": [{\"row\": \"tiny\", \"unit\": \"us\","
        "  \"native\": {\"median\": 12, \"low\": 11, \"high\": 13}}]}",
        dma_buf ? "true" : "false");
    g_autoptr(GError) error = NULL;
    JsonObject *object = object_of(text, &error);

    g_assert_no_error(error);
    return object;
}

static gboolean door_works(JsonObject *object, guint door)
{
    JsonArray *doors = json_object_get_array_member(object, "doors");

    return json_object_get_boolean_member(json_array_get_object_element(doors, door), "works");
}

static void test_verdict(void)
{
    for (int dma_buf = 0; dma_buf <= 1; dma_buf++) {
        g_autoptr(JsonObject) object = make_sheet(dma_buf);
        Card card = {.sheet = object};

        verdict_reach(&card);
        g_assert_true(door_works(object, 0));
        g_assert_false(door_works(object, 1));
        g_assert_cmpint(door_works(object, 2), ==, dma_buf);
        /* VMs were not tried, so the line for the README's table does not mention them. */
        g_assert_cmpstr(json_object_get_string_member(object, "seen_on"), ==,
                        "| Card | radv Mesa 25, Linux 6.13 | containers, native door |");
    }
}

static void test_page(void)
{
    g_autoptr(JsonObject) object = make_sheet(TRUE);
    g_autofree char *page = NULL;
    Card card = {.sheet = object};

    card_failed(&card, "cap", g_error_new(G_IO_ERROR, G_IO_ERROR_FAILED, "it hung"));
    verdict_reach(&card);
    page = page_of(object);
    g_assert_nonnull(strstr(page, "| containers, guarded door | no | the data was wrong |"));
    g_assert_nonnull(strstr(page, "| tiny | us | 12 (11-13) | - | - |"));
    g_assert_nonnull(strstr(page, "- memory: 512 MiB, the GPU's own\n"));
    g_assert_nonnull(strstr(page, "- cap: it hung\n"));
}

/* A missing program is named, and the rest continues. */
static void test_tool_missing(void)
{
    g_autoptr(JsonObject) object = make_sheet(TRUE);
    g_autofree char *page = NULL;
    char name[] = "Card", address[] = "soft:card";
    Card card = {.name = name,
                 .address = address,
                 .processor = -1,
                 .build = "/nowhere",
                 .rounds = 1,
                 .sheet = object};

    json_object_remove_member(object, "correct");
    json_object_remove_member(object, "speed");
    speed_measure(&card);
    shares_measure(&card);
    verdict_reach(&card);
    g_assert_false(door_works(object, 0));
    g_assert_false(door_works(object, 1));
    page = page_of(object);
    g_assert_nonnull(strstr(page, "/nowhere/governor/vgpu-arbiter is missing"));
    g_assert_nonnull(strstr(page, "/nowhere/bench/governor-load/governor-load is missing"));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    signal(SIGPIPE, SIG_IGN);
    g_test_add_func("/card/program-output", test_program_output);
    g_test_add_func("/card/program-fails", test_program_fails);
    g_test_add_func("/card/program-hangs", test_program_hangs);
    g_test_add_func("/card/program-missing", test_program_missing);
    g_test_add_func("/card/program-children", test_program_children);
    g_test_add_func("/card/numbers", test_numbers);
    g_test_add_func("/card/verdict", test_verdict);
    g_test_add_func("/card/page", test_page);
    g_test_add_func("/card/tool-missing", test_tool_missing);
    return g_test_run();
}
