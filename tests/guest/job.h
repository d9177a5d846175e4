/* SPDX-License-Identifier: MIT */
/*
 * What vk-compute and cl-compute have in common: the command line, the data, the check of every
 * element against the CPU, and a watchdog. Plain C, no library: it runs in a stock guest.
 *
 * Two kernels run in each round, on data that differs from round to round:
 *
 *   madd	out[i] = x * A + C, iterated; heavy arithmetic. The GPU does every step; the CPU
 *		knows where n steps lead (A^n and its sum), so that checking is cheap.
 *   gather	out[i] = in[permuted i] ^ (i * K); bound by memory.
 *
 * The expected values are pseudo-random, so a page of zeros, of 0xff, or of the round before is
 * found out at its first element.
 *
 * Everything that goes wrong ends the process with a status of enum job_end and one line on stderr,
 *so that an error, wrong data and a hang can be told apart.
 */
#ifndef GUEST_JOB_H
#define GUEST_JOB_H

#include <stdbool.h>
#include <stdint.h>

/**
 * struct job - the command line
 * @program: for messages
 * @device_name: part of the name of the device to use; NULL: the first
 * @size: elements (32 bits each) per buffer, a power of two
 * @iterations: multiply-adds per element
 * @rounds: how many; 0: forever
 * @seed: makes the data of two jobs differ
 * @timeout: seconds that one round may take
 * @pause: milliseconds after each round
 * @fresh: open the device anew in each round
 */
struct job {
    const char *program;
    const char *device_name;
    uint32_t size;
    uint32_t iterations;
    uint64_t rounds;
    uint32_t seed;
    unsigned timeout;
    unsigned pause;
    bool fresh;
};

/* The kernels' parameters; the layout is that of the shaders' push constants. */
struct job_params {
    uint32_t size;
    uint32_t iterations;
    uint32_t offset;
};

enum job_end {
    JOB_FAILED = 1, /* a call returned an error */
    JOB_USAGE = 2,
    JOB_WRONG = 3, /* the GPU's results are not the CPU's */
    JOB_HUNG = 4,  /* a round did not end within its time */
};

enum job_kernel { JOB_MADD, JOB_GATHER, JOB_NUM_KERNELS };

extern const char *const job_kernel_name[JOB_NUM_KERNELS];

/* Reads the command line; --help and errors end the process. */
void job_parse(struct job *job, int argc, char **argv);

/* Whether @name is the requested device. */
bool job_wants_device(const struct job *job, const char *name);

/* The parameters of round @round, counted from 0. */
struct job_params job_params(const struct job *job, uint64_t round);

/* Fills @in with the data of the round, and @out with values that no kernel produces. */
void job_fill_input(const struct job *job, uint64_t round, uint32_t *in);
void job_fill_output(const struct job *job, uint32_t *out);

/* Memory for the elements of a round, for free(); if there is none the process ends. */
uint32_t *job_alloc(const struct job *job);

/* Compares all elements; the first wrong one ends the process. */
void job_verify(const struct job *job, uint64_t round, enum job_kernel kernel, const uint32_t *out);

/* Starts the clock of a round; if it runs out, the process ends. */
void job_start_clock(const struct job *job);

/* One line for a verified round, and the last one for the whole job. */
void job_report_round(const struct job *job, uint64_t round, const char *device);
void job_report_end(const struct job *job, const char *device);

/* Whether there is a round @round to do. */
bool job_continues(const struct job *job, uint64_t round);

/* Ends the process with JOB_FAILED. */
_Noreturn void job_fail(const struct job *job, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif /* GUEST_JOB_H */
