/* SPDX-License-Identifier: MIT */
/* The limit of vGPUs of a host. It takes a minute, so it is not among the programs t-*. */
#include <string.h>
#include <unistd.h>

#include "driver_test.h"
#include "kernel_log.h"
#include "mdev_host.h"

#define GPU        "soft:" TEST_GPU_PREFIX "0"
#define MOST_VGPUS 1024

static gboolean log_says(int log, const char *words)
{
    char record[8192];
    ssize_t n;

    while ((n = read(log, record, sizeof(record) - 1)) > 0 || (n < 0 && errno == EPIPE)) {
        record[MAX(n, 0)] = '\0';
        if (strstr(record, words))
            return TRUE;
    }
    return FALSE;
}

/* One more than the host can have, though the GPU has room for it. */
static void test_too_many(void)
{
    struct vgpu_type_desc type = mdev_type("tiny", MIB, MIB);
    g_autoptr(GPtrArray) uuids = g_ptr_array_new_with_free_func(g_free);
    g_autofree char *one_more = mdev_uuid_new();
    int log = kernel_log_open();

    assert_ok(mdev_gpu_add(GPU, 2 * MOST_VGPUS * MIB, &type, 1));
    for (unsigned i = 0; i < MOST_VGPUS; i++) {
        g_ptr_array_add(uuids, mdev_uuid_new());
        assert_ok(mdev_create(GPU, "tiny", uuids->pdata[i]));
    }
    assert_fails(mdev_create(GPU, "tiny", one_more), ENOSPC);
    g_assert_false(mdev_exists(one_more));
    g_assert_true(log_says(log, "the host has 1024 vGPUs, and can't have more"));
    g_assert_cmpint(mdev_type_available(GPU, "tiny"), ==, MOST_VGPUS);
    assert_ok(mdev_remove(uuids->pdata[0]));
    assert_ok(mdev_create(GPU, "tiny", one_more));
    assert_ok(mdev_remove(one_more));
    for (unsigned i = 1; i < MOST_VGPUS; i++)
        assert_ok(mdev_remove(uuids->pdata[i]));
    close(log);
}

int main(int argc, char **argv)
{
    driver_test_init(argc, argv);
    driver_test_add("/limit/too-many", test_too_many);
    return driver_test_run();
}
