/* SPDX-License-Identifier: MIT */
/*
 * Engines' limits on the host: what is sent to systemd, when, and when not; what is left to the
 * kernel.
 */
#include <glib/gstdio.h>
#include <string.h>

#include "host-agent/daemon/sync/limits.h"
#include "lib/types.h"
#include "tests/unit/file_tree.h"
#include "tests/unit/host-agent/device_limits_kit.h"
#include "tests/unit/host-agent/agent_on_bus.h"
#include "tests/unit/host-agent/fake_systemd.h"
#include "tests/unit/host-agent/recorded_host.h"

#define PLACE   "pci0000:00/0000:00:01.0/0000:02:00.0"
#define GPU     "0000:02:00.0"
#define UUID    "c0ffee00-0000-4000-8000-00000000000b"
#define UNIT    "vgpu-engine@" UUID ".service"
#define VGPU    "/sys/devices/" PLACE "/" UUID "/vgpu"
#define USER    "/run/systemd/system/" UNIT ".d/vgpu.conf"
#define CONTROL "/run/systemd/system.control/" UNIT ".d/50-MemoryMax.conf"
#define TYPES   "/etc/vgpu/types.d/10-test.conf"
#define CGROUPS "/sys/fs/cgroup"
#define ENGINES CGROUPS "/system.slice/system-vgpu\\x2dengine.slice"
#define ENGINE  ENGINES "/" UNIT
#define GIB     (G_GUINT64_CONSTANT(1) << 30)
#define TELLER  HOSTS "/../../../../host-agent/daemon/engines/vgpu-device-limits"

#define NO_LIMIT "<uint64 18446744073709551615>"
#define SET(cpu, weight, memory)                                                                   \
    "('" UNIT "', true, [('CPUQuotaPerSecUSec', " cpu "), ('CPUWeight', " weight                   \
    "), ('MemoryMax', " memory ")])\n"

static void test_of_type(void)
{
    Slice slice = {.vram = GIB, .weight = 100};
    EngineLimits limits = engine_limits_of(&slice, 0, 0);

    g_assert_cmpuint(limits.cpu_us, ==, LIMIT_NONE);
    g_assert_cmpuint(limits.memory, ==, GIB + ENGINE_OWN_MEMORY);
    g_assert_false(engine_limits_are_none(&limits));
    limits = engine_limits_of(&slice, 0, TYPE_MEMORY_INFINITY);
    g_assert_true(engine_limits_are_none(&limits));
    limits = engine_limits_of(&slice, 250, 3 * GIB);
    g_assert_cmpuint(limits.cpu_us, ==, 2500000);
    g_assert_cmpuint(limits.memory, ==, 3 * GIB);
    slice.oversubscribe = 2 * GIB;
    g_assert_cmpuint(engine_limits_of(&slice, 0, 0).memory, ==, 3 * GIB + ENGINE_OWN_MEMORY);
    slice.weight = 7;
    limits = engine_limits_of(&slice, 0, TYPE_MEMORY_INFINITY);
    g_assert_false(engine_limits_are_none(&limits));
}

static void open_host(AgentOnBus *at, FakeSystemd *systemd, const char *keys)
{
    g_autofree char *types = g_strdup_printf("[type vgpu-half]\nvram=4G\n%s", keys);

    agent_on_bus_open(at, "shared");
    fake_systemd_start(systemd, at->daemon);
    file_tree_write(at->root, "/etc/vgpu/gpus.conf", "[gpu " GPU "]\nmode=shared\n");
    file_tree_write(at->root, TYPES, types);
    recorded_host_add_vgpu(at->root, PLACE, UUID, "amdgpu-vgpu-half",
                           "state=device=closed engine=none|failure=|vram_bytes=1073741824|"
                           "window_bytes=268435456|weight=100|cap=100|priority=0|requests=1|"
                           "doorbells=1|interrupts=1|engine_losses=0");
    agent_on_bus_restart(at);
}

/* @said: the calls to systemd, with none for a while after them; the record is then cleared. */
static void assert_told(GString *seen, const char *said)
{
    gint64 quiet;

    iterate_until_said(seen, said);
    quiet = g_get_monotonic_time() + G_USEC_PER_SEC / 5;

    while (g_get_monotonic_time() < quiet) {
        if (g_main_context_iteration(NULL, FALSE))
            quiet = g_get_monotonic_time() + G_USEC_PER_SEC / 5;
        g_usleep(1000);
    }
    g_assert_cmpstr(seen->str, ==, said);
    g_string_truncate(seen, 0);
}

static void close_host(AgentOnBus *at, FakeSystemd *systemd)
{
    fake_systemd_stop(systemd);
    agent_on_bus_close(at);
}

