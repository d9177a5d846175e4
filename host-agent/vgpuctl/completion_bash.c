/* SPDX-License-Identifier: MIT */
#include "host-agent/vgpuctl/completion.h"

#define HEAD                                                                                       \
    "# SPDX-License-Identifier: MIT\n"                                                             \
    "# bash completion for vgpuctl(1): made by \"vgpuctl completion bash\".\n"                     \
    "\n"

/* The command line is read from COMP_LINE: bash takes the colons of PCI addresses for ends of
 * words. */
#define BODY                                                                                       \
    "_vgpuctl() {\n"                                                                               \
    "    local current= previous= word skip= nouns opts= values= args= first=2 kind=\n"            \
    "    local typed words=() verbs=\n"                                                            \
    "    read -ra typed <<<\"${COMP_LINE:0:COMP_POINT}\"\n"                                        \
    "    if [[ ${COMP_LINE:0:COMP_POINT} != *[[:space:]] ]]; then\n"                               \
    "        current=${typed[-1]}\n"                                                               \
    "        unset 'typed[-1]'\n"                                                                  \
    "    fi\n"                                                                                     \
    "    previous=${typed[-1]}\n"                                                                  \
    "    if [[ $current == --*=* ]]; then\n"                                                       \
    "        previous=${current%%%%=*} current=${current#*=}\n"                                    \
    "    fi\n"                                                                                     \
    "    for word in \"${typed[@]:1}\"; do\n"                                                      \
    "        if [[ $skip ]]; then skip=; continue; fi\n"                                           \
    "        case $word in\n"                                                                      \
    "        %s) skip=1 ;;\n"                                                                      \
    "        -*) ;;\n"                                                                             \
    "        *) words+=(\"$word\") ;;\n"                                                           \
    "        esac\n"                                                                               \
    "    done\n"                                                                                   \
    "    _vgpuctl_command\n"                                                                       \
    "    for word in $values; do\n"                                                                \
    "        [[ $word == \"$previous=\"* ]] && kind=${word#*=}\n"                                  \
    "    done\n"                                                                                   \
    "    if [[ $kind ]]; then\n"                                                                   \
    "        word=$(_vgpuctl_words \"$kind\")\n"                                                   \
    "    elif [[ $current == -* ]]; then\n"                                                        \
    "        word=$opts\n"                                                                         \
    "    elif ((${#words[@]} == 0)); then\n"                                                       \
    "        word=$nouns\n"                                                                        \
    "    elif [[ $verbs ]] && ((${#words[@]} == 1)); then\n"                                       \
    "        word=$verbs\n"                                                                        \
    "    else\n"                                                                                   \
    "        word=${args##* }\n"                                                                   \
    "        args=($args)\n"                                                                       \
    "        kind=${args[${#words[@]} - first]-}\n"                                                \
    "        [[ ! $kind && $word == *... ]] && kind=$word\n"                                       \
    "        word=$(_vgpuctl_words \"${kind%%...}\")\n"                                            \
    "    fi\n"                                                                                     \
    "    mapfile -t COMPREPLY < <(compgen -W \"$word\" -- \"$current\")\n"                         \
    "    if [[ $current == *:* ]]; then\n"                                                         \
    "        COMPREPLY=(\"${COMPREPLY[@]#\"${current%%\"${current##*:}\"}\"}\")\n"                 \
    "    fi\n"                                                                                     \
    "}\n"                                                                                          \
    "\n"                                                                                           \
    "complete -F _vgpuctl vgpuctl\n"

static void add_option(const GOptionEntry *option, GString *text, const Command *command)
{
    (void)command;
    g_string_append_printf(text, " --%s", option->long_name);
}

/* Options without a kind are there too: their values have nothing to offer. */
static void add_value(const GOptionEntry *option, GString *text, const Command *command)
{
    const char *kind = option->arg_description ? option->arg_description : "VALUE";

    (void)command;
    if (!completion_has_value(option))
        return;
    g_string_append_printf(text, " --%s=%s", option->long_name, kind);
    if (option->short_name)
        g_string_append_printf(text, " -%c=%s", option->short_name, kind);
}

static void add_args(GString *text, const Command *command)
{
    g_auto(GStrv) args = g_strsplit(command->args ? command->args : "", " ", -1);

    g_string_append(text, " args='");
    for (char **at = args; *at; at++) {
        const WordKind *kind = word_kind_find(*at);

        g_string_append_printf(text, "%s%s%s", at == args ? "" : " ", kind ? kind->name : "-",
                               g_str_has_suffix(*at, "...") ? "..." : "");
    }
    g_string_append(text, "'");
}

static void add_command(GString *text, const Command *command)
{
    if (command->verb)
        g_string_append_printf(text, "    '%s %s') opts='", command->noun, command->verb);
    else
        g_string_append_printf(text, "    '%s '*) first=1 opts='", command->noun);
    completion_each_option(command, add_option, text);
    g_string_append(text, "'\n        values='");
    completion_each_option(command, add_value, text);
    g_string_append(text, "'\n       ");
    add_args(text, command);
    g_string_append(text, " ;;\n");
}

static void add_nouns(GString *text)
{
    g_string_append(text, "    nouns='");
    for (guint i = 0; i < commands_count; i++)
        if (completion_is_first(&commands[i]))
            g_string_append_printf(text, " %s", commands[i].noun);
    g_string_append(text, "'\n    case ${words[0]-} in\n");
    for (guint i = 0; i < commands_count; i++) {
        const Command *command = &commands[i];

        if (!command->verb || command->flags & COMMAND_HIDDEN)
            continue;
        if (completion_is_first(command))
            g_string_append_printf(text, "    %s) verbs='", command->noun);
        g_string_append_printf(text, " %s", command->verb);
        if (completion_is_last(command))
            g_string_append(text, "' ;;\n");
    }
    g_string_append(text, "    esac\n");
}

static void add_words(GString *text)
{
    g_string_append(text, "_vgpuctl_words() {\n    case $1 in\n");
    for (guint i = 0; i < word_kinds_count; i++) {
        const WordKind *kind = &word_kinds[i];

        if (kind->fixed)
            g_string_append_printf(text, "    '%s') echo %s ;;\n", kind->name, kind->fixed);
        else
            g_string_append_printf(text, "    %s) vgpuctl complete %s 2>/dev/null ;;\n", kind->name,
                                   kind->name);
    }
    g_string_append(text, "    esac\n}\n\n");
}

char *completion_bash(void)
{
    GString *text = g_string_new(HEAD);
    g_autofree char *with_values = completion_value_options(" | ");

    add_words(text);
    g_string_append(text, "_vgpuctl_command() {\n");
    add_nouns(text);
    g_string_append(text,
                    "    opts=' --help --output --version' values=' --output=FORMAT -o=FORMAT'\n"
                    "    case \"${words[0]-} ${words[1]-}\" in\n");
    for (guint i = 0; i < commands_count; i++)
        if (!(commands[i].flags & COMMAND_HIDDEN))
            add_command(text, &commands[i]);
    g_string_append(text, "    esac\n}\n\n");
    g_string_append_printf(text, BODY, with_values);
    return g_string_free(text, FALSE);
}
