/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Objects of mdev_vgpu.ko and what its files offer each other.
 *
 * Lock order, outer first:
 *
 *	vgpu->migration.lock  >  vgpu->lock
 *	control_lock  >  device_lock(GPU)  >  gpus_lock  >  vgpu->lock  >  vgpu->mem.lock  >  VFIO's and the VMM's locks
 *	vgpu->pop_lock  >  vgpu->lock
 *	mmap_lock (VMM or engine)  >  vgpu->window.table_lock  >  vgpu->map_lock
 *
 * vgpu->lock is not held during anything that an engine or its GPU can delay: copies to and from
 * userspace, an engine's mmap_lock, the removal of a notifier, a large pin. The guest's registers
 * wait for it.
 * vgpu->map_lock is what page faults take. It is held over no allocation that may reclaim, no copy
 * to or from userspace and no pinning. vgpu->lock is never taken under an mmap_lock. No notifier
 * takes vgpu->window.table_lock, so that a page table may be allocated under it.
 * The kernel's locks of the two address spaces nest, too: pins_inode's > window_inode's. Notifiers of
 * an engine that loses a pin take the latter.
 * A VMM can make the driver wait for its memory for ever, under vgpu->lock and mem.lock. So vgpu->lock
 * is taken by nobody whom other tenants wait for: readers of sysfs take vgpu->state_lock, and events to
 * udev vgpu->tell_lock. These two and vgpu->params_lock are leaves.
 *
 * What a vGPU is in the middle of is vgpu->phase, and how far it is on its way out vgpu->exit. What is
 * a boolean beside these can be true in each of their phases (migration.asked; a GPU's draining,
 * registered and gone), or is under another lock (mem.releasing, dirty.on, window.gpu_at_work).
 */
#ifndef VGPU_PRIVATE_H
#define VGPU_PRIVATE_H

#include <linux/cdev.h>
#include <linux/interval_tree.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/llist.h>
#include <linux/mdev.h>
#include <linux/mmu_notifier.h>
#include <linux/mutex.h>
#include <linux/ratelimit.h>
#include <linux/rbtree.h>
#include <linux/vfio.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

#include "compat.h"
#include "model/announced.h"
#include "model/edid.h"
#include "model/migration_data.h"
#include "model/pci_config.h"
#include "model/phase.h"
#include "model/uapi_check.h"
#include "model/virtio_regs.h"
#include "model/virtqueue.h"
#include "uapi/linux/vgpu.h"

#define VGPU_DRIVER_NAME	"mdev_vgpu"

struct vgpu;
struct vgpu_gpu;

/* Parameters of a vGPU: its type's, changed by attributes. Changes take vgpu->params_lock. */
struct vgpu_params {
	u64 vram_bytes;
	u64 window_bytes;
	u32 weight;
	u32 cap;
	u32 priority;
	u32 scanouts;
	u32 cuda;
};

/*
 * struct vgpu_notes - attributes for vgpud; the driver only stores them, because mdevctl's
 * attributes are files here
 * @tenant: empty: not set, like the first class and no @oversubscribe_given
 * @class: index into vgpu_classes[]
 */
struct vgpu_notes {
	char tenant[VGPU_TENANT_LEN];
	int class;
	bool oversubscribe_given;
	u64 oversubscribe_bytes;
};

/*
 * struct vgpu_type - an mdev type
 * @core: must be first reachable by container_of() from mdev's callbacks
 * @desc: its name never changes
 * @count: vGPUs of this type
 */
struct vgpu_type {
	struct mdev_type core;
	struct vgpu_gpu *gpu;
	struct vgpu_type_desc desc;
	u32 count;
};

