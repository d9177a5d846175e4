// SPDX-License-Identifier: MIT
/*
 * Blobs: memory of the GPU, or of the host if the id is 0, that the client maps. It gets a dma-buf,
 * or a memfd that is sealed so that it cannot shrink under the worker.
 */
#include "session.h"

#include "guard_limits.h"
#include "vtest.h"

#include <fcntl.h>
#include <unistd.h>
#include <virglrenderer.h>

#define BLOB_FLAGS                                                                                 \
    (VIRGL_RENDERER_BLOB_FLAG_USE_MAPPABLE | VIRGL_RENDERER_BLOB_FLAG_USE_SHAREABLE |              \
     VIRGL_RENDERER_BLOB_FLAG_USE_CROSS_DEVICE)

/**
 * struct blob
 * @shm_bytes: 0: memory of the GPU, which the governor counts
 * @map, @map_size: a ring's memory; NULL: it is not mapped
 * @kept: its number of the keeper's; 0: the keeper does not have it
 */
struct blob {
    uint64_t shm_bytes;
    void *map;
    uint64_t map_size;
    uint32_t kept;
};

/*
 * Mesa takes number 0 and a descriptor that cannot be mapped for out of memory. So a client that
 * requests too much gets the usual error, and continues.
 */
static bool refuse_blob(struct session *session, const char *why)
{
    const uint32_t none = 0;
    int fds[2];
    bool ok;

    if (!session->refused)
        g_message("a client, %s, is refused memory: %s", session->name, why);
    session->refused = true;
    if (pipe2(fds, O_CLOEXEC) < 0)
        return session_fail(session, "there are no descriptors left");
    close(fds[1]);
    ok = session_answer_fd(session, VTEST_RESOURCE_CREATE_BLOB, &none, 1, fds[0]);
    close(fds[0]);
    return ok;
}

/* No benign client requests this. */
static const char *find_fault(const struct vtest_blob *request)
{
    uint64_t size = vtest_u64(request->size);

    if (request->type != VIRGL_RENDERER_BLOB_MEM_HOST3D)
        return "it requests a blob of a kind that is not offered";
    if (request->flags & ~BLOB_FLAGS)
        return "it requests a blob with unknown flags";
    if (size == 0 || size > GUARD_BLOB_BYTES_MAX)
        return "it requests a blob of an impossible size";
    return NULL;
}

static const char *find_limit(const struct session *session, uint64_t shm_bytes)
{
    if (slots_count(&session->blobs) >= GUARD_BLOBS_MAX)
        return "it has too many blobs";
    if (shm_bytes > GUARD_SHM_BYTES_MAX - session->shm_bytes)
        return "it has too much shared memory";
    return NULL;
}

/* Before the client has it: it could free the memory at once, and keep the descriptor. */
static bool keep_blob(struct session *session, struct blob *blob, uint32_t type, int fd,
                      const char **why)
{
    bool shm = type == VIRGL_RENDERER_BLOB_FD_TYPE_SHM;
    bool gone;

    if (!shm && type != VIRGL_RENDERER_BLOB_FD_TYPE_DMABUF)
        return false;
    if (session->keeper.connection < 0)
        return true;
    blob->kept = keeper_keep(&session->keeper, fd, shm, &gone);
    if (gone)
        session_fail(session, "the guard's keeper has ended");
    *why = shm ? "its clients have the maximum number of blobs of shared memory"
               : "the slice has no memory left for it, or its clients have the maximum number of "
                 "buffers";
    return blob->kept != 0;
}

/* The descriptor for the client, or -1 with @why set. */
static int make_blob(struct session *session, uint32_t id, struct blob *blob,
                     const struct vtest_blob *request, const char **why)
{
    const struct virgl_renderer_resource_create_blob_args args = {
        .res_handle = id,
        .ctx_id = SESSION_CONTEXT,
        .blob_mem = request->type,
        .blob_flags = request->flags,
        .blob_id = vtest_u64(request->id),
        .size = vtest_u64(request->size),
    };
    uint32_t type;
    int fd;

    *why = "the renderer could not make it";
    if (virgl_renderer_resource_create_blob(&args) != 0)
        return -1;
    *why = "this GPU's driver cannot share it as a dma-buf";
    if (virgl_renderer_resource_export_blob(id, &type, &fd) == 0) {
        if (keep_blob(session, blob, type, fd, why))
            return fd;
        close(fd);
    }
    virgl_renderer_resource_unref(id);
    return -1;
}

bool session_create_blob(struct session *session, const uint32_t *data,
                         uint32_t words G_GNUC_UNUSED)
{
    const struct vtest_blob *request = (const void *)data;
    const char *fault = find_fault(request);
    uint64_t shm_bytes = vtest_u64(request->id) ? 0 : vtest_u64(request->size);
    const char *why = fault ? NULL : find_limit(session, shm_bytes);
    struct blob *blob;
    uint32_t id;
    bool ok;
    int fd;

    if (fault)
        return session_fail(session, "%s", fault);
    if (why)
        return refuse_blob(session, why);

    blob = g_new0(struct blob, 1);
    id = slots_add(&session->blobs, blob);
    fd = make_blob(session, id, blob, request, &why);
    if (fd < 0) {
        g_free(slots_take(&session->blobs, id));
        return session->fault ? false : refuse_blob(session, why);
    }
    blob->shm_bytes = shm_bytes;
    session->shm_bytes += shm_bytes;
    virgl_renderer_ctx_attach_resource((int)SESSION_CONTEXT, (int)id);
    ok = session_answer_fd(session, VTEST_RESOURCE_CREATE_BLOB, &id, 1, fd);
    close(fd);
    return ok;
}

static void blob_unmap(struct blob *blob, uint32_t id)
{
    if (blob->map)
        virgl_renderer_resource_unmap(id);
    blob->map = NULL;
}

void session_unmap_blobs(struct session *session)
{
    for (uint32_t id = 1; id <= session->blobs.items->len; id++) {
        struct blob *blob = slots_find(&session->blobs, id);

        if (blob)
            blob_unmap(blob, id);
    }
}

bool session_unref_blob(struct session *session, const uint32_t *data, uint32_t words G_GNUC_UNUSED)
{
    g_autofree struct blob *blob = slots_take(&session->blobs, data[0]);
    const struct sync_entries none = {0};

    if (data[0] == 0) /* of a blob that it was refused */
        return true;
    if (!blob)
        return session_fail(session, "it returns a blob that it does not have");
    session->shm_bytes -= blob->shm_bytes;
    blob_unmap(blob, data[0]);
    virgl_renderer_resource_unref(data[0]);
    return !blob->kept || session_fence(session, 0, none, blob->kept);
}

void *session_map_shm(struct session *session, uint32_t id, uint64_t *size)
{
    struct blob *blob = slots_find(&session->blobs, id);

    if (!blob || !blob->shm_bytes)
        return NULL;
    if (!blob->map && virgl_renderer_resource_map(id, &blob->map, &blob->map_size) != 0)
        blob->map = NULL;
    *size = blob->map_size;
    return blob->map;
}
