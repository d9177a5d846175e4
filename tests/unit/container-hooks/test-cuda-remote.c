/* SPDX-License-Identifier: MIT */
/* The library for containers without a node of the card. */
#include <string.h>

#include "tests/unit/container-hooks/container.h"
#include "tests/unit/file_tree.h"

/* For a container without a node: our one library, and nothing of a driver. */
static void test_remote(void)
{
    Container c = container_empty();
    g_autofree char *state = container_state(&c);
    g_autofree char *said = NULL;

    container_put(&c, DOOR "/guest/libcuda.so.1", "ours");
    container_put(&c, LIBS "/libc.so.6", "libc");
    container_put(&c, "/usr/local/cuda/compat/libcuda.so.1", "theirs");
    container_put(&c, LIBS "/libnvidia-ml.so.1", "theirs");
    file_tree_write(c.tree, "/config.json",
                    "{\"root\":{\"path\":\"image\"},\"process\":{\"env\":[]},\"mounts\":[]}");
    g_assert_cmpint(container_run_hook(&c, "put-cuda-remote " DOOR, state, &said), ==, 0);
    g_assert_cmpstr(said, ==, "");
    container_assert_link(&c, CUDA, DOOR "/guest/libcuda.so.1");
    container_assert_link(&c, LIBS "/libcuda.so", DOOR "/guest/libcuda.so.1");
    assert_file_in(c.image, "/usr/local/cuda/compat/libcuda.so.1", "ours");
    assert_file_in(c.image, LIBS "/libnvidia-ml.so.1", "theirs");
    container_free(&c);
}

/* With NVML, which asks the same worker. */
static void test_remote_nvml(void)
{
    Container c = container_empty();
    g_autofree char *state = container_state(&c);
    g_autofree char *said = NULL;

    container_put(&c, DOOR "/guest/libcuda.so.1", "ours");
    container_put(&c, DOOR "/guest/libnvidia-ml.so.1", "our NVML");
    container_put(&c, LIBS "/libc.so.6", "libc");
    file_tree_write(c.tree, "/config.json",
                    "{\"root\":{\"path\":\"image\"},\"process\":{\"env\":[]},\"mounts\":[" MOUNT(
                        DOOR "/guest/libnvidia-ml.so.1", DOOR "/guest/libnvidia-ml.so.1") "]}");
    g_assert_cmpint(container_run_hook(&c, "put-cuda-remote " DOOR, state, &said), ==, 0);
    g_assert_cmpstr(said, ==, "");
    container_assert_link(&c, CUDA, DOOR "/guest/libcuda.so.1");
    container_assert_link(&c, LIBS "/libnvidia-ml.so.1", DOOR "/guest/libnvidia-ml.so.1");
    container_assert_link(&c, LIBS "/libnvidia-ml.so", DOOR "/guest/libnvidia-ml.so.1");
    container_free(&c);
}

/* One that also has a driver without a limit is refused; one with the native door keeps that. */
static void test_remote_beside_others(void)
{
    Container c = container_empty();
    g_autofree char *state = container_state(&c);
    g_autofree char *said = NULL;

    container_put(&c, DOOR "/guest/libcuda.so.1", "ours");
    container_put(&c, LIBS "/libc.so.6", "libc");
    container_put_config(&c, PLAIN, "," MOUNT("/a/libcuda.so.1", LIBS "/libcuda.so.1"));
    g_assert_cmpint(container_run_hook(&c, "put-cuda-remote " DOOR, state, &said), !=, 0);
    g_assert_nonnull(strstr(said, "also given NVIDIA's driver"));
    g_free(g_steal_pointer(&said));
    container_put_config(&c, PLAIN,
                         "," MOUNT(DOOR "/cuda/libcuda.so.1", DOOR "/cuda/libcuda.so.1"));
    g_assert_cmpint(container_run_hook(&c, "put-cuda-remote " DOOR, state, &said), ==, 0);
    container_assert_link(&c, CUDA, NULL);
    container_free(&c);
}

int main(int argc, char **argv)
{
    container_test_init(&argc, &argv);
    g_test_add_func("/cuda-remote/remote", test_remote);
    g_test_add_func("/cuda-remote/remote-nvml", test_remote_nvml);
    g_test_add_func("/cuda-remote/remote-beside-others", test_remote_beside_others);
    return g_test_run();
}
