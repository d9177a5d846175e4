/* SPDX-License-Identifier: MIT */
/* mdev-vgpu: mdevctl's callout for vGPUs; mdev-vgpu(8). */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/bus.h"
#include "lib/control.h"
#include "mdevctl-plugins/call.h"
#include "mdevctl-plugins/configuration.h"
#include "mdevctl-plugins/live.h"
#include "mdevctl-plugins/question.h"
#include "mdevctl-plugins/type.h"

/* The meaning of exit statuses for mdevctl. */
enum { STATUS_OK = 0, STATUS_REFUSED = 1, STATUS_NOT_OURS = 2 };

/*
 * For mdevctl a missing event or action is an error, so all are listed, also those in which nothing
 * is done.
 */
static const char capabilities[] = "{\"supports\":{\"version\":2,"
                                   "\"actions\":[\"start\",\"stop\",\"define\",\"undefine\","
                                   "\"modify\",\"attributes\",\"capabilities\"],"
                                   "\"events\":[\"pre\",\"post\",\"notify\",\"get\",\"live\"]}}";

/* For "mdevctl list", and for a definition that is made from a running vGPU. */
static gboolean print_attributes(const Call *call, GError **error)
{
    g_autoptr(Vgpu) vgpu = vgpu_read(call->root, call->uuid);
    g_autofree char *list = vgpu ? configuration_list(call->root, vgpu) : NULL;

    if (!list) {
        g_set_error(error, G_OPTION_ERROR, G_OPTION_ERROR_FAILED,
                    "vGPU %s is not running, so it has no attributes", call->uuid);
        return FALSE;
    }
    puts(list);
    return TRUE;
}

static gboolean read_wanted(Wanted *wanted, GError **error)
{
    g_autofree char *text = call_input();

    return configuration_parse(text, wanted, error);
}

/*
 * mdevctl makes a vGPU, and then writes its attributes. So that a vGPU fits where its type does
 * not, the driver must know its memory before. @vram: 0: it is not made. If this fails, the driver
 * has the last word, with the type's memory.
 */
static void announce_memory(const Call *call, guint64 vram)
{
    g_autofree char *gpu = gpu_name_valid(call->parent)
                               ? g_strdup(call->parent)
                               : g_strconcat(GPU_SOFT_PREFIX, call->parent, NULL);
    g_autoptr(GError) error = NULL;
    int fd = control_open(call->root, &error);

    if (fd >= 0) {
        control_announce(fd, gpu, call->type, call->uuid, vram, &error);
        close(fd);
    }
    /* Without a driver or a type, mdevctl reports that itself. */
    if (error && error->code == REGISTRAR_ERROR_REFUSED && vram)
        g_printerr("%s\n", error->message);
}

/* vgpud is not asked about its own mdevctl: it has decided already. */
static gboolean check_definition(const Call *call, GError **error)
{
    gboolean checked = g_getenv(VGPU_CHECKED_ENV) != NULL;
    g_auto(Wanted) wanted = {0};
    const char *vram;

    if (!read_wanted(&wanted, checked ? NULL : error))
        return checked;
    if (!checked && !question_ask(call, call->action, &wanted, error))
        return FALSE;
    vram = wanted_value(&wanted, "vram_bytes");
    if (call_is(call, "pre", "start") && vram)
        announce_memory(call, g_ascii_strtoull(vram, NULL, 10));
    return TRUE;
}

static gboolean modify_live(const Call *call, GError **error)
{
    g_auto(Wanted) wanted = {0};

    return read_wanted(&wanted, error) && live_modify(call, &wanted, error);
}

static gboolean answer_call(const Call *call, GError **error)
{
    if (call_is(call, "get", "capabilities"))
        return puts(capabilities) >= 0;
    if (call_is(call, "get", "attributes"))
        return print_attributes(call, error);
    if (call_is(call, "live", "modify"))
        return modify_live(call, error);
    if (call_is(call, "pre", "define") || call_is(call, "pre", "modify") ||
        call_is(call, "pre", "start"))
        return check_definition(call, error);
    /* One that could not be made is not announced any more. */
    if (call_is(call, "post", "start"))
        announce_memory(call, 0);
    /* Nothing prevents a stop. The kernel and the definition's file tell vgpud about it. */
    return TRUE;
}

int main(int argc, char **argv)
{
    g_autoptr(HostRoot) root = NULL;
    g_autoptr(GError) error = NULL;
    Call call;

    if (!call_parse(argc, argv, &call)) {
        g_printerr("mdev-vgpu is run by mdevctl: mdev-vgpu -t TYPE -e EVENT -a ACTION -s STATE -u "
                   "UUID -p PARENT\n");
        return STATUS_REFUSED;
    }
    root = call.root = host_root_new(g_getenv("MDEVCTL_ENV_ROOT"), &error);
    if (!root) {
        g_printerr("MDEVCTL_ENV_ROOT: %s\n", error->message);
        return STATUS_REFUSED;
    }
    if (!type_is_ours(&call))
        return STATUS_NOT_OURS;
    if (answer_call(&call, &error))
        return STATUS_OK;
    g_printerr("%s\n", error ? error->message : "failed");
    return STATUS_REFUSED;
}
