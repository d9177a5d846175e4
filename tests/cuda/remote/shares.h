/* SPDX-License-Identifier: MIT */
/*
 * Two programs, each with the client's case "fill", in two slices of one card: how much of the work
 * that has ended is whose. Nothing else should run beside such a test.
 */
#ifndef TESTS_CUDA_REMOTE_SHARES_H
#define TESTS_CUDA_REMOTE_SHARES_H

#include <stdbool.h>

/*
 * Before anything is started: this program and its children have a processor before all others of
 * the machine, if that is allowed. With a share of the processors they would lose shares of the
 * card: 34 % in place of 30 % were seen with ten programs that wanted two processors.
 */
void shares_run_first(void);

/*
 * Whether the first program's part of 300 lines is @expected per cent, within 1; if it cannot run
 * first, in most parts of the time, within 8. @outputs: of the two.
 */
bool shares_are(const int outputs[2], double expected);

#endif
