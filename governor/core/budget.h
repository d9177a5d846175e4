/* SPDX-License-Identifier: MIT */
/*
 * A budget of constant bandwidth: GPU time that comes in at a rate, up to a depth, and may be
 * overdrawn. What is overdrawn is owed, so work that is longer than the budget is deep keeps to the
 * rate too.
 */
#ifndef GOVERNOR_BUDGET_H
#define GOVERNOR_BUDGET_H

#include <stdint.h>

/**
 * struct budget
 * @rate: GPU time per time, 0 to 1
 * @depth_ns: most that is saved up
 * @balance_ns: at @at_ns
 * @held_ns: to be spent by work that goes on: what comes in meanwhile pays for it, and isn't saved up
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

/* Another rate from now on; what is owed stays. */
void budget_set(struct budget *budget, double rate, double depth_ns, uint64_t now);

void budget_spend(struct budget *budget, double ns);

/* Work that will spend @ns in all goes on from now on. */
void budget_hold(struct budget *budget, double ns);

/* What there is at @now; below 0: owed. */
double budget_balance(struct budget *budget, uint64_t now);

/* When the balance will be @ns if nothing is spent; TIME_NEVER where it never will. */
uint64_t budget_when(struct budget *budget, double ns, uint64_t now);

#endif
