/* SPDX-License-Identifier: MIT */
#include "host-agent/model/slice_keys.h"

#include "lib/bus.h"
#include "lib/conf.h"
#include "lib/gpus.h"
#include "lib/tenants_conf.h"

#define WEIGHT_MAX   10000
#define PER_CENT_MAX 100
#define PRIORITY_MAX 15

static gboolean refuse_value(const char *name, const char *rule, const char *text, GError **error)
{
    g_set_error(error, AGENT_ERROR, AGENT_ERROR_INVALID, "%s must be %s: \"%s\"", name, rule, text);
    return FALSE;
}

static gboolean check_tenant(const char *name, const char *text, GError **error)
{
    return !*text || tenant_name_valid(text) ||
           refuse_value(name, "up to 63 letters, digits, \"_\", \"-\" and \".\"", text, error);
}

static gboolean check_name(const char *name, const char *text, GError **error)
{
    return !*text || slice_name_valid(text) ||
           refuse_value(
               name,
               "up to 63 letters, digits, \"_\", \"-\" and \".\", a letter first, and no UUID",
               text, error);
}

/* It is shown on terminals and written to logs. */
static gboolean check_printable(const char *name, const char *text, GError **error)
{
    if (slice_text_is_printable(text))
        return TRUE;
    g_set_error(error, AGENT_ERROR, AGENT_ERROR_INVALID, "%s can't have control characters", name);
    return FALSE;
}

static gboolean check_class(const char *name, const char *text, GError **error)
{
    SliceClass class;

    return slice_class_parse(text, &class) ||
           refuse_value(name, "guaranteed, burstable or best-effort", text, error);
}

static gboolean check_engines(const char *name, const char *text, GError **error)
{
    guint engines;

    (void)name;
    return engines_parse(text, &engines, error);
}

#define LISTED    SLICE_KEY_LISTED
#define AUDITED   SLICE_KEY_AUDITED
#define SHOWN     (LISTED | AUDITED)
#define ASKED     SLICE_KEY_ASKED
#define SETTABLE  (ASKED | SLICE_KEY_CHANGED | SHOWN)
#define PROMISE   (SETTABLE | SLICE_KEY_RUN | SLICE_KEY_VM)
#define DEFINED   SLICE_KEY_DEFINITION
#define CONTAINER (LISTED | SLICE_KEY_CONTAINER)
#define OWNED     (LISTED | SLICE_KEY_OWNED | SLICE_KEY_ASKED_SLICE)
/* What is left out is none: no attribute of a vGPU, no bounds, no check, no option, no label. */
#define KEY(NAME, COLUMN, TYPE, USES, MEMBER, ...)                                                 \
    {.name = NAME,                                                                                 \
     .column = COLUMN,                                                                             \
     .type = SLICE_KEY_##TYPE,                                                                     \
     .uses = USES,                                                                                 \
     .offset = G_STRUCT_OFFSET(Slice, MEMBER),                                                     \
     .size = sizeof(((Slice *)NULL)->MEMBER),                                                      \
     __VA_ARGS__}

