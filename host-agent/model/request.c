/* SPDX-License-Identifier: MIT */
#include "host-agent/model/request.h"

#include <string.h>

#include "lib/bus.h"
#include "lib/conf.h"
#include "lib/gpus.h"
#include "lib/tenants_conf.h"

/* Strict reading of a dictionary (a{sv}) from the bus. */

#define MAX_TEXT 255
#define MAX_LIST 1024

static const DictKey *find(const DictKey *keys, gsize count, const char *name)
{
    for (gsize i = 0; i < count; i++)
        if (g_str_equal(keys[i].key, name))
            return &keys[i];
    return NULL;
}

static const char *type_string(char type)
{
    switch (type) {
    case 's':
        return "s";
    case 't':
        return "t";
    case 'u':
        return "u";
    case 'i':
        return "i";
    case 'a':
        return "as";
    default:
        return "b";
    }
}

static gboolean bad(GError **error, const char *key, const char *why)
{
    g_set_error(error, AGENT_ERROR, AGENT_ERROR_INVALID, "%s %s", key, why);
    return FALSE;
}

static gboolean unknown(GError **error, guint use, const DictKey *keys, gsize count,
                        const char *name)
{
    g_autoptr(GString) known = g_string_new(NULL);

    for (guint i = 0; i < slice_keys_count; i++)
        if (slice_keys[i].uses & use)
            g_string_append_printf(known, "%s%s", known->len ? ", " : "", slice_keys[i].name);
    for (gsize i = 0; i < count; i++)
        g_string_append_printf(known, "%s%s", known->len ? ", " : "", keys[i].key);
    g_set_error(error, AGENT_ERROR, AGENT_ERROR_INVALID, "unknown key %s; allowed are: %s", name,
                known->str);
    return FALSE;
}

static gboolean check_number(const char *key, guint64 number, guint64 min, guint64 max,
                             GError **error)
{
    g_autofree char *why = NULL;

    if ((!min && !max) || (number >= min && number <= max))
        return TRUE;
    why = g_strdup_printf("must be from %" G_GUINT64_FORMAT " to %" G_GUINT64_FORMAT
                          ", not %" G_GUINT64_FORMAT,
                          min, max, number);
    return bad(error, key, why);
}

static gboolean check_length(const char *key, GVariant *text, GError **error)
{
    return g_variant_get_size(text) <= MAX_TEXT + 1 ||
           bad(error, key, "is longer than 255 characters");
}

static gboolean read_text(const DictKey *key, GVariant *value, GError **error)
{
    if (!check_length(key->key, value, error))
        return FALSE;
    g_free(*(char **)key->value);
    *(char **)key->value = g_variant_dup_string(value, NULL);
    return TRUE;
}

static gboolean read_list(const DictKey *key, GVariant *value, GError **error)
{
    if (g_variant_n_children(value) > MAX_LIST)
        return bad(error, key->key, "has more than 1024 entries");
    g_strfreev(*(GStrv *)key->value);
    *(GStrv *)key->value = g_variant_dup_strv(value, NULL);
    return TRUE;
}

static gboolean read_value(const DictKey *key, GVariant *value, GError **error)
{
    if (key->given)
        *key->given = TRUE;
    switch (key->type) {
    case 's':
        return read_text(key, value, error);
    case 'a':
        return read_list(key, value, error);
    case 't':
        *(guint64 *)key->value = g_variant_get_uint64(value);
        return check_number(key->key, *(guint64 *)key->value, key->min, key->max, error);
    case 'u':
        *(guint *)key->value = g_variant_get_uint32(value);
        return check_number(key->key, *(guint *)key->value, key->min, key->max, error);
    case 'i':
        *(int *)key->value = g_variant_get_int32(value);
        return TRUE;
    default:
        *(gboolean *)key->value = g_variant_get_boolean(value);
        return TRUE;
    }
}

