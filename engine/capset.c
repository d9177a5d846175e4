// SPDX-License-Identifier: MIT
#include "capset.h"

#include "answer.h"
#include "cuda_context.h"
#include "engine.h"

#include "wire/control.h"

#include <string.h>
#include <virglrenderer.h>

static void capset_fill(const struct engine *engine, uint32_t id, uint32_t version, void *data)
{
    if (id == CONTROL_CAPSET)
        cuda_context_fill_caps(engine, data);
    else
        virgl_renderer_fill_caps(id, version, data);
}

void capset_collect(struct engine *engine)
{
    struct engine_capset venus = {.id = VIRTIO_GPU_CAPSET_VENUS};

    engine->num_capsets = 0;
    if (engine->has_renderer)
        virgl_renderer_get_cap_set(venus.id, &venus.max_version, &venus.max_size);
    if (venus.max_size > 0 && venus.max_size <= ENGINE_MAX_CAPSET_SIZE)
        engine->capsets[engine->num_capsets++] = venus;
    if (engine->cuda.program.path)
        engine->capsets[engine->num_capsets++] =
            (struct engine_capset){CONTROL_CAPSET, CONTROL_MAJOR, sizeof(struct control_caps)};
}

uint64_t capset_hash(const struct engine *engine, uint32_t version)
{
    g_autoptr(GChecksum) checksum = g_checksum_new(G_CHECKSUM_SHA256);
    uint8_t digest[32];
    size_t size = sizeof(digest);
    uint64_t hash;

    g_checksum_update(checksum, (const uint8_t *)&version, sizeof(version));
    for (uint32_t i = 0; i < engine->num_capsets; i++) {
        const struct engine_capset *capset = &engine->capsets[i];
        g_autofree uint8_t *data = g_malloc0(capset->max_size);

        capset_fill(engine, capset->id, capset->max_version, data);
        g_checksum_update(checksum, (const uint8_t *)capset, sizeof(*capset));
        g_checksum_update(checksum, data, capset->max_size);
    }
    g_checksum_get_digest(checksum, digest, &size);
    memcpy(&hash, digest, sizeof(hash));
    return hash | 1;
}

uint32_t capset_cmd_get_info(struct engine *engine, const struct request *request)
{
    const struct virtio_gpu_get_capset_info *cmd = (const void *)request->data;
    struct virtio_gpu_resp_capset_info *response;
    const struct engine_capset *capset;

    if (cmd->capset_index >= engine->num_capsets)
        return VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;

    capset = &engine->capsets[cmd->capset_index];
    response = answer_begin(engine, sizeof(*response));
    response->capset_id = capset->id;
    response->capset_max_version = capset->max_version;
    response->capset_max_size = capset->max_size;
    return VIRTIO_GPU_RESP_OK_CAPSET_INFO;
}

uint32_t capset_cmd_get(struct engine *engine, const struct request *request)
{
    const struct virtio_gpu_get_capset *cmd = (const void *)request->data;

    for (uint32_t i = 0; i < engine->num_capsets; i++) {
        const struct engine_capset *capset = &engine->capsets[i];
        struct virtio_gpu_resp_capset *response;

        if (capset->id != cmd->capset_id || cmd->capset_version > capset->max_version)
            continue;
        response = answer_begin(engine, sizeof(*response) + capset->max_size);
        capset_fill(engine, capset->id, cmd->capset_version, response->capset_data);
        return VIRTIO_GPU_RESP_OK_CAPSET;
    }
    return VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;
}
