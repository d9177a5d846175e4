// SPDX-License-Identifier: MIT
/*
 * Unknown 9. The worker's own Landlock domain (cuda-remote/worker/confine.c), and system calls as
 * the guard's unit forbids them (engine/systemd). One that is refused is named.
 */
#include "spike.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "worker.h"

/* What SystemCallFilter= and RestrictNamespaces= of vgpu-guard@.service leave out, as far as a
 * driver might call it. */
static const unsigned int forbidden[] = {
    SYS_mount,
    SYS_umount2,
    SYS_pivot_root,
    SYS_chroot,
    SYS_unshare,
    SYS_setns,
    SYS_ptrace,
    SYS_bpf,
    SYS_perf_event_open,
    SYS_keyctl,
    SYS_add_key,
    SYS_request_key,
    SYS_init_module,
    SYS_finit_module,
    SYS_delete_module,
    SYS_kexec_load,
    SYS_reboot,
    SYS_swapon,
    SYS_swapoff,
    SYS_settimeofday,
    SYS_clock_settime,
    SYS_adjtimex,
    SYS_io_setup,
    SYS_io_uring_setup,
    SYS_process_vm_readv,
    SYS_process_vm_writev,
    SYS_process_madvise,
    SYS_pidfd_getfd,
    SYS_setuid,
    SYS_setgid,
    SYS_setresuid,
    SYS_setresgid,
    SYS_setgroups,
    SYS_fchown,
    SYS_fchownat,
    SYS_userfaultfd,
    SYS_name_to_handle_at,
    SYS_open_by_handle_at,
    SYS_quotactl,
    SYS_acct,
    SYS_fanotify_init,
    SYS_syslog,
    SYS_vhangup,
    SYS_sethostname,
};

#define NAMESPACES 0x7e020080u /* CLONE_NEW* */
#define MOST       8u

static volatile sig_atomic_t refused[MOST], refused_count;

void worker_say(const char *format, ...)
{
    char text[512];
    va_list list;

    va_start(list, format);
    vsnprintf(text, sizeof(text), format, list);
    va_end(list);
    spike_step("%s", text);
}

/* Notes it, and lets it fail as the unit's filter does. */
static void refuse_call(int number, siginfo_t *info, void *context)
{
    ucontext_t *state = context;

    (void)number;
    if (refused_count < (int)MOST)
        refused[refused_count++] = info->si_syscall;
#if defined(__x86_64__)
    state->uc_mcontext.gregs[REG_RAX] = -EPERM;
#elif defined(__aarch64__)
    state->uc_mcontext.regs[0] = (unsigned long long)-EPERM;
#else
    (void)state;
#endif
}

static bool forbid_calls(void)
{
    struct sigaction action = {.sa_sigaction = refuse_call, .sa_flags = SA_SIGINFO | SA_NODEFER};
    const size_t count = sizeof(forbidden) / sizeof(forbidden[0]);
    struct sock_filter code[2 * sizeof(forbidden) / sizeof(forbidden[0]) + 8];
    struct sock_fprog program = {.filter = code};
    unsigned short at = 0;

    code[at++] =
        (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (size_t i = 0; i < count; i++) {
        code[at++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, forbidden[i], 0, 1);
        code[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP);
    }
    /* Namespaces by clone(); glibc asks clone3() first, whose flags no filter can read. */
    code[at++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 3);
    code[at++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
                                              offsetof(struct seccomp_data, args[0]));
    code[at++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, NAMESPACES, 0, 1);
    code[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP);
    code[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    program.len = at;
    return sigaction(SIGSYS, &action, NULL) == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

static const char *refused_text(void)
{
    static char text[256] = "no system call was refused";
    size_t used = 0;

    for (int i = 0; i < refused_count && used < sizeof(text); i++)
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%d",
                                 i ? ", " : "refused system calls by number: ", (int)refused[i]);
    return text;
}

static void need(CUresult result, const char *what)
{
    if (result != CUDA_SUCCESS)
        spike_verdict(VERDICT_NO, "%s: error %d; %s", what, (int)result, refused_text());
}

void ask_confined(void)
{
    CUipcMemHandle handle;
    CUcontext context;
    CUmodule module;

    spike_step("the worker's domain is entered");
    if (!worker_confine())
        spike_verdict(VERDICT_NOT_ASKED, "this kernel has no Landlock, or it does not let us");
    if (!forbid_calls())
        spike_verdict(VERDICT_NOT_ASKED, "no seccomp filter: %s", strerror(errno));
    card_load();
    spike_step("it runs in the sandbox");
    need(DRIVER(cuInit, unsigned int)(0), "cuInit");
    need(DRIVER(cuDevicePrimaryCtxRetain, CUcontext *, CUdevice)(&context, 0), "a context");
    need(DRIVER(cuCtxSetCurrent, CUcontext)(context), "cuCtxSetCurrent");
    spike_step("a kernel is compiled in the sandbox");
    need(DRIVER(cuModuleLoadData, CUmodule *, const void *)(
             &module, ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry none() { "
                      "ret; }\n"),
         "PTX");
    spike_step("memory is shared from the sandbox");
    need(DRIVER(cuIpcGetMemHandle, CUipcMemHandle *, CUdeviceptr)(&handle, card_allocate(2u << 20)),
         "cuIpcGetMemHandle");
    if (!card_computes())
        spike_verdict(VERDICT_NO, "it computes wrong numbers; %s", refused_text());
    spike_verdict(VERDICT_YES, "context, PTX, IPC and a kernel; %s", refused_text());
}
