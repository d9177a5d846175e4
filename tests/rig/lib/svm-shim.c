// SPDX-License-Identifier: MIT
/*
 * LD_PRELOAD for the outer QEMU: guests of L1 get no interrupt that nobody sent.
 *
 * QEMU 10.0's VMRUN (helper_vmrun) leaves the vector of an injected interrupt in the CPU's
 * exception_index, though the interrupt is delivered when it returns. The next time that the CPU
 * is only asked to leave its loop, as after every change of the memory map, that index is taken
 * for a pending exception: the guest gets the vector once more, with interrupts on or off. In the
 * wrong place, as before the kernel's swapgs, that kills it. cpu_loop_exit_noexc() clears the index
 * and goes to the top of the loop, where VMRUN's end goes anyway.
 *
 * QEMU's executable exports what this needs. In other programs the library does nothing.
 */
#define _GNU_SOURCE
#include <dlfcn.h>

/* The start of QEMU's struct TCGHelperInfo: what generated code calls. */
struct helper_info {
    void *func;
    const char *name;
};

static void (*vmrun)(void *env, int aflag, int next_eip_addend);
static void (*loop_exit)(void *cpu);

static void *this_cpu(void)
{
    static _Thread_local void **current;

    if (!current)
        current = dlsym(RTLD_DEFAULT, "current_cpu");
    return *current;
}

static void vmrun_and_leave(void *env, int aflag, int next_eip_addend)
{
    vmrun(env, aflag, next_eip_addend);
    loop_exit(this_cpu());
}

__attribute__((constructor)) static void replace_helper(void)
{
    struct helper_info *info = dlsym(RTLD_DEFAULT, "helper_info_vmrun");

    *(void **)&vmrun = dlsym(RTLD_DEFAULT, "helper_vmrun");
    *(void **)&loop_exit = dlsym(RTLD_DEFAULT, "cpu_loop_exit_noexc");
    if (info && vmrun && loop_exit && dlsym(RTLD_DEFAULT, "current_cpu") &&
        info->func == (void *)vmrun)
        info->func = (void *)vmrun_and_leave;
}
