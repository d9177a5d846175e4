/* SPDX-License-Identifier: MIT */
#include "lists.h"

#include "gpu.h"
#include "mdev_type.h"
#include "vgpu.h"

static void add_text(GVariantBuilder *dict, const char *key, const char *text)
{
    g_variant_builder_add(dict, "{sv}", key, g_variant_new_string(text ? text : ""));
}

static void add_number(GVariantBuilder *dict, const char *key, guint64 number)
{
    g_variant_builder_add(dict, "{sv}", key, g_variant_new_uint64(number));
}

static void add_count(GVariantBuilder *dict, const char *key, guint count)
{
    g_variant_builder_add(dict, "{sv}", key, g_variant_new_uint32(count));
}

static GVariant *dictionary_of_vgpu(const Vgpu *vgpu)
{
    GVariantBuilder dict;

    g_variant_builder_init(&dict, G_VARIANT_TYPE_VARDICT);
    add_text(&dict, "Uuid", vgpu->uuid);
    add_text(&dict, "Gpu", vgpu->gpu);
    add_text(&dict, "Type", vgpu->type);
    add_text(&dict, "Device", vgpu->device);
    add_text(&dict, "Engine", vgpu->engine);
    add_text(&dict, "Failure", vgpu->failure);
    add_number(&dict, "Vram", vgpu->vram);
    add_number(&dict, "Window", vgpu->window);
    add_count(&dict, "Weight", vgpu->weight);
    add_count(&dict, "Cap", vgpu->cap);
    g_variant_builder_add(&dict, "{sv}", "Priority", g_variant_new_int32(vgpu->priority));
    add_number(&dict, "Requests", vgpu->requests);
    add_number(&dict, "Doorbells", vgpu->doorbells);
    add_number(&dict, "Interrupts", vgpu->interrupts);
    add_number(&dict, "EngineLosses", vgpu->engine_losses);
    return g_variant_builder_end(&dict);
}

GVariant *list_vgpus(const char *root)
{
    g_autoptr(GPtrArray) vgpus = vgpus_read(root);
    GVariantBuilder list;

    g_variant_builder_init(&list, G_VARIANT_TYPE("aa{sv}"));
    for (guint i = 0; i < vgpus->len; i++)
        g_variant_builder_add_value(&list, dictionary_of_vgpu(g_ptr_array_index(vgpus, i)));
    return g_variant_builder_end(&list);
}

static GVariant *dictionary_of_type(const MdevType *type)
{
    GVariantBuilder dict;

    g_variant_builder_init(&dict, G_VARIANT_TYPE_VARDICT);
    add_text(&dict, "Id", type->id);
    add_text(&dict, "Gpu", type->gpu);
    add_text(&dict, "Description", type->description);
    add_count(&dict, "Available", type->available);
    add_count(&dict, "Instances", type->instances);
    return g_variant_builder_end(&dict);
}

GVariant *list_types(const GPtrArray *gpus)
{
    GVariantBuilder list;

    g_variant_builder_init(&list, G_VARIANT_TYPE("aa{sv}"));
    for (guint i = 0; i < gpus->len; i++) {
        const PciDevice *pci = ((const Gpu *)g_ptr_array_index(gpus, i))->pci;
        g_autoptr(GPtrArray) types = mdev_types_read(pci->address, pci->dir);

        for (guint k = 0; k < types->len; k++)
            g_variant_builder_add_value(&list, dictionary_of_type(g_ptr_array_index(types, k)));
    }
    return g_variant_builder_end(&list);
}
