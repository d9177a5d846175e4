// SPDX-License-Identifier: MIT
/*
 * LD_PRELOAD for the outer QEMU: mends what QEMU 10.0 does wrong for a host with KVM guests under
 * TCG's SVM. QEMU's executable exports what this needs. A QEMU that does not, or that has it in
 * another way, is ended: with these faults it would corrupt the guests. In other programs the
 * library does nothing.
 *
 * 1. helper_vmrun() leaves the vector of an injected interrupt in the CPU's exception_index, though
 *    the interrupt is delivered when it returns. The next time that the CPU is only asked to leave
 *    its loop, as after every change of the memory map, that index is taken for a pending
 *    exception: the guest gets the vector once more, with interrupts on or off. In the wrong place,
 *    as before the kernel's swapgs, that kills it. cpu_loop_exit_noexc() clears the index and goes
 *    to the top of the loop, where VMRUN's end goes anyway.
 *
 * 2. helper_vmrun() sets CPU_INTERRUPT_VIRQ without QEMU's big lock, so that an interrupt which
 *    another thread raises at that moment is lost. cpu_exec()'s way out drops the lock.
 *
 * 3. Every FXRSTOR and XRSTOR of any CPU clears a flag in the first CPU's hflags2, without a lock:
 *    cpu_clear_ignne(). HF2_NPT_MASK is in the same word. When the first CPU enters or leaves a
 *    guest at that moment, the guest runs without nested paging, its addresses taken for the
 *    host's, or the host with it. The flag is for the 387 of DOS and stays as it is.
 *
 * 4. helper_write_crN() raises a guest's virtual interrupt for a new CR8 without the big lock, and
 *    QEMU aborts: OVMF in a guest did that.
 *
 * 5. On each exit do_vmexit() copies EVENTINJ to EXITINTINFO. An event that was delivered has only
 *    lost its valid bit there; its type stays. From 6.14 on KVM looks at the type alone if a guest
 *    touches a device: it takes the access for a part of an event's delivery, which it can't
 *    emulate, and QEMU in L1 pauses the guest with "KVM internal error. Suberror: 3".
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* AMD64 Architecture Programmer's Manual 2, appendices B and C. */
enum { VMCB_INT_CTL = 0x60, V_IRQ = 1 << 8, SVM_EXIT_VMRUN = 0x80 };
#define VMCB_EXITINTINFO 0x88u
#define EXITINTINFO_V    (1u << 31)
#define PAGE_OFFSET_MASK 0xfffu /* a VMCB is a page */

/* The start of QEMU's struct TCGHelperInfo: what generated code calls. */
struct helper_info {
    void *func;
    const char *name;
};

static struct {
    struct helper_info *vmrun_info, *write_cr_info;
    void (*vmrun)(void *env, int aflag, int next_eip_addend);
    void (*write_cr)(void *env, int reg, uint64_t value);
    bool (*has_intercept)(void *env, uint32_t exit_code);
    void (*loop_exit)(void *cpu);
    uint32_t (*ldl_phys)(void *cpu, uint64_t addr);
    char *stl_phys;
    void (*stl_phys_notdirty)(void *cpu, uint64_t addr, uint32_t value);
    void (*bql_lock)(const char *file, int line);
    void (*bql_unlock)(void);
    char *clear_ignne;
} qemu;

static void *this_cpu(void)
{
    static _Thread_local void **current;

    if (!current)
        current = dlsym(RTLD_DEFAULT, "current_cpu");
    return *current;
}

static void vmrun_and_leave(void *env, int aflag, int next_eip_addend)
{
    uint64_t vmcb = *(uint64_t *)env; /* RAX, the first register */

    if (qemu.ldl_phys(this_cpu(), vmcb + VMCB_INT_CTL) & V_IRQ)
        qemu.bql_lock(__FILE__, __LINE__);
    qemu.vmrun(env, aflag, next_eip_addend);
    qemu.loop_exit(this_cpu());
}

