/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Guest memory, within the VM's IOMMU mappings: shared by guest_access.c, the driver's own access to
 * rings and requests, guest_pin.c, what an engine has pinned, guest_export.c, which others can map of it,
 * and guest_unmap.c, which takes all of that away at once when the VM unmaps it. All under mem.lock.
 */
#ifndef VGPU_GUEST_MEM_H
#define VGPU_GUEST_MEM_H

#include "vgpu_private.h"

/* Unpins cached pages: those of [@iova, @last], or those of earlier lives. */
void vgpu_cache_unmap(struct vgpu *vgpu, u64 iova, u64 last);
void vgpu_cache_drop_old(struct vgpu *vgpu);

/*
 * Takes [@iova, @last] out of the engine and unpins it, also what the worker has still to unpin: type1
 * wants all of it when its call returns.
 */
void vgpu_pins_unmap(struct vgpu *vgpu, u64 iova, u64 last);

/*
 * The object at @offset counts as lent from now on, unless this fails; or no longer, because nobody has got
 * it. Page @i of it, under map_lock, or with a reference; NULL: it is gone.
 */
int vgpu_mem_lend(struct vgpu *vgpu, u64 offset, u64 *npages);
void vgpu_mem_take_back(struct vgpu *vgpu, u64 offset);
struct page *vgpu_mem_page(struct vgpu *vgpu, u64 offset, u64 i);
struct page *vgpu_mem_get_page(struct vgpu *vgpu, u64 offset, u64 i);

/* Takes [@offset, @offset + @size) of the objects' memory out of all mappings of their exports. */
void vgpu_exports_zap(struct vgpu *vgpu, u64 offset, u64 size);

/* Whether [@iova, @iova + @size) may be pinned. Drops mem.lock if it has to wait. */
bool vgpu_mem_may_pin(struct vgpu_mem *mem, u64 iova, u64 size);

void vgpu_unmaps_init(struct vgpu_mem *mem);

#endif /* VGPU_GUEST_MEM_H */
