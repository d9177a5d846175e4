/* SPDX-License-Identifier: MIT */
/* Tenants in /etc/vgpu/tenants.d/ (vgpu-tenants.conf(5)). */
#ifndef LIB_TENANTS_CONF_H
#define LIB_TENANTS_CONF_H

#include <glib.h>

#include "lib/host_root.h"

/**
 * TenantEntry - a [tenant NAME] group
 * @file: where it was read from
 * @vram: bytes; 0, here and in @compute, @vgpus and @displaced: no limit
 * @displaced: bytes of the hosts' memory for GPU memory that moves
 * @models, @users: empty: any GPU, no user
 */
typedef struct {
    char *name;
    char *file;
    guint64 vram;
    guint compute;
    guint vgpus;
    char **models;
    char **users;
    guint64 displaced;
} TenantEntry;

/* 1 to 63 of letters, digits, "_", "-", ".", a letter or digit first. */
gboolean tenant_name_valid(const char *name);

/*
 * All declared ones, in the order of files and groups; of TenantEntry. One invalid value fails all.
 */
GPtrArray *tenants_conf_load(HostRoot *root, GError **error);

/* The entry with that name; NULL: none. @entries keeps it. */
const TenantEntry *tenants_conf_find(const GPtrArray *entries, const char *name);

/* A tenant's group in the format of tenants_conf_load(). To be freed. */
char *tenants_conf_format(const TenantEntry *entry);

#endif
