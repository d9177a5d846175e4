// SPDX-License-Identifier: MIT
/*
 * Memory that program and worker shared in a vGPU that was unplugged: the guest's kernel has
 * nothing there, and whoever touches it gets SIGBUS. The program gets memory of its own in its
 * place, and goes on to its next call, which fails.
 *
 * The memory has no number that a program could take for a result: as a floating-point number of
 * any size each is none. To the library it is a channel with an empty ring, and no magic.
 */
#include "lost_memory.h"

#include "transport.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#define CHUNK     (64ull << 10) /* that all areas of the arena begin and end with */
#define NO_NUMBER 0x7ff87fe07ff87fe0ull

_Static_assert((uint32_t)NO_NUMBER != CHANNEL_MAGIC && (uint32_t)NO_NUMBER != CONTROL_MAGIC &&
                   NO_NUMBER % CHANNEL_ALIGN == 0,
               "blank memory is a channel whose worker is gone");

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct sigaction before;
static _Atomic uint64_t page, page_bytes;
static _Atomic uint64_t arena, arena_end;
static atomic_flag is_replacing = ATOMIC_FLAG_INIT;

/* The part that is replaced as a whole; 0: it is not ours. */
static size_t find_part(uint64_t address, uint64_t *start)
{
    if (address - page < page_bytes) {
        *start = page;
        return page_bytes;
    }
    *start = address / CHUNK * CHUNK;
    return address >= arena && address < arena_end ? CHUNK : 0;
}

/* Filled before it is there: other threads read it at once. */
static bool put_blank(uint64_t start, size_t bytes)
{
    uint64_t *blank = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (blank == MAP_FAILED)
        return false;
    for (size_t i = 0; i < bytes / sizeof(*blank); i++)
        blank[i] = NO_NUMBER;
    return mremap(blank, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)(uintptr_t)start) !=
           MAP_FAILED;
}

/*
 * Another thread may have replaced it already, and written there. Another handler of this thread
 * must not come between: it could leave by a jump, or need the same.
 */
static bool replace_part(uint64_t start, size_t bytes)
{
    sigset_t all, mask;
    bool ok;

    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &mask);
    while (atomic_flag_test_and_set(&is_replacing))
        channel_pause();
    ok = madvise((void *)(uintptr_t)start, bytes, MADV_POPULATE_READ) == 0 ||
         put_blank(start, bytes);
    atomic_flag_clear(&is_replacing);
    pthread_sigmask(SIG_SETMASK, &mask, NULL);
    return ok;
}

static void say_lost(void)
{
    static const char text[] =
        "vgpu-cuda: this program's vGPU is gone: its calls of CUDA get error 719, and memory that "
        "it shared with the GPU has lost what was in it\n";
    static atomic_flag is_said = ATOMIC_FLAG_INIT;

    if (!atomic_flag_test_and_set(&is_said))
        (void)!write(STDERR_FILENO, text, sizeof(text) - 1);
}

/* As if there were no handler here. A fault comes again when it has returned. */
static void pass_on(int number, siginfo_t *info, void *context)
{
    if (before.sa_flags & SA_SIGINFO) {
        before.sa_sigaction(number, info, context);
    } else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
        before.sa_handler(number);
    } else {
        sigaction(number, &before, NULL);
        if (before.sa_handler == SIG_DFL)
            raise(number);
    }
}

static void on_bus_error(int number, siginfo_t *info, void *context)
{
    int reason = errno;
    uint64_t start;
    size_t bytes = info->si_code == BUS_ADRERR ? find_part((uintptr_t)info->si_addr, &start) : 0;

    if (bytes && replace_part(start, bytes))
        say_lost();
    else
        pass_on(number, info, context);
    errno = reason;
}

static void install_handler(void)
{
    struct sigaction action = {.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO | SA_ONSTACK};

    sigemptyset(&action.sa_mask);
    sigaction(SIGBUS, NULL, &before);
    sigaction(SIGBUS, &action, NULL);
}

void lost_memory_forget(void)
{
    page_bytes = 0;
}

void lost_memory_replace_arena(uint64_t address, uint64_t end)
{
    arena = address;
    arena_end = end;
}

void lost_memory_begin_child(void)
{
    lost_memory_forget();
    atomic_flag_clear(&is_replacing);
}

void lost_memory_replace(const void *at, size_t bytes)
{
    page = (uintptr_t)at;
    page_bytes = bytes;
    pthread_once(&once, install_handler);
}
