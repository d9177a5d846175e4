/* SPDX-License-Identifier: (GPL-2.0 WITH Linux-syscall-note) OR MIT */
/*
 * The interface of mdev_vgpu.ko to the two programs that it works with:
 *
 *   /dev/vgpu-control	registers GPUs (vgpu-registrar, vgpud); root only
 *   /dev/vgpu/<uuid>	the engine of one vGPU, one open file at a time
 *
 * The VM's side of a vGPU is VFIO's own interface and is not described here.
 *
 * Rules for every structure:
 *   - argsz is set by the caller to sizeof() of the structure that it was built with.
 *     The driver reads and writes no more than that; less than the first version is EINVAL.
 *   - flags and reserved fields that are not named here must be zero (EINVAL), so that they can get
 *     a meaning later.
 *   - sizes and offsets are bytes, in the host's byte order; pointers are carried in __u64.
 *   - every ioctl returns 0 or -1 with errno. EFAULT (bad pointer) and EINVAL (bad argument) are
 *     possible everywhere and not repeated below.
 */
#ifndef _UAPI_LINUX_VGPU_H
#define _UAPI_LINUX_VGPU_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define VGPU_API_VERSION	2
#define VGPU_IOC_MAGIC		0xb7

#define VGPU_GPU_NAME_LEN	64
#define VGPU_TYPE_NAME_LEN	32
#define VGPU_TYPE_DESC_LEN	128
#define VGPU_UUID_LEN		16
#define VGPU_MDEV_TYPE_LEN	96
#define VGPU_REASON_LEN		128

#define VGPU_MAX_TYPES		32
#define VGPU_MAX_SCANOUTS	1

/*
 * ---- /dev/vgpu-control ----------------------------------------------------------------------
 */

/**
 * struct vgpu_type_desc - one mdev type of a GPU
 * @name: [a-z0-9][a-z0-9_.-]*, NUL terminated; mdev prefixes it with the vendor driver's name
 * @description: free text of one line, shown in the type's "description" attribute
 * @vram_bytes: device memory promised to a vGPU of this type; > 0
 * @window_bytes: size of the host-visible window BAR; a power of two, 1 MiB to 64 GiB
 * @weight: share of GPU time under contention, 1 to 10000
 * @cap: maximum of GPU time, in per cent of the GPU, 1 to 100
 * @priority: 0 (lowest) to 15
 * @max_instances: maximum of vGPUs of this type on the GPU; 0: as many as the VRAM holds
 * @scanouts: displays, 0 or 1
 * @cuda: 1: engines of its vGPUs offer CUDA to the guest
 */
struct vgpu_type_desc {
	char name[VGPU_TYPE_NAME_LEN];
	char description[VGPU_TYPE_DESC_LEN];
	__u64 vram_bytes;
	__u64 window_bytes;
	__u32 weight;
	__u32 cap;
	__u32 priority;
	__u32 max_instances;
	__u32 scanouts;
	__u32 cuda;
	__u32 reserved[6];
};

/**
 * struct vgpu_control_gpu - argument of VGPU_CONTROL_ADD_GPU and VGPU_CONTROL_SET_TYPES
 * @gpu: PCI address ("0000:01:00.0"), or "soft:<name>" for a GPU without a PCI device, which
 *	gets a virtual parent
 * @vram_bytes: device memory that may be promised to all vGPUs together; > 0
 * @ntypes: elements of @types, 1 to VGPU_MAX_TYPES
 * @type_size: sizeof(struct vgpu_type_desc) of the caller
 * @types: user pointer to the array; names are unique in it
 */
struct vgpu_control_gpu {
	__u32 argsz;
	__u32 flags;
	char gpu[VGPU_GPU_NAME_LEN];
	__u64 vram_bytes;
	__u32 ntypes;
	__u32 type_size;
	__u64 types;
	__u64 reserved[4];
};

/**
 * struct vgpu_control_remove - argument of VGPU_CONTROL_REMOVE_GPU
 */