/* From the first engine to the last change; correct values are not sent again. */
static void test_life(void)
{
    FakeSystemd systemd;
    AgentOnBus at;

    open_host(&at, &systemd, "cpu=50%\nmemory=2G\n");
    assert_told(systemd.set, ""); /* the unit has no user yet */
    file_tree_write(at.root, USER, "[Service]\n");
    agent_update_vgpu(at.agent, UUID);
    assert_told(systemd.set, SET("<uint64 500000>", NO_LIMIT, "<uint64 2147483648>"));
    file_tree_write(at.root, CONTROL, "");
    agent_update_vgpu(at.agent, UUID);
    agent_refresh(at.agent);
    assert_told(systemd.set, "");

    file_tree_write(at.root, VGPU "/weight", "300\n");
    agent_update_vgpu(at.agent, UUID);
    assert_told(systemd.set, SET("<uint64 500000>", "<uint64 300>", "<uint64 2147483648>"));
    file_tree_write(at.root, TYPES, "[type vgpu-half]\nvram=4G\n");
    assert_says("reload", 0, "", "");
    assert_told(systemd.set, SET(NO_LIMIT, "<uint64 300>", "<uint64 5368709120>"));
    file_tree_write(at.root, VGPU "/vram_bytes", "2147483648\n");
    agent_update_vgpu(at.agent, UUID);
    assert_told(systemd.set, SET(NO_LIMIT, "<uint64 300>", "<uint64 6442450944>"));
    file_tree_write(at.root, TYPES, "[type vgpu-other]\nvram=4G\n");
    assert_says("reload", 0, "", "");
    assert_told(systemd.set, ""); /* a vGPU whose type is gone keeps them */
    close_host(&at, &systemd);
}

/* The requests of a previous vgpud are unknown, so they are sent again, even for no limits. */
static void test_restart(void)
{
    FakeSystemd systemd;
    AgentOnBus at;

    open_host(&at, &systemd, "memory=infinity\n");
    file_tree_write(at.root, USER, "[Service]\n");
    agent_on_bus_restart(&at);
    assert_told(systemd.set, "");
    file_tree_write(at.root, CONTROL, "");
    agent_on_bus_restart(&at);
    assert_told(systemd.set, SET(NO_LIMIT, NO_LIMIT, NO_LIMIT));
    close_host(&at, &systemd);
}

/* It is asked again by itself, until it agrees. */
static void test_refused(void)
{
    FakeSystemd systemd;
    AgentOnBus at;

    open_host(&at, &systemd, "memory=2G\n");
    file_tree_write(at.root, USER, "[Service]\n");
    file_tree_write(at.root, CONTROL, "");
    systemd.refuses = TRUE;
    agent_update_vgpu(at.agent, UUID);
    iterate_until_said(systemd.set, SET(NO_LIMIT, NO_LIMIT, "<uint64 2147483648>"));
    systemd.refuses = FALSE;
    g_string_truncate(systemd.set, 0);
    assert_told(systemd.set, SET(NO_LIMIT, NO_LIMIT, "<uint64 2147483648>"));
    agent_update_vgpu(at.agent, UUID);
    assert_told(systemd.set, "");
    close_host(&at, &systemd);
}

/*
 * It is removed while systemd is asked: its properties in systemd are reverted. Its successor's are
 * sent again.
 */
static void test_gone(void)
{
    FakeSystemd systemd;
    AgentOnBus at;

    open_host(&at, &systemd, "memory=2G\n");
    file_tree_write(at.root, USER, "[Service]\n");
    agent_update_vgpu(at.agent, UUID);
    recorded_host_remove_vgpu(at.root, UUID);
    agent_update_vgpu(at.agent, UUID);
    assert_told(systemd.set, SET(NO_LIMIT, NO_LIMIT, "<uint64 2147483648>"));
    assert_told(systemd.reverted, "(['" UNIT "'],)\n");
    agent_update_vgpu(at.agent, UUID);
    agent_refresh(at.agent);
    assert_told(systemd.set, "");
    close_host(&at, &systemd);
}

/* Sent one after the other, and all of them. */
static void test_many(void)
{
    FakeSystemd systemd;
    AgentOnBus at;
    guint lines = 0;

    open_host(&at, &systemd, "memory=2G\n");
    for (guint i = 0; i < 200; i++) {
        g_autofree char *uuid = g_strdup_printf("c0ffee00-0000-4000-8000-%012u", i);
        g_autofree char *user =
            g_strdup_printf("/run/systemd/system/vgpu-engine@%s.service.d/vgpu.conf", uuid);

        recorded_host_add_vgpu(at.root, PLACE, uuid, "amdgpu-vgpu-half",
                               "state=device=closed engine=none|vram_bytes=1048576|weight=100");
        file_tree_write(at.root, user, "");
    }
    agent_refresh(at.agent);
    while (lines < 200) {
        g_main_context_iteration(NULL, TRUE);
        lines = 0;
        for (const char *c = systemd.set->str; (c = strchr(c, '\n')); c++)
            lines++;
    }
    g_string_truncate(systemd.set, 0);
    assert_told(systemd.set, "");
    close_host(&at, &systemd);
}

