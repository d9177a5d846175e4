// SPDX-License-Identifier: MIT
/*
 * Ways of a driver by which tests/cuda/spike tells one answer from the other.
 *
 *   FAKE_CUDA_INTEGRITY  there is a table of that name, whose function is an invention of ours, and
 *                        nothing that NVIDIA's runtime would believe. It depends on pid, thread and
 *                        place, which it takes 1: from the C library, 2: from the kernel and the
 *                        processor. 3: it also depends on what no other process can have
 *   FAKE_CUDA_PLACE      1: it insists on addresses of its own
 *   FAKE_CUDA_HANGS      1: cuInit() does not return; 2: it crashes
 *   FAKE_CUDA_COMPILER   1: it compiles in another process
 */
#include "fake.h"

#include "card.h"
#include "ptx/content.h"

#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static uint64_t mix(uint64_t sum, uint64_t value)
{
    return (sum ^ value) * 0x9e3779b97f4a7c15ull + (sum >> 29);
}

static CUresult prove(unsigned int version, uint64_t seconds, uint64_t *proof);

static const uintptr_t integrity_table[3] = {sizeof(integrity_table), (uintptr_t)prove, 0};

static CUresult prove(unsigned int version, uint64_t seconds, uint64_t *proof)
{
    uint64_t way = card_setting("FAKE_CUDA_INTEGRITY", 0), own = 0, sum;
    bool is_asked = way == 1;

    sum = mix(mix(version, seconds), (uintptr_t)integrity_table);
    sum = mix(sum, (uint64_t)(is_asked ? getpid() : (pid_t)syscall(SYS_getpid)));
    sum = mix(sum, is_asked ? (uint64_t)pthread_self() : (uintptr_t)__builtin_thread_pointer());
    if (way == 3) {
        static uint64_t secret;

        if (!secret && getrandom(&secret, sizeof(secret), 0) < 0)
            return CUDA_ERROR_NOT_READY;
        own = secret;
    }
    proof[0] = mix(sum, own);
    proof[1] = mix(proof[0], sum);
    return CUDA_SUCCESS;
}

const void *spike_table(const void *id)
{
    static const uint8_t known[4] = {0xd4, 0x08, 0x20, 0x55};

    return id && !memcmp(id, known, sizeof(known)) && card_setting("FAKE_CUDA_INTEGRITY", 0)
               ? integrity_table
               : NULL;
}

/* It may not get the place without which it can't be. */
CUresult cuInit(unsigned int flags)
{
    void *wanted = (void *)0x7e0000000000;
    uint64_t hangs = card_setting("FAKE_CUDA_HANGS", 0);

    ENTER();
    (void)flags;
    if (hangs == 2)
        raise(SIGSEGV);
    while (hangs)
        pause();
    if (!card_setting("FAKE_CUDA_PLACE", 0) ||
        mmap(wanted, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) ==
            wanted)
        return CUDA_SUCCESS;
    return CUDA_ERROR_OUT_OF_MEMORY;
}

/* False: its compiler does not run. */
bool spike_compiles(void)
{
    char *argv[] = {"/bin/true", NULL};
    int status;
    pid_t pid;

    if (!card_setting("FAKE_CUDA_COMPILER", 0))
        return true;
    return !posix_spawn(&pid, argv[0], NULL, NULL, argv, environ) &&
           waitpid(pid, &status, 0) == pid && !status;
}
