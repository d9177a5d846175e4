/* SPDX-License-Identifier: MIT */
#include "fleet/kubernetes/dra/slice_config.h"

#include "fleet/kubernetes/dra/quantity.h"
#include "lib/json.h"
#include "lib/refuse.h"

#define API_VERSION "mdev-vgpu.org/v1"

/* vgpud chooses by the GPU: one by which programs have CUDA if the GPU has it, else the guarded. */
#define DOOR_AUTO "auto"

/* A claim whose memory moves requests at least one of so many parts of it. */
#define MOVING_PARTS 100

static const char *const doors[] = {DOOR_AUTO, "guarded", "native", "vfio", NULL};
static const char *const classes[] = {"guaranteed", "burstable", "best-effort", NULL};

static void config_clear(SliceConfig *config)
{
    g_free(config->door);
    g_free(config->class);
    g_free(config->engines);
}

void slice_settings_clear(SliceSettings *settings)
{
    config_clear(&settings->of_class);
    config_clear(&settings->of_claim);
    g_strfreev(settings->limits.doors);
    g_strfreev(settings->limits.classes);
}

static gboolean take_word(JsonNode *node, const char *name, const char *const *allowed, char **word,
                          GError **error)
{
    const char *text = json_text_of(node);

    if (!text || (allowed && !g_strv_contains(allowed, text))) {
        g_autofree char *list = allowed ? g_strjoinv(", ", (char **)allowed) : g_strdup("a text");

        return refuse_with(error, G_IO_ERROR_INVALID_ARGUMENT, "\"%s\" must be one of: %s", name,
                           list);
    }
    g_free(*word);
    *word = g_strdup(text);
    return TRUE;
}

static gboolean take_words(JsonNode *node, const char *name, const char *const *allowed,
                           GStrv *words, GError **error)
{
    g_autoptr(GStrvBuilder) list = g_strv_builder_new();
    JsonArray *array = JSON_NODE_HOLDS_ARRAY(node) ? json_node_get_array(node) : NULL;

    for (guint i = 0; array && i < json_array_get_length(array); i++) {
        g_autofree char *word = NULL;

        if (!take_word(json_array_get_element(array, i), name, allowed, &word, error))
            return FALSE;
        g_strv_builder_add(list, word);
    }
    if (!array)
        return refuse_with(error, G_IO_ERROR_INVALID_ARGUMENT, "\"%s\" must be a list", name);
    g_strfreev(*words);
    *words = g_strv_builder_end(list);
    return TRUE;
}

static gboolean take_number(JsonNode *node, const char *name, gint64 low, gint64 high,
                            gint64 *number, GError **error)
{
    if (!JSON_NODE_HOLDS_VALUE(node) || json_node_get_value_type(node) != G_TYPE_INT64 ||
        json_node_get_int(node) < low || json_node_get_int(node) > high)
        return refuse_with(error, G_IO_ERROR_INVALID_ARGUMENT,
                           "\"%s\" must be a number from %d to %d", name, (int)low, (int)high);
    *number = json_node_get_int(node);
    return TRUE;
}

static gboolean take_bytes(JsonNode *node, const char *name, gint64 *bytes, GError **error)
{
    const char *text = json_text_of(node);
    guint64 value;

    if (!text || !quantity_parse(text, &value) || value > G_MAXINT64)
        return refuse_with(error, G_IO_ERROR_INVALID_ARGUMENT,
                           "\"%s\" must be an amount such as \"4Gi\"", name);
    *bytes = (gint64)value;
    return TRUE;
}

static gboolean take_cap(JsonNode *node, const char *name, guint *cap, GError **error)
{
    gint64 number;

    if (!take_number(node, name, 1, 100, &number, error))
        return FALSE;
    *cap = (guint)number;
    return TRUE;
}

static gboolean take_priority(JsonNode *node, const char *name, gint *priority, GError **error)
{
    gint64 number;

    if (!take_number(node, name, 0, SLICE_PRIORITY_MAX, &number, error))
        return FALSE;
    *priority = (gint)number;
    return TRUE;
}

static gboolean take_switch(JsonNode *node, const char *name, gboolean *on, GError **error)
{
    if (!JSON_NODE_HOLDS_VALUE(node) || json_node_get_value_type(node) != G_TYPE_BOOLEAN)
        return refuse_with(error, G_IO_ERROR_INVALID_ARGUMENT, "\"%s\" must be true or false",
                           name);
    *on = json_node_get_boolean(node);
    return TRUE;
}

static gboolean is_head(const char *name)
{
    return g_str_equal(name, "apiVersion") || g_str_equal(name, "kind");
}