static gboolean check_type(const char *name, GVariant *value, const char *type, GError **error)
{
    g_autofree char *why = NULL;

    if (g_variant_is_of_type(value, G_VARIANT_TYPE(type)))
        return TRUE;
    why = g_strdup_printf("must be of the D-Bus type \"%s\", not \"%s\"", type,
                          g_variant_get_type_string(value));
    return bad(error, name, why);
}

/* The value of a slice. */
static gboolean read_row(const SliceKey *row, GVariant *value, Slice *slice, GError **error)
{
    const char type[] = {slice_key_asked_as(row), '\0'};
    guint64 number;

    if (!check_type(row->name, value, type, error))
        return FALSE;
    if (slice_key_is_text(row)) {
        const char *text = g_variant_get_string(value, NULL);

        return check_length(row->name, value, error) &&
               (!row->check || row->check(row->name, text, error)) &&
               slice_key_set_text(row, slice, text);
    }
    number = type[0] == 't'   ? g_variant_get_uint64(value)
             : type[0] == 'b' ? (guint64)g_variant_get_boolean(value)
                              : g_variant_get_uint32(value);
    slice_key_set_number(row, slice, (gint64)number);
    return check_number(row->name, number, row->min, row->max, error);
}

gboolean dict_check_unique(GVariant *dict, GError **error)
{
    g_autoptr(GHashTable) seen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    GVariantIter iter;
    const char *name;

    g_variant_iter_init(&iter, dict);
    while (g_variant_iter_next(&iter, "{&s@v}", &name, NULL))
        if (!g_hash_table_add(seen, g_strdup(name)))
            return bad(error, name, "is there twice");
    return TRUE;
}

/* The row that a call of that kind takes by that name. */
static const SliceKey *find_row(guint use, const char *name)
{
    const SliceKey *row = slice_key_find(name);

    return row && (row->uses & use) ? row : NULL;
}

gboolean dict_read_slice(GVariant *dict, guint use, Slice *slice, guint64 *given,
                         const DictKey *keys, gsize count, GError **error)
{
    GVariantIter iter;
    const char *name;
    GVariant *value;

    if (!dict_check_unique(dict, error))
        return FALSE;
    g_variant_iter_init(&iter, dict);
    while (g_variant_iter_next(&iter, "{&sv}", &name, &value)) {
        g_autoptr(GVariant) owned = value;
        const SliceKey *row = find_row(use, name);
        const DictKey *key = find(keys, count, name);

        if (!row && !key)
            return unknown(error, use, keys, count, name);
        if (row)
            *given |= slice_key_bit(row);
        if (row ? !read_row(row, owned, slice, error)
                : !check_type(name, owned, type_string(key->type), error) ||
                      !read_value(key, owned, error))
            return FALSE;
    }
    return TRUE;
}

gboolean dict_read(GVariant *dict, const DictKey *keys, gsize count, GError **error)
{
    return dict_read_slice(dict, 0, NULL, NULL, keys, count, error);
}

#define MAX_WINDOW   (G_GUINT64_CONSTANT(64) << 30)
#define MAX_WEIGHT   10000
#define MAX_PER_CENT 100
#define MAX_PRIORITY 15

void request_free(Request *request)
{
    g_free(request->type);
    g_free(request->name);
    g_strfreev(request->uuids);
    g_free(request->tenant);
    g_strfreev(request->gpus);
    g_strfreev(request->not_gpus);
    g_free(request->job);
    g_free(request->replica);
    g_free(request->domain);
    g_free(request->owner);
    g_free(request->part);
    g_free(request->pool);
    g_free(request->asked);
    g_free(request);
}

static gboolean invalid(GError **error, const char *format, const char *value)
{
    g_autofree char *message =
        value ? g_strdup_printf("%s: \"%s\"", format, value) : g_strdup(format);

    g_set_error_literal(error, AGENT_ERROR, AGENT_ERROR_INVALID, message);
    return FALSE;
}

gboolean request_parse_class(const char *text, SliceClass *class, GError **error)
{
    if (slice_class_parse(text, class))
        return TRUE;
    return invalid(error, "Class must be guaranteed, burstable or best-effort", text);
}