/*
 * struct vgpu_gpu - a registered physical GPU, the mdev parent
 * @dev: the PCI device, or a virtual device of ours (@soft)
 * @vram_promised: sum over its vGPUs
 * @draining: no vGPU can be made, and no VM can open one, until that ends
 * @owner: the module of its driver, only for comparison, never to be dereferenced
 * @registered: an mdev parent
 * @gone: unbound or unplugged; existing vGPUs were told to go
 * @types, @type_ptrs: must outlive the last reference to any mdev: see gpu.c
 * @dead: nobody uses it any more
 * @unreferenced: since when (in jiffies) no type is referenced any more; 0: not known yet
 */
struct vgpu_gpu {
	struct kref kref;
	struct list_head node;
	struct device *dev;
	char name[VGPU_GPU_NAME_LEN];
	bool soft;
	bool draining;
	bool registered;
	bool gone;
	const struct module *owner;
	u64 vram_bytes;
	u64 vram_promised;
	u32 ntypes;
	struct vgpu_type *types;
	struct mdev_type **type_ptrs;
	struct mdev_parent parent;
	struct list_head vgpus;
	struct vgpu_announcements announced;
	struct work_struct unregister_work;
	struct llist_node dead;
	unsigned long unreferenced;
};

/*
 * A page of guest memory that stays pinned because it is used often. @life: the one in which it was used
 * last.
 */
struct vgpu_cached_page {
	u64 iova;
	u64 life;
	struct page *page;
	u32 used;
	bool writable;
};

#define VGPU_PAGE_CACHE_SIZE	32

/* A ring's three parts have at most a page each, and so lie in two. */
#define VGPU_RING_PARTS		(3 * VGPU_NUM_QUEUES)
#define VGPU_RING_PART_PAGES	2
#define VGPU_RING_PAGES		(VGPU_RING_PARTS * VGPU_RING_PART_PAGES)

struct vgpu_mem_object;
struct vgpu_engine_mm;
struct vgpu_range;

/* Guest memory that the VM is taking away: see guest_unmap.c. */
struct vgpu_unmap {
	struct list_head node;
	struct vgpu *vgpu;
	u64 iova;
	u64 last;
};

/*
 * struct vgpu_dirty - VFIO's log of written memory, see dirty_log.c; under mem.lock
 * @all: a page could not be noted, so that all count as written
 * @pages: their bits, by the page's number
 */
struct vgpu_dirty {
	bool on;
	bool all;
	struct xarray pages;
};

/*
 * struct vgpu_mem - guest memory in use by a vGPU
 * @lock: serialises pinning with dma_unmap
 * @cache: first the pages of the rings, two of each part in @ring; then those of small requests
 * @ring, @ring_known: where the parts begin, a page's address; set while @ring_known
 * @pin_error: why a page that the VM has mapped could not be pinned, since vgpu_mem_begin(); or 0
 * @life: counts the times at which everything was released, from 1
 * @objects: results of MEM_PIN, by offset; changes also take vgpu->map_lock
 * @spans: guest memory in them, and in those that are to be released, by address
 * @live, @dead: objects in the tree, and those that are to be released
 * @exports: struct vgpu_export
 * @lent: objects that were exported; no engine has said, by unpinning them, by the end of a reset, or by
 *	being the next one, that nobody uses them any more
 * @releasing, @release_work: something is; may be read without the lock
 * @pinned_pages: of objects
 * @filling_pages: that calls of MEM_PIN have still to pin
 * @unmaps, @unmap_wait: memory that the VM is about to take away: struct vgpu_unmap
 * @spare, @spare_end, @spare_work: one of them, when there was no memory for another: until when (in
 *	jiffies), and its end
 * @unmaps_ended: counts those that have left the list; written under the lock
 * @epoch_offset: of the present epoch's first object
 * @blank: 0xff bytes, which the engine sees where the VM has taken memory away, or the engine's own
 * writes there since
 * @stale: the same for mappings of earlier epochs
 */
