// SPDX-License-Identifier: MIT
/*
 * A program in an image with its own loader, as a runtime starts it with vgpud's CDI device: the
 * device's mounts, the hook in the container's mount namespace, then the change of the root. The
 * door is the one that is installed, the driver the fake one.
 */
#include "remote/guard.h"

#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#define GPU    "0000:3b:00.0"
#define FOLDER "/usr/lib/mdev-vgpu"
#define COMPAT "/usr/local/cuda-12.4/compat"
#define HELD   "64 MiB, 8 pieces\n"
#define FREE   "8192 MiB, 64 pieces\n"

static char *image;

static char *inside(const char *path)
{
    return g_strconcat(image, path, NULL);
}

static void sh(const char *format, ...) G_GNUC_PRINTF(1, 2);

static void sh(const char *format, ...)
{
    g_autofree char *line = NULL;
    va_list args;

    va_start(args, format);
    line = g_strdup_vprintf(format, args);
    va_end(args);
    g_assert_cmpint(system(line), ==, 0);
}

/* The program, and what its loader needs for it and the fake driver, from this system. */
static void make_image(void)
{
    sh("mkdir -p %s/usr/lib/" MULTIARCH " %s/usr/lib64 %s/etc && cd %s && "
       "ln -s usr/lib lib && ln -s usr/lib64 lib64 && cp " CLIENTS_DIR
       "/client-container program && "
       "for f in $(ldd program " REAL_DIR "/libcuda.so.1 | grep -o '/[^ :]*' | "
       "grep -v libcuda); do "
       "cp -L $f .$f; done",
       image, image, image, image);
}

/* A mount of CDI's, whose target the runtime makes. */
static void bind_to(const char *from, const char *to)
{
    g_autofree char *target = inside(to);

    if (g_file_test(from, G_FILE_TEST_IS_DIR))
        sh("mkdir -p %s", target);
    else
        sh("mkdir -p $(dirname %s) && touch %s", target, target);
    g_assert_cmpint(mount(from, target, NULL, MS_BIND, NULL), ==, 0);
}

static void write_config(const char *mounts)
{
    g_autofree char *config = g_build_filename(kit_live.root, "config.json", NULL);
    g_autofree char *text = g_strdup_printf(
        "{\"root\":{\"path\":\"%s\"},\"process\":{\"env\":[\"LD_LIBRARY_PATH=" COMPAT "\"]},"
        "\"mounts\":[%s]}",
        image, mounts);

    g_assert_true(g_file_set_contents(config, text, -1, NULL));
}

static void mount_device(void)
{
    g_autofree char *slice = g_build_filename(kit_live.root, "run/vgpu/slices/a", NULL);

    bind_to(DOOR_DIR "/libcuda.so.1", FOLDER "/cuda/libcuda.so.1");
    bind_to(DOOR_DIR "/libnvidia-ml.so.1", FOLDER "/cuda/libnvidia-ml.so.1");
    bind_to(REAL_DIR "/libcuda.so.1", FOLDER "/real/libcuda.so.1");
    bind_to(REAL_DIR "/libnvidia-ml.so.1", FOLDER "/real/libnvidia-ml.so.1");
    bind_to(MEMBER, MEMBER_DIR "/libvgpu-member.so.1");
    bind_to(slice, "/run/vgpu/slices/" GPU "/a");
    write_config("{\"source\":\"/usr/lib64/libcuda.so.570.1\",\"destination\":\"" FOLDER
                 "/real/libcuda.so.1\"}");
}

static void run_verb(const char *verb)
{
    sh("echo '{\"id\":\"web\",\"pid\":%d,\"bundle\":\"%s\"}' | env -i "
       "LC_ALL=C.UTF-8 " CONTAINER_HOOK " %s " FOLDER,
       getpid(), kit_live.root, verb);
}

static void run_hook(void)
{
    run_verb("put-cuda");
}

static void enter(void *unused)
{
    (void)unused;
    if (chroot(image) < 0 || chdir("/") < 0)
        _exit(126);
}

/* What the program in the container prints. */
static void assert_prints_with(const char *const *environment, const char *expected)
{
    static const char *const argv[] = {"/program", NULL};
    g_autofree char *out = NULL;
    g_autofree char *err = NULL;
    g_autoptr(GError) error = NULL;

    g_spawn_sync(NULL, (char **)argv, (char **)environment, G_SPAWN_DEFAULT, enter, NULL, &out,
                 &err, NULL, &error);
    g_assert_no_error(error);
    g_test_message("%s%s", out, err);
    g_assert_cmpstr(out, ==, expected);
}

