/* SPDX-License-Identifier: MIT */
#include "job.h"
#include "constants.h"

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define JOB_UNWRITTEN 0xa5a5a5a5u

const char *const job_kernel_name[JOB_NUM_KERNELS] = {
    [JOB_MADD] = "madd",
    [JOB_GATHER] = "gather",
};

static struct timespec started;
static char watchdog_message[160];

static _Noreturn void end_job(const struct job *job, enum job_end how, const char *format,
                              va_list args)
{
    fflush(stdout);
    fprintf(stderr, "%s: FAIL: ", job->program);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    /* Not exit(): a driver that has lost its device may hang in its exit handlers. */
    _exit(how);
}

void job_fail(const struct job *job, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    end_job(job, JOB_FAILED, format, args);
}

static _Noreturn void refuse_usage(const struct job *job, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static _Noreturn void refuse_usage(const struct job *job, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    end_job(job, JOB_USAGE, format, args);
}

static _Noreturn void end_wrong(const struct job *job, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static _Noreturn void end_wrong(const struct job *job, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    end_job(job, JOB_WRONG, format, args);
}

static uint64_t parse_number(const struct job *job, const char *option, const char *text,
                             uint64_t min, uint64_t max)
{
    char *end;

    errno = 0;
    unsigned long long value = strtoull(text, &end, 0);

    if (errno || end == text || *end || *text == '-' || value < min || value > max)
        refuse_usage(job, "--%s: '%s' is not a number from %llu to %llu", option, text,
                     (unsigned long long)min, (unsigned long long)max);
    return value;
}

static _Noreturn void print_help(const struct job *job)
{
    printf("Usage: %s [OPTION]...\n"
           "Computes on the GPU and checks every element against the CPU.\n\n"
           "  --device-name TEXT  the device whose name contains TEXT (default: the first)\n"
           "  --size N            elements per buffer, a power of two (default 262144)\n"
           "  --iterations N      multiply-adds per element (default 1024)\n"
           "  --rounds N          rounds, each with data of its own (default 3)\n"
           "  --forever           rounds without end, a line for each\n"
           "  --fresh             open the device anew for each round\n"
           "  --seed N            makes the data of two jobs differ (default 1)\n"
           "  --timeout N         seconds that a round may take (default 240)\n"
           "  --pause N           milliseconds to rest after each round (default 0)\n\n"
           "Exit status: 0 if everything was right, 1 if a call failed, 2 for a wrong option,\n"
           "3 for wrong data, 4 if a round did not end in time.\n",
           job->program);
    exit(0);
}

enum {
    OPT_DEVICE = 1,
    OPT_SIZE,
    OPT_ITERATIONS,
    OPT_ROUNDS,
    OPT_FOREVER,
    OPT_FRESH,
    OPT_SEED,
    OPT_TIMEOUT,
    OPT_PAUSE,
    OPT_HELP
};

static const struct option options[] = {
    {"device-name", required_argument, NULL, OPT_DEVICE},
    {"size", required_argument, NULL, OPT_SIZE},
    {"iterations", required_argument, NULL, OPT_ITERATIONS},
    {"rounds", required_argument, NULL, OPT_ROUNDS},
    {"forever", no_argument, NULL, OPT_FOREVER},
    {"fresh", no_argument, NULL, OPT_FRESH},
    {"seed", required_argument, NULL, OPT_SEED},
    {"timeout", required_argument, NULL, OPT_TIMEOUT},
    {"pause", required_argument, NULL, OPT_PAUSE},
    {"help", no_argument, NULL, OPT_HELP},
    {NULL, 0, NULL, 0},
};

static void set_option(struct job *job, int opt)
{
    switch (opt) {
    case OPT_DEVICE:
        job->device_name = optarg;
        break;
    case OPT_SIZE:
        job->size = (uint32_t)parse_number(job, "size", optarg, 256, 1u << 28);
        if (job->size & (job->size - 1))
            refuse_usage(job, "--size: %u is not a power of two", job->size);
        break;
    case OPT_ITERATIONS:
        job->iterations = (uint32_t)parse_number(job, "iterations", optarg, 1, 1u << 24);
        break;
    case OPT_ROUNDS:
        job->rounds = parse_number(job, "rounds", optarg, 1, UINT32_MAX);
        break;
    case OPT_FOREVER:
        job->rounds = 0;
        break;
    case OPT_FRESH:
        job->fresh = true;
        break;
    case OPT_SEED:
        job->seed = (uint32_t)parse_number(job, "seed", optarg, 0, UINT32_MAX);
        break;
    case OPT_TIMEOUT:
        job->timeout = (unsigned)parse_number(job, "timeout", optarg, 1, 86400);
        break;
    case OPT_PAUSE:
        job->pause = (unsigned)parse_number(job, "pause", optarg, 0, 3600000);
        break;
    case OPT_HELP:
        print_help(job);
    default:
        refuse_usage(job, "wrong option; --help lists them");
    }
}

void job_parse(struct job *job, int argc, char **argv)
{
    const char *slash = strrchr(argv[0], '/');
    int opt;

    *job = (struct job){
        .program = slash ? slash + 1 : argv[0],
        .size = 1u << 18,
        .iterations = 1024,
        .rounds = 3,
        .seed = 1,
        .timeout = 240,
    };
    while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1)
        set_option(job, opt);
    if (optind != argc)
        refuse_usage(job, "'%s' is not an option; --help lists them", argv[optind]);
    setvbuf(stdout, NULL, _IOLBF, 0);
}

bool job_wants_device(const struct job *job, const char *name)
{
    return !job->device_name || strstr(name, job->device_name);
}

static uint32_t mix_bits(uint32_t x)
{
    x ^= x >> 16;
    x *= 0x7feb352du;
    x ^= x >> 15;
    x *= 0x846ca68bu;
    return x ^ (x >> 16);
}

static uint32_t round_key(const struct job *job, uint64_t round)
{
    return mix_bits(mix_bits(job->seed) + (uint32_t)round * 2u + 1u);
}

static uint32_t input_element(uint32_t key, uint32_t i)
{
    return mix_bits(key ^ (i * 0x9e3779b9u));
}

struct job_params job_params(const struct job *job, uint64_t round)
{
    return (struct job_params){
        .size = job->size,
        .iterations = job->iterations,
        .offset = round_key(job, round) & (job->size - 1),
    };
}

void job_fill_input(const struct job *job, uint64_t round, uint32_t *in)
{
    uint32_t key = round_key(job, round);

    for (uint32_t i = 0; i < job->size; i++)
        in[i] = input_element(key, i);
}

void job_fill_output(const struct job *job, uint32_t *out)
{
    for (uint32_t i = 0; i < job->size; i++)
        out[i] = JOB_UNWRITTEN;
}

uint32_t *job_alloc(const struct job *job)
{
    uint32_t *elements = malloc(job->size * sizeof(*elements));

    if (!elements)
        job_fail(job, "no memory for %u elements", job->size);
    return elements;
}

/* Composes x -> x * A + C with itself n times. */
static void madd_power(uint32_t n, uint32_t *mul, uint32_t *add)
{
    uint32_t step_mul = MADD_MUL, step_add = MADD_ADD;

    *mul = 1;
    *add = 0;
    for (; n; n >>= 1) {
        if (n & 1) {
            *mul *= step_mul;
            *add = *add * step_mul + step_add;
        }
        step_add = step_add * step_mul + step_add;
        step_mul *= step_mul;
    }
}

static _Noreturn void wrong_value(const struct job *job, uint64_t round, enum job_kernel kernel,
                                  uint32_t i, uint32_t got, uint32_t expected)
{
    const char *what = "";

    if (got == 0)
        what = " (a zeroed page?)";
    else if (got == UINT32_MAX)
        what = " (a poisoned page?)";
    else if (got == JOB_UNWRITTEN)
        what = " (never written)";
    end_wrong(job, "round %llu: %s: element %u is 0x%08x, the CPU says 0x%08x%s",
              (unsigned long long)round + 1, job_kernel_name[kernel], i, got, expected, what);
}

void job_verify(const struct job *job, uint64_t round, enum job_kernel kernel, const uint32_t *out)
{
    struct job_params params = job_params(job, round);
    uint32_t key = round_key(job, round), mask = job->size - 1, mul, add;

    madd_power(params.iterations, &mul, &add);
    for (uint32_t i = 0; i < job->size; i++) {
        uint32_t got = out[i], expected;

        if (kernel == JOB_MADD)
            expected = input_element(key, i) * mul + add;
        else
            expected =
                input_element(key, (i * GATHER_STRIDE + params.offset) & mask) ^ (i * GATHER_SALT);
        if (got != expected)
            wrong_value(job, round, kernel, i, got, expected);
    }
}

static void on_alarm(int sig)
{
    (void)sig;
    ssize_t done = write(STDERR_FILENO, watchdog_message, strlen(watchdog_message));
    (void)done;
    _exit(JOB_HUNG);
}

void job_start_clock(const struct job *job)
{
    if (!watchdog_message[0]) {
        snprintf(watchdog_message, sizeof(watchdog_message),
                 "%s: FAIL: hung: the round did not end within %u s\n", job->program, job->timeout);
        signal(SIGALRM, on_alarm);
    }
    alarm(job->timeout);
    clock_gettime(CLOCK_MONOTONIC, &started);
}

void job_report_round(const struct job *job, uint64_t round, const char *device)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    double seconds =
        (double)(now.tv_sec - started.tv_sec) + (double)(now.tv_nsec - started.tv_nsec) / 1e9;
    printf("OK round %llu: %u elements, madd and gather right, %.3f s, %s\n",
           (unsigned long long)round + 1, job->size, seconds, device);
    if (job->pause) {
        struct timespec pause = {job->pause / 1000, job->pause % 1000 * 1000000L};

        nanosleep(&pause, NULL);
    }
}

void job_report_end(const struct job *job, const char *device)
{
    printf("OK %s: %llu rounds of %u elements verified on %s\n", job->program,
           (unsigned long long)job->rounds, job->size, device);
}

bool job_continues(const struct job *job, uint64_t round)
{
    return !job->rounds || round < job->rounds;
}
