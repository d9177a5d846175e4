/* SPDX-License-Identifier: MIT */
/*
 * Measures one Vulkan device, row by row; the same program on the host and in guests. It decides
 * nothing: every sample is printed, one line of JSON per row.
 *
 *   vk-bench [--device-name NAME] [--light N] [--repeat N] ROW…
 *
 * --light: iterations of the kernel that takes about 2 ms on the host, found once by `vk-bench
 * calibrate` there, so that all devices are given the same work. --repeat: times the row's usual
 * number of samples.
 */
#include "vk-device.h"

#include "fma.spv.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define GROUP 64u
#define HEAVY_ELEMENTS (1u << 18)
#define HEAVY_ITERATIONS 4096u
#define LIGHT_ELEMENTS (1u << 14)
#define TINY_ELEMENTS 256u
#define BLOCK_BYTES (64u << 20)
#define PAGE_BYTES 4096u
#define BURST 100u
#define SECOND 1e9

struct bench {
    struct job job;
    struct vk_device dev;
    struct vk_buffer data;
    VkDescriptorSetLayout set_layout;
    VkPipelineLayout layout;
    VkShaderModule shader;
    VkPipeline pipeline;
    VkDescriptorPool descriptors;
    VkDescriptorSet set;
    VkCommandPool commands;
    VkCommandBuffer cmd;
    VkFence fence;
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

static void print_begin(const struct row *row)
{
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
}

static void create_layout(struct bench *b)
{
    const struct vk_device *dev = &b->dev;
    VkDescriptorSetLayoutBinding binding = {
        .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
        .descriptorCount = 1,
        .stageFlags = VK_SHADER_STAGE_COMPUTE_BIT,
    };
    VkDescriptorSetLayoutCreateInfo set_info = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO,
        .bindingCount = 1,
        .pBindings = &binding,
    };
    VkPushConstantRange push = {
        .stageFlags = VK_SHADER_STAGE_COMPUTE_BIT,
        .size = sizeof(uint32_t),
    };

    vk_check(&b->job, vkCreateDescriptorSetLayout(dev->device, &set_info, NULL, &b->set_layout),
             "vkCreateDescriptorSetLayout");

    VkPipelineLayoutCreateInfo layout_info = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
        .setLayoutCount = 1,
        .pSetLayouts = &b->set_layout,
        .pushConstantRangeCount = 1,
        .pPushConstantRanges = &push,
    };

    vk_check(&b->job, vkCreatePipelineLayout(dev->device, &layout_info, NULL, &b->layout),
             "vkCreatePipelineLayout");
}

static void create_pipeline(struct bench *b)
{
    const struct vk_device *dev = &b->dev;
    VkShaderModuleCreateInfo shader = {
        .sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
        .codeSize = sizeof(fma_spirv),
        .pCode = fma_spirv,
    };

    vk_check(&b->job, vkCreateShaderModule(dev->device, &shader, NULL, &b->shader),
             "vkCreateShaderModule");

    VkComputePipelineCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
        .stage = {
            .sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
            .stage = VK_SHADER_STAGE_COMPUTE_BIT,
            .module = b->shader,
            .pName = "main",
        },
        .layout = b->layout,
    };

    vk_check(&b->job,
             vkCreateComputePipelines(dev->device, VK_NULL_HANDLE, 1, &info, NULL, &b->pipeline),
             "vkCreateComputePipelines");
}

static void create_pools(struct bench *b)
{
    const struct vk_device *dev = &b->dev;
    VkDescriptorPoolSize size = {
        .type = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
        .descriptorCount = 1,
    };
    VkDescriptorPoolCreateInfo descriptors = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO,
        .maxSets = 1,
        .poolSizeCount = 1,
        .pPoolSizes = &size,
    };
    VkCommandPoolCreateInfo commands = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
        .flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT,
        .queueFamilyIndex = dev->queue_family,
    };
    VkFenceCreateInfo fence = { .sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO };

    vk_check(&b->job, vkCreateDescriptorPool(dev->device, &descriptors, NULL, &b->descriptors),
             "vkCreateDescriptorPool");
    vk_check(&b->job, vkCreateCommandPool(dev->device, &commands, NULL, &b->commands),
             "vkCreateCommandPool");
    vk_check(&b->job, vkCreateFence(dev->device, &fence, NULL, &b->fence), "vkCreateFence");

    VkCommandBufferAllocateInfo alloc = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
        .commandPool = b->commands,
        .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
        .commandBufferCount = 1,
    };

    vk_check(&b->job, vkAllocateCommandBuffers(dev->device, &alloc, &b->cmd),
             "vkAllocateCommandBuffers");
}

static void create_set(struct bench *b)
{
    const struct vk_device *dev = &b->dev;
    VkDescriptorBufferInfo buffer = { .range = VK_WHOLE_SIZE };
    VkDescriptorSetAllocateInfo alloc = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO,
        .descriptorPool = b->descriptors,
        .descriptorSetCount = 1,
        .pSetLayouts = &b->set_layout,
    };

    vk_buffer_create(dev, HEAVY_ELEMENTS * sizeof(float), VK_PLACE_DEVICE, &b->data);
    buffer.buffer = b->data.buffer;
    vk_check(&b->job, vkAllocateDescriptorSets(dev->device, &alloc, &b->set),
             "vkAllocateDescriptorSets");

    VkWriteDescriptorSet write = {
        .sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
        .dstSet = b->set,
        .descriptorCount = 1,
        .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
        .pBufferInfo = &buffer,
    };

    vkUpdateDescriptorSets(dev->device, 1, &write, 0, NULL);
}

