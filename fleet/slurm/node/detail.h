/* SPDX-License-Identifier: MIT */
/* What Slurm promised a job on one node, card by card. Pure, plain C. */
#ifndef FLEET_SLURM_NODE_DETAIL_H
#define FLEET_SLURM_NODE_DETAIL_H

#include "fleet/request/conf.h"

#define NODE_CARDS_MAX 64

/**
 * CardPromise
 * @index: Slurm's, of the card on its node
 * @model: Slurm's type of it; "": it has none
 * @shards: MiB; 0: the whole card
 * @tasks: how many of the job's tasks these are for; 0: none, and there is no slice
 */
typedef struct {
    unsigned index;
    char model[FLEET_NAME_MAX];
    uint32_t shards;
    unsigned tasks;
} CardPromise;

/*
 * Reads Slurm's words, such as "gpu:a100:2(IDX:0-1),shard:a100:300(0/81920,300/81920)", into @cards
 * (NODE_CARDS_MAX). How many cards; -1: not understood. @tasks is left 0.
 */
int detail_parse(const char *detail, CardPromise *cards);

/**
 * DetailCount - how slurmctld counts a job's slices
 * @per_task: shards of a task; 0: the job has whole cards
 * @whole_node: Slurm gave it all shards of the node, whatever it asked for: --exclusive, or a
 * partition with OverSubscribe=EXCLUSIVE
 */
typedef struct {
    uint32_t per_task;
    bool whole_node;
} DetailCount;

/*
 * Fills @tasks of each card in and checks that the text which travels with the job asks for no more
 * than Slurm counts. A job that has the node alone has place for as many tasks on each card as fit,
 * because Slurm may run any of its steps there. false: @error (FLEET_ERROR_MAX bytes) is a
 * sentence.
 */
bool detail_check(CardPromise *cards, unsigned count, const FleetRequest *request,
                  const DetailCount *counted, const FleetConf *conf, char *error);

#endif
