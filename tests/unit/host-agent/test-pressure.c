/* SPDX-License-Identifier: MIT */
/* The steps when a GPU is short of memory, their order, and their end. */
#include <string.h>
#include <unistd.h>

#include "host-agent/meter/counters.h"
#include "host-agent/meter/gpu_memory.h"
#include "host-agent/meter/pressure_watch.h"
#include "lib/vgpud_conf.h"
#include "host-agent/model/gpu_health.h"
#include "tests/unit/file_tree.h"
#include "tests/unit/host-agent/agent_on_bus.h"
#include "tests/unit/host-agent/fake_arbiter.h"
#include "tests/unit/host-agent/fake_systemd.h"
#include "tests/unit/host-agent/nvidia_kit.h"
#include "tests/unit/host-agent/recorded_host.h"
#include "tests/unit/host-agent/slices_kit.h"

#define PLACE  "pci0000:00/0000:00:01.0/0000:02:00.0"
#define GPU    "0000:02:00.0"
#define BEST   "c0ffee00-0000-4000-8000-00000000000b"
#define GIVEN  "c0ffee00-0000-4000-8000-00000000000c"
#define USED   "/sys/devices/" PLACE "/mem_info_vram_used"
#define SECOND ((gint64)G_USEC_PER_SEC)
#define GRACE  (10 * SECOND)

static void assert_step(Pressure *pressure, guint64 free, guint victims, gint64 at,
                        PressureStep expected)
{
    g_assert_cmpint(pressure_step(pressure, free, 100, victims, FALSE, at * SECOND, GRACE), ==,
                    expected);
}

/* Where programs can be suspended, that comes before the command. */
static void test_suspends(void)
{
    Pressure pressure = {0};

    assert_step(&pressure, 0, 1, 0, PRESSURE_TELL);
    g_assert_cmpint(pressure_step(&pressure, 0, 100, 1, TRUE, 9 * SECOND, GRACE), ==,
                    PRESSURE_NOTHING);
    g_assert_cmpint(pressure_step(&pressure, 0, 100, 1, TRUE, 10 * SECOND, GRACE), ==,
                    PRESSURE_SUSPEND);
    assert_step(&pressure, 0, 0, 19, PRESSURE_NOTHING);
    assert_step(&pressure, 0, 1, 20, PRESSURE_COMMAND);
    assert_step(&pressure, 0, 1, 30, PRESSURE_EVICT);
}

static void test_steps(void)
{
    Pressure pressure = {0};

    assert_step(&pressure, 100, 2, 0, PRESSURE_NOTHING);
    assert_step(&pressure, 99, 2, 1, PRESSURE_TELL);
    assert_step(&pressure, 50, 2, 10, PRESSURE_NOTHING);
    assert_step(&pressure, 50, 2, 11, PRESSURE_COMMAND);
    assert_step(&pressure, 50, 2, 20, PRESSURE_NOTHING);
    assert_step(&pressure, 50, 2, 21, PRESSURE_EVICT);
    assert_step(&pressure, 50, 0, 31, PRESSURE_NOTHING); /* no vGPU is left */
    assert_step(&pressure, 50, 1, 32, PRESSURE_TELL);    /* a vGPU was added */
    assert_step(&pressure, 100, 1, 33, PRESSURE_OVER);
    assert_step(&pressure, 100, 1, 34, PRESSURE_NOTHING);
    g_assert_false(pressure_is_on(&pressure));
}

static void test_ends_early(void)
{
    Pressure pressure = {0};

    assert_step(&pressure, 0, 1, 0, PRESSURE_TELL);
    assert_step(&pressure, 100, 1, 5, PRESSURE_OVER);
    assert_step(&pressure, 0, 1, 6, PRESSURE_TELL); /* from the beginning */
    assert_step(&pressure, 0, 1, 16, PRESSURE_COMMAND);
    assert_step(&pressure, 200, 1, 17, PRESSURE_OVER);
}

static void test_nobody_to_stop(void)
{
    Pressure pressure = {0};

    assert_step(&pressure, 0, 0, 0, PRESSURE_TELL);
    assert_step(&pressure, 0, 0, 10, PRESSURE_COMMAND);
    assert_step(&pressure, 0, 0, 20, PRESSURE_NOTHING);
    assert_step(&pressure, 0, 0, 1000, PRESSURE_NOTHING);
    assert_step(&pressure, 0, 1, 1001, PRESSURE_EVICT);
}

