/* SPDX-License-Identifier: MIT */
/*
 * Version 1 of the interface to the driver (uapi/linux/vgpu.h). A module that was loaded before an
 * upgrade stays until the next boot, and the end of each VM brings an engine of the new package: it
 * serves guests with that module, too, by some more system calls for each request.
 */
#ifndef ENGINE_DEVICE_V1_H
#define ENGINE_DEVICE_V1_H

#include <linux/vgpu.h>
#include <stdint.h>
#include <sys/types.h>

/**
 * struct device_v1 - how to reach the driver
 * @control: ioctl() of @fd; 0 or a negative errno
 * @read: read() of @fd; bytes or a negative errno
 */
struct device_v1 {
    int fd;
    int (*control)(int fd, unsigned long request, void *arg);
    ssize_t (*read)(int fd, void *buf, size_t size);
};

/*
 * VGPU_ENGINE_QUEUE_EXCHANGE, without its @poll_us: the guest rings. The next call has what
 * @wait_ms was ended by. 0 or a negative errno.
 */
int device_v1_exchange(const struct device_v1 *device, struct vgpu_queue_exchange *exchange);

#endif /* ENGINE_DEVICE_V1_H */
