/* SPDX-License-Identifier: MIT */
/*
 * What was set by command, and what would declare it in /etc/vgpu.
 */
#ifndef VGPUCTL_CONFIG_STATE_H
#define VGPUCTL_CONFIG_STATE_H

#include "host-agent/vgpuctl/client.h"
#include "lib/tenants_conf.h"

/**
 * ConfigGpu - a GPU whose mode was set by command
 * @declared: gpus.conf names it
 * @sentence: for people
 */
typedef struct {
    char *address;
    char *mode;
    gboolean declared;
    char *sentence;
} ConfigGpu;

/* A tenant that was set by command. */
typedef struct {
    TenantEntry entry;
    gboolean declared;
    char *sentence;
} ConfigTenant;

/* @gpus: of ConfigGpu. @tenants: of ConfigTenant. */
typedef struct {
    GPtrArray *gpus;
    GPtrArray *tenants;
} ConfigState;

/* NULL with @error. */
ConfigState *config_state_read(Client *client, GError **error);

void config_state_free(ConfigState *state);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ConfigState, config_state_free)

#endif
