// SPDX-License-Identifier: MIT
/* A directory of slices, as containers have it, with the layer as it is installed and a real
 * arbiter. */
#include <glib/gstdio.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include "gpu.h"
#include "host.h"

#define MIB (1024u * 1024u)

static const char *const slices[] = {"one", "[slice]\nvram=67108864\n", "two",
                                     "[slice]\nvram=33554432\nengines=compute,transfer\n", NULL};

static struct host host;
static char *dir;
static bool has_mounts;

/* As a container's mount: the slice's directory. */
static void show(const char *gpu, const char *as, const char *slice)
{
    g_autofree char *target = g_build_filename(host.root, "run/vgpu/slices", slice, NULL);
    g_autofree char *folder = g_build_filename(dir, gpu, NULL);
    g_autofree char *link = g_build_filename(folder, as, NULL);

    g_assert_cmpint(g_mkdir_with_parents(folder, 0700), ==, 0);
    g_assert_cmpint(symlink(target, link), ==, 0);
}

static void show_nothing(void)
{
    g_autofree char *command = g_strdup_printf("sh -c 'rm -rf %s/*'", dir);

    g_assert_true(g_spawn_command_line_sync(command, NULL, NULL, NULL, NULL));
}

static uint64_t heap(const struct gpu *gpu)
{
    VkPhysicalDeviceMemoryProperties memory;

    vkGetPhysicalDeviceMemoryProperties(gpu->physical, &memory);
    return memory.memoryHeaps[0].size;
}

/* The slice of the software GPU, and not that of another one. */
static void test_one_of_two(void)
{
    struct gpu gpu;
    VkDeviceMemory memory;

    show("0000:01:00.0", "a", "one");
    show("soft:a", "b", "two");
    gpu_open(&gpu, NULL);
    g_assert_cmpuint(heap(&gpu), ==, 32 * MIB);
    g_assert_cmpint(gpu_allocate(&gpu, 33 * MIB, NULL, &memory), ==, VK_ERROR_OUT_OF_DEVICE_MEMORY);
    gpu_close(&gpu);
    show_nothing();
}

/* Of several of one GPU the first stands for all. */
static void test_first(void)
{
    struct gpu gpu;

    show("soft:a", "b", "two");
    show("soft:a", "a", "one");
    gpu_open(&gpu, NULL);
    g_assert_cmpuint(heap(&gpu), ==, 64 * MIB);
    gpu_close(&gpu);
    show_nothing();
    /* Until it has no socket any more. */
    show("soft:a", "a", "three");
    show("soft:a", "b", "two");
    gpu_open(&gpu, NULL);
    g_assert_cmpuint(heap(&gpu), ==, 32 * MIB);
    gpu_close(&gpu);
    show_nothing();
}

/* Not of any GPU that there is a slice of: the processor is nobody's, and works, also in a child.
 */
static void test_outside(void)
{
    struct gpu gpu;
    VkDeviceMemory memory;

    show("0000:01:00.0", "a", "two");
    gpu_open(&gpu, NULL);
    g_assert_cmpuint(heap(&gpu), >, 64 * MIB);
    VK(gpu_allocate(&gpu, 65 * MIB, NULL, &memory));
    vkFreeMemory(gpu.device, memory, NULL);
    gpu_record(&gpu, 1000);
    gpu_close(&gpu);
    show_nothing();
}

static void test_none(void)
{
    VkInstanceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO};
    VkInstance instance;

    g_assert_cmpint(vkCreateInstance(&info, NULL, &instance), !=, VK_SUCCESS);
    show("soft:a", "a", "three");
    g_assert_cmpint(vkCreateInstance(&info, NULL, &instance), !=, VK_SUCCESS);
    show_nothing();
}

/* From the arbiter's file to Vulkan's values, and changed while it runs. */
static void test_engines(void)
{
    VkQueueFamilyProperties family;
    uint32_t count = 1;
    struct gpu gpu;

    show("soft:a", "b", "two");
    gpu_open(&gpu, NULL);
    vkGetPhysicalDeviceQueueFamilyProperties(gpu.physical, &count, &family);
    g_assert_cmphex(family.queueFlags & (VK_QUEUE_GRAPHICS_BIT | VK_QUEUE_COMPUTE_BIT), ==,
                    VK_QUEUE_COMPUTE_BIT);
    host_configure(&host, "two", "[slice]\nvram=33554432\nengines=graphics,compute\n");
    for (int i = 0; i < 500 && !(family.queueFlags & VK_QUEUE_GRAPHICS_BIT); i++) {
        g_usleep(10000);
        vkGetPhysicalDeviceQueueFamilyProperties(gpu.physical, &count, &family);
    }
    g_assert_true(family.queueFlags & VK_QUEUE_GRAPHICS_BIT);
    gpu_close(&gpu);
    show_nothing();
}

/* "docker exec": the container's mounts, and none of its variables. */
static void test_mounted(void)
{
    static const char *const names[] = {"VGPU_GOVERNOR_SLICES", "VGPU_GOVERNOR_SOCKET",
                                        "VGPU_GOVERNOR_REQUIRED"};
    VkInstanceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO};
    g_autofree char *kept[G_N_ELEMENTS(names)] = {NULL};
    VkInstance instance;
    struct gpu gpu;

    if (!has_mounts || mount(dir, "/run/vgpu/slices", NULL, MS_BIND, NULL)) {
        g_test_skip("only root can mount");
        return;
    }
    for (guint i = 0; i < G_N_ELEMENTS(names); i++) {
        kept[i] = g_strdup(g_getenv(names[i]));
        g_unsetenv(names[i]);
    }
    show("soft:a", "b", "two");
    gpu_open(&gpu, NULL);
    g_assert_cmpuint(heap(&gpu), ==, 32 * MIB);
    gpu_close(&gpu);
    show_nothing();
    /* Its arbiter is away: no GPU, rather than all of it. */
    show("soft:a", "a", "three");
    g_assert_cmpint(vkCreateInstance(&info, NULL, &instance), !=, VK_SUCCESS);
    show_nothing();
    for (guint i = 0; i < G_N_ELEMENTS(names); i++) {
        if (kept[i])
            g_setenv(names[i], kept[i], TRUE);
        g_clear_pointer(&kept[i], g_free);
    }
    g_assert_cmpint(umount2("/run/vgpu/slices", MNT_DETACH), ==, 0);
}

/* Mounts of its own, before there are threads. */
static bool unshare_mounts(void)
{
    return unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount("tmpfs", "/run", "tmpfs", 0, NULL) == 0 &&
           g_mkdir_with_parents("/run/vgpu/slices", 0755) == 0;
}

int main(int argc, char **argv)
{
    int failed;

    has_mounts = unshare_mounts();
    g_test_init(&argc, &argv, NULL);
    gpu_environment();
    alarm(120);
    host_up(&host, slices);
    dir = g_build_filename(host.root, "shown", NULL);
    g_assert_cmpint(g_mkdir(dir, 0700), ==, 0);
    g_setenv("VGPU_GOVERNOR_SLICES", dir, TRUE);
    g_test_add_func("/several/one-of-two", test_one_of_two);
    g_test_add_func("/several/first", test_first);
    g_test_add_func("/several/outside", test_outside);
    g_test_add_func("/several/none", test_none);
    g_test_add_func("/several/engines", test_engines);
    g_test_add_func("/several/mounted", test_mounted);
    failed = g_test_run();
    host_down(&host);
    g_free(dir);
    return failed;
}
