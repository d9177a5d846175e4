// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Requests between guest and engine: the model walks the virtqueues, this file keeps the chains in
 * flight. Because the driver keeps them, none is lost with an engine.
 */
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "model/lost.h"
#include "model/migration_data.h"
#include "vgpu_private.h"

#include "trace.h"

/* A token names one use of a head, so that an engine cannot push an old chain twice. */
static u32 vgpu_token(struct vgpu_queue *queue, u16 head)
{
	BUILD_BUG_ON(VGPU_VQ_MAX_SIZE > 256);
	/* 0 is no token. */
	if (!(++queue->sequence << 8))
		queue->sequence++;
	return queue->sequence << 8 | head;
}

/* While a reset waits for the engine, the registers are still those of the epoch that is over. */
static bool vgpu_queue_running(const struct vgpu *vgpu)
{
	return !vgpu_is_resetting(vgpu) && !vgpu_is_stopped(vgpu) && vgpu_regs_driver_ok(&vgpu->regs) &&
	       vgpu_pci_bus_master(&vgpu->pci);
}

void vgpu_queue_interrupt(struct vgpu *vgpu, u32 q)
{
	trace_vgpu_interrupt(vgpu->minor, q);
	vgpu_regs_raise(&vgpu->regs, false);
	vgpu_irq_vector(vgpu, vgpu->regs.vq[q].vector);
}

/*
 * Under mem.lock: the pin that has failed may have been the reason, and then it is not the guest's fault. A
 * later look at the broken queue does not know of that pin.
 */
static void vgpu_queue_broken(struct vgpu *vgpu, u32 q)
{
	int error = vgpu->mem.pin_error;

	if (vgpu->regs.vq[q].told)
		return;
	vgpu->regs.vq[q].told = true;
	if (error == -ENOMEM)
		vgpu_log(vgpu, warn, "cannot pin guest memory for queue %u: the VM's limit of locked memory is too low; the guest must reset the device\n", q);
	else if (error)
		vgpu_log(vgpu, warn, "cannot pin guest memory for queue %u (%d): a VM's memory must not be in a file on disk, but memfd, huge pages or anonymous; the guest must reset the device\n",
			 q, error);
	else
		vgpu_log(vgpu, warn, "the guest broke queue %u; it must reset the device\n", q);
	vgpu_device_needs_reset(vgpu);
}

#define vgpu_for_each_inflight(vgpu, q, i, inflight)				\
	for ((q) = 0; (q) < VGPU_NUM_QUEUES; (q)++)				\
		for ((i) = 0; (i) < VGPU_VQ_MAX_SIZE; (i)++)			\
			if (((inflight) = (vgpu)->queue[q].inflight[i]))

static void vgpu_inflight_free(struct vgpu_inflight *inflight)
{
	kvfree(inflight->response);
	kfree(inflight);
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
		vgpu_queue_broken(vgpu, q);
	else if (interrupt)
		vgpu_queue_interrupt(vgpu, q);
}

static int vgpu_queue_keep(struct vgpu *vgpu, u32 q, const struct vgpu_vq_chain *chain,
			   struct vgpu_batch *batch)
{
	struct vgpu_queue *queue = &vgpu->queue[q];
	struct vgpu_inflight *inflight = vgpu_inflight_new(chain);

	if (!inflight) {
		vgpu_queue_answer(vgpu, q, chain);
		return -ENOMEM;
	}
	inflight->token = vgpu_token(queue, chain->head);
	queue->inflight[chain->head] = inflight;
	vgpu->stats.requests++;
	batch->requests[batch->n++] = (struct vgpu_queue_request) {
		.queue = q,
		.token = inflight->token,
		.offset = batch->used,
		.request_size = chain->request_size,
		.response_size = chain->response_size,
	};
	batch->used += min_t(u64, batch->room - batch->used, chain->request_size);
	return 0;
}

/* 0: the batch has one more, and its chain is in flight. */
static int vgpu_queue_take_one(struct vgpu *vgpu, u32 q, struct vgpu_batch *batch)
{
	struct vgpu_vq_chain *chain = vgpu->chain;
	int ret;

	ret = vgpu_vq_pop(&vgpu->regs.vq[q], &vgpu_guest_ops, vgpu, vgpu->table, chain,
			  batch->buf + batch->used, batch->room - batch->used,
			  batch->truncate && !batch->n);
	if (!ret)
		ret = vgpu_queue_keep(vgpu, q, chain, batch);
	else if (ret == -EMSGSIZE)
		batch->wanted = chain->request_size;
	else if (ret == -EPROTO)
		vgpu_queue_broken(vgpu, q);
	trace_vgpu_pop(vgpu->minor, q, ret ? 0 : batch->requests[batch->n - 1].token, ret);
	return ret;
}

/*
 * Takes what fits into the batch. True: there may be more, and the guest does not announce it; always
 * so if it is not to be asked for that (@quiet). The caller copies the batch to the engine, under
 * vgpu->pop_lock, which protects the bounce buffer, but not under vgpu->lock.
 */
