// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * VGPU_ENGINE_QUEUE_EXCHANGE (uapi/linux/vgpu.h): the engine gives answers, and takes requests.
 *
 * An engine can delay any access to its memory for ever. So everything of it is copied before
 * vgpu->lock is taken, and everything for it after it was dropped.
 */
#include <linux/file.h>
#include <linux/poll.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/wait.h>

#include "engine.h"

/* A sleep between two looks; never shorter than what a doorbell costs. */
#define VGPU_LOOK_INTERVAL_NS	(50 * NSEC_PER_USEC)

/*
 * struct vgpu_exchange - a call
 * @other: the file of @wait_fd, or NULL
 * @responses: of @answers; one that is kept until the VM goes on is taken from here
 */
struct vgpu_exchange {
	struct file *file;
	struct file *other;
	struct vgpu_queue_exchange arg;
	struct vgpu_queue_answer answers[VGPU_EXCHANGE_MAX];
	struct vgpu_queue_request requests[VGPU_EXCHANGE_MAX];
	void *responses[VGPU_EXCHANGE_MAX];
	struct vgpu_batch batch;
};

static int vgpu_exchange_copy_answers(struct vgpu_exchange *x)
{
	u32 i;
	int ret;

	if (copy_from_user(x->answers, u64_to_user_ptr(x->arg.answers), x->arg.nanswers * sizeof(x->answers[0])))
		return -EFAULT;
	ret = vgpu_check_answers(x->answers, x->arg.nanswers);
	for (i = 0; i < x->arg.nanswers && !ret; i++) {
		const struct vgpu_queue_answer *answer = &x->answers[i];

		if (!answer->size)
			continue;
		x->responses[i] = kvmalloc(answer->size, GFP_KERNEL_ACCOUNT);
		if (!x->responses[i])
			ret = -ENOMEM;
		else if (copy_from_user(x->responses[i], u64_to_user_ptr(answer->buf), answer->size))
			ret = -EFAULT;
	}
	return ret;
}

static bool vgpu_exchange_stale(struct vgpu_exchange *x)
{
	const struct vgpu *vgpu = vgpu_from_file(x->file);

	if (x->arg.epoch == vgpu->epoch && !vgpu_is_lost(vgpu))
		return false;
	x->arg.state |= VGPU_EXCHANGE_STALE;
	return true;
}

static void vgpu_exchange_answer(struct vgpu_exchange *x)
{
	struct vgpu *vgpu = vgpu_from_file(x->file);
	bool stale = vgpu_exchange_stale(x);
	u32 i;

	for (i = 0; i < x->arg.nanswers; i++) {
		struct vgpu_queue_answer *answer = &x->answers[i];
		u32 q = array_index_nospec(answer->queue, VGPU_NUM_QUEUES);

		answer->result = stale ? -ESTALE :
					 vgpu_queue_push(vgpu, q, answer->token, &x->responses[i], answer->size);
	}
}

static void vgpu_exchange_take(struct vgpu_exchange *x, bool quiet)
{
	struct vgpu *vgpu = vgpu_from_file(x->file);
	struct vgpu_queue_exchange *arg = &x->arg;
	struct vgpu_batch *batch = &x->batch;
	u32 more = 0, q;

	if (arg->flags & VGPU_EXCHANGE_EVENTS && !arg->event.events)
		vgpu_engine_take_event(vgpu, &arg->event);
	arg->queues |= arg->event.queues;
	if (vgpu_exchange_stale(x))
		return;
	for (q = 0; q < VGPU_NUM_QUEUES; q++) {
		if (!(arg->queues & BIT(q)))
			continue;
		/* A full queue leaves room for the others. */
		batch->max = batch->n + DIV_ROUND_UP(arg->nrequests - batch->n, hweight32(arg->queues >> q));
		if (vgpu_queue_take(vgpu, q, batch, quiet))
			more |= BIT(q);
	}
	arg->queues = more;
}

static int vgpu_exchange_round(struct vgpu_exchange *x, bool answer, bool quiet)
{
	struct vgpu *vgpu = vgpu_from_file(x->file);
	int ret = vgpu_engine_enter(x->file);

	if (ret)
		return ret;
	vgpu_mem_begin(vgpu);
	if (answer)
		vgpu_exchange_answer(x);
	if (x->arg.nrequests)
		vgpu_exchange_take(x, quiet);
	vgpu_mem_end(vgpu);
	vgpu_engine_leave(x->file);
	return 0;
}

/* Sleeps, but not for longer than until the next event. */
static void vgpu_exchange_sleep(struct vgpu_exchange *x)
{
	struct vgpu *vgpu = vgpu_from_file(x->file);

	wait_event_interruptible_hrtimeout(vgpu->engine.wait, vgpu_engine_has_event(vgpu, x->file),
					   ns_to_ktime(VGPU_LOOK_INTERVAL_NS));
}

