/* SPDX-License-Identifier: MIT */
/*
 * Limits of GPU memory that a cgroup has: NVIDIA's driver is told, and who runs in a container or
 * as a program has its own cgroup limited.
 */
#include <glib/gstdio.h>
#include <string.h>

#include "host-agent/daemon/containers/claims.h"
#include "host-agent/doctor/doctor.h"
#include "lib/systemd.h"
#include "tests/unit/file_tree.h"
#include "tests/unit/host-agent/device_limits_kit.h"
#include "tests/unit/host-agent/elf_kit.h"
#include "tests/unit/host-agent/slices_kit.h"

#if defined(__aarch64__)
#define LIBS "/usr/lib/aarch64-linux-gnu"
#else
#define LIBS "/usr/lib/x86_64-linux-gnu"
#endif
#define DEVICE    "/sys/devices/pci0000:00/0000:00:01.0/" ADDRESS
#define CGROUPS   "/sys/fs/cgroup"
#define GROUP     CGROUPS "/machine.slice"
#define CONTAINER GROUP "/libpod-web.scope"
#define PLACE     "/run/vgpu/limits/" UUID
#define TOOL      "/usr/lib/mdev-vgpu/vgpu-memory-limit"
#define TELLER    HOSTS "/../../../../host-agent/daemon/engines/vgpu-device-limits"

static void assert_file(HostRoot *root, const char *name, const char *text)
{
    g_autofree char *seen = root_read(root, name, NULL);

    g_assert_cmpstr(seen, ==, text);
}

/* As the service does. */
static void tell_kernel(HostRoot *root)
{
    g_autofree char *dir = root_path(root, "", NULL);
    g_autofree char *command = g_strdup_printf("env VGPU_ROOT=%s %s " UUID, dir, TELLER);
    int status;

    g_assert_true(g_spawn_command_line_sync(command, NULL, NULL, &status, NULL));
    g_assert_cmpint(status, ==, 0);
}

static void make_cgroups(HostRoot *root, const char *capacity)
{
    file_tree_write(root, CGROUPS "/cgroup.controllers", "cpu dmem pids\n");
    file_tree_write(root, CGROUPS "/cgroup.subtree_control", "");
    file_tree_write(root, GROUP "/cgroup.subtree_control", "");
    file_tree_write(root, CGROUPS "/dmem.capacity", capacity);
}

static void move(HostRoot *root, const char *from, const char *to)
{
    g_autofree char *old = root_path(root, from, NULL);
    g_autofree char *now = root_path(root, to, NULL);

    g_assert_cmpint(g_rename(old, now), ==, 0);
}

/* What could not be written down is not taken for told. */
static void test_place_cannot_be_written(void)
{
    PciDevice pci = {.driver = "nvidia"};
    Gpu gpu = {.pci = &pci};
    Slice slice = {.uuid = UUID, .gpu = ADDRESS, .vram = 4096, .transport = SLICE_TRANSPORT_NATIVE};
    HostRoot *root = file_tree_new();
    DeviceWorld *limits = device_world_new(root, &slice, &gpu);

    file_tree_write(root, CONTAINER "/cgroup.procs", "1\n");
    file_tree_write(root, "/run/vgpu/limits", "a file in its place");
    g_test_expect_message(NULL, G_LOG_LEVEL_MESSAGE, "slice " UUID " has no limits*");
    g_assert_false(device_world_update(limits, CONTAINER));
    g_test_assert_expected_messages();
    root_remove(root, "/run/vgpu/limits");
    g_assert_true(device_world_update(limits, CONTAINER));
    assert_file(root, PLACE, ADDRESS " 4096 /machine.slice/libpod-web.scope\n");
    device_world_free(limits);
    file_tree_free(root);
}

/* Once for each cgroup and size: its books are its own, and are not read here. */
static void test_driver_is_told(void)
{
    PciDevice pci = {.driver = "nvidia"};
    Gpu gpu = {.pci = &pci};
    Slice slice = {.uuid = UUID, .gpu = ADDRESS, .vram = 4096, .transport = SLICE_TRANSPORT_NATIVE};
    HostRoot *root = file_tree_new();
    DeviceWorld *limits = device_world_new(root, &slice, &gpu);

    g_assert_false(device_world_update(limits, CONTAINER));
    file_tree_write(root, CONTAINER "/cgroup.procs", "1\n");
    g_assert_true(device_world_update(limits, CONTAINER));
    assert_file(root, PLACE, ADDRESS " 4096 /machine.slice/libpod-web.scope\n");
    g_assert_false(device_world_update(limits, CONTAINER));
    slice.vram = 8192;
    g_assert_true(device_world_update(limits, CONTAINER));
    assert_file(root, PLACE, ADDRESS " 8192 /machine.slice/libpod-web.scope\n");
    file_tree_write(root, GROUP "/other/cgroup.procs", "1\n");
    move(root, CONTAINER, GROUP "/old");
    move(root, GROUP "/other", CONTAINER);
    g_assert_true(device_world_update(limits, CONTAINER));
    g_assert_false(device_world_update(limits, NULL));
    assert_file(root, PLACE, NULL);
    g_assert_true(device_world_update(limits, CONTAINER));
    device_world_free(limits);
    file_tree_free(root);
}