bool vgpu_queue_take(struct vgpu *vgpu, u32 q, struct vgpu_batch *batch, bool quiet)
{
	int ret;

	lockdep_assert_held(&vgpu->pop_lock);
	lockdep_assert_held(&vgpu->lock);
	/* An engine must have what was loaded before it serves the guest. */
	if (!vgpu_queue_running(vgpu) || vgpu->migration.engine_state)
		return false;
	vgpu->regs.vq[q].quiet = quiet;
	do {
		if (batch->n == batch->max)
			return true;
		ret = vgpu_queue_take_one(vgpu, q, batch);
	} while (!ret);
	batch->broken |= ret == -EPROTO;
	return ret == -EAGAIN ? quiet : ret != -EPROTO;
}

/* Answers a chain that was taken with an error, if it is still in flight. */
void vgpu_queue_abandon(struct vgpu *vgpu, u32 q, u32 token)
{
	struct vgpu_inflight **slot = &vgpu->queue[q].inflight[token & (VGPU_VQ_MAX_SIZE - 1)];

	lockdep_assert_held(&vgpu->lock);
	lockdep_assert_held(&vgpu->mem.lock);
	if (!*slot || (*slot)->token != token)
		return;
	/* The VM has been stopped meanwhile; it gets the error when it goes on. */
	if (vgpu_is_stopped(vgpu)) {
		(*slot)->token = 0;
		return;
	}
	vgpu_queue_answer(vgpu, q, &(*slot)->chain);
	vgpu_inflight_free(*slot);
	*slot = NULL;
}

/* Keeps a response until the VM goes on: takes it, for there may be no memory for a copy. */
static int vgpu_queue_keep_response(struct vgpu_inflight *inflight, void **buf, size_t size)
{
	if (size > inflight->chain.response_size)
		return -EMSGSIZE;
	if (inflight->answered)
		return -ENOENT;
	inflight->response = *buf;
	inflight->response_len = size;
	inflight->answered = true;
	*buf = NULL;
	return 0;
}

/* Answers a chain: see struct vgpu_queue_answer. *buf becomes NULL if it is taken. */
int vgpu_queue_push(struct vgpu *vgpu, u32 q, u32 token, void **buf, size_t size)
{
	u16 head = token & (VGPU_VQ_MAX_SIZE - 1);
	struct vgpu_inflight *inflight = vgpu->queue[q].inflight[head];
	bool interrupt = false;
	int ret;

	lockdep_assert_held(&vgpu->lock);
	if (!inflight || !token || inflight->token != token)
		return -ENOENT;
	if (vgpu_is_stopped(vgpu))
		return vgpu_queue_keep_response(inflight, buf, size);

	ret = vgpu_vq_push(&vgpu->regs.vq[q], &vgpu_guest_ops, vgpu, &inflight->chain, *buf, size,
			   &interrupt);
	if (ret == -EMSGSIZE)
		return ret;
	vgpu->queue[q].inflight[head] = NULL;
	vgpu_inflight_free(inflight);
	trace_vgpu_push(vgpu->minor, q, token, ret);
	if (ret == -EPROTO)
		vgpu_queue_broken(vgpu, q);
	else if (interrupt)
		vgpu_queue_interrupt(vgpu, q);
	return ret;
}

void vgpu_queue_forget(struct vgpu *vgpu)
{
	struct vgpu_inflight *inflight;
	unsigned int q, i;

	vgpu_for_each_inflight(vgpu, q, i, inflight) {
		vgpu->queue[q].inflight[i] = NULL;
		vgpu_inflight_free(inflight);
	}
}

/* Whether the guest has refilled the ring as fast as it was answered: there may be more. */
static bool vgpu_queue_drain(struct vgpu *vgpu, u32 q)
{
	bool interrupt = false;
	int ret;

	/* An engine that polled itself does so no more. */
	vgpu->regs.vq[q].quiet = false;
	ret = vgpu_lost_drain(&vgpu->regs.vq[q], &vgpu_guest_ops, vgpu, vgpu->table, vgpu->chain,
			      &interrupt);
	if (interrupt)
		vgpu_queue_interrupt(vgpu, q);
	return ret == -EAGAIN;
}

/* How long a guest whose rings come full waits for its next answers. */
#define VGPU_ANSWER_PAUSE_MS	10u

/*
 * A guest that refills as fast as it is answered must keep neither the lock nor a processor: kernel threads belong to
 * no VM, so its share would not limit them.
 */
static void vgpu_queue_answer_later(struct vgpu *vgpu)
{
	vgpu->answer_pause_ms = clamp(2 * vgpu->answer_pause_ms, 1u, VGPU_ANSWER_PAUSE_MS);
	queue_delayed_work(system_unbound_wq, &vgpu->answer_work, msecs_to_jiffies(vgpu->answer_pause_ms));
}

