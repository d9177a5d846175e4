/* SPDX-License-Identifier: MIT */
/*
 * What a node asks of vgpud about its own state: which cards are well, and who has slices of them.
 * Like agent.h, it can be replaced in tests.
 */
#ifndef FLEET_SLURM_NODE_AGENT_WATCH_H
#define FLEET_SLURM_NODE_AGENT_WATCH_H

#include "fleet/slurm/node/agent.h"

/**
 * AgentHealth
 * @gpu: address
 * @broken: the card itself, so its jobs should leave it; else it may pass, or jobs' own engines
 * died
 * @why: sentences about a card that is not healthy; "": it is
 * @offenders: UUIDs of slices whose own engines die repeatedly
 */
typedef struct {
    char *gpu;
    gboolean healthy;
    gboolean broken;
    char *why;
    GStrv offenders;
} AgentHealth;

/**
 * AgentOwned - a slice that has an owner
 * @uuid: its own
 * @gpu: address
 * @since: when the owner got its first slice, seconds since 1970
 * @used: VRAM, bytes now
 */
typedef struct {
    char *uuid;
    char *owner;
    char *gpu;
    gint64 since;
    gboolean best_effort;
    guint64 used;
} AgentOwned;

/* All cards that vgpud shares, of AgentHealth. To be freed with g_ptr_array_unref(). */
AgentResult agent_list_health(GPtrArray **cards, char **why);

/* All slices with an owner, of AgentOwned. To be freed with g_ptr_array_unref(). */
AgentResult agent_list_owned(GPtrArray **slices, char **why);

/* For both, and for tests. */
void agent_health_free(void *health);
void agent_owned_free(void *owned);

#endif
