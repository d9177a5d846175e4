/* SPDX-License-Identifier: MIT */
#include "host-agent/vgpuctl/colour.h"

#include <glib.h>
#include <string.h>

static const struct {
    const char *begin;
    const char *colour;
} states[] = {
    {"running", "green"}, {"ready", "green"},    {"shared", "green"},     {"yes", "green"},
    {"ok", "green"},      {"declared", "green"}, {"problem", "red"},      {"failed", "red"},
    {"lost", "red"},      {"no:", "red"},        {"stopped", "darkgray"}, {"none", "darkgray"},
    {"warning", "brown"}, {"starting", "brown"}, {"by command", "brown"},
};

const char *colour_of_state(const char *state)
{
    if (strstr(state, "draining") || strstr(state, "switching"))
        return "brown";
    for (guint i = 0; i < G_N_ELEMENTS(states); i++)
        if (g_str_has_prefix(state, states[i].begin))
            return states[i].colour;
    return NULL;
}
