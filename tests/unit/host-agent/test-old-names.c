/* SPDX-License-Identifier: MIT */
/*
 * The old names of methods and commands, for one release: marked as old, and the same as the new
 * ones. Run in the repository's root.
 */
#include <string.h>

#include "lib/bus.h"
#include "tests/unit/host-agent/slices_kit.h"

#define HALF "'Type': <'half'>, 'Uuids': <['" UUID "']>"

static const char *const old_methods[] = {
    "ListVgpus",   "ListVgpusShort", "ListNames", "ListVms",  "ListSlices", "CreateVgpus",
    "CreateSlice", "SetVgpu",        "StartVgpu", "StopVgpu", "RemoveVgpu",
};

static gboolean is_old(const char *method)
{
    for (gsize i = 0; i < G_N_ELEMENTS(old_methods); i++)
        if (g_str_equal(old_methods[i], method))
            return TRUE;
    return FALSE;
}

/* These, and no others. */
static void test_marked(void)
{
    g_autofree char *xml = NULL;
    g_autoptr(GDBusNodeInfo) node = NULL;
    g_autoptr(GError) error = NULL;
    const GDBusInterfaceInfo *manager;

    g_assert_true(
        g_file_get_contents("host-agent/dbus/org.mdev_vgpu.Host1.xml", &xml, NULL, &error));
    node = g_dbus_node_info_new_for_xml(xml, &error);
    g_assert_no_error(error);
    manager = g_dbus_node_info_lookup_interface(node, VGPU_MANAGER_INTERFACE);
    for (gsize i = 0; i < G_N_ELEMENTS(old_methods); i++)
        g_assert_nonnull(
            g_dbus_interface_info_lookup_method((GDBusInterfaceInfo *)manager, old_methods[i]));
    for (guint i = 0; manager->methods[i]; i++) {
        const char *mark = g_dbus_annotation_info_lookup(manager->methods[i]->annotations,
                                                         "org.freedesktop.DBus.Deprecated");

        g_test_message("%s", manager->methods[i]->name);
        g_assert_cmpstr(mark, ==, is_old(manager->methods[i]->name) ? "true" : NULL);
    }
}

/* @arguments: as for gdbus(1). */
static Said call(const char *method, const char *arguments)
{
    g_autofree char *line = g_strdup_printf("gdbus call --system --dest " VGPU_BUS_NAME
                                            " --object-path " VGPU_MANAGER_PATH
                                            " --method " VGPU_MANAGER_INTERFACE ".%s %s",
                                            method, arguments);
    Said said = run_beside(line);

    g_test_message("%s: %s%s", line, said.out, said.err);
    return said;
}

/* What a method answers, as text. To be freed. */
static char *answer_of(const char *method, const char *arguments)
{
    Said said = call(method, arguments);
    char *text = g_strdup(said.out);

    g_assert_cmpint(said.status, ==, 0);
    said_clear(&said);
    return text;
}

static void assert_answer(const char *method, const char *arguments, const char *part)
{
    g_autofree char *text = answer_of(method, arguments);

    if (!strstr(text, part))
        g_error("%s is not in %s", part, text);
}

static void assert_no_answer(const char *method, const char *arguments, const char *part)
{
    g_autofree char *text = answer_of(method, arguments);

    g_assert_null(strstr(text, part));
}

/* A vGPU of a VM, and a container's slice. */
static void open_both(AgentOnBus *at)
{
    open_shared(at);
    assert_says("slice create half --door vm --define --name red --uuid " UUID, 0, UUID, "");
    assert_says("slice create --door native --vram 1G --name web --uuid " UUID2, 0, UUID2, "");
}

static void test_lists(void)
{
    AgentOnBus at;

    open_both(&at);
    assert_answer("FindSlices", "{}", UUID);
    assert_answer("FindSlices", "{}", UUID2);
    assert_answer("FindSlices", "\"{'Doors': <['native']>, 'Keys': <['Name', 'Door']>}\"",
                  "([{'Door': <'native'>, 'Name': <'web'>}],)");
    assert_answer("ListVgpus", "", "'Name': <'red'>");
    assert_no_answer("ListVgpus", "", UUID2);
    assert_answer("ListSlices", "", "'Name': <'web'>");
    assert_no_answer("ListSlices", "", UUID);
    assert_answer("ListVgpusShort", "",
                  "([('" UUID "', '" ADDRESS "', 'amdgpu-vgpu-half', 'closed', 'ready', uint64 "
                  "8581545984, 'guaranteed', '')],)");
    assert_answer("ListNames", "", "({'" UUID "': 'red', '" UUID2 "': 'web'},)");
    assert_answer("ListVms", "", "(@a{ss} {},)");
    agent_on_bus_close(&at);
}

