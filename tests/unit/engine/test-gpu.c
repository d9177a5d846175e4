// SPDX-License-Identifier: MIT
/* Which GPU, which driver, which options, and what the sandbox leaves. */
#include "describe.h"
#include "engine.h"
#include "exit_code.h"
#include "fake_virgl.h"
#include "gpu.h"
#include "icd.h"
#include "options.h"
#include "renderer.h"
#include "sandbox.h"
#include "shader_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <virglrenderer.h>
#include <vulkan/vulkan_core.h>

static char *sysroot;

static void make_dir(const char *path)
{
    g_autofree char *full = g_strconcat(sysroot, path, NULL);

    g_assert_cmpint(g_mkdir_with_parents(full, 0755), ==, 0);
}

static void make_file(const char *path, const char *text)
{
    g_autofree char *full = g_strconcat(sysroot, path, NULL);
    g_autofree char *dir = g_path_get_dirname(full);

    g_assert_cmpint(g_mkdir_with_parents(dir, 0755), ==, 0);
    g_assert_true(g_file_set_contents(full, text, -1, NULL));
}

static void make_link(const char *target, const char *path)
{
    g_autofree char *full = g_strconcat(sysroot, path, NULL);

    g_assert_cmpint(symlink(target, full), ==, 0);
}

/* 01:00.0 renders through a virtio device, 02:00.0 directly, 03:00.0 not at all. */
static void make_sysfs(void)
{
    sysroot = g_dir_make_tmp("vgpu-engine-XXXXXX", NULL);
    make_dir("/sys/bus/pci/devices");
    make_dir("/sys/class/drm");
    make_dir("/sys/devices/pci0/0000:01:00.0/virtio0/drm/renderD129");
    make_dir("/sys/devices/pci0/0000:02:00.0/drm/renderD128");
    make_dir("/sys/devices/pci0/0000:02:00.0/drm/card0");
    make_dir("/sys/devices/pci0/0000:03:00.0");
    make_file("/sys/devices/pci0/0000:01:00.0/virtio0/drm/renderD129/dev", "226:129\n");
    make_file("/sys/devices/pci0/0000:02:00.0/drm/renderD128/dev", "226:128\n");
    make_link("../..", "/sys/devices/pci0/0000:01:00.0/virtio0/drm/renderD129/device");
    make_link("../..", "/sys/devices/pci0/0000:02:00.0/drm/renderD128/device");
    for (int i = 1; i <= 3; i++) {
        g_autofree char *target = g_strdup_printf("../../../devices/pci0/0000:0%d:00.0", i);
        g_autofree char *path = g_strdup_printf("/sys/bus/pci/devices/0000:0%d:00.0", i);

        make_link(target, path);
    }
    make_link("../../devices/pci0/0000:01:00.0/virtio0/drm/renderD129",
              "/sys/class/drm/renderD129");
    make_link("../../devices/pci0/0000:02:00.0/drm/renderD128", "/sys/class/drm/renderD128");
    make_link("../../devices/pci0/0000:02:00.0/drm/card0", "/sys/class/drm/card0");
    make_link("../../../bus/pci/drivers/amdgpu", "/sys/devices/pci0/0000:02:00.0/driver");
    make_file("/proc/driver/nvidia/gpus/0000:02:00.0/information",
              "Model: \t\t Some GPU\nDevice Minor: \t 3\n");
    make_file("/usr/share/vulkan/icd.d/b.json", "{}");
    make_file("/usr/share/vulkan/icd.d/a.json", "{}");
    make_file("/usr/share/vulkan/icd.d/readme", "");
    make_file("/etc/vulkan/icd.d/z.json", "{}");
}

static void test_virtio(void)
{
    g_autoptr(GError) error = NULL;
    struct gpu *gpu = gpu_lookup("0000:01:00.0", sysroot, &error);

    g_assert_no_error(error);
    g_assert_cmpstr(gpu->render_node, ==, "/dev/dri/renderD129");
    g_assert_cmpuint(gpu->render_major, ==, 226);
    g_assert_cmpuint(gpu->render_minor, ==, 129);
    g_assert_cmpuint(g_strv_length(gpu->nodes), ==, 1);
    gpu_free(gpu);
}

