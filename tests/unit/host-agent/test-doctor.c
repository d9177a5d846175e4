/* SPDX-License-Identifier: MIT */
/* The doctor's findings on hosts in good and in bad order. */
#include <glib/gstdio.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "host-agent/doctor/doctor.h"
#include "tests/unit/file_tree.h"
#include "tests/unit/host-agent/fake_arbiter.h"
#include "tests/unit/host-agent/recorded_host.h"

#define SECURE_BOOT "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"

#define MODULES_LOAD "/usr/lib/modules-load.d/mdev-vgpu.conf"

/* A program in the tree's /bin, which is all of PATH, that prints this as its version. */
static void add_program(HostRoot *root, const char *name, const char *version)
{
    g_autofree char *path = g_strconcat("/bin/", name, NULL);
    g_autofree char *full = root_path(root, path, NULL);
    g_autofree char *script = g_strdup_printf("#!/bin/sh\necho '%s'\n", version);

    file_tree_write(root, path, script);
    g_assert_cmpint(g_chmod(full, 0755), ==, 0);
}

/* A program in the tree's /bin that fails. */
static void add_failure(HostRoot *root, const char *name, const char *message)
{
    g_autofree char *path = g_strconcat("/bin/", name, NULL);
    g_autofree char *full = root_path(root, path, NULL);
    g_autofree char *script = g_strdup_printf("#!/bin/sh\necho '%s' >&2\nexit 4\n", message);

    file_tree_write(root, path, script);
    g_assert_cmpint(g_chmod(full, 0755), ==, 0);
}

/* What systemctl says of a vgpud that runs. */
#define ACTIVE "LoadState=loaded\nActiveState=active\nNRestarts=0"

static FakeArbiter arbiter;
static gboolean has_arbiter;

/* A host in good order, made from a recorded one. */
static HostRoot *good_host(const char *name)
{
    static const char *const files[][2] = {
        {"/sys/module/mdev_vgpu/version", VGPU_VERSION "\n"},
        {MODULES_LOAD, "mdev_vgpu\n"},
        {"/sys/kernel/security/lsm", "lockdown,capability,landlock,yama,apparmor\n"},
        {"/sys/fs/cgroup/cgroup.controllers", "cpuset cpu io memory hugetlb pids rdma misc\n"},
        {"/sys/fs/cgroup/dmem.capacity", "drm/0000:02:00.0/vram0 17179869184\n"
                                         "drm/0000:03:00.0/vram0 17179869184\n"
                                         "drm/0000:00:02.0/vram0 17179869184\n"
                                         "drm/0000:01:00.0/vram0 17179869184\n"},
        {"/sys/class/iommu/dmar0/uevent", ""},
        {"/sys/class/misc/kvm", ""},
        {"/sys/class/misc/udmabuf", ""},
        {"/proc/sys/kernel/osrelease", "6.13.0-amd64\n"},
        {"/sys/module/kvm_amd/parameters/nested", "1\n"},
        {"/usr/share/vulkan/icd.d/radeon_icd.json", "{}\n"},
        {"/usr/share/vulkan/implicit_layer.d/VkLayer_vgpu_governor.json", "{}\n"},
    };
    HostRoot *root = recorded_host_new(name);
    g_autofree char *path = root_path(root, "/bin", NULL);

    for (guint i = 0; i < G_N_ELEMENTS(files); i++)
        file_tree_write(root, files[i][0], files[i][1]);
    add_program(root, "mdevctl", "mdevctl 1.4.0");
    add_program(root, "qemu-system-x86_64", "QEMU emulator version 10.0.13 (Debian 1:10.0.13)");
    add_program(root, "virsh", "11.3.0");
    add_program(root, "systemctl", ACTIVE);
    add_program(root, "busctl", "s \"" VGPU_VERSION "\"");
    g_assert_true(g_setenv("PATH", path, TRUE));
    fake_arbiter_open(&arbiter, root);
    has_arbiter = TRUE;
    return root;
}

static void end_arbiter(void)
{
    if (has_arbiter)
        fake_arbiter_close(&arbiter);
    has_arbiter = FALSE;
}

static void close_host(HostRoot *root)
{
    end_arbiter();
    file_tree_free(root);
}

