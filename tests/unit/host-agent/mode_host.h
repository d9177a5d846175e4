/* SPDX-License-Identifier: MIT */
/* For tests of GPUs' modes: a vgpud over a fake kernel, and what must be so after a switch. */
#ifndef MODE_HOST_H
#define MODE_HOST_H

#include "host-agent/daemon/modes/reconcile.h"
#include "tests/unit/host-agent/agent_on_bus.h"

#define GPU         "0000:02:00.0"
#define GPU_PATH    "pci0000:00/0000:00:01.0/0000:02:00.0"
#define VFIO_GPU    "0000:03:00.0"
#define UUID        "c0ffee00-0000-4000-8000-000000000001"
#define DEFINITION  "/etc/mdevctl.d/" GPU "/" UUID
#define VGPU_IN_USE "VM red (process 5000200, qemu-system-x86) has vGPU " UUID " (running)"
/* vgpuctl's exit status if the GPU is in use. */
#define IN_USE 6

/* @host: of those that were recorded; its GPU is shared. */
void mode_host_open(AgentOnBus *at, const char *host);

/* Writes the files of /etc/vgpu that it has then. */
void mode_host_configure(HostRoot *root);

/* A vGPU whose VM, if it has one, is process 5000200. */
void mode_host_add_vgpu(HostRoot *root, const char *device);

void mode_host_add_render_node(HostRoot *root);

void assert_mode(HostRoot *root, const char *address, GpuMode mode);
void assert_wanted(HostRoot *root, const char *address, const char *mode);
void assert_journal_empty(const AgentOnBus *at);

#endif