struct vgpu_mem {
	struct mutex lock;
	struct vgpu_cached_page cache[VGPU_RING_PAGES + VGPU_PAGE_CACHE_SIZE];
	u64 ring[VGPU_RING_PARTS];
	bool ring_known;
	int pin_error;
	u32 clock;
	u64 life;
	struct rb_root_cached objects;
	struct rb_root_cached spans;
	struct list_head live;
	struct list_head dead;
	struct list_head exports;
	u32 lent;
	bool releasing;
	struct work_struct release_work;
	u64 next_offset;
	u64 pinned_pages;
	u64 filling_pages;
	struct list_head unmaps;
	struct vgpu_unmap spare;
	unsigned long spare_end;
	struct delayed_work spare_work;
	unsigned int unmaps_ended;
	wait_queue_head_t unmap_wait;
	u64 epoch_offset;
	struct page *blank;
	struct page *stale;
	struct vgpu_dirty dirty;
};

/*
 * struct vgpu_window - the engine's content of the host-visible window
 * @table_lock: of faults that make a page table of the VMM, or map a whole PMD in its place
 * @ranges: struct vgpu_range by offset, under vgpu->map_lock
 * @blanks: pages shown where nothing is published, by page index: see blank.c; under vgpu->map_lock
 * @nblanks, @blank_next: their number, and where to search for the next one to reuse
 * @opens: counts the VMMs that have opened the device; changes also take vgpu->map_lock
 * @look_ups, @look_up_wait, @look_up_work: pages that faults wait for, see window_look.c; the list is
 *	under vgpu->map_lock
 * @gpu_at_work: the worker waits for the GPU's driver
 * @reaped, @reap_work: ranges that nobody can access any more; under vgpu->map_lock
 */
struct vgpu_window {
	struct mutex table_lock;
	struct rb_root_cached ranges;
	u32 nranges;
	u64 published_bytes;
	struct xarray blanks;
	u32 nblanks;
	unsigned long blank_next;
	u64 opens;
	struct list_head look_ups;
	wait_queue_head_t look_up_wait;
	struct work_struct look_up_work;
	bool gpu_at_work;
	struct list_head reaped;
	struct work_struct reap_work;
};

/*
 * struct vgpu_engine - the attached engine
 * @file: of the attached engine or NULL; under vgpu->lock
 * @mm: its address space
 * @attached: reports the end of @mm, and holds it
 * @events, @kicked: what read() will return; under wait.lock
 * @event_epoch: the epoch of VGPU_EVENT_RESET
 * @renderer: see struct vgpu_engine_ready
 */
struct vgpu_engine {
	struct file *file;
	struct mm_struct *mm;
	struct vgpu_engine_mm *attached;
	wait_queue_head_t wait;
	u32 events;
	u32 kicked;
	u64 event_epoch;
	u32 num_capsets;
	u64 renderer;
};

/* VFIO's regions after those of PCI. */
#define VGPU_REGION_PICTURE	VFIO_PCI_NUM_REGIONS
#define VGPU_REGION_EDID	(VFIO_PCI_NUM_REGIONS + 1)
#define VGPU_NUM_REGIONS	(VFIO_PCI_NUM_REGIONS + 2)

/*
 * struct vgpu_screen - the display of a vGPU that has one; under vgpu->lock
 * @picture: mapped by the engine, while a VMM has the device open; changes also take map_lock
 * @shown: the same memory, mapped by the VMM, which must not write it; likewise
 * @scanout: the shown part of it; no width: nothing
 */
struct vgpu_screen {
	struct file *picture;
	struct file *shown;
	struct vgpu_scanout scanout;
	struct vgpu_edid edid;
};

/*
 * struct vgpu_inflight - a chain that was taken and not answered
 * @token: 0: no engine here knows of it, because the VM was saved elsewhere
 * @answered: while the VM was stopped, by @response
 * @chain: allocated up to chain.nwrite
 */
struct vgpu_inflight {
	u32 token;
	bool answered;
	u32 response_len;
	void *response;
	struct vgpu_vq_chain chain;
};

/* Buffer for requests that every vGPU has ready; a larger request gets its own. */
#define VGPU_BOUNCE_SIZE	SZ_64K

