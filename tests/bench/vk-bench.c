/* SPDX-License-Identifier: MIT */
/*
 * Measures one Vulkan device, row by row; the same program on the host and in guests. It decides
 * nothing: every sample is printed, one line of JSON per row.
 *
 *   vk-bench [--device-name NAME] [--light N] [--repeat N] [--step] ROW…
 *
 * --light: iterations of the kernel that takes about 2 ms on the host, found once by `vk-bench
 * calibrate` there, so that all devices are given the same work. --repeat: times the row's usual
 * number of samples. --step: says "begin" before the samples of a row and "end" after them, and
 * waits for a line each time, so that the samples' system calls can be counted from outside.
 */
#include "vk-dispatch.h"

#include "fma.spv.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define GROUP            64u
#define HEAVY_ELEMENTS   (1u << 18)
#define HEAVY_ITERATIONS 4096u
#define LIGHT_ELEMENTS   (1u << 14)
#define TINY_ELEMENTS    256u
#define BLOCK_BYTES      (64u << 20)
#define PAGE_BYTES       4096u
#define BURST            100u
#define HOARD_BLOCK      (16u << 20)
#define HOARD_BLOCKS     64u
#define PAUSE_US         50000u /* rings sleep after 20 ms at the latest */
#define SECOND           1e9

static bool stepping;

struct bench {
    struct job job;
    struct vk_device dev;
    struct vk_buffer data;
    struct vk_dispatch dispatch;
    struct vk_kernel fma;
    uint32_t light_iterations;
    uint32_t repeat;
};

/* Prints samples as they come. */
struct row {
    const char *name;
    const char *unit;
    void (*run)(struct bench *b, const struct row *row);
    uint32_t samples;
};

static double now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * SECOND + (double)t.tv_nsec;
}

static void note_step(const char *at)
{
    if (!stepping)
        return;
    printf("%s\n", at);
    fflush(stdout);
    while (getchar() != '\n' && !feof(stdin))
        ;
}

static void print_begin(const struct row *row)
{
    note_step("begin");
    printf("{\"row\":\"%s\",\"unit\":\"%s\",\"samples\":[", row->name, row->unit);
}

static void print_sample(uint32_t i, double value)
{
    printf("%s%.6g", i ? "," : "", value);
}

static void print_end(void)
{
    printf("]}\n");
    fflush(stdout);
    note_step("end");
}

static void open_device(struct bench *b)
{
    vk_device_open(&b->dev, &b->job);
    vk_dispatch_create(&b->dev, 1, 1, sizeof(uint32_t), &b->dispatch);
    vk_buffer_create(&b->dev, HEAVY_ELEMENTS * sizeof(float), VK_PLACE_DEVICE, &b->data);
}

static void make_kernel(struct bench *b)
{
    const struct vk_buffer *buffers[] = {&b->data};

    vk_kernel_create(&b->dev, &b->dispatch, fma_spirv, sizeof(fma_spirv), buffers, &b->fma);
}

static void bench_open(struct bench *b)
{
    open_device(b);
    make_kernel(b);
}

static void bench_close(struct bench *b)
{
    vk_kernel_destroy(&b->dev, &b->fma);
    vk_buffer_destroy(&b->dev, &b->data);
    vk_dispatch_destroy(&b->dev, &b->dispatch);
    vk_device_close(&b->dev);
}

static void begin_commands(struct bench *b)
{
    VkCommandBufferBeginInfo info = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
                                     .flags = VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT};

    vk_check(&b->job, vkBeginCommandBuffer(b->dispatch.cmd, &info), "vkBeginCommandBuffer");
}

static void record_kernel(struct bench *b, uint32_t elements, uint32_t iterations)
{
    begin_commands(b);
    vkCmdPushConstants(b->dispatch.cmd, b->dispatch.layout, VK_SHADER_STAGE_COMPUTE_BIT, 0,
                       sizeof(iterations), &iterations);
    vkCmdBindPipeline(b->dispatch.cmd, VK_PIPELINE_BIND_POINT_COMPUTE, b->fma.pipeline);
    vkCmdBindDescriptorSets(b->dispatch.cmd, VK_PIPELINE_BIND_POINT_COMPUTE, b->dispatch.layout, 0,
                            1, &b->fma.set, 0, NULL);
    vkCmdDispatch(b->dispatch.cmd, elements / GROUP, 1, 1);
    vk_check(&b->job, vkEndCommandBuffer(b->dispatch.cmd), "vkEndCommandBuffer");
}

static void submit_commands(struct bench *b, VkFence fence)
{
    VkSubmitInfo info = {
        .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
        .commandBufferCount = 1,
        .pCommandBuffers = &b->dispatch.cmd,
    };

    vk_check(&b->job, vkQueueSubmit(b->dev.queue, 1, &info, fence), "vkQueueSubmit");
}

/* Nanoseconds from submit to the end of what is recorded. */
static double time_submit(struct bench *b)
{
    double start = now_ns();

    submit_commands(b, b->dispatch.fence);
    vk_dispatch_wait(&b->dev, &b->dispatch);
    return now_ns() - start;
}

