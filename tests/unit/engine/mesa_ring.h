/* SPDX-License-Identifier: MIT */
/* A ring as Mesa 25.0 makes it, from a recording. */
#ifndef MESA_RING_H
#define MESA_RING_H

#include <stdint.h>

#define MESA_RING_ID       0x55a12c03ff80u
#define MESA_RING_RESOURCE 1u
#define MESA_RING_SIZE     0x21000u /* of its resource */

/* The dwords of its status, tail and head. */
enum { MESA_RING_HEAD = 0x0 / 4, MESA_RING_TAIL = 0x40 / 4, MESA_RING_STATUS = 0x80 / 4 };
#define MESA_RING_CONTROL_WORDS (MESA_RING_STATUS + 1)

static const uint32_t mesa_create_ring[] = {
    188,        0,
    0x2c03ff80, 0x55a1,
    1,          0, /* a description, that is: */
    1000384000, 1,
    0, /* with a chain, that is: */
    1000384006, 0,
    0,          3000000, /* a monitor */
    0,          MESA_RING_RESOURCE,
    0,          0,
    0x200c4,    0,
    1000000,    0, /* idle for this many ns */
    0,          0,
    0x40,       0,
    0x80,       0, /* head, tail, status */
    0xc0,       0,
    0x20000,    0,
    0x200c0,    0,
    4,          0,
};

/* Which of its dwords is the time. */
#define MESA_RING_IDLE_TIMEOUT 19

static const uint32_t mesa_destroy_ring[] = {189, 0, 0x2c03ff80, 0x55a1};

static const uint32_t mesa_notify_ring[] = {190, 0, 0x2c03ff80, 0x55a1, 0, 0};

#endif /* MESA_RING_H */