static void assert_prints(const char *expected)
{
    static const char *const environment[] = {
        "LD_LIBRARY_PATH=" COMPAT, "FAKE_CUDA_TOTAL=8589934592", "VGPU_GOVERNOR_REQUIRED=1",
        "VGPU_GOVERNOR_SLICES=/run/vgpu/slices", NULL};

    assert_prints_with(environment, expected);
}

static void open_namespace(void)
{
    g_assert_cmpint(unshare(CLONE_NEWNS), ==, 0);
    g_assert_cmpint(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), ==, 0);
    image = g_build_filename(kit_live.root, "image", NULL);
    make_image();
}

/* Without the hook its loader finds no libcuda at all. */
static void plain(void)
{
    open_namespace();
    mount_device();
    assert_prints("");
    run_hook();
    assert_prints(HELD);
    run_hook();
    assert_prints(HELD);
}

/* Some runtimes prefer the pod's variables, and the image's, to those of CDI. A login shell has its
 * own LD_LIBRARY_PATH. */
static void other_variables(void)
{
    static const char *const environment[] = {"LD_LIBRARY_PATH=/nowhere",
                                              "FAKE_CUDA_TOTAL=8589934592",
                                              "VGPU_GOVERNOR=0",
                                              "VGPU_GOVERNOR_REQUIRED=0",
                                              "VGPU_GOVERNOR_SLICES=/nowhere",
                                              "NVIDIA_VISIBLE_DEVICES=all",
                                              NULL};

    open_namespace();
    mount_device();
    run_hook();
    assert_prints_with(environment, HELD);
}

static void test_other_variables(void)
{
    kit_open(64 * MIB);
    kit_run(other_variables);
    kit_charged(0);
    kit_close();
}

/* Without the hook it would go by its own library, which knows no slices. */
static void own_library(void)
{
    open_namespace();
    mount_device();
    sh("cd %s && mkdir -p ." COMPAT " && cp " REAL_DIR "/lib*.so.1 ." COMPAT, image);
    sh("cd %s" COMPAT " && ln -s libcuda.so.1 libcuda.so && ln -s libnvidia-ml.so.1 "
       "libnvidia-ml.so",
       image);
    assert_prints(FREE);
    run_hook();
    assert_prints(HELD);
}

/* podman run --read-only. */
static void read_only(void)
{
    open_namespace();
    g_assert_cmpint(mount(image, image, NULL, MS_BIND, NULL), ==, 0);
    mount_device();
    g_assert_cmpint(mount(NULL, image, NULL, MS_REMOUNT | MS_BIND | MS_RDONLY, NULL), ==, 0);
    run_hook();
    assert_prints(HELD);
}

static void test_plain(void)
{
    kit_open(64 * MIB);
    kit_run(plain);
    kit_charged(0);
    kit_close();
}

static void test_own_library(void)
{
    kit_open(64 * MIB);
    kit_run(own_library);
    kit_close();
}

static void test_read_only(void)
{
    kit_open(64 * MIB);
    kit_run(read_only);
    kit_close();
}

/* Without a node and without a variable: what CDI mounts, and the hook. */
static struct guard guard;

static void guarded(void)
{
    static const char *const argv[] = {"/remote-client", "compute", NULL};
    static const char *const nothing[] = {NULL};
    int status;

    open_namespace();
    write_config("");
    bind_to(REMOTE_DIR "/libcuda.so.1", FOLDER "/guest/libcuda.so.1");
    bind_to(guard.socket, "/run/vgpu/cuda.sock");
    sh("cd %s && cp " REMOTE_CLIENT " . && mkdir -p ." COMPAT " && cp " REAL_DIR
       "/lib*.so.1 ." COMPAT,
       image);
    sh("cd %s" COMPAT " && ln -s libcuda.so.1 libcuda.so && ln -s libnvidia-ml.so.1 "
       "libnvidia-ml.so",
       image);
    run_verb("put-cuda-remote");
    g_assert_true(g_spawn_sync(NULL, (char **)argv, (char **)nothing, G_SPAWN_DEFAULT, enter, NULL,
                               NULL, NULL, &status, NULL));
    g_assert_cmpint(status, ==, 0);
    assert_prints(HELD);
}

static void test_guarded(void)
{
    g_setenv("FAKE_CUDA_CONTENT", "1", TRUE);
    kit_open(64 * MIB);
    guard = guard_open("a");
    kit_run(guarded);
    kit_charged(0);
    guard_close(&guard);
    kit_close();
    g_unsetenv("FAKE_CUDA_CONTENT");
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/container/plain", test_plain);
    g_test_add_func("/container/other-variables", test_other_variables);
    g_test_add_func("/container/own-library", test_own_library);
    g_test_add_func("/container/read-only", test_read_only);
    g_test_add_func("/container/guarded", test_guarded);
    return g_test_run();
}
