/* SPDX-License-Identifier: MIT */
#include "lib/vms.h"

#include <string.h>
#include <sys/stat.h>

#include "lib/nodes.h"
#include "lib/sysfs.h"
#include "lib/vm_name.h"

/**
 * Holding - a process that has a vGPU's node open
 * @file: as /proc/123/fd/17
 * @target: what that link says
 * @name: of the VM; NULL: the process is none's
 */
typedef struct {
    char *file;
    char *target;
    char *name;
} Holding;

struct Vms {
    char *root;
    GHashTable *holdings; /* UUID to Holding */
};

/**
 * Wanted - nodes that are looked for
 * @by_name: "vfio/16" to UUID
 * @by_number: device number to UUID: a process in another mount namespace has other names
 */
typedef struct {
    GHashTable *by_name;
    GHashTable *by_number;
} Wanted;

static void holding_free(void *data)
{
    Holding *holding = data;

    g_free(holding->file);
    g_free(holding->target);
    g_free(holding->name);
    g_free(holding);
}

Vms *vms_new(const char *root)
{
    Vms *vms = g_new0(Vms, 1);

    vms->root = g_strdup(root);
    vms->holdings = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, holding_free);
    return vms;
}

void vms_free(Vms *vms)
{
    g_hash_table_unref(vms->holdings);
    g_free(vms->root);
    g_free(vms);
}

static gboolean still_holds(const Vms *vms, const char *uuid)
{
    const Holding *holding = g_hash_table_lookup(vms->holdings, uuid);
    g_autofree char *target = holding ? g_file_read_link(holding->file, NULL) : NULL;

    return target && g_str_equal(target, holding->target);
}

static void want(const Vms *vms, Wanted *wanted, const char *uuid)
{
    g_auto(GStrv) nodes = nodes_of_vgpu(vms->root, uuid);
    struct stat node;

    for (guint i = 0; nodes[i]; i++) {
        g_autofree char *path =
            g_build_filename(vms->root[0] ? vms->root : "/", "dev", nodes[i], NULL);

        g_hash_table_insert(wanted->by_name, g_strdup(nodes[i]), g_strdup(uuid));
        if (stat(path, &node) == 0 && S_ISCHR(node.st_mode))
            g_hash_table_insert(wanted->by_number,
                                g_memdup2(&(gint64){(gint64)node.st_rdev}, sizeof(gint64)),
                                g_strdup(uuid));
    }
}

/* The vGPU whose node the open file is; NULL: none. */
static const char *uuid_of_file(const Wanted *wanted, const char *file, const char *target)
{
    const char *uuid = NULL;
    struct stat node;

    if (g_str_has_prefix(target, "/dev/"))
        uuid = g_hash_table_lookup(wanted->by_name, target + strlen("/dev/"));
    if (!uuid && target[0] == '/' && stat(file, &node) == 0 && S_ISCHR(node.st_mode))
        uuid = g_hash_table_lookup(wanted->by_number, &(gint64){(gint64)node.st_rdev});
    return uuid;
}

static void look_at_process(Vms *vms, const Wanted *wanted, const char *dir)
{
    g_autofree char *files = g_build_filename(dir, "fd", NULL);
    g_auto(GStrv) names = sysfs_list(files);

    for (guint i = 0; names[i]; i++) {
        g_autofree char *file = g_build_filename(files, names[i], NULL);
        g_autofree char *target = g_file_read_link(file, NULL);
        const char *uuid = target ? uuid_of_file(wanted, file, target) : NULL;
        g_autofree char *cgroup = uuid ? sysfs_read(dir, "cgroup") : NULL;
        char *name = uuid ? vm_name_of_process(dir, cgroup) : NULL;
        Holding *holding;

        /* An engine has its vGPU's node, too, and is no VM. */
        if (!name)
            continue;
        holding = g_new0(Holding, 1);
        holding->file = g_steal_pointer(&file);
        holding->target = g_steal_pointer(&target);
        holding->name = name;
        g_hash_table_insert(vms->holdings, g_strdup(uuid), holding);
    }
}

static void look_everywhere(Vms *vms, const Wanted *wanted)
{
    g_autofree char *proc = g_build_filename(vms->root[0] ? vms->root : "/", "proc", NULL);
    g_auto(GStrv) names = sysfs_list(proc);

    for (guint i = 0; names[i]; i++) {
        g_autofree char *dir = g_build_filename(proc, names[i], NULL);

        if (g_ascii_isdigit(names[i][0]))
            look_at_process(vms, wanted, dir);
    }
}

/* Forgets those that nobody asks for any more. */
static void keep_only(Vms *vms, const char *const *uuids)
{
    GHashTable *kept = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, holding_free);

    for (guint i = 0; uuids[i]; i++) {
        char *uuid;
        Holding *holding;

        if (g_hash_table_steal_extended(vms->holdings, uuids[i], (void **)&uuid, (void **)&holding))
            g_hash_table_insert(kept, uuid, holding);
    }
    g_hash_table_unref(vms->holdings);
    vms->holdings = kept;
}

void vms_look(Vms *vms, const char *const *uuids)
{
    Wanted wanted = {
        g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free),
        g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, g_free),
    };

    keep_only(vms, uuids);
    for (guint i = 0; uuids[i]; i++) {
        if (still_holds(vms, uuids[i]))
            continue;
        g_hash_table_remove(vms->holdings, uuids[i]);
        want(vms, &wanted, uuids[i]);
    }
    if (g_hash_table_size(wanted.by_name))
        look_everywhere(vms, &wanted);
    g_hash_table_unref(wanted.by_name);
    g_hash_table_unref(wanted.by_number);
}

const char *vms_name(const Vms *vms, const char *uuid)
{
    const Holding *holding = g_hash_table_lookup(vms->holdings, uuid);

    return holding ? holding->name : NULL;
}
