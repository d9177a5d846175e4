/* SPDX-License-Identifier: MIT */
/*
 * The CUDA door in a container's image, by the hook as a program, in a mount namespace of the
 * test's own. Images are made by friends and by enemies.
 */
#include <errno.h>
#include <glib/gstdio.h>
#include <sched.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/file_tree.h"

#if defined(__aarch64__)
#define LIBS "/usr/lib/aarch64-linux-gnu"
#else
#define LIBS "/usr/lib/x86_64-linux-gnu"
#endif
#define DOOR  "/usr/lib/mdev-vgpu"
#define CUDA  LIBS "/libcuda.so.1"
#define ML    LIBS "/libnvidia-ml.so.1"
#define STATE "{\"id\":\"web\",\"pid\":7,\"bundle\":\"%s\"}"

/* Without what the image's environment and other devices may add. */
#define PLAIN ""

/**
 * Container
 * @tree: the folder with its config.json, and the image as "image"
 * @bundle, @image: their paths
 */
typedef struct {
    HostRoot *tree;
    char *bundle;
    char *image;
} Container;

static void put(const Container *c, const char *path, const char *text)
{
    g_autofree char *inside = g_strconcat("/image", path, NULL);

    file_tree_write(c->tree, inside, text);
}

static void put_link(const Container *c, const char *path, const char *target)
{
    g_autofree char *inside = g_strconcat("/image", path, NULL);

    file_tree_link(c->tree, inside, target);
}

/* What CDI's mounts have put there when the hook runs. */
static void put_mounted(const Container *c)
{
    put(c, DOOR "/cuda/libcuda.so.1", "door");
    put(c, DOOR "/cuda/libnvidia-ml.so.1", "door's NVML");
    put(c, DOOR "/real/libcuda.so.1", "driver");
    put(c, DOOR "/real/libnvidia-ml.so.1", "driver's NVML");
    put(c, DOOR "/real/libnvidia-ptxjitcompiler.so.1", "compiler");
}

static Container container_empty(void)
{
    Container c = {.tree = file_tree_new()};

    c.bundle = root_path(c.tree, "", NULL);
    c.image = root_path(c.tree, "image", NULL);
    return c;
}

static Container container_without_folder(void)
{
    Container c = container_empty();

    put_mounted(&c);
    return c;
}

static Container container_new(void)
{
    Container c = container_without_folder();

    put(&c, LIBS "/libc.so.6", "libc");
    return c;
}

static void container_free(Container *c)
{
    /* All that the test has mounted in it, the last one first. */
    while (umount2(c->image, MNT_DETACH) == 0)
        ;
    file_tree_free(c->tree);
    g_free(c->bundle);
    g_free(c->image);
}

#define MOUNT(source, destination)                                                                 \
    "{\"source\":\"" source "\",\"destination\":\"" destination "\",\"options\":[\"bind\"]}"

static void put_config(const Container *c, const char *environment, const char *mount)
{
    g_autofree char *text = g_strdup_printf(
        "{\"root\":{\"path\":\"image\"},\"process\":{\"env\":[\"PATH=/bin\"%s]},\"mounts\":["
        "{\"destination\":\"/proc\"}," MOUNT(
            LIBS "/libcuda.so.570.1",
            DOOR "/real/libcuda.so.1") "," MOUNT(LIBS "/libnvidia-ptxjitcompiler.so.570.1",
                                                 DOOR "/real/libnvidia-ptxjitcompiler.so.1") "%s]}",
        environment, mount);

    file_tree_write(c->tree, "/config.json", text);
}

/* Its status; @said: what it said. */
static int run_verb(const Container *c, const char *verb, const char *state, char **said)
{
    g_autofree char *line = NULL;
    const char *argv[] = {"sh", "-c", NULL, NULL};
    g_autoptr(GError) error = NULL;
    int status = -1;

    file_tree_write(c->tree, "/state.json", state);
    line = g_strdup_printf(CONTAINER_HOOK " %s " DOOR " <%s/state.json", verb, c->bundle);
    argv[2] = line;
    g_spawn_sync(NULL, (char **)argv, NULL, G_SPAWN_SEARCH_PATH, NULL, NULL, NULL, said, &status,
                 &error);
    g_assert_no_error(error);
    g_test_message("%d: %s", status, *said);
    return status;
}

static int run_hook(const Container *c, const char *state, char **said)
{
    return run_verb(c, "cuda", state, said);
}

static void put_door(const Container *c, const char *environment, const char *mount)
{
    g_autofree char *state = g_strdup_printf(STATE, c->bundle);
    g_autofree char *said = NULL;

    put_config(c, environment, mount);
    g_assert_cmpint(run_hook(c, state, &said), ==, 0);
    g_assert_cmpstr(said, ==, "");
}

static void assert_refused(const Container *c, const char *environment, const char *mount,
                           const char *words)
{
    g_autofree char *state = g_strdup_printf(STATE, c->bundle);
    g_autofree char *said = NULL;

    put_config(c, environment, mount);
    g_assert_cmpint(run_hook(c, state, &said), !=, 0);
    g_assert_nonnull(strstr(said, "cannot put the CUDA door " DOOR " into the container: "));
    g_assert_nonnull(strstr(said, words));
}

