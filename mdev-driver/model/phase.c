// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * The legal steps of a vGPU's life.
 */
#include "phase.h"

/* A rule: on @occasion, one of the phases @from becomes @to. The first that fits counts. */
struct vgpu_rule {
	enum vgpu_occasion occasion;
	u32 from;
	int to;
};

#define SAME	(-1)
#define ANY	(~0u)

#define ON(occasion, from, to)	{ VGPU_ON_##occasion, from, to }

#define E(phase)	(1u << VGPU_ENGINE_IS_##phase)
#define UNATTACHED	(E(NONE) | E(FAILED))
#define UNUSED		(UNATTACHED | E(STARTING) | E(FRESH))

static const struct vgpu_rule engine_rules[] = {
	ON(ATTACH, UNATTACHED, VGPU_ENGINE_IS_STARTING),
	ON(READY, E(STARTING), VGPU_ENGINE_IS_FRESH),
	ON(RELEASED, E(RELEASING), VGPU_ENGINE_IS_RESTING),
	ON(ENGINE_LEFT, ~UNATTACHED, VGPU_ENGINE_IS_NONE),
	ON(ENGINE_LOST, ~UNATTACHED, VGPU_ENGINE_IS_NONE),
	ON(FAILED, E(NONE), VGPU_ENGINE_IS_FAILED),
	/* It may have ended since the VMM waited for it. */
	ON(OPEN, UNUSED, SAME),
	ON(DRIVER_OK, E(FRESH) | E(BUSY) | E(RESTING), VGPU_ENGINE_IS_BUSY),
	ON(RESET, E(BUSY), VGPU_ENGINE_IS_RELEASING),
	ON(RESET, ANY, SAME),
	ON(SETTLED, ~(E(RELEASING) | E(LEAVING)), SAME),
	/* Its VM's data are in it, even if the guest has reset the device. */
	ON(CLOSE, ~(UNUSED | E(LEAVING)), VGPU_ENGINE_IS_LEAVING),
	ON(CLOSE, UNUSED, SAME),
};

#define D(phase)	(1u << VGPU_DEVICE_IS_##phase)

static const struct vgpu_rule device_rules[] = {
	ON(RELEASED, D(RESETTING) | D(REVIVING), SAME),
	ON(ENGINE_LEFT, D(RESETTING), VGPU_DEVICE_IS_REVIVING),
	ON(ENGINE_LEFT, ANY, SAME),
	ON(ENGINE_LOST, D(LIVE), VGPU_DEVICE_IS_LOST),
	ON(ENGINE_LOST, D(RESETTING), VGPU_DEVICE_IS_REVIVING),
	ON(ENGINE_LOST, D(REVIVING) | D(LOST), SAME),
	ON(OPEN, D(CLOSED), VGPU_DEVICE_IS_LIVE),
	ON(DRIVER_OK, D(LIVE), SAME),
	ON(DRIVER_ALONE, D(LIVE) | D(LOST), VGPU_DEVICE_IS_LOST),
	ON(RESET, D(LIVE), VGPU_DEVICE_IS_RESETTING),
	/* So that the guest's driver finds an engine. */
	ON(RESET, D(LOST), VGPU_DEVICE_IS_REVIVING),
	ON(RESET, D(RESETTING) | D(REVIVING), SAME),
	ON(SETTLED, D(RESETTING) | D(REVIVING), VGPU_DEVICE_IS_LIVE),
	ON(CLOSE, ~D(CLOSED), VGPU_DEVICE_IS_CLOSED),
};

#define V(phase)	(1u << VGPU_VM_##phase)

static const struct vgpu_rule vm_rules[] = {
	/* A VMM's threads may order the same twice. */
	ON(STOP, ANY, VGPU_VM_IS_STOPPED),
	ON(LOAD, V(IS_STOPPED), VGPU_VM_IS_LOADED),
	ON(GO, ANY, VGPU_VM_RUNS),
	ON(RESET, ANY, VGPU_VM_RUNS),
	ON(CLOSE, ANY, VGPU_VM_RUNS),
};

#define END_OF(rules)	((rules) + sizeof(rules) / sizeof((rules)[0]))

/* The next phase; the same if no rule is about @occasion; or -1 if none of those that are fits. */
static int next_phase(const struct vgpu_rule *rule, const struct vgpu_rule *end,
		      enum vgpu_occasion occasion, int phase)
{
	int next = phase;

	for (; rule < end; rule++) {
		if (rule->occasion != occasion)
			continue;
		if (rule->from & 1u << phase)
			return rule->to == SAME ? phase : rule->to;
		next = -1;
	}
	return next;
}

bool vgpu_phase_step(struct vgpu_phase *phase, enum vgpu_occasion occasion)
{
	int engine = next_phase(engine_rules, END_OF(engine_rules), occasion, phase->engine);
	int device = next_phase(device_rules, END_OF(device_rules), occasion, phase->device);
	int vm = next_phase(vm_rules, END_OF(vm_rules), occasion, phase->vm);

	if (engine < 0 || device < 0 || vm < 0)
		return false;
	phase->engine = engine;
	phase->device = device;
	phase->vm = vm;
	return true;
}
