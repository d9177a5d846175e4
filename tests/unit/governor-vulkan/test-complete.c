// SPDX-License-Identifier: MIT
/*
 * Every way to memory and to GPU time in the headers goes through the layer, or is on a list here
 * with a reason. A command of newer headers is on no list.
 */
#include "mock_driver.h"
#include "registry.h"

#include <dlfcn.h>
#include <string.h>

#include "fake_member.h"

struct reason {
    const char *pattern;
    const char *why;
};

/* Commands that look like a way, and are none. */
static const struct reason not_a_way[] = {
    {"vkGet*Properties*", "tells, takes nothing"},
    {"vkGet*Requirements*", "tells, takes nothing"},
    {"vkGet*CounterEXT", "tells, takes nothing"},
    {"vkGetPhysicalDeviceQueueFamilyPerformanceQueryPassesKHR", "tells, takes nothing"},
    {"vkEnumeratePhysicalDeviceQueueFamily*", "tells, takes nothing"},
    {"vkGetQueueCheckpointData*NV", "tells, takes nothing"},
    {"vkGetSwapchainStatusKHR", "tells, takes nothing"},
    {"vkGetSwapchainImagesKHR", "its images were charged when it was created"},
    {"vkReleaseSwapchainImages*", "they stay the swapchain's, which goes on being charged"},
    {"vkGetDeviceQueue*", "all queues are known since the device was created"},
    {"vkQueue*DebugUtilsLabelEXT", "a name for what is seen in a debugger"},
    {"vkQueueSetPerformanceConfigurationINTEL", "a setting of counters, executes nothing"},
    {"vkQueueNotifyOutOfBandNV", "a hint for pacing, executes nothing"},
    {"vk*Latency*NV", "pacing on the host, executes nothing"},
    {"vkSubmitDebugUtilsMessageEXT", "to a callback on the host"},
    {"vkAllocateCommandBuffers", "the driver's own; what they execute is measured when submitted"},
    {"vkAllocateDescriptorSets", "from a pool that is the driver's own"},
    {"vkFreeCommandBuffers", "the driver's own"},
    {"vkFreeDescriptorSets", "the driver's own"},
    {"vkGetMemoryRemoteAddressNV", "an address of memory that was charged"},
    {"vkCopyMemoryToImage*", "by the host, as are all copies outside of command buffers"},
    {"vkCopyImageTo*", "by the host"},
    {"vkCopy*AccelerationStructure*", "a host command"},
    {"vkCopy*Micromap*", "a host command"},
    {"vkBuild*", "a host command"},
    {"vkTransitionImageLayout*", "by the host"},
    {"vkImportFenceFdKHR", "work does not wait for fences"},
    {"vkSignalSemaphore*", "what waits for it asks for its value"},
    {"vkCreateVideoSessionParametersKHR", "for a session"},
    {"vkGetPhysicalDeviceOpticalFlowImageFormatsNV", "tells, takes nothing"},
    {"vk*ExecutionGraphPipeline*AMDX",
     "provisional, not in the headers as they are; see README.md"},
    {"vkCreateCudaFunctionNV", "provisional, not in the headers as they are; see README.md"},
    {"vkAcquireNextImage*", "by the presentation engine, which is nobody's slice"},
};

/* By which objects come to be that are memory, or a place for work. */
static const char *const ways_out[] = {"VkDeviceMemory", "VkSwapchainKHR", "*Queue*", NULL};

/* And what work for an engine is recorded with. */
static const char *const engines_out[] = {
    "VkPipeline",     "VkShaderEXT",       "VkVideoSession*",      "Vk*FunctionNV*",
    "VkOpticalFlow*", "VkExecutionGraph*", "VkDataGraph*Session*", NULL};

