/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/containers/guard_units.h"

#include "lib/unit_call.h"

#define USER_PROGRAM "/usr/lib/mdev-vgpu/vgpu-engine-user"

typedef struct {
    char *uuid;
    gboolean start;
} Step;

/**
 * GuardUnits
 * @steps: of Step; the first is being done
 */
struct GuardUnits {
    char *program;
    GDBusConnection *bus;
    GCancellable *end;
    GQueue steps;
};

static void step_free(void *data)
{
    Step *step = data;

    g_free(step->uuid);
    g_free(step);
}

static void ask_systemd(const GuardUnits *units, const char *method, const char *uuid)
{
    g_autofree char *unit = g_strconcat("vgpu-guard@", uuid, ".service", NULL);

    unit_call(units->bus, method, unit);
}

static void do_first(GuardUnits *units);

static void finish_first(GuardUnits *units, const GError *error)
{
    Step *step = g_queue_pop_head(&units->steps);

    if (error && step->start)
        g_warning("slice %s has no guard, and containers that ask for it can't start: %s: %s; it "
                  "is in the package "
                  "vgpu-engine",
                  step->uuid, USER_PROGRAM, error->message);
    if (!error && step->start)
        ask_systemd(units, "StartUnit", step->uuid);
    step_free(step);
    do_first(units);
}

/* Where it was cancelled @units are gone. */
static void ended(GObject *process, GAsyncResult *result, void *data)
{
    g_autoptr(GError) error = NULL;

    g_subprocess_wait_check_finish(G_SUBPROCESS(process), result, &error);
    if (!g_error_matches(error, G_IO_ERROR, G_IO_ERROR_CANCELLED))
        finish_first(data, error);
}

static void do_first(GuardUnits *units)
{
    const Step *step = g_queue_peek_head(&units->steps);
    g_autoptr(GError) error = NULL;
    g_autoptr(GSubprocess) process = NULL;

    if (!step)
        return;
    if (!step->start)
        ask_systemd(units, "StopUnit", step->uuid);
    process = g_subprocess_new(G_SUBPROCESS_FLAGS_NONE, &error, units->program,
                               step->start ? "add" : "remove", step->uuid, "guard", NULL);
    if (process)
        g_subprocess_wait_check_async(process, units->end, ended, units);
    else
        finish_first(units, error);
}

static void add(GuardUnits *units, const char *uuid, gboolean start)
{
    Step *step = g_new0(Step, 1);

    step->uuid = g_strdup(uuid);
    step->start = start;
    g_queue_push_tail(&units->steps, step);
    if (units->steps.length == 1)
        do_first(units);
}

void guard_units_start(GuardUnits *units, const char *uuid)
{
    add(units, uuid, TRUE);
}

void guard_units_stop(GuardUnits *units, const char *uuid)
{
    add(units, uuid, FALSE);
}

GuardUnits *guard_units_new(const char *root, GDBusConnection *bus)
{
    GuardUnits *units = g_new0(GuardUnits, 1);

    units->program = g_strconcat(root, USER_PROGRAM, NULL);
    units->bus = g_object_ref(bus);
    units->end = g_cancellable_new();
    g_queue_init(&units->steps);
    return units;
}

void guard_units_free(GuardUnits *units)
{
    g_cancellable_cancel(units->end);
    g_object_unref(units->end);
    g_queue_clear_full(&units->steps, step_free);
    g_object_unref(units->bus);
    g_free(units->program);
    g_free(units);
}