static void remove_file(HostRoot *root, const char *path)
{
    g_autofree char *full = root_path(root, path, NULL);

    g_assert_cmpint(unlink(full), ==, 0);
}

/* The finding on @subject that is not "ok"; NULL: none. */
static const Finding *complaint(const GPtrArray *findings, const char *subject)
{
    for (guint i = 0; i < findings->len; i++) {
        const Finding *finding = g_ptr_array_index(findings, i);

        if (finding->severity != FINDING_OK && g_str_equal(finding->subject, subject))
            return finding;
    }
    return NULL;
}

static guint complaints(const GPtrArray *findings)
{
    guint sum = 0;

    for (guint i = 0; i < findings->len; i++) {
        const Finding *finding = g_ptr_array_index(findings, i);

        g_test_message("%s: %s: %s", severity_name(finding->severity), finding->subject,
                       finding->text);
        g_assert_true((finding->severity == FINDING_OK) == (finding->advice == NULL));
        sum += finding->severity != FINDING_OK;
    }
    return sum;
}

/*
 * Exactly one complaint, of that kind, on that subject, with these words in its text or its advice.
 */
static void assert_one(HostRoot *root, Severity severity, const char *subject, const char *words)
{
    g_autoptr(GPtrArray) findings = doctor_examine(root);
    const Finding *found = complaint(findings, subject);

    g_assert_cmpuint(complaints(findings), ==, 1);
    g_assert_nonnull(found);
    g_assert_cmpint(found->severity, ==, severity);
    g_assert_true(strstr(found->text, words) || strstr(found->advice, words));
}

static void test_good(void)
{
    HostRoot *root = good_host("shared");
    g_autoptr(GPtrArray) findings = doctor_examine(root);

    g_assert_cmpuint(complaints(findings), ==, 0);
    g_assert_cmpuint(findings->len, >=, 11);
    close_host(root);
}

/* One thing is missing at a time. */
static void test_missing(void)
{
    static const struct {
        const char *file;
        Severity severity;
        const char *subject;
        const char *words;
    } cases[] = {
        {"/sys/class/misc/kvm", FINDING_WARNING, "KVM", "VT-x"},
        {"/sys/class/misc/udmabuf", FINDING_WARNING, "udmabuf", "modprobe udmabuf"},
        {"/sys/kernel/security/lsm", FINDING_PROBLEM, "Landlock", "lsm="},
        {"/sys/fs/cgroup/cgroup.controllers", FINDING_WARNING, "cgroups", "\"cpu\""},
        {"/usr/share/vulkan/icd.d/radeon_icd.json", FINDING_PROBLEM, "Vulkan", "install"},
        {"/usr/share/vulkan/implicit_layer.d/VkLayer_vgpu_governor.json", FINDING_WARNING,
         "arbiter", "layer is not installed"},
        {"/run/vgpu/governor/0000:02:00.0/status.sock", FINDING_WARNING, "arbiter",
         "GPU 0000:02:00.0 is shared and has no arbiter"},
        {"/bin/mdevctl", FINDING_WARNING, "mdevctl", "not installed"},
    };

    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        HostRoot *root = good_host("shared");

        remove_file(root, cases[i].file);
        assert_one(root, cases[i].severity, cases[i].subject, cases[i].words);
        close_host(root);
    }
}

/* systemd restarts vgpud whenever it dies, so nobody would notice. */
static void test_agent_dies(void)
{
    HostRoot *root = good_host("shared");

    add_program(root, "systemctl", "LoadState=loaded\nActiveState=active\nNRestarts=3");
    assert_one(root, FINDING_WARNING, "vgpud", "vgpud has died 3 times");
    close_host(root);
}

/* VMs, containers and vgpud go on, so nobody would notice. */
static void test_no_meter(void)
{
    HostRoot *root = good_host("shared");

    add_program(root, "systemctl",
                "LoadState=loaded\nNRestarts=0'\n"
                "case $* in *meter*) echo ActiveState=failed;; *) echo ActiveState=active;; esac\n"
                "echo '");
    assert_one(root, FINDING_PROBLEM, "vgpu-meter", "does not run (failed)");
    close_host(root);
}

