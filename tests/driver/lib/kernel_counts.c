/* SPDX-License-Identifier: MIT */
/* The kernel's resources, from its own counters. */
#include "kernel_counts.h"

#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "mdev_host.h"

#define SLAB_CACHES "/sys/kernel/slab"
/* udev's workers end after three idle seconds. */
#define SETTLE_US 4000000
/* Objects that RCU and workqueues free later. */
#define FREED_LATE_US 500000
/*
 * A slab that a processor allocates from counts as full, and reading the count allocates. So all
 * this runs on one processor, and uses the minimum of several samples: a leak is in each.
 */
#define SAMPLES 5

static char *read_file(const char *path)
{
    char *text = NULL;
    GError *error = NULL;

    if (!g_file_get_contents(path, &text, NULL, &error))
        g_error("%s", error->message);
    return text;
}

/* The number behind @name in "NAME[:] NUMBER" lines. */
static gint64 number_of(const char *text, const char *name)
{
    size_t len = strlen(name);

    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (!strncmp(line, name, len) && strchr(": ", line[len]))
            return g_ascii_strtoll(line + len + 1, NULL, 10);
    }
    g_error("the kernel tells no %s", name);
}

static gint64 optional_number_of(const char *text, const char *name)
{
    return strstr(text, name) ? number_of(text, name) : 0;
}

static gint64 count_entries(const char *path)
{
    g_autoptr(GDir) dir = g_dir_open(path, 0, NULL);
    gint64 n = 0;

    while (dir && g_dir_read_name(dir))
        n++;
    return n;
}

/* Empty slabs, the processors' own, and KASAN's quarantine. */
static void shrink_caches(void)
{
    g_autoptr(GDir) dir = g_dir_open(SLAB_CACHES, 0, NULL);
    const char *name;

    g_assert_nonnull(dir);
    while ((name = g_dir_read_name(dir))) {
        g_autofree char *path = g_build_filename(SLAB_CACHES, name, "shrink", NULL);

        sysfs_write(path, "1");
    }
}

static void wait_settled(void)
{
    const char *const udev[] = {"udevadm", "settle", "--timeout=600", NULL};

    g_spawn_sync(NULL, (char **)udev, NULL, G_SPAWN_SEARCH_PATH, NULL, NULL, NULL, NULL, NULL,
                 NULL);
    g_usleep(SETTLE_US);
    sync();
    for (unsigned i = 0; i < 3; i++) {
        g_assert_cmpint(sysfs_write("/proc/sys/vm/drop_caches", "3"), ==, 0);
        g_usleep(FREED_LATE_US);
    }
    /* The processors' own counts are summed. */
    g_assert_cmpint(sysfs_write("/proc/sys/vm/stat_refresh", "1"), ==, 0);
}

static void keep_least(GHashTable *slabs, const char *name, long objects)
{
    gpointer old;

    if (!g_hash_table_lookup_extended(slabs, name, NULL, &old) || objects < GPOINTER_TO_INT(old))
        g_hash_table_insert(slabs, g_strdup(name), GINT_TO_POINTER((int)objects));
}

/* Fills in @slabs; returns their total of pages. */
static gint64 sample_slabs(GHashTable *slabs)
{
    g_autofree char *text = read_file("/proc/slabinfo");
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    gint64 pages = 0;

    for (char **line = lines; *line; line++) {
        char name[64];
        long active, objects, size, per_slab, slab_pages, active_slabs, nslabs;

        if (sscanf(*line, "%63s %ld %ld %ld %ld %ld : tunables %*d %*d %*d : slabdata %ld %ld",
                   name, &active, &objects, &size, &per_slab, &slab_pages, &active_slabs,
                   &nslabs) != 8)
            continue;
        keep_least(slabs, name, active);
        pages += slab_pages * nslabs;
    }
    g_assert_cmpuint(g_hash_table_size(slabs), >, 0);
    return pages;
}

static void count_slabs(KernelCounts *counts)
{
    cpu_set_t all, first;

    counts->slabs = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    counts->large_pages = G_MAXINT64;
    sched_getaffinity(0, sizeof(all), &all);
    CPU_ZERO(&first);
    CPU_SET(0, &first);
    g_assert_cmpint(sched_setaffinity(0, sizeof(first), &first), ==, 0);
    for (unsigned i = 0; i < SAMPLES; i++) {
        g_autofree char *vmstat = NULL;
        gint64 pages;

        shrink_caches();
        pages = sample_slabs(counts->slabs);
        vmstat = read_file("/proc/vmstat");
        counts->large_pages =
            MIN(counts->large_pages, number_of(vmstat, "nr_slab_reclaimable") +
                                         number_of(vmstat, "nr_slab_unreclaimable") - pages);
    }
    sched_setaffinity(0, sizeof(all), &all);
}

/* Free pages that processors keep for themselves: no other count includes them. */
static gint64 pages_of_processors(void)
{
    g_autofree char *text = read_file("/proc/zoneinfo");
    gint64 pages = 0;

    for (const char *at = text; (at = strstr(at, " count: ")); at++)
        pages += g_ascii_strtoll(at + strlen(" count: "), NULL, 10);
    return pages;
}

