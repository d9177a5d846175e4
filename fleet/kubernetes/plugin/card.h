/* SPDX-License-Identifier: MIT */
/* A card that is cut into seats. */
#ifndef KUBERNETES_PLUGIN_CARD_H
#define KUBERNETES_PLUGIN_CARD_H

#include "fleet/kubernetes/agent.h"
#include "fleet/kubernetes/conf.h"

/**
 * Card
 * @name: of its device, "gpu-0000-41-00-0"
 * @seats: how it is cut
 * @door: of its seats: that of @seats, or one that was the default before
 * @is_there: vgpud has it for us, and it does not drain; else its seats are given back when they
 *are free, because vgpud lets no card go while somebody owns a slice of it
 * @is_back: they are given back
 * @is_cut: vgpud has made its seats
 * @is_other: what vgpud has was cut by another configuration, and is given back first
 * @is_busy: a call of vgpud is under way
 * @is_healthy: the card; its seats are only if @is_there and @is_cut, too
 */
typedef struct {
    char *name;
    char *address;
    const Seats *seats;
    const char *door;
    gint numa;
    gboolean is_there;
    gboolean is_back;
    gboolean is_cut;
    gboolean is_other;
    gboolean is_busy;
    gboolean is_healthy;
    char *said;
} Card;

Card *card_new(const AgentGpu *gpu, const Seats *seats);
void card_free(Card *card);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Card, card_free)

/* TRUE: what the kubelet is told changes. @gpu: NULL: vgpud has it no more. */
gboolean card_set(Card *card, const AgentGpu *gpu);

gboolean card_is_usable(const Card *card);

/* In vgpud; to be freed. */
char *card_owner(const Card *card);

/* All of its seats, of AgentSlice, in their order; to be freed. */
GPtrArray *card_slices(const Card *card, const char *tenant);

/**
 * Held - what vgpud has of an owner
 * @count: of slices
 * @is_used: a container has one; without CDI nobody tells
 * @is_other: one is none of the seats
 */
typedef struct {
    guint count;
    gboolean is_used;
    gboolean is_other;
} Held;

/* @owned: as of agent_list(). @seats: how many it should have, with the numbers from 0. */
Held card_held(const GPtrArray *owned, const char *owner, guint seats);

/* Why seats of @owner that should be given back are not; NULL: they may be. To be freed. */
char *card_kept_for(const Held *held, const KubeConf *conf, const char *owner);

/* Says @problem in the log, unless it was said last; NULL: there is none. */
void card_say(Card *card, const char *problem);

#endif
