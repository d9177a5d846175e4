/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/slices/definition_check.h"

#include "host-agent/daemon/slices/placing.h"
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

/* The driver checks the values themselves; these bounds prevent sums from overflowing. */
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

/* If these are not given, vgpud keeps its values. */
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

    /* A missing value is unchanged for a running vGPU, and otherwise the type's. */
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

/*
 * A definition without automatic start is promised nothing: there may be more of them than there is
 * room.
 */
static gboolean check_wanted(const Host *host, Offers *offers, const Slices *slices,
                             const Tenants *tenants, const Gpu *gpu, const Slice *before,
                             const DefinitionCheck *check, GError **error)
{
    static const AdmissionWay ways[] = {
        [CHECK_DEFINE] = ADMISSION_DEFINE,
        [CHECK_MODIFY] = ADMISSION_DEFINE,
        [CHECK_START] = ADMISSION_START,
        [CHECK_LIVE] = ADMISSION_LIVE,
    };
    g_autoptr(Slice) wanted = NULL;
    Offer offer;

    if (!offers_find(offers, gpu, check->type, &offer))
        return TRUE;
    wanted = slice_wanted(slices, gpu, &offer, before, check);
    return placing_admit(host, slices, tenants, ways[check->action], before, wanted, error);
}

static gboolean check_known(const Slices *slices, const Slice *before, const Gpu *gpu,
                            const DefinitionCheck *check, GError **error)
{
    if (slices_are_busy(slices, before->uuid)) {
        g_set_error(error, AGENT_ERROR, AGENT_ERROR_IN_USE,
                    "an operation works on vGPU %s; try again when it is done",
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
    if (before && !check_known(slices, before, gpu, check, error))
        return FALSE;
    /* mdevctl reports an existing one better. */
    if (before && before->present && check->action == CHECK_START)
        return TRUE;
    return check_wanted(host, offers, slices, tenants, gpu, before, check, error);
}