gboolean request_is_printable(const char *text)
{
    for (const char *at = text; *at; at = g_utf8_next_char(at))
        if (g_unichar_iscntrl(g_utf8_get_char(at)))
            return FALSE;
    return TRUE;
}

static gboolean parse_policy(const char *text, Policy *policy, GError **error)
{
    *policy = g_strcmp0(text, "spread") == 0 ? POLICY_SPREAD : POLICY_BINPACK;
    if (!text || g_str_equal(text, "spread") || g_str_equal(text, "binpack"))
        return TRUE;
    return invalid(error, "Policy must be binpack or spread", text);
}

gboolean request_check_tenant(const char *tenant, GError **error)
{
    if (!tenant || !*tenant || tenant_name_valid(tenant))
        return TRUE;
    return invalid(error, "Tenant must be up to 63 letters, digits, \"_\", \"-\" and \".\"",
                   tenant);
}

/* It is shown on terminals and written to logs. */
static gboolean check_word(const char *key, const char *text, GError **error)
{
    if (request_is_printable(text))
        return TRUE;
    g_set_error(error, AGENT_ERROR, AGENT_ERROR_INVALID, "%s can't have control characters", key);
    return FALSE;
}

/* A slice that is removed with its VM cannot be persistent. */
static gboolean check_domain(const Request *request, GError **error)
{
    if (!request->domain[0] || !request->define)
        return TRUE;
    return invalid(error,
                   "vGPUs of a domain end with it, so Define and Autostart can't be set for Domain",
                   request->domain);
}

static gboolean check_window(const char *key, guint64 window, GError **error)
{
    if ((window & (window - 1)) == 0)
        return TRUE;
    g_set_error(error, AGENT_ERROR, AGENT_ERROR_INVALID,
                "%s must be a power of two, not %" G_GUINT64_FORMAT, key, window);
    return FALSE;
}

static gboolean check_uuids(const Request *request, GError **error)
{
    if (g_strv_length(request->uuids) != request->count) {
        g_set_error(error, AGENT_ERROR, AGENT_ERROR_INVALID,
                    "Uuids has %u entries, and %u vGPUs are requested",
                    g_strv_length(request->uuids), request->count);
        return FALSE;
    }
    for (guint i = 0; request->uuids[i]; i++) {
        if (!g_uuid_string_is_valid(request->uuids[i]))
            return invalid(error, "Uuids has an entry that is no UUID", request->uuids[i]);
        for (char *at = request->uuids[i]; *at; at++)
            *at = g_ascii_tolower(*at);
        for (guint k = 0; k < i; k++)
            if (g_str_equal(request->uuids[k], request->uuids[i]))
                return invalid(error, "Uuids has an entry twice", request->uuids[i]);
    }
    return TRUE;
}

static void make_up_uuids(Request *request)
{
    g_autoptr(GStrvBuilder) uuids = g_strv_builder_new();

    for (guint i = 0; i < request->count; i++) {
        g_autofree char *uuid = g_uuid_string_random();

        g_strv_builder_add(uuids, uuid);
    }
    request->uuids = g_strv_builder_end(uuids);
}

static void fill_defaults(Request *request)
{
    if (!request->type)
        request->type = g_strdup("");
    if (!request->name)
        request->name = g_strdup("");
    if (!request->tenant)
        request->tenant = g_strdup("");
    if (!request->job)
        request->job = g_strdup("");
    if (!request->replica)
        request->replica = g_strdup("");
    if (!request->domain)
        request->domain = g_strdup("");
    if (!request->owner)
        request->owner = g_strdup("");
    if (!request->part)
        request->part = g_strdup("");
    if (!request->pool)
        request->pool = g_strdup("");
    if (!request->asked)
        request->asked = g_strdup("");
    if (!request->uuids)
        make_up_uuids(request);
    if (request->autostart)
        request->define = TRUE;
}