static void test_nvidia(void)
{
    g_autoptr(GError) error = NULL;
    struct gpu *gpu = gpu_lookup("0000:02:00.0", sysroot, &error);

    g_assert_no_error(error);
    g_assert_cmpuint(gpu->bus, ==, 2);
    g_assert_cmpstr(gpu->icd_hint, ==, "radeon");
    g_assert_true(g_strv_contains((const char *const *)gpu->nodes, "/dev/dri/renderD128"));
    g_assert_true(g_strv_contains((const char *const *)gpu->nodes, "/dev/nvidia3"));
    g_assert_true(g_strv_contains((const char *const *)gpu->nodes, "/dev/nvidiactl"));
    g_assert_true(g_strv_contains((const char *const *)gpu->nodes, "/dev/nvidia-uvm"));
    /* Debuggers' and displays': a render worker has no use for them. */
    g_assert_false(g_strv_contains((const char *const *)gpu->nodes, "/dev/nvidia-uvm-tools"));
    g_assert_false(g_strv_contains((const char *const *)gpu->nodes, "/dev/nvidia-modeset"));
    gpu_free(gpu);
}

/* A host without a display: NVIDIA's driver, without its part for DRM. */
static void test_nvidia_without_drm(void)
{
    static const char link[] = "/sys/devices/pci0/0000:03:00.0/driver";
    g_autofree char *driver = g_strconcat(sysroot, link, NULL);
    g_autoptr(GError) error = NULL;

    make_link("../../../bus/pci/drivers/nvidia", link);
    g_assert_null(gpu_lookup("0000:03:00.0", sysroot, &error));
    g_assert_error(error, ENGINE_ERROR, EXIT_CODE_GPU);
    g_assert_nonnull(strstr(error->message, "modprobe nvidia-drm"));
    g_assert_cmpint(unlink(driver), ==, 0);
}

/* For CUDA it needs none of that; other drivers' GPUs have no CUDA. */
static void test_cuda(void)
{
    static const char information[] = "/proc/driver/nvidia/gpus/0000:03:00.0/information";
    g_autofree char *path = g_strconcat(sysroot, information, NULL);
    g_autoptr(GError) error = NULL;
    struct gpu *gpu;

    g_assert_null(gpu_lookup_cuda("0000:03:00.0", sysroot, &error));
    g_assert_error(error, ENGINE_ERROR, EXIT_CODE_GPU);
    make_file(information, "Device Minor: \t 4\n");
    gpu = gpu_lookup_cuda("0000:03:00.0", sysroot, NULL);
    g_assert_nonnull(gpu);
    g_assert_null(gpu->render_node);
    g_assert_cmpuint(g_strv_length(gpu->nodes), ==, 3);
    g_assert_cmpstr(gpu->nodes[0], ==, "/dev/nvidia4");
    gpu_free(gpu);
    g_assert_null(gpu_lookup_cuda("soft:x", sysroot, NULL));
    g_assert_cmpint(unlink(path), ==, 0);
}

static void *make_node(void *path)
{
    g_usleep(50000);
    make_file(path, "");
    return NULL;
}

static void assert_missing(const char *what, int code)
{
    g_autoptr(GError) error = NULL;

    g_assert_null(gpu_wait_for(gpu_lookup, "0000:02:00.0", sysroot, 0, &error));
    g_assert_error(error, ENGINE_ERROR, code);
    g_assert_nonnull(strstr(error->message, what));
}

static struct gpu *wait_long(const char *name)
{
    g_autoptr(GError) error = NULL;
    struct gpu *gpu = gpu_wait_for(gpu_lookup, name, sysroot,
                                   g_get_monotonic_time() + 60 * G_TIME_SPAN_SECOND, &error);

    g_assert_no_error(error);
    return gpu;
}