/*
 * struct vgpu_batch - requests that were taken
 * @buf, @room, @used: vgpu->bounce or a buffer of its own, its size, and what is used of it
 * @truncate: the first may be cut
 * @requests, @max, @n: room for as many; how many there are
 * @wanted: the size of one that did not fit, or 0
 * @broken: a queue is
 */
struct vgpu_batch {
	void *buf;
	size_t room;
	size_t used;
	bool truncate;
	struct vgpu_queue_request *requests;
	u32 max;
	u32 n;
	u64 wanted;
	bool broken;
};

struct vgpu_queue {
	struct vgpu_inflight *inflight[VGPU_VQ_MAX_SIZE];
	u32 sequence;
};

/*
 * struct vgpu_migration - a vGPU that is saved or loaded, see migration.c
 * @lock: for everything but what is said otherwise; held while the engine is asked, by one VMM
 * @state: of VFIO
 * @file: that the VMM reads or writes, or NULL
 * @identity: as the file's header has it
 * @asked: the engine is to save its state; under vgpu->lock, like the following
 * @body, @body_size: all that is saved, from the moment when the engine has said its part, or an
 * ERR_PTR(); NULL before
 * @engine_state, @engine_size: what was loaded for the engine, or NULL when it has got it; until
 * then it gets no request
 */
struct vgpu_migration {
	struct mutex lock;
	enum vfio_device_mig_state state;
	struct file *file;
	struct vgpu_state_identity identity;
	bool asked;
	u8 *body;
	size_t body_size;
	void *engine_state;
	u32 engine_size;
};

struct vgpu_irq {
	struct eventfd_ctx *msix[VGPU_MSIX_VECTORS];
	struct eventfd_ctx *request;
};

struct vgpu_stats {
	u64 doorbells;
	u64 interrupts;
	u64 requests;
	u64 window_faults;
	u64 engine_losses;
};

/*
 * How a vGPU goes; only forward, and without a lock.
 *
 * LEAVES: it is being removed; no VMM opens it from now on
 * REMOVED: VMM and engine were told to go
 */
enum vgpu_exit {
	VGPU_STAYS,
	VGPU_LEAVES,
	VGPU_REMOVED,
};

/*
 * struct vgpu - one vGPU: an mdev, a VFIO device, an engine device
 * @lock: device model, queues, engine's life
 * @map_lock: what page faults look up: window ranges, memory objects
 * @irq_lock: eventfds
 * @phase: changed by vgpu_device_step(), under @lock and @state_lock
 * @look_work: looks at what has happened without @lock: see vgpu_device_look_work()
 * @reset_end, @reset_work: until when (in jiffies) a reset may wait, and until when an engine may keep
 *	what a VM had that has closed the device
 * @epoch: see uapi
 * @params_lock: params; vram_bytes changes under gpus_lock, too, window_bytes and scanouts only
 *	while closed and under @lock, too
 * @window_bytes_open: latched at open
 * @pop_lock: of requests that are taken: bounce; held while the engine's memory is written, and while an
 *	exchange sleeps
 * @notes, @failure: under @state_lock
 * @tell_lock: of events to udev: none is sent when it is removed
 * @answer_work, @answer_pause_ms: answers for full rings of a guest that has lost its engine; under @lock
 * @answers_end: until when (in jiffies) there are none, see vgpu_device_withholds_answers(); likewise
 * @log_limit: of what a guest, a VMM or an engine can make the driver log, for each vGPU, so that
 * none drowns another's
 * @tell_limit, @tell_work: see vgpu_device_tell()
 * @work: ordered worker, for what takes too long under @lock. Its items do not wait for the engine,
 *	and do not drop the last reference to the vGPU, whose end waits for them. It is frozen while
 *	the machine sleeps. Reclaim does not wait for it, so it has no rescuer (WQ_MEM_RECLAIM).
 */
struct vgpu {
	struct vfio_device vdev;
	struct vgpu_gpu *gpu;
	struct vgpu_type *type;
	struct mdev_device *mdev;
	struct list_head node;
	struct vgpu_params params;
	struct vgpu_notes notes;

