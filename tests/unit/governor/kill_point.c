// SPDX-License-Identifier: MIT
#include "kill_point.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

/* The trap flag: a SIGTRAP after the next instruction. */
#define SINGLE_STEP 0x100

static _Atomic long points;
static _Atomic long deadly = KILL_POINT_NEVER;
static void *watched;
static size_t watched_bytes;

#ifdef __x86_64__
bool kill_point_supported(void)
{
    return true;
}

static void set_single_step(ucontext_t *context, bool on)
{
    greg_t *flags = &context->uc_mcontext.gregs[REG_EFL];

    *flags = on ? *flags | SINGLE_STEP : *flags & ~SINGLE_STEP;
}
#else
bool kill_point_supported(void)
{
    return false;
}

static void set_single_step(ucontext_t *context, bool on)
{
    (void)context;
    (void)on;
}
#endif

void kill_point(void)
{
    if (deadly != KILL_POINT_NEVER && points++ == deadly)
        kill(getpid(), SIGKILL);
}

static void before_write(int signal_number, siginfo_t *info, void *context)
{
    uintptr_t at = (uintptr_t)info->si_addr, page = (uintptr_t)watched;

    if (!page || at < page || at >= page + watched_bytes) {
        signal(signal_number, SIG_DFL);
        return;
    }
    kill_point();
    mprotect(watched, watched_bytes, PROT_READ | PROT_WRITE);
    set_single_step(context, true);
}

static void after_write(int signal_number, siginfo_t *info, void *context)
{
    (void)signal_number;
    (void)info;
    mprotect(watched, watched_bytes, PROT_READ);
    set_single_step(context, false);
}

static void handle(int signal_number, void (*handler)(int, siginfo_t *, void *))
{
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};

    sigaction(signal_number, &action, NULL);
}

void kill_point_arm(long number)
{
    handle(SIGSEGV, before_write);
    handle(SIGTRAP, after_write);
    points = 0;
    deadly = number;
}

void kill_point_watch(void *page, size_t bytes)
{
    watched = page;
    watched_bytes = bytes;
}

void *kill_point_watched(void)
{
    return watched;
}
