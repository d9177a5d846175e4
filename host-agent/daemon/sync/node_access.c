/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/sync/node_access.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <systemd/sd-login.h>

#include "host-agent/daemon/containers/node_acl.h"
#include "host-agent/daemon/sync/door.h"

#define NOTES_FILE "/run/vgpu/node-users"
/* logind changes several nodes, and each several times, when another user comes to the seat. */
#define SETTLE_MS 200

/**
 * NodeAccess
 * @users: "UID GPU" that should have access, as they were last looked at; NULL: not yet
 * @wanted: their "UID NODE", each the subject of an output of its own
 * @monitors: node to GFileMonitor: others remove entries, too
 */
struct NodeAccess {
    Host *host;
    Outputs *outputs;
    const Slices *slices;
    GHashTable *users;
    GHashTable *wanted;
    GHashTable *monitors;
    guint settle;
    gboolean started;
};

static GHashTable *set_new(void)
{
    return g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
}

static gboolean is_same(GHashTable *a, GHashTable *b)
{
    GHashTableIter iter;
    void *key;

    if (g_hash_table_size(a) != g_hash_table_size(b))
        return FALSE;
    g_hash_table_iter_init(&iter, a);
    while (g_hash_table_iter_next(&iter, &key, NULL))
        if (!g_hash_table_contains(b, key))
            return FALSE;
    return TRUE;
}

/* Root needs no entry. */
static gboolean has_user(const Slice *slice)
{
    return *slice->owner && slice->uid > 0 && slice->transport == SLICE_TRANSPORT_NATIVE &&
           slice->present && !slice->reserved && !slice->leaving;
}

static GHashTable *users_now(const NodeAccess *access)
{
    const GPtrArray *slices = slices_all(access->slices);
    GHashTable *users = set_new();

    for (guint i = 0; i < slices->len; i++) {
        const Slice *slice = g_ptr_array_index(slices, i);

        if (has_user(slice))
            g_hash_table_add(users, g_strdup_printf("%u %s", (guint)slice->uid, slice->gpu));
    }
    return users;
}

/* Of "UID NAME". */
static uid_t uid_of(const char *pair)
{
    return (uid_t)strtoul(pair, NULL, 10);
}

static const char *name_of(const char *pair)
{
    return strchr(pair, ' ') + 1;
}

/* "UID NODE" of all users. */
static GHashTable *wanted_now(const NodeAccess *access)
{
    g_autoptr(DoorHost) doors = door_host_new(access->host);
    GHashTable *wanted = set_new();
    GHashTableIter iter;
    void *user;

    g_hash_table_iter_init(&iter, access->users);
    while (g_hash_table_iter_next(&iter, &user, NULL)) {
        const Gpu *gpu = host_gpu(access->host, name_of(user));
        g_auto(GStrv) nodes =
            gpu && gpu->mode == GPU_MODE_SHARED ? door_native_nodes(doors, gpu) : NULL;

        for (guint i = 0; nodes && nodes[i]; i++)
            g_hash_table_add(wanted, g_strdup_printf("%u %s", (guint)uid_of(user), nodes[i]));
    }
    return wanted;
}

static char *path_of(const NodeAccess *access, const char *pair)
{
    return root_path(host_root(access->host), name_of(pair), NULL);
}

/* A file that udev or the kernel name by a device's number. */
static gboolean has_of_device(HostRoot *root, const char *prefix, const struct stat *node)
{
    g_autofree char *path =
        g_strdup_printf("%s%u:%u", prefix, major(node->st_rdev), minor(node->st_rdev));

    return root_has(root, path);
}

/*
 * A node that udev has not finished yet gets its group and mode later; with an ACL, that mode would
 * be its mask. Its event follows.
 */
static gboolean is_ready(HostRoot *root, const char *pair)
{
    struct stat node;

    return root_stat(root, name_of(pair), &node) &&
           (!root_has(root, "/run/udev/control") || !has_of_device(root, "/sys/dev/char/", &node) ||
            has_of_device(root, "/run/udev/data/c", &node));
}

