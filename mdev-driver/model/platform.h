/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * The device model's requirements on its environment: fixed-width types, little-endian access,
 * barriers and string functions. The model takes no locks, allocates nothing and never sleeps by
 * itself, so the same files are built into the module, the unit tests and the fuzzers.
 */
#ifndef VGPU_MODEL_PLATFORM_H
#define VGPU_MODEL_PLATFORM_H

#ifdef __KERNEL__
#include <linux/build_bug.h>
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/nospec.h>
#include <linux/string.h>
#include <linux/types.h>
#include <asm/barrier.h>
#include <asm/byteorder.h>
#include <asm/page.h>

#define VGPU_PAGE_SIZE	PAGE_SIZE

/* The other side is a guest's CPU: these order even if the host kernel is built for one CPU. */
#define vgpu_mb()	virt_mb()	/* earlier writes before later reads */
#define vgpu_rmb()	virt_rmb()	/* an index before the entries that it covers */
#define vgpu_wmb()	virt_wmb()	/* the entries before the index that covers them */

/* An index that was just compared with @size, made safe for use in speculation, too. */
#define vgpu_index_nospec(index, size)	array_index_nospec(index, size)
#else
#include <endian.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <linux/types.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;

#define static_assert	_Static_assert
#define U32_MAX		UINT32_MAX

#define VGPU_PAGE_SIZE	4096ul

#define vgpu_mb()	__sync_synchronize()
#define vgpu_rmb()	__sync_synchronize()
#define vgpu_wmb()	__sync_synchronize()

#define vgpu_index_nospec(index, size)	((void)(size), (index))
#endif

static inline size_t vgpu_min_size(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* Little-endian values at any alignment; compilers make single loads and stores of them. */
static inline u16 vgpu_get_le16(const void *p)
{
	const u8 *b = p;

	return (u16)(b[0] | b[1] << 8);
}

static inline u32 vgpu_get_le32(const void *p)
{
	const u8 *b = p;

	return b[0] | (u32)b[1] << 8 | (u32)b[2] << 16 | (u32)b[3] << 24;
}

static inline u64 vgpu_get_le64(const void *p)
{
	const u8 *b = p;

	return vgpu_get_le32(b) | (u64)vgpu_get_le32(b + 4) << 32;
}

static inline void vgpu_put_le16(void *p, u16 value)
{
	u8 *b = p;

	b[0] = value & 0xff;
	b[1] = value >> 8;
}

static inline void vgpu_put_le32(void *p, u32 value)
{
	u8 *b = p;

	vgpu_put_le16(b, (u16)value);
	vgpu_put_le16(b + 2, (u16)(value >> 16));
}

static inline void vgpu_put_le64(void *p, u64 value)
{
	u8 *b = p;

	vgpu_put_le32(b, (u32)value);
	vgpu_put_le32(b + 4, (u32)(value >> 32));
}

#endif /* VGPU_MODEL_PLATFORM_H */
