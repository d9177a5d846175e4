// SPDX-License-Identifier: MIT
#include "state.h"

#include "context.h"
#include "context_kind.h"
#include "control.h"
#include "engine.h"
#include "exit_code.h"
#include "parking.h"
#include "pixels.h"
#include "resource.h"
#include "scanout.h"
#include "stuck.h"

#include <string.h>

enum record_kind {
    RECORD_CONTEXT = 1,
    RECORD_RESOURCE = 2,
    RECORD_REQUEST = 3,
    RECORD_CURSOR = 4,
};

struct record {
    uint32_t kind;
    uint32_t size;
};

struct context_record {
    uint32_t id;
    uint32_t capset;
};

struct resource_record {
    uint32_t id;
    uint32_t kind;
    uint64_t size;
    uint32_t blob_flags;
    uint32_t reserved;
};

struct cursor_record {
    uint32_t format;
    uint32_t width, height;
    int32_t x, y;
};

/* A larger piece of guest memory is written as several. */
#define MOST_ENTRY_BYTES (1u << 30)

/* A record of @head and, behind it, @tail. */
static void put_record(GByteArray *out, uint32_t kind, const void *head, size_t head_size,
                       const void *tail, size_t tail_size)
{
    struct record record = {.kind = kind, .size = (uint32_t)(head_size + tail_size)};

    g_byte_array_append(out, (const uint8_t *)&record, sizeof(record));
    g_byte_array_append(out, head, (guint)head_size);
    if (tail_size)
        g_byte_array_append(out, tail, (guint)tail_size);
}

#define PUT_REQUEST(out, cmd) put_record(out, RECORD_REQUEST, cmd, sizeof(*(cmd)), NULL, 0)

static void save_contexts(const struct engine *engine, GByteArray *out)
{
    GHashTableIter iter;
    void *value;

    g_hash_table_iter_init(&iter, engine->contexts);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        const struct context *context = value;
        struct context_record record = {.id = context->id,
                                        .capset = context->kind ? context->kind->capset : 0};

        /* The guest gets an error for the parked command, and then uses the id again. */
        if (!parking_has(&engine->parking, VIRTIO_GPU_CMD_CTX_DESTROY, context->id))
            put_record(out, RECORD_CONTEXT, &record, sizeof(record), NULL, 0);
    }
}

/* The guest's memory, as it named it. */
static GArray *entries_of(const struct backing *backing)
{
    GArray *entries = g_array_new(FALSE, TRUE, sizeof(struct virtio_gpu_mem_entry));

    for (uint32_t i = 0; i < backing->nr_entries; i++) {
        uint64_t addr = backing->entries[i].iova, left = backing->entries[i].size;

        while (left) {
            struct virtio_gpu_mem_entry entry = {.addr = addr};

            entry.length = (uint32_t)MIN(left, MOST_ENTRY_BYTES);
            addr += entry.length;
            left -= entry.length;
            g_array_append_val(entries, entry);
        }
    }
    return entries;
}

static void save_image(const struct resource *resource, GByteArray *out)
{
    g_autoptr(GArray) entries = entries_of(&resource->backing);
    struct virtio_gpu_resource_create_2d create = {
        .hdr.type = VIRTIO_GPU_CMD_RESOURCE_CREATE_2D,
        .resource_id = resource->id,
        .format = resource->format ? pixel_format_name(resource->format)
                                   : VIRTIO_GPU_FORMAT_B8G8R8X8_UNORM,
        .width = resource->width,
        .height = resource->height,
    };
    struct virtio_gpu_resource_attach_backing attach = {
        .hdr.type = VIRTIO_GPU_CMD_RESOURCE_ATTACH_BACKING,
        .resource_id = resource->id,
        .nr_entries = entries->len,
    };
    struct virtio_gpu_transfer_to_host_2d transfer = {
        .hdr.type = VIRTIO_GPU_CMD_TRANSFER_TO_HOST_2D,
        .r = {.width = resource->width, .height = resource->height},
        .resource_id = resource->id,
    };

    PUT_REQUEST(out, &create);
    if (!resource->backing.iov.iov_base)
        return;
    put_record(out, RECORD_REQUEST, &attach, sizeof(attach), entries->data,
               entries->len * sizeof(struct virtio_gpu_mem_entry));
    PUT_REQUEST(out, &transfer);
}

