// SPDX-License-Identifier: MIT
#include "registry.h"

#include <string.h>

struct parser {
    struct registry *registry;
    struct registry_command *command; /* that is being read */
    GString *param;                   /* text of a parameter; NULL: not in one */
    char *type;                       /* its type */
    gboolean in_proto, in_name, in_type;
    gboolean foreign;    /* in an extension that is not for here */
    GPtrArray *left_out; /* names in such */
};

static void command_free(void *data)
{
    struct registry_command *command = data;

    g_free(command->name);
    g_free(command->alias);
    g_free(command->first);
    g_ptr_array_free(command->out, TRUE);
    g_free(command);
}

static void struct_free(void *data)
{
    struct registry_struct *of = data;

    g_free(of->name);
    g_strfreev(of->extends);
    g_free(of);
}

static const char *value_of(const char **names, const char **values, const char *name)
{
    for (; *names; names++, values++) {
        if (g_str_equal(*names, name))
            return *values;
    }
    return NULL;
}

/* A list separated by commas; a missing one contains everything. */
static gboolean has(const char *list, const char *word)
{
    g_auto(GStrv) words = g_strsplit(list ? list : word, ",", -1);

    return g_strv_contains((const char *const *)words, word);
}

static gboolean is_foreign(const char **names, const char **values)
{
    static const char *const ours[] = {"xlib",    "xlib_xrandr", "xcb",
                                       "wayland", "provisional", NULL};
    const char *platform = value_of(names, values, "platform");

    return !has(value_of(names, values, "supported"), "vulkan") ||
           (platform && !g_strv_contains(ours, platform));
}

static void start_command(struct parser *parser, const char **names, const char **values)
{
    const char *name = value_of(names, values, "name");

    if (!has(value_of(names, values, "api"), "vulkan"))
        return;
    parser->command = g_new0(struct registry_command, 1);
    parser->command->out = g_ptr_array_new_with_free_func(g_free);
    parser->command->alias = g_strdup(value_of(names, values, "alias"));
    parser->command->name = g_strdup(name);
}

static void add_struct(struct parser *parser, const char **names, const char **values)
{
    const char *extends = value_of(names, values, "structextends");
    struct registry_struct *of;

    if (!extends)
        return;
    of = g_new0(struct registry_struct, 1);
    of->name = g_strdup(value_of(names, values, "name"));
    of->extends = g_strsplit(extends, ",", -1);
    g_hash_table_insert(parser->registry->structs, of->name, of);
}

static void on_start(GMarkupParseContext *context, const char *element, const char **names,
                     const char **values, void *data, GError **error)
{
    const GSList *parents = g_markup_parse_context_get_element_stack(context)->next;
    const char *parent = parents ? parents->data : "";
    struct parser *parser = data;

    (void)error;
    if (g_str_equal(element, "extension"))
        parser->foreign = is_foreign(names, values);
    else if (g_str_equal(parent, "require") && parser->foreign && value_of(names, values, "name"))
        g_ptr_array_add(parser->left_out, g_strdup(value_of(names, values, "name")));
    else if (g_str_equal(parent, "commands") && g_str_equal(element, "command"))
        start_command(parser, names, values);
    else if (g_str_equal(parent, "types") && g_str_equal(element, "type"))
        add_struct(parser, names, values);
    else if (g_str_equal(parent, "command") && g_str_equal(element, "proto"))
        parser->in_proto = TRUE;
    else if (g_str_equal(parent, "command") && g_str_equal(element, "param") &&
             has(value_of(names, values, "api"), "vulkan"))
        parser->param = g_string_new(NULL);
    parser->in_name = g_str_equal(element, "name");
    parser->in_type = g_str_equal(element, "type");
}

static void end_param(struct parser *parser)
{
    struct registry_command *command = parser->command;

    if (command && parser->type) {
        if (!command->first)
            command->first = g_strdup(parser->type);
        if (strchr(parser->param->str, '*') && !strstr(parser->param->str, "const"))
            g_ptr_array_add(command->out, g_strdup(parser->type));
    }
    g_string_free(parser->param, TRUE);
    g_clear_pointer(&parser->type, g_free);
    parser->param = NULL;
}

static void on_end(GMarkupParseContext *context, const char *element, void *data, GError **error)
{
    struct parser *parser = data;

    (void)context;
    (void)error;
    parser->in_name = parser->in_type = FALSE;
    if (g_str_equal(element, "extension"))
        parser->foreign = FALSE;
    else if (g_str_equal(element, "proto"))
        parser->in_proto = FALSE;
    else if (g_str_equal(element, "param") && parser->param)
        end_param(parser);
    else if (g_str_equal(element, "command") && parser->command) {
        g_hash_table_insert(parser->registry->commands, parser->command->name, parser->command);
        parser->command = NULL;
    }
}

static void on_text(GMarkupParseContext *context, const char *text, gsize length, void *data,
                    GError **error)
{
    struct parser *parser = data;

    (void)context;
    (void)error;
    if (parser->in_proto && parser->in_name && parser->command)
        parser->command->name = g_strndup(text, length);
    if (!parser->param)
        return;
    g_string_append_len(parser->param, text, (gssize)length);
    if (parser->in_type && !parser->type)
        parser->type = g_strndup(text, length);
}

struct registry *registry_read(void)
{
    static const GMarkupParser calls = {
        .start_element = on_start, .end_element = on_end, .text = on_text};
    struct registry *registry = g_new0(struct registry, 1);
    struct parser parser = {.registry = registry,
                            .left_out = g_ptr_array_new_with_free_func(g_free)};
    GMarkupParseContext *context = g_markup_parse_context_new(&calls, 0, &parser, NULL);
    g_autofree char *text = NULL;
    GError *error = NULL;
    gsize length;

    registry->commands = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, command_free);
    registry->structs = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, struct_free);
    if (!g_file_get_contents(REGISTRY_FILE, &text, &length, &error))
        g_error("%s: it is in the package libvulkan-dev", error->message);
    g_markup_parse_context_parse(context, text, (gssize)length, &error);
    g_assert_no_error(error);
    g_markup_parse_context_free(context);
    for (guint i = 0; i < parser.left_out->len; i++) {
        g_hash_table_remove(registry->commands, parser.left_out->pdata[i]);
        g_hash_table_remove(registry->structs, parser.left_out->pdata[i]);
    }
    g_ptr_array_free(parser.left_out, TRUE);
    return registry;
}

void registry_free(struct registry *registry)
{
    g_hash_table_destroy(registry->commands);
    g_hash_table_destroy(registry->structs);
    g_free(registry);
}

const struct registry_command *registry_resolve(const struct registry *registry, const char *name)
{
    const struct registry_command *command = g_hash_table_lookup(registry->commands, name);

    while (command && command->alias)
        command = g_hash_table_lookup(registry->commands, command->alias);
    return command;
}
