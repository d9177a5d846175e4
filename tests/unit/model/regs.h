/* SPDX-License-Identifier: MIT */
/*
 * Registers by a guest driver's names: offsets of virtio 1.2, 4.1.4.3, written out, so that a wrong
 * constant in the model is noticed.
 */
#pragma once

#include <glib.h>

#include "virtio_regs.h"

enum {
    R_DEVICE_FEATURE_SELECT = 0x00,
    R_DEVICE_FEATURE = 0x04,
    R_DRIVER_FEATURE_SELECT = 0x08,
    R_DRIVER_FEATURE = 0x0c,
    R_CONFIG_VECTOR = 0x10,
    R_NUM_QUEUES = 0x12,
    R_STATUS = 0x14,
    R_GENERATION = 0x15,
    R_QUEUE_SELECT = 0x16,
    R_QUEUE_SIZE = 0x18,
    R_QUEUE_VECTOR = 0x1a,
    R_QUEUE_ENABLE = 0x1c,
    R_QUEUE_NOTIFY_OFF = 0x1e,
    R_QUEUE_DESC = 0x20,
    R_QUEUE_DRIVER = 0x28,
    R_QUEUE_DEVICE = 0x30,
    R_QUEUE_NOTIFY_DATA = 0x38,
    R_QUEUE_RESET = 0x3a,
    R_ISR = 0x1000,
    R_EVENTS_READ = 0x2000,
    R_EVENTS_CLEAR = 0x2004,
    R_NUM_SCANOUTS = 0x2008,
    R_NUM_CAPSETS = 0x200c,
    R_NOTIFY = 0x3000,
    R_END = 0x4000,
};

/* Status bits, virtio 1.2, 2.1. */
enum {
    S_ACK = 1,
    S_DRIVER = 2,
    S_DRIVER_OK = 4,
    S_FEATURES_OK = 8,
    S_NEEDS_RESET = 64,
    S_FAILED = 128
};

/* VERSION_1, ACCESS_PLATFORM, EVENT_IDX, INDIRECT_DESC, VIRGL, RESOURCE_BLOB, CONTEXT_INIT. */
#define OFFERED  ((1ULL << 32) | (1ULL << 33) | (1ULL << 29) | (1ULL << 28) | 0x19)
#define REQUIRED ((1ULL << 32) | (1ULL << 33))

static inline u64 regs_rd(struct vgpu_regs *r, u64 offset, size_t len)
{
    u8 raw[8] = {0};
    u64 value = 0;

    vgpu_regs_read(r, offset, raw, len);
    for (int i = 7; i >= 0; i--)
        value = value << 8 | raw[i];
    return value;
}

static inline u32 regs_wr(struct vgpu_regs *r, u64 offset, u64 value, size_t len)
{
    u8 raw[8];

    for (int i = 0; i < 8; i++)
        raw[i] = (u8)(value >> (8 * i));
    return vgpu_regs_write(r, offset, raw, len);
}

/* From power-on to FEATURES_OK with @features, as Linux does it. Returns the status then. */
static inline u8 regs_negotiate(struct vgpu_regs *r, u64 features)
{
    regs_wr(r, R_STATUS, S_ACK, 1);
    regs_wr(r, R_STATUS, S_ACK | S_DRIVER, 1);
    for (u32 i = 0; i < 2; i++) {
        regs_wr(r, R_DRIVER_FEATURE_SELECT, i, 4);
        regs_wr(r, R_DRIVER_FEATURE, (u32)(features >> (32 * i)), 4);
    }
    regs_wr(r, R_STATUS, S_ACK | S_DRIVER | S_FEATURES_OK, 1);
    return (u8)regs_rd(r, R_STATUS, 1);
}

/* Sets up queue @q with rings of @size at @base and enables it. Returns queue_enable then. */
static inline u16 regs_enable_queue(struct vgpu_regs *r, u16 q, u16 size, u64 base)
{
    regs_wr(r, R_QUEUE_SELECT, q, 2);
    regs_wr(r, R_QUEUE_SIZE, size, 2);
    for (u32 i = 0; i < 3; i++) {
        regs_wr(r, R_QUEUE_DESC + 8 * i, (u32)(base + 0x1000 * i), 4);
        regs_wr(r, R_QUEUE_DESC + 8 * i + 4, (base + 0x1000 * i) >> 32, 4);
    }
    regs_wr(r, R_QUEUE_ENABLE, 1, 2);
    return (u16)regs_rd(r, R_QUEUE_ENABLE, 2);
}
