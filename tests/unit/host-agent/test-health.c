/* SPDX-License-Identifier: MIT */
/* Rules for an unhealthy GPU: when, for how long, and who is notified. */
#include <string.h>

#include "host-agent/model/gpu_health.h"
#include "host-agent/store/tables.h"
#include "tests/unit/file_tree.h"
#include "tests/unit/host-agent/agent_on_bus.h"
#include "tests/unit/host-agent/recorded_host.h"

#define PLACE  "/sys/devices/pci0000:00/0000:00:01.0/0000:02:00.0/"
#define GPU    "0000:02:00.0"
#define UUID   "c0ffee00-0000-4000-8000-000000000001"
#define OTHER  "c0ffee00-0000-4000-8000-000000000002"
#define SECOND ((gint64)G_USEC_PER_SEC)
#define MINUTE (60 * SECOND)

static GpuReadings good_readings(void)
{
    return (GpuReadings){
        .has_aer = TRUE,
        .link_width = 16,
        .link_width_max = 16,
        .has_temperature = TRUE,
        .temperature = 60000,
        .temperature_limit = 100000,
        .has_ecc = TRUE,
    };
}

static void assert_found(const GpuHealth *health, HealthKind kind, const char *words)
{
    const char *reason = gpu_health_reason(health, kind);

    g_assert_nonnull(reason);
    g_test_message("%s: %s", health_kind_name(kind), reason);
    g_assert_nonnull(strstr(reason, words));
    g_assert_false(gpu_health_is_good(health));
}

/* Reported, and it closes nothing. */
static void assert_noticed(const GpuHealth *health, HealthKind kind, const char *words)
{
    const char *reason = gpu_health_reason(health, kind);

    g_assert_nonnull(reason);
    g_assert_nonnull(strstr(reason, words));
    g_assert_true(gpu_health_is_good(health));
}

static void test_good(void)
{
    g_autoptr(GpuHealth) health = gpu_health_new();
    GpuReadings readings = good_readings();

    gpu_health_observe(health, &readings, 0);
    g_assert_true(gpu_health_is_good(health));
    readings = (GpuReadings){0};
    gpu_health_observe(health, &readings, MINUTE);
    g_assert_true(gpu_health_is_good(health)); /* one without readings */
}

static void test_fatal(void)
{
    g_autoptr(GpuHealth) health = gpu_health_new();
    GpuReadings readings = good_readings();

    readings.aer_fatal = 1;
    gpu_health_observe(health, &readings, 0);
    assert_found(health, HEALTH_AER_FATAL, "1 fatal errors");
    readings.aer_fatal = 2;
    gpu_health_observe(health, &readings, MINUTE);
    assert_found(health, HEALTH_AER_FATAL, "1 fatal errors"); /* where it began */
    gpu_health_clear(health);
    gpu_health_set_cleared(health, 2, 0);
    gpu_health_observe(health, &readings, 2 * MINUTE);
    g_assert_true(gpu_health_is_good(health));
    readings.aer_fatal = 3;
    gpu_health_observe(health, &readings, 3 * MINUTE);
    assert_found(health, HEALTH_AER_FATAL, "1 fatal errors");
    g_assert_true(health_kind_is_held(HEALTH_AER_FATAL));
}

/* After a reset of the device its counters restart: the cleared counts do not apply to them. */
static void test_counters_begin_anew(void)
{
    g_autoptr(GpuHealth) health = gpu_health_new();
    GpuReadings readings = good_readings();

    gpu_health_set_cleared(health, 5, 7);
    gpu_health_observe(health, &readings, 0);
    g_assert_true(gpu_health_is_good(health));
    readings.ecc_uncorrectable = 1;
    gpu_health_observe(health, &readings, MINUTE);
    assert_found(health, HEALTH_ECC, "1 errors in its memory");
}

/* Counters that cannot be read for a while have not restarted. */
static void test_gap(void)
{
    g_autoptr(GpuHealth) health = gpu_health_new();
    GpuReadings readings = good_readings();
    const GpuReadings gap = {0};

    gpu_health_set_cleared(health, 2, 3);
    readings.aer_fatal = 2;
    readings.aer_nonfatal = 4;
    readings.aer_correctable = 500;
    readings.ecc_uncorrectable = 3;
    gpu_health_observe(health, &readings, 0);
    g_assert_true(gpu_health_is_good(health));
    gpu_health_observe(health, &gap, MINUTE);
    gpu_health_observe(health, &readings, 2 * MINUTE);
    g_assert_true(gpu_health_is_good(health));
    /* What is found stays, and a finding that ends by itself ends in a gap, too. */
    readings.aer_nonfatal = 5;
    readings.ecc_uncorrectable = 4;
    gpu_health_observe(health, &readings, 3 * MINUTE);
    gpu_health_observe(health, &gap, 4 * MINUTE);
    assert_found(health, HEALTH_ECC, "1 errors in its memory");
    assert_found(health, HEALTH_AER_NONFATAL, "5 so far");
    gpu_health_observe(health, &gap, 14 * MINUTE);
    g_assert_null(gpu_health_reason(health, HEALTH_AER_NONFATAL));
    assert_found(health, HEALTH_ECC, "1 errors in its memory");
}