	struct mutex pop_lock;
	struct mutex lock;
	struct mutex map_lock;
	spinlock_t irq_lock;
	spinlock_t params_lock;
	spinlock_t state_lock;
	struct mutex tell_lock;

	struct vgpu_phase phase;
	enum vgpu_exit exit;
	struct work_struct look_work;
	unsigned long reset_end;
	struct delayed_work reset_work;
	u64 epoch;
	u64 window_bytes_open;
	wait_queue_head_t state_wait;

	struct vgpu_pci pci;
	struct vgpu_regs regs;
	struct vgpu_queue queue[VGPU_NUM_QUEUES];
	struct vgpu_vq_desc *table;
	struct vgpu_vq_chain *chain;
	void *bounce;

	struct vgpu_irq irq;
	struct vgpu_migration migration;
	struct vgpu_mem mem;
	struct vgpu_window window;
	struct vgpu_screen display;
	struct vgpu_engine engine;
	struct delayed_work answer_work;
	unsigned int answer_pause_ms;
	unsigned long answers_end;
	struct ratelimit_state log_limit;
	struct ratelimit_state tell_limit;
	struct delayed_work tell_work;
	struct workqueue_struct *work;

	struct inode *window_inode;
	struct inode *pins_inode;
	struct file *window_file;
	struct device *node_dev;
	int minor;
	char failure[VGPU_REASON_LEN];
	struct vgpu_stats stats;
};

static inline struct vgpu *vgpu_from_vdev(struct vfio_device *vdev)
{
	return container_of(vdev, struct vgpu, vdev);
}

static inline struct device *vgpu_dev(struct vgpu *vgpu)
{
	return mdev_dev(vgpu->mdev);
}

/* These also without a lock. */
static inline bool vgpu_is_open(const struct vgpu *vgpu)
{
	return READ_ONCE(vgpu->phase.device) != VGPU_DEVICE_IS_CLOSED;
}

static inline bool vgpu_is_resetting(const struct vgpu *vgpu)
{
	enum vgpu_device_phase device = READ_ONCE(vgpu->phase.device);

	return device == VGPU_DEVICE_IS_RESETTING || device == VGPU_DEVICE_IS_REVIVING;
}

static inline bool vgpu_is_lost(const struct vgpu *vgpu)
{
	return READ_ONCE(vgpu->phase.device) == VGPU_DEVICE_IS_LOST;
}

static inline bool vgpu_is_stopped(const struct vgpu *vgpu)
{
	return READ_ONCE(vgpu->phase.vm) != VGPU_VM_RUNS;
}

static inline bool vgpu_is_removed(const struct vgpu *vgpu)
{
	return READ_ONCE(vgpu->exit) == VGPU_REMOVED;
}

/*
 * wait_event_killable_timeout() that does not keep the machine from suspending. @freezable:
 * TASK_FREEZABLE, or TASK_FREEZABLE_UNSAFE if locks are held.
 */
#define vgpu_wait_timeout(wq_head, condition, freezable, timeout)		\
({										\
	long __ret = (timeout);							\
										\
	might_sleep();								\
	if (!___wait_cond_timeout(condition))					\
		__ret = ___wait_event(wq_head, ___wait_cond_timeout(condition),	\
				      (TASK_KILLABLE | (freezable)), 0, (timeout),	\
				      __ret = schedule_timeout(__ret));		\
	__ret;									\
})

/* For messages that a guest, a VMM or an engine can cause. */
#define vgpu_log(vgpu, level, fmt, ...)						\
do {										\
	if (__ratelimit(&(vgpu)->log_limit))					\
		dev_##level(vgpu_dev(vgpu), fmt, ##__VA_ARGS__);		\
} while (0)

/* control.c: /dev/vgpu-control */
int vgpu_control_init(void);
void vgpu_control_exit(void);