static void assert_file(const char *dir, const char *path, const char *expected)
{
    g_autofree char *full = g_strconcat(dir, path, NULL);
    g_autofree char *text = NULL;

    g_file_get_contents(full, &text, NULL, NULL);
    g_assert_cmpstr(text, ==, expected);
}

static void assert_link(const Container *c, const char *path, const char *expected)
{
    g_autofree char *full = g_strconcat(c->image, path, NULL);
    g_autofree char *target = g_file_read_link(full, NULL);

    g_assert_cmpstr(target, ==, expected);
}

static guint mounts_in(const Container *c)
{
    g_autofree char *text = NULL;
    guint count = 0;

    g_assert_true(g_file_get_contents("/proc/self/mountinfo", &text, NULL, NULL));
    for (const char *at = text; (at = strstr(at, c->image)); at++)
        count++;
    return count;
}

static void bind_to(const Container *c, const char *source, const char *path, unsigned long flags)
{
    g_autofree char *target = g_strconcat(c->image, path, NULL);

    g_mkdir_with_parents(target, 0755);
    g_assert_cmpint(mount(source, target, NULL, MS_BIND, NULL), ==, 0);
    if (flags)
        g_assert_cmpint(mount(NULL, target, NULL, MS_REMOUNT | MS_BIND | flags, NULL), ==, 0);
}

static void unbind(const Container *c, const char *path)
{
    g_autofree char *target = g_strconcat(c->image, path, NULL);

    g_assert_cmpint(umount2(target, MNT_DETACH), ==, 0);
}

/* An image that knows nothing of CUDA. */
static void test_plain(void)
{
    Container c = container_new();

    for (guint i = 0; i < 2; i++) {
        put_door(&c, PLAIN, PLAIN);
        assert_link(&c, CUDA, DOOR "/cuda/libcuda.so.1");
        assert_link(&c, LIBS "/libcuda.so", DOOR "/cuda/libcuda.so.1");
        assert_link(&c, ML, DOOR "/cuda/libnvidia-ml.so.1");
        assert_link(&c, LIBS "/libcuda.so.570.1", DOOR "/cuda/libcuda.so.1");
        assert_link(&c, LIBS "/libnvidia-ptxjitcompiler.so.1",
                    DOOR "/real/libnvidia-ptxjitcompiler.so.1");
        assert_link(&c, LIBS "/libnvidia-ptxjitcompiler.so.570.1",
                    DOOR "/real/libnvidia-ptxjitcompiler.so.1");
        g_assert_cmpuint(mounts_in(&c), ==, 0);
    }
    container_free(&c);
}

/* libgbm finds NVIDIA's backend by the kernel driver's name. */
static void test_gbm(void)
{
    static const char mount[] =
        "," MOUNT(LIBS "/libnvidia-allocator.so.570.1", DOOR "/real/libnvidia-allocator.so.1");
    Container c = container_new();

    put(&c, DOOR "/real/libnvidia-allocator.so.1", "allocator");
    put_door(&c, PLAIN, mount);
    assert_link(&c, LIBS "/libnvidia-allocator.so.1", DOOR "/real/libnvidia-allocator.so.1");
    assert_link(&c, LIBS "/gbm/nvidia-drm_gbm.so", NULL);
    put(&c, LIBS "/libgbm.so.1", "libgbm");
    put_door(&c, PLAIN, PLAIN);
    assert_link(&c, LIBS "/gbm/nvidia-drm_gbm.so", NULL);
    for (guint i = 0; i < 2; i++) {
        put_door(&c, PLAIN, mount);
        assert_link(&c, LIBS "/gbm/nvidia-drm_gbm.so", DOOR "/real/libnvidia-allocator.so.1");
    }
    container_free(&c);
}

/* Fedora's folder; the one for 32-bit programs gets nothing. */
static void test_other_folder(void)
{
    Container c = container_without_folder();

    put(&c, "/usr/lib64/libc.so.6", "libc");
    put_door(&c, PLAIN, PLAIN);
    assert_link(&c, "/usr/lib64/libcuda.so.1", DOOR "/cuda/libcuda.so.1");
    assert_link(&c, "/usr/lib/libcuda.so.1", NULL);
    container_free(&c);
}