static void test_nonfatal(void)
{
    g_autoptr(GpuHealth) health = gpu_health_new();
    GpuReadings readings = good_readings();

    readings.aer_nonfatal = 4;
    gpu_health_observe(health, &readings, 0);
    g_assert_true(gpu_health_is_good(health)); /* the time of those is unknown */
    readings.aer_nonfatal = 5;
    gpu_health_observe(health, &readings, MINUTE);
    assert_found(health, HEALTH_AER_NONFATAL, "5 so far");
    gpu_health_observe(health, &readings, 10 * MINUTE);
    g_assert_false(gpu_health_is_good(health));
    gpu_health_observe(health, &readings, 12 * MINUTE);
    g_assert_true(gpu_health_is_good(health));
}

static void test_corrected(void)
{
    g_autoptr(GpuHealth) health = gpu_health_new();
    GpuReadings readings = good_readings();
    gint64 now = 0;

    for (guint i = 0; i < 100; i++) { /* single ones do not count */
        readings.aer_correctable += 2;
        gpu_health_observe(health, &readings, now += MINUTE);
        g_assert_true(gpu_health_is_good(health));
    }
    readings.aer_correctable += 500;
    gpu_health_observe(health, &readings, now += SECOND);
    assert_found(health, HEALTH_AER_CORRECTED, "so far corrected");
    gpu_health_observe(health, &readings, now += 44 * MINUTE);
    g_assert_false(gpu_health_is_good(health));
    gpu_health_observe(health, &readings, now += 2 * MINUTE);
    g_assert_true(gpu_health_is_good(health));
}

static void test_temperature(void)
{
    g_autoptr(GpuHealth) health = gpu_health_new();
    GpuReadings readings = good_readings();
    static const struct {
        gint64 temperature;
        gboolean good;
    } steps[] = {{99000, TRUE}, {100000, FALSE}, {95000, FALSE}, {89000, TRUE}, {95000, TRUE}};

    g_strlcpy(readings.sensor, "junction", sizeof(readings.sensor));
    for (guint i = 0; i < G_N_ELEMENTS(steps); i++) {
        readings.temperature = steps[i].temperature;
        gpu_health_observe(health, &readings, i * MINUTE);
        g_assert_true(gpu_health_is_good(health) == steps[i].good);
    }
    readings.temperature = 105000;
    gpu_health_observe(health, &readings, 9 * MINUTE);
    assert_found(health, HEALTH_TEMPERATURE, "105 degrees Celsius at junction");
    g_assert_false(health_kind_is_held(HEALTH_TEMPERATURE));
}

static void test_link(void)
{
    g_autoptr(GpuHealth) health = gpu_health_new();
    GpuReadings readings = good_readings();

    readings.link_width = 8;
    gpu_health_observe(health, &readings, 0);
    assert_noticed(health, HEALTH_LINK, "8 lanes and could have 16");
    readings.link_width = 16;
    gpu_health_observe(health, &readings, MINUTE);
    g_assert_null(gpu_health_reason(health, HEALTH_LINK));
    readings.link_width = 0; /* the link is down, or suspended */
    gpu_health_observe(health, &readings, 2 * MINUTE);
    g_assert_true(gpu_health_is_good(health));
}

/* Any rule can be switched off for a GPU. */
static void test_ignored(void)
{
    g_autoptr(GpuHealth) health = gpu_health_new();
    GpuReadings readings = good_readings();

    readings.temperature = 105000;
    readings.ecc_uncorrectable = 1;
    gpu_health_observe(health, &readings, 0);
    g_assert_cmpint(gpu_health_grade(health), ==, HEALTH_BROKEN);
    gpu_health_ignore(health, 1u << HEALTH_ECC);
    g_assert_cmpint(gpu_health_grade(health), ==, HEALTH_PASSING);
    gpu_health_ignore(health, 1u << HEALTH_ECC | 1u << HEALTH_TEMPERATURE);
    assert_noticed(health, HEALTH_TEMPERATURE, "105 degrees");
    assert_noticed(health, HEALTH_ECC, "1 errors in its memory");
    gpu_health_ignore(health, 0);
    g_assert_false(gpu_health_is_good(health));
}

