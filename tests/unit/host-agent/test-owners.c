/* SPDX-License-Identifier: MIT */
/* What an engine makes for its jobs: the same call twice, all or none, and their end. */
#include <string.h>

#include "host-agent/meter/metrics_server.h"
#include "host-agent/store/owner_table.h"
#include "lib/bus.h"
#include "tests/unit/file_tree.h"
#include "tests/unit/host-agent/fake_arbiter.h"
#include "tests/unit/host-agent/slices_kit.h"

#define OWNER "slurm:test:4711"
#define JOB   "slurm job 4711"

typedef struct {
    GVariant *value;
    GError *error;
    gboolean done;
} Answer;

static void answered(GObject *bus, GAsyncResult *result, void *data)
{
    Answer *answer = data;

    answer->value = g_dbus_connection_call_finish(G_DBUS_CONNECTION(bus), result, &answer->error);
    answer->done = TRUE;
}

static gboolean is_done(gconstpointer data)
{
    return ((const Answer *)data)->done;
}

/* A method of the manager; the answer's first value, or NULL with @error. */
static GVariant *call(const AgentOnBus *at, const char *method, GVariant *parameters,
                      GError **error)
{
    Answer answer = {0};
    GVariant *first = NULL;

    (void)AGENT_ERROR;
    g_dbus_connection_call(at->bus, VGPU_BUS_NAME, VGPU_MANAGER_PATH, VGPU_MANAGER_INTERFACE,
                           method, parameters, NULL, G_DBUS_CALL_FLAGS_NONE, -1, NULL, answered,
                           &answer);
    iterate_until(is_done, &answer);
    if (answer.value) {
        first = g_variant_get_child_value(answer.value, 0);
        g_variant_unref(answer.value);
    } else {
        g_dbus_error_strip_remote_error(answer.error);
        g_test_message("%s: %s", method, answer.error->message);
        g_propagate_error(error, answer.error);
    }
    return first;
}

/* As text, so that a test reads like what an engine sends. */
static GVariant *create(const AgentOnBus *at, const char *method, const char *text, GError **error)
{
    return call(at, method, g_variant_new_parsed(text), error);
}

static char *uuid_of(GVariant *slice)
{
    char *uuid = NULL;

    g_assert_true(g_variant_lookup(slice, "Uuid", "s", &uuid));
    return uuid;
}

#define SLICE(part, more)                                                                          \
    "{'Owner': <'" OWNER "'>, 'Part': <'" part "'>, 'Pool': <'local'>, 'Uid': <uint32 0>,"         \
    " 'Gpus': <['" ADDRESS "']>, 'Vram': <uint64 4294967296>" more "}"
/* Without a size. */
#define ANY     "{'Owner': <'" OWNER "'>, 'Pool': <'local'>, "
#define NATIVE  ", 'Door': <'native'>"
#define GUARDED ", 'Door': <'guarded'>"

static void assert_refused(const AgentOnBus *at, const char *method, const char *text, int code,
                           const char *words)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GVariant) answer = create(at, method, text, &error);

    g_assert_null(answer);
    g_assert_error(error, AGENT_ERROR, code);
    g_assert_nonnull(strstr(error->message, words));
}

static char *made(const AgentOnBus *at, const char *request)
{
    g_autofree char *text = g_strdup_printf("([%s],)", request);
    g_autoptr(GError) error = NULL;
    g_autoptr(GVariant) answer = create(at, "CreateSlices", text, &error);
    g_autoptr(GVariant) slice = NULL;

    g_assert_no_error(error);
    slice = g_variant_get_child_value(answer, 0);
    return uuid_of(slice);
}

static guint64 number_in(GVariant *dict, const char *key)
{
    g_autoptr(GVariant) value = g_variant_lookup_value(dict, key, NULL);

    g_assert_nonnull(value);
    return g_variant_is_of_type(value, G_VARIANT_TYPE_UINT32) ? g_variant_get_uint32(value)
                                                              : g_variant_get_uint64(value);
}

static GVariant *release(const AgentOnBus *at, const char *owner)
{
    g_autoptr(GError) error = NULL;
    GVariant *totals = call(at, "ReleaseOwner", g_variant_new("(sa{sv})", owner, NULL), &error);

    g_assert_no_error(error);
    return totals;
}

static guint owners(const AgentOnBus *at)
{
    g_autoptr(GVariant) list = call(at, "ListOwners", NULL, NULL);

    return (guint)g_variant_n_children(list);
}