/* Answers all chains with an error: first those in flight, then the available ones. */
void vgpu_queue_answer_lost(struct vgpu *vgpu)
{
	struct vgpu_inflight *inflight;
	bool more = false;
	unsigned int q, i;

	lockdep_assert_held(&vgpu->lock);
	if (!vgpu_queue_running(vgpu))
		return;
	if (vgpu_device_withholds_answers(vgpu)) {
		vgpu_queue_answer_later(vgpu);
		return;
	}
	vgpu_mem_begin(vgpu);
	vgpu_for_each_inflight(vgpu, q, i, inflight) {
		vgpu->queue[q].inflight[i] = NULL;
		vgpu_queue_answer(vgpu, q, &inflight->chain);
		vgpu_inflight_free(inflight);
	}
	for (q = 0; q < VGPU_NUM_QUEUES; q++)
		more |= vgpu_queue_drain(vgpu, q);
	vgpu_mem_end(vgpu);
	if (more)
		vgpu_queue_answer_later(vgpu);
	else
		vgpu->answer_pause_ms = 0;
}

static void vgpu_queue_deliver_one(struct vgpu *vgpu, u32 q, struct vgpu_inflight *inflight)
{
	bool interrupt = false;

	if (!inflight->answered)
		vgpu_queue_answer(vgpu, q, &inflight->chain);
	else if (vgpu_vq_push(&vgpu->regs.vq[q], &vgpu_guest_ops, vgpu, &inflight->chain, inflight->response,
			      inflight->response_len, &interrupt) == -EPROTO)
		vgpu_queue_broken(vgpu, q);
	else if (interrupt)
		vgpu_queue_interrupt(vgpu, q);
}

/* The VM goes on: it gets the answers of the meantime, and errors for what no engine here knows of. */
void vgpu_queue_deliver(struct vgpu *vgpu)
{
	struct vgpu_inflight *inflight;
	unsigned int q, i;

	lockdep_assert_held(&vgpu->lock);
	if (!vgpu_queue_running(vgpu))
		return;
	vgpu_mem_begin(vgpu);
	vgpu_for_each_inflight(vgpu, q, i, inflight) {
		if (inflight->token && !inflight->answered)
			continue;
		vgpu->queue[q].inflight[i] = NULL;
		vgpu_queue_deliver_one(vgpu, q, inflight);
		vgpu_inflight_free(inflight);
	}
	vgpu_mem_end(vgpu);
}

/*
 * What is in flight, as in model/migration_data.h: the number, then each. @answers: with the answers of the time since
 * the stop.
 */
size_t vgpu_queue_state_size(struct vgpu *vgpu, bool answers)
{
	const struct vgpu_inflight *inflight;
	size_t size = sizeof(u32);
	unsigned int q, i;

	lockdep_assert_held(&vgpu->lock);
	vgpu_for_each_inflight(vgpu, q, i, inflight)
		size += vgpu_state_chain_size(&inflight->chain, answers ? inflight->response_len : 0);
	return size;
}

void vgpu_queue_state_put(struct vgpu *vgpu, u8 *out, bool answers)
{
	const struct vgpu_inflight *inflight;
	u8 *at = out + sizeof(u32);
	unsigned int q, i;
	u32 n = 0;

	lockdep_assert_held(&vgpu->lock);
	vgpu_for_each_inflight(vgpu, q, i, inflight) {
		size_t len = answers ? inflight->response_len : 0;

		vgpu_state_put_chain(at, q, &inflight->chain, answers && inflight->answered, inflight->response, len);
		at += vgpu_state_chain_size(&inflight->chain, len);
		n++;
	}
	vgpu_put_le32(out, n);
}

static int vgpu_queue_load_chain(struct vgpu *vgpu, const struct vgpu_state_chain *saved)
{
	struct vgpu_inflight *inflight = vgpu_inflight_new(&saved->chain);
	u32 queue = array_index_nospec(saved->queue, VGPU_NUM_QUEUES);
	u32 head = array_index_nospec(saved->chain.head, VGPU_VQ_MAX_SIZE);
	void *response = NULL;
	int ret = 0;

	if (!inflight)
		return -ENOMEM;
	if (saved->response_len)
		response = kvmemdup(saved->response, saved->response_len, GFP_KERNEL_ACCOUNT);
	if (saved->response_len && !response)
		ret = -ENOMEM;
	else if (saved->answered)
		ret = vgpu_queue_keep_response(inflight, &response, saved->response_len);
	kvfree(response);
	if (ret)
		vgpu_inflight_free(inflight);
	else
		vgpu->queue[queue].inflight[head] = inflight;
	return ret;
}

/* How many bytes they were, or an error; then some may be in flight. */
ssize_t vgpu_queue_state_get(struct vgpu *vgpu, const u8 *in, size_t left)
{
	size_t done = sizeof(u32), size;
	struct vgpu_state_chain *chain;
	int ret = 0;
	u32 n;

	lockdep_assert_held(&vgpu->lock);
	if (left < done)
		return -EINVAL;
	chain = kzalloc(sizeof(*chain), GFP_KERNEL);
	if (!chain)
		return -ENOMEM;
	for (n = vgpu_get_le32(in); n && !ret; n--) {
		size = vgpu_state_get_chain(in + done, left - done, &vgpu->regs, chain);
		ret = size ? vgpu_queue_load_chain(vgpu, chain) : -EINVAL;
		done += size;
	}
	kfree(chain);
	return ret ?: done;
}