struct vgpu_control_remove {
	__u32 argsz;
	__u32 flags;
	char gpu[VGPU_GPU_NAME_LEN];
};

/* struct vgpu_control_drain.flags */
#define VGPU_DRAIN_ON		(1u << 0)	/* else: as before */

/**
 * struct vgpu_control_drain - argument of VGPU_CONTROL_DRAIN_GPU
 */
struct vgpu_control_drain {
	__u32 argsz;
	__u32 flags;
	char gpu[VGPU_GPU_NAME_LEN];
};

/* How long an announcement counts, and how many of a GPU do. */
#define VGPU_ANNOUNCE_SECONDS	60
#define VGPU_ANNOUNCE_MAX	64

/**
 * struct vgpu_control_announce - argument of VGPU_CONTROL_ANNOUNCE
 * @type: as the GPU's directory mdev_supported_types names it
 * @uuid: of the vGPU, in the order of its text
 * @vram_bytes: device memory that it will be promised; 0: it will not be made
 */
struct vgpu_control_announce {
	__u32 argsz;
	__u32 flags;
	char gpu[VGPU_GPU_NAME_LEN];
	char type[VGPU_MDEV_TYPE_LEN];
	__u8 uuid[VGPU_UUID_LEN];
	__u64 vram_bytes;
	__u64 reserved[3];
};

/*
 * Makes the GPU an mdev parent. Its own driver stays bound. EEXIST: registered already. EBUSY: an
 * mdev parent already by another driver (GVT-g, NVIDIA vGPU). EAGAIN: it was unbound and bound
 * again, and a VM still holds a vGPU of its previous registration. ENODEV: no such PCI device.
 * ENXIO: the device has no driver bound, so nothing can run on it. ENOTTY: not a display
 * controller.
 */
#define VGPU_CONTROL_ADD_GPU	_IOW(VGPU_IOC_MAGIC, 0x00, struct vgpu_control_gpu)
/*
 * The reverse. EBUSY: the GPU has vGPUs; nothing was changed. ENODEV: not registered.
 */
#define VGPU_CONTROL_REMOVE_GPU	_IOW(VGPU_IOC_MAGIC, 0x01, struct vgpu_control_remove)
/*
 * Changes VRAM and parameters of a registered GPU's types. If the names are the same (in any order)
 * this is done in place and running vGPUs are unchanged. Otherwise the GPU must have no vGPU
 * (EBUSY) and is registered again. ENOSPC: existing vGPUs were promised more than the new VRAM.
 */
#define VGPU_CONTROL_SET_TYPES	_IOW(VGPU_IOC_MAGIC, 0x02, struct vgpu_control_gpu)
/*
 * While a GPU is drained no vGPU can be made on it (EBUSY; available_instances is 0) and no VM can
 * open one of its vGPUs (EBUSY); VMs that have one open keep it. After the return, a vGPU whose
 * state shows no VM stays closed. Draining twice is no error. The drain ends with the registration;
 * SET_TYPES keeps it. ENODEV: not registered.
 */
#define VGPU_CONTROL_DRAIN_GPU	_IOW(VGPU_IOC_MAGIC, 0x03, struct vgpu_control_drain)
/*
 * A vGPU is about to be made with other memory than its type's: it is admitted with that, so it
 * fits where it would not with its type's, and available_instances of its type is not 0 until then
 * if it fits. Nothing is reserved. It is forgotten when the vGPU is made or refused, after
 * VGPU_ANNOUNCE_SECONDS, with the GPU's registration, and if VGPU_ANNOUNCE_MAX later ones were
 * announced. ENODEV: the GPU is not registered. ENOENT: it has no such type. ENOSPC: it never has
 * that much.
 */
#define VGPU_CONTROL_ANNOUNCE	_IOW(VGPU_IOC_MAGIC, 0x04, struct vgpu_control_announce)