static void test_again(void)
{
    AgentOnBus at;
    g_autofree char *first = NULL, *second = NULL, *third = NULL, *other = NULL;

    open_shared(&at);
    first = made(&at, SLICE("0", NATIVE));
    second = made(&at, SLICE("0", NATIVE));
    g_assert_cmpstr(first, ==, second);
    agent_on_bus_restart(&at);
    third = made(&at, SLICE("0", NATIVE));
    g_assert_cmpstr(first, ==, third);
    assert_refused(&at, "CreateSlices", "([" SLICE("0", GUARDED) "],)", AGENT_ERROR_EXISTS,
                   "has a slice 0 already");
    other = made(&at, SLICE("1", NATIVE));
    g_assert_cmpstr(first, !=, other);
    g_assert_cmpuint(owners(&at), ==, 1);
    agent_on_bus_close(&at);
}

static void test_all_or_none(void)
{
    AgentOnBus at;
    g_autoptr(GError) error = NULL;
    g_autoptr(GVariant) both = NULL, again = NULL, more = NULL;
    g_autofree char *one = NULL, *two = NULL, *same = NULL, *zero = NULL;

    open_shared(&at);
    assert_refused(&at, "CreateSlices",
                   "([" SLICE("0", NATIVE) ", " SLICE("1", NATIVE) ", " SLICE(
                       "2", GUARDED) ", " SLICE("3", NATIVE) "],)",
                   AGENT_ERROR_NO_ROOM, "3.984 GiB of 15.98 GiB are free");
    g_assert_cmpuint(owners(&at), ==, 0);
    assert_says("slice list", 0, "no slice", "");
    both =
        create(&at, "CreateSlices", "([" SLICE("0", NATIVE) ", " SLICE("1", GUARDED) "],)", &error);
    g_assert_no_error(error);
    g_assert_cmpuint(g_variant_n_children(both), ==, 2);
    again = create(&at, "CreateSlices",
                   "([" SLICE("1", GUARDED) ", " SLICE("2", NATIVE) ", " SLICE("0", NATIVE) "],)",
                   &error);
    g_assert_no_error(error);
    {
        g_autoptr(GVariant) a = g_variant_get_child_value(both, 1);
        g_autoptr(GVariant) b = g_variant_get_child_value(again, 0);
        g_autoptr(GVariant) c = g_variant_get_child_value(both, 0);
        g_autoptr(GVariant) d = g_variant_get_child_value(again, 2);

        one = uuid_of(a);
        two = uuid_of(b);
        zero = uuid_of(c);
        same = uuid_of(d);
    }
    g_assert_cmpstr(one, ==, two);
    g_assert_cmpstr(zero, ==, same);
    /* One that differs spoils the call, and the new one is not made. */
    assert_refused(&at, "CreateSlices", "([" SLICE("0", GUARDED) "],)", AGENT_ERROR_EXISTS,
                   "requested with other values");
    agent_on_bus_close(&at);
}

static void test_bad_requests(void)
{
    static const char *const names[] = {
        "",     ".",
        "..",   "../x",
        "a/b",  ".hidden",
        "-a",   "a b",
        "a\\n", "1234567890123456789012345678901234567890123456789012345678901"};
    AgentOnBus at;

    open_shared(&at);
    for (gsize i = 0; i < G_N_ELEMENTS(names); i++) {
        g_autofree char *owner = g_strdup_printf("([{'Owner': <'%s'>, 'Part': <'0'>, 'Door': "
                                                 "<'native'>, 'Vram': <uint64 1073741824>}],)",
                                                 names[i]);
        g_autofree char *part = g_strdup_printf("([{'Owner': <'o'>, 'Part': <'%s'>, 'Door': "
                                                "<'native'>, 'Vram': <uint64 1073741824>}],)",
                                                names[i]);

        assert_refused(&at, "CreateSlices", owner, AGENT_ERROR_INVALID, "Owner must be");
        assert_refused(&at, "CreateSlices", part, AGENT_ERROR_INVALID, "Part is needed");
    }
    assert_refused(&at, "CreateSlices",
                   "([{'Uid': <uint32 1000>, 'Door': <'native'>, 'Vram': <uint64 1073741824>}],)",
                   AGENT_ERROR_INVALID, "need an Owner");
    assert_refused(&at, "CreateSlices", "([" SLICE("0", NATIVE ", 'Ephemeral': <true>") "],)",
                   AGENT_ERROR_INVALID, "ends with it");
    assert_refused(&at, "CreateSlices", "([{'Door': <'none'>, 'Type': <'half'>}],)",
                   AGENT_ERROR_INVALID, "Door must be");
    assert_refused(&at, "CreateSlices", "([" SLICE("0", NATIVE) ", " SLICE("0", NATIVE) "],)",
                   AGENT_ERROR_INVALID, "twice");
    assert_refused(&at, "CreateSlices",
                   "([" SLICE("0", NATIVE) ", {'Owner': <'o'>, 'Part': <'1'>, 'Door': <'native'>,"
                                           " 'Vram': <uint64 1073741824>}],)",
                   AGENT_ERROR_INVALID, "same Owner");
    assert_refused(&at, "CreateSlices", "(@aa{sv} [],)", AGENT_ERROR_INVALID, "1 to 64");
    assert_refused(&at, "RunSlice",
                   "({'Owner': <'o'>, 'Part': <'1'>, 'Vram': <uint64 1073741824>}, 'x')",
                   AGENT_ERROR_INVALID, "has no Owner");
    g_assert_cmpuint(owners(&at), ==, 0);
    agent_on_bus_close(&at);
}

