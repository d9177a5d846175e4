/* SPDX-License-Identifier: MIT */
/* HTTP for Prometheus: GET /metrics only. */
#ifndef VGPUD_METRICS_METRICS_SERVER_H
#define VGPUD_METRICS_METRICS_SERVER_H

#include <gio/gio.h>

#include "lib/host_root.h"

typedef struct MetricsServer MetricsServer;

/* The text of an answer, of that length; the server frees it. */
typedef char *MetricsFunc(void *data, gsize *length);

/*
 * @listen: "ADDRESS:PORT" or "unix:PATH". The answers are made in the main loop.
 * AGENT_ERROR_FAILED if it cannot listen there.
 */
MetricsServer *metrics_server_new(HostRoot *root, const char *listen, MetricsFunc *func, void *data,
                                  GError **error);

void metrics_server_free(MetricsServer *server);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MetricsServer, metrics_server_free)

#endif
