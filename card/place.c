/* SPDX-License-Identifier: MIT */
#include "place.h"

#include <errno.h>
#include <glib/gstdio.h>

#define START_LIMIT_S 60
#define LOOK_MS       10
/* Longer than any measurement. */
#define SERVICE_LIMIT_S 3600
/* A place that takes longer hangs. */
#define PROGRAM_LIMIT_S 120
#define VENUS           "Virtio-GPU Venus"

const char *const place_names[NUM_PLACES] = {"native", "governed", "guarded"};

struct Place {
    const Card *card;
    PlaceKind kind;
    char *root;
    const Slice *slices;
    guint count;
    Program *arbiter;
    Program *guard;
    char *door;
};

static const char *const venus_manifests[] = {
    "/usr/share/vulkan/icd.d/virtio_icd.json", "/usr/share/vulkan/icd.d/virtio_icd.x86_64.json",
    "/etc/vulkan/icd.d/virtio_icd.json", "/etc/vulkan/icd.d/virtio_icd.x86_64.json"};

static const char *venus_manifest(void)
{
    for (guint i = 0; i < G_N_ELEMENTS(venus_manifests); i++) {
        if (g_file_test(venus_manifests[i], G_FILE_TEST_EXISTS))
            return venus_manifests[i];
    }
    return NULL;
}

static char *slice_dir(const Place *place, guint slice)
{
    return g_build_filename(place->root, "run/vgpu/slices", place->slices[slice].name, NULL);
}

static char *slice_socket(const Place *place, guint slice)
{
    g_autofree char *dir = slice_dir(place, slice);

    return g_build_filename(dir, "governor.sock", NULL);
}

static char *conf_dir(const Place *place)
{
    return g_build_filename(place->root, "run/vgpu/governor", place->card->address, NULL);
}

static gboolean make_dir(const char *path, GError **error)
{
    if (g_mkdir_with_parents(path, 0700) == 0)
        return TRUE;
    g_set_error(error, G_IO_ERROR, g_io_error_from_errno(errno), "%s: %s", path, g_strerror(errno));
    return FALSE;
}

static gboolean write_slice(const Place *place, guint slice, const char *slices, GError **error)
{
    g_autofree char *name = g_strconcat(place->slices[slice].name, ".conf", NULL);
    g_autofree char *path = g_build_filename(slices, name, NULL);
    g_autofree char *text = g_strdup_printf("[slice]\n%s\n", place->slices[slice].settings);
    g_autofree char *dir = slice_dir(place, slice);

    return make_dir(dir, error) && g_file_set_contents(path, text, -1, error);
}

static gboolean write_conf(const Place *place, GError **error)
{
    g_autofree char *conf = conf_dir(place);
    g_autofree char *slices = g_build_filename(conf, "slices", NULL);
    g_autofree char *path = g_build_filename(conf, "gpu.conf", NULL);
    g_autofree char *text =
        g_strdup_printf("[gpu]\npolicy=shares\nvram=%" G_GUINT64_FORMAT "\n", place->card->memory);

    if (!make_dir(slices, error) || !g_file_set_contents(path, text, -1, error))
        return FALSE;
    for (guint i = 0; i < place->count; i++) {
        if (!write_slice(place, i, slices, error))
            return FALSE;
    }
    return TRUE;
}

static gboolean wait_for_socket(const char *path, const char *whose, GError **error)
{
    for (guint waited = 0; waited < START_LIMIT_S * 1000; waited += LOOK_MS) {
        if (g_file_test(path, G_FILE_TEST_EXISTS))
            return TRUE;
        g_usleep(LOOK_MS * G_TIME_SPAN_MILLISECOND);
    }
    g_set_error(error, G_IO_ERROR, G_IO_ERROR_TIMED_OUT, "%s made no socket within %d s", whose,
                START_LIMIT_S);
    return FALSE;
}

static gboolean start_arbiter(Place *place, GError **error)
{
    g_autofree char *path = card_tool(place->card, TOOL_ARBITER, error);
    const char *argv[] = {path, "--root", place->root, place->card->address, NULL};
    g_auto(GStrv) env = g_get_environ();
    const ProgramSpec spec = {argv, (const char *const *)env, SERVICE_LIMIT_S,
                              place->card->processor};

    if (!path || !write_conf(place, error))
        return FALSE;
    place->arbiter = program_start(&spec, error);
    for (guint i = 0; place->arbiter && i < place->count; i++) {
        g_autofree char *socket = slice_socket(place, i);

        if (!wait_for_socket(socket, "vgpu-arbiter", error))
            return FALSE;
    }
    return place->arbiter != NULL;
}

/* The layer and the slice that it is for, NAME=VALUE. */
static GStrv layer_environ(const Place *place, guint slice)
{
    g_autoptr(GStrvBuilder) env = g_strv_builder_new();
    g_autofree char *layers = card_layers(place->card);
    g_autofree char *socket = slice_socket(place, slice);

    g_strv_builder_add(env, "VGPU_GOVERNOR=1");
    g_strv_builder_take(env, g_strconcat("VGPU_GOVERNOR_SOCKET=", socket, NULL));
    if (layers)
        g_strv_builder_take(env, g_strconcat("VK_IMPLICIT_LAYER_PATH=", layers, NULL));
    if (place->card->software)
        g_strv_builder_add(env, "LP_NUM_THREADS=0");
    return g_strv_builder_end(env);
}

