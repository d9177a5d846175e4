/* SPDX-License-Identifier: MIT */
/* Slices that are suspended and resumed: CUDA alone can be. */
#include <string.h>

#include "host-agent/daemon/host/audit.h"
#include "host-agent/store/tables.h"
#include "lib/bus.h"
#include "tests/unit/file_tree.h"
#include "tests/unit/host-agent/fake_arbiter.h"
#include "tests/unit/host-agent/nvidia_kit.h"
#include "tests/unit/host-agent/recorded_host.h"
#include "tests/unit/host-agent/slices_kit.h"

#define SUSPEND_LOG "/suspend-log"
#define FAILS       "/suspend-fails"
#define UNIT        "vgpu-suspend-" UUID ".service"

/* A container that starts meanwhile would find no memory. */
static void assert_no_claim(const char *uuid)
{
    const char *argv[] = {"gdbus",
                          "call",
                          "--system",
                          "--dest=" VGPU_BUS_NAME,
                          "--object-path=" VGPU_MANAGER_PATH,
                          "--method=" VGPU_MANAGER_INTERFACE ".ClaimSlice",
                          uuid,
                          "a-container",
                          "1",
                          NULL};
    Said said = run_program(argv);

    g_test_message("%s", said.err);
    g_assert_cmpint(said.status, !=, 0);
    g_assert_nonnull(strstr(said.err, "is suspended; resume it first"));
    said_clear(&said);
}

/* While it is suspended others have its room; it goes on when there is room for it again. */
static void test_suspend(void)
{
    HostRoot *root = nvidia_kit_tree();
    g_autofree char *state = NULL;
    FakeArbiter arbiter;
    AgentOnBus at;

    fake_arbiter_open(&arbiter, root);
    agent_on_bus_open_tree(&at, root);
    assert_says("slice create full --door native --uuid " UUID, 0, UUID, "");
    assert_says("slice create half --door native --uuid " UUID2, 7, "", "no room");
    assert_says("slice suspend " UUID, 0, "", "");
    assert_in_file(&at, SUSPEND_LOG, "--gpu " ADDRESS " --bytes 4096 suspend 77 78\n");
    assert_in_file(&at, SHARE_OF(UUID), "vram=1\nspill=0\n");
    assert_says("slice show " UUID, 0, "Suspended", "");
    assert_no_claim(UUID);
    state = audit_state_of(AUDIT_SLICE, UUID);
    g_assert_nonnull(strstr(state, "Suspended=yes"));
    assert_says("slice create half --door native --uuid " UUID2, 0, UUID2, "");
    assert_says("slice resume " UUID, 7, "", ADDRESS);
    assert_not_in_file(&at, SUSPEND_LOG, "resume");
    /* What was suspended is, for the next vgpud as well. */
    agent_on_bus_restart(&at);
    assert_in_file(&at, SHARE_OF(UUID), "vram=1\n");
    assert_says("slice remove --force " UUID2, 0, "", "");
    assert_says("slice resume " UUID, 0, "", "");
    assert_in_file(&at, SUSPEND_LOG, "\n--gpu " ADDRESS " --bytes 4096 resume 77 78\n");
    assert_not_in_file(&at, SHARE_OF(UUID), "vram=1\n");
    assert_says("slice create half --door native --uuid " UUID2, 7, "", "no room");
    agent_on_bus_close(&at);
    fake_arbiter_close(&arbiter);
}

/* All is as before, and the driver's reason is told. */
static void test_suspend_fails(void)
{
    HostRoot *root = nvidia_kit_tree();
    FakeArbiter arbiter;
    AgentOnBus at;

    fake_arbiter_open(&arbiter, root);
    file_tree_write(root, FAILS, "suspend\n");
    agent_on_bus_open_tree(&at, root);
    assert_says("slice create half --door native --uuid " UUID, 0, UUID, "");
    assert_says("slice suspend " UUID, 1, "", "cannot lock process 77: the driver says so");
    assert_not_in_file(&at, SHARE_OF(UUID), "vram=1\n");
    file_tree_write(root, FAILS, "resume\n");
    assert_says("slice suspend " UUID, 0, "", "");
    assert_says("slice resume " UUID, 1, "", "cannot resume slice " UUID);
    assert_in_file(&at, SHARE_OF(UUID), "vram=1\n");
    agent_on_bus_close(&at);
    fake_arbiter_close(&arbiter);
}

