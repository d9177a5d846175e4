/* SPDX-License-Identifier: MIT */
/*
 * The last of the driver tests: the kernel's state after the others. Nothing leaks, all pins are
 * released, the module can be removed, and the whole log, L1's boot included, has no report that is
 * not allowed.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernel_log.h"
#include "testbed.h"

#define KMEMLEAK "/sys/kernel/debug/kmemleak"
/* An object counts as leaked when it is five seconds old, and from the second scan on. */
#define LEAK_AGE_US 6000000
#define LIMIT_S     600

static char *read_file(const char *path)
{
    char *text = NULL;

    g_file_get_contents(path, &text, NULL, NULL);
    return text;
}

static uint64_t read_vmstat(const char *name)
{
    g_autofree char *text = read_file("/proc/vmstat");
    const char *at = text ? strstr(text, name) : NULL;

    g_assert_nonnull(at);
    return g_ascii_strtoull(at + strlen(name), NULL, 10);
}

static void test_pins(void)
{
    /* Each processor adds what it counted only once a second. */
    g_assert_true(g_file_set_contents_full("/proc/sys/vm/stat_refresh", "1", 1,
                                           G_FILE_SET_CONTENTS_NONE, 0600, NULL));
    g_assert_cmpuint(read_vmstat("nr_foll_pin_acquired "), ==,
                     read_vmstat("nr_foll_pin_released "));
}

/* Other leaks in this kernel are not ours: ours have a function of the module. */
static unsigned print_our_leaks(const char *report)
{
    g_auto(GStrv) objects = g_strsplit(report, "unreferenced object ", -1);
    unsigned n = 0;

    for (char **object = objects; *object; object++) {
        if (!strstr(*object, "[mdev_vgpu]"))
            continue;
        g_printerr("# unreferenced object %s\n", *object);
        n++;
    }
    return n;
}

static void test_kmemleak(void)
{
    g_autofree char *report = NULL;

    if (access(KMEMLEAK, W_OK))
        driver_test_skip("this kernel has no kmemleak (6.12-debug has)");
    assert_ok(sysfs_write(KMEMLEAK, "scan"));
    g_usleep(LEAK_AGE_US);
    assert_ok(sysfs_write(KMEMLEAK, "scan"));
    report = read_file(KMEMLEAK);
    g_assert_nonnull(report);
    g_assert_cmpuint(print_our_leaks(report), ==, 0);
}

/* An entry in @path that still exists after the module was removed is a leak. */
static void assert_nothing_named(const char *path)
{
    g_autofree char *text = read_file(path);
    g_auto(GStrv) lines = g_strsplit(text ? text : "", "\n", -1);
    unsigned left = 0;

    g_assert_nonnull(text);
    for (char **line = lines; *line; line++) {
        if (!strstr(*line, "vgpu"))
            continue;
        g_printerr("# %s: %s\n", path, *line);
        left++;
    }
    g_assert_cmpuint(left, ==, 0);
}

static void test_unload(void)
{
    g_assert_true(mdev_host_module_loaded());
    g_assert_cmpint(system("rmmod mdev_vgpu"), ==, 0);
    g_assert_cmpint(access("/dev/vgpu-control", F_OK), ==, -1);
    g_assert_cmpint(access("/sys/class/vgpu", F_OK), ==, -1);
    assert_nothing_named("/proc/modules");
    assert_nothing_named("/proc/vmallocinfo");
    assert_nothing_named("/proc/slabinfo");
}

/* lockdep disables itself with its first report, and then detects nothing more. */
static void test_lockdep(void)
{
    g_autofree char *text = read_file("/proc/lockdep_stats");
    const char *at = text ? strstr(text, "debug_locks:") : NULL;

    if (!text)
        driver_test_skip("this kernel has no lockdep (6.12-debug has)");
    g_assert_nonnull(at);
    g_assert_cmpint(atoi(at + strlen("debug_locks:")), ==, 1);
}

static unsigned count_of(const char *const *log)
{
    g_autoptr(GPtrArray) lines = g_ptr_array_new();

    for (; *log; log++)
        g_ptr_array_add(lines, (gpointer)*log);
    return kernel_log_count(lines);
}

