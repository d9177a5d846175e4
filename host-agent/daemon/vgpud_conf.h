/* SPDX-License-Identifier: MIT */
/*
 * /etc/vgpu/vgpud.conf: what an operator sets of vgpud. Without it all is as vgpud(8) says.
 */
#ifndef VGPUD_VGPUD_CONF_H
#define VGPUD_VGPUD_CONF_H

#include <glib.h>

#define VGPUD_CONF "/etc/vgpu/vgpud.conf"

/**
 * VgpudConf
 * @metrics_listen: "ADDRESS:PORT" or "unix:PATH"; NULL: nowhere
 * @pressure_grace: seconds between the steps against a want of memory
 */
typedef struct {
    char *metrics_listen;
    guint pressure_grace;
} VgpudConf;

/* Groups, keys and values that are not known are errors that name file, group and key
 * (AGENT_ERROR_INVALID). */
VgpudConf *vgpud_conf_load(const char *root, GError **error);

void vgpud_conf_free(VgpudConf *conf);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(VgpudConf, vgpud_conf_free)

#endif
