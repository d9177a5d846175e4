/* SPDX-License-Identifier: MIT */
/*
 * Two programs, each with the client's case "fill", in two slices of one card: how much of the work
 * that has ended is whose. Nothing else should run beside such a test.
 */
#ifndef TESTS_CUDA_REMOTE_SHARES_H
#define TESTS_CUDA_REMOTE_SHARES_H

/* @outputs: of the two. */
void shares_begin(const int outputs[2]);

/*
 * The first program's part, per cent: in most of some times that follow each other, for a program
 * that gets no processor for a while has no work for the card. @all: of all these times together.
 */
double shares_measure(double *all);

#endif