static gboolean take_config(SliceConfig *config, const char *name, JsonNode *node, GError **error)
{
    if (is_head(name))
        return TRUE;
    if (g_str_equal(name, "door"))
        return take_word(node, name, doors, &config->door, error);
    if (g_str_equal(name, "class"))
        return take_word(node, name, classes, &config->class, error);
    if (g_str_equal(name, "engines"))
        return take_word(node, name, NULL, &config->engines, error);
    if (g_str_equal(name, "cap"))
        return take_cap(node, name, &config->cap, error);
    if (g_str_equal(name, "priority"))
        return take_priority(node, name, &config->priority, error);
    if (g_str_equal(name, "oversubscribe"))
        return take_bytes(node, name, &config->oversubscribe, error);
    if (g_str_equal(name, "vram"))
        return take_bytes(node, name, &config->vram, error);
    if (g_str_equal(name, "moves"))
        return take_switch(node, name, &config->moves, error);
    return refuse_with(error, G_IO_ERROR_INVALID_ARGUMENT, "a SliceConfig has no field \"%s\"",
                       name);
}

static gboolean take_limits(SliceLimits *limits, const char *name, JsonNode *node, GError **error)
{
    if (is_head(name))
        return TRUE;
    if (g_str_equal(name, "doors"))
        return take_words(node, name, doors, &limits->doors, error);
    if (g_str_equal(name, "classes"))
        return take_words(node, name, classes, &limits->classes, error);
    if (g_str_equal(name, "cap"))
        return take_cap(node, name, &limits->cap, error);
    if (g_str_equal(name, "priority"))
        return take_priority(node, name, &limits->priority, error);
    if (g_str_equal(name, "oversubscribe"))
        return take_bytes(node, name, &limits->oversubscribe, error);
    if (g_str_equal(name, "vram"))
        return take_bytes(node, name, &limits->vram, error);
    return refuse_with(error, G_IO_ERROR_INVALID_ARGUMENT, "SliceLimits have no field \"%s\"",
                       name);
}

gboolean slice_settings_add(SliceSettings *settings, JsonObject *parameters, gboolean is_of_class,
                            GError **error)
{
    const char *version = json_object_get_string_member_with_default(parameters, "apiVersion", "");
    const char *kind = json_object_get_string_member_with_default(parameters, "kind", "");
    gboolean is_limits = g_strcmp0(kind, "SliceLimits") == 0;
    JsonObjectIter at;
    const char *name;
    JsonNode *node;

    if (g_strcmp0(version, API_VERSION))
        return refuse_with(error, G_IO_ERROR_INVALID_ARGUMENT,
                           "parameters must have the apiVersion " API_VERSION);
    if (!is_limits && g_strcmp0(kind, "SliceConfig"))
        return refuse_with(error, G_IO_ERROR_INVALID_ARGUMENT,
                           "parameters must have the kind SliceConfig or, in a DeviceClass, "
                           "SliceLimits");
    if (is_limits && !is_of_class)
        return refuse_with(error, G_IO_ERROR_INVALID_ARGUMENT,
                           "SliceLimits are for a DeviceClass, not for a claim");
    json_object_iter_init(&at, parameters);
    while (json_object_iter_next(&at, &name, &node)) {
        SliceConfig *config = is_of_class ? &settings->of_class : &settings->of_claim;

        if (!(is_limits ? take_limits(&settings->limits, name, node, error)
                        : take_config(config, name, node, error)))
            return FALSE;
    }
    return TRUE;
}

/* The claim's word, the class's, or @otherwise; the claim's must be allowed. NULL with @error. */
static const char *choose_word(const char *name, const char *of_claim, const char *of_class,
                               const char *otherwise, GStrv allowed, GError **error)
{
    const char *normal = of_class ? of_class : otherwise;

    if (!of_claim)
        return normal;
    if (allowed ? g_strv_contains((const char *const *)allowed, of_claim)
                : g_strcmp0(of_claim, normal) == 0)
        return of_claim;
    refuse_with(error, G_IO_ERROR_INVALID_ARGUMENT, "the DeviceClass does not allow the %s \"%s\"",
                name, of_claim);
    return NULL;
}

/*
 * Without a word in the class that is vgpud's choice, unless the class has a list without it. Whose
 * door vgpud may choose may have the guarded one, which keeps programs from the GPU.
 */
