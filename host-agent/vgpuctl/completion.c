/* SPDX-License-Identifier: MIT */
/* vgpuctl completion, and the words that its scripts ask for: vgpuctl complete. */
#include "host-agent/vgpuctl/completion.h"

#include <stdio.h>
#include <string.h>

#include "host-agent/vgpuctl/everywhere.h"

static void each_of(const GOptionEntry *options, const Command *command, CompletionFunc func,
                    GString *text)
{
    for (; options && options->long_name; options++)
        if (!(options->flags & G_OPTION_FLAG_HIDDEN))
            func(options, text, command);
}

void completion_each_option(const Command *command, CompletionFunc func, GString *text)
{
    static const GOptionEntry help[] = {
        {"help", 'h', 0, G_OPTION_ARG_NONE, NULL, "Show help options", NULL},
        G_OPTION_ENTRY_NULL,
    };

    each_of(command->options, command, func, text);
    if (command->flags & COMMAND_LISTS)
        each_of(everywhere_list_options, command, func, text);
    each_of(everywhere_options, command, func, text);
    each_of(help, command, func, text);
}

gboolean completion_has_value(const GOptionEntry *option)
{
    return option->arg != G_OPTION_ARG_NONE;
}

static void add_value_option(const GOptionEntry *option, GString *text, const Command *command)
{
    (void)command;
    if (!completion_has_value(option))
        return;
    if (option->short_name)
        g_string_append_printf(text, "-%c\n", option->short_name);
    g_string_append_printf(text, "--%s\n", option->long_name);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

char *completion_value_options(const char *between)
{
    g_autoptr(GString) text = g_string_new(NULL);
    g_autoptr(GString) joined = g_string_new(NULL);
    g_auto(GStrv) all = NULL;

    for (guint i = 0; i < commands_count; i++)
        completion_each_option(&commands[i], add_value_option, text);
    all = g_strsplit(text->str, "\n", -1);
    qsort(all, g_strv_length(all), sizeof(*all), by_name);
    for (guint i = 0; all[i]; i++)
        if (*all[i] && (i == 0 || !g_str_equal(all[i], all[i - 1])))
            g_string_append_printf(joined, "%s%s", joined->len ? between : "", all[i]);
    return g_string_free(g_steal_pointer(&joined), FALSE);
}

gboolean completion_is_first(const Command *command)
{
    return !(command->flags & COMMAND_HIDDEN) &&
           (command == commands || !g_str_equal(command[-1].noun, command->noun));
}

gboolean completion_is_last(const Command *command)
{
    const Command *end = commands + commands_count, *next = command + 1;

    while (next < end && next->flags & COMMAND_HIDDEN)
        next++;
    return next == end || !g_str_equal(next->noun, command->noun);
}

gboolean completion_command(Client *client, const Options *options, char **args, GError **error)
{
    static const struct {
        const char *shell;
        char *(*script)(void);
    } shells[] = {{"bash", completion_bash}, {"zsh", completion_zsh}, {"fish", completion_fish}};

    (void)client;
    for (guint i = 0; i < G_N_ELEMENTS(shells); i++) {
        if (g_str_equal(args[0], shells[i].shell)) {
            g_autofree char *script = shells[i].script();

            fputs(script, options->out);
            return TRUE;
        }
    }
    g_set_error(error, VGPUCTL_ERROR, VGPUCTL_USAGE,
                "there are no completions for \"%s\"; usage: vgpuctl completion bash|zsh|fish",
                args[0]);
    return FALSE;
}

gboolean complete_command(Client *client, const Options *options, char **args, GError **error)
{
    const WordKind *kind = word_kind_find(args[0]);
    g_autoptr(GStrvBuilder) builder = g_strv_builder_new();
    g_auto(GStrv) words = NULL;

    (void)client;
    (void)error;
    if (!kind || !kind->find)
        return TRUE;
    kind->find(options->root, builder);
    words = g_strv_builder_end(builder);
    qsort(words, g_strv_length(words), sizeof(*words), by_name);
    for (guint i = 0; words[i]; i++)
        if (i == 0 || !g_str_equal(words[i], words[i - 1]))
            output_line(options, "%s", words[i]);
    return TRUE;
}
