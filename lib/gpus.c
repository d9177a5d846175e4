/* SPDX-License-Identifier: MIT */
#include "lib/gpus.h"

#include <string.h>
#include <linux/vgpu.h>

#include "lib/cards.h"

#define OVERCOMMIT_MAX 16
#define OVERCOMMIT_RULE                                                                            \
    "a number from 1 to 16, such as 1.5; or observed, also with a number, such as observed,2"
#define OBSERVED       "observed"
#define OBSERVED_MAX   4
#define PARTITIONS_MAX 256

static const char *const conf_keys[] = {
    "mode", "vram",          "overcommit", "partitions", "policy", "water-mark", "pressure-command",
    "pool", "health-ignore", NULL};
static const char *const state_keys[] = {"mode", "partitions", NULL};
static const char *const mode_names[] = {
    [GPU_MODE_HOST] = "host",
    [GPU_MODE_SHARED] = "shared",
    [GPU_MODE_PASSTHROUGH] = "passthrough",
    [GPU_MODE_PARTITIONED] = "partitioned",
};

static const char *const policy_names[] = {
    [GPU_POLICY_SHARES] = "shares",
    [GPU_POLICY_BEST_EFFORT] = "best-effort",
    [GPU_POLICY_EQUAL] = "equal",
    [GPU_POLICY_FIXED] = "fixed",
};

static const char *const health_names[HEALTH_KINDS + 1] = {
    [HEALTH_GONE] = "gone",
    [HEALTH_AER_FATAL] = "aer-fatal",
    [HEALTH_AER_NONFATAL] = "aer-nonfatal",
    [HEALTH_AER_CORRECTED] = "aer-corrected",
    [HEALTH_LINK] = "link",
    [HEALTH_TEMPERATURE] = "temperature",
    [HEALTH_ECC] = "ecc",
    [HEALTH_ENGINE_CRASHES] = "engine-crashes",
    [HEALTH_ENGINE_FAILED] = "engine-failed",
};

const char *health_kind_name(HealthKind kind)
{
    return health_names[kind];
}

gboolean health_kind_parse(const char *name, HealthKind *kind)
{
    for (guint i = 0; i < HEALTH_KINDS; i++) {
        if (g_str_equal(health_names[i], name)) {
            *kind = (HealthKind)i;
            return TRUE;
        }
    }
    return FALSE;
}

/* Of a card that this host does not have: for the check of its group. */
#define NO_ADDRESS "0000:00:00.0"

/* @entries: of GpuEntry, so far. */
typedef struct {
    HostRoot *root;
    GPtrArray *entries;
} Load;

static void entry_free(GpuEntry *entry)
{
    g_free(entry->name);
    g_free(entry->pool);
    g_free(entry->pressure_command);
    g_free(entry);
}

G_DEFINE_AUTOPTR_CLEANUP_FUNC(GpuEntry, entry_free)

const char *gpu_policy_name(GpuPolicy policy)
{
    return policy_names[policy];
}

const char *gpu_mode_name(GpuMode mode)
{
    return mode_names[mode];
}

gboolean gpu_mode_parse(const char *name, GpuMode *mode)
{
    for (guint i = 0; i < G_N_ELEMENTS(mode_names); i++) {
        if (g_str_equal(mode_names[i], name)) {
            *mode = (GpuMode)i;
            return TRUE;
        }
    }
    return FALSE;
}

static gboolean read_mode(const ConfGroup *group, GpuEntry *entry, GError **error)
{
    g_autoptr(GError) cause = NULL;
    g_autofree char *text = conf_string(group, "mode", &cause);

    if (cause) {
        g_propagate_error(error, g_steal_pointer(&cause));
        return FALSE;
    }
    if (!text || !gpu_mode_parse(text, &entry->mode)) {
        conf_bad_value(
            group, "mode", text ? text : "",
            "host (left alone), shared (cut into vGPUs), passthrough (whole, for one VM) "
            "or partitioned (SR-IOV)",
            error);
        return FALSE;
    }
    if (gpu_name_is_soft(entry->name) && entry->mode > GPU_MODE_SHARED) {
        conf_bad_value(group, "mode", text,
                       "host or shared: a GPU without hardware can't be passed through or "
                       "partitioned",
                       error);
        return FALSE;
    }
    return TRUE;
}