static void save_guest_blob(const struct resource *resource, GByteArray *out)
{
    g_autoptr(GArray) entries = entries_of(&resource->backing);
    struct virtio_gpu_resource_create_blob create = {
        .hdr.type = VIRTIO_GPU_CMD_RESOURCE_CREATE_BLOB,
        .resource_id = resource->id,
        .blob_mem = VIRTIO_GPU_BLOB_MEM_GUEST,
        .blob_flags = resource->blob_flags,
        .nr_entries = entries->len,
        .size = resource->size,
    };

    put_record(out, RECORD_REQUEST, &create, sizeof(create), entries->data,
               entries->len * sizeof(struct virtio_gpu_mem_entry));
}

static void save_resources(const struct engine *engine, GByteArray *out)
{
    GHashTableIter iter;
    void *value;

    g_hash_table_iter_init(&iter, engine->resources);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        const struct resource *resource = value;
        struct resource_record lost = {
            .id = resource->id,
            .kind = resource->kind,
            .size = resource->size,
            .blob_flags = resource->blob_flags,
        };

        if (parking_has(&engine->parking, VIRTIO_GPU_CMD_RESOURCE_UNREF, resource->id))
            continue;
        if (resource->kind == RESOURCE_2D)
            save_image(resource, out);
        else if (resource->kind == RESOURCE_BLOB && resource->only_guest)
            save_guest_blob(resource, out);
        else
            put_record(out, RECORD_RESOURCE, &lost, sizeof(lost), NULL, 0);
    }
}

static void save_scanout(const struct scanout *scanout, GByteArray *out)
{
    struct virtio_gpu_set_scanout set = {
        .hdr.type = VIRTIO_GPU_CMD_SET_SCANOUT,
        .r = scanout->rect,
    };
    struct virtio_gpu_set_scanout_blob set_blob = {
        .hdr.type = VIRTIO_GPU_CMD_SET_SCANOUT_BLOB,
        .r = scanout->rect,
        .width = scanout->surface.width,
        .height = scanout->surface.height,
        .strides = {scanout->surface.stride},
        .offsets = {(uint32_t)scanout->surface.offset},
    };

    if (!scanout->source)
        return;
    set.resource_id = set_blob.resource_id = scanout->source->id;
    set_blob.format = pixel_format_name(scanout->surface.format);
    if (scanout->source->kind == RESOURCE_2D)
        PUT_REQUEST(out, &set);
    else if (scanout->source->only_guest)
        PUT_REQUEST(out, &set_blob);
}

static void save_cursor(const struct cursor *cursor, GByteArray *out)
{
    struct cursor_record record = {
        .width = cursor->width,
        .height = cursor->height,
        .x = cursor->x,
        .y = cursor->y,
    };

    if (!cursor->format)
        return;
    record.format = pixel_format_name(cursor->format);
    put_record(out, RECORD_CURSOR, &record, sizeof(record), cursor->image,
               (size_t)cursor->width * cursor->height * PIXEL_BYTES);
}

void state_save(struct engine *engine, GByteArray *out)
{
    uint32_t version = STATE_VERSION;

    g_byte_array_append(out, (const uint8_t *)&version, sizeof(version));
    save_contexts(engine, out);
    save_resources(engine, out);
    save_scanout(&engine->scanout, out);
    save_cursor(&engine->scanout.cursor, out);
}

static bool load_context(struct engine *engine, const uint8_t *data, size_t size)
{
    struct context_record record;

    if (size != sizeof(record))
        return false;
    memcpy(&record, data, sizeof(record));
    return context_add_lost(engine, record.id, record.capset);
}

/* It has neither memory nor virglrenderer's object, whose calls do nothing with an unknown id. */
static bool load_resource(struct engine *engine, const uint8_t *data, size_t size)
{
    struct resource_record record;
    struct resource *resource;

    if (size != sizeof(record))
        return false;
    memcpy(&record, data, sizeof(record));
    if (record.kind != RESOURCE_BLOB ||
        resource_check_new_id(engine, record.id) != VIRTIO_GPU_RESP_OK_NODATA)
        return false;
    resource = resource_new(engine, record.id, record.kind);
    resource->size = record.size;
    resource->blob_flags = record.blob_flags;
    resource->lost = true;
    resource_add(resource);
    return true;
}