/* gpu.c: physical GPUs and their promises */
int vgpu_gpus_init(void);
void vgpu_gpus_exit(void);
int vgpu_gpu_add(const struct vgpu_control_gpu *arg, const struct vgpu_type_desc *descs);
int vgpu_gpu_remove(const char *name);
int vgpu_gpu_set_types(const struct vgpu_control_gpu *arg, const struct vgpu_type_desc *descs);
int vgpu_gpu_drain(const char *name, bool on);
int vgpu_gpu_announce(const struct vgpu_control_announce *arg);
void vgpu_gpus_lock(void);
void vgpu_gpus_unlock(void);
int vgpu_gpu_admit(struct vgpu *vgpu);
void vgpu_gpu_dismiss(struct vgpu *vgpu);
int vgpu_gpu_check_open(struct vgpu *vgpu);
int vgpu_gpu_set_vram(struct vgpu *vgpu, u64 bytes);
u32 vgpu_type_most(const struct vgpu_type *type);
u32 vgpu_type_available(const struct vgpu_type *type);
void vgpu_gpu_put(struct vgpu_gpu *gpu);
bool vgpu_gpu_owns_file(struct vgpu_gpu *gpu, struct file *file);

/* mdev.c: the mdev driver and the vGPU object; attributes.c: its attributes */
void vgpu_uuid_bytes(const struct vgpu *vgpu, u8 out[VGPU_UUID_LEN]);
int vgpu_object_init(struct vgpu *vgpu);
void vgpu_object_fini(struct vgpu *vgpu);
extern struct mdev_driver vgpu_mdev_driver;
extern const struct attribute_group *vgpu_mdev_groups[];

/* vfio.c: the VMM's side */
extern const struct vfio_device_ops vgpu_vfio_ops;

/* migration.c: a VM that is stopped, saved, loaded. Under vgpu->lock, but for the first two. */
void vgpu_migration_init(struct vgpu *vgpu);
void vgpu_migration_reset(struct vgpu *vgpu);
void vgpu_migration_forget(struct vgpu *vgpu);
bool vgpu_migration_engine_asked(const struct vgpu *vgpu);
void vgpu_migration_engine_saves(struct vgpu *vgpu, const void *state, size_t size, int error);
void *vgpu_migration_engine_loads(struct vgpu *vgpu, u64 room, u64 *size);

/* irq.c: interrupts to the guest */
int vgpu_irq_set(struct vgpu *vgpu, u32 flags, u32 index, u32 start, u32 count, void *data);
u32 vgpu_irq_count(u32 index);
void vgpu_irq_vector(struct vgpu *vgpu, u16 vector);
void vgpu_irq_config(struct vgpu *vgpu);
void vgpu_irq_request(struct vgpu *vgpu);
void vgpu_irq_release_all(struct vgpu *vgpu);

/* device.c: life of the virtual device: registers, reset, loss. Under vgpu->lock unless said. */
bool vgpu_device_doorbell(struct vgpu *vgpu, u64 offset, size_t len);	/* without the lock */
void vgpu_device_step(struct vgpu *vgpu, enum vgpu_occasion occasion);
void vgpu_device_write(struct vgpu *vgpu, u64 offset, const void *buf, size_t len);
void vgpu_device_read(struct vgpu *vgpu, u64 offset, void *buf, size_t len);
void vgpu_device_config_write(struct vgpu *vgpu, u64 offset, const void *buf, size_t len);
int vgpu_device_power_on(struct vgpu *vgpu);
void vgpu_device_config_read(struct vgpu *vgpu, u64 offset, void *buf, size_t len);
void vgpu_device_reset(struct vgpu *vgpu);
void vgpu_device_reset_work(struct work_struct *work);
void vgpu_device_power_off(struct vgpu *vgpu);
void vgpu_device_settle(struct vgpu *vgpu);
bool vgpu_device_give_engine(struct vgpu *vgpu);
bool vgpu_device_withholds_answers(struct vgpu *vgpu);
void vgpu_device_lose(struct vgpu *vgpu, const char *reason);
void vgpu_device_lose_stayer(struct vgpu *vgpu);
void vgpu_device_engine_ends(struct vgpu *vgpu, const char *reason);
void vgpu_device_needs_reset(struct vgpu *vgpu);
void vgpu_device_look_work(struct work_struct *work);
void vgpu_device_answer_work(struct work_struct *work);
void vgpu_device_leave(struct vgpu *vgpu);
void vgpu_device_revoke(struct vgpu *vgpu);
void vgpu_device_tell(struct vgpu *vgpu);
void vgpu_device_tell_work(struct work_struct *work);
void vgpu_device_tell_over(struct vgpu *vgpu);
unsigned int vgpu_device_patience_ms(void);