static gboolean has_resumed(gconstpointer at)
{
    g_autofree char *log = text_of(at, SUSPEND_LOG);

    return log && strstr(log, "resume 77 78\n");
}

/* vgpud was killed while it suspended, which goes on without it: that ends before the way back. */
static void test_suspend_interrupted(void)
{
    HostRoot *root = nvidia_kit_tree();
    OperationRow row = {.kind = (char *)"suspend",
                        .objects = (char *[]){(char *)UUID, NULL},
                        .data = (char *)"@a{sv} {}",
                        .caller = (char *)"",
                        .step = (char *)"suspend"};
    FakeArbiter arbiter;
    AgentOnBus at;

    fake_arbiter_open(&arbiter, root);
    agent_on_bus_open_tree(&at, root);
    assert_says("slice create half --door native --uuid " UUID, 0, UUID, "");
    g_assert_true(operation_table_begin(host_db(agent_host(at.agent)), &row, NULL));
    file_tree_write(root, "/unit-runs", UNIT "\n");
    agent_on_bus_restart(&at);
    iterate_until(has_resumed, &at);
    assert_in_file(&at, SUSPEND_LOG,
                   UNIT " has ended\n--gpu " ADDRESS " --bytes 4096 resume 77 78\n");
    agent_on_bus_close(&at);
    fake_arbiter_close(&arbiter);
}

/* Its programs may have been left suspended. If that fails, they are not suspended for it. */
static void test_resume_running(void)
{
    HostRoot *root = nvidia_kit_tree();
    FakeArbiter arbiter;
    AgentOnBus at;

    fake_arbiter_open(&arbiter, root);
    agent_on_bus_open_tree(&at, root);
    assert_says("slice create half --door guarded --uuid " UUID2, 0, UUID2, "");
    assert_says("slice resume " UUID2, 0, "", "");
    g_assert_false(exists(&at, SUSPEND_LOG));
    assert_says("slice create half --door native --uuid " UUID, 0, UUID, "");
    assert_says("slice resume " UUID, 0, "", "");
    assert_in_file(&at, SUSPEND_LOG, "resume 77 78\n");
    file_tree_write(root, FAILS, "resume\n");
    assert_says("slice resume " UUID, 1, "", "cannot resume slice " UUID);
    assert_not_in_file(&at, SUSPEND_LOG, "suspend");
    assert_not_in_file(&at, SHARE_OF(UUID), "vram=1\n");
    agent_on_bus_close(&at);
    fake_arbiter_close(&arbiter);
}

#define VGPU_PATH "pci0000:00/0000:00:01.0/" ADDRESS

/* Of a vGPU its engine's workers are suspended. The kernel counts its memory until it is removed,
 * so that is not promised to others meanwhile. */
static void test_suspend_vgpu(void)
{
    HostRoot *root = nvidia_kit_vgpu_tree();
    FakeArbiter arbiter;
    AgentOnBus at;

    recorded_host_add_vgpu(root, VGPU_PATH, UUID, "nvidia-vgpu-half", VGPU_ATTRIBUTES "|cuda=1");
    fake_arbiter_open(&arbiter, root);
    agent_on_bus_open_tree(&at, root);
    assert_says("slice suspend " UUID, 0, "", "");
    assert_in_file(&at, SUSPEND_LOG, "--gpu " ADDRESS " --bytes 4096 suspend 77 78\n");
    assert_in_file(&at, SHARE_OF(UUID), "vram=1\n");
    assert_says("vgpu show " UUID, 0, "Suspended:              yes\n", "");
    assert_says("vgpu create full --uuid " UUID2, 7, "", "15 GiB of 16 GiB are free");
    agent_on_bus_restart(&at);
    assert_in_file(&at, SHARE_OF(UUID), "vram=1\n");
    assert_says("slice resume " UUID, 0, "", "");
    assert_in_file(&at, SUSPEND_LOG, "\n--gpu " ADDRESS " --bytes 4096 resume 77 78\n");
    assert_in_file(&at, SHARE_OF(UUID), "vram=1073741824\n");
    assert_says("vgpu show " UUID, 0, "Suspended:              no\n", "");
    agent_on_bus_close(&at);
    fake_arbiter_close(&arbiter);
}

