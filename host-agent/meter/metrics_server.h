/* SPDX-License-Identifier: MIT */
/* Prometheus' text over HTTP, made once a second at most. */
#ifndef METER_METRICS_SERVER_H
#define METER_METRICS_SERVER_H

#include <gio/gio.h>

#include "lib/host_root.h"
#include "host-agent/meter/health_watch.h"
#include "host-agent/meter/bypass_watch.h"
#include "host-agent/meter/pressure_watch.h"
#include "host-agent/meter/owners.h"

typedef struct MetricsServer MetricsServer;

/* The text of an answer, of that length; the server frees it. */
typedef char *MetricsFunc(void *data, gsize *length);

/*
 * @listen: "ADDRESS:PORT" or "unix:PATH". The answers are made in the main loop.
 * AGENT_ERROR_FAILED if it cannot listen there.
 */
MetricsServer *metrics_server_new(HostRoot *root, const char *listen, MetricsFunc *func, void *data,
                                  GError **error);

/* For tests, which do not wait. In us. */
typedef gint64 MetricsClock(void);
void metrics_server_set_clock(MetricsServer *server, MetricsClock *clock);

void metrics_server_free(MetricsServer *server);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MetricsServer, metrics_server_free)

/* Answers Prometheus with the values of the agent's modules. */

typedef struct Scrape Scrape;

/* All of them live longer. Nothing is answered before scrape_listen(). */
Scrape *scrape_new(const HostView *view, const Health *health, const PressureWatch *pressure,
                   const BypassWatch *bypass, Owners *owners);

void scrape_free(Scrape *scrape);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Scrape, scrape_free)

/* When vgpud was started, in seconds since 1970. */
void scrape_set_started(Scrape *scrape, gint64 started);

/* Whether it runs. Not so at first. */
void scrape_set_agent_up(Scrape *scrape, gboolean up);

/* As metrics_server_new(), and ends the previous one. NULL: none. */
gboolean scrape_listen(Scrape *scrape, const char *listen, GError **error);

/* The answer; to be freed. */
char *scrape_text(Scrape *scrape, gsize *length);

#endif
