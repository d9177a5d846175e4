/* SPDX-License-Identifier: MIT */
/*
 * Watches the kernel's log for reports of its checkers. What a report is, and which are allowed, is
 * in the files kernel-log.trouble and kernel-log.allowed beside the program.
 */
#ifndef KERNEL_LOG_H
#define KERNEL_LOG_H

#include <glib.h>

/* Opens /dev/kmsg behind its last record, or at its first. Returns a descriptor or -errno. */
int kernel_log_open(void);
int kernel_log_open_whole(void);

/*
 * Reads what was logged since the last call. Prints reports of trouble, with the lines that follow
 * them, as TAP diagnostics; returns how many there were.
 */
unsigned kernel_log_check(int fd);

/* How many there are in lines of any log; nothing is printed. */
unsigned kernel_log_count(const GPtrArray *lines);

#endif /* KERNEL_LOG_H */