/* Dead, masked, hung, and an arbiter that hangs or has left its socket behind. */
static void test_dead_and_hung(void)
{
    HostRoot *root = good_host("shared");
    int hung;

    add_program(root, "systemctl", "LoadState=loaded\nActiveState=failed\nNRestarts=0");
    assert_one(root, FINDING_PROBLEM, "vgpud", "does not run (failed)");
    add_program(root, "systemctl", "LoadState=masked\nActiveState=inactive\nNRestarts=0");
    assert_one(root, FINDING_PROBLEM, "vgpud", "systemctl unmask");
    add_program(root, "systemctl", ACTIVE);
    add_failure(root, "busctl", "Failed to get property Version: Connection timed out");
    assert_one(root, FINDING_PROBLEM, "vgpud", "does not answer");
    remove_file(root, "/bin/busctl");
    end_arbiter();
    assert_one(root, FINDING_WARNING, "arbiter", "has no arbiter");
    hung = fake_arbiter_listen(root);
    assert_one(root, FINDING_PROBLEM, "arbiter", "does not answer");
    close(hung);
    close_host(root);
}

/* Files that vgpud refuses, one at a time. */
static void test_misconfigured(void)
{
    static const char *const files[][3] = {
        {"/etc/vgpu/types.d/90-mine.conf", "[type x]\nvram=much\n", "much"},
        {"/etc/vgpu/gpus.conf", "[gpu 0000:02:00.0]\nmode=cut\n", "cut"},
        {"/etc/vgpu/tenants.d/red.conf", "[tenant red]\nvramm=1G\n", "vramm"},
        {"/etc/vgpu/vgpud.conf", "[metrics]\nlisten=nowhere:9835\n", "nowhere:9835"},
    };

    /* The inventory warns of a wrong gpus.conf, too. */
    GLogLevelFlags fatal = g_log_set_always_fatal(G_LOG_FATAL_MASK);

    for (guint i = 0; i < G_N_ELEMENTS(files); i++) {
        HostRoot *root = good_host("shared");

        g_test_message("%s", files[i][0]);
        file_tree_write(root, files[i][0], files[i][1]);
        assert_one(root, FINDING_PROBLEM, "configuration", files[i][2]);
        close_host(root);
    }
    g_log_set_always_fatal(fatal);
}

static void test_disk(void)
{
    HostRoot *root = good_host("shared");
    g_autofree char *dir = root_path(root, "/var/lib/vgpu", NULL);

    g_assert_cmpint(g_mkdir_with_parents(dir, 0700), ==, 0);
    if (mount("tmpfs", dir, "tmpfs", 0, "size=512k") == 0) {
        assert_one(root, FINDING_PROBLEM, "disk", "/var/lib/vgpu has 0 MiB free");
        umount2(dir, MNT_DETACH);
    } else {
        g_test_skip("only root can mount a small file system");
    }
    close_host(root);
}

/* A virsh with one VM, whose root ports have such prefetchable windows; bus 2 has a device. */
static void add_vm(HostRoot *root, const char *range1, const char *range2)
{
    g_autofree char *full = root_path(root, "/bin/virsh", NULL);
    g_autofree char *script = g_strdup_printf(
        "#!/bin/sh\ncase \"$*\" in\n--version) echo 11.3.0 ;;\n'-q list --name') echo red ;;\n"
        "*'info pci') /bin/cat <<END\n"
        "  Bus  0, device   1, function 0:\n    PCI bridge: PCI device 1b36:000c\n      BUS 0.\n"
        "      secondary bus 1.\n      prefetchable memory range [%s]\n"
        "  Bus  0, device   2, function 0:\n    PCI bridge: PCI device 1b36:000c\n      BUS 0.\n"
        "      secondary bus 2.\n      prefetchable memory range [%s]\n"
        "  Bus  2, device   0, function 0:\n    VGA controller: PCI device 1af4:1050\n"
        "END\n;;\nesac\n",
        range1, range2);

    file_tree_write(root, "/bin/virsh", script);
    g_assert_cmpint(g_chmod(full, 0755), ==, 0);
    file_tree_write(root, "/etc/vgpu/types.d/1.conf", "[type half]\nvram=1/2\nwindow=256M\n");
}

#define SCHEDULE        "/etc/vgpu/schedule.conf"
#define ENTRY(name, at) "[at " name "]\ngpu=0000:02:00.0\nmode=shared\nat=" at "\n"

