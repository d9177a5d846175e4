/* SPDX-License-Identifier: MIT */
/*
 * The legal steps of a vGPU's life: what every phase becomes on every occasion, and that no series
 * of legal steps leads to a combination that the driver does not expect.
 */
#include <glib.h>

#include "phase.h"

/* What each phase becomes, by its letter; '.': the occasion must not come then. */
static const struct {
    const char *name;
    const char *engine; /* None Failed Starting fResh Busy rElEasing resTing Leaving */
    const char *device; /* Closed liVe Resetting revIving lOst */
    const char *vm;     /* Runs Stopped Loaded */
} expected[VGPU_OCCASIONS] = {
    [VGPU_ON_ATTACH] = {"attach", "SS......", "CVRIO", "RSL"},
    [VGPU_ON_READY] = {"ready", "..R.....", "CVRIO", "RSL"},
    [VGPU_ON_RELEASED] = {"released", ".....T..", "..RI.", "RSL"},
    [VGPU_ON_ENGINE_LEFT] = {"engine left", "..NNNNNN", "CVIIO", "RSL"},
    [VGPU_ON_ENGINE_LOST] = {"engine lost", "..NNNNNN", ".OIIO", "RSL"},
    [VGPU_ON_FAILED] = {"failed", "F.......", "CVRIO", "RSL"},
    [VGPU_ON_OPEN] = {"open", "NFSR....", "V....", "RSL"},
    [VGPU_ON_DRIVER_OK] = {"driver ok", "...BB.B.", ".V...", "RSL"},
    [VGPU_ON_DRIVER_ALONE] = {"driver alone", "NFSRBETL", ".O..O", "RSL"},
    [VGPU_ON_RESET] = {"reset", "NFSREETL", ".RRII", "RRR"},
    [VGPU_ON_SETTLED] = {"settled", "NFSRB.T.", "..VV.", "RSL"},
    [VGPU_ON_CLOSE] = {"close", "NFSRLLL.", ".CCCC", "RRR"},
    [VGPU_ON_STOP] = {"stop", "NFSRBETL", "CVRIO", "SSS"},
    [VGPU_ON_LOAD] = {"load", "NFSRBETL", "CVRIO", ".L."},
    [VGPU_ON_GO] = {"go", "NFSRBETL", "CVRIO", "RRR"},
};

static const char engines[] = "NFSRBETL", devices[] = "CVRIO", vms[] = "RSL";

#define PHASES (VGPU_ENGINE_PHASES * VGPU_DEVICE_PHASES * VGPU_VM_PHASES)

static struct vgpu_phase phase_of(unsigned int i)
{
    return (struct vgpu_phase){
        .engine = i / VGPU_VM_PHASES / VGPU_DEVICE_PHASES,
        .device = i / VGPU_VM_PHASES % VGPU_DEVICE_PHASES,
        .vm = i % VGPU_VM_PHASES,
    };
}

static unsigned int number_of(const struct vgpu_phase *phase)
{
    return (phase->engine * VGPU_DEVICE_PHASES + phase->device) * VGPU_VM_PHASES + phase->vm;
}

static void check_step(struct vgpu_phase phase, unsigned int occasion)
{
    char engine = expected[occasion].engine[phase.engine];
    char device = expected[occasion].device[phase.device], vm = expected[occasion].vm[phase.vm];
    g_autofree char *was =
        g_strdup_printf("%s: %c%c%c", expected[occasion].name, engines[phase.engine],
                        devices[phase.device], vms[phase.vm]);
    unsigned int before = number_of(&phase);
    bool legal = engine != '.' && device != '.' && vm != '.';

    g_test_message("%s -> %c%c%c", was, engine, device, vm);
    g_assert_cmpint(vgpu_phase_step(&phase, occasion), ==, legal);
    if (!legal) {
        g_assert_cmpuint(number_of(&phase), ==, before);
        return;
    }
    g_assert_cmpint(engines[phase.engine], ==, engine);
    g_assert_cmpint(devices[phase.device], ==, device);
    g_assert_cmpint(vms[phase.vm], ==, vm);
}

