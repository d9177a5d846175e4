/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Tracepoints of the data path, for perf and ftrace (/sys/kernel/tracing/events/mdev_vgpu).
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM mdev_vgpu

#if !defined(VGPU_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define VGPU_TRACE_H

#include <linux/tracepoint.h>

DECLARE_EVENT_CLASS(vgpu_queue,
	TP_PROTO(int minor, u32 queue),
	TP_ARGS(minor, queue),
	TP_STRUCT__entry(
		__field(int, minor)
		__field(u32, queue)
	),
	TP_fast_assign(
		__entry->minor = minor;
		__entry->queue = queue;
	),
	TP_printk("vgpu=%d queue=%u", __entry->minor, __entry->queue)
);

/* The guest's driver rang the doorbell. */
DEFINE_EVENT(vgpu_queue, vgpu_doorbell,
	TP_PROTO(int minor, u32 queue), TP_ARGS(minor, queue));

/* The guest gets an interrupt of a queue. */
DEFINE_EVENT(vgpu_queue, vgpu_interrupt,
	TP_PROTO(int minor, u32 queue), TP_ARGS(minor, queue));

DECLARE_EVENT_CLASS(vgpu_chain,
	TP_PROTO(int minor, u32 queue, u32 token, int ret),
	TP_ARGS(minor, queue, token, ret),
	TP_STRUCT__entry(
		__field(int, minor)
		__field(u32, queue)
		__field(u32, token)
		__field(int, ret)
	),
	TP_fast_assign(
		__entry->minor = minor;
		__entry->queue = queue;
		__entry->token = token;
		__entry->ret = ret;
	),
	TP_printk("vgpu=%d queue=%u token=%#x ret=%d", __entry->minor, __entry->queue,
		  __entry->token, __entry->ret)
);

/* The driver looked for a request; ret is 0 if there was one. */
DEFINE_EVENT(vgpu_chain, vgpu_pop,
	TP_PROTO(int minor, u32 queue, u32 token, int ret), TP_ARGS(minor, queue, token, ret));

/* The engine answered a request. */
DEFINE_EVENT(vgpu_chain, vgpu_push,
	TP_PROTO(int minor, u32 queue, u32 token, int ret), TP_ARGS(minor, queue, token, ret));

/*
 * The VMM's mapping of the window had no page at @offset; @pages were looked up and mapped around
 * it.
 */
TRACE_EVENT(vgpu_window_fault,
	TP_PROTO(int minor, u64 offset, unsigned int pages),
	TP_ARGS(minor, offset, pages),
	TP_STRUCT__entry(
		__field(int, minor)
		__field(u64, offset)
		__field(unsigned int, pages)
	),
	TP_fast_assign(
		__entry->minor = minor;
		__entry->offset = offset;
		__entry->pages = pages;
	),
	TP_printk("vgpu=%d offset=%#llx pages=%u", __entry->minor, __entry->offset, __entry->pages)
);

#endif /* VGPU_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
