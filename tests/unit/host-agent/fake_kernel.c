/* SPDX-License-Identifier: MIT */
#include "tests/unit/host-agent/fake_kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <gio/gio.h>
#include <glib/gstdio.h>
#include <linux/vgpu.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host-agent/daemon/modes/kernel_call.h"
#include "lib/bus.h"
#include "lib/host_root.h"
#include "tests/unit/file_tree.h"
#include "tests/unit/host-agent/control_call.h"
#include "tests/unit/host-agent/recorded_host.h"

#define NODE_FD "7"

/* Threads of the agent change it while the test reads it. */
static GMutex lock;
static HostRoot *root;
static GString *done;
static guint left;
static const char *refused;
static const char *awaited;
static void (*then)(HostRoot *root);
static const char *said;
static const char *promised;
static guint64 promised_bytes;
static GHashTable *drivers; /* address to its original driver */
static GHashTable *drained;

static gboolean do_control(unsigned long request, void *argument);

static int control_hook(unsigned long request, void *argument)
{
    return do_control(request, argument) ? 0 : -1;
}

static void note_drivers(void)
{
    static const char dir[] = "/sys/bus/pci/devices";
    g_auto(GStrv) addresses = sysfs_list(root, dir);

    for (guint i = 0; addresses[i]; i++) {
        g_autofree char *device = g_build_filename(dir, addresses[i], NULL);
        char *driver = sysfs_link_name(root, device, "driver");

        if (g_strcmp0(driver, "vfio-pci") == 0) {
            g_free(driver);
            driver = g_strdup("amdgpu");
            g_autofree char *path =
                g_strdup_printf("/sys/bus/pci/devices/%s/driver_override", addresses[i]);

            file_tree_write(root, path, "vfio-pci\n");
        }
        if (driver)
            g_hash_table_insert(drivers, g_strdup(addresses[i]), driver);
    }
}

void fake_kernel_use(HostRoot *at)
{
    g_clear_pointer(&root, host_root_unref);
    root = host_root_ref(at);
    if (done)
        g_string_free(done, TRUE);
    done = g_string_new(NULL);
    left = G_MAXUINT;
    refused = NULL;
    awaited = NULL;
    said = "";
    promised = NULL;
    g_clear_pointer(&drivers, g_hash_table_unref);
    g_clear_pointer(&drained, g_hash_table_unref);
    drivers = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    drained = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    note_drivers();
    file_tree_write(root, "/dev/vgpu-control", "");
    control_call_hook = control_hook;
}

char *fake_kernel_done(void)
{
    g_mutex_lock(&lock);
    char *text = g_strdup(done->str);
    g_mutex_unlock(&lock);
    return text;
}

void assert_done(const char *expected)
{
    g_autofree char *done = fake_kernel_done();

    if (!strstr(done, expected))
        g_error("this was not done:\n%s\nbut this:\n%s", expected, done);
}

void assert_not_done(const char *unexpected)
{
    g_autofree char *done = fake_kernel_done();

    if (strstr(done, unexpected))
        g_error("\"%s\" was done:\n%s", unexpected, done);
}

void fake_kernel_cut_after(guint count)
{
    left = count;
}

void fake_kernel_refuse(const char *suffix)
{
    refused = suffix;
}

void fake_kernel_then(const char *action, void (*func)(HostRoot *root))
{
    awaited = action;
    then = func;
}

void fake_kernel_say(const char *output)
{
    said = output;
}

void fake_kernel_promise(const char *gpu, guint64 bytes)
{
    promised = gpu;
    promised_bytes = bytes;
}

gboolean fake_kernel_drained(const char *gpu)
{
    g_mutex_lock(&lock);
    gboolean is = g_hash_table_contains(drained, gpu);
    g_mutex_unlock(&lock);
    return is;
}

static void call_awaiting(const char *action)
{
    if (!awaited || !g_str_has_prefix(action, awaited))
        return;
    awaited = NULL;
    then(root);
}

/* FALSE: the power is cut. */
G_GNUC_PRINTF(1, 2)
static gboolean note(const char *format, ...)
{
    gsize begin = done->len;
    va_list values;

    if (!left)
        return FALSE;
    if (left != G_MAXUINT)
        left--;
    va_start(values, format);
    g_string_append_vprintf(done, format, values);
    va_end(values);
    call_awaiting(done->str + begin);
    g_string_append_c(done, '\n');
    return TRUE;
}

