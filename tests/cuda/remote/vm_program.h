/* SPDX-License-Identifier: MIT */
/*
 * Programs (remote/program.h) of a VM (remote/vm.c) whose worker, before the fake card, is in the
 * slice that its environment names.
 */
#ifndef TESTS_CUDA_REMOTE_VM_PROGRAM_H
#define TESTS_CUDA_REMOTE_VM_PROGRAM_H

#include "kit.h"

/* Between kit_open() and kit_close(). */
void vm_program_open(void);
void vm_program_close(void);

/* As program_write_worker(): the worker of programs that are started from now on. */
void vm_program_set_worker(const char *after);

/* Of a program in the VM; it takes @env. The slice is the worker's: the program is no member. */
char **vm_program_environment(char **env);

#endif