/* What follows differs by kind. */
static void test_grades(void)
{
    g_autoptr(GpuHealth) health = gpu_health_new();
    static const HealthGrade grades[HEALTH_KINDS] = {
        [HEALTH_GONE] = HEALTH_BROKEN,
        [HEALTH_AER_FATAL] = HEALTH_BROKEN,
        [HEALTH_AER_NONFATAL] = HEALTH_PASSING,
        [HEALTH_AER_CORRECTED] = HEALTH_PASSING,
        [HEALTH_LINK] = HEALTH_NOTICE,
        [HEALTH_TEMPERATURE] = HEALTH_PASSING,
        [HEALTH_ECC] = HEALTH_BROKEN,
        [HEALTH_ENGINE_CRASHES] = HEALTH_ENGINES,
        [HEALTH_ENGINE_FAILED] = HEALTH_ENGINES,
    };

    for (guint i = 0; i < HEALTH_KINDS; i++)
        g_assert_cmpint(gpu_health_grade_of(health, (HealthKind)i), ==, grades[i]);
}

static void see_engine_of_tenant(GpuHealth *health, const char *uuid, const char *tenant,
                                 guint64 losses, const char *state, const char *failure, gint64 now)
{
    const Vgpu vgpu = {
        .uuid = (char *)uuid,
        .device = "running",
        .engine = (char *)state,
        .failure = (char *)failure,
        .engine_losses = losses,
    };

    gpu_health_observe_engine(health, &vgpu, tenant, now);
    gpu_health_judge_engines(health, now);
}

static void see_engine_of(GpuHealth *health, const char *uuid, guint64 losses, const char *state,
                          const char *failure, gint64 now)
{
    see_engine_of_tenant(health, uuid, "", losses, state, failure, now);
}

static void see_engine(GpuHealth *health, guint64 losses, const char *state, const char *failure,
                       gint64 now)
{
    see_engine_of(health, UUID, losses, state, failure, now);
}

/* Of another tenant, whose engine dies, too: from here on it depends on one's own. */
static void see_another_die(GpuHealth *health, gint64 now)
{
    see_engine_of(health, OTHER, 0, "ready", "", now);
    see_engine_of(health, OTHER, 900, "none", "the engine died", now);
}

static void test_crashes(void)
{
    g_autoptr(GpuHealth) health = gpu_health_new();

    see_another_die(health, 0);
    see_engine(health, 7, "ready", "", 0); /* from before vgpud started */
    see_engine(health, 8, "ready", "", MINUTE);
    see_engine(health, 9, "ready", "", 6 * MINUTE);
    see_engine(health, 10, "ready", "", 12 * MINUTE);
    g_assert_true(gpu_health_is_good(health)); /* not so often */
    see_engine(health, 11, "none", "the engine died", 12 * MINUTE + SECOND);
    see_engine(health, 12, "none", "the engine died", 12 * MINUTE + 2 * SECOND);
    assert_found(health, HEALTH_ENGINE_CRASHES, "dies repeatedly: the engine died");
    g_assert_cmpint(gpu_health_grade(health), ==, HEALTH_ENGINES);
    see_engine(health, 12, "ready", "", 60 * MINUTE);
    g_assert_false(gpu_health_is_good(health));
    gpu_health_clear(health);
    see_engine(health, 12, "ready", "", 61 * MINUTE);
    g_assert_true(gpu_health_is_good(health));
    gpu_health_clear(health);
    see_engine_of(health, OTHER, 1800, "none", "the engine died", 61 * MINUTE);
    see_engine(health, 13, "ready", "", 61 * MINUTE + SECOND); /* counts, although everything was
                                                                * cleared */
    see_engine(health, 15, "ready", "", 61 * MINUTE + 2 * SECOND);
    assert_found(health, HEALTH_ENGINE_CRASHES, "dies repeatedly");
}

/* Who ends all of his own engines, alone or beside idle neighbours, closes the GPU to nobody. */
static void test_crashes_of_one(void)
{
    g_autoptr(GpuHealth) health = gpu_health_new();
    g_autofree char *loops = NULL;

    see_engine_of_tenant(health, UUID, "red", 0, "ready", "", 0);
    see_engine_of_tenant(health, UUID, "red", 9, "none", "the engine died", SECOND);
    g_assert_true(gpu_health_is_good(health));
    see_engine_of_tenant(health, OTHER, "red", 0, "ready", "", SECOND);
    see_engine_of_tenant(health, OTHER, "red", 9, "failed", "too many starts", 2 * SECOND);
    g_assert_true(gpu_health_is_good(health));
    loops = gpu_health_engine_loops(health, UUID);
    g_assert_nonnull(loops);
    /* That of another tenant, too. */
    see_engine_of_tenant(health, OTHER, "blue", 18, "none", "the engine died", 3 * SECOND);
    g_assert_false(gpu_health_is_good(health));
}

