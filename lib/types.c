/* SPDX-License-Identifier: MIT */
#include "lib/types.h"

#include <fnmatch.h>
#include <linux/vgpu.h>
#include <string.h>

#include "lib/conf.h"
#include "lib/nvidia_readings.h"

#define DEFAULT_WINDOW (256 * MIB)
/* All that a program of CUDA's shares with the GPU is in the window. */
#define CUDA_WINDOW   (4 * 1024 * MIB)
#define MIN_WINDOW    MIB
#define WINDOW_MAX    (64 * 1024 * MIB)
#define WINDOW_RULE   "a power of two from 1M to 64G"
#define WEIGHT_MAX    10000
#define CAP_MAX       100
#define PRIORITY_MAX  15
#define COMPUTE_MAX   100
#define INFINITY_WORD "infinity"

static const char *const type_dirs[] = {"/etc/vgpu/types.d", "/usr/local/lib/vgpu/types.d",
                                        "/usr/lib/vgpu/types.d", NULL};
static const char *const type_keys[] = {"description", "vram",     "window",        "weight",
                                        "cap",         "priority", "max-instances", "gpu",
                                        "class",       "compute",  "oversubscribe", "cpu",
                                        "memory",      "display",  "cuda",          NULL};
static const char *const classes[] = {"guaranteed", "burstable", "best-effort", NULL};

static void type_free(GpuType *type)
{
    g_free(type->name);
    g_free(type->description);
    g_free(type->file);
    g_free(type->class);
    g_strfreev(type->gpus);
    g_free(type);
}

G_DEFINE_AUTOPTR_CLEANUP_FUNC(GpuType, type_free)

G_STATIC_ASSERT(VGPU_TYPE_DESC_LEN == 128); /* the error message below says so */

/* The driver's limit; it becomes a directory's name. */
static gboolean name_valid(const char *name)
{
    if (!g_ascii_islower(name[0]) && !g_ascii_isdigit(name[0]))
        return FALSE;
    return strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_.-") == strlen(name) &&
           strlen(name) < VGPU_TYPE_NAME_LEN;
}

/* Printable ASCII only: the kernel shows it unchanged. */
static gboolean description_valid(const char *text)
{
    for (const char *c = text; *c; c++) {
        if (!g_ascii_isprint(*c))
            return FALSE;
    }
    return strlen(text) < VGPU_TYPE_DESC_LEN;
}

static gboolean read_description(const ConfGroup *group, GpuType *type, GError **error)
{
    g_autoptr(GError) cause = NULL;

    type->description = conf_string(group, "description", &cause);
    if (cause) {
        g_propagate_error(error, g_steal_pointer(&cause));
        return FALSE;
    }
    if (!type->description)
        type->description = g_strdup("");
    if (description_valid(type->description))
        return TRUE;
    conf_bad_value(group, "description", type->description,
                   "up to 127 characters of printable ASCII", error);
    return FALSE;
}

static gboolean read_vram(const ConfGroup *group, GpuType *type, GError **error)
{
    g_autoptr(GError) cause = NULL;
    g_autofree char *text = conf_string(group, "vram", &cause);

    if (cause) {
        g_propagate_error(error, g_steal_pointer(&cause));
        return FALSE;
    }
    if (!text) {
        g_set_error(error, REGISTRAR_ERROR, REGISTRAR_ERROR_CONFIG,
                    "%s: [%s]: vram= is missing; it must be %s", group->file, group->group,
                    AMOUNT_RULE);
        return FALSE;
    }
    if (amount_parse(text, &type->vram))
        return TRUE;
    conf_bad_value(group, "vram", text, AMOUNT_RULE, error);
    return FALSE;
}

/* Empty: nothing. */
static gboolean read_oversubscribe(const ConfGroup *group, GpuType *type, GError **error)
{
    g_autoptr(GError) cause = NULL;
    g_autofree char *text = conf_string(group, "oversubscribe", &cause);

    if (cause) {
        g_propagate_error(error, g_steal_pointer(&cause));
        return FALSE;
    }
    if (!text || g_str_equal(text, "0") || amount_parse(text, &type->oversubscribe))
        return TRUE;
    conf_bad_value(group, "oversubscribe", text,
                   SIZE_RULE ", or a part of vram from 1/1024 to 1/1, such as 1/4, or 0", error);
    return FALSE;
}

