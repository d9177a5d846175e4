/* SPDX-License-Identifier: MIT */
/* A GPU's modes: switches that were interrupted, and what vgpud does about modes when it starts. */
#include <gio/gio.h>
#include <unistd.h>

#include "host-agent/daemon/host/host.h"
#include "host-agent/daemon/modes/binding.h"
#include "host-agent/daemon/modes/reconcile.h"
#include "host-agent/daemon/modes/wanted.h"
#include "host-agent/store/tables.h"
#include "tests/unit/file_tree.h"
#include "tests/unit/host-agent/agent_on_bus.h"
#include "tests/unit/host-agent/fake_kernel.h"
#include "tests/unit/host-agent/mode_host.h"

static void no_step(const char *sentence, void *data)
{
    (void)sentence;
    (void)data;
}

/* Runs a switch until the power is cut; FALSE: it ended before that. */
static gboolean cut_short(HostRoot *root, GpuMode target, guint after)
{
    const Reconciliation want = {.root = root, .address = GPU, .target = target, .step = no_step};
    gboolean done;

    fake_kernel_cut_after(after);
    done = converge_gpu(&want, NULL);
    fake_kernel_cut_after(G_MAXUINT);
    return !done;
}

/* As it is when vgpud ends at that step. */
static void write_journal(const AgentOnBus *at, GpuMode origin, GpuMode target, const char *step)
{
    g_autofree char *details = g_strdup_printf("{'origin': <'%s'>, 'target': <'%s'>}",
                                               gpu_mode_name(origin), gpu_mode_name(target));
    OperationRow row = {.kind = (char *)"switch",
                        .objects = (char *[]){(char *)GPU, NULL},
                        .data = details,
                        .caller = (char *)"",
                        .step = (char *)step};

    g_assert_true(operation_table_begin(host_db(agent_host(at->agent)), &row, NULL));
}

/* The power is cut after each single step; at the next start the switch is finished. */
static void assert_finished(GpuMode origin, GpuMode target)
{
    guint after = 0;
    gboolean cut;

    do {
        AgentOnBus at;
        const char *const uuids[] = {UUID, NULL};
        g_autofree char *vgpu = NULL;

        mode_host_open(&at, "shared");
        mode_host_add_vgpu(at.root, "closed");
        file_tree_write(at.root, DEFINITION, "{}");
        g_assert_true(journal_add_stopped(host_db(agent_host(at.agent)), GPU, uuids, NULL));
        if (origin != GPU_MODE_SHARED)
            g_assert_false(cut_short(at.root, origin, G_MAXUINT));
        cut = cut_short(at.root, target, after);
        write_journal(&at, origin, target, "reconcile");
        agent_on_bus_restart(&at);
        wait_until_settled(&at, GPU);
        assert_mode(at.root, GPU, target);
        assert_wanted(at.root, GPU, gpu_mode_name(target));
        assert_journal_empty(&at);
        g_assert_false(fake_kernel_drained(GPU));
        vgpu = root_path(at.root, "/sys/bus/mdev/devices/" UUID, NULL);
        g_assert_cmpint(g_file_test(vgpu, G_FILE_TEST_IS_SYMLINK), ==, target == GPU_MODE_SHARED);
        agent_on_bus_close(&at);
        g_assert_cmpuint(after++, <, 20);
    } while (cut);
    g_assert_cmpuint(after, >, 1);
}

static void test_cut_short(void)
{
    assert_finished(GPU_MODE_SHARED, GPU_MODE_PASSTHROUGH);
    assert_finished(GPU_MODE_PASSTHROUGH, GPU_MODE_SHARED);
    assert_finished(GPU_MODE_SHARED, GPU_MODE_HOST);
    assert_finished(GPU_MODE_PASSTHROUGH, GPU_MODE_HOST);
}