static void test_release(void)
{
    AgentOnBus at;
    g_autoptr(GVariant) none = NULL, totals = NULL, again = NULL, later = NULL;
    g_autofree char *uuid = NULL, *next = NULL, *line = NULL, *show = NULL;

    open_shared(&at);
    none = release(&at, "nobody");
    g_assert_cmpuint(number_in(none, "Slices"), ==, 0);
    g_assert_cmpuint(number_in(none, "GpuTime"), ==, 0);
    uuid = made(&at, SLICE("0", NATIVE));
    g_free(made(&at, SLICE("1", GUARDED)));
    line = g_strdup_printf("slice remove %s --force", uuid);
    assert_says(line, 6, "", "vgpuctl owner release " OWNER);
    assert_says("owner release --dry-run nobody " OWNER, 0,
                OWNER ": 2 slices, GPU time 0.0 s, waited 0.0 s, throttled 0.0 s\n", "");
    totals = release(&at, OWNER);
    g_assert_cmpuint(number_in(totals, "Slices"), ==, 2);
    assert_says("-o json owner release " OWNER, 0, "\"Owner\" : \"" OWNER "\"", "");
    assert_says("slice list", 0, "no slice", "");
    g_assert_cmpuint(owners(&at), ==, 0);
    agent_on_bus_restart(&at);
    again = release(&at, OWNER);
    g_assert_cmpuint(number_in(again, "Slices"), ==, 2);
    /* A requeued job has the same name and begins at zero. */
    next = made(&at, SLICE("0", NATIVE));
    g_assert_cmpstr(next, !=, uuid);
    later = release(&at, OWNER);
    g_assert_cmpuint(number_in(later, "Slices"), ==, 1);
    agent_on_bus_close(&at);
}

/* What could not be written is written later, even if nothing happens any more. */
static void test_full_disk(void)
{
    AgentOnBus at;
    g_autoptr(GVariant) totals = NULL, again = NULL;
    g_autoptr(GString) log = g_string_new(NULL);

    open_shared(&at);
    g_free(made(&at, SLICE("0", NATIVE)));
    run_sql(&at, METER_DB,
            "CREATE TRIGGER full BEFORE INSERT ON owner_use"
            " BEGIN SELECT RAISE(ABORT, 'full'); END",
            NULL);
    take_log(log);
    totals = release(&at, OWNER);
    end_log();
    g_assert_nonnull(strstr(log->str, "cannot store what " OWNER " has used: "));
    g_assert_cmpuint(number_in(totals, "Slices"), ==, 1);
    run_sql(&at, METER_DB, "DROP TRIGGER full", NULL);
    agent_on_bus_restart(&at);
    again = release(&at, OWNER);
    g_assert_cmpuint(number_in(again, "Slices"), ==, 1);
    agent_on_bus_close(&at);
}

/* The process has had @ns of the GPU, says the GPU's driver. */
static void has_had(const AgentOnBus *at, guint ns)
{
    g_autofree char *text =
        g_strdup_printf("drm-client-id:\t1\ndrm-pdev:\t" ADDRESS "\ndrm-engine-gfx:\t%u ns\n", ns);

    file_tree_write(at->root, "/proc/77/fdinfo/4", text);
}

