/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/containers/owner_dirs.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>
#include <glib/gstdio.h>
#include <sys/acl.h>
#include <sys/stat.h>

#include "host-agent/daemon/containers/transport.h"

#define RUN_DIR    "/run/vgpu"
#define OWNERS_DIR RUN_DIR "/owners"
/* From a slice's own directory to its link, so that the link is found when only the UUID is known.
 */
#define BACK        "/o"
#define BACK_PREFIX "../../owners/"
/* Slices of one owner and GPU. */
#define MOST_LINKS       64u
#define GOVERNOR_SOCKET  "/governor.sock"
#define MOST_SOCKET_PATH 107u

static gboolean failed(const char *path, const char *what, GError **error)
{
    int code = errno;

    g_set_error(error, G_FILE_ERROR, g_file_error_from_errno(code), "%s can't be %s: %s", path,
                what, g_strerror(code));
    return FALSE;
}

char *owner_dirs_path(HostRoot *root, const char *owner)
{
    return root_path(root, OWNERS_DIR, owner, NULL);
}

static gboolean contains(const uid_t *uids, guint count, uid_t uid)
{
    for (guint i = 0; i < count; i++)
        if (uids[i] == uid)
            return TRUE;
    return FALSE;
}

/* Its users may list it. */
static gboolean let_in(const char *path, const uid_t *uids, guint count, GError **error)
{
    g_autoptr(GString) text = g_string_new("u::rwx,g::-,m::rx,o::-");
    acl_t acl;
    int rc;

    if (!count)
        return chmod(path, 0700) == 0 || failed(path, "closed", error);
    for (guint i = 0; i < count; i++)
        if (!contains(uids, i, uids[i]))
            g_string_append_printf(text, ",u:%u:rx", (guint)uids[i]);
    acl = acl_from_text(text->str);
    rc = acl ? acl_set_file(path, ACL_TYPE_ACCESS, acl) : -1;
    if (rc < 0)
        failed(path, "opened to its users", error);
    if (acl)
        acl_free(acl);
    return rc == 0;
}

static gboolean make_dir(const char *path, mode_t mode, GError **error)
{
    if (g_mkdir(path, mode) == 0 ? chmod(path, mode) < 0 : errno != EEXIST)
        return failed(path, "made", error);
    return TRUE;
}

/* The text of the back link: to the one that there is, or to the first free number. */
static char *choose(HostRoot *root, const char *owner, const char *gpu, const char *target)
{
    for (guint i = 0; i < MOST_LINKS; i++) {
        g_autofree char *path = g_strdup_printf(OWNERS_DIR "/%s/%s/%u", owner, gpu, i);
        g_autofree char *now = root_link(root, path);

        if (!now || g_str_equal(now, target))
            return g_strdup_printf(BACK_PREFIX "%s/%s/%u", owner, gpu, i);
    }
    return NULL;
}

/* The back link first: what it names is removed with the slice, whether it was made or not. */
static gboolean make_links(HostRoot *root, const char *back_text, const char *uuid,
                           const char *target, GError **error)
{
    g_autofree char *back = root_path(root, CONTAINERS_DIR, uuid, BACK, NULL);
    g_autofree char *link = root_path(root, OWNERS_DIR, back_text + strlen(BACK_PREFIX), NULL);

    if (strlen(link) + strlen(GOVERNOR_SOCKET) > MOST_SOCKET_PATH) {
        g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_NAMETOOLONG,
                    "the name of the owner and that of the GPU are too long for a socket in %s",
                    link);
        return FALSE;
    }
    if (symlink(back_text, back) < 0 && errno != EEXIST)
        return failed(back, "made", error);
    if (symlink(target, link) < 0 && errno != EEXIST)
        return failed(link, "made", error);
    return TRUE;
}

/* In @of_gpu, which is in @own. */
static gboolean link_in(HostRoot *root, const char *of_gpu, const char *own, const char *uuid,
                        GError **error)
{
    g_autofree char *owner = g_path_get_basename(own);
    g_autofree char *gpu = g_path_get_basename(of_gpu);
    g_autofree char *target = g_strconcat("../../../containers/", uuid, "/slice", NULL);
    g_autofree char *back_text = choose(root, owner, gpu, target);

    if (!back_text) {
        errno = EMLINK;
        return failed(of_gpu, "used for another slice", error);
    }
    return make_links(root, back_text, uuid, target, error);
}

gboolean owner_dirs_link(HostRoot *root, const char *owner, const char *gpu, const char *uuid,
                         const uid_t *uids, guint count, GError **error)
{
    g_autofree char *all = root_path(root, OWNERS_DIR, NULL);
    g_autofree char *own = owner_dirs_path(root, owner);
    g_autofree char *of_gpu = g_build_filename(own, gpu, NULL);

    /* Nobody but root can see whose jobs there are. Modes are set whatever the umask is. */
    if (make_dir(all, 0711, error) && make_dir(own, 0700, error) && make_dir(of_gpu, 0755, error) &&
        link_in(root, of_gpu, own, uuid, error) && let_in(own, uids, count, error))
        return TRUE;
    owner_dirs_unlink(root, uuid);
    /* There may be no link that leads to them. */
    g_rmdir(of_gpu);
    g_rmdir(own);
    return FALSE;
}

void owner_dirs_unlink(HostRoot *root, const char *uuid)
{
    g_autofree char *back = g_build_filename(CONTAINERS_DIR, uuid, BACK, NULL);
    g_autofree char *text = root_link(root, back);
    g_autofree char *link = NULL, *of_gpu = NULL, *own = NULL;

    if (!text || !g_str_has_prefix(text, BACK_PREFIX))
        return;
    link = g_build_filename(OWNERS_DIR, text + strlen(BACK_PREFIX), NULL);
    of_gpu = g_path_get_dirname(link);
    own = g_path_get_dirname(of_gpu);
    root_remove(root, link);
    root_remove(root, back);
    /* They stay while another slice is in them. */
    root_rmdir(root, of_gpu);
    root_rmdir(root, own);
}
