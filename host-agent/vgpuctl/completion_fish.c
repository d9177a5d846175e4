/* SPDX-License-Identifier: MIT */
#include "host-agent/vgpuctl/completion.h"

#define HEAD                                                                                       \
    "# SPDX-License-Identifier: MIT\n"                                                             \
    "# fish completion for vgpuctl(1): made by \"vgpuctl completion fish\".\n"                     \
    "\n"                                                                                           \
    "# The words before the cursor that are no options, nor values of options.\n"                  \
    "function __vgpuctl_given\n"                                                                   \
    "    set -l skip\n"                                                                            \
    "    for word in (commandline -opc)[2..-1]\n"                                                  \
    "        if test -n \"$skip\"\n"                                                               \
    "            set skip\n"                                                                       \
    "            continue\n"                                                                       \
    "        end\n"                                                                                \
    "        switch $word\n"                                                                       \
    "            case %s\n"                                                                        \
    "                set skip yes\n"                                                               \
    "            case '-*'\n"                                                                      \
    "            case '*'\n"                                                                       \
    "                echo $word\n"                                                                 \
    "        end\n"                                                                                \
    "    end\n"                                                                                    \
    "end\n"                                                                                        \
    "\n"                                                                                           \
    "# The command is this one: NOUN [VERB].\n"                                                    \
    "function __vgpuctl_is\n"                                                                      \
    "    set -l given (__vgpuctl_given)\n"                                                         \
    "    set -l last (count $argv)\n"                                                              \
    "    test (count $given) -ge $last; and test \"$given[1..$last]\" = \"$argv\"\n"               \
    "end\n"                                                                                        \
    "\n"                                                                                           \
    "# The same, and the word at the cursor is its argument AT: AT NOUN [VERB].\n"                 \
    "function __vgpuctl_arg\n"                                                                     \
    "    __vgpuctl_is $argv[2..-1]; and test (count (__vgpuctl_given)) -eq (math (count $argv) - " \
    "1 + $argv[1])\n"                                                                              \
    "end\n"                                                                                        \
    "\n"                                                                                           \
    "# The same for the last argument, which may be given several times.\n"                        \
    "function __vgpuctl_args\n"                                                                    \
    "    __vgpuctl_is $argv[2..-1]; and test (count (__vgpuctl_given)) -ge (math (count $argv) - " \
    "1 + $argv[1])\n"                                                                              \
    "end\n"                                                                                        \
    "\n"                                                                                           \
    "complete -c vgpuctl -f\n"

static void add_quoted(GString *text, const char *option, const char *word)
{
    g_autofree char *quoted = g_shell_quote(word);

    g_string_append_printf(text, " %s %s", option, quoted);
}

/* What to offer for a word of @kind. NULL: nothing. To be freed. */
static char *offer_of(const WordKind *kind)
{
    if (!kind)
        return NULL;
    return kind->fixed ? g_strdup(kind->fixed)
                       : g_strdup_printf("(vgpuctl complete %s 2>/dev/null)", kind->name);
}

static void begin_line(GString *text, const char *condition, const Command *command)
{
    g_string_append_printf(text, "complete -c vgpuctl -n '%s %s%s%s'", condition, command->noun,
                           command->verb ? " " : "", command->verb ? command->verb : "");
}

static void add_option(const GOptionEntry *option, GString *text, const Command *command)
{
    const WordKind *kind = option->arg_description ? word_kind_find(option->arg_description) : NULL;
    g_autofree char *offer = offer_of(kind);

    begin_line(text, "__vgpuctl_is", command);
    g_string_append_printf(text, " -l %s", option->long_name);
    if (option->short_name)
        g_string_append_printf(text, " -s %c", option->short_name);
    if (completion_has_value(option))
        g_string_append(text, g_strcmp0(option->arg_description, "FILE") ? " -x" : " -r -F");
    if (offer)
        add_quoted(text, "-a", offer);
    add_quoted(text, "-d", option->description);
    g_string_append_c(text, '\n');
}

static void add_args(GString *text, const Command *command)
{
    g_auto(GStrv) args = g_strsplit(command->args ? command->args : "", " ", -1);

    for (guint i = 0; args[i]; i++) {
        g_autofree char *offer = offer_of(word_kind_find(args[i]));
        g_autofree char *condition =
            g_strdup_printf("__vgpuctl_arg%s %u", g_str_has_suffix(args[i], "...") ? "s" : "", i);

        if (!offer)
            continue;
        begin_line(text, condition, command);
        add_quoted(text, "-a", offer);
        g_string_append_c(text, '\n');
    }
}

static void add_words_of(GString *text, const Command *command)
{
    if (completion_is_first(command)) {
        g_string_append_printf(
            text, "complete -c vgpuctl -n 'test (count (__vgpuctl_given)) -eq 0' -a %s",
            command->noun);
        if (!command->verb)
            add_quoted(text, "-d", command->help);
        g_string_append_c(text, '\n');
    }
    if (command->verb) {
        g_string_append_printf(text, "complete -c vgpuctl -n '__vgpuctl_arg 0 %s' -a %s",
                               command->noun, command->verb);
        add_quoted(text, "-d", command->help);
        g_string_append_c(text, '\n');
    }
}

char *completion_fish(void)
{
    g_autofree char *with_values = completion_value_options(" ");
    GString *text = g_string_new(NULL);

    g_string_append_printf(text, HEAD, with_values);
    for (guint i = 0; i < commands_count; i++) {
        const Command *command = &commands[i];

        if (command->flags & COMMAND_HIDDEN)
            continue;
        add_words_of(text, command);
        completion_each_option(command, add_option, text);
        add_args(text, command);
    }
    return g_string_free(text, FALSE);
}
