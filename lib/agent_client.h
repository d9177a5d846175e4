/* SPDX-License-Identifier: MIT */
/*
 * vgpud, for a program that must not wait for it: the hook blocks libvirt's domain, or the
 * container runtime's container, as long as it runs.
 */
#ifndef LIB_AGENT_CLIENT_H
#define LIB_AGENT_CLIENT_H

#include <gio/gio.h>

/*
 * How long vgpud may take to show that it runs: connection, start by the bus, and one answer
 * together.
 */
#define AGENT_PATIENCE_MS 2000

typedef struct AgentClient AgentClient;

/*
 * @start: let the bus start vgpud if it does not run. NULL if it does not answer in time; the
 * message ends with what to do.
 */
AgentClient *agent_client_open(gboolean start, GError **error);

void agent_client_free(AgentClient *link);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(AgentClient, agent_client_free)

/* Calls a method of the Manager and waits for its end. @parameters: floating. vgpud's errors are
 * AGENT_ERROR. */
gboolean agent_client_call(AgentClient *link, const char *method, GVariant *parameters, GError **error);

/* The same with a timeout. */
gboolean agent_client_call_within(AgentClient *link, int milliseconds, const char *method,
                                GVariant *parameters, GError **error);

/* The same for the GPU at that address. */
gboolean agent_client_call_gpu(AgentClient *link, const char *address, const char *method,
                             GVariant *parameters, GError **error);

#endif
