/* SPDX-License-Identifier: MIT */
/* vGPUs made, changed and removed by vgpuctl through vgpud and an mdevctl that works on a file
 * tree. */
#include <gio/gio.h>
#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>

#include "host-agent/daemon/methods/vgpu_call.h"
#include "host-agent/store/db.h"
#include "host-agent/store/tables.h"
#include "lib/bus.h"
#include "lib/processes.h"
#include "tests/unit/file_tree.h"
#include "tests/unit/host-agent/agent_on_bus.h"
#include "tests/unit/host-agent/fake_kernel.h"
#include "tests/unit/host-agent/recorded_host.h"
#include "tests/unit/host-agent/vgpus_kit.h"

/* The arbiter's settings of UUID. */
static void assert_arbiter_reads(const AgentOnBus *at, const char *text)
{
    g_autofree char *path =
        root_path(at->root, "/run/vgpu/governor/0000:02:00.0/slices/" UUID ".conf", NULL);
    g_autofree char *found = NULL;

    g_assert_true(g_file_get_contents(path, &found, NULL, NULL));
    g_assert_nonnull(strstr(found, text));
}

static void let_fail(const AgentOnBus *at, const char *call)
{
    file_tree_write(at->root, "/mdevctl-fails", call);
}

static void test_create(void)
{
    AgentOnBus at;

    vgpus_open(&at);
    assert_says("vgpu create half --uuid " UUID " --weight 7", 0,
                UUID "  0000:02:00.0  amdgpu-vgpu-half  closed  ready   8.0 GiB", "");
    assert_text_of(&at, GPU "/" UUID "/vgpu/weight", "7");
    assert_says("-o json gpu show 02:00.0", 0, "\"PromisedVram\" : 8581545984", "");
    assert_says("vgpu create amdgpu-vgpu-half --define", 0, "closed", "");
    assert_says("vgpu create half", 7, "", "0 MiB of 15.98 GiB are free");
    assert_says("vgpu remove " UUID, 0, "", "");
    g_assert_false(vgpus_have(&at, GPU "/" UUID));
    assert_says("vgpu remove " UUID, 3, "", "there is no slice " UUID);
    agent_on_bus_close(&at);
}

/* What counts is a vGPU's memory, not its type's: the callout announces it to the driver. */
static void test_smaller_than_type(void)
{
    AgentOnBus at;

    vgpus_open(&at);
    assert_says("vgpu create half -n 6 --vram 3G --dry-run", 7, "", "there is room for 5 of 6");
    assert_says("vgpu create half -n 4 --vram 3G", 0, "3.0 GiB", "");
    assert_says("vgpu create half --vram 3G --uuid " UUID, 0, "3.0 GiB", "");
    /* Somebody else was faster. */
    assert_says("vgpu remove " UUID, 0, "", "");
    file_tree_write(at.root, "/mdevctl-fails", "start 1");
    file_tree_write(at.root, "/mdevctl-says", "No available instances of amdgpu-vgpu-half on x");
    assert_says("vgpu create half --vram 3G --uuid " UUID, 7, "", "No available instances");
    agent_on_bus_close(&at);
}

/* What cannot be read now is not gone: its name and its tenant stay. */
static void test_unreadable(void)
{
    g_autofree char *dir = NULL;
    g_autofree char *aside = NULL;
    g_autofree char *state = NULL;
    AgentOnBus at;

    vgpus_open(&at);
    assert_says("tenant set red --vram 10G", 0, "", "");
    assert_says("vgpu create half --define --name web --tenant red --uuid " UUID, 0, UUID, "");
    assert_says("vgpu stop " UUID, 0, "", "");
    assert_says("tenant remove red", 6, "", "tenant red has 1 vGPUs and slices");
    dir = root_path(at.root, "/etc/mdevctl.d", NULL);
    aside = root_path(at.root, "/etc/aside", NULL);
    /* Not a directory: any error but "there is none". */
    g_assert_cmpint(g_rename(dir, aside), ==, 0);
    file_tree_write(at.root, "/etc/mdevctl.d", "");
    g_test_expect_message(NULL, G_LOG_LEVEL_WARNING, "*vGPUs stay as they are known*");
    agent_refresh(at.agent);
    g_test_assert_expected_messages();
    g_assert_cmpint(g_remove(dir), ==, 0);
    g_assert_cmpint(g_rename(aside, dir), ==, 0);
    agent_refresh(at.agent);
    assert_says("vgpu show web", 0, UUID, "");
    /* mdevctl is about to write it. */
    file_tree_write(at.root, "/etc/mdevctl.d/0000:02:00.0/" UUID, "");
    agent_refresh(at.agent);
    agent_update_vgpu(at.agent, UUID);
    assert_says("-o json vgpu show web", 0, "\"Tenant\" : \"red\"", "");
    /* The kernel has it, and it cannot be read just now. */
    assert_says("vgpu create half --name db --uuid " UUID2, 0, UUID2, "");
    state = root_path(at.root, GPU "/" UUID2 "/vgpu/state", NULL);
    g_assert_cmpint(g_remove(state), ==, 0);
    g_assert_cmpint(g_mkdir(state, 0755), ==, 0);
    agent_refresh(at.agent);
    agent_update_vgpu(at.agent, UUID2);
    g_assert_cmpint(g_rmdir(state), ==, 0);
    file_tree_write(at.root, GPU "/" UUID2 "/vgpu/state", "device=closed engine=ready\n");
    agent_refresh(at.agent);
    assert_says("vgpu show db", 0, UUID2, "");
    /* A file beside the GPUs' directories changes nothing. */
    file_tree_write(at.root, "/etc/mdevctl.d/README", "ours");
    agent_refresh(at.agent);
    agent_on_bus_close(&at);
}

