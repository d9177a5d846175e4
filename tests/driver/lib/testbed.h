/* SPDX-License-Identifier: MIT */
/*
 * The whole stack for one vGPU: GPU, mdev, engine, VMM, guest; built up to the stage that a test
 * needs.
 */
#ifndef TESTBED_H
#define TESTBED_H

#include "driver_test.h"
#include "engine_memory.h"
#include "engine_peer.h"
#include "mdev_host.h"
#include "vfio_vmm.h"
#include "virtio_guest.h"

#define TESTBED_GPU      "soft:" TEST_GPU_PREFIX "0"
#define TESTBED_TYPE     "small"
#define TESTBED_GPU_VRAM (256 * MIB)
#define TESTBED_VRAM     (64 * MIB)
#define TESTBED_WINDOW   (32 * MIB)
#define TESTBED_RAM_SIZE (16 * MIB)
#define TESTBED_RAM_IOVA 0x40000000ull
#define PAGE_BYTES       4096ull

typedef enum {
    TESTBED_AT_GPU,    /* the GPU is registered */
    TESTBED_AT_VGPU,   /* the mdev exists */
    TESTBED_AT_ENGINE, /* an engine is attached and ready */
    TESTBED_AT_OPEN,   /* a VMM has it open, guest RAM is mapped */
    TESTBED_AT_GUEST,  /* the guest's driver is up */
} TestbedStage;

typedef struct {
    char *gpu;
    char *uuid;
    TestbedStage stage;
    EnginePeer *engine;
    VmmContainer container;
    VmmRam ram;
    VmmDevice dev;
    Guest guest;
    int request_fd;
    volatile uint8_t *window;
} Testbed;

/* On TESTBED_GPU with one type. Asserts; never NULL. */
Testbed *testbed_new(TestbedStage stage);
/* A further vGPU on a registered GPU, from TESTBED_AT_VGPU on. */
Testbed *testbed_new_on(const char *gpu, const char *type, TestbedStage stage);
/* Advances to a later stage. */
void testbed_advance(Testbed *tb, TestbedStage stage);
/* Closes the VMM's files; the vGPU and its engine stay. */
void testbed_close_vmm(Testbed *tb);
/* Takes everything down in order and checks each result. */
void testbed_free(Testbed *tb);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(Testbed, testbed_free)

/* The window, mapped by the VMM as a whole; mapped at the first call. */
volatile uint8_t *testbed_window(Testbed *tb);
/* One page of the window against the pattern of @page, or against a blank one. */
void assert_window_pattern(Testbed *tb, uint64_t offset, uint64_t page);
void assert_window_blank(Testbed *tb, uint64_t offset);
bool window_is_blank(Testbed *tb, uint64_t offset);

/* A control request and its answer, which the engine echoes, checked. */
void assert_round_trip(Testbed *tb, uint64_t fence_id);
/* A request whose answer must be ERR_UNSPEC with its fence. */
void assert_answered_with_error(Testbed *tb, uint64_t fence_id);

#endif /* TESTBED_H */
