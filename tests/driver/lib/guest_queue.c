/* SPDX-License-Identifier: MIT */
/* The guest's virtio-gpu driver: chains and requests. */
#include <errno.h>
#include <glib.h>
#include <string.h>

#include "driver_test.h"
#include "virtio_guest.h"

#define barrier() __sync_synchronize()

static uint16_t *used_event(GuestQueue *q)
{
    return (uint16_t *)&q->avail->ring[q->size];
}

static uint16_t *avail_event(GuestQueue *q)
{
    return (uint16_t *)&q->used->ring[q->size];
}

static void fill_desc(struct vring_desc *desc, const GuestBuf *buf, uint16_t flags)
{
    desc->addr = buf->iova;
    desc->len = buf->len;
    desc->flags = flags;
}

static int add_indirect(GuestQueue *q, const GuestBuf *out, unsigned nout, const GuestBuf *in,
                        unsigned nin)
{
    unsigned total = nout + nin;
    uint16_t head = q->free_head;
    uint64_t iova;
    struct vring_desc *table;

    if (!q->num_free)
        return -ENOSPC;
    table = guest_alloc(q->guest, total * sizeof(*table), 16, &iova);
    for (unsigned i = 0; i < total; i++) {
        bool write = i >= nout;

        fill_desc(
            &table[i], write ? &in[i - nout] : &out[i],
            (uint16_t)((write ? VRING_DESC_F_WRITE : 0) | (i + 1 < total ? VRING_DESC_F_NEXT : 0)));
        table[i].next = (uint16_t)(i + 1);
    }
    q->free_head = q->desc[head].next;
    q->num_free--;
    fill_desc(&q->desc[head], &(GuestBuf){.iova = iova, .len = (uint32_t)(total * sizeof(*table))},
              VRING_DESC_F_INDIRECT);
    return head;
}

static int add_direct(GuestQueue *q, const GuestBuf *out, unsigned nout, const GuestBuf *in,
                      unsigned nin)
{
    unsigned total = nout + nin;
    uint16_t head = q->free_head, at = head;

    if (q->num_free < total)
        return -ENOSPC;
    for (unsigned i = 0; i < total; i++) {
        bool write = i >= nout;
        uint16_t next = q->desc[at].next;

        fill_desc(
            &q->desc[at], write ? &in[i - nout] : &out[i],
            (uint16_t)((write ? VRING_DESC_F_WRITE : 0) | (i + 1 < total ? VRING_DESC_F_NEXT : 0)));
        at = next;
    }
    q->free_head = at;
    q->num_free = (uint16_t)(q->num_free - total);
    return head;
}

void guest_queue_offer(GuestQueue *q, uint16_t head)
{
    q->avail->ring[q->avail->idx % q->size] = head;
    barrier();
    q->avail->idx++;
}

int guest_queue_add(GuestQueue *q, const GuestBuf *out, unsigned nout, const GuestBuf *in,
                    unsigned nin, bool indirect)
{
    int head = indirect ? add_indirect(q, out, nout, in, nin) : add_direct(q, out, nout, in, nin);

    if (head >= 0)
        guest_queue_offer(q, (uint16_t)head);
    return head;
}

void guest_queue_kick_always(GuestQueue *q)
{
    guest_reg_write(q->guest, &q->guest->notify, q->notify_offset, q->index, 2);
    q->last_kick = q->avail->idx;
}

bool guest_queue_kick(GuestQueue *q)
{
    uint16_t old = q->last_kick, new = q->avail->idx;
    bool wanted;

    barrier();
    if (q->event_idx)
        wanted = vring_need_event(*(volatile uint16_t *)avail_event(q), new, old);
    else
        wanted = !(*(volatile uint16_t *)&q->used->flags & VRING_USED_F_NO_NOTIFY);
    q->last_kick = new;
    if (wanted)
        guest_queue_kick_always(q);
    return wanted;
}

static void free_chain(GuestQueue *q, uint16_t head)
{
    uint16_t at = head, count = 1;

    while (q->desc[at].flags & VRING_DESC_F_NEXT && count < q->size) {
        at = q->desc[at].next;
        count++;
    }
    q->desc[at].next = q->free_head;
    q->free_head = head;
    q->num_free = (uint16_t)(q->num_free + count);
}

int guest_queue_take(GuestQueue *q, uint32_t *len)
{
    const struct vring_used_elem *elem;
    uint16_t head;

    if (*(volatile uint16_t *)&q->used->idx == q->last_used)
        return -EAGAIN;
    barrier();
    elem = &q->used->ring[q->last_used % q->size];
    head = (uint16_t)elem->id;
    if (len)
        *len = elem->len;
    q->last_used++;
    free_chain(q, head);
    return head;
}

int guest_queue_wait(GuestQueue *q, uint32_t *len, int timeout_ms)
{
    int head = -EAGAIN;

    if (!wait_until((head = guest_queue_take(q, len)) != -EAGAIN, timeout_ms))
        return -ETIMEDOUT;
    return head;
}

void guest_queue_want_interrupt(GuestQueue *q, bool wanted)
{
    /*
     * Half the index range: the device may not have checked yet whether its last entry was
     * requested.
     */
    if (q->event_idx)
        *used_event(q) = (uint16_t)(wanted ? q->last_used : q->last_used + 0x8000);
    else
        q->avail->flags = wanted ? 0 : VRING_AVAIL_F_NO_INTERRUPT;
    barrier();
}

int guest_submit(Guest *guest, unsigned queue, const void *req, size_t req_len, size_t resp_size,
                 void **resp)
{
    GuestQueue *q = &guest->queue[queue];
    GuestBuf out = {.len = (uint32_t)req_len}, in = {.len = (uint32_t)resp_size};
    int head;

    memcpy(guest_alloc(guest, req_len, 16, &out.iova), req, req_len);
    *resp = resp_size ? guest_alloc(guest, resp_size, 16, &in.iova) : NULL;
    head = guest_queue_add(q, &out, 1, &in, resp_size ? 1 : 0, false);
    if (head >= 0)
        guest_queue_kick(q);
    return head;
}

int guest_request(Guest *guest, unsigned queue, const void *req, size_t req_len, void *resp,
                  size_t resp_size, uint32_t *resp_len)
{
    GuestQueue *q = &guest->queue[queue];
    uint32_t len = 0;
    void *answer;
    int head = guest_submit(guest, queue, req, req_len, resp_size, &answer);
    int used;

    if (head < 0)
        return head;
    used = guest_queue_wait(q, &len, GUEST_TIMEOUT_MS);
    if (used < 0)
        return used;
    g_assert_cmpint(used, ==, head);
    if (resp_size)
        memcpy(resp, answer, resp_size);
    if (resp_len)
        *resp_len = len;
    return 0;
}