/* Wherever an image has a libcuda that its loader would find, it is the door. */
static void test_own_library(void)
{
    static const char cache[] = "glibc-ld.so.cache1.1\0\1\0\0\0\0\0\0\0libcuda.so.1\0"
                                "/opt/cached/libcuda.so.1\0other/libcuda.so.1";
    Container c = container_new();
    g_autofree char *path = g_strconcat(c.image, "/etc/ld.so.cache", NULL);

    put(&c, "/etc/hostname", "");
    g_assert_true(g_file_set_contents(path, cache, sizeof(cache), NULL));
    put(&c, LIBS "/libcuda.so.535.1", "the image's");
    put_link(&c, CUDA, "libcuda.so.535.1");
    put(&c, "/usr/local/cuda-12.4/compat/libcuda.so.1", "the image's");
    put_link(&c, "/usr/local/cuda", "/usr/local/cuda-12.4");
    put(&c, "/opt/ours/libcuda.so.1", "the image's");
    put(&c, "/opt/ours/libnvidia-ml.so.1", "the image's");
    put(&c, "/opt/cached/libcuda.so.1", "the image's");
    put(&c, "/opt/unseen/libcuda.so.1", "the image's");
    for (guint i = 0; i < 2; i++) {
        put_door(&c, ",\"LD_LIBRARY_PATH=/nowhere\",\"LD_LIBRARY_PATH=:/none:/opt/ours\"", PLAIN);
        assert_file(c.image, CUDA, "door");
        assert_file(c.image, LIBS "/libcuda.so.535.1", "door");
        assert_file(c.image, "/usr/local/cuda-12.4/compat/libcuda.so.1", "door");
        assert_file(c.image, "/opt/ours/libcuda.so.1", "door");
        assert_file(c.image, "/opt/ours/libnvidia-ml.so.1", "door's NVML");
        assert_file(c.image, "/opt/cached/libcuda.so.1", "door");
        /* What no loader looks for. */
        assert_file(c.image, "/opt/unseen/libcuda.so.1", "the image's");
        /* Each is covered once. */
        g_assert_cmpuint(mounts_in(&c), ==, 5);
    }
    unbind(&c, "/opt/ours/libcuda.so.1");
    assert_file(c.image, "/opt/ours/libcuda.so.1", "the image's");
    for (const char *const *at =
             (const char *const[]){"/usr/local/cuda-12.4/compat/libcuda.so.1",
                                   "/opt/ours/libnvidia-ml.so.1", "/opt/cached/libcuda.so.1",
                                   LIBS "/libcuda.so.535.1", NULL};
         *at; at++)
        unbind(&c, *at);
    container_free(&c);
}

#define MOST_FOLDERS 1024u

/* What "ldconfig -p", with the image as its root, says of libraries called @name. */
static char *listed(const Container *c, const char *name)
{
    g_autofree char *cache = g_strconcat(c->image, "/etc/ld.so.cache", NULL);
    g_autofree char *command = g_strdup_printf("ldconfig -p -C %s | grep -F '%s '", cache, name);
    const char *argv[] = {"sh", "-c", command, NULL};
    g_autoptr(GError) error = NULL;
    char *said = NULL;

    g_spawn_sync("/", (char **)argv, NULL, G_SPAWN_SEARCH_PATH, NULL, NULL, &said, NULL, NULL,
                 &error);
    g_assert_no_error(error);
    return said;
}

static void assert_listed(const Container *c, const char *name, const char *path)
{
    g_autofree char *said = listed(c, name);
    g_autofree char *line =
        g_strdup_printf("\t%s (libc6,%s) => %s\n", name,
                        g_str_has_prefix(LIBS, "/usr/lib/x86") ? "x86-64" : "AArch64", path);

    g_assert_cmpstr(said, ==, line);
}

/* The build machine's own cache, in both formats that glibc has had. */
static void put_cache(const Container *c, const char *format)
{
    g_autofree char *command = g_strdup_printf(
        "mkdir -p %s/etc && ldconfig -c %s -X -C %s/etc/ld.so.cache", c->image, format, c->image);

    g_assert_cmpint(system(command), ==, 0);
}

/* Triton asks "ldconfig -p" where libcuda is. */
static void test_cache(void)
{
    static const char *const formats[] = {"new", "compat"};

    for (guint i = 0; i < G_N_ELEMENTS(formats); i++) {
        Container c = container_new();
        g_autofree char *cache = g_strconcat(c.image, "/etc/ld.so.cache", NULL);
        g_autofree char *before = NULL, *after = NULL, *again = NULL;
        g_autofree char *libc = NULL, *libc_after = NULL;
        gsize size = 0, size_again = 0;
        GStatBuf found;

        put_cache(&c, formats[i]);
        before = listed(&c, "libcuda.so.1");
        g_assert_cmpstr(before, ==, "");
        libc = listed(&c, "libc.so.6");
        g_assert_cmpstr(libc, !=, "");
        put_door(&c, PLAIN, PLAIN);
        assert_listed(&c, "libcuda.so.1", CUDA);
        assert_listed(&c, "libcuda.so", LIBS "/libcuda.so");
        assert_listed(&c, "libnvidia-ml.so.1", ML);
        assert_listed(&c, "libnvidia-ptxjitcompiler.so.1", LIBS "/libnvidia-ptxjitcompiler.so.1");
        libc_after = listed(&c, "libc.so.6");
        g_assert_cmpstr(libc_after, ==, libc);
        g_assert_cmpint(g_stat(cache, &found), ==, 0);
        g_assert_cmpint(found.st_mode & 07777, ==, 0644);
        /* Once is enough. */
        g_assert_true(g_file_get_contents(cache, &after, &size, NULL));
        put_door(&c, PLAIN, PLAIN);
        g_assert_true(g_file_get_contents(cache, &again, &size_again, NULL));
        g_assert_cmpmem(after, size, again, size_again);
        container_free(&c);
    }
}

/* The loader searches by halves: each library must be where its name belongs. */
static void test_cache_order(void)
{
    Container c = container_new();
    g_autofree char *command = NULL;

    put_cache(&c, "new");
    put_door(&c, PLAIN, PLAIN);
    /* Over the machine's own, in this mount namespace. */
    command = g_strdup_printf(
        "mount --bind %s/etc/ld.so.cache /etc/ld.so.cache || exit 1; for n in libcuda.so.1 "
        "libnvidia-ptxjitcompiler.so.1 libc.so.6; do LD_DEBUG=libs LD_PRELOAD=$n /bin/true 2>&1 | "
        "grep -A3 \"find library=$n\" | grep -A1 'search cache=' | grep -q \"trying file=.*/$n\" "
        "|| "
        "s=1; done; umount /etc/ld.so.cache; exit $s",
        c.image);
    g_assert_cmpint(system(command), ==, 0);
    container_free(&c);
}

