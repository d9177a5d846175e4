/* SPDX-License-Identifier: MIT */
#include "lib/processes.h"

#include <string.h>
#include <unistd.h>

#include "lib/pci.h"

#define PROC "/proc"

/**
 * Holding - a process that has a vGPU's node open
 * @file: as /proc/123/fd/17
 * @target: the target of that link
 * @name: of the VM; NULL: the process belongs to no VM
 */
typedef struct {
    char *file;
    char *target;
    char *name;
} Holding;

struct Vms {
    GMutex lock;
    HostRoot *root;
    GHashTable *holdings; /* UUID to Holding */
};

/**
 * Wanted - nodes to look for
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

Vms *vms_new(HostRoot *root)
{
    Vms *vms = g_atomic_rc_box_new0(Vms);

    g_mutex_init(&vms->lock);
    vms->root = host_root_ref(root);
    vms->holdings = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, holding_free);
    return vms;
}

Vms *vms_ref(Vms *vms)
{
    return g_atomic_rc_box_acquire(vms);
}

static void vms_clear(void *data)
{
    Vms *vms = data;

    g_hash_table_unref(vms->holdings);
    host_root_unref(vms->root);
    g_mutex_clear(&vms->lock);
}

void vms_unref(Vms *vms)
{
    g_atomic_rc_box_release_full(vms, vms_clear);
}

static gboolean still_holds(const Vms *vms, const char *uuid)
{
    const Holding *holding = g_hash_table_lookup(vms->holdings, uuid);
    g_autofree char *target = holding ? root_link(vms->root, holding->file) : NULL;

    return target && g_str_equal(target, holding->target);
}

static void want_holders(const Vms *vms, Wanted *wanted, const char *uuid)
{
    g_auto(GStrv) nodes = nodes_of_vgpu(vms->root, uuid);
    dev_t number;

    for (guint i = 0; nodes[i]; i++) {
        g_autofree char *path = g_build_filename("/dev", nodes[i], NULL);

        g_hash_table_insert(wanted->by_name, g_strdup(nodes[i]), g_strdup(uuid));
        if (root_device(vms->root, path, &number) == S_IFCHR)
            g_hash_table_insert(wanted->by_number,
                                g_memdup2(&(gint64){(gint64)number}, sizeof(gint64)),
                                g_strdup(uuid));
    }
}

/* The vGPU whose node the open file is; NULL: none. */
static const char *uuid_of_file(HostRoot *root, const Wanted *wanted, const char *file,
                                const char *target)
{
    const char *uuid = NULL;
    dev_t number;

    if (g_str_has_prefix(target, "/dev/"))
        uuid = g_hash_table_lookup(wanted->by_name, target + strlen("/dev/"));
    if (!uuid && target[0] == '/' && root_device(root, file, &number) == S_IFCHR)
        uuid = g_hash_table_lookup(wanted->by_number, &(gint64){(gint64)number});
    return uuid;
}

/* Up to a comma; two commas stand for one in a value. *@end: behind it. To be freed. */
static char *next_part(const char *text, const char **end)
{
    GString *part = g_string_new(NULL);

    for (; *text && (*text != ',' || text[1] == ','); text++) {
        g_string_append_c(part, *text);
        text += *text == ',';
    }
    *end = *text ? text + 1 : text;
    return g_string_free(part, FALSE);
}

/* The value of "-name": "guest=red,debug-threads=on", or "red". */
static char *name_of_argument(const char *value)
{
    const char *end = value;
    g_autofree char *first = next_part(value, &end);

    if (!strchr(first, '='))
        return *first ? g_steal_pointer(&first) : NULL;
    for (const char *at = value; *at; at = end) {
        g_autofree char *part = next_part(at, &end);

        if (g_str_has_prefix(part, "guest="))
            return g_strdup(part + strlen("guest="));
    }
    return NULL;
}

/* By its own name: "find / -name red" is no VM. kvm is Proxmox' name for it. */
static gboolean is_vmm(const char *program)
{
    g_autofree char *name = g_path_get_basename(program);

    return g_str_has_prefix(name, "qemu") || g_str_equal(name, "kvm");
}

/* A VMM's own name for its VM. */
static char *name_by_command_line(HostRoot *root, const char *dir)
{
    g_autofree char *path = g_build_filename(dir, "cmdline", NULL);
    gsize length = 0;
    g_autofree char *text = root_read_bytes(root, path, &length, NULL);
    gboolean next = FALSE;

    if (!text || !is_vmm(text))
        return NULL;
    /* There is a NUL after the last one, too. */
    for (const char *word = text; word < text + length; word += strlen(word) + 1) {
        if (next)
            return name_of_argument(word);
        next = g_str_equal(word, "-name");
    }
    return NULL;
}

