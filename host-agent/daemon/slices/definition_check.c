/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/slices/definition_check.h"

#include "host-agent/daemon/slices/placing.h"
#include "host-agent/model/dict_read.h"
#include "host-agent/model/request.h"
#include "lib/bus.h"
#include "lib/units.h"

static gboolean parse_action(const char *name, CheckAction *action, GError **error)
{
    static const char *const names[] = {
        [CHECK_DEFINE] = "define",
        [CHECK_MODIFY] = "modify",
        [CHECK_START] = "start",
        [CHECK_LIVE] = "live",
    };

    for (guint i = 0; i < G_N_ELEMENTS(names); i++) {
        if (g_strcmp0(name, names[i]) == 0) {
            *action = (CheckAction)i;
            return TRUE;
        }
    }
    g_set_error(error, AGENT_ERROR, AGENT_ERROR_INVALID,
                "Action must be define, modify, start or live, not \"%s\"", name ? name : "");
    return FALSE;
}

void definition_check_clear(DefinitionCheck *check)
{
    g_clear_pointer(&check->tenant, g_free);
}

/* The values themselves are the driver's to check; these bounds keep sums from overflowing. */
gboolean definition_check_parse(GVariant *options, DefinitionCheck *check, GError **error)
{
    g_autofree char *action = NULL;
    g_autofree char *class = NULL;
    const DictKey keys[] = {
        {"Action", 's', &action, NULL, 0, 0},
        {"Autostart", 'b', &check->autostart, NULL, 0, 0},
        {"Vram", 't', &check->vram, &check->vram_given, 1, REQUEST_MAX_BYTES},
        {"Window", 't', &check->window, NULL, 0, 0},
        {"Weight", 'u', &check->weight, &check->weight_given, 0, 0},
        {"Cap", 'u', &check->cap, &check->cap_given, 1, 100},
        {"Priority", 'u', &check->priority, &check->priority_given, 0, 0},
        {"Tenant", 's', &check->tenant, NULL, 0, 0},
        {"Class", 's', &class, &check->class_given, 0, 0},
        {"Oversubscribe", 't', &check->oversubscribe, &check->oversubscribe_given, 0,
         REQUEST_MAX_BYTES},
    };

    return dict_read(options, keys, G_N_ELEMENTS(keys), error) &&
           parse_action(action, &check->action, error) &&
           (!class || request_parse_class(class, &check->class, error)) &&
           request_check_tenant(check->tenant, error);
}

static Slice *slice_of_type(const DefinitionCheck *check, const Gpu *gpu, const Offer *offer)
{
    g_autofree char *uuid = g_ascii_strdown(check->uuid, -1);
    Slice *slice = slice_new(uuid, gpu->pci->address, offer->id);

    slice->class = offer->class;
    slice->oversubscribe = offer->oversubscribe;
    return slice;
}

static gboolean names_tenant(const DefinitionCheck *check)
{
    return check->tenant && *check->tenant;
}

/* Where nothing is said of these, vgpud keeps what it has. */
static void take_ours(Slice *wanted, const DefinitionCheck *check)
{
    if (names_tenant(check))
        slice_set_text(&wanted->tenant, check->tenant);
    if (check->class_given)
        wanted->class = check->class;
    if (check->oversubscribe_given)
        wanted->oversubscribe = check->oversubscribe;
}

static void take_values(Slice *wanted, const DefinitionCheck *check, const Offer *offer)
{
    gboolean live = check->action == CHECK_LIVE;

    /* What is not said of a running vGPU stays as it is, and of another is the type's. */
    if (check->vram_given || !live)
        wanted->vram = check->vram_given ? check->vram : offer->desc->vram_bytes;
    if (check->weight_given || !live)
        wanted->weight = check->weight_given ? check->weight : offer->desc->weight;
    if (check->cap_given || !live)
        wanted->cap = check->cap_given ? check->cap : offer->desc->cap;
    if (check->priority_given || !live)
        wanted->priority = check->priority_given ? check->priority : offer->desc->priority;
}

/* The slice as it would be. @before: NULL: it is new. */
static Slice *slice_wanted(const Slices *slices, const Gpu *gpu, const Offer *offer,
                           const Slice *before, const DefinitionCheck *check)
{
    Slice *wanted = before ? slice_copy(before) : slice_of_type(check, gpu, offer);
    guint compute = before ? before->compute : offer->compute;

    take_values(wanted, check, offer);
    take_ours(wanted, check);
    if (check->action == CHECK_START)
        wanted->present = TRUE;
    if (check->action == CHECK_DEFINE || check->action == CHECK_MODIFY)
        wanted->autostart = check->autostart;
    if (before && (before->vram != wanted->vram || before->class != wanted->class))
        compute = 0;
    wanted->compute = slices_compute(slices, gpu, wanted, compute);
    return wanted;
}

/* What is promised already is not refused because promises have become too many. */
static gboolean is_more(const Slice *before, const Slice *wanted)
{
    return !before || !slice_is_promised(before) || wanted->vram > before->vram ||
           wanted->compute > before->compute || wanted->class < before->class ||
           !g_str_equal(wanted->tenant, before->tenant);
}

