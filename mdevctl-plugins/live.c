/* SPDX-License-Identifier: MIT */
#include "mdevctl-plugins/live.h"

#include "lib/vgpu.h"
#include "mdevctl-plugins/configuration.h"
#include "mdevctl-plugins/question.h"

/* Change - a value to be written; the driver has @now */
typedef struct {
    char *now[ATTRIBUTES_MAX];
    VgpuWrite list[ATTRIBUTES_MAX];
    guint count;
    gboolean different;
} Change;

static void change_clear(Change *change)
{
    for (guint i = 0; i < change->count; i++)
        g_free(change->now[i]);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Change, change_clear)

static void change_fill(Change *change, const Call *call, const Vgpu *vgpu, const Wanted *wanted)
{
    const Attribute *list;

    change->count = attributes_get(&list);
    for (guint i = 0; i < change->count; i++) {
        char *now = configuration_value(call->root, vgpu, &list[i]);
        const char *then = wanted->values[i] ? wanted->values[i] : now;

        change->now[i] = now;
        change->list[i] = (VgpuWrite){attribute_file(&list[i]), now, then};
        change->different = change->different || !g_str_equal(now, then);
    }
}

gboolean live_modify(const Call *call, const Wanted *wanted, GError **error)
{
    g_autoptr(Vgpu) vgpu = vgpu_read(call->root, call->uuid);
    g_autoptr(GError) cause = NULL;
    g_auto(Change) change = {0};

    if (!vgpu) {
        g_set_error(error, G_OPTION_ERROR, G_OPTION_ERROR_FAILED, "vGPU %s is not running",
                    call->uuid);
        return FALSE;
    }
    change_fill(&change, call, vgpu, wanted);
    if (!change.different)
        return TRUE;
    if (!question_ask(call, "live", wanted, error))
        return FALSE;
    if (vgpu_write(call->root, vgpu->dir, change.list, change.count, &cause))
        return TRUE;
    g_set_error(error, G_OPTION_ERROR, G_OPTION_ERROR_FAILED,
                "cannot change vGPU %s: %s; the kernel log may say more (dmesg)", call->uuid,
                cause->message);
    return FALSE;
}