const SliceKey slice_keys[] = {
    KEY("Uuid", "uuid", TEXT, LISTED, uuid),
    KEY("Gpu", "gpu", TEXT, SHOWN, gpu, .label = "GPU"),
    KEY("Type", "type", TEXT, ASKED | SHOWN, type, .label = "Type"),
    KEY("Door", "door", DOOR, SHOWN, transport, .label = "Door"),
    KEY("Name", "name", TEXT, SETTABLE, name, .check = check_name, .label = "Name",
        .option = "Its name, for commands and containers; '': none", .value = "NAME"),
    KEY("Tenant", "tenant", TEXT, PROMISE | DEFINED, tenant, .attribute = "tenant",
        .check = check_tenant, .label = "Tenant", .option = "Whose quota it counts against",
        .value = "TENANT"),
    KEY("Class", "class", CLASS, PROMISE | DEFINED, class, .attribute = "class",
        .check = check_class, .label = "Class", .option = "guaranteed, burstable or best-effort",
        .value = "CLASS"),
    KEY("Vram", "vram", BYTES, PROMISE | DEFINED, vram, .attribute = "vram_bytes", .min = MIB,
        .max = SLICE_BYTES_MAX, .label = "VRAM", .option = "GPU memory, as 2G or 30%",
        .value = "SIZE"),
    KEY("Resident", "resident", BYTES, SETTABLE | SLICE_KEY_RUN, resident, .max = SLICE_BYTES_MAX,
        .label = "Resident (0: all)",
        .option = "The part of it that is always on the GPU, as 1G; the rest moves; 0: all",
        .value = "SIZE"),
    KEY("Oversubscribe", "oversubscribe", BYTES, PROMISE | DEFINED, oversubscribe,
        .attribute = "oversubscribe_bytes", .max = SLICE_BYTES_MAX, .label = "Oversubscription",
        .option = "Host memory beyond its GPU memory, as 1G; 0: none", .value = "SIZE"),
    KEY("Compute", "compute", NUMBER, PROMISE, compute, .max = PER_CENT_MAX, .label = "Compute",
        .option = "Promised per cent of the GPU", .value = "N"),
    KEY("Weight", "weight", NUMBER, PROMISE | DEFINED, weight, .attribute = "weight", .min = 1,
        .max = WEIGHT_MAX, .label = "Weight", .option = "Share of GPU time, 1 to 10000",
        .value = "N"),
    KEY("Cap", "cap", NUMBER, PROMISE | DEFINED, cap, .attribute = "cap", .min = 1,
        .max = PER_CENT_MAX, .label = "Cap", .option = "Maximum GPU time, 1 to 100 per cent",
        .value = "N"),
    KEY("Priority", "priority", LEVEL, PROMISE | DEFINED, priority, .attribute = "priority",
        .max = PRIORITY_MAX, .label = "Priority", .option = "0 to 15, higher goes first",
        .value = "N"),
    KEY("Engines", "engines", ENGINES, PROMISE, engines, .check = check_engines,
        .label = "GPU's engines", .option = "Of graphics,compute,transfer,decode,encode; or all",
        .value = "LIST"),
    KEY("Display", "display", SWITCH, SETTABLE | SLICE_KEY_VM, display, .attribute = "display",
        .max = 1, .label = "Display", .option = "A display: on or off", .value = "on|off"),
    KEY("Started", NULL, FLAG, AUDITED, present),
    KEY("Defined", "defined", FLAG, SHOWN, defined, .label = "Defined"),
    KEY("Autostart", "autostart", FLAG, ASKED | SHOWN, autostart, .label = "Started at boot",
        .option = "Keep it in mdevctl's configuration, and start it at boot"),
    KEY("Suspended", NULL, FLAG, SHOWN, suspended, .label = "Suspended"),
    KEY("Ephemeral", "ephemeral", FLAG, CONTAINER | SLICE_KEY_ASKED_SLICE, ephemeral,
        .label = "Ephemeral", .option = "Remove it when its container ends"),
    KEY("Job", "job", TEXT, ASKED | LISTED | SLICE_KEY_VM, job, .check = check_printable,
        .label = "Job", .option = "Near the other GPUs of this job", .value = "JOB"),
    KEY("Replica", "replica", TEXT, ASKED | LISTED | SLICE_KEY_VM, replica,
        .check = check_printable, .label = "Replica",
        .option = "Away from other replicas of this name", .value = "REPLICA"),
    KEY("Domain", "domain", TEXT, ASKED | LISTED, domain, .check = check_printable,
        .label = "Created for VM"),
    KEY("Owner", "owner", TEXT, OWNED | AUDITED, owner, .label = "Owner"),
    KEY("Part", "part", TEXT, OWNED, part, .label = "Part"),
    KEY("Pool", "pool", TEXT, OWNED, pool, .unset = GPU_POOL_LOCAL, .label = "Pool"),
    KEY("Uid", "uid", TIME, 0, uid),
    KEY("Request", "request", TEXT, 0, request),
    KEY("Asked", "asked", TEXT, 0, asked),
    KEY("Since", "since", TIME, 0, since),
    KEY("Reserved", NULL, FLAG, 0, reserved),
    KEY("Leaving", NULL, FLAG, 0, leaving),
};

const guint slice_keys_count = G_N_ELEMENTS(slice_keys);

/* Of D-Bus, by the type of the key: as it is stored, and as lists have it. */
static const struct {
    char stored;
    char listed;
} signatures[] = {
    [SLICE_KEY_TEXT] = {'s', 's'},   [SLICE_KEY_FLAG] = {'b', 'b'},
    [SLICE_KEY_NUMBER] = {'u', 'u'}, [SLICE_KEY_LEVEL] = {'u', 'i'},
    [SLICE_KEY_BYTES] = {'t', 't'},  [SLICE_KEY_TIME] = {'x', 'x'},
    [SLICE_KEY_SWITCH] = {'i', 'u'}, [SLICE_KEY_DOOR] = {'s', 's'},
    [SLICE_KEY_CLASS] = {'s', 's'},  [SLICE_KEY_ENGINES] = {'u', 's'},
};

const SliceKey *slice_key_find(const char *name)
{
    for (guint i = 0; i < slice_keys_count; i++)
        if (g_str_equal(slice_keys[i].name, name))
            return &slice_keys[i];
    return NULL;
}

gboolean slice_key_check(const char *name, const char *text, GError **error)
{
    return slice_key_find(name)->check(name, text, error);
}

guint64 slice_key_bit(const SliceKey *key)
{
    G_STATIC_ASSERT(G_N_ELEMENTS(slice_keys) <= 64);

    return G_GUINT64_CONSTANT(1) << (key - slice_keys);
}

char slice_key_asked_as(const SliceKey *key)
{
    return key->type == SLICE_KEY_LEVEL ? 'u' : signatures[key->type].listed;
}

gboolean slice_key_is_text(const SliceKey *key)
{
    return signatures[key->type].listed == 's';
}

static void *member_of(const SliceKey *key, const Slice *slice)
{
    return G_STRUCT_MEMBER_P(slice, key->offset);
}

