/* SPDX-License-Identifier: MIT */
/* The commands: their calls to the driver, their messages, and the exit codes. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/conf.h"
#include "lib/gpus.h"
#include "tests/unit/registrar/tree.h"

#define GPU     "0000:01:00.0"
#define PCI_DIR "/sys/bus/pci/devices/" GPU
#define UUID_A  "11111111-1111-1111-1111-111111111111"
#define UUID_B  "22222222-2222-2222-2222-222222222222"

/* BAR 0: 512 MiB, not prefetchable; BAR 2: 256 MiB, prefetchable; the ROM and a bridge's window. */
#define RESOURCE                                                                                   \
    "0x00000000c0000000 0x00000000dfffffff 0x0000000000040200\n"                                   \
    "0x0000000000000000 0x0000000000000000 0x0000000000000000\n"                                   \
    "0x00000000e0000000 0x00000000efffffff 0x000000000014220c\n"                                   \
    "0x0000000000000000 0x0000000000000000 0x0000000000000000\n"                                   \
    "0x0000000000000000 0x0000000000000000 0x0000000000000000\n"                                   \
    "0x0000000000000000 0x0000000000000000 0x0000000000000000\n"                                   \
    "0x0000004000000000 0x0000007fffffffff 0x000000000014220c\n"

/* A shared GPU with a driver, two types that fit and one that does not. */
static Tree *tree_with(const char *driver)
{
    Tree *tree = tree_new();

    tree_write(tree, "/dev/vgpu-control", "");
    tree_pci_gpu(tree, GPU, driver, RESOURCE);
    tree_write(tree, GPUS_CONF, "[gpu " GPU "]\nmode=shared\n");
    tree_write(tree, "/etc/vgpu/types.d/10.conf",
               "[type half]\ndescription=Half\nvram=1/2\nweight=7\ncap=50\npriority=3\n"
               "max-instances=2\nwindow=1M\n"
               "[type small]\nvram=16M\ndisplay=1\n"
               "[type large]\nvram=64G\n"
               "[type intel]\nvram=16M\ngpu=8086:*\n");
    return tree;
}

static Tree *usual_tree(void)
{
    return tree_with("amdgpu");
}

static void test_add(void)
{
    g_autoptr(Tree) tree = usual_tree();
    const struct vgpu_type_desc *half = &fake_driver.types[0];

    g_assert_cmpint(tree_run(tree, "add", GPU), ==, 0);
    g_assert_cmpuint(fake_driver.calls, ==, 1);
    g_assert_cmpuint(fake_driver.request, ==, VGPU_CONTROL_ADD_GPU);
    g_assert_cmpstr(fake_driver.gpu.gpu, ==, GPU);
    g_assert_cmpuint(fake_driver.gpu.vram_bytes, ==, 256 * MIB);
    g_assert_cmpuint(fake_driver.gpu.ntypes, ==, 2);
    g_assert_cmpstr(half->name, ==, "half");
    g_assert_cmpstr(half->description, ==, "Half");
    g_assert_cmpuint(half->vram_bytes, ==, 128 * MIB);
    g_assert_cmpuint(half->window_bytes, ==, MIB);
    g_assert_cmpuint(half->weight, ==, 7);
    g_assert_cmpuint(half->cap, ==, 50);
    g_assert_cmpuint(half->priority, ==, 3);
    g_assert_cmpuint(half->max_instances, ==, 2);
    g_assert_cmpuint(half->scanouts, ==, 0);
    g_assert_cmpuint(fake_driver.types[1].scanouts, ==, 1);
    g_assert_cmpstr(fake_driver.types[1].name, ==, "small");
    assert_contains(tree->log, "2 types on 256 MiB of memory (from the size of its BAR 2");
    assert_contains(tree->log, "type large is left out: its 64 GiB don't fit");
}

#define NVIDIA_CONF "[gpu " GPU "]\nmode=shared\nvram=1G\n"
#define CUDA_TYPES                                                                                 \
    "[type half]\nvram=1/2\n[type plain]\nvram=1/2\ncuda=no\n[type wanted]\nvram=1/2\ncuda=yes\n"

