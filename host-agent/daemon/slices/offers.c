/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/slices/offers.h"

#include <string.h>

#include "lib/bus.h"
#include "lib/gpus.h"
#include "lib/control.h"
#include "lib/types.h"

/* sysfs's substitute for a driver's name for a GPU without hardware. */
#define SOFT_DRIVER "vgpu-soft"
#define TYPE_PREFIX "vgpu-"

struct Offers {
    HostRoot *root;
    GPtrArray *types;   /* of GpuType */
    GPtrArray *entries; /* of GpuEntry */
    GHashTable *plans;  /* address to GpuOffers, made when first asked for */
};

/**
 * GpuOffers - of one GPU
 * @driver, @vram: of the GPU when @plan was made
 * @plan: NULL: it could not be made, which was logged
 * @ids: of its types, the names in sysfs if the kernel module is loaded
 */
typedef struct {
    char *driver;
    guint64 vram;
    Plan *plan;
    GStrv ids;
} GpuOffers;

static void free_gpu_offers(void *data)
{
    GpuOffers *offered = data;

    g_free(offered->driver);
    g_clear_pointer(&offered->plan, plan_free);
    g_strfreev(offered->ids);
    g_free(offered);
}

Offers *offers_new(HostRoot *root)
{
    Offers *offers = g_new0(Offers, 1);

    offers->root = host_root_ref(root);
    offers->types = g_ptr_array_new();
    offers->entries = g_ptr_array_new();
    offers->plans = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, free_gpu_offers);
    return offers;
}

void offers_free(Offers *offers)
{
    g_ptr_array_unref(offers->types);
    g_ptr_array_unref(offers->entries);
    g_hash_table_unref(offers->plans);
    host_root_unref(offers->root);
    g_free(offers);
}

gboolean offers_reload(Offers *offers, GError **error)
{
    g_autoptr(GError) cause = NULL;
    g_autoptr(GPtrArray) types = types_load(offers->root, &cause);
    g_autoptr(GPtrArray) entries = types ? gpus_load(offers->root, &cause) : NULL;

    if (!entries) {
        g_set_error_literal(error, AGENT_ERROR, AGENT_ERROR_INVALID, cause->message);
        return FALSE;
    }
    g_ptr_array_unref(offers->types);
    g_ptr_array_unref(offers->entries);
    offers->types = g_steal_pointer(&types);
    offers->entries = g_steal_pointer(&entries);
    g_hash_table_remove_all(offers->plans);
    return TRUE;
}

void offers_take(Offers *offers, Offers *from)
{
    const Offers old = *offers;

    *offers = *from;
    *from = old;
    offers_free(from);
}

Plan *offers_plan_new(const Offers *offers, const Gpu *gpu, GError **error)
{
    const char *name = gpu->pci->address;
    const GpuEntry *entry = gpus_find(offers->entries, name);
    const GpuEntry bare = {.name = (char *)name, .mode = GPU_MODE_SHARED, .overcommit = 1};
    GpuEntry wanted = entry ? *entry : bare;
    Plan *plan = plan_new(offers->root, &wanted, offers->types, error);

    if (plan || wanted.vram_bytes || !gpu->vram)
        return plan;
    /* The inventory may know its memory although the driver does not report it now. */
    g_clear_error(error);
    wanted.vram_bytes = gpu->vram;
    return plan_new(offers->root, &wanted, offers->types, error);
}

static Plan *make_plan(const Offers *offers, const Gpu *gpu)
{
    g_autoptr(GError) error = NULL;
    Plan *plan = offers_plan_new(offers, gpu, &error);

    if (!plan)
        g_message("the types of GPU %s are not known: %s", gpu->pci->address, error->message);
    return plan;
}

/* sysfs puts the name of the GPU's driver in front of a type's. */
static const char *driver_of(const Gpu *gpu)
{
    return gpu_name_is_soft(gpu->pci->address) ? SOFT_DRIVER : gpu->pci->driver;
}

static GStrv ids_of(const Gpu *gpu, const Plan *plan)
{
    g_autoptr(GStrvBuilder) ids = g_strv_builder_new();

    for (guint i = 0; plan && i < plan->ntypes; i++)
        g_strv_builder_take(ids, g_strconcat(driver_of(gpu), "-", plan->types[i].name, NULL));
    return g_strv_builder_end(ids);
}

static GpuOffers *gpu_offers_new(const Offers *offers, const Gpu *gpu)
{
    GpuOffers *offered = g_new0(GpuOffers, 1);

    offered->driver = g_strdup(gpu->pci->driver);
    offered->vram = gpu->vram;
    offered->plan = make_plan(offers, gpu);
    offered->ids = ids_of(gpu, offered->plan);
    return offered;
}

/* A plan that could not be made is tried again when the GPU has changed. */
static gboolean is_outdated(const GpuOffers *offered, const Gpu *gpu)
{
    return !offered->plan &&
           (offered->vram != gpu->vram || g_strcmp0(offered->driver, gpu->pci->driver) != 0);
}

