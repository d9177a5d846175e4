// SPDX-License-Identifier: MIT
/*
 * VK_LAYER_VGPU_guarded: containers with a guarded slice have it by a mount. Mesa's Venus is told
 * of the guard's socket by two variables, which CDI gives to the container's first program, but not
 * to those of "docker exec" and of health checks. This layer sets them before a driver makes an
 * instance, and does nothing else.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../handle_map.h"
#include "../loader.h"

#ifndef VTEST_DIR
#define VTEST_DIR "/run/vgpu/vtest"
#endif
#define SUFFIX ".sock"

/* "VTEST_SOCKET_NAME=PATH" of the slice whose name comes first; NULL: there is none. To be freed.
 */
static char *find_socket(void)
{
    char first[sizeof(((struct dirent *)NULL)->d_name)] = "";
    DIR *dir = opendir(VTEST_DIR);
    char *variable = NULL;

    if (!dir)
        return NULL;
    for (struct dirent *entry = readdir(dir); entry; entry = readdir(dir)) {
        size_t length = strlen(entry->d_name);

        if (length > strlen(SUFFIX) && !strcmp(entry->d_name + length - strlen(SUFFIX), SUFFIX) &&
            (!*first || strcmp(entry->d_name, first) < 0))
            strcpy(first, entry->d_name);
    }
    closedir(dir);
    if (*first && asprintf(&variable, "VTEST_SOCKET_NAME=" VTEST_DIR "/%s", first) < 0)
        variable = NULL;
    return variable;
}

/*
 * Not by setenv(): another thread may be in getenv(), and older C libraries free the list under it.
 * The list that was there stays as it is; @variables stay, too.
 */
static void extend_environment(char *const *variables, size_t more)
{
    size_t count = 0;
    char **list;

    while (environ && environ[count])
        count++;
    list = calloc(count + more + 1, sizeof(*list));
    if (!list)
        return;
    if (count)
        memcpy(list, environ, count * sizeof(*list));
    memcpy(list + count, variables, more * sizeof(*list));
    environ = list;
}

/* What is set was chosen by the user: an empty VN_DEBUG is for a native slice beside this one. */
static void find_slice(void)
{
    /* Both are allocated, because the layer may be unloaded. */
    char *socket = getenv("VTEST_SOCKET_NAME") ? NULL : find_socket();
    char *mode = getenv("VN_DEBUG") ? NULL : strdup("VN_DEBUG=vtest");

    if (socket)
        extend_environment(&socket, 1);
    if (mode && getenv("VTEST_SOCKET_NAME"))
        extend_environment(&mode, 1);
    else
        free(mode);
}

/* The next layer's way to its functions, for each instance: by the loader's pointer in its handle.
 */
static struct handle_map instances = {.lock = PTHREAD_MUTEX_INITIALIZER};

static uint64_t key_of(VkInstance instance)
{
    return (uintptr_t)*(void **)instance;
}

static VKAPI_ATTR VkResult VKAPI_CALL create_instance(const VkInstanceCreateInfo *info,
                                                      const VkAllocationCallbacks *allocator,
                                                      VkInstance *instance)
{
    VkLayerInstanceCreateInfo *link = loader_link(info);
    PFN_vkGetInstanceProcAddr get;
    PFN_vkCreateInstance create;
    VkResult result;

    if (!link)
        return VK_ERROR_INITIALIZATION_FAILED;
    get = link->u.pLayerInfo->pfnNextGetInstanceProcAddr;
    create = (PFN_vkCreateInstance)get(NULL, "vkCreateInstance");
    link->u.pLayerInfo = link->u.pLayerInfo->pNext;
    result = create ? create(info, allocator, instance) : VK_ERROR_INITIALIZATION_FAILED;
    if (result != VK_SUCCESS ||
        handle_map_add(&instances, key_of(*instance), (void *)(uintptr_t)get))
        return result;
    ((PFN_vkDestroyInstance)get(*instance, "vkDestroyInstance"))(*instance, allocator);
    return VK_ERROR_OUT_OF_HOST_MEMORY;
}

static VKAPI_ATTR void VKAPI_CALL destroy_instance(VkInstance instance,
                                                   const VkAllocationCallbacks *allocator)
{
    PFN_vkGetInstanceProcAddr get;

    if (!instance)
        return;
    get = (PFN_vkGetInstanceProcAddr)(uintptr_t)handle_map_remove(&instances, key_of(instance));
    if (get)
        ((PFN_vkDestroyInstance)get(instance, "vkDestroyInstance"))(instance, allocator);
}

static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL get_instance_proc_addr(VkInstance instance,
                                                                       const char *name)
{
    PFN_vkGetInstanceProcAddr next;

    if (!strcmp(name, "vkGetInstanceProcAddr"))
        return (PFN_vkVoidFunction)get_instance_proc_addr;
    if (!strcmp(name, "vkCreateInstance"))
        return (PFN_vkVoidFunction)create_instance;
    if (!strcmp(name, "vkDestroyInstance"))
        return (PFN_vkVoidFunction)destroy_instance;
    if (!instance)
        return NULL;
    next = (PFN_vkGetInstanceProcAddr)(uintptr_t)handle_map_find(&instances, key_of(instance));
    return next ? next(instance, name) : NULL;
}

__attribute__((visibility("default"))) VKAPI_ATTR VkResult VKAPI_CALL
vkNegotiateLoaderLayerInterfaceVersion(VkNegotiateLayerInterface *interface)
{
    if (interface->sType != LAYER_NEGOTIATE_INTERFACE_STRUCT ||
        interface->loaderLayerInterfaceVersion < INTERFACE_VERSION)
        return VK_ERROR_INITIALIZATION_FAILED;
    interface->loaderLayerInterfaceVersion = INTERFACE_VERSION;
    interface->pfnGetInstanceProcAddr = get_instance_proc_addr;
    interface->pfnGetDeviceProcAddr = NULL;
    interface->pfnGetPhysicalDeviceProcAddr = NULL;
    find_slice();
    return VK_SUCCESS;
}