/* A container that computes shows that the GPU works. */
static void test_containers_are_witnesses(void)
{
    g_autoptr(GpuHealth) health = gpu_health_new();

    /* Both die before anybody has looked at it twice. */
    gpu_health_observe_work(health, "web", 101, SECOND);
    see_another_die(health, SECOND);
    see_engine(health, 0, "ready", "", SECOND);
    see_engine(health, 900, "none", "the engine died", 2 * SECOND);
    g_assert_true(gpu_health_is_good(health));
    /* One that has been idle since then, or does not come on, is none. */
    gpu_health_observe_work(health, "web", 101, 4 * MINUTE);
    gpu_health_judge_engines(health, 4 * MINUTE + 2 * SECOND);
    assert_found(health, HEALTH_ENGINE_CRASHES, "dies repeatedly");
}

/* As long as another's engine lives, its guest kills it, and not the GPU. */
static void test_crashes_beside_another(void)
{
    g_autoptr(GpuHealth) health = gpu_health_new();
    g_autofree char *loops = NULL;

    see_engine_of(health, OTHER, 0, "ready", "", 0);
    see_engine(health, 0, "ready", "", 0);
    see_engine(health, 9, "none", "the engine died", SECOND);
    g_assert_true(gpu_health_is_good(health));
    loops = gpu_health_engine_loops(health, UUID);
    g_assert_nonnull(strstr(loops, UUID " dies repeatedly: the engine died"));
    g_assert_null(gpu_health_engine_loops(health, OTHER));
    see_engine(health, 9, "failed", "too many starts", 2 * SECOND);
    g_assert_true(gpu_health_is_good(health));
    see_engine_of(health, OTHER, 1, "ready", "", 3 * SECOND);
    g_assert_true(
        gpu_health_is_good(health)); /* one is in trouble, whether or not others are idle */
    see_engine_of(health, OTHER, 1, "failed", "too many starts", 3 * SECOND);
    g_assert_false(gpu_health_is_good(health));
    g_assert_nonnull(gpu_health_reason(health, HEALTH_ENGINE_CRASHES));
    g_assert_nonnull(gpu_health_reason(health, HEALTH_ENGINE_FAILED));
}

static void test_failed(void)
{
    g_autoptr(GpuHealth) health = gpu_health_new();

    see_engine(health, 0, "failed", "no Vulkan device", 0);
    g_assert_true(gpu_health_is_good(health));
    see_engine_of(health, OTHER, 0, "failed", "no Vulkan device", 0);
    assert_found(health, HEALTH_ENGINE_FAILED, "gave up: no Vulkan device");
    see_engine(health, 0, "ready", "", MINUTE);
    g_assert_true(gpu_health_is_good(health));
    see_engine(health, 0, "failed", "no Vulkan device", 2 * MINUTE);
    gpu_health_forget_engine(health, UUID);
    gpu_health_judge_engines(health, 2 * MINUTE);
    g_assert_true(gpu_health_is_good(health));
}

static void test_gone(void)
{
    g_autoptr(GpuHealth) health = gpu_health_new();
    const GpuReadings readings = good_readings();

    gpu_health_observe_gone(health, 0);
    g_assert_true(gpu_health_is_good(health));
    gpu_health_observe_gone(health, 3);
    assert_found(health, HEALTH_GONE, "3 vGPUs");
    gpu_health_observe(health, &readings, 0);
    g_assert_true(gpu_health_is_good(health));
}

static void test_names(void)
{
    for (guint i = 0; i < HEALTH_KINDS; i++) {
        HealthKind kind;

        g_assert_true(health_kind_parse(health_kind_name((HealthKind)i), &kind));
        g_assert_cmpint(kind, ==, i);
    }
    g_assert_false(health_kind_parse("cold", &(HealthKind){0}));
}

/* Files in kernel drivers' form. */
static void write_sensors(HostRoot *root)
{
    static const char *const files[][2] = {
        {"aer_dev_fatal", "Undefined 0\nDLP 2\nTOTAL_ERR_FATAL 2\n"},
        {"aer_dev_nonfatal", "Undefined 0\nTOTAL_ERR_NONFATAL 1\n"},
        {"aer_dev_correctable", "RxErr 3\nTOTAL_ERR_COR 3\n"},
        {"ras/umc_err_count", "ue: 1\nce: 4\n"},
        {"ras/gfx_err_count", "ue: 0\nce: 2\n"},
        {"ras/features", "feature mask: 0x1\n"},
        {"hwmon/hwmon3/temp1_input", "71000\n"},
        {"hwmon/hwmon3/temp1_crit", "100000\n"},
        {"hwmon/hwmon3/temp1_label", "edge\n"},
        {"hwmon/hwmon3/temp2_input", "90000\n"},
        {"hwmon/hwmon3/temp2_crit", "110000\n"},
        {"hwmon/hwmon3/temp2_label", "junction\n"},
        {"hwmon/hwmon3/power1_average", "85000000\n"},
    };

    for (guint i = 0; i < G_N_ELEMENTS(files); i++) {
        g_autofree char *path = g_strconcat(PLACE, files[i][0], NULL);

        file_tree_write(root, path, files[i][1]);
    }
}

