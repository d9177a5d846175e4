/* SPDX-License-Identifier: MIT */
#include "mdevctl-plugins/type.h"

#include <string.h>

#include "lib/types.h"
#include "lib/vgpu.h"

static gboolean is_vgpu(const Call *call)
{
    g_autoptr(Vgpu) vgpu = vgpu_read(call->root, call->uuid);

    return vgpu && g_strcmp0(vgpu->type, call->type) == 0;
}

/* "amdgpu-vgpu-half" is "vgpu-half" of a GPU whose driver is amdgpu. */
static gboolean is_called(const char *type, const char *name)
{
    gsize length = strlen(type);
    gsize tail = strlen(name);

    return length > tail + 1 && type[length - tail - 1] == '-' && g_str_has_suffix(type, name);
}

gboolean type_is_ours(const Call *call)
{
    g_autoptr(GPtrArray) types = NULL;

    if (is_vgpu(call))
        return TRUE;
    types = types_load(call->root, NULL);
    for (guint i = 0; types && i < types->len; i++) {
        const GpuType *type = g_ptr_array_index(types, i);

        if (is_called(call->type, type->name))
            return TRUE;
    }
    return FALSE;
}