/* By name, for commands without one of these types. */
static const char *const ways_by_name[] = {"vkQueue*",
                                           "vk*Queue*",
                                           "vkAllocate*",
                                           "vkFree*",
                                           "*Swapchain*",
                                           "*Sparse*",
                                           "vkGetMemory*",
                                           "vkImport*",
                                           "vk*SemaphoreFd*",
                                           "vkCopy*",
                                           "vkBuild*",
                                           "*Latency*",
                                           "vkSubmit*",
                                           "vkTransition*",
                                           "vk*Semaphores",
                                           "vkSignal*",
                                           "vkAcquireNext*",
                                           "vkCreateDevice",
                                           NULL};

static gboolean matches(const char *const *patterns, const char *name)
{
    for (; *patterns; patterns++) {
        if (g_pattern_match_simple(*patterns, name))
            return TRUE;
    }
    return FALSE;
}

/*
 * Commands in command buffers are part of the submission, including those generated on the device.
 */
static gboolean is_suspicious(const struct registry_command *command)
{
    if (g_str_has_prefix(command->name, "vkCmd"))
        return FALSE;
    if (g_strcmp0(command->first, "VkQueue") == 0 || matches(ways_by_name, command->name))
        return TRUE;
    for (guint i = 0; i < command->out->len; i++) {
        if (matches(ways_out, command->out->pdata[i]) ||
            matches(engines_out, command->out->pdata[i]))
            return TRUE;
    }
    return FALSE;
}

static const struct reason *reason_for(const struct reason *list, gsize count, const char *name)
{
    for (gsize i = 0; i < count; i++) {
        if (g_pattern_match_simple(list[i].pattern, name))
            return &list[i];
    }
    return NULL;
}

static gboolean is_of_layer(PFN_vkVoidFunction function)
{
    Dl_info info;

    return function && dladdr((void *)(gsize)function, &info) &&
           strstr(info.dli_fname, "libvgpu_governor.so") != NULL;
}

static gboolean is_for_device(const struct registry_command *command)
{
    static const char *const handles[] = {"VkDevice", "VkQueue", "VkCommandBuffer", NULL};

    return command->first && g_strv_contains(handles, command->first);
}

/* How many of the names that can be looked up, of those requested, belong to the layer. */
static void look_up(const struct mock_driver *mock, const struct registry_command *command,
                    const char *name, guint *ours, guint *all)
{
    *ours = is_of_layer(mock->get_instance(mock->instance, name));
    *all = 1;
    if (!is_for_device(command))
        return;
    *ours += is_of_layer(mock->get_device(mock->device, name));
    *all = 2;
}

static void test_commands(void)
{
    struct registry *registry = registry_read();
    struct mock_driver mock;
    GHashTableIter iter;
    void *name;
    guint suspects = 0, wrong = 0;

    mock_open(&mock);
    g_assert_cmpuint(g_hash_table_size(registry->commands), >, 500);
    g_hash_table_iter_init(&iter, registry->commands);
    while (g_hash_table_iter_next(&iter, &name, NULL)) {
        const struct registry_command *command = registry_resolve(registry, name);
        gboolean listed = reason_for(not_a_way, G_N_ELEMENTS(not_a_way), name) != NULL;
        guint ours, all;

        if (!command)
            continue;
        look_up(&mock, command, name, &ours, &all);
        suspects += is_suspicious(command);
        if ((ours && ours < all) || (is_suspicious(command) && !ours && !listed)) {
            g_test_message("%s: %u of %u look-ups lead to the layer, and it is %son the list",
                           (char *)name, ours, all, listed ? "" : "not ");
            wrong++;
        }
    }
    g_test_message("%u of %u commands may be ways", suspects,
                   g_hash_table_size(registry->commands));
    g_assert_cmpuint(suspects, >, 60);
    g_assert_cmpuint(wrong, ==, 0);
    mock_close(&mock);
    registry_free(registry);
}

