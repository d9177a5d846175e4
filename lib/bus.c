/* SPDX-License-Identifier: MIT */
#include "lib/bus.h"

GQuark agent_error_quark(void)
{
    static gsize quark;
    static const GDBusErrorEntry entries[] = {
        {AGENT_ERROR_FAILED, VGPU_BUS_NAME ".Error.Failed"},
        {AGENT_ERROR_INVALID, VGPU_BUS_NAME ".Error.InvalidArgument"},
        {AGENT_ERROR_NOT_FOUND, VGPU_BUS_NAME ".Error.NotFound"},
        {AGENT_ERROR_NOT_AUTHORIZED, VGPU_BUS_NAME ".Error.NotAuthorized"},
        {AGENT_ERROR_IN_USE, VGPU_BUS_NAME ".Error.InUse"},
        {AGENT_ERROR_NO_ROOM, VGPU_BUS_NAME ".Error.NoRoom"},
        {AGENT_ERROR_QUOTA, VGPU_BUS_NAME ".Error.Quota"},
    };

    g_dbus_error_register_error_domain("vgpu-agent-error", &quark, entries,
                                       G_N_ELEMENTS(entries));
    return (GQuark)quark;
}