static VgpudConf *load_conf(const char *text, GError **error)
{
    HostRoot *root = file_tree_new();
    VgpudConf *conf;

    if (text)
        file_tree_write(root, VGPUD_CONF, text);
    conf = vgpud_conf_load(root, error);
    file_tree_free(root);
    return conf;
}

static void test_conf(void)
{
    g_autoptr(VgpudConf) none = load_conf(NULL, NULL);
    g_autoptr(VgpudConf) all = load_conf("[metrics]\nlisten=unix:/run/vgpu/metrics\n"
                                         "[pressure]\ngrace=3\nnative=suspend\n",
                                         NULL);
    g_autoptr(VgpudConf) named = load_conf("[metrics]\nlisten=localhost:9836\n", NULL);
    g_autoptr(VgpudConf) off = load_conf("[metrics]\nlisten=off\n", NULL);

    g_assert_cmpstr(none->metrics_listen, ==, "127.0.0.1:9835");
    g_assert_cmpuint(none->pressure_grace, ==, 10);
    g_assert_cmpstr(all->metrics_listen, ==, "unix:/run/vgpu/metrics");
    g_assert_cmpuint(all->pressure_grace, ==, 3);
    g_assert_cmpint(none->pressure_native, ==, PRESSURE_NATIVE_LEAVE);
    g_assert_cmpint(all->pressure_native, ==, PRESSURE_NATIVE_SUSPEND);
    g_assert_null(off->metrics_listen);
    g_assert_cmpstr(named->metrics_listen, ==, "127.0.0.1:9836");
}

static void test_bad_conf(void)
{
    static const char *const cases[][2] = {
        {"[metrics]\nlisten=9835\n", "[metrics]: listen=9835 is not allowed"},
        {"[metrics]\nlisten=127.0.0.1:99999\n", "is not allowed"},
        {"[metrics]\nlisten=unix:run/x\n", "unix:PATH"},
        {"[metrics]\nport=1\n", "no key \"port\""},
        {"[presure]\ngrace=1\n", "[presure]: there is no key \"grace\""},
        {"[pressure]\ngrace=0\n", "from 1 to 3600"},
        {"[pressure]\ngrace=soon\n", "from 1 to 3600"},
        {"nonsense\n", VGPUD_CONF},
    };

    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;

        g_assert_null(load_conf(cases[i][0], &error));
        g_test_message("%s", error->message);
        g_assert_nonnull(strstr(error->message, cases[i][1]));
    }
}

static void keep_log(const char *domain, GLogLevelFlags level, const char *message, void *log)
{
    (void)domain, (void)level;
    g_string_append_printf(log, "%s\n", message);
}

/* A value of vgpud.conf that is wrong has its default; unless it may be that of on-bypass=. */
static void test_broken_conf(void)
{
    static const struct {
        const char *text;
        gboolean starts;
    } cases[] = {
        {"[metrics]\nlisten=nowhere\n[slices]\non-bypass=kill\n", TRUE},
        {"[metrics]\nlisten=off\n[pressure]\ngrace=soon\n", TRUE},
        {"[metrics]\nlisten=off\n# on-bypass=kill\nport\n", TRUE},
        {"[slices]\non-bypass=kil\n", FALSE},
        {"[slice]\non-bypass=kill\n", FALSE},
        {"[slices]\non-bypass=kill\nport\n", FALSE},
    };

    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        HostRoot *root = file_tree_new();
        g_autoptr(GString) log = g_string_new("");
        g_autoptr(GError) error = NULL;
        g_autoptr(VgpudConf) conf = NULL;

        file_tree_write(root, VGPUD_CONF, cases[i].text);
        g_log_set_always_fatal(G_LOG_FATAL_MASK);
        g_log_set_default_handler(keep_log, log);
        conf = vgpud_conf_load_at_start(root, &error);
        g_log_set_default_handler(g_log_default_handler, NULL);
        g_log_set_always_fatal(G_LOG_FATAL_MASK | G_LOG_LEVEL_CRITICAL | G_LOG_LEVEL_WARNING);
        g_assert_cmpint(conf != NULL, ==, cases[i].starts);
        g_assert_nonnull(strstr(conf ? log->str : error->message, VGPUD_CONF));
        if (conf)
            g_assert_cmpuint(conf->pressure_grace, ==, 10);
        if (i == 0) {
            g_assert_cmpstr(conf->metrics_listen, ==, "127.0.0.1:9835");
            g_assert_cmpint(conf->on_bypass, ==, ON_BYPASS_KILL);
        }
        file_tree_free(root);
    }
}

