// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Arguments of the driver's own interfaces. No sum and no product here can wrap before it is
 * compared.
 */
#include "uapi_check.h"

static bool vgpu_is_lower_or_digit(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

static bool vgpu_is_alnum(char c)
{
	return vgpu_is_lower_or_digit(c) || (c >= 'A' && c <= 'Z');
}

static bool vgpu_is_name_mark(char c)
{
	return c == '_' || c == '.' || c == '-';
}

/* @len of a string that ends within @size, or @size. */
static size_t vgpu_text_len(const char *text, size_t size)
{
	size_t len = 0;

	while (len < size && text[len])
		len++;
	return len;
}

static bool vgpu_all_zero(const void *bytes, size_t size)
{
	const u8 *b = bytes;
	size_t i;

	for (i = 0; i < size; i++)
		if (b[i])
			return false;
	return true;
}

static bool vgpu_page_aligned(u64 value)
{
	return value % VGPU_PAGE_SIZE == 0;
}

bool vgpu_text_ok(const char *text, size_t size)
{
	size_t len = vgpu_text_len(text, size), i;

	if (len == size)
		return false;
	for (i = 0; i < len; i++)
		if (text[i] < ' ' || text[i] > '~')
			return false;
	return true;
}

/* A letter or digit, then these or marks. */
static bool vgpu_name_ok(const char *name, size_t len, bool (*is_letter)(char c))
{
	size_t i;

	if (!len || !is_letter(name[0]))
		return false;
	for (i = 1; i < len; i++)
		if (!is_letter(name[i]) && !vgpu_is_name_mark(name[i]))
			return false;
	return true;
}

bool vgpu_tenant_ok(const char *name, size_t len)
{
	return len < VGPU_TENANT_LEN && vgpu_name_ok(name, len, vgpu_is_alnum);
}

bool vgpu_window_size_ok(u64 bytes)
{
	return bytes && !(bytes & (bytes - 1)) && bytes >= 1ull << 20 && bytes <= VGPU_WINDOW_MAX_BYTES;
}

/* A soft GPU's name becomes a directory's. Any other name must be that of a PCI device. */
static bool vgpu_gpu_name_ok(const char *name)
{
	size_t len = vgpu_text_len(name, VGPU_GPU_NAME_LEN), at = sizeof(VGPU_SOFT_PREFIX) - 1;

	if (!len || len == VGPU_GPU_NAME_LEN)
		return false;
	if (len < at || memcmp(name, VGPU_SOFT_PREFIX, at))
		return true;
	return vgpu_name_ok(name + at, len - at, vgpu_is_alnum);
}

static bool vgpu_type_name_ok(const char *name)
{
	size_t len = vgpu_text_len(name, VGPU_TYPE_NAME_LEN);

	return len < VGPU_TYPE_NAME_LEN && vgpu_name_ok(name, len, vgpu_is_lower_or_digit);
}

static int vgpu_check_type(const struct vgpu_type_desc *desc)
{
	if (!vgpu_type_name_ok(desc->name) ||
	    !vgpu_text_ok(desc->description, sizeof(desc->description)))
		return -EINVAL;
	if (!desc->vram_bytes || !vgpu_window_size_ok(desc->window_bytes))
		return -EINVAL;
	if (!desc->weight || desc->weight > 10000 || !desc->cap || desc->cap > 100 ||
	    desc->priority > 15)
		return -EINVAL;
	if (desc->scanouts > VGPU_MAX_SCANOUTS || desc->cuda > 1 ||
	    !vgpu_all_zero(desc->reserved, sizeof(desc->reserved)))
		return -EINVAL;
	return 0;
}

int vgpu_check_gpu(const struct vgpu_control_gpu *arg)
{
	if (arg->argsz < sizeof(*arg) || arg->flags ||
	    !vgpu_all_zero(arg->reserved, sizeof(arg->reserved)))
		return -EINVAL;
	/* A caller with larger descriptions may set values that this driver does not know. */
	if (!arg->ntypes || arg->ntypes > VGPU_MAX_TYPES ||
	    arg->type_size != sizeof(struct vgpu_type_desc))
		return -EINVAL;
	if (!arg->vram_bytes || !vgpu_gpu_name_ok(arg->gpu))
		return -EINVAL;
	return 0;
}

int vgpu_check_remove(const struct vgpu_control_remove *arg)
{
	if (arg->argsz < sizeof(*arg) || arg->flags ||
	    vgpu_text_len(arg->gpu, sizeof(arg->gpu)) == sizeof(arg->gpu))
		return -EINVAL;
	return 0;
}

int vgpu_check_drain(const struct vgpu_control_drain *arg)
{
	if (arg->argsz < sizeof(*arg) || arg->flags & ~VGPU_DRAIN_ON ||
	    vgpu_text_len(arg->gpu, sizeof(arg->gpu)) == sizeof(arg->gpu))
		return -EINVAL;
	return 0;
}

int vgpu_check_announce(const struct vgpu_control_announce *arg)
{
	if (arg->argsz < sizeof(*arg) || arg->flags ||
	    !vgpu_all_zero(arg->reserved, sizeof(arg->reserved)))
		return -EINVAL;
	if (vgpu_text_len(arg->gpu, sizeof(arg->gpu)) == sizeof(arg->gpu) ||
	    vgpu_text_len(arg->type, sizeof(arg->type)) == sizeof(arg->type))
		return -EINVAL;
	return 0;
}

int vgpu_check_types(const struct vgpu_type_desc *descs, u32 n)
{
	u32 i, j;
	int ret;

	for (i = 0; i < n; i++) {
		ret = vgpu_check_type(&descs[i]);
		if (ret)
			return ret;
		for (j = 0; j < i; j++)
			if (!strcmp(descs[i].name, descs[j].name))
				return -EINVAL;
	}
	return 0;
}

int vgpu_check_mem_entries(const struct vgpu_mem_entry *entries, u32 n, u64 *pages)
{
	u64 sum = 0;
	u32 i;

	if (!n || n > VGPU_MEM_MAX_ENTRIES)
		return -EINVAL;
	for (i = 0; i < n; i++) {
		const struct vgpu_mem_entry *entry = &entries[i];

		if (!entry->size || !vgpu_page_aligned(entry->iova) || !vgpu_page_aligned(entry->size))
			return -EINVAL;
		if (entry->iova + entry->size < entry->iova)
			return -EINVAL;
		sum += entry->size / VGPU_PAGE_SIZE;
		if (sum > VGPU_MEM_MAX_PAGES)
			return -ENOMEM;
	}
	*pages = sum;
	return 0;
}

int vgpu_check_exchange(const struct vgpu_queue_exchange *arg)
{
	if (arg->argsz < sizeof(*arg) || arg->reserved ||
	    arg->flags & ~(VGPU_EXCHANGE_TRUNCATE | VGPU_EXCHANGE_EVENTS | VGPU_EXCHANGE_CONNECTED))
		return -EINVAL;
	if (arg->flags & VGPU_EXCHANGE_CONNECTED && arg->wait_fd < 0)
		return -EINVAL;
	if (arg->nanswers > VGPU_EXCHANGE_MAX || arg->nrequests > VGPU_EXCHANGE_MAX ||
	    arg->queues >> VGPU_NUM_QUEUES || arg->poll_us > VGPU_EXCHANGE_POLL_MAX)
		return -EINVAL;
	/* What ends the wait has to be returned. */
	if (arg->wait_ms && (!arg->nrequests || !(arg->flags & VGPU_EXCHANGE_EVENTS) || arg->wait_fd < -1))
		return -EINVAL;
	return 0;
}

int vgpu_check_answers(const struct vgpu_queue_answer *answers, u32 n)
{
	u64 sum = 0;
	u32 i;

	for (i = 0; i < n; i++) {
		if (answers[i].queue >= VGPU_NUM_QUEUES)
			return -EINVAL;
		sum += answers[i].size;
	}
	return sum > VGPU_REQUEST_MAX ? -EMSGSIZE : 0;
}

/* DRM_FORMAT_XRGB8888, whose header is not available in every build of the model. */
#define VGPU_FORMAT_XRGB8888	0x34325258

int vgpu_check_scanout(const struct vgpu_scanout *scanout)
{
	if (scanout->argsz < sizeof(*scanout) || scanout->flags ||
	    !vgpu_all_zero(scanout->reserved, sizeof(scanout->reserved)))
		return -EINVAL;
	if (!scanout->width)
		return scanout->height || scanout->stride || scanout->drm_format ? -EINVAL : 0;
	if (scanout->width > VGPU_PICTURE_MAX_WIDTH || !scanout->height ||
	    scanout->height > VGPU_PICTURE_MAX_HEIGHT)
		return -EINVAL;
	/*
	 * VMMs notice a new size, but not a new stride of the same size: so there is one stride for
	 * each size.
	 */
	if (scanout->stride != 4 * scanout->width || scanout->drm_format != VGPU_FORMAT_XRGB8888)
		return -EINVAL;
	return 0;
}

int vgpu_check_window_range(const struct vgpu_window_range *range, u64 window, u64 task_size)
{
	if (!vgpu_page_aligned(range->offset) || !vgpu_page_aligned(range->size) ||
	    !vgpu_page_aligned(range->addr))
		return -EINVAL;
	if (!range->size || range->offset >= window || range->size > window - range->offset)
		return -EINVAL;
	if (range->addr > task_size || range->size > task_size - range->addr)
		return -EINVAL;
	return 0;
}