static void run_heavy(struct bench *b, const struct row *row)
{
    double flop = 2.0 * HEAVY_ELEMENTS * HEAVY_ITERATIONS;

    record_kernel(b, HEAVY_ELEMENTS, HEAVY_ITERATIONS);
    time_submit(b);
    print_begin(row);
    for (uint32_t i = 0; i < row->samples * b->repeat; i++)
        print_sample(i, flop / time_submit(b));
    print_end();
}

static void run_light(struct bench *b, const struct row *row)
{
    record_kernel(b, LIGHT_ELEMENTS, b->light_iterations);
    time_submit(b);
    print_begin(row);
    for (uint32_t i = 0; i < row->samples * b->repeat; i++)
        print_sample(i, time_submit(b) / 1e6);
    print_end();
}

/* Iterations for about 2 ms: the fastest of some runs, as others may disturb. */
static void run_calibrate(struct bench *b, const struct row *row)
{
    uint32_t iterations = 4096;
    double best = 1e18;

    record_kernel(b, LIGHT_ELEMENTS, iterations);
    time_submit(b);
    for (int i = 0; i < 20; i++) {
        double took = time_submit(b);

        if (took < best)
            best = took;
    }
    print_begin(row);
    print_sample(0, (double)iterations * 2e6 / best);
    print_end();
}

static void run_tiny(struct bench *b, const struct row *row)
{
    record_kernel(b, TINY_ELEMENTS, 1);
    time_submit(b);
    print_begin(row);
    for (uint32_t i = 0; i < row->samples * b->repeat; i++)
        print_sample(i, time_submit(b) / 1e3);
    print_end();
}

/* The same after a pause, in which everybody has fallen asleep. */
static void run_wake(struct bench *b, const struct row *row)
{
    record_kernel(b, TINY_ELEMENTS, 1);
    time_submit(b);
    print_begin(row);
    for (uint32_t i = 0; i < row->samples * b->repeat; i++) {
        usleep(PAUSE_US);
        print_sample(i, time_submit(b) / 1e3);
    }
    print_end();
}

/* Next to nothing: what a program costs that opens the device and closes it. */
static void run_open(struct bench *b, const struct row *row)
{
    record_kernel(b, TINY_ELEMENTS, 1);
    print_begin(row);
    print_sample(0, time_submit(b) / 1e3);
    print_end();
}

static void run_burst(struct bench *b, const struct row *row)
{
    record_kernel(b, TINY_ELEMENTS, 1);
    time_submit(b);
    print_begin(row);
    for (uint32_t i = 0; i < row->samples * b->repeat; i++) {
        double start = now_ns();

        for (uint32_t n = 1; n < BURST; n++)
            submit_commands(b, VK_NULL_HANDLE);
        submit_commands(b, b->dispatch.fence);
        vk_dispatch_wait(&b->dev, &b->dispatch);
        print_sample(i, (now_ns() - start) / BURST / 1e3);
    }
    print_end();
}

/* One word per page of memory that was mapped this moment; allocation is not counted. */
static void run_first_touch(struct bench *b, const struct row *row)
{
    print_begin(row);
    for (uint32_t i = 0; i < row->samples * b->repeat; i++) {
        struct vk_buffer buffer;
        volatile uint32_t *word;
        double start;

        vk_buffer_create(&b->dev, BLOCK_BYTES, VK_PLACE_HOST, &buffer);
        word = buffer.map;
        start = now_ns();
        for (size_t page = 0; page < BLOCK_BYTES / PAGE_BYTES; page++)
            word[page * (PAGE_BYTES / sizeof(*word))] = (uint32_t)page;
        print_sample(i, (now_ns() - start) / 1e6);
        vk_buffer_destroy(&b->dev, &buffer);
    }
    print_end();
}

static void record_copy(struct bench *b, VkBuffer from, VkBuffer to)
{
    VkBufferCopy all = {.size = BLOCK_BYTES};

    begin_commands(b);
    vkCmdCopyBuffer(b->dispatch.cmd, from, to, 1, &all);
    vk_check(&b->job, vkEndCommandBuffer(b->dispatch.cmd), "vkEndCommandBuffer");
}

/* 64 MiB between the program's own memory and the device's, through a mapped buffer. */
static void run_copy(struct bench *b, const struct row *row, bool up)
{
    struct vk_buffer staging, device;
    void *own = malloc(BLOCK_BYTES);

    if (!own)
        job_fail(&b->job, "no memory for %u bytes", BLOCK_BYTES);
    vk_buffer_create(&b->dev, BLOCK_BYTES, VK_PLACE_HOST, &staging);
    vk_buffer_create(&b->dev, BLOCK_BYTES, VK_PLACE_DEVICE, &device);
    memset(own, 1, BLOCK_BYTES);
    memset(staging.map, 2, BLOCK_BYTES);
    record_copy(b, up ? staging.buffer : device.buffer, up ? device.buffer : staging.buffer);
    time_submit(b);
    print_begin(row);
    for (uint32_t i = 0; i < row->samples * b->repeat; i++) {
        double start = now_ns();

        if (up)
            memcpy(staging.map, own, BLOCK_BYTES);
        submit_commands(b, b->dispatch.fence);
        vk_dispatch_wait(&b->dev, &b->dispatch);
        if (!up)
            memcpy(own, staging.map, BLOCK_BYTES);
        print_sample(i, (double)BLOCK_BYTES / (1 << 20) / ((now_ns() - start) / SECOND));
    }
    print_end();
    vk_buffer_destroy(&b->dev, &staging);
    vk_buffer_destroy(&b->dev, &device);
    free(own);
}