/* A cache that is none, or a damaged one, stays as it is, and the container starts. */
static void test_damaged_cache(void)
{
    static const char header[] = "glibc-ld.so.cache1.1";
    static const guint32 numbers[][4] = {
        /* count, size of texts, flags, extension */
        {0xffffffffu, 0, 0, 0}, {2, 0, 0, 0}, {0, 0, 0, 0xfffffff0u}, {0, 0, 0, 48}, {1, 0, 0, 0},
    };

    for (guint i = 0; i < G_N_ELEMENTS(numbers); i++) {
        Container c = container_new();
        g_autofree char *path = g_strconcat(c.image, "/etc/ld.so.cache", NULL);
        g_autofree char *text = NULL;
        guint8 bytes[48 + 24] = {0};
        gsize size = 0;

        memcpy(bytes, header, strlen(header));
        memcpy(bytes + strlen(header), numbers[i], sizeof(numbers[i]));
        /* An entry whose name is behind the end. */
        memset(bytes + 48, 0xff, i == 4 ? 24 : 0);
        put(&c, "/etc/hostname", "");
        g_assert_true(g_file_set_contents(path, (char *)bytes, sizeof(bytes), NULL));
        put_door(&c, PLAIN, PLAIN);
        g_assert_true(g_file_get_contents(path, &text, &size, NULL));
        g_assert_cmpmem(text, size, bytes, sizeof(bytes));
        assert_link(&c, CUDA, DOOR "/cuda/libcuda.so.1");
        container_free(&c);
    }
}

/* An image cannot have the host look in any number of folders. */
static void test_many_folders(void)
{
    Container c = container_new();
    g_autoptr(GString) path = g_string_new(",\"LD_LIBRARY_PATH=");

    put(&c, "/opt/ours/libcuda.so.1", "the image's");
    put(&c, "/opt/late/libcuda.so.1", "the image's");
    for (guint i = 1; i < MOST_FOLDERS; i++)
        g_string_append(path, "/none:");
    g_string_append(path, "/opt/ours:/opt/late\"");
    put_door(&c, path->str, PLAIN);
    assert_file(c.image, "/opt/ours/libcuda.so.1", "door");
    assert_file(c.image, "/opt/late/libcuda.so.1", "the image's");
    unbind(&c, "/opt/ours/libcuda.so.1");
    container_free(&c);
}

/* NVIDIA's own images name a folder that their first program makes: a link to this one. */
static void test_compat_of_nvidia(void)
{
#define COMPAT "/usr/local/cuda-12.4/compat"
    Container c = container_new();

    put(&c, COMPAT "/lib.real/libcuda.so.550.1", "the image's");
    put_link(&c, COMPAT "/lib.real/libcuda.so.1", "libcuda.so.550.1");
    put(&c, COMPAT "/lib.real/libnvidia-ptxjitcompiler.so.550.1", "the image's");
    put_link(&c, COMPAT "/lib.real/libnvidia-ptxjitcompiler.so.1",
             "libnvidia-ptxjitcompiler.so.550.1");
    put(&c, COMPAT "/lib.real/libnvidia-nvvm.so.4", "the image's");
    put(&c, COMPAT "/lib.real/libcudart.so.12", "the image's");
    put_link(&c, COMPAT "/again", ".");
    put_link(&c, "/usr/local/cuda", "cuda-12.4");
    for (guint i = 0; i < 2; i++) {
        put_door(&c, ",\"LD_LIBRARY_PATH=/usr/local/cuda/compat/lib\"", PLAIN);
        g_assert_cmpuint(mounts_in(&c), ==, 2);
    }
    put_link(&c, COMPAT "/lib", "lib.real");
    assert_file(c.image, COMPAT "/lib/libcuda.so.1", "door");
    assert_file(c.image, COMPAT "/lib/libcuda.so.550.1", "door");
    /* Of one driver with the door's. */
    assert_file(c.image, COMPAT "/lib/libnvidia-ptxjitcompiler.so.1", "compiler");
    /* Which the host's driver lacks, and which is no driver's. */
    assert_file(c.image, COMPAT "/lib/libnvidia-nvvm.so.4", "the image's");
    assert_file(c.image, COMPAT "/lib/libcudart.so.12", "the image's");
    unbind(&c, COMPAT "/lib.real/libcuda.so.550.1");
    unbind(&c, COMPAT "/lib.real/libnvidia-ptxjitcompiler.so.550.1");
    container_free(&c);
#undef COMPAT
}

#define ENVIRONMENT ",\"CONDA_PREFIX=/srv/env\",\"HOME=/home/me\",\"JULIA_DEPOT_PATH=/srv/depot:\""

