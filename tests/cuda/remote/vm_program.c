// SPDX-License-Identifier: MIT
#include "remote/vm_program.h"

#include "remote/program.h"

void vm_program_set_worker(const char *after)
{
    g_autofree char *path = program_write_worker(after);

    g_setenv("VM_WORKER", path, TRUE);
}

void vm_program_open(void)
{
    vm_program_set_worker(NULL);
}

void vm_program_close(void)
{
    g_unsetenv("VM_WORKER");
}

char **vm_program_environment(char **env)
{
    const char *libraries = g_environ_getenv(env, "LD_LIBRARY_PATH");
    g_autofree char *with = g_strconcat(REMOTE_DIR, libraries ? ":" : "", libraries, NULL);

    env = g_environ_setenv(env, "LD_LIBRARY_PATH", with, TRUE);
    env = g_environ_setenv(env, "LD_PRELOAD", VM_SHIM, TRUE);
    env = g_environ_setenv(env, "VGPU_GOVERNOR_REQUIRED", "1", TRUE);
    return g_environ_unsetenv(env, "VGPU_CUDA_SOCKET");
}