/* Another process took the GPU meanwhile: everything is restored. */
static void test_cut_short_in_use(void)
{
    AgentOnBus at;

    mode_host_open(&at, "shared");
    mode_host_add_vgpu(at.root, "running");
    write_journal(&at, GPU_MODE_SHARED, GPU_MODE_PASSTHROUGH, "reconcile");
    agent_on_bus_restart(&at);
    wait_until_settled(&at, GPU);
    assert_mode(at.root, GPU, GPU_MODE_SHARED);
    assert_wanted(at.root, GPU, "shared");
    assert_journal_empty(&at);
    g_assert_false(fake_kernel_drained(GPU));
    assert_not_done("remove");
    agent_on_bus_close(&at);
}

static void test_cut_while_waiting(void)
{
    AgentOnBus at;

    mode_host_open(&at, "shared");
    mode_host_add_vgpu(at.root, "running");
    write_journal(&at, GPU_MODE_SHARED, GPU_MODE_HOST, "wait");
    agent_on_bus_restart(&at);
    assert_done("resume " GPU "\n");
    assert_journal_empty(&at);
    assert_mode(at.root, GPU, GPU_MODE_SHARED);
    assert_says("-o json gpu show " GPU, 0, "\"Switching\" : \"\"", "");
    agent_on_bus_close(&at);
}

static gboolean end_engine(void *at)
{
    assert_not_done("/unbind");
    fake_process_closes(((AgentOnBus *)at)->root, 5000202);
    return G_SOURCE_REMOVE;
}

/* It was cut short while it waited for an engine, which still has the GPU open. */
static void test_cut_while_engine_ends(void)
{
    AgentOnBus at;
    guint end;

    mode_host_open(&at, "shared");
    mode_host_add_render_node(at.root);
    g_assert_false(cut_short(at.root, GPU_MODE_HOST, G_MAXUINT));
    fake_process(at.root, 5000202, "vgpu-engine", NULL,
                 "0::/system.slice/system-vgpu\\x2dengine.slice/vgpu-engine@" UUID ".service\n",
                 "dri/renderD128");
    write_journal(&at, GPU_MODE_SHARED, GPU_MODE_PASSTHROUGH, "reconcile");
    agent_on_bus_restart(&at);
    end = g_timeout_add(500, end_engine, &at);
    wait_until_settled(&at, GPU);
    g_assert_null(g_main_context_find_source_by_id(NULL, end));
    assert_mode(at.root, GPU, GPU_MODE_PASSTHROUGH);
    assert_done("/unbind " GPU);
    agent_on_bus_close(&at);
}

static void stop_by_hand(HostRoot *root)
{
    g_autofree char *link = root_path(root, "/sys/bus/mdev/devices/" UUID, NULL);

    g_assert_cmpint(unlink(link), ==, 0);
}

/*
 * A switch that was undone, and interrupted while it waited again. vGPUs that are stopped after
 * that stay stopped.
 */
static void test_stopped_after_cut(void)
{
    const char *const uuids[] = {UUID, NULL};
    AgentOnBus at;

    mode_host_open(&at, "shared");
    mode_host_add_vgpu(at.root, "closed");
    file_tree_write(at.root, DEFINITION, "{}");
    write_journal(&at, GPU_MODE_SHARED, GPU_MODE_HOST, "wait");
    g_assert_true(journal_add_stopped(host_db(agent_host(at.agent)), GPU, uuids, NULL));
    agent_on_bus_restart(&at);
    stop_by_hand(at.root);
    assert_says("gpu mode " GPU " host", 0, "is unregistered", "");
    assert_says("gpu mode " GPU " shared", 0, "is registered", "");
    assert_not_done("mdevctl start");
    agent_on_bus_close(&at);
}

/*
 * The desired modes of gpus.conf are applied at the start, but nothing is taken from vfio-pci
 * unasked.
 */
static void test_reconcile(void)
{
    AgentOnBus at;

    mode_host_open(&at, "shared");
    file_tree_write(at.root, "/etc/vgpu/gpus.conf",
                    "[gpu " GPU "]\nmode=passthrough\n[gpu " VFIO_GPU "]\nmode=host\n");
    agent_on_bus_restart(&at);
    wait_until_settled(&at, GPU);
    assert_mode(at.root, GPU, GPU_MODE_PASSTHROUGH);
    assert_mode(at.root, VFIO_GPU, GPU_MODE_PASSTHROUGH);
    agent_on_bus_close(&at);
}