static void add_vgpu(HostRoot *root, const char *uuid, const char *type)
{
    recorded_host_add_vgpu(root, PLACE, uuid, type,
                           "state=device=running engine=ready|failure=|vram_bytes=4294967296|"
                           "window_bytes=268435456|weight=100|cap=100|priority=0|requests=1|"
                           "doorbells=1|interrupts=1|engine_losses=0");
}

/* A GPU of 16 GiB, of which 1 GiB should be free, with a best-effort vGPU and a guaranteed one. */
static void open_host(AgentOnBus *at, FakeSystemd *systemd)
{
    g_autofree char *dir = NULL;
    g_autofree char *conf = NULL;

    agent_on_bus_open(at, "shared");
    dir = root_path(at->root, "", NULL);
    fake_systemd_start(systemd, at->daemon);
    conf = g_strdup_printf("[gpu " GPU "]\nmode=shared\nwater-mark=1G\n"
                           "pressure-command=/bin/sh -c 'echo $GPU $FREE $MARK $VGPUS >%s/said'\n",
                           dir);
    file_tree_write(at->root, "/etc/vgpu/gpus.conf", conf);
    file_tree_write(at->root, "/etc/vgpu/types.d/10-test.conf",
                    "[type vgpu-full]\nvram=1/1\n"
                    "[type vgpu-half]\nvram=4G\nclass=best-effort\n");
    add_vgpu(at->root, BEST, "amdgpu-vgpu-half");
    add_vgpu(at->root, GIVEN, "amdgpu-vgpu-full");
    file_tree_write(at->root, USED, "1000000000\n");
    agent_on_bus_restart(at);
}

static void remember_signal(GDBusConnection *bus, const char *sender, const char *path,
                            const char *interface, const char *signal, GVariant *parameters,
                            void *data)
{
    g_autofree char *text = g_variant_print(parameters, FALSE);

    (void)bus;
    (void)sender;
    (void)path;
    (void)interface;
    g_string_append_printf(data, "%s %s\n", signal, text);
}

static char *wait_for_file(HostRoot *root, const char *name)
{
    g_autofree char *path = root_path(root, name, NULL);
    char *text = NULL;

    for (guint i = 0; i < 6000 && (!g_file_get_contents(path, &text, NULL, NULL) || !*text); i++) {
        g_clear_pointer(&text, g_free);
        g_main_context_iteration(NULL, FALSE);
        g_usleep(10000);
    }
    g_assert_nonnull(text);
    return text;
}

/* Told, the command, stopped, stored; and over. */
static void test_on_bus(void)
{
    g_autoptr(GString) signals = g_string_new(NULL);
    g_autofree char *said = NULL;
    FakeSystemd systemd;
    AgentOnBus at;
    PressureWatch *watch;
    guint subscription;

    open_host(&at, &systemd);
    watch = meter_pressure(at.meter);
    subscription = g_dbus_connection_signal_subscribe(at.bus, NULL, "org.mdev_vgpu.Host1.Manager",
                                                      NULL, NULL, NULL, G_DBUS_SIGNAL_FLAGS_NONE,
                                                      remember_signal, signals, NULL);
    pressure_watch_look(watch, 0);

    file_tree_write(at.root, USED, "17000000000\n");
    pressure_watch_look(watch, 1 * SECOND);
    iterate_until_said(signals, "MemoryPressure ('" GPU "', 163091968, 1073741824, ['" BEST "'])");
    iterate_until_said(signals, "('memory-pressure', '" GPU "'");
    g_assert_true(g_str_has_prefix(signals->str, "MemoryPressure")); /* no earlier report */
    pressure_watch_look(watch, 11 * SECOND);
    said = wait_for_file(at.root, "said");
    g_assert_cmpstr(said, ==, GPU " 163091968 1073741824 " BEST "\n");
    g_assert_cmpstr(systemd.stopped->str, ==, "");
    pressure_watch_look(watch, 21 * SECOND);
    iterate_until_said(systemd.stopped, "\n");
    g_assert_cmpstr(systemd.stopped->str, ==, "vgpu-engine@" BEST ".service\n");
    iterate_until_said(signals, "('evicted', '" GPU "', '" BEST "'");
    assert_says("vgpu create half --gpu 0000:02:00.0", 7, "",
                "stopped there because memory was short");

    file_tree_write(at.root, "/sys/devices/" PLACE "/" BEST "/vgpu/state",
                    "device=lost engine=none\n");
    file_tree_write(at.root, USED, "1000000000\n");
    pressure_watch_look(watch, 22 * SECOND);
    iterate_until_said(signals, "enough free memory again");
    g_dbus_connection_signal_unsubscribe(at.bus, subscription);
    fake_systemd_stop(&systemd);
    agent_on_bus_close(&at);
}

