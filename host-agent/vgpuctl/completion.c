/* SPDX-License-Identifier: MIT */
/*
 * vgpuctl complete: the words that can follow on a command line, from the table of commands and
 * from this host. The shells' own scripts, vgpuctl completion, ask for them.
 */
#include <stdio.h>
#include <string.h>
#include <json-glib/json-glib.h>

#include "lib/host_root.h"
#include "host-agent/vgpuctl/command.h"
#include "host-agent/vgpuctl/output.h"

/*
 * Names on this host are read from files that everybody may read: a shell's completion must not
 * wait for vgpud or libvirt, nor start them, nor ask for a password.
 */

#define PARENTS     "/sys/class/mdev_bus"
#define PCI_DEVICES "/sys/bus/pci/devices"
#define MDEVS       "/sys/bus/mdev/devices"
#define DEFINITIONS "/etc/mdevctl.d"
#define CDI_FILE    "/var/run/cdi/mdev-vgpu.json"
#define TENANTS     "/etc/vgpu/tenants.d"
/* All classes of PCI that are GPUs begin so: display controllers. */
#define GPU_CLASS "0x03"

static void find_gpus(HostRoot *root, GStrvBuilder *words)
{
    g_auto(GStrv) devices = sysfs_list(root, PCI_DEVICES);
    g_auto(GStrv) parents = sysfs_list(root, PARENTS);

    for (char **at = devices; *at; at++) {
        g_autofree char *dir = g_build_filename(PCI_DEVICES, *at, NULL);
        g_autofree char *class = sysfs_read(root, dir, "class");

        if (class && g_str_has_prefix(class, GPU_CLASS))
            g_strv_builder_add(words, *at);
    }
    /* GPUs without hardware. */
    for (char **at = parents; *at; at++)
        if (!strchr(*at, ':'))
            g_strv_builder_take(words, g_strconcat("soft:", *at, NULL));
}

/* Those that are started, and those that mdevctl keeps. */
static void find_vgpus(HostRoot *root, GStrvBuilder *words)
{
    g_auto(GStrv) started = sysfs_list(root, MDEVS);
    g_auto(GStrv) parents = sysfs_list(root, DEFINITIONS);

    g_strv_builder_addv(words, (const char **)started);
    for (char **at = parents; *at; at++) {
        g_autofree char *dir = g_build_filename(DEFINITIONS, *at, NULL);
        g_auto(GStrv) defined = sysfs_list(root, dir);

        g_strv_builder_addv(words, (const char **)defined);
    }
}

static void find_types(HostRoot *root, GStrvBuilder *words)
{
    g_auto(GStrv) parents = sysfs_list(root, PARENTS);

    for (char **at = parents; *at; at++) {
        g_autofree char *dir = g_build_filename(PARENTS, *at, "mdev_supported_types", NULL);
        g_auto(GStrv) types = sysfs_list(root, dir);

        g_strv_builder_addv(words, (const char **)types);
    }
}

/* vGPUs, and what containers can ask for, by UUID and by name. */
static void find_slices(HostRoot *root, GStrvBuilder *words)
{
    g_autofree char *text = root_read(root, CDI_FILE, NULL);
    g_autoptr(JsonParser) parser = json_parser_new();
    g_autoptr(JsonNode) names = NULL;
    JsonArray *list;

    find_vgpus(root, words);
    if (!text || !json_parser_load_from_data(parser, text, -1, NULL))
        return;
    names = json_path_query("$.devices[*].name", json_parser_get_root(parser), NULL);
    list = names ? json_node_get_array(names) : NULL;
    for (guint i = 0; list && i < json_array_get_length(list); i++)
        g_strv_builder_add(words, json_array_get_string_element(list, i));
}

/* @suffix: of the file names, which are shown without it. */
static void find_files(HostRoot *root, const char *path, const char *suffix, GStrvBuilder *words)
{
    g_auto(GStrv) names = sysfs_list(root, path);

    for (char **at = names; *at; at++)
        if (g_str_has_suffix(*at, suffix))
            g_strv_builder_take(words, g_strndup(*at, strlen(*at) - strlen(suffix)));
}