/* Commands that state_save() writes: none reaches a context, or makes the host's memory a blob. */
static bool may_be_repeated(const struct request *request)
{
    const struct virtio_gpu_resource_create_blob *blob = (const void *)request->data;

    switch (request->hdr.type) {
    case VIRTIO_GPU_CMD_RESOURCE_CREATE_2D:
    case VIRTIO_GPU_CMD_RESOURCE_ATTACH_BACKING:
    case VIRTIO_GPU_CMD_TRANSFER_TO_HOST_2D:
    case VIRTIO_GPU_CMD_SET_SCANOUT:
    case VIRTIO_GPU_CMD_SET_SCANOUT_BLOB:
        return true;
    case VIRTIO_GPU_CMD_RESOURCE_CREATE_BLOB:
        return request->size >= sizeof(*blob) && blob->blob_mem == VIRTIO_GPU_BLOB_MEM_GUEST;
    default:
        return false;
    }
}

static bool load_request(struct engine *engine, const uint8_t *data, size_t size)
{
    g_autofree uint8_t *aligned = g_memdup2(data, size);
    struct request request = {.data = aligned, .size = size, .epoch = engine->epoch};
    struct resource *resource;

    if (size < sizeof(request.hdr))
        return false;
    memcpy(&request.hdr, aligned, sizeof(request.hdr));
    if (!may_be_repeated(&request))
        return false;
    /* An image has one content. A made-up state could have it copied without end. */
    resource = resource_find(engine, control_resource_of(&request));
    if (request.hdr.type == VIRTIO_GPU_CMD_TRANSFER_TO_HOST_2D && resource) {
        if (resource->restored)
            return false;
        resource->restored = true;
    }
    return control_execute(engine, &request) < VIRTIO_GPU_RESP_ERR_UNSPEC;
}

static bool load_cursor(struct engine *engine, const uint8_t *data, size_t size)
{
    struct cursor cursor = {0};
    struct cursor_record record;

    if (size < sizeof(record))
        return false;
    memcpy(&record, data, sizeof(record));
    if (record.width > CURSOR_SIDE || record.height > CURSOR_SIDE ||
        size - sizeof(record) != (size_t)record.width * record.height * PIXEL_BYTES)
        return false;
    cursor.format = pixel_format_find(record.format);
    cursor.width = record.width;
    cursor.height = record.height;
    cursor.x = record.x;
    cursor.y = record.y;
    memcpy(cursor.image, data + sizeof(record), size - sizeof(record));
    scanout_show_cursor(engine, &cursor);
    return true;
}

static bool load_record(struct engine *engine, uint32_t kind, const uint8_t *data, size_t size)
{
    switch (kind) {
    case RECORD_CONTEXT:
        return load_context(engine, data, size);
    case RECORD_RESOURCE:
        return load_resource(engine, data, size);
    case RECORD_REQUEST:
        return load_request(engine, data, size);
    case RECORD_CURSOR:
        return load_cursor(engine, data, size);
    default:
        return false;
    }
}

static bool set_state_error(GError **error, const char *why)
{
    g_set_error(error, ENGINE_ERROR, EXIT_CODE_DEVICE, "the saved state of the VM's GPU %s", why);
    return false;
}

bool state_load(struct engine *engine, const uint8_t *data, size_t size, GError **error)
{
    unsigned int failed = 0, count = 0;
    struct record record;
    uint32_t version;

    if (size < sizeof(version))
        return set_state_error(error, "is damaged");
    memcpy(&version, data, sizeof(version));
    if (version != STATE_VERSION)
        return set_state_error(error, "was written by another version of vgpu-engine");
    data += sizeof(version);
    size -= sizeof(version);
    for (; size; data += record.size, size -= record.size, count++) {
        if (size < sizeof(record))
            return set_state_error(error, "is damaged");
        memcpy(&record, data, sizeof(record));
        data += sizeof(record);
        size -= sizeof(record);
        if (record.size > size)
            return set_state_error(error, "is damaged");
        failed += !load_record(engine, record.kind, data, record.size);
        stuck_watch_progress();
    }
    g_message("the VM was saved elsewhere: %u of %u parts of its GPU's state are there",
              count - failed, count);
    return true;
}