static char *pci_path(const char *address, const char *name)
{
    return root_path(root, "sys/bus/pci/devices", address, name, NULL);
}

/* The vGPU driver has its types below the GPU. */
static void show_types(const char *gpu, gboolean shown)
{
    g_autofree char *types = pci_path(gpu, "mdev_supported_types");
    g_autofree char *hidden = pci_path(gpu, "hidden_types");

    if (shown && g_rename(hidden, types) < 0)
        g_mkdir_with_parents(types, 0755);
    else if (!shown)
        g_rename(types, hidden);
    if (shown) {
        g_autofree char *one = g_build_filename(types, "fake-vgpu-half", NULL);
        g_mkdir_with_parents(one, 0755);
    }
}

static void probe(const char *address)
{
    g_autofree char *dir = g_build_filename("/sys/bus/pci/devices", address, NULL);
    g_autofree char *link = pci_path(address, "driver");
    g_autofree char *override = sysfs_read(root, dir, "driver_override");
    const char *driver = override && *override ? override : g_hash_table_lookup(drivers, address);
    g_autofree char *target = g_strconcat("/sys/bus/pci/drivers/", driver, NULL);

    if (driver && !g_file_test(link, G_FILE_TEST_IS_SYMLINK))
        g_assert_cmpint(symlink(target, link), ==, 0);
}

static void unbind(const char *address)
{
    g_autofree char *link = pci_path(address, "driver");

    g_assert_cmpint(unlink(link), ==, 0);
    show_types(address, FALSE);
}

static void write_text(const char *path, const char *text)
{
    g_assert_true(g_file_set_contents(path, text, -1, NULL));
}

/* Functions with the numbers from 1 on, in separate groups. */
static void set_vfs(const char *path, guint count)
{
    g_autofree char *dir = g_path_get_dirname(path);
    g_autofree char *real = realpath(dir, NULL);
    g_autofree char *parent = g_path_get_dirname(real);
    g_autofree char *name = g_path_get_basename(real);
    char *function = strrchr(name, '.');
    g_autofree char *number = g_strdup_printf("%u\n", count);

    *function = '\0';
    for (guint i = 0; i < 7; i++) {
        g_autofree char *link = g_strdup_printf("%s/virtfn%u", real, i);
        g_autofree char *device = g_strdup_printf("../%s.%u", name, i + 1);
        g_autofree char *line = g_strdup_printf(
            "%s/%s.%u class=0x038000 vendor=0x8086 device=0x56c0 group=10%u physfn=../%s.0",
            strstr(parent, "/devices/") + strlen("/devices/"), name, i + 1, i, name);
        g_autofree char *address = g_strdup_printf("%s.%u", name, i + 1);
        g_autofree char *there = pci_path(address, NULL);
        g_autofree char *vf = g_build_filename(parent, address, NULL);

        unlink(link);
        if (i < count) {
            g_assert_cmpint(symlink(device, link), ==, 0);
            if (g_file_test(there, G_FILE_TEST_IS_SYMLINK))
                continue;
            if (g_file_test(vf, G_FILE_TEST_IS_DIR))
                g_assert_cmpint(symlink(vf, there), ==, 0);
            else
                recorded_host_add(root, line);
        } else if (g_file_test(there, G_FILE_TEST_IS_SYMLINK)) {
            recorded_host_remove(root, address);
        }
    }
    write_text(path, number);
}

static void do_write(const char *path, const char *text)
{
    if (g_str_has_suffix(path, "/unbind"))
        unbind(text);
    else if (g_str_has_suffix(path, "/drivers_probe"))
        probe(text);
    else if (g_str_has_suffix(path, "/sriov_numvfs"))
        set_vfs(path, (guint)atoi(text));
    else if (g_str_has_suffix(path, "/remove")) {
        g_autofree char *link = g_path_get_dirname(path);

        g_assert_cmpint(unlink(link), ==, 0);
    } else {
        write_text(path, text);
    }
}

gboolean kernel_write(HostRoot *host, const char *path, const char *text, GError **error)
{
    g_autofree char *full = root_path(host, path, NULL);
    g_autofree char *shown = g_strchomp(g_strdup(text));
    gboolean good;

    g_mutex_lock(&lock);
    good = !(refused && g_str_has_suffix(path, refused)) && note("write %s %s", path, shown);
    if (good)
        do_write(full, text);
    g_mutex_unlock(&lock);
    if (!good)
        g_set_error(error, AGENT_ERROR, AGENT_ERROR_FAILED, "%s: refused by the test", path);
    return good;
}

