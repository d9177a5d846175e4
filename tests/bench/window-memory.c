// SPDX-License-Identifier: MIT
/*
 * window-memory [NODE]: how a guest sees the memory of its vGPU's window. Rings and memory that a
 * GPU shares with a program are there, and a processor must keep it in its caches (write-back), as
 * it does with all of the guest's memory. An mdev counts as a device without coherent DMA, so on
 * Intel KVM takes what the guest says of its memory, and what that says of a BAR depends on the
 * VM's firmware.
 *
 * It runs in any VM with a vGPU, and measures a blob beside the program's own memory. Uncached
 * memory is read some hundred times slower; write-combined memory is written as fast, and read as
 * slowly. Exit status: 0, as the program's own; 1, slower; 2, there is no such memory.
 *
 *     cc -O2 -o window-memory window-memory.c
 */
#include <drm/virtgpu_drm.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define VENUS     4u
#define CUDA      27u
#define BYTES     (4u << 20)
#define PAGE      4096u
#define TRIES     7
#define SLOWER_BY 4 /* is no matter of chance */

static double now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void read_all(volatile uint64_t *at, size_t words)
{
    for (size_t i = 0; i < words; i++)
        (void)at[i];
}

static void write_all(volatile uint64_t *at, size_t words)
{
    for (size_t i = 0; i < words; i++)
        at[i] = i;
}

static void add_all(volatile uint64_t *at, size_t words)
{
    for (size_t i = 0; i < words; i += 8)
        __atomic_fetch_add(&at[i], 1, __ATOMIC_SEQ_CST);
}

static const struct {
    const char *name;
    void (*work)(volatile uint64_t *at, size_t words);
    size_t each; /* words of an operation */
} rows[] = {{"read", read_all, 1}, {"write", write_all, 1}, {"atomic add", add_all, 8}};

/* The best of some: nanoseconds for each operation. */
static double measure(size_t row, void *at, size_t bytes)
{
    double best = 1e9;

    for (int i = 0; i < TRIES; i++) {
        double start = now_s();

        for (size_t done = 0; done < BYTES; done += bytes)
            rows[row].work(at, bytes / 8);
        start = now_s() - start;
        best = start < best ? start : best;
    }
    return best * 1e9 / (BYTES / 8.0 / (double)rows[row].each);
}

static int make_context(int node, uint32_t capset)
{
    struct drm_virtgpu_context_set_param params[] = {{VIRTGPU_CONTEXT_PARAM_CAPSET_ID, capset},
                                                     {VIRTGPU_CONTEXT_PARAM_NUM_RINGS, 2}};
    struct drm_virtgpu_context_init init = {.num_params = 2, .ctx_set_params = (uintptr_t)params};

    return ioctl(node, DRM_IOCTL_VIRTGPU_CONTEXT_INIT, &init);
}

static void *map_blob(int node, uint64_t id, size_t bytes)
{
    struct drm_virtgpu_resource_create_blob blob = {.blob_mem = VIRTGPU_BLOB_MEM_HOST3D,
                                                    .blob_flags = VIRTGPU_BLOB_FLAG_USE_MAPPABLE,
                                                    .size = bytes,
                                                    .blob_id = id};
    struct drm_virtgpu_map map = {0};

    if (ioctl(node, DRM_IOCTL_VIRTGPU_RESOURCE_CREATE_BLOB, &blob) < 0)
        return MAP_FAILED;
    map.handle = blob.bo_handle;
    if (ioctl(node, DRM_IOCTL_VIRTGPU_MAP, &map) < 0)
        return MAP_FAILED;
    return mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, node, (off_t)map.offset);
}

/* Shared memory of a context: Venus' has as much as it wants, CUDA's a page from the beginning on.
 */
static void *window_memory(const char *path, size_t *bytes)
{
    static const struct {
        uint32_t capset;
        uint64_t id;
        size_t bytes;
    } ways[] = {{VENUS, 0, BYTES}, {CUDA, 1, PAGE}};

    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        int node = open(path, O_RDWR | O_CLOEXEC);
        void *at = MAP_FAILED;

        if (node < 0) {
            perror(path);
            return NULL;
        }
        *bytes = ways[i].bytes;
        if (make_context(node, ways[i].capset) == 0)
            at = map_blob(node, ways[i].id, *bytes);
        if (at != MAP_FAILED)
            return at;
        close(node);
    }
    fprintf(stderr, "%s: no vGPU, or it has neither Vulkan nor CUDA: %s\n", path, strerror(errno));
    return NULL;
}

/* For root, what the kernel's page tables have for the BAR. */
static void print_types(void)
{
    FILE *list = fopen("/sys/kernel/debug/x86/pat_memtype_list", "re");
    char line[256];

    while (list && fgets(line, sizeof(line), list))
        if (strstr(line, "write-") || strstr(line, "uncached"))
            fputs(line, stdout);
    if (list)
        fclose(list);
}

int main(int argc, char **argv)
{
    size_t bytes = 0;
    void *window = window_memory(argc > 1 ? argv[1] : "/dev/dri/renderD128", &bytes);
    void *own = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int is_slower = 0;

    if (!window || own == MAP_FAILED)
        return 2;
    memset(own, 1, bytes);
    printf("%zu KiB, ns each      own   window\n", bytes >> 10);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        double ours = measure(i, own, bytes), theirs = measure(i, window, bytes);

        printf("%-18s %8.2f %8.2f\n", rows[i].name, ours, theirs);
        is_slower |= theirs > SLOWER_BY * ours;
    }
    print_types();
    puts(is_slower ? "the window is not write-back: it is slower than the guest's own memory"
                   : "the window is write-back, as the guest's own memory is");
    return is_slower;
}
