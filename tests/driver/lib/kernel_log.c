/* SPDX-License-Identifier: MIT */
/* Watches the kernel's log for reports of its checkers. */
#include "kernel_log.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <string.h>
#include <unistd.h>

/* Lines of a report that are shown after its first: enough for the stack. */
#define CONTEXT_LINES 60
/* Reports that are shown: the first one matters, the others often follow from it. */
#define SHOWN_REPORTS 2

/*
 * Stalls and soft lockups are not among them: on an emulated CPU of a busy machine they say nothing
 * about the driver. A test that hangs is found by its time limit.
 */
static const char *const trouble[] = {
    "WARNING:",
    "BUG:",
    "KASAN:",
    "UBSAN:",
    "Oops",
    "general protection fault",
    "refcount_t:",
    "possible recursive locking detected",
    "possible circular locking dependency detected",
    "possible irq lock inversion",
    "inconsistent lock state",
    "suspicious RCU usage",
    "INFO: task ",
    "sysfs: cannot create duplicate filename",
    "kernel BUG at",
    "DEBUG_LOCKS_WARN_ON",
    "ODEBUG:",
    "new suspected memory leaks",
};

bool kernel_log_is_trouble(const char *line)
{
    if (strstr(line, "soft lockup") || strstr(line, "workqueue lockup"))
        return false;
    for (size_t i = 0; i < G_N_ELEMENTS(trouble); i++) {
        if (strstr(line, trouble[i]))
            return true;
    }
    return false;
}

int kernel_log_open(void)
{
    int fd = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);

    if (fd < 0)
        return -errno;
    lseek(fd, 0, SEEK_END);
    return fd;
}

unsigned kernel_log_check(int fd)
{
    char record[8192];
    unsigned reports = 0, context = 0;

    for (;;) {
        ssize_t n = read(fd, record, sizeof(record) - 1);
        char *text;

        if (n < 0 && errno == EPIPE)
            continue; /* records were overwritten; go on with the next */
        if (n <= 0)
            return reports;
        record[n] = '\0';
        text = strchr(record, ';');
        text = text ? text + 1 : record;
        text[strcspn(text, "\n")] = '\0';
        if (kernel_log_is_trouble(text)) {
            if (++reports <= SHOWN_REPORTS)
                context = CONTEXT_LINES;
        }
        if (context) {
            context--;
            g_printerr("# kernel: %s\n", text);
        }
    }
}
