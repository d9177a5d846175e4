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
 * @notes: "UID NODE" whose entries are vgpud's, or were about to be
 * @monitors: node to GFileMonitor: others remove entries, too
 */
struct NodeAccess {
    Host *host;
    const Slices *slices;
    GHashTable *users;
    GHashTable *notes;
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

static gboolean store(const NodeAccess *access, GError **error)
{
    g_autoptr(GString) text = g_string_new(NULL);
    GHashTableIter iter;
    void *pair;

    g_hash_table_iter_init(&iter, access->notes);
    while (g_hash_table_iter_next(&iter, &pair, NULL))
        g_string_append_printf(text, "%s\n", (const char *)pair);
    return root_write(host_root(access->host), NOTES_FILE, text->str, 0600, error);
}

/* Of "UID NODE". */
static GHashTable *load(HostRoot *root)
{
    g_autofree char *text = root_read(root, NOTES_FILE, NULL);
    g_auto(GStrv) lines = g_strsplit(text ? text : "", "\n", -1);
    GHashTable *notes = set_new();

    for (guint i = 0; lines[i]; i++)
        if (strchr(lines[i], ' '))
            g_hash_table_add(notes, g_strdup(lines[i]));
    return notes;
}

gboolean node_access_take_back(HostRoot *root)
{
    g_autoptr(GHashTable) notes = load(root);
    gboolean done = TRUE;
    GHashTableIter iter;
    void *pair;

    g_hash_table_iter_init(&iter, notes);
    while (g_hash_table_iter_next(&iter, &pair, NULL)) {
        g_autofree char *path = root_path(root, name_of(pair), NULL);
        g_autoptr(GError) error = NULL;

        if (node_acl_remove(path, uid_of(pair), is_seated(root, pair), &error))
            continue;
        g_printerr("a user without a slice can still open a GPU: %s\n", error->message);
        done = FALSE;
    }
    if (done)
        root_remove(root, NOTES_FILE);
    return done;
}

/* Without its note an entry would stay for ever, so it is not given. */
static void not_noted(const NodeAccess *access, const GPtrArray *missing, const GError *error)
{
    for (guint i = 0; i < missing->len; i++) {
        const char *pair = missing->pdata[i];

        g_warning("user %u cannot open %s: %s", (guint)uid_of(pair), name_of(pair), error->message);
        g_hash_table_remove(access->notes, pair);
    }
}

/* Of those wanted, what nobody has given yet; noted. NULL: they could not be. */
static GPtrArray *note_missing(const NodeAccess *access, GHashTable *wanted)
{
    g_autoptr(GPtrArray) missing = g_ptr_array_new();
    g_autoptr(GError) error = NULL;
    GHashTableIter iter;
    void *pair;

    g_hash_table_iter_init(&iter, wanted);
    while (g_hash_table_iter_next(&iter, &pair, NULL)) {
        g_autofree char *path = path_of(access, pair);

        if (!is_ready(host_root(access->host), pair) || node_acl_has(path, uid_of(pair)))
            continue;
        g_hash_table_add(access->notes, g_strdup(pair));
        g_ptr_array_add(missing, pair);
    }
    if (!missing->len || store(access, &error))
        return g_steal_pointer(&missing);
    not_noted(access, missing, error);
    return NULL;
}

/* FALSE: it is to be tried again. */
static gboolean give(const NodeAccess *access, GHashTable *wanted)
{
    g_autoptr(GPtrArray) missing = note_missing(access, wanted);

    for (guint i = 0; missing && i < missing->len; i++) {
        const char *pair = missing->pdata[i];
        g_autofree char *path = path_of(access, pair);
        g_autoptr(GError) error = NULL;

        if (!node_acl_add(path, uid_of(pair), &error))
            g_warning("a program with a slice cannot open its GPU: %s", error->message);
    }
    return missing != NULL;
}

static void take(const NodeAccess *access, GHashTable *wanted)
{
    g_autoptr(GError) failed = NULL;
    GHashTableIter iter;
    gboolean changed = FALSE;
    void *pair;

    g_hash_table_iter_init(&iter, access->notes);
    while (g_hash_table_iter_next(&iter, &pair, NULL)) {
        g_autofree char *path = path_of(access, pair);
        g_autoptr(GError) error = NULL;

        if (g_hash_table_contains(wanted, pair))
            continue;
        if (node_acl_remove(path, uid_of(pair), is_seated(host_root(access->host), pair), &error)) {
            g_hash_table_iter_remove(&iter);
            changed = TRUE;
        } else {
            g_warning("a user without a slice can still open a GPU: %s", error->message);
        }
    }
    if (changed && !store(access, &failed))
        g_warning("cannot note who may open GPUs' nodes: %s", failed->message);
}

static gboolean settled(void *data)
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
        access->settle = g_timeout_add(SETTLE_MS, settled, access);
}

static void watch(NodeAccess *access, GHashTable *wanted)
{
    GHashTable *monitors = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_object_unref);
    GHashTableIter iter;
    void *pair;

    g_hash_table_iter_init(&iter, wanted);
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

static void apply(NodeAccess *access)
{
    g_autoptr(GHashTable) wanted = wanted_now(access);

    watch(access, wanted);
    if (!give(access, wanted))
        g_clear_pointer(&access->users, g_hash_table_unref);
    take(access, wanted);
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
    apply(access);
}

void node_access_refresh(NodeAccess *access)
{
    g_clear_pointer(&access->users, g_hash_table_unref);
    node_access_update(access);
}

void node_access_start(NodeAccess *access)
{
    g_hash_table_unref(access->notes);
    access->notes = load(host_root(access->host));
    access->started = TRUE;
    node_access_refresh(access);
}

NodeAccess *node_access_new(Host *host, const Slices *slices)
{
    NodeAccess *access = g_new0(NodeAccess, 1);

    access->host = host;
    access->slices = slices;
    access->notes = set_new();
    access->monitors = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_object_unref);
    return access;
}

void node_access_free(NodeAccess *access)
{
    g_clear_handle_id(&access->settle, g_source_remove);
    g_clear_pointer(&access->users, g_hash_table_unref);
    g_hash_table_unref(access->notes);
    g_hash_table_unref(access->monitors);
    g_free(access);
}