#define READING      "/run/vgpu/readings/" GPU
#define GIB          ((guint64)1 << 30)
#define BOTH         "'" UUID "', '" UUID2 "'"
#define OF(id, more) "{\"id\":\"" id "\",\"pids\":[]," more "}"
/* Of two slices: 2 GiB and 1 GiB, of which nobody has asked for 512 MiB; and then the first has
 * given back what it had. */
#define SECOND_USES OF(UUID2, "\"vram_used\":1073741824,\"vram_ungoverned\":536870912")
#define BOTH_USE    "{\"slices\":[" OF(UUID, "\"vram_used\":2147483648") "," SECOND_USES "]}"
#define ONE_USES    "{\"slices\":[" OF(UUID, "\"vram_used\":0") "," SECOND_USES "]}"

/* NVIDIA's library says that so much is in use. */
static void write_reading(HostRoot *root, guint64 used)
{
    g_autofree char *text = g_strdup_printf(
        "[gpu]\ntime=%" G_GINT64_FORMAT "\nmemory=17163091968\nmemory_used=%" G_GUINT64_FORMAT "\n",
        g_get_monotonic_time(), used);

    file_tree_write(root, READING, text);
}

static guint64 memory_used_of(const AgentOnBus *at, GpuMemory *memory, guint64 vram)
{
    const Gpu *gpu = host_view_gpu(meter_view(at->meter), GPU);
    const GPtrArray *vgpus = counters_read(host_view_counters(meter_view(at->meter)));
    guint64 bytes;

    g_assert_true(gpu_memory_used(memory, gpu, vram, vgpus, &bytes));
    return bytes;
}

static guint64 memory_used(const AgentOnBus *at, GpuMemory *memory)
{
    return memory_used_of(at, memory, host_gpu(agent_host(at->agent), GPU)->vram);
}

/* A GPU of 16 GiB with two best-effort slices, of containers, and no vGPU. */
static void open_slices(AgentOnBus *at, FakeArbiter *arbiter)
{
    HostRoot *root = shared_tree();
    g_autofree char *dir = root_path(root, "", NULL);
    g_autofree char *conf =
        g_strdup_printf("[gpu " GPU "]\nmode=shared\nwater-mark=1G\n"
                        "pressure-command=/bin/sh -c 'echo $FREE $VGPUS >%s/said'\n",
                        dir);

    file_tree_write(root, "/etc/vgpu/gpus.conf", conf);
    file_tree_write(root, "/etc/vgpu/types.d/10-test.conf",
                    "[type vgpu-half]\nvram=4G\nclass=best-effort\n");
    fake_arbiter_open_with(arbiter, root, BOTH_USE);
    agent_on_bus_open_tree(at, root);
    assert_says("slice create half --door native --uuid " UUID, 0, UUID, "");
    assert_says("slice create half --door guarded --uuid " UUID2, 0, UUID2, "");
}

/* Of hear_signals(); 0: none. */
static guint hearing;

static void close_slices(AgentOnBus *at, FakeArbiter *arbiter)
{
    if (hearing)
        g_dbus_connection_signal_unsubscribe(at->bus, hearing);
    hearing = 0;
    agent_on_bus_close(at);
    fake_arbiter_close(arbiter);
}

