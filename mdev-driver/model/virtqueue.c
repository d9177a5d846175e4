// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * The device's side of a split virtqueue.
 *
 * A chain is taken in three steps: its descriptors are copied into the caller's table, the copy is
 * checked completely, and only then the request is read through it. No step reads guest memory that
 * an earlier one has read.
 */
#include <linux/virtio_pci.h>
#include <linux/virtio_ring.h>

#include "virtqueue.h"

#define DESC_SIZE		sizeof(struct vgpu_vq_desc)
#define USED_ELEM_SIZE		8

/* Offsets in the available ring; its entries are 16 bits wide and used_event follows the last. */
#define AVAIL_FLAGS		0
#define AVAIL_IDX		2
#define AVAIL_RING(i)		(4 + 2 * (u64)(i))

/* Offsets in the used ring; avail_event follows the last entry. */
#define USED_IDX		2
#define USED_RING(i)		(4 + USED_ELEM_SIZE * (u64)(i))

static_assert(sizeof(struct vgpu_vq_desc) == 16, "descriptors are read as they lie in memory");
static_assert(VGPU_VQ_MAX_SIZE <= VGPU_VQ_MAX_DESCS, "a chain without a table fits the scratch");

/**
 * struct walk - a chain's copied descriptors
 * @table: first the direct ones in the order of the chain, then the indirect table in its own order
 * @ndirect: how many are direct
 * @total: all of them, used or not
 */
struct walk {
	const struct vgpu_vq_desc *table;
	u32 ndirect;
	u32 total;
};

#define WALK_END	U32_MAX

static int break_queue(struct vgpu_vq *vq)
{
	vq->broken = true;
	return -EPROTO;
}

static bool range_wraps(u64 addr, u64 len)
{
	return addr + (len - 1) < addr;
}

static bool head_inflight(const struct vgpu_vq *vq, u16 head)
{
	return vq->inflight[head / 64] & (1ULL << (head % 64));
}

void vgpu_vq_reset(struct vgpu_vq *vq)
{
	memset(vq, 0, sizeof(*vq));
	vq->size = VGPU_VQ_MAX_SIZE;
	vq->vector = VIRTIO_MSI_NO_VECTOR;
}

bool vgpu_vq_valid(const struct vgpu_vq *vq)
{
	const u16 size = vq->size;

	if (!size || size > VGPU_VQ_MAX_SIZE || (size & (size - 1)))
		return false;
	if (vq->desc % VRING_DESC_ALIGN_SIZE || vq->avail % VRING_AVAIL_ALIGN_SIZE ||
	    vq->used % VRING_USED_ALIGN_SIZE)
		return false;
	return !range_wraps(vq->desc, DESC_SIZE * size) &&
	       !range_wraps(vq->avail, AVAIL_RING(size) + sizeof(u16)) &&
	       !range_wraps(vq->used, USED_RING(size) + sizeof(u16));
}

static struct vgpu_vq_desc load_desc(const struct vgpu_vq_desc *raw)
{
	struct vgpu_vq_desc d = {
		.addr = vgpu_get_le64(&raw->addr),
		.len = vgpu_get_le32(&raw->len),
		.flags = vgpu_get_le16(&raw->flags),
		.next = vgpu_get_le16(&raw->next),
	};

	return d;
}

static int read_le16(const struct vgpu_guest_ops *ops, void *guest, u64 iova, u16 *value)
{
	u8 raw[sizeof(u16)];

	if (ops->read(guest, iova, raw, sizeof(raw)))
		return -EPROTO;
	*value = vgpu_get_le16(raw);
	return 0;
}

static int write_le16(const struct vgpu_guest_ops *ops, void *guest, u64 iova, u16 value)
{
	u8 raw[sizeof(u16)];

	vgpu_put_le16(raw, value);
	return ops->write(guest, iova, raw, sizeof(raw)) ? -EPROTO : 0;
}

/* Reads how far the guest has filled the ring. -EAGAIN: no new entries. */
static int refresh_avail(struct vgpu_vq *vq, const struct vgpu_guest_ops *ops, void *guest)
{
	u16 ahead;

	if (read_le16(ops, guest, vq->avail + AVAIL_IDX, &vq->avail_idx))
		return -EPROTO;
	ahead = vq->avail_idx - vq->next_avail;
	if (ahead > vq->size)
		return -EPROTO;
	/* The entries below the index must not be read before it. */
	vgpu_rmb();
	return ahead ? 0 : -EAGAIN;
}