static void test_readings(void)
{
    HostRoot *root = recorded_host_new("shared");
    g_autoptr(PciDevice) pci = pci_device_read(root, GPU);
    GpuReadings readings;

    gpu_readings_read(root, pci, &readings);
    g_assert_false(readings.has_aer || readings.has_ecc || readings.has_temperature);
    g_assert_cmpuint(readings.link_width_max, ==, 16);
    write_sensors(root);
    gpu_readings_read(root, pci, &readings);
    g_assert_cmpuint(readings.aer_fatal, ==, 2);
    g_assert_cmpuint(readings.aer_nonfatal, ==, 1);
    g_assert_cmpuint(readings.aer_correctable, ==, 3);
    g_assert_cmpuint(readings.ecc_uncorrectable, ==, 1);
    g_assert_cmpuint(readings.ecc_correctable, ==, 6);
    g_assert_cmpint(readings.temperature, ==, 90000); /* 20 degrees from its limit; edge has 29 */
    g_assert_cmpstr(readings.sensor, ==, "junction");
    g_assert_cmpint(readings.power, ==, 85000000);
    g_assert_true(gpu_readings_need_a_timer(&readings));
    /* It is not woken to be asked. */
    file_tree_write(root, PLACE "power/runtime_status", "suspended\n");
    gpu_readings_read(root, pci, &readings);
    g_assert_false(readings.has_temperature || readings.has_ecc || readings.has_power);
    g_assert_true(readings.has_aer);
    file_tree_free(root);
}

#define NVIDIA "0000:18:00.0"

/* As vgpu-nvidia-readings writes it. */
static void write_nvidia(HostRoot *root, gint64 at)
{
    g_autofree char *text = g_strdup_printf(
        "[gpu]\ntime=%" G_GINT64_FORMAT "\nmemory=85899345920\ntemperature=40000\n"
        "temperature_limit=87000\npower=78290000\nenergy=123456000\necc_uncorrectable=2\n"
        "ecc_correctable=5\nbusy=48\n",
        at);

    file_tree_write(root, "/run/vgpu/readings/" NVIDIA, text);
}

static void test_nvidia(void)
{
    HostRoot *root = recorded_host_new("server-8gpu");
    g_autoptr(PciDevice) pci = pci_device_read(root, NVIDIA);
    gint64 now = g_get_monotonic_time(), at;
    GpuReadings readings;
    guint64 uj;

    write_nvidia(root, now);
    gpu_readings_read(root, pci, &readings);
    g_assert_cmpint(readings.temperature, ==, 40000);
    g_assert_cmpint(readings.temperature_limit, ==, 87000);
    g_assert_cmpint(readings.power, ==, 78290000);
    g_assert_cmpuint(readings.energy, ==, 123456000);
    g_assert_cmpuint(readings.ecc_uncorrectable, ==, 2);
    g_assert_cmpuint(readings.ecc_correctable, ==, 5);
    g_assert_true(readings.has_busy);
    g_assert_cmpuint(readings.busy, ==, 48);
    g_assert_true(gpu_readings_need_a_timer(&readings));
    g_assert_true(gpu_energy_read(root, pci, &uj, &at));
    g_assert_cmpint(at, ==, now);
    /* Nobody reads them any more. */
    write_nvidia(root, now - 121 * G_USEC_PER_SEC);
    gpu_readings_read(root, pci, &readings);
    g_assert_false(readings.has_temperature || readings.has_power || readings.has_energy ||
                   readings.has_ecc);
    /* An older GPU: its memory only. */
    file_tree_write(root, "/run/vgpu/readings/" NVIDIA, "[gpu]\ntime=1\nmemory=1\n");
    gpu_readings_read(root, pci, &readings);
    g_assert_false(readings.has_temperature || readings.has_ecc);
    file_tree_free(root);
}