static void bench_open(struct bench *b)
{
    vk_device_open(&b->dev, &b->job);
    create_layout(b);
    create_pipeline(b);
    create_pools(b);
    create_set(b);
}

static void bench_close(struct bench *b)
{
    VkDevice device = b->dev.device;

    vk_buffer_destroy(&b->dev, &b->data);
    vkDestroyFence(device, b->fence, NULL);
    vkDestroyCommandPool(device, b->commands, NULL);
    vkDestroyDescriptorPool(device, b->descriptors, NULL);
    vkDestroyPipeline(device, b->pipeline, NULL);
    vkDestroyShaderModule(device, b->shader, NULL);
    vkDestroyPipelineLayout(device, b->layout, NULL);
    vkDestroyDescriptorSetLayout(device, b->set_layout, NULL);
    vk_device_close(&b->dev);
}

static void begin(struct bench *b)
{
    VkCommandBufferBeginInfo info = { .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
                                      .flags = VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT };

    vk_check(&b->job, vkBeginCommandBuffer(b->cmd, &info), "vkBeginCommandBuffer");
}

static void record_kernel(struct bench *b, uint32_t elements, uint32_t iterations)
{
    begin(b);
    vkCmdPushConstants(b->cmd, b->layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof(iterations),
                       &iterations);
    vkCmdBindPipeline(b->cmd, VK_PIPELINE_BIND_POINT_COMPUTE, b->pipeline);
    vkCmdBindDescriptorSets(b->cmd, VK_PIPELINE_BIND_POINT_COMPUTE, b->layout, 0, 1, &b->set, 0,
                            NULL);
    vkCmdDispatch(b->cmd, elements / GROUP, 1, 1);
    vk_check(&b->job, vkEndCommandBuffer(b->cmd), "vkEndCommandBuffer");
}

static void submit(struct bench *b, VkFence fence)
{
    VkSubmitInfo info = {
        .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
        .commandBufferCount = 1,
        .pCommandBuffers = &b->cmd,
    };

    vk_check(&b->job, vkQueueSubmit(b->dev.queue, 1, &info, fence), "vkQueueSubmit");
}

static void wait_fence(struct bench *b)
{
    vk_check(&b->job,
             vkWaitForFences(b->dev.device, 1, &b->fence, VK_TRUE,
                             (uint64_t)b->job.timeout * UINT64_C(1000000000)),
             "vkWaitForFences");
    vk_check(&b->job, vkResetFences(b->dev.device, 1, &b->fence), "vkResetFences");
}

/* Nanoseconds from submit to the end of what is recorded. */
static double time_submit(struct bench *b)
{
    double start = now_ns();

    submit(b, b->fence);
    wait_fence(b);
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
            submit(b, VK_NULL_HANDLE);
        submit(b, b->fence);
        wait_fence(b);
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
    VkBufferCopy all = { .size = BLOCK_BYTES };

    begin(b);
    vkCmdCopyBuffer(b->cmd, from, to, 1, &all);
    vk_check(&b->job, vkEndCommandBuffer(b->cmd), "vkEndCommandBuffer");
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
        submit(b, b->fence);
        wait_fence(b);
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

static const struct row rows[] = {
    { "calibrate", "iterations", run_calibrate, 1 },
    { "open", "us", run_open, 1 },
    { "heavy", "GFLOP/s", run_heavy, 3 },
    { "dispatch-2ms", "ms", run_light, 30 },
    { "tiny", "us", run_tiny, 500 },
    { "burst", "us", run_burst, 10 },
    { "first-touch", "ms", run_first_touch, 2 },
    { "upload", "MiB/s", run_upload, 3 },
    { "download", "MiB/s", run_download, 3 },
    { "context", "ms", run_context, 2 },
};

static const struct row *find_row(const struct job *job, const char *name)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (strcmp(rows[i].name, name) == 0)
            return &rows[i];
    job_fail(job, "no row is called %s", name);
}

static uint32_t number(const struct job *job, const char *text)
{
    char *end;
    unsigned long value = strtoul(text, &end, 10);

    if (*end || !value || value > UINT32_MAX)
        job_fail(job, "%s is not a number above 0", text);
    return (uint32_t)value;
}

static void parse(struct bench *b, int argc, char **argv)
{
    static const struct option options[] = {
        { "device-name", required_argument, NULL, 'd' },
        { "light", required_argument, NULL, 'l' },
        { "repeat", required_argument, NULL, 'r' },
        { 0 },
    };
    int c;

    while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
        switch (c) {
        case 'd':
            b->job.device_name = optarg;
            break;
        case 'l':
            b->light_iterations = number(&b->job, optarg);
            break;
        case 'r':
            b->repeat = number(&b->job, optarg);
            break;
        default:
            exit(2);
        }
    }
}

int main(int argc, char **argv)
{
    struct bench b = {
        .job = { .program = "vk-bench", .timeout = 60 },
        .light_iterations = 4096,
        .repeat = 1,
    };

    parse(&b, argc, argv);
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
