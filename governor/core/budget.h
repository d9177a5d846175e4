/* SPDX-License-Identifier: MIT */
/*
 * A constant-bandwidth budget: GPU time is added at a rate, up to a depth, and may be overdrawn.
 * The overdraft is owed, so work that is longer than the depth keeps to the rate, too.
 */
#ifndef GOVERNOR_BUDGET_H
#define GOVERNOR_BUDGET_H

#include <stdint.h>

/**
 * struct budget
 * @rate: GPU time per time, 0 to 1
 * @depth_ns: maximum that can accumulate
 * @balance_ns: the balance at @at_ns
 * @held_ns: reserved for running work: added time pays for it and does not accumulate
 */
struct budget {
    double rate;
    double depth_ns;
    double balance_ns;
    double held_ns;
    uint64_t at_ns;
};

/* Starts with a full budget. */
void budget_init(struct budget *budget, double rate, double depth_ns, uint64_t now);

/* Sets another rate from now on; the debt stays. */
void budget_set(struct budget *budget, double rate, double depth_ns, uint64_t now);

void budget_spend(struct budget *budget, double ns);

/* Running work will spend @ns in all. */
void budget_hold(struct budget *budget, double ns);

/* The balance at @now; below 0: debt. */
double budget_balance(struct budget *budget, uint64_t now);

/* When the balance will be @ns if nothing is spent; TIME_NEVER if never. */
uint64_t budget_when(struct budget *budget, double ns, uint64_t now);

#endif
