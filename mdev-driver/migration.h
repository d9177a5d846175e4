/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Shared by migration.c and migration_file.c, the file through which a VMM transfers a saved vGPU. */
#ifndef VGPU_MIGRATION_H
#define VGPU_MIGRATION_H

#include <linux/file.h>
#include <linux/fs.h>

#include "vgpu_private.h"

/*
 * A file to read, which has the header, or to write, whose header is compared with @identity. It
 * keeps the vGPU until it is released. ERR_PTR().
 */
struct file *vgpu_migration_file_new(struct vgpu *vgpu, const struct vgpu_state_identity *identity, bool save);

/* Appends what follows the header. The VMM then finds the end. */
int vgpu_migration_file_complete(struct file *file, const u8 *body, size_t size);

/* The VMM gets the error when it reads. */
void vgpu_migration_file_fail(struct file *file, int error);

/* What was written, the header included; to be freed by kvfree(). ERR_PTR(-EINVAL): not even a header that fits. */
u8 *vgpu_migration_file_take(struct file *file, size_t *size);

/* Accesses fail from now on. */
void vgpu_migration_file_end(struct file *file);

#endif /* VGPU_MIGRATION_H */
