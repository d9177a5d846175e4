/* SPDX-License-Identifier: MIT */
/*
 * What a process in an engine's sandbox must not be able to do, one attempt each. Arguments are
 * such that nothing happens where an attempt gets through: what counts is how far it comes.
 */
#ifndef SANDBOX_ATTEMPTS_H
#define SANDBOX_ATTEMPTS_H

#include <stddef.h>

/* What the attempts are aimed at; the test writes it into a file that the sandbox lets through. */
struct targets {
    char vgpu[128];    /* node of another vGPU */
    char own[128];     /* node of this vGPU */
    char drm[128];     /* node of another GPU */
    char disk[128];    /* a VM's disk */
    long other_engine; /* process of another vGPU's engine */
    long peer;         /* process of the same user: this vGPU's engine */
};

/*
 * @run: 0 where it was done, else an errno. Each runs in a process of its own, which may end in the
 * middle: a signal counts as a refusal where it is SIGSYS.
 */
struct attempt {
    const char *what;
    int (*run)(const struct targets *targets);
};

extern const struct attempt attempts[];
extern const size_t num_attempts;

#endif /* SANDBOX_ATTEMPTS_H */