static gint64 count_other_pages(void)
{
    static const char *const known[] = {"MemFree",      "Active(anon)",   "Inactive(anon)",
                                        "Active(file)", "Inactive(file)", "Unevictable",
                                        "Slab",         "KernelStack",    "PageTables",
                                        "VmallocUsed",  "Percpu"};
    g_autofree char *text = read_file("/proc/meminfo");
    gint64 kib = number_of(text, "MemTotal") - optional_number_of(text, "SecPageTables");

    for (size_t i = 0; i < G_N_ELEMENTS(known); i++)
        kib -= number_of(text, known[i]);
    return kib / 4 - pages_of_processors();
}

static gint64 count_vmalloc_areas(void)
{
    g_autofree char *text = read_file("/proc/vmallocinfo");
    gint64 n = 0;

    for (const char *at = text; (at = strstr(at, "[mdev_vgpu]")); at++)
        n++;
    return n;
}

KernelCounts *kernel_counts_take(void)
{
    KernelCounts *counts = g_new0(KernelCounts, 1);
    g_autofree char *vmstat = NULL;

    wait_settled();
    count_slabs(counts);
    vmstat = read_file("/proc/vmstat");
    counts->shmem_pages = number_of(vmstat, "nr_shmem");
    counts->other_pages = count_other_pages();
    counts->vmalloc_areas = count_vmalloc_areas();
    counts->pins =
        number_of(vmstat, "nr_foll_pin_acquired") - number_of(vmstat, "nr_foll_pin_released");
    counts->iommu_groups = count_entries("/sys/kernel/iommu_groups");
    return counts;
}

void kernel_counts_free(KernelCounts *counts)
{
    g_hash_table_unref(counts->slabs);
    g_free(counts);
}

/* @values: of each count, in their order. */
static unsigned has_grown(const char *name, const gint64 *values, unsigned n, gint64 least)
{
    for (unsigned i = 1; i < n; i++) {
        if (values[i] < values[i - 1] + least)
            return 0;
    }
    g_printerr("# grown: %s:", name);
    for (unsigned i = 0; i < n; i++)
        g_printerr(" %" G_GINT64_FORMAT, values[i]);
    g_printerr("\n");
    return 1;
}

static unsigned field_grown(const char *name, size_t field, KernelCounts *const *counts, unsigned n,
                            gint64 least)
{
    gint64 values[KERNEL_COUNTS_MOST];

    for (unsigned i = 0; i < n; i++)
        values[i] = G_STRUCT_MEMBER(gint64, counts[i], field);
    return has_grown(name, values, n, least);
}

/*
 * A kernel with checkers stores every new stack trace, in its own pages. kmemleak finds leaks there
 * (t-kernel-log).
 */
static bool has_checkers(void)
{
    return access("/sys/kernel/debug/kmemleak", F_OK) == 0;
}

/*
 * File systems' caches of the files that are read meanwhile, and the checkers' own caches. The
 * driver takes nothing there without an inode, a file or a node of sysfs, which are counted.
 */
static bool is_of_others(const char *cache)
{
    static const char *const prefixes[] = {"ext4_",           "extent_status",   "jbd2_",
                                           "buffer_head",     "radix_tree_node", "dentry",
                                           "lsm_inode_cache", "kmemleak_",       "debug_objects_"};

    for (size_t i = 0; i < G_N_ELEMENTS(prefixes); i++) {
        if (g_str_has_prefix(cache, prefixes[i]))
            return true;
    }
    return false;
}

static unsigned slabs_grown(KernelCounts *const *counts, unsigned n, unsigned least)
{
    GHashTableIter iter;
    gpointer name;
    unsigned sum = 0;

    g_hash_table_iter_init(&iter, counts[n - 1]->slabs);
    while (g_hash_table_iter_next(&iter, &name, NULL)) {
        gint64 values[KERNEL_COUNTS_MOST];

        for (unsigned i = 0; i < n; i++)
            values[i] = GPOINTER_TO_INT(g_hash_table_lookup(counts[i]->slabs, name));
        if (!is_of_others(name))
            sum += has_grown(name, values, n, least);
    }
    return sum;
}

unsigned kernel_counts_grown(KernelCounts *const *counts, unsigned n, unsigned least)
{
#define FIELD(name) G_STRUCT_OFFSET(KernelCounts, name)
    const struct {
        const char *name;
        size_t field;
        gint64 least;
    } fields[] = {
        {"pinned pages", FIELD(pins), 1},
        {"IOMMU groups", FIELD(iommu_groups), 1},
        {"vmalloc areas of the driver", FIELD(vmalloc_areas), 1},
        {"pages of large kmallocs", FIELD(large_pages), least},
        {"pages of shared memory", FIELD(shmem_pages), least},
        {"pages that nothing else counts", FIELD(other_pages), least},
    };
#undef FIELD
    unsigned sum = slabs_grown(counts, n, least);

    g_assert_cmpuint(n, >=, 2);
    g_assert_cmpuint(n, <=, KERNEL_COUNTS_MOST);
    for (size_t i = 0; i < G_N_ELEMENTS(fields); i++) {
        if (fields[i].field != G_STRUCT_OFFSET(KernelCounts, other_pages) || !has_checkers())
            sum += field_grown(fields[i].name, fields[i].field, counts, n, fields[i].least);
    }
    return sum;
}