/* A vGPU that is bigger than its GPU can never start. */
static gboolean check_size(Offers *offers, const Gpu *gpu, const Slice *wanted, GError **error)
{
    guint64 vram;
    guint64 capacity = offers_capacity(offers, gpu, &vram);
    g_autofree char *asked = size_format(wanted->vram);
    g_autofree char *most = size_format(capacity);

    if (wanted->vram <= capacity)
        return TRUE;
    g_set_error(error, AGENT_ERROR, AGENT_ERROR_NO_ROOM,
                "vGPU %s can't have %s: all vGPUs of GPU %s together have %s", wanted->uuid, asked,
                wanted->gpu, most);
    return FALSE;
}

/*
 * While the GPU is being switched its vGPUs come back through mdevctl, and nobody knows better than
 * the one who switches it.
 */
static gboolean check_gpu(const Host *host, const Gpu *gpu, const Slice *before,
                          const DefinitionCheck *check, GError **error)
{
    VgpuGpu *interface = host_gpu_interface(host, gpu->pci->address);
    const char *switching = interface ? vgpu_gpu_get_switching(interface) : NULL;
    g_autofree char *reasons = NULL;

    if (!interface || check->action != CHECK_START || (switching && *switching))
        return TRUE;
    if (vgpu_gpu_get_draining(interface)) {
        g_set_error(error, AGENT_ERROR, AGENT_ERROR_IN_USE,
                    "vGPU %s can't be started: GPU %s is being drained (\"vgpuctl gpu resume\" "
                    "ends that)",
                    check->uuid, gpu->pci->address);
        return FALSE;
    }
    if (vgpu_gpu_get_healthy(interface) || (before && slice_is_promised(before)))
        return TRUE;
    reasons = g_strjoinv(", ", (GStrv)vgpu_gpu_get_health_reasons(interface));
    g_set_error(error, AGENT_ERROR, AGENT_ERROR_IN_USE,
                "vGPU %s can't be started: GPU %s is not healthy (%s)", check->uuid,
                gpu->pci->address, reasons);
    return FALSE;
}

/* As when vgpuctl makes one for the tenant. That it is there was looked at before. */
static gboolean check_tenant(const Slices *slices, const Tenants *tenants, const Gpu *gpu,
                             const Slice *before, const Slice *wanted, GError **error)
{
    const Tenant *tenant = tenants_find(tenants, wanted->tenant);
    g_autoptr(Room) room = slices_room(slices, gpu);

    if (before || !tenant || tenant_may_use(tenant, room))
        return TRUE;
    g_set_error(error, AGENT_ERROR, AGENT_ERROR_QUOTA,
                "vGPU %s can't be tenant %s's on GPU %s: the tenant may not use this model",
                wanted->uuid, tenant->name, wanted->gpu);
    return FALSE;
}

/* A definition that is not started by itself is promised nothing: there may be more of them than
 * there is room. */
static gboolean check_wanted(const Host *host, Offers *offers, const Slices *slices,
                             const Tenants *tenants, const Gpu *gpu, const Slice *before,
                             const DefinitionCheck *check, GError **error)
{
    g_autoptr(Slice) wanted = NULL;
    Offer offer;

    if (!offers_find(offers, gpu, check->type, &offer))
        return TRUE;
    wanted = slice_wanted(slices, gpu, &offer, before, check);
    if (!check_size(offers, gpu, wanted, error) || !check_gpu(host, gpu, before, check, error) ||
        !check_tenant(slices, tenants, gpu, before, wanted, error))
        return FALSE;
    return !slice_is_promised(wanted) || !is_more(before, wanted) ||
           placing_admit(slices, tenants, gpu, before, wanted, error);
}

static gboolean check_known(const Slice *before, const Gpu *gpu, const DefinitionCheck *check,
                            GError **error)
{
    if (before->state != SLICE_READY) {
        g_set_error(error, AGENT_ERROR, AGENT_ERROR_IN_USE,
                    "vgpud is just doing something with vGPU %s; try again when that is done",
                    check->uuid);
        return FALSE;
    }
    if (!g_str_equal(before->gpu, gpu->pci->address)) {
        g_set_error(error, AGENT_ERROR, AGENT_ERROR_IN_USE,
                    "there is a vGPU %s on GPU %s already; choose another UUID", check->uuid,
                    before->gpu);
        return FALSE;
    }
    return TRUE;
}

gboolean definition_check(const Host *host, Offers *offers, const Slices *slices,
                          const Tenants *tenants, const DefinitionCheck *check, GError **error)
{
    g_autofree char *uuid = g_ascii_strdown(check->uuid, -1);
    const Slice *before = slices_find(slices, uuid);
    const Gpu *gpu = host_gpu_of_parent(host, check->parent);

    if (names_tenant(check) && !tenants_check(tenants, check->tenant, error))
        return FALSE;
    if (!gpu)
        return TRUE;
    if (before && !check_known(before, gpu, check, error))
        return FALSE;
    /* That it is there already, mdevctl says better. */
    if (before && before->present && check->action == CHECK_START)
        return TRUE;
    return check_wanted(host, offers, slices, tenants, gpu, before, check, error);
}

gboolean definition_check_start(const Host *host, const Slices *slices, const Tenants *tenants,
                                const Slice *slice, GError **error)
{
    const DefinitionCheck check = {.uuid = slice->uuid, .action = CHECK_START};
    const Gpu *gpu = host_gpu(host, slice->gpu);
    g_autoptr(Slice) wanted = slice_copy(slice);

    wanted->present = TRUE;
    return !gpu || (check_gpu(host, gpu, slice, &check, error) &&
                    (slice_is_promised(slice) ||
                     placing_admit(slices, tenants, gpu, slice, wanted, error)));
}
