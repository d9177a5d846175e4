/* SPDX-License-Identifier: MIT */
/* Operations from the callers' view: each step reported, listed, cancelled. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/bus.h"
#include "tests/unit/file_tree.h"
#include "tests/unit/host-agent/slices_kit.h"

#define GPU "/sys/devices/pci0000:00/0000:00:01.0/0000:02:00.0"

/**
 * Asker
 * @steps: the reported ones, "define+ start+ start- define- "
 * @stop_at: a step at which the operation is cancelled; NULL: it is not
 * @answer: of CreateSlices; "": success
 */
typedef struct {
    const AgentOnBus *at;
    GString *steps;
    const char *stop_at;
    char *listed;
    char *refused;
    char *answer;
} Asker;

static void call(const Asker *asker, const char *method, GVariant *arguments,
                 GAsyncReadyCallback func)
{
    const AgentOnBus *at = asker->at;

    g_dbus_connection_call(at->bus, g_dbus_connection_get_unique_name(at->bus), VGPU_MANAGER_PATH,
                           VGPU_MANAGER_INTERFACE, method, arguments, NULL, G_DBUS_CALL_FLAGS_NONE,
                           -1, NULL, func, (void *)asker);
}

static void got_list(GObject *bus, GAsyncResult *result, void *data)
{
    Asker *asker = data;
    g_autoptr(GVariant) list = g_dbus_connection_call_finish(G_DBUS_CONNECTION(bus), result, NULL);

    g_assert_nonnull(list);
    asker->listed = g_variant_print(list, FALSE);
}

static void got_second_cancel(GObject *bus, GAsyncResult *result, void *data)
{
    Asker *asker = data;
    g_autoptr(GError) error = NULL;
    g_autoptr(GVariant) done =
        g_dbus_connection_call_finish(G_DBUS_CONNECTION(bus), result, &error);

    asker->refused = g_strdup(done ? "" : error->message);
}

static void cancelled(GObject *bus, GAsyncResult *result, void *data)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GVariant) done =
        g_dbus_connection_call_finish(G_DBUS_CONNECTION(bus), result, &error);

    (void)data;
    g_assert_no_error(error);
}

static void told(GDBusConnection *bus, const char *sender, const char *path, const char *interface,
                 const char *signal, GVariant *parameters, void *data)
{
    Asker *asker = data;
    const char *kind, *step;
    g_autoptr(GVariant) objects = NULL;
    guint64 id;
    guint at, total;
    gboolean undoing;

    (void)bus;
    (void)sender;
    (void)path;
    (void)interface;
    (void)signal;
    g_variant_get(parameters, "(t&s@as&suub)", &id, &kind, &objects, &step, &at, &total, &undoing);
    g_assert_cmpstr(kind, ==, "create");
    g_assert_cmpuint(total, ==, 3);
    g_string_append_printf(asker->steps, "%s%c ", step, undoing ? '-' : '+');
    if (g_strcmp0(step, asker->stop_at) != 0 || undoing)
        return;
    call(asker, "ListOperations", NULL, got_list);
    call(asker, "CancelOperation", g_variant_new("(t)", id), cancelled);
    call(asker, "CancelOperation", g_variant_new("(t)", id + 1), got_second_cancel);
}

static void answered(GObject *bus, GAsyncResult *result, void *data)
{
    Asker *asker = data;
    g_autoptr(GError) error = NULL;
    g_autoptr(GVariant) made =
        g_dbus_connection_call_finish(G_DBUS_CONNECTION(bus), result, &error);

    asker->answer = g_strdup(made ? "" : error->message);
}

static void create(Asker *asker)
{
    guint subscription =
        g_dbus_connection_signal_subscribe(asker->at->bus, NULL, VGPU_MANAGER_INTERFACE, "Progress",
                                           NULL, NULL, G_DBUS_SIGNAL_FLAGS_NONE, told, asker, NULL);

    asker->steps = g_string_new("");
    call(asker, "CreateSlices",
         g_variant_new_parsed("([{'Door': <'vm'>, 'Type': <'half'>, 'Uuids': <['" UUID
                              "']>, 'Define': <true>}],)"),
         answered);
    while (!asker->answer || (asker->stop_at && (!asker->listed || !asker->refused)))
        g_main_context_iteration(NULL, TRUE);
    g_dbus_connection_signal_unsubscribe(asker->at->bus, subscription);
    g_test_message("%s: %s", asker->steps->str, asker->answer);
}