/* The sandbox closes over the nodes that there are, and NVIDIA's are made late, by a program. */
static void test_nodes_that_come_late(void)
{
    struct gpu *gpu;
    GThread *thread;

    assert_missing("/dev/dri/renderD128", EXIT_CODE_NODE);
    make_file("/dev/dri/renderD128", "");
    make_file("/dev/nvidia3", "");
    assert_missing("/dev/nvidiactl", EXIT_CODE_NODE);

    thread = g_thread_new("node", make_node, (void *)"/dev/nvidiactl");
    g_test_expect_message("vgpu-engine", G_LOG_LEVEL_MESSAGE, "waiting: *nvidiactl*");
    /* Vulkan works without the last one. */
    g_test_expect_message("vgpu-engine", G_LOG_LEVEL_MESSAGE, "*/dev/nvidia-uvm*");
    gpu = wait_long("0000:02:00.0");
    g_test_assert_expected_messages();
    g_thread_join(thread);
    gpu_free(gpu);

    gpu_free(wait_long("soft:cpu"));
}

static void *bring_back(void *path)
{
    g_usleep(50000);
    make_link("../../../devices/pci0/0000:02:00.0", path);
    return NULL;
}

/* A reset takes the device away for a moment. */
static void test_gpu_that_comes_back(void)
{
    static const char link[] = "/sys/bus/pci/devices/0000:02:00.0";
    g_autofree char *path = g_strconcat(sysroot, link, NULL);
    GThread *thread;

    g_assert_cmpint(unlink(path), ==, 0);
    assert_missing("no such PCI device", EXIT_CODE_GPU);
    thread = g_thread_new("device", bring_back, (void *)link);
    g_test_expect_message("vgpu-engine", G_LOG_LEVEL_MESSAGE, "waiting: *no such PCI device*");
    g_test_expect_message("vgpu-engine", G_LOG_LEVEL_MESSAGE, "*/dev/nvidia-uvm*");
    gpu_free(wait_long("0000:02:00.0"));
    g_test_assert_expected_messages();
    g_thread_join(thread);
}

#define DESCRIPTION "/run/vgpu/vulkan/0000:02:00.0"

static char *find_known(bool *dma_buf)
{
    struct gpu *gpu = gpu_lookup("0000:02:00.0", sysroot, NULL);
    struct icd_report report;
    char *manifest = icd_known(sysroot, gpu, &report);

    if (manifest)
        *dma_buf = report.dma_buf;
    gpu_free(gpu);
    return manifest;
}

/* Seconds from now; what was written before is as old as its file. */
static void describe_at(int seconds, const char *text)
{
    g_autofree char *path = g_strconcat(sysroot, DESCRIPTION, NULL);
    const struct timespec now = {.tv_sec = time(NULL) + seconds};
    const struct timespec times[] = {now, now};

    make_file(DESCRIPTION, text);
    g_assert_cmpint(utimensat(AT_FDCWD, path, times, 0), ==, 0);
}

/* The driver is searched again if there may be another one since, or if half of it is known. */
static void test_known(void)
{
    const struct icd_report report = {.devices = 1, .name = "Some GPU", .dma_buf = true};
    g_autofree char *text = describe_report("/usr/share/vulkan/icd.d/b.json", &report);
    g_autofree char *gone = describe_report("/usr/share/vulkan/icd.d/gone.json", &report);
    g_autofree char *none = describe_missing("GPU 0000:02:00.0: it has no render node");
    g_autofree char *half = g_strndup(text, (gsize)(strstr(text, "features") - text));
    g_autofree char *expected = g_strconcat(sysroot, "/usr/share/vulkan/icd.d/b.json", NULL);
    bool dma_buf = false;
    char *manifest;

    g_assert_null(find_known(&dma_buf));
    describe_at(100, text);
    manifest = find_known(&dma_buf);
    g_assert_cmpstr(manifest, ==, expected);
    g_assert_true(dma_buf);
    g_free(manifest);

    describe_at(-100, text);
    g_assert_null(find_known(&dma_buf));
    describe_at(100, half);
    g_assert_null(find_known(&dma_buf));
    describe_at(100, gone);
    g_assert_null(find_known(&dma_buf));
    describe_at(100, "");
    g_assert_null(find_known(&dma_buf));
    describe_at(100, none);
    g_assert_null(find_known(&dma_buf));
}

