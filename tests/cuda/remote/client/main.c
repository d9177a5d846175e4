// SPDX-License-Identifier: MIT
#include "client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../compute_ptx.h"

char text_of_many[8192];

void expect_result(CUresult result, CUresult wanted, const char *file, int line, const char *what)
{
    const char *name = NULL;

    if (result == wanted)
        return;
    cuGetErrorName(result, &name);
    fprintf(stderr, "%s:%d: %s: %d %s, not %d\n", file, line, what, (int)result, name ? name : "",
            (int)wanted);
    exit(1);
}

CUcontext begin_context(void)
{
    CUcontext context;
    CUdevice device;

    ok(cuInit(0));
    ok(cuDeviceGet(&device, 0));
    ok(cuCtxCreate_v2(&context, 0, device));
    return context;
}

CUfunction load_function(CUmodule *module, const char *name)
{
    CUfunction function;

    ok(cuModuleLoadData(module, compute_ptx));
    ok(cuModuleGetFunction(&function, *module, name));
    return function;
}

CUdeviceptr allocate_device(size_t bytes)
{
    CUdeviceptr at;

    ok(cuMemAlloc_v2(&at, bytes));
    return at;
}

unsigned int read_word(CUdeviceptr at)
{
    unsigned int word;

    ok(cuMemcpyDtoH_v2(&word, at, sizeof(word)));
    return word;
}

static const struct {
    const char *name;
    void (*run)(void);
} cases[] = {
    {"compute", check_launch_ways},
    {"limit", check_memory_limit},
    {"beyond-memory", ask_beyond_memory},
    {"large", check_large_copies},
    {"objects", check_ended_objects},
    {"threads", check_threads},
    {"stress", check_random_threads},
    {"graphs", check_captured_graph},
    {"callbacks", check_callbacks},
    {"waiting", check_waiting_thread},
    {"order", check_order_of_threads},
    {"posted", check_posted_error},
    {"blocking", check_blocking_launches},
    {"managed", check_managed_memory},
    {"window", check_full_window},
    {"lent", check_lent_memory},
    {"pinned-of-ended", check_pinned_of_ended},
    {"hold-lent", hold_lent_memory},
    {"nodes", check_graph_nodes},
    {"any-nodes", check_any_nodes},
    {"green-contexts", check_green_contexts},
    {"structures", check_structures},
    {"rows", check_copies_of_rows},
    {"captured-copies", check_captured_copies},
    {"copy-forms", check_copy_forms},
    {"own-memory", check_host_memory},
    {"no-files", check_without_files},
    {"links", check_linked_files},
    {"passed", check_passed_calls},
    {"callback-order", check_callback_order},
    {"local", check_local_answers},
    {"without-worker", check_answers_without_worker},
    {"nvml", check_nvml},
    {"nvml-vm", check_nvml_of_vm},
    {"nvml-unit", check_nvml_of_unit},
    {"nvml-lost", check_lost_nvml},
    {"nvml-none", check_no_nvml},
    {"printing", print_in_kernel},
    {"ends", print_at_end},
    {"assert", fail_in_kernel},
    {"ipc", check_ipc},
    {"ipc-open", open_memory_of_other},
    {"shares", check_shares},
    {"shared", import_shared_memory},
    {"facts", check_facts},
    {"forked", check_forked_child},
    {"dies-starting", die_starting},
    {"dies-posting", die_posting},
    {"dies-called", die_called},
    {"dies-waiting", die_waiting},
    {"dies-copying", die_copying},
    {"dies-sharing", die_sharing},
    {"dies-ending", die_ending},
    {"hold", hold_memory},
    {"lost", check_lost_worker},
    {"lost-memory", check_lost_memory},
    {"own-faults", check_own_faults},
    {"signals", check_signals},
    {"unusable", check_unusable_gpu},
    {"fill", fill_until_killed},
    {"refused", check_no_device},
    {"goes-on", compute_until_told},
    {"no-arbiter", check_no_arbiter},
    {"hostile", flood_guard},
};

int main(int argc, char **argv)
{
    for (size_t i = 0; argc == 2 && i < sizeof(cases) / sizeof(cases[0]); i++)
        if (!strcmp(cases[i].name, argv[1])) {
            cases[i].run();
            return 0;
        }
    return 2;
}