/* An NVIDIA GPU offers CUDA, and its types have a larger window, unless they say otherwise. */
static void test_cuda(void)
{
    g_autoptr(Tree) tree = tree_with("nvidia");

    tree_write(tree, GPUS_CONF, NVIDIA_CONF);
    tree_write(tree, "/etc/vgpu/types.d/10.conf", CUDA_TYPES);
    g_assert_cmpint(tree_run(tree, "add", GPU), ==, 0);
    g_assert_cmpuint(fake_driver.gpu.ntypes, ==, 3);
    g_assert_cmpuint(fake_driver.types[0].cuda, ==, 1);
    g_assert_cmpuint(fake_driver.types[0].window_bytes, ==, 4096 * MIB);
    g_assert_cmpuint(fake_driver.types[1].cuda, ==, 0);
    g_assert_cmpuint(fake_driver.types[1].window_bytes, ==, 256 * MIB);
    g_assert_cmpuint(fake_driver.types[2].cuda, ==, 1);
    g_assert_cmpint(tree_run(tree, "check", NULL), ==, 0);
    assert_contains(tree->out, "  MAX CUDA\n");
    assert_contains(tree->out, "    2  yes\n");
    assert_contains(tree->out, "    2   no\n");
}

static void test_cuda_of_other_drivers(void)
{
    g_autoptr(Tree) tree = usual_tree();

    tree_write(tree, "/etc/vgpu/types.d/10.conf", CUDA_TYPES);
    g_assert_cmpint(tree_run(tree, "add", GPU), ==, 0);
    g_assert_cmpuint(fake_driver.gpu.ntypes, ==, 2);
    g_assert_cmpuint(fake_driver.types[0].cuda, ==, 0);
    g_assert_cmpuint(fake_driver.types[0].window_bytes, ==, 256 * MIB);
    assert_contains(tree->log, "type wanted is left out: it has cuda=yes, and only GPUs of "
                               "NVIDIA's driver have CUDA");
}

/* The module that stays loaded after an upgrade: VMs have vGPUs, without CUDA. */
static void test_cuda_of_older_module(void)
{
    g_autoptr(Tree) tree = tree_with("nvidia");

    tree_write(tree, GPUS_CONF, NVIDIA_CONF);
    fake_driver.is_older = TRUE;
    g_assert_cmpint(tree_run(tree, "add", GPU), ==, 0);
    g_assert_cmpuint(fake_driver.calls, ==, 2);
    g_assert_cmpuint(fake_driver.gpu.ntypes, ==, 2);
    g_assert_cmpuint(fake_driver.types[0].cuda, ==, 0);
    g_assert_cmpint(tree_run(tree, "update", GPU), ==, 0);
    g_assert_cmpuint(fake_driver.request, ==, VGPU_CONTROL_SET_TYPES);
}

/* Its VMs would stop: it is registered, with a warning. */
static void test_host_kernel(void)
{
    static const struct {
        const char *release;
        gboolean told;
    } kernels[] = {{"6.1.0-41-amd64", TRUE},
                   {"6.12.96+deb13-amd64", TRUE},
                   {"6.13.0", FALSE},
                   {"7.3.1", FALSE}};

    for (guint i = 0; i < G_N_ELEMENTS(kernels); i++) {
        g_autoptr(Tree) tree = usual_tree();

        tree_write(tree, "/proc/sys/kernel/osrelease", kernels[i].release);
        g_assert_cmpint(tree_run(tree, "add", GPU), ==, 0);
        g_assert_cmpint(strstr(tree->log, "trixie-backports") != NULL, ==, kernels[i].told);
    }
}

