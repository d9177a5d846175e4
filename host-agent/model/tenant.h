/* SPDX-License-Identifier: MIT */
/*
 * Tenants, and what they may have.
 */
#ifndef MODEL_TENANT_H
#define MODEL_TENANT_H

#include "host-agent/model/room.h"

/**
 * Tenant
 * @vram: bytes, all together; 0: no limit
 * @compute: per cent of a GPU, all together, so 250 is two GPUs and a half; 0: no limit
 * @vgpus: how many; 0: no limit
 * @models: patterns (fnmatch) for GPUs' ids ("10de:*") or names; empty: any
 * @users: names of users who may use it
 */
typedef struct {
    char *name;
    guint64 vram;
    guint compute;
    guint vgpus;
    GStrv models;
    GStrv users;
} Tenant;

/* What a tenant has. */
typedef struct {
    guint64 vram;
    guint compute;
    guint vgpus;
} TenantUse;

void tenant_free(Tenant *tenant);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Tenant, tenant_free)

/* 1 to 63 of letters, digits, "_", "-", ".", a letter or digit first. */
gboolean tenant_name_valid(const char *name);

/* What the slices of @slices that are promised to @tenant come to. */
TenantUse tenant_use(const char *tenant, const GPtrArray *slices);

/* The tenant may have slices on that GPU. */
gboolean tenant_may_use(const Tenant *tenant, const Room *room);

/*
 * @use: with what is asked for in it. FALSE where that is beyond the quota: AGENT_ERROR_QUOTA, whose message
 * says which, how much of it is used, and who can change that.
 */
gboolean tenant_admit(const Tenant *tenant, const TenantUse *use, GError **error);

#endif
