/* SPDX-License-Identifier: MIT */
/*
 * polkit's prompt on a terminal, for users whose session has no agent of its own.
 */
#ifndef VGPUCTL_POLKIT_AGENT_H
#define VGPUCTL_POLKIT_AGENT_H

/*
 * Starts pkttyagent(1) for this process, once; it ends with this process. root needs none, and
 * neither does a process without a terminal. If it can't be started, vgpud refuses what needs a
 * right.
 */
void polkit_agent_start(void);

#endif
