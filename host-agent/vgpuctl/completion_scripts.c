/* SPDX-License-Identifier: MIT */
/* The completions of bash, zsh and fish. */
#include "host-agent/vgpuctl/completion.h"

#include <string.h>

#define BASH_HEAD                                                                                  \
    "# SPDX-License-Identifier: MIT\n"                                                             \
    "# bash completion for vgpuctl(1): made by \"vgpuctl completion bash\".\n"                     \
    "\n"

/* The command line is read from COMP_LINE: bash takes the colons of PCI addresses for ends of
 * words. */
#define BASH_BODY                                                                                  \
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

static void bash_add_option(const GOptionEntry *option, GString *text, const Command *command)
{
    (void)command;
    g_string_append_printf(text, " --%s", option->long_name);
}

/* Options without a kind are there too: their values have nothing to offer. */
static void bash_add_value(const GOptionEntry *option, GString *text, const Command *command)
{
    const char *kind = option->arg_description ? option->arg_description : "VALUE";

    (void)command;
    if (!completion_has_value(option))
        return;
    g_string_append_printf(text, " --%s=%s", option->long_name, kind);
    if (option->short_name)
        g_string_append_printf(text, " -%c=%s", option->short_name, kind);
}

static void bash_add_args(GString *text, const Command *command)
{
    g_auto(GStrv) args = g_strsplit(command->args ? command->args : "", " ", -1);

    g_string_append(text, " args='");
    for (char **at = args; *at; at++) {
        const WordKind *kind = word_kind_find(*at);

        g_string_append_printf(text, "%s%s%s", at == args ? "" : " ", kind ? kind->name : "-",
                               strstr(*at, "...") ? "..." : "");
    }
    g_string_append(text, "'");
}

static void bash_add_command(GString *text, const Command *command)
{
    if (command->verb)
        g_string_append_printf(text, "    '%s %s') opts='", command->noun, command->verb);
    else
        g_string_append_printf(text, "    '%s '*) first=1 opts='", command->noun);
    completion_each_option(command, bash_add_option, text);
    g_string_append(text, "'\n        values='");
    completion_each_option(command, bash_add_value, text);
    g_string_append(text, "'\n       ");
    bash_add_args(text, command);
    g_string_append(text, " ;;\n");
}

static void bash_add_nouns(GString *text)
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

static void bash_add_words(GString *text)
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
    GString *text = g_string_new(BASH_HEAD);
    g_autofree char *with_values = completion_value_options(" | ");

    bash_add_words(text);
    g_string_append(text, "_vgpuctl_command() {\n");
    bash_add_nouns(text);
    g_string_append(text,
                    "    opts=' --help --output --version' values=' --output=FORMAT -o=FORMAT'\n"
                    "    case \"${words[0]-} ${words[1]-}\" in\n");
    for (guint i = 0; i < commands_count; i++)
        if (!(commands[i].flags & COMMAND_HIDDEN))
            bash_add_command(text, &commands[i]);
    g_string_append(text, "    esac\n}\n\n");
    g_string_append_printf(text, BASH_BODY, with_values);
    return g_string_free(text, FALSE);
}

#define ZSH_HEAD                                                                                   \
    "#compdef vgpuctl\n"                                                                           \
    "# SPDX-License-Identifier: MIT\n"                                                             \
    "# zsh completion for vgpuctl(1): made by \"vgpuctl completion zsh\".\n"                       \
    "\n"

#define ZSH_BODY                                                                                   \
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

static void zsh_add_option(const GOptionEntry *option, GString *text, const Command *command)
{
    g_autofree char *word = g_strconcat("--", option->long_name, NULL);

    (void)command;
    add_described(text, word, option->description);
}

static void zsh_add_value(const GOptionEntry *option, GString *text, const Command *command)
{
    const char *kind = option->arg_description ? option->arg_description : "VALUE";

    (void)command;
    if (!completion_has_value(option))
        return;
    g_string_append_printf(text, " --%s '%s'", option->long_name, kind);
    if (option->short_name)
        g_string_append_printf(text, " -%c '%s'", option->short_name, kind);
}

static void zsh_add_command(GString *text, const Command *command)
{
    g_auto(GStrv) args = g_strsplit(command->args ? command->args : "", " ", -1);

    if (command->verb)
        g_string_append_printf(text, "    ('%s %s')\n        opts=(", command->noun, command->verb);
    else
        g_string_append_printf(text, "    ('%s '*)\n        first=1\n        opts=(",
                               command->noun);
    completion_each_option(command, zsh_add_option, text);
    g_string_append(text, " )\n        values=(");
    completion_each_option(command, zsh_add_value, text);
    g_string_append(text, " )\n        args=(");
    for (char **at = args; *at; at++) {
        const WordKind *kind = word_kind_find(*at);

        g_string_append_printf(text, " %s%s", kind ? kind->name : "-",
                               strstr(*at, "...") ? "..." : "");
    }
    g_string_append(text, " ) ;;\n");
}

/* A noun with verbs is described by them. */
static void zsh_add_nouns(GString *text)
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

static void zsh_add_words(GString *text)
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
    GString *text = g_string_new(ZSH_HEAD);
    g_autofree char *with_values = completion_value_options("|");

    zsh_add_words(text);
    g_string_append(text, "_vgpuctl_command() {\n");
    zsh_add_nouns(text);
    g_string_append(text, "    opts=( --help --output --version )\n"
                          "    values=( --output FORMAT -o FORMAT )\n"
                          "    case \"${given[1]-} ${given[2]-}\" in\n");
    for (guint i = 0; i < commands_count; i++)
        if (!(commands[i].flags & COMMAND_HIDDEN))
            zsh_add_command(text, &commands[i]);
    g_string_append(text, "    esac\n}\n\n");
    g_string_append_printf(text, ZSH_BODY, with_values);
    return g_string_free(text, FALSE);
}

#define FISH_HEAD                                                                                  \
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

static void fish_add_option(const GOptionEntry *option, GString *text, const Command *command)
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

static void fish_add_args(GString *text, const Command *command)
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

    g_string_append_printf(text, FISH_HEAD, with_values);
    for (guint i = 0; i < commands_count; i++) {
        const Command *command = &commands[i];

        if (command->flags & COMMAND_HIDDEN)
            continue;
        add_words_of(text, command);
        completion_each_option(command, fish_add_option, text);
        fish_add_args(text, command);
    }
    return g_string_free(text, FALSE);
}