/* Its unit sets the limit when it starts, and later changes come from here. */
static void test_guard(void)
{
    PciDevice pci = {.driver = "nvidia"};
    Gpu gpu = {.pci = &pci};
    Slice slice = {
        .uuid = UUID, .gpu = ADDRESS, .vram = 4096, .transport = SLICE_TRANSPORT_GUARDED};
    HostRoot *root = file_tree_new();
    DeviceWorld *limits = device_world_new(root, &slice, &gpu);
    g_autofree char *cgroup = guard_unit_cgroup(UUID);
    g_autofree char *processes = g_strconcat(cgroup, "/cgroup.procs", NULL);
    g_autofree char *place =
        g_strdup_printf(ADDRESS " 4096 %s\n", cgroup + strlen("/sys/fs/cgroup"));

    g_assert_false(device_world_update(limits, cgroup));
    assert_file(root, PLACE, place);
    file_tree_write(root, processes, "1\n");
    slice.vram = 8192;
    g_assert_true(device_world_update(limits, cgroup));
    g_assert_false(device_world_update(limits, cgroup));
    /* No limit that a guard could find, if the kernel has none. */
    g_assert_false(device_world_update(limits, NULL));
    pci.driver = "amdgpu";
    root_remove(root, processes);
    root_rmdir(root, cgroup);
    g_assert_false(device_world_update(limits, cgroup));
    assert_file(root, PLACE, NULL);
    device_world_free(limits);
    file_tree_free(root);
}

static void give_tool(HostRoot *root, int status)
{
    g_autofree char *path = root_path(root, TOOL, NULL);
    g_autofree char *text =
        g_strdup_printf("#!/bin/sh\necho \"$@\" >\"$VGPU_ROOT/told\"\nexit %d\n", status);

    file_tree_write(root, TOOL, text);
    g_assert_cmpint(g_chmod(path, 0755), ==, 0);
}

/* NVIDIA's regions are never written by hand; a driver that has no limits is no error. */
static void test_regions_of_nvidia(void)
{
    HostRoot *root = file_tree_new();
    g_autofree char *dir = root_path(root, "", NULL);
    g_autofree char *told = NULL;

    make_cgroups(root, "nvidia/" ADDRESS "/vidmem 8192\n");
    file_tree_write(root, CONTAINER "/dmem.max", "nvidia/" ADDRESS "/vidmem max\n");
    file_tree_write(root, "/sys/bus/pci/drivers/nvidia/bind", "");
    file_tree_link(root, "/sys/bus/pci/devices/" ADDRESS "/driver", "../../drivers/nvidia");
    file_tree_write(root, PLACE, ADDRESS " 4096 /machine.slice/libpod-web.scope\n");
    told = g_strdup_printf("set " ADDRESS " %s" CONTAINER " 4096\n", dir);
    for (int status = 0; status <= 3; status += 3) {
        give_tool(root, status);
        tell_kernel(root);
        assert_file(root, "/told", told);
    }
    assert_file(root, CONTAINER "/dmem.max", "nvidia/" ADDRESS "/vidmem max\n");
    assert_file(root, GROUP "/cgroup.subtree_control", "+dmem\n");
    file_tree_free(root);
}

/* The limit is of the container's own cgroup, also if it makes cgroups of its own below. */
static void test_container(void)
{
    FakeSystemd systemd;
    AgentOnBus at;

    open_shared(&at);
    fake_systemd_start(&systemd, at.daemon);
    agent_on_bus_restart(&at);
    make_cgroups(at.root, "drm/" ADDRESS "/vram0 17179869184\n");
    file_tree_write(at.root, CONTAINER "/dmem.max", "drm/" ADDRESS "/vram0 max\n");
    process(&at, 77, 1000);
    file_tree_write(at.root, "/proc/77/cgroup", "0::/machine.slice/libpod-web.scope/container\n");
    assert_says("slice create half --door native --uuid " UUID, 0, UUID, "");
    assert_hook(&at, "claim", WEB, 0, "");
    iterate_until_said(systemd.restarted, "vgpu-device-limits@" UUID ".service\n");
    assert_file(at.root, PLACE, ADDRESS " 8581545984 /machine.slice/libpod-web.scope\n");
    /* The unit may still run, and have read the file already. */
    g_string_truncate(systemd.restarted, 0);
    assert_says("slice set " UUID " --vram 1G", 0, "", "");
    iterate_until_said(systemd.restarted, "vgpu-device-limits@" UUID ".service\n");
    assert_file(at.root, PLACE, ADDRESS " 1073741824 /machine.slice/libpod-web.scope\n");
    tell_kernel(at.root);
    assert_file(at.root, CONTAINER "/dmem.max", "drm/" ADDRESS "/vram0 1073741824\n");
    assert_hook(&at, "release", WEB, 0, "");
    assert_file(at.root, PLACE, NULL);
    fake_systemd_stop(&systemd);
    agent_on_bus_close(&at);
}