/* What has one name in the layer has all of them there. */
static void test_aliases(void)
{
    struct registry *registry = registry_read();
    struct mock_driver mock;
    GHashTableIter iter;
    void *name;
    guint aliases = 0;

    mock_open(&mock);
    g_hash_table_iter_init(&iter, registry->commands);
    while (g_hash_table_iter_next(&iter, &name, NULL)) {
        const struct registry_command *command = registry_resolve(registry, name);

        if (!command || command->name == name)
            continue;
        if (is_of_layer(mock.get_instance(mock.instance, command->name)) !=
            is_of_layer(mock.get_instance(mock.instance, name)))
            g_error("%s is not the layer's as %s is", (char *)name, command->name);
        aliases += is_of_layer(mock.get_instance(mock.instance, name));
    }
    g_test_message("%u aliases are the layer's", aliases);
    g_assert_cmpuint(aliases, >=, 3);
    mock_close(&mock);
    registry_free(registry);
}

/* Every entry is of use: it is for something that exists and that the layer leaves alone. */
static void test_list(void)
{
    struct registry *registry = registry_read();
    struct mock_driver mock;
    guint useless = 0;

    mock_open(&mock);
    for (gsize i = 0; i < G_N_ELEMENTS(not_a_way); i++) {
        GHashTableIter iter;
        void *name;
        guint found = 0;

        g_hash_table_iter_init(&iter, registry->commands);
        while (g_hash_table_iter_next(&iter, &name, NULL)) {
            const struct registry_command *command = registry_resolve(registry, name);

            found += g_pattern_match_simple(not_a_way[i].pattern, name) && command &&
                     is_suspicious(command) && !is_of_layer(mock.get_instance(mock.instance, name));
        }
        if (!found)
            g_test_message("%s (%s) is for nothing", not_a_way[i].pattern, not_a_way[i].why);
        useless += !found;
    }
    g_assert_cmpuint(useless, ==, 0);
    mock_close(&mock);
    registry_free(registry);
}

/* What chains can carry where memory is allocated and work submitted. */
static const struct {
    const char *of;
    struct reason known[16];
} chains[] = {
    {"VkMemoryAllocateInfo",
     {{"VkMemoryDedicatedAllocateInfo", "says for what"},
      {"VkDedicatedAllocationMemoryAllocateInfoNV", "says for what"},
      {"VkMemoryAllocateFlagsInfo", "memory.c: its mask of devices"},
      {"VkImportMemoryFdInfoKHR", "memory.c: once for all who have it"},
      {"VkImportMemoryHostPointerInfoEXT", "memory.c: not the device's"},
      {"VkExportMemoryAllocateInfo*", "vkGetMemoryFdKHR tells when it is"},
      {"VkMemoryPriorityAllocateInfoEXT", "a hint"},
      {"VkMemoryOpaqueCaptureAddressAllocateInfo", "where, not how much"}}},
    {"VkSubmitInfo",
     {{"VkTimelineSemaphoreSubmitInfo", "submit.c: values"},
      {"VkDeviceGroupSubmitInfo", "submit.c: not wrapped"},
      {"VkProtectedSubmitInfo", "submit.c: not wrapped"},
      {"VkPerformanceQuerySubmitInfoKHR", "submit.c: not wrapped"},
      {"VkAmigoProfilingSubmitInfoSEC", "not split"},
      {"VkFrameBoundaryEXT", "not split"},
      {"VkLatencySubmissionPresentIdNV", "not split"}}},
    {"VkSubmitInfo2",
     {{"VkPerformanceQuerySubmitInfoKHR", "submit2.c: not wrapped"},
      {"VkFrameBoundaryEXT", "not split"},
      {"VkLatencySubmissionPresentIdNV", "not split"}}},
    {"VkBindSparseInfo",
     {{"VkTimelineSemaphoreSubmitInfo", "queue.c: values"},
      {"VkDeviceGroupBindSparseInfo", "timed by the host"},
      {"VkFrameBoundaryEXT", "a name"}}},
    {"VkDeviceQueueCreateInfo",
     {{"VkDeviceQueueGlobalPriority*", "the kernel's own order"},
      {"VkDeviceQueueShaderCoreControlCreateInfoARM", "how many cores"}}},
};

