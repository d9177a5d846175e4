/* SPDX-License-Identifier: MIT */
/* Images that lead out of their root, to the host or to a volume: nothing is written there. */
#include <glib/gstdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/container-hooks/container.h"
#include "tests/unit/file_tree.h"

/* Links out of the image lead to its own root, and the host's files stay as they are. */
static void test_links_out(void)
{
    Container c = container_new();
    g_autofree char *outside = g_build_filename(c.bundle, "outside", NULL);
    g_autofree char *library = g_build_filename(outside, "libcuda.so.1", NULL);
    g_autoptr(GDir) dir = NULL;

    container_put(&c, "/usr/lib/libc.so.6", "libc");
    file_tree_write(c.tree, "/outside/libcuda.so.1", "the host's");
    container_put_link(&c, CUDA, library);
    container_put_link(&c, ML, "../../../../outside/libcuda.so.1");
    container_put_link(&c, "/usr/lib64", outside);
    container_put_link(&c, "/usr/local", outside);
    container_put_link(&c, "/etc/ld.so.cache", library);
    container_put_door(&c, PLAIN, PLAIN);
    container_assert_link(&c, CUDA, DOOR "/cuda/libcuda.so.1");
    container_assert_link(&c, ML, DOOR "/cuda/libnvidia-ml.so.1");
    assert_file_in(c.bundle, "/outside/libcuda.so.1", "the host's");
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
    container_bind(&c, "/proc", "/proc", 0);
    container_put_link(&c, CUDA, library);
    container_assert_refused(&c, PLAIN, PLAIN, "through /proc");
    g_assert_cmpuint(container_count_mounts(&c), ==, 1);
    assert_file_in(c.bundle, "/outside/libcuda.so.1", "the host's");
    container_unbind(&c, "/proc");
    container_free(&c);

    c = container_without_folder();
    g_free(g_steal_pointer(&through));
    through = g_strconcat("/proc/self/root", c.bundle, NULL);
    container_bind(&c, "/proc", "/proc", 0);
    container_put_link(&c, LIBS, through);
    container_assert_refused(&c, PLAIN, PLAIN, "through /proc");
    container_unbind(&c, "/proc");
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
        container_bind(&c, volume, "/data", i ? MS_RDONLY : 0);
        container_put_link(&c, LIBS, "/data");
        container_assert_refused(&c, PLAIN, PLAIN, "on a volume");
        dir = g_dir_open(volume, 0, NULL);
        g_assert_null(g_dir_read_name(dir));
        container_unbind(&c, "/data");
        container_free(&c);
    }
}

/* A library that is no file, and a container without the door. */
static void test_unexpected(void)
{
    Container c = container_new();
    g_autofree char *path = g_strconcat(c.image, CUDA, NULL);
    g_autofree char *door = g_strconcat(c.image, DOOR "/real/libcuda.so.1", NULL);

    g_assert_cmpint(g_mkdir(path, 0755), ==, 0);
    container_assert_refused(&c, PLAIN, PLAIN, "is not a file");
    g_assert_cmpint(g_rmdir(path), ==, 0);
    g_assert_cmpint(mkfifo(path, 0644), ==, 0);
    container_assert_refused(&c, PLAIN, PLAIN, "is not a file");
    g_assert_cmpint(g_unlink(path), ==, 0);
    g_assert_cmpint(symlink("libcuda.so.1", path), ==, 0);
    container_assert_refused(&c, PLAIN, PLAIN, "in circles");
    g_assert_cmpint(g_unlink(path), ==, 0);
    g_assert_cmpint(g_unlink(door), ==, 0);
    container_assert_refused(&c, PLAIN, PLAIN, "has no file " DOOR "/real/libcuda.so.1");
    container_free(&c);

    c = container_without_folder();
    g_free(g_steal_pointer(&path));
    path = g_strconcat(c.image, "/usr/lib", NULL);
    container_put_door(&c, PLAIN, PLAIN);
    container_assert_link(&c, "/usr/lib/libcuda.so.1", DOOR "/cuda/libcuda.so.1");
    container_free(&c);
}

int main(int argc, char **argv)
{
    container_test_init(&argc, &argv);
    g_test_add_func("/in-root/links-out", test_links_out);
    g_test_add_func("/in-root/links-through-proc", test_links_through_proc);
    g_test_add_func("/in-root/volume", test_volume);
    g_test_add_func("/in-root/unexpected", test_unexpected);
    return g_test_run();
}
