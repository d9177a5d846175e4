/* SPDX-License-Identifier: MIT */
#include "host-agent/meter/agent_link.h"

#include <stdarg.h>

static void call_agent(const AgentLink *link, const char *method, GVariant *arguments)
{
    g_variant_ref_sink(arguments);
    link->call(link->data, method, arguments);
    g_variant_unref(arguments);
}

void agent_set_findings(const AgentLink *link, const char *gpu, GVariant *findings)
{
    call_agent(link, "SetFindings", g_variant_new("(s@aa{sv})", gpu, findings));
}

void agent_note_memory(const AgentLink *link, const char *gpu, guint64 free, guint64 mark,
                       const char *const *without, gint64 now_us)
{
    call_agent(link, "NoteMemory", g_variant_new("(stt^asx)", gpu, free, mark, without, now_us));
}

void agent_set_expected(const AgentLink *link, GVariant *expected)
{
    call_agent(link, "SetExpected", g_variant_new("(@a{sat})", expected));
}

void agent_tell_event(const AgentLink *link, const char *kind, const char *gpu, const char *slice,
                      const char *format, ...)
{
    g_autofree char *said = NULL;
    g_autofree char *text = NULL;
    va_list values;

    va_start(values, format);
    said = g_strdup_vprintf(format, values);
    va_end(values);
    text = g_utf8_make_valid(said, -1);
    call_agent(link, "TellEvent", g_variant_new("(ssss)", kind, gpu, slice, text));
}