/* A VMM's own name for its VM; other programs have options called so, too. */
static void test_names_of_vms(void)
{
    HostRoot *root = file_tree_new();

    fake_process(root, FAKE_PID_MIN, "find", "red", NULL, "null");
    g_assert_false(vm_is_running(root, "red"));
    fake_process(root, FAKE_PID_MIN + 1, "/usr/bin/kvm", "a,,b", NULL, "null");
    g_assert_true(vm_is_running(root, "a,b"));
    g_assert_false(vm_is_running(root, "a"));
    fake_process(root, FAKE_PID_MIN + 2, "/usr/bin/qemu-system-x86_64", "red", NULL, "null");
    g_assert_true(vm_is_running(root, "red"));
    file_tree_free(root);
}

static void test_dry_run(void)
{
    AgentOnBus at;

    vgpus_open(&at);
    assert_says("vgpu create half -n 2 --dry-run", 0, "stopped", "");
    assert_says("vgpu create half -n 3 --dry-run", 7, "", "there is room for 2 of 3");
    assert_says("vgpu list", 0, "This host has no vGPU.", "");
    g_assert_false(vgpus_have(&at, "/mdevctl-log"));
    agent_on_bus_close(&at);
}

/* Bad input is an error that names the allowed values, and changes nothing. */
static void test_bad_requests(void)
{
    AgentOnBus at;

    vgpus_open(&at);
    assert_says("vgpu create third", 3, "", "has a type \"third\"");
    assert_says("vgpu create half --weight 0", 2, "", "Weight must be from 1 to 10000, not 0");
    assert_says("vgpu create half --cap 101", 2, "", "Cap must be from 1 to 100");
    assert_says("vgpu create half -n 0", 2, "", "Count must be from 1 to 1024");
    assert_says("vgpu create half --class firm", 2, "", "guaranteed, burstable or best-effort");
    assert_says("vgpu create half --policy best", 2, "", "binpack or spread");
    assert_says("vgpu create half --uuid 7", 2, "", "no UUID: \"7\"");
    assert_says("vgpu create half --uuid " UUID " --uuid " UUID, 2, "", "an entry twice");
    assert_says("vgpu create half -n 2 --uuid " UUID, 2, "", "Uuids has 1 entries");
    assert_says("vgpu create half --vram 3", 2, "", "--vram cannot be \"3\"");
    assert_says("vgpu create half --window 3M", 2, "", "Window must be a power of two");
    assert_says("vgpu create half --tenant nobody", 3, "", "there is no tenant nobody");
    assert_says("vgpu create half --tenant ../x", 2, "", "Tenant must be");
    assert_says("vgpu create half --gpu 10de:*", 7, "", "it was not requested");
    assert_says("vgpu create", 2, "", "vgpuctl vgpu create TYPE");
    g_assert_false(vgpus_have(&at, "/mdevctl-log"));
    agent_on_bus_close(&at);
}

/* All or none: what was made before the failure is removed again. */
static void test_all_or_none(void)
{
    AgentOnBus at;

    vgpus_open(&at);
    let_fail(&at, "start 2");
    assert_says("vgpu create half -n 2 --define --uuid " UUID " --uuid " UUID2, 1, "",
                "told to fail at start");
    g_assert_false(vgpus_have(&at, GPU "/" UUID));
    g_assert_false(vgpus_have(&at, "/etc/mdevctl.d/0000:02:00.0/" UUID));
    g_assert_false(vgpus_have(&at, "/etc/mdevctl.d/0000:02:00.0/" UUID2));
    assert_says("vgpu list", 0, "This host has no vGPU.", "");
    let_fail(&at, "define 1");
    assert_says("vgpu create half --define", 1, "", "told to fail at define");
    assert_says("-o json gpu show 02:00.0", 0, "\"PromisedVram\" : 0", "");
    agent_on_bus_close(&at);
}

