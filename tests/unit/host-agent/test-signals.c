/* SPDX-License-Identifier: MIT */
/*
 * Who receives vgpud's signals: a bus with the installed policy, a sender with vgpud's name, and a
 * listener, which is this program again as root or as nobody. Needs root.
 */
#include <gio/gio.h>
#include <glib/gstdio.h>
#include <grp.h>
#include <stdio.h>
#include <unistd.h>

#include "lib/bus.h"

#define POLICY  "host-agent/dbus/org.mdev_vgpu.Host1.conf"
#define MANAGER "org.mdev_vgpu.Host1.Manager"
#define NOBODY  65534
/* The last signal: earlier ones have arrived by then, or will not. */
#define LAST "PropertiesChanged"

/* Like the system's bus, before the files of services. */
static const char config[] =
    "<busconfig><type>system</type><listen>unix:path=%s/bus</listen><auth>EXTERNAL</auth>"
    "<policy context=\"default\"><allow user=\"*\"/><deny own=\"*\"/>"
    "<deny send_type=\"method_call\"/><allow send_type=\"signal\"/>"
    "<allow send_requested_reply=\"true\" send_type=\"method_return\"/>"
    "<allow send_requested_reply=\"true\" send_type=\"error\"/>"
    "<allow receive_type=\"method_call\"/><allow receive_type=\"method_return\"/>"
    "<allow receive_type=\"error\"/><allow receive_type=\"signal\"/>"
    "<allow send_destination=\"org.freedesktop.DBus\"/></policy>"
    "<include>%s</include></busconfig>";

typedef struct {
    char *dir;
    char *address;
    GSubprocess *daemon;
    GDBusConnection *sender;
} Bus;

static GDBusConnection *connect_to(const char *address)
{
    g_autoptr(GError) error = NULL;
    GDBusConnection *bus =
        g_dbus_connection_new_for_address_sync(address,
                                               G_DBUS_CONNECTION_FLAGS_AUTHENTICATION_CLIENT |
                                                   G_DBUS_CONNECTION_FLAGS_MESSAGE_BUS_CONNECTION,
                                               NULL, NULL, &error);

    g_assert_no_error(error);
    return bus;
}

static void own_name(GDBusConnection *bus)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GVariant) answer = g_dbus_connection_call_sync(
        bus, "org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus", "RequestName",
        g_variant_new("(su)", VGPU_BUS_NAME, 0), NULL, G_DBUS_CALL_FLAGS_NONE, -1, NULL, &error);

    g_assert_no_error(error);
}

static void bus_open(Bus *bus)
{
    g_autofree char *here = g_get_current_dir();
    g_autofree char *policy = g_build_filename(here, POLICY, NULL);
    g_autofree char *conf = NULL;
    g_autofree char *text = NULL;
    g_autoptr(GDataInputStream) said = NULL;
    g_autoptr(GError) error = NULL;

    bus->dir = g_dir_make_tmp("signals-XXXXXX", &error);
    g_assert_no_error(error);
    g_assert_cmpint(g_chmod(bus->dir, 0755), ==, 0);
    conf = g_build_filename(bus->dir, "bus.conf", NULL);
    text = g_strdup_printf(config, bus->dir, policy);
    g_assert_true(g_file_set_contents(conf, text, -1, NULL));
    bus->daemon = g_subprocess_new(G_SUBPROCESS_FLAGS_STDOUT_PIPE, &error, "dbus-daemon",
                                   "--nofork", "--print-address", "--config-file", conf, NULL);
    g_assert_no_error(error);
    said = g_data_input_stream_new(g_subprocess_get_stdout_pipe(bus->daemon));
    bus->address = g_data_input_stream_read_line(said, NULL, NULL, &error);
    g_assert_no_error(error);
    bus->sender = connect_to(bus->address);
    own_name(bus->sender);
}

static void bus_close(Bus *bus)
{
    g_autofree char *conf = g_build_filename(bus->dir, "bus.conf", NULL);
    g_autofree char *socket = g_build_filename(bus->dir, "bus", NULL);

    g_object_unref(bus->sender);
    g_subprocess_force_exit(bus->daemon);
    g_subprocess_wait(bus->daemon, NULL, NULL);
    g_object_unref(bus->daemon);
    g_unlink(conf);
    g_unlink(socket);
    g_rmdir(bus->dir);
    g_free(bus->dir);
    g_free(bus->address);
}