/* What conda links when an environment is activated, and what Julia opens by its path. */
static void test_other_compat(void)
{
    static const char *const covered[] = {
        "/opt/conda/cuda-compat/libcuda.so.1",
        "/opt/conda/envs/ml/cuda-compat/libcuda.so.1",
        "/srv/env/lib/libcuda.so.550.1",
        "/root/.julia/artifacts/4ac9/lib/libcuda.so.1",
        "/home/me/.julia/artifacts/4ac9/lib/libcuda.so.1",
        "/srv/depot/artifacts/4ac9/lib/libcuda.so",
        "/opt/nvidia/hpc_sdk/Linux_x86_64/24.7/cuda/12.5/compat/libcuda.so.1",
    };
    Container c = container_new();

    for (guint i = 0; i < G_N_ELEMENTS(covered); i++)
        put(&c, covered[i], "the image's");
    put(&c, "/srv/other/lib/libcuda.so.1", "the image's");
    put_door(&c, ENVIRONMENT, PLAIN);
    for (guint i = 0; i < G_N_ELEMENTS(covered); i++) {
        assert_file(c.image, covered[i], "door");
        unbind(&c, covered[i]);
    }
    assert_file(c.image, "/srv/other/lib/libcuda.so.1", "the image's");
    container_free(&c);
}

/* A driver in the image's own folder is not mixed with the host's. */
static void test_own_driver(void)
{
    Container c = container_new();

    put(&c, LIBS "/libcuda.so.1", "the image's");
    put(&c, LIBS "/libnvidia-ptxjitcompiler.so.1", "the image's");
    put_door(&c, PLAIN, PLAIN);
    assert_file(c.image, CUDA, "door");
    assert_file(c.image, LIBS "/libnvidia-ptxjitcompiler.so.1", "compiler");
    unbind(&c, CUDA);
    unbind(&c, LIBS "/libnvidia-ptxjitcompiler.so.1");
    container_free(&c);
}

/* What a link or an empty file of an earlier container with a GPU left in a committed image. */
static void test_left_behind(void)
{
    Container c = container_new();

    put_link(&c, CUDA, "libcuda.so.535.1");
    put(&c, ML, "");
    put_door(&c, PLAIN, PLAIN);
    assert_link(&c, CUDA, DOOR "/cuda/libcuda.so.1");
    assert_file(c.image, ML, "door's NVML");
    unbind(&c, ML);
    container_free(&c);
}

/* Links out of the image lead to its own root, and the host's files stay as they are. */
static void test_links_out(void)
{
    Container c = container_new();
    g_autofree char *outside = g_build_filename(c.bundle, "outside", NULL);
    g_autofree char *library = g_build_filename(outside, "libcuda.so.1", NULL);
    g_autoptr(GDir) dir = NULL;

    put(&c, "/usr/lib/libc.so.6", "libc");
    file_tree_write(c.tree, "/outside/libcuda.so.1", "the host's");
    put_link(&c, CUDA, library);
    put_link(&c, ML, "../../../../outside/libcuda.so.1");
    put_link(&c, "/usr/lib64", outside);
    put_link(&c, "/usr/local", outside);
    put_link(&c, "/etc/ld.so.cache", library);
    put_door(&c, PLAIN, PLAIN);
    assert_link(&c, CUDA, DOOR "/cuda/libcuda.so.1");
    assert_link(&c, ML, DOOR "/cuda/libnvidia-ml.so.1");
    assert_file(c.bundle, "/outside/libcuda.so.1", "the host's");
    dir = g_dir_open(outside, 0, NULL);
    g_assert_cmpstr(g_dir_read_name(dir), ==, "libcuda.so.1");
    g_assert_null(g_dir_read_name(dir));
    container_free(&c);
}

/* /proc/PID/root of the image's own /proc is the host's root when the hook runs. */
static void test_links_through_proc(void)
{
    Container c = container_new();
    g_autofree char *host = g_build_filename(c.bundle, "outside", NULL);
    g_autofree char *through = g_strconcat("/proc/self/root", host, NULL);
    g_autofree char *library = g_build_filename(through, "libcuda.so.1", NULL);

    file_tree_write(c.tree, "/outside/libcuda.so.1", "the host's");
    bind_to(&c, "/proc", "/proc", 0);
    put_link(&c, CUDA, library);
    assert_refused(&c, PLAIN, PLAIN, "through /proc");
    g_assert_cmpuint(mounts_in(&c), ==, 1);
    assert_file(c.bundle, "/outside/libcuda.so.1", "the host's");
    unbind(&c, "/proc");
    container_free(&c);

    c = container_without_folder();
    g_free(g_steal_pointer(&through));
    through = g_strconcat("/proc/self/root", c.bundle, NULL);
    bind_to(&c, "/proc", "/proc", 0);
    put_link(&c, LIBS, through);
    assert_refused(&c, PLAIN, PLAIN, "through /proc");
    unbind(&c, "/proc");
    container_free(&c);
}

/* A folder of the host that the user has given the container: nothing is written to it. */
static void test_volume(void)
{
    for (guint i = 0; i < 2; i++) {
        Container c = container_without_folder();
        g_autofree char *volume = g_build_filename(c.bundle, "volume", NULL);
        g_autoptr(GDir) dir = NULL;

        g_assert_cmpint(g_mkdir(volume, 0755), ==, 0);
        bind_to(&c, volume, "/data", i ? MS_RDONLY : 0);
        put_link(&c, LIBS, "/data");
        assert_refused(&c, PLAIN, PLAIN, "on a volume");
        dir = g_dir_open(volume, 0, NULL);
        g_assert_null(g_dir_read_name(dir));
        unbind(&c, "/data");
        container_free(&c);
    }
}

