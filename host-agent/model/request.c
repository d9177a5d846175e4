/* SPDX-License-Identifier: MIT */
#include "host-agent/model/request.h"

#include <string.h>

#include "lib/bus.h"
#include "lib/conf.h"
#include "lib/gpus.h"

/* Strict reading of a dictionary (a{sv}) from the bus. */

#define MAX_TEXT 255
#define MAX_LIST 1024

static const DictKey *find_key(const DictKey *keys, gsize count, const char *name)
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

static gboolean set_bad_value(GError **error, const char *key, const char *why)
{
    g_set_error(error, AGENT_ERROR, AGENT_ERROR_INVALID, "%s %s", key, why);
    return FALSE;
}

static gboolean set_unknown_key(GError **error, guint use, const DictKey *keys, gsize count,
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
    return set_bad_value(error, key, why);
}

static gboolean check_length(const char *key, GVariant *text, GError **error)
{
    return g_variant_get_size(text) <= MAX_TEXT + 1 ||
           set_bad_value(error, key, "is longer than 255 characters");
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
        return set_bad_value(error, key->key, "has more than 1024 entries");
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
    return set_bad_value(error, name, why);
}

/* The value of a slice. The driver takes sizes that a request can't have. */
static gboolean read_row(const SliceKey *row, guint use, GVariant *value, Slice *slice,
                         GError **error)
{
    guint64 min = use == SLICE_KEY_DEFINITION ? MIN(row->min, 1) : row->min;
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
    return check_number(row->name, number, min, row->max, error);
}

