// SPDX-License-Identifier: MIT
/* vgpu-guest-cuda-check: what a VM has of CUDA, and what is missing. */
#include "control.h"

#include <dlfcn.h>
#include <drm/virtgpu_drm.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define FIRST_NODE 128
#define NODES      64
#define MIB        (1024.0 * 1024.0)

enum node_state { NODE_NONE, NODE_OTHER, NODE_CLOSED, NODE_OLD_KERNEL, NODE_NO_CUDA, NODE_CUDA };

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

static enum node_state look_at_node(int number)
{
    static const char *const texts[] = {
        [NODE_OTHER] = "no vGPU: it is another driver's",
        [NODE_CLOSED] = "cannot be opened: be a member of its group, for example render",
        [NODE_OLD_KERNEL] = "this kernel's driver has no contexts; Linux 5.16 or newer has",
        [NODE_NO_CUDA] = "a vGPU without CUDA: its host does not offer it",
    };
    struct control_caps caps = {0};
    enum node_state state;
    char path[32];
    int node;

    snprintf(path, sizeof(path), "/dev/dri/renderD%d", number);
    node = open(path, O_RDWR | O_CLOEXEC);
    if (node < 0 && errno == ENOENT)
        return NODE_NONE;
    state = node < 0 ? NODE_CLOSED : ask_node(node, &caps);
    if (node >= 0)
        close(node);
    if (state != NODE_CUDA)
        printf("%s: %s\n", path, texts[state]);
    else
        printf("%s: a vGPU with CUDA, version %u.%u, %.0f MiB of window\n", path, caps.major,
               caps.minor, (double)caps.window / MIB);
    return state;
}

/* The best of all. */
static enum node_state look_at_nodes(void)
{
    enum node_state best = NODE_NONE;

    for (int i = 0; i < NODES; i++) {
        enum node_state state = look_at_node(FIRST_NODE + i);

        best = state > best ? state : best;
    }
    if (best == NODE_NONE)
        puts("no render node: the VM has no vGPU, or its kernel no virtio-gpu driver");
    return best;
}

static bool ask_device(void *library, int number)
{
    int (*get_name)(char *, int, int) = dlsym(library, "cuDeviceGetName");
    int (*get_bytes)(size_t *, int) = dlsym(library, "cuDeviceTotalMem_v2");
    char name[128] = "";
    size_t bytes = 0;

    if (!get_name || !get_bytes || get_name(name, sizeof(name), number) ||
        get_bytes(&bytes, number))
        return false;
    printf("GPU %d: %s, %.0f MiB\n", number, name, (double)bytes / MIB);
    return true;
}

static bool ask_driver(void *library)
{
    int (*init)(unsigned int) = dlsym(library, "cuInit");
    int (*get_version)(int *) = dlsym(library, "cuDriverGetVersion");
    int (*count)(int *) = dlsym(library, "cuDeviceGetCount");
    int result, version = 0, devices = 0;

    if (!init || !get_version || !count) {
        puts("libcuda.so.1: it is no CUDA driver");
        return false;
    }
    result = init(0);
    if (result) {
        printf("cuInit: error %d; %s\n", result,
               result == 100 ? "no vGPU offers CUDA to this program"
                             : "the log of the vGPU's engine on the host says why");
        return false;
    }
    if (get_version(&version) || count(&devices))
        return false;
    printf("cuInit: CUDA %d.%d, %d GPU%s\n", version / 1000, version % 1000 / 10, devices,
           devices == 1 ? "" : "s");
    for (int i = 0; i < devices; i++)
        if (!ask_device(library, i))
            return false;
    return devices > 0;
}

static bool look_at_library(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    Dl_info info;

    if (!library) {
        printf("libcuda.so.1: %s\n", dlerror());
        return false;
    }
    if (dladdr(dlsym(library, "cuInit"), &info))
        printf("libcuda.so.1: %s\n", info.dli_fname);
    return ask_driver(library);
}

int main(int argc, char **argv)
{
    bool has_node;

    if (argc == 2 && !strcmp(argv[1], "--version"))
        return printf("vgpu-guest-cuda-check %s\n", VGPU_VERSION) < 0;
    if (argc > 1) {
        fprintf(stderr, "usage: vgpu-guest-cuda-check [--version]\n");
        return 2;
    }
    has_node = look_at_nodes() == NODE_CUDA;
    if (look_at_library() && has_node) {
        puts("CUDA works in this VM");
        return 0;
    }
    puts("CUDA does not work in this VM");
    return 1;
}