/*
 * ---- /dev/vgpu/<uuid> -----------------------------------------------------------------------
 *
 * The order of calls: open, ATTACH, READY, then a loop of QUEUE_EXCHANGE. Closing the file, or the end of the address space that attached, is the engine's end:
 * the driver then answers chains in flight with errors until the guest resets the device.
 *
 * Epoch. The guest's reset of the device starts a new epoch. Calls that act for the guest carry the
 * epoch they belong to and fail with ESTALE (QUEUE_EXCHANGE: say so) when it is over, so that nothing of the old life of the
 * device can reach the new one.
 */

enum vgpu_queue_id {
	VGPU_QUEUE_CONTROL = 0,
	VGPU_QUEUE_CURSOR = 1,
	VGPU_NUM_QUEUES = 2,
};

/* struct vgpu_engine_info.state */
#define VGPU_STATE_OPEN		(1u << 0)	/* a VMM has the device open */
#define VGPU_STATE_DRIVER_OK	(1u << 1)	/* the guest's driver is up, queues may be looked at */
#define VGPU_STATE_LOST		(1u << 2)	/* an engine died in this epoch: wait for a reset */
#define VGPU_STATE_REMOVED	(1u << 3)	/* the GPU or the mdev is going away: exit */

/* struct vgpu_engine_info.features */
#define VGPU_FEATURE_STATE	(1u << 0)	/* VMs can be saved: @renderer of READY, STATE_SAVE, STATE_LOAD */
#define VGPU_FEATURE_EXPORT	(1u << 1)	/* MEM_EXPORT */

/**
 * struct vgpu_engine_info - argument of VGPU_ENGINE_INFO, filled by the driver
 * @api_version: VGPU_API_VERSION of the driver
 * @state: VGPU_STATE_*
 * @epoch: the device's present epoch
 * @uuid: the mdev's UUID, big endian, in RFC 9562's order
 * @gpu: from VGPU_CONTROL_ADD_GPU: PCI address or "soft:<name>"
 * @type: the type's name, without the vendor driver's prefix
 * @vram_bytes, @window_bytes, @weight, @cap, @priority, @num_scanouts: the vGPU's parameters:
 *	its type's, changed by its sysfs attributes. window_bytes and num_scanouts do not change
 *	while a VMM has the device open
 * @cuda: of the type that the vGPU was made of. It does not change
 * @queue_size: maximum of entries of each virtqueue; as many chains can be in flight
 * @features: VGPU_FEATURE_*, what this driver has and earlier ones of its version had not
 */
struct vgpu_engine_info {
	__u32 argsz;
	__u32 flags;
	__u32 api_version;
	__u32 state;
	__u64 epoch;
	__u8 uuid[VGPU_UUID_LEN];
	char gpu[VGPU_GPU_NAME_LEN];
	char type[VGPU_TYPE_NAME_LEN];
	__u64 vram_bytes;
	__u64 window_bytes;
	__u32 weight;
	__u32 cap;
	__u32 priority;
	__u32 num_scanouts;
	__u32 num_queues;
	__u32 queue_size;
	__u64 features;
	__u32 cuda;
	__u32 reserved0;
	__u64 reserved[6];
};

/* Fills in struct vgpu_engine_info; allowed before ATTACH. */
#define VGPU_ENGINE_INFO	_IOWR(VGPU_IOC_MAGIC, 0x10, struct vgpu_engine_info)

/*
 * Makes the calling process the engine: from now on ioctls and mmap from another address space (a
 * forked child) fail with EPERM. Once for each open file: a lost engine must open the node again.
 * EBUSY: attached already, or this file was. ENODEV: the vGPU is going away.
 */
#define VGPU_ENGINE_ATTACH	_IO(VGPU_IOC_MAGIC, 0x11)