/* A card for 16 lanes in a slot with 8. */
static void test_narrow_slot(void)
{
    HostRoot *root = recorded_host_new("shared");
    g_autoptr(PciDevice) pci = pci_device_read(root, GPU);
    GpuReadings readings;

    file_tree_write(root, "/sys/devices/pci0000:00/0000:00:01.0/max_link_width", "8\n");
    file_tree_write(root, PLACE "current_link_width", "8\n");
    gpu_readings_read(root, pci, &readings);
    g_assert_cmpuint(readings.link_width, ==, 8);
    g_assert_cmpuint(readings.link_width_max, ==, 8);
    g_assert_true(gpu_readings_need_a_timer(&readings));
    file_tree_write(root, "/sys/devices/pci0000:00/0000:00:01.0/max_link_width", "1\n");
    gpu_readings_read(root, pci, &readings);
    g_assert_false(gpu_readings_need_a_timer(&readings));
    file_tree_free(root);
}

static void remember_event(GDBusConnection *bus, const char *sender, const char *path,
                           const char *interface, const char *signal, GVariant *parameters,
                           void *data)
{
    const char *kind;
    const char *text;

    (void)bus;
    (void)sender;
    (void)path;
    (void)interface;
    (void)signal;
    g_variant_get(parameters, "(&s&s&s&s)", &kind, NULL, NULL, &text);
    g_string_append_printf(data, "%s: %s\n", kind, text);
}

/* Marked, stored over a restart, cleared. */
static void test_on_bus(void)
{
    g_autoptr(GString) events = g_string_new(NULL);
    AgentOnBus at;
    guint subscription;

    agent_on_bus_open(&at, "shared");
    subscription =
        g_dbus_connection_signal_subscribe(at.bus, NULL, NULL, "Event", NULL, NULL,
                                           G_DBUS_SIGNAL_FLAGS_NONE, remember_event, events, NULL);
    assert_says("-o json gpu show 02:00.0", 0, "\"Healthy\" : true", "");
    write_sensors(at.root);
    agent_refresh(at.agent);
    iterate_until_said(events, "health: GPU " GPU " is not healthy: 2 fatal errors");
    iterate_until_said(events, "errors in its memory");
    assert_says("gpu show 02:00.0", 0, "no: 2 fatal errors", "");
    assert_says("-o json gpu show 02:00.0", 0, "\"Healthy\" : false", "");
    g_dbus_connection_signal_unsubscribe(at.bus, subscription);
    file_tree_write(at.root, PLACE "aer_dev_fatal", "TOTAL_ERR_FATAL 0\n");
    agent_on_bus_restart(&at);
    assert_says("gpu show 02:00.0", 0, "no: 2 fatal errors", "");
    assert_says("gpu clear 02:00.0", 0, "", "");
    assert_says("-o json gpu show 02:00.0", 0, "\"Healthy\" : true", "");
    agent_on_bus_restart(&at);
    assert_says("-o json gpu show 02:00.0", 0, "\"Healthy\" : true", "");
    assert_says("gpu clear 99:00.0", 3, "", "no GPU 99:00.0");
    agent_on_bus_close(&at);
}

/* NVIDIA's library, and with it the counter, fails for a while. */
static void open_nvidia(AgentOnBus *at)
{
    HostRoot *root = recorded_host_new("server-8gpu");

    write_nvidia(root, g_get_monotonic_time());
    agent_on_bus_open_tree(at, root);
    assert_says("gpu show 18:00.0", 0, "no: 2 errors in its memory", "");
}

static void begin_gap(const AgentOnBus *at)
{
    root_remove(at->root, "/run/vgpu/readings/" NVIDIA);
    agent_refresh(at->agent);
    assert_says("gpu show 18:00.0", 0, "no: 2 errors in its memory", "");
}

static void end_gap(const AgentOnBus *at)
{
    write_nvidia(at->root, g_get_monotonic_time());
    agent_refresh(at->agent);
}

/* What was read is acknowledged, and stays so. */
static void test_cleared_in_gap(void)
{
    AgentOnBus at;

    open_nvidia(&at);
    begin_gap(&at);
    assert_says("gpu clear 18:00.0", 0, "", "");
    assert_says("-o json gpu show 18:00.0", 0, "\"Healthy\" : true", "");
    end_gap(&at);
    assert_says("-o json gpu show 18:00.0", 0, "\"Healthy\" : true", "");
    agent_on_bus_restart(&at);
    assert_says("-o json gpu show 18:00.0", 0, "\"Healthy\" : true", "");
    agent_on_bus_close(&at);
}

/* A vgpud that has never read the counter does not know what there is to acknowledge. */
static void test_unknown_in_gap(void)
{
    AgentOnBus at;

    open_nvidia(&at);
    begin_gap(&at);
    agent_on_bus_restart(&at);
    assert_says("gpu clear 18:00.0", 1, "", "vgpu-nvidia-readings");
    assert_says("gpu show 18:00.0", 0, "no: 2 errors in its memory", "");
    end_gap(&at);
    assert_says("gpu clear 18:00.0", 0, "", "");
    assert_says("-o json gpu show 18:00.0", 0, "\"Healthy\" : true", "");
    /* Nothing of it is found: then there is nothing to know. */
    root_remove(at.root, "/run/vgpu/readings/" NVIDIA);
    agent_on_bus_restart(&at);
    assert_says("gpu clear 18:00.0", 0, "", "");
    end_gap(&at);
    assert_says("-o json gpu show 18:00.0", 0, "\"Healthy\" : true", "");
    agent_on_bus_close(&at);
}

