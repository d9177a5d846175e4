/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/containers/slice_dirs.h"

#include <errno.h>
#include <glib/gstdio.h>
#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "lib/sysfs.h"

#define SLICES_DIR "/run/vgpu/slices"
#define ACL_XATTR  "system.posix_acl_access"

static char *path_of(const char *root, const char *uuid, const char *below)
{
    return g_strconcat(root, CONTAINERS_DIR "/", uuid, below, NULL);
}

static gboolean failed(const char *path, const char *what, GError **error)
{
    int code = errno;

    g_set_error(error, G_FILE_ERROR, g_file_error_from_errno(code), "%s can't be %s: %s", path,
                what, g_strerror(code));
    return FALSE;
}

static void add_entry(GArray *acl, guint16 tag, guint16 perm, guint32 id)
{
    struct posix_acl_xattr_entry entry = {
        .e_tag = GUINT16_TO_LE(tag), .e_perm = GUINT16_TO_LE(perm), .e_id = GUINT32_TO_LE(id)};

    g_array_append_vals(acl, &entry, sizeof(entry));
}

static int by_number(const void *a, const void *b)
{
    uid_t one = *(const uid_t *)a;
    uid_t other = *(const uid_t *)b;

    return one < other ? -1 : one > other;
}

/* As acl(5) wants it: in the order of tags, and of users' numbers. */
static GArray *acl_for(const uid_t *uids, guint count)
{
    const struct posix_acl_xattr_header header = {GUINT32_TO_LE(POSIX_ACL_XATTR_VERSION)};
    g_autofree uid_t *sorted = g_memdup2(uids, count * sizeof(*uids));
    GArray *acl = g_array_new(FALSE, FALSE, 1);

    if (count)
        qsort(sorted, count, sizeof(*sorted), by_number);
    g_array_append_vals(acl, &header, sizeof(header));
    add_entry(acl, ACL_USER_OBJ, ACL_READ | ACL_WRITE | ACL_EXECUTE, (guint32)ACL_UNDEFINED_ID);
    for (guint i = 0; i < count; i++)
        if (!i || sorted[i] != sorted[i - 1])
            add_entry(acl, ACL_USER, ACL_EXECUTE, sorted[i]);
    add_entry(acl, ACL_GROUP_OBJ, 0, (guint32)ACL_UNDEFINED_ID);
    add_entry(acl, ACL_MASK, ACL_EXECUTE, (guint32)ACL_UNDEFINED_ID);
    add_entry(acl, ACL_OTHER, 0, (guint32)ACL_UNDEFINED_ID);
    return acl;
}

/* Without users the mode says all, on file systems without ACLs as well. */
static gboolean let_through(const char *path, const uid_t *uids, guint count, GError **error)
{
    g_autoptr(GArray) acl = NULL;

    if (!count) {
        removexattr(path, ACL_XATTR);
        return chmod(path, 0700) == 0 || failed(path, "closed", error);
    }
    acl = acl_for(uids, count);
    return setxattr(path, ACL_XATTR, acl->data, acl->len, 0) == 0 ||
           failed(path, "opened to the users of its tenant", error);
}

static gboolean make_link(const char *root, const char *uuid, GError **error)
{
    g_autofree char *dir = g_strconcat(root, SLICES_DIR, NULL);
    g_autofree char *link = g_build_filename(dir, uuid, NULL);
    g_autofree char *target = g_strconcat("../containers/", uuid, "/slice", NULL);

    g_mkdir_with_parents(dir, 0700);
    if (g_file_test(link, G_FILE_TEST_IS_SYMLINK) || symlink(target, link) == 0)
        return TRUE;
    return failed(link, "made", error);
}

gboolean slice_dirs_make(const char *root, const char *uuid, const uid_t *uids, guint count,
                         GError **error)
{
    g_autofree char *parent = path_of(root, "", "");
    g_autofree char *outer = path_of(root, uuid, "");
    g_autofree char *inner = path_of(root, uuid, "/slice");

    if (g_mkdir_with_parents(parent, 0755) < 0 || (g_mkdir(outer, 0700) < 0 && errno != EEXIST))
        return failed(outer, "made", error);
    if (g_mkdir(inner, 0755) < 0 && errno != EEXIST)
        return failed(inner, "made", error);
    /* Whatever the umask is. */
    if (chmod(inner, 0755) < 0)
        return failed(inner, "opened", error);
    return let_through(outer, uids, count, error) && make_link(root, uuid, error);
}

gboolean slice_dirs_make_guard(const char *root, const char *uuid, const uid_t *uids, guint count,
                               GError **error)
{
    g_autofree char *parent = g_strconcat(root, GUARD_DIR, NULL);
    g_autofree char *dir = g_build_filename(parent, uuid, NULL);

    if (g_mkdir_with_parents(parent, 0755) < 0 || (g_mkdir(dir, 0700) < 0 && errno != EEXIST))
        return failed(dir, "made", error);
    return let_through(dir, uids, count, error);
}

void slice_dirs_remove(const char *root, const char *uuid)
{
    g_autofree char *link = g_strconcat(root, SLICES_DIR "/", uuid, NULL);
    g_autofree char *socket = path_of(root, uuid, "/slice/governor.sock");
    g_autofree char *inner = path_of(root, uuid, "/slice");
    g_autofree char *outer = path_of(root, uuid, "");
    g_autofree char *guard = g_strconcat(root, GUARD_DIR "/", uuid, NULL);
    g_autofree char *guard_socket = g_build_filename(guard, GUARD_SOCKET, NULL);

    g_unlink(guard_socket);
    g_rmdir(guard);
    g_unlink(link);
    g_unlink(socket);
    g_rmdir(inner);
    g_rmdir(outer);
}

GStrv slice_dirs_list(const char *root)
{
    g_autofree char *dir = g_strconcat(root, CONTAINERS_DIR, NULL);

    return sysfs_list(dir);
}
