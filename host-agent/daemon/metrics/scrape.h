/* SPDX-License-Identifier: MIT */
/* Answers Prometheus with the values of the agent's modules. */
#ifndef VGPUD_METRICS_SCRAPE_H
#define VGPUD_METRICS_SCRAPE_H

#include "host-agent/daemon/containers/claims.h"
#include "host-agent/daemon/health/health_watch.h"
#include "host-agent/daemon/health/pressure_watch.h"

typedef struct Scrape Scrape;

/* All of them live longer. Nothing is answered before scrape_listen(). */
Scrape *scrape_new(Host *host, Offers *offers, const Slices *slices, const Health *health,
                   const PressureWatch *pressure, const Claims *claims);

void scrape_free(Scrape *scrape);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Scrape, scrape_free)

/* As metrics_server_new(), and ends the previous one. NULL: none. */
gboolean scrape_listen(Scrape *scrape, const char *listen, GError **error);

/* The answer; to be freed. */
char *scrape_text(Scrape *scrape, gsize *length);

#endif
