/* SPDX-License-Identifier: MIT */
#include "live.h"

#include "configuration.h"
#include "question.h"
#include "vgpu_write.h"

static gboolean fill(VgpuWrite list[ATTRIBUTES], const Vgpu *vgpu, const Wanted *wanted)
{
    gboolean different = FALSE;

    for (guint i = 0; i < ATTRIBUTES; i++) {
        guint64 now = configuration_value(vgpu, i);
        guint64 then = wanted->given[i] ? wanted->values[i] : now;

        list[i] = (VgpuWrite){attribute_file(&attributes[i]), now, then};
        different = different || now != then;
    }
    return different;
}

gboolean live_modify(const Call *call, const Wanted *wanted, GError **error)
{
    g_autoptr(Vgpu) vgpu = vgpu_read(call->root, call->uuid);
    g_autoptr(GError) cause = NULL;
    VgpuWrite list[ATTRIBUTES];

    if (!vgpu) {
        g_set_error(error, G_OPTION_ERROR, G_OPTION_ERROR_FAILED, "vGPU %s is not running",
                    call->uuid);
        return FALSE;
    }
    if (!fill(list, vgpu, wanted))
        return TRUE;
    if (!question_ask(call, "live", wanted, error))
        return FALSE;
    if (vgpu_write(vgpu->dir, list, ATTRIBUTES, &cause))
        return TRUE;
    g_set_error(error, G_OPTION_ERROR, G_OPTION_ERROR_FAILED,
                "vGPU %s stays as it is: %s; the kernel log may say more (dmesg)", call->uuid,
                cause->message);
    return FALSE;
}
