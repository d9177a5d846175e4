// SPDX-License-Identifier: MIT
/*
 * Unknown 1. NVIDIA's runtime has the driver prove that it is NVIDIA's, by a function of a table.
 * Its answer is the genuine driver's affair, and stays so: it is neither made nor printed here. Two
 * processes, both with the genuine driver and at the same addresses, ask it the same; the question
 * is whether the second one's answer is the first one's, if it is told the first one's pid and
 * thread.
 */
#include "spike.h"

#include <dlfcn.h>
#include <errno.h>
#include <linux/sched.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define VERSION 13000u

static const uint8_t integrity_id[16] = {0xd4, 0x08, 0x20, 0x55, 0xbd, 0xe6, 0x70, 0x4b,
                                         0x8d, 0x34, 0xba, 0x12, 0x3c, 0x66, 0xe1, 0xf2};
static const uint8_t interface_id[16] = {0x6b, 0xd5, 0xfb, 0x6c, 0x5b, 0xf4, 0xe7, 0x4a,
                                         0x89, 0x87, 0xd9, 0x39, 0x12, 0xfd, 0x9d, 0xf9};

/* What a process was asked as, and what it got. */
struct answer {
    pid_t pid;
    uint64_t thread, seconds;
    uintptr_t table, interface, function;
    uint32_t result;
    uint64_t value[2];
};

/* In whose name this thread's calls of the driver are made; 0: in its own. */
static _Thread_local pid_t named_pid;
static _Thread_local uint64_t named_thread;

/* The driver's calls come here: these are the program's own, and go before the C library's. */
__attribute__((visibility("default"))) pid_t getpid(void)
{
    return named_pid ? named_pid : (pid_t)syscall(SYS_getpid);
}

__attribute__((visibility("default"))) pthread_t pthread_self(void)
{
    static pthread_t (*real)(void);

    if (!real)
        real = (pthread_t(*)(void))dlsym(RTLD_NEXT, "pthread_self");
    return named_thread ? (pthread_t)named_thread : real();
}

static const uintptr_t *find_table(const uint8_t *id)
{
    const void *table = NULL;

    return DRIVER(cuGetExportTable, const void **, const void *)(&table, id) == CUDA_SUCCESS ? table
                                                                                             : NULL;
}

static void begin(void)
{
    card_load();
    spike_step("cuInit() runs");
    spike_need(DRIVER(cuInit, unsigned int)(0), "cuInit");
    if (!find_table(integrity_id))
        spike_verdict(VERDICT_NOT_ASKED, "the driver has no such table");
}

/* In this thread's name, whatever that is now. */
static struct answer ask_driver(uint64_t seconds)
{
    const uintptr_t *table = find_table(integrity_id);
    struct answer answer = {.pid = getpid(),
                            .thread = (uint64_t)pthread_self(),
                            .seconds = seconds,
                            .table = (uintptr_t)table,
                            .interface = (uintptr_t)find_table(interface_id),
                            .function = table[1]};

    answer.result = ((uint32_t (*)(unsigned int, uint64_t, uint64_t *))table[1])(VERSION, seconds,
                                                                                 answer.value);
    return answer;
}

static bool is_same(const struct answer *a, const struct answer *b)
{
    return a->result == b->result && a->value[0] == b->value[0] && a->value[1] == b->value[1];
}

/* The program's process: asks, says what it got, and lives until nobody compares any more. */
void integrity_answer(int fd)
{
    struct answer answers[2];
    char none;

    begin();
    answers[0] = ask_driver((uint64_t)time(NULL));
    answers[1] = ask_driver(answers[0].seconds);
    if (answers[0].result)
        spike_verdict(VERDICT_NOT_ASKED, "natively it answers with error %u", answers[0].result);
    if (!is_same(&answers[0], &answers[1]))
        spike_verdict(VERDICT_NO, "asked twice the same it gives different answers in one process");
    if (write(fd, answers, sizeof(answers[0])) != sizeof(answers[0]))
        _exit(1);
    _exit(read(fd, &none, 1) != 0);
}

/* Where the layout of a process cannot be asked for, both are forked from one that has loaded the
 * driver; what that has kept of itself while it was loaded they have in common then. */
static bool is_forked;

static struct answer wanted;

/* As the wanted process, on a thread that is not its. */
static void *ask_as_named(void *same)
{
    struct answer answer;

    named_pid = wanted.pid;
    named_thread = wanted.thread;
    answer = ask_driver(wanted.seconds);
    named_pid = 0;
    named_thread = 0;
    *(bool *)same = is_same(&answer, &wanted);
    return NULL;
}

static void *ask_as_itself(void *same)
{
    struct answer answer = ask_driver(wanted.seconds);

    *(bool *)same = is_same(&answer, &wanted);
    return NULL;
}