static void write_cr(void *env, int reg, uint64_t value)
{
    /*
     * Outside of guests, which all have VMRUN intercepted, the helper takes the lock itself. This
     * call is the last thing done, so that the compiler makes a jump of it: the helper finds the
     * instruction that faults by its own return address.
     */
    if (reg != 8 || !qemu.has_intercept(env, SVM_EXIT_VMRUN)) {
        qemu.write_cr(env, reg, value);
        return;
    }
    qemu.bql_lock(__FILE__, __LINE__);
    qemu.write_cr(env, reg, value);
    qemu.bql_unlock();
}

/*
 * In place of x86_stl_phys(), which differs from the other one only in that it looks for translated
 * code at that address. Of the CPU's structures only VMCBs have a word at this offset of a page.
 */
static void stl_phys(void *cpu, uint64_t addr, uint32_t value)
{
    if ((addr & PAGE_OFFSET_MASK) == VMCB_EXITINTINFO && !(value & EXITINTINFO_V))
        value = 0;
    qemu.stl_phys_notdirty(cpu, addr, value);
}

/* Replaces the start of a function of QEMU's. */
static int overwrite(char *function, const unsigned char *code, size_t size)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    void *start = (void *)((uintptr_t)function & ~(page - 1));

    if (mprotect(start, 2 * page, PROT_READ | PROT_WRITE | PROT_EXEC))
        return -1;
    memcpy(function, code, size);
    return mprotect(start, 2 * page, PROT_READ | PROT_EXEC);
}

/* A function that does nothing, in place of another. */
static int make_empty(char *function)
{
    static const unsigned char endbr64_ret[] = {0xf3, 0x0f, 0x1e, 0xfa, 0xc3};

    return overwrite(function, endbr64_ret, sizeof(endbr64_ret));
}

/* Another function in place of it: endbr64, movabs $@to, %rax, jmp *%rax. */
static int make_jump(char *function, void (*to)(void *cpu, uint64_t addr, uint32_t value))
{
    unsigned char code[16] = {0xf3, 0x0f, 0x1e, 0xfa, 0x48, 0xb8, [14] = 0xff, 0xe0};

    memcpy(code + 6, &to, sizeof(to));
    return overwrite(function, code, sizeof(code));
}

static bool find(const char *name, void *symbol)
{
    return (*(void **)symbol = dlsym(RTLD_DEFAULT, name)) != NULL;
}

static bool find_all(void)
{
    return find("helper_vmrun", &qemu.vmrun) && find("helper_write_crN", &qemu.write_cr) &&
           find("helper_info_vmrun", &qemu.vmrun_info) &&
           find("helper_info_write_crN", &qemu.write_cr_info) &&
           find("cpu_svm_has_intercept", &qemu.has_intercept) &&
           find("cpu_loop_exit_noexc", &qemu.loop_exit) && find("x86_ldl_phys", &qemu.ldl_phys) &&
           find("x86_stl_phys", &qemu.stl_phys) &&
           find("x86_stl_phys_notdirty", &qemu.stl_phys_notdirty) &&
           find("bql_lock_impl", &qemu.bql_lock) && find("bql_unlock", &qemu.bql_unlock) &&
           find("cpu_clear_ignne", &qemu.clear_ignne);
}

__attribute__((constructor)) static void mend(void)
{
    if (strncmp(program_invocation_short_name, "qemu-system-", 12))
        return;
    if (!find_all() || qemu.vmrun_info->func != (void *)qemu.vmrun ||
        qemu.write_cr_info->func != (void *)qemu.write_cr || make_empty(qemu.clear_ignne) ||
        make_jump(qemu.stl_phys, stl_phys)) {
        fputs("svm shim: it does not fit this QEMU, under which guests' guests would crash\n",
              stderr);
        _exit(75);
    }
    qemu.vmrun_info->func = (void *)vmrun_and_leave;
    qemu.write_cr_info->func = (void *)write_cr;
}