guint64 vram_of_percent(guint64 vram, guint percent)
{
    guint64 bytes = MIN(vram, REQUEST_MAX_BYTES) * percent / MAX_PER_CENT;

    return MAX(bytes - bytes % MIB, MIB);
}

static gboolean check_vram(gboolean vram_given, guint percent, GError **error)
{
    return !vram_given || !percent ||
           invalid(error, "Vram and VramPercent cannot both be given", "both");
}

/* CreateVgpus needs a type, because mdevctl and libvirt do. A slice needs none. */
static gboolean has_size(const Request *request, GError **error)
{
    gboolean vgpu = request->transport == SLICE_TRANSPORT_VM && !request->owner;

    if ((request->type && *request->type) || (!vgpu && (request->vram || request->vram_percent)))
        return TRUE;
    g_set_error(error, AGENT_ERROR, AGENT_ERROR_INVALID,
                "Type%s is missing; \"vgpuctl type list\" lists the types",
                vgpu ? "" : ", or Vram,");
    return FALSE;
}

/* Keys of vGPUs only. */
static gboolean check_no_vgpu(const Request *request, const char *door, GError **error)
{
    if (!request->window && !request->window_most && !request->define && !request->autostart &&
        !request->domain && !request->display_given)
        return TRUE;
    g_set_error(error, AGENT_ERROR, AGENT_ERROR_INVALID,
                "Window, Display, Define, Autostart and Domain are for vGPUs; a slice of door %s "
                "stays until "
                "it is removed, and has no window",
                door);
    return FALSE;
}

/* Of all that was requested; whether it was a rehearsal does not count. */
static char *checksum_of(GVariant *dict)
{
    g_autoptr(GPtrArray) lines = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GChecksum) checksum = g_checksum_new(G_CHECKSUM_SHA256);
    GVariantIter iter;
    const char *name;
    GVariant *value;

    g_variant_iter_init(&iter, dict);
    while (g_variant_iter_next(&iter, "{&sv}", &name, &value)) {
        g_autoptr(GVariant) owned = value;
        g_autofree char *text = g_variant_print(owned, TRUE);

        if (!g_str_equal(name, "DryRun"))
            g_ptr_array_add(lines, g_strconcat(name, "=", text, "\n", NULL));
    }
    g_ptr_array_sort_values(lines, (GCompareFunc)strcmp);
    for (guint i = 0; i < lines->len; i++)
        g_checksum_update(checksum, lines->pdata[i], -1);
    return g_strdup(g_checksum_get_string(checksum));
}

#define OWNER_RULE                                                                                 \
    "must be 1 to 60 letters, digits, \":\", \"_\", \"-\" and \".\", a letter or digit first"

static gboolean check_owner(const Request *request, GError **error)
{
    if (!request->owner && (request->part || request->pool || request->uid_given))
        return invalid(error, "Part, Pool and Uid need an Owner", NULL);
    if (!request->owner)
        return TRUE;
    if (!slice_owner_valid(request->owner))
        return invalid(error, "Owner " OWNER_RULE, request->owner);
    if (!request->part || !slice_owner_valid(request->part))
        return invalid(error, "Part is needed with Owner, and " OWNER_RULE,
                       request->part ? request->part : "");
    if (request->pool && !gpu_pool_valid(request->pool))
        return invalid(error, "Pool must be " GPU_POOL_RULE, request->pool);
    if (request->ephemeral || request->define || request->autostart || request->domain)
        return invalid(error,
                       "a slice with an Owner ends with it, so it can't have Ephemeral, Define, "
                       "Autostart or Domain",
                       request->owner);
    return TRUE;
}

#define DOOR_AUTO "auto"

/*
 * Keys of a container's slice; @door: NULL: not said. One with transport vfio is restored at boot
 * like the others.
 */