static bool vgpu_exchange_may_look_again(const struct vgpu_exchange *x, ktime_t end)
{
	return x->arg.poll_us && ktime_before(ktime_get(), end) && !signal_pending(current) &&
	       !vgpu_engine_has_event(vgpu_from_file(x->file), x->file);
}

static bool vgpu_exchange_found(const struct vgpu_exchange *x)
{
	return x->batch.n || x->batch.wanted || x->batch.broken || x->arg.event.events;
}

/* The last look, if it finds nothing, asks the guest to ring. */
static int vgpu_exchange_poll(struct vgpu_exchange *x)
{
	ktime_t end = ktime_add_us(ktime_get(), x->arg.poll_us);
	bool quiet = vgpu_exchange_may_look_again(x, end);
	int ret = vgpu_exchange_round(x, true, quiet);

	while (!ret && quiet && !vgpu_exchange_found(x) && !x->arg.state) {
		vgpu_exchange_sleep(x);
		quiet = vgpu_exchange_may_look_again(x, end);
		ret = vgpu_exchange_round(x, false, quiet);
	}
	return ret;
}

/* Whether there is something, like poll(): an event, the end of the engine, or @wait_fd's. */
static bool vgpu_exchange_woken(struct vgpu_exchange *x, poll_table *table)
{
	bool own = vfs_poll(x->file, table) & (EPOLLIN | EPOLLERR);

	if (x->other && vfs_poll(x->other, table) & (EPOLLIN | EPOLLERR | EPOLLHUP))
		x->arg.state |= VGPU_EXCHANGE_WOKEN;
	return own || x->arg.state & VGPU_EXCHANGE_WOKEN;
}

/*
 * For @wait_ms, without vgpu->lock. The engine's other file may make its poll() wait as long as it likes: that
 * holds up only threads of the engine that want to take requests, too.
 */
static void vgpu_exchange_wait(struct vgpu_exchange *x)
{
	ktime_t end = ktime_add_ms(ktime_get(), x->arg.wait_ms);
	ktime_t *limit = x->arg.wait_ms == VGPU_EXCHANGE_FOREVER ? NULL : &end;
	struct poll_wqueues waiter;
	bool over = false;

	poll_initwait(&waiter);
	/* waiter.error: it is in no queue of the other file's, which could not wake it. */
	while (!vgpu_exchange_woken(x, &waiter.pt) && !over && !waiter.error && !signal_pending(current)) {
		/* It is in the queues of both. */
		waiter.pt._qproc = NULL;
		set_current_state(TASK_INTERRUPTIBLE);
		if (!waiter.triggered)
			over = !schedule_hrtimeout_range(limit, current->timer_slack_ns, HRTIMER_MODE_ABS);
		__set_current_state(TASK_RUNNING);
		/* Before the next look, so that what comes after that is not missed. */
		smp_store_mb(waiter.triggered, 0);
	}
	poll_freewait(&waiter);
}

/* In an epoch that is over there are no requests, but events. */
static int vgpu_exchange_find(struct vgpu_exchange *x)
{
	int ret = vgpu_exchange_poll(x);

	if (ret || !x->arg.wait_ms || vgpu_exchange_found(x))
		return ret;
	/* A queue that may have more has not asked the guest to ring: a request got no memory. */
	if (x->arg.queues && !x->arg.state)
		return 0;
	vgpu_exchange_wait(x);
	return vgpu_exchange_round(x, false, false);
}

/*
 * A request that is larger than the bounce buffer gets its own. The guest may change it meanwhile, so
 * what is copied is bounded by the buffer, never by the chain's content.
 */
static int vgpu_exchange_enlarge(struct vgpu_exchange *x)
{
	struct vgpu_batch *batch = &x->batch;
	u64 size = min3(x->arg.buf_size, batch->wanted, (u64)VGPU_REQUEST_MAX);
	void *buf = kvmalloc(size, GFP_KERNEL_ACCOUNT);

	/* The request stays, and the call has its events. */
	if (!buf)
		return 0;
	batch->buf = buf;
	batch->room = size;
	batch->truncate = x->arg.flags & VGPU_EXCHANGE_TRUNCATE;
	batch->wanted = 0;
	x->arg.nrequests = 1;
	return vgpu_exchange_round(x, false, false);
}

static bool vgpu_exchange_needs_more(const struct vgpu_exchange *x)
{
	const struct vgpu_batch *batch = &x->batch;

	if (!batch->wanted || batch->n || x->arg.buf_size <= batch->room)
		return false;
	return batch->wanted <= x->arg.buf_size || x->arg.flags & VGPU_EXCHANGE_TRUNCATE;
}

