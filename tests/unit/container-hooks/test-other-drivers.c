/* SPDX-License-Identifier: MIT */
/* Drivers of NVIDIA's that an image, or another hook, brings: the CUDA door covers them. */
#include <sys/mount.h>

#include "tests/unit/container-hooks/container.h"
#include "tests/unit/file_tree.h"

/* Wherever an image has a libcuda that its loader would find, it is the door. */
static void test_own_library(void)
{
    static const char cache[] = "glibc-ld.so.cache1.1\0\1\0\0\0\0\0\0\0libcuda.so.1\0"
                                "/opt/cached/libcuda.so.1\0other/libcuda.so.1";
    Container c = container_new();
    g_autofree char *path = g_strconcat(c.image, "/etc/ld.so.cache", NULL);

    container_put(&c, "/etc/hostname", "");
    g_assert_true(g_file_set_contents(path, cache, sizeof(cache), NULL));
    container_put(&c, LIBS "/libcuda.so.535.1", "the image's");
    container_put_link(&c, CUDA, "libcuda.so.535.1");
    container_put(&c, "/usr/local/cuda-12.4/compat/libcuda.so.1", "the image's");
    container_put_link(&c, "/usr/local/cuda", "/usr/local/cuda-12.4");
    container_put(&c, "/opt/ours/libcuda.so.1", "the image's");
    container_put(&c, "/opt/ours/libnvidia-ml.so.1", "the image's");
    container_put(&c, "/opt/cached/libcuda.so.1", "the image's");
    container_put(&c, "/opt/unseen/libcuda.so.1", "the image's");
    for (guint i = 0; i < 2; i++) {
        container_put_door(&c, ",\"LD_LIBRARY_PATH=/nowhere\",\"LD_LIBRARY_PATH=:/none:/opt/ours\"",
                           PLAIN);
        assert_file_in(c.image, CUDA, "door");
        assert_file_in(c.image, LIBS "/libcuda.so.535.1", "door");
        assert_file_in(c.image, "/usr/local/cuda-12.4/compat/libcuda.so.1", "door");
        assert_file_in(c.image, "/opt/ours/libcuda.so.1", "door");
        assert_file_in(c.image, "/opt/ours/libnvidia-ml.so.1", "door's NVML");
        assert_file_in(c.image, "/opt/cached/libcuda.so.1", "door");
        /* What no loader looks for. */
        assert_file_in(c.image, "/opt/unseen/libcuda.so.1", "the image's");
        /* Each is covered once. */
        g_assert_cmpuint(container_count_mounts(&c), ==, 5);
    }
    container_unbind(&c, "/opt/ours/libcuda.so.1");
    assert_file_in(c.image, "/opt/ours/libcuda.so.1", "the image's");
    for (const char *const *at =
             (const char *const[]){"/usr/local/cuda-12.4/compat/libcuda.so.1",
                                   "/opt/ours/libnvidia-ml.so.1", "/opt/cached/libcuda.so.1",
                                   LIBS "/libcuda.so.535.1", NULL};
         *at; at++)
        container_unbind(&c, *at);
    container_free(&c);
}

#define FOLDERS_MAX 1024u

/* An image cannot have the host look in any number of folders. */
static void test_many_folders(void)
{
    Container c = container_new();
    g_autoptr(GString) path = g_string_new(",\"LD_LIBRARY_PATH=");

    container_put(&c, "/opt/ours/libcuda.so.1", "the image's");
    container_put(&c, "/opt/late/libcuda.so.1", "the image's");
    for (guint i = 1; i < FOLDERS_MAX; i++)
        g_string_append(path, "/none:");
    g_string_append(path, "/opt/ours:/opt/late\"");
    container_put_door(&c, path->str, PLAIN);
    assert_file_in(c.image, "/opt/ours/libcuda.so.1", "door");
    assert_file_in(c.image, "/opt/late/libcuda.so.1", "the image's");
    container_unbind(&c, "/opt/ours/libcuda.so.1");
    container_free(&c);
}

