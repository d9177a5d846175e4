/* SPDX-License-Identifier: MIT */
#include "host-agent/vgpuctl/completion.h"

#define HEAD                                                                                       \
    "#compdef vgpuctl\n"                                                                           \
    "# SPDX-License-Identifier: MIT\n"                                                             \
    "# zsh completion for vgpuctl(1): made by \"vgpuctl completion zsh\".\n"                       \
    "\n"

#define BODY                                                                                       \
    "_vgpuctl() {\n"                                                                               \
    "    local current=${words[CURRENT]} previous=${words[CURRENT-1]} word skip= kind=\n"          \
    "    local -a given nouns verbs opts args\n"                                                   \
    "    local -A values\n"                                                                        \
    "    local first=2\n"                                                                          \
    "    for word in \"${(@)words[2,CURRENT-1]}\"; do\n"                                           \
    "        if [[ -n $skip ]]; then skip=; continue; fi\n"                                        \
    "        case $word in\n"                                                                      \
    "        (%s) skip=1 ;;\n"                                                                     \
    "        (-*) ;;\n"                                                                            \
    "        (*) given+=(\"$word\") ;;\n"                                                          \
    "        esac\n"                                                                               \
    "    done\n"                                                                                   \
    "    _vgpuctl_command\n"                                                                       \
    "    if [[ $current == --*=* ]]; then\n"                                                       \
    "        previous=${current%%%%=*}\n"                                                          \
    "        compset -P '*='\n"                                                                    \
    "    fi\n"                                                                                     \
    "    kind=${values[$previous]-}\n"                                                             \
    "    if [[ -n $kind ]]; then\n"                                                                \
    "        _vgpuctl_words $kind\n"                                                               \
    "    elif [[ $current == -* ]]; then\n"                                                        \
    "        _describe option opts\n"                                                              \
    "    elif (( ! $#given )); then\n"                                                             \
    "        _describe command nouns\n"                                                            \
    "    elif (( $#verbs && $#given == 1 )); then\n"                                               \
    "        _describe command verbs\n"                                                            \
    "    else\n"                                                                                   \
    "        kind=${args[$#given - first + 1]-}\n"                                                 \
    "        [[ -z $kind && ${args[-1]-} == *... ]] && kind=${args[-1]}\n"                         \
    "        _vgpuctl_words ${kind%%...}\n"                                                        \
    "    fi\n"                                                                                     \
    "}\n"                                                                                          \
    "\n"                                                                                           \
    "compdef _vgpuctl vgpuctl\n"

static void add_described(GString *text, const char *word, const char *description)
{
    g_autofree char *entry = g_strdup_printf("%s:%s", word, description);
    g_autofree char *quoted = g_shell_quote(entry);

    g_string_append_printf(text, " %s", quoted);
}

static void add_option(const GOptionEntry *option, GString *text, const Command *command)
{
    g_autofree char *word = g_strconcat("--", option->long_name, NULL);

    (void)command;
    add_described(text, word, option->description);
}

static void add_value(const GOptionEntry *option, GString *text, const Command *command)
{
    const char *kind = option->arg_description ? option->arg_description : "VALUE";

    (void)command;
    if (!completion_has_value(option))
        return;
    g_string_append_printf(text, " --%s '%s'", option->long_name, kind);
    if (option->short_name)
        g_string_append_printf(text, " -%c '%s'", option->short_name, kind);
}

static void add_command(GString *text, const Command *command)
{
    g_auto(GStrv) args = g_strsplit(command->args ? command->args : "", " ", -1);

    if (command->verb)
        g_string_append_printf(text, "    ('%s %s')\n        opts=(", command->noun, command->verb);
    else
        g_string_append_printf(text, "    ('%s '*)\n        first=1\n        opts=(",
                               command->noun);
    completion_each_option(command, add_option, text);
    g_string_append(text, " )\n        values=(");
    completion_each_option(command, add_value, text);
    g_string_append(text, " )\n        args=(");
    for (char **at = args; *at; at++) {
        const WordKind *kind = word_kind_find(*at);

        g_string_append_printf(text, " %s%s", kind ? kind->name : "-",
                               g_str_has_suffix(*at, "...") ? "..." : "");
    }
    g_string_append(text, " ) ;;\n");
}

/* A noun with verbs is described by them. */
static void add_nouns(GString *text)
{
    g_string_append(text, "    nouns=(");
    for (guint i = 0; i < commands_count; i++) {
        if (!completion_is_first(&commands[i]))
            continue;
        if (commands[i].verb)
            g_string_append_printf(text, " %s", commands[i].noun);
        else
            add_described(text, commands[i].noun, commands[i].help);
    }
    g_string_append(text, " )\n    case ${given[1]-} in\n");
    for (guint i = 0; i < commands_count; i++) {
        const Command *command = &commands[i];

        if (!command->verb || command->flags & COMMAND_HIDDEN)
            continue;
        if (completion_is_first(command))
            g_string_append_printf(text, "    (%s)\n        verbs=(", command->noun);
        add_described(text, command->verb, command->help);
        if (completion_is_last(command))
            g_string_append(text, " ) ;;\n");
    }
    g_string_append(text, "    esac\n");
}

static void add_words(GString *text)
{
    g_string_append(text, "_vgpuctl_words() {\n    case $1 in\n");
    for (guint i = 0; i < word_kinds_count; i++) {
        const WordKind *kind = &word_kinds[i];

        if (kind->fixed)
            g_string_append_printf(text, "    ('%s') compadd -- %s ;;\n", kind->name, kind->fixed);
        else
            g_string_append_printf(
                text, "    (%s) compadd -- ${(f)\"$(vgpuctl complete %s 2>/dev/null)\"} ;;\n",
                kind->name, kind->name);
    }
    g_string_append(text, "    (FILE) _files ;;\n    esac\n}\n\n");
}

char *completion_zsh(void)
{
    GString *text = g_string_new(HEAD);
    g_autofree char *with_values = completion_value_options("|");

    add_words(text);
    g_string_append(text, "_vgpuctl_command() {\n");
    add_nouns(text);
    g_string_append(text, "    opts=( --help --output --version )\n"
                          "    values=( --output FORMAT -o FORMAT )\n"
                          "    case \"${given[1]-} ${given[2]-}\" in\n");
    for (guint i = 0; i < commands_count; i++)
        if (!(commands[i].flags & COMMAND_HIDDEN))
            add_command(text, &commands[i]);
    g_string_append(text, "    esac\n}\n\n");
    g_string_append_printf(text, BODY, with_values);
    return g_string_free(text, FALSE);
}