static gboolean finish_slice(Request *request, const char *door, GError **error)
{
    const char *word = door ? door : DOOR_AUTO;

    request->transport_auto = g_str_equal(word, DOOR_AUTO);
    if (request->transport_auto)
        request->transport = SLICE_TRANSPORT_GUARDED;
    else if (!slice_transport_parse(word, &request->transport) ||
             (request->transport == SLICE_TRANSPORT_VM && !request->owner))
        return invalid(error, "Door must be auto, native, guarded or vfio", word);
    if (request->count != 1)
        return invalid(error, "Count must be 1 for a slice", "more");
    if (!check_owner(request, error))
        return FALSE;
    if (request->transport == SLICE_TRANSPORT_NATIVE ||
        request->transport == SLICE_TRANSPORT_GUARDED)
        return check_no_vgpu(request, word, error);
    if (!request->ephemeral && !request->owner)
        request->autostart = TRUE;
    return TRUE;
}

static gboolean check_name(const char *name, GError **error)
{
    if (!name || !*name || slice_name_valid(name))
        return TRUE;
    return invalid(
        error,
        "Name must be up to 63 letters, digits, \"_\", \"-\" and \".\", a letter first, and "
        "no UUID",
        name);
}

/* A name is of one. */
static gboolean check_request_name(const Request *request, GError **error)
{
    if (request->name && *request->name && request->count != 1)
        return invalid(error, "Name needs a Count of 1", request->name);
    return check_name(request->name, error);
}

static gboolean finish(Request *request, const char *class, const char *policy, GError **error)
{
    if (!has_size(request, error))
        return FALSE;
    request->class_given = class != NULL;
    if (class && !request_parse_class(class, &request->class, error))
        return FALSE;
    if (!parse_policy(policy, &request->policy, error) ||
        !request_check_tenant(request->tenant, error) ||
        !check_window("Window", request->window, error) ||
        !check_window("WindowMost", request->window_most, error) ||
        !check_request_name(request, error))
        return FALSE;
    fill_defaults(request);
    return check_word("Job", request->job, error) &&
           check_word("Replica", request->replica, error) &&
           check_word("Domain", request->domain, error) && check_domain(request, error) &&
           check_uuids(request, error);
}

/* Number of the last keys of CreateSlice, which CreateVgpus does not have. */
#define SLICE_KEYS 6

static Request *parse(GVariant *dict, gboolean slice, GError **error)
{
    g_autoptr(Request) request = g_new0(Request, 1);
    g_autofree char *class = NULL;
    g_autofree char *policy = NULL;
    g_autofree char *door = NULL;
    g_autofree char *engines = NULL;
    const DictKey keys[] = {
        {"Type", 's', &request->type, NULL, 0, 0},
        {"Count", 'u', &request->count, NULL, 1, REQUEST_MAX_COUNT},
        {"Uuids", 'a', &request->uuids, NULL, 0, 0},
        {"Tenant", 's', &request->tenant, NULL, 0, 0},
        {"Class", 's', &class, NULL, 0, 0},
        {"Vram", 't', &request->vram, NULL, MIB, REQUEST_MAX_BYTES},
        {"VramPercent", 'u', &request->vram_percent, NULL, 1, MAX_PER_CENT},
        {"Window", 't', &request->window, NULL, MIB, MAX_WINDOW},
        {"WindowMost", 't', &request->window_most, NULL, MIB, MAX_WINDOW},
        {"Weight", 'u', &request->weight, NULL, 1, MAX_WEIGHT},
        {"Cap", 'u', &request->cap, NULL, 1, MAX_PER_CENT},
        {"Priority", 'u', &request->priority, &request->priority_given, 0, MAX_PRIORITY},
        {"Compute", 'u', &request->compute, &request->compute_given, 0, MAX_PER_CENT},
        {"Oversubscribe", 't', &request->oversubscribe, &request->oversubscribe_given, 0,
         REQUEST_MAX_BYTES},
        {"Engines", 's', &engines, NULL, 0, 0},
        {"Display", 'u', &request->display, &request->display_given, 0, 1},
        {"Gpus", 'a', &request->gpus, NULL, 0, 0},
        {"NotGpus", 'a', &request->not_gpus, NULL, 0, 0},
        {"Policy", 's', &policy, NULL, 0, 0},
        {"NumaNode", 'i', &request->numa_node, NULL, 0, 0},
        {"Job", 's', &request->job, NULL, 0, 0},
        {"Replica", 's', &request->replica, NULL, 0, 0},
        {"Domain", 's', &request->domain, NULL, 0, 0},
        {"Define", 'b', &request->define, NULL, 0, 0},
        {"Autostart", 'b', &request->autostart, NULL, 0, 0},
        {"DryRun", 'b', &request->dry_run, NULL, 0, 0},
        {"Name", 's', &request->name, NULL, 0, 0},
        {"Door", 's', &door, NULL, 0, 0},
        {"Ephemeral", 'b', &request->ephemeral, NULL, 0, 0},
        {"Owner", 's', &request->owner, NULL, 0, 0},
        {"Part", 's', &request->part, NULL, 0, 0},
        {"Pool", 's', &request->pool, NULL, 0, 0},
        {"Uid", 'u', &request->uid, &request->uid_given, 0, G_MAXUINT32 - 1},
    };

    request->count = 1;
    request->numa_node = -1;
    if (!dict_read(dict, keys, G_N_ELEMENTS(keys) - (slice ? 0 : SLICE_KEYS), error) ||
        !check_vram(request->vram != 0, request->vram_percent, error) ||
        (slice && !finish_slice(request, door, error)) ||
        (engines && !engines_parse(engines, &request->engines, error)) ||
        !finish(request, class, policy, error))
        return NULL;
    if (*request->owner) {
        g_free(request->asked);
        request->asked = checksum_of(dict);
    }
    return g_steal_pointer(&request);
}