/* Not g_ascii_strtod() alone: "inf", "0x2" and "1e1" are not intended numbers. */
static gboolean overcommit_parse(const char *text, gdouble *value)
{
    *value = g_ascii_strtod(text, NULL);
    return g_regex_match_simple("^[0-9]+(\\.[0-9]+)?$", text, G_REGEX_DOLLAR_ENDONLY, 0) &&
           *value >= 1 && *value <= OVERCOMMIT_MAX;
}

/* "observed", up to OBSERVED_MAX times; "observed,2": up to twice. */
static gboolean observed_parse(const char *text, gdouble *value)
{
    *value = OBSERVED_MAX;
    return g_str_equal(text, OBSERVED) || (g_str_has_prefix(text, OBSERVED ",") &&
                                           overcommit_parse(text + strlen(OBSERVED ","), value));
}

static gboolean read_overcommit(const ConfGroup *group, GpuEntry *entry, GError **error)
{
    g_autoptr(GError) cause = NULL;
    g_autofree char *text = conf_string(group, "overcommit", &cause);

    entry->overcommit = 1;
    if (cause) {
        g_propagate_error(error, g_steal_pointer(&cause));
        return FALSE;
    }
    if (!text || overcommit_parse(text, &entry->overcommit))
        return TRUE;
    entry->observed = observed_parse(text, &entry->overcommit);
    if (entry->observed)
        return TRUE;
    conf_bad_value(group, "overcommit", text, OVERCOMMIT_RULE, error);
    return FALSE;
}

static gboolean read_water_mark(const ConfGroup *group, GpuEntry *entry, GError **error)
{
    g_autoptr(GError) cause = NULL;
    g_autofree char *text = conf_string(group, "water-mark", &cause);

    if (cause) {
        g_propagate_error(error, g_steal_pointer(&cause));
        return FALSE;
    }
    if (!text || amount_parse(text, &entry->water_mark))
        return TRUE;
    conf_bad_value(group, "water-mark", text, AMOUNT_RULE, error);
    return FALSE;
}

static gboolean read_policy(const ConfGroup *group, GpuEntry *entry, GError **error)
{
    g_autoptr(GError) cause = NULL;
    g_autofree char *text = conf_string(group, "policy", &cause);

    if (cause) {
        g_propagate_error(error, g_steal_pointer(&cause));
        return FALSE;
    }
    for (guint i = 0; text && i < G_N_ELEMENTS(policy_names); i++) {
        if (!g_str_equal(text, policy_names[i]))
            continue;
        entry->policy = (GpuPolicy)i;
        return TRUE;
    }
    if (text)
        conf_bad_value(group, "policy", text, "shares, best-effort, equal or fixed", error);
    return !text;
}

static gboolean read_command(const ConfGroup *group, GpuEntry *entry, GError **error)
{
    g_autoptr(GError) cause = NULL;

    entry->pressure_command = conf_string(group, "pressure-command", &cause);
    if (cause) {
        g_propagate_error(error, g_steal_pointer(&cause));
        return FALSE;
    }
    if (!entry->pressure_command || entry->pressure_command[0] == '/')
        return TRUE;
    conf_bad_value(group, "pressure-command", entry->pressure_command,
                   "a command line that begins with a full path", error);
    return FALSE;
}

gboolean gpu_pool_valid(const char *name)
{
    static const char *const pools[] = {GPU_POOL_LOCAL, "slurm", "kubernetes", NULL};

    return g_strv_contains(pools, name);
}

