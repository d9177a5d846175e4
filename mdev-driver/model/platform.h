/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * What the device model needs from its surroundings: fixed-width types, little-endian access and
 * string functions. The model takes no locks, allocates nothing and never sleeps by itself, so the
 * same files are built into the module, the unit tests and the fuzzers.
 */
#ifndef VGPU_MODEL_PLATFORM_H
#define VGPU_MODEL_PLATFORM_H

#ifdef __KERNEL__
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/string.h>
#include <linux/types.h>
#include <asm/byteorder.h>
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

#endif

#endif /* VGPU_MODEL_PLATFORM_H */