/* By the driver, by NVIDIA's library, and else by what slices have. */
static void test_used(void)
{
    FakeArbiter arbiter;
    AgentOnBus at;
    GpuMemory *memory;

    open_slices(&at, &arbiter);
    memory = gpu_memory_new(meter_view(at.meter));
    g_assert_cmpuint(memory_used(&at, memory), ==, 3 * GIB);
    /* Others have 7 GiB. What slices give back is seen before the next reading. */
    write_reading(at.root, 10 * GIB);
    g_assert_cmpuint(memory_used(&at, memory), ==, 10 * GIB);
    g_atomic_pointer_set(&arbiter.text, ONE_USES);
    g_assert_cmpuint(memory_used(&at, memory), ==, 8 * GIB);
    write_reading(at.root, 9 * GIB);
    g_assert_cmpuint(memory_used(&at, memory), ==, 9 * GIB);
    g_atomic_pointer_set(&arbiter.text, BOTH_USE);
    g_assert_cmpuint(memory_used(&at, memory), ==, 11 * GIB);
    /* Slices may have 12 GiB of 16, less 16 MiB: the other 4 are the first that others fill. */
    g_assert_cmpuint(memory_used_of(&at, memory, 12 * GIB), ==, 7 * GIB + GIB / 64);
    g_assert_cmpuint(memory_used_of(&at, memory, 4 * GIB), ==, 3 * GIB);
    /* What is suspended is in the host's memory, though the arbiter counts it. */
    file_tree_write(at.root, READING, "[gpu]\ntime=1\nmemory_used=1\n");
    g_assert_true(slices_set_suspended(agent_slices(at.agent), UUID, TRUE, NULL));
    g_assert_cmpuint(memory_used(&at, memory), ==, 1 * GIB);
    file_tree_write(at.root, "/run/vgpu/vram-used/" GPU, "1000\n");
    g_assert_cmpuint(memory_used(&at, memory), ==, 1000);
    file_tree_write(at.root, USED, "2000\n"); /* a driver has precedence over a file */
    g_assert_cmpuint(memory_used(&at, memory), ==, 2000);
    gpu_memory_free(memory);
    close_slices(&at, &arbiter);
}

/* Slices of containers and jobs, on a GPU of NVIDIA's, without a vGPU. */
static void test_slices(void)
{
    g_autoptr(GString) signals = g_string_new(NULL);
    g_autofree char *said = NULL;
    FakeArbiter arbiter;
    FakeSystemd systemd;
    AgentOnBus at;
    PressureWatch *watch;
    guint subscription;

    open_slices(&at, &arbiter);
    fake_systemd_start(&systemd, at.daemon);
    agent_on_bus_restart(&at);
    watch = meter_pressure(at.meter);
    subscription = g_dbus_connection_signal_subscribe(at.bus, NULL, "org.mdev_vgpu.Host1.Manager",
                                                      NULL, NULL, NULL, G_DBUS_SIGNAL_FLAGS_NONE,
                                                      remember_signal, signals, NULL);
    write_reading(at.root, 14 * GIB);
    pressure_watch_look(watch, 0);
    write_reading(at.root, 16 * GIB);
    pressure_watch_look(watch, 1 * SECOND);
    iterate_until_said(signals, "MemoryPressure ('" GPU "', 0, 1073741824, [" BOTH "])");
    pressure_watch_look(watch, 11 * SECOND);
    said = wait_for_file(at.root, "said");
    g_assert_cmpstr(said, ==, "0 " UUID " " UUID2 "\n");
    pressure_watch_look(watch, 21 * SECOND);
    iterate_until_said(systemd.stopped, "\n");
    g_assert_cmpstr(systemd.stopped->str, ==, "vgpu-guard@" UUID2 ".service\n");
    iterate_until_said(signals, "('evicted', '" GPU "', '" UUID2 "'");
    assert_says("slice create half --door native", 7, "", "stopped there because memory was short");
    /* The command has made room, which the next reading has not seen yet. */
    g_atomic_pointer_set(&arbiter.text, ONE_USES);
    pressure_watch_look(watch, 22 * SECOND);
    iterate_until_said(signals, "enough free memory again");
    /* Who has nothing makes no room. */
    write_reading(at.root, 17 * GIB);
    pressure_watch_look(watch, 23 * SECOND);
    iterate_until_said(signals, "MemoryPressure ('" GPU "', 0, 1073741824, ['" UUID2 "'])");
    g_dbus_connection_signal_unsubscribe(at.bus, subscription);
    fake_systemd_stop(&systemd);
    close_slices(&at, &arbiter);
}

