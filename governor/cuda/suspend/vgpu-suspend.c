// SPDX-License-Identifier: MIT
/*
 * vgpu-suspend [--limit MS] [--gpu ADDRESS] [--bytes N] suspend|resume|state PID...
 * vgpu-suspend [--limit MS] end PID:START...
 *
 * Suspends the processes of a slice, as root on the host: their GPU memory goes to the host's, and
 * they wait in their next call of CUDA. Resuming brings it back. All of them, or none: if one
 * fails, those before it go back to what they were. So all are locked before the first one is
 * suspended.
 *
 * Or ends them (end.h).
 *
 * --limit   for each call of the driver, and for their end; 10000. Locking waits for the work that
 *           has been launched
 * --gpu     that they use: nothing comes back to it while its free memory is less than that. One
 *           program at a time moves memory of a GPU
 * --bytes   of GPU memory that they have together: what the host must have room for, or the GPU
 *
 * Prints a line for each process: its pid and its state. Exit status: 0; 1: it failed, and all are
 * as before; 2: wrong call; 3: it failed, and not all are as before.
 */
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver.h"
#include "end.h"
#include "room.h"

#define PIDS_MOST 4096
#define LIMIT_MS  10000u

static unsigned int limit_ms = LIMIT_MS;
static const char *gpu;
static uint64_t bytes;
static int pids[PIDS_MOST];
static unsigned int count;
/* A way back has failed. */
static bool is_torn;