/* What is before the first look is not known. */
static void look_first(const AgentOnBus *at)
{
    gsize length;

    g_free(scrape_text(meter_scrape(at->meter), &length));
}

/* All counters are read for a scrape. @seconds: of the one slice, while it was alone. */
static void look(const AgentOnBus *at, const char *seconds)
{
    g_autofree char *line = g_strdup_printf("\"} %s\n", seconds);
    gsize length;
    g_autofree char *text = scrape_text(meter_scrape(at->meter), &length);
    const char *sample = strstr(text, "\nvgpu_slice_alone_gpu_seconds_total{");

    g_assert_nonnull(sample);
    g_assert_true(g_str_has_prefix(strstr(sample, "\"} "), line));
}

/* A 0 would look like an idle slice. */
static void assert_time_unknown(const char *show)
{
    Said said = vgpuctl(show);

    g_assert_cmpint(said.status, ==, 0);
    g_assert_nonnull(strstr(said.out, "\"Members\""));
    g_assert_null(strstr(said.out, "\"GpuTime\""));
    said_clear(&said);
}

/* The arbiter does not measure who is alone; the GPU's driver does, and nothing counts twice. */
static void test_alone(void)
{
    AgentOnBus at;
    g_autofree char *uuid = NULL, *text = NULL, *show = NULL;
    g_autoptr(GVariant) totals = NULL;
    FakeArbiter arbiter;

    open_shared(&at);
    uuid = made(&at, SLICE("0", NATIVE));
    show = g_strdup_printf("-o json slice show %s", uuid);
    text = g_strdup_printf("{\"slices\":[{\"id\":\"%s\",\"mode\":\"free\","
                           "\"gpu_ns\":1000,\"pids\":[77]}]}",
                           uuid);
    fake_arbiter_open_with(&arbiter, at.root, text);
    assert_time_unknown(show);
    look_first(&at);
    file_tree_link(at.root, "/proc/77/fd/4", "/dev/dri/renderD128");
    has_had(&at, 100);
    look(&at, "1e-07");
    has_had(&at, 150);
    look(&at, "1.5e-07");
    agent_on_bus_restart(&at);
    look(&at, "0");
    assert_says(show, 0, "\"GpuTime\" : 1000", "");
    has_had(&at, 180);
    assert_says(show, 0, "\"GpuTime\" : 1030", "");
    totals = release(&at, OWNER);
    g_assert_cmpuint(number_in(totals, "GpuTime"), ==, 1180);
    fake_arbiter_close(&arbiter);
    agent_on_bus_close(&at);
}

/* As a pod's containers: each is told apart from the others, and its end from theirs. */
static void test_containers(void)
{
    AgentOnBus at;
    g_autofree char *uuid = NULL, *other = NULL, *show = NULL;
    g_autoptr(GVariant) totals = NULL;

    open_shared(&at);
    process(&at, 77, 1000);
    process(&at, 78, 1001);
    uuid = made(&at, SLICE("0", NATIVE));
    show = g_strconcat("slice show ", uuid, NULL);
    assert_hook_of(&at, uuid, "claim", WEB, 0, "");
    assert_hook_of(&at, uuid, "claim", DB, 0, "");
    assert_hook_of(&at, uuid, "claim", WEB, 0, "");
    assert_says(show, 0, "Container:              db, web\n", "");
    agent_on_bus_restart(&at);
    assert_says(show, 0, "Container:              db, web\n", "");
    assert_hook_of(&at, uuid, "release", WEB, 0, "");
    assert_says(show, 0, "Container:              db\n", "");
    assert_hook_of(&at, uuid, "claim", WEB, 0, "");
    process_ends(&at, 78);
    agent_look_at_containers(at.agent);
    assert_says(show, 0, "Container:              web\n", "");
    process(&at, 78, 2000);
    other = made(&at, SLICE("1", GUARDED));
    assert_hook_of(&at, other, "claim", WEB, 0, "");
    assert_hook_of(&at, other, "claim", DB, 0, "");
    totals = release(&at, OWNER);
    agent_on_bus_restart(&at);
    assert_says("slice list", 0, "no slice", "");
    agent_on_bus_close(&at);
}