/* The times are systemd's to judge: a stand-in answers. */
static void test_schedule(void)
{
    HostRoot *root = good_host("shared");
    g_autofree char *dir = root_path(root, "", NULL);
    g_autoptr(GPtrArray) findings = NULL;

    g_setenv("FAKE_ROOT", dir, TRUE);
    file_tree_link(root, "/bin/systemd-analyze", HOSTS "/../bin/systemd-analyze");
    file_tree_write(root, "/calendar",
                    "day\t2099-01-01 08:00:00\nnight\t2099-01-01 20:00:00\n"
                    "again\t2099-01-01 08:00:00\nonce\t2020-01-01 00:00:00\n");
    file_tree_write(root, SCHEDULE, ENTRY("a", "day") ENTRY("b", "night"));
    findings = doctor_examine(root);
    g_assert_cmpuint(complaints(findings), ==, 0);
    file_tree_write(root, SCHEDULE, ENTRY("a", "day") ENTRY("b", "again"));
    assert_one(root, FINDING_WARNING, "schedule",
               "[at a] and [at b] are for the same GPU, and are due next at the same time");
    file_tree_write(root, SCHEDULE, ENTRY("a", "day") ENTRY("b", "once"));
    assert_one(root, FINDING_WARNING, "schedule", "[at b] is never due again: at=once");
    file_tree_write(root, SCHEDULE, ENTRY("a", "day") ENTRY("b", "invalid"));
    assert_one(root, FINDING_WARNING, "schedule", "[at b]: at=invalid is not allowed");
    file_tree_write(root, SCHEDULE, ENTRY("a", "day") "more=1\n");
    assert_one(root, FINDING_WARNING, "schedule", "unknown key \"more\"");
    file_tree_write(root, SCHEDULE, ENTRY("a", "day"));
    file_tree_write(root, "/calendar-fails", "no");
    assert_one(root, FINDING_WARNING, "schedule", "calendar -- day\" failed: no");
    remove_file(root, "/bin/systemd-analyze");
    assert_one(root, FINDING_WARNING, "schedule", "systemd-analyze, of the package systemd");
    close_host(root);
}

static const Finding *about_kubernetes(HostRoot *root, GPtrArray **findings)
{
    *findings = doctor_examine(root);
    return complaint(*findings, "Kubernetes");
}

static void test_kubernetes(void)
{
    HostRoot *root = good_host("shared");
    g_autoptr(GPtrArray) none = NULL, away = NULL, wrong = NULL, dead = NULL, good = NULL;
    const Finding *finding;

    g_assert_null(about_kubernetes(root, &none));
    file_tree_write(root, "/var/lib/kubelet/config.yaml", "");
    g_assert_cmpint(about_kubernetes(root, &away)->severity, ==, FINDING_INFO);
    file_tree_write(root, "/etc/vgpu/kubernetes.conf", "[apy]\n");
    add_failure(root, "vgpu-kubelet", "there is no group [apy]");
    finding = about_kubernetes(root, &wrong);
    g_assert_cmpint(finding->severity, ==, FINDING_WARNING);
    g_assert_nonnull(strstr(finding->text, "no group [apy]"));
    add_program(root, "vgpu-kubelet", "the configuration is right");
    add_failure(root, "systemctl", "");
    finding = about_kubernetes(root, &dead);
    g_assert_nonnull(strstr(finding->text, "not running"));
    add_program(root, "systemctl", "0");
    g_assert_null(about_kubernetes(root, &good));
    close_host(root);
}

static void test_vms(void)
{
    HostRoot *root = good_host("shared");
    g_autoptr(GPtrArray) findings = NULL;

    add_vm(root, "0xfe000000, 0xfe1fffff", "0x380000000000, 0x3807ffffffff");
    assert_one(root, FINDING_WARNING, "VM", "red has room for windows of 2 MiB");
    add_vm(root, "0x380000000000, 0x3807ffffffff", "0xfff00000, 0x000fffff");
    findings = doctor_examine(root);
    g_assert_cmpuint(complaints(findings), ==, 0);
    close_host(root);
}

/* A driver that cannot export memory is reported, once it has been queried. */
static void test_vulkan(void)
{
    HostRoot *root = good_host("shared");

    file_tree_write(root, "/run/vgpu/vulkan/0000:02:00.0",
                    "[vulkan]\ndevice=Old\nexports-memory=false\n");
    assert_one(root, FINDING_WARNING, "Vulkan", "0000:02:00.0 (Old)");
    close_host(root);
}