/**
 * struct vgpu_engine_ready - argument of VGPU_ENGINE_READY
 * @num_capsets: virtio_gpu_config.num_capsets, 1 to 63; the guest may call GET_CAPSET_INFO for this
 * many
 * @renderer: a hash of what the guest keeps of the renderer, all of its capsets: a saved vGPU
 * goes on only where it is the same. 0: the engine cannot be saved, or the driver lacks
 * VGPU_FEATURE_STATE
 */
struct vgpu_engine_ready {
	__u32 argsz;
	__u32 flags;
	__u32 num_capsets;
	__u32 reserved0;
	__u64 renderer;
	__u32 reserved[2];
};

/* A VMM's open waits (bounded) for this. Needs ATTACH. Once per attach: EALREADY. */
#define VGPU_ENGINE_READY	_IOW(VGPU_IOC_MAGIC, 0x12, struct vgpu_engine_ready)

/* struct vgpu_engine_event.events */
#define VGPU_EVENT_KICK		(1u << 0)	/* there may be new requests in @queues */
#define VGPU_EVENT_RESET	(1u << 1)	/* release everything, then RESET_DONE(@epoch) */
#define VGPU_EVENT_CONFIG	(1u << 2)	/* parameters changed: call INFO */
#define VGPU_EVENT_REMOVED	(1u << 3)	/* the vGPU goes away: exit */
#define VGPU_EVENT_SAVE		(1u << 4)	/* the VM is stopped and is to be saved: STATE_SAVE */
#define VGPU_EVENT_LOAD		(1u << 5)	/* the VM was saved elsewhere: STATE_LOAD before it gets any request */

/**
 * struct vgpu_engine_event - returned by read() on the engine's file
 * @events: VGPU_EVENT_*, never 0; reading clears the returned ones
 * @queues: bit per queue with VGPU_EVENT_KICK
 * @epoch: the epoch the events belong to; with VGPU_EVENT_RESET the one that ends
 *
 * read() of less than sizeof is EINVAL; it blocks unless O_NONBLOCK (EAGAIN); poll() gives POLLIN
 * while an event is pending and POLLHUP when the vGPU is gone. Needs ATTACH.
 */
struct vgpu_engine_event {
	__u32 events;
	__u32 queues;
	__u64 epoch;
};

/**
 * struct vgpu_engine_epoch - argument of VGPU_ENGINE_RESET_DONE
 */
struct vgpu_engine_epoch {
	__u32 argsz;
	__u32 flags;
	__u64 epoch;
};

/*
 * Answers VGPU_EVENT_RESET: no context, resource or fence of that epoch is left in the engine. The
 * guest's reset is done, and the device status 0, when this is called (after 10 s at most; then the
 * engine counts as lost and its calls fail with ENOTCONN). If the engine ends instead, the reset waits
 * for the next one. The driver itself has removed the window's content and unpinned all guest memory
 * of the epoch.
 *
 * When the VMM closes the device, an engine that has served its VM gets the event again, with a
 * state without VGPU_STATE_OPEN. It is to exit instead of answering: the next VM may be another
 * customer's, and opening the device waits for the next engine. An answer is the end of this one, too,
 * and fails with ENOTCONN.
 */
#define VGPU_ENGINE_RESET_DONE	_IOW(VGPU_IOC_MAGIC, 0x13, struct vgpu_engine_epoch)

/* The most answers, and the most requests, of one exchange. */
#define VGPU_EXCHANGE_MAX	16
/* The longest time that an exchange looks for requests, in microseconds. */
#define VGPU_EXCHANGE_POLL_MAX	1000
/* The most bytes of a call's answers, and of a request; what is longer is cut. */
#define VGPU_REQUEST_MAX	(16u << 20)

/**
 * struct vgpu_queue_answer - one of struct vgpu_queue_exchange.answers
 * @queue, @token: in, the chain; in any order, and from any thread of the engine
 * @buf, @size: in, the response
 * @result: out, 0 or a negative errno. ENOENT: no such chain in flight, or not any more, because the
 *	guest has disabled bus mastering. EMSGSIZE: more than the device-writable part holds. ENOMEM.
 *	ESTALE: epoch over. EPROTO: the guest broke the queue. A chain whose writable part is no longer
 *	accessible is used with length 0
 */
