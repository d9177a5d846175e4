/* SPDX-License-Identifier: MIT */
#include "host-agent/model/engines.h"

#include "lib/agent_error.h"

#define ALL "all"

static const struct {
    const char *name;
    Engine engine;
} kinds[] = {
    {"graphics", ENGINE_GRAPHICS}, {"compute", ENGINE_COMPUTE}, {"transfer", ENGINE_TRANSFER},
    {"decode", ENGINE_DECODE},     {"encode", ENGINE_ENCODE},
};

char *engines_format(guint engines)
{
    g_autoptr(GString) text = g_string_new(NULL);

    for (guint i = 0; i < G_N_ELEMENTS(kinds); i++)
        if (engines & kinds[i].engine)
            g_string_append_printf(text, "%s%s", text->len ? "," : "", kinds[i].name);
    return g_strdup(text->len ? text->str : ALL);
}

static guint engine_called(const char *name)
{
    for (guint i = 0; i < G_N_ELEMENTS(kinds); i++)
        if (g_str_equal(kinds[i].name, name))
            return kinds[i].engine;
    return 0;
}

/* 0, as well, where there are all. */
static guint or_all(guint engines)
{
    return engines == (1u << G_N_ELEMENTS(kinds)) - 1 ? 0 : engines;
}

gboolean engines_parse(const char *text, guint *engines, GError **error)
{
    g_auto(GStrv) names = g_strsplit(text, ",", -1);
    guint wanted = 0;

    *engines = 0;
    if (g_str_equal(text, ALL))
        return TRUE;
    for (guint i = 0; !i || names[i]; i++) {
        guint engine = names[i] ? engine_called(names[i]) : 0;

        if (!engine) {
            g_set_error(error, AGENT_ERROR, AGENT_ERROR_INVALID,
                        "Engines must be \"all\", or some of graphics, compute, transfer, decode and "
                        "encode with commas, not \"%s\"",
                        text);
            return FALSE;
        }
        wanted |= engine;
    }
    if ((wanted & ENGINE_GRAPHICS) && !(wanted & ENGINE_COMPUTE)) {
        g_set_error(error, AGENT_ERROR, AGENT_ERROR_INVALID,
                    "Engines can't have graphics without compute (\"%s\"): Vulkan promises "
                    "programs a queue with both",
                    text);
        return FALSE;
    }
    *engines = or_all(wanted);
    return TRUE;
}

guint engines_join(guint a, guint b)
{
    return a && b ? or_all(a | b) : 0;
}
