/* SPDX-License-Identifier: MIT */
/*
 * What a node's part of a cluster asks of vgpud: all of it, so that it can be replaced in tests. An
 * owner's slices are told apart by their part; the same call again gives the same slices, so a
 * caller that was killed calls again.
 */
#ifndef FLEET_SLURM_NODE_AGENT_H
#define FLEET_SLURM_NODE_AGENT_H

#include <glib.h>

#include "fleet/request/request.h"

typedef enum {
    AGENT_OK,
    AGENT_NO_ROOM,   /* the ledger has less than was asked for */
    AGENT_LENT,      /* no room now: memory is lent to others, or best effort gives way */
    AGENT_REFUSED,   /* this request will never be granted here, or the tenant has its quota */
    AGENT_UNHEALTHY, /* the card, by vgpud */
    AGENT_FAILED,    /* vgpud and the card are well, and it still cannot be done */
    AGENT_AWAY,      /* vgpud does not answer */
} AgentResult;

/**
 * AgentSlice - of one card
 * @part: which of the owner's slices on this host: Slurm's index of the card
 * @gpu: its PCI address
 * @tasks: as many times as the request's size and share are promised
 * @request: size in MiB, or full; class and door are given
 * @tenant: "": none
 * @uid: who may use it
 */
typedef struct {
    guint part;
    const char *gpu;
    guint tasks;
    const FleetRequest *request;
    const char *tenant;
    guint uid;
} AgentSlice;

/* What the owner used, summed over its slices. */
typedef struct {
    gdouble gpu_seconds;
    gdouble waited_seconds;
    gdouble throttled_seconds;
    guint64 vram_peak; /* bytes */
    gdouble joules;
} AgentTotals;

/**
 * AgentCard - a card that vgpud divides
 * @promisable: MiB that may be promised to classes other than guaranteed: overcommit= of gpus.conf
 * @model: stable, the same on every host: "a100-80g"
 * @nodes: its device nodes, the render node last
 * @cpus: near it, as Slurm writes cores: "0-31"; "": all
 * @links: to the cards in the order of the list, 0 (far) to 4 (near), more by NVLink, -1 for
 * itself: "-1,4"
 */
typedef struct {
    char *gpu;
    char *model;
    guint vram; /* MiB */
    guint64 promisable;
    GStrv nodes;
    char *cpus;
    char *links;
} AgentCard;
void agent_card_free(void *card);

/*
 * Makes all @count slices, or none. @doors gets for each a GStrv of NAME=VALUE, what a program
 * needs to use it; to be freed with g_ptr_array_unref(). @why: a sentence if the result is not
 * AGENT_OK; to be freed.
 */
AgentResult agent_create_slices(const char *owner, const AgentSlice *slices, guint count,
                                GPtrArray **doors, char **why);

/*
 * Waits until the slices of @doors have the sockets of their guards, a minute at most: else a job's
 * program that is quicker than systemd finds no GPU.
 */
AgentResult agent_wait_for_guards(const GPtrArray *doors, char **why);

/* Removes all slices of the owner, used or not. One that has none is no error; its totals are 0. */
AgentResult agent_release_owner(const char *owner, AgentTotals *totals, char **why);

/* The cards of the pool that is Slurm's, of AgentCard, in the order of their addresses. */
AgentResult agent_list_cards(GPtrArray **cards, char **why);

#endif
