/* SPDX-License-Identifier: MIT */
/*
 * The host's side of mediated devices: GPUs through /dev/vgpu-control, vGPUs through sysfs.
 * Functions that can fail return 0 or a negative errno.
 */
#ifndef MDEV_HOST_H
#define MDEV_HOST_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#include <linux/vgpu.h>

#define MIB (1024ull * 1024)

/* A type with usual parameters: weight 100, cap 100, priority 0, no limit of instances. */
struct vgpu_type_desc mdev_type(const char *name, uint64_t vram_bytes, uint64_t window_bytes);

bool mdev_host_module_loaded(void);

int mdev_gpu_add(const char *gpu, uint64_t vram_bytes, const struct vgpu_type_desc *types,
                 unsigned ntypes);
int mdev_gpu_set_types(const char *gpu, uint64_t vram_bytes, const struct vgpu_type_desc *types,
                       unsigned ntypes);
int mdev_gpu_remove(const char *gpu);
int mdev_gpu_drain(const char *gpu, bool on);
/* Of a vGPU that is made next; 0: it is not. */
int mdev_announce(const char *gpu, const char *type, const char *uuid, uint64_t vram_bytes);

/* An ioctl on /dev/vgpu-control, unchanged. */
int mdev_control_ioctl(unsigned long request, void *arg);

/* The directory of a type of a GPU, or NULL. @gpu: as for mdev_gpu_add(). */
char *mdev_type_dir(const char *gpu, const char *type);
/* Content of a type's attribute without the newline, or NULL. */
char *mdev_type_attr(const char *gpu, const char *type, const char *name);
/* available_instances, or a negative errno. */
int mdev_type_available(const char *gpu, const char *type);

char *mdev_uuid_new(void);
int mdev_create(const char *gpu, const char *type, const char *uuid);
/* Blocks until the VMM has closed the device. */
int mdev_remove(const char *uuid);
bool mdev_exists(const char *uuid);

/* Attributes, relative to the mdev's directory: "vgpu/vram_bytes". */
char *mdev_attr(const char *uuid, const char *name);
int mdev_attr_set(const char *uuid, const char *name, const char *value);
uint64_t mdev_attr_u64(const char *uuid, const char *name);

/* Time limits of the driver, for tests of their end. */
int mdev_set_engine_timeout_ms(unsigned ms);
int mdev_set_reset_timeout_ms(unsigned ms);

/* Writes @value in one write(). */
int sysfs_write(const char *path, const char *value);

/* Removes all vGPUs and soft GPUs whose name begins with @prefix; default time limits. */
int mdev_host_cleanup(const char *prefix);

#endif /* MDEV_HOST_H */
