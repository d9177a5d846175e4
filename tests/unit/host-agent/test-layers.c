/* SPDX-License-Identifier: MIT */
/*
 * The order of the folders: a file includes headers of its own folder, and of folders that its own
 * may use, by their whole path. The host's root is a handle everywhere. Run in the repository's
 * root.
 */
#include <glib.h>
#include <string.h>

/* A folder that is not listed here belongs to the nearest listed one above it. */
typedef struct {
    const char *folder;
    const char *uses[9]; /* up to NULL */
} Layer;

#define LIB   "lib"
#define MODEL "host-agent/model"
#define STORE "host-agent/store"
#define METER "host-agent/meter"
#define D     "host-agent/daemon/"

static const Layer layers[] = {
    {LIB, {NULL}},
    {"mdev-driver/registrar", {LIB}},
    {"qemu-hooks", {LIB}},
    {"container-hooks", {LIB}},
    {"mdevctl-plugins", {LIB, MODEL}},
    {MODEL, {LIB}},
    {STORE, {LIB, MODEL}},
    {"host-agent/doctor", {LIB}},
    {"host-agent/vgpuctl", {LIB, MODEL, "host-agent/doctor"}},
    {"host-agent/daemon", {LIB, MODEL, STORE}},
    {METER, {LIB, MODEL, STORE}},
};

/* What another program has in common with vgpud: it reads files. */
static const char *const common[] = {
    D "engines/",
    D "slices/offers.h",
    D "containers/claim_process.h",
    D "containers/transport.h",
};

static gboolean is_common(const char *include)
{
    for (gsize i = 0; i < G_N_ELEMENTS(common); i++)
        if (g_str_has_prefix(include, common[i]))
            return TRUE;
    return FALSE;
}

/* Programs and tests that are linked with lib/, besides those of the layers. */
static const char *const others[] = {
    "tests/page",
    "tests/fuzz/agent",
    "tests/unit/container-hooks",
    "tests/unit/host-agent",
    "tests/unit/mdevctl-plugins",
    "tests/unit/qemu-hooks",
    "tests/unit/registrar",
};

/* In the daemon each may use the earlier ones. */
static const char *const rooms[] = {
    D "engines",    D "host", D "operations", D "modes",   D "slices",
    D "containers", D "sync", D "methods",    D "domains", D "metering",
};

static gboolean is_below(const char *path, const char *folder)
{
    gsize length = strlen(folder);

    return g_str_has_prefix(path, folder) && path[length] == '/';
}

static const Layer *layer_of(const char *path)
{
    for (gsize i = 0; i < G_N_ELEMENTS(layers); i++)
        if (is_below(path, layers[i].folder))
            return &layers[i];
    return NULL;
}

/* The daemon's own files, outside of its folders, may use all of them, like the last one. */
static gsize room_of(const char *path)
{
    gsize i = 0;

    while (i < G_N_ELEMENTS(rooms) && !is_below(path, rooms[i]))
        i++;
    return i;
}

static gboolean may_use(const char *path, const char *include)
{
    const Layer *from = layer_of(path), *to = layer_of(include);

    if (!to)
        return FALSE;
    if (from != to)
        return g_strv_contains(from->uses, to->folder) ||
               (is_below(path, METER) && is_common(include));
    return !is_below(path, "host-agent/daemon") || room_of(include) <= room_of(path);
}

/* SQL is in one folder. */
static void look_for_words(const char *path, const char *line)
{
    if (!is_below(path, STORE) &&
        (strstr(line, "db_run(") || strstr(line, "db_each(") || strstr(line, "db_list(") ||
         strstr(line, "db_texts(") || strstr(line, "db_number(")))
        g_error("%s has SQL, which belongs into " STORE, path);
}

/* The host's files are reached through a handle. */
static gboolean has_bare_root(const char *line)
{
    return g_regex_match_simple("char \\*root\\b", line, 0, 0);
}

static void look_at_line(const char *path, const char *line)
{
    g_auto(GStrv) parts = NULL;

    if (has_bare_root(line))
        g_error("%s has the host's root as a text; it must be a HostRoot (lib/host_root.h)", path);
    /* Tests may do as they like with the rest. */
    if (!layer_of(path))
        return;
    look_for_words(path, line);
    if (!g_str_has_prefix(line, "#include \""))
        return;
    parts = g_strsplit(line, "\"", 3);
    if (g_str_equal(parts[1], "vgpu-host.h")) /* made from the interface on D-Bus */
        return;
    if (!may_use(path, parts[1]))
        g_error("%s may not include \"%s\"", path, parts[1]);
}

static guint look_at_file(const char *path)
{
    g_autofree char *text = NULL;
    g_auto(GStrv) lines = NULL;

    if (!g_str_has_suffix(path, ".c") && !g_str_has_suffix(path, ".h"))
        return 0;
    if (!g_file_get_contents(path, &text, NULL, NULL))
        g_error("%s can't be read", path);
    lines = g_strsplit(text, "\n", -1);
    for (char **line = lines; *line; line++)
        look_at_line(path, *line);
    return 1;
}

/* Files below @path. */
static guint look_below(const char *path)
{
    g_autoptr(GDir) dir = g_dir_open(path, 0, NULL);
    guint files = 0;

    g_assert_nonnull(dir);
    for (const char *name; (name = g_dir_read_name(dir));) {
        g_autofree char *child = g_build_filename(path, name, NULL);

        files += g_file_test(child, G_FILE_TEST_IS_DIR) ? look_below(child) : look_at_file(child);
    }
    return files;
}

static void test_layers(void)
{
    for (gsize i = 0; i < G_N_ELEMENTS(layers); i++)
        g_assert_cmpuint(look_below(layers[i].folder), >, 0);
    for (gsize i = 0; i < G_N_ELEMENTS(others); i++)
        g_assert_cmpuint(look_below(others[i]), >, 0);
}

/* A violation is found. */
static void test_upward(void)
{
    g_assert_false(may_use("lib/pci.c", "host-agent/model/slice.h"));
    g_assert_false(may_use("host-agent/model/slice.c", "host-agent/store/db.h"));
    g_assert_false(may_use("host-agent/vgpuctl/gpu.c", "host-agent/daemon/host/host.h"));
    g_assert_false(may_use(D "host/host.c", D "methods/lists.h"));
    g_assert_false(may_use(D "host/host.c", "host.h"));
    g_assert_true(has_bare_root("Db *db_open(const char "
                                "*root, GError **error)"));
    g_assert_true(has_bare_root("    char "
                                "*root;"));
    g_assert_false(has_bare_root("char *root_path(HostRoot *root, const char *first, ...)"));
    g_assert_false(may_use(D "sync/limits.c", METER "/health_watch.h"));
    g_assert_false(may_use(D "main.c", METER "/health_watch.h"));
    g_assert_false(may_use(D "agent.c", METER "/meter.h"));
    g_assert_false(may_use(METER "/health_watch.c", D "host/host.h"));
    g_assert_true(may_use(METER "/health_watch.c", D "engines/vgpu_states.h"));
    g_assert_true(may_use(D "slices/slices.c", STORE "/db.h"));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/layers/upward", test_upward);
    g_test_add_func("/layers/order", test_layers);
    return g_test_run();
}