/* logind gives the node to the user at the seat, and found the entry that is vgpud's. */
static gboolean is_seated(HostRoot *root, const char *pair)
{
    struct stat node;

    return root_stat(root, name_of(pair), &node) &&
           has_of_device(root, "/run/udev/tags/uaccess/c", &node) &&
           sd_uid_get_seats(uid_of(pair), TRUE, NULL) > 0;
}

/* Of "UID NODE", that vgpud has made or was about to make. NULL: they can't be read. */
static GStrv load_notes(HostRoot *root, GError **error)
{
    g_autoptr(GError) cause = NULL;
    g_autofree char *text = root_read(root, NOTES_FILE, &cause);
    g_auto(GStrv) lines = g_strsplit(text ? text : "", "\n", -1);
    g_autoptr(GStrvBuilder) notes = g_strv_builder_new();

    if (cause && !g_error_matches(cause, G_FILE_ERROR, G_FILE_ERROR_NOENT)) {
        g_propagate_error(error, g_steal_pointer(&cause));
        return NULL;
    }
    for (guint i = 0; lines[i]; i++)
        if (strchr(lines[i], ' '))
            g_strv_builder_add(notes, lines[i]);
    return g_strv_builder_end(notes);
}

static gboolean set_noted(HostRoot *root, const char *pair, gboolean on, GError **error)
{
    g_auto(GStrv) notes = load_notes(root, error);
    g_autoptr(GString) text = g_string_new(NULL);

    if (!notes || g_strv_contains((const char *const *)notes, pair) == on)
        return notes != NULL;
    for (guint i = 0; notes[i]; i++)
        if (!g_str_equal(notes[i], pair))
            g_string_append_printf(text, "%s\n", notes[i]);
    if (on)
        g_string_append_printf(text, "%s\n", pair);
    if (text->len)
        return root_write(root, NOTES_FILE, text->str, 0644, error);
    root_remove(root, NOTES_FILE);
    return TRUE;
}

static gboolean take_entry(HostRoot *root, const char *pair, GError **error)
{
    g_autofree char *path = root_path(root, name_of(pair), NULL);

    return node_acl_remove(path, uid_of(pair), is_seated(root, pair), error) &&
           set_noted(root, pair, FALSE, error);
}

gboolean node_access_take_back(HostRoot *root)
{
    g_autoptr(GError) error = NULL;
    g_auto(GStrv) notes = load_notes(root, &error);
    gboolean done = notes != NULL;

    for (guint i = 0; notes && notes[i]; i++) {
        g_clear_error(&error);
        done = take_entry(root, notes[i], &error) && done;
        if (error)
            g_printerr("a user without a slice can still open a GPU: %s\n", error->message);
    }
    return done;
}

static gboolean nodes_settled(void *data)
{
    NodeAccess *access = data;

    access->settle = 0;
    node_access_refresh(access);
    return G_SOURCE_REMOVE;
}

static void node_changed(GFileMonitor *monitor, GFile *file, GFile *other, GFileMonitorEvent event,
                         void *data)
{
    NodeAccess *access = data;

    (void)monitor;
    (void)file;
    (void)other;
    (void)event;
    if (!access->settle)
        access->settle = g_timeout_add(SETTLE_MS, nodes_settled, access);
}

static void watch_nodes(NodeAccess *access)
{
    GHashTable *monitors = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_object_unref);
    GHashTableIter iter;
    void *pair;

    g_hash_table_iter_init(&iter, access->wanted);
    while (g_hash_table_iter_next(&iter, &pair, NULL)) {
        g_autofree char *path = path_of(access, pair);
        g_autoptr(GFile) file = g_file_new_for_path(path);
        GFileMonitor *monitor = g_hash_table_lookup(access->monitors, path);

        if (g_hash_table_contains(monitors, path))
            continue;
        if (monitor)
            g_object_ref(monitor);
        else if ((monitor = g_file_monitor_file(file, G_FILE_MONITOR_NONE, NULL, NULL)))
            g_signal_connect(monitor, "changed", G_CALLBACK(node_changed), access);
        if (monitor)
            g_hash_table_insert(monitors, g_steal_pointer(&path), monitor);
    }
    g_hash_table_unref(access->monitors);
    access->monitors = monitors;
}

