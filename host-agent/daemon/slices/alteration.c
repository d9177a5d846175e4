/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/slices/alteration.h"

#include "host-agent/daemon/slices/mdevctl.h"
#include "host-agent/model/offer.h"
#include "lib/definition.h"
#include "lib/mdev.h"
#include "lib/root.h"
#include "lib/vgpu.h"


/**
 * Alteration
 * @before: as it was
 * @error: why it is so again
 */
typedef struct {
    Host *host;
    Slices *slices;
    Slice *before;
    Slice *wanted;
    GError *error;
    MdevctlFunc func;
    void *data;
} Alteration;

static gboolean write_driver(const Alteration *alteration, const Slice *from, const Slice *to,
                             GError **error)
{
    g_autofree char *device = mdev_path(host_root(alteration->host), to->uuid);
    g_autofree char *dir = g_build_filename(device, "vgpu", NULL);
    g_auto(GStrv) before = slice_attributes(from);
    g_auto(GStrv) after = slice_attributes(to);
    VgpuWrite list[SLICE_ATTRIBUTES];

    for (guint i = 0; i < SLICE_ATTRIBUTES; i++)
        list[i] = (VgpuWrite){slice_attribute_names[i], before[i], after[i]};
    return vgpu_write(dir, list, SLICE_ATTRIBUTES, error);
}

/* From the main loop, never from within alteration_run(). */
static gboolean finish(void *data)
{
    Alteration *alteration = data;
    const Slice *end = alteration->error ? alteration->before : alteration->wanted;
    Slice *slice = slice_copy(end);
    g_autoptr(GError) cause = NULL;

    slice->state = SLICE_READY;
    if (!slices_put(alteration->slices, slice, &cause))
        g_warning("vGPU %s: %s", end->uuid, cause->message);
    slices_update(alteration->slices, end->uuid);
    if (!alteration->error)
        host_event(alteration->host, "vgpu-changed", end->gpu, end->uuid, "vGPU %s was changed",
                   end->uuid);
    alteration->func(alteration->error, alteration->data);
    slice_free(alteration->before);
    slice_free(alteration->wanted);
    g_clear_error(&alteration->error);
    g_free(alteration);
    return G_SOURCE_REMOVE;
}

static void modified(const GError *error, void *data)
{
    Alteration *alteration = data;
    g_autoptr(GError) cause = NULL;

    if (error && alteration->wanted->present &&
        !write_driver(alteration, alteration->wanted, alteration->before, &cause))
        g_warning("vGPU %s can't be put back as it was: %s", alteration->wanted->uuid,
                  cause->message);
    alteration->error = error ? g_error_copy(error) : NULL;
    finish(alteration);
}

static void modify_definition(Alteration *alteration)
{
    g_autoptr(Definition) definition =
        definition_read(host_root(alteration->host), mdevctl_parent(alteration->wanted->gpu),
                        alteration->wanted->uuid);
    g_autofree char *json = NULL;

    if (!definition) {
        g_idle_add(finish, alteration);
        return;
    }
    json = mdevctl_changed_json(host_root(alteration->host), definition, alteration->wanted);
    const char *words[] = {"modify",     "--uuid",     definition->uuid, "--parent",
                           definition->parent, "--jsonfile", "/dev/stdin",     NULL};

    mdevctl_run(words, json, modified, alteration);
}

/* What the driver has now, where it has the vGPU: after a crash that may be half of each. */
static Slice *as_it_is(const Alteration *alteration, const Slice *known)
{
    g_autoptr(Vgpu) vgpu = vgpu_read(host_root(alteration->host), known->uuid);
    Slice *slice = slice_copy(known);

    slice->present = vgpu != NULL;
    if (vgpu)
        adopt_vgpu(slice, vgpu);
    return slice;
}

void alteration_run(Host *host, Slices *slices, Slice *wanted, MdevctlFunc func, void *data)
{
    Alteration *alteration = g_new0(Alteration, 1);
    Slice *stored = slice_copy(wanted);

    alteration->host = host;
    alteration->slices = slices;
    alteration->wanted = wanted;
    alteration->func = func;
    alteration->data = data;
    alteration->before = as_it_is(alteration, slices_find(slices, wanted->uuid));
    wanted->present = alteration->before->present;
    stored->state = SLICE_CHANGING;
    if (!slices_put(slices, stored, &alteration->error) ||
        (wanted->present &&
         !write_driver(alteration, alteration->before, wanted, &alteration->error)))
        g_idle_add(finish, alteration);
    else
        modify_definition(alteration);
}