static void test_set(void)
{
    AgentOnBus at;

    vgpus_open(&at);
    assert_says("vgpu create half --define --uuid " UUID, 0, UUID, "");
    assert_says("vgpu set " UUID " --vram 4G --weight 9", 0, "", "");
    assert_text_of(&at, GPU "/" UUID "/vgpu/vram_bytes", "4294967296");
    assert_text_of(&at, GPU "/" UUID "/vgpu/weight", "9");
    assert_says("-o json vgpu show " UUID, 0, "\"Vram\" : 4294967296", "");
    assert_says("vgpu set " UUID " --vram 17G", 7, "", "cannot change vGPU");
    assert_says("-o json vgpu show " UUID, 0, "\"Oversubscribe\" : 0", "");
    assert_arbiter_reads(&at, "spill=0\n");
    assert_says("vgpu set " UUID " --oversubscribe 1G", 0, "", "");
    assert_arbiter_reads(&at, "spill=1073741824\n");
    agent_on_bus_restart(&at);
    assert_says("-o json vgpu show " UUID, 0, "\"Oversubscribe\" : 1073741824", "");
    let_fail(&at, "modify 1");
    assert_says("vgpu set " UUID " --vram 2G", 1, "", "told to fail at modify");
    assert_text_of(&at, GPU "/" UUID "/vgpu/vram_bytes", "4294967296");
    assert_says("vgpu set " UUID " --cap 5 --dry-run", 0, "", "");
    assert_text_of(&at, GPU "/" UUID "/vgpu/cap", "100");
    assert_says("-o json vgpu show " UUID, 0, "\"Weight\" : 9", "");
    agent_on_bus_close(&at);
}

/* The driver and the definition store a vGPU's tenant and class, too. */
static void test_kept_by_driver(void)
{
    AgentOnBus at;
    const char *const definition = "/etc/mdevctl.d/0000:02:00.0/" UUID;

    vgpus_open(&at);
    assert_says("tenant set red", 0, "", "");
    assert_says("tenant set blue", 0, "", "");
    assert_says("vgpu create half --define --tenant red --uuid " UUID, 0, "red", "");
    assert_text_of(&at, GPU "/" UUID "/vgpu/tenant", "red");
    assert_text_of(&at, GPU "/" UUID "/vgpu/class", "guaranteed");
    assert_text_of(&at, GPU "/" UUID "/vgpu/oversubscribe_bytes", "0");
    assert_text_in(&at, definition, "\"vgpu/tenant\":\"red\"", TRUE);
    assert_says("vgpu set " UUID " --tenant blue --class burstable --oversubscribe 1G", 0, "", "");
    assert_text_of(&at, GPU "/" UUID "/vgpu/tenant", "blue");
    assert_text_of(&at, GPU "/" UUID "/vgpu/class", "burstable");
    assert_text_of(&at, GPU "/" UUID "/vgpu/oversubscribe_bytes", "1073741824");
    assert_text_in(&at, definition, "\"vgpu/tenant\":\"blue\"", TRUE);
    assert_text_in(&at, definition, "\"vgpu/class\":\"burstable\"", TRUE);
    assert_text_in(&at, definition, "\"vgpu/oversubscribe_bytes\":\"1073741824\"", TRUE);
    assert_says("vgpu set " UUID " --tenant ''", 0, "", "");
    assert_text_of(&at, GPU "/" UUID "/vgpu/tenant", "");
    assert_text_in(&at, definition, "vgpu/tenant", FALSE);
    assert_says("-o json vgpu show " UUID, 0, "\"Tenant\" : \"\"", "");
    agent_on_bus_close(&at);
}

static void test_display(void)
{
    AgentOnBus at;
    const char *const definition = "/etc/mdevctl.d/0000:02:00.0/" UUID;

    vgpus_open(&at);
    assert_says("vgpu create half --define --display on --uuid " UUID, 0, UUID, "");
    assert_text_of(&at, GPU "/" UUID "/vgpu/display", "1");
    assert_says("-o json vgpu show " UUID, 0, "\"Display\" : 1", "");
    assert_says("vgpu set " UUID " --display perhaps", 2, "", "--display cannot be \"perhaps\"");
    assert_says("vgpu set " UUID " --display 0", 0, "", "");
    assert_text_of(&at, GPU "/" UUID "/vgpu/display", "0");
    assert_text_in(&at, definition, "\"vgpu/display\":\"0\"", TRUE);
    file_tree_write(at.root, GPU "/" UUID "/vgpu/state", "device=running engine=ready\n");
    assert_says("vgpu set " UUID " --display on --weight 9", 6, "", "its display can't change");
    assert_says("vgpu set " UUID " --display on --dry-run", 6, "", "is open in a VM");
    assert_text_of(&at, GPU "/" UUID "/vgpu/weight", "400");
    assert_says("vgpu set " UUID " --display off --weight 9", 0, "", "");
    file_tree_write(at.root, GPU "/" UUID "/vgpu/state", "device=closed engine=ready\n");
    assert_says("vgpu set " UUID " --display on", 0, "", "");
    agent_on_bus_restart(&at);
    assert_says("vgpu show " UUID, 0, "Display:                1", "");
    assert_says("slice create --vram 1G --door native --name web", 0, "web", "");
    assert_says("slice set web --display on", 2, "", "can't have a display");
    agent_on_bus_close(&at);
}