/* A job ends whether or not its use is known. */
static void test_without_meter(void)
{
    AgentOnBus at;
    g_autoptr(GVariant) totals = NULL;
    g_autoptr(GString) log = g_string_new(NULL);

    open_shared(&at);
    g_free(made(&at, SLICE("0", NATIVE)));
    take_log(log);
    agent_on_bus_stop_meter(&at);
    totals = release(&at, OWNER);
    g_assert_cmpuint(number_in(totals, "GpuTime"), ==, 0);
    end_log();
    g_assert_nonnull(strstr(log->str, "what " OWNER " has used is not known"));
    assert_says("slice list", 0, "no slice", "");
    agent_on_bus_start_meter(&at);
    agent_on_bus_close(&at);
}

/* A job that has the name of an earlier one, and begins while there is no meter, begins at zero. */
static void test_begun_without_meter(void)
{
    AgentOnBus at;
    g_autoptr(GVariant) earlier = NULL, totals = NULL;

    open_shared(&at);
    g_free(made(&at, SLICE("0", NATIVE)));
    g_free(made(&at, SLICE("1", NATIVE)));
    earlier = release(&at, OWNER);
    g_assert_cmpuint(number_in(earlier, "Slices"), ==, 2);
    agent_on_bus_stop_meter(&at);
    g_free(made(&at, SLICE("0", NATIVE)));
    agent_on_bus_start_meter(&at);
    g_free(made(&at, SLICE("1", NATIVE)));
    g_free(made(&at, SLICE("2", NATIVE)));
    totals = release(&at, OWNER);
    g_assert_cmpuint(number_in(totals, "Slices"), ==, 3);
    agent_on_bus_close(&at);
}

/* Two slices are one share for a container that has both alone. */
static void test_containers_and_shares(void)
{
    AgentOnBus at;
    g_autofree char *one = NULL, *two = NULL, *first = NULL, *second = NULL;

    open_shared(&at);
    process(&at, 77, 1000);
    process(&at, 78, 1001);
    one = made(&at, SLICE("0", NATIVE));
    two = made(&at, SLICE("1", NATIVE));
    first = g_strconcat("/run/vgpu/governor/" ADDRESS "/slices/", one, ".conf", NULL);
    second = g_strconcat("/run/vgpu/governor/" ADDRESS "/slices/", two, ".conf", NULL);
    assert_hook_of(&at, one, "claim", WEB, 0, "");
    assert_hook_of(&at, two, "claim", WEB, 0, "");
    g_assert_cmpint(exists(&at, first), !=, exists(&at, second));
    assert_hook_of(&at, strcmp(one, two) < 0 ? two : one, "claim", DB, 0, "");
    g_assert_true(exists(&at, first) && exists(&at, second));
    assert_in_file(&at, first, "vram=4294967296\n");
    assert_in_file(&at, second, "vram=4294967296\n");
    assert_hook_of(&at, strcmp(one, two) < 0 ? two : one, "release", DB, 0, "");
    g_assert_cmpint(exists(&at, first), !=, exists(&at, second));
    agent_on_bus_close(&at);
}

static void assert_metric(const AgentOnBus *at, const char *line, gboolean there)
{
    gsize length;
    g_autofree char *text = scrape_text(meter_scrape(at->meter), &length);

    g_test_message("%s", strstr(text, "# HELP vgpu_job_slices"));
    g_assert_cmpint(strstr(text, line) != NULL, ==, there);
}

static guint count_words(const char *text, const char *word)
{
    guint count = 0;

    for (const char *at = strstr(text, word); at; at = strstr(at + 1, word))
        count++;
    return count;
}

static void put_ended(const AgentOnBus *at, const char *owner, gint64 ended)
{
    g_autoptr(Db) db = db_open_meter(at->root, NULL);
    g_autofree char *uuid = g_uuid_string_random();
    OwnerUse use = {.uuid = uuid, .owner = (char *)owner, .sum.gpu_ns = 1500000000, .ended = ended};

    g_assert_true(owner_table_put(db, &use, NULL));
}