static const OutputKind entry_kind;

/* What nobody else has given yet, or vgpud itself. */
static gboolean is_own(const NodeAccess *access, const char *pair)
{
    g_autofree char *path = path_of(access, pair);

    return outputs_has_own(access->outputs, &entry_kind, pair, pair) ||
           (is_ready(host_root(access->host), pair) && !node_acl_has(path, uid_of(pair)));
}

static gboolean want_entry(Wants *wants, const char *pair, void *data)
{
    const NodeAccess *access = data;

    if (g_hash_table_contains(access->wanted, pair) && is_own(access, pair))
        want_own(wants, pair);
    return TRUE;
}

/*
 * The note comes first: without it an entry would stay for ever. Others remove entries, too.
 */
static gboolean give_entry(const char *pair, void *data, GError **error)
{
    const NodeAccess *access = data;
    HostRoot *root = host_root(access->host);
    g_autofree char *path = path_of(access, pair);

    return set_noted(root, pair, TRUE, error) &&
           (!is_ready(root, pair) || node_acl_has(path, uid_of(pair)) ||
            node_acl_add(path, uid_of(pair), error));
}

static gboolean take_entry_of(const char *pair, void *data, GError **error)
{
    return take_entry(host_root(((const NodeAccess *)data)->host), pair, error);
}

static const OutputKind entry_kind = {
    .level = G_LOG_LEVEL_WARNING,
    .trouble = {"a slice's user may lack access to a GPU's node, or keep it (", ")"},
    .want = want_entry,
    .give = give_entry,
    .take = take_entry_of,
};

/* One that can't be given or taken holds up no other. */
static void update_entries(NodeAccess *access)
{
    GHashTableIter iter;
    void *pair;

    g_clear_pointer(&access->wanted, g_hash_table_unref);
    access->wanted = wanted_now(access);
    watch_nodes(access);
    outputs_update_all(access->outputs, &entry_kind);
    g_hash_table_iter_init(&iter, access->wanted);
    while (g_hash_table_iter_next(&iter, &pair, NULL))
        outputs_update(access->outputs, &entry_kind, access, pair);
}

void node_access_update(NodeAccess *access)
{
    GHashTable *users;

    if (!access->started)
        return;
    users = users_now(access);
    if (access->users && is_same(users, access->users)) {
        g_hash_table_unref(users);
        return;
    }
    g_clear_pointer(&access->users, g_hash_table_unref);
    access->users = users;
    update_entries(access);
}

void node_access_refresh(NodeAccess *access)
{
    g_clear_pointer(&access->users, g_hash_table_unref);
    node_access_update(access);
}

void node_access_start(NodeAccess *access)
{
    g_autoptr(GError) error = NULL;
    g_auto(GStrv) notes = load_notes(host_root(access->host), &error);

    if (!notes)
        g_warning("users without slices may keep access to GPUs' nodes: %s", error->message);
    for (guint i = 0; notes && notes[i]; i++)
        want_own(outputs_left(access->outputs, &entry_kind, access, notes[i]), notes[i]);
    access->started = TRUE;
    node_access_refresh(access);
}

NodeAccess *node_access_new(Host *host, Outputs *outputs, const Slices *slices)
{
    NodeAccess *access = g_new0(NodeAccess, 1);

    access->host = host;
    access->outputs = outputs;
    access->slices = slices;
    access->monitors = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_object_unref);
    return access;
}

void node_access_free(NodeAccess *access)
{
    g_clear_handle_id(&access->settle, g_source_remove);
    g_clear_pointer(&access->users, g_hash_table_unref);
    g_clear_pointer(&access->wanted, g_hash_table_unref);
    g_hash_table_unref(access->monitors);
    g_free(access);
}