/* A driver of an older version, without the files. */
static void test_older_driver(void)
{
    AgentOnBus at;
    g_autofree char *tenant = NULL;

    vgpus_open(&at);
    assert_says("tenant set red", 0, "", "");
    assert_says("vgpu create half --uuid " UUID, 0, UUID, "");
    tenant = root_path(at.root, GPU "/" UUID "/vgpu/tenant", NULL);
    g_assert_cmpint(unlink(tenant), ==, 0);
    assert_says("vgpu set " UUID " --tenant red --weight 9", 1, "",
                "does not accept tenant=red: it has no such attribute");
    assert_text_of(&at, GPU "/" UUID "/vgpu/weight", "400");
    assert_says("-o json vgpu show " UUID, 0, "\"Tenant\" : \"\"", "");
    agent_on_bus_close(&at);
}

/* The driver refuses the second of two attributes: the first is restored. */
static void test_set_refused(void)
{
    AgentOnBus at;
    g_autofree char *cap = NULL;

    vgpus_open(&at);
    assert_says("vgpu create half --uuid " UUID, 0, UUID, "");
    cap = root_path(at.root, GPU "/" UUID "/vgpu/cap", NULL);
    g_assert_cmpint(unlink(cap), ==, 0);
    g_assert_cmpint(g_mkdir(cap, 0755), ==, 0);
    assert_says("vgpu set " UUID " --weight 9 --cap 5", 1, "", "does not accept cap=5");
    assert_text_of(&at, GPU "/" UUID "/vgpu/weight", "400");
    agent_on_bus_close(&at);
}

static void test_open_vgpu_stays(void)
{
    AgentOnBus at;

    vgpus_open(&at);
    assert_says("vgpu create half --uuid " UUID, 0, UUID, "");
    file_tree_write(at.root, GPU "/" UUID "/vgpu/state", "device=running engine=ready\n");
    assert_says("vgpu remove " UUID, 6, "", "is open in a VM");
    g_assert_true(vgpus_have(&at, GPU "/" UUID));
    agent_on_bus_close(&at);
}

static void got_answer(GObject *bus, GAsyncResult *answer, void *data)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GVariant) result =
        g_dbus_connection_call_finish(G_DBUS_CONNECTION(bus), answer, &error);

    *(char **)data = g_strdup(result ? "" : error->message);
}

/* StartSlice, which hooks call. @expected: a part of the error; "": none. */
static void assert_start(const AgentOnBus *at, const char *uuid, const char *expected)
{
    g_autofree char *message = NULL;

    g_dbus_connection_call(at->bus, g_dbus_connection_get_unique_name(at->bus), VGPU_MANAGER_PATH,
                           VGPU_MANAGER_INTERFACE, "StartSlice",
                           g_variant_new("(s@a{sv})", uuid, g_variant_new("a{sv}", NULL)), NULL,
                           G_DBUS_CALL_FLAGS_NONE, -1, NULL, got_answer, &message);
    while (!message)
        g_main_context_iteration(NULL, TRUE);
    g_test_message("start of %s: %s", uuid, message);
    if (*expected)
        g_assert_nonnull(strstr(message, expected));
    else
        g_assert_cmpstr(message, ==, "");
}

static void define(const AgentOnBus *at, const char *uuid)
{
    g_autofree char *path = g_strconcat("/etc/mdevctl.d/0000:02:00.0/", uuid, NULL);

    file_tree_write(at->root, path,
                    "{\"mdev_type\":\"amdgpu-vgpu-half\",\"start\":\"manual\",\"attrs\":["
                    "{\"vgpu/vram_bytes\":\"8581545984\"},{\"vgpu/tenant\":\"red\"}]}");
    agent_update_vgpu(at->agent, uuid);
}