/* It can't be had at the start: it stays declared, and is there when the cause is gone. */
static void test_reconcile_failed(void)
{
    AgentOnBus at;

    mode_host_open(&at, "shared");
    assert_says("gpu mode " GPU " host", 0, "", "");
    file_tree_write(at.root, "/etc/vgpu/types.d/10.conf", "");
    g_assert_true(wanted_set(at.root, GPU, GPU_MODE_SHARED, 0, NULL));
    agent_on_bus_restart(&at);
    wait_until_settled(&at, GPU);
    assert_mode(at.root, GPU, GPU_MODE_HOST);
    assert_wanted(at.root, GPU, "shared");
    assert_says("gpu show " GPU, 0, "host, wanted: shared\n", "");
    mode_host_configure(at.root);
    agent_on_bus_restart(&at);
    wait_until_settled(&at, GPU);
    assert_mode(at.root, GPU, GPU_MODE_SHARED);
    assert_says("gpu show " GPU, 0, "declared\n", "");
    agent_on_bus_close(&at);
}

static void test_reconcile_in_use(void)
{
    AgentOnBus at;

    mode_host_open(&at, "shared");
    mode_host_add_vgpu(at.root, "running");
    file_tree_write(at.root, "/etc/vgpu/gpus.conf", "[gpu " GPU "]\nmode=passthrough\n");
    agent_on_bus_restart(&at);
    wait_until_settled(&at, GPU);
    assert_mode(at.root, GPU, GPU_MODE_SHARED);
    assert_says("-o json gpu show " GPU, 0, "\"WantedMode\" : \"passthrough\"", "");
    assert_says("gpu show " GPU, 0, "shared, wanted: passthrough\n", "");
    g_assert_false(fake_kernel_drained(GPU));
    agent_on_bus_close(&at);
}

/*
 * A desired mode that failed is tried again when the GPU has changed, not at each event. A command
 * that succeeds ends that: what is desired is then kept as before.
 */
static void test_failed_once(void)
{
    AgentOnBus at;

    mode_host_open(&at, "shared");
    assert_says("gpu mode " GPU " host", 0, "", "");
    g_assert_true(wanted_set(at.root, GPU, GPU_MODE_PASSTHROUGH, 0, NULL));
    fake_kernel_refuse("amdgpu/unbind");
    agent_on_bus_restart(&at);
    wait_until_settled(&at, GPU);
    assert_mode(at.root, GPU, GPU_MODE_HOST);
    fake_kernel_refuse(NULL);
    agent_refresh(at.agent);
    assert_says("operation list", 0, "Nothing is being done", "");
    assert_mode(at.root, GPU, GPU_MODE_HOST);
    assert_says("gpu mode " GPU " passthrough", 0, "", "");
    assert_mode(at.root, GPU, GPU_MODE_PASSTHROUGH);
    /* By hand; its driver and memory are those of the failure. */
    g_assert_true(binding_give_back(at.root, GPU, NULL));
    assert_mode(at.root, GPU, GPU_MODE_HOST);
    agent_refresh(at.agent);
    wait_until_settled(&at, GPU);
    assert_mode(at.root, GPU, GPU_MODE_PASSTHROUGH);
    agent_on_bus_close(&at);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/modes/cut-short", test_cut_short);
    g_test_add_func("/modes/cut-short-in-use", test_cut_short_in_use);
    g_test_add_func("/modes/cut-while-waiting", test_cut_while_waiting);
    g_test_add_func("/modes/cut-while-engine-ends", test_cut_while_engine_ends);
    g_test_add_func("/modes/stopped-after-cut", test_stopped_after_cut);
    g_test_add_func("/modes/reconcile", test_reconcile);
    g_test_add_func("/modes/reconcile-failed", test_reconcile_failed);
    g_test_add_func("/modes/reconcile-in-use", test_reconcile_in_use);
    g_test_add_func("/modes/failed-once", test_failed_once);
    return g_test_run();
}
