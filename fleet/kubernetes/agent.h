/* SPDX-License-Identifier: MIT */
/*
 * What vgpu-kubelet asks of vgpud, over D-Bus. Nothing here blocks. An owner's slices are told
 * apart by their parts; the same call again gives the same slices, so that nothing has to be kept
 * here, and a caller that was killed calls again.
 *
 * While vgpud is away, its cards stay as they were: it is restarted without an effect on slices.
 */
#ifndef KUBERNETES_AGENT_H
#define KUBERNETES_AGENT_H

#include <gio/gio.h>

typedef struct Agent Agent;

/**
 * AgentGpu - a card of the pool "kubernetes" that is shared
 * @address: "0000:41:00.0"
 * @model: stable, the same on every host: "a100-80g"
 * @uuid, @pcie_root, @vulkan: "": not known; "pci0000:40"; "1.4.305"
 * @nvlink: the address of the first card of those that are linked with it, each with all; "": none
 * @features: of Vulkan, such as "fp16"
 * @capacity: bytes that may be promised, overcommitment left out
 * @numa: -1: not known
 * @flops: of 32 bits, a second; 0: not known
 * @bandwidth: of its memory, bytes a second; 0: not known
 * @problem: why nothing may run on it; NULL: it is healthy
 * @is_broken: of a card with a problem: it does not pass by itself, so pods should leave
 * @is_draining: nothing new is placed on it
 */
typedef struct {
    char *address;
    char *model;
    char *uuid;
    char *pcie_root;
    char *nvlink;
    char *vulkan;
    GStrv features;
    guint64 capacity;
    gint numa;
    guint64 flops;
    guint64 bandwidth;
    char *problem;
    gboolean is_broken;
    gboolean is_draining;
} AgentGpu;

AgentGpu *agent_gpu_copy(const AgentGpu *gpu);
void agent_gpu_free(AgentGpu *gpu);

/**
 * AgentSlice - to be made
 * @part: unique among the owner's
 * @gpu: its address
 * @type: instead of @vram; NULL: none
 * @vram, @oversubscribe: bytes; @resident: of @vram, 0: all
 * @compute: per cent that are promised; -1: not said
 * @cap: per cent; 0: not said
 * @priority: 0: not said
 * @class, @door, @engines, @tenant: vgpud's words; NULL or "": not said
 * @place: where its owner is in the cluster, for agent_list(); NULL: not said
 */
typedef struct {
    char *part;
    char *gpu;
    char *type;
    guint64 vram;
    guint64 resident;
    guint64 oversubscribe;
    gint compute;
    guint cap;
    guint priority;
    char *class;
    char *door;
    char *engines;
    char *tenant;
    char *place;
} AgentSlice;

void agent_slice_free(AgentSlice *slice);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(AgentSlice, agent_slice_free)

/**
 * AgentDoor - what a container needs to use a slice
 * @cdi: its name, "mdev-vgpu.org/slice=…"; it stands for all of the rest
 * @env: "NAME=VALUE"
 * @devices: a(ss): path on the host and in the container
 * @mounts: a(sss): path on the host and in the container, options
 * @mdev: of a vGPU, for a VM, its directory in sysfs; "": it is none
 */
typedef struct {
    char *cdi;
    char *mdev;
    GStrv env;
    GVariant *devices;
    GVariant *mounts;
} AgentDoor;

/* @changed: called later, and whenever the cards have changed. */
Agent *agent_new(GDBusConnection *bus, void (*changed)(void *data), void *data);
void agent_free(Agent *agent);

/* Of AgentGpu, by address; empty as long as vgpud has not been seen. Valid until @changed. */
const GPtrArray *agent_gpus(Agent *agent);

/* vgpud has been seen, so that agent_gpus() is what there is. */
gboolean agent_is_known(const Agent *agent);

/* @doors: of AgentDoor, in the order of the slices, for the time of the call; NULL with @error. */
typedef void (*AgentDoorsFunc)(const GPtrArray *doors, const GError *error, void *data);

/*
 * Makes all of the owner's @slices (of AgentSlice), or none; those that it has already stay.
 * G_IO_ERROR_EXISTS: it has others with the same parts.
 * Called back once, unless the agent is freed before.
 */
void agent_make(Agent *agent, const char *owner, const GPtrArray *slices, AgentDoorsFunc func,
                void *data);

/*
 * The same with those that the owner has of these parts and GPUs, whatever else was asked of them.
 * G_IO_ERROR_EXISTS: one is missing. @owner and @slices stay until it has called back.
 */
void agent_find(Agent *agent, const char *owner, const GPtrArray *slices, AgentDoorsFunc func,
                void *data);

typedef void (*AgentDoneFunc)(const GError *error, void *data);

/* Removes all slices of the owner, used or not. It is no error if it has none. */
void agent_release(Agent *agent, const char *owner, AgentDoneFunc func, void *data);

/**
 * AgentOwned - a slice that has an owner
 * @place: of the AgentSlice; "": not said
 * @container: that uses it now; "": none
 */
typedef struct {
    char *owner;
    char *part;
    char *place;
    char *container;
} AgentOwned;

/* @owned: of AgentOwned, for the time of the call; NULL with @error. */
typedef void (*AgentOwnedFunc)(const GPtrArray *owned, const GError *error, void *data);

/* All slices that have an owner. */
void agent_list(Agent *agent, AgentOwnedFunc func, void *data);

#endif