/* A definition is promised nothing: its vGPU gets memory when it is started, if any is free. */
static void test_start(void)
{
    static const char third[] = "c0ffee00-0000-4000-8000-000000000003";
    AgentOnBus at;
    g_autofree char *create = g_strdup_printf("vgpu create half --uuid %s", third);
    g_autofree char *drop = g_strdup_printf("vgpu remove %s", third);

    vgpus_open(&at);
    assert_says("tenant set red --vram 10G", 0, "", "");
    define(&at, UUID);
    define(&at, UUID2);
    assert_says("vgpu list", 0, UUID2, "");
    assert_start(&at, UUID, "");
    assert_start(&at, UUID, "");
    assert_start(&at, UUID2, "tenant red would have 15.98 GiB of VRAM");
    assert_says("tenant set red --vram 0", 0, "", "");
    assert_says(create, 0, "closed", "");
    assert_start(&at, UUID2, "there is no room for vGPU " UUID2);
    assert_says(drop, 0, "", "");
    assert_says("gpu drain 02:00.0", 0, "", "");
    assert_start(&at, UUID2, "is being drained");
    assert_says("gpu resume 02:00.0", 0, "", "");
    let_fail(&at, "start 1");
    assert_start(&at, UUID2, "told to fail at start");
    assert_start(&at, UUID2, "");
    assert_says("-o json vgpu show " UUID2, 0, "\"Device\" : \"closed\"", "");
    agent_on_bus_close(&at);
}

/* If it could not be removed again, it is a normal vGPU. */
static void test_stuck(void)
{
    AgentOnBus at;

    vgpus_open(&at);
    let_fail(&at, "start 2\nstop 1\n");
    /* vgpud warns of that. */
    g_log_set_always_fatal(G_LOG_LEVEL_ERROR);
    assert_says("vgpu create half -n 2 --uuid " UUID " --uuid " UUID2, 1, "",
                "told to fail at start");
    g_log_set_always_fatal(G_LOG_LEVEL_ERROR | G_LOG_LEVEL_CRITICAL | G_LOG_LEVEL_WARNING);
    assert_says("vgpu list", 0, UUID, "");
    assert_says("vgpu remove " UUID, 0, "", "");
    assert_says("vgpu list", 0, "This host has no vGPU.", "");
    agent_on_bus_close(&at);
}

/* vgpud has checked the vGPU's state, and stored its removal. */
static gboolean is_condemned(HostRoot *root)
{
    g_autoptr(Db) db = db_open(root, NULL);
    g_autoptr(GPtrArray) rows = operation_table_read(db, NULL);
    const OperationRow *row = rows->len ? g_ptr_array_index(rows, 0) : NULL;

    return row && g_str_equal(row->kind, "remove");
}

static gboolean opens(void *root)
{
    if (!is_condemned(root))
        return G_SOURCE_CONTINUE;
    file_tree_write(root, GPU "/" UUID "/vgpu/state", "device=running engine=ready\n");
    return G_SOURCE_REMOVE;
}

static gboolean closes(void *root)
{
    if (!is_condemned(root))
        return G_SOURCE_CONTINUE;
    fake_process_closes(root, 5000200);
    return G_SOURCE_REMOVE;
}

/* A VM opens the vGPU after the check of its state: VFIO's group cannot be opened twice. */
static void test_remove_while_opened(void)
{
    AgentOnBus at;

    vgpus_open(&at);
    fake_kernel_use(at.root);
    assert_says("vgpu create half --uuid " UUID, 0, UUID, "");
    file_tree_link(at.root, GPU "/" UUID "/iommu_group", "../../../../../kernel/iommu_groups/77");
    fake_process(at.root, 5000200, "qemu-system-x86", "red", NULL, "vfio/77");
    g_timeout_add(20, opens, at.root);
    assert_says("vgpu remove " UUID, 6, "", "a VM has just opened vGPU " UUID);
    g_assert_true(vgpus_have(&at, GPU "/" UUID));
    assert_says("vgpu list", 0, UUID, "");
    /* A VM that has closed it needs some time to release its memory. */
    file_tree_write(at.root, GPU "/" UUID "/vgpu/state", "device=closed engine=ready\n");
    g_timeout_add(20, closes, at.root);
    assert_says("vgpu remove " UUID, 0, "", "");
    g_assert_false(vgpus_have(&at, GPU "/" UUID));
    agent_on_bus_close(&at);
}

static void test_tenants(void)
{
    AgentOnBus at;

    vgpus_open(&at);
    assert_says("tenant list", 0, "There is no tenant", "");
    assert_says("tenant set red --vram 10G --vgpus 2 --model 1002:*", 0, "", "");
    assert_says("tenant set a/b", 2, "", "can't be the name of a tenant");
    assert_says("vgpu create half --tenant red --uuid " UUID, 0, "red", "");
    assert_says("vgpu create half --tenant red", 7, "", "tenant red would have 15.98 GiB of VRAM");
    assert_says("tenant list", 0, "red     8.0 GiB of 10.0 GiB  50 of any  1 of 2  1002:*", "");
    assert_says("tenant set red --vram 4G", 7, "", "tenant red would have 7.992 GiB");
    assert_says("tenant remove red", 6, "", "tenant red has 1 vGPUs");
    assert_says("tenant set blue --model 10de:*", 0, "", "");
    assert_says("vgpu create half --tenant blue", 7, "", "tenant blue may not use this model");
    assert_says("vgpu set " UUID " --tenant blue", 0, "", "");
    assert_says("tenant remove red", 0, "", "");
    assert_says("tenant remove red", 3, "", "there is no tenant red");
    agent_on_bus_restart(&at);
    assert_says("tenant list", 0, "blue", "");
    assert_says("vgpu list", 0, "blue", "");
    agent_on_bus_close(&at);
}