/* Directories of vGPUs stay when their links are removed. */
static void start_vgpu(const char *uuid)
{
    g_autofree char *dir = root_path(root, "/sys/devices", NULL);
    g_autofree char *list =
        g_strdup_printf("find %s -type d -name %s -printf ../../../devices/%%P", dir, uuid);
    g_autofree char *link = root_path(root, "sys/bus/mdev/devices", uuid, NULL);
    g_autofree char *found = NULL;

    g_assert_true(g_spawn_command_line_sync(list, &found, NULL, NULL, NULL));
    g_assert_cmpint(symlink(found, link), ==, 0);
}

gboolean kernel_run(const char *const *argv, char **output, GError **error)
{
    g_autofree char *line = g_strjoinv(" ", (char **)argv);
    gboolean good;

    g_mutex_lock(&lock);
    /* A drained GPU has no room for another vGPU. */
    good = !(g_str_has_prefix(line, "mdevctl start") && g_hash_table_size(drained)) &&
           note("run %s", line);
    if (good && g_str_has_prefix(line, "mdevctl start"))
        start_vgpu(argv[3]);
    else if (good)
        file_tree_write(root, "/sys/bus/pci/drivers/vfio-pci/uevent", "");
    g_mutex_unlock(&lock);
    if (output)
        *output = g_strdup(said);
    if (!good)
        g_set_error(error, AGENT_ERROR, AGENT_ERROR_FAILED, "%s: refused by the test", line);
    return good;
}

/* Like VFIO: one at a time. */
int kernel_hold(HostRoot *host, const char *path)
{
    g_auto(GStrv) pids = sysfs_list(host, "/proc");

    for (guint i = 0; pids[i]; i++) {
        g_autofree char *link = g_build_filename("/proc", pids[i], "fd", NODE_FD, NULL);
        g_autofree char *target = root_link(host, link);

        if (target && g_str_equal(target, path)) {
            errno = EBUSY;
            return -1;
        }
    }
    return open("/dev/null", O_RDWR | O_CLOEXEC);
}

static gboolean has_vgpus(const char *gpu)
{
    static const char dir[] = "/sys/bus/mdev/devices";
    g_auto(GStrv) uuids = sysfs_list(root, dir);
    gboolean has = FALSE;

    for (guint i = 0; uuids[i]; i++) {
        g_autofree char *link = g_build_filename(dir, uuids[i], NULL);
        g_autofree char *real = root_resolve(root, link);

        has = has || (real && strstr(real, gpu));
    }
    return has;
}

static gboolean fail(int code)
{
    errno = code;
    return FALSE;
}

static gboolean remove_gpu(const char *gpu)
{
    g_autofree char *types = pci_path(gpu, "mdev_supported_types");

    if (!g_file_test(types, G_FILE_TEST_IS_DIR))
        return fail(ENODEV);
    if (has_vgpus(gpu))
        return fail(EBUSY);
    if (!note("remove %s", gpu))
        return fail(EIO);
    show_types(gpu, FALSE);
    g_hash_table_remove(drained, gpu);
    return TRUE;
}

static gboolean drain_gpu(const struct vgpu_control_drain *drain)
{
    g_autofree char *types = pci_path(drain->gpu, "mdev_supported_types");

    if (!g_file_test(types, G_FILE_TEST_IS_DIR))
        return fail(ENODEV);
    if (!note(drain->flags & VGPU_DRAIN_ON ? "drain %s" : "resume %s", drain->gpu))
        return fail(EIO);
    if (drain->flags & VGPU_DRAIN_ON)
        g_hash_table_add(drained, g_strdup(drain->gpu));
    else
        g_hash_table_remove(drained, drain->gpu);
    return TRUE;
}

static gboolean add_gpu(const char *gpu)
{
    g_autofree char *types = pci_path(gpu, "mdev_supported_types");

    if (g_file_test(types, G_FILE_TEST_IS_DIR))
        return fail(EEXIST);
    if (!note("add %s", gpu))
        return fail(EIO);
    show_types(gpu, TRUE);
    return TRUE;
}

