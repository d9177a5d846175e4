// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Guest memory that a program of the engine's can map and have registered by a GPU's driver (MEM_EXPORT):
 * a file for an object of MEM_PIN.
 *
 * Such a driver pins what it registers (pin_user_pages()), which takes ordinary page-table entries only,
 * not those of the engine's own mapping (VM_PFNMAP). Ordinary entries count in their page, and whoever
 * takes a page out of its file must be able to find them all. So each mapping is one of the VMM's own
 * memfd, as far as the kernel's memory management is concerned: its file is another one of that memfd's
 * inode, and it lies in it where its pages do. Its faults give the pages that are pinned, and no others.
 * That works for shared memory, a page of which is a piece of its own unless the next one lies behind it
 * in the VMM's file, too. Anonymous memory can be found by its owner's mappings only, so it is not
 * exported, nor are huge pages.
 *
 * What a process has open is a third file, with an inode of the kernel's. By one of the memfd's it could
 * seal the VMM's memory, or empty it.
 *
 * What the VM takes away is out of the mappings at once, as it is out of the engine. But what a driver
 * has pinned stays its, until it unpins it: engines end the programs that have it before they return
 * memory to a guest, and a guest that disables bus mastering waits for that (device.c).
 */
#include <linux/anon_inodes.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/module.h>
#include <linux/mount.h>
#include <linux/pagemap.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "engine.h"
#include "guest_mem.h"

static bool vgpu_lends_guest_memory = true;
module_param_named(guest_memory, vgpu_lends_guest_memory, bool, 0644);
MODULE_PARM_DESC(guest_memory, "CUDA programs of guests may lend memory of their VM (default: yes)");

bool vgpu_export_offered(void)
{
	return READ_ONCE(vgpu_lends_guest_memory);
}

/*
 * struct vgpu_export - an object's memory, while a process has it open or mapped
 * @node: in mem.exports, under mem.lock
 * @offset: the object's; no other has it, ever
 * @mapping: the address space of the VMM's memfd, whose inode it holds
 * @mapped: the file of its mappings, which has the export
 * @index: where in the memfd each page lies
 */
struct vgpu_export {
	struct list_head node;
	struct vgpu *vgpu;
	u64 offset;
	u64 npages;
	struct address_space *mapping;
	struct file *mapped;
	pgoff_t index[] __counted_by(npages);
};

/* How many pages from @first on lie one behind the other in the VMM's file; of @most at most. */
static u64 vgpu_export_piece(const struct vgpu_export *export, u64 first, u64 most)
{
	u64 n = 1;

	while (n < most && export->index[first + n] == export->index[first] + n)
		n++;
	return n;
}

/* Takes pages [first, first + count) out of all mappings; the VMM's own comes back at its next fault. */
static void vgpu_export_zap(const struct vgpu_export *export, u64 first, u64 count)
{
	u64 n;

	for (; count; first += n, count -= n) {
		n = vgpu_export_piece(export, first, count);
		unmap_mapping_range(export->mapping, (loff_t)export->index[first] << PAGE_SHIFT,
				    (loff_t)n << PAGE_SHIFT, 0);
		cond_resched();
	}
}

void vgpu_exports_zap(struct vgpu *vgpu, u64 offset, u64 size)
{
	const struct vgpu_export *export;

	lockdep_assert_held(&vgpu->mem.lock);
	list_for_each_entry(export, &vgpu->mem.exports, node) {
		u64 end = export->offset + (export->npages << PAGE_SHIFT);
		u64 from = max(export->offset, offset), to = min(end, offset + size);

		if (from < to)
			vgpu_export_zap(export, (from - export->offset) >> PAGE_SHIFT, (to - from) >> PAGE_SHIFT);
	}
}

/* Of a page that is in a file. */
static struct address_space *vgpu_export_mapping_of(struct folio *folio)
{
	struct address_space *mapping = folio_mapping(folio);

	return mapping == folio->mapping ? mapping : NULL;
}

/* Notes where a page lies. All pages of an export are of one file. */
static int vgpu_export_note(struct vgpu_export *export, u64 i, struct page *page)
{
	struct folio *folio = page_folio(page);
	struct address_space *mapping;
	int ret = folio_lock_killable(folio);

	if (ret)
		return ret;
	mapping = vgpu_export_mapping_of(folio);
	if (!mapping || (export->mapping && export->mapping != mapping))
		ret = -EOPNOTSUPP;
	else if (!export->mapping && !igrab(mapping->host))
		ret = -ESTALE;
	else
		export->mapping = mapping;
	export->index[i] = folio->index + folio_page_idx(folio, page);
	folio_unlock(folio);
	return ret;
}

static int vgpu_export_note_all(struct vgpu_export *export)
{
	int ret = 0;
	u64 i;

	for (i = 0; i < export->npages && !ret; i++) {
		struct page *page = vgpu_mem_get_page(export->vgpu, export->offset, i);

		if (!page)
			return -ESTALE;
		ret = vgpu_export_note(export, i, page);
		put_page(page);
		if (fatal_signal_pending(current))
			ret = -EINTR;
		cond_resched();
	}
	return ret;
}