/* "a\\x2db" is "a-b" in the name of a unit. */
static char *unit_unescape(const char *name)
{
    GString *text = g_string_new(NULL);

    for (; *name; name++) {
        if (g_str_has_prefix(name, "\\x") && g_ascii_isxdigit(name[2]) &&
            g_ascii_isxdigit(name[3])) {
            g_string_append_c(
                text, (char)(g_ascii_xdigit_value(name[2]) * 16 + g_ascii_xdigit_value(name[3])));
            name += 3;
        } else {
            g_string_append_c(text, *name);
        }
    }
    return g_string_free(text, FALSE);
}

/* ".../machine-qemu\x2d1\x2dred.scope/...", systemd-machined's form. */
static char *name_by_cgroup(const char *cgroup)
{
    g_autoptr(GRegex) regex =
        g_regex_new("/machine-[^/]*?\\\\x2d[0-9]+\\\\x2d([^/]*)\\.scope", 0, 0, NULL);
    g_autoptr(GMatchInfo) match = NULL;
    g_autofree char *escaped = NULL;

    if (!g_regex_match(regex, cgroup, 0, &match))
        return NULL;
    escaped = g_match_info_fetch(match, 1);
    return unit_unescape(escaped);
}

/*
 * VMs by their processes: QEMU's command line, or the cgroup that systemd-machined made for it,
 * names the VM.
 */
static char *vm_name_of_process(HostRoot *root, const char *dir, const char *cgroup)
{
    g_autofree char *said = name_by_command_line(root, dir);
    g_autofree char *name = said || !cgroup ? g_steal_pointer(&said) : name_by_cgroup(cgroup);

    return name ? g_utf8_make_valid(name, -1) : NULL;
}

static void look_at_process(Vms *vms, const Wanted *wanted, const char *dir)
{
    g_autofree char *files = g_build_filename(dir, "fd", NULL);
    g_auto(GStrv) names = sysfs_list(vms->root, files);

    for (guint i = 0; names[i]; i++) {
        g_autofree char *file = g_build_filename(files, names[i], NULL);
        g_autofree char *target = root_link(vms->root, file);
        const char *uuid = target ? uuid_of_file(vms->root, wanted, file, target) : NULL;
        g_autofree char *cgroup = uuid ? sysfs_read(vms->root, dir, "cgroup") : NULL;
        char *name = uuid ? vm_name_of_process(vms->root, dir, cgroup) : NULL;
        Holding *holding;

        /* An engine has its vGPU's node open, too, and is no VM. */
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
    g_auto(GStrv) names = sysfs_list(vms->root, PROC);

    for (guint i = 0; names[i]; i++) {
        g_autofree char *dir = g_build_filename(PROC, names[i], NULL);

        if (g_ascii_isdigit(names[i][0]))
            look_at_process(vms, wanted, dir);
    }
}

/* Forgets those that are no longer requested. */
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

/* The vGPUs that a VM uses. */
static GHashTable *names_of(const Vms *vms)
{
    GHashTable *names = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    GHashTableIter iter;
    void *uuid;
    void *holding;

    g_hash_table_iter_init(&iter, vms->holdings);
    while (g_hash_table_iter_next(&iter, &uuid, &holding))
        g_hash_table_insert(names, g_strdup(uuid), g_strdup(((const Holding *)holding)->name));
    return names;
}

GHashTable *vms_look(Vms *vms, const char *const *uuids)
{
    GHashTable *names;
    Wanted wanted = {
        g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free),
        g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, g_free),
    };

    g_mutex_lock(&vms->lock);
    keep_only(vms, uuids);
    for (guint i = 0; uuids[i]; i++) {
        if (still_holds(vms, uuids[i]))
            continue;
        g_hash_table_remove(vms->holdings, uuids[i]);
        want_holders(vms, &wanted, uuids[i]);
    }
    if (g_hash_table_size(wanted.by_name))
        look_everywhere(vms, &wanted);
    names = names_of(vms);
    g_mutex_unlock(&vms->lock);
    g_hash_table_unref(wanted.by_name);
    g_hash_table_unref(wanted.by_number);
    return names;
}

/* System units, which only root can start; units of users and containers are elsewhere. */
#define UNITS         "0::/system.slice/system-vgpu\\x2d"
#define ENGINE_UNIT   UNITS "engine.slice/vgpu-engine@"
#define DESCRIBE_UNIT UNITS "describe.slice/vgpu-describe@"
#define GUARD_UNIT    UNITS "guard.slice/vgpu-guard@"
#define READER_UNIT   "0::/system.slice/vgpu-nvidia-readings.service"