/* The image's libraries are on a volume: its loader finds ours by its cache. */
static void test_volume_and_cache(void)
{
    Container c = container_without_folder();
    g_autofree char *volume = g_build_filename(c.bundle, "volume", NULL);
    g_autofree char *state = g_strdup_printf(STATE, c.bundle);
    g_autofree char *said = NULL;

    file_tree_write(c.tree, "/volume/libc.so.6", "libc");
    file_tree_write(c.tree, "/volume/libcuda.so.1", "theirs");
    bind_to(&c, volume, LIBS, MS_RDONLY);
    put_cache(&c, "new");
    put_door(&c, PLAIN, PLAIN);
    assert_listed(&c, "libcuda.so.1", DOOR "/cuda/libcuda.so.1");
    assert_listed(&c, "libnvidia-ml.so.1", DOOR "/cuda/libnvidia-ml.so.1");
    assert_listed(&c, "libnvidia-ptxjitcompiler.so.1", DOOR "/real/libnvidia-ptxjitcompiler.so.1");
    assert_file(c.image, CUDA, "door");
    assert_file(volume, "/libcuda.so.1", "theirs");
    unbind(&c, CUDA);
    g_free(g_steal_pointer(&said));
    put(&c, DOOR "/guest/libcuda.so.1", "ours");
    put_cache(&c, "new");
    file_tree_write(c.tree, "/config.json",
                    "{\"root\":{\"path\":\"image\"},\"process\":{\"env\":[]},\"mounts\":[]}");
    g_assert_cmpint(run_verb(&c, "cuda-remote", state, &said), ==, 0);
    assert_listed(&c, "libcuda.so.1", DOOR "/guest/libcuda.so.1");
    unbind(&c, CUDA);
    unbind(&c, LIBS);
    container_free(&c);
}

static int run_mounts(const Container *c, const char *mounts, char **said)
{
    g_autofree char *state = g_strdup_printf(STATE, c->bundle);
    g_autofree char *line = g_strdup_printf(CONTAINER_HOOK " mounts <%s/state.json", c->bundle);
    g_autofree char *config = g_strdup_printf(
        "{\"root\":{\"path\":\"image\"},\"process\":{\"env\":[]},\"mounts\":[%s]}", mounts);
    const char *argv[] = {"sh", "-c", line, NULL};
    g_autoptr(GError) error = NULL;
    int status = -1;

    file_tree_write(c->tree, "/state.json", state);
    file_tree_write(c->tree, "/config.json", config);
    g_spawn_sync(NULL, (char **)argv, NULL, G_SPAWN_SEARCH_PATH, NULL, NULL, NULL, said, &status,
                 &error);
    g_assert_no_error(error);
    g_test_message("%d: %s", status, *said);
    return status;
}

static void put_tmpfs(const Container *c, const char *path, unsigned long flags)
{
    g_autofree char *target = g_strconcat(c->image, path, NULL);

    g_mkdir_with_parents(target, 0755);
    g_assert_cmpint(mount("tmpfs", target, "tmpfs", flags, NULL), ==, 0);
}

/* docker run --tmpfs /run. */
static void test_covered_mounts(void)
{
    Container c = container_new();
    g_autofree char *slice = g_build_filename(c.bundle, "slice", NULL);
    g_autofree char *file = g_build_filename(c.bundle, "sock", NULL);
    g_autofree char *mounts = g_strdup_printf(
        "{\"source\":\"%s\",\"destination\":\"/run/vgpu/slices/gpu/a\"},"
        "{\"source\":\"%s\",\"destination\":\"/run/vgpu/cuda.sock\"},"
        "{\"source\":\"/nowhere\",\"destination\":\"/data\"},{\"destination\":\"/run\"}",
        slice, file);
    g_autofree char *said = NULL;
    guint before;

    file_tree_write(c.tree, "/slice/governor.sock", "arbiter's");
    file_tree_write(c.tree, "/sock", "guard's");
    put(&c, "/run/vgpu/cuda.sock", "");
    put_tmpfs(&c, "/run", 0);
    g_assert_cmpint(run_mounts(&c, mounts, &said), ==, 0);
    g_assert_cmpstr(said, ==, "");
    assert_file(c.image, "/run/vgpu/slices/gpu/a/governor.sock", "arbiter's");
    assert_file(c.image, "/run/vgpu/cuda.sock", "guard's");
    /* Those that are there stay as they are. */
    before = mounts_in(&c);
    g_free(g_steal_pointer(&said));
    g_assert_cmpint(run_mounts(&c, mounts, &said), ==, 0);
    g_assert_cmpint(mounts_in(&c), ==, before);
    unbind(&c, "/run/vgpu/cuda.sock");
    unbind(&c, "/run/vgpu/slices/gpu/a");
    unbind(&c, "/run");
    put_tmpfs(&c, "/run", MS_RDONLY);
    g_free(g_steal_pointer(&said));
    g_assert_cmpint(run_mounts(&c, mounts, &said), !=, 0);
    g_assert_nonnull(strstr(said, "is covered by what the container has mounted on /run; mount "
                                  "nothing there: cannot make /run/vgpu/"));
    g_assert_nonnull(strstr(said, "Read-only file system"));
    unbind(&c, "/run");
    container_free(&c);
}

