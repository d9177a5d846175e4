// SPDX-License-Identifier: MIT
/*
 * t-layer LAYER: a program with any C library. It loads the Vulkan layer as Vulkan's loader
 * does, makes an instance above a driver of its own that does nothing, and so becomes a member of
 * the slice that its environment names. Then it takes memory and time of the slice, and forks a
 * child that does the same. Ends with 0 if all of that works, and with 3 if there is no instance.
 */
#include "member.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vulkan/vk_layer.h>

#define MIB        (1ull << 20)
#define WORK_NS    1000000
#define WORKS      20
#define NO_MEMORY  4
#define NO_VULKAN  3
#define NO_LIBRARY 2

/* A dispatchable object: its first word is the loader's. */
static void *driver_object[] = {driver_object};

static VKAPI_ATTR VkResult VKAPI_CALL create_instance(const VkInstanceCreateInfo *info,
                                                      const VkAllocationCallbacks *allocator,
                                                      VkInstance *instance)
{
    (void)info;
    (void)allocator;
    *instance = (VkInstance)driver_object;
    return VK_SUCCESS;
}

static VKAPI_ATTR void VKAPI_CALL do_nothing(void)
{
}

static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL get_driver_proc(VkInstance instance,
                                                                const char *name)
{
    (void)instance;
    if (strcmp(name, "vkCreateInstance") == 0)
        return (PFN_vkVoidFunction)create_instance;
    return do_nothing;
}

static void fail(int status, const char *what)
{
    fprintf(stderr, "t-layer: %s\n", what);
    exit(status);
}

static void *find(void *library, const char *name)
{
    void *symbol = dlsym(library, name);

    if (!symbol)
        fail(NO_LIBRARY, dlerror());
    return symbol;
}

static VkInstance make_instance(PFN_vkGetInstanceProcAddr get)
{
    PFN_vkCreateInstance create = (PFN_vkCreateInstance)get(NULL, "vkCreateInstance");
    VkLayerInstanceLink below = {.pfnNextGetInstanceProcAddr = get_driver_proc};
    VkLayerInstanceCreateInfo chain = {
        .sType = VK_STRUCTURE_TYPE_LOADER_INSTANCE_CREATE_INFO,
        .function = VK_LAYER_LINK_INFO,
        .u.pLayerInfo = &below,
    };
    const VkInstanceCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
        .pNext = &chain,
    };
    VkInstance instance;

    if (create(&info, NULL, &instance) != VK_SUCCESS)
        fail(NO_VULKAN, "the layer makes no instance");
    return instance;
}

/* The member that the layer has made, or in a child renewed; by the library that it needs. */
static void use_slice(void *library)
{
    __typeof__(&governor_member_get) get = find(library, "governor_member_get");
    __typeof__(&governor_member_put) put = find(library, "governor_member_put");
    __typeof__(&governor_member_reserve) reserve = find(library, "governor_member_reserve");
    __typeof__(&governor_member_release) release = find(library, "governor_member_release");
    __typeof__(&governor_member_memory) memory = find(library, "governor_member_memory");
    __typeof__(&governor_member_submit_work) submit = find(library, "governor_member_submit_work");
    __typeof__(&governor_member_end) end = find(library, "governor_member_end");
    GovernorMember *member = get(getenv("VGPU_GOVERNOR_SOCKET"), true);
    const struct governor_work work = {.class = GOVERNOR_CLASS_COMPUTE, .estimate_ns = WORK_NS};
    uint64_t limit, used;

    if (!member)
        fail(NO_VULKAN, "it is not a member");
    memory(member, &limit, &used);
    if (limit == 0 || reserve(member, limit + MIB, false) != GOVERNOR_MEMORY_NONE)
        fail(NO_MEMORY, "the slice's memory has no limit");
    if (reserve(member, MIB, false) != GOVERNOR_MEMORY_DEVICE)
        fail(NO_MEMORY, "the slice gives no memory");
    for (int i = 0; i < WORKS; i++)
        end(member, submit(member, &work, NULL), WORK_NS);
    release(member, MIB, GOVERNOR_MEMORY_DEVICE);
    put(member);
}

int main(int argc, char **argv)
{
    VkNegotiateLayerInterface interface = {
        .sType = LAYER_NEGOTIATE_INTERFACE_STRUCT,
        .loaderLayerInterfaceVersion = 2,
    };
    PFN_vkNegotiateLoaderLayerInterfaceVersion negotiate;
    PFN_vkDestroyInstance destroy;
    VkInstance instance;
    void *library;
    pid_t child;
    int status;

    if (argc != 2)
        fail(NO_LIBRARY, "usage: t-layer LAYER");
    library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (!library)
        fail(NO_LIBRARY, dlerror());
    negotiate = (PFN_vkNegotiateLoaderLayerInterfaceVersion)find(
        library, "vkNegotiateLoaderLayerInterfaceVersion");
    if (negotiate(&interface) != VK_SUCCESS)
        fail(NO_VULKAN, "the layer does not know this loader");
    instance = make_instance(interface.pfnGetInstanceProcAddr);
    use_slice(library);
    child = fork();
    if (child == 0) {
        use_slice(library);
        _exit(0);
    }
    if (waitpid(child, &status, 0) != child || status != 0)
        fail(NO_VULKAN, "its child is not a member");
    destroy =
        (PFN_vkDestroyInstance)interface.pfnGetInstanceProcAddr(instance, "vkDestroyInstance");
    destroy(instance, NULL);
    puts("a member, and so is its child");
    return 0;
}