/* The vendor driver's own count has precedence over the BAR; gpus.conf has precedence over both. */
static void test_vram_sources(void)
{
    g_autoptr(Tree) tree = usual_tree();

    tree_write(tree, PCI_DIR "/drm/card1/lmem_total_bytes", "1073741824\n");
    g_assert_cmpint(tree_run(tree, "add", GPU), ==, 0);
    g_assert_cmpuint(fake_driver.gpu.vram_bytes, ==, 1024 * MIB);

    tree_write(tree, PCI_DIR "/tile0/physical_vram_size_bytes", "2147483648\n");
    tree_write(tree, PCI_DIR "/tile1/physical_vram_size_bytes", "2147483648\n");
    g_assert_cmpint(tree_run(tree, "add", GPU), ==, 0);
    g_assert_cmpuint(fake_driver.gpu.vram_bytes, ==, 4096 * MIB);

    tree_write(tree, PCI_DIR "/mem_info_vram_total", "8589934592\n");
    g_assert_cmpint(tree_run(tree, "add", GPU), ==, 0);
    g_assert_cmpuint(fake_driver.gpu.vram_bytes, ==, 8192 * MIB);
    assert_contains(tree->log, "from amdgpu's mem_info_vram_total");

    tree_write(tree, GPUS_CONF, "[gpu " GPU "]\nmode=shared\nvram=96M\n");
    g_assert_cmpint(tree_run(tree, "add", GPU), ==, 0);
    g_assert_cmpuint(fake_driver.gpu.vram_bytes, ==, 96 * MIB);
    assert_contains(tree->log, "from vram= in gpus.conf");
}

/* Parts refer to the existing memory; the number of vGPUs that fit, to the promisable memory. */
static void test_overcommit(void)
{
    g_autoptr(Tree) tree = usual_tree();

    tree_write(tree, GPUS_CONF, "[gpu " GPU "]\nmode=shared\novercommit=1.5\n");
    g_assert_cmpint(tree_run(tree, "add", GPU), ==, 0);
    g_assert_cmpuint(fake_driver.gpu.vram_bytes, ==, 384 * MIB);
    g_assert_cmpuint(fake_driver.types[0].vram_bytes, ==, 128 * MIB);
    assert_contains(tree->log, "of which may be promised: 384 MiB");
}

static void test_vram_unknown(void)
{
    g_autoptr(Tree) tree = usual_tree();

    tree_write(tree, PCI_DIR "/resource", "0x0 0x0 0x0\n");
    g_assert_cmpint(tree_run(tree, "add", GPU), ==, REGISTRAR_ERROR_REFUSED);
    assert_contains(tree->log, "set vram= in gpus.conf");
    g_assert_cmpuint(fake_driver.calls, ==, 0);
}

static void test_soft(void)
{
    g_autoptr(Tree) tree = usual_tree();

    tree_write(tree, GPUS_CONF, "[gpu soft:cpu]\nmode=shared\nvram=1G\n");
    g_assert_cmpint(tree_run(tree, "add", NULL), ==, 0);
    g_assert_cmpstr(fake_driver.gpu.gpu, ==, "soft:cpu");
    g_assert_cmpuint(fake_driver.gpu.vram_bytes, ==, 1024 * MIB);
    g_assert_cmpuint(fake_driver.gpu.ntypes, ==, 2);
}

/* A mistake in any file: the driver is not called at all, even if the others are correct. */
static void test_broken(void)
{
    static const char *const commands[] = {"add", "update", "check"};
    g_autoptr(Tree) tree = usual_tree();

    tree_write(tree, "/usr/lib/vgpu/types.d/50.conf", "[type x]\nvram=lots\n");
    for (guint i = 0; i < G_N_ELEMENTS(commands); i++) {
        g_assert_cmpint(tree_run(tree, commands[i], NULL), ==, REGISTRAR_ERROR_CONFIG);
        assert_contains(tree->log, "vram=lots");
    }
    g_assert_cmpuint(fake_driver.calls, ==, 0);
}

static void test_too_many_types(void)
{
    g_autoptr(GString) text = g_string_new(NULL);
    g_autoptr(Tree) tree = usual_tree();

    for (guint i = 0; i < VGPU_MAX_TYPES; i++)
        g_string_append_printf(text, "[type t%u]\nvram=16M\n", i);
    tree_write(tree, "/etc/vgpu/types.d/10.conf", text->str);
    g_assert_cmpint(tree_run(tree, "add", GPU), ==, 0);
    g_assert_cmpuint(fake_driver.gpu.ntypes, ==, VGPU_MAX_TYPES);

    tree_write(tree, "/etc/vgpu/types.d/20.conf", "[type one-more]\nvram=16M\n");
    g_assert_cmpint(tree_run(tree, "add", GPU), ==, REGISTRAR_ERROR_CONFIG);
    assert_contains(tree->log, "one-more");
    g_assert_cmpuint(fake_driver.calls, ==, 1);
}