static void vgpu_export_free(struct vgpu_export *export)
{
	if (export->mapping)
		iput(export->mapping->host);
	vfio_put_device(&export->vgpu->vdev);
	kvfree(export);
}

static int vgpu_export_unmapped(struct inode *inode, struct file *mapped)
{
	struct vgpu_export *export = mapped->private_data;

	mutex_lock(&export->vgpu->mem.lock);
	list_del(&export->node);
	mutex_unlock(&export->vgpu->mem.lock);
	mapping_unmap_writable(export->mapping);
	vgpu_export_free(export);
	return 0;
}

/* Without mmap, so that remap_file_pages() makes no other mapping of it. */
static const struct file_operations vgpu_export_mapped_fops = {
	.owner = THIS_MODULE,
	.release = vgpu_export_unmapped,
};

/*
 * Maps a page, which is locked, unless the VM has taken it away, or its file has lost it: then a mapping
 * could not be found any more.
 */
static vm_fault_t vgpu_export_insert(struct vm_fault *vmf, const struct vgpu_export *export, u64 i,
				     struct page *page)
{
	const struct folio *folio = page_folio(page);
	struct vgpu *vgpu = export->vgpu;
	unsigned int noreclaim;
	int ret = -EFAULT;

	if (folio->mapping != export->mapping)
		return VM_FAULT_SIGBUS;
	mutex_lock(&vgpu->map_lock);
	if (vgpu_mem_page(vgpu, export->offset, i) == page) {
		noreclaim = memalloc_noreclaim_save();
		ret = vm_insert_page(vmf->vma, vmf->address & PAGE_MASK, page);
		memalloc_noreclaim_restore(noreclaim);
	}
	mutex_unlock(&vgpu->map_lock);
	/* EBUSY: another fault has mapped it. */
	if (!ret || ret == -EBUSY)
		return VM_FAULT_NOPAGE;
	return ret == -ENOMEM ? VM_FAULT_OOM : VM_FAULT_SIGBUS;
}

static vm_fault_t vgpu_export_fault(struct vm_fault *vmf)
{
	const struct vgpu_export *export = vmf->vma->vm_file->private_data;
	/* See vgpu_export_mmap(). */
	u64 i = vmf->pgoff + (unsigned long)vmf->vma->vm_private_data;
	struct page *page = vgpu_mem_get_page(export->vgpu, export->offset, i);
	vm_fault_t ret = VM_FAULT_OOM;

	if (!page)
		return VM_FAULT_SIGBUS;
	if (!vgpu_prepare_pte(vmf)) {
		lock_page(page);
		ret = vgpu_export_insert(vmf, export, i, page);
		unlock_page(page);
	}
	put_page(page);
	return ret;
}

/* Without map_pages, so that faults always hold the mmap_lock, not only a VMA's own lock. */
static const struct vm_operations_struct vgpu_export_vm_ops = {
	.fault = vgpu_export_fault,
};

/*
 * A piece, or a part of one. The mapping lies in the memfd where its pages do, and knows how far that is
 * from where they lie in the object.
 */
static int vgpu_export_mmap(struct file *file, struct vm_area_struct *vma)
{
	const struct vgpu_export *export = file->private_data;
	u64 first = vma->vm_pgoff, count = vma_pages(vma);

	if (!(vma->vm_flags & VM_SHARED) || first >= export->npages || count > export->npages - first ||
	    vgpu_export_piece(export, first, count) < count)
		return -EINVAL;
	vma->vm_pgoff = export->index[first];
	vma->vm_private_data = (void *)(unsigned long)(first - export->index[first]);
	vma->vm_ops = &vgpu_export_vm_ops;
	vgpu_vm_flags_set(vma, VM_MIXEDMAP | VM_DONTEXPAND | VM_DONTDUMP | VM_DONTCOPY);
	vma_set_file(vma, export->mapped);
	return 0;
}

/* SEEK_HOLE: the end of the piece that has @at. Nothing is read or written at a place of the file. */
static loff_t vgpu_export_llseek(struct file *file, loff_t at, int whence)
{
	const struct vgpu_export *export = file->private_data;
	u64 first = (u64)at >> PAGE_SHIFT;

	if (whence != SEEK_HOLE)
		return -EINVAL;
	if (at < 0 || first >= export->npages)
		return -ENXIO;
	return (first + vgpu_export_piece(export, first, export->npages - first)) << PAGE_SHIFT;
}

/* Mappings may stay. */
static int vgpu_export_closed(struct inode *inode, struct file *file)
{
	const struct vgpu_export *export = file->private_data;

	fput(export->mapped);
	return 0;
}

static const struct file_operations vgpu_export_fops = {
	.owner = THIS_MODULE,
	.release = vgpu_export_closed,
	.mmap = vgpu_export_mmap,
	.llseek = vgpu_export_llseek,
};