static void heard(GDBusConnection *bus, const char *sender, const char *path, const char *interface,
                  const char *signal, GVariant *parameters, void *loop)
{
    (void)bus;
    (void)sender;
    (void)path;
    (void)interface;
    (void)parameters;
    puts(signal);
    if (g_str_equal(signal, LAST))
        g_main_loop_quit(loop);
}

static int listen_at(const char *address)
{
    g_autoptr(GMainLoop) loop = g_main_loop_new(NULL, FALSE);
    g_autoptr(GDBusConnection) bus = connect_to(address);

    g_dbus_connection_signal_subscribe(bus, VGPU_BUS_NAME, NULL, NULL, NULL, NULL,
                                       G_DBUS_SIGNAL_FLAGS_NONE, heard, loop, NULL);
    /* The bus has the rule when this is answered. */
    g_variant_unref(g_dbus_connection_call_sync(
        bus, "org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus", "GetId", NULL,
        NULL, G_DBUS_CALL_FLAGS_NONE, -1, NULL, NULL));
    puts("listening");
    fflush(stdout);
    g_main_loop_run(loop);
    return 0;
}

static void become(void *user)
{
    uid_t uid = (uid_t)GPOINTER_TO_UINT(user);

    if (uid && (setgroups(0, NULL) || setgid(uid) || setuid(uid)))
        _exit(70);
}

static void emit(const Bus *bus, const char *interface, const char *signal, GVariant *parameters)
{
    g_autoptr(GError) error = NULL;

    g_dbus_connection_emit_signal(bus->sender, NULL, VGPU_MANAGER_PATH, interface, signal,
                                  parameters, &error);
    g_assert_no_error(error);
}

/* The signals that a listener with @uid gets of one of each kind. To be freed. */
static char *heard_by(uid_t uid)
{
    g_autoptr(GSubprocessLauncher) launcher =
        g_subprocess_launcher_new(G_SUBPROCESS_FLAGS_STDOUT_PIPE);
    g_autoptr(GSubprocess) listener = NULL;
    g_autoptr(GDataInputStream) said = NULL;
    g_autoptr(GString) all = g_string_new(NULL);
    g_autoptr(GError) error = NULL;
    Bus bus;

    bus_open(&bus);
    g_subprocess_launcher_set_child_setup(launcher, become, GUINT_TO_POINTER(uid), NULL);
    listener = g_subprocess_launcher_spawn(launcher, &error, "/proc/self/exe", "--listen",
                                           bus.address, NULL);
    g_assert_no_error(error);
    said = g_data_input_stream_new(g_subprocess_get_stdout_pipe(listener));
    for (char *line; (line = g_data_input_stream_read_line(said, NULL, NULL, NULL));) {
        g_string_append_printf(all, "%s ", line);
        if (g_str_equal(line, "listening")) {
            emit(&bus, MANAGER, "Event",
                 g_variant_new("(ssss)", "vgpu-created", "", "", "made for tenant red by jo"));
            emit(&bus, MANAGER, "MemoryPressure",
                 g_variant_new("(stt@as)", "0000:02:00.0", (guint64)1, (guint64)2,
                               g_variant_new_strv(NULL, 0)));
            emit(&bus, MANAGER, "Progress",
                 g_variant_new("(ts@assuub)", (guint64)1, "start", g_variant_new_strv(NULL, 0),
                               "start", 1, 2, FALSE));
            emit(&bus, "org.freedesktop.DBus.Properties", LAST,
                 g_variant_new("(s@a{sv}@as)", "org.mdev_vgpu.Host1.Gpu",
                               g_variant_new("a{sv}", NULL), g_variant_new_strv(NULL, 0)));
        }
        g_free(line);
    }
    g_subprocess_wait(listener, NULL, NULL);
    bus_close(&bus);
    return g_string_free(g_steal_pointer(&all), FALSE);
}

static void test_root(void)
{
    g_autofree char *heard = heard_by(0);

    g_assert_cmpstr(heard, ==, "listening Event MemoryPressure Progress " LAST " ");
}

/* Owners and creators of vGPUs are only for callers with the right to see them. vgpud sends
 * Progress to one caller only. */
static void test_anybody(void)
{
    g_autofree char *heard = heard_by(NOBODY);

    g_assert_cmpstr(heard, ==, "listening Progress " LAST " ");
}

int main(int argc, char **argv)
{
    if (argc == 3 && g_str_equal(argv[1], "--listen"))
        return listen_at(argv[2]);
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/signals/root", test_root);
    g_test_add_func("/signals/anybody", test_anybody);
    return g_test_run();
}
