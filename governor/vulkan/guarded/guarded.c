// SPDX-License-Identifier: MIT
/*
 * VK_LAYER_VGPU_guarded: containers with a guarded slice have it by a mount. Mesa's Venus is told
 * of the guard's socket by two variables, which CDI gives to the container's first program, but not
 * to those of "docker exec" and of health checks. This layer sets them before a driver makes an
 * instance, and does nothing else.
 */
#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <vulkan/vk_layer.h>
#include <vulkan/vulkan.h>

#ifndef VTEST_DIR
#define VTEST_DIR "/run/vgpu/vtest"
#endif
#define SUFFIX ".sock"

/* From this version on the loader gets the layer's function pointers. */
#define INTERFACE_VERSION 2

VKAPI_ATTR VkResult VKAPI_CALL
vkNegotiateLoaderLayerInterfaceVersion(VkNegotiateLayerInterface *interface);

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
struct known {
    void *key;
    PFN_vkGetInstanceProcAddr get;
    struct known *next;
};

static struct known *known;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *key_of(VkInstance instance)
{
    return *(void **)instance;
}

static struct known **find(void *key)
{
    struct known **at = &known;

    while (*at && (*at)->key != key)
        at = &(*at)->next;
    return at;
}

static PFN_vkGetInstanceProcAddr next_of(VkInstance instance)
{
    PFN_vkGetInstanceProcAddr get;
    struct known *found;

    pthread_mutex_lock(&lock);
    found = *find(key_of(instance));
    get = found ? found->get : NULL;
    pthread_mutex_unlock(&lock);
    return get;
}

static VkLayerInstanceCreateInfo *find_link(const VkInstanceCreateInfo *info)
{
    for (const VkBaseInStructure *in = info->pNext; in; in = in->pNext) {
        /* The loader's structure, which each layer is expected to change. */
        VkLayerInstanceCreateInfo *found = (VkLayerInstanceCreateInfo *)in;

        if (in->sType == VK_STRUCTURE_TYPE_LOADER_INSTANCE_CREATE_INFO &&
            found->function == VK_LAYER_LINK_INFO)
            return found;
    }
    return NULL;
}

static VKAPI_ATTR VkResult VKAPI_CALL create_instance(const VkInstanceCreateInfo *info,
                                                      const VkAllocationCallbacks *allocator,
                                                      VkInstance *instance)
{
    VkLayerInstanceCreateInfo *link = find_link(info);
    struct known *made = calloc(1, sizeof(*made));
    PFN_vkCreateInstance create;
    VkResult result;

    if (!link || !made) {
        free(made);
        return link ? VK_ERROR_OUT_OF_HOST_MEMORY : VK_ERROR_INITIALIZATION_FAILED;
    }
    made->get = link->u.pLayerInfo->pfnNextGetInstanceProcAddr;
    create = (PFN_vkCreateInstance)made->get(NULL, "vkCreateInstance");
    link->u.pLayerInfo = link->u.pLayerInfo->pNext;
    result = create ? create(info, allocator, instance) : VK_ERROR_INITIALIZATION_FAILED;
    if (result != VK_SUCCESS) {
        free(made);
        return result;
    }
    made->key = key_of(*instance);
    pthread_mutex_lock(&lock);
    made->next = known;
    known = made;
    pthread_mutex_unlock(&lock);
    return VK_SUCCESS;
}

static VKAPI_ATTR void VKAPI_CALL destroy_instance(VkInstance instance,
                                                   const VkAllocationCallbacks *allocator)
{
    PFN_vkDestroyInstance destroy;
    struct known **at;
    struct known *gone;

    if (!instance)
        return;
    pthread_mutex_lock(&lock);
    at = find(key_of(instance));
    gone = *at;
    if (gone)
        *at = gone->next;
    pthread_mutex_unlock(&lock);
    if (!gone)
        return;
    destroy = (PFN_vkDestroyInstance)gone->get(instance, "vkDestroyInstance");
    free(gone);
    destroy(instance, allocator);
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
    next = instance ? next_of(instance) : NULL;
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
