/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* The calls of /dev/vgpu-test-holder. */
#ifndef MM_HOLDER_H
#define MM_HOLDER_H

#include <linux/ioctl.h>
#include <linux/types.h>

/* A dma-buf of @size bytes; out: its descriptor. */
struct holder_buffer {
	__u64 size;
	__s32 fd;
	__u32 reserved;
};

/*
 * How the faults of all buffers are answered from now on.
 * @again: so many of them by "come again", without a page, as a GPU's driver that is busy does
 * @sigbus: then by SIGBUS
 * @delay_ms: each of them so much later
 */
struct holder_faults {
	__u32 again;
	__u32 sigbus;
	__u32 delay_ms;
};

#define HOLDER_BUFFER	_IOWR('h', 1, struct holder_buffer)
#define HOLDER_FAULTS	_IOW('h', 2, struct holder_faults)
/* Returns the number of buffers that exist. */
#define HOLDER_COUNT	_IO('h', 3)
/* Returns the number of address spaces that are held now. */
#define HOLDER_HELD	_IO('h', 4)
/* Ends all holds. */
#define HOLDER_LET_GO	_IO('h', 5)

#endif /* MM_HOLDER_H */