/* NVIDIA's own images name a folder that their first program makes: a link to this one. */
static void test_compat_of_nvidia(void)
{
#define COMPAT "/usr/local/cuda-12.4/compat"
    Container c = container_new();

    container_put(&c, COMPAT "/lib.real/libcuda.so.550.1", "the image's");
    container_put_link(&c, COMPAT "/lib.real/libcuda.so.1", "libcuda.so.550.1");
    container_put(&c, COMPAT "/lib.real/libnvidia-ptxjitcompiler.so.550.1", "the image's");
    container_put_link(&c, COMPAT "/lib.real/libnvidia-ptxjitcompiler.so.1",
                       "libnvidia-ptxjitcompiler.so.550.1");
    container_put(&c, COMPAT "/lib.real/libnvidia-nvvm.so.4", "the image's");
    container_put(&c, COMPAT "/lib.real/libcudart.so.12", "the image's");
    container_put_link(&c, COMPAT "/again", ".");
    container_put_link(&c, "/usr/local/cuda", "cuda-12.4");
    for (guint i = 0; i < 2; i++) {
        container_put_door(&c, ",\"LD_LIBRARY_PATH=/usr/local/cuda/compat/lib\"", PLAIN);
        g_assert_cmpuint(container_count_mounts(&c), ==, 2);
    }
    container_put_link(&c, COMPAT "/lib", "lib.real");
    assert_file_in(c.image, COMPAT "/lib/libcuda.so.1", "door");
    assert_file_in(c.image, COMPAT "/lib/libcuda.so.550.1", "door");
    /* Of one driver with the door's. */
    assert_file_in(c.image, COMPAT "/lib/libnvidia-ptxjitcompiler.so.1", "compiler");
    /* Which the host's driver lacks, and which is no driver's. */
    assert_file_in(c.image, COMPAT "/lib/libnvidia-nvvm.so.4", "the image's");
    assert_file_in(c.image, COMPAT "/lib/libcudart.so.12", "the image's");
    container_unbind(&c, COMPAT "/lib.real/libcuda.so.550.1");
    container_unbind(&c, COMPAT "/lib.real/libnvidia-ptxjitcompiler.so.550.1");
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
        container_put(&c, covered[i], "the image's");
    container_put(&c, "/srv/other/lib/libcuda.so.1", "the image's");
    container_put_door(&c, ENVIRONMENT, PLAIN);
    for (guint i = 0; i < G_N_ELEMENTS(covered); i++) {
        assert_file_in(c.image, covered[i], "door");
        container_unbind(&c, covered[i]);
    }
    assert_file_in(c.image, "/srv/other/lib/libcuda.so.1", "the image's");
    container_free(&c);
}

/* A driver in the image's own folder is not mixed with the host's. */
static void test_own_driver(void)
{
    Container c = container_new();

    container_put(&c, LIBS "/libcuda.so.1", "the image's");
    container_put(&c, LIBS "/libnvidia-ptxjitcompiler.so.1", "the image's");
    container_put_door(&c, PLAIN, PLAIN);
    assert_file_in(c.image, CUDA, "door");
    assert_file_in(c.image, LIBS "/libnvidia-ptxjitcompiler.so.1", "compiler");
    container_unbind(&c, CUDA);
    container_unbind(&c, LIBS "/libnvidia-ptxjitcompiler.so.1");
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

        container_put(&c, libraries[i], "");
        g_assert_cmpint(mount(driver, target, NULL, MS_BIND, NULL), ==, 0);
    }
    container_put_door(&c, PLAIN, PLAIN);
    assert_file_in(c.image, CUDA, "door");
    assert_file_in(c.image, ML, "door's NVML");
    for (guint i = 0; i < G_N_ELEMENTS(libraries); i++)
        while (TRUE) {
            g_autofree char *target = g_strconcat(c.image, libraries[i], NULL);

            if (umount2(target, MNT_DETACH) < 0)
                break;
        }
    container_free(&c);
}

int main(int argc, char **argv)
{
    container_test_init(&argc, &argv);
    g_test_add_func("/other-drivers/own-library", test_own_library);
    g_test_add_func("/other-drivers/many-folders", test_many_folders);
    g_test_add_func("/other-drivers/compat-of-nvidia", test_compat_of_nvidia);
    g_test_add_func("/other-drivers/other-compat", test_other_compat);
    g_test_add_func("/other-drivers/own-driver", test_own_driver);
    g_test_add_func("/other-drivers/mounted-by-hook", test_mounted_by_hook);
    return g_test_run();
}