static void test_every_step(void)
{
    for (unsigned int i = 0; i < PHASES; i++)
        for (unsigned int occasion = 0; occasion < VGPU_OCCASIONS; occasion++)
            check_step(phase_of(i), occasion);
}

/* What the driver relies on. */
static void check_phase(const struct vgpu_phase *phase)
{
    bool closed = phase->device == VGPU_DEVICE_IS_CLOSED;
    bool resetting =
        phase->device == VGPU_DEVICE_IS_RESETTING || phase->device == VGPU_DEVICE_IS_REVIVING;

    switch (phase->engine) {
    case VGPU_ENGINE_IS_BUSY:
        g_assert_false(closed || resetting);
        break;
    case VGPU_ENGINE_IS_RELEASING:
        g_assert_true(resetting);
        break;
    case VGPU_ENGINE_IS_RESTING:
        g_assert_false(closed);
        break;
    case VGPU_ENGINE_IS_LEAVING:
        g_assert_true(closed);
        break;
    default:
        break;
    }
}

static void walk_phases(bool seen[PHASES], struct vgpu_phase phase)
{
    if (seen[number_of(&phase)])
        return;
    seen[number_of(&phase)] = true;
    check_phase(&phase);
    for (unsigned int occasion = 0; occasion < VGPU_OCCASIONS; occasion++) {
        struct vgpu_phase next = phase;

        if (vgpu_phase_step(&next, occasion))
            walk_phases(seen, next);
    }
}

static void test_all_that_can_be_reached(void)
{
    bool seen[PHASES] = {false};
    unsigned int engines_seen = 0, devices_seen = 0;

    walk_phases(seen, (struct vgpu_phase){0});
    for (unsigned int i = 0; i < PHASES; i++) {
        struct vgpu_phase phase = phase_of(i);

        engines_seen |= seen[i] ? 1u << phase.engine : 0;
        devices_seen |= seen[i] ? 1u << phase.device : 0;
    }
    g_assert_cmphex(engines_seen, ==, (1u << VGPU_ENGINE_PHASES) - 1);
    g_assert_cmphex(devices_seen, ==, (1u << VGPU_DEVICE_PHASES) - 1);
}

/* A VMM that closes and an engine that ends lead back to the start from everywhere. */
static void test_never_stuck(void)
{
    bool seen[PHASES] = {false};

    walk_phases(seen, (struct vgpu_phase){0});
    for (unsigned int i = 0; i < PHASES; i++) {
        struct vgpu_phase phase = phase_of(i);

        if (!seen[i])
            continue;
        if (phase.device != VGPU_DEVICE_IS_CLOSED)
            g_assert_true(vgpu_phase_step(&phase, VGPU_ON_CLOSE));
        if (phase.engine > VGPU_ENGINE_IS_FAILED)
            g_assert_true(vgpu_phase_step(&phase, VGPU_ON_ENGINE_LEFT));
        g_assert_true(vgpu_phase_step(&phase, VGPU_ON_ATTACH));
        g_assert_true(vgpu_phase_step(&phase, VGPU_ON_READY));
        g_assert_true(vgpu_phase_step(&phase, VGPU_ON_OPEN));
        g_assert_true(vgpu_phase_step(&phase, VGPU_ON_DRIVER_OK));
    }
}

/* An engine that has served a VM serves no other. */
static void test_one_vm_for_each_engine(void)
{
    for (unsigned int i = 0; i < PHASES; i++) {
        struct vgpu_phase phase = phase_of(i);

        if (phase.engine < VGPU_ENGINE_IS_BUSY || !vgpu_phase_step(&phase, VGPU_ON_CLOSE))
            continue;
        g_assert_cmpint(phase.engine, ==, VGPU_ENGINE_IS_LEAVING);
        g_assert_false(vgpu_engine_can_serve(phase.engine));
        g_assert_false(vgpu_phase_step(&phase, VGPU_ON_OPEN));
        g_assert_false(vgpu_phase_step(&phase, VGPU_ON_RELEASED));
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/phase/every step", test_every_step);
    g_test_add_func("/phase/all that can be reached", test_all_that_can_be_reached);
    g_test_add_func("/phase/never stuck", test_never_stuck);
    g_test_add_func("/phase/one VM for each engine", test_one_vm_for_each_engine);
    return g_test_run();
}