/* A type's own name matches, and not another's with the same ending. */
static void test_type_names(void)
{
    AgentOnBus at;
    HostRoot *root = recorded_host_new("shared");

    file_tree_write(root, GPU "/mdev_supported_types/amdgpu-gold-half/uevent", "");
    file_tree_write(root, "/etc/vgpu/types.d/10-test.conf",
                    "[type half]\nvram=1/8\n[type gold-half]\nvram=1/4\n"
                    "[type vgpu-half]\nvram=1/2\n[type vgpu-full]\nvram=1/1\n");
    agent_on_bus_open_tree(&at, root);
    assert_says("vgpu create half --dry-run", 0, "amdgpu-vgpu-half  stopped  none    8.0 GiB", "");
    assert_says("vgpu create vgpu-half --dry-run", 0, "amdgpu-vgpu-half", "");
    assert_says("vgpu create amdgpu-vgpu-half --dry-run", 0, "8.0 GiB", "");
    assert_says("vgpu create gold-half --dry-run", 0, "4.0 GiB", "");
    assert_says("vgpu create full --dry-run", 0, "amdgpu-vgpu-full", "");
    file_tree_write(at.root, GPU "/mdev_supported_types/amdgpu-half/uevent", "");
    agent_refresh(at.agent);
    assert_says("vgpu create half --dry-run", 0, "amdgpu-half", "");
    assert_says("vgpu create gold --dry-run", 3, "", "has a type \"gold\"");
    agent_on_bus_close(&at);
}

/* Others' vGPUs are adopted, and those that others remove are forgotten. */
static void test_adopt(void)
{
    AgentOnBus at;

    vgpus_open(&at);
    recorded_host_add_vgpu(at.root, "pci0000:00/0000:00:01.0/0000:02:00.0", UUID,
                           "amdgpu-vgpu-half",
                           "state=device=closed engine=ready|failure=|vram_bytes=8581545984|"
                           "window_bytes=268435456|weight=100|cap=50|priority=1|requests=1|"
                           "doorbells=1|interrupts=1|engine_losses=0");
    agent_update_vgpu(at.agent, UUID);
    assert_says("vgpu list", 0, UUID, "");
    assert_says("vgpu create full", 7, "", "are free");
    file_tree_write(at.root, "/etc/mdevctl.d/0000:02:00.0/" UUID2,
                    "{\"mdev_type\":\"amdgpu-vgpu-half\",\"start\":\"auto\","
                    "\"attrs\":[{\"vgpu/vram_bytes\":\"1048576\"}]}");
    agent_update_vgpu(at.agent, UUID2);
    assert_says("vgpu show " UUID2, 0, "Device:                 stopped", "");
    assert_says("-o json vgpu show " UUID2, 0, "\"Vram\" : 1048576", "");
    file_tree_write(at.root, "/etc/mdevctl.d/0000:02:00.0/" UUID2,
                    "{\"mdev_type\":\"amdgpu-vgpu-half\",\"start\":\"auto\","
                    "\"attrs\":[{\"vgpu/vram_bytes\":\"2097152\"}]}");
    agent_update_vgpu(at.agent, UUID2);
    assert_says("-o json vgpu show " UUID2, 0, "\"Vram\" : 2097152", "");
    assert_says("vgpu remove " UUID2, 0, "", "");
    g_assert_false(vgpus_have(&at, "/etc/mdevctl.d/0000:02:00.0/" UUID2));
    assert_says("vgpu remove " UUID, 0, "", "");
    assert_says("vgpu list", 0, "This host has no vGPU.", "");
    agent_on_bus_close(&at);
}

static void define_with(const AgentOnBus *at, const char *uuid, guint64 vram)
{
    g_autofree char *path = g_strconcat("/etc/mdevctl.d/0000:02:00.0/", uuid, NULL);
    g_autofree char *text =
        g_strdup_printf("{\"mdev_type\":\"amdgpu-vgpu-half\",\"start\":\"auto\","
                        "\"attrs\":[{\"vgpu/vram_bytes\":\"%" G_GUINT64_FORMAT "\"}]}",
                        vram);

    file_tree_write(at->root, path, text);
}