/* podman run --read-only. */
static void test_read_only(void)
{
    Container c = container_new();

    put(&c, "/opt/ours/libcuda.so.1", "the image's");
    g_assert_cmpint(mount(c.image, c.image, NULL, MS_BIND, NULL), ==, 0);
    g_assert_cmpint(mount(NULL, c.image, NULL, MS_REMOUNT | MS_BIND | MS_RDONLY, NULL), ==, 0);
    put_door(&c, ",\"LD_LIBRARY_PATH=/opt/ours\"", PLAIN);
    assert_link(&c, CUDA, DOOR "/cuda/libcuda.so.1");
    assert_file(c.image, "/opt/ours/libcuda.so.1", "door");
    /* It is as read-only as before. */
    g_assert_cmpint(access(c.image, W_OK), ==, -1);
    g_assert_cmpint(errno, ==, EROFS);
    unbind(&c, "/opt/ours/libcuda.so.1");
    container_free(&c);
}

/* A file system that nobody can write to. */
static void test_read_only_below(void)
{
    Container c = container_empty();

    g_assert_cmpint(g_mkdir(c.image, 0755), ==, 0);
    g_assert_cmpint(mount("image", c.image, "tmpfs", 0, NULL), ==, 0);
    put_mounted(&c);
    put(&c, LIBS "/libc.so.6", "libc");
    g_assert_cmpint(mount(NULL, c.image, NULL, MS_REMOUNT | MS_RDONLY, NULL), ==, 0);
    assert_refused(&c, PLAIN, PLAIN, "libcuda.so.1: Read-only file system");
    container_free(&c);
}

/* NVIDIA's own device beside ours: which library wins is not defined. */
static void test_other_device(void)
{
    Container c = container_new();

    assert_refused(&c, PLAIN,
                   "," MOUNT("/usr/lib64/libcuda.so.570.1", "/usr/lib64/libcuda.so.570.1"),
                   "nvidia.com/gpu");
    assert_link(&c, CUDA, NULL);
    container_free(&c);
}

/* NVIDIA's hook runs before ours and mounts its libraries, of which config.json knows nothing. */
static void test_mounted_by_hook(void)
{
    static const char *const libraries[] = {CUDA, LIBS "/libcuda.so.570.1", ML};
    Container c = container_new();
    g_autofree char *driver = g_build_filename(c.bundle, "driver", NULL);

    file_tree_write(c.tree, "/driver", "the driver's");
    for (guint i = 0; i < G_N_ELEMENTS(libraries); i++) {
        g_autofree char *target = g_strconcat(c.image, libraries[i], NULL);

        put(&c, libraries[i], "");
        g_assert_cmpint(mount(driver, target, NULL, MS_BIND, NULL), ==, 0);
    }
    put_door(&c, PLAIN, PLAIN);
    assert_file(c.image, CUDA, "door");
    assert_file(c.image, ML, "door's NVML");
    for (guint i = 0; i < G_N_ELEMENTS(libraries); i++)
        while (TRUE) {
            g_autofree char *target = g_strconcat(c.image, libraries[i], NULL);

            if (umount2(target, MNT_DETACH) < 0)
                break;
        }
    container_free(&c);
}

/* A library that is no file, and a container without the door. */
static void test_unexpected(void)
{
    Container c = container_new();
    g_autofree char *path = g_strconcat(c.image, CUDA, NULL);
    g_autofree char *door = g_strconcat(c.image, DOOR "/real/libcuda.so.1", NULL);

    g_assert_cmpint(g_mkdir(path, 0755), ==, 0);
    assert_refused(&c, PLAIN, PLAIN, "is not a file");
    g_assert_cmpint(g_rmdir(path), ==, 0);
    g_assert_cmpint(mkfifo(path, 0644), ==, 0);
    assert_refused(&c, PLAIN, PLAIN, "is not a file");
    g_assert_cmpint(g_unlink(path), ==, 0);
    g_assert_cmpint(symlink("libcuda.so.1", path), ==, 0);
    assert_refused(&c, PLAIN, PLAIN, "in circles");
    g_assert_cmpint(g_unlink(path), ==, 0);
    g_assert_cmpint(g_unlink(door), ==, 0);
    assert_refused(&c, PLAIN, PLAIN, "has no file " DOOR "/real/libcuda.so.1");
    container_free(&c);

    c = container_without_folder();
    g_free(g_steal_pointer(&path));
    path = g_strconcat(c.image, "/usr/lib", NULL);
    put_door(&c, PLAIN, PLAIN);
    assert_link(&c, "/usr/lib/libcuda.so.1", DOOR "/cuda/libcuda.so.1");
    container_free(&c);
}