static void add_one(HostRoot *root, const char *uuid, const char *state, const char *losses)
{
    g_autofree char *attributes =
        g_strdup_printf("state=%s|failure=|vram_bytes=8589934592|window_bytes=268435456|weight=100|"
                        "cap=100|priority=0|requests=1|doorbells=1|interrupts=1|engine_losses=%s",
                        state, losses);

    recorded_host_add_vgpu(root, "pci0000:00/0000:00:01.0/" GPU, uuid, "amdgpu-vgpu-half",
                           attributes);
}

static void add_vgpu(HostRoot *root, const char *state, const char *losses)
{
    add_one(root, UUID, state, losses);
}

/* The driver does not report that a guest has started its vGPU; it is a witness all the same. */
static void test_witness_on_bus(void)
{
    AgentOnBus at;

    agent_on_bus_open(&at, "shared");
    add_one(at.root, OTHER, "device=open engine=ready", "0");
    agent_update_vgpu(at.agent, OTHER);
    file_tree_write(at.root, PLACE OTHER "/vgpu/state", "device=running engine=ready\n");
    add_vgpu(at.root, "device=running engine=ready", "1");
    agent_update_vgpu(at.agent, UUID);
    file_tree_write(at.root, PLACE UUID "/vgpu/engine_losses", "4\n");
    agent_update_vgpu(at.agent, UUID);
    assert_says("-o json gpu show 02:00.0", 0, "\"Healthy\" : true", "");
    agent_on_bus_close(&at);
}

/* The driver reports engines; then the removal of a vGPU. */
static void test_engine_on_bus(void)
{
    AgentOnBus at;

    agent_on_bus_open(&at, "shared");
    add_vgpu(at.root, "device=running engine=ready", "1");
    agent_update_vgpu(at.agent, UUID);
    assert_says("-o json gpu show 02:00.0", 0, "\"Healthy\" : true", "");
    file_tree_write(at.root, PLACE UUID "/vgpu/engine_losses", "4\n");
    agent_update_vgpu(at.agent, UUID);
    assert_says("gpu show 02:00.0", 0, "engine-crashes (notice): the engine of vGPU " UUID, "");
    assert_says("-o json gpu show 02:00.0", 0, "\"Healthy\" : true", "");
    add_one(at.root, OTHER, "device=running engine=ready", "1");
    agent_update_vgpu(at.agent, OTHER);
    file_tree_write(at.root, PLACE OTHER "/vgpu/engine_losses", "4\n");
    agent_update_vgpu(at.agent, OTHER);
    assert_says("gpu show 02:00.0", 0, "no: the engine of vGPU ", "");
    assert_says("-o json gpu show 02:00.0", 0, "\"HealthGrade\" : \"engines\"", "");
    assert_says("gpu clear 02:00.0", 0, "", "");
    file_tree_write(at.root, PLACE UUID "/vgpu/state", "device=open engine=failed\n");
    file_tree_write(at.root, PLACE UUID "/vgpu/failure", "no Vulkan device\n");
    file_tree_write(at.root, PLACE OTHER "/vgpu/state", "device=open engine=failed\n");
    file_tree_write(at.root, PLACE OTHER "/vgpu/failure", "no Vulkan device\n");
    agent_update_vgpu(at.agent, UUID);
    agent_update_vgpu(at.agent, OTHER);
    assert_says("gpu show 02:00.0", 0, "gave up: no Vulkan device", "");
    recorded_host_remove_vgpu(at.root, UUID);
    agent_update_vgpu(at.agent, UUID);
    assert_says("-o json gpu show 02:00.0", 0, "\"Healthy\" : true", "");
    agent_on_bus_close(&at);
}