#define WAITS OF(UUID2, "\"missing\":1073741824")
#define HAS   "{\"id\":\"" UUID "\",\"vram_used\":4096,\"pids\":[77,78]}"

/* A GPU that is lent, where a slice waits for what best effort has, and a meter that tells of it.
 */
static PressureWatch *open_ladder(AgentOnBus *at, FakeArbiter *arbiter, HostRoot *root)
{
    file_tree_write(root, VGPUD_CONF, "[metrics]\nlisten=off\n[pressure]\nnative=end\n");
    fake_arbiter_open_with(arbiter, root, "{\"slices\":[" WAITS "," HAS "]}");
    agent_on_bus_open_tree(at, root);
    assert_says("slice create half --door native --class best-effort --uuid " UUID, 0, UUID, "");
    assert_says("slice create half --door native --class burstable --uuid " UUID2, 0, UUID2, "");
    return meter_pressure(at->meter);
}

/* Until close_slices(), which comes before its end. */
static GString *hear_signals(const AgentOnBus *at)
{
    GString *signals = g_string_new(NULL);

    hearing = g_dbus_connection_signal_subscribe(at->bus, NULL, "org.mdev_vgpu.Host1.Manager", NULL,
                                                 NULL, NULL, G_DBUS_SIGNAL_FLAGS_NONE,
                                                 remember_signal, signals, NULL);
    return signals;
}

/* Who cannot move is told, and then suspended: the others have its room. */
static void test_suspended(void)
{
    FakeArbiter arbiter;
    AgentOnBus at;
    PressureWatch *watch = open_ladder(&at, &arbiter, nvidia_kit_tree());
    g_autoptr(GString) signals = hear_signals(&at);
    g_autofree char *log = NULL;

    pressure_watch_look(watch, 1 * SECOND);
    iterate_until_said(signals, "MemoryPressure ('" ADDRESS "', 0, 1073741824, ['" UUID "'])");
    pressure_watch_look(watch, 11 * SECOND);
    log = wait_for_file(at.root, "suspend-log");
    g_assert_nonnull(strstr(log, "suspend 77 78\n"));
    iterate_until_said(signals, "slice " UUID " was suspended");
    /* Nobody is left who could make room. */
    pressure_watch_look(watch, 21 * SECOND);
    pressure_watch_look(watch, 31 * SECOND);
    g_atomic_pointer_set(&arbiter.text, "{\"slices\":[" HAS "]}");
    pressure_watch_look(watch, 41 * SECOND);
    iterate_until_said(signals, "enough free memory again");
    assert_not_in_file(&at, "/kill-log", "77");
    close_slices(&at, &arbiter);
}

static gboolean is_there(HostRoot *root, const char *name)
{
    g_autofree char *path = root_path(root, name, NULL);

    return g_file_test(path, G_FILE_TEST_EXISTS);
}

/*
 * The next one, at a time that the watch's own timer does not reach. While programs are being
 * suspended they are left alone.
 */
static void take_step(PressureWatch *watch, gint64 *at_us)
{
    *at_us = MAX(*at_us, g_get_monotonic_time()) + GRACE;
    pressure_watch_look(watch, *at_us);
    for (guint i = 0; i < 20; i++) {
        g_main_context_iteration(NULL, FALSE);
        g_usleep(1000);
    }
}

/* Suspended for room, which there is again. */
static PressureWatch *open_out(AgentOnBus *at, FakeArbiter *arbiter, gint64 *at_us)
{
    PressureWatch *watch = open_ladder(at, arbiter, nvidia_kit_tree());
    g_autoptr(GString) signals = hear_signals(at);

    while (!strstr(signals->str, "slice " UUID " was suspended"))
        take_step(watch, at_us);
    g_dbus_connection_signal_unsubscribe(at->bus, hearing);
    hearing = 0;
    g_atomic_pointer_set(&arbiter->text, "{\"slices\":[" HAS "]}");
    write_reading(at->root, 4 * GIB);
    return watch;
}

