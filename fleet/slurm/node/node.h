/* SPDX-License-Identifier: MIT */
/* vgpu-slurm: what slurmd runs on a node, and what an administrator does there. */
#ifndef FLEET_SLURM_NODE_NODE_H
#define FLEET_SLURM_NODE_NODE_H

#include <glib.h>

#include "fleet/slurm/slurm_api.h"

#include "fleet/slurm/node/agent.h"
#include "fleet/slurm/node/detail.h"
#include "lib/host_root.h"

#define NODE_CONF  "/etc/vgpu/vgpu.conf"
#define NODE_CARDS "/etc/vgpu/slurm-cards"

/**
 * NodeJob - the job that slurmd is about to start or has ended
 * @owner: of its slices: "slurm:CLUSTER:JOBID"
 * @text: the canonical one; NULL: none of ours, the job has no slice
 * @tenant: its account
 * @nodes: how many it has
 */
typedef struct {
    guint id;
    char *owner;
    const char *text;
    const char *tenant;
    guint uid;
    guint nodes;
} NodeJob;

/* From what slurmd put into the environment. All of "SPANK_..." is the user's and is not read. */
gboolean node_job_from_environment(NodeJob *job, GError **error);
void node_job_clear(NodeJob *job);

/**
 * NodeGrant - what slurmctld says that a job has on this node
 * @count: of @cards
 * @counted: what these are for
 * @partition, @qos: where it is now; "": none
 * @restarts: how often the job has gone back to the queue
 * @over: it was cancelled meanwhile, put back, or is not known; then it has no card
 * @waits: it is in slurmctld's queue: it was put back, or slurmctld was killed and does not know
 * any more that it has started it; then it has no card either
 */
typedef struct {
    CardPromise cards[NODE_CARDS_MAX];
    guint count;
    DetailCount counted;
    char partition[64];
    char qos[64];
    guint restarts;
    gboolean over;
    gboolean waits;
} NodeGrant;

/*
 * A job that slurmctld does not know is over. FALSE with G_IO_ERROR: slurmctld has not answered for
 * minutes (TIMED_OUT), or is not understood.
 */
gboolean node_job_ask(const NodeJob *job, NodeGrant *grant, GError **error);

/*
 * Ends the job's start: it waits in the queue again, or is cancelled if it cannot be started again.
 * @hold: it waits until somebody releases it
 */
void node_job_put_back(guint32 id, gboolean hold);

/* The same for at least so many seconds; the job's AdminComment says why, if it has no other. */
void node_job_put_off(guint32 id, guint seconds, const char *why);

/* What the job has on the node, in Slurm's words (detail.h); NULL: nothing. */
const char *node_job_detail(const job_info_t *job, const char *node);

/*
 * Whether a step of the job runs on this node, by slurmd, which asks the steps themselves.
 * slurmctld may not know: killed, it comes back with the state that it last wrote. TRUE also if
 * slurmd does not answer.
 */
gboolean node_job_has_steps(guint32 id);

/* Slurm's name of this node. To be freed. */
char *node_name(void);

/* Slurm's name of the cluster; to be freed. NULL: slurmctld does not answer. */
char *node_cluster(void);

/*
 * Whether the last health check, at most ten minutes ago, has seen that slurmctld has no drain and
 * no fence of ours for this node. Then it need not be asked again, by each node each minute.
 */
gboolean node_is_known_well(HostRoot *root);
void node_note_well(HostRoot *root, gboolean well);

/* The job of @cluster that has slices under this name ("slurm:CLUSTER:JOBID"); 0: none. */
guint32 node_job_of_owner(const char *owner, const char *cluster);

/*
 * Prologs share it while they make slices; who removes slices of jobs that have gone has it alone,
 * so that such a job does not start meanwhile. Ends with the process too.
 */
int node_lock(HostRoot *root, gboolean alone);
void node_unlock(int lock);

/*
 * Removes the slices and files of jobs that are not on this node, if they are older than @seconds.
 * A job is here while slurmctld says so, or a step of it runs. Not with the lock held.
 */
void node_release_lost(HostRoot *root, const char *node, guint seconds);

/**
 * NodeCards - the cards by Slurm's index, as gres-conf wrote them
 * @addresses: NULL where there is none
 * @models: Slurm's types; NULL where the file does not say
 */
typedef struct {
    char *addresses[NODE_CARDS_MAX];
    char *models[NODE_CARDS_MAX];
} NodeCards;

NodeCards *node_cards_read(HostRoot *root, GError **error);
void node_cards_free(NodeCards *cards);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(NodeCards, node_cards_free)

/*
 * Whether a card that Slurm counts as of that type is another one by the file: Slurm numbers cards
 * in the order of the types in Gres= of slurm.conf.
 */
gboolean node_card_is_other(const NodeCards *cards, guint index, const char *model);

/* vgpu.conf, or the defaults if there is none. */
gboolean node_conf_read(HostRoot *root, FleetConf *conf, GError **error);

/* Writes what the job used into its record at slurmdbd. That it cannot is logged. */
void node_account(const NodeJob *job, const AgentTotals *totals);

/* Verbs; the exit status. */
int node_prolog(HostRoot *root);
int node_epilog(HostRoot *root);
/* @for_node: as lines for a file of the whole cluster. @write: writes what belongs to this node. */
int node_gres_conf(HostRoot *root, gboolean for_node, gboolean write);
int node_check(HostRoot *root);
int node_health(HostRoot *root);
int node_pressure(void);
/* @job: its number; NULL: that of the cgroup which this process is in. */
int node_env(HostRoot *root, const char *job);

/* On standard error, which slurmd logs, and in the system's log. */
void node_say(int priority, const char *format, ...) G_GNUC_PRINTF(2, 3);

#endif