static const char *choose_door(const SliceSettings *settings, GError **error)
{
    const char *const *allowed = (const char *const *)settings->limits.doors;
    const char *of_claim = settings->of_claim.door, *of_class = settings->of_class.door;
    const char *otherwise = DOOR_AUTO;

    if (allowed && !g_strv_contains(allowed, DOOR_AUTO))
        otherwise = allowed[0] ? allowed[0] : "guarded";
    if (!allowed && g_strcmp0(of_claim, "guarded") == 0 &&
        g_str_equal(of_class ? of_class : otherwise, DOOR_AUTO))
        return of_claim;
    return choose_word("door", of_claim, of_class, otherwise, settings->limits.doors, error);
}

/*
 * The claim's number, or the class's, or 0; -1 is "not said". The claim's may be as large as the
 * limit, without one as the class's. -1 with @error.
 */
static gint64 choose_number(const char *name, gint64 of_claim, gint64 of_class, gint64 limit,
                            GError **error)
{
    gint64 normal = MAX(of_class, 0), most = limit >= 0 ? limit : normal;

    if (of_claim < 0)
        return normal;
    if (of_claim <= most)
        return of_claim;
    refuse_with(error, G_IO_ERROR_INVALID_ARGUMENT,
                "the DeviceClass allows the %s %" G_GINT64_FORMAT " at most", name, most);
    return -1;
}

/* A cap takes away, so a claim may have any that is lower than its class's. */
static guint choose_cap(const SliceSettings *settings)
{
    const guint caps[] = {settings->of_claim.cap ? settings->of_claim.cap : settings->of_class.cap,
                          settings->limits.cap};

    return caps[0] && caps[1] ? MIN(caps[0], caps[1]) : MAX(caps[0], caps[1]);
}

/*
 * What is beyond @slice's memory moves. Without a least part any number of such claims would be on
 * a card.
 */
static gboolean let_move(AgentSlice *slice, guint64 vram, GError **error)
{
    if (slice->vram < vram / MOVING_PARTS)
        return refuse_with(error, G_IO_ERROR_INVALID_ARGUMENT,
                           "a claim whose memory moves requests at least a hundredth of its "
                           "\"vram\", and not %" G_GUINT64_FORMAT " bytes of %" G_GUINT64_FORMAT,
                           slice->vram, vram);
    slice->resident = slice->vram;
    return TRUE;
}

/* The scheduler has counted @slice's memory, which is the least that the slice may have then. */
static gboolean raise_vram(const SliceSettings *settings, AgentSlice *slice, GError **error)
{
    gint64 vram = choose_number("vram in bytes", settings->of_claim.vram, settings->of_class.vram,
                                settings->limits.vram, error);

    if (vram < 0)
        return FALSE;
    if (!vram || (guint64)vram == slice->vram)
        return TRUE;
    if ((guint64)vram < slice->vram)
        return refuse_with(error, G_IO_ERROR_INVALID_ARGUMENT,
                           "\"vram\" is less than the memory that the claim requests");
    if (g_strcmp0(slice->class, "guaranteed") == 0)
        return refuse_with(error, G_IO_ERROR_INVALID_ARGUMENT,
                           "\"vram\" is for the classes burstable and best-effort: a guaranteed "
                           "slice has the memory that the claim requests");
    if ((settings->of_claim.moves || settings->of_class.moves) &&
        !let_move(slice, (guint64)vram, error))
        return FALSE;
    slice->vram = (guint64)vram;
    return TRUE;
}

gboolean slice_settings_apply(const SliceSettings *settings, AgentSlice *slice, GError **error)
{
    const SliceConfig *of_claim = &settings->of_claim, *of_class = &settings->of_class;
    const SliceLimits *limits = &settings->limits;
    const char *door, *class;
    gint64 priority, oversubscribe;

    door = choose_door(settings, error);
    if (!door)
        return FALSE;
    /* Every class but the first promises less. */
    class = choose_word("class", of_claim->class, of_class->class, "guaranteed",
                        limits->classes ? limits->classes : (GStrv)classes, error);
    if (!class)
        return FALSE;
    priority =
        choose_number("priority", of_claim->priority, of_class->priority, limits->priority, error);
    if (priority < 0)
        return FALSE;
    oversubscribe = choose_number("oversubscription in bytes", of_claim->oversubscribe,
                                  of_class->oversubscribe, limits->oversubscribe, error);
    if (oversubscribe < 0)
        return FALSE;
    slice->door = g_strdup(door);
    slice->class = g_strdup(class);
    slice->engines = g_strdup(of_claim->engines ? of_claim->engines : of_class->engines);
    slice->priority = (guint)priority;
    slice->oversubscribe = (guint64)oversubscribe;
    slice->cap = choose_cap(settings);
    return raise_vram(settings, slice, error);
}
