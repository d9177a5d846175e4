/* SPDX-License-Identifier: MIT */
/*
 * /etc/vgpu/vgpud.conf: the operator's settings of vgpud. Without it the defaults of vgpud(8)
 * apply.
 */
#ifndef LIB_VGPUD_CONF_H
#define LIB_VGPUD_CONF_H

#include <glib.h>

#include "lib/host_root.h"

#define VGPUD_CONF "/etc/vgpu/vgpud.conf"

/* What happens to a process that uses a slice's GPU past its governor. */
typedef enum {
    ON_BYPASS_REPORT,
    ON_BYPASS_KILL,
    ON_BYPASS_IGNORE,
} OnBypass;

/* How far programs of native best-effort slices make room; each includes those before it. */
typedef enum {
    PRESSURE_NATIVE_LEAVE,   /* as pressure-command= has them */
    PRESSURE_NATIVE_SUSPEND, /* before that, they are suspended */
    PRESSURE_NATIVE_END,     /* after all, they are killed */
} PressureNative;

/**
 * VgpudConf
 * @metrics_listen: "ADDRESS:PORT" or "unix:PATH"; NULL: nowhere
 * @pressure_grace: seconds between the steps when memory is short
 * @pressure_native: what the programs of native slices do then
 * @on_bypass: what happens to processes past their governor
 * @has_on_bypass: the file says so
 * @displaced: bytes of the host's memory for GPU memory that is displaced; 0: none moves
 */
typedef struct {
    char *metrics_listen;
    guint pressure_grace;
    PressureNative pressure_native;
    OnBypass on_bypass;
    gboolean has_on_bypass;
    guint64 displaced;
} VgpudConf;

/*
 * Unknown groups, keys and values are errors that name file, group and key (AGENT_ERROR_INVALID).
 */
VgpudConf *vgpud_conf_load(HostRoot *root, GError **error);

/*
 * For the start of vgpud: a mistake costs only its own key, which has its default, and is logged.
 * NULL with @error: on-bypass= is in the file and cannot be read; the default might be weaker.
 */
VgpudConf *vgpud_conf_load_at_start(HostRoot *root, GError **error);

void vgpud_conf_free(VgpudConf *conf);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(VgpudConf, vgpud_conf_free)

#endif