static bool ask_in_thread(void *(*ask)(void *))
{
    pthread_t thread;
    bool is_equal = false;

    if (pthread_create(&thread, NULL, ask, &is_equal) == 0)
        pthread_join(thread, NULL);
    return is_equal;
}

/* The worker's process: it has the answer that the program's got, and asks in the program's name.
 * Exits with 0 if none of its own ways gives the same, so that the next one can be tried. */
void integrity_compare(int fd)
{
    struct answer own;

    if (read(fd, &wanted, sizeof(wanted)) != sizeof(wanted))
        spike_verdict(VERDICT_NOT_ASKED, "the program's process ended");
    begin();
    spike_step("a second process asks");
    own = ask_driver(wanted.seconds);
    if (own.table != wanted.table || own.interface != wanted.interface ||
        own.function != wanted.function)
        spike_verdict(VERDICT_NOT_ASKED, "the driver lies at other addresses in a second process");
    if (own.pid == wanted.pid && is_same(&own, &wanted))
        spike_verdict(VERDICT_YES, "with the program's pid in a namespace of pids of the worker's; "
                                   "it does not ask getpid()");
    if (ask_in_thread(ask_as_itself))
        spike_verdict(VERDICT_YES, "its answer depends on neither pid nor thread%s",
                      is_forked ? ", or it took them when it was loaded, before the fork" : "");
    if (ask_in_thread(ask_as_named))
        spike_verdict(VERDICT_YES, "with getpid() and pthread_self() of the worker's executable");
    named_pid = wanted.pid;
    own = ask_driver(wanted.seconds);
    named_pid = 0;
    if (is_same(&own, &wanted))
        spike_verdict(VERDICT_YES, "with getpid() of the worker's executable, and a thread whose "
                                   "descriptor lies at the same address");
    _exit(0);
}

_Noreturn static void run_role(const char *role, void (*run)(int), int fd)
{
    if (!is_forked)
        spike_again(role, fd);
    run(fd);
    _exit(1);
}

static int start_role(const char *role, void (*run)(int), pid_t *pid)
{
    int ends[2];

    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) < 0 || (*pid = fork()) < 0)
        spike_verdict(VERDICT_NOT_ASKED, "cannot start a process: %s", strerror(errno));
    if (!*pid) {
        close(ends[0]);
        run_role(role, run, ends[1]);
    }
    close(ends[1]);
    return ends[0];
}

/* As the process @pid of a namespace of its own. It returns when that has ended. */
static bool compare_as(pid_t pid)
{
    pid_t set[] = {pid};
    struct clone_args arguments = {
        .exit_signal = SIGCHLD, .set_tid = (uintptr_t)set, .set_tid_size = 1};
    int ends[2], status = 0;
    pid_t inside;

    if ((unshare(CLONE_NEWPID) < 0 && unshare(CLONE_NEWUSER | CLONE_NEWPID) < 0) ||
        socketpair(AF_UNIX, SOCK_STREAM, 0, ends) < 0)
        return false;
    inside = fork();
    if (!inside) {
        pid_t worker = (pid_t)syscall(SYS_clone3, &arguments, sizeof(arguments));

        if (!worker)
            run_role("integrity-compare", integrity_compare, ends[1]);
        _exit(worker < 0 || waitpid(worker, &status, 0) != worker || status);
    }
    close(ends[1]);
    if (write(ends[0], &wanted, sizeof(wanted)) != sizeof(wanted))
        return false;
    return inside > 0 && waitpid(inside, &status, 0) == inside && !status;
}

void ask_integrity(void)
{
    int program, worker, status = 0;
    pid_t pid;

    /* The same addresses in each, as the common range gives them. */
    is_forked = spike_forks || personality(ADDR_NO_RANDOMIZE) < 0;
    if (is_forked)
        card_load();
    program = start_role("integrity-answer", integrity_answer, &pid);
    if (read(program, &wanted, sizeof(wanted)) != sizeof(wanted))
        _exit(0);
    worker = start_role("integrity-compare", integrity_compare, &pid);
    if (write(worker, &wanted, sizeof(wanted)) != sizeof(wanted))
        _exit(0);
    if (waitpid(pid, &status, 0) != pid || status)
        spike_verdict(VERDICT_NO, "a second process that asks ends with status %d", status);
    if (!compare_as(wanted.pid))
        spike_verdict(VERDICT_NO,
                      "its answer for the program's pid and thread is another one; a worker with "
                      "the same pid could not be tried: %s",
                      strerror(errno));
    spike_verdict(VERDICT_NO, "its answer for the program's pid and thread is another one, also "
                              "with the same pid in a namespace");
}