static void make_cgroups(HostRoot *root, const char *controllers)
{
    file_tree_write(root, CGROUPS "/cgroup.controllers", controllers);
    file_tree_write(root, CGROUPS "/cgroup.subtree_control", "");
    file_tree_write(root, CGROUPS "/system.slice/cgroup.subtree_control", "");
    file_tree_write(root, ENGINES "/cgroup.subtree_control", "");
    file_tree_write(root, ENGINE "/cgroup.procs", "1\n");
}

static void assert_file(HostRoot *root, const char *name, const char *text)
{
    g_autofree char *path = root_path(root, name, NULL);
    g_autofree char *seen = NULL;

    g_file_get_contents(path, &seen, NULL, NULL);
    g_assert_cmpstr(seen, ==, text);
}

static void tell_kernel(HostRoot *root)
{
    g_autofree char *dir = root_path(root, "", NULL);
    g_autofree char *command = g_strdup_printf("env VGPU_ROOT=%s %s %s", dir, TELLER, UUID);
    int status;

    g_assert_true(g_spawn_command_line_sync(command, NULL, NULL, &status, NULL));
    g_assert_cmpint(status, ==, 0);
}

static gboolean differ(HostRoot *root, const Slice *slice, const char *driver)
{
    PciDevice pci = {.driver = (char *)driver};
    Gpu gpu = {.pci = &pci};
    DeviceWorld *limits = device_world_new(root, slice, &gpu);
    gboolean result = device_world_update(limits, ENGINE);

    device_world_free(limits);
    return result;
}

/* A kernel with controllers of GPUs, in their documented form; and the existing ones. */
static void test_kernel(void)
{
    static const char attributes[] = "vram_bytes=4096|weight=300";
    Slice slice = {.uuid = UUID, .gpu = GPU, .vram = 4096, .weight = 300};
    HostRoot *root = recorded_host_new("shared");

    recorded_host_add_vgpu(root, PLACE, UUID, "amdgpu-vgpu-half", attributes);
    make_cgroups(root, "cpu memory pids\n");
    g_assert_false(differ(root, &slice, "amdgpu"));
    tell_kernel(root);
    assert_file(root, CGROUPS "/cgroup.subtree_control", "");

    make_cgroups(root, "cpu dmem drm pids\n");
    file_tree_write(root, CGROUPS "/dmem.capacity",
                    "drm/0000:01:00.0/vram0 8192\ndrm/" GPU "/stolen 64\ndrm/" GPU "/vram0 8192\n"
                    "nvidia/" GPU "/vidmem 8192\n");
    file_tree_write(root, ENGINE "/dmem.max", "drm/" GPU "/vram0 max\n");
    file_tree_write(root, ENGINE "/drm.weight", "100\n");
    g_assert_true(differ(root, &slice, "amdgpu"));
    tell_kernel(root);
    assert_file(root, ENGINE "/dmem.max", "drm/" GPU "/vram0 4096\n");
    assert_file(root, ENGINE "/drm.weight", "300\n");
    assert_file(root, ENGINES "/cgroup.subtree_control", "+drm\n"); /* the last of the two */
    g_assert_false(differ(root, &slice, "amdgpu"));
    slice.vram = 8192;
    g_assert_true(differ(root, &slice, "amdgpu"));
    slice.vram = 4096;
    slice.weight = 1;
    g_assert_true(differ(root, &slice, "amdgpu"));
    file_tree_free(root);
}

/*
 * A unit that has the right to do so runs, once for each change. It is restarted: systemd merges a
 * start with one that runs, which has read the former limit.
 */
static void test_kernel_is_told(void)
{
    g_autofree char *max = NULL;
    FakeSystemd systemd;
    AgentOnBus at;

    open_host(&at, &systemd, "memory=infinity\n");
    assert_told(systemd.started, "vgpu-arbiter@" GPU ".service\n");
    assert_told(systemd.restarted, "vgpu-describe@" GPU ".service\n");
    make_cgroups(at.root, "dmem\n");
    file_tree_write(at.root, CGROUPS "/dmem.capacity", "drm/" GPU "/vram0 8589934592\n");
    agent_update_vgpu(at.agent, UUID);
    assert_told(systemd.restarted, "vgpu-device-limits@" UUID ".service\n");
    file_tree_write(at.root, ENGINE "/dmem.max", "drm/" GPU "/vram0 1073741824\n");
    agent_update_vgpu(at.agent, UUID);
    assert_told(systemd.restarted, "");
    max = root_path(at.root, ENGINE "/dmem.max", NULL);
    g_unlink(max);
    agent_update_vgpu(at.agent, UUID);
    assert_told(systemd.restarted, "vgpu-device-limits@" UUID ".service\n");
    assert_told(systemd.started, "");
    close_host(&at, &systemd);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/limits/of-type", test_of_type);
    g_test_add_func("/limits/life", test_life);
    g_test_add_func("/limits/restart", test_restart);
    g_test_add_func("/limits/refused", test_refused);
    g_test_add_func("/limits/gone", test_gone);
    g_test_add_func("/limits/many", test_many);
    g_test_add_func("/limits/kernel", test_kernel);
    g_test_add_func("/limits/kernel-is-told", test_kernel_is_told);
    return g_test_run();
}
