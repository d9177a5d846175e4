// SPDX-License-Identifier: MIT
#include "budget.h"

#include "clock.h"

/* Longer than any wait. */
#define MOST_NS 1e17

void budget_init(struct budget *budget, double rate, double depth_ns, uint64_t now)
{
    *budget =
        (struct budget){.rate = rate, .depth_ns = depth_ns, .balance_ns = depth_ns, .at_ns = now};
}

double budget_balance(struct budget *budget, uint64_t now)
{
    if (now > budget->at_ns) {
        budget->balance_ns += (double)(now - budget->at_ns) * budget->rate;
        budget->at_ns = now;
    }
    if (budget->balance_ns > budget->depth_ns + budget->held_ns)
        budget->balance_ns = budget->depth_ns + budget->held_ns;
    return budget->balance_ns;
}

void budget_set(struct budget *budget, double rate, double depth_ns, uint64_t now)
{
    budget_balance(budget, now);
    budget->rate = rate;
    budget->depth_ns = depth_ns;
}

void budget_spend(struct budget *budget, double ns)
{
    budget->balance_ns -= ns;
}

void budget_hold(struct budget *budget, double ns)
{
    budget->held_ns = ns;
}

uint64_t budget_when(struct budget *budget, double ns, uint64_t now)
{
    double missing = ns - budget_balance(budget, now);

    if (missing <= 0)
        return now;
    if (ns > budget->depth_ns || missing > budget->rate * MOST_NS)
        return TIME_NEVER;
    return now + (uint64_t)(missing / budget->rate) + 1;
}
