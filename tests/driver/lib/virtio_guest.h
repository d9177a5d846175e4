/* SPDX-License-Identifier: MIT */
/*
 * The guest's virtio-gpu driver, played over a VFIO device: finds the registers by the capabilities
 * as Linux does, negotiates, sets up queues in guest RAM, makes requests.
 *
 * Functions that can fail return 0 or a negative errno. If a test cannot continue after a failure,
 * they assert.
 */
#ifndef VIRTIO_GUEST_H
#define VIRTIO_GUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <linux/virtio_config.h>
#include <linux/virtio_gpu.h>
#include <linux/virtio_pci.h>
#include <linux/virtio_ring.h>

#include "vfio_vmm.h"

#define GUEST_NUM_QUEUES  2
#define GUEST_NUM_VECTORS 3
#define GUEST_QUEUE_SIZE  64

/* How long a test waits for immediate actions of the device or the engine. */
#define GUEST_TIMEOUT_MS 30000
/* Linux waits for a reset without a limit. This is longer than any that a test allows the engine.
 */
#define GUEST_RESET_MS 120000

/* The features that Linux's driver accepts, including EVENT_IDX and INDIRECT_DESC. */
#define GUEST_FEATURES                                                                             \
    (1ull << VIRTIO_F_VERSION_1 | 1ull << VIRTIO_F_ACCESS_PLATFORM |                               \
     1ull << VIRTIO_RING_F_EVENT_IDX | 1ull << VIRTIO_RING_F_INDIRECT_DESC |                       \
     1ull << VIRTIO_GPU_F_VIRGL | 1ull << VIRTIO_GPU_F_RESOURCE_BLOB |                             \
     1ull << VIRTIO_GPU_F_CONTEXT_INIT)

typedef struct {
    uint8_t bar;
    uint64_t offset;
    uint64_t length;
} GuestCap;

typedef struct Guest Guest;

/* A split virtqueue in guest RAM. Descriptors of a chain are freed when it comes back. */
typedef struct {
    Guest *guest;
    unsigned index;
    uint16_t size;
    bool event_idx;
    bool enabled;
    struct vring_desc *desc;
    struct vring_avail *avail;
    struct vring_used *used;
    uint16_t free_head;
    uint16_t num_free;
    uint16_t last_used;
    uint16_t last_kick;
    uint64_t notify_offset;
} GuestQueue;

struct Guest {
    VmmDevice *dev;
    VmmRam *ram;
    size_t ram_used;
    GuestCap common;
    GuestCap notify;
    GuestCap isr;
    GuestCap device;
    GuestCap shm;
    uint8_t shm_id;
    uint32_t notify_multiplier;
    uint64_t features;
    int vector_fd[GUEST_NUM_VECTORS];
    GuestQueue queue[GUEST_NUM_QUEUES];
};

typedef struct {
    uint64_t iova;
    uint32_t len;
} GuestBuf;

/* Finds the capabilities, enables memory and bus mastering, sets one eventfd per vector. */
void guest_probe(Guest *guest, VmmDevice *dev, VmmRam *ram);
void guest_free(Guest *guest);

/* All of a driver's start, from reset to DRIVER_OK. */
void guest_up(Guest *guest, uint64_t features);
/*
 * Until the device reports that it is done. After that the queues must be set up again; the content
 * of RAM stays.
 */
void guest_reset(Guest *guest);

/* Its steps. */
uint8_t guest_status(Guest *guest);
void guest_set_status(Guest *guest, uint8_t status);
uint64_t guest_device_features(Guest *guest);
/* False if the device refuses FEATURES_OK. */
bool guest_negotiate(Guest *guest, uint64_t features);
void guest_queue_setup(Guest *guest, unsigned index, uint16_t size);

uint64_t guest_reg_read(Guest *guest, const GuestCap *cap, uint64_t offset, size_t len);
void guest_reg_write(Guest *guest, const GuestCap *cap, uint64_t offset, uint64_t value,
                     size_t len);

/* Guest memory that is never freed; its address here and, at @iova, for the device. */
void *guest_alloc(Guest *guest, size_t size, size_t align, uint64_t *iova);
void *guest_ptr(Guest *guest, uint64_t iova);
uint64_t guest_iova(Guest *guest, const void *ptr);

/*
 * Makes a chain available without a doorbell; its head, or -ENOSPC. With @indirect in a separate
 * table.
 */
int guest_queue_add(GuestQueue *q, const GuestBuf *out, unsigned nout, const GuestBuf *in,
                    unsigned nin, bool indirect);
/* Puts a head on the available ring unchanged: for chains that a test builds itself. */
void guest_queue_offer(GuestQueue *q, uint16_t head);
/* Rings the doorbell if the device asked for it; whether it did. */
bool guest_queue_kick(GuestQueue *q);
void guest_queue_kick_always(GuestQueue *q);
/* The next used chain: its head, or -EAGAIN. */
int guest_queue_take(GuestQueue *q, uint32_t *len);
/* The same, but waits for it: its head, or -ETIMEDOUT. */
int guest_queue_wait(GuestQueue *q, uint32_t *len, int timeout_ms);
/* Requests an interrupt with the next used chain, or none. */
void guest_queue_want_interrupt(GuestQueue *q, bool wanted);

/*
 * A request with a wait for its end; *resp_len: the written size, from the device. 0 or -ETIMEDOUT.
 */
int guest_request(Guest *guest, unsigned queue, const void *req, size_t req_len, void *resp,
                  size_t resp_size, uint32_t *resp_len);

/* A request without waiting: the head, and the address of the response. */
int guest_submit(Guest *guest, unsigned queue, const void *req, size_t req_len, size_t resp_size,
                 void **resp);

#endif /* VIRTIO_GUEST_H */
