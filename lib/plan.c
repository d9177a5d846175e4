/* SPDX-License-Identifier: MIT */
#include "lib/plan.h"

#include "lib/conf.h"
#include "lib/hardware.h"
#include "lib/types.h"
#include "lib/units.h"

void plan_free(Plan *plan)
{
    g_free(plan->gpu);
    g_free(plan->driver);
    g_free(plan->vram_source);
    g_ptr_array_unref(plan->left_out);
    g_free(plan);
}

static void fill_desc(struct vgpu_type_desc *desc, const GpuType *type, guint64 vram_bytes)
{
    g_strlcpy(desc->name, type->name, sizeof(desc->name));
    g_strlcpy(desc->description, type->description, sizeof(desc->description));
    desc->vram_bytes = vram_bytes;
    desc->window_bytes = type->window_bytes;
    desc->weight = type->weight;
    desc->cap = type->cap;
    desc->priority = type->priority;
    desc->max_instances = type->max_instances;
    desc->scanouts = type->display;
}

static void leave_out(Plan *plan, const GpuType *type, guint64 vram_bytes)
{
    g_autofree char *wanted = size_format(vram_bytes);
    g_autofree char *there = size_format(plan->vram_bytes);

    g_ptr_array_add(plan->left_out,
                    g_strdup_printf("type %s is left out: its %s don't fit into the GPU's %s",
                                    type->name, wanted, there));
}

static gboolean add_types(Plan *plan, const char *ids, const GPtrArray *types, GError **error)
{
    for (guint i = 0; i < types->len; i++) {
        const GpuType *type = g_ptr_array_index(types, i);
        guint64 vram_bytes = amount_resolve(&type->vram, plan->vram_bytes);

        if (!type_matches(type, plan->gpu, ids))
            continue;
        if (!vram_bytes || vram_bytes > plan->vram_bytes) {
            leave_out(plan, type, vram_bytes);
            continue;
        }
        if (plan->ntypes == VGPU_MAX_TYPES) {
            g_set_error(error, REGISTRAR_ERROR, REGISTRAR_ERROR_CONFIG,
                        "GPU %s: more than %d types are for it; %s in %s is the first too many",
                        plan->gpu, VGPU_MAX_TYPES, type->name, type->file);
            return FALSE;
        }
        fill_desc(&plan->types[plan->ntypes++], type, vram_bytes);
    }
    if (plan->ntypes)
        return TRUE;
    g_set_error(error, REGISTRAR_ERROR, REGISTRAR_ERROR_CONFIG,
                "GPU %s: no type is for it; put one into /etc/vgpu/types.d (vgpu-types.conf(5))",
                plan->gpu);
    return FALSE;
}

Plan *plan_new(HostRoot *root, const GpuEntry *entry, const GPtrArray *types, GError **error)
{
    g_autoptr(Plan) plan = g_new0(Plan, 1);
    g_autoptr(Hardware) hardware = NULL;

    plan->gpu = g_strdup(entry->name);
    plan->left_out = g_ptr_array_new_with_free_func(g_free);
    if (!gpu_name_is_soft(entry->name)) {
        hardware = hardware_find(root, entry->name, error);
        if (!hardware)
            return NULL;
        plan->driver = g_strdup(hardware->driver);
    }
    if (entry->vram_bytes) {
        plan->vram_bytes = entry->vram_bytes;
        plan->vram_source = g_strdup("vram= in gpus.conf");
    } else if (!hardware_vram(root, hardware->dir, hardware->driver, &plan->vram_bytes,
                              &plan->vram_source, error)) {
        return NULL;
    }
    plan->capacity_bytes =
        (guint64)((gdouble)plan->vram_bytes * entry->overcommit) / MIB * MIB;
    if (!add_types(plan, hardware ? hardware->ids : NULL, types, error))
        return NULL;
    return g_steal_pointer(&plan);
}
