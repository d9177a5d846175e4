/* SPDX-License-Identifier: MIT */
/*
 * What becomes of a job when it is submitted: the shards that Slurm counts, and the text that tells
 * its nodes the rest. Pure: no I/O, no allocation. It is called under slurmctld's locks.
 *
 * One shard is one MiB of a card's memory. Slurm has one count for each card, so a request costs
 * its dominant share: a guarantee of 30 per cent of an 80 GiB card costs 24 GiB, even if it asks
 * for 2.
 */
#ifndef FLEET_REQUEST_SUBMIT_H
#define FLEET_REQUEST_SUBMIT_H

#include "fleet/request/conf.h"

#define FLEET_TRES_MAX 512

/**
 * SubmitAsk - as the job has it; NULL: not given
 * @option: of --vgpu
 * @per_task, @per_node, @per_job, @per_socket: Slurm's lists of TRES, such as
 * "cpu=2,gres/shard:100"
 * @extra: the job's "extra" field
 * @partition: one name, or several with commas; NULL: the default one
 */
typedef struct {
    const char *option;
    const char *per_task, *per_node, *per_job, *per_socket;
    const char *extra;
    const char *partition;
    const char *qos;
} SubmitAsk;

/**
 * SubmitDecision
 * @changes: the job gets the rest; else it stays as it is
 * @per_task: the whole list, with what was there before
 * @spread: no two tasks of the job on one card: it asks for that, or their memory moves
 */
typedef struct {
    bool changes;
    bool spread;
    char per_task[FLEET_TRES_MAX];
    char extra[FLEET_TEXT_MAX];
} SubmitDecision;

/* false: the job is refused, and @error (FLEET_ERROR_MAX bytes) tells the user what to write. */
bool submit_decide(const SubmitAsk *ask, const FleetConf *conf, SubmitDecision *decision,
                   char *error);

/*
 * Whether a job may have its slice where it is now: it may have come into another partition or QOS
 * since it was submitted. @qos: NULL: this cluster has none. false: @error is a sentence.
 */
bool submit_allows(const FleetRequest *request, const FleetConf *conf, const char *partition,
                   const char *qos, char *error);

/*
 * A change of a job that waits or runs; only operators may change a slice. Whether the job has one
 * is not known here, so anybody may write another text into its "extra": one that has a slice loses
 * it by that, and the prolog refuses it. The same results.
 */
bool submit_modify(const SubmitAsk *ask, bool operator_asks, char *error);

/*
 * The shards that the memory of a request costs, whose size is in MiB. What is lent of the card
 * costs nothing, but best effort always its floor: without it one shard would be a whole card.
 */
uint32_t submit_memory_cost(const FleetRequest *request, const FleetConf *conf);

/* Shards of a task in a list such as "cpu=2,gres/shard:a100:100"; 0: none. */
uint32_t submit_shards(const char *per_task);

#endif