static bool print_failure(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Returns false. */
static bool print_failure(const char *format, ...)
{
    va_list list;

    fputs("vgpu-suspend: ", stderr);
    va_start(list, format);
    vfprintf(stderr, format, list);
    va_end(list);
    fputc('\n', stderr);
    return false;
}

static bool take_step(enum step step, int pid, const char *what)
{
    const char *error = step == STEP_RESTORE ? room_look(pids, count, bytes) : NULL;

    error = error ? error : driver_step(step, pid, limit_ms);
    return !error || print_failure("cannot %s process %d: %s", what, pid, error);
}

/* All that are locked go on; one that cannot does not hold up the others. */
static void unlock_all(void)
{
    for (unsigned int i = 0; i < count; i++)
        if (driver_state(pids[i]) == STATE_LOCKED && !take_step(STEP_UNLOCK, pids[i], "unlock"))
            is_torn = true;
}

/* All that are in state @from take the step; false: those that did are back. */
static bool take_all(enum state from, enum step step, const char *what, enum step back,
                     const char *back_what)
{
    bool took[PIDS_MOST] = {false};

    for (unsigned int i = 0; i < count; i++) {
        if (driver_state(pids[i]) != from)
            continue;
        took[i] = take_step(step, pids[i], what);
        if (took[i])
            continue;
        /* It may have gone half of the way. */
        if (driver_state(pids[i]) != from)
            is_torn = true;
        while (i--) {
            if (took[i] && !take_step(back, pids[i], back_what))
                is_torn = true;
        }
        return false;
    }
    return true;
}

#define IS(state) (1u << (state))

/* @states: of IS(). */
static bool all_are(unsigned int states, const char *what)
{
    for (unsigned int i = 0; i < count; i++) {
        enum state state = driver_state(pids[i]);

        if (!(states & IS(state)))
            return print_failure("cannot %s process %d: it is %s", what, pids[i],
                                 driver_state_name(state));
    }
    return true;
}

/* Of the host, kB; 0: unknown. */
static uint64_t available_kb(void)
{
    FILE *file = fopen("/proc/meminfo", "re");
    unsigned long long kb = 0;
    char line[128];

    while (file && !kb && fgets(line, sizeof(line), file))
        if (sscanf(line, "MemAvailable: %llu", &kb) != 1)
            kb = 0;
    if (file)
        fclose(file);
    return kb;
}

static bool has_room(void)
{
    uint64_t kb = available_kb();

    return bytes / 1024 <= kb ||
           print_failure(
               "cannot suspend: the host has %llu MiB of memory available, and the processes "
               "have %llu MiB of the GPU's",
               (unsigned long long)kb / 1024, (unsigned long long)(bytes >> 20));
}

/* Those that are suspended already stay so. */
static bool suspend_all(void)
{
    if (!all_are(IS(STATE_RUNNING) | IS(STATE_CHECKPOINTED), "suspend") || !has_room())
        return false;
    if (!take_all(STATE_RUNNING, STEP_LOCK, "lock", STEP_UNLOCK, "unlock"))
        return false;
    if (take_all(STATE_LOCKED, STEP_CHECKPOINT, "suspend", STEP_RESTORE, "resume"))
        return true;
    unlock_all();
    return false;
}

/*
 * What is locked at first was left so by an earlier call that was killed. Those that run stay so,
 * and those that do not use CUDA or have ended: such a one was never suspended.
 */
static bool resume_all(void)
{
    static const unsigned int states =
        IS(STATE_CHECKPOINTED) | IS(STATE_LOCKED) | IS(STATE_RUNNING) | IS(STATE_UNKNOWN);

    if (!all_are(states, "resume") ||
        !take_all(STATE_CHECKPOINTED, STEP_RESTORE, "resume", STEP_CHECKPOINT, "suspend again"))
        return false;
    unlock_all();
    return !is_torn;
}

static void print_states(void)
{
    for (unsigned int i = 0; i < count; i++)
        printf("%d %s\n", pids[i], driver_state_name(driver_state(pids[i])));
}

static bool parse_number(const char *text, uint64_t most, uint64_t *number)
{
    char *end;

    *number = strtoull(text, &end, 10);
    return *text >= '0' && *text <= '9' && !*end && *number <= most;
}

static bool parse_pids(char **argv)
{
    uint64_t pid;

    for (; *argv; argv++) {
        if (count == PIDS_MOST || !parse_number(*argv, INT32_MAX, &pid) || !pid)
            return false;
        pids[count++] = (int)pid;
    }
    return count > 0;
}

/* The verb; NULL: the call is wrong. */
static const char *parse_verb(char **argv)
{
    uint64_t number;

    while (argv[0] && argv[1] && !strncmp(argv[0], "--", 2)) {
        if (!strcmp(argv[0], "--limit") && parse_number(argv[1], 3600000, &number) && number)
            limit_ms = (unsigned int)number;
        else if (!strcmp(argv[0], "--gpu"))
            gpu = argv[1];
        else if (!strcmp(argv[0], "--bytes") && parse_number(argv[1], UINT64_MAX, &number))
            bytes = number;
        else
            return NULL;
        argv += 2;
    }
    if (!argv[0])
        return NULL;
    return (strcmp(argv[0], "end") ? parse_pids(argv + 1) : end_parse(argv + 1)) ? argv[0] : NULL;
}

/* Exit status. */
static int end_processes(void)
{
    const char *error = end_all(limit_ms);

    return error ? print_failure("%s", error) + 1 : 0;
}

int main(int argc, char **argv)
{
    const char *verb = argc ? parse_verb(argv + 1) : NULL, *error;
    bool done = true;

    if (!verb || (strcmp(verb, "suspend") && strcmp(verb, "resume") && strcmp(verb, "state") &&
                  strcmp(verb, "end"))) {
        print_failure(
            "usage: vgpu-suspend [--limit MS] [--gpu ADDRESS] [--bytes N] suspend|resume|state "
            "PID...\n       vgpu-suspend [--limit MS] end PID:START...");
        return 2;
    }
    if (!strcmp(verb, "end"))
        return end_processes();
    error = driver_open(VGPU_REAL_DIR "/libcuda.so.1");
    if (!error && gpu && strcmp(verb, "state"))
        error = room_open(VGPU_REAL_DIR "/libnvidia-ml.so.1", gpu);
    if (error) {
        print_failure("%s", error);
        return 1;
    }
    if (!strcmp(verb, "suspend"))
        done = suspend_all();
    else if (!strcmp(verb, "resume"))
        done = resume_all();
    print_states();
    fflush(stdout);
    /* A call that has not ended would hold up exit(). */
    _Exit(done ? 0 : is_torn || driver_is_busy() ? 3 : 1);
}
