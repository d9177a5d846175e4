// SPDX-License-Identifier: MIT
/* The driver: the governor's CUDA door, with the driver of the host behind it. */
#include "worker.h"

#include <dlfcn.h>

static void *functions[CONTROL_CALLS];

static void log_for_governor(const char *sentence)
{
    worker_say("%s", sentence);
}

bool driver_load(const char *library)
{
    void *handle = dlopen(library, RTLD_NOW | RTLD_GLOBAL);
    void (*set_log)(void (*log)(const char *sentence));

    if (!handle) {
        worker_say("cannot load the CUDA driver: %s; --library says which it is", dlerror());
        return false;
    }
    /* Its standard error goes nowhere. A driver without the governor has no such function. */
    set_log = dlsym(handle, "governor_member_set_log");
    if (set_log)
        set_log(log_for_governor);
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
