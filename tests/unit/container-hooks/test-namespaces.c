/* SPDX-License-Identifier: MIT */
/* Containers with namespaces of their own: what the hook makes there is there alone. */
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/container-hooks/container.h"
#include "tests/unit/file_tree.h"

/* Who the container's root is on the host. */
#define ROOT   100000
#define COMPAT "/usr/local/cuda/compat/libcuda.so.1"

static void wait_in(int flags, int ready)
{
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || unshare(flags) < 0)
        _exit(1);
    if (!(flags & CLONE_NEWUSER) && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        _exit(1);
    if (write(ready, "", 1) != 1)
        _exit(1);
    for (;;)
        pause();
}

static void map_ids(pid_t pid, const char *file)
{
    g_autofree char *path = g_strdup_printf("/proc/%d/%s", pid, file);
    g_autofree char *map = g_strdup_printf("0 %d 65536\n", ROOT);
    FILE *to = fopen(path, "w");

    g_assert_nonnull(to);
    g_assert_cmpint(fputs(map, to), >=, 0);
    g_assert_cmpint(fclose(to), ==, 0);
}

/* The container's process, as a runtime has it wait for the hook. */
static pid_t start_process(int flags)
{
    int ready[2];
    char byte;
    pid_t pid;

    g_assert_cmpint(pipe(ready), ==, 0);
    pid = fork();
    g_assert_cmpint(pid, >=, 0);
    if (!pid)
        wait_in(flags, ready[1]);
    close(ready[1]);
    g_assert_cmpint(read(ready[0], &byte, 1), ==, 1);
    close(ready[0]);
    if (flags & CLONE_NEWUSER) {
        map_ids(pid, "uid_map");
        map_ids(pid, "gid_map");
    }
    return pid;
}

static void end_process(pid_t pid)
{
    g_assert_cmpint(kill(pid, SIGKILL), ==, 0);
    g_assert_cmpint(waitpid(pid, NULL, 0), ==, pid);
}

/* Its root can reach the image, and cannot read the runtime's description, as with podman. */
static Container make_container(uid_t root)
{
    Container c = container_empty();
    g_autofree char *config = g_build_filename(c.bundle, "config.json", NULL);
    g_autofree char *chown = g_strdup_printf("chown -R %u:%u %s", root, root, c.image);

    container_put(&c, DOOR "/guest/libcuda.so.1", "ours");
    container_put(&c, LIBS "/libc.so.6", "libc");
    container_put(&c, COMPAT, "theirs");
    file_tree_write(c.tree, "/config.json",
                    "{\"root\":{\"path\":\"image\"},\"process\":{\"env\":[]},\"mounts\":[]}");
    g_assert_cmpint(chmod(c.bundle, 0711), ==, 0);
    g_assert_cmpint(chmod(config, 0600), ==, 0);
    g_assert_true(g_spawn_command_line_sync(chown, NULL, NULL, NULL, NULL));
    return c;
}

static void assert_owned_by(const Container *c, const char *path, uid_t owner)
{
    g_autofree char *full = g_strconcat(c->image, path, NULL);
    struct stat found;

    g_assert_cmpint(lstat(full, &found), ==, 0);
    g_assert_cmpuint(found.st_uid, ==, owner);
    g_assert_cmpuint(found.st_gid, ==, owner);
}

static void assert_put_into(int flags, uid_t root)
{
    Container c = make_container(root);
    pid_t pid = start_process(flags);
    g_autofree char *state =
        g_strdup_printf("{\"id\":\"web\",\"pid\":%d,\"bundle\":\"%s\"}", pid, c.bundle);
    g_autofree char *inside = g_strdup_printf("/proc/%d/root%s", pid, c.image);
    g_autofree char *said = NULL;

    g_assert_cmpint(container_run_hook(&c, "put-cuda-remote " DOOR, state, &said), ==, 0);
    g_assert_cmpstr(said, ==, "");
    container_assert_link(&c, CUDA, DOOR "/guest/libcuda.so.1");
    assert_owned_by(&c, CUDA, root);
    assert_file_in(inside, COMPAT, "ours");
    assert_file_in(c.image, COMPAT, "theirs");
    end_process(pid);
    container_free(&c);
}

static void test_mount_namespace(void)
{
    assert_put_into(CLONE_NEWNS, 0);
}

/* podman run --userns=auto, as root. */
static void test_user_namespace(void)
{
    assert_put_into(CLONE_NEWUSER | CLONE_NEWNS, ROOT);
}

/* The hook reaches no more than the container's root does. */
static void test_image_of_another(void)
{
    Container c = make_container(0);
    pid_t pid = start_process(CLONE_NEWUSER | CLONE_NEWNS);
    g_autofree char *state =
        g_strdup_printf("{\"id\":\"web\",\"pid\":%d,\"bundle\":\"%s\"}", pid, c.bundle);
    g_autofree char *said = NULL;

    g_assert_cmpint(container_run_hook(&c, "put-cuda-remote " DOOR, state, &said), !=, 0);
    g_assert_nonnull(strstr(said, "Permission denied"));
    container_assert_link(&c, CUDA, NULL);
    end_process(pid);
    container_free(&c);
}

static void assert_refused(const Container *c, int pid, const char *words)
{
    g_autofree char *state =
        g_strdup_printf("{\"id\":\"web\",\"pid\":%d,\"bundle\":\"%s\"}", pid, c->bundle);
    g_autofree char *said = NULL;

    g_assert_cmpint(container_run_hook(c, "put-cuda-remote " DOOR, state, &said), !=, 0);
    g_assert_nonnull(strstr(said, words));
}

static void test_no_process(void)
{
    Container c = make_container(0);
    pid_t pid = start_process(CLONE_NEWNS);

    end_process(pid);
    assert_refused(&c, 0, "the runtime names no process of the container");
    assert_refused(&c, pid, " cannot be entered: No such process");
    container_assert_link(&c, CUDA, NULL);
    container_free(&c);
}

int main(int argc, char **argv)
{
    container_test_init(&argc, &argv);
    g_test_add_func("/namespaces/mount-namespace", test_mount_namespace);
    g_test_add_func("/namespaces/user-namespace", test_user_namespace);
    g_test_add_func("/namespaces/image-of-another", test_image_of_another);
    g_test_add_func("/namespaces/no-process", test_no_process);
    return g_test_run();
}