static void test_soft(void)
{
    struct gpu *gpu = gpu_lookup("soft:cpu", sysroot, NULL);

    g_assert_true(gpu->soft);
    g_assert_null(gpu->render_node);
    g_assert_cmpstr(gpu->nodes[0], ==, "/dev/udmabuf");
    gpu_free(gpu);
}

static void test_no_gpu(void)
{
    static const char *const missing[] = {"0000:03:00.0", "0000:04:00.0"};
    static const char *const names[] = {"nonsense", "", "0000:01:00.0/..", "0000:01:00.9",
                                        "01:00.0"};

    for (size_t i = 0; i < G_N_ELEMENTS(missing); i++) {
        g_autoptr(GError) error = NULL;

        g_assert_null(gpu_lookup(missing[i], sysroot, &error));
        g_assert_error(error, ENGINE_ERROR, EXIT_CODE_GPU);
    }
    /* Waiting would not help. */
    for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
        g_autoptr(GError) error = NULL;

        g_assert_null(gpu_wait_for(gpu_lookup, names[i], sysroot, G_MAXINT64, &error));
        g_assert_error(error, ENGINE_ERROR, EXIT_CODE_USAGE);
    }
}

static void test_matches(void)
{
    struct gpu *gpu = gpu_lookup("0000:02:00.0", sysroot, NULL);
    struct gpu *soft = gpu_lookup("soft:cpu", sysroot, NULL);
    struct icd_report drm = {
        .devices = 1, .has_drm = true, .render_major = 226, .render_minor = 128};
    struct icd_report pci = {.devices = 1, .has_pci = true, .bus = 2};
    struct icd_report cpu = {.devices = 1, .cpu = true};

    g_assert_true(icd_matches(&drm, gpu));
    g_assert_true(icd_matches(&pci, gpu));
    g_assert_true(icd_matches(&cpu, soft));
    g_assert_false(icd_matches(&cpu, gpu));
    g_assert_false(icd_matches(&drm, soft));

    drm.devices = 2; /* one of two is not filtered */
    g_assert_false(icd_matches(&drm, gpu));
    drm.devices = 1;
    drm.render_minor = 129;
    drm.has_pci = true; /* what a driver passes on from a host of its own proves nothing */
    drm.bus = 2;
    g_assert_false(icd_matches(&drm, gpu));
    pci.device = 1;
    g_assert_false(icd_matches(&pci, gpu));
    gpu_free(gpu);
    gpu_free(soft);
}

static void test_icd_list(void)
{
    g_auto(GStrv) list = icd_list(sysroot, NULL);
    g_auto(GStrv) hinted = icd_list(sysroot, "b.");

    g_assert_cmpuint(g_strv_length(list), ==, 3);
    g_assert_true(g_str_has_suffix(list[0], "/etc/vulkan/icd.d/z.json"));
    g_assert_true(g_str_has_suffix(list[1], "/a.json"));
    g_assert_true(g_str_has_suffix(list[2], "/b.json"));
    g_assert_cmpuint(g_strv_length(hinted), ==, 3);
    g_assert_true(g_str_has_suffix(hinted[0], "/b.json"));
    g_assert_true(g_str_has_suffix(hinted[1], "/z.json"));
}

/* These manifests name no library: every probe fails, and the message says so. */
static void test_icd_none(void)
{
    g_auto(GStrv) list = icd_list(sysroot, NULL);
    struct gpu *gpu = gpu_lookup("0000:01:00.0", sysroot, NULL);
    struct icd_report report;
    g_autoptr(GError) error = NULL;

    g_assert_null(icd_choose(gpu, (const char *const *)list, &report, &error));
    g_assert_error(error, ENGINE_ERROR, EXIT_CODE_GPU);
    g_assert_nonnull(strstr(error->message, "0000:01:00.0"));
    gpu_free(gpu);
}