static void test_chains(void)
{
    struct registry *registry = registry_read();

    for (gsize i = 0; i < G_N_ELEMENTS(chains); i++) {
        GHashTableIter iter;
        void *value;
        guint known = 0, entries = 0;

        while (entries < G_N_ELEMENTS(chains[i].known) && chains[i].known[entries].pattern)
            entries++;
        g_hash_table_iter_init(&iter, registry->structs);
        while (g_hash_table_iter_next(&iter, NULL, &value)) {
            const struct registry_struct *of = value;

            if (!g_strv_contains((const char *const *)of->extends, chains[i].of))
                continue;
            if (!reason_for(chains[i].known, entries, of->name))
                g_error("%s may be in the chain of %s: what is it to the layer?", of->name,
                        chains[i].of);
            known++;
        }
        g_assert_cmpuint(known, >=, entries);
    }
    registry_free(registry);
}

static void submit_all_ways(const struct mock_driver *mock, VkQueue queue)
{
    VkCommandBuffer commands = (VkCommandBuffer)queue;
    VkSubmitInfo one = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                        .commandBufferCount = 1,
                        .pCommandBuffers = &commands};
    VkCommandBufferSubmitInfo two_commands = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_SUBMIT_INFO,
                                              .commandBuffer = commands};
    VkSubmitInfo2 two = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO_2,
                         .commandBufferInfoCount = 1,
                         .pCommandBufferInfos = &two_commands};
    VkBindSparseInfo bind = {.sType = VK_STRUCTURE_TYPE_BIND_SPARSE_INFO};
    VkPresentInfoKHR present = {.sType = VK_STRUCTURE_TYPE_PRESENT_INFO_KHR};

#define CALL(name) ((PFN_##name)mock->get_device(mock->device, #name))
    CALL(vkQueueSubmit)(queue, 1, &one, VK_NULL_HANDLE);
    CALL(vkQueueSubmit2)(queue, 1, &two, VK_NULL_HANDLE);
    CALL(vkQueueSubmit2KHR)(queue, 1, &two, VK_NULL_HANDLE);
    CALL(vkQueueBindSparse)(queue, 1, &bind, VK_NULL_HANDLE);
    CALL(vkQueuePresentKHR)(queue, &present);
    CALL(vkQueueWaitIdle)(queue);
#undef CALL
}

/*
 * Each queue of each family, by each way, is counted if the slice is free, and debited if it is
 * metered.
 */
static void test_queues(void)
{
    struct fake_member *member;
    struct mock_driver mock;

    mock_open(&mock);
    member = dlsym(mock.library, FAKE_MEMBER_SYMBOL);
    for (guint metered = 0; metered < 2; metered++) {
        member->metered = metered;
        for (guint i = 0; i <= MOCK_FAMILIES; i++) {
            uint64_t begun = member->begun, counted = member->counted;
            guint calls = mock_calls();

            submit_all_ways(&mock, mock_queue(i));
            g_assert_cmpuint(member->begun - begun, ==, metered ? 5 : 0);
            g_assert_cmpuint(member->counted - counted, ==, metered ? 0 : 5);
            g_assert_cmpuint(mock_calls() - calls, >=, 6);
        }
    }
    g_assert_cmpuint(member->ended, ==, member->begun);
    mock_close(&mock);
}

/* With an extension of ours it is asked twice, over another layer, and the program gets its error.
 */
static void test_refused(void)
{
    struct mock_driver mock;
    guint calls;

    mock_open(&mock);
    g_assert_cmpint(mock_refused(&mock, &calls), ==, VK_ERROR_FEATURE_NOT_PRESENT);
    g_assert_cmpuint(calls, ==, 2);
    mock_close(&mock);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/complete/commands", test_commands);
    g_test_add_func("/complete/aliases", test_aliases);
    g_test_add_func("/complete/list", test_list);
    g_test_add_func("/complete/chains", test_chains);
    g_test_add_func("/complete/queues", test_queues);
    g_test_add_func("/complete/refused", test_refused);
    return g_test_run();
}