/* Jobs stay for an hour after their release, the last ones if there are many. */
static void test_metrics(void)
{
    AgentOnBus at;
    g_autoptr(GVariant) totals = NULL;
    gint64 now = g_get_real_time() / G_USEC_PER_SEC;
    gsize length;
    g_autofree char *text = NULL;

    open_shared(&at);
    g_free(made(&at, SLICE("0", NATIVE)));
    g_free(made(&at, SLICE("1", GUARDED)));
    assert_metric(&at, "\nvgpu_job_slices{owner=\"" OWNER "\"} 2\n", TRUE);
    assert_metric(&at, ",container=\"\",owner=\"" OWNER "\"} 1\n", TRUE);
    totals = release(&at, OWNER);
    assert_metric(&at, "\nvgpu_job_slices{owner=\"" OWNER "\"} 0\n", TRUE);
    put_ended(&at, "just", now - 3500);
    put_ended(&at, "old", now - 3700);
    agent_on_bus_restart(&at);
    assert_metric(&at, "vgpu_job_gpu_seconds_total{owner=\"just\"} 1.5\n", TRUE);
    assert_metric(&at, "owner=\"old\"", FALSE);
    for (guint i = 0; i < 300; i++) {
        g_autofree char *owner = g_strdup_printf("job-%u", i);

        put_ended(&at, owner, now - 1000 + i);
    }
    agent_on_bus_restart(&at);
    g_free(made(&at, SLICE("0", NATIVE)));
    text = scrape_text(meter_scrape(at.meter), &length);
    g_assert_cmpuint(count_words(text, "\nvgpu_job_slices{"), ==, 257);
    g_assert_nonnull(strstr(text, "\nvgpu_job_slices{owner=\"" OWNER "\"} 1\n"));
    g_assert_nonnull(strstr(text, "\nvgpu_job_slices{owner=\"job-299\"} 0\n"));
    g_assert_null(strstr(text, "{owner=\"job-10\"}"));
    agent_on_bus_close(&at);
}

static gboolean has_word(GVariant *door, const char *key, const char *word)
{
    g_autofree const char **words = NULL;

    g_assert_true(g_variant_lookup(door, key, "^a&s", &words));
    for (guint i = 0; words[i]; i++) {
        g_test_message("%s %s", key, words[i]);
        if (strstr(words[i], word))
            return TRUE;
    }
    return FALSE;
}

/* A program gets its owner's directory, which leads to the slice's own. */
static void test_doors(void)
{
    AgentOnBus at;
    g_autoptr(GError) error = NULL;
    g_autoptr(GVariant) native = NULL, guarded = NULL, totals = NULL;
    g_autofree char *one = NULL, *two = NULL, *cdi = NULL, *target = NULL, *expected = NULL;
    static const char dir[] = "/run/vgpu/owners/" OWNER "/" ADDRESS "/0";

    open_shared(&at);
    one = made(&at, SLICE("0", NATIVE));
    two = made(&at, SLICE("1", GUARDED));
    native = call(&at, "GetDoor", g_variant_new("(s)", one), &error);
    g_assert_no_error(error);
    g_assert_true(has_word(native, "Env", "/run/vgpu/owners/" OWNER));
    g_assert_true(has_word(native, "Env", "VGPU_GOVERNOR_REQUIRED=1"));
    g_assert_true(has_word(native, "ContainerEnv", "VGPU_GOVERNOR_SLICES=/run/vgpu/slices"));
    g_assert_true(g_variant_lookup(native, "Cdi", "s", &cdi));
    g_assert_true(g_str_has_suffix(cdi, one));
    guarded = call(&at, "GetDoor", g_variant_new("(s)", two), &error);
    g_assert_no_error(error);
    g_assert_true(has_word(guarded, "Env", two));
    g_assert_false(has_word(guarded, "Env", "VGPU_GOVERNOR"));
    target = root_link(at.root, dir);
    expected = g_strconcat("../../../containers/", one, "/slice", NULL);
    g_assert_cmpstr(target, ==, expected);
    g_assert_true(exists(&at, dir));
    /* Its devices are in a file of its own, and those of others in none of it. */
    assert_in_file(&at, "/run/cdi/mdev-vgpu-owner-" OWNER ".json", two);
    g_assert_false(exists(&at, CDI_PATH));
    agent_on_bus_restart(&at);
    g_assert_true(exists(&at, dir));
    assert_in_file(&at, "/run/cdi/mdev-vgpu-owner-" OWNER ".json", one);
    totals = release(&at, OWNER);
    g_assert_false(exists(&at, "/run/vgpu/owners/" OWNER));
    g_assert_false(exists(&at, "/run/cdi/mdev-vgpu-owner-" OWNER ".json"));
    agent_on_bus_close(&at);
}

