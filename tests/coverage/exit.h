/* SPDX-License-Identifier: MIT */
/* Put before every source that is built with counters: a process that ends by _exit() writes them
 * down first, which otherwise only exit() does. */
#pragma once

void __gcov_dump(void);
void coverage_real_exit(int status) __asm__("_exit") __attribute__((noreturn));

static inline __attribute__((noreturn)) void coverage_exit(int status)
{
    __gcov_dump();
    coverage_real_exit(status);
}

#define _exit(status) coverage_exit(status)
