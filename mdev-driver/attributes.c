// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * The attributes of a vGPU, /sys/bus/mdev/devices/<uuid>/vgpu/. mdevctl writes them after it has
 * created the device, so they take effect when a VMM opens it (window, display) or at once (all
 * others).
 */
#include <linux/device.h>
#include <linux/sysfs.h>

#include "vgpu_private.h"

static struct vgpu *vgpu_from_dev(struct device *dev)
{
	return dev_get_drvdata(dev);
}

/* mdevctl only says "invalid argument"; the log must say why. */
static int vgpu_parse(struct device *dev, const char *name, const char *buf, u64 *value)
{
	int ret = kstrtou64(buf, 0, value);

	if (ret)
		dev_err(dev, "%s must be a number, not \"%.*s\"\n", name,
			(int)min(strcspn(buf, "\n"), (size_t)32), buf);
	return ret;
}

/*
 * The engine acts on it. The agent, which keeps the ledger, is notified through udev, whoever wrote
 * it.
 */
static void vgpu_parameter_changed(struct vgpu *vgpu)
{
	vgpu_engine_event(vgpu, VGPU_EVENT_CONFIG, 0);
	vgpu_device_tell(vgpu);
}

/* For attributes that a VMM has read from the device: takes the lock if no VMM has it open. */
static int vgpu_lock_closed(struct vgpu *vgpu, const char *name)
{
	/* Not under the lock, for which a VMM's memory may make it wait. */
	if (!vgpu_is_open(vgpu)) {
		mutex_lock(&vgpu->lock);
		if (!vgpu_is_open(vgpu))
			return 0;
		mutex_unlock(&vgpu->lock);
	}
	dev_err(vgpu_dev(vgpu), "%s can't change while a VM has the device open\n", name);
	return -EBUSY;
}

static ssize_t vram_bytes_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%llu\n", READ_ONCE(vgpu_from_dev(dev)->params.vram_bytes));
}

static ssize_t vram_bytes_store(struct device *dev, struct device_attribute *attr, const char *buf,
				size_t count)
{
	struct vgpu *vgpu = vgpu_from_dev(dev);
	u64 bytes;
	int ret;

	ret = vgpu_parse(dev, "vram_bytes", buf, &bytes);
	if (ret)
		return ret;
	ret = vgpu_gpu_set_vram(vgpu, bytes);
	if (ret)
		return ret;
	vgpu_parameter_changed(vgpu);
	return count;
}
static DEVICE_ATTR_RW(vram_bytes);

static ssize_t window_bytes_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%llu\n", READ_ONCE(vgpu_from_dev(dev)->params.window_bytes));
}

static ssize_t window_bytes_store(struct device *dev, struct device_attribute *attr,
				  const char *buf, size_t count)
{
	struct vgpu *vgpu = vgpu_from_dev(dev);
	u64 bytes;
	int ret;

	ret = vgpu_parse(dev, "window_bytes", buf, &bytes);
	if (ret)
		return ret;
	if (!vgpu_window_size_ok(bytes)) {
		dev_err(dev, "window_bytes must be a power of two from 1 MiB to 64 GiB, not %llu\n", bytes);
		return -EINVAL;
	}
	ret = vgpu_lock_closed(vgpu, "window_bytes");
	if (ret)
		return ret;
	spin_lock(&vgpu->params_lock);
	WRITE_ONCE(vgpu->params.window_bytes, bytes);
	spin_unlock(&vgpu->params_lock);
	mutex_unlock(&vgpu->lock);
	vgpu_parameter_changed(vgpu);
	return count;
}
static DEVICE_ATTR_RW(window_bytes);

/* @closed: it may change only while no VM has the device open. */
static ssize_t vgpu_store_u32(struct device *dev, const char *name, u32 *param, u32 min, u32 max,
			      bool closed, const char *buf, size_t count)
{
	struct vgpu *vgpu = vgpu_from_dev(dev);
	u64 value;
	int ret;

	ret = vgpu_parse(dev, name, buf, &value);
	if (ret)
		return ret;
	if (value < min || value > max) {
		dev_err(dev, "%s must be from %u to %u, not %llu\n", name, min, max, value);
		return -EINVAL;
	}
	ret = closed ? vgpu_lock_closed(vgpu, name) : 0;
	if (ret)
		return ret;
	spin_lock(&vgpu->params_lock);
	WRITE_ONCE(*param, value);
	spin_unlock(&vgpu->params_lock);
	if (closed)
		mutex_unlock(&vgpu->lock);
	vgpu_parameter_changed(vgpu);
	return count;
}

