/* SPDX-License-Identifier: MIT */
/* What a slice has mounted, and what the container has mounted over it. */
#include <string.h>
#include <sys/mount.h>

#include "tests/unit/container-hooks/container.h"
#include "tests/unit/file_tree.h"

static int run_mounts(const Container *c, const char *mounts, char **said)
{
    g_autofree char *state = container_state(c);
    g_autofree char *config = g_strdup_printf(
        "{\"root\":{\"path\":\"image\"},\"process\":{\"env\":[]},\"mounts\":[%s]}", mounts);

    file_tree_write(c->tree, "/config.json", config);
    return container_run_hook(c, "restore-mounts", state, said);
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
    container_put(&c, "/run/vgpu/cuda.sock", "");
    put_tmpfs(&c, "/run", 0);
    g_assert_cmpint(run_mounts(&c, mounts, &said), ==, 0);
    g_assert_cmpstr(said, ==, "");
    assert_file_in(c.image, "/run/vgpu/slices/gpu/a/governor.sock", "arbiter's");
    assert_file_in(c.image, "/run/vgpu/cuda.sock", "guard's");
    /* Those that are there stay as they are. */
    before = container_count_mounts(&c);
    g_free(g_steal_pointer(&said));
    g_assert_cmpint(run_mounts(&c, mounts, &said), ==, 0);
    g_assert_cmpint(container_count_mounts(&c), ==, before);
    container_unbind(&c, "/run/vgpu/cuda.sock");
    container_unbind(&c, "/run/vgpu/slices/gpu/a");
    container_unbind(&c, "/run");
    put_tmpfs(&c, "/run", MS_RDONLY);
    g_free(g_steal_pointer(&said));
    g_assert_cmpint(run_mounts(&c, mounts, &said), !=, 0);
    g_assert_nonnull(strstr(said, "is covered by what the container has mounted on /run; mount "
                                  "nothing there: cannot make /run/vgpu/"));
    g_assert_nonnull(strstr(said, "Read-only file system"));
    container_unbind(&c, "/run");
    container_free(&c);
}

int main(int argc, char **argv)
{
    container_test_init(&argc, &argv);
    g_test_add_func("/own-mounts/covered-mounts", test_covered_mounts);
    return g_test_run();
}
