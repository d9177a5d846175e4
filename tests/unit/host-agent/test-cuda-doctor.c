/* SPDX-License-Identifier: MIT */
/* What the doctor says of CUDA: the door, guarded slices, VMs. */
#include <glib/gstdio.h>
#include <string.h>

#include "host-agent/doctor/doctor.h"
#include "host-agent/daemon/containers/transport.h"
#include "tests/unit/file_tree.h"
#include "tests/unit/host-agent/elf_kit.h"
#include "tests/unit/host-agent/nvidia_kit.h"
#include "tests/unit/host-agent/recorded_host.h"
#include "tests/unit/host-agent/slices_kit.h"

/* The doctor's finding on CUDA that is not the first one's; NULL: none. */
static const Finding *find(const GPtrArray *findings)
{
    for (guint i = 0; i < findings->len; i++) {
        const Finding *finding = g_ptr_array_index(findings, i);

        if (g_str_equal(finding->subject, "CUDA"))
            return finding;
    }
    return NULL;
}

static void assert_finds(HostRoot *root, Severity severity, const char *words)
{
    g_autoptr(GPtrArray) findings = doctor_examine(root);
    const Finding *found = find(findings);

    g_assert_nonnull(found);
    g_test_message("%s: %s", severity_name(found->severity), found->text);
    g_assert_cmpint(found->severity, ==, severity);
    g_assert_nonnull(strstr(found->text, words));
}

static void test_doctor(void)
{
    HostRoot *root = nvidia_kit_tree();
    g_autofree char *uvm = root_path(root, "/dev/nvidia-uvm", NULL);
    g_autofree char *door = root_path(root, DOOR, NULL);

    assert_finds(root, FINDING_OK,
                 "driver " VERSION ", the CUDA door knows all of its 5 functions");
    elf_kit_write(root, LIBS "/libcuda.so." VERSION, "libcuda.so.1",
                  KNOWN " cuMemAlloc_v77 cuAbacus cudbgMain -cuNeeded other");
    assert_finds(root, FINDING_WARNING,
                 "2 functions that the CUDA door does not know: cuAbacus, cuMemAlloc_v77");
    elf_kit_write(root, LIBS "/libcuda.so." VERSION, "libcuda.so.1",
                  KNOWN " cuA cuB cuC cuD cuE cuF");
    assert_finds(root, FINDING_WARNING,
                 "6 functions that the CUDA door does not know: cuA, cuB, "
                 "cuC, cuD, cuE, …");
    elf_kit_write(root, LIBS "/libcuda.so." VERSION, "libcuda.so.1", "cuInit");
    assert_finds(root, FINDING_WARNING, "has no function cuCtxGetDevice");
    elf_kit_write(root, LIBS "/libcuda.so." VERSION, "libcuda.so.1", KNOWN);
    file_tree_write(root, DOOR, "no library");
    assert_finds(root, FINDING_WARNING, "is not a shared library");
    g_assert_cmpint(g_unlink(door), ==, 0);
    assert_finds(root, FINDING_WARNING, "the CUDA door is not installed");
    file_tree_write(root, "/sys/module/nvidia/version", "999.1\n");
    assert_finds(root, FINDING_INFO, "the module is version 999.1");
    file_tree_free(root);
}

/* What else it says of CUDA, behind what it says of the door. */
static void assert_says_too(HostRoot *root, const char *words, gboolean expected)
{
    g_autoptr(GPtrArray) findings = doctor_examine(root);
    gboolean said = FALSE;

    for (guint i = 0; i < findings->len; i++) {
        const Finding *finding = g_ptr_array_index(findings, i);

        if (g_str_equal(finding->subject, "CUDA") && strstr(finding->text, words)) {
            g_assert_cmpint(finding->severity, ==, FINDING_INFO);
            said = TRUE;
        }
    }
    g_assert_cmpint(said, ==, expected);
}

/* What a host lacks for the door guarded. */
static void test_doctor_guarded(void)
{
    HostRoot *root = nvidia_kit_tree();

    assert_says_too(root, "nvidia-drm is not loaded", TRUE);
    assert_says_too(root, "HMM", FALSE);
    file_tree_write(root, "/sys/module/nvidia_drm/refcnt", "0\n");
    file_tree_write(root, "/sys/module/nvidia_uvm/parameters/uvm_disable_hmm", "N\n");
    assert_says_too(root, "nvidia-drm is not loaded", FALSE);
    assert_says_too(root, "HMM", TRUE);
    file_tree_write(root, "/sys/module/nvidia_uvm/parameters/uvm_disable_hmm", "Y\n");
    assert_says_too(root, "HMM", FALSE);
    file_tree_free(root);
}

