/* SPDX-License-Identifier: MIT */
#include "tests/unit/container-hooks/container.h"

#include <sched.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "tests/unit/file_tree.h"

void container_test_init(int *argc, char ***argv)
{
    g_test_init(argc, argv, NULL);
    g_assert_cmpint(unshare(CLONE_NEWNS), ==, 0);
    g_assert_cmpint(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), ==, 0);
}

void container_put(const Container *c, const char *path, const char *text)
{
    g_autofree char *inside = g_strconcat("/image", path, NULL);

    file_tree_write(c->tree, inside, text);
}

void container_put_link(const Container *c, const char *path, const char *target)
{
    g_autofree char *inside = g_strconcat("/image", path, NULL);

    file_tree_link(c->tree, inside, target);
}

void container_put_driver(const Container *c)
{
    container_put(c, DOOR "/cuda/libcuda.so.1", "door");
    container_put(c, DOOR "/cuda/libnvidia-ml.so.1", "door's NVML");
    container_put(c, DOOR "/real/libcuda.so.1", "driver");
    container_put(c, DOOR "/real/libnvidia-ml.so.1", "driver's NVML");
    container_put(c, DOOR "/real/libnvidia-ptxjitcompiler.so.1", "compiler");
}

Container container_empty(void)
{
    Container c = {.tree = file_tree_new()};

    c.bundle = root_path(c.tree, "", NULL);
    c.image = root_path(c.tree, "image", NULL);
    return c;
}

Container container_without_folder(void)
{
    Container c = container_empty();

    container_put_driver(&c);
    return c;
}

Container container_new(void)
{
    Container c = container_without_folder();

    container_put(&c, LIBS "/libc.so.6", "libc");
    return c;
}

void container_free(Container *c)
{
    /* All that the test has mounted in it, the last one first. */
    while (umount2(c->image, MNT_DETACH) == 0)
        ;
    file_tree_free(c->tree);
    g_free(c->bundle);
    g_free(c->image);
}

void container_put_config(const Container *c, const char *environment, const char *mount)
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

char *container_state(const Container *c)
{
    return g_strdup_printf("{\"id\":\"web\",\"pid\":%d,\"bundle\":\"%s\"}", getpid(), c->bundle);
}

int container_run_hook(const Container *c, const char *arguments, const char *state, char **said)
{
    g_autofree char *line =
        g_strdup_printf(CONTAINER_HOOK " %s <%s/state.json", arguments, c->bundle);
    const char *argv[] = {"sh", "-c", line, NULL};
    g_autoptr(GError) error = NULL;
    int status = -1;

    file_tree_write(c->tree, "/state.json", state);
    g_spawn_sync(NULL, (char **)argv, NULL, G_SPAWN_SEARCH_PATH, NULL, NULL, NULL, said, &status,
                 &error);
    g_assert_no_error(error);
    g_test_message("%d: %s", status, *said);
    return status;
}

void container_put_door(const Container *c, const char *environment, const char *mount)
{
    g_autofree char *state = container_state(c);
    g_autofree char *said = NULL;

    container_put_config(c, environment, mount);
    g_assert_cmpint(container_run_hook(c, "put-cuda " DOOR, state, &said), ==, 0);
    g_assert_cmpstr(said, ==, "");
}

void container_assert_refused(const Container *c, const char *environment, const char *mount,
                              const char *words)
{
    g_autofree char *state = container_state(c);
    g_autofree char *said = NULL;

    container_put_config(c, environment, mount);
    g_assert_cmpint(container_run_hook(c, "put-cuda " DOOR, state, &said), !=, 0);
    g_assert_nonnull(strstr(said, "cannot put the CUDA door " DOOR " into the container: "));
    g_assert_nonnull(strstr(said, words));
}

void assert_file_in(const char *dir, const char *path, const char *expected)
{
    g_autofree char *full = g_strconcat(dir, path, NULL);
    g_autofree char *text = NULL;

    g_file_get_contents(full, &text, NULL, NULL);
    g_assert_cmpstr(text, ==, expected);
}

void container_assert_link(const Container *c, const char *path, const char *expected)
{
    g_autofree char *full = g_strconcat(c->image, path, NULL);
    g_autofree char *target = g_file_read_link(full, NULL);

    g_assert_cmpstr(target, ==, expected);
}

guint container_count_mounts(const Container *c)
{
    g_autofree char *text = NULL;
    guint count = 0;

    g_assert_true(g_file_get_contents("/proc/self/mountinfo", &text, NULL, NULL));
    for (const char *at = text; (at = strstr(at, c->image)); at++)
        count++;
    return count;
}

void container_bind(const Container *c, const char *source, const char *path, unsigned long flags)
{
    g_autofree char *target = g_strconcat(c->image, path, NULL);

    g_mkdir_with_parents(target, 0755);
    g_assert_cmpint(mount(source, target, NULL, MS_BIND, NULL), ==, 0);
    if (flags)
        g_assert_cmpint(mount(NULL, target, NULL, MS_REMOUNT | MS_BIND | flags, NULL), ==, 0);
}

void container_unbind(const Container *c, const char *path)
{
    g_autofree char *target = g_strconcat(c->image, path, NULL);

    g_assert_cmpint(umount2(target, MNT_DETACH), ==, 0);
}
