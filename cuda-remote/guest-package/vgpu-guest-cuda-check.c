// SPDX-License-Identifier: MIT
/* vgpu-guest-cuda-check: what a VM has of CUDA, and what is missing. */
#include "nodes.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define MIB (1024.0 * 1024.0)

static enum node_state look_at_node(int number)
{
    static const char *const texts[] = {
        [NODE_OTHER] = "no vGPU: it is another driver's",
        [NODE_CLOSED] = "cannot be opened: be a member of its group, for example render",
        [NODE_OLD_KERNEL] = "this kernel's driver has no contexts; Linux 5.16 or newer has",
        [NODE_NO_CUDA] = "a vGPU without CUDA: its host does not offer it",
    };
    struct control_caps caps = {0};
    enum node_state state = node_look(number, &caps);
    char path[32];

    if (state == NODE_NONE)
        return state;
    snprintf(path, sizeof(path), NODE_PATH, number);
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
        enum node_state state = look_at_node(NODES_FIRST + i);

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

/* Says where it is. NULL: it is not there, or is not what it is called. */
static void *open_library(const char *name, const char *function)
{
    void *library = dlopen(name, RTLD_NOW);
    Dl_info info;

    if (!library)
        printf("%s: %s\n", name, dlerror());
    else if (dladdr(dlsym(library, function), &info))
        printf("%s: %s\n", name, info.dli_fname);
    return library;
}

static bool look_at_cuda(void)
{
    void *library = open_library("libcuda.so.1", "cuInit");

    return library && ask_driver(library);
}

/* What programs that watch the GPU need; the others do without. */
static void look_at_nvml(void)
{
    void *library = open_library("libnvidia-ml.so.1", "nvmlInit_v2");
    int (*init)(void) = library ? dlsym(library, "nvmlInit_v2") : NULL;
    int (*get_version)(char *, unsigned int) =
        library ? dlsym(library, "nvmlSystemGetDriverVersion") : NULL;
    char version[80] = "";
    int result;

    if (!init || !get_version)
        return;
    result = init();
    if (result || get_version(version, sizeof(version)))
        printf("NVML: error %d; its host has none for VMs\n", result);
    else
        printf("NVML: driver %s\n", version);
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
    if (!look_at_cuda() || !has_node) {
        puts("CUDA does not work in this VM");
        return 1;
    }
    look_at_nvml();
    puts("CUDA works in this VM");
    return 0;
}