/* First lines of reports, as kernels from 6.1 on print them. */
static void test_reports_are_known(void)
{
    static const char *const reports[] = {
        "WARNING: CPU: 0 PID: 612 at drivers/gpu/drm/drm_mm.c:965 drm_mm_takedown+0x2c/0x40 [drm]",
        "WARNING: possible circular locking dependency detected",
        "WARNING: bad unlock balance detected!",
        "WARNING: held lock freed!",
        "WARNING: suspicious RCU usage",
        "[ BUG: Invalid wait context ]",
        "INFO: trying to register non-static key.",
        "BUG: sleeping function called from invalid context at kernel/locking/mutex.c:585",
        "BUG: KASAN: slab-use-after-free in vgpu_queue_pop+0x1f/0x2e0 [mdev_vgpu]",
        "BUG kmalloc-1k (Tainted: G           OE     ): Redzone overwritten",
        "kernel BUG at mdev-driver/queue.c:46!",
        "Oops: general protection fault, probably for non-canonical address: 0000 [#1] PREEMPT",
        "UBSAN: array-index-out-of-bounds in /src/window.c:12:3",
        "refcount_t: underflow; use-after-free.",
        "INFO: task t-queue:733 blocked for more than 120 seconds.",
        "rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:",
        "rcu: \tPossible timer handling issue on cpu=1 timer-softirq=2201",
        "watchdog: BUG: hard LOCKUP on cpu 1",
        "irq 24: nobody cared (try booting with the \"irqpoll\" option)",
        "NETDEV WATCHDOG: eth0 (virtio_net): transmit queue 0 timed out",
        "sysfs: cannot create duplicate filename '/devices/virtual/vgpu/vgpu0'",
        "ODEBUG: free active (active state 0) object: timer_list hint: delayed_work_timer_fn",
        "DMAR: [DMA Read NO_PASID] Request device [01:00.0] fault addr 0xfffff000",
    };

    for (size_t i = 0; i < G_N_ELEMENTS(reports); i++) {
        const char *log[] = {reports[i], NULL};

        if (count_of(log) != 1)
            g_error("it is not seen as a report: %s", reports[i]);
    }
}

/* An allowed report is allowed only in others' stacks, and does not hide later reports. */
static void test_allowed_hides_nothing(void)
{
    static const char *const lockup = "watchdog: BUG: soft lockup - CPU#0 stuck for 26s! [sh:1]";
    static const char *const modules = "Modules linked in: mdev_vgpu(OE) mdev vfio";
    const char *others[] = {lockup, modules, "Call Trace:", " smp_call_function+0x1/0x2", NULL};
    const char *ours[] = {lockup, modules, "Call Trace:", " vgpu_pop+0x1/0x2 [mdev_vgpu]", NULL};
    const char *behind[] = {lockup, "Call Trace:", "WARNING: CPU: 0 PID: 1 at a.c:1", NULL};

    g_assert_cmpuint(count_of(others), ==, 0);
    g_assert_cmpuint(count_of(ours), ==, 1);
    g_assert_cmpuint(count_of(behind), ==, 1);
}

static void test_whole_log(void)
{
    int fd = kernel_log_open_whole();

    assert_ok(fd);
    g_assert_cmpuint(kernel_log_check(fd), ==, 0);
}

int main(int argc, char **argv)
{
    driver_test_init(argc, argv);
    driver_test_add("/kernel-log/pins-given-back", test_pins);
    driver_test_add_limit("/kernel-log/kmemleak", test_kmemleak, LIMIT_S);
    driver_test_add("/kernel-log/unload", test_unload);
    driver_test_add("/kernel-log/lockdep-still-on", test_lockdep);
    driver_test_add("/kernel-log/reports-are-known", test_reports_are_known);
    driver_test_add("/kernel-log/allowed-hides-nothing", test_allowed_hides_nothing);
    driver_test_add("/kernel-log/whole-log", test_whole_log);
    return driver_test_run();
}