/* An event costs the same with one vGPU as with a thousand: the others' files are not read. */
static void test_event_reads_one(void)
{
    AgentOnBus at;

    vgpus_open(&at);
    define_with(&at, UUID, 1 << 20);
    define_with(&at, UUID2, 1 << 20);
    agent_refresh(at.agent);
    define_with(&at, UUID, 2 << 20);
    define_with(&at, UUID2, 2 << 20);
    agent_update_vgpu(at.agent, UUID);
    assert_says("-o json vgpu show " UUID, 0, "\"Vram\" : 2097152", "");
    assert_says("-o json vgpu show " UUID2, 0, "\"Vram\" : 1048576", "");
    agent_update_vgpu(at.agent, UUID2);
    assert_says("-o json vgpu show " UUID2, 0, "\"Vram\" : 2097152", "");
    agent_on_bus_close(&at);
}

/* Files of editors and packages beside a definition are ignored. */
static void test_copy_of_definition(void)
{
    AgentOnBus at;

    vgpus_open(&at);
    file_tree_write(at.root, "/etc/mdevctl.d/0000:02:00.0/" UUID ".orig",
                    "{\"mdev_type\":\"amdgpu-vgpu-half\",\"start\":\"auto\",\"attrs\":[]}");
    agent_on_bus_restart(&at);
    assert_says("vgpu list", 0, "This host has no vGPU.", "");
    agent_on_bus_close(&at);
}

#define FOREIGN "/etc/mdevctl.d/0000:00:02.0/" UUID

/* Another driver's: neither adopted, nor touched when a failed request is undone. */
static void test_foreign_uuid(void)
{
    AgentOnBus at;

    vgpus_open(&at);
    file_tree_write(at.root, FOREIGN, "{\"mdev_type\":\"i915-GVTg_V5_4\",\"start\":\"auto\"}");
    let_fail(&at, "start 1");
    assert_says("vgpu create half --uuid " UUID, 6, "", UUID " is in use already");
    g_assert_true(vgpus_have(&at, FOREIGN));
    file_tree_link(at.root, "/sys/bus/mdev/devices/" UUID2, "../../../devices/other/" UUID2);
    assert_says("vgpu create half --uuid " UUID2, 6, "", UUID2 " is in use already");
    assert_says("vgpu list", 0, "This host has no vGPU.", "");
    agent_on_bus_close(&at);
}

/* One that was made later under the same UUID, below another parent. */
static void test_foreign_definition_stays(void)
{
    AgentOnBus at;

    vgpus_open(&at);
    assert_says("vgpu create half --uuid " UUID, 0, UUID, "");
    file_tree_write(at.root, FOREIGN, "{\"mdev_type\":\"i915-GVTg_V5_4\",\"start\":\"auto\"}");
    assert_says("vgpu remove " UUID, 0, "", "");
    g_assert_true(vgpus_have(&at, FOREIGN));
    agent_on_bus_close(&at);
}

static void set_job(const AgentOnBus *at, const char *job)
{
    g_autoptr(Db) db = db_open(at->root, NULL);
    g_autoptr(GPtrArray) slices = slice_table_read(db, NULL);
    Slice *slice = g_ptr_array_index(slices, 0);

    g_free(slice->job);
    slice->job = g_strdup(job);
    g_assert_true(slice_table_put(db, slice, NULL));
}

/* A wrong file changes nothing, at start and at reload. */
static void test_reload(void)
{
    AgentOnBus at;

    vgpus_open(&at);
    file_tree_write(at.root, "/etc/vgpu/types.d/10-test.conf", "[type vgpu-half]\nvram=9/8\n");
    assert_says("reload", 2, "", "vram=9/8 is not allowed");
    assert_says("vgpu create half --dry-run", 0, "8.0 GiB", "");
    file_tree_write(at.root, "/etc/vgpu/types.d/10-test.conf",
                    "[type vgpu-half]\nvram=1/4\nclass=best-effort\n");
    file_tree_write(at.root, "/etc/vgpu/schedule.conf",
                    "[at night]\ngpu=0000:02:00.0\ntime=25:00\n");
    assert_says("reload", 2, "", "schedule.conf");
    assert_says("vgpu create half --dry-run", 0, "8.0 GiB", "");
    file_tree_write(at.root, "/etc/vgpu/schedule.conf", "");
    assert_says("reload", 0, "", "");
    assert_says("vgpu create half --dry-run", 0, "best-effort", "");
    agent_on_bus_close(&at);
}

/* vgpud's own settings are read again, too. */
static void test_reload_settings(void)
{
    AgentOnBus at;

    vgpus_open(&at);
    file_tree_write(at.root, "/etc/vgpu/vgpud.conf", "[metrics]\nlisten=nowhere\n");
    assert_says("reload", 2, "", "listen=nowhere is not allowed");
    file_tree_write(at.root, "/run/vgpu/x", "");
    file_tree_write(at.root, "/etc/vgpu/vgpud.conf", "[metrics]\nlisten=unix:/run/vgpu/metrics\n");
    assert_says("reload", 0, "", "");
    g_assert_true(vgpus_have(&at, "/run/vgpu/metrics"));
    assert_says("reload", 0, "", "");
    g_assert_true(vgpus_have(&at, "/run/vgpu/metrics"));
    file_tree_write(at.root, "/etc/vgpu/vgpud.conf", "[metrics]\nlisten=off\n");
    assert_says("reload", 0, "", "");
    g_assert_false(vgpus_have(&at, "/run/vgpu/metrics"));
    agent_on_bus_close(&at);
}