/* Whatever its unit is called: containers run it, too. The kernel cuts names at 15 characters. */
#define PERSISTENCE_DAEMON "nvidia-persiste"

static void holder_free(void *data)
{
    Holder *holder = data;

    g_free(holder->who);
    g_free(holder->node);
    g_free(holder->engine);
    g_free(holder);
}

/* The instance of a unit whose line of /proc/PID/cgroup begins with @begin; NULL: no such unit. */
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

/* A process of the unit itself, or of a cgroup below it. */
static gboolean is_of_unit(const char *cgroup, const char *unit)
{
    g_auto(GStrv) lines = g_strsplit(cgroup ? cgroup : "", "\n", -1);

    for (guint i = 0; lines[i]; i++) {
        const char *rest = lines[i] + strlen(unit);

        if (g_str_has_prefix(lines[i], unit) && (*rest == '\0' || *rest == '/'))
            return TRUE;
    }
    return FALSE;
}

static Holder *holder_new(HostRoot *root, const char *dir, guint pid, const char *node)
{
    Holder *holder = g_new0(Holder, 1);
    g_autofree char *cgroup = sysfs_read(root, dir, "cgroup");
    g_autofree char *comm = process_name(root, dir);
    g_autofree char *vm = vm_name_of_process(root, dir, cgroup);
    g_autofree char *describe = instance_of(cgroup, DESCRIBE_UNIT);
    g_autofree char *guard = instance_of(cgroup, GUARD_UNIT);

    holder->pid = pid;
    holder->node = g_strdup(node);
    holder->engine = instance_of(cgroup, ENGINE_UNIT);
    holder->own = holder->engine || describe || guard;
    holder->reader = is_of_unit(cgroup, READER_UNIT);
    holder->persists = g_str_equal(comm, PERSISTENCE_DAEMON);
    holder->who = vm ? g_strdup_printf("VM %s (process %u, %s)", vm, pid, comm)
                     : g_strdup_printf("process %u (%s)", pid, comm);
    return holder;
}

/* The node that an open file is, by its name or, if a container has renamed it, by its number. */
static const char *node_of_file(HostRoot *root, const char *path, const char *const *nodes)
{
    g_autofree char *target = root_link(root, path);
    dev_t number, ours_number;
    mode_t type;

    if (!target || target[0] != '/')
        return NULL;
    for (guint i = 0; nodes[i]; i++)
        if (g_str_has_prefix(target, "/dev/") && g_str_equal(target + strlen("/dev/"), nodes[i]))
            return nodes[i];
    type = root_device(root, path, &number);
    for (guint i = 0; type && nodes[i]; i++) {
        g_autofree char *ours = g_build_filename("/dev", nodes[i], NULL);

        if (root_device(root, ours, &ours_number) == type && ours_number == number)
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

static void look_for_holders(GPtrArray *holders, HostRoot *root, const char *dir, guint pid,
                             const char *const *nodes)
{
    g_autofree char *files = g_build_filename(dir, "fd", NULL);
    g_auto(GStrv) names = sysfs_list(root, files);
    guint first = holders->len;

    for (guint i = 0; names[i]; i++) {
        g_autofree char *path = g_build_filename(files, names[i], NULL);
        const char *node = node_of_file(root, path, nodes);

        if (node && !is_known(holders, first, node))
            g_ptr_array_add(holders, holder_new(root, dir, pid, node));
    }
}

GPtrArray *holders_find(HostRoot *root, const char *const *nodes)
{
    g_auto(GStrv) names = sysfs_list(root, PROC);
    GPtrArray *holders = g_ptr_array_new_with_free_func(holder_free);

    for (guint i = 0; nodes[0] && names[i]; i++) {
        g_autofree char *dir = g_build_filename(PROC, names[i], NULL);
        guint pid = (guint)g_ascii_strtoull(names[i], NULL, 10);

        if (pid && pid != (guint)getpid())
            look_for_holders(holders, root, dir, pid, nodes);
    }
    return holders;
}

gboolean vm_is_running(HostRoot *root, const char *name)
{
    g_autoptr(GError) error = NULL;
    g_auto(GStrv) entries = root_list(root, PROC, &error);

    for (guint i = 0; entries && entries[i]; i++) {
        g_autofree char *dir = g_build_filename(PROC, entries[i], NULL);
        g_autofree char *cgroup = NULL;
        g_autofree char *found = NULL;

        if (!g_ascii_isdigit(entries[i][0]))
            continue;
        cgroup = sysfs_read(root, dir, "cgroup");
        found = vm_name_of_process(root, dir, cgroup);
        if (g_strcmp0(found, name) == 0)
            return TRUE;
    }
    return error && !g_error_matches(error, G_FILE_ERROR, G_FILE_ERROR_NOENT);
}