gboolean dict_check_unique(GVariant *dict, GError **error)
{
    g_autoptr(GHashTable) seen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    GVariantIter iter;
    const char *name;

    g_variant_iter_init(&iter, dict);
    while (g_variant_iter_next(&iter, "{&s@v}", &name, NULL))
        if (!g_hash_table_add(seen, g_strdup(name)))
            return set_bad_value(error, name, "is there twice");
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
        const DictKey *key = find_key(keys, count, name);

        if (!row && !key)
            return set_unknown_key(error, use, keys, count, name);
        if (row)
            *given |= slice_key_bit(row);
        if (row ? !read_row(row, use, owned, slice, error)
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
#define MAX_PER_CENT 100

void request_free(Request *request)
{
    slice_free(request->wanted);
    g_strfreev(request->uuids);
    g_strfreev(request->gpus);
    g_strfreev(request->not_gpus);
    g_free(request);
}

static gboolean is_given(guint64 given, const char *name)
{
    return (given & slice_key_bit(slice_key_find(name))) != 0;
}

gboolean request_has(const Request *request, const char *name)
{
    return is_given(request->given, name);
}

static gboolean set_invalid(GError **error, const char *format, const char *value)
{
    g_autofree char *message =
        value ? g_strdup_printf("%s: \"%s\"", format, value) : g_strdup(format);

    g_set_error_literal(error, AGENT_ERROR, AGENT_ERROR_INVALID, message);
    return FALSE;
}

static gboolean parse_policy(const char *text, Policy *policy, GError **error)
{
    *policy = g_strcmp0(text, "spread") == 0 ? POLICY_SPREAD : POLICY_BINPACK;
    if (!text || g_str_equal(text, "spread") || g_str_equal(text, "binpack"))
        return TRUE;
    return set_invalid(error, "Policy must be binpack or spread", text);
}

/* A slice that is removed with its VM cannot be persistent. */
static gboolean check_domain(const Request *request, GError **error)
{
    if (!request->wanted->domain[0] || !request->define)
        return TRUE;
    return set_invalid(
        error, "vGPUs of a domain end with it, so Define and Autostart can't be set for Domain",
        request->wanted->domain);
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
            return set_invalid(error, "Uuids has an entry that is no UUID", request->uuids[i]);
        for (char *at = request->uuids[i]; *at; at++)
            *at = g_ascii_tolower(*at);
        for (guint k = 0; k < i; k++)
            if (g_str_equal(request->uuids[k], request->uuids[i]))
                return set_invalid(error, "Uuids has an entry twice", request->uuids[i]);
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

guint64 vram_of_percent(guint64 vram, guint percent)
{
    guint64 bytes = MIN(vram, SLICE_BYTES_MAX) * percent / MAX_PER_CENT;

    return MAX(bytes - bytes % MIB, MIB);
}

static gboolean check_vram(gboolean vram_given, guint percent, GError **error)
{
    return !vram_given || !percent ||
           set_invalid(error, "Vram and VramPercent cannot both be given", "both");
}

/* A VM's needs a type, because mdevctl and libvirt do. */
static gboolean has_size(const Request *request, GError **error)
{
    const Slice *wanted = request->wanted;
    gboolean vgpu = wanted->transport == SLICE_TRANSPORT_VM && !request_has(request, "Owner");

    if (*wanted->type || (!vgpu && (wanted->vram || request->vram_percent)))
        return TRUE;
    g_set_error(error, AGENT_ERROR, AGENT_ERROR_INVALID,
                "Type%s is missing; \"vgpuctl type list\" lists the types",
                vgpu ? "" : ", or Vram,");
    return FALSE;
}

/* Keys of vGPUs only. */
static gboolean check_no_vgpu(const Request *request, const char *door, GError **error)
{
    if (!request->window && !request->window_most && !request->define &&
        !request->wanted->autostart && !*request->wanted->domain &&
        !request_has(request, "Display"))
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
    const Slice *wanted = request->wanted;
    gboolean has_pool = request_has(request, "Pool");

    if (!request_has(request, "Owner"))
        return !(request_has(request, "Part") || has_pool || request->uid_given) ||
               set_invalid(error, "Part, Pool and Uid need an Owner", NULL);
    if (!slice_owner_valid(wanted->owner))
        return set_invalid(error, "Owner " OWNER_RULE, wanted->owner);
    if (!slice_owner_valid(wanted->part))
        return set_invalid(error, "Part is needed with Owner, and " OWNER_RULE, wanted->part);
    if (has_pool && !gpu_pool_valid(wanted->pool))
        return set_invalid(error, "Pool must be " GPU_POOL_RULE, wanted->pool);
    if (wanted->ephemeral || request->define || wanted->autostart || *wanted->domain)
        return set_invalid(
            error,
            "a slice with an Owner ends with it, so it can't have Ephemeral, Define, "
            "Autostart or Domain",
            wanted->owner);
    /* A part is one slice, so that a call that is repeated finds it. */
    return request->count == 1 ||
           set_invalid(error, "Count must be 1 with an Owner", wanted->owner);
}

#define DOOR_AUTO "auto"

/* A container's slice. One with door vfio is restored at boot like the others. */
static gboolean finish_container(Request *request, const char *door, GError **error)
{
    if (request->count != 1)
        return set_invalid(error, "Count must be 1 for a slice of containers", "more");
    if (request->wanted->transport != SLICE_TRANSPORT_VFIO)
        return check_no_vgpu(request, door, error);
    if (!request->wanted->ephemeral && !request_has(request, "Owner"))
        request->wanted->autostart = TRUE;
    return TRUE;
}

static gboolean finish_door(Request *request, const char *door, GError **error)
{
    request->transport_auto = g_str_equal(door, DOOR_AUTO);
    if (request->transport_auto)
        request->wanted->transport = SLICE_TRANSPORT_GUARDED;
    else if (!slice_transport_parse(door, &request->wanted->transport))
        return set_invalid(error, "Door must be auto, native, guarded, vfio or vm", door);
    if (!check_owner(request, error))
        return FALSE;
    if (request->wanted->transport != SLICE_TRANSPORT_VM)
        return finish_container(request, door, error);
    return !request->wanted->ephemeral ||
           set_invalid(error, "Ephemeral is for containers' slices, so it can't be set for Door",
                       door);
}

static gboolean finish_request(Request *request, const char *policy, GError **error)
{
    Slice *wanted = request->wanted;

    if (!has_size(request, error) || !parse_policy(policy, &request->policy, error) ||
        !check_window("Window", request->window, error) ||
        !check_window("WindowMost", request->window_most, error))
        return FALSE;
    /* A name is of one. */
    if (*wanted->name && request->count != 1)
        return set_invalid(error, "Name needs a Count of 1", wanted->name);
    if (!request->uuids)
        make_up_uuids(request);
    request->define = request->define || wanted->autostart;
    return check_domain(request, error) && check_uuids(request, error);
}

Request *request_parse(GVariant *dict, GError **error)
{
    const guint use = SLICE_KEY_ASKED | SLICE_KEY_ASKED_SLICE;
    g_autoptr(Request) request = g_new0(Request, 1);
    g_autofree char *policy = NULL;
    g_autofree char *door = NULL;
    g_autofree char *asked = NULL;
    const DictKey keys[] = {
        {"Count", 'u', &request->count, NULL, 1, REQUEST_MAX_COUNT},
        {"Uuids", 'a', &request->uuids, NULL, 0, 0},
        {"VramPercent", 'u', &request->vram_percent, NULL, 1, MAX_PER_CENT},
        {"Window", 't', &request->window, NULL, MIB, MAX_WINDOW},
        {"WindowMost", 't', &request->window_most, NULL, MIB, MAX_WINDOW},
        {"Gpus", 'a', &request->gpus, NULL, 0, 0},
        {"NotGpus", 'a', &request->not_gpus, NULL, 0, 0},
        {"Policy", 's', &policy, NULL, 0, 0},
        {"NumaNode", 'i', &request->numa_node, NULL, 0, 0},
        {"Define", 'b', &request->define, NULL, 0, 0},
        {"DryRun", 'b', &request->dry_run, NULL, 0, 0},
        {"Door", 's', &door, NULL, 0, 0},
        {"Uid", 'u', &request->uid, &request->uid_given, 0, G_MAXUINT32 - 1},
    };

    request->wanted = slice_new("", "", "");
    request->count = 1;
    request->numa_node = -1;
    if (!dict_read_slice(dict, use, request->wanted, &request->given, keys, G_N_ELEMENTS(keys),
                         error) ||
        !check_vram(request->wanted->vram != 0, request->vram_percent, error) ||
        !finish_door(request, door ? door : DOOR_AUTO, error) ||
        !finish_request(request, policy, error))
        return NULL;
    if (request->uid_given)
        request->wanted->uid = request->uid;
    asked = *request->wanted->owner ? checksum_of(dict) : g_strdup("");
    slice_set_text(&request->wanted->asked, asked);
    return g_steal_pointer(&request);
}

static gboolean check_beside(const Request *first, const Request *other, GError **error)
{
    if (!g_str_equal(first->wanted->owner, other->wanted->owner))
        return set_invalid(error, "all slices of a call must have the same Owner",
                           other->wanted->owner);
    if (g_str_equal(first->wanted->part, other->wanted->part))
        return set_invalid(error, "a Part is there twice", other->wanted->part);
    if (first->dry_run != other->dry_run || first->window != other->window)
        return set_invalid(error, "DryRun and Window must be the same for all slices of a call",
                           other->wanted->part);
    return TRUE;
}

gboolean requests_check_owner(const GPtrArray *requests, GError **error)
{
    for (guint i = 0; requests->len > 1 && i < requests->len; i++) {
        const Request *request = g_ptr_array_index(requests, i);

        if (!*request->wanted->owner)
            return set_invalid(error, "several slices of one call need an Owner", NULL);
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
    return is_given(change->given, name);
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