static void test_module(void)
{
    HostRoot *root = good_host("shared");
    g_autofree char *dir = root_path(root, "/sys/module/mdev_vgpu", NULL);

    file_tree_write(root, "/sys/module/mdev_vgpu/version", "0.0.9\n");
    assert_one(root, FINDING_WARNING, "driver", "0.0.9");
    remove_file(root, "/sys/module/mdev_vgpu/version");
    g_assert_cmpint(rmdir(dir), ==, 0);
    assert_one(root, FINDING_PROBLEM, "driver", "dkms status");
    close_host(root);
}

static void test_secure_boot(void)
{
    static const char on[] = {6, 0, 0, 0, 1};
    HostRoot *root = good_host("shared");
    g_autofree char *dir = root_path(root, "/sys/module/mdev_vgpu", NULL);
    g_autofree char *variable = root_path(root, SECURE_BOOT, NULL);

    file_tree_write(root, SECURE_BOOT, "");
    g_assert_true(g_file_set_contents(variable, on, sizeof(on), NULL));
    g_autoptr(GPtrArray) findings = doctor_examine(root);
    g_assert_cmpuint(complaints(findings), ==, 0); /* no finding while the module is loaded */
    remove_file(root, "/sys/module/mdev_vgpu/version");
    g_assert_cmpint(rmdir(dir), ==, 0);
    assert_one(root, FINDING_PROBLEM, "driver", "mokutil --import");
    close_host(root);
}

/* A kernel may load signed modules only without Secure Boot, whose key does not help there. */
static void test_signed_modules(void)
{
    static const char enforced[] = "/sys/module/module/parameters/sig_enforce";
    static const char lockdown[] = "/sys/kernel/security/lockdown";
    HostRoot *root = good_host("shared");
    g_autofree char *dir = root_path(root, "/sys/module/mdev_vgpu", NULL);

    remove_file(root, "/sys/module/mdev_vgpu/version");
    g_assert_cmpint(rmdir(dir), ==, 0);
    file_tree_write(root, enforced, "N\n");
    file_tree_write(root, lockdown, "[none] integrity confidentiality\n");
    assert_one(root, FINDING_PROBLEM, "driver", "dkms status");
    file_tree_write(root, lockdown, "none [integrity] confidentiality\n");
    assert_one(root, FINDING_PROBLEM, "driver", "boot without lockdown=");
    file_tree_write(root, enforced, "Y\n");
    assert_one(root, FINDING_PROBLEM, "driver", "boot without module.sig_enforce=1");
    close_host(root);
}

static void test_versions(void)
{
    HostRoot *root = good_host("shared");

    add_program(root, "qemu-system-x86_64", "QEMU emulator version 7.2.22 (Debian 1:7.2)");
    assert_one(root, FINDING_WARNING, "QEMU", "7.2; 10.0");
    add_program(root, "qemu-system-x86_64", "hello");
    assert_one(root, FINDING_WARNING, "QEMU", "does not say");
    add_program(root, "qemu-system-x86_64", "QEMU emulator version 11.1");
    add_program(root, "mdevctl", "mdevctl 1.10.0");
    g_autoptr(GPtrArray) findings = doctor_examine(root);
    g_assert_cmpuint(complaints(findings), ==, 0);
    close_host(root);
}

static void test_groups(void)
{
    HostRoot *root = good_host("laptop");

    assert_one(root, FINDING_WARNING, "IOMMU group", "0000:01:00.1, which the host uses");
    close_host(root);
    root = good_host("empty");
    assert_one(root, FINDING_WARNING, "GPU", "no GPU");
    close_host(root);
}