static void test_describe(void)
{
    const struct icd_report report = {.devices = 1,
                                      .dma_buf = true,
                                      .api_version = VK_MAKE_API_VERSION(0, 1, 4, 305),
                                      .compute_queues = 5,
                                      .fp16 = true,
                                      .timeline = true,
                                      .name = "A [GPU] = 7"};
    g_autofree char *text = describe_report("/usr/share/vulkan/icd.d/radeon_icd.json", &report);

    g_assert_cmpstr(text, ==,
                    "[vulkan]\ndevice=A [GPU] = 7\ndriver=radeon_icd.json\napi=1.4.305\n"
                    "exports-memory=true\ncompute-queues=5\ngraphics-queues=0\n"
                    "features=fp16;timeline-semaphores;\n");
    g_free(text);
    text = describe_missing("GPU 0000:02:00.0: it has no render node");
    g_assert_cmpstr(text, ==, "[vulkan]\nmissing=GPU 0000:02:00.0: it has no render node\n");
}

/* The render server inherits it; this process charges nothing itself. */
static void test_governed(void)
{
    struct engine engine;

    fake_virgl_init();
    engine_init(&engine, NULL);
    g_setenv("VGPU_GOVERNOR", "1", TRUE);
    g_assert_true(engine_start_renderer(&engine, NULL));
    g_assert_true(fake_virgl.governed);
    g_assert_null(g_getenv("VGPU_GOVERNOR"));
    renderer_stop();
    engine_clear(&engine);
    fake_virgl_clear();
}

static void test_renderer_fails(void)
{
    g_autoptr(GError) error = NULL;
    struct engine engine;

    fake_virgl_init();
    engine_init(&engine, NULL);
    fake_virgl.refuse_flags = VIRGL_RENDERER_VENUS;
    g_assert_false(engine_start_renderer(&engine, &error));
    g_assert_error(error, ENGINE_ERROR, EXIT_CODE_RENDERER);
    g_clear_error(&error);
    fake_virgl.refuse_flags = 0;
    fake_virgl.venus_capset_size = 0;
    g_assert_false(engine_start_renderer(&engine, &error));
    g_assert_error(error, ENGINE_ERROR, EXIT_CODE_RENDERER);
    engine_clear(&engine);
    fake_virgl_clear();
}

static void test_options(void)
{
    char *good[] = {"vgpu-engine", "--device", "/dev/vgpu/x", "-E", "A=b", NULL};
    char *both[] = {"vgpu-engine", "--device", "/dev/vgpu/x", "--fd", "3", NULL};
    char *rest[] = {"vgpu-engine", "surplus", NULL};
    char *wrong[] = {"vgpu-engine", "--capsets", "venus", NULL};
    g_autoptr(GError) error = NULL;
    struct options options;

    g_assert_true(options_parse(&options, 5, good, &error));
    g_assert_cmpstr(options.device, ==, "/dev/vgpu/x");
    g_assert_cmpint(options.fd, ==, -1);
    g_assert_cmpstr(options.environment[0], ==, "A=b");
    options_clear(&options);

    char **const bad[] = {both, rest, wrong};

    for (size_t i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_assert_false(options_parse(&options, (int)g_strv_length(bad[i]), bad[i], &error));
        g_assert_nonnull(error);
        g_clear_error(&error);
        options_clear(&options);
    }
}

static void child_environment(void)
{
    const char *const extra[] = {"LP_NUM_THREADS=2", NULL};

    setenv("VK_ICD_FILENAMES", "evil.json", 1);
    setenv("VK_LOADER_LAYERS_ENABLE", "*", 1);
    setenv("LD_PRELOAD_OF_SOMEBODY", "x", 1);
    setenv("NOTIFY_SOCKET", "/run/notify", 1);
    sandbox_clean_environment(extra);
    _exit(!getenv("VK_ICD_FILENAMES") && !getenv("VK_LOADER_LAYERS_ENABLE") &&
                  !getenv("LD_PRELOAD_OF_SOMEBODY") && getenv("NOTIFY_SOCKET") &&
                  getenv("LP_NUM_THREADS") && getenv("MESA_SHADER_CACHE_DISABLE")
              ? 0
              : 1);
}