static void find_domains(HostRoot *root, GStrvBuilder *words)
{
    find_files(root, "/etc/libvirt/qemu", ".xml", words);
    find_files(root, "/run/libvirt/qemu", ".xml", words);
}

static void find_tenants(HostRoot *root, GStrvBuilder *words)
{
    find_files(root, TENANTS, ".conf", words);
}

/**
 * WordKind - what the name of an argument, or of an option's value, stands for
 * @fixed: all words that it can be, with blanks between; NULL: not fixed
 * @find: adds those that there are on this host
 */
typedef struct {
    const char *name;
    const char *fixed;
    void (*find)(HostRoot *root, GStrvBuilder *words);
} WordKind;

/* The shell has its own words for files. */
#define FILES "@files"

static const WordKind word_kinds[] = {
    {"GPU", NULL, find_gpus},
    {"VGPU", NULL, find_vgpus},
    {"TYPE", NULL, find_types},
    {"SLICE", NULL, find_slices},
    {"TENANT", NULL, find_tenants},
    {"DOMAIN", NULL, find_domains},
    {"MODE", "host shared passthrough partitioned", NULL},
    {"POOL", "local slurm kubernetes", NULL},
    {"FORMAT", "table wide name yaml json", NULL},
    {"CLASS", "guaranteed burstable best-effort", NULL},
    {"POLICY", "binpack spread", NULL},
    {"DOOR", "auto native guarded vfio", NULL},
    {"on|off", "on off", NULL},
    {"SHELL", "bash zsh fish", NULL},
    {"FILE", FILES, NULL},
    {"DIRECTORY", FILES, NULL},
};

/* @name: also in brackets, or with "..." at its end. NULL: there is none of that name. */
static const WordKind *find_kind(const char *name)
{
    g_autofree char *bare = g_strdup(*name == '[' ? name + 1 : name);
    char *end = strpbrk(bare, "].");

    if (end)
        *end = '\0';
    for (guint i = 0; i < G_N_ELEMENTS(word_kinds); i++)
        if (g_str_equal(word_kinds[i].name, bare))
            return &word_kinds[i];
    return NULL;
}

/**
 * Line - what is typed
 * @command: of the first words; NULL: not known yet
 * @noun: the first word that is no option; NULL: none
 * @count: of such words
 * @option: its value comes next; NULL: none
 * @before: "--output=" in front of the last word, which is its value; else ""
 * @typed: the rest of the last word
 */
typedef struct {
    const Options *options;
    const Command *command;
    const char *noun;
    guint count;
    const GOptionEntry *option;
    char *before;
    const char *typed;
} Line;

/* The word with what it means, if it can be that one. */
static void offer_word(const Line *line, const char *word, const char *help)
{
    g_autofree char *shown = text_printable(g_strdup(word));

    if (g_str_has_prefix(word, line->typed) || g_str_equal(word, FILES))
        fprintf(line->options->out, "%s%s\t%s\n", line->before, shown, help ? help : "");
}

typedef void (*OptionFunc)(const GOptionEntry *option, void *data);

static void each_of(const GOptionEntry *options, OptionFunc func, void *data)
{
    for (; options && options->long_name; options++)
        if (!(options->flags & G_OPTION_FLAG_HIDDEN))
            func(options, data);
}

/* @command: NULL: not known yet. */
static void each_option(const Command *command, OptionFunc func, void *data)
{
    static const GOptionEntry help[] = {
        {"help", 'h', 0, G_OPTION_ARG_NONE, NULL, "Show help options", NULL},
        G_OPTION_ENTRY_NULL,
    };

    if (command) {
        each_of(command->options, func, data);
        each_of(command_attributes(command), func, data);
    }
    if (command && command->flags & COMMAND_LISTS)
        each_of(everywhere_list_options, func, data);
    each_of(everywhere_options, func, data);
    each_of(help, func, data);
}

static void offer_option(const GOptionEntry *option, void *line)
{
    g_autofree char *word = g_strconcat("--", option->long_name, NULL);

    offer_word(line, word, option->description);
}

typedef struct {
    const char *word;
    const GOptionEntry *found;
} Search;