Request *request_parse(GVariant *dict, GError **error)
{
    return parse(dict, FALSE, error);
}

Request *request_parse_slice(GVariant *dict, GError **error)
{
    return parse(dict, TRUE, error);
}

static gboolean check_beside(const Request *first, const Request *other, GError **error)
{
    if (!g_str_equal(first->owner, other->owner))
        return invalid(error, "all slices of a call must have the same Owner", other->owner);
    if (g_str_equal(first->part, other->part))
        return invalid(error, "a Part is there twice", other->part);
    if (first->dry_run != other->dry_run || first->window != other->window)
        return invalid(error, "DryRun and Window must be the same for all slices of a call",
                       other->part);
    return TRUE;
}

gboolean requests_check_owner(const GPtrArray *requests, GError **error)
{
    for (guint i = 0; i < requests->len; i++) {
        const Request *request = g_ptr_array_index(requests, i);

        if (!*request->owner)
            return invalid(error, "each slice of CreateSlices needs an Owner", NULL);
        for (guint k = 0; k < i; k++)
            if (!check_beside(g_ptr_array_index(requests, k), request, error))
                return FALSE;
    }
    return TRUE;
}

void change_free(Change *change)
{
    slice_free(change->values);
    g_free(change);
}

gboolean change_has(const Change *change, const char *name)
{
    return (change->given & slice_key_bit(slice_key_find(name))) != 0;
}

void change_make(const Change *change, Slice *slice)
{
    for (guint i = 0; i < slice_keys_count; i++)
        if (change->given & slice_key_bit(&slice_keys[i]))
            slice_key_copy(&slice_keys[i], slice, change->values);
}

Change *change_parse(GVariant *dict, GError **error)
{
    g_autoptr(Change) change = g_new0(Change, 1);
    const DictKey keys[] = {
        {"VramPercent", 'u', &change->vram_percent, NULL, 1, MAX_PER_CENT},
        {"DryRun", 'b', &change->dry_run, NULL, 0, 0},
    };

    change->values = slice_new("", "", "");
    if (!dict_read_slice(dict, SLICE_KEY_CHANGED, change->values, &change->given, keys,
                         G_N_ELEMENTS(keys), error) ||
        !check_vram(change_has(change, "Vram"), change->vram_percent, error))
        return NULL;
    return g_steal_pointer(&change);
}
