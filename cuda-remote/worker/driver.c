// SPDX-License-Identifier: MIT
/* The driver: the governor's CUDA door, with the driver of the host behind it. */
#include "worker.h"

#include <dlfcn.h>

static void *functions[CONTROL_CALLS];

bool driver_load(const char *library)
{
    void *handle = dlopen(library, RTLD_NOW | RTLD_GLOBAL);

    if (!handle) {
        worker_say("cannot load the CUDA driver: %s; --library says which it is", dlerror());
        return false;
    }
    for (unsigned int i = 0; i < signatures_count; i++)
        if (signatures[i].name)
            functions[i] = dlsym(handle, signatures[i].name);
    return true;
}

void *driver_function(unsigned int number)
{
    return number < CONTROL_CALLS ? functions[number] : NULL;
}

void driver_fill_has(uint64_t *has)
{
    for (unsigned int i = 0; i < signatures_count; i++)
        if (functions[i] && signatures[i].mode != CALL_REFUSE)
            has[i / 64] |= 1ull << (i % 64);
}
