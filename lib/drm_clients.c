/* SPDX-License-Identifier: MIT */
#include "lib/drm_clients.h"

#include <string.h>
#include <sys/stat.h>

#include "lib/pci.h"
#include "lib/systemd.h"

#define DRM_SCAN_US (30 * G_USEC_PER_SEC)

/* An open file of the GPU, by its driver's client id: duplicates of one have the same id. */
typedef struct {
    guint64 gpu_ns;
    guint round;
} Client;

struct DrmClients {
    HostRoot *root;
    char *uuid;
    char *gpu;
    GPtrArray *paths;    /* of the fdinfo of the GPU's files */
    GHashTable *clients; /* id to Client */
    gint64 scanned;
    guint round;
};

DrmClients *drm_clients_new(HostRoot *root, const char *uuid, const char *gpu)
{
    DrmClients *clients = g_new0(DrmClients, 1);

    clients->root = host_root_ref(root);
    clients->uuid = g_strdup(uuid);
    clients->gpu = g_strdup(gpu);
    clients->paths = g_ptr_array_new_with_free_func(g_free);
    clients->clients = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    return clients;
}

void drm_clients_free(DrmClients *clients)
{
    g_hash_table_unref(clients->clients);
    g_ptr_array_unref(clients->paths);
    host_root_unref(clients->root);
    g_free(clients->uuid);
    g_free(clients->gpu);
    g_free(clients);
}

static void scan_process(DrmClients *clients, const char *process)
{
    g_autofree char *dir = g_build_filename("/proc", process, NULL);
    g_autofree char *files = g_build_filename(dir, "fd", NULL);
    g_auto(GStrv) names = sysfs_list(clients->root, files);

    for (guint i = 0; names[i]; i++) {
        g_autofree char *link = g_build_filename(files, names[i], NULL);
        g_autofree char *target = root_link(clients->root, link);

        if (target && g_str_has_prefix(target, "/dev/dri/"))
            g_ptr_array_add(clients->paths, g_build_filename(dir, "fdinfo", names[i], NULL));
    }
}

static void scan_clients(DrmClients *clients)
{
    gint64 now = g_get_monotonic_time();
    g_auto(GStrv) processes = NULL;

    if (clients->scanned && now - clients->scanned < DRM_SCAN_US)
        return;
    clients->scanned = now;
    processes = engine_unit_processes(clients->root, clients->uuid);
    g_ptr_array_set_size(clients->paths, 0);
    for (guint i = 0; processes[i] && processes[i][0]; i++)
        scan_process(clients, processes[i]);
}

/* "12 KiB" */
static guint64 bytes_of(const char *value)
{
    static const char *const units[] = {"KiB", "MiB", "GiB"};
    char *unit;
    guint64 bytes = g_ascii_strtoull(value, &unit, 10);

    while (*unit == ' ')
        unit++;
    for (guint i = 0; i < G_N_ELEMENTS(units); i++)
        if (g_str_equal(unit, units[i]))
            return bytes << (10 * (i + 1));
    return bytes;
}

/**
 * Info - one fdinfo
 * @resident: drivers that report it also report "drm-memory-vram", its older name
 * @shared: the part of that which others hold, too
 * @host_memory, @host_resident, @host_shared: the same of the host's memory (amdgpu's GTT)
 */
typedef struct {
    const char *gpu;
    const char *client;
    gboolean has_ns;
    guint64 ns;
    gboolean has_vram;
    guint64 memory;
    guint64 resident;
    gboolean has_shared;
    guint64 shared;
    guint64 host_memory;
    guint64 host_resident;
    guint64 host_shared;
} Info;

static void read_pair(Info *info, const char *key, const char *value)
{
    if (g_str_equal(key, "drm-pdev")) {
        info->gpu = value;
    } else if (g_str_equal(key, "drm-client-id")) {
        info->client = value;
    } else if (g_str_has_prefix(key, "drm-resident-vram") ||
               g_str_has_prefix(key, "drm-resident-local")) {
        info->has_vram = TRUE;
        info->resident += bytes_of(value);
    } else if (g_str_has_prefix(key, "drm-shared-vram") ||
               g_str_has_prefix(key, "drm-shared-local")) {
        info->has_shared = TRUE;
        info->shared += bytes_of(value);
    } else if (g_str_equal(key, "drm-memory-vram")) {
        info->has_vram = TRUE;
        info->memory += bytes_of(value);
    } else if (g_str_equal(key, "drm-resident-gtt")) {
        info->host_resident += bytes_of(value);
    } else if (g_str_equal(key, "drm-shared-gtt")) {
        info->host_shared += bytes_of(value);
    } else if (g_str_equal(key, "drm-memory-gtt")) {
        info->host_memory += bytes_of(value);
    } else if (g_str_has_prefix(key, "drm-engine-") &&
               !g_str_has_prefix(key, "drm-engine-capacity-")) {
        info->has_ns = TRUE;
        info->ns += g_ascii_strtoull(value, NULL, 10);
    }
}

/* The memory of a GPU in AMD's processors is the host's, but for a small part. */
static void add_host_memory(HostRoot *root, Info *info)
{
    g_autofree char *dir = NULL;

    if (!info->gpu || (!info->host_memory && !info->host_resident))
        return;
    dir = g_build_filename("/sys/bus/pci/devices", info->gpu, NULL);
    if (!amdgpu_is_apu(root, dir))
        return;
    info->has_vram = TRUE;
    info->memory += info->host_memory;
    info->resident += info->host_resident;
    info->shared += info->host_shared;
}