static void assert_refused(const char *method, const char *arguments, const char *part)
{
    Said said = call(method, arguments);

    g_assert_cmpint(said.status, !=, 0);
    g_assert_nonnull(strstr(said.err, part));
    said_clear(&said);
}

static void test_bad_filter(void)
{
    AgentOnBus at;

    open_shared(&at);
    assert_refused("FindSlices", "\"{'Doors': <['window']>}\"",
                   "Doors must be of vm, vfio, native and guarded");
    agent_on_bus_close(&at);
}

static void test_changes(void)
{
    AgentOnBus at;

    open_shared(&at);
    assert_answer("CreateVgpus", "\"{" HALF ", 'Define': <true>}\"", "'Door': <'vm'>");
    assert_answer("SetVgpu", UUID " \"{'Weight': <uint32 7>}\"", "()");
    assert_answer("FindSlices", "{}", "'Weight': <uint32 7>");
    assert_answer("StopVgpu", UUID " {}", "()");
    assert_answer("FindSlices", "{}", "'Device': <'stopped'>");
    assert_answer("StartVgpu", UUID " {}", "()");
    assert_answer("FindSlices", "{}", "'Device': <'closed'>");
    assert_answer("RemoveVgpu", UUID " {}", "()");
    assert_answer("FindSlices", "{}", "(@aa{sv} [],)");
    assert_answer("CreateSlice", "\"{" HALF ", 'Door': <'native'>}\"", "({'Uuid': <'" UUID "'>");
    assert_refused("CreateVgpus", "\"{" HALF ", 'Type': <'full'>}\"", "Type is there twice");
    agent_on_bus_close(&at);
}

/* --help says so of each, and each does what the new one does. */
static void test_commands(void)
{
    static const char *const verbs[] = {"list", "show", "create", "set", "start", "stop", "remove"};
    AgentOnBus at;

    open_both(&at);
    for (gsize i = 0; i < G_N_ELEMENTS(verbs); i++) {
        g_autofree char *help = g_strdup_printf("vgpu %s --help", verbs[i]);
        g_autofree char *says = g_strdup_printf("old name of \"slice %s", verbs[i]);

        assert_says(help, 0, says, "");
        assert_says("vgpu --help", 0, says, "");
    }
    assert_says("vgpu list -o name", 0, UUID "\n", "");
    assert_says("slice list", 0, UUID "  red   vm      " ADDRESS, "");
    assert_says("slice list", 0, UUID2 "  web   native  " ADDRESS, "");
    assert_says("vgpu show red", 0, "Device:                 closed\n", "");
    assert_says("slice show red", 0, "Device:                 closed\n", "");
    assert_says("vgpu set red --weight 7", 0, "", "");
    assert_says("-o json slice show red", 0, "\"Weight\" : 7", "");
    assert_says("vgpu stop red", 0, "", "");
    assert_says("slice list --state stopped -o name", 0, UUID "\n", "");
    assert_says("vgpu start red", 0, "", "");
    assert_says("slice list --state closed -o name", 0, UUID "\n", "");
    assert_says("vgpu remove red", 0, "", "");
    assert_says("slice list -o name", 0, UUID2 "\n", "");
    assert_says("vgpu create half --uuid " UUID, 0, UUID, "");
    assert_says("slice list", 0, "vm  ", "");
    agent_on_bus_close(&at);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/old-names/marked", test_marked);
    g_test_add_func("/old-names/lists", test_lists);
    g_test_add_func("/old-names/bad-filter", test_bad_filter);
    g_test_add_func("/old-names/changes", test_changes);
    g_test_add_func("/old-names/commands", test_commands);
    return g_test_run();
}