/* An event may have been lost: the operator's reload finds everything. */
static void test_reload_slices(void)
{
    AgentOnBus at;

    vgpus_open(&at);
    recorded_host_add_vgpu(at.root, "pci0000:00/0000:00:01.0/0000:02:00.0", UUID,
                           "amdgpu-vgpu-half",
                           "state=device=closed engine=ready|failure=|vram_bytes=8581545984");
    assert_says("reload", 0, "", "");
    assert_says("vgpu list", 0, UUID, "");
    recorded_host_remove_vgpu(at.root, UUID);
    assert_says("reload", 0, "", "");
    assert_says("vgpu list", 0, "This host has no vGPU.", "");
    agent_on_bus_close(&at);
}

/* Whatever the database contains, no control characters reach the terminal. */
static void test_printable(void)
{
    AgentOnBus at;
    Said said;

    vgpus_open(&at);
    assert_says("vgpu create half --define --uuid " UUID, 0, UUID, "");
    set_job(&at, "a\033[2Jb\302\233c");
    agent_on_bus_restart(&at);
    said = vgpuctl("vgpu show " UUID);
    g_test_message("%s", said.out);
    g_assert_nonnull(strstr(said.out, "a?[2Jb?c"));
    g_assert_null(strchr(said.out, '\033'));
    said_clear(&said);
    agent_on_bus_close(&at);
}

/* A GPU that was removed offers nothing that a member could request. */
static void test_member_of_gone_gpu(void)
{
    HostRoot *root = recorded_host_new("empty");
    Inventory *inventory = inventory_new(root);
    Db *db = db_open(root, NULL);
    Host *host = host_new(inventory, db);
    const Vgpus vgpus = {.host = host};
    Slice wanted = {.gpu = (char *)"0000:99:00.0", .type = (char *)"vgpu-half", .weight = 10000};
    g_autoptr(GError) error = NULL;

    g_assert_false(vgpu_call_is_entitled(&vgpus, "red", &wanted, NULL, &error));
    g_assert_error(error, AGENT_ERROR, AGENT_ERROR_NOT_AUTHORIZED);
    g_assert_false(vgpu_call_is_entitled(&vgpus, "red", &wanted, &(Slice){.weight = 9}, NULL));
    host_free(host);
    db_free(db);
    inventory_free(inventory);
    file_tree_free(root);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/vgpus/names-of-vms", test_names_of_vms);
    g_test_add_func("/vgpus/unreadable", test_unreadable);
    g_test_add_func("/vgpus/smaller-than-type", test_smaller_than_type);
    g_test_add_func("/vgpus/create", test_create);
    g_test_add_func("/vgpus/dry-run", test_dry_run);
    g_test_add_func("/vgpus/bad-requests", test_bad_requests);
    g_test_add_func("/vgpus/all-or-none", test_all_or_none);
    g_test_add_func("/vgpus/set", test_set);
    g_test_add_func("/vgpus/set-refused", test_set_refused);
    g_test_add_func("/vgpus/kept-by-driver", test_kept_by_driver);
    g_test_add_func("/vgpus/display", test_display);
    g_test_add_func("/vgpus/older-driver", test_older_driver);
    g_test_add_func("/vgpus/open", test_open_vgpu_stays);
    g_test_add_func("/vgpus/start", test_start);
    g_test_add_func("/vgpus/stuck", test_stuck);
    g_test_add_func("/vgpus/remove-while-opened", test_remove_while_opened);
    g_test_add_func("/vgpus/tenants", test_tenants);
    g_test_add_func("/vgpus/type-names", test_type_names);
    g_test_add_func("/vgpus/adopt", test_adopt);
    g_test_add_func("/vgpus/event-reads-one", test_event_reads_one);
    g_test_add_func("/vgpus/copy-of-definition", test_copy_of_definition);
    g_test_add_func("/vgpus/foreign-uuid", test_foreign_uuid);
    g_test_add_func("/vgpus/foreign-definition-stays", test_foreign_definition_stays);
    g_test_add_func("/vgpus/reload", test_reload);
    g_test_add_func("/vgpus/reload-settings", test_reload_settings);
    g_test_add_func("/vgpus/reload-slices", test_reload_slices);
    g_test_add_func("/vgpus/printable", test_printable);
    g_test_add_func("/vgpus/member-of-gone-gpu", test_member_of_gone_gpu);
    return g_test_run();
}
