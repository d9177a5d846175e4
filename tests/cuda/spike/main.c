// SPDX-License-Identifier: MIT
/* spike [--driver DIR] [--libraries DIR:DIR] [--seconds N] [--forks] [NAME...]: all questions, or
 * these. */
#include "spike.h"

#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Numbers are those of the design's list of unknowns. */
static const struct question {
    unsigned int number;
    const char *name, *text;
    void (*ask)(void);
} questions[] = {
    {1, "integrity", "the genuine driver answers for another process's pid, thread and addresses",
     ask_integrity},
    {2, "painting", "the driver runs where only addresses of our choice are free", ask_painting},
    {4, "tables", "cuFFT and cuBLAS call only slots that the library serves", ask_tables},
    {5, "runtimes", "NVIDIA's runtimes ask for known tables and slots only", ask_runtimes},
    {6, "pinned", "memory of a memfd that is registered has one address on both sides", ask_pinned},
    {7, "host-memory", "one process keeps its GPU out of its own memory", ask_host_memory},
    {9, "confined", "the driver works in the worker's sandbox", ask_confined},
};

static const struct {
    const char *name;
    void (*run)(int fd);
} roles[] = {
    {"integrity-answer", integrity_answer},
    {"integrity-compare", integrity_compare},
    {"host-memory-attribute", host_memory_attribute},
};

const char *spike_libraries;
bool spike_forks;
enum verdict spike_failure = VERDICT_NOT_ASKED;
static int seconds = 30;
static int report_fd = -1;

static void send_line(const char *kind, const char *format, va_list list)
{
    char text[1024], line[1100];
    int length;

    vsnprintf(text, sizeof(text), format, list);
    for (char *at = text; *at; at++)
        if (*at == '\n')
            *at = ' ';
    length = snprintf(line, sizeof(line), "%s\t%s\n", kind, text);
    if (report_fd >= 0 && write(report_fd, line, (size_t)length) < 0)
        _exit(1);
}

void spike_step(const char *format, ...)
{
    va_list list;

    va_start(list, format);
    send_line("step", format, list);
    va_end(list);
}

void spike_verdict(enum verdict verdict, const char *format, ...)
{
    static const char *const names[] = {"no", "yes", "not asked"};
    va_list list;

    va_start(list, format);
    send_line(names[verdict], format, list);
    va_end(list);
    _exit(0);
}

void spike_need(CUresult result, const char *what)
{
    if (result != CUDA_SUCCESS)
        spike_verdict(spike_failure, "%s: error %d", what, (int)result);
}

void spike_again(const char *role, int fd)
{
    char number[16], report[16];

    snprintf(number, sizeof(number), "%d", fd);
    snprintf(report, sizeof(report), "%d", report_fd);
    execl("/proc/self/exe", "spike", "--role", role, "--fd", number, "--report", report, NULL);
    spike_verdict(VERDICT_NOT_ASKED, "cannot start this program again: %s", strerror(errno));
}

/* What a question's process has said so far. */
struct said {
    char buffer[4096], step[1024], verdict[16], text[1024];
    size_t filled;
};

static void take_lines(struct said *said)
{
    char *end, *tab;

    while ((end = memchr(said->buffer, '\n', said->filled))) {
        *end = '\0';
        tab = strchr(said->buffer, '\t');
        if (tab) {
            bool is_step = !strncmp(said->buffer, "step", 4);

            *tab = '\0';
            if (is_step) {
                snprintf(said->step, sizeof(said->step), "%s", tab + 1);
            } else if (!*said->verdict) {
                /* The first one: a process that has no more to ask may give another. */
                snprintf(said->verdict, sizeof(said->verdict), "%.15s", said->buffer);
                snprintf(said->text, sizeof(said->text), "%s", tab + 1);
            }
        }
        said->filled -= (size_t)(end + 1 - said->buffer);
        memmove(said->buffer, end + 1, said->filled);
    }
}

static int ms_until(time_t end)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec >= end ? 0 : (int)(end - now.tv_sec) * 1000;
}

/* False: its time was over. */
static bool listen_to(int fd, struct said *said)
{
    struct pollfd poll_for = {.fd = fd, .events = POLLIN};
    struct timespec now;
    time_t end;

    clock_gettime(CLOCK_MONOTONIC, &now);
    end = now.tv_sec + seconds;
    while (poll(&poll_for, 1, ms_until(end)) > 0) {
        ssize_t got = read(fd, said->buffer + said->filled, sizeof(said->buffer) - said->filled);

        if (got <= 0)
            return true;
        said->filled += (size_t)got;
        take_lines(said);
        if (*said->verdict)
            return true;
    }
    return false;
}

/* A process group of its own, of which nothing stays. */
static void run_question(const struct question *question)
{
    struct said said = {.filled = 0};
    bool is_in_time;
    int ends[2], status = 0;
    pid_t pid;

    if (pipe(ends) < 0 || (pid = fork()) < 0) {
        printf("%u %s: %s: not asked, %s\n", question->number, question->name, question->text,
               strerror(errno));
        return;
    }
    if (!pid) {
        setpgid(0, 0);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(ends[0]);
        report_fd = ends[1];
        spike_step("it starts");
        question->ask();
        _exit(1);
    }
    setpgid(pid, pid);
    close(ends[1]);
    is_in_time = listen_to(ends[0], &said);
    close(ends[0]);
    if (!is_in_time)
        kill(-pid, SIGKILL);
    waitpid(pid, &status, 0);
    kill(-pid, SIGKILL);
    printf("%u %s: %s: ", question->number, question->name, question->text);
    if (*said.verdict)
        printf("%s, %s\n", said.verdict, said.text);
    else if (!is_in_time)
        printf("no, nothing was said for %d s while %s\n", seconds, said.step);
    else if (WIFSIGNALED(status))
        printf("no, it ended by signal %d while %s\n", WTERMSIG(status), said.step);
    else
        printf("no, it ended while %s\n", said.step);
    fflush(stdout);
}

static bool is_wanted(const char *name, char **names)
{
    if (!*names)
        return true;
    for (; *names; names++)
        if (!strcmp(name, *names))
            return true;
    return false;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"driver", required_argument, NULL, 'd'},  {"libraries", required_argument, NULL, 'l'},
        {"seconds", required_argument, NULL, 's'}, {"forks", no_argument, NULL, 'k'},
        {"role", required_argument, NULL, 'r'},    {"fd", required_argument, NULL, 'f'},
        {"report", required_argument, NULL, 'p'},  {0}};
    const char *role = NULL;
    int fd = -1, option;

    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (option == 'd')
            setenv("SPIKE_DRIVER", optarg, 1);
        else if (option == 'l')
            setenv("SPIKE_LIBRARIES", optarg, 1);
        else if (option == 's')
            seconds = atoi(optarg);
        else if (option == 'k')
            spike_forks = true;
        else if (option == 'r')
            role = optarg;
        else if (option == 'f')
            fd = atoi(optarg);
        else if (option == 'p')
            report_fd = atoi(optarg);
        else
            return 2;
    }
    spike_libraries = getenv("SPIKE_LIBRARIES");
    for (size_t i = 0; role && i < sizeof(roles) / sizeof(roles[0]); i++)
        if (!strcmp(roles[i].name, role))
            roles[i].run(fd);
    if (role)
        return 2;
    for (size_t i = 0; i < sizeof(questions) / sizeof(questions[0]); i++)
        if (is_wanted(questions[i].name, argv + optind))
            run_question(&questions[i]);
    return 0;
}
