/* SPDX-License-Identifier: MIT */
/* Tenants in /etc/vgpu/tenants.d/ (vgpu-tenants.conf(5)). */
#ifndef LIB_TENANTS_CONF_H
#define LIB_TENANTS_CONF_H

#include <glib.h>

#include "lib/host_root.h"

/**
 * Tenant - a [tenant NAME] group, or what was set by command
 * @file: where it was read from; NULL: it was set by command
 * @vram: bytes, in total; 0, here and in @compute, @vgpus and @displaced: no limit
 * @compute: per cent of a GPU, in total, so 250 is two GPUs and a half
 * @displaced: bytes of the hosts' memory for GPU memory that moves, in total
 * @models: patterns (fnmatch) for GPUs' ids ("10de:*") or names; empty: any
 * @users: names of users who may use it, and "@GROUP"s; empty: none
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
} Tenant;

void tenant_free(Tenant *tenant);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Tenant, tenant_free)

Tenant *tenant_copy(const Tenant *tenant);

/* 1 to 63 of letters, digits, "_", "-", ".", a letter or digit first. */
gboolean tenant_name_valid(const char *name);

/*
 * All declared ones, in the order of files and groups; of Tenant. One invalid value fails all.
 */
GPtrArray *tenants_conf_load(HostRoot *root, GError **error);

/* The one of that name in a list of Tenant, which keeps it; NULL: none. */
const Tenant *tenants_conf_find(const GPtrArray *tenants, const char *name);

/* A tenant's group in the format of tenants_conf_load(). To be freed. */
char *tenants_conf_format(const Tenant *tenant);

#endif
