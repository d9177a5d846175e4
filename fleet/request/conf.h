/* SPDX-License-Identifier: MIT */
/* What a cluster allows: vgpu.conf(5). Pure, and of a fixed size: it is read under slurmctld's
 * locks. */
#ifndef FLEET_REQUEST_CONF_H
#define FLEET_REQUEST_CONF_H

#include "fleet/request/request.h"

#define FLEET_MODELS_MAX     32
#define FLEET_PARTITIONS_MAX 128
#define FLEET_QOS_MAX        8
#define FLEET_CONF_MAX       65536 /* bytes of the file */

typedef struct {
    char name[FLEET_NAME_MAX];
    uint32_t vram; /* MiB */
} FleetModel;

/**
 * FleetPartition
 * @name: as Slurm has it, with capital letters too
 * @model: of all of its cards; "": several
 * @doors, @classes: bits of those that are allowed; 0: all. Of doors without auto
 * @door: for requests that name none; FLEET_DOOR_NONE: auto
 * @is_default: of jobs that name no partition
 */
typedef struct {
    char name[64];
    char model[FLEET_NAME_MAX];
    unsigned doors;
    unsigned classes;
    FleetDoor door;
    bool is_default;
} FleetPartition;

/**
 * FleetClassRule
 * @floor: per cent of the memory that best-effort is promised; 100 for the others
 * @priority: the highest that may be asked for
 * @qos: those that may use the class; none: all
 */
typedef struct {
    uint32_t floor;
    uint32_t priority;
    unsigned qos_count;
    char qos[FLEET_QOS_MAX][64];
} FleetClassRule;

/**
 * FleetNodeRule - what nodes do by themselves
 * @requeue: jobs on a card that is broken are started again elsewhere
 * @account: what a job used is written into its record; needs slurmdbd
 * @orphans: seconds until slices without a job are removed
 */
typedef struct {
    bool requeue;
    bool account;
    uint32_t orphans;
} FleetNodeRule;

typedef struct {
    unsigned model_count;
    FleetModel models[FLEET_MODELS_MAX];
    unsigned partition_count;
    FleetPartition partitions[FLEET_PARTITIONS_MAX];
    FleetClassRule classes[FLEET_CLASSES];
    FleetNodeRule node;
} FleetConf;

/* Without a file: no models, everything is allowed but a priority above 0. */
void fleet_conf_init(FleetConf *conf);

/* Reads a file's text. false: @error (FLEET_ERROR_MAX bytes) names the line, and @conf is
 * undefined. */
bool fleet_conf_parse(const char *text, FleetConf *conf, char *error);

/* NULL: not in the file. */
const FleetModel *fleet_conf_model(const FleetConf *conf, const char *name);
const FleetPartition *fleet_conf_partition(const FleetConf *conf, const char *name);

#endif
