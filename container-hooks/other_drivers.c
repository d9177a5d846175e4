/* SPDX-License-Identifier: MIT */
#include "container-hooks/other_drivers.h"

#include <string.h>

#include "container-hooks/in_root.h"

/* Names that are looked at in all: a start must not take seconds, whatever the image has. */
#define NAMES_MAX 100000
/* Of folders in a folder; NVIDIA's images have compat/lib.real. */
#define DEPTH 4

/**
 * Search
 * @left: of NAMES_MAX
 * @found: of texts
 */
typedef struct {
    int root;
    guint left;
    GPtrArray *found;
} Search;

static const char *const conda_prefixes[] = {
    "/opt/conda",
    "/opt/miniconda3",
    "/opt/miniforge3",
    "/opt/mambaforge",
    "/opt/anaconda3",
    "/root/miniconda3",
    "/root/miniforge3",
    "/root/anaconda3",
    /* Of condacolab, and others that install into the system. */
    "/usr/local",
};

/* To be freed. A folder that cannot be read costs, too. */
static GPtrArray *list_folder(Search *search, const char *folder)
{
    GPtrArray *names = search->left ? in_root_list(search->root, folder, search->left) : NULL;
    guint cost = names && names->len ? names->len : 1;

    search->left -= MIN(search->left, cost);
    return names ? names : g_ptr_array_new();
}

static gboolean is_library(const char *name)
{
    return g_str_has_prefix(name, "lib") && strstr(name, ".so");
}

static void look_in(Search *search, const char *folder, guint depth)
{
    g_autoptr(GPtrArray) names = list_folder(search, folder);

    for (guint i = 0; i < names->len; i++) {
        const char *name = g_ptr_array_index(names, i);
        g_autofree char *path = g_build_filename(folder, name, NULL);

        if (is_library(name))
            g_ptr_array_add(search->found, g_steal_pointer(&path));
        else if (depth)
            look_in(search, path, depth - 1);
    }
}

/* @rest: names below @folder, in which * stands for any characters; up to NULL. */
static void look_below(Search *search, const char *folder, char **rest, guint depth)
{
    g_autoptr(GPtrArray) names = NULL;

    if (!*rest) {
        look_in(search, folder, depth);
        return;
    }
    if (!strchr(*rest, '*')) {
        g_autofree char *path = g_build_filename(folder, *rest, NULL);

        look_below(search, path, rest + 1, depth);
        return;
    }
    names = list_folder(search, folder);
    for (guint i = 0; i < names->len; i++) {
        const char *name = g_ptr_array_index(names, i);
        g_autofree char *path = g_build_filename(folder, name, NULL);

        if (g_pattern_match_simple(*rest, name))
            look_below(search, path, rest + 1, depth);
    }
}

/* @pattern: below @folder. */
static void search_folder(Search *search, const char *folder, const char *pattern, guint depth)
{
    g_auto(GStrv) rest = g_strsplit(pattern, "/", -1);

    if (g_path_is_absolute(folder))
        look_below(search, folder, rest, depth);
}

/* When an environment is activated, what is in cuda-compat is linked into lib. */
static void look_in_conda(Search *search, const char *prefix)
{
    search_folder(search, prefix, "cuda-compat", DEPTH);
    search_folder(search, prefix, "envs/*/cuda-compat", DEPTH);
    search_folder(search, prefix, "lib", 0);
    search_folder(search, prefix, "envs/*/lib", 0);
}

/* A depot has packages' files in folders that are named by their hash. */
static void look_in_julia(Search *search, const Bundle *bundle)
{
    g_auto(GStrv) depots = g_strsplit(bundle_variable(bundle, "JULIA_DEPOT_PATH"), ":", -1);

    search_folder(search, "/root", ".julia/artifacts/*/lib", 0);
    search_folder(search, bundle_variable(bundle, "HOME"), ".julia/artifacts/*/lib", 0);
    for (guint i = 0; depots[i]; i++)
        search_folder(search, depots[i], "artifacts/*/lib", 0);
}

GPtrArray *other_drivers_find(int root, const Bundle *bundle)
{
    Search search = {
        .root = root, .left = NAMES_MAX, .found = g_ptr_array_new_with_free_func(g_free)};

    search_folder(&search, "/usr/local", "cuda*/compat", DEPTH);
    search_folder(&search, "/opt/nvidia/hpc_sdk", "*/*/cuda/*/compat", DEPTH);
    look_in_conda(&search, bundle_variable(bundle, "CONDA_PREFIX"));
    look_in_conda(&search, bundle_variable(bundle, "MAMBA_ROOT_PREFIX"));
    for (guint i = 0; i < G_N_ELEMENTS(conda_prefixes); i++)
        look_in_conda(&search, conda_prefixes[i]);
    look_in_julia(&search, bundle);
    return search.found;
}