static void test_no_types(void)
{
    g_autoptr(Tree) tree = usual_tree();

    tree_write(tree, "/etc/vgpu/types.d/10.conf", "");
    g_assert_cmpint(tree_run(tree, "add", GPU), ==, REGISTRAR_ERROR_CONFIG);
    assert_contains(tree->log, "no type is for it");
}

static void test_not_shared(void)
{
    g_autoptr(Tree) tree = usual_tree();

    g_assert_cmpint(tree_run(tree, "add", "0000:09:00.0"), ==, REGISTRAR_ERROR_NOT_SHARED);
    tree_write(tree, GPUS_CONF, "[gpu " GPU "]\nmode=host\n");
    g_assert_cmpint(tree_run(tree, "add", GPU), ==, REGISTRAR_ERROR_NOT_SHARED);
    assert_contains(tree->log, "mode=shared");
    g_assert_cmpint(tree_run(tree, "add", NULL), ==, 0);
    g_assert_cmpuint(fake_driver.calls, ==, 0);
}

/* By name these are errors; with --all they wait for udev and the others continue. */
static void test_absent(void)
{
    g_autoptr(Tree) tree = usual_tree();

    tree_pci_gpu(tree, "0000:02:00.0", NULL, RESOURCE);
    tree_write(tree, GPUS_CONF,
               "[gpu 0000:02:00.0]\nmode=shared\n[gpu 0000:03:00.0]\nmode=shared\n"
               "[gpu " GPU "]\nmode=shared\n");
    g_assert_cmpint(tree_run(tree, "add", "0000:02:00.0"), ==, REGISTRAR_ERROR_ABSENT);
    assert_contains(tree->log, "no driver is bound");
    g_assert_cmpint(tree_run(tree, "add", "0000:03:00.0"), ==, REGISTRAR_ERROR_ABSENT);
    assert_contains(tree->log, "no such PCI device");
    g_assert_cmpuint(fake_driver.calls, ==, 0);

    g_assert_cmpint(tree_run(tree, "add", NULL), ==, 0);
    g_assert_cmpuint(fake_driver.calls, ==, 1);
    g_assert_cmpstr(fake_driver.gpu.gpu, ==, GPU);
}

static void test_wrong_device(void)
{
    g_autoptr(Tree) tree = usual_tree();

    tree_pci_gpu(tree, "0000:02:00.0", "vfio-pci", RESOURCE);
    tree_write(tree, GPUS_CONF, "[gpu 0000:02:00.0]\nmode=shared\n[gpu " GPU "]\nmode=shared\n");
    g_assert_cmpint(tree_run(tree, "add", "0000:02:00.0"), ==, REGISTRAR_ERROR_REFUSED);
    assert_contains(tree->log, "vfio-pci");
    tree_write(tree, PCI_DIR "/class", "0x020000\n");
    g_assert_cmpint(tree_run(tree, "add", GPU), ==, REGISTRAR_ERROR_REFUSED);
    assert_contains(tree->log, "not a display controller (PCI class 020000)");
    g_assert_cmpuint(fake_driver.calls, ==, 0);
}

static void test_no_driver(void)
{
    static const char *const commands[] = {"add", "update", "remove"};
    g_autoptr(Tree) tree = usual_tree();
    g_autofree char *node = root_path(tree->root, "/dev/vgpu-control", NULL);

    g_assert_cmpint(remove(node), ==, 0);
    for (guint i = 0; i < G_N_ELEMENTS(commands); i++) {
        g_assert_cmpint(tree_run(tree, commands[i], GPU), ==, REGISTRAR_ERROR_NO_DRIVER);
        assert_contains(tree->log, "modprobe mdev_vgpu");
    }
}

