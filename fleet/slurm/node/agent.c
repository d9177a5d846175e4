/* SPDX-License-Identifier: MIT */
/*
 * vgpud, over D-Bus. It has no owners of slices yet, so every call says so; nothing else here knows
 * of D-Bus.
 */
#include "fleet/slurm/node/agent.h"

static AgentResult cannot(char **why)
{
    *why = g_strdup("this version of vgpud cannot make slices for jobs yet");
    return AGENT_AWAY;
}

AgentResult agent_create_slices(const char *owner, const AgentSlice *slices, guint count,
                                GPtrArray **doors, char **why)
{
    (void)owner;
    (void)slices;
    (void)count;
    *doors = NULL;
    return cannot(why);
}

AgentResult agent_release_owner(const char *owner, AgentTotals *totals, char **why)
{
    (void)owner;
    *totals = (AgentTotals){0};
    return cannot(why);
}

AgentResult agent_list_cards(GPtrArray **cards, char **why)
{
    *cards = NULL;
    return cannot(why);
}