/* Makes sure that there is a chain to take, or that the guest will announce the next one. */
static int wait_avail(struct vgpu_vq *vq, const struct vgpu_guest_ops *ops, void *guest)
{
	int ret;

	if (vq->avail_idx != vq->next_avail)
		return 0;

	ret = refresh_avail(vq, ops, guest);
	if (ret != -EAGAIN || !vq->event_idx || vq->quiet)
		return ret;

	if (write_le16(ops, guest, vq->used + USED_RING(vq->size), vq->next_avail))
		return -EPROTO;
	/* A chain added before the guest could see the event is not announced: check once more. */
	vgpu_mb();
	return refresh_avail(vq, ops, guest);
}

static int fetch_indirect(const struct vgpu_vq *vq, const struct vgpu_guest_ops *ops, void *guest,
			  const struct vgpu_vq_desc *d, struct vgpu_vq_desc *table,
			  struct walk *walk)
{
	u32 count = d->len / DESC_SIZE;

	if (!vq->indirect || (d->flags & VRING_DESC_F_NEXT))
		return -EPROTO;
	if (!count || d->len % DESC_SIZE || count > VGPU_VQ_MAX_DESCS - walk->ndirect ||
	    range_wraps(d->addr, d->len))
		return -EPROTO;
	if (ops->read(guest, d->addr, table + walk->ndirect, d->len))
		return -EPROTO;
	walk->total = walk->ndirect + count;
	return 0;
}

/* Copies the descriptors of the chain at @head, without reading their targets. */
static int fetch_chain(const struct vgpu_vq *vq, const struct vgpu_guest_ops *ops, void *guest,
		       u16 head, struct vgpu_vq_desc *table, struct walk *walk)
{
	u16 index = head;

	walk->table = table;
	for (walk->ndirect = 0; walk->ndirect < vq->size; walk->ndirect++) {
		struct vgpu_vq_desc *raw = &table[walk->ndirect];
		struct vgpu_vq_desc d;

		if (index >= vq->size)
			return -EPROTO;
		if (ops->read(guest, vq->desc + DESC_SIZE * index, raw, DESC_SIZE))
			return -EPROTO;
		d = load_desc(raw);
		if (d.flags & VRING_DESC_F_INDIRECT)
			return fetch_indirect(vq, ops, guest, &d, table, walk);
		if (!(d.flags & VRING_DESC_F_NEXT)) {
			walk->total = ++walk->ndirect;
			return 0;
		}
		index = d.next;
	}
	return -EPROTO;		/* more than the ring has: a loop */
}

/* The next descriptor of the chain after descriptor @i, which is @d. */
static u32 walk_next(const struct walk *walk, u32 i, const struct vgpu_vq_desc *d)
{
	if (i < walk->ndirect)
		return i + 1 < walk->total ? i + 1 : WALK_END;
	return d->flags & VRING_DESC_F_NEXT ? walk->ndirect + d->next : WALK_END;
}

static int add_desc(struct vgpu_vq_chain *chain, const struct vgpu_vq_desc *d)
{
	/* Indirect ones are resolved already: this one lies in an indirect table itself. */
	if ((d->flags & VRING_DESC_F_INDIRECT) || !d->len || range_wraps(d->addr, d->len))
		return -EPROTO;

	if (d->flags & VRING_DESC_F_WRITE) {
		if (chain->nwrite == VGPU_VQ_MAX_WRITE_SEGS)
			return -EPROTO;
		chain->write[chain->nwrite].iova = d->addr;
		chain->write[chain->nwrite].len = d->len;
		chain->nwrite++;
		chain->response_size += d->len;
	} else {
		if (chain->nwrite)
			return -EPROTO;
		chain->request_size += d->len;
	}
	/* The specification bounds the total size of a chain (2.7.4.2). */
	return chain->request_size + chain->response_size > U32_MAX ? -EPROTO : 0;
}

/* Checks the copied descriptors and sums them up in @chain. */
static int check_chain(const struct walk *walk, struct vgpu_vq_chain *chain)
{
	u32 i = 0, seen;
	int ret;

	for (seen = 0; i != WALK_END; seen++) {
		struct vgpu_vq_desc d;

		if (i >= walk->total || seen == walk->total)
			return -EPROTO;
		d = load_desc(&walk->table[i]);
		ret = add_desc(chain, &d);
		if (ret)
			return ret;
		i = walk_next(walk, i, &d);
	}
	return 0;
}

/* Reads the first @size bytes of a checked chain's request, which has at least as many. */
static int read_request(const struct walk *walk, const struct vgpu_guest_ops *ops, void *guest,
			u8 *buf, size_t size)
{
	size_t done = 0;
	u32 i = 0;

	while (done < size) {
		struct vgpu_vq_desc d = load_desc(&walk->table[i]);
		size_t part = vgpu_min_size(d.len, size - done);

		if (ops->read(guest, d.addr, buf + done, part))
			return -EPROTO;
		done += part;
		i = walk_next(walk, i, &d);
	}
	return 0;
}