/* NULL: it offers nothing. */
static const GpuOffers *offers_of(Offers *offers, const Gpu *gpu)
{
    const char *address = gpu->pci->address;
    GpuOffers *offered;

    if (gpu->mode != GPU_MODE_SHARED)
        return NULL;
    offered = g_hash_table_lookup(offers->plans, address);
    if (!offered || is_outdated(offered, gpu)) {
        offered = gpu_offers_new(offers, gpu);
        g_hash_table_insert(offers->plans, g_strdup(address), offered);
    }
    return offered->plan ? offered : NULL;
}

static const Plan *plan_of(Offers *offers, const Gpu *gpu)
{
    const GpuOffers *offered = offers_of(offers, gpu);

    return offered ? offered->plan : NULL;
}

/* "vgpu-half" of "amdgpu-vgpu-half". NULL: not one of our types. */
static const char *name_of(const Gpu *gpu, const char *id)
{
    const char *driver = driver_of(gpu);
    gsize length = driver ? strlen(driver) : 0;

    return length && g_str_has_prefix(id, driver) && id[length] == '-' ? id + length + 1 : NULL;
}

/* The forms in which a person may write a type, from the clearest to the shortest. */
typedef enum {
    CALLED_WHOLLY,  /* "amdgpu-vgpu-half" */
    CALLED_BY_NAME, /* "vgpu-half" */
    CALLED_BRIEFLY, /* "half" */
    CALLS,
} Call;

static gboolean is_called(const char *id, const char *name, const char *type, Call call)
{
    switch (call) {
    case CALLED_WHOLLY:
        return g_str_equal(id, type);
    case CALLED_BY_NAME:
        return g_str_equal(name, type);
    default:
        return g_str_has_prefix(name, TYPE_PREFIX) && g_str_equal(name + strlen(TYPE_PREFIX), type);
    }
}

static const struct vgpu_type_desc *find_desc(const Plan *plan, const char *name)
{
    for (guint i = 0; i < plan->ntypes; i++)
        if (g_str_equal(plan->types[i].name, name))
            return &plan->types[i];
    return NULL;
}

static const GpuType *find_type(const Offers *offers, const char *name)
{
    for (guint i = 0; i < offers->types->len; i++) {
        const GpuType *type = g_ptr_array_index(offers->types, i);

        if (g_str_equal(type->name, name))
            return type;
    }
    return NULL;
}

static gboolean fill_offer(const Offers *offers, const Plan *plan, const char *id, const char *name,
                           Offer *offer)
{
    const GpuType *type;

    offer->id = id;
    offer->desc = find_desc(plan, name);
    type = offer->desc ? find_type(offers, offer->desc->name) : NULL;
    if (!type)
        return FALSE;
    offer->compute = type->compute;
    offer->oversubscribe = amount_resolve(&type->oversubscribe, offer->desc->vram_bytes);
    offer->cpu = type->cpu;
    offer->memory = type->memory;
    return slice_class_parse(type->class, &offer->class);
}

gboolean offers_find(Offers *offers, const Gpu *gpu, const char *type, Offer *offer)
{
    const GpuOffers *offered = offers_of(offers, gpu);
    const GStrv ids = offered && gpu->containers_only ? offered->ids : gpu->types;

    for (Call call = CALLED_WHOLLY; offered && call < CALLS; call++) {
        for (guint i = 0; ids[i]; i++) {
            const char *id = ids[i];
            const char *name = name_of(gpu, id);

            if (name && is_called(id, name, type, call) &&
                fill_offer(offers, offered->plan, id, name, offer))
                return TRUE;
        }
    }
    return FALSE;
}

gboolean offers_find_fitting(Offers *offers, const Gpu *gpu, guint64 vram, Offer *offer)
{
    const GpuOffers *offered = offers_of(offers, gpu);
    gboolean found = FALSE;

    for (guint i = 0; offered && gpu->types[i]; i++) {
        const char *name = name_of(gpu, gpu->types[i]);
        Offer other;

        if (!name || !fill_offer(offers, offered->plan, gpu->types[i], name, &other) ||
            other.desc->vram_bytes < vram ||
            (found && other.desc->vram_bytes >= offer->desc->vram_bytes))
            continue;
        *offer = other;
        found = TRUE;
    }
    return found;
}

gboolean offers_of_size(Offers *offers, const Gpu *gpu, guint64 vram, struct vgpu_type_desc *desc,
                        Offer *offer)
{
    const Plan *plan = plan_of(offers, gpu);

    if (!plan)
        return FALSE;
    *desc = (struct vgpu_type_desc){.vram_bytes = vram, .cap = 100};
    desc->weight = (guint32)CLAMP(vram * WHOLE_WEIGHT / MAX(plan->vram_bytes, 1), 1, WHOLE_WEIGHT);
    *offer = (Offer){.id = "", .desc = desc, .class = SLICE_GUARANTEED};
    return TRUE;
}

guint64 offers_capacity(Offers *offers, const Gpu *gpu, guint64 *vram)
{
    const Plan *plan = plan_of(offers, gpu);

    *vram = plan ? plan->vram_bytes : gpu->vram;
    return plan ? plan->capacity_bytes : 0;
}

const GpuEntry *offers_settings(const Offers *offers, const char *gpu)
{
    return gpus_find(offers->entries, gpu);
}
