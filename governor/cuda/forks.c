// SPDX-License-Identifier: MIT
#include "forks.h"

#include <pthread.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;

static void in_child(void)
{
    gpu_forget_parent();
    ranges_forget_parent();
    vmm_forget_parent();
    pools_forget_parent();
    ipc_forget_parent();
    later_forget_parent();
    captures_forget_parent();
    contexts_forget_parent();
    fronts_forget_parent();
    chunks_forget_parent();
    vault_forget_parent();
    mover_forget_parent();
    drain_forget_parent();
}

static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, in_child);
}

void forks_watch(void)
{
    pthread_once(&once, watch_forks);
}
