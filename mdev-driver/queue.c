// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Requests between guest and engine: the model walks the virtqueues, this file keeps the chains in
 * flight. Because the driver keeps them, none is lost with an engine.
 */
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "model/lost.h"
#include "vgpu_private.h"

#include "trace.h"

/* A token names one use of a head, so that an engine cannot push an old chain twice. */
static u32 vgpu_token(struct vgpu_queue *queue, u16 head)
{
	BUILD_BUG_ON(VGPU_VQ_MAX_SIZE > 256);
	return ++queue->sequence << 8 | head;
}

/* While a reset waits for the engine, the registers are still those of the epoch that is over. */
static bool vgpu_queue_running(const struct vgpu *vgpu)
{
	return !vgpu->resetting && vgpu_regs_driver_ok(&vgpu->regs) &&
	       vgpu_pci_bus_master(&vgpu->pci);
}

static void vgpu_queue_interrupt(struct vgpu *vgpu, u32 q)
{
	trace_vgpu_interrupt(vgpu->minor, q);
	vgpu_regs_raise(&vgpu->regs, false);
	vgpu_irq_vector(vgpu, vgpu->regs.vq[q].vector);
}

static int vgpu_queue_broken(struct vgpu *vgpu, u32 q, int ret)
{
	vgpu_log(vgpu, warn, "the guest broke queue %u; it must reset the device\n", q);
	vgpu_device_needs_reset(vgpu);
	return ret;
}

static struct vgpu_inflight *vgpu_inflight_new(const struct vgpu_vq_chain *chain)
{
	size_t size = offsetof(struct vgpu_inflight, chain.write) +
		      chain->nwrite * sizeof(chain->write[0]);
	struct vgpu_inflight *inflight = kzalloc(size, GFP_KERNEL_ACCOUNT);

	if (inflight)
		memcpy(&inflight->chain, chain,
		       offsetof(struct vgpu_vq_chain, write) + chain->nwrite * sizeof(chain->write[0]));
	return inflight;
}

static void vgpu_queue_answer(struct vgpu *vgpu, u32 q, const struct vgpu_vq_chain *chain)
{
	bool interrupt = false;

	if (vgpu_lost_push(&vgpu->regs.vq[q], &vgpu_guest_ops, vgpu, chain, &interrupt) == -EPROTO)
		vgpu_queue_broken(vgpu, q, 0);
	else if (interrupt)
		vgpu_queue_interrupt(vgpu, q);
}

/*
 * The guest may change the chain between the two reads, so the copied size is bounded by the
 * buffer, never by the chain's content.
 */
static int vgpu_queue_fetch(struct vgpu *vgpu, const struct vgpu_queue_pop *pop,
			    struct vgpu_vq_chain *chain, struct vgpu_request *request)
{
	struct vgpu_vq *vq = &vgpu->regs.vq[pop->queue];
	bool truncate = pop->flags & VGPU_POP_TRUNCATE;
	int ret;

	vq->quiet = pop->flags & VGPU_POP_POLL;
	request->buf = vgpu->bounce;
	request->size = min_t(u64, pop->buf_size, VGPU_BOUNCE_SIZE);
	ret = vgpu_vq_pop(vq, &vgpu_guest_ops, vgpu, vgpu->table, chain, request->buf,
			  request->size, truncate && pop->buf_size <= VGPU_BOUNCE_SIZE);
	if (ret != -EMSGSIZE || pop->buf_size <= VGPU_BOUNCE_SIZE)
		return ret;

	request->size = min3(pop->buf_size, chain->request_size, (u64)VGPU_REQUEST_MAX);
	request->buf = kvmalloc(request->size, GFP_KERNEL_ACCOUNT);
	if (!request->buf)
		return -ENOMEM;
	return vgpu_vq_pop(vq, &vgpu_guest_ops, vgpu, vgpu->table, chain, request->buf,
			   request->size, truncate);
}

static int vgpu_queue_keep(struct vgpu *vgpu, struct vgpu_queue_pop *pop,
			   const struct vgpu_vq_chain *chain, struct vgpu_request *request)
{
	struct vgpu_queue *queue = &vgpu->queue[pop->queue];
	struct vgpu_inflight *inflight = vgpu_inflight_new(chain);

	if (!inflight) {
		vgpu_queue_answer(vgpu, pop->queue, chain);
		return -ENOMEM;
	}
	inflight->token = vgpu_token(queue, chain->head);
	queue->inflight[chain->head] = inflight;
	vgpu->stats.requests++;
	pop->token = inflight->token;
	pop->request_size = chain->request_size;
	pop->response_size = chain->response_size;
	request->size = min_t(u64, request->size, chain->request_size);
	return 0;
}