/* A narrow link is reported; other rules can be switched off in gpus.conf, without a restart. */
static void test_ignored_on_bus(void)
{
    AgentOnBus at;

    agent_on_bus_open(&at, "shared");
    file_tree_write(at.root, PLACE "current_link_width", "4\n");
    write_sensors(at.root);
    file_tree_write(at.root, PLACE "aer_dev_fatal", "TOTAL_ERR_FATAL 0\n");
    agent_refresh(at.agent);
    assert_says("gpu show 02:00.0", 0, "link (notice): its PCI Express link has 4 lanes", "");
    assert_says("gpu show 02:00.0", 0, "no: 1 errors in its memory", "");
    assert_says("-o json gpu show 02:00.0", 0, "\"HealthGrade\" : \"broken\"", "");
    file_tree_write(at.root, "/etc/vgpu/gpus.conf",
                    "[gpu " GPU "]\nmode=shared\nhealth-ignore=ecc, temperature\n");
    assert_says("reload", 0, "", "");
    assert_says("-o json gpu show 02:00.0", 0, "\"HealthGrade\" : \"good\"", "");
    assert_says("-o json gpu show 02:00.0", 0, "\"Healthy\" : true", "");
    assert_says("gpu show 02:00.0", 0, "ecc (notice): 1 errors in its memory", "");
    file_tree_write(at.root, "/etc/vgpu/gpus.conf",
                    "[gpu " GPU "]\nmode=shared\nhealth-ignore=cold\n");
    assert_says("reload", 2, "", "aer-fatal");
    agent_on_bus_close(&at);
}

/* With a vGPU on it, its absence is a finding; when it is back, it is healthy. */
static void test_gone_on_bus(void)
{
    g_autoptr(GString) events = g_string_new(NULL);
    AgentOnBus at;

    agent_on_bus_open(&at, "shared");
    g_dbus_connection_signal_subscribe(at.bus, NULL, NULL, "Event", NULL, NULL,
                                       G_DBUS_SIGNAL_FLAGS_NONE, remember_event, events, NULL);
    add_vgpu(at.root, "device=closed engine=ready", "0");
    agent_refresh(at.agent);
    recorded_host_remove(at.root, GPU);
    agent_refresh(at.agent);
    iterate_until_said(events, "it is missing, and 1 vGPUs");
    g_assert_null(strstr(events->str, "it is healthy"));
    agent_on_bus_close(&at);
}

/* It was removed while the host was off; a vGPU with automatic start is defined on it. */
static void test_missed_at_start(void)
{
    AgentOnBus at;
    Slice slice = {
        .uuid = (char *)UUID,
        .request = (char *)"",
        .gpu = (char *)"0000:42:00.0",
        .type = (char *)"amdgpu-vgpu-half",
        .tenant = (char *)"",
        .job = (char *)"",
        .replica = (char *)"",
        .domain = (char *)"",
        .defined = TRUE,
        .autostart = TRUE,
    };

    agent_on_bus_open(&at, "shared");
    g_assert_true(slice_table_put(host_db(agent_host(at.agent)), &slice, NULL));
    file_tree_write(at.root, "/etc/mdevctl.d/0000:42:00.0/" UUID,
                    "{\"mdev_type\": \"amdgpu-vgpu-half\", \"start\": \"auto\", \"attrs\": []}\n");
    agent_on_bus_restart(&at);
    g_assert_false(health_is_good(meter_health(at.meter), "0000:42:00.0"));
    agent_on_bus_close(&at);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/health/good", test_good);
    g_test_add_func("/health/fatal", test_fatal);
    g_test_add_func("/health/counters-begin-anew", test_counters_begin_anew);
    g_test_add_func("/health/gap", test_gap);
    g_test_add_func("/health/nonfatal", test_nonfatal);
    g_test_add_func("/health/corrected", test_corrected);
    g_test_add_func("/health/temperature", test_temperature);
    g_test_add_func("/health/link", test_link);
    g_test_add_func("/health/crashes", test_crashes);
    g_test_add_func("/health/crashes-of-one", test_crashes_of_one);
    g_test_add_func("/health/containers-are-witnesses", test_containers_are_witnesses);
    g_test_add_func("/health/ignored", test_ignored);
    g_test_add_func("/health/grades", test_grades);
    g_test_add_func("/health/ignored-on-bus", test_ignored_on_bus);
    g_test_add_func("/health/crashes-beside-another", test_crashes_beside_another);
    g_test_add_func("/health/failed", test_failed);
    g_test_add_func("/health/gone", test_gone);
    g_test_add_func("/health/names", test_names);
    g_test_add_func("/health/readings", test_readings);
    g_test_add_func("/health/nvidia", test_nvidia);
    g_test_add_func("/health/narrow-slot", test_narrow_slot);
    g_test_add_func("/health/on-bus", test_on_bus);
    g_test_add_func("/health/cleared-in-gap", test_cleared_in_gap);
    g_test_add_func("/health/unknown-in-gap", test_unknown_in_gap);
    g_test_add_func("/health/engine-on-bus", test_engine_on_bus);
    g_test_add_func("/health/witness-on-bus", test_witness_on_bus);
    g_test_add_func("/health/gone-on-bus", test_gone_on_bus);
    g_test_add_func("/health/missed-at-start", test_missed_at_start);
    return g_test_run();
}