/* queue.c: requests between guest and engine. Under vgpu->lock; the first three also between vgpu_mem_begin() and _end(). */
bool vgpu_queue_take(struct vgpu *vgpu, u32 q, struct vgpu_batch *batch, bool quiet);
void vgpu_queue_abandon(struct vgpu *vgpu, u32 q, u32 token);
int vgpu_queue_push(struct vgpu *vgpu, u32 q, u32 token, void **buf, size_t size);
void vgpu_queue_forget(struct vgpu *vgpu);
void vgpu_queue_answer_lost(struct vgpu *vgpu);
void vgpu_queue_deliver(struct vgpu *vgpu);
void vgpu_queue_interrupt(struct vgpu *vgpu, u32 q);
size_t vgpu_queue_state_size(struct vgpu *vgpu, bool answers);
void vgpu_queue_state_put(struct vgpu *vgpu, u8 *out, bool answers);
ssize_t vgpu_queue_state_get(struct vgpu *vgpu, const u8 *in, size_t left);

/* guest_access.c, guest_pin.c, guest_export.c, guest_unmap.c: guest memory, see guest_mem.h */
int vgpu_mem_init(struct vgpu *vgpu);
void vgpu_mem_fini(struct vgpu *vgpu);
/* Around uses of vgpu_guest_ops, the rings' or all of a call: takes mem.lock. */
void vgpu_mem_begin(struct vgpu *vgpu);
void vgpu_mem_end(struct vgpu *vgpu);
extern const struct vgpu_guest_ops vgpu_guest_ops;
struct vgpu_mem_object *vgpu_mem_object_new(struct vgpu *vgpu, const struct vgpu_mem_pin *arg,
					    const struct vgpu_mem_entry *entries);
void vgpu_mem_object_dispose(struct vgpu_mem_object *object);
int vgpu_mem_admit(struct vgpu *vgpu, struct vgpu_mem_object *object);
int vgpu_mem_pin(struct vgpu *vgpu, struct vgpu_mem_object *object, struct vgpu_mem_pin *arg);
int vgpu_mem_unpin(struct vgpu *vgpu, u64 offset);
void vgpu_mem_dma_unmap(struct vgpu *vgpu, u64 iova, u64 length);
void vgpu_mem_each_writable(struct vgpu *vgpu, u64 iova, u64 last, void (*fn)(void *data, u64 iova, u64 size),
			    void *data);
void vgpu_mem_release_all(struct vgpu *vgpu);
bool vgpu_mem_released(const struct vgpu *vgpu);
int vgpu_mem_wait_released(struct vgpu *vgpu);
void vgpu_mem_end_epoch(struct vgpu *vgpu);
/* Whether another driver may have guest memory (MEM_EXPORT); and that none has any. */
bool vgpu_mem_is_lent(struct vgpu *vgpu);
void vgpu_mem_forget_loans(struct vgpu *vgpu);
int vgpu_mem_mmap(struct vgpu *vgpu, struct vm_area_struct *vma);

/* dirty_log.c: guest memory that was written, for VMMs with iommufd */
extern const struct vfio_log_ops vgpu_log_ops;
void vgpu_dirty_note(struct vgpu *vgpu, u64 iova, u64 pages);
int vgpu_dirty_stop(struct vgpu *vgpu);