/* Pointers into @text are valid as long as it is. */
static Info parse_info(HostRoot *root, char *text)
{
    Info info = {0};

    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        char *colon = strchr(line, ':');

        if (!colon || !g_str_has_prefix(line, "drm-"))
            continue;
        *colon = '\0';
        read_pair(&info, line, g_strstrip(colon + 1));
    }
    add_host_memory(root, &info);
    return info;
}

static guint64 vram_of(const Info *info)
{
    return info->resident ? info->resident : info->memory;
}

/* Whatever name its node has. */
static gboolean may_be_drm(HostRoot *root, const char *link)
{
    g_autofree char *target = root_link(root, link);
    dev_t number;

    return target && (g_str_has_prefix(target, "/dev/dri/") ||
                      (target[0] == '/' && root_device(root, link, &number) == S_IFCHR));
}

/* FALSE: that is enough. @data: a table of client ids. */
typedef gboolean (*InfoFunc)(const Info *info, GHashTable *data);

/* Calls @func for each of the process's files of the GPU. FALSE: it had enough. */
static gboolean each_info(HostRoot *root, guint pid, const char *gpu, guint *files, InfoFunc func,
                          GHashTable *data)
{
    g_autofree char *dir = g_strdup_printf("/proc/%u", pid);
    g_autofree char *links = g_build_filename(dir, "fd", NULL);
    g_auto(GStrv) names = *files ? sysfs_list_some(root, links, *files) : g_new0(char *, 1);

    for (guint i = 0; names[i]; i++, --*files) {
        g_autofree char *link = g_build_filename(links, names[i], NULL);
        g_autofree char *path = g_build_filename(dir, "fdinfo", names[i], NULL);
        g_autofree char *text = NULL;
        Info info;

        if (!may_be_drm(root, link))
            continue;
        text = root_read(root, path, NULL);
        info = text ? parse_info(root, text) : (Info){0};
        if (g_strcmp0(info.gpu, gpu) == 0 && !func(&info, data))
            return FALSE;
    }
    return TRUE;
}

static gboolean add_use(const Info *info, GHashTable *uses)
{
    const DrmClientUse use = {
        .has_ns = info->has_ns,
        .ns = info->ns,
        .vram = vram_of(info),
        .has_shared = info->has_shared,
        .shared = MIN(info->shared, vram_of(info)),
    };

    if (info->client)
        g_hash_table_insert(uses, g_strdup(info->client), g_memdup2(&use, sizeof(use)));
    return TRUE;
}

GHashTable *drm_uses_new(void)
{
    return g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
}

void drm_process_add(HostRoot *root, guint pid, const char *gpu, GHashTable *uses, guint *files)
{
    each_info(root, pid, gpu, files, add_use, uses);
}

gboolean drm_uses_have_times(GHashTable *uses)
{
    GHashTableIter iter;
    void *use;

    g_hash_table_iter_init(&iter, uses);
    while (g_hash_table_iter_next(&iter, NULL, &use))
        if (((const DrmClientUse *)use)->has_ns)
            return TRUE;
    return FALSE;
}

guint64 drm_uses_growth(GHashTable *before, GHashTable *now, guint64 elapsed_ns)
{
    guint64 known = 0, fresh = 0;
    GHashTableIter iter;
    void *id, *value;

    g_hash_table_iter_init(&iter, now);
    while (g_hash_table_iter_next(&iter, &id, &value)) {
        const DrmClientUse *then = g_hash_table_lookup(before, id);
        guint64 ns = ((const DrmClientUse *)value)->ns;

        if (then)
            known += ns - MIN(then->ns, ns);
        else
            fresh += MIN(ns, elapsed_ns);
    }
    return known + MIN(fresh, elapsed_ns - MIN(known, elapsed_ns));
}

static gboolean is_unused(const Info *info, GHashTable *ids)
{
    return (!info->ns && !info->memory && !info->resident) ||
           (info->client && g_hash_table_contains(ids, info->client));
}

gboolean drm_process_uses(HostRoot *root, guint pid, const char *gpu, GHashTable *ids, guint *files)
{
    return !each_info(root, pid, gpu, files, is_unused, ids);
}

static void count_use(DrmClients *clients, const Info *info, DrmUse *use)
{
    Client *client;

    if (!info->client || g_strcmp0(info->gpu, clients->gpu) != 0)
        return;
    client = g_hash_table_lookup(clients->clients, info->client);
    if (!client) {
        client = g_new0(Client, 1);
        g_hash_table_insert(clients->clients, g_strdup(info->client), client);
    }
    if (client->round == clients->round)
        return;
    client->round = clients->round;
    use->known |= info->has_ns;
    if (info->ns > client->gpu_ns) {
        use->gpu_ns += info->ns - client->gpu_ns;
        client->gpu_ns = info->ns;
    }
    use->vram_known |= info->has_vram;
    use->vram += vram_of(info);
}

static gboolean is_closed(void *id, void *value, void *data)
{
    (void)id;
    return ((const Client *)value)->round != ((const DrmClients *)data)->round;
}

void drm_clients_read(DrmClients *clients, DrmUse *use)
{
    scan_clients(clients);
    clients->round++;
    use->vram = 0;
    for (guint i = 0; i < clients->paths->len; i++) {
        g_autofree char *text =
            root_read(clients->root, g_ptr_array_index(clients->paths, i), NULL);
        Info info;

        if (!text)
            continue;
        info = parse_info(clients->root, text);
        count_use(clients, &info, use);
    }
    g_hash_table_foreach_remove(clients->clients, is_closed, clients);
}