struct vgpu_queue_answer {
	__u32 queue;
	__u32 token;
	__u64 buf;
	__u32 size;
	__s32 result;
};

/**
 * struct vgpu_queue_request - one of struct vgpu_queue_exchange.requests, filled by the driver
 * @queue: enum vgpu_queue_id
 * @token: names the chain until it is answered
 * @offset: where in @buf its device-readable part begins
 * @request_size: of that; more than the buffer holds only with VGPU_EXCHANGE_TRUNCATE
 * @response_size: of the device-writable part
 */
struct vgpu_queue_request {
	__u32 queue;
	__u32 token;
	__u64 offset;
	__u64 request_size;
	__u64 response_size;
};

/* struct vgpu_queue_exchange.flags */
#define VGPU_EXCHANGE_TRUNCATE	(1u << 0)	/* a request larger than the buffer is cut, not left */
#define VGPU_EXCHANGE_EVENTS	(1u << 1)	/* returns what read() would, and looks at kicked queues */
#define VGPU_EXCHANGE_CONNECTED	(1u << 2)	/* if @wait_fd has hung up, nothing is done: EPIPE */

/* struct vgpu_queue_exchange.state */
#define VGPU_EXCHANGE_STALE	(1u << 0)	/* the epoch is over */
#define VGPU_EXCHANGE_BROKEN	(1u << 1)	/* a guest broke a queue: a loop, an address outside its memory … */
#define VGPU_EXCHANGE_WOKEN	(1u << 2)	/* the call has waited, and @wait_fd has something */

/* struct vgpu_queue_exchange.wait_ms: without a limit */
#define VGPU_EXCHANGE_FOREVER	0xffffffffu

/**
 * struct vgpu_queue_exchange - argument of VGPU_ENGINE_QUEUE_EXCHANGE
 * @epoch: in
 * @answers, @nanswers: in, struct vgpu_queue_answer, VGPU_EXCHANGE_MAX at most
 * @requests: in, room for struct vgpu_queue_request
 * @nrequests: in, how many there is room for, VGPU_EXCHANGE_MAX at most; out, how many there are
 * @buf, @buf_size: in, where the requests are copied to, one after the other
 * @queues: in, a bit for each queue to take requests from; out, those that may have more. For each
 *	other the next request gives VGPU_EVENT_KICK
 * @poll_us: in, while no queue has a request, and no event comes, look again for this long. The
 *	guest need not ring meanwhile. VGPU_EXCHANGE_POLL_MAX at most
 * @wait_ms: in, then sleep until an event comes, for this long at most; a signal ends that, too. Needs
 *	VGPU_EXCHANGE_EVENTS and room for a request. 0: the call does not sleep
 * @wait_fd: in, with @wait_ms: another file that ends the sleep when poll() would call it readable; -1: none.
 *	With VGPU_EXCHANGE_CONNECTED: a connection, without which the answers would not be true
 * @state: out, VGPU_EXCHANGE_*
 * @wanted: out, the size of a request that did not fit into what was left of the buffer; it stays; or 0
 * @event: out, as of read(); no @events: there is none
 */
struct vgpu_queue_exchange {
	__u32 argsz;
	__u32 flags;
	__u64 epoch;
	__u64 answers;
	__u64 requests;
	__u64 buf;
	__u64 buf_size;
	__u32 nanswers;
	__u32 nrequests;
	__u32 queues;
	__u32 poll_us;
	__u32 wait_ms;
	__s32 wait_fd;
	__u32 state;
	__u32 reserved;
	__u64 wanted;
	struct vgpu_engine_event event;
};

