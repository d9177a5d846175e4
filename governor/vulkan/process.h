/* SPDX-License-Identifier: MIT */
/*
 * The one membership of this process, shared by its instances.
 *
 *   VGPU_GOVERNOR_SOCKET     the slice's socket; DEFAULT_SOCKET where it isn't set
 *   VGPU_GOVERNOR_REQUIRED   1: without membership there is no instance
 */
#ifndef GOVERNOR_VULKAN_PROCESS_H
#define GOVERNOR_VULKAN_PROCESS_H

#include "member.h"

#define DEFAULT_SOCKET "/run/vgpu/governor/governor.sock"

/* Joins at first; NULL where it is required and fails, which is said on standard error. */
GovernorMember *process_member_get(void);

/* For each that was got; the last one gives all back. */
void process_member_put(void);

#endif /* GOVERNOR_VULKAN_PROCESS_H */