/* With its VM nothing is left that was suspended: the next VM has the vGPU whole. */
static void test_suspend_vgpu_that_stops(void)
{
    HostRoot *root = nvidia_kit_vgpu_tree();
    FakeArbiter arbiter;
    AgentOnBus at;

    fake_arbiter_open(&arbiter, root);
    agent_on_bus_open_tree(&at, root);
    assert_says("vgpu create half --define --uuid " UUID, 0, UUID, "");
    recorded_host_remove_vgpu(root, UUID);
    recorded_host_add_vgpu(root, VGPU_PATH, UUID, "nvidia-vgpu-half", VGPU_ATTRIBUTES "|cuda=1");
    agent_update_vgpu(at.agent, UUID);
    assert_says("slice suspend " UUID, 0, "", "");
    assert_says("vgpu stop " UUID, 0, "", "");
    assert_says("vgpu show " UUID, 0, "Suspended:              no\n", "");
    agent_on_bus_close(&at);
    fake_arbiter_close(&arbiter);
}

/* The programs of its guest use Vulkan only. */
static void test_suspend_vgpu_without_cuda(void)
{
    HostRoot *root = nvidia_kit_vgpu_tree();
    AgentOnBus at;

    recorded_host_add_vgpu(root, VGPU_PATH, UUID, "nvidia-vgpu-half", VGPU_ATTRIBUTES "|cuda=0");
    agent_on_bus_open_tree(&at, root);
    assert_says("slice suspend " UUID, 1, "", "its vGPU offers no CUDA");
    assert_says("slice resume " UUID, 0, "", "");
    g_assert_false(exists(&at, SUSPEND_LOG));
    assert_says("slice suspend " UUID2, 3, "", "there is no slice " UUID2);
    agent_on_bus_close(&at);
}

static void test_suspend_refused(void)
{
    AgentOnBus at;

    agent_on_bus_open_tree(&at, nvidia_kit_tree());
    assert_says("slice create half --door guarded --uuid " UUID, 0, UUID, "");
    assert_says("slice suspend " UUID, 1, "", "its door is guarded");
    assert_says("slice create half --door native --uuid " UUID2, 0, UUID2, "");
    assert_says("slice suspend " UUID2, 1, "", "arbiter of its GPU does not say");
    agent_on_bus_close(&at);
    agent_on_bus_open_tree(&at, shared_tree());
    assert_says("slice create half --door native --uuid " UUID, 0, UUID, "");
    assert_says("slice suspend " UUID, 1, "", "use Vulkan only cannot be suspended");
    agent_on_bus_close(&at);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/slice-suspend/suspend", test_suspend);
    g_test_add_func("/slice-suspend/suspend-fails", test_suspend_fails);
    g_test_add_func("/slice-suspend/suspend-interrupted", test_suspend_interrupted);
    g_test_add_func("/slice-suspend/resume-running", test_resume_running);
    g_test_add_func("/slice-suspend/vgpu", test_suspend_vgpu);
    g_test_add_func("/slice-suspend/vgpu-that-stops", test_suspend_vgpu_that_stops);
    g_test_add_func("/slice-suspend/vgpu-without-cuda", test_suspend_vgpu_without_cuda);
    g_test_add_func("/slice-suspend/suspend-refused", test_suspend_refused);
    return g_test_run();
}