/*
 * Answers chains: writes each response, puts the chain on the used ring and interrupts the guest if
 * it asked for that. Then takes chains, and copies their requests, so that the guest cannot change
 * them any more. Does not block, except for @poll_us and @wait_ms: the answers are given before. One
 * thread at a time takes requests. After an error nothing was taken, and what cannot be copied out is
 * answered with an error.
 *
 * A queue that the guest broke gives nothing until the guest resets the device, and asks for that.
 */
#define VGPU_ENGINE_QUEUE_EXCHANGE	_IOWR(VGPU_IOC_MAGIC, 0x1b, struct vgpu_queue_exchange)

/**
 * struct vgpu_mem_entry - a range of guest memory, in the guest's addresses
 * @iova: page aligned
 * @size: a multiple of the page size
 */
struct vgpu_mem_entry {
	__u64 iova;
	__u64 size;
};

/* struct vgpu_mem_pin.flags */
#define VGPU_MEM_WRITE		(1u << 0)

/**
 * struct vgpu_mem_pin - argument of VGPU_ENGINE_MEM_PIN
 * @entries, @nentries: in, ranges, to be mapped one after the other
 * @size: out, their sum
 * @offset: out, where to mmap() the engine's file, MAP_SHARED, for @size bytes; also the name
 *	for MEM_UNPIN
 *
 * Pins guest pages; they count against the VMM's locked memory. A range that the VM unmaps later is
 * taken away at once: the engine then sees a private page of 0xff there, never a signal.
 */
struct vgpu_mem_pin {
	__u32 argsz;
	__u32 flags;
	__u64 epoch;
	__u64 entries;
	__u32 nentries;
	__u32 reserved;
	__u64 size;
	__u64 offset;
};

/*
 * ENOMEM: the VMM's limit of locked memory, or the vGPU's limit of pinned memory (its VRAM).
 * EFAULT: a range is not in the VM's IOMMU mappings, or not writable if that was requested, or the
 * guest has disabled bus mastering. Disabling it also takes away pinned pages. ESTALE: epoch over,
 * perhaps while it was pinned; or the guest's driver is not up yet.
 */
#define VGPU_ENGINE_MEM_PIN	_IOWR(VGPU_IOC_MAGIC, 0x16, struct vgpu_mem_pin)

/**
 * struct vgpu_mem_unpin - argument of VGPU_ENGINE_MEM_UNPIN
 * @offset: from MEM_PIN. Existing mappings of it show 0xff pages from then on. ENOENT: no such pin.
 */
struct vgpu_mem_unpin {
	__u32 argsz;
	__u32 flags;
	__u64 epoch;
	__u64 offset;
};

#define VGPU_ENGINE_MEM_UNPIN	_IOW(VGPU_IOC_MAGIC, 0x17, struct vgpu_mem_unpin)

/**
 * struct vgpu_mem_export - argument of VGPU_ENGINE_MEM_EXPORT
 * @offset: in, from MEM_PIN with VGPU_MEM_WRITE
 * @fd: out, a file of that memory, close-on-exec
 *
 * Any process maps the file, MAP_SHARED, piece by piece: lseek() with SEEK_HOLE returns where the piece ends
 * that has an offset. The mappings are ordinary memory, which other drivers can pin. What the VM takes
 * away, or MEM_UNPIN, is out of them at once, and who touches it gets SIGBUS. What another driver has
 * pinned stays pinned: an engine must see that the memory is not used any more before it unpins it.
 */
struct vgpu_mem_export {
	__u32 argsz;
	__u32 flags;
	__u64 epoch;
	__u64 offset;
	__s32 fd;
	__u32 reserved;
};

/*
 * With VGPU_FEATURE_EXPORT. EOPNOTSUPP: the vGPU's type has no CUDA; or the VM's memory is not shared memory,
 * or in huge pages, or this is in more than one of its parts. ENOENT: no such pin, or not for writing.
 * ESTALE: epoch over, or the VM has taken a part of it away. EPERM: the VMM has sealed its memory against
 * writing. EBUSY: it was exported before. Of what fails nothing is lent.
 *
 * Memory is lent from this call to MEM_UNPIN, or to the end of a reset, or until the next engine attaches: that
 * is to be started when all processes of this one have ended. A guest that disables bus mastering meanwhile
 * (kexec) has reset the device by that, and goes on when RESET_DONE is called. One that has lost its engine
 * gets no answers meanwhile, for 10 s at most.
 */