gint64 slice_key_number(const SliceKey *key, const Slice *slice)
{
    const void *member = member_of(key, slice);

    if (key->size == sizeof(gint64))
        return *(const gint64 *)member;
    if (key->type == SLICE_KEY_SWITCH)
        return *(const int *)member;
    return *(const guint *)member;
}

void slice_key_set_number(const SliceKey *key, Slice *slice, gint64 number)
{
    void *member = member_of(key, slice);

    if (key->size == sizeof(gint64))
        *(gint64 *)member = number;
    else
        *(guint *)member = (guint)number;
}

char *slice_key_text(const SliceKey *key, const Slice *slice)
{
    switch (key->type) {
    case SLICE_KEY_TEXT:
        return g_strdup(*(char **)member_of(key, slice));
    case SLICE_KEY_DOOR:
        return g_strdup(slice_transport_name(slice->transport));
    case SLICE_KEY_CLASS:
        return g_strdup(slice_class_name(slice->class));
    case SLICE_KEY_ENGINES:
        return engines_format(slice->engines);
    case SLICE_KEY_SWITCH:
        if (slice_key_number(key, slice) < 0)
            return g_strdup("");
        break;
    default:
        break;
    }
    return g_strdup_printf("%" G_GINT64_FORMAT, slice_key_number(key, slice));
}

gboolean slice_key_set_text(const SliceKey *key, Slice *slice, const char *text)
{
    switch (key->type) {
    case SLICE_KEY_DOOR:
        return slice_transport_parse(text, &slice->transport);
    case SLICE_KEY_CLASS:
        return slice_class_parse(text, &slice->class);
    case SLICE_KEY_ENGINES:
        return engines_parse(text, &slice->engines, NULL);
    default:
        slice_set_text(member_of(key, slice), text);
        return TRUE;
    }
}

static GVariant *value_of(const SliceKey *key, const Slice *slice, char signature)
{
    g_autofree char *text = NULL;

    switch (signature) {
    case 's':
        text = slice_key_text(key, slice);
        return g_variant_new_string(text ? text : "");
    case 'b':
        return g_variant_new_boolean(slice_key_number(key, slice) != 0);
    case 'i':
        return g_variant_new_int32((gint32)slice_key_number(key, slice));
    case 't':
        return g_variant_new_uint64((guint64)slice_key_number(key, slice));
    case 'x':
        return g_variant_new_int64(slice_key_number(key, slice));
    default:
        return g_variant_new_uint32((guint32)slice_key_number(key, slice));
    }
}

GVariant *slice_key_listed(const SliceKey *key, const Slice *slice)
{
    if (key->type == SLICE_KEY_SWITCH && slice_key_number(key, slice) < 0)
        return NULL;
    if (key->unset && !**(char **)member_of(key, slice))
        return g_variant_new_string(key->unset);
    return value_of(key, slice, signatures[key->type].listed);
}

GVariant *slice_key_stored(const SliceKey *key, const Slice *slice)
{
    return value_of(key, slice, signatures[key->type].stored);
}

void slice_key_restore(const SliceKey *key, Slice *slice, GVariant *value)
{
    if (g_variant_classify(value) != (GVariantClass)signatures[key->type].stored)
        return;
    switch (signatures[key->type].stored) {
    case 's':
        slice_key_set_text(key, slice, g_variant_get_string(value, NULL));
        return;
    case 'b':
        slice_key_set_number(key, slice, g_variant_get_boolean(value));
        return;
    case 'i':
        slice_key_set_number(key, slice, g_variant_get_int32(value));
        return;
    case 't':
        slice_key_set_number(key, slice, (gint64)g_variant_get_uint64(value));
        return;
    case 'x':
        slice_key_set_number(key, slice, g_variant_get_int64(value));
        return;
    default:
        slice_key_set_number(key, slice, g_variant_get_uint32(value));
    }
}

void slice_key_adopt(const SliceKey *key, Slice *slice, const char *text)
{
    guint64 number;
    char *end;

    if (!text || !*text)
        return;
    if (slice_key_is_text(key)) {
        if (!key->check || key->check(key->name, text, NULL))
            slice_key_set_text(key, slice, text);
        return;
    }
    number = g_ascii_strtoull(text, &end, 0);
    if (g_ascii_isdigit(*text) && !*end && number <= key->max)
        slice_key_set_number(key, slice, (gint64)number);
}

void slice_key_copy(const SliceKey *key, Slice *to, const Slice *from)
{
    if (key->type == SLICE_KEY_TEXT)
        slice_set_text(member_of(key, to), *(char **)member_of(key, from));
    else
        slice_key_set_number(key, to, slice_key_number(key, from));
}

gboolean slice_key_is_same(const SliceKey *key, const Slice *a, const Slice *b)
{
    if (key->type == SLICE_KEY_TEXT)
        return g_strcmp0(*(char **)member_of(key, a), *(char **)member_of(key, b)) == 0;
    return slice_key_number(key, a) == slice_key_number(key, b);
}
