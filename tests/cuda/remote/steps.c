// SPDX-License-Identifier: MIT
/*
 * At each step of the ring's protocol (cuda-remote/wire/channel.c, built with CHANNEL_STEPS) a
 * thread goes on at once, gives its processor away, or sleeps: what the other end may do in between
 * it does, sooner or later.
 */
#include <sched.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

void channel_step(void);

void channel_step(void)
{
    static _Thread_local uint32_t random;

    if (!random)
        random = (uint32_t)syscall(SYS_gettid) * 2654435761u | 1;
    random ^= random << 13;
    random ^= random >> 17;
    random ^= random << 5;
    if (random % 8 == 0)
        nanosleep(&(struct timespec){.tv_nsec = (long)(random >> 8) % 300000}, NULL);
    else if (random % 8 == 1)
        sched_yield();
}