#define VGPU_ATTR_U32(_name, _param, _min, _max, _closed)				\
static ssize_t _name##_show(struct device *dev, struct device_attribute *attr, char *buf)	\
{											\
	return sysfs_emit(buf, "%u\n", READ_ONCE(vgpu_from_dev(dev)->params._param));	\
}											\
static ssize_t _name##_store(struct device *dev, struct device_attribute *attr,		\
			     const char *buf, size_t count)				\
{											\
	return vgpu_store_u32(dev, #_name, &vgpu_from_dev(dev)->params._param, _min, _max,	\
			      _closed, buf, count);					\
}											\
static DEVICE_ATTR_RW(_name)

VGPU_ATTR_U32(weight, weight, 1, 10000, false);
VGPU_ATTR_U32(cap, cap, 1, 100, false);
VGPU_ATTR_U32(priority, priority, 0, 15, false);
VGPU_ATTR_U32(display, scanouts, 0, VGPU_MAX_SCANOUTS, true);

/* Of the type alone: an engine has told the driver of its capsets before mdevctl writes attributes. */
static ssize_t cuda_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%u\n", vgpu_from_dev(dev)->params.cuda);
}
static DEVICE_ATTR_RO(cuda);

/* Attributes for vgpud (struct vgpu_notes). An empty line unsets the value, as at first. */
static const char *const vgpu_classes[] = { "", "guaranteed", "burstable", "best-effort" };

/* Small enough to be summed. */
#define VGPU_OVERSUBSCRIBE_MAX	(1ull << 50)

static ssize_t tenant_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	struct vgpu *vgpu = vgpu_from_dev(dev);
	ssize_t n;

	spin_lock(&vgpu->state_lock);
	n = sysfs_emit(buf, "%s\n", vgpu->notes.tenant);
	spin_unlock(&vgpu->state_lock);
	return n;
}

static ssize_t tenant_store(struct device *dev, struct device_attribute *attr, const char *buf,
			    size_t count)
{
	struct vgpu *vgpu = vgpu_from_dev(dev);
	size_t len = count && buf[count - 1] == '\n' ? count - 1 : count;

	if (len && !vgpu_tenant_ok(buf, len)) {
		dev_err(dev, "tenant must be up to %d letters, digits, \"_\", \"-\" and \".\", not \"%*pE\"\n",
			VGPU_TENANT_LEN - 1, (int)min(len, (size_t)VGPU_TENANT_LEN), buf);
		return -EINVAL;
	}
	spin_lock(&vgpu->state_lock);
	memcpy(vgpu->notes.tenant, buf, len);
	vgpu->notes.tenant[len] = '\0';
	spin_unlock(&vgpu->state_lock);
	vgpu_device_tell(vgpu);
	return count;
}
static DEVICE_ATTR_RW(tenant);

static ssize_t class_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%s\n", vgpu_classes[READ_ONCE(vgpu_from_dev(dev)->notes.class)]);
}

static ssize_t class_store(struct device *dev, struct device_attribute *attr, const char *buf,
			   size_t count)
{
	struct vgpu *vgpu = vgpu_from_dev(dev);
	int class = sysfs_match_string(vgpu_classes, buf);

	if (class < 0) {
		dev_err(dev, "class must be guaranteed, burstable or best-effort, not \"%*pE\"\n",
			(int)min(strcspn(buf, "\n"), (size_t)32), buf);
		return class;
	}
	spin_lock(&vgpu->state_lock);
	WRITE_ONCE(vgpu->notes.class, class);
	spin_unlock(&vgpu->state_lock);
	vgpu_device_tell(vgpu);
	return count;
}
static DEVICE_ATTR_RW(class);

static ssize_t oversubscribe_bytes_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	struct vgpu *vgpu = vgpu_from_dev(dev);
	ssize_t n;

	spin_lock(&vgpu->state_lock);
	if (vgpu->notes.oversubscribe_given)
		n = sysfs_emit(buf, "%llu\n", vgpu->notes.oversubscribe_bytes);
	else
		n = sysfs_emit(buf, "\n");
	spin_unlock(&vgpu->state_lock);
	return n;
}

