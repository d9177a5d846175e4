/* SPDX-License-Identifier: MIT */
/* The agent's view of recorded hosts. */
#include <string.h>

#include "lib/gpu.h"
#include "lib/pci.h"
#include "lib/vgpu.h"
#include "tests/unit/file_tree.h"
#include "tests/unit/host-agent/recorded_host.h"

#define GIB G_GUINT64_CONSTANT(0x40000000)

struct host {
    HostRoot *root;
    Inventory *inventory;
    GPtrArray *gpus;
};

static struct host host_open(const char *name)
{
    struct host host = {.root = recorded_host_new(name)};

    host.inventory = inventory_new(host.root);
    host.gpus = inventory_read(host.inventory);
    return host;
}

static void host_close(struct host *host)
{
    g_ptr_array_unref(host->gpus);
    inventory_free(host->inventory);
    file_tree_free(host->root);
}

static const Gpu *gpu_at(const struct host *host, guint i)
{
    g_assert_cmpuint(i, <, host->gpus->len);
    return g_ptr_array_index(host->gpus, i);
}

static void assert_list(GStrv list, const char *expected)
{
    g_autofree char *joined = g_strjoinv(" ", list);

    g_assert_cmpstr(joined, ==, expected);
}

static void assert_distance(const struct host *host, guint a, guint b, const char *expected)
{
    const PciDevice *left = gpu_at(host, a)->pci, *right = gpu_at(host, b)->pci;

    g_assert_cmpstr(distance_name(topology_distance(left, right)), ==, expected);
    g_assert_cmpstr(distance_name(topology_distance(right, left)), ==, expected);
}

static void test_server(void)
{
    struct host host = host_open("server-8gpu");
    const Gpu *first, *last;

    file_tree_write(host.root, "/run/vgpu/readings/0000:18:00.0", "[gpu]\nmemory=85899345920\n");
    g_ptr_array_unref(host.gpus);
    host.gpus = inventory_read(host.inventory);
    first = gpu_at(&host, 0);
    last = gpu_at(&host, 7);

    g_assert_cmpuint(host.gpus->len, ==, 8);
    g_assert_cmpstr(first->pci->address, ==, "0000:18:00.0");
    g_assert_cmpint(first->pci->numa_node, ==, 0);
    g_assert_cmpint(last->pci->numa_node, ==, 1);
    /* Its BAR has 128 GiB. */
    g_assert_cmpuint(first->vram, ==, 80 * GIB);
    g_assert_cmpstr(first->vram_source, ==, "NVIDIA's library");
    g_assert_cmpuint(last->vram, ==, 0);
    g_assert_cmpuint(first->pci->link.speed, ==, 320);
    g_assert_cmpuint(first->pci->link.width, ==, 16);
    g_assert_cmpstr(gpu_mode_name(first->mode), ==, "host");
    assert_list(first->drm_nodes, "card0 renderD128");
    assert_list(first->group, "");
    host_close(&host);
}

/* A host whose driver has not been asked yet. */
static void test_unread(void)
{
    struct host host = host_open("server-8gpu");
    g_autoptr(GError) error = NULL;
    g_autofree char *source = NULL;
    guint64 bytes;

    g_assert_false(
        hardware_vram(host.root, gpu_at(&host, 7)->pci->dir, "nvidia", &bytes, &source, &error));
    g_assert_error(error, REGISTRAR_ERROR, REGISTRAR_ERROR_REFUSED);
    g_assert_nonnull(strstr(error->message, "start vgpu-nvidia-readings.service"));
    g_assert_null(source);
    host_close(&host);
}

/* A card that uses the host's memory (GB10). */
static void test_unified(void)
{
    struct host host = host_open("server-8gpu");
    g_autoptr(GError) error = NULL;
    g_autofree char *source = NULL;
    guint64 bytes;

    file_tree_write(host.root, "/run/vgpu/readings/0000:18:00.0", "[gpu]\nunified=true\n");
    g_assert_false(
        hardware_vram(host.root, gpu_at(&host, 0)->pci->dir, "nvidia", &bytes, &source, &error));
    g_assert_error(error, REGISTRAR_ERROR, REGISTRAR_ERROR_REFUSED);
    g_assert_nonnull(strstr(error->message, "uses the host's memory"));
    g_assert_nonnull(strstr(error->message, "set vram= in gpus.conf"));
    host_close(&host);
}

static void put_in(const struct host *host, const char *name, const char *text)
{
    g_autofree char *path = g_build_filename(gpu_at(host, 0)->pci->dir, name, NULL);

    file_tree_write(host->root, path, text);
}

/* In AMD's processors the driver's own part of the memory is small, and the rest as much as is
 * free. */
