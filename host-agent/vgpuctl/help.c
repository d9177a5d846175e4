/* SPDX-License-Identifier: MIT */
#include "host-agent/vgpuctl/help.h"

#include "host-agent/vgpuctl/command.h"

#define WIDTH 25

char *help_commands(const char *noun)
{
    GString *text = g_string_new("Commands:\n");

    for (guint i = 0; i < commands_count; i++) {
        const Command *command = &commands[i];
        g_autofree char *words = command_words(command);

        if (!(command->flags & COMMAND_HIDDEN) && (!noun || g_str_equal(command->noun, noun)))
            g_string_append_printf(text, "  %-*s %s\n", WIDTH, words, command->help);
    }
    g_string_append(text, "\n\"vgpuctl COMMAND --help\" shows the options of a command.");
    return g_string_free(text, FALSE);
}

char *help_verbs(const char *noun)
{
    GString *verbs = g_string_new(NULL);

    for (guint i = 0; i < commands_count; i++)
        if (g_str_equal(commands[i].noun, noun) && commands[i].verb)
            g_string_append_printf(verbs, "%s%s", verbs->len ? "|" : "", commands[i].verb);
    return g_string_free(verbs, verbs->len == 0);
}
