/* SPDX-License-Identifier: MIT */
/*
 * Threads that each make a pipeline and end, as a program does that compiles its shaders in
 * parallel: Mesa's Venus makes a ring for each, and destroys it with the thread. A round is two of
 * them after each other.
 */
#include <pthread.h>

#include "constants.h"
#include "vk-device.h"

#include "madd.spv.h"

#define THREADS 2

struct threads {
    struct vk_device dev;
    VkShaderModule shader;
    VkDescriptorSetLayout set_layout;
    VkPipelineLayout layout;
};

static void make_layout(struct threads *t)
{
    const VkDescriptorSetLayoutBinding bindings[] = {
        {0, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1, VK_SHADER_STAGE_COMPUTE_BIT, NULL},
        {1, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1, VK_SHADER_STAGE_COMPUTE_BIT, NULL},
    };
    const VkDescriptorSetLayoutCreateInfo set_info = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO,
        .bindingCount = 2,
        .pBindings = bindings,
    };
    const VkPushConstantRange push = {
        .stageFlags = VK_SHADER_STAGE_COMPUTE_BIT,
        .size = sizeof(struct job_params),
    };
    const VkPipelineLayoutCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
        .setLayoutCount = 1,
        .pSetLayouts = &t->set_layout,
        .pushConstantRangeCount = 1,
        .pPushConstantRanges = &push,
    };

    vk_check(t->dev.job,
             vkCreateDescriptorSetLayout(t->dev.device, &set_info, NULL, &t->set_layout),
             "vkCreateDescriptorSetLayout");
    vk_check(t->dev.job, vkCreatePipelineLayout(t->dev.device, &info, NULL, &t->layout),
             "vkCreatePipelineLayout");
}

static void *make_pipeline(void *data)
{
    const struct threads *t = data;
    const VkComputePipelineCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
        .stage =
            {
                .sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                .module = t->shader,
                .pName = "main",
            },
        .layout = t->layout,
    };
    VkPipeline pipeline;

    vk_check(t->dev.job,
             vkCreateComputePipelines(t->dev.device, VK_NULL_HANDLE, 1, &info, NULL, &pipeline),
             "vkCreateComputePipelines");
    vkDestroyPipeline(t->dev.device, pipeline, NULL);
    return NULL;
}

static void run_threads(struct threads *t)
{
    for (int i = 0; i < THREADS; i++) {
        pthread_t thread;

        if (pthread_create(&thread, NULL, make_pipeline, t) || pthread_join(thread, NULL))
            job_fail(t->dev.job, "no thread");
    }
}

int main(int argc, char **argv)
{
    const VkShaderModuleCreateInfo shader = {
        .sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
        .codeSize = sizeof(madd_spirv),
        .pCode = madd_spirv,
    };
    struct threads t;
    struct job job;

    job_parse(&job, argc, argv);
    job_start_clock(&job);
    vk_device_open(&t.dev, &job);
    make_layout(&t);
    vk_check(&job, vkCreateShaderModule(t.dev.device, &shader, NULL, &t.shader),
             "vkCreateShaderModule");
    for (uint64_t round = 0; job_continues(&job, round); round++) {
        job_start_clock(&job);
        run_threads(&t);
    }
    vkDestroyShaderModule(t.dev.device, t.shader, NULL);
    vkDestroyPipelineLayout(t.dev.device, t.layout, NULL);
    vkDestroyDescriptorSetLayout(t.dev.device, t.set_layout, NULL);
    vk_device_close(&t.dev);
    job_report_end(&job, t.dev.name);
    return 0;
}