/*
 * 0: the chain is in flight, and the caller copies @request to @pop->buf, under vgpu->pop_lock, which protects the bounce
 * buffer, but not under vgpu->lock. @request must be freed in any case.
 */
int vgpu_queue_pop(struct vgpu *vgpu, struct vgpu_queue_pop *pop, struct vgpu_request *request)
{
	struct vgpu_vq_chain *chain = vgpu->chain;
	int ret;

	lockdep_assert_held(&vgpu->pop_lock);
	lockdep_assert_held(&vgpu->lock);
	if (!vgpu_queue_running(vgpu))
		return -EAGAIN;

	ret = vgpu_queue_fetch(vgpu, pop, chain, request);
	if (!ret)
		ret = vgpu_queue_keep(vgpu, pop, chain, request);
	else if (ret == -EMSGSIZE)
		pop->request_size = chain->request_size;
	else if (ret == -EPROTO)
		ret = vgpu_queue_broken(vgpu, pop->queue, ret);
	trace_vgpu_pop(vgpu->minor, pop->queue, pop->token, ret);
	return ret;
}

void vgpu_queue_request_free(struct vgpu *vgpu, struct vgpu_request *request)
{
	if (request->buf != vgpu->bounce)
		kvfree(request->buf);
}

/* Answers a chain that was popped with an error, if it is still in flight. */
void vgpu_queue_abandon(struct vgpu *vgpu, u32 q, u32 token)
{
	struct vgpu_inflight **slot = &vgpu->queue[q].inflight[token & (VGPU_VQ_MAX_SIZE - 1)];

	lockdep_assert_held(&vgpu->lock);
	if (!*slot || (*slot)->token != token)
		return;
	vgpu_queue_answer(vgpu, q, &(*slot)->chain);
	kfree(*slot);
	*slot = NULL;
}

int vgpu_queue_push(struct vgpu *vgpu, const struct vgpu_queue_push *push, const void *buf)
{
	struct vgpu_queue *queue = &vgpu->queue[push->queue];
	u16 head = push->token & (VGPU_VQ_MAX_SIZE - 1);
	struct vgpu_inflight *inflight = queue->inflight[head];
	bool interrupt = false;
	int ret;

	lockdep_assert_held(&vgpu->lock);
	if (!inflight || inflight->token != push->token)
		return -ENOENT;

	ret = vgpu_vq_push(&vgpu->regs.vq[push->queue], &vgpu_guest_ops, vgpu, &inflight->chain,
			   buf, push->size, &interrupt);
	if (ret == -EMSGSIZE)
		return ret;
	queue->inflight[head] = NULL;
	kfree(inflight);
	trace_vgpu_push(vgpu->minor, push->queue, push->token, ret);
	if (ret == -EPROTO)
		return vgpu_queue_broken(vgpu, push->queue, ret);
	if (interrupt)
		vgpu_queue_interrupt(vgpu, push->queue);
	return ret;
}

void vgpu_queue_forget(struct vgpu *vgpu)
{
	unsigned int q, i;

	for (q = 0; q < VGPU_NUM_QUEUES; q++) {
		for (i = 0; i < VGPU_VQ_MAX_SIZE; i++) {
			kfree(vgpu->queue[q].inflight[i]);
			vgpu->queue[q].inflight[i] = NULL;
		}
	}
}

static void vgpu_queue_drain(struct vgpu *vgpu, u32 q)
{
	bool interrupt = false;
	int ret;

	/* An engine that polled itself does so no more. */
	vgpu->regs.vq[q].quiet = false;
	ret = vgpu_lost_drain(&vgpu->regs.vq[q], &vgpu_guest_ops, vgpu, vgpu->table, vgpu->chain,
			      &interrupt);
	if (interrupt)
		vgpu_queue_interrupt(vgpu, q);
	/* A guest that refills as fast as it is answered must not keep the lock. */
	if (ret == -EAGAIN)
		schedule_work(&vgpu->lost_work);
}

/* Answers all chains with an error: first those in flight, then the available ones. */
void vgpu_queue_answer_lost(struct vgpu *vgpu)
{
	unsigned int q, i;

	lockdep_assert_held(&vgpu->lock);
	if (!vgpu_queue_running(vgpu))
		return;
	for (q = 0; q < VGPU_NUM_QUEUES; q++) {
		for (i = 0; i < VGPU_VQ_MAX_SIZE; i++) {
			struct vgpu_inflight *inflight = vgpu->queue[q].inflight[i];

			if (!inflight)
				continue;
			vgpu->queue[q].inflight[i] = NULL;
			vgpu_queue_answer(vgpu, q, &inflight->chain);
			kfree(inflight);
		}
		vgpu_queue_drain(vgpu, q);
	}
}
