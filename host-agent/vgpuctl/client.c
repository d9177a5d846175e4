/* SPDX-License-Identifier: MIT */
#include "host-agent/vgpuctl/client.h"

#include <glib-unix.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>
#include <gio/gio.h>
#include <sys/prctl.h>

#include "lib/bus.h"
#include "host-agent/vgpuctl/output.h"

/* polkit's prompt on a terminal, for users whose session has no agent of its own. */

#define AGENT "pkttyagent"

/* It closes the descriptor when it is registered; vgpud must not be asked before. */
static void wait_for_agent(int ready)
{
    char byte;

    while (read(ready, &byte, 1) > 0)
        ;
}

/* It does not end by itself. */
static void end_with_parent(void *data)
{
    (void)data;
    prctl(PR_SET_PDEATHSIG, SIGTERM);
}

/*
 * Starts pkttyagent(1) for this process, once; it ends with this process. root needs none, and
 * neither does a process without a terminal. If it can't be started, vgpud refuses what needs a
 * right.
 */
static void polkit_agent_start(void)
{
    static GSubprocess *agent;
    g_autoptr(GSubprocessLauncher) launcher = NULL;
    g_autofree char *notify = NULL;
    int pipe[2];

    if (agent || geteuid() == 0 || !isatty(STDIN_FILENO) || !isatty(STDERR_FILENO) ||
        !g_unix_open_pipe(pipe, FD_CLOEXEC, NULL))
        return;
    launcher = g_subprocess_launcher_new(G_SUBPROCESS_FLAGS_STDIN_INHERIT);
    g_subprocess_launcher_set_child_setup(launcher, end_with_parent, NULL, NULL);
    notify = g_strdup_printf("%d", pipe[1]);
    g_subprocess_launcher_take_fd(launcher, pipe[1], pipe[1]);
    agent = g_subprocess_launcher_spawn(launcher, NULL, AGENT, "--notify-fd", notify, "--fallback",
                                        NULL);
    g_subprocess_launcher_close(launcher);
    if (agent)
        wait_for_agent(pipe[0]);
    close(pipe[0]);
}

#define PCI_DOMAIN "0000:"

G_DEFINE_QUARK(vgpuctl - error - quark, vgpuctl_error)

static void set_unreachable(const GError *cause, GError **error)
{
    g_set_error(error, VGPUCTL_ERROR, VGPUCTL_UNREACHABLE,
                "cannot reach vgpud%s%s; \"systemctl status vgpud\" shows why", cause ? ": " : "",
                cause ? cause->message : "");
}

/* Without the properties, which only some commands want: the rest need not wait for them. */
Client *client_new(GError **error)
{
    g_autoptr(Client) client = g_new0(Client, 1);
    g_autoptr(GError) cause = NULL;

    client->manager = vgpu_manager_proxy_new_for_bus_sync(
        G_BUS_TYPE_SYSTEM, G_DBUS_PROXY_FLAGS_DO_NOT_LOAD_PROPERTIES, VGPU_BUS_NAME,
        VGPU_MANAGER_PATH, NULL, &cause);
    if (client->manager)
        return g_steal_pointer(&client);
    set_unreachable(cause, error);
    return NULL;
}

void client_free(Client *client)
{
    g_clear_object(&client->manager);
    g_clear_object(&client->objects);
    g_free(client);
}

/* A call that is under way. */
typedef struct {
    GMainLoop *loop;
    GVariant *answer;
    GError *error;
} Call;

static void call_answered(GObject *object, GAsyncResult *result, void *data)
{
    Call *call = data;

    call->answer = g_dbus_proxy_call_finish(G_DBUS_PROXY(object), result, &call->error);
    g_main_loop_quit(call->loop);
}

/* vgpud tells who asked how far it is. */
static void step_begins(VgpuManager *manager, guint64 id, const char *kind,
                        const char *const *objects, const char *step, guint at, guint total,
                        gboolean undoing, void *data)
{
    (void)manager, (void)id, (void)kind, (void)objects, (void)step, (void)undoing, (void)data;
    progress_parts(at, total);
}

static gboolean is_unknown(const GError *error)
{
    return g_error_matches(error, G_DBUS_ERROR, G_DBUS_ERROR_UNKNOWN_METHOD) ||
           g_error_matches(error, G_DBUS_ERROR, G_DBUS_ERROR_INVALID_ARGS);
}

static gboolean is_absent(const GError *error)
{
    return g_error_matches(error, G_DBUS_ERROR, G_DBUS_ERROR_SERVICE_UNKNOWN) ||
           g_error_matches(error, G_DBUS_ERROR, G_DBUS_ERROR_NAME_HAS_NO_OWNER) ||
           g_error_matches(error, G_DBUS_ERROR, G_DBUS_ERROR_NO_REPLY);
}