/* What a runtime that is none may say. */
static void test_states(void)
{
    static const char *const states[] = {
        "{\"id\":\"web\",\"pid\":7}",
        "{\"id\":\"web\",\"pid\":7,\"bundle\":\"relative\"}",
        "{\"id\":\"web\",\"pid\":7,\"bundle\":\"/nowhere\"}",
        "{\"id\":\"web\",\"pid\":7,\"bundle\":7}",
        "{}",
        "",
    };
    static const char *const configs[] = {
        "",
        "{",
        "[]",
        "{\"root\":7}",
        "{\"root\":{}}",
        "{\"root\":{\"path\":\"nowhere\"},\"mounts\":7,\"process\":[]}",
        "{\"root\":{\"path\":\"nowhere\"},\"mounts\":[7,{}],\"process\":{\"env\":[7,{}]}}",
    };
    Container c = container_new();
    g_autofree char *good = g_strdup_printf(STATE, c.bundle);

    put_config(&c, PLAIN, PLAIN);
    for (guint i = 0; i < G_N_ELEMENTS(states); i++) {
        g_autofree char *said = NULL;

        g_assert_cmpint(run_hook(&c, states[i], &said), !=, 0);
        g_assert_nonnull(strstr(said, "cannot put the CUDA door"));
    }
    for (guint i = 0; i < G_N_ELEMENTS(configs); i++) {
        g_autofree char *said = NULL;

        file_tree_write(c.tree, "/config.json", configs[i]);
        g_assert_cmpint(run_hook(&c, good, &said), !=, 0);
        g_assert_nonnull(strstr(said, "cannot put the CUDA door"));
    }
    assert_link(&c, CUDA, NULL);
    container_free(&c);
}

/* For a container without a node: our one library, and nothing of a driver. */
static void test_remote(void)
{
    Container c = container_empty();
    g_autofree char *state = g_strdup_printf(STATE, c.bundle);
    g_autofree char *said = NULL;

    put(&c, DOOR "/guest/libcuda.so.1", "ours");
    put(&c, LIBS "/libc.so.6", "libc");
    put(&c, "/usr/local/cuda/compat/libcuda.so.1", "theirs");
    put(&c, LIBS "/libnvidia-ml.so.1", "theirs");
    file_tree_write(c.tree, "/config.json",
                    "{\"root\":{\"path\":\"image\"},\"process\":{\"env\":[]},\"mounts\":[]}");
    g_assert_cmpint(run_verb(&c, "cuda-remote", state, &said), ==, 0);
    g_assert_cmpstr(said, ==, "");
    assert_link(&c, CUDA, DOOR "/guest/libcuda.so.1");
    assert_link(&c, LIBS "/libcuda.so", DOOR "/guest/libcuda.so.1");
    assert_file(c.image, "/usr/local/cuda/compat/libcuda.so.1", "ours");
    assert_file(c.image, LIBS "/libnvidia-ml.so.1", "theirs");
    container_free(&c);
}

/* One that also has a driver without a limit is refused; one with the native door keeps that. */
static void test_remote_beside_others(void)
{
    Container c = container_empty();
    g_autofree char *state = g_strdup_printf(STATE, c.bundle);
    g_autofree char *said = NULL;

    put(&c, DOOR "/guest/libcuda.so.1", "ours");
    put(&c, LIBS "/libc.so.6", "libc");
    put_config(&c, PLAIN, "," MOUNT("/a/libcuda.so.1", LIBS "/libcuda.so.1"));
    g_assert_cmpint(run_verb(&c, "cuda-remote", state, &said), !=, 0);
    g_assert_nonnull(strstr(said, "also given NVIDIA's driver"));
    g_free(g_steal_pointer(&said));
    put_config(&c, PLAIN, "," MOUNT(DOOR "/cuda/libcuda.so.1", DOOR "/cuda/libcuda.so.1"));
    g_assert_cmpint(run_verb(&c, "cuda-remote", state, &said), ==, 0);
    assert_link(&c, CUDA, NULL);
    container_free(&c);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_assert_cmpint(unshare(CLONE_NEWNS), ==, 0);
    g_assert_cmpint(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), ==, 0);
    g_test_add_func("/container-cuda/plain", test_plain);
    g_test_add_func("/container-cuda/gbm", test_gbm);
    g_test_add_func("/container-cuda/other-folder", test_other_folder);
    g_test_add_func("/container-cuda/own-library", test_own_library);
    g_test_add_func("/container-cuda/cache", test_cache);
    g_test_add_func("/container-cuda/cache-order", test_cache_order);
    g_test_add_func("/container-cuda/damaged-cache", test_damaged_cache);
    g_test_add_func("/container-cuda/many-folders", test_many_folders);
    g_test_add_func("/container-cuda/compat-of-nvidia", test_compat_of_nvidia);
    g_test_add_func("/container-cuda/other-compat", test_other_compat);
    g_test_add_func("/container-cuda/own-driver", test_own_driver);
    g_test_add_func("/container-cuda/left-behind", test_left_behind);
    g_test_add_func("/container-cuda/links-out", test_links_out);
    g_test_add_func("/container-cuda/links-through-proc", test_links_through_proc);
    g_test_add_func("/container-cuda/volume", test_volume);
    g_test_add_func("/container-cuda/volume-and-cache", test_volume_and_cache);
    g_test_add_func("/container-cuda/covered-mounts", test_covered_mounts);
    g_test_add_func("/container-cuda/read-only", test_read_only);
    g_test_add_func("/container-cuda/read-only-below", test_read_only_below);
    g_test_add_func("/container-cuda/other-device", test_other_device);
    g_test_add_func("/container-cuda/mounted-by-hook", test_mounted_by_hook);
    g_test_add_func("/container-cuda/unexpected", test_unexpected);
    g_test_add_func("/container-cuda/states", test_states);
    g_test_add_func("/container-cuda/remote", test_remote);
    g_test_add_func("/container-cuda/remote-beside-others", test_remote_beside_others);
    return g_test_run();
}
