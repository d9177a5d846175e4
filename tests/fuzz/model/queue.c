/* SPDX-License-Identifier: MIT */
/* A guest that fills its ring as it likes and changes memory while the device reads it. */
#include "guest.h"
#include "lost.h"

static const struct vgpu_guest_ops ops = {guest_read, guest_write};
static struct vgpu_vq_desc table[VGPU_VQ_MAX_DESCS];

static void start(struct vgpu_vq *vq, u8 features)
{
    vgpu_vq_reset(vq);
    vq->avail = AVAIL;
    vq->used = USED;
    vq->size = RING;
    vq->enabled = true;
    vq->event_idx = features & 1;
    vq->indirect = features & 2;
    INVARIANT(vgpu_vq_valid(vq));
}

static void check_chain(const struct vgpu_vq_chain *chain)
{
    u64 sum = 0;

    INVARIANT(chain->head < RING && chain->nwrite <= VGPU_VQ_MAX_WRITE_SEGS);
    for (u16 i = 0; i < chain->nwrite; i++) {
        const struct vgpu_vq_seg *seg = &chain->write[i];

        INVARIANT(seg->len && seg->iova + (seg->len - 1) >= seg->iova);
        sum += seg->len;
    }
    INVARIANT(sum == chain->response_size && sum + chain->request_size <= U32_MAX);
}

static void pop(struct vgpu_vq *vq, struct guest *g, struct vgpu_vq_chain *chains)
{
    const struct vgpu_vq before = *vq;
    size_t size = take8(g->in);
    bool truncate = take8(g->in) & 1;
    u8 *buf = malloc(size + 1); /* ASan sees what goes beyond */
    struct vgpu_vq_chain chain;
    int ret;

    if (!buf)
        return;
    ret = vgpu_vq_pop(vq, &ops, g, table, &chain, buf + 1, size, truncate);
    free(buf);
    INVARIANT(ret == 0 || ret == -EAGAIN || ret == -EMSGSIZE || ret == -EPROTO);
    INVARIANT(vq->broken == (ret == -EPROTO));
    INVARIANT(vq->next_avail == (u16)(before.next_avail + !ret));
    if (ret == -EMSGSIZE)
        INVARIANT(!truncate && chain.request_size > size);
    if (ret) {
        INVARIANT(vq->inflight[0] == before.inflight[0]);
        return;
    }
    check_chain(&chain);
    INVARIANT(vq->inflight[0] == (before.inflight[0] ^ 1ULL << chain.head));
    INVARIANT(truncate || chain.request_size <= size);
    chains[chain.head] = chain;
}

static void push(struct vgpu_vq *vq, struct guest *g, struct vgpu_vq_chain *chains)
{
    const struct vgpu_vq before = *vq;
    static const u8 resp[256];
    const struct vgpu_vq_chain *chain = &chains[take8(g->in) % RING];
    bool known = before.inflight[0] & 1ULL << chain->head;
    size_t size = take8(g->in);
    bool interrupt;
    int ret = vgpu_vq_push(vq, &ops, g, chain, resp, size, &interrupt);

    INVARIANT(!(ret && interrupt));
    if (before.broken)
        INVARIANT(ret == -EPROTO);
    else if (!known)
        INVARIANT(ret == -ENOENT);
    else if (size > chain->response_size)
        INVARIANT(ret == -EMSGSIZE);
    else
        INVARIANT((ret == -EPROTO) == vq->broken);
    if (!ret)
        INVARIANT(vq->next_used == (u16)(before.next_used + 1));
}

static void drain(struct vgpu_vq *vq, struct guest *g)
{
    struct vgpu_vq_chain chain;
    u16 before = vq->next_used;
    bool interrupt;
    int ret = vgpu_lost_drain(vq, &ops, g, table, &chain, &interrupt);

    INVARIANT(ret == 0 || ret == -EAGAIN || ret == -EPROTO);
    INVARIANT(vq->broken == (ret == -EPROTO));
    INVARIANT((u16)(vq->next_used - before) <= RING);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
    struct vgpu_vq_chain chains[RING] = {0};
    struct input in = {data, size};
    struct guest g = {.in = &in};
    struct vgpu_vq vq;

    start(&vq, take8(&in));
    while (in.left) {
        u8 op = take8(&in) % 8;

        if (op == 5)
            pop(&vq, &g, chains);
        else if (op == 6)
            push(&vq, &g, chains);
        else if (op == 7)
            drain(&vq, &g);
        else
            change_guest(&g, op);
    }
    return 0;
}
