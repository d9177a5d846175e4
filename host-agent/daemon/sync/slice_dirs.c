/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/sync/slice_dirs.h"

#include <string.h>

#include "host-agent/daemon/containers/transport.h"

#define SLICES_DIR "/run/vgpu/slices"
/* Slices of one owner and GPU. */
#define LINKS_MAX       64u
#define GOVERNOR_SOCKET "/governor.sock"
#define SOCKET_PATH_MAX 107u

/* From OWNER/GPU/NUMBER. */
#define TARGET_PREFIX "../../../containers/"
#define TARGET_SUFFIX "/slice"

/* The UUID that such a link leads to; NULL: none. To be freed. */
static char *uuid_of_link(HostRoot *root, const char *path)
{
    g_autofree char *target = root_link(root, path);

    if (!target || !g_str_has_prefix(target, TARGET_PREFIX) ||
        !g_str_has_suffix(target, TARGET_SUFFIX))
        return NULL;
    return g_strndup(target + strlen(TARGET_PREFIX),
                     strlen(target) - strlen(TARGET_PREFIX TARGET_SUFFIX));
}

/* The slice's link in @of_gpu: the one that there is, or the first free number. NULL: all are used.
 */
static char *choose_link(HostRoot *root, const char *of_gpu, const char *uuid)
{
    g_autofree char *unused = NULL;

    for (guint i = 0; i < LINKS_MAX; i++) {
        g_autofree char *path = g_strdup_printf("%s/%u", of_gpu, i);
        g_autofree char *other = uuid_of_link(root, path);

        if (g_strcmp0(other, uuid) == 0)
            return g_steal_pointer(&path);
        if (!other && !unused)
            unused = g_steal_pointer(&path);
    }
    return g_steal_pointer(&unused);
}

static gboolean has_room_for_socket(HostRoot *root, const char *link)
{
    g_autofree char *path = root_path(root, link, NULL);

    return strlen(path) + strlen(GOVERNOR_SOCKET) <= SOCKET_PATH_MAX;
}

/* Nobody but root can see whose jobs there are. */
static void want_owner_dirs(Wants *wants, HostRoot *root, const Slice *slice, const GArray *uids)
{
    g_autofree char *own = g_build_filename(OWNERS_DIR, slice->owner, NULL);
    g_autofree char *of_gpu = g_build_filename(own, slice->gpu, NULL);
    g_autofree char *link = choose_link(root, of_gpu, slice->uuid);
    g_autofree char *target = g_strconcat(TARGET_PREFIX, slice->uuid, TARGET_SUFFIX, NULL);

    if (!link) {
        want_trouble(wants, "its owner has as many slices of that GPU as there can be");
        return;
    }
    if (!has_room_for_socket(root, link)) {
        want_trouble(wants, "the name of its owner and that of its GPU are too long for a socket");
        return;
    }
    want_dir(wants, DIR_STAYS, OWNERS_DIR, 0711);
    want_dir_of(wants, DIR_SHARED, own, "rx", uids);
    want_dir(wants, DIR_SHARED, of_gpu, 0755);
    want_link(wants, link, target);
}

void slice_dirs_want(Wants *wants, HostRoot *root, const Slice *slice, const GArray *uids,
                     const GArray *of_owner)
{
    gboolean is_guarded = slice->transport == SLICE_TRANSPORT_GUARDED;
    const char *parent = is_guarded ? GUARD_DIR : CONTAINERS_DIR;
    g_autofree char *own = g_build_filename(parent, slice->uuid, NULL);
    g_autofree char *inner = g_build_filename(own, "slice", NULL);
    g_autofree char *link = g_build_filename(SLICES_DIR, slice->uuid, NULL);
    g_autofree char *target = g_strconcat("../containers/", slice->uuid, "/slice", NULL);

    want_dir(wants, DIR_STAYS, parent, 0755);
    want_dir_of(wants, DIR_OWN, own, "x", uids);
    if (is_guarded)
        return;
    want_dir(wants, DIR_OWN, inner, 0755);
    want_dir(wants, DIR_STAYS, SLICES_DIR, 0700);
    want_link(wants, link, target);
    if (*slice->owner)
        want_owner_dirs(wants, root, slice, of_owner);
}

static void add_names(HostRoot *root, const char *dir, GStrvBuilder *uuids)
{
    g_auto(GStrv) names = sysfs_list(root, dir);

    for (guint i = 0; names[i]; i++)
        if (g_uuid_string_is_valid(names[i]))
            g_strv_builder_add(uuids, names[i]);
}

static GStrv owners_links(HostRoot *root)
{
    return root_glob(root, OWNERS_DIR "/*/*/*");
}

GStrv slice_dirs_list(HostRoot *root)
{
    g_autoptr(GStrvBuilder) uuids = g_strv_builder_new();
    g_auto(GStrv) links = owners_links(root);

    add_names(root, CONTAINERS_DIR, uuids);
    add_names(root, GUARD_DIR, uuids);
    for (guint i = 0; links[i]; i++) {
        char *uuid = uuid_of_link(root, links[i]);

        if (uuid)
            g_strv_builder_take(uuids, uuid);
    }
    return g_strv_builder_end(uuids);
}

static void left_link(Wants *wants, const char *link)
{
    g_autofree char *of_gpu = g_path_get_dirname(link);
    g_autofree char *own = g_path_get_dirname(of_gpu);

    want_dir(wants, DIR_SHARED, own, 0700);
    want_dir(wants, DIR_SHARED, of_gpu, 0755);
    want_link(wants, link, "");
}

void slice_dirs_left(Wants *wants, HostRoot *root, const char *uuid)
{
    g_autofree char *native = g_build_filename(CONTAINERS_DIR, uuid, NULL);
    g_autofree char *guarded = g_build_filename(GUARD_DIR, uuid, NULL);
    g_autofree char *slice_link = g_build_filename(SLICES_DIR, uuid, NULL);
    g_auto(GStrv) links = owners_links(root);

    want_dir(wants, DIR_OWN, native, 0700);
    want_dir(wants, DIR_OWN, guarded, 0700);
    want_link(wants, slice_link, "");
    for (guint i = 0; links[i]; i++) {
        g_autofree char *other = uuid_of_link(root, links[i]);

        if (g_strcmp0(other, uuid) == 0)
            left_link(wants, links[i]);
    }
}
