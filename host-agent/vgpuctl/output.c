/* SPDX-License-Identifier: MIT */
#include "host-agent/vgpuctl/output.h"

#include <string.h>
#include <unistd.h>

/* Numbers as people read them. */

/* Takes @text. */
static char *replace_unprintable(char *text)
{
    g_autofree char *valid = g_utf8_make_valid(text, -1);
    GString *shown = g_string_new(NULL);

    for (const char *at = valid; *at; at = g_utf8_next_char(at)) {
        gunichar character = g_utf8_get_char(at);

        g_string_append_unichar(
            shown, character != '\n' && g_unichar_iscntrl(character) ? '?' : character);
    }
    g_free(text);
    return g_string_free(shown, FALSE);
}

/* So is nearly all that is shown. */
static gboolean is_printable_ascii(const char *text)
{
    for (; *text; text++)
        if (!g_ascii_isprint(*text) && *text != '\n')
            return FALSE;
    return TRUE;
}

char *text_printable(char *text)
{
    return is_printable_ascii(text) ? text : replace_unprintable(text);
}

/* GLib writes a blank that does not break, which scripts do not expect. */
char *text_of_bytes(guint64 bytes)
{
    g_autofree char *text = g_format_size_full(bytes, G_FORMAT_SIZE_IEC_UNITS);
    g_auto(GStrv) words = g_strsplit(text, "\u00a0", -1);

    return bytes ? g_strjoinv(" ", words) : NULL;
}

/* YAML 1.2 of what is there as JSON. */

#define INDENT 2

static void add_node(GString *text, JsonNode *node, guint depth);

static gboolean is_block(JsonNode *node)
{
    if (JSON_NODE_HOLDS_OBJECT(node))
        return json_object_get_size(json_node_get_object(node)) > 0;
    return JSON_NODE_HOLDS_ARRAY(node) && json_array_get_length(json_node_get_array(node)) > 0;
}

static void add_indent(GString *text, guint depth)
{
    g_string_append_printf(text, "%*s", (int)(depth * INDENT), "");
}

/* Every JSON scalar is one of YAML's, in the same words. */
static void add_scalar(GString *text, JsonNode *node)
{
    g_autofree char *scalar = json_to_string(node, FALSE);

    g_string_append(text, scalar);
}

static void add_member(GString *text, const char *name, JsonNode *node, guint depth)
{
    g_string_append_printf(text, "%s:", name);
    if (is_block(node)) {
        g_string_append_c(text, '\n');
        add_node(text, node, depth + 1);
        return;
    }
    g_string_append_c(text, ' ');
    add_scalar(text, node);
    g_string_append_c(text, '\n');
}

/* @begun: the first line's indentation is there. */
static void add_object(GString *text, JsonObject *object, guint depth, gboolean begun)
{
    g_autoptr(GList) names = g_list_sort(json_object_get_members(object), (GCompareFunc)strcmp);

    for (GList *at = names; at; at = at->next) {
        if (at != names || !begun)
            add_indent(text, depth);
        add_member(text, at->data, json_object_get_member(object, at->data), depth);
    }
}

static void add_entry(GString *text, JsonNode *node, guint depth)
{
    add_indent(text, depth);
    g_string_append_c(text, '-');
    if (JSON_NODE_HOLDS_OBJECT(node) && is_block(node)) {
        g_string_append_c(text, ' ');
        add_object(text, json_node_get_object(node), depth + 1, TRUE);
    } else if (is_block(node)) {
        g_string_append_c(text, '\n');
        add_node(text, node, depth + 1);
    } else {
        g_string_append_c(text, ' ');
        add_scalar(text, node);
        g_string_append_c(text, '\n');
    }
}

static void add_node(GString *text, JsonNode *node, guint depth)
{
    JsonArray *array;

    if (JSON_NODE_HOLDS_OBJECT(node)) {
        add_object(text, json_node_get_object(node), depth, FALSE);
        return;
    }
    array = json_node_get_array(node);
    for (guint i = 0; i < json_array_get_length(array); i++)
        add_entry(text, json_array_get_element(array, i), depth);
}

/* A document in block style, members in the order of their names, strings in double quotes. To be
 * freed. */
static char *yaml_of_json(JsonNode *node)
{
    GString *text = g_string_new(NULL);

    if (is_block(node)) {
        add_node(text, node, 0);
    } else {
        add_scalar(text, node);
        g_string_append_c(text, '\n');
    }
    return g_string_free(text, FALSE);
}

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

/* A line on a terminal's standard error about what takes longer than two seconds. */

/* Shorter things need no explanation. */
#define SILENCE_US (2 * G_USEC_PER_SEC)
#define REDRAW_MS  250
#define DEPTH      4
/* To the line's begin, and blank to its end. */
#define CLEAR_LINE "\r\033[K"