static void test_apu(void)
{
    struct host host = host_open("shared");
    const guint64 own = 16 * GIB, of_host = 108 * GIB;
    g_autofree char *source = NULL;
    guint64 bytes;

    /* A card: its driver may use the host's memory, too, but that is not the card's. */
    put_in(&host, "mem_info_vram_total", "17179869184\n");
    put_in(&host, "mem_info_gtt_total", "115964116992\n");
    put_in(&host, "gpu_metrics", "\x60\x01\x01\x03");
    g_assert_true(
        hardware_vram(host.root, gpu_at(&host, 0)->pci->dir, "amdgpu", &bytes, &source, NULL));
    g_assert_cmpuint(bytes, ==, own);
    g_clear_pointer(&source, g_free);
    put_in(&host, "gpu_metrics", "\x60\x01\x03\x01");
    g_assert_true(
        hardware_vram(host.root, gpu_at(&host, 0)->pci->dir, "amdgpu", &bytes, &source, NULL));
    g_assert_cmpuint(bytes, ==, own + of_host);
    g_assert_nonnull(strstr(source, "mem_info_gtt_total"));
    host_close(&host);
}

static void test_server_topology(void)
{
    struct host host = host_open("server-8gpu");

    assert_distance(&host, 0, 0, "X");
    assert_distance(&host, 0, 1, "PIX");
    assert_distance(&host, 0, 2, "NODE");
    assert_distance(&host, 0, 4, "SYS");
    assert_distance(&host, 6, 7, "PIX");
    host_close(&host);
}

static void test_switches(void)
{
    static const char *const lines[] = {
        "pci0000:00/0000:00:01.0/0000:01:00.0/0000:02:00.0/0000:03:00.0/0000:04:00.0/0000:05:00.0 "
        "class=0x030200",
        "pci0000:00/0000:00:01.0/0000:01:00.0/0000:02:01.0/0000:06:00.0/0000:07:00.0/0000:08:00.0 "
        "class=0x030200",
        "pci0000:00/0000:00:02.0/0000:09:00.0 class=0x030200",
        "pci0000:80/0000:80:01.0/0000:81:00.0 class=0x030200",
    };
    struct host host = host_open("empty");

    for (guint i = 0; i < G_N_ELEMENTS(lines); i++)
        recorded_host_add(host.root, lines[i]);
    g_ptr_array_unref(host.gpus);
    host.gpus = inventory_read(host.inventory);
    g_assert_cmpuint(host.gpus->len, ==, 4);
    assert_distance(&host, 0, 1, "PXB");
    assert_distance(&host, 0, 2, "PHB");
    assert_distance(&host, 0, 3, "SYS"); /* the nodes are not known, so they do not count as one */
    host_close(&host);
}

static void test_sriov(void)
{
    struct host host = host_open("sriov-card");
    const Gpu *physical = gpu_at(&host, 0), *theirs = gpu_at(&host, 2);

    g_assert_cmpuint(host.gpus->len, ==, 3);
    g_assert_cmpint(physical->mode, ==, GPU_MODE_PARTITIONED);
    g_assert_cmpuint(physical->pci->total_vfs, ==, 31);
    g_assert_cmpuint(physical->pci->vfs, ==, 2);
    g_assert_null(physical->pci->physfn);
    g_assert_cmpuint(physical->pci->link.width, ==, 8);
    g_assert_cmpuint(physical->pci->max_link.width, ==, 16);
    g_assert_cmpstr(theirs->pci->physfn, ==, "0000:65:00.0");
    g_assert_cmpint(theirs->mode, ==, GPU_MODE_PASSTHROUGH);
    g_assert_cmpuint(theirs->vram, ==, 0);
    host_close(&host);
}

static void test_laptop(void)
{
    struct host host = host_open("laptop");
    const Gpu *integrated = gpu_at(&host, 0), *discrete = gpu_at(&host, 1);

    g_assert_cmpuint(host.gpus->len, ==, 2);
    assert_list(integrated->group, "");
    assert_list(discrete->group, "0000:00:01.0 0000:01:00.1");
    assert_list(discrete->group_in_use, "0000:01:00.1"); /* the bridge stays */
    g_assert_cmpuint(discrete->pci->link.speed, ==, 25);
    g_assert_cmpuint(discrete->pci->max_link.speed, ==, 160);
    g_assert_cmpint(discrete->pci->numa_node, ==, -1);
    host_close(&host);
}

