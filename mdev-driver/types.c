// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * The types of a GPU, as the registrar describes them.
 */
#include <linux/ctype.h>
#include <linux/log2.h>
#include <linux/sizes.h>

#include "vgpu_private.h"

bool vgpu_window_size_ok(u64 bytes)
{
	return is_power_of_2(bytes) && bytes >= SZ_1M && bytes <= 64ull * SZ_1G;
}

static bool vgpu_type_name_ok(const char *name)
{
	size_t len = strnlen(name, VGPU_TYPE_NAME_LEN), i;

	if (!len || len == VGPU_TYPE_NAME_LEN || !(islower(name[0]) || isdigit(name[0])))
		return false;
	for (i = 0; i < len; i++)
		if (!islower(name[i]) && !isdigit(name[i]) && !strchr("_.-", name[i]))
			return false;
	return true;
}

static bool vgpu_type_description_ok(const char *text)
{
	size_t len = strnlen(text, VGPU_TYPE_DESC_LEN), i;

	if (len == VGPU_TYPE_DESC_LEN)
		return false;
	for (i = 0; i < len; i++)
		if (!isascii(text[i]) || !isprint(text[i]))
			return false;
	return true;
}

static int vgpu_type_check(const struct vgpu_type_desc *desc)
{
	if (!vgpu_type_name_ok(desc->name) || !vgpu_type_description_ok(desc->description))
		return -EINVAL;
	if (!desc->vram_bytes || !vgpu_window_size_ok(desc->window_bytes))
		return -EINVAL;
	if (!desc->weight || desc->weight > 10000 || !desc->cap || desc->cap > 100 ||
	    desc->priority > 15)
		return -EINVAL;
	if (desc->scanouts || memchr_inv(desc->reserved, 0, sizeof(desc->reserved)))
		return -EINVAL;
	return 0;
}

/* @descs: copied from userspace; nothing of it has been looked at. */
int vgpu_types_check(const struct vgpu_control_gpu *arg, const struct vgpu_type_desc *descs)
{
	u32 i, j;
	int ret;

	if (!arg->vram_bytes)
		return -EINVAL;
	for (i = 0; i < arg->ntypes; i++) {
		ret = vgpu_type_check(&descs[i]);
		if (ret)
			return ret;
		for (j = 0; j < i; j++)
			if (!strcmp(descs[i].name, descs[j].name))
				return -EINVAL;
	}
	return 0;
}

/* Takes over all but the name, which is the directory's. Existing vGPUs keep what they have. */
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
