/* SPDX-License-Identifier: MIT */
/*
 * vgpud, as a program sees it that must not wait for it: libvirt holds the domain, and a container's runtime the
 * container, as long as the hook runs.
 */
#ifndef LIB_AGENT_CLIENT_H
#define LIB_AGENT_CLIENT_H

#include <gio/gio.h>

/* How long vgpud may take to show that it is there: connection, start by the bus, and one answer
 * together. */
#define AGENT_PATIENCE_MS 2000

typedef struct AgentClient AgentClient;

/*
 * @start: let the bus start vgpud where it does not run. NULL where it does not answer in time; the
 * message ends with what to do.
 */
AgentClient *agent_client_open(gboolean start, GError **error);

void agent_client_free(AgentClient *link);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(AgentClient, agent_client_free)

/* Calls a method of the Manager and waits for its end. @parameters: floating. vgpud's errors are
 * AGENT_ERROR. */
gboolean agent_client_call(AgentClient *link, const char *method, GVariant *parameters, GError **error);

/* The same, with an end to the waiting. */
gboolean agent_client_call_within(AgentClient *link, int milliseconds, const char *method,
                                GVariant *parameters, GError **error);

/* The same of the GPU at that address. */
gboolean agent_client_call_gpu(AgentClient *link, const char *address, const char *method,
                             GVariant *parameters, GError **error);

#endif