/* Whose cgroup has others' processes too is not limited. */
static void test_no_own_cgroup(void)
{
    AgentOnBus at;

    open_shared(&at);
    make_cgroups(at.root, "drm/" ADDRESS "/vram0 17179869184\n");
    file_tree_write(at.root, CGROUPS "/user.slice/session-2.scope/dmem.max",
                    "drm/" ADDRESS "/vram0 max\n");
    process(&at, 77, 1000);
    file_tree_write(at.root, "/proc/77/cgroup", "0::/user.slice/session-2.scope\n");
    assert_says("slice create half --door native --uuid " UUID, 0, UUID, "");
    assert_hook(&at, "claim", WEB, 0, "");
    assert_file(at.root, PLACE, NULL);
    agent_on_bus_close(&at);
}

#define ID  "4f0c2b9a7d1e"
#define OWN "/user.slice/user-1000.slice/user@1000.service"

/**
 * Place - where the process is that user 1000, or an administrator, claims the slice for
 * @id: that the container has by its claim
 * @own: the container's own cgroup; NULL: none
 */
typedef struct {
    const char *cgroup;
    const char *id;
    const char *own;
} Place;

static void assert_place(AgentOnBus *at, const Place *place, const guint32 *user)
{
    Slice slice = {
        .uuid = (char *)UUID, .gpu = (char *)ADDRESS, .transport = SLICE_TRANSPORT_NATIVE};
    g_autofree char *line = g_strdup_printf("0::%s\n", place->cgroup);
    g_autofree char *own = place->own ? g_strconcat(CGROUPS, place->own, NULL) : NULL;

    file_tree_write(at->root, "/proc/77/cgroup", line);
    /* The second one has it from the database, as after a restart. */
    for (guint i = 0; i < 2; i++) {
        g_autoptr(Claims) claims = claims_new(agent_host(at->agent), agent_slices(at->agent), NULL);
        g_autofree char *cgroup = NULL;

        if (!i)
            g_assert_true(claims_take(claims, &slice, place->id, 77, user, NULL));
        cgroup = claims_cgroup(claims, UUID);
        g_test_message("%s in %s", place->id, place->cgroup);
        g_assert_cmpstr(cgroup, ==, own);
        if (i)
            claims_forget(claims, UUID);
    }
}

static void open_for_places(AgentOnBus *at)
{
    open_shared(at);
    process(at, 77, 1000);
    file_tree_write(at->root, "/proc/77/status", "Name:\tsh\nUid:\t1000\t1000\t1000\t1000\n");
}

/* Whoever chooses the id must not choose a cgroup that others' processes are in. */
static void test_member(void)
{
    static const guint32 user = 1000;
    static const Place places[] = {
        {OWN "/user.slice/libpod-" ID ".scope/container", ID,
         OWN "/user.slice/libpod-" ID ".scope"},
        {OWN "/user.slice/docker-" ID ".scope", ID, OWN "/user.slice/docker-" ID ".scope"},
        {OWN "/user.slice/nerdctl-" ID ".scope", ID, OWN "/user.slice/nerdctl-" ID ".scope"},
        {"/user.slice/user-1000.slice/session-2.scope", "user.slice", NULL},
        {"/user.slice/user-1000.slice/session-2.scope", "user-1000.slice", NULL},
        {"/user.slice/user-1000.slice/session-2.scope", "2", NULL},
        {"/user.slice/user-1000.slice/session-2.scope", "session-2.scope", NULL},
        {OWN "/app.slice/app-gnome-terminal.scope", "terminal", NULL},
        {OWN "/app.slice/x", "app.slice", NULL},
        {OWN "/app.slice/x", "user@1000.service", NULL},
        {"/system.slice/cron.service", "system.slice", NULL},
        {"/system.slice/gitlab-runner.service", "gitlab-runner.service", NULL},
        {"/system.slice/docker-" ID ".scope", ID, NULL},
        {"/kubepods/besteffort/pod1/" ID, ID, NULL},
        {"/user.slice/user-1001.slice/user@1001.service/" ID, ID, NULL},
        {"/user.slice/user-1001.slice/user@1001.service" OWN "/" ID, ID, NULL},
    };
    AgentOnBus at;

    open_for_places(&at);
    for (guint i = 0; i < G_N_ELEMENTS(places); i++)
        assert_place(&at, &places[i], &user);
    agent_on_bus_close(&at);
}

