/* SPDX-License-Identifier: MIT */
/*
 * Proves that the check of vk-compute and cl-compute finds wrong data: what a lost GPU, a poisoned
 * page or a forgotten copy leaves behind must never count as right.
 */
#include "job.h"
#include "constants.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define SIZE 4096u

static uint32_t in[SIZE], out[SIZE];
static int tests, failures;

static void print_point(int good, const char *what)
{
    tests++;
    failures += !good;
    printf("%sok %d - %s\n", good ? "" : "not ", tests, what);
}

/* The kernels, step by step. */
static void compute_result(const struct job *job, uint64_t round, enum job_kernel kernel)
{
    struct job_params params = job_params(job, round);

    job_fill_input(job, round, in);
    for (uint32_t i = 0; i < params.size; i++) {
        uint32_t x = in[i];

        if (kernel == JOB_MADD)
            for (uint32_t n = 0; n < params.iterations; n++)
                x = x * MADD_MUL + MADD_ADD;
        else
            x = in[(i * GATHER_STRIDE + params.offset) & (params.size - 1)] ^ (i * GATHER_SALT);
        out[i] = x;
    }
}

/* job_verify() ends the process where it finds something: give it one of its own. */
static int status_of_verdict(const struct job *job, uint64_t round, enum job_kernel kernel)
{
    int status;

    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        if (!freopen("/dev/null", "w", stderr))
            _exit(2);
        job_verify(job, round, kernel, out);
        _exit(0);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
        exit(2);
    return WEXITSTATUS(status);
}

static void test_kernel(const struct job *job, enum job_kernel kernel)
{
    const char *name = job_kernel_name[kernel];
    struct job other = *job;
    char what[80];

    compute_result(job, 5, kernel);
    snprintf(what, sizeof(what), "%s: what the kernel computes is right", name);
    print_point(status_of_verdict(job, 5, kernel) == 0, what);
    snprintf(what, sizeof(what), "%s: the data of another round is wrong", name);
    print_point(status_of_verdict(job, 6, kernel) == JOB_WRONG, what);
    other.seed++;
    snprintf(what, sizeof(what), "%s: the data of another job is wrong", name);
    print_point(status_of_verdict(&other, 5, kernel) == JOB_WRONG, what);

    out[SIZE - 1] ^= 1;
    snprintf(what, sizeof(what), "%s: one wrong bit in the last element is found", name);
    print_point(status_of_verdict(job, 5, kernel) == JOB_WRONG, what);
    out[SIZE - 1] ^= 1;

    memset(out + 1024, 0, 4096);
    snprintf(what, sizeof(what), "%s: a page of zeros is found", name);
    print_point(status_of_verdict(job, 5, kernel) == JOB_WRONG, what);
    compute_result(job, 5, kernel);
    memset(out + 1024, 0xff, 4096);
    snprintf(what, sizeof(what), "%s: a page of 0xff is found", name);
    print_point(status_of_verdict(job, 5, kernel) == JOB_WRONG, what);
    job_fill_output(job, out);
    snprintf(what, sizeof(what), "%s: a buffer that was never written is found", name);
    print_point(status_of_verdict(job, 5, kernel) == JOB_WRONG, what);
}

int main(void)
{
    struct job job = {.program = "job-test", .size = SIZE, .iterations = 1000, .seed = 7};

    for (int i = 0; i < JOB_NUM_KERNELS; i++)
        test_kernel(&job, (enum job_kernel)i);
    printf("1..%d\n", tests);
    return failures ? 1 : 0;
}