static void asker_clear(Asker *asker)
{
    g_string_free(asker->steps, TRUE);
    g_free(asker->listed);
    g_free(asker->refused);
    g_free(asker->answer);
}

static void test_progress(void)
{
    AgentOnBus at;
    Asker asker = {.at = &at};

    open_shared(&at);
    create(&asker);
    g_assert_cmpstr(asker.answer, ==, "");
    g_assert_cmpstr(asker.steps->str, ==, "reserve+ define+ start+ ");
    g_assert_true(exists(&at, GPU "/" UUID));
    asker_clear(&asker);
    agent_on_bus_close(&at);
}

/* mdevctl hangs; it is killed, and its earlier results are removed again. */
static void test_cancel(void)
{
    AgentOnBus at;
    Asker asker = {.at = &at, .stop_at = "start"};
    g_autofree char *fifo = NULL;

    open_shared(&at);
    fifo = root_path(at.root, "/mdevctl-fifo", NULL);
    g_assert_cmpint(mkfifo(fifo, 0600), ==, 0);
    file_tree_write(at.root, "/mdevctl-waits", "start");
    create(&asker);
    g_assert_nonnull(strstr(asker.answer, "the creation of " UUID " was cancelled"));
    g_assert_cmpstr(asker.steps->str, ==, "reserve+ define+ start+ start- define- reserve- ");
    g_assert_nonnull(strstr(asker.listed, "'Objects': <['" UUID "']>"));
    g_assert_nonnull(strstr(asker.listed, "'Step': <'start'>"));
    g_assert_nonnull(strstr(asker.refused, "there is no operation"));
    g_assert_false(exists(&at, "/etc/mdevctl.d/" ADDRESS "/" UUID));
    assert_says("vgpu list", 0, "This host has no vGPU.", "");
    assert_says("-o json gpu show 02:00.0", 0, "\"PromisedVram\" : 0", "");
    asker_clear(&asker);
    agent_on_bus_close(&at);
}

/* A container ends while its slice is being changed: the slice is removed after that. */
static void test_given_back_after_change(void)
{
    AgentOnBus at;
    g_autofree char *fifo = NULL;
    g_autoptr(GSubprocess) change = NULL;
    const char *const argv[] = {AGENT_OUT "/vgpuctl", "slice", "set", UUID, "--weight", "9", NULL};
    FILE *file;

    open_shared(&at);
    process(&at, 77, 1000);
    assert_says("slice create half --door vfio --ephemeral --uuid " UUID, 0, UUID, "");
    file_tree_write(at.root, "/etc/mdevctl.d/" ADDRESS "/" UUID,
                    "{\"mdev_type\":\"amdgpu-vgpu-half\",\"start\":\"manual\",\"attrs\":[]}");
    agent_update_vgpu(at.agent, UUID);
    assert_hook(&at, "claim", WEB, 0, "");
    fifo = root_path(at.root, "/mdevctl-fifo", NULL);
    g_assert_cmpint(mkfifo(fifo, 0600), ==, 0);
    file_tree_write(at.root, "/mdevctl-waits", "modify");
    change = g_subprocess_newv(argv, G_SUBPROCESS_FLAGS_NONE, NULL);
    g_assert_nonnull(change);
    while (!operations_doing(agent_operations(at.agent), UUID))
        g_main_context_iteration(NULL, TRUE);
    assert_says("slice set " UUID " --weight 8", 6, "", "is just being changed");
    assert_hook(&at, "release", WEB, 0, "");
    assert_says("slice list", 0, UUID, "");
    file = fopen(fifo, "w");
    g_assert_nonnull(file);
    fclose(file);
    iterate_until_told("slice list", "no slice");
    g_assert_true(g_subprocess_wait_check(change, NULL, NULL));
    g_assert_false(exists(&at, GPU "/" UUID));
    agent_on_bus_close(&at);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/operation-calls/progress", test_progress);
    g_test_add_func("/operation-calls/cancel", test_cancel);
    g_test_add_func("/operation-calls/given-back-after-change", test_given_back_after_change);
    return g_test_run();
}