/* Limits of KVM before 6.13: pages of a driver's blocks, and revoking from nested guests. */
static void test_old_kernel(void)
{
    HostRoot *root = good_host("shared");

    file_tree_write(root, "/proc/sys/kernel/osrelease", "6.12.117+deb13-amd64\n");
    file_tree_write(root, "/sys/module/kvm_amd/parameters/nested", "0\n");
    assert_one(root, FINDING_PROBLEM, "host kernel", "GPU 0000:02:00.0");
    assert_one(root, FINDING_PROBLEM, "host kernel", "trixie-backports");
    close_host(root);

    root = good_host("empty");
    remove_file(root, "/sys/module/kvm_amd/parameters/nested");
    file_tree_write(root, "/proc/sys/kernel/osrelease", "5.10.0\n");
    assert_one(root, FINDING_WARNING, "GPU", "no GPU");
    file_tree_write(root, "/sys/module/kvm_intel/parameters/nested", "Y\n");
    g_autoptr(GPtrArray) findings = doctor_examine(root);
    g_assert_cmpuint(complaints(findings), ==, 2);
    g_assert_nonnull(
        strstr(complaint(findings, "host kernel")->advice, "options kvm_intel nested=0"));
    close_host(root);
}

static guint count_of(const GPtrArray *findings, Severity severity)
{
    guint count = 0;

    for (guint i = 0; i < findings->len; i++)
        count += ((const Finding *)g_ptr_array_index(findings, i))->severity == severity;
    return count;
}

/* Missing requirements of VMs are no fault of a host for containers. */
static void test_containers_only(void)
{
    static const char *const missing[] = {
        "/sys/module/mdev_vgpu/version", MODULES_LOAD,   "/sys/class/misc/kvm",
        "/sys/class/misc/udmabuf",       "/bin/mdevctl", "/bin/virsh",
        "/bin/qemu-system-x86_64"};
    HostRoot *root = good_host("containers");
    g_autofree char *dir = root_path(root, "/sys/module/mdev_vgpu", NULL);

    file_tree_write(root, "/proc/sys/kernel/osrelease", "6.12.117+deb13-amd64\n");
    for (guint i = 0; i < G_N_ELEMENTS(missing); i++)
        remove_file(root, missing[i]);
    g_assert_cmpint(rmdir(dir), ==, 0);
    g_autoptr(GPtrArray) findings = doctor_examine(root);
    g_assert_cmpuint(complaints(findings), ==, G_N_ELEMENTS(missing) - 1);
    g_assert_cmpuint(count_of(findings, FINDING_INFO), ==, G_N_ELEMENTS(missing) - 1);
    g_assert_nonnull(strstr(complaint(findings, "driver")->advice, "package mdev-vgpu"));
    file_tree_write(root, MODULES_LOAD, "mdev_vgpu\n");
    g_autoptr(GPtrArray) again = doctor_examine(root);
    g_assert_cmpuint(count_of(again, FINDING_INFO), ==, 0);
    g_assert_cmpint(complaint(again, "driver")->severity, ==, FINDING_PROBLEM);
    close_host(root);
}

static void test_engine(void)
{
    HostRoot *root = good_host("shared");

    file_tree_write(root, "/sys/bus/mdev/devices/aa/vgpu/failure", "\n");
    file_tree_write(root, "/sys/bus/mdev/devices/bb/vgpu/failure", "no Vulkan device\n");
    assert_one(root, FINDING_PROBLEM, "engine", "vGPU bb gave up: no Vulkan device");
    close_host(root);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/doctor/dead-and-hung", test_dead_and_hung);
    g_test_add_func("/doctor/misconfigured", test_misconfigured);
    g_test_add_func("/doctor/disk", test_disk);
    g_test_add_func("/doctor/good", test_good);
    g_test_add_func("/doctor/missing", test_missing);
    g_test_add_func("/doctor/agent-dies", test_agent_dies);
    g_test_add_func("/doctor/no-meter", test_no_meter);
    g_test_add_func("/doctor/module", test_module);
    g_test_add_func("/doctor/schedule", test_schedule);
    g_test_add_func("/doctor/kubernetes", test_kubernetes);
    g_test_add_func("/doctor/vms", test_vms);
    g_test_add_func("/doctor/vulkan", test_vulkan);
    g_test_add_func("/doctor/secure-boot", test_secure_boot);
    g_test_add_func("/doctor/signed-modules", test_signed_modules);
    g_test_add_func("/doctor/versions", test_versions);
    g_test_add_func("/doctor/groups", test_groups);
    g_test_add_func("/doctor/old-kernel", test_old_kernel);
    g_test_add_func("/doctor/engine", test_engine);
    g_test_add_func("/doctor/containers-only", test_containers_only);
    return g_test_run();
}
