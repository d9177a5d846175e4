// SPDX-License-Identifier: MIT
/*
 * Preloaded into a program whose door was built with -finstrument-functions: which functions of the
 * door each cuLaunchKernel() passes. When the program ends, it writes to TRIP_OUT each set of them
 * that was seen: how often, and then a line for each function, its file and its place in that.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PLAIN          __attribute__((no_instrument_function))
#define FUNCTIONS_MOST 256
#define TRIPS_MOST     64

struct trip {
    unsigned int times;
    unsigned int count;
    void *functions[FUNCTIONS_MOST];
};

static struct trip trips[TRIPS_MOST];
static unsigned int trip_count;
/* Of the thread that launches: the trip that it is on, and how deep. */
static _Thread_local struct trip now;
static _Thread_local unsigned int depth;

void __cyg_profile_func_enter(void *function, void *caller) PLAIN;
void __cyg_profile_func_exit(void *function, void *caller) PLAIN;

static PLAIN int is_launch(void *function)
{
    static void *launch;
    Dl_info info;

    if (!launch && dladdr(function, &info) && info.dli_sname &&
        !strcmp(info.dli_sname, "cuLaunchKernel"))
        launch = function;
    return function == launch;
}

void __cyg_profile_func_enter(void *function, void *caller)
{
    (void)caller;
    if (!depth && !is_launch(function))
        return;
    depth++;
    for (unsigned int i = 0; i < now.count; i++)
        if (now.functions[i] == function)
            return;
    if (now.count < FUNCTIONS_MOST)
        now.functions[now.count++] = function;
}

static PLAIN int by_address(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(void *));
}

void __cyg_profile_func_exit(void *function, void *caller)
{
    unsigned int at = 0;

    (void)function;
    (void)caller;
    if (!depth || --depth)
        return;
    qsort(now.functions, now.count, sizeof(*now.functions), by_address);
    while (at < trip_count && (trips[at].count != now.count ||
                               memcmp(trips[at].functions, now.functions, sizeof(now.functions))))
        at++;
    if (at == trip_count && at < TRIPS_MOST)
        trips[trip_count++] = now;
    if (at < TRIPS_MOST)
        trips[at].times++;
    memset(&now, 0, sizeof(now));
}

static __attribute__((destructor)) PLAIN void say_trips(void)
{
    FILE *file = fopen(getenv("TRIP_OUT"), "w");

    for (unsigned int i = 0; file && i < trip_count; i++) {
        fprintf(file, "%u times\n", trips[i].times);
        for (unsigned int j = 0; j < trips[i].count; j++) {
            char *function = trips[i].functions[j];
            Dl_info info;

            if (dladdr(function, &info))
                fprintf(file, "%s %#tx\n", info.dli_fname, function - (char *)info.dli_fbase);
        }
    }
    if (file)
        fclose(file);
}
