/* SPDX-License-Identifier: MIT */
/*
 * Tenants as /etc/vgpu/tenants.d/ declares them (vgpu-tenants.conf(5)).
 */
#ifndef LIB_TENANTS_CONF_H
#define LIB_TENANTS_CONF_H

#include <glib.h>

#define TENANTS_DIR "/etc/vgpu/tenants.d"

/**
 * TenantEntry - a [tenant NAME] group
 * @file: where it was read from
 * @vram: bytes; as @compute and @vgpus 0 for no limit
 * @models, @users: empty: any GPU, nobody
 */
typedef struct {
    char *name;
    char *file;
    guint64 vram;
    guint compute;
    guint vgpus;
    char **models;
    char **users;
} TenantEntry;

/* All that are declared, in the order of files and groups; of TenantEntry. One bad value fails all.
 */
GPtrArray *tenants_conf_load(const char *root, GError **error);

/* The entry with that name, NULL: there is none. Stays @entries'. */
const TenantEntry *tenants_conf_find(const GPtrArray *entries, const char *name);

/* The group of a tenant, as tenants_conf_load() reads it. To be freed. */
char *tenants_conf_format(const TenantEntry *entry);

#endif
