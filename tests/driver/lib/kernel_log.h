/* SPDX-License-Identifier: MIT */
/* Watches the kernel's log for reports of its checkers. */
#ifndef KERNEL_LOG_H
#define KERNEL_LOG_H

#include <stdbool.h>

/* Opens /dev/kmsg; what was logged before does not count. Returns a descriptor or -errno. */
int kernel_log_open(void);

/*
 * Reads what was logged since the last call. Prints reports of trouble, with the lines that follow
 * them, as TAP diagnostics; returns how many there were.
 */
unsigned kernel_log_check(int fd);

/* Whether a line of the log begins such a report. */
bool kernel_log_is_trouble(const char *line);

#endif /* KERNEL_LOG_H */
