/* SPDX-License-Identifier: MIT */
/* ListTypes: the types of vGPUs, on the GPUs that the caller may use. */
#include "host-agent/daemon/methods/vgpu_call.h"
#include "lib/mdev.h"

static void add(GVariantBuilder *dict, const char *key, GVariant *value)
{
    g_variant_builder_add(dict, "{sv}", key, value);
}

/* From /etc/vgpu; types of other drivers are not included. */
static void add_offer(GVariantBuilder *dict, const Offer *offer)
{
    const struct vgpu_type_desc *desc = offer->desc;

    add(dict, "Vram", g_variant_new_uint64(desc->vram_bytes));
    add(dict, "Window", g_variant_new_uint64(desc->window_bytes));
    add(dict, "Oversubscribe", g_variant_new_uint64(offer->oversubscribe));
    add(dict, "Class", g_variant_new_string(slice_class_name(offer->class)));
    add(dict, "Compute", g_variant_new_uint32(offer->compute));
    add(dict, "Weight", g_variant_new_uint32(desc->weight));
    add(dict, "Cap", g_variant_new_uint32(desc->cap));
    add(dict, "Priority", g_variant_new_uint32(desc->priority));
    add(dict, "Display", g_variant_new_uint32(desc->scanouts));
}

static GVariant *dictionary_of(const Vgpus *vgpus, const Gpu *gpu, const MdevType *type)
{
    GVariantBuilder dict;
    Offer offer;

    g_variant_builder_init(&dict, G_VARIANT_TYPE_VARDICT);
    add(&dict, "Id", g_variant_new_string(type->id));
    add(&dict, "Gpu", g_variant_new_string(type->gpu));
    add(&dict, "Description", g_variant_new_string(type->description));
    add(&dict, "Available", g_variant_new_uint32(type->available));
    add(&dict, "Instances", g_variant_new_uint32(g_strv_length(type->uuids)));
    if (offers_find(vgpus->offers, gpu, type->id, &offer))
        add_offer(&dict, &offer);
    return g_variant_builder_end(&dict);
}

static void add_types(const Vgpus *vgpus, const Gpu *gpu, GVariantBuilder *list)
{
    g_autoptr(GPtrArray) types =
        mdev_types_of_device(host_root(vgpus->host), gpu->pci->address, gpu->pci->dir);

    for (guint i = 0; i < types->len; i++)
        g_variant_builder_add_value(list, dictionary_of(vgpus, gpu, g_ptr_array_index(types, i)));
}

/* @user: NULL: sees all. */
static gboolean may_use(const Vgpus *vgpus, const Gpu *gpu, const char *user)
{
    g_autoptr(Room) room = user ? slices_room(vgpus->slices, gpu) : NULL;

    return !user || tenants_user_may_use(vgpus->tenants, user, room);
}

static void list(Vgpus *vgpus, GDBusMethodInvocation *invocation, const char *user)
{
    const GPtrArray *gpus = host_gpus(vgpus->host);
    GVariantBuilder types;

    g_variant_builder_init(&types, G_VARIANT_TYPE("aa{sv}"));
    for (guint i = 0; i < gpus->len; i++)
        if (may_use(vgpus, g_ptr_array_index(gpus, i), user))
            add_types(vgpus, g_ptr_array_index(gpus, i), &types);
    vgpu_manager_complete_list_types(host_manager(vgpus->host), invocation,
                                     g_variant_builder_end(&types));
}

gboolean type_list_handle(VgpuManager *interface, GDBusMethodInvocation *invocation, void *data)
{
    (void)interface;
    vgpu_call_list(data, invocation, list);
    return TRUE;
}
