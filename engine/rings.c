// SPDX-License-Identifier: MIT
#include "rings.h"

#include "mapping.h"
#include "venus_rings.h"

#include <virglrenderer.h>

struct served {
    struct engine *engine;
    uint32_t ctx_id;
    uint64_t maker;
};

static void *map(void *data, uint32_t resource, uint64_t *size)
{
    const struct served *served = data;

    return mapping_get_shm(served->engine, served->maker, resource, size);
}

static void unmap(void *data, uint32_t resource)
{
    const struct served *served = data;

    mapping_put_shm(served->engine, resource);
}

/* A worker that has ended is noticed by its connection. */
static void send(void *data, uint32_t *commands, uint32_t words)
{
    const struct served *served = data;

    virgl_renderer_submit_cmd(commands, (int)served->ctx_id, (int)words);
}

static const struct venus_ring_access ring_access = {map, unmap, send};

bool rings_wake(struct engine *engine, uint32_t ctx_id, uint64_t maker,
                const struct venus_rings *rings)
{
    struct served served = {engine, ctx_id, maker};

    return venus_rings_wake(rings, &ring_access, &served);
}

bool rings_rest(struct engine *engine, uint64_t maker, const struct venus_rings *rings)
{
    struct served served = {engine, 0, maker};

    return venus_rings_rest(rings, &ring_access, &served);
}

void rings_fail(struct engine *engine, uint64_t maker, const struct venus_rings *rings)
{
    struct served served = {engine, 0, maker};

    venus_rings_fail(rings, &ring_access, &served);
}
