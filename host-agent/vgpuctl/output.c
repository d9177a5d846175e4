/* SPDX-License-Identifier: MIT */
#include "host-agent/vgpuctl/output.h"

#include <string.h>
#include <unistd.h>

#include "host-agent/vgpuctl/text.h"
#include "host-agent/vgpuctl/yaml.h"

gboolean format_parse(const char *name, Format *format)
{
    static const char *const names[] = {
        [FORMAT_TABLE] = "table", [FORMAT_WIDE] = "wide", [FORMAT_NAME] = "name",
        [FORMAT_YAML] = "yaml",   [FORMAT_JSON] = "json",
    };

    for (guint i = 0; i < G_N_ELEMENTS(names); i++) {
        if (!g_str_equal(name, names[i]))
            continue;
        *format = i;
        return TRUE;
    }
    return FALSE;
}

gboolean output_is_document(const Options *options)
{
    return options->format == FORMAT_JSON || options->format == FORMAT_YAML;
}

/* https://no-color.org: any value but an empty one. */
gboolean output_has_colour(FILE *stream)
{
    const char *no_colour = g_getenv("NO_COLOR");
    const char *term = g_getenv("TERM");

    if (no_colour && *no_colour)
        return FALSE;
    return isatty(fileno(stream)) && term && *term && !g_str_equal(term, "dumb");
}

void output_node(const Options *options, JsonNode *node)
{
    g_autofree char *text =
        options->format == FORMAT_YAML ? yaml_of_json(node) : json_to_string(node, TRUE);

    fputs(text, options->out);
    if (!g_str_has_suffix(text, "\n"))
        fputc('\n', options->out);
    json_node_unref(node);
}

void output_variant(const Options *options, GVariant *value)
{
    g_autoptr(GVariant) held = g_variant_ref_sink(value);

    output_node(options, json_gvariant_serialize(held));
}

void output_line(const Options *options, const char *format, ...)
{
    g_autofree char *shown = NULL;
    va_list values;

    va_start(values, format);
    shown = text_printable(g_strdup_vprintf(format, values));
    va_end(values);
    fprintf(options->out, "%s\n", shown);
}