#define VGPU_ENGINE_MEM_EXPORT	_IOWR(VGPU_IOC_MAGIC, 0x1c, struct vgpu_mem_export)

/*
 * Every 8 bytes of the window where nothing is published, little endian. Guests' Vulkan drivers
 * poll feedback slots in the window: a status of 32 bits, where 0 is VK_SUCCESS and 1 VK_NOT_READY,
 * or a counter of 64 bits, which must not be large, because a large one means that all work is
 * done.
 */
#define VGPU_WINDOW_BLANK	1ull

/**
 * struct vgpu_window_range - argument of VGPU_ENGINE_WINDOW_PUBLISH and _UNPUBLISH
 * @offset: in the window BAR, page aligned
 * @size: a multiple of the page size, > 0, within the window
 * @addr: PUBLISH: address in the engine, page aligned; UNPUBLISH: 0
 *
 * Everything in [addr, addr + size) must be one shared, writable mapping of a memfd, a dma-buf or a
 * DRM device, and stay mapped until UNPUBLISH; parts that are unmapped earlier show as
 * VGPU_WINDOW_BLANK.
 */
struct vgpu_window_range {
	__u32 argsz;
	__u32 flags;
	__u64 epoch;
	__u64 offset;
	__u64 size;
	__u64 addr;
};

/*
 * EEXIST: overlaps a published range. EACCES: memory of a kind that may not be shown to a guest.
 * ENOSPC: too many ranges. ESTALE: epoch over.
 */
#define VGPU_ENGINE_WINDOW_PUBLISH	_IOW(VGPU_IOC_MAGIC, 0x18, struct vgpu_window_range)
/*
 * Removes one published range, which must match exactly. On return the guest cannot access it.
 * ENOENT.
 */
#define VGPU_ENGINE_WINDOW_UNPUBLISH	_IOW(VGPU_IOC_MAGIC, 0x19, struct vgpu_window_range)

/**
 * struct vgpu_engine_fail - argument of VGPU_ENGINE_FAIL
 * @reason: one line of printable ASCII, NUL terminated; goes to the kernel log and to the vGPU's
 *	"failure" attribute
 */
struct vgpu_engine_fail {
	__u32 argsz;
	__u32 flags;
	char reason[VGPU_REASON_LEN];
};

/* Gives up: as if the engine had died, with a reason. A VMM waiting in open gets EIO at once. */
#define VGPU_ENGINE_FAIL	_IOW(VGPU_IOC_MAGIC, 0x1a, struct vgpu_engine_fail)

/*
 * The picture of a vGPU with a display: shared memory of the driver that the engine writes and the
 * VMM reads, as VFIO's plane of type region. Every VMM that opens the vGPU gets a new one, blank.
 * It is mapped with mmap() of the engine's file, MAP_SHARED, at this offset, for this size at most,
 * while a VMM has the vGPU open (else ENODEV). Its size never changes, so every picture of
 * SET_SCANOUT lies within.
 */
#define VGPU_PICTURE_OFFSET	(1ull << 43)
#define VGPU_PICTURE_SIZE	(1ull << 25)
#define VGPU_PICTURE_MAX_WIDTH	3840
#define VGPU_PICTURE_MAX_HEIGHT	2160

/* struct vgpu_display.state */
#define VGPU_DISPLAY_CONNECTED	(1u << 0)	/* the VMM has not turned the monitor off */

#define VGPU_EDID_MAX_SIZE	1024