/* The runtime chooses it. */
static void test_administrator(void)
{
    static const Place places[] = {
        {"/machine.slice/libpod-" ID ".scope/container", ID, "/machine.slice/libpod-" ID ".scope"},
        {"/system.slice/docker-" ID ".scope", ID, "/system.slice/docker-" ID ".scope"},
        {"/docker/" ID, ID, "/docker/" ID},
        {"/kubepods.slice/kubepods-pod1.slice/cri-containerd-" ID ".scope", ID,
         "/kubepods.slice/kubepods-pod1.slice/cri-containerd-" ID ".scope"},
        {"/kubepods.slice/kubepods-pod1.slice/crio-" ID ".scope", ID,
         "/kubepods.slice/kubepods-pod1.slice/crio-" ID ".scope"},
        {"/kubepods/besteffort/pod1/" ID, ID, "/kubepods/besteffort/pod1/" ID},
        {OWN "/user.slice/libpod-" ID ".scope", ID, OWN "/user.slice/libpod-" ID ".scope"},
        {"/default/web", "web", "/default/web"},
        {"/system.slice/cron.service", "system.slice", NULL},
        {"/system.slice/cron.service", "cron.service", NULL},
        {"/system.slice/slurmstepd.scope/job_7/step_0/user/task_0", ID, NULL},
    };
    AgentOnBus at;

    open_for_places(&at);
    for (guint i = 0; i < G_N_ELEMENTS(places); i++)
        assert_place(&at, &places[i], NULL);
    agent_on_bus_close(&at);
}

/* What the doctor says of the GPU's memory limits; the severity is returned. */
static Severity examine(HostRoot *root, const char *words)
{
    g_autoptr(GPtrArray) findings = doctor_examine(root);

    for (guint i = 0; i < findings->len; i++) {
        const Finding *finding = g_ptr_array_index(findings, i);

        if (!g_str_equal(finding->subject, "memory limits") || !strstr(finding->text, ADDRESS))
            continue;
        g_test_message("%s; %s", finding->text, finding->advice ? finding->advice : "");
        g_assert_nonnull(strstr(finding->text, words));
        return finding->severity;
    }
    g_assert_not_reached();
}

static void write_nvml(HostRoot *root, const char *functions)
{
    elf_kit_write(root, LIBS "/libnvidia-ml.so.615.1", "libnvidia-ml.so.1", functions);
}

static void test_doctor(void)
{
    HostRoot *root = shared_tree();
    g_autofree char *driver = root_path(root, DEVICE "/driver", NULL);

    g_assert_cmpint(examine(root, "goes round"), ==, FINDING_INFO);
    make_cgroups(root, "drm/" ADDRESS "/vram0 17179869184\n");
    g_assert_cmpint(examine(root, "the kernel holds"), ==, FINDING_OK);

    g_assert_cmpint(g_unlink(driver), ==, 0);
    file_tree_write(root, "/sys/bus/pci/drivers/nvidia/bind", "");
    file_tree_link(root, DEVICE "/driver", "../../../../bus/pci/drivers/nvidia");
    g_assert_cmpint(examine(root, "its driver cannot"), ==, FINDING_INFO);
    file_tree_write(root, "/sys/module/nvidia/version", "615.1\n");
    elf_kit_write(root, LIBS "/libcuda.so.615.1", "libcuda.so.1", "cuInit");
    write_nvml(root, "nvmlInit_v2");
    g_assert_cmpint(examine(root, "its driver cannot"), ==, FINDING_INFO);
    write_nvml(root, "nvmlInit_v2 nvmlDeviceSetMemoryLimits_v1");
    g_assert_cmpint(examine(root, "driver 615.1 holds"), ==, FINDING_OK);
    file_tree_free(root);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/device-limits/driver-is-told", test_driver_is_told);
    g_test_add_func("/device-limits/guard", test_guard);
    g_test_add_func("/device-limits/place-cannot-be-written", test_place_cannot_be_written);
    g_test_add_func("/device-limits/regions-of-nvidia", test_regions_of_nvidia);
    g_test_add_func("/device-limits/container", test_container);
    g_test_add_func("/device-limits/no-own-cgroup", test_no_own_cgroup);
    g_test_add_func("/device-limits/member", test_member);
    g_test_add_func("/device-limits/administrator", test_administrator);
    g_test_add_func("/device-limits/doctor", test_doctor);
    return g_test_run();
}
