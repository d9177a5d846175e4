/* SPDX-License-Identifier: MIT */
/* What Slurm promised a job on one node, card by card. Pure, plain C. */
#ifndef FLEET_SLURM_NODE_DETAIL_H
#define FLEET_SLURM_NODE_DETAIL_H

#include "fleet/request/conf.h"

#define NODE_MAX_CARDS 64

/**
 * CardPromise
 * @index: Slurm's, of the card on its node
 * @shards: MiB; 0: the whole card
 * @tasks: how many of the job's tasks these are for
 */
typedef struct {
    unsigned index;
    uint32_t shards;
    unsigned tasks;
} CardPromise;

/*
 * Reads Slurm's words, such as "gpu:a100:2(IDX:0-1),shard:a100:300(0/81920,300/81920)", into @cards
 * (NODE_MAX_CARDS). How many cards; -1: not understood. @tasks is left 0.
 */
int detail_parse(const char *detail, CardPromise *cards);

/*
 * Fills @tasks in and checks that the text which travels with the job asks for no more than Slurm
 * counts. @per_task: shards of a task, by slurmctld; 0: the job has whole cards. false: @error
 * (FLEET_ERROR_MAX bytes) is a sentence.
 */
bool detail_check(CardPromise *cards, unsigned count, const FleetRequest *request,
                  uint32_t per_task, const FleetConf *conf, char *error);

#endif
