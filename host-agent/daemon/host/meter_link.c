/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/host/meter_link.h"

#include "lib/bus.h"

static void ignore_answer(GVariant *answer, const GError *error, void *data)
{
    (void)answer;
    (void)error;
    (void)data;
}

void meter_tell(const MeterLink *link, const char *signal, GVariant *arguments)
{
    g_variant_ref_sink(arguments);
    if (link->tell)
        link->tell(link->data, signal, arguments);
    g_variant_unref(arguments);
}

void meter_ask(const MeterLink *link, const char *method, GVariant *arguments, MeterAnswerFunc func,
               void *data)
{
    g_autoptr(GError) error = NULL;

    g_variant_ref_sink(arguments);
    if (link->ask) {
        link->ask(link->data, method, arguments, func ? func : ignore_answer, data);
    } else if (func) {
        g_set_error(&error, AGENT_ERROR, AGENT_ERROR_FAILED,
                    "vgpu-meter does not run; \"systemctl status vgpu-meter\" shows why");
        func(NULL, error, data);
    }
    g_variant_unref(arguments);
}
