/* SPDX-License-Identifier: MIT */
/*
 * Processes that use the GPU of their slice and are no members of its arbiter: static binaries, or
 * programs that bring a driver of their own. Only slices with the native door have such processes,
 * and they are found by the cgroup of the slice's container or program. They are reported as an
 * event and in metrics, charged to the slice (ungoverned.h), and ended if the operator wants that.
 *
 * A process is told if two looks in a row see it: one that has just begun may not have joined yet.
 */
#ifndef METER_BYPASS_WATCH_H
#define METER_BYPASS_WATCH_H

#include "host-agent/meter/agent_link.h"
#include "host-agent/meter/host_view.h"
#include "lib/vgpud_conf.h"

typedef struct BypassWatch BypassWatch;

/* @view, @agent: live longer. */
BypassWatch *bypass_watch_new(const HostView *view, const AgentLink *agent, OnBypass policy);

void bypass_watch_free(BypassWatch *watch);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(BypassWatch, bypass_watch_free)

void bypass_watch_set_policy(BypassWatch *watch, OnBypass policy);

/* Slices or their users may have changed: it looks while there is a slice with users. */
void bypass_watch_refresh(BypassWatch *watch);

/*
 * Looks at as many slices as keep the main loop busy for some 150 ms. FALSE: there are more, with
 * which the next call goes on. For tests, which do not wait.
 */
gboolean bypass_watch_look(BypassWatch *watch);

/* How many processes of the slice the last look saw. */
guint bypass_watch_count(const BypassWatch *watch, const char *uuid);

#endif
