// SPDX-License-Identifier: MIT
#include "nodes.h"

#include <drm/virtgpu_drm.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static bool is_virtio_gpu(int node)
{
    char name[16] = "";
    struct drm_version version = {.name = name, .name_len = sizeof(name) - 1};

    return ioctl(node, DRM_IOCTL_VERSION, &version) == 0 && strcmp(name, "virtio_gpu") == 0;
}

static enum node_state ask_node(int node, struct control_caps *caps)
{
    uint64_t capsets = 0;
    struct drm_virtgpu_getparam ask = {.param = VIRTGPU_PARAM_SUPPORTED_CAPSET_IDs,
                                       .value = (uintptr_t)&capsets};
    struct drm_virtgpu_get_caps get = {
        .cap_set_id = CONTROL_CAPSET, .addr = (uintptr_t)caps, .size = sizeof(*caps)};

    if (!is_virtio_gpu(node))
        return NODE_OTHER;
    if (ioctl(node, DRM_IOCTL_VIRTGPU_GETPARAM, &ask) < 0)
        return NODE_OLD_KERNEL;
    if (!(capsets & 1ull << CONTROL_CAPSET) || ioctl(node, DRM_IOCTL_VIRTGPU_GET_CAPS, &get) < 0 ||
        caps->magic != CONTROL_MAGIC)
        return NODE_NO_CUDA;
    return NODE_CUDA;
}

enum node_state node_look(int number, struct control_caps *caps)
{
    enum node_state state;
    char path[32];
    int node;

    snprintf(path, sizeof(path), NODE_PATH, number);
    node = open(path, O_RDWR | O_CLOEXEC);
    if (node < 0)
        return errno == ENOENT ? NODE_NONE : NODE_CLOSED;
    state = ask_node(node, caps);
    close(node);
    return state;
}