/**
 * struct vgpu_display - argument of VGPU_ENGINE_DISPLAY, filled by the driver
 * @state: VGPU_DISPLAY_*
 * @edid_size: bytes of @edid; 0: the VMM gave none, and the engine generates one
 * @max_width, @max_height: the largest picture
 */
struct vgpu_display {
	__u32 argsz;
	__u32 flags;
	__u32 state;
	__u32 edid_size;
	__u32 max_width;
	__u32 max_height;
	__u64 reserved[4];
	__u8 edid[VGPU_EDID_MAX_SIZE];
};

/*
 * The VMM's present settings of the monitor. It changes them by VFIO's EDID region; the guest then
 * gets the event VIRTIO_GPU_EVENT_DISPLAY and asks the engine. ENODEV: the vGPU has no display.
 */
#define VGPU_ENGINE_DISPLAY	_IOWR(VGPU_IOC_MAGIC, 0x20, struct vgpu_display)

/**
 * struct vgpu_scanout - argument of VGPU_ENGINE_SET_SCANOUT
 * @epoch: in
 * @width, @height: pixels, 1 to VGPU_PICTURE_MAX_*; both 0: there is no picture, and the VMM
 *	shows the firmware's (ramfb)
 * @stride: bytes from a row to the next: 4 * @width; 0 without a picture
 * @drm_format: DRM_FORMAT_XRGB8888; 0 without a picture
 *
 * The picture begins at the first byte of the shared memory. VMMs read it some 30 times a second,
 * so they are not notified of a change, and a change of the size may be seen half done.
 */
struct vgpu_scanout {
	__u32 argsz;
	__u32 flags;
	__u64 epoch;
	__u32 width;
	__u32 height;
	__u32 stride;
	__u32 drm_format;
	__u64 reserved[4];
};

/* Lasts until the next one, or the guest's reset. ENODEV: no display. ESTALE: epoch over. */
#define VGPU_ENGINE_SET_SCANOUT	_IOW(VGPU_IOC_MAGIC, 0x21, struct vgpu_scanout)

/*
 * ---- A VM that is saved or migrated ---------------------------------------------------------
 *
 * While a VM is stopped, QUEUE_EXCHANGE gives no request, and an answer reaches the guest when it
 * goes on. If it is to be saved, the engine gets VGPU_EVENT_SAVE and answers with what another
 * engine needs to go on. The driver does not look into that. Contexts of the GPU need not
 * survive: the guest gets errors for them. The VM may also go on here, as if nothing had been.
 */

#define VGPU_STATE_MAX		(32u << 20)

/**
 * struct vgpu_engine_state - argument of VGPU_ENGINE_STATE_SAVE and _LOAD
 * @buf: in, the state, or room for it
 * @size: in, of @buf, VGPU_STATE_MAX at most; out with LOAD: of the state, also on EMSGSIZE
 */
struct vgpu_engine_state {
	__u32 argsz;
	__u32 flags;
	__u64 epoch;
	__u64 buf;
	__u64 size;
	__u64 reserved[2];
};

/*
 * Answers VGPU_EVENT_SAVE, within 10 s. ESTALE: nobody waits for it any more, or the epoch is
 * over. EMSGSIZE: too much; the VM cannot be saved then.
 */
#define VGPU_ENGINE_STATE_SAVE	_IOW(VGPU_IOC_MAGIC, 0x30, struct vgpu_engine_state)
/*
 * After VGPU_EVENT_LOAD, once: the state, as an engine has saved it somewhere, or somebody else
 * has made it up. An engine that cannot go on with it calls FAIL. EMSGSIZE: @size was too small
 * and is set; ENOENT: there is none (any more).
 */
#define VGPU_ENGINE_STATE_LOAD	_IOWR(VGPU_IOC_MAGIC, 0x31, struct vgpu_engine_state)

/*
 * Kept free: 0x14 and 0x15, which version 1 had; 0x22-0x2f more of scanouts, 0x32-0x3f more of saved state.
 */

#endif /* _UAPI_LINUX_VGPU_H */
