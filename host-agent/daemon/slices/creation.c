/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/slices/creation.h"

#include "host-agent/daemon/slices/erasure.h"
#include "lib/bus.h"

/**
 * Creation
 * @at: which of @list is being made, or undone
 * @error: why they are being undone
 */
typedef struct {
    Host *host;
    Slices *slices;
    GPtrArray *list;
    guint64 window;
    guint at;
    GError *error;
    MdevctlFunc func;
    void *data;
} Creation;

static void define_next(Creation *creation);
static void undo_next(Creation *creation);

static void finish(Creation *creation)
{
    creation->func(creation->error, creation->data);
    g_clear_error(&creation->error);
    g_ptr_array_unref(creation->list);
    g_free(creation);
}

static void undone(const GError *error, void *data)
{
    Creation *creation = data;

    const Slice *slice = g_ptr_array_index(creation->list, creation->at);

    if (error) {
        g_warning("vGPU %s of a request that failed could not be removed: %s; remove it with "
                  "\"vgpuctl vgpu remove %s\"",
                  slice->uuid, error->message, slice->uuid);
        slices_settle(creation->slices, slice->uuid);
    }
    creation->at++;
    undo_next(creation);
}

static void undo_next(Creation *creation)
{
    const Slice *slice;

    if (creation->at == creation->list->len) {
        finish(creation);
        return;
    }
    slice = g_ptr_array_index(creation->list, creation->at);
    erasure_run(creation->host, creation->slices, slice->uuid, undone, creation);
}

static void undo(Creation *creation, GError *error)
{
    creation->error = error;
    creation->at = 0;
    undo_next(creation);
}

/* All are there: from now on a crash leaves them. */
static void settle(Creation *creation)
{
    g_autoptr(GPtrArray) ready = g_ptr_array_new();
    GError *error = NULL;

    for (guint i = 0; i < creation->list->len; i++) {
        Slice *slice = g_ptr_array_index(creation->list, i);

        slice->state = SLICE_READY;
        slice->present = TRUE;
        g_ptr_array_add(ready, slice);
    }
    if (!slices_put_all(creation->slices, ready, &error)) {
        undo(creation, error);
        return;
    }
    for (guint i = 0; i < ready->len; i++) {
        const Slice *slice = g_ptr_array_index(ready, i);

        slices_update(creation->slices, slice->uuid);
        host_event(creation->host, "vgpu-created", slice->gpu, slice->uuid,
                   "vGPU %s of type %s was made on GPU %s", slice->uuid, slice->type, slice->gpu);
    }
    finish(creation);
}

static void started(const GError *error, void *data)
{
    Creation *creation = data;

    if (error) {
        undo(creation, g_error_copy(error));
        return;
    }
    creation->at++;
    define_next(creation);
}

static void start(Creation *creation, const char *json)
{
    const Slice *slice = g_ptr_array_index(creation->list, creation->at);
    const char *words[] = {"start",
                           "--uuid",
                           slice->uuid,
                           "--parent",
                           mdevctl_parent(slice->gpu),
                           json ? "--jsonfile" : NULL,
                           "/dev/stdin",
                           NULL};

    mdevctl_run(words, json, started, creation);
}

static void defined(const GError *error, void *data)
{
    Creation *creation = data;

    if (error)
        undo(creation, g_error_copy(error));
    else
        start(creation, NULL);
}

static void define_next(Creation *creation)
{
    const Slice *slice;
    g_autofree char *json = NULL;

    if (creation->at == creation->list->len) {
        settle(creation);
        return;
    }
    slice = g_ptr_array_index(creation->list, creation->at);
    json = mdevctl_json(&(MdevctlSpec){slice, creation->window});
    if (slice->defined) {
        const char *words[] = {
            "define",       "--uuid",     slice->uuid, "--parent", mdevctl_parent(slice->gpu),
            "--jsonfile", "/dev/stdin", NULL};

        mdevctl_run(words, json, defined, creation);
    } else {
        start(creation, json);
    }
}

void creation_run(Host *host, Slices *slices, GPtrArray *list, guint64 window, MdevctlFunc func,
                  void *data)
{
    Creation *creation = g_new0(Creation, 1);

    creation->host = host;
    creation->slices = slices;
    creation->list = list;
    creation->window = window;
    creation->func = func;
    creation->data = data;
    define_next(creation);
}
