/* SPDX-License-Identifier: MIT */
/* Tenants, and their quotas. */
#ifndef MODEL_TENANT_H
#define MODEL_TENANT_H

#include "host-agent/model/room.h"

/**
 * Tenant
 * @vram: bytes, in total; 0: no limit
 * @compute: per cent of a GPU, in total, so 250 is two GPUs and a half; 0: no limit
 * @vgpus: number; 0: no limit
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

/* A tenant's usage. */
typedef struct {
    guint64 vram;
    guint compute;
    guint vgpus;
} TenantUse;

void tenant_free(Tenant *tenant);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Tenant, tenant_free)

/* 1 to 63 of letters, digits, "_", "-", ".", a letter or digit first. */
gboolean tenant_name_valid(const char *name);

/* The sum of the promised slices of @tenant in @slices. */
TenantUse tenant_use(const char *tenant, const GPtrArray *slices);

/* The tenant may have slices on that GPU. */
gboolean tenant_may_use(const Tenant *tenant, const Room *room);

/*
 * @use: including the request. FALSE if it exceeds the quota: AGENT_ERROR_QUOTA, whose message says
 * which quota, how much of it is used, and who can change it.
 */
gboolean tenant_admit(const Tenant *tenant, const TenantUse *use, GError **error);

#endif
