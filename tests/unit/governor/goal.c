// SPDX-License-Identifier: MIT
#include "goal.h"

#include <glib.h>
#include <stdbool.h>

void goal_say_head(void)
{
    g_test_message("| goal | wanted | reached |");
    g_test_message("| --- | --- | --- |");
}

void goal_check(const char *what, double value, struct goal goal)
{
    bool holds = value >= goal.least && value <= goal.most;
    g_autofree char *wanted = isinf(goal.most) ? g_strdup_printf("%.3f or more", goal.least)
                              : goal.least ? g_strdup_printf("%.3f to %.3f", goal.least, goal.most)
                                           : g_strdup_printf("%.2f or less", goal.most);

    g_test_message("| %s | %s | %.4f%s |", what, wanted, value, holds ? "" : ", missed");
    g_assert_true(holds || value <= goal.missed);
}