static void test_shared(void)
{
    struct host host = host_open("shared");
    const Gpu *shared = gpu_at(&host, 0), *given = gpu_at(&host, 1);

    g_assert_cmpint(shared->mode, ==, GPU_MODE_SHARED);
    assert_list(shared->types, "amdgpu-vgpu-full amdgpu-vgpu-half");
    g_assert_cmpuint(shared->vram, ==, G_GUINT64_CONSTANT(17163091968));
    g_assert_nonnull(strstr(shared->vram_source, "mem_info_vram_total"));
    g_assert_cmpint(given->mode, ==, GPU_MODE_PASSTHROUGH);
    g_assert_cmpuint(given->vram, ==, 16 * GIB);
    host_close(&host);
}

static void test_empty(void)
{
    struct host host = host_open("empty");

    g_assert_cmpuint(host.gpus->len, ==, 0);
    host_close(&host);
}

static void test_gone(void)
{
    struct host host = host_open("shared");
    g_autoptr(GPtrArray) now = NULL;

    recorded_host_remove(host.root, "0000:02:00.0");
    now = inventory_read(host.inventory);
    g_assert_cmpuint(now->len, ==, 1);
    host_close(&host);
}

/*
 * A device of another class counts if gpus.conf names it; that file also defines a GPU without a
 * device.
 */
static void test_named(void)
{
    struct host host = host_open("empty");
    g_autoptr(GPtrArray) entries = NULL;
    const Gpu *nic, *soft;

    g_assert_cmpuint(host.gpus->len, ==, 0);
    file_tree_write(
        host.root, "/etc/vgpu/gpus.conf",
        "[gpu soft:a-b]\nmode=shared\nvram=1G\n[gpu 0000:00:03.0]\nmode=host\nvram=2G\n");
    file_tree_write(host.root,
                    "/sys/devices/virtual/vgpu-soft/a-b/mdev_supported_types/vgpu-soft-half/name",
                    "x\n");
    g_ptr_array_unref(host.gpus);
    host.gpus = inventory_read(host.inventory);
    g_assert_cmpuint(host.gpus->len, ==, 2);
    nic = gpu_at(&host, 0);
    g_assert_cmpstr(nic->pci->address, ==, "0000:00:03.0");
    g_assert_cmpuint(nic->vram, ==, 2 * GIB);
    g_assert_cmpstr(nic->vram_source, ==, "vram= in gpus.conf");
    soft = gpu_at(&host, 1);
    g_assert_cmpstr(soft->pci->address, ==, "soft:a-b");
    g_assert_cmpint(soft->mode, ==, GPU_MODE_SHARED);
    g_assert_cmpuint(soft->vram, ==, GIB);
    assert_list(soft->types, "vgpu-soft-half");
    assert_distance(&host, 0, 1, "SYS");

    /* A file that is broken now counts with its last valid content. */
    file_tree_write(host.root, "/etc/vgpu/gpus.conf", "[gpu soft:a-b]\nmode=shred\n");
    g_ptr_array_unref(host.gpus);
    g_test_expect_message(NULL, G_LOG_LEVEL_WARNING, "*mode=shred is not allowed*");
    host.gpus = inventory_read(host.inventory);
    g_test_assert_expected_messages();
    g_assert_cmpuint(host.gpus->len, ==, 2);
    /* For whoever asks what is wanted, too, and it is said once. */
    entries = inventory_entries(host.inventory);
    g_assert_cmpint(gpus_find(entries, "soft:a-b")->mode, ==, GPU_MODE_SHARED);
    host_close(&host);
}

static void test_soft_vgpu(void)
{
    g_autofree HostRoot *root = file_tree_new();
    g_autoptr(GPtrArray) vgpus = NULL;

    recorded_host_add_vgpu(root, "virtual/vgpu-soft/a", "u1", "vgpu-soft-half",
                           "state=device=closed engine=ready");
    vgpus = vgpus_read(root);
    g_assert_cmpuint(vgpus->len, ==, 1);
    g_assert_cmpstr(((const Vgpu *)g_ptr_array_index(vgpus, 0))->gpu, ==, "soft:a");
    file_tree_free(g_steal_pointer(&root));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/inventory/server", test_server);
    g_test_add_func("/inventory/unread", test_unread);
    g_test_add_func("/inventory/unified", test_unified);
    g_test_add_func("/inventory/apu", test_apu);
    g_test_add_func("/inventory/server-topology", test_server_topology);
    g_test_add_func("/inventory/switches", test_switches);
    g_test_add_func("/inventory/sriov", test_sriov);
    g_test_add_func("/inventory/laptop", test_laptop);
    g_test_add_func("/inventory/shared", test_shared);
    g_test_add_func("/inventory/empty", test_empty);
    g_test_add_func("/inventory/gone", test_gone);
    g_test_add_func("/inventory/named", test_named);
    g_test_add_func("/inventory/soft-vgpu", test_soft_vgpu);
    return g_test_run();
}