static int vgpu_exchange_serve(struct vgpu_exchange *x)
{
	struct vgpu *vgpu = vgpu_from_file(x->file);
	struct vgpu_batch *batch = &x->batch;
	int ret;

	batch->buf = vgpu->bounce;
	batch->room = min_t(u64, x->arg.buf_size, VGPU_BOUNCE_SIZE);
	batch->truncate = x->arg.flags & VGPU_EXCHANGE_TRUNCATE && x->arg.buf_size <= VGPU_BOUNCE_SIZE;
	batch->requests = x->requests;
	ret = vgpu_exchange_find(x);
	if (!ret && vgpu_exchange_needs_more(x))
		ret = vgpu_exchange_enlarge(x);
	x->arg.nrequests = batch->n;
	x->arg.wanted = batch->wanted;
	if (batch->broken)
		x->arg.state |= VGPU_EXCHANGE_BROKEN;
	return ret;
}

static int vgpu_exchange_put(const struct vgpu_exchange *x, void __user *user)
{
	const struct vgpu_queue_exchange *arg = &x->arg;

	if (copy_to_user(u64_to_user_ptr(arg->answers), x->answers, arg->nanswers * sizeof(x->answers[0])) ||
	    copy_to_user(u64_to_user_ptr(arg->buf), x->batch.buf, x->batch.used) ||
	    copy_to_user(u64_to_user_ptr(arg->requests), x->requests, arg->nrequests * sizeof(x->requests[0])))
		return -EFAULT;
	return copy_to_user(user, arg, sizeof(*arg)) ? -EFAULT : 0;
}

/* Nobody knows the tokens, so nobody would answer. */
static void vgpu_exchange_abandon(const struct vgpu_exchange *x)
{
	struct vgpu *vgpu = vgpu_from_file(x->file);
	u32 i;

	mutex_lock(&vgpu->lock);
	vgpu_mem_begin(vgpu);
	for (i = 0; i < x->batch.n && x->arg.epoch == vgpu->epoch; i++)
		vgpu_queue_abandon(vgpu, x->requests[i].queue, x->requests[i].token);
	vgpu_mem_end(vgpu);
	mutex_unlock(&vgpu->lock);
}

static int vgpu_exchange_all(struct vgpu_exchange *x, void __user *user)
{
	struct vgpu *vgpu = vgpu_from_file(x->file);
	int ret = vgpu_exchange_serve(x) ?: vgpu_exchange_put(x, user);

	if (ret)
		vgpu_exchange_abandon(x);
	if (x->batch.buf != vgpu->bounce)
		kvfree(x->batch.buf);
	return ret;
}

static long vgpu_exchange_call(struct vgpu_exchange *x, void __user *user)
{
	struct vgpu *vgpu = vgpu_from_file(x->file);
	bool takes = x->arg.nrequests;
	int ret = vgpu_exchange_copy_answers(x);

	if (ret)
		return ret;
	if ((x->arg.wait_ms && x->arg.wait_fd >= 0) || x->arg.flags & VGPU_EXCHANGE_CONNECTED) {
		x->other = fget(x->arg.wait_fd);
		if (!x->other)
			return -EBADF;
	}
	if (x->arg.flags & VGPU_EXCHANGE_CONNECTED && vfs_poll(x->other, NULL) & (EPOLLHUP | EPOLLERR))
		return -EPIPE;
	/* A thread that only answers does not wait for one that looks for requests. */
	if (takes && mutex_lock_killable(&vgpu->pop_lock))
		return -EINTR;
	ret = vgpu_exchange_all(x, user);
	if (takes)
		mutex_unlock(&vgpu->pop_lock);
	return ret;
}

long vgpu_ioctl_exchange(struct file *file, void __user *user)
{
	struct vgpu_exchange *x = kzalloc(sizeof(*x), GFP_KERNEL_ACCOUNT);
	long ret = -EFAULT;
	u32 i;

	if (!x)
		return -ENOMEM;
	x->file = file;
	if (!copy_from_user(&x->arg, user, sizeof(x->arg))) {
		x->arg.state = 0;
		x->arg.wanted = 0;
		memset(&x->arg.event, 0, sizeof(x->arg.event));
		ret = vgpu_check_exchange(&x->arg) ?: vgpu_exchange_call(x, user);
	}
	if (x->other)
		fput(x->other);
	for (i = 0; i < VGPU_EXCHANGE_MAX; i++)
		kvfree(x->responses[i]);
	kfree(x);
	return ret;
}
