/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Checks of the arguments of /dev/vgpu-control and /dev/vgpu/<uuid> (uapi/linux/vgpu.h), as far as
 * they need no other state. All take copies of userspace's unchecked data, and return 0 or a
 * negative errno.
 */
#ifndef VGPU_MODEL_UAPI_CHECK_H
#define VGPU_MODEL_UAPI_CHECK_H

#include "platform.h"
#include "../uapi/linux/vgpu.h"

#define VGPU_SOFT_PREFIX	"soft:"

/* The most entries and pages of one MEM_PIN. */
#define VGPU_MEM_MAX_ENTRIES	65536
#define VGPU_MEM_MAX_PAGES	(1ull << 27)

#define VGPU_WINDOW_MAX_BYTES	(64ull << 30)

bool vgpu_window_size_ok(u64 bytes);
/* One line of printable ASCII that ends within @size. */
bool vgpu_text_ok(const char *text, size_t size);

/* Bytes of a tenant's name including its NUL. */
#define VGPU_TENANT_LEN		64
/* 1 to 63 letters, digits, "_", "." and "-", a letter or digit first; vgpud accepts the same. */
bool vgpu_tenant_ok(const char *name, size_t len);

/* Everything but @arg->types, which is a pointer. */
int vgpu_check_gpu(const struct vgpu_control_gpu *arg);
int vgpu_check_remove(const struct vgpu_control_remove *arg);
int vgpu_check_drain(const struct vgpu_control_drain *arg);
int vgpu_check_announce(const struct vgpu_control_announce *arg);
/* @n: elements of @descs, within what vgpu_check_gpu() allows. */
int vgpu_check_types(const struct vgpu_type_desc *descs, u32 n);

/* @pages: their sum, at most VGPU_MEM_MAX_PAGES (ENOMEM). */
int vgpu_check_mem_entries(const struct vgpu_mem_entry *entries, u32 n, u64 *pages);

/* All but the epoch and the pointers. */
int vgpu_check_exchange(const struct vgpu_queue_exchange *arg);
/* @n: within what vgpu_check_exchange() allows. All together are VGPU_REQUEST_MAX at most (EMSGSIZE). */
int vgpu_check_answers(const struct vgpu_queue_answer *answers, u32 n);

/* All but the epoch. A picture that passes lies within VGPU_PICTURE_SIZE. */
int vgpu_check_scanout(const struct vgpu_scanout *scanout);

/* @window: bytes of the window; @task_size: end of the engine's addresses. */
int vgpu_check_window_range(const struct vgpu_window_range *range, u64 window, u64 task_size);

#endif /* VGPU_MODEL_UAPI_CHECK_H */