/* Of CUDA in VMs. @words: NULL: nothing at all. */
static void assert_of_vms(HostRoot *root, Severity severity, const char *words)
{
    g_autoptr(GPtrArray) findings = doctor_examine(root);
    gboolean said = FALSE;

    for (guint i = 0; i < findings->len; i++) {
        const Finding *finding = g_ptr_array_index(findings, i);

        if (!g_str_equal(finding->subject, "CUDA in VMs"))
            continue;
        g_test_message("%s: %s", severity_name(finding->severity), finding->text);
        g_assert_nonnull(words);
        g_assert_cmpint(finding->severity, ==, severity);
        said = said || strstr(finding->text, words);
    }
    g_assert_cmpint(said, ==, words != NULL);
}

static void take_away(HostRoot *root, const char *path)
{
    g_autofree char *full = root_path(root, path, NULL);

    g_assert_cmpint(g_unlink(full), ==, 0);
}

static HostRoot *doctor_tree(void)
{
    HostRoot *root = nvidia_kit_vgpu_tree();

    file_tree_write(root, "/sys/module/mdev_vgpu/version", "1\n");
    nvidia_kit_add_remote(root);
    return root;
}

/* What is missing, one thing after the other. */
static void test_doctor_vms(void)
{
    HostRoot *root = doctor_tree();

    assert_of_vms(root, FINDING_OK, "guests need the package vgpu-guest-cuda");
    take_away(root, "/usr/lib/mdev-vgpu/vgpu-cuda-worker");
    assert_of_vms(root, FINDING_WARNING, "vgpu-cuda-worker is not installed");
    nvidia_kit_add_remote(root);
    take_away(root, "/usr/lib/mdev-vgpu/guest/libcuda.so.1");
    assert_of_vms(root, FINDING_WARNING, "the libcuda.so.1 of guests and containers is not");
    nvidia_kit_add_remote(root);
    take_away(root, LIBS "/libcuda.so." VERSION);
    assert_of_vms(root, FINDING_WARNING, "libcuda and NVML of the loaded module's version");
    file_tree_free(root);
}

/* A window that is too small; and types without CUDA need nothing. */
static void test_doctor_vms_window(void)
{
    HostRoot *root = doctor_tree();

    file_tree_write(root, "/etc/vgpu/types.d/20.conf", "[type small]\nvram=1G\nwindow=256M\n");
    assert_of_vms(root, FINDING_WARNING, "type small has a window of 256 MiB, which all memory");
    file_tree_write(root, "/etc/vgpu/types.d/20.conf", "");
    assert_of_vms(root, FINDING_OK, "");
    file_tree_write(root, "/etc/vgpu/types.d/10-test.conf", "[type a]\nvram=1G\ncuda=no\n");
    take_away(root, "/usr/lib/mdev-vgpu/vgpu-cuda-worker");
    assert_of_vms(root, FINDING_OK, NULL);
    file_tree_free(root);
}

/* A driver that was upgraded or removed under a vGPU. */
static void test_doctor_vms_link(void)
{
    HostRoot *root = doctor_tree();

    recorded_host_add_vgpu(root, "pci0000:00/0000:00:01.0/" ADDRESS, UUID, "nvidia-vgpu-half",
                           VGPU_ATTRIBUTES "|cuda=1");
    assert_of_vms(root, FINDING_WARNING, "/run/vgpu/nvidia/libcuda.so.1 leads to no driver");
    file_tree_link(root, CUDA_REAL_LINKS "/libcuda.so.1", LIBS "/libcuda.so." VERSION);
    assert_of_vms(root, FINDING_OK, "");
    file_tree_free(root);
}

static void test_doctor_without(void)
{
    HostRoot *root = shared_tree();
    g_autoptr(GPtrArray) findings = doctor_examine(root);

    g_assert_null(find(findings));
    file_tree_free(root);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/cuda-doctor/vms", test_doctor_vms);
    g_test_add_func("/cuda-doctor/vms-window", test_doctor_vms_window);
    g_test_add_func("/cuda-doctor/vms-link", test_doctor_vms_link);
    g_test_add_func("/cuda-doctor/doctor", test_doctor);
    g_test_add_func("/cuda-doctor/guarded", test_doctor_guarded);
    g_test_add_func("/cuda-doctor/without", test_doctor_without);
    return g_test_run();
}