static gboolean read_window(const ConfGroup *group, GpuType *type, GError **error)
{
    g_autoptr(GError) cause = NULL;
    g_autofree char *text = conf_string(group, "window", &cause);
    guint64 bytes;

    if (cause) {
        g_propagate_error(error, g_steal_pointer(&cause));
        return FALSE;
    }
    if (!text)
        return TRUE;
    if (!size_parse(text, &bytes) || bytes < MIN_WINDOW || bytes > WINDOW_MAX ||
        (bytes & (bytes - 1))) {
        conf_bad_value(group, "window", text, WINDOW_RULE, error);
        return FALSE;
    }
    type->window_bytes = bytes;
    return TRUE;
}

static gboolean read_cuda(const ConfGroup *group, GpuType *type, GError **error)
{
    g_autoptr(GError) cause = NULL;
    g_autofree char *text = conf_string(group, "cuda", &cause);

    if (cause) {
        g_propagate_error(error, g_steal_pointer(&cause));
        return FALSE;
    }
    if (!text)
        return TRUE;
    type->cuda = g_str_equal(text, "yes") ? TYPE_CUDA_YES : TYPE_CUDA_NO;
    if (type->cuda == TYPE_CUDA_YES || g_str_equal(text, "no"))
        return TRUE;
    conf_bad_value(group, "cuda", text, "yes or no", error);
    return FALSE;
}

static gboolean read_gpus(const ConfGroup *group, GpuType *type, GError **error)
{
    g_autoptr(GError) cause = NULL;
    g_autofree char *text = conf_string(group, "gpu", &cause);
    g_autoptr(GStrvBuilder) patterns = g_strv_builder_new();
    g_auto(GStrv) words = NULL;

    if (cause) {
        g_propagate_error(error, g_steal_pointer(&cause));
        return FALSE;
    }
    if (!text)
        return TRUE;
    words = g_strsplit_set(text, " ,;", -1);
    for (guint i = 0; words[i]; i++) {
        if (words[i][0])
            g_strv_builder_add(patterns, words[i]);
    }
    type->gpus = g_strv_builder_end(patterns);
    if (type->gpus[0])
        return TRUE;
    conf_bad_value(group, "gpu", text,
                   "a list of patterns for PCI addresses (0000:01:*) or vendor:device ids (1002:*)",
                   error);
    return FALSE;
}

/* How firm the promise is; for the host agent, not for the driver. */
static gboolean read_class(const ConfGroup *group, GpuType *type, GError **error)
{
    g_autoptr(GError) cause = NULL;

    type->class = conf_string(group, "class", &cause);
    if (cause) {
        g_propagate_error(error, g_steal_pointer(&cause));
        return FALSE;
    }
    if (!type->class)
        type->class = g_strdup(classes[0]);
    if (g_strv_contains(classes, type->class))
        return TRUE;
    conf_bad_value(group, "class", type->class, "guaranteed, burstable or best-effort", error);
    return FALSE;
}

/* Of the engine's processes; for the host agent. */
static gboolean read_cpu(const ConfGroup *group, GpuType *type, GError **error)
{
    g_autoptr(GError) cause = NULL;
    g_autofree char *text = conf_string(group, "cpu", &cause);

    if (cause) {
        g_propagate_error(error, g_steal_pointer(&cause));
        return FALSE;
    }
    if (!text || cpu_parse(text, &type->cpu))
        return TRUE;
    conf_bad_value(group, "cpu", text, CPU_RULE, error);
    return FALSE;
}

