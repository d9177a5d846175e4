/* SPDX-License-Identifier: MIT */
/*
 * Watches the kernel's log for reports of its checkers. The files kernel-log.trouble and
 * kernel-log.allowed beside the program define reports, and which are allowed.
 */
#ifndef KERNEL_LOG_H
#define KERNEL_LOG_H

#include <glib.h>

/* Opens /dev/kmsg after its last record, or at its first. Returns a descriptor or -errno. */
int kernel_log_open(void);
int kernel_log_open_whole(void);

/*
 * Reads the log since the last call. Prints reports, with the lines that follow them, as TAP
 * diagnostics; returns their number.
 */
unsigned kernel_log_check(int fd);

/* The number of reports in lines of any log; nothing is printed. */
unsigned kernel_log_count(const GPtrArray *lines);

#endif /* KERNEL_LOG_H */
