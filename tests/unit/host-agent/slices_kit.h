/* SPDX-License-Identifier: MIT */
/*
 * A host with one shared GPU and the governor's layer, containers' slices on it, and the hook as a
 * program.
 */
#ifndef TESTS_UNIT_SLICES_KIT_H
#define TESTS_UNIT_SLICES_KIT_H

#include "lib/host_root.h"
#include "tests/unit/host-agent/agent_on_bus.h"
#include "tests/unit/host-agent/fake_systemd.h"

#define UUID     "c0ffee00-0000-4000-8000-000000000001"
#define UUID2    "c0ffee00-0000-4000-8000-000000000002"
#define ADDRESS  "0000:02:00.0"
#define CDI_PATH "/run/cdi/mdev-vgpu.json"
#define LIBRARY  "/usr/lib/x86_64-linux-gnu/mdev-vgpu/libvgpu_governor.so"
#define MEMBER   "/usr/lib/x86_64-linux-gnu/mdev-vgpu/libvgpu-member.so.1"
/* What the GPU's arbiter is told of a slice. */
#define SHARE_OF(uuid) "/run/vgpu/governor/" ADDRESS "/slices/" uuid ".conf"

/* Containers' states in runtimes' form. */
#define WEB "{\"ociVersion\":\"1.0.2\",\"id\":\"web\",\"status\":\"created\",\"pid\":77}"
#define DB  "{\"id\":\"db\",\"pid\":78}"

/* A full and a half type. */
extern const char slices_types[];

/* Types, the governor's layer, and a vgpu-engine-user, on any recorded host. */
void complete_tree(HostRoot *root);

/* To be freed. */
HostRoot *shared_tree(void);

void open_shared(AgentOnBus *at);

gboolean exists(const AgentOnBus *at, const char *path);

/* To be freed; NULL: no such file. */
char *text_of(const AgentOnBus *at, const char *path);

void assert_in_file(const AgentOnBus *at, const char *path, const char *part);
void assert_not_in_file(const AgentOnBus *at, const char *path, const char *part);

/* A process that began at @started. */
void process(const AgentOnBus *at, guint pid, guint started);

void process_ends(const AgentOnBus *at, guint pid);

/* The hook, for the slice @uuid, with a container's state as its input. */
void assert_hook_of(const AgentOnBus *at, const char *uuid, const char *verb, const char *state,
                    int status, const char *err);

/* The same for the slice UUID. */
void assert_hook(const AgentOnBus *at, const char *verb, const char *state, int status,
                 const char *err);

#endif
