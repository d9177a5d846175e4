/* SPDX-License-Identifier: MIT */
/* The loader's cache of an image lists the CUDA door. */
#include <glib/gstdio.h>
#include <string.h>
#include <sys/mount.h>

#include "tests/unit/container-hooks/container.h"
#include "tests/unit/file_tree.h"

/* What "ldconfig -p", with the image as its root, says of libraries called @name. */
static char *find_listed(const Container *c, const char *name)
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
    g_autofree char *said = find_listed(c, name);
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
        before = find_listed(&c, "libcuda.so.1");
        g_assert_cmpstr(before, ==, "");
        libc = find_listed(&c, "libc.so.6");
        g_assert_cmpstr(libc, !=, "");
        container_put_door(&c, PLAIN, PLAIN);
        assert_listed(&c, "libcuda.so.1", CUDA);
        assert_listed(&c, "libcuda.so", LIBS "/libcuda.so");
        assert_listed(&c, "libnvidia-ml.so.1", ML);
        assert_listed(&c, "libnvidia-ptxjitcompiler.so.1", LIBS "/libnvidia-ptxjitcompiler.so.1");
        libc_after = find_listed(&c, "libc.so.6");
        g_assert_cmpstr(libc_after, ==, libc);
        g_assert_cmpint(g_stat(cache, &found), ==, 0);
        g_assert_cmpint(found.st_mode & 07777, ==, 0644);
        /* Once is enough. */
        g_assert_true(g_file_get_contents(cache, &after, &size, NULL));
        container_put_door(&c, PLAIN, PLAIN);
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
    container_put_door(&c, PLAIN, PLAIN);
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
        container_put(&c, "/etc/hostname", "");
        g_assert_true(g_file_set_contents(path, (char *)bytes, sizeof(bytes), NULL));
        container_put_door(&c, PLAIN, PLAIN);
        g_assert_true(g_file_get_contents(path, &text, &size, NULL));
        g_assert_cmpmem(text, size, bytes, sizeof(bytes));
        container_assert_link(&c, CUDA, DOOR "/cuda/libcuda.so.1");
        container_free(&c);
    }
}

/* The image's libraries are on a volume: its loader finds ours by its cache. */
static void test_volume_and_cache(void)
{
    Container c = container_without_folder();
    g_autofree char *volume = g_build_filename(c.bundle, "volume", NULL);
    g_autofree char *state = container_state(&c);
    g_autofree char *said = NULL;

    file_tree_write(c.tree, "/volume/libc.so.6", "libc");
    file_tree_write(c.tree, "/volume/libcuda.so.1", "theirs");
    container_bind(&c, volume, LIBS, MS_RDONLY);
    put_cache(&c, "new");
    container_put_door(&c, PLAIN, PLAIN);
    assert_listed(&c, "libcuda.so.1", DOOR "/cuda/libcuda.so.1");
    assert_listed(&c, "libnvidia-ml.so.1", DOOR "/cuda/libnvidia-ml.so.1");
    assert_listed(&c, "libnvidia-ptxjitcompiler.so.1", DOOR "/real/libnvidia-ptxjitcompiler.so.1");
    assert_file_in(c.image, CUDA, "door");
    assert_file_in(volume, "/libcuda.so.1", "theirs");
    container_unbind(&c, CUDA);
    g_free(g_steal_pointer(&said));
    container_put(&c, DOOR "/guest/libcuda.so.1", "ours");
    put_cache(&c, "new");
    file_tree_write(c.tree, "/config.json",
                    "{\"root\":{\"path\":\"image\"},\"process\":{\"env\":[]},\"mounts\":[]}");
    g_assert_cmpint(container_run_hook(&c, "put-cuda-remote " DOOR, state, &said), ==, 0);
    assert_listed(&c, "libcuda.so.1", DOOR "/guest/libcuda.so.1");
    container_unbind(&c, CUDA);
    container_unbind(&c, LIBS);
    container_free(&c);
}

int main(int argc, char **argv)
{
    container_test_init(&argc, &argv);
    g_test_add_func("/loader-cache/cache", test_cache);
    g_test_add_func("/loader-cache/cache-order", test_cache_order);
    g_test_add_func("/loader-cache/damaged-cache", test_damaged_cache);
    g_test_add_func("/loader-cache/volume-and-cache", test_volume_and_cache);
    return g_test_run();
}
