/* SPDX-License-Identifier: MIT */
/*
 * What GPUs offer: their types with numbers, and how much may be promised; from /etc/vgpu, like the
 * registrar's input for the driver.
 */
#ifndef VGPUD_SLICES_OFFERS_H
#define VGPUD_SLICES_OFFERS_H

#include "host-agent/model/placement.h"
#include "lib/control.h"
#include "lib/gpu.h"
#include "lib/gpus.h"
#include "lib/host_root.h"

typedef struct Offers Offers;

/* Nothing is offered before offers_reload(). */
Offers *offers_new(HostRoot *root);

void offers_free(Offers *offers);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Offers, offers_free)

/* Reads the files again. If one has an error, everything is unchanged: AGENT_ERROR_INVALID. */
gboolean offers_reload(Offers *offers, GError **error);

/* Takes over the content of @from; frees @from. */
void offers_take(Offers *offers, Offers *from);

/*
 * The GPU's type @type: "half", "vgpu-half" or the full name. FALSE: it has none, or is not shared.
 */
gboolean offers_find(Offers *offers, const Gpu *gpu, const char *type, Offer *offer);

/*
 * For a vGPU of @vram bytes: the GPU's smallest type that has as much. FALSE: it has none, or is
 * not shared.
 */
gboolean offers_find_fitting(Offers *offers, const Gpu *gpu, guint64 vram, Offer *offer);

/*
 * A slice of @vram bytes without a type, for a container: weight by its part of the GPU, like the
 * installed types, no cap. @desc: is filled, and @offer points into it. FALSE: the GPU is not
 * shared.
 */
gboolean offers_of_size(Offers *offers, const Gpu *gpu, guint64 vram, struct vgpu_type_desc *desc,
                        Offer *offer);

/* Bytes that may be promised on the GPU; 0: it is not shared. @vram: its bytes. */
guint64 offers_capacity(Offers *offers, const Gpu *gpu, guint64 *vram);

/*
 * What the driver would be told of the GPU; errors of plan_new(). A GPU without an entry in
 * gpus.conf counts as one without settings.
 */
Plan *offers_plan_new(const Offers *offers, const Gpu *gpu, GError **error);

/* The GPU's entry in gpus.conf; NULL: none. Until the next offers_reload(). */
const GpuEntry *offers_settings(const Offers *offers, const char *gpu);

#endif
