/* SPDX-License-Identifier: MIT */
#include "lib/vgpu_ready.h"

#include "lib/vgpu.h"

#define PERIOD_US 50000

/* TRUE: it is known how it ended; @error is set where that was badly. */
static gboolean has_ended(const Vgpu *vgpu, const char *uuid, GError **error)
{
    if (!vgpu)
        g_set_error(error, G_IO_ERROR, G_IO_ERROR_NOT_FOUND,
                    "vGPU %s has gone while its engine was waited for", uuid);
    else if (g_str_equal(vgpu->engine, "failed"))
        g_set_error(error, G_IO_ERROR, G_IO_ERROR_FAILED,
                    "the engine of vGPU %s gave up: %s; \"journalctl -u vgpu-engine@%s\" has more",
                    uuid, vgpu->failure && *vgpu->failure ? vgpu->failure : "it does not say why",
                    uuid);
    else
        return g_str_equal(vgpu->engine, "ready");
    return TRUE;
}

gboolean vgpu_wait_ready(const char *root, const char *uuid, guint timeout_ms, GError **error)
{
    gint64 end = g_get_monotonic_time() + (gint64)timeout_ms * 1000;

    for (;;) {
        g_autoptr(Vgpu) vgpu = vgpu_read(root, uuid);
        g_autoptr(GError) failure = NULL;

        if (has_ended(vgpu, uuid, &failure)) {
            if (!failure)
                return TRUE;
            g_propagate_error(error, g_steal_pointer(&failure));
            return FALSE;
        }
        if (g_get_monotonic_time() >= end) {
            g_set_error(error, G_IO_ERROR, G_IO_ERROR_TIMED_OUT,
                        "the engine of vGPU %s is not ready after %u s; \"systemctl status "
                        "vgpu-engine@%s\" says why",
                        uuid, timeout_ms / 1000, uuid);
            return FALSE;
        }
        g_usleep(PERIOD_US);
    }
}