/* In sysfs the name of the GPU's driver is in front. */
static gboolean is_listed(const GStrv shown, const char *name)
{
    g_autofree char *suffix = g_strconcat("-", name, NULL);

    for (guint i = 0; shown[i]; i++)
        if (g_str_has_suffix(shown[i], suffix))
            return TRUE;
    return FALSE;
}

static gboolean same_types(const struct vgpu_control_gpu *asked)
{
    const struct vgpu_type_desc *types = (const void *)(guintptr)asked->types;
    g_autofree char *dir =
        g_build_filename("/sys/bus/pci/devices", asked->gpu, "mdev_supported_types", NULL);
    g_auto(GStrv) shown = sysfs_list(root, dir);
    gboolean same = g_strv_length(shown) == asked->ntypes;

    for (guint i = 0; i < asked->ntypes; i++)
        same = same && is_listed(shown, types[i].name);
    return same;
}

static gboolean set_types(const struct vgpu_control_gpu *asked)
{
    const struct vgpu_type_desc *types = (const void *)(guintptr)asked->types;
    g_autofree char *dir = pci_path(asked->gpu, "mdev_supported_types");
    g_autoptr(GString) names = g_string_new(NULL);

    if (!g_file_test(dir, G_FILE_TEST_IS_DIR))
        return fail(ENODEV);
    if (has_vgpus(asked->gpu) && !same_types(asked))
        return fail(EBUSY);
    if (g_strcmp0(promised, asked->gpu) == 0 && asked->vram_bytes < promised_bytes)
        return fail(ENOSPC);
    for (guint i = 0; i < asked->ntypes; i++)
        g_string_append_printf(names, " %s", types[i].name);
    return note("update %s %" G_GUINT64_FORMAT "%s", asked->gpu, (guint64)asked->vram_bytes,
                names->str) ||
           fail(EIO);
}

static gboolean do_control(unsigned long request, void *argument)
{
    gboolean good;

    g_mutex_lock(&lock);
    if (request == VGPU_CONTROL_ADD_GPU)
        good = add_gpu(((const struct vgpu_control_gpu *)argument)->gpu);
    else if (request == VGPU_CONTROL_REMOVE_GPU)
        good = remove_gpu(((const struct vgpu_control_remove *)argument)->gpu);
    else if (request == VGPU_CONTROL_SET_TYPES)
        good = set_types(argument);
    else if (request == VGPU_CONTROL_DRAIN_GPU)
        good = drain_gpu(argument);
    else
        good = fail(ENOTTY);
    g_mutex_unlock(&lock);
    return good;
}

static void write_bytes(const char *dir, const char *name, const char *text, gsize length)
{
    g_autofree char *path = g_build_filename(dir, name, NULL);

    g_assert_true(g_file_set_contents(path, text, (gssize)length, NULL));
}

void fake_process(HostRoot *at, guint pid, const char *comm, const char *name, const char *cgroup,
                  const char *node)
{
    g_autofree char *number = g_strdup_printf("%u", pid);
    g_autofree char *dir = root_path(at, "/proc", number, NULL);
    g_autofree char *fd = g_build_filename(dir, "fd", NULL);
    g_autofree char *link = g_build_filename(fd, NODE_FD, NULL);
    g_autofree char *target = g_build_filename("/dev", node, NULL);
    g_autoptr(GString) line = g_string_new(comm);

    g_assert_cmpuint(pid, >=, FAKE_PID_MIN);
    g_assert_cmpint(g_mkdir_with_parents(fd, 0755), ==, 0);
    g_string_append_c(line, '\0');
    if (name) {
        g_string_append_len(line, "-name", sizeof("-name"));
        g_string_append_printf(line, "guest=%s,debug-threads=on", name);
        g_string_append_c(line, '\0');
    }
    write_bytes(dir, "cmdline", line->str, line->len);
    write_bytes(dir, "comm", comm, strlen(comm));
    write_bytes(dir, "cgroup", cgroup ? cgroup : "0::/\n", strlen(cgroup ? cgroup : "0::/\n"));
    g_assert_cmpint(symlink(target, link), ==, 0);
}

void fake_process_closes(HostRoot *at, guint pid)
{
    g_autofree char *link = g_strdup_printf("/proc/%u/fd/" NODE_FD, pid);

    root_remove(at, link);
    g_assert_false(root_is(at, link, G_FILE_TEST_IS_SYMLINK));
}