/* Fills @buf and the chain's header from one reading, so that they cannot differ. */
static int copy_request(const struct walk *walk, const struct vgpu_guest_ops *ops, void *guest,
			struct vgpu_vq_chain *chain, u8 *buf, size_t size)
{
	size_t want = vgpu_min_size(size, chain->request_size);
	size_t header = vgpu_min_size(VGPU_VQ_HEADER_SIZE, chain->request_size);
	int ret;

	if (want >= header) {
		ret = read_request(walk, ops, guest, buf, want);
		if (!ret && header)
			memcpy(chain->header, buf, header);
		return ret;
	}

	ret = read_request(walk, ops, guest, chain->header, header);
	if (!ret && want)
		memcpy(buf, chain->header, want);
	return ret;
}

int vgpu_vq_pop(struct vgpu_vq *vq, const struct vgpu_guest_ops *ops, void *guest,
		struct vgpu_vq_desc *table, struct vgpu_vq_chain *chain,
		void *buf, size_t size, bool truncate)
{
	struct walk walk;
	u16 slot, head;
	int ret;

	if (vq->broken)
		return -EPROTO;
	if (!vq->enabled)
		return -EAGAIN;

	ret = wait_avail(vq, ops, guest);
	if (ret == -EAGAIN)
		return ret;
	if (ret)
		return break_queue(vq);

	slot = vq->next_avail & (vq->size - 1);
	if (read_le16(ops, guest, vq->avail + AVAIL_RING(slot), &head) || head >= vq->size)
		return break_queue(vq);
	head = vgpu_index_nospec(head, vq->size);
	if (head_inflight(vq, head))
		return break_queue(vq);

	memset(chain, 0, offsetof(struct vgpu_vq_chain, write));
	chain->head = head;
	if (fetch_chain(vq, ops, guest, head, table, &walk) || check_chain(&walk, chain))
		return break_queue(vq);
	if (chain->request_size > size && !truncate)
		return -EMSGSIZE;
	if (copy_request(&walk, ops, guest, chain, buf, size))
		return break_queue(vq);

	vq->inflight[head / 64] |= 1ULL << (head % 64);
	vq->next_avail++;
	return 0;
}

static int write_response(const struct vgpu_guest_ops *ops, void *guest,
			  const struct vgpu_vq_chain *chain, const u8 *buf, size_t size)
{
	size_t done = 0;
	u16 i;

	for (i = 0; done < size; i++) {
		size_t part = vgpu_min_size(chain->write[i].len, size - done);

		if (ops->write(guest, chain->write[i].iova, buf + done, part))
			return -EFAULT;
		done += part;
	}
	return 0;
}

static int add_used(struct vgpu_vq *vq, const struct vgpu_guest_ops *ops, void *guest,
		    u16 head, u32 len)
{
	u8 elem[USED_ELEM_SIZE];
	u16 slot = vq->next_used & (vq->size - 1);

	vgpu_put_le32(elem, head);
	vgpu_put_le32(elem + 4, len);
	if (ops->write(guest, vq->used + USED_RING(slot), elem, sizeof(elem)))
		return -EPROTO;
	/* The response and the entry must be visible before the index. */
	vgpu_wmb();
	vq->next_used++;
	return write_le16(ops, guest, vq->used + USED_IDX, vq->next_used);
}

/* Whether the guest wants an interrupt for the chain that was used last. */
static int wants_interrupt(const struct vgpu_vq *vq, const struct vgpu_guest_ops *ops, void *guest,
			   bool *interrupt)
{
	u16 value;

	/* The guest sets its event, then reads the index; we do it in the reverse order. */
	vgpu_mb();
	if (vq->event_idx) {
		if (read_le16(ops, guest, vq->avail + AVAIL_RING(vq->size), &value))
			return -EPROTO;
		*interrupt = value == (u16)(vq->next_used - 1);
	} else {
		if (read_le16(ops, guest, vq->avail + AVAIL_FLAGS, &value))
			return -EPROTO;
		*interrupt = !(value & VRING_AVAIL_F_NO_INTERRUPT);
	}
	return 0;
}

int vgpu_vq_push(struct vgpu_vq *vq, const struct vgpu_guest_ops *ops, void *guest,
		 const struct vgpu_vq_chain *chain, const void *buf, size_t size,
		 bool *interrupt)
{
	const u16 head = chain->head;

	*interrupt = false;
	if (vq->broken)
		return -EPROTO;
	if (head >= vq->size || !head_inflight(vq, head))
		return -ENOENT;
	if (size > chain->response_size)
		return -EMSGSIZE;

	if (write_response(ops, guest, chain, buf, size))
		size = 0;
	vq->inflight[head / 64] &= ~(1ULL << (head % 64));
	if (add_used(vq, ops, guest, head, (u32)size) ||
	    wants_interrupt(vq, ops, guest, interrupt))
		return break_queue(vq);
	return 0;
}
