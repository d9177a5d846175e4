/* SPDX-License-Identifier: MIT */
/* What vgpud makes of a journal that a crash left behind: it finishes or undoes the operation. */
#include <gio/gio.h>
#include <string.h>

#include "host-agent/store/db.h"
#include "host-agent/store/tables.h"
#include "tests/unit/file_tree.h"
#include "tests/unit/host-agent/vgpus_kit.h"

/* Writes the journal as a crash would leave it; the agent must then be restarted. */
static void crash_with(const AgentOnBus *at, const char *kind, const char *step, gboolean undoing,
                       const char *details)
{
    g_autoptr(Db) db = db_open(at->root, NULL);
    OperationRow row = {.kind = (char *)kind,
                        .objects = (char *[]){(char *)UUID, NULL},
                        .data = (char *)details,
                        .caller = (char *)"root",
                        .step = (char *)step,
                        .undoing = undoing};

    g_assert_true(operation_table_begin(db, &row, NULL));
}

/* A change of its weight to 33. */
static char *weight_changed(const AgentOnBus *at)
{
    g_autoptr(Db) db = db_open(at->root, NULL);
    g_autoptr(GPtrArray) slices = slice_table_read(db, NULL);
    Slice *slice = g_ptr_array_index(slices, 0);
    g_autoptr(GVariant) before = g_variant_ref_sink(slice_to_dict(slice));
    g_autoptr(GVariant) details = NULL;

    slice->weight = 33;
    details = g_variant_ref_sink(g_variant_new_parsed("{'before': <%@a{sv}>, 'wanted': <%@a{sv}>}",
                                                      before, slice_to_dict(slice)));
    return g_variant_print(details, TRUE);
}

static gboolean is_idle(gconstpointer data)
{
    const AgentOnBus *at = data;
    g_autoptr(Db) db = db_open(at->root, NULL);
    g_autoptr(GPtrArray) rows = operation_table_read(db, NULL);

    return rows->len == 0;
}

static void iterate_until_idle(const AgentOnBus *at)
{
    iterate_until(is_idle, at);
}

static gboolean has_new_weight(gconstpointer data)
{
    const AgentOnBus *at = data;
    g_autofree char *path = root_path(at->root, GPU "/" UUID "/vgpu/weight", NULL);
    g_autofree char *text = NULL;

    return g_file_get_contents(path, &text, NULL, NULL) && strstr(text, "33");
}

static void test_recovery(void)
{
    AgentOnBus at;
    g_autofree char *details = NULL;

    vgpus_open(&at);
    assert_says("vgpu create half --define --uuid " UUID, 0, UUID, "");
    details = weight_changed(&at);
    crash_with(&at, "change", "store", FALSE, details);
    agent_on_bus_restart(&at);
    iterate_until(has_new_weight, &at);
    iterate_until_idle(&at);
    assert_text_of(&at, GPU "/" UUID "/vgpu/weight", "33");
    assert_text_in(&at, "/etc/mdevctl.d/0000:02:00.0/" UUID, "\"vgpu/weight\":\"33\"", TRUE);
    assert_says("-o json vgpu show " UUID, 0, "\"Weight\" : 33", "");
    crash_with(&at, "change", "define", TRUE, details);
    agent_on_bus_restart(&at);
    iterate_until_idle(&at);
    assert_text_of(&at, GPU "/" UUID "/vgpu/weight", "400");
    assert_text_in(&at, "/etc/mdevctl.d/0000:02:00.0/" UUID, "\"vgpu/weight\":\"400\"", TRUE);
    assert_says("-o json vgpu show " UUID, 0, "\"Weight\" : 400", "");
    agent_on_bus_close(&at);
}

/* A vGPU that a VM uses by now stays; otherwise a removal continues, and a creation is undone. */
static void test_recovery_removes(void)
{
    AgentOnBus at;

    vgpus_open(&at);
    assert_says("vgpu create half --define --uuid " UUID, 0, UUID, "");
    crash_with(&at, "remove", "stop", FALSE, "");
    file_tree_write(at.root, GPU "/" UUID "/vgpu/state", "device=running engine=ready\n");
    /* vgpud warns of that. */
    g_log_set_always_fatal(G_LOG_LEVEL_ERROR);
    agent_on_bus_restart(&at);
    iterate_until_idle(&at);
    assert_says("vgpu list", 0, "running", "");
    crash_with(&at, "create", "start", FALSE, "");
    agent_on_bus_restart(&at);
    iterate_until_idle(&at);
    g_log_set_always_fatal(G_LOG_LEVEL_ERROR | G_LOG_LEVEL_CRITICAL | G_LOG_LEVEL_WARNING);
    assert_says("vgpu list", 0, "running", "");
    g_assert_true(vgpus_have(&at, "/etc/mdevctl.d/0000:02:00.0/" UUID));
    file_tree_write(at.root, GPU "/" UUID "/vgpu/state", "device=closed engine=ready\n");
    crash_with(&at, "create", "start", FALSE, "");
    agent_on_bus_restart(&at);
    iterate_until_told("vgpu list", "This host has no vGPU.");
    g_assert_false(vgpus_have(&at, "/etc/mdevctl.d/0000:02:00.0/" UUID));
    g_assert_false(vgpus_have(&at, GPU "/" UUID));
    agent_on_bus_close(&at);
}

/*
 * The steps' marks do not wait for the disk, and mdevctl's definition may be there without its: it
 * would be started at each boot, for nobody.
 */
static void test_power_loss(void)
{
    AgentOnBus at;

    vgpus_open(&at);
    assert_says("vgpu create half --define --uuid " UUID, 0, UUID, "");
    assert_says("vgpu stop " UUID, 0, "", "");
    crash_with(&at, "create", "reserve", FALSE, "");
    agent_on_bus_restart(&at);
    iterate_until_told("vgpu list", "This host has no vGPU.");
    g_assert_false(vgpus_have(&at, "/etc/mdevctl.d/0000:02:00.0/" UUID));
    agent_on_bus_close(&at);
}

/* An existing vGPU in the journal of 0.1.0: the slice has the desired state. */
static void test_recovery_of_old(void)
{
    AgentOnBus at;
    g_autofree char *weight = NULL;

    vgpus_open(&at);
    assert_says("vgpu create half --define --uuid " UUID, 0, UUID, "");
    weight = root_path(at.root, GPU "/" UUID "/vgpu/weight", NULL);
    g_assert_true(g_file_set_contents(weight, "33\n", -1, NULL));
    crash_with(&at, "change", "", FALSE, "");
    agent_on_bus_restart(&at);
    iterate_until_idle(&at);
    assert_text_of(&at, GPU "/" UUID "/vgpu/weight", "400");
    crash_with(&at, "remove", "", FALSE, "");
    agent_on_bus_restart(&at);
    iterate_until_told("vgpu list", "This host has no vGPU.");
    agent_on_bus_close(&at);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/vgpus/recovery", test_recovery);
    g_test_add_func("/vgpus/recovery-removes", test_recovery_removes);
    g_test_add_func("/vgpus/power-loss", test_power_loss);
    g_test_add_func("/vgpus/recovery-of-old", test_recovery_of_old);
    return g_test_run();
}