/* Every errno that the uapi names has its own sentence. */
static void test_errno(void)
{
    static const struct {
        const char *command;
        int code;
        int result;
        const char *part;
    } cases[] = {
        {"add", EEXIST, 0, "registered already"},
        {"add", ENODEV, REGISTRAR_ERROR_REFUSED, "has just gone"},
        {"add", ENXIO, REGISTRAR_ERROR_REFUSED, "no driver is bound"},
        {"add", ENOTTY, REGISTRAR_ERROR_REFUSED, "not a display controller"},
        {"add", EINVAL, REGISTRAR_ERROR_REFUSED, "does not accept these values"},
        {"add", EPERM, REGISTRAR_ERROR_REFUSED, "as root"},
        {"add", ENOMEM, REGISTRAR_ERROR_REFUSED, "Cannot allocate memory"},
        {"update", EBUSY, REGISTRAR_ERROR_REFUSED, "while it has vGPUs: " UUID_A " " UUID_B ";"},
        {"update", ENOSPC, REGISTRAR_ERROR_REFUSED, "promised more memory"},
        {"update", ENODEV, REGISTRAR_ERROR_ABSENT, "not registered"},
        {"remove", EBUSY, REGISTRAR_ERROR_REFUSED, "while it has vGPUs: " UUID_A " " UUID_B ";"},
        {"remove", ENODEV, REGISTRAR_ERROR_ABSENT, "not registered"},
    };
    g_autoptr(Tree) tree = usual_tree();

    tree_mdev_type(tree, GPU, "amdgpu-half", UUID_B);
    tree_mdev_type(tree, GPU, "amdgpu-small", UUID_A);
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        fake_driver.fail = cases[i].code;
        g_assert_cmpint(tree_run(tree, cases[i].command, GPU), ==, cases[i].result);
        assert_contains(tree->log, cases[i].part);
        assert_contains(tree->log, GPU);
    }
}

static void test_other_parent(void)
{
    g_autoptr(Tree) tree = usual_tree();

    fake_driver.fail = EBUSY;
    g_assert_cmpint(tree_run(tree, "add", GPU), ==, REGISTRAR_ERROR_REFUSED);
    assert_contains(tree->log, "another driver offers mediated devices");
}

/*
 * Its types have gone with its driver; VMs hold vGPUs of it, of another GPU, and of a removed one.
 */
static void test_left_over(void)
{
    g_autoptr(Tree) tree = usual_tree();

    fake_driver.fail = EAGAIN;
    g_assert_cmpint(tree_run(tree, "add", GPU), ==, REGISTRAR_ERROR_REFUSED);
    assert_contains(tree->log, "has vGPUs from before; its driver was unbound");

    tree_link(tree, "/sys/bus/mdev/devices/" UUID_B,
              "../../../devices/pci0000:00/0000:00:10.1/" GPU "/" UUID_B);
    tree_link(tree, "/sys/bus/mdev/devices/" UUID_A, "../../../devices/vgpu-removed/" UUID_A);
    tree_link(tree, "/sys/bus/mdev/devices/other",
              "../../../devices/pci0000:00/0000:00:10.2/0000:09:00.0/other");
    g_assert_cmpint(tree_run(tree, "add", GPU), ==, REGISTRAR_ERROR_REFUSED);
    assert_contains(tree->log, "has vGPUs from before: " UUID_A " " UUID_B ";");
}

static void test_update(void)
{
    g_autoptr(Tree) tree = usual_tree();

    g_assert_cmpint(tree_run(tree, "update", GPU), ==, 0);
    g_assert_cmpuint(fake_driver.request, ==, VGPU_CONTROL_SET_TYPES);
    g_assert_cmpuint(fake_driver.gpu.ntypes, ==, 2);
    assert_contains(tree->log, "updated");

    fake_driver.fail = ENODEV;
    g_assert_cmpint(tree_run(tree, "update", NULL), ==, 0);
}

/* Removing uses the kernel's list and needs no files. */
static void test_remove(void)
{
    g_autoptr(Tree) tree = usual_tree();

    tree_write(tree, GPUS_CONF, "broken");
    tree_mdev_type(tree, "cpu", "vgpu-soft-half", "");
    tree_link(tree, "/sys/class/mdev_bus/cpu/subsystem", "../../../../class/vgpu-soft");
    g_assert_cmpint(tree_run(tree, "remove", NULL), ==, 0);
    g_assert_cmpuint(fake_driver.calls, ==, 1);
    g_assert_cmpstr(fake_driver.removed, ==, "soft:cpu");
    assert_contains(tree->log, "GPU soft:cpu: removed");

    g_assert_cmpint(tree_run(tree, "remove", GPU), ==, 0);
    g_assert_cmpstr(fake_driver.removed, ==, GPU);

    fake_driver.fail = ENODEV;
    g_assert_cmpint(tree_run(tree, "remove", NULL), ==, 0);
    fake_driver.fail = EBUSY;
    g_assert_cmpint(tree_run(tree, "remove", NULL), ==, REGISTRAR_ERROR_REFUSED);
}

