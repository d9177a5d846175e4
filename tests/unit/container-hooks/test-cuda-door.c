/* SPDX-License-Identifier: MIT */
/* The CUDA door in images that know nothing of CUDA, or have what an earlier container left. */
#include <errno.h>
#include <glib/gstdio.h>
#include <sys/mount.h>
#include <unistd.h>

#include "tests/unit/container-hooks/container.h"
#include "tests/unit/file_tree.h"

/* An image that knows nothing of CUDA. */
static void test_plain(void)
{
    Container c = container_new();

    for (guint i = 0; i < 2; i++) {
        container_put_door(&c, PLAIN, PLAIN);
        container_assert_link(&c, CUDA, DOOR "/cuda/libcuda.so.1");
        container_assert_link(&c, LIBS "/libcuda.so", DOOR "/cuda/libcuda.so.1");
        container_assert_link(&c, ML, DOOR "/cuda/libnvidia-ml.so.1");
        container_assert_link(&c, LIBS "/libcuda.so.570.1", DOOR "/cuda/libcuda.so.1");
        container_assert_link(&c, LIBS "/libnvidia-ptxjitcompiler.so.1",
                              DOOR "/real/libnvidia-ptxjitcompiler.so.1");
        container_assert_link(&c, LIBS "/libnvidia-ptxjitcompiler.so.570.1",
                              DOOR "/real/libnvidia-ptxjitcompiler.so.1");
        g_assert_cmpuint(container_count_mounts(&c), ==, 0);
    }
    container_free(&c);
}

/* libgbm finds NVIDIA's backend by the kernel driver's name. */
static void test_gbm(void)
{
    static const char mount[] =
        "," MOUNT(LIBS "/libnvidia-allocator.so.570.1", DOOR "/real/libnvidia-allocator.so.1");
    Container c = container_new();

    container_put(&c, DOOR "/real/libnvidia-allocator.so.1", "allocator");
    container_put_door(&c, PLAIN, mount);
    container_assert_link(&c, LIBS "/libnvidia-allocator.so.1",
                          DOOR "/real/libnvidia-allocator.so.1");
    container_assert_link(&c, LIBS "/gbm/nvidia-drm_gbm.so", NULL);
    container_put(&c, LIBS "/libgbm.so.1", "libgbm");
    container_put_door(&c, PLAIN, PLAIN);
    container_assert_link(&c, LIBS "/gbm/nvidia-drm_gbm.so", NULL);
    for (guint i = 0; i < 2; i++) {
        container_put_door(&c, PLAIN, mount);
        container_assert_link(&c, LIBS "/gbm/nvidia-drm_gbm.so",
                              DOOR "/real/libnvidia-allocator.so.1");
    }
    container_free(&c);
}

/* Fedora's folder; the one for 32-bit programs gets nothing. */
static void test_other_folder(void)
{
    Container c = container_without_folder();

    container_put(&c, "/usr/lib64/libc.so.6", "libc");
    container_put_door(&c, PLAIN, PLAIN);
    container_assert_link(&c, "/usr/lib64/libcuda.so.1", DOOR "/cuda/libcuda.so.1");
    container_assert_link(&c, "/usr/lib/libcuda.so.1", NULL);
    container_free(&c);
}

/* What a link or an empty file of an earlier container with a GPU left in a committed image. */
static void test_left_behind(void)
{
    Container c = container_new();

    container_put_link(&c, CUDA, "libcuda.so.535.1");
    container_put(&c, ML, "");
    container_put_door(&c, PLAIN, PLAIN);
    container_assert_link(&c, CUDA, DOOR "/cuda/libcuda.so.1");
    assert_file_in(c.image, ML, "door's NVML");
    container_unbind(&c, ML);
    container_free(&c);
}

/* podman run --read-only. */
static void test_read_only(void)
{
    Container c = container_new();

    container_put(&c, "/opt/ours/libcuda.so.1", "the image's");
    g_assert_cmpint(mount(c.image, c.image, NULL, MS_BIND, NULL), ==, 0);
    g_assert_cmpint(mount(NULL, c.image, NULL, MS_REMOUNT | MS_BIND | MS_RDONLY, NULL), ==, 0);
    container_put_door(&c, ",\"LD_LIBRARY_PATH=/opt/ours\"", PLAIN);
    container_assert_link(&c, CUDA, DOOR "/cuda/libcuda.so.1");
    assert_file_in(c.image, "/opt/ours/libcuda.so.1", "door");
    /* It is as read-only as before. */
    g_assert_cmpint(access(c.image, W_OK), ==, -1);
    g_assert_cmpint(errno, ==, EROFS);
    container_unbind(&c, "/opt/ours/libcuda.so.1");
    container_free(&c);
}

/* A file system that nobody can write to. */
static void test_read_only_below(void)
{
    Container c = container_empty();

    g_assert_cmpint(g_mkdir(c.image, 0755), ==, 0);
    g_assert_cmpint(mount("image", c.image, "tmpfs", 0, NULL), ==, 0);
    container_put_driver(&c);
    container_put(&c, LIBS "/libc.so.6", "libc");
    g_assert_cmpint(mount(NULL, c.image, NULL, MS_REMOUNT | MS_RDONLY, NULL), ==, 0);
    container_assert_refused(&c, PLAIN, PLAIN, "libcuda.so.1: Read-only file system");
    container_free(&c);
}

/* NVIDIA's own device beside ours: which library wins is not defined. */
static void test_other_device(void)
{
    Container c = container_new();

    container_assert_refused(
        &c, PLAIN, "," MOUNT("/usr/lib64/libcuda.so.570.1", "/usr/lib64/libcuda.so.570.1"),
        "nvidia.com/gpu");
    container_assert_link(&c, CUDA, NULL);
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
    g_autofree char *good = container_state(&c);

    container_put_config(&c, PLAIN, PLAIN);
    for (guint i = 0; i < G_N_ELEMENTS(states); i++) {
        g_autofree char *said = NULL;

        g_assert_cmpint(container_run_hook(&c, "put-cuda " DOOR, states[i], &said), !=, 0);
        g_assert_nonnull(strstr(said, "cannot put the CUDA door"));
    }
    for (guint i = 0; i < G_N_ELEMENTS(configs); i++) {
        g_autofree char *said = NULL;

        file_tree_write(c.tree, "/config.json", configs[i]);
        g_assert_cmpint(container_run_hook(&c, "put-cuda " DOOR, good, &said), !=, 0);
        g_assert_nonnull(strstr(said, "cannot put the CUDA door"));
    }
    container_assert_link(&c, CUDA, NULL);
    container_free(&c);
}

int main(int argc, char **argv)
{
    container_test_init(&argc, &argv);
    g_test_add_func("/cuda-door/plain", test_plain);
    g_test_add_func("/cuda-door/gbm", test_gbm);
    g_test_add_func("/cuda-door/other-folder", test_other_folder);
    g_test_add_func("/cuda-door/left-behind", test_left_behind);
    g_test_add_func("/cuda-door/read-only", test_read_only);
    g_test_add_func("/cuda-door/read-only-below", test_read_only_below);
    g_test_add_func("/cuda-door/other-device", test_other_device);
    g_test_add_func("/cuda-door/states", test_states);
    return g_test_run();
}