/* The same. */
static gboolean read_memory(const ConfGroup *group, GpuType *type, GError **error)
{
    g_autoptr(GError) cause = NULL;
    g_autofree char *text = conf_string(group, "memory", &cause);

    if (cause) {
        g_propagate_error(error, g_steal_pointer(&cause));
        return FALSE;
    }
    if (text && g_str_equal(text, INFINITY_WORD))
        type->memory = TYPE_MEMORY_INFINITY;
    if (!text || type->memory || size_parse(text, &type->memory))
        return TRUE;
    conf_bad_value(group, "memory", text, SIZE_RULE ", or " INFINITY_WORD, error);
    return FALSE;
}

static gboolean read_type(const ConfGroup *group, GpuType *type, GError **error)
{
    if (!name_valid(group->name)) {
        g_set_error(error, REGISTRAR_ERROR, REGISTRAR_ERROR_CONFIG,
                    "%s: [%s]: \"%s\" can't be the name of a type: up to %d of a-z 0-9 _ . - are, "
                    "with a letter or digit first",
                    group->file, group->group, group->name, VGPU_TYPE_NAME_LEN - 1);
        return FALSE;
    }
    type->name = g_strdup(group->name);
    type->file = g_strdup(group->file);
    return read_description(group, type, error) && read_vram(group, type, error) &&
           read_window(group, type, error) && read_cuda(group, type, error) &&
           read_gpus(group, type, error) &&
           conf_number(group, "weight", 1, WEIGHT_MAX, 100, &type->weight, error) &&
           conf_number(group, "cap", 1, CAP_MAX, 100, &type->cap, error) &&
           conf_number(group, "priority", 0, PRIORITY_MAX, 0, &type->priority, error) &&
           conf_number(group, "display", 0, VGPU_MAX_SCANOUTS, 0, &type->display, error) &&
           conf_number(group, "max-instances", 0, G_MAXINT, 0, &type->max_instances, error) &&
           read_class(group, type, error) &&
           conf_number(group, "compute", 1, COMPUTE_MAX, 0, &type->compute, error) &&
           read_oversubscribe(group, type, error) && read_cpu(group, type, error) &&
           read_memory(group, type, error);
}

static gboolean add_type(const ConfGroup *group, gpointer data, GError **error)
{
    g_autoptr(GpuType) type = g_new0(GpuType, 1);
    GPtrArray *types = data;

    if (!read_type(group, type, error))
        return FALSE;
    for (guint i = 0; i < types->len; i++) {
        const GpuType *other = g_ptr_array_index(types, i);

        if (g_str_equal(other->name, type->name)) {
            g_set_error(error, REGISTRAR_ERROR, REGISTRAR_ERROR_CONFIG,
                        "%s: [%s]: the type is in %s too; names are unique", group->file,
                        group->group, other->file);
            return FALSE;
        }
    }
    g_ptr_array_add(types, g_steal_pointer(&type));
    return TRUE;
}

GPtrArray *types_load(HostRoot *root, GError **error)
{
    g_autoptr(GPtrArray) types = g_ptr_array_new_with_free_func((GDestroyNotify)type_free);
    g_autoptr(GPtrArray) files = conf_list(root, type_dirs, error);

    if (!files)
        return NULL;
    for (guint i = 0; i < files->len; i++) {
        if (!conf_foreach(root, g_ptr_array_index(files, i), "type", type_keys, add_type, types,
                          error))
            return NULL;
    }
    return g_steal_pointer(&types);
}

gboolean type_has_cuda(const GpuType *type, const char *driver)
{
    return type->cuda != TYPE_CUDA_NO && g_strcmp0(driver, NVIDIA_DRIVER) == 0;
}

guint64 type_window(const GpuType *type, const char *driver)
{
    if (type->window_bytes)
        return type->window_bytes;
    return type_has_cuda(type, driver) ? CUDA_WINDOW : DEFAULT_WINDOW;
}

gboolean type_matches(const GpuType *type, const char *name, const char *ids)
{
    if (!type->gpus)
        return TRUE;
    for (guint i = 0; type->gpus[i]; i++) {
        if (!fnmatch(type->gpus[i], name, FNM_CASEFOLD))
            return TRUE;
        if (ids && !fnmatch(type->gpus[i], ids, FNM_CASEFOLD))
            return TRUE;
    }
    return FALSE;
}
