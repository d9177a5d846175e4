/* SPDX-License-Identifier: MIT */
/*
 * vgpud, as a program sees it that must not wait for it: libvirt holds the domain, and a container's runtime the
 * container, as long as the hook runs.
 */
#ifndef QEMU_HOOKS_AGENT_LINK_H
#define QEMU_HOOKS_AGENT_LINK_H

#include <gio/gio.h>

/* How long vgpud may take to show that it is there: connection, start by the bus, and one answer
 * together. */
#define AGENT_PATIENCE_MS 2000

typedef struct AgentLink AgentLink;

/*
 * @start: let the bus start vgpud where it does not run. NULL where it does not answer in time; the
 * message ends with what to do.
 */
AgentLink *agent_link_open(gboolean start, GError **error);

void agent_link_free(AgentLink *link);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(AgentLink, agent_link_free)

/* Calls a method of the Manager and waits for its end. @parameters: floating. vgpud's errors are
 * AGENT_ERROR. */
gboolean agent_link_call(AgentLink *link, const char *method, GVariant *parameters, GError **error);

/* The same, with an end to the waiting. */
gboolean agent_link_call_within(AgentLink *link, int milliseconds, const char *method,
                                GVariant *parameters, GError **error);

/* The same of the GPU at that address. */
gboolean agent_link_call_gpu(AgentLink *link, const char *address, const char *method,
                             GVariant *parameters, GError **error);

#endif