static gboolean read_pool(const ConfGroup *group, GpuEntry *entry, GError **error)
{
    g_autoptr(GError) cause = NULL;

    entry->pool = conf_string(group, "pool", &cause);
    if (cause) {
        g_propagate_error(error, g_steal_pointer(&cause));
        return FALSE;
    }
    if (!entry->pool || gpu_pool_valid(entry->pool))
        return TRUE;
    conf_bad_value(group, "pool", entry->pool, GPU_POOL_RULE, error);
    return FALSE;
}

static gboolean read_health_ignore(const ConfGroup *group, GpuEntry *entry, GError **error)
{
    g_autoptr(GError) cause = NULL;
    g_autofree char *text = conf_string(group, "health-ignore", &cause);
    g_auto(GStrv) words = text ? g_strsplit_set(text, " \t,", -1) : NULL;

    if (cause) {
        g_propagate_error(error, g_steal_pointer(&cause));
        return FALSE;
    }
    for (guint i = 0; words && words[i]; i++) {
        HealthKind kind;

        if (words[i][0] && !health_kind_parse(words[i], &kind)) {
            g_autofree char *all = g_strjoinv(", ", (char **)health_names);

            conf_bad_value(group, "health-ignore", words[i], all, error);
            return FALSE;
        }
        if (words[i][0])
            entry->health_ignore |= 1u << kind;
    }
    return TRUE;
}

static gboolean read_vram(const ConfGroup *group, GpuEntry *entry, GError **error)
{
    g_autoptr(GError) cause = NULL;
    g_autofree char *text = conf_string(group, "vram", &cause);

    if (cause) {
        g_propagate_error(error, g_steal_pointer(&cause));
        return FALSE;
    }
    if (text && !size_parse(text, &entry->vram_bytes)) {
        conf_bad_value(group, "vram", text, SIZE_RULE, error);
        return FALSE;
    }
    if (!text && gpu_name_is_soft(entry->name)) {
        g_set_error(error, REGISTRAR_ERROR, REGISTRAR_ERROR_CONFIG,
                    "%s: [%s]: vram= is missing; a GPU without hardware can't be asked for its "
                    "memory, so it must be %s",
                    group->file, group->group, SIZE_RULE);
        return FALSE;
    }
    return TRUE;
}

/* A new entry that combines both files, of the GPU called @name. */
static GpuEntry *read_entry(const ConfGroup *group, const char *name, GError **error)
{
    g_autoptr(GpuEntry) entry = g_new0(GpuEntry, 1);

    if (!gpu_name_valid(name)) {
        g_set_error(error, REGISTRAR_ERROR, REGISTRAR_ERROR_CONFIG,
                    "%s: [%s]: \"%s\" can't be the name of a GPU: it must be %s", group->file,
                    group->group, name, GPU_NAME_RULE);
        return NULL;
    }
    entry->name = g_strdup(name);
    entry->overcommit = 1;
    if (!read_mode(group, entry, error) ||
        !conf_number(group, "partitions", 1, PARTITIONS_MAX, 0, &entry->partitions, error))
        return NULL;
    return g_steal_pointer(&entry);
}

static gboolean add_state(const ConfGroup *group, gpointer load, GError **error)
{
    GpuEntry *entry = read_entry(group, group->name, error);

    if (entry)
        g_ptr_array_add(((const Load *)load)->entries, entry);
    return entry != NULL;
}

static gboolean add_named(const ConfGroup *group, const char *name, GPtrArray *entries,
                          GError **error)
{
    g_autoptr(GpuEntry) entry = read_entry(group, name, error);

    if (!entry || !read_vram(group, entry, error) || !read_overcommit(group, entry, error) ||
        !read_policy(group, entry, error) || !read_water_mark(group, entry, error) ||
        !read_command(group, entry, error) || !read_pool(group, entry, error) ||
        !read_health_ignore(group, entry, error))
        return FALSE;
    if (gpus_find(entries, name)) {
        g_set_error(error, REGISTRAR_ERROR, REGISTRAR_ERROR_CONFIG,
                    "%s: [%s]: this GPU, %s, has another group, too; put both into one",
                    group->file, group->group, name);
        return FALSE;
    }
    g_ptr_array_add(entries, g_steal_pointer(&entry));
    return TRUE;
}