static struct vgpu_export *vgpu_export_new(struct vgpu *vgpu, u64 offset, u64 npages)
{
	struct vgpu_export *export = kvzalloc(struct_size(export, index, npages), GFP_KERNEL_ACCOUNT);

	if (!export)
		return NULL;
	get_device(&vgpu->vdev.device);
	export->vgpu = vgpu;
	export->offset = offset;
	export->npages = npages;
	return export;
}

/*
 * Another file of the memfd's inode. Memfds are on a mount that the kernel shows by its own files only;
 * other files' memory is not exported.
 */
static struct file *vgpu_export_new_mapped(struct vgpu_export *export)
{
	struct file *memfd = vgpu_shmem_file_setup("vgpu-memory", 0), *mapped;
	struct inode *inode = export->mapping->host;

	if (IS_ERR(memfd))
		return memfd;
	if (inode->i_sb == memfd->f_path.mnt->mnt_sb) {
		ihold(inode);
		mapped = alloc_file_pseudo(inode, memfd->f_path.mnt, "vgpu-memory", O_RDWR,
					   &vgpu_export_mapped_fops);
		if (IS_ERR(mapped))
			iput(inode);
	} else {
		mapped = ERR_PTR(-EOPNOTSUPP);
	}
	fput(memfd);
	return mapped;
}

/*
 * From here on the VM's taking away of memory finds it: what it has taken already is not mapped. The memfd
 * counts as mapped for writing while there is an export, so that it can't be sealed against that.
 */
static int vgpu_export_make_mappable(struct vgpu_export *export)
{
	int ret = mapping_map_writable(export->mapping);
	struct file *mapped;

	if (ret)
		return ret;
	mapped = vgpu_export_new_mapped(export);
	if (IS_ERR(mapped)) {
		mapping_unmap_writable(export->mapping);
		return PTR_ERR(mapped);
	}
	/* The kernel drops this when it frees the file, but takes none when it makes it. */
	__module_get(THIS_MODULE);
	mapped->private_data = export;
	export->mapped = mapped;
	mutex_lock(&export->vgpu->mem.lock);
	list_add(&export->node, &export->vgpu->mem.exports);
	mutex_unlock(&export->vgpu->mem.lock);
	return 0;
}

static struct file *vgpu_mem_export(struct vgpu *vgpu, u64 offset, u64 npages)
{
	struct vgpu_export *export = vgpu_export_new(vgpu, offset, npages);
	struct file *file;
	int ret;

	if (!export)
		return ERR_PTR(-ENOMEM);
	ret = vgpu_export_note_all(export) ?: vgpu_export_make_mappable(export);
	if (ret) {
		vgpu_export_free(export);
		return ERR_PTR(ret);
	}
	file = anon_inode_getfile("[vgpu-memory]", &vgpu_export_fops, export, O_RDWR);
	if (IS_ERR(file))
		fput(export->mapped);
	return file;
}

static int vgpu_export_begin(struct file *file, const struct vgpu_mem_export *arg, u64 *npages)
{
	struct vgpu *vgpu = vgpu_from_file(file);
	int ret = vgpu_engine_enter(file);

	if (ret)
		return ret;
	if (!vgpu_export_offered() || !READ_ONCE(vgpu->params.cuda))
		ret = -EOPNOTSUPP;
	else if (vgpu_engine_epoch_over(vgpu, arg->epoch))
		ret = -ESTALE;
	else
		ret = vgpu_mem_lend(vgpu, arg->offset, npages);
	vgpu_engine_leave(file);
	return ret;
}

static int vgpu_export_give(struct vgpu *vgpu, u64 npages, struct vgpu_mem_export *arg, void __user *user)
{
	struct file *made = vgpu_mem_export(vgpu, arg->offset, npages);
	int fd;

	if (IS_ERR(made))
		return PTR_ERR(made);
	fd = get_unused_fd_flags(O_CLOEXEC);
	arg->fd = fd;
	if (fd < 0 || copy_to_user(user, arg, sizeof(*arg))) {
		if (fd >= 0)
			put_unused_fd(fd);
		fput(made);
		return fd < 0 ? fd : -EFAULT;
	}
	fd_install(fd, made);
	return 0;
}

long vgpu_ioctl_mem_export(struct file *file, void __user *user)
{
	struct vgpu_mem_export arg;
	u64 npages;
	int ret;

	if (copy_from_user(&arg, user, sizeof(arg)))
		return -EFAULT;
	if (arg.argsz < sizeof(arg) || arg.flags || arg.reserved)
		return -EINVAL;
	ret = vgpu_export_begin(file, &arg, &npages);
	if (ret)
		return ret;
	ret = vgpu_export_give(vgpu_from_file(file), npages, &arg, user);
	if (ret)
		vgpu_mem_take_back(vgpu_from_file(file), arg.offset);
	return ret;
}