/* What cannot be linked leaves no empty directories. */
static void test_directory_fails(void)
{
    g_autoptr(GString) log = g_string_new(NULL);
    g_autofree char *owner = g_strnfill(60, 'o');
    g_autofree char *dir = g_strconcat("/run/vgpu/owners/", owner, NULL);
    g_autofree char *text = g_strdup_printf(
        "{'Owner': <'%s'>, 'Part': <'a'>, 'Vram': <uint64 4294967296>" NATIVE "}", owner);
    g_autofree char *uuid = NULL;
    AgentOnBus at;

    open_shared(&at);
    take_log(log);
    uuid = made(&at, text);
    iterate_until_said(log, "too long for a socket");
    g_assert_false(exists(&at, dir));
    end_log();
    agent_on_bus_close(&at);
}

/* The links of a slice that has gone while vgpud was away. */
static void test_links_left(void)
{
    g_autofree char *uuid = NULL, *sql = NULL;
    AgentOnBus at;

    open_shared(&at);
    uuid = made(&at, SLICE("1", NATIVE));
    agent_on_bus_stop(&at);
    sql = g_strdup_printf("DELETE FROM slice WHERE uuid = '%s'", uuid);
    run_sql(&at, STATE_DB, sql, NULL);
    agent_on_bus_start(&at);
    g_assert_false(exists(&at, "/run/vgpu/owners/" OWNER));
    agent_on_bus_close(&at);
}

static GVariant *set_pool(const AgentOnBus *at, const char *pool, GError **error)
{
    Answer answer = {0};

    g_dbus_connection_call(at->bus, VGPU_BUS_NAME, VGPU_GPU_PATH "/0000_02_00_0",
                           VGPU_BUS_NAME ".Gpu", "SetPool", g_variant_new("(sa{sv})", pool, NULL),
                           NULL, G_DBUS_CALL_FLAGS_NONE, -1, NULL, answered, &answer);
    iterate_until(is_done, &answer);
    if (answer.error) {
        g_dbus_error_strip_remote_error(answer.error);
        g_propagate_error(error, answer.error);
    }
    return answer.value;
}

static void test_pool(void)
{
    AgentOnBus at;
    g_autoptr(GError) error = NULL, held = NULL, wrong = NULL;
    g_autoptr(GVariant) set = NULL, none = NULL, bad = NULL, totals = NULL, back = NULL;

    open_shared(&at);
    assert_refused(&at, "CreateSlices",
                   "([{'Owner': <'o'>, 'Part': <'0'>, 'Pool': <'slurm'>, 'Gpus': <['" ADDRESS
                   "']>, 'Door': <'native'>, 'Vram': <uint64 1073741824>}],)",
                   AGENT_ERROR_NO_ROOM, "it belongs to pool local");
    g_free(made(&at, SLICE("0", NATIVE)));
    none = set_pool(&at, "slurm", &held);
    g_assert_error(held, AGENT_ERROR, AGENT_ERROR_IN_USE);
    assert_says("gpu users 02:00.0", 0, "slurm job 4711 has slice", "");
    totals = release(&at, OWNER);
    bad = set_pool(&at, "mine", &wrong);
    g_assert_error(wrong, AGENT_ERROR, AGENT_ERROR_INVALID);
    set = set_pool(&at, "slurm", &error);
    g_assert_no_error(error);
    agent_on_bus_restart(&at);
    assert_says("slice create half --door native", 7, "", "it belongs to pool slurm");
    assert_says("-o json gpu show 02:00.0", 0, "\"Pool\" : \"slurm\"", "");
    assert_says("-o json gpu show 02:00.0", 0, "\"Model\" : \"rx-6800-16g\"", "");
    assert_says("-o json gpu show 02:00.0", 0, "\"PcieRoot\" : \"pci0000:00\"", "");
    /* Nor by a file; then nothing of the files is applied. */
    g_free(made(&at, "{'Owner': <'o'>, 'Part': <'0'>, 'Pool': <'slurm'>, 'Door': <'native'>,"
                     " 'Vram': <uint64 1073741824>}"));
    file_tree_write(at.root, "/etc/vgpu/gpus.conf", "[gpu " ADDRESS "]\nmode=shared\npool=local\n");
    file_tree_write(at.root, "/etc/vgpu/tenants.d/a.conf", "[tenant red]\nvgpus=3\n");
    assert_says("tenant set red --vgpus 4", 0, "", "");
    assert_says("reload", 0, "", "");
    assert_says("config apply", 6, "", "cannot give GPU " ADDRESS " to pool local: o has slice ");
    assert_says("-o json gpu show 02:00.0", 0, "\"Pool\" : \"slurm\"", "");
    assert_says("tenant show red", 0, "0 of 4\n", "");
    g_clear_pointer(&totals, g_variant_unref);
    totals = release(&at, "o");
    root_remove(at.root, "/etc/vgpu/gpus.conf");
    root_remove(at.root, "/etc/vgpu/tenants.d/a.conf");
    assert_says("reload", 0, "", "");
    back = set_pool(&at, "local", &error);
    g_assert_no_error(error);
    assert_says("slice create half --door native", 0, "native", "");
    agent_on_bus_close(&at);
}