static void add_guard_env(GPtrArray *argv, char **env)
{
    for (; env && *env; env++)
        g_ptr_array_add(argv, g_strconcat("--setenv=", *env, NULL));
}

static gboolean start_guard(Place *place, GError **error)
{
    g_autoptr(GPtrArray) argv = g_ptr_array_new_with_free_func(g_free);
    g_auto(GStrv) layer = layer_environ(place, 0);
    g_auto(GStrv) env = g_get_environ();
    g_autofree char *path = card_tool(place->card, TOOL_GUARD, error);
    ProgramSpec spec = {NULL, (const char *const *)env, SERVICE_LIMIT_S, place->card->processor};

    if (!path)
        return FALSE;
    if (!venus_manifest()) {
        g_set_error(error, G_IO_ERROR, G_IO_ERROR_NOT_FOUND,
                    "Mesa's Vulkan driver for virtio-gpu is not installed (mesa-vulkan-drivers)");
        return FALSE;
    }
    place->door = g_build_filename(place->root, "vtest.sock", NULL);
    g_ptr_array_add(argv, g_strdup(path));
    g_ptr_array_add(argv, g_strconcat("--gpu=", place->card->address, NULL));
    g_ptr_array_add(argv, g_strconcat("--socket=", place->door, NULL));
    /* There is nobody to exclude. */
    g_ptr_array_add(argv, g_strdup("--no-landlock"));
    add_guard_env(argv, layer);
    add_guard_env(argv, place->card->guard_env);
    g_ptr_array_add(argv, NULL);
    spec.argv = (const char *const *)argv->pdata;
    place->guard = program_start(&spec, error);
    return place->guard && wait_for_socket(place->door, "vgpu-guard", error);
}

Place *place_open(const Card *card, PlaceKind kind, const Slice *slices, guint count,
                  GError **error)
{
    g_autoptr(Place) place = g_new0(Place, 1);

    *place = (Place){.card = card, .kind = kind, .slices = slices, .count = count};
    if (kind == PLACE_NATIVE)
        return g_steal_pointer(&place);
    place->root = g_dir_make_tmp("vgpu-card-XXXXXX", error);
    if (!place->root || !start_arbiter(place, error))
        return NULL;
    if (kind == PLACE_GUARDED && !start_guard(place, error))
        return NULL;
    return g_steal_pointer(&place);
}

/* Files of the arbiter and the guard are removed with them; the rest is ours. */
static void remove_tree(const char *path)
{
    g_autoptr(GDir) dir =
        g_file_test(path, G_FILE_TEST_IS_SYMLINK) ? NULL : g_dir_open(path, 0, NULL);
    const char *name;

    while (dir && (name = g_dir_read_name(dir))) {
        g_autofree char *child = g_build_filename(path, name, NULL);

        remove_tree(child);
    }
    g_remove(path);
}

void place_free(Place *place)
{
    if (!place)
        return;
    program_free(place->guard);
    program_free(place->arbiter);
    if (place->root)
        remove_tree(place->root);
    g_free(place->root);
    g_free(place->door);
    g_free(place);
}

static GStrv with_pairs(GStrv env, char **pairs)
{
    for (; *pairs; pairs++) {
        g_auto(GStrv) pair = g_strsplit(*pairs, "=", 2);

        env = g_environ_setenv(env, pair[0], pair[1], TRUE);
    }
    return env;
}

static GStrv environ_of(const Place *place, guint slice)
{
    GStrv env = g_get_environ();

    if (place->card->software)
        env = g_environ_setenv(env, "LP_NUM_THREADS", "0", TRUE);
    if (place->kind == PLACE_GOVERNED) {
        g_auto(GStrv) layer = layer_environ(place, slice);

        env = with_pairs(env, layer);
    }
    if (place->kind == PLACE_GUARDED) {
        env = g_environ_setenv(env, "VN_DEBUG", "vtest", TRUE);
        env = g_environ_setenv(env, "VTEST_SOCKET_NAME", place->door, TRUE);
        env = g_environ_setenv(env, "VK_DRIVER_FILES", venus_manifest(), TRUE);
    }
    return env;
}

Program *place_start(const Place *place, guint slice, Tool tool, const char *const *args,
                     GError **error)
{
    g_autoptr(GPtrArray) argv = g_ptr_array_new();
    g_auto(GStrv) env = environ_of(place, slice);
    g_autofree char *path = card_tool(place->card, tool, error);
    ProgramSpec spec = {NULL, (const char *const *)env, PROGRAM_LIMIT_S, place->card->processor};

    if (!path)
        return NULL;
    g_ptr_array_add(argv, path);
    g_ptr_array_add(argv, (char *)"--device-name");
    g_ptr_array_add(argv, place->kind == PLACE_GUARDED ? (char *)VENUS : place->card->name);
    for (; *args; args++)
        g_ptr_array_add(argv, (char *)*args);
    g_ptr_array_add(argv, NULL);
    spec.argv = (const char *const *)argv->pdata;
    return program_start(&spec, error);
}

/* The guard knows better why a program behind it was refused. */
static void add_words_of_guard(const Place *place, GError **error)
{
    g_autofree char *words = place->guard ? program_last_words(place->guard) : NULL;

    if (words && error && *error)
        g_prefix_error(error, "%s; ", words);
}

char *place_run(const Place *place, guint slice, Tool tool, const char *const *args, GError **error)
{
    g_autoptr(Program) program = place_start(place, slice, tool, args, error);
    char *text = program ? program_finish(program, error) : NULL;

    if (!text)
        add_words_of_guard(place, error);
    return text;
}
