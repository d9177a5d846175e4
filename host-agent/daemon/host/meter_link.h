/* SPDX-License-Identifier: MIT */
/* How vgpud reaches its meter, which counts and watches: vgpu-meter, by messages on the bus. */
#ifndef VGPUD_HOST_METER_LINK_H
#define VGPUD_HOST_METER_LINK_H

#include <gio/gio.h>

/* Either @answer or @error. Called from the main loop, or before meter_ask() returns. */
typedef void (*MeterAnswerFunc)(GVariant *answer, const GError *error, void *data);

/**
 * MeterLink
 * @tell: a signal of org.mdev_vgpu.Host1.Metering; @arguments: floating
 * @ask: a method of org.mdev_vgpu.Host1.Meter
 * Both NULL: there is no meter.
 */
typedef struct {
    void *data;
    void (*tell)(void *data, const char *signal, GVariant *arguments);
    void (*ask)(void *data, const char *method, GVariant *arguments, MeterAnswerFunc func,
                void *func_data);
} MeterLink;

void meter_tell(const MeterLink *link, const char *signal, GVariant *arguments);

/* Without a meter: AGENT_ERROR_FAILED. @func: NULL: the answer is not needed. */
void meter_ask(const MeterLink *link, const char *method, GVariant *arguments, MeterAnswerFunc func,
               void *data);

#endif