/* @device: as the driver says whether a VM has the vGPU open. */
static void vgpu_is(const AgentOnBus *at, const char *uuid, const char *device)
{
    g_autofree char *path = g_strdup_printf("/sys/bus/mdev/devices/%s/vgpu/state", uuid);
    g_autofree char *state = g_strdup_printf("device=%s engine=ready\n", device);

    file_tree_write(at->root, path, state);
    agent_update_vgpu(at->agent, uuid);
}

/* A job has its slices also while no program of it runs. */
static void test_drain(void)
{
    AgentOnBus at;
    g_autofree char *native = NULL, *vm = NULL, *both = NULL, *open = NULL;
    g_autoptr(GVariant) totals = NULL;

    open_shared(&at);
    native = made(&at, SLICE("0", NATIVE));
    vm = made(&at, ANY "'Part': <'1'>, 'Door': <'vm'>, 'Type': <'half'>}");
    both =
        g_strdup_printf("in use: " JOB " has slice %s, " JOB " has slice %s; no new", native, vm);
    assert_says("gpu drain --wait --timeout 1 02:00.0", 6, "", both);
    vgpu_is(&at, vm, "running");
    open = g_strdup_printf("in use: a VM has vGPU %s (running), " JOB " has slice %s, " JOB
                           " has slice %s; no new",
                           vm, native, vm);
    assert_says("gpu drain --wait --timeout 1 02:00.0", 6, "", open);
    vgpu_is(&at, vm, "closed");
    totals = release(&at, OWNER);
    assert_says("gpu drain --wait --timeout 30 02:00.0", 0, "", "");
    agent_on_bus_close(&at);
}

static void test_drain_vfio(void)
{
    AgentOnBus at;
    g_autofree char *uuid = NULL, *closed = NULL, *open = NULL;

    open_shared(&at);
    uuid = made(&at, ANY "'Part': <'0'>, 'Door': <'vfio'>, 'Type': <'half'>}");
    closed = g_strdup_printf("in use: " JOB " has slice %s; no new", uuid);
    assert_says("gpu drain --wait --timeout 1 02:00.0", 6, "", closed);
    vgpu_is(&at, uuid, "running");
    open = g_strdup_printf("in use: a VM has vGPU %s (running), " JOB " has slice %s; no new", uuid,
                           uuid);
    assert_says("gpu drain --wait --timeout 1 02:00.0", 6, "", open);
    agent_on_bus_close(&at);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/owners/again", test_again);
    g_test_add_func("/owners/all-or-none", test_all_or_none);
    g_test_add_func("/owners/bad-requests", test_bad_requests);
    g_test_add_func("/owners/release", test_release);
    g_test_add_func("/owners/full-disk", test_full_disk);
    g_test_add_func("/owners/alone", test_alone);
    g_test_add_func("/owners/without-meter", test_without_meter);
    g_test_add_func("/owners/begun-without-meter", test_begun_without_meter);
    g_test_add_func("/owners/containers", test_containers);
    g_test_add_func("/owners/containers-and-shares", test_containers_and_shares);
    g_test_add_func("/owners/metrics", test_metrics);
    g_test_add_func("/owners/doors", test_doors);
    g_test_add_func("/owners/directory-fails", test_directory_fails);
    g_test_add_func("/owners/links-left", test_links_left);
    g_test_add_func("/owners/pool", test_pool);
    g_test_add_func("/owners/drain", test_drain);
    g_test_add_func("/owners/drain-vfio", test_drain_vfio);
    return g_test_run();
}