static void compare_option(const GOptionEntry *option, void *data)
{
    Search *search = data;
    g_autofree char *name = g_strconcat("--", option->long_name, NULL);
    const char letter[] = {'-', option->short_name, '\0'};

    if (g_str_equal(search->word, name) ||
        (option->short_name && g_str_equal(search->word, letter)))
        search->found = option;
}

/* "--output" or "-o", if it has a value; NULL: none that has. */
static const GOptionEntry *option_with_value(const Command *command, const char *word)
{
    Search search = {word, NULL};

    each_option(command, compare_option, &search);
    return search.found && search.found->arg != G_OPTION_ARG_NONE ? search.found : NULL;
}

static void read_word(Line *line, const char *word)
{
    if (line->option) {
        line->option = NULL;
    } else if (*word == '-') {
        line->option = option_with_value(line->command, word);
    } else {
        if (!line->count++)
            line->noun = word;
        if (line->count <= 2)
            line->command = command_find(line->noun, line->count == 2 ? word : NULL);
    }
}

/* "--output=js". */
static void split_last(Line *line, const char *word)
{
    const char *value = *word == '-' ? strchr(word, '=') : NULL;
    g_autofree char *name = value ? g_strndup(word, (gsize)(value - word)) : NULL;

    line->before = value ? g_strconcat(name, "=", NULL) : g_strdup("");
    line->typed = value ? value + 1 : word;
    if (value)
        line->option = option_with_value(line->command, name);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void offer_kind(const Line *line, const char *name)
{
    const WordKind *kind = name ? find_kind(name) : NULL;
    g_autoptr(GStrvBuilder) builder = g_strv_builder_new();
    g_auto(GStrv) words = NULL;

    if (!kind)
        return;
    if (kind->find)
        kind->find(line->options->root, builder);
    words = kind->fixed ? g_strsplit(kind->fixed, " ", -1) : g_strv_builder_end(builder);
    if (kind->find)
        qsort(words, g_strv_length(words), sizeof(*words), by_name);
    for (guint i = 0; words[i]; i++)
        if (i == 0 || !g_str_equal(words[i], words[i - 1]))
            offer_word(line, words[i], NULL);
}

/* Of the command's arguments the next one, or the last again. */
static void offer_argument(const Line *line)
{
    const Command *command = line->command;
    g_auto(GStrv) args = g_strsplit(command->args ? command->args : "", " ", -1);
    guint known = g_strv_length(args);
    guint next = line->count - (command->verb ? 2 : 1);

    if (next < known)
        offer_kind(line, args[next]);
    else if (known && strstr(args[known - 1], "..."))
        offer_kind(line, args[known - 1]);
}

/* A noun with verbs is described by them. */
static void offer_nouns(const Line *line)
{
    const char *last = "";

    for (guint i = 0; i < commands_count; i++) {
        const Command *command = &commands[i];

        if (command->flags & COMMAND_HIDDEN || g_str_equal(command->noun, last))
            continue;
        last = command->noun;
        offer_word(line, command->noun, command->verb ? NULL : command->help);
    }
}

static void offer_verbs(const Line *line)
{
    for (guint i = 0; i < commands_count; i++)
        if (g_str_equal(commands[i].noun, line->noun) && commands[i].verb &&
            !(commands[i].flags & COMMAND_HIDDEN))
            offer_word(line, commands[i].verb, commands[i].help);
}

static void offer_words(const Line *line)
{
    if (line->option)
        offer_kind(line, line->option->arg_description);
    else if (*line->typed == '-')
        each_option(line->command, offer_option, (void *)line);
    else if (line->command)
        offer_argument(line);
    else if (!line->count)
        offer_nouns(line);
    else if (line->count == 1)
        offer_verbs(line);
}

gboolean complete_command(Client *client, const Options *options, char **args, GError **error)
{
    Line line = {.options = options};

    (void)client;
    (void)error;
    if (g_strcmp0(args[0], "--") == 0)
        args++;
    for (; args[0] && args[1]; args++)
        read_word(&line, args[0]);
    split_last(&line, args[0] ? args[0] : "");
    offer_words(&line);
    g_free(line.before);
    return TRUE;
}

/* bash takes colons, as in PCI addresses, and "=" for ends of words. */
#define BASH                                                                                       \
    "# SPDX-License-Identifier: MIT\n"                                                             \
    "# bash completion for vgpuctl(1): made by \"vgpuctl completion bash\".\n"                     \
    "_vgpuctl() {\n"                                                                               \
    "    local current= typed\n"                                                                   \
    "    read -ra typed <<<\"${COMP_LINE:0:COMP_POINT}\"\n"                                        \
    "    [[ ${COMP_LINE:0:COMP_POINT} == *[[:space:]] ]] && typed+=('')\n"                         \
    "    current=${typed[-1]}\n"                                                                   \
    "    mapfile -t COMPREPLY < <(vgpuctl complete -- \"${typed[@]:1}\" 2>/dev/null)\n"            \
    "    COMPREPLY=(\"${COMPREPLY[@]%%$'\\t'*}\")\n"                                               \
    "    if [[ ${COMPREPLY[0]} == *@files ]]; then\n"                                              \
    "        COMPREPLY=()\n"                                                                       \
    "        compopt -o default\n"                                                                 \
    "    elif [[ $current == *[:=]* ]]; then\n"                                                    \
    "        COMPREPLY=(\"${COMPREPLY[@]#\"${current%\"${current##*[:=]}\"}\"}\")\n"               \
    "    fi\n"                                                                                     \
    "}\n"                                                                                          \
    "complete -F _vgpuctl vgpuctl\n"

#define ZSH                                                                                        \
    "#compdef vgpuctl\n"                                                                           \
    "# SPDX-License-Identifier: MIT\n"                                                             \
    "# zsh completion for vgpuctl(1): made by \"vgpuctl completion zsh\".\n"                       \
    "_vgpuctl() {\n"                                                                               \
    "    local -a lines names shown\n"                                                             \
    "    lines=(\"${(@f)$(vgpuctl complete -- \"${(@)words[2,CURRENT]}\" 2>/dev/null)}\")\n"       \
    "    names=(\"${(@)lines%%$'\\t'*}\")\n"                                                       \
    "    if [[ $names[1] == *@files ]]; then\n"                                                    \
    "        compset -P '*='\n"                                                                    \
    "        _files\n"                                                                             \
    "    elif [[ -n $names[1] ]]; then\n"                                                          \
    "        shown=(\"${(@)lines/$'\\t'/  }\")\n"                                                  \
    "        compadd -l -d shown -a -- names\n"                                                    \
    "    fi\n"                                                                                     \
    "}\n"                                                                                          \
    "compdef _vgpuctl vgpuctl\n"

#define FISH                                                                                       \
    "# SPDX-License-Identifier: MIT\n"                                                             \
    "# fish completion for vgpuctl(1): made by \"vgpuctl completion fish\".\n"                     \
    "function __vgpuctl\n"                                                                         \
    "    set -l typed (commandline -opc) (commandline -ct)\n"                                      \
    "    set -l words (vgpuctl complete -- $typed[2..-1] 2>/dev/null)\n"                           \
    "    if string match -q '*@files*' -- $words[1]\n"                                             \
    "        __fish_complete_path (commandline -ct)\n"                                             \
    "    else\n"                                                                                   \
    "        printf '%s\\n' $words\n"                                                              \
    "    end\n"                                                                                    \
    "end\n"                                                                                        \
    "complete -c vgpuctl -f -a '(__vgpuctl)'\n"

gboolean completion_command(Client *client, const Options *options, char **args, GError **error)
{
    static const char *const scripts[][2] = {{"bash", BASH}, {"zsh", ZSH}, {"fish", FISH}};

    (void)client;
    for (guint i = 0; i < G_N_ELEMENTS(scripts); i++) {
        if (g_str_equal(args[0], scripts[i][0])) {
            fputs(scripts[i][1], options->out);
            return TRUE;
        }
    }
    g_set_error(error, VGPUCTL_ERROR, VGPUCTL_USAGE,
                "there are no completions for \"%s\"; usage: vgpuctl completion bash|zsh|fish",
                args[0]);
    return FALSE;
}