/*
 * window.c: the host-visible window; window_look.c: what the engine has there; window_fault.c: how a
 * VMM gets it
 */
int vgpu_windows_init(void);
void vgpu_windows_exit(void);
void vgpu_window_init(struct vgpu *vgpu);
void vgpu_window_fini(struct vgpu *vgpu);
void vgpu_window_look_up_work(struct work_struct *work);
void vgpu_window_open(struct vgpu *vgpu);
struct vgpu_range *vgpu_range_new(struct vgpu *vgpu, const struct vgpu_window_range *arg);
void vgpu_range_reap(struct vgpu_range *range);
int vgpu_window_publish(struct vgpu *vgpu, struct vgpu_range *range);
int vgpu_window_unpublish(struct vgpu *vgpu, const struct vgpu_window_range *arg);
void vgpu_window_unpublish_all(struct vgpu *vgpu);
void vgpu_window_keep_system_pages(struct vgpu *vgpu);
int vgpu_window_mmap(struct vgpu *vgpu, struct vm_area_struct *vma);

/*
 * Only mmap() shows the window, and VMMs use that: here it is blank. @offset: a multiple of @len,
 * which is 8 at most.
 */
static inline void vgpu_window_read(u64 offset, void *buf, size_t len)
{
	memset(buf, 0, len);
	if (IS_ALIGNED(offset, sizeof(u64)))
		*(u8 *)buf = VGPU_WINDOW_BLANK;
}

/* display.c: the picture and the monitor. Under vgpu->lock, except for mmap. */
bool vgpu_display_there(const struct vgpu *vgpu);
int vgpu_display_open(struct vgpu *vgpu);
void vgpu_display_close(struct vgpu *vgpu);
void vgpu_display_off(struct vgpu *vgpu);
int vgpu_display_set_scanout(struct vgpu *vgpu, const struct vgpu_scanout *scanout);
int vgpu_display_query_plane(struct vgpu *vgpu, struct vfio_device_gfx_plane_info *plane);
int vgpu_display_mmap(struct vgpu *vgpu, struct vm_area_struct *vma, bool writable);
void vgpu_display_write_edid(struct vgpu *vgpu, u64 offset, const void *buf, size_t len);

/* blank.c: pages shown where there is nothing */
struct page *vgpu_blank_find(struct vgpu *vgpu, u64 offset);
int vgpu_blank_prepare(struct vgpu *vgpu, u64 offset);
void vgpu_blank_drop(struct vgpu *vgpu, u64 offset, u64 size);
void vgpu_blank_drop_all(struct vgpu *vgpu);

/* engine.c, engine_calls.c, engine_exchange.c: /dev/vgpu/<uuid>; engine_mm.c: the engine's address space */
bool vgpu_engine_mm_gone(const struct vgpu_engine_mm *attached);
int vgpu_engine_class_init(void);
void vgpu_engine_class_exit(void);
void vgpu_engine_init(struct vgpu *vgpu);
int vgpu_engine_node_add(struct vgpu *vgpu);
void vgpu_engine_node_remove(struct vgpu *vgpu);
void vgpu_engine_event(struct vgpu *vgpu, u32 events, u32 queues);
void vgpu_engine_kick(struct vgpu *vgpu, u32 queue);
int vgpu_engine_wait_ready(struct vgpu *vgpu);
void vgpu_engine_detach(struct vgpu *vgpu, enum vgpu_occasion occasion);

/* anon_inode.c: the address spaces of what a vGPU maps into VMM and engine */
int vgpu_anon_inodes_new(struct vgpu *vgpu);
void vgpu_anon_inodes_free(struct vgpu *vgpu);

/* Where in an engine's file MEM_PIN's objects begin. */
#define VGPU_MEM_OFFSET_BASE	(1ull << 44)

#endif /* VGPU_PRIVATE_H */