/* What is declared of a card that this host does not have is checked, and left out. */
static gboolean add_conf(const ConfGroup *group, gpointer data, GError **error)
{
    const Load *load = data;
    g_autoptr(GPtrArray) absent = g_ptr_array_new_with_free_func((GDestroyNotify)entry_free);
    g_autofree char *address = NULL;

    if (!g_str_has_prefix(group->name, CARD_PREFIX))
        return add_named(group, group->name, load->entries, error);
    address = card_find(load->root, group->name + strlen(CARD_PREFIX));
    return add_named(group, address ? address : NO_ADDRESS, address ? load->entries : absent,
                     error);
}

static GPtrArray *load_file(HostRoot *root, const char *path, const char *const *keys,
                            ConfGroupFunc add, GError **error)
{
    g_autoptr(GPtrArray) entries = g_ptr_array_new_with_free_func((GDestroyNotify)entry_free);
    Load load = {root, entries};

    if (root_has(root, path) && !conf_foreach(root, path, "gpu", keys, add, &load, error))
        return NULL;
    return g_steal_pointer(&entries);
}

GPtrArray *gpus_load_conf(HostRoot *root, GError **error)
{
    return load_file(root, GPUS_CONF, conf_keys, add_conf, error);
}

GPtrArray *gpus_load_state(HostRoot *root, GError **error)
{
    return load_file(root, GPUS_STATE, state_keys, add_state, error);
}

GpuEntry *gpus_find(const GPtrArray *entries, const char *name)
{
    for (guint i = 0; i < entries->len; i++) {
        GpuEntry *entry = g_ptr_array_index(entries, i);

        if (g_str_equal(entry->name, name))
            return entry;
    }
    return NULL;
}

static GpuEntry *copy_state(const GpuEntry *state)
{
    GpuEntry *entry = g_memdup2(state, sizeof(*state));

    entry->name = g_strdup(state->name);
    return entry;
}

GPtrArray *gpus_load(HostRoot *root, GError **error)
{
    g_autoptr(GPtrArray) entries = gpus_load_conf(root, error);
    g_autoptr(GPtrArray) states = entries ? gpus_load_state(root, error) : NULL;

    if (!states)
        return NULL;
    for (guint i = 0; i < states->len; i++) {
        const GpuEntry *state = g_ptr_array_index(states, i);
        GpuEntry *entry = gpus_find(entries, state->name);

        if (entry) {
            entry->mode = state->mode;
            entry->partitions = state->partitions;
        } else if (!gpu_name_is_soft(state->name)) {
            /*
             * A soft GPU is defined by its vram=, so it does not exist without an entry in
             * GPUS_CONF.
             */
            g_ptr_array_add(entries, copy_state(state));
        }
    }
    return g_steal_pointer(&entries);
}

/* GPUs that are shared without the kernel module mdev_vgpu. */

#define SHARED_DIR "/run/vgpu/shared"

static char *path_of(const char *gpu)
{
    return g_build_filename(SHARED_DIR, gpu, NULL);
}

gboolean containers_only_is(HostRoot *root, const char *gpu)
{
    g_autofree char *path = path_of(gpu);

    return root_has(root, path);
}

gboolean containers_only_set(HostRoot *root, const char *gpu, GError **error)
{
    g_autofree char *path = path_of(gpu);

    return root_mkdir(root, SHARED_DIR, 0755, error) && root_write(root, path, "", 0644, error);
}

void containers_only_clear(HostRoot *root, const char *gpu)
{
    g_autofree char *path = path_of(gpu);

    root_remove(root, path);
}