static void run_upload(struct bench *b, const struct row *row)
{
    run_copy(b, row, true);
}

static void run_download(struct bench *b, const struct row *row)
{
    run_copy(b, row, false);
}

static void run_context(struct bench *b, const struct row *row)
{
    struct vk_device other;

    print_begin(row);
    for (uint32_t i = 0; i < row->samples * b->repeat; i++) {
        double start = now_ns();

        vk_device_open(&other, &b->job);
        print_sample(i, (now_ns() - start) / 1e6);
        vk_device_close(&other);
    }
    print_end();
}

/* A pipeline is made and used for the first time, each on a device of its own; drivers compile at
 * either. */
static void run_compile(struct bench *b, const struct row *row)
{
    print_begin(row);
    for (uint32_t i = 0; i < row->samples * b->repeat; i++) {
        struct bench other = *b;
        double start;

        open_device(&other);
        start = now_ns();
        make_kernel(&other);
        record_kernel(&other, TINY_ELEMENTS, 1);
        time_submit(&other);
        print_sample(i, (now_ns() - start) / 1e6);
        bench_close(&other);
    }
    print_end();
}

static uint32_t device_local_type(const struct bench *b)
{
    for (uint32_t i = 0; i < b->dev.memory.memoryTypeCount; i++)
        if (b->dev.memory.memoryTypes[i].propertyFlags & VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT)
            return i;
    job_fail(&b->job, "%s has no memory of its own", b->dev.name);
}

/* MiB of the device's memory that a program is given, in blocks, before it is refused: what a limit
 * lets it have. */
static void run_memory(struct bench *b, const struct row *row)
{
    VkMemoryAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                 .allocationSize = HOARD_BLOCK,
                                 .memoryTypeIndex = device_local_type(b)};
    VkDeviceMemory blocks[HOARD_BLOCKS];
    uint32_t count = 0;

    while (count < HOARD_BLOCKS &&
           vkAllocateMemory(b->dev.device, &info, NULL, &blocks[count]) == VK_SUCCESS)
        count++;
    print_begin(row);
    print_sample(0, (double)count * (HOARD_BLOCK >> 20));
    print_end();
    while (count)
        vkFreeMemory(b->dev.device, blocks[--count], NULL);
}

static const struct row rows[] = {
    {"calibrate", "iterations", run_calibrate, 1},
    {"open", "us", run_open, 1},
    {"heavy", "GFLOP/s", run_heavy, 3},
    {"dispatch-2ms", "ms", run_light, 30},
    {"tiny", "us", run_tiny, 500},
    {"wake", "us", run_wake, 40},
    {"burst", "us", run_burst, 10},
    {"first-touch", "ms", run_first_touch, 2},
    {"upload", "MiB/s", run_upload, 3},
    {"download", "MiB/s", run_download, 3},
    {"context", "ms", run_context, 2},
    {"compile", "ms", run_compile, 5},
    {"memory", "MiB", run_memory, 1},
};

static const struct row *find_row(const struct job *job, const char *name)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (strcmp(rows[i].name, name) == 0)
            return &rows[i];
    job_fail(job, "no row is called %s", name);
}

static uint32_t read_number(const struct job *job, const char *text)
{
    char *end;
    unsigned long value = strtoul(text, &end, 10);

    if (*end || !value || value > UINT32_MAX)
        job_fail(job, "%s is not a number above 0", text);
    return (uint32_t)value;
}

static void parse_options(struct bench *b, int argc, char **argv)
{
    static const struct option options[] = {
        {"device-name", required_argument, NULL, 'd'},
        {"light", required_argument, NULL, 'l'},
        {"repeat", required_argument, NULL, 'r'},
        {"step", no_argument, NULL, 's'},
        {0},
    };
    int c;

    while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
        switch (c) {
        case 'd':
            b->job.device_name = optarg;
            break;
        case 'l':
            b->light_iterations = read_number(&b->job, optarg);
            break;
        case 'r':
            b->repeat = read_number(&b->job, optarg);
            break;
        case 's':
            stepping = true;
            break;
        default:
            exit(2);
        }
    }
}

int main(int argc, char **argv)
{
    struct bench b = {
        .job = {.program = "vk-bench", .timeout = 60},
        .light_iterations = 4096,
        .repeat = 1,
    };

    parse_options(&b, argc, argv);
    for (int i = optind; i < argc; i++)
        find_row(&b.job, argv[i]);
    bench_open(&b);
    for (int i = optind; i < argc; i++) {
        const struct row *row = find_row(&b.job, argv[i]);

        row->run(&b, row);
    }
    bench_close(&b);
    return 0;
}