static ssize_t oversubscribe_bytes_store(struct device *dev, struct device_attribute *attr,
					 const char *buf, size_t count)
{
	struct vgpu *vgpu = vgpu_from_dev(dev);
	bool given = !sysfs_streq(buf, "");
	u64 bytes = 0;
	int ret = given ? vgpu_parse(dev, "oversubscribe_bytes", buf, &bytes) : 0;

	if (ret)
		return ret;
	if (bytes > VGPU_OVERSUBSCRIBE_MAX) {
		dev_err(dev, "oversubscribe_bytes must be from 0 to %llu, not %llu\n",
			VGPU_OVERSUBSCRIBE_MAX, bytes);
		return -EINVAL;
	}
	spin_lock(&vgpu->state_lock);
	vgpu->notes.oversubscribe_given = given;
	vgpu->notes.oversubscribe_bytes = bytes;
	spin_unlock(&vgpu->state_lock);
	vgpu_device_tell(vgpu);
	return count;
}
static DEVICE_ATTR_RW(oversubscribe_bytes);

/* A change is told afterwards, so what is read in the middle of one is read again. */
static ssize_t state_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	static const char *const engines[VGPU_ENGINE_PHASES] = {
		[VGPU_ENGINE_IS_NONE] = "none",
		[VGPU_ENGINE_IS_FAILED] = "failed",
		[VGPU_ENGINE_IS_STARTING] = "starting",
	};
	struct vgpu *vgpu = vgpu_from_dev(dev);
	const char *device = "closed";
	struct vgpu_phase phase;

	spin_lock(&vgpu->state_lock);
	phase = vgpu->phase;
	spin_unlock(&vgpu->state_lock);
	if (vgpu_is_removed(vgpu))
		device = "removed";
	else if (phase.device == VGPU_DEVICE_IS_LOST)
		device = "lost";
	else if (phase.device != VGPU_DEVICE_IS_CLOSED)
		device = vgpu_regs_driver_ok(&vgpu->regs) ? "running" : "open";
	return sysfs_emit(buf, "device=%s engine=%s\n", device, engines[phase.engine] ?: "ready");
}
static DEVICE_ATTR_RO(state);

static ssize_t failure_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	struct vgpu *vgpu = vgpu_from_dev(dev);
	ssize_t n;

	spin_lock(&vgpu->state_lock);
	n = sysfs_emit(buf, "%s\n", vgpu->failure);
	spin_unlock(&vgpu->state_lock);
	return n;
}
static DEVICE_ATTR_RO(failure);

#define VGPU_ATTR_COUNTER(_name, _expr)							\
static ssize_t _name##_show(struct device *dev, struct device_attribute *attr, char *buf)	\
{											\
	struct vgpu *vgpu = vgpu_from_dev(dev);						\
											\
	return sysfs_emit(buf, "%llu\n", READ_ONCE(_expr));				\
}											\
static DEVICE_ATTR_RO(_name)

VGPU_ATTR_COUNTER(window_published_bytes, vgpu->window.published_bytes);
VGPU_ATTR_COUNTER(window_faults, vgpu->stats.window_faults);
VGPU_ATTR_COUNTER(doorbells, vgpu->stats.doorbells);
VGPU_ATTR_COUNTER(interrupts, vgpu->stats.interrupts);
VGPU_ATTR_COUNTER(requests, vgpu->stats.requests);
VGPU_ATTR_COUNTER(engine_losses, vgpu->stats.engine_losses);

static ssize_t pinned_bytes_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%llu\n",
			  READ_ONCE(vgpu_from_dev(dev)->mem.pinned_pages) << PAGE_SHIFT);
}
static DEVICE_ATTR_RO(pinned_bytes);

static struct attribute *vgpu_attrs[] = {
	&dev_attr_vram_bytes.attr,
	&dev_attr_window_bytes.attr,
	&dev_attr_weight.attr,
	&dev_attr_cap.attr,
	&dev_attr_priority.attr,
	&dev_attr_display.attr,
	&dev_attr_cuda.attr,
	&dev_attr_tenant.attr,
	&dev_attr_class.attr,
	&dev_attr_oversubscribe_bytes.attr,
	&dev_attr_state.attr,
	&dev_attr_failure.attr,
	&dev_attr_pinned_bytes.attr,
	&dev_attr_window_published_bytes.attr,
	&dev_attr_window_faults.attr,
	&dev_attr_doorbells.attr,
	&dev_attr_interrupts.attr,
	&dev_attr_requests.attr,
	&dev_attr_engine_losses.attr,
	NULL,
};

static const struct attribute_group vgpu_group = {
	.name = "vgpu",
	.attrs = vgpu_attrs,
};

const struct attribute_group *vgpu_mdev_groups[] = {
	&vgpu_group,
	NULL,
};
