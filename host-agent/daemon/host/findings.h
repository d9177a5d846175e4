/* SPDX-License-Identifier: MIT */
/*
 * What is found about the GPUs, as the meter has told it last: shown as properties, reported as
 * events, audited, and those that an operator has to clear stored.
 */
#ifndef VGPUD_HOST_FINDINGS_H
#define VGPUD_HOST_FINDINGS_H

#include "host-agent/daemon/host/host.h"
#include "host-agent/daemon/host/meter_link.h"

typedef struct Findings Findings;

/* Both live longer. */
Findings *findings_new(Host *host, const MeterLink *meter);

void findings_free(Findings *findings);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Findings, findings_free)

/*
 * All that is found about @gpu now: aa{sv} in the form of the property HealthFindings. Findings
 * about a slice only are shown, and nothing else follows.
 */
void findings_set(Findings *findings, const char *gpu, GVariant *found);

/*
 * What a meter that starts must know: a(sss), the GPU, kind and reason of each finding that an
 * operator has to clear; and a(stt), the GPUs whose errors up to these counts were cleared in this
 * boot: fatal ones of PCI Express, and those of ECC. Floating.
 */
GVariant *findings_held(const Findings *findings);
GVariant *findings_cleared(const Findings *findings);

#endif