/* The bus' own errors in our words. Takes @cause. */
static void set_error(GError *cause, const char *method, GError **error)
{
    if (is_absent(cause)) {
        g_dbus_error_strip_remote_error(cause);
        set_unreachable(cause, error);
        g_error_free(cause);
    } else if (is_unknown(cause)) {
        g_set_error(
            error, VGPUCTL_ERROR, VGPUCTL_FAILED,
            "this vgpud has no method %s; vgpud and vgpuctl must have the same version. After an "
            "upgrade, \"systemctl restart vgpud\"",
            method);
        g_error_free(cause);
    } else {
        g_propagate_error(error, cause);
    }
}

GVariant *client_call_object(GDBusProxy *object, const char *method, GVariant *arguments,
                             const char *what, guint limit, GError **error)
{
    Call call = {0};

    polkit_agent_start();
    call.loop = g_main_loop_new(NULL, FALSE);
    if (what)
        progress_begin(what, limit);
    g_dbus_proxy_call(object, method, arguments, G_DBUS_CALL_FLAGS_ALLOW_INTERACTIVE_AUTHORIZATION,
                      G_MAXINT, NULL, call_answered, &call);
    g_main_loop_run(call.loop);
    g_main_loop_unref(call.loop);
    if (what)
        progress_end();
    if (call.error)
        set_error(call.error, method, error);
    return call.answer;
}

GVariant *client_call(const Client *client, const char *method, GVariant *arguments,
                      const char *what, GError **error)
{
    gulong handler =
        what ? g_signal_connect(client->manager, "progress", G_CALLBACK(step_begins), NULL) : 0;
    GVariant *answer =
        client_call_object(G_DBUS_PROXY(client->manager), method, arguments, what, 0, error);

    if (handler)
        g_signal_handler_disconnect(client->manager, handler);
    return answer;
}

GVariant *client_get(const Client *client, const char *method, GVariant *arguments,
                     const char *what, GError **error)
{
    g_autoptr(GVariant) answer = client_call(client, method, arguments, what, error);

    return answer ? g_variant_get_child_value(answer, 0) : NULL;
}

GDBusObjectManager *client_objects(Client *client, GError **error)
{
    g_autoptr(GError) cause = NULL;
    g_autofree char *owner = NULL;

    if (client->objects)
        owner = g_dbus_object_manager_client_get_name_owner(
            G_DBUS_OBJECT_MANAGER_CLIENT(client->objects));
    if (owner)
        return client->objects;
    /* Of a vgpud that has ended: its successor's are read anew. */
    g_clear_object(&client->objects);
    client->objects = vgpu_object_manager_client_new_for_bus_sync(
        G_BUS_TYPE_SYSTEM, G_DBUS_OBJECT_MANAGER_CLIENT_FLAGS_NONE, VGPU_BUS_NAME, VGPU_ROOT_PATH,
        NULL, &cause);
    if (client->objects)
        owner = g_dbus_object_manager_client_get_name_owner(
            G_DBUS_OBJECT_MANAGER_CLIENT(client->objects));
    if (owner)
        return client->objects;
    set_unreachable(cause, error);
    g_clear_object(&client->objects);
    return NULL;
}

static int by_address(const void *a, const void *b)
{
    return strcmp(vgpu_gpu_get_address(*(VgpuGpu *const *)a),
                  vgpu_gpu_get_address(*(VgpuGpu *const *)b));
}

GPtrArray *client_gpus(Client *client, GError **error)
{
    GDBusObjectManager *manager = client_objects(client, error);
    GList *objects = manager ? g_dbus_object_manager_get_objects(manager) : NULL;
    GPtrArray *gpus = manager ? g_ptr_array_new_with_free_func(g_object_unref) : NULL;

    for (GList *at = objects; at; at = at->next) {
        VgpuGpu *gpu = vgpu_object_get_gpu(VGPU_OBJECT(at->data));

        if (gpu)
            g_ptr_array_add(gpus, gpu);
    }
    g_list_free_full(objects, g_object_unref);
    if (gpus)
        g_ptr_array_sort(gpus, by_address);
    return gpus;
}

gboolean client_address_is(const char *full, const char *short_name)
{
    return g_str_equal(full, short_name) || (g_str_has_prefix(full, PCI_DOMAIN) &&
                                             g_str_equal(full + strlen(PCI_DOMAIN), short_name));
}

VgpuGpu *client_gpu(Client *client, const char *address, GError **error)
{
    g_autoptr(GPtrArray) gpus = client_gpus(client, error);

    if (!gpus)
        return NULL;
    for (guint i = 0; i < gpus->len; i++) {
        VgpuGpu *gpu = g_ptr_array_index(gpus, i);

        if (client_address_is(vgpu_gpu_get_address(gpu), address))
            return g_object_ref(gpu);
    }
    g_set_error(error, VGPUCTL_ERROR, VGPUCTL_NOT_FOUND,
                "this host has no GPU %s; \"vgpuctl gpu list\" shows those that it has", address);
    return NULL;
}
