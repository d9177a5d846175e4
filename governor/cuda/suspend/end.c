// SPDX-License-Identifier: MIT
#include "end.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define PROCESSES_MOST 4096
/* In /proc/PID/stat: the state comes after the name, which may have blanks and brackets. */
#define FIELD_STATE   3
#define FIELD_STARTED 22

/**
 * struct process
 * @fd: its pidfd; -1: it has ended
 */
struct process {
    int pid;
    unsigned long long started;
    int fd;
};

static struct process processes[PROCESSES_MOST];
static unsigned int count;
static char text[128];

bool end_parse(char *const *words)
{
    for (; *words; words++) {
        struct process *process = &processes[count];
        char rest;

        if (count == PROCESSES_MOST ||
            sscanf(*words, "%d:%llu%c", &process->pid, &process->started, &rest) != 2 ||
            process->pid <= 0)
            return false;
        process->fd = -1;
        count++;
    }
    return count > 0;
}

/* 0: there is no such process. */
static unsigned long long read_started(int pid)
{
    unsigned long long started = 0;
    char path[64], stat[1024];
    const char *at;
    size_t length;
    FILE *file;

    snprintf(path, sizeof(path), "/proc/%d/stat", pid);
    file = fopen(path, "re");
    if (!file)
        return 0;
    length = fread(stat, 1, sizeof(stat) - 1, file);
    fclose(file);
    stat[length] = 0;
    at = strrchr(stat, ')');
    for (int field = FIELD_STATE - 1; at && field < FIELD_STARTED; field++)
        at = strchr(at + 1, ' ');
    return at && sscanf(at, " %llu", &started) == 1 ? started : 0;
}

static const char *say_failure(const struct process *process, const char *what)
{
    snprintf(text, sizeof(text), "process %d cannot be %s: %s", process->pid, what,
             strerror(errno));
    return text;
}

/* The descriptor is opened first: it stays that of the process whose start is compared, or that
 * process has ended. */
static const char *open_process(struct process *process)
{
    process->fd = (int)syscall(SYS_pidfd_open, process->pid, 0);
    if (process->fd < 0)
        return errno == ESRCH ? NULL : say_failure(process, "opened");
    if (read_started(process->pid) != process->started) {
        close(process->fd);
        process->fd = -1;
    }
    return NULL;
}

static const char *kill_process(struct process *process)
{
    const char *error = open_process(process);

    if (error || process->fd < 0)
        return error;
    if (syscall(SYS_pidfd_send_signal, process->fd, SIGKILL, NULL, 0) && errno != ESRCH)
        return say_failure(process, "ended");
    return NULL;
}

static int64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000) + now.tv_nsec / 1000000;
}

/* A driver may hold it for a while. */
static bool has_ended(const struct process *process, int64_t until)
{
    struct pollfd end = {.fd = process->fd, .events = POLLIN};
    int64_t left;
    int rc;

    if (process->fd < 0)
        return true;
    do {
        left = until - now_ms();
        rc = poll(&end, 1, left > 0 ? (int)left : 0);
    } while (rc < 0 && errno == EINTR);
    return rc > 0;
}

const char *end_all(unsigned int limit_ms)
{
    int64_t until = now_ms() + limit_ms;
    const char *error = NULL;

    for (unsigned int i = 0; i < count; i++) {
        const char *cause = kill_process(&processes[i]);

        error = error ? error : cause;
    }
    for (unsigned int i = 0; i < count && !error; i++) {
        if (has_ended(&processes[i], until))
            continue;
        snprintf(text, sizeof(text), "process %d was killed and has not ended after %u ms",
                 processes[i].pid, limit_ms);
        error = text;
    }
    return error;
}