/* An owned worker's names: a link out of it, and folders in folders. */
static void child_cache(void)
{
    g_autofree char *cache = g_strconcat(sysroot, "/shaders", NULL);
    g_autofree char *outside = g_strconcat(sysroot, "/outside", NULL);
    g_autofree char *line = g_strdup_printf(
        "mkdir -p %s/a/b/c %s && touch %s/a/b/file %s/file && ln -s %s %s/link && ln -s .. %s/up",
        cache, outside, cache, outside, outside, cache, cache);
    g_autofree char *kept = g_strconcat(outside, "/file", NULL);

    sandbox_clean_environment(NULL);
    if (system(line) != 0)
        _exit(1);
    shader_cache_empty();
    if (rmdir(cache) == 0 || errno != ENOTEMPTY)
        _exit(2);
    shader_cache_use(cache);
    if (g_strcmp0(getenv("MESA_SHADER_CACHE_DIR"), cache) != 0 ||
        getenv("MESA_SHADER_CACHE_DISABLE") || !getenv("MESA_SHADER_CACHE_MAX_SIZE") ||
        g_strcmp0(getenv("CUDA_CACHE_PATH"), cache) != 0 || !getenv("CUDA_CACHE_MAXSIZE"))
        _exit(3);
    /* Only an empty one can be removed. */
    if (rmdir(cache) != 0 || access(kept, F_OK) != 0)
        _exit(4);
    shader_cache_empty();
    shader_cache_use(NULL);
    _exit(getenv("MESA_SHADER_CACHE_DISABLE") && !getenv("CUDA_CACHE_PATH") ? 0 : 5);
}

/*
 * A worker that is not root: folders that cannot be listed or changed, though what is in them can
 * be reached by its name.
 */
static void child_hidden_cache(void)
{
    g_autofree char *cache = NULL;
    g_autofree char *line = NULL;

    if (setresuid(65534, 65534, 65534) != 0)
        _exit(77);
    cache = g_dir_make_tmp("shaders-XXXXXX", NULL);
    line = g_strdup_printf("cd %s && mkdir -p a/b c d/e && touch a/b/file c/file d/e/file && "
                           "chmod 0300 a/b a && chmod 0500 c && chmod 0 d/e d",
                           cache);
    if (system(line) != 0)
        _exit(1);
    shader_cache_use(cache);
    if (!getenv("MESA_SHADER_CACHE_DIR"))
        _exit(2);
    _exit(rmdir(cache) == 0 ? 0 : 3);
}

/* What belongs to somebody else cannot be emptied: it is not used. */
static void child_foreign_cache(void)
{
    g_autofree char *cache = g_dir_make_tmp("shaders-XXXXXX", NULL);
    g_autofree char *line = g_strdup_printf("mkdir %s/a && touch %s/a/file", cache, cache);

    if (system(line) != 0 || chmod(cache, 01777) != 0)
        _exit(1);
    if (setresuid(65534, 65534, 65534) != 0)
        _exit(77);
    shader_cache_use(cache);
    _exit(getenv("MESA_SHADER_CACHE_DIR") ? 2 : 0);
}