static gboolean has_resumed(const AgentOnBus *at)
{
    g_autofree char *log = text_of(at, "/suspend-log");

    return log && strstr(log, "resume 77 78\n");
}

/* It goes on by itself after a minute with room, also if vgpud was restarted meanwhile. */
static void test_returns(gconstpointer restart)
{
    FakeArbiter arbiter;
    AgentOnBus at;
    gint64 at_us = 0, out_us;
    PressureWatch *watch = open_out(&at, &arbiter, &at_us);

    if (restart)
        agent_on_bus_restart(&at);
    watch = meter_pressure(at.meter);
    out_us = at_us;
    while (!has_resumed(&at))
        take_step(watch, &at_us);
    g_assert_cmpint(at_us - out_us, >=, 60 * SECOND);
    close_slices(&at, &arbiter);
}

/* What an operator wants suspended stays so. */
static void test_kept_out(void)
{
    FakeArbiter arbiter;
    AgentOnBus at;
    gint64 at_us = 0;
    PressureWatch *watch = open_out(&at, &arbiter, &at_us);

    assert_says("slice suspend " UUID, 0, "", "");
    for (guint i = 0; i < 20; i++)
        take_step(watch, &at_us);
    g_assert_false(has_resumed(&at));
    close_slices(&at, &arbiter);
}

/* Of those that the arbiter names one has ended; the other began at 5. @fails: verbs. */
static PressureWatch *open_stubborn(AgentOnBus *at, FakeArbiter *arbiter, const char *fails)
{
    HostRoot *root = nvidia_kit_tree();
    PressureWatch *watch;

    file_tree_write(root, "/suspend-fails", fails);
    watch = open_ladder(at, arbiter, root);
    process(at, 77, 5);
    return watch;
}

/* Who cannot be suspended is ended, and kept away for a while. */
static void test_ended(void)
{
    FakeArbiter arbiter;
    AgentOnBus at;
    PressureWatch *watch = open_stubborn(&at, &arbiter, "suspend\n");
    g_autoptr(GString) signals = hear_signals(&at);
    gint64 at_us = 0;

    while (!is_there(at.root, "kill-log"))
        take_step(watch, &at_us);
    assert_in_file(&at, "/kill-log", "--limit 20000 end 77:5\n");
    iterate_until_said(signals, "were ended, because GPU " ADDRESS " is short of memory");
    assert_says("slice create half --door native --class best-effort", 7, "",
                "stopped there because memory was short");
    close_slices(&at, &arbiter);
}

/* Takes steps until vgpud's log says so. */
static void look_until_logged(PressureWatch *watch, const char *words)
{
    g_autoptr(GString) log = g_string_new(NULL);
    gint64 at_us = 0;

    g_log_set_default_handler(keep_log, log);
    while (!strstr(log->str, words))
        take_step(watch, &at_us);
    g_log_set_default_handler(g_log_default_handler, NULL);
}

/* What has not happened is not told. */
static void test_not_ended(void)
{
    FakeArbiter arbiter;
    AgentOnBus at;
    PressureWatch *watch = open_stubborn(&at, &arbiter, "suspend\nend\n");
    g_autoptr(GString) signals = hear_signals(&at);

    look_until_logged(watch, "programs of slice " UUID " can't be ended");
    g_assert_null(strstr(signals->str, "were ended"));
    assert_says("slice create half --door native --class best-effort", 7, "",
                "0 MiB of 15.98 GiB are free");
    close_slices(&at, &arbiter);
}

/* Programs that use a slice of another class as well. */
static void test_shared(void)
{
    FakeArbiter arbiter;
    AgentOnBus at;
    PressureWatch *watch = open_stubborn(&at, &arbiter, "");

    assert_hook_of(&at, UUID, "claim", WEB, 0, "");
    assert_hook_of(&at, UUID2, "claim", WEB, 0, "");
    look_until_logged(watch, "cannot end the programs of slice " UUID
                             ": its container has slices of GPU " ADDRESS
                             " that are not best effort, too");
    g_assert_false(is_there(at.root, "kill-log"));
    close_slices(&at, &arbiter);
}