static void test_drain(void)
{
    g_autoptr(Tree) tree = usual_tree();

    g_assert_cmpint(tree_run(tree, "drain", GPU), ==, 0);
    g_assert_cmpuint(fake_driver.request, ==, VGPU_CONTROL_DRAIN_GPU);
    g_assert_cmpstr(fake_driver.drained.gpu, ==, GPU);
    g_assert_cmpuint(fake_driver.drained.flags, ==, VGPU_DRAIN_ON);
    assert_contains(tree->log, "GPU " GPU ": drained: no new vGPU is made");

    tree_mdev_type(tree, GPU, "amdgpu-half", "");
    g_assert_cmpint(tree_run(tree, "resume", NULL), ==, 0);
    g_assert_cmpuint(fake_driver.calls, ==, 2);
    g_assert_cmpstr(fake_driver.drained.gpu, ==, GPU);
    g_assert_cmpuint(fake_driver.drained.flags, ==, 0);

    fake_driver.fail = ENODEV;
    g_assert_cmpint(tree_run(tree, "drain", GPU), ==, REGISTRAR_ERROR_ABSENT);
    assert_contains(tree->log, "not registered");
    fake_driver.fail = ENOTTY;
    g_assert_cmpint(tree_run(tree, "drain", GPU), ==, REGISTRAR_ERROR_REFUSED);
    assert_contains(tree->log, "too old to drain");
}

static void test_check(void)
{
    g_autoptr(Tree) tree = usual_tree();

    g_assert_cmpint(tree_run(tree, "check", NULL), ==, 0);
    g_assert_cmpuint(fake_driver.calls, ==, 0);
    assert_contains(tree->out, "GPU " GPU " (amdgpu), 256 MiB of memory from the size of its BAR");
    assert_contains(tree->out, "half                              128 MiB     1 MiB      7  50%");
    assert_contains(tree->out, "type large is left out");
    g_assert_null(strstr(tree->out, "intel"));

    tree_write(tree, GPUS_CONF, "");
    g_assert_cmpint(tree_run(tree, "check", NULL), ==, 0);
    assert_contains(tree->out, "nothing would be registered");
}

static void test_list(void)
{
    g_autoptr(Tree) tree = usual_tree();

    g_assert_cmpint(tree_run(tree, "list", NULL), ==, 0);
    assert_contains(tree->out, "no GPU is registered");

    tree_mdev_type(tree, GPU, "amdgpu-half", UUID_A " " UUID_B);
    g_assert_cmpint(tree_run(tree, "list", NULL), ==, 0);
    assert_contains(tree->out, "GPU " GPU "\n");
    assert_contains(tree->out, "amdgpu-half                         2     3  A test's type\n");
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/add/usual", test_add);
    g_test_add_func("/add/cuda", test_cuda);
    g_test_add_func("/add/cuda-of-other-drivers", test_cuda_of_other_drivers);
    g_test_add_func("/add/cuda-of-older-module", test_cuda_of_older_module);
    g_test_add_func("/add/host-kernel", test_host_kernel);
    g_test_add_func("/add/vram-sources", test_vram_sources);
    g_test_add_func("/add/overcommit", test_overcommit);
    g_test_add_func("/add/vram-unknown", test_vram_unknown);
    g_test_add_func("/add/soft", test_soft);
    g_test_add_func("/add/broken", test_broken);
    g_test_add_func("/add/too-many-types", test_too_many_types);
    g_test_add_func("/add/no-types", test_no_types);
    g_test_add_func("/add/not-shared", test_not_shared);
    g_test_add_func("/add/absent", test_absent);
    g_test_add_func("/add/wrong-device", test_wrong_device);
    g_test_add_func("/driver/none", test_no_driver);
    g_test_add_func("/driver/errno", test_errno);
    g_test_add_func("/driver/other-parent", test_other_parent);
    g_test_add_func("/driver/left-over", test_left_over);
    g_test_add_func("/update", test_update);
    g_test_add_func("/remove", test_remove);
    g_test_add_func("/drain", test_drain);
    g_test_add_func("/check", test_check);
    g_test_add_func("/list", test_list);
    return g_test_run();
}