static bool can_open(const char *path, int flags)
{
    int fd = open(path, flags | O_CLOEXEC, 0600);

    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

static void child_sandbox(void)
{
    const char *const nodes[] = {"/dev/full", "/dev/does-not-exist", NULL};
    g_autofree char *inside = g_strconcat(sysroot, "/usr/share/vulkan/icd.d/a.json", NULL);
    g_autofree char *new_file = g_strconcat(sysroot, "/new", NULL);
    g_autofree char *cache = g_strconcat(sysroot, "/cache", NULL);
    g_autofree char *cached = g_strconcat(cache, "/new", NULL);

    if (!can_open(inside, O_RDONLY) || mkdir(cache, 0700) < 0)
        _exit(1);
    if (!sandbox_enter(nodes, cache, NULL))
        _exit(2);
    if (!can_open(cached, O_WRONLY | O_CREAT) || unlink(cached) < 0)
        _exit(8);
    if (can_open(inside, O_RDONLY) || can_open(new_file, O_WRONLY | O_CREAT))
        _exit(3);
    if (!can_open("/dev/full", O_RDWR) || !can_open("/proc/self/maps", O_RDONLY))
        _exit(4);
    if (can_open("/etc/passwd", O_RDONLY) || can_open("/dev/kmsg", O_RDONLY))
        _exit(5);
    execl("/bin/sh", "sh", "-c", "exit 6", NULL);
    if (errno != EACCES)
        _exit(7);
    _exit(0);
}

/*
 * A shell has no right that a worker has not, and any worker can be made one: running the render
 * server takes running its loader, which runs whatever can be read.
 */
static void child_loader(void)
{
    const char *const nodes[] = {NULL};

    if (!sandbox_enter(nodes, NULL, NULL))
        _exit(2);
    execl("/lib64/ld-linux-x86-64.so.2", "ld.so", "/bin/sh", "-c",
          "read -r none </etc/passwd 2>/dev/null && exit 1; exit 42", NULL);
    _exit(3);
}

static int run_child(void (*child)(void))
{
    int status = -1;
    pid_t pid = fork();

    if (pid == 0)
        child();
    g_assert_cmpint(waitpid(pid, &status, 0), ==, pid);
    g_assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void test_environment(void)
{
    g_assert_cmpint(run_child(child_environment), ==, 0);
}

static void test_cache(void)
{
    g_assert_cmpint(run_child(child_cache), ==, 0);
}

static void test_hidden_cache(void)
{
    int hidden = run_child(child_hidden_cache);
    int foreign = run_child(child_foreign_cache);

    if (hidden == 77 || foreign == 77) {
        g_test_skip("needs root, to be somebody else");
        return;
    }
    g_assert_cmpint(hidden, ==, 0);
    g_assert_cmpint(foreign, ==, 0);
}

static void test_sandbox(void)
{
    int status = run_child(child_sandbox);

    if (status == 2)
        g_test_skip("this kernel has no Landlock");
    else
        g_assert_cmpint(status, ==, 0);
}

static void test_loader(void)
{
    int status = run_child(child_loader);

    if (status == 2 || status == 3)
        g_test_skip("no Landlock, or another architecture");
    else
        g_assert_cmpint(status, ==, 42);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    make_sysfs();
    g_test_add_func("/gpu/virtio", test_virtio);
    g_test_add_func("/gpu/nvidia", test_nvidia);
    g_test_add_func("/gpu/nvidia-without-drm", test_nvidia_without_drm);
    g_test_add_func("/gpu/cuda", test_cuda);
    g_test_add_func("/gpu/nodes-that-come-late", test_nodes_that_come_late);
    g_test_add_func("/gpu/that-comes-back", test_gpu_that_comes_back);
    g_test_add_func("/gpu/soft", test_soft);
    g_test_add_func("/gpu/none", test_no_gpu);
    g_test_add_func("/icd/matches", test_matches);
    g_test_add_func("/icd/list", test_icd_list);
    g_test_add_func("/icd/known", test_known);
    g_test_add_func("/icd/none", test_icd_none);
    g_test_add_func("/gpu/describe", test_describe);
    g_test_add_func("/renderer/fails", test_renderer_fails);
    g_test_add_func("/renderer/governed", test_governed);
    g_test_add_func("/options/parse", test_options);
    g_test_add_func("/sandbox/environment", test_environment);
    g_test_add_func("/sandbox/shader-cache", test_cache);
    g_test_add_func("/sandbox/hidden-shader-cache", test_hidden_cache);
    g_test_add_func("/sandbox/landlock", test_sandbox);
    g_test_add_func("/sandbox/loader", test_loader);
    return g_test_run();
}
