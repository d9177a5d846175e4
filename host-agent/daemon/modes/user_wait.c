/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/modes/user_wait.h"

#include "lib/bus.h"

#define LOOK_AGAIN_MS 1000

/**
 * Wait
 * @users: that were last reported
 * @empty: the last look has found none
 * @again: source of the next look; 0: users are being looked for
 */
typedef struct {
    UserWait asked;
    char *gpu;
    char *asker;
    char *users;
    gboolean empty;
    guint again;
    gulong handler;
} Wait;

static void end_wait(Wait *wait, const char *const *users, const GError *error)
{
    g_signal_handler_disconnect(wait->asked.cancellable, wait->handler);
    wait->asked.done(users, error, wait->asked.data);
    g_object_unref(wait->asked.cancellable);
    g_free(wait->gpu);
    g_free(wait->asker);
    g_free(wait->users);
    g_free(wait);
}

/*
 * To the asker alone: it names tenants, VMs and containers. All others learn only that somebody
 * waits, and root has the event.
 */
static void tell_asker(const Wait *wait, const char *sentence)
{
    VgpuGpu *interface = host_gpu_interface(wait->asked.host, wait->gpu);
    GDBusInterfaceSkeleton *skeleton = G_DBUS_INTERFACE_SKELETON(interface);
    g_autofree char *to_all = NULL;

    if (!interface)
        return;
    if (wait->asker) {
        g_dbus_connection_emit_signal(
            g_dbus_interface_skeleton_get_connection(skeleton), wait->asker,
            g_dbus_interface_skeleton_get_object_path(skeleton), VGPU_BUS_NAME ".Gpu", "Progress",
            g_variant_new("(s)", sentence), NULL);
        return;
    }
    to_all = g_strdup_printf("GPU %s waits until it is no longer in use", wait->gpu);
    vgpu_gpu_emit_progress(interface, to_all);
}

static void say_who(Wait *wait, const GStrv users)
{
    g_autofree char *list = g_strjoinv("; ", users);
    g_autofree char *sentence = NULL;

    if (g_strcmp0(wait->users, list) == 0)
        return;
    g_free(wait->users);
    wait->users = g_strdup(list);
    sentence = g_strdup_printf("GPU %s waits until it is no longer in use: %s", wait->gpu, list);
    if (wait->asked.said)
        wait->asked.said(sentence, wait->asked.data);
    g_message("%s", sentence);
    tell_asker(wait, sentence);
    host_event(wait->asked.host, "drain", wait->gpu, NULL, "%s", sentence);
}

static void users_found(GStrv found, const GError *error, void *data);

static gboolean look_again(void *data)
{
    Wait *wait = data;

    wait->again = 0;
    wait->asked.look(users_found, wait, wait->asked.data);
    return G_SOURCE_REMOVE;
}

static void look_later(Wait *wait)
{
    gint64 left = (wait->asked.until - g_get_monotonic_time()) / 1000 + 1;

    wait->again = g_timeout_add(
        wait->asked.until ? (guint)CLAMP(left, 1, LOOK_AGAIN_MS) : LOOK_AGAIN_MS, look_again, wait);
}

static gboolean is_over(const Wait *wait, const GStrv users)
{
    if (!users[0] && (wait->empty || !wait->asked.twice))
        return TRUE;
    return wait->asked.until && g_get_monotonic_time() >= wait->asked.until;
}

static void users_found(GStrv found, const GError *error, void *data)
{
    Wait *wait = data;
    g_autoptr(GError) cancelled = NULL;
    g_auto(GStrv) users = NULL;

    if (error || g_cancellable_set_error_if_cancelled(wait->asked.cancellable, &cancelled)) {
        end_wait(wait, NULL, error ? error : cancelled);
        return;
    }
    users = wait->asked.with_slices(found, wait->asked.data);
    if (is_over(wait, users)) {
        end_wait(wait, (const char *const *)users, NULL);
        return;
    }
    wait->empty = !users[0];
    if (users[0])
        say_who(wait, users);
    look_later(wait);
}

/* While users are looked for, what is found ends the wait. */
static void wait_cancelled(GCancellable *cancellable, void *data)
{
    g_autoptr(GError) error = NULL;
    Wait *wait = data;

    if (!wait->again)
        return;
    g_clear_handle_id(&wait->again, g_source_remove);
    g_cancellable_set_error_if_cancelled(cancellable, &error);
    end_wait(wait, NULL, error);
}

void user_wait_start(const UserWait *asked)
{
    Wait *wait = g_new0(Wait, 1);

    wait->asked = *asked;
    wait->gpu = g_strdup(asked->gpu);
    wait->asker = g_strdup(asked->asker);
    g_object_ref(asked->cancellable);
    wait->handler =
        g_signal_connect(asked->cancellable, "cancelled", G_CALLBACK(wait_cancelled), wait);
    wait->asked.look(users_found, wait, wait->asked.data);
}