#define THIRD "c0ffee00-0000-4000-8000-000000000003"

/* A container with several slices has one share, which the first stands for: its programs end. */
static void test_several(void)
{
    FakeArbiter arbiter;
    AgentOnBus at;
    PressureWatch *watch = open_stubborn(&at, &arbiter, "");
    g_autoptr(GString) signals = hear_signals(&at);
    gint64 at_us = 0;

    assert_says("slice set " UUID2 " --vram 4G", 0, "", "");
    assert_says("slice create --vram 1G --door native --class best-effort --uuid " THIRD, 0, THIRD,
                "");
    assert_hook_of(&at, UUID, "claim", WEB, 0, "");
    assert_hook_of(&at, THIRD, "claim", WEB, 0, "");
    while (!is_there(at.root, "kill-log"))
        take_step(watch, &at_us);
    assert_in_file(&at, "/kill-log", "--limit 20000 end 77:5\n");
    iterate_until_said(signals, "programs of slice " UUID " (best effort) were ended");
    g_assert_null(strstr(signals->str, "programs of slice " THIRD));
    close_slices(&at, &arbiter);
}

/* With its last slice a shortage is over: the next one begins with the first step. */
static void test_removed(void)
{
    FakeArbiter arbiter;
    AgentOnBus at;
    PressureWatch *watch = open_ladder(&at, &arbiter, nvidia_kit_tree());
    g_autoptr(GString) signals = hear_signals(&at);

    pressure_watch_look(watch, 1 * SECOND);
    iterate_until_said(signals, "MemoryPressure ('" ADDRESS "'");
    g_atomic_pointer_set(&arbiter.text, "{\"slices\":[]}");
    assert_says("slice remove " UUID2, 0, "", "");
    assert_says("slice remove " UUID, 0, "", "");
    iterate_until_said(signals, "enough free memory again");
    close_slices(&at, &arbiter);
}

/* An arbiter that hangs for a while does not end a shortage, and the steps go on after it. */
static void test_silent(void)
{
    FakeArbiter arbiter;
    AgentOnBus at;
    PressureWatch *watch = open_ladder(&at, &arbiter, nvidia_kit_tree());
    g_autoptr(GString) signals = hear_signals(&at);
    gint64 at_us = 0;
    int hanging;

    take_step(watch, &at_us);
    iterate_until_said(signals, "MemoryPressure ('" ADDRESS "'");
    fake_arbiter_close(&arbiter);
    hanging = fake_arbiter_listen(at.root);
    pressure_watch_look(watch, at_us);
    close(hanging);
    fake_arbiter_open_with(&arbiter, at.root, "{\"slices\":[" WAITS "," HAS "]}");
    while (!is_there(at.root, "suspend-log")) {
        g_assert_null(strstr(signals->str, "enough free memory again"));
        pressure_watch_look(watch, at_us + GRACE);
        g_main_context_iteration(NULL, FALSE);
        g_usleep(10000);
    }
    close_slices(&at, &arbiter);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/pressure/steps", test_steps);
    g_test_add_func("/pressure/ends-early", test_ends_early);
    g_test_add_func("/pressure/nobody-to-stop", test_nobody_to_stop);
    g_test_add_func("/pressure/suspends", test_suspends);
    g_test_add_func("/pressure/used", test_used);
    g_test_add_func("/pressure/conf", test_conf);
    g_test_add_func("/pressure/bad-conf", test_bad_conf);
    g_test_add_func("/pressure/broken-conf", test_broken_conf);
    g_test_add_func("/pressure/on-bus", test_on_bus);
    g_test_add_func("/pressure/slices", test_slices);
    g_test_add_func("/pressure/suspended", test_suspended);
    g_test_add_data_func("/pressure/returns", NULL, test_returns);
    g_test_add_data_func("/pressure/returns-after-restart", "", test_returns);
    g_test_add_func("/pressure/kept-out", test_kept_out);
    g_test_add_func("/pressure/ended", test_ended);
    g_test_add_func("/pressure/not-ended", test_not_ended);
    g_test_add_func("/pressure/shared", test_shared);
    g_test_add_func("/pressure/several", test_several);
    g_test_add_func("/pressure/removed", test_removed);
    g_test_add_func("/pressure/silent", test_silent);
    return g_test_run();
}
