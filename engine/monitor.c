// SPDX-License-Identifier: MIT
#include "monitor.h"

#include <glib.h>
#include <string.h>

/* Offsets in the first block of an EDID 1.4. */
enum {
    VENDOR = 8,
    VERSION = 18,
    INPUT = 20,
    SIZE_CM = 21,
    GAMMA = 23,
    FEATURES = 24,
    CHROMATICITY = 25,
    ESTABLISHED = 35,
    STANDARD = 38,
    DETAILED = 54, /* four descriptors of 18 bytes; the first is the preferred mode */
    CHECKSUM = 127,
};

#define DESCRIPTOR 18
#define RATE       60u /* Hz */
#define DPI        96u

/* Blanking as in CVT for flat panels. */
#define H_FRONT 48u
#define H_SYNC  32u
#define H_BLANK 160u
#define V_FRONT 3u
#define V_SYNC  6u

enum { ASPECT_16_10, ASPECT_4_3, ASPECT_5_4, ASPECT_16_9 };

static const struct {
    uint16_t width;
    uint8_t aspect;
} standard_modes[] = {
    {1280, ASPECT_16_9}, {1280, ASPECT_16_10}, {1280, ASPECT_5_4},  {1440, ASPECT_16_10},
    {1600, ASPECT_4_3},  {1680, ASPECT_16_10}, {1920, ASPECT_16_9}, {1920, ASPECT_16_10},
};

static uint32_t pixels_to_mm(uint32_t pixels)
{
    return pixels * 254 / (DPI * 10);
}

static void put_detailed(uint8_t *at, uint32_t width, uint32_t height)
{
    uint32_t v_blank = MAX(height / 32, V_FRONT + V_SYNC + 6);
    uint32_t clock = (width + H_BLANK) * (height + v_blank) * RATE / 10000; /* 10 kHz */
    uint32_t mm_wide = pixels_to_mm(width), mm_high = pixels_to_mm(height);

    clock = MIN(clock, 65535);
    at[0] = clock & 0xff;
    at[1] = clock >> 8;
    at[2] = width & 0xff;
    at[3] = H_BLANK & 0xff;
    at[4] = (uint8_t)((width >> 8) << 4 | H_BLANK >> 8);
    at[5] = height & 0xff;
    at[6] = v_blank & 0xff;
    at[7] = (uint8_t)((height >> 8) << 4 | v_blank >> 8);
    at[8] = H_FRONT;
    at[9] = H_SYNC;
    at[10] = V_FRONT << 4 | V_SYNC;
    at[12] = mm_wide & 0xff;
    at[13] = mm_high & 0xff;
    at[14] = (uint8_t)((mm_wide >> 8) << 4 | mm_high >> 8);
    at[17] = 0x18; /* digital, separate sync */
}

/* Descriptors that are not modes: a type, and its content. */
static void put_descriptor(uint8_t *at, uint8_t type, const void *data, size_t size)
{
    at[3] = type;
    memcpy(at + 5, data, size);
}

static void put_standard(uint8_t *at)
{
    for (size_t i = 0; i < G_N_ELEMENTS(standard_modes); i++) {
        at[2 * i] = (uint8_t)(standard_modes[i].width / 8 - 31);
        at[2 * i + 1] = (uint8_t)(standard_modes[i].aspect << 6 | (RATE - 60));
    }
}

void monitor_edid(uint8_t edid[MONITOR_EDID_SIZE], uint32_t width, uint32_t height)
{
    static const uint8_t header[] = {0x00, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x00};
    static const uint8_t vendor[] = {0x58, 0xf5}; /* "VGU", five bits a letter */
    /* 1024x768, 800x600 and 640x480 at 60 Hz */
    static const uint8_t established[] = {0x21, 0x08, 0x00};
    /* sRGB's, in the usual values */
    static const uint8_t chromaticity[] = {0xee, 0x91, 0xa3, 0x54, 0x4c,
                                           0x99, 0x26, 0x0f, 0x50, 0x54};
    /* 50 to 125 Hz, 30 to 160 kHz, 600 MHz at most */
    static const uint8_t range[] = {50, 125, 30, 160, 60, 0x01, 0x0a, ' ', ' ', ' ', ' ', ' ', ' '};
    uint8_t sum = 0;

    memset(edid, 0, MONITOR_EDID_SIZE);
    memcpy(edid, header, sizeof(header));
    memcpy(edid + VENDOR, vendor, sizeof(vendor));
    edid[VENDOR + 9] = 2026 - 1990;
    edid[VERSION] = 1;
    edid[VERSION + 1] = 4;
    edid[INPUT] = 0xa5; /* digital, 8 bits a colour, DisplayPort */
    edid[SIZE_CM] = (uint8_t)MIN(pixels_to_mm(width) / 10, 255);
    edid[SIZE_CM + 1] = (uint8_t)MIN(pixels_to_mm(height) / 10, 255);
    edid[GAMMA] = 220 - 100;
    edid[FEATURES] = 0x06; /* sRGB; the first detailed mode is the native one */
    memcpy(edid + CHROMATICITY, chromaticity, sizeof(chromaticity));
    memcpy(edid + ESTABLISHED, established, sizeof(established));
    put_standard(edid + STANDARD);
    put_detailed(edid + DETAILED, width, height);
    put_descriptor(edid + DETAILED + DESCRIPTOR, 0xfd, range, sizeof(range));
    put_descriptor(edid + DETAILED + 2 * DESCRIPTOR, 0xfc, "vGPU display\n", 13);
    put_descriptor(edid + DETAILED + 3 * DESCRIPTOR, 0x10, "", 0); /* nothing */

    for (size_t i = 0; i < CHECKSUM; i++)
        sum = (uint8_t)(sum + edid[i]);
    edid[CHECKSUM] = (uint8_t)(0x100 - sum);
}

void monitor_preferred(const uint8_t *edid, size_t size, uint32_t *width, uint32_t *height)
{
    const uint8_t *at = edid + DETAILED;
    uint32_t wide = 0, high = 0;

    if (size >= MONITOR_EDID_SIZE && (at[0] || at[1])) {
        wide = at[2] | (at[4] & 0xf0u) << 4;
        high = at[5] | (at[7] & 0xf0u) << 4;
    }
    if (!wide || !high) {
        wide = MONITOR_WIDTH;
        high = MONITOR_HEIGHT;
    }
    *width = MIN(*width, wide);
    *height = MIN(*height, high);
}
