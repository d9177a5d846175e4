/* SPDX-License-Identifier: MIT */
#include "container-hooks/own_mounts.h"

#include <fcntl.h>
#include <gio/gio.h>
#include <string.h>
#include <unistd.h>

#include "container-hooks/in_root.h"

/* vgpud's are, and no user has reason to have a volume there. */
static gboolean is_own(const BundleMount *mount)
{
    return g_path_is_absolute(mount->source) &&
           (g_str_has_prefix(mount->destination, "/run/vgpu/") ||
            strstr(mount->destination, "/mdev-vgpu/") ||
            strstr(mount->destination, "/VkLayer_vgpu_"));
}

/* The container's last mount that @path is below; "/": none. */
static const char *mount_covering(const Bundle *bundle, const char *path)
{
    const char *found = "/";

    for (guint i = 0; i < bundle->mounts->len; i++) {
        const BundleMount *mount = g_ptr_array_index(bundle->mounts, i);
        gsize length = strlen(mount->destination);

        if (g_str_has_prefix(path, mount->destination) && path[length] == '/')
            found = mount->destination;
    }
    return found;
}

/* In a user namespace the hook may not look at the host's file. Then what the container has there
 * is taken for it. */
static gboolean is_there(int root, const BundleMount *mount, GError **error)
{
    struct stat source, found;
    int fd = in_root_find(root, mount->destination, &found, error);

    if (fd < 0)
        return FALSE;
    close(fd);
    return stat(mount->source, &source) < 0 ||
           (source.st_dev == found.st_dev && source.st_ino == found.st_ino);
}

static gboolean mount_restore(const Bundle *bundle, int root, const BundleMount *mount,
                              GError **error)
{
    int source = open(mount->source, O_PATH | O_CLOEXEC);
    struct stat status;
    int place = -1;
    gboolean done;

    if (source >= 0 && fstat(source, &status) == 0)
        place = in_root_make_place(root, mount->destination, S_ISDIR(status.st_mode), error);
    else
        g_set_error(error, G_IO_ERROR, G_IO_ERROR_FAILED,
                    "%s cannot be reached from the container's "
                    "user namespace",
                    mount->source);
    done = place >= 0 && in_root_cover(source, place, mount->destination, error);
    if (!done)
        g_prefix_error(error,
                       "%s, which the slice needs, is covered by what the container has "
                       "mounted on %s; mount nothing there: ",
                       mount->destination, mount_covering(bundle, mount->destination));
    if (place >= 0)
        close(place);
    if (source >= 0)
        close(source);
    return done;
}

gboolean own_mounts_restore(const Bundle *bundle, GError **error)
{
    int root = in_root_open(bundle->image, error);
    gboolean done = root >= 0;

    for (guint i = 0; done && i < bundle->mounts->len; i++) {
        const BundleMount *mount = g_ptr_array_index(bundle->mounts, i);

        if (!is_own(mount) || is_there(root, mount, error))
            continue;
        done = !*error && mount_restore(bundle, root, mount, error);
    }
    if (root >= 0)
        close(root);
    return done;
}