/**
 * Step - something that is being done
 * @since, @limit_at: of the monotonic clock; @limit_at: 0: no limit
 * @all: 0: it has no parts
 */
typedef struct {
    char *what;
    gint64 since;
    gint64 limit_at;
    guint done;
    guint all;
} Step;

static Step steps[DEPTH];
static guint depth;
static guint timer;
static gboolean drawn;

/* "1:05", "12 s" */
static char *duration_text(gint64 microseconds)
{
    gint64 seconds = MAX(microseconds, 0) / G_USEC_PER_SEC;

    if (seconds < 60)
        return g_strdup_printf("%d s", (int)seconds);
    return g_strdup_printf("%d:%02d min", (int)(seconds / 60), (int)(seconds % 60));
}

/* What is left by the parts that are done; else until it is given up. NULL: nobody knows. */
static char *left_text(const Step *step, gint64 now)
{
    g_autofree char *left = NULL;

    if (step->done && step->done < step->all) {
        left = duration_text((now - step->since) / step->done * (step->all - step->done));
        return g_strdup_printf("about %s left", left);
    }
    if (!step->limit_at)
        return NULL;
    left = duration_text(step->limit_at - now + G_USEC_PER_SEC - 1);
    return g_strdup_printf("at most %s left", left);
}

static void draw_step(const Step *step, gint64 now)
{
    g_autofree char *taken = duration_text(now - step->since);
    g_autofree char *left = left_text(step, now);

    fprintf(stderr, CLEAR_LINE "%s", step->what);
    if (step->all)
        fprintf(stderr, ", %u of %u done", step->done, step->all);
    fprintf(stderr, ": %s%s%s", taken, left ? ", " : "", left ? left : "");
    fflush(stderr);
    drawn = TRUE;
}

static gboolean redraw_steps(void *data)
{
    gint64 now = g_get_monotonic_time();
    const Step *shown = &steps[depth - 1];

    (void)data;
    /* The outermost that counts parts says most. */
    for (guint i = depth; i > 0; i--)
        if (steps[i - 1].all > 1)
            shown = &steps[i - 1];
    if (now - steps[0].since >= SILENCE_US)
        draw_step(shown, now);
    return G_SOURCE_CONTINUE;
}

void progress_begin(const char *what, guint limit)
{
    Step *step;

    g_return_if_fail(depth < DEPTH);
    step = &steps[depth++];
    *step = (Step){.what = g_strdup(what), .since = g_get_monotonic_time()};
    if (limit)
        step->limit_at = step->since + limit * G_USEC_PER_SEC;
    if (depth == 1 && isatty(STDERR_FILENO))
        timer = g_timeout_add(REDRAW_MS, redraw_steps, NULL);
}

void progress_parts(guint done, guint all)
{
    steps[depth - 1].done = done;
    steps[depth - 1].all = all;
}

void progress_hide(void)
{
    if (drawn)
        fputs(CLEAR_LINE, stderr);
    drawn = FALSE;
}

void progress_end(void)
{
    progress_hide();
    g_free(steps[--depth].what);
    if (!depth)
        g_clear_handle_id(&timer, g_source_remove);
}

static gboolean wake_waiter(void *woken)
{
    *(gboolean *)woken = TRUE;
    return G_SOURCE_REMOVE;
}

void progress_sleep(gint64 microseconds)
{
    gboolean woken = FALSE;

    g_timeout_add((guint)(microseconds / 1000), wake_waiter, &woken);
    while (!woken)
        g_main_context_iteration(NULL, TRUE);
}

/* Commands that take several objects: each is done, whatever becomes of the others. */

void each_print_error(const GError *error)
{
    g_autoptr(GError) copy = g_error_copy(error);
    g_autofree char *shown = NULL;

    g_dbus_error_strip_remote_error(copy);
    shown = text_printable(g_strdup(copy->message));
    progress_hide();
    g_printerr("vgpuctl: %s\n", shown);
}

/* One of several: @first is kept. */
static void keep_first(GError *cause, GError **first)
{
    each_print_error(cause);
    if (*first)
        g_error_free(cause);
    else
        *first = cause;
}

gboolean each_name(Client *client, char **names, const char *doing, EachFunc func, void *data,
                   GError **error)
{
    g_autoptr(GError) first = NULL;
    guint all = g_strv_length(names);
    guint failed = 0;

    if (all == 1)
        return func(client, names[0], data, error);
    progress_begin(doing, 0);
    for (guint i = 0; i < all; i++) {
        GError *cause = NULL;

        progress_parts(i, all);
        if (func(client, names[i], data, &cause))
            continue;
        failed++;
        keep_first(cause, &first);
    }
    progress_end();
    if (!first)
        return TRUE;
    g_set_error(error, first->domain, first->code,
                "%u of %u failed, see above; the others are done", failed, all);
    return FALSE;
}
