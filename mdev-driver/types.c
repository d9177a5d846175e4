// SPDX-License-Identifier: GPL-2.0 OR MIT
/* The types of a GPU, from the registrar's descriptions. model/uapi_check.c has checked them. */
#include <linux/string.h>

#include "vgpu_private.h"

/* Copies all but the name, which is the directory's. Existing vGPUs are unchanged. */
void vgpu_type_set(struct vgpu_type *type, const struct vgpu_type_desc *desc)
{
	strscpy(type->description, desc->description, sizeof(type->description));
	type->max_instances = desc->max_instances;
	type->params = (struct vgpu_params) {
		.vram_bytes = desc->vram_bytes,
		.window_bytes = desc->window_bytes,
		.weight = desc->weight,
		.cap = desc->cap,
		.priority = desc->priority,
		.scanouts = desc->scanouts,
	};
}
