/* SPDX-License-Identifier: MIT */
/* How the meter tells vgpud what it has found: vgpud decides what follows. */
#ifndef METER_AGENT_LINK_H
#define METER_AGENT_LINK_H

#include <glib.h>

/**
 * AgentLink
 * @call: a method of org.mdev_vgpu.Host1.Metering; @arguments: floating. Nobody waits for an answer
 */
typedef struct {
    void *data;
    void (*call)(void *data, const char *method, GVariant *arguments);
} AgentLink;

/* All that is found about @gpu now: aa{sv}, floating (org.mdev_vgpu.Host1.Metering.SetFindings). */
void agent_set_findings(const AgentLink *link, const char *gpu, GVariant *findings);

/*
 * So many bytes of @gpu are free, and @mark should be; slices @without have none of its memory. At
 * @now_us, of CLOCK_MONOTONIC.
 */
void agent_note_memory(const AgentLink *link, const char *gpu, guint64 free, guint64 mark,
                       const char *const *without, gint64 now_us);

/* What slices are expected to use by the hour of the day: a{sat}, by UUID. */
void agent_set_expected(const AgentLink *link, GVariant *expected);

/* Of interest to an operator. */
void agent_tell_event(const AgentLink *link, const char *kind, const char *gpu, const char *slice,
                      const char *format, ...) G_GNUC_PRINTF(5, 6);

#endif
