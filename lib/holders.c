/* SPDX-License-Identifier: MIT */
#include "lib/holders.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/sysfs.h"
#include "lib/vm_name.h"

/* Units of the system, which only root can start: those of users and containers are elsewhere. */
#define UNITS         "0::/system.slice/system-vgpu\\x2d"
#define ENGINE_UNIT   UNITS "engine.slice/vgpu-engine@"
#define DESCRIBE_UNIT UNITS "describe.slice/vgpu-describe@"
#define GUARD_UNIT    UNITS "guard.slice/vgpu-guard@"

static void holder_free(void *data)
{
    Holder *holder = data;

    g_free(holder->who);
    g_free(holder->node);
    g_free(holder->engine);
    g_free(holder);
}

/* The instance of a unit whose line of /proc/PID/cgroup begins with @begin; NULL: it is no such unit. */
static char *instance_of(const char *cgroup, const char *begin)
{
    g_auto(GStrv) lines = g_strsplit(cgroup ? cgroup : "", "\n", -1);

    for (guint i = 0; lines[i]; i++) {
        const char *name = lines[i] + strlen(begin);
        const char *end = g_str_has_prefix(lines[i], begin) ? strstr(name, ".service") : NULL;

        if (end)
            return g_strndup(name, (gsize)(end - name));
    }
    return NULL;
}

static Holder *holder_new(const char *dir, guint pid, const char *node)
{
    Holder *holder = g_new0(Holder, 1);
    g_autofree char *cgroup = sysfs_read(dir, "cgroup");
    g_autofree char *comm = sysfs_read(dir, "comm");
    g_autofree char *vm = vm_name_of_process(dir, cgroup);
    g_autofree char *describe = instance_of(cgroup, DESCRIBE_UNIT);
    g_autofree char *guard = instance_of(cgroup, GUARD_UNIT);

    holder->pid = pid;
    holder->node = g_strdup(node);
    holder->engine = instance_of(cgroup, ENGINE_UNIT);
    holder->own = holder->engine || describe || guard;
    holder->who = vm ? g_strdup_printf("VM %s (process %u, %s)", vm, pid, comm ? comm : "?")
                     : g_strdup_printf("process %u (%s)", pid, comm ? comm : "?");
    return holder;
}

/*
 * The node that an open file is, by its name; or, where a container has given it another one, by
 * its number.
 */
static const char *node_of_file(const char *root, const char *path, const char *const *nodes)
{
    g_autofree char *target = g_file_read_link(path, NULL);
    struct stat file, node;

    if (!target || !g_str_has_prefix(target, "/dev/"))
        return NULL;
    for (guint i = 0; nodes[i]; i++)
        if (g_str_equal(target + strlen("/dev/"), nodes[i]))
            return nodes[i];
    if (stat(path, &file) < 0 || !(S_ISCHR(file.st_mode) || S_ISBLK(file.st_mode)))
        return NULL;
    for (guint i = 0; nodes[i]; i++) {
        g_autofree char *ours = g_build_filename(root[0] ? root : "/", "dev", nodes[i], NULL);

        if (stat(ours, &node) == 0 && node.st_rdev == file.st_rdev &&
            (node.st_mode & S_IFMT) == (file.st_mode & S_IFMT))
            return nodes[i];
    }
    return NULL;
}

static gboolean is_known(const GPtrArray *holders, guint from, const char *node)
{
    for (guint i = from; i < holders->len; i++)
        if (g_str_equal(((const Holder *)g_ptr_array_index(holders, i))->node, node))
            return TRUE;
    return FALSE;
}

static void look_at_process(GPtrArray *holders, const char *root, const char *dir, guint pid,
                            const char *const *nodes)
{
    g_autofree char *files = g_build_filename(dir, "fd", NULL);
    g_auto(GStrv) names = sysfs_list(files);
    guint first = holders->len;

    for (guint i = 0; names[i]; i++) {
        g_autofree char *path = g_build_filename(files, names[i], NULL);
        const char *node = node_of_file(root, path, nodes);

        if (node && !is_known(holders, first, node))
            g_ptr_array_add(holders, holder_new(dir, pid, node));
    }
}

GPtrArray *holders_find(const char *root, const char *const *nodes)
{
    g_autofree char *proc = g_build_filename(root[0] ? root : "/", "proc", NULL);
    g_auto(GStrv) names = sysfs_list(proc);
    GPtrArray *holders = g_ptr_array_new_with_free_func(holder_free);

    for (guint i = 0; nodes[0] && names[i]; i++) {
        g_autofree char *dir = g_build_filename(proc, names[i], NULL);
        guint pid = (guint)g_ascii_strtoull(names[i], NULL, 10);

        if (pid && pid != (guint)getpid())
            look_at_process(holders, root, dir, pid, nodes);
    }
    return holders;
}
