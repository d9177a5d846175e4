/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/containers/share_group.h"
#include "host-agent/daemon/methods/lists.h"

#include <string.h>

#include "lib/gpu.h"
#include "lib/mdev.h"
#include "lib/vgpu.h"
#include "host-agent/daemon/methods/vgpu_call.h"
#include "host-agent/model/slice_keys.h"

static void add_text(GVariantBuilder *dict, const char *key, const char *text)
{
    g_variant_builder_add(dict, "{sv}", key, g_variant_new_string(text ? text : ""));
}

static void add_number(GVariantBuilder *dict, const char *key, guint64 number)
{
    g_variant_builder_add(dict, "{sv}", key, g_variant_new_uint64(number));
}

static gboolean is_listed(const SliceKey *key, const Slice *slice)
{
    return (key->uses & SLICE_KEY_LISTED) &&
           (!(key->uses & SLICE_KEY_CONTAINER) || slice_is_for_container(slice)) &&
           (!(key->uses & SLICE_KEY_OWNED) || *slice->owner);
}

static void add_flag(GVariantBuilder *dict, const char *key, gboolean value)
{
    g_variant_builder_add(dict, "{sv}", key, g_variant_new_boolean(value));
}

/* vgpud's own values. */
static void add_slice(GVariantBuilder *dict, const Slice *slice)
{
    for (guint i = 0; i < slice_keys_count; i++) {
        const SliceKey *key = &slice_keys[i];
        GVariant *value = is_listed(key, slice) ? slice_key_listed(key, slice) : NULL;

        if (value)
            g_variant_builder_add(dict, "{sv}", key->name, value);
    }
}

/* The host's GPUs have Vulkan, except for some of NVIDIA's driver. */
static gboolean has_vulkan(const Host *host, const char *gpu)
{
    VgpuGpu *interface = host_gpu_interface(host, gpu);
    const char *missing = interface ? vgpu_gpu_get_vulkan_missing(interface) : NULL;

    return !missing || !*missing;
}

/* What the guest is offered. */
static void add_offered(GVariantBuilder *dict, const Host *host, const Vgpu *vgpu)
{
    add_flag(dict, "Cuda", vgpu->cuda);
    add_flag(dict, "Vulkan", has_vulkan(host, vgpu->gpu));
}

/* The driver's values; NULL: the vGPU is not started. */
static void add_vgpu(GVariantBuilder *dict, const Host *host, const Vgpu *vgpu)
{
    add_text(dict, "Device", vgpu ? vgpu->device : "stopped");
    add_text(dict, "Engine", vgpu ? vgpu->engine : "none");
    add_text(dict, "Failure", vgpu ? vgpu->failure : "");
    add_number(dict, "Window", vgpu ? vgpu->window : 0);
    if (vgpu)
        add_offered(dict, host, vgpu);
    add_number(dict, "Requests", vgpu ? vgpu->requests : 0);
    add_number(dict, "Doorbells", vgpu ? vgpu->doorbells : 0);
    add_number(dict, "Interrupts", vgpu ? vgpu->interrupts : 0);
    add_number(dict, "EngineLosses", vgpu ? vgpu->engine_losses : 0);
}

/* @host may be NULL without @vgpu. */
static GVariant *dictionary_of_slice(const Host *host, const Slice *slice, const Vgpu *vgpu)
{
    GVariantBuilder dict;

    g_variant_builder_init(&dict, G_VARIANT_TYPE_VARDICT);
    add_slice(&dict, slice);
    add_vgpu(&dict, host, vgpu);
    return g_variant_builder_end(&dict);
}

static int by_uuid(const void *a, const void *b)
{
    return strcmp((*(Slice *const *)a)->uuid, (*(Slice *const *)b)->uuid);
}

static gboolean is_vgpu_for(const Tenants *tenants, const Slice *slice, const char *user)
{
    return slice_is_vgpu(slice) && tenants_shows(tenants, slice->tenant, user);
}

/* All slices by UUID; of Slice, owned by @slices. */
static GPtrArray *sorted_slices(const Slices *slices)
{
    GPtrArray *sorted = g_ptr_array_copy((GPtrArray *)slices_all(slices), NULL, NULL);

    g_ptr_array_set_free_func(sorted, NULL);
    g_ptr_array_sort(sorted, by_uuid);
    return sorted;
}

GVariant *list_vgpus_short(VgpuStates *states, const Slices *slices, const Tenants *tenants,
                           const char *user)
{
    g_autoptr(GPtrArray) sorted = sorted_slices(slices);
    GVariantBuilder list;

    vgpu_states_look(states);
    g_variant_builder_init(&list, G_VARIANT_TYPE("a(ssssstss)"));
    for (guint i = 0; i < sorted->len; i++) {
        const Slice *slice = g_ptr_array_index(sorted, i);
        const Vgpu *vgpu = vgpu_states_known(states, slice->uuid);

        if (is_vgpu_for(tenants, slice, user))
            g_variant_builder_add(&list, "(ssssstss)", slice->uuid, slice->gpu, slice->type,
                                  vgpu ? vgpu->device : "stopped", vgpu ? vgpu->engine : "none",
                                  slice->vram, slice_class_name(slice->class), slice->tenant);
    }
    return g_variant_builder_end(&list);
}

GVariant *list_vgpus_called(const Host *host, const Slices *slices, const GStrv uuids)
{
    VgpuStates *states = host_vgpu_states(host);
    GVariantBuilder list;

    g_variant_builder_init(&list, G_VARIANT_TYPE("aa{sv}"));
    for (guint i = 0; uuids[i]; i++) {
        const Slice *slice = slices_find(slices, uuids[i]);

        if (slice)
            g_variant_builder_add_value(
                &list, dictionary_of_slice(host, slice, vgpu_states_read_one(states, uuids[i])));
    }
    return g_variant_builder_end(&list);
}

/* ListVgpus and ListSlices: with what slices use, which the meter knows. */

/**
 * UsedList - a list while the meter is asked
 * @user: as of ListFunc
 */
typedef struct {
    Vgpus *vgpus;
    GDBusMethodInvocation *invocation;
    char *user;
} UsedList;

/* UUID to a{sv}, from the answer of ListUse. */
static GHashTable *use_by_uuid(GVariant *answer)
{
    GHashTable *by_uuid =
        g_hash_table_new_full(g_str_hash, g_str_equal, g_free, (GDestroyNotify)g_variant_unref);
    g_autoptr(GVariant) list = g_variant_get_child_value(answer, 0);
    GVariantIter iter;
    GVariant *use;
    char *uuid;

    g_variant_iter_init(&iter, list);
    while (g_variant_iter_next(&iter, "{s@a{sv}}", &uuid, &use))
        g_hash_table_insert(by_uuid, uuid, use);
    return by_uuid;
}

/* @by_uuid: NULL: the meter does not answer. */
static void add_use(GVariantBuilder *dict, GHashTable *by_uuid, const char *uuid)
{
    GVariant *use = by_uuid ? g_hash_table_lookup(by_uuid, uuid) : NULL;
    GVariantIter iter;
    GVariant *member;

    if (!by_uuid)
        add_flag(dict, "Metered", FALSE);
    if (!use)
        return;
    g_variant_iter_init(&iter, use);
    while ((member = g_variant_iter_next_value(&iter))) {
        g_variant_builder_add_value(dict, member);
        g_variant_unref(member);
    }
}

static void add_users(GVariantBuilder *dict, const Vgpus *vgpus, const Slice *slice)
{
    const char *first = share_group_first(vgpus->slices, vgpus->claims, slice);
    g_autofree char *containers = claims_containers(vgpus->claims, slice->uuid);

    add_text(dict, "Container", containers);
    add_text(dict, "CountedWith", first == slice->uuid ? "" : first);
}

/* @is_slices: of ListSlices; else of ListVgpus. */
static gboolean is_in_list(const UsedList *list, const Slice *slice, gboolean is_slices)
{
    return (is_slices ? slice_is_for_container(slice) : slice_is_vgpu(slice)) &&
           tenants_shows(list->vgpus->tenants, slice->tenant, list->user);
}

static GVariant *make_used_list(const UsedList *list, GHashTable *use)
{
    const char *method = g_dbus_method_invocation_get_method_name(list->invocation);
    gboolean is_slices = g_str_equal(method, "ListSlices");
    const Vgpus *vgpus = list->vgpus;
    VgpuStates *states = host_vgpu_states(vgpus->host);
    g_autoptr(GPtrArray) sorted = sorted_slices(vgpus->slices);
    GVariantBuilder builder;

    vgpu_states_look(states);
    g_variant_builder_init(&builder, G_VARIANT_TYPE("aa{sv}"));
    for (guint i = 0; i < sorted->len; i++) {
        const Slice *slice = g_ptr_array_index(sorted, i);

        if (!is_in_list(list, slice, is_slices))
            continue;
        g_variant_builder_open(&builder, G_VARIANT_TYPE_VARDICT);
        add_slice(&builder, slice);
        if (is_slices)
            add_users(&builder, vgpus, slice);
        if (slice_is_vgpu(slice))
            add_vgpu(&builder, vgpus->host, vgpu_states_known(states, slice->uuid));
        add_use(&builder, use, slice->uuid);
        g_variant_builder_close(&builder);
    }
    return g_variant_builder_end(&builder);
}

/* The answer of ListUse; NULL: the list has no use. */
static void use_told(GVariant *answer, const GError *error, void *data)
{
    g_autofree UsedList *list = data;
    g_autofree char *user = list->user;
    g_autoptr(GHashTable) use = answer ? use_by_uuid(answer) : NULL;

    (void)error;
    g_dbus_method_invocation_return_value(list->invocation,
                                          g_variant_new("(@aa{sv})", make_used_list(list, use)));
}

void used_list(Vgpus *vgpus, GDBusMethodInvocation *invocation, const char *user)
{
    UsedList *list = g_new0(UsedList, 1);

    list->vgpus = vgpus;
    list->invocation = invocation;
    list->user = g_strdup(user);
    meter_ask(vgpus->life->meter, "ListUse", g_variant_new("()"), use_told, list);
}

GVariant *list_slices(const GPtrArray *slices)
{
    GVariantBuilder list;

    g_variant_builder_init(&list, G_VARIANT_TYPE("aa{sv}"));
    for (guint i = 0; i < slices->len; i++)
        g_variant_builder_add_value(&list,
                                    dictionary_of_slice(NULL, g_ptr_array_index(slices, i), NULL));
    return g_variant_builder_end(&list);
}

/* ListTypes: the types of vGPUs, on the GPUs that the caller may use. */

static void add(GVariantBuilder *dict, const char *key, GVariant *value)
{
    g_variant_builder_add(dict, "{sv}", key, value);
}

/* From /etc/vgpu; types of other drivers are not included. */
static void add_offer(GVariantBuilder *dict, const Offer *offer)
{
    const struct vgpu_type_desc *desc = offer->desc;

    add(dict, "Vram", g_variant_new_uint64(desc->vram_bytes));
    add(dict, "Window", g_variant_new_uint64(desc->window_bytes));
    add(dict, "Oversubscribe", g_variant_new_uint64(offer->oversubscribe));
    add(dict, "Class", g_variant_new_string(slice_class_name(offer->class)));
    add(dict, "Compute", g_variant_new_uint32(offer->compute));
    add(dict, "Weight", g_variant_new_uint32(desc->weight));
    add(dict, "Cap", g_variant_new_uint32(desc->cap));
    add(dict, "Priority", g_variant_new_uint32(desc->priority));
    add(dict, "Display", g_variant_new_uint32(desc->scanouts));
    add(dict, "Cuda", g_variant_new_boolean(desc->cuda != 0));
}

static GVariant *dictionary_of(const Vgpus *vgpus, const Gpu *gpu, const MdevType *type)
{
    GVariantBuilder dict;
    Offer offer;

    g_variant_builder_init(&dict, G_VARIANT_TYPE_VARDICT);
    add(&dict, "Id", g_variant_new_string(type->id));
    add(&dict, "Gpu", g_variant_new_string(type->gpu));
    add(&dict, "Description", g_variant_new_string(type->description));
    add(&dict, "Available", g_variant_new_uint32(type->available));
    add(&dict, "Instances", g_variant_new_uint32(g_strv_length(type->uuids)));
    if (offers_find(vgpus->offers, gpu, type->id, &offer))
        add_offer(&dict, &offer);
    return g_variant_builder_end(&dict);
}

static void add_types(const Vgpus *vgpus, const Gpu *gpu, GVariantBuilder *list_types)
{
    g_autoptr(GPtrArray) types =
        mdev_types_of_device(host_root(vgpus->host), gpu->pci->address, gpu->pci->dir);

    for (guint i = 0; i < types->len; i++)
        g_variant_builder_add_value(list_types,
                                    dictionary_of(vgpus, gpu, g_ptr_array_index(types, i)));
}

/* @user: NULL: sees all. */
static gboolean may_use(const Vgpus *vgpus, const Gpu *gpu, const char *user)
{
    g_autoptr(Room) room = user ? slices_room(vgpus->slices, gpu) : NULL;

    return !user || tenants_user_may_use(vgpus->tenants, user, room);
}

void type_list(Vgpus *vgpus, GDBusMethodInvocation *invocation, const char *user)
{
    const GPtrArray *gpus = host_gpus(vgpus->host);
    GVariantBuilder types;

    g_variant_builder_init(&types, G_VARIANT_TYPE("aa{sv}"));
    for (guint i = 0; i < gpus->len; i++)
        if (may_use(vgpus, g_ptr_array_index(gpus, i), user))
            add_types(vgpus, g_ptr_array_index(gpus, i), &types);
    vgpu_manager_complete_list_types(host_manager(vgpus->host), invocation,
                                     g_variant_builder_end(&types));
}

/* ListNames: the names of vGPUs and slices. */

void name_list(Vgpus *vgpus, GDBusMethodInvocation *invocation, const char *user)
{
    const GPtrArray *slices = slices_all(vgpus->slices);
    GVariantBuilder names;

    g_variant_builder_init(&names, G_VARIANT_TYPE("a{ss}"));
    for (guint i = 0; i < slices->len; i++) {
        const Slice *slice = g_ptr_array_index(slices, i);

        if (*slice->name && tenants_shows(vgpus->tenants, slice->tenant, user))
            g_variant_builder_add(&names, "{ss}", slice->uuid, slice->name);
    }
    vgpu_manager_complete_list_names(host_manager(vgpus->host), invocation,
                                     g_variant_builder_end(&names));
}

/* ListVms: which VM uses which vGPU. */

/**
 * Look - a call that is answered when a thread has read /proc
 * @invocation: its only reference
 * @user: sees those of its tenants only; NULL: all
 * @open: UUIDs of vGPUs that are open
 */
typedef struct {
    Vgpus *vgpus;
    GDBusMethodInvocation *invocation;
    char *user;
    Vms *vms;
    GStrv open;
} Look;

static void look_free(void *data)
{
    Look *look = data;

    g_clear_object(&look->invocation);
    g_free(look->user);
    vms_unref(look->vms);
    g_strfreev(look->open);
    g_free(look);
}

static GStrv open_vgpus(const Vgpus *vgpus)
{
    const GPtrArray *states = vgpu_states_look(host_vgpu_states(vgpus->host));
    g_autoptr(GStrvBuilder) open = g_strv_builder_new();

    for (guint i = 0; i < states->len; i++) {
        const Vgpu *vgpu = g_ptr_array_index(states, i);

        if (!g_str_equal(vgpu->device, "closed"))
            g_strv_builder_add(open, vgpu->uuid);
    }
    return g_strv_builder_end(open);
}

static void find(GTask *task, void *source, void *data, GCancellable *cancellable)
{
    const Look *look = data;

    (void)source;
    (void)cancellable;
    g_task_return_pointer(task, vms_look(look->vms, (const char *const *)look->open),
                          (GDestroyNotify)g_hash_table_unref);
}

static void found(GObject *source, GAsyncResult *answer, void *data)
{
    Look *look = g_task_get_task_data(G_TASK(answer));
    g_autoptr(GHashTable) names = g_task_propagate_pointer(G_TASK(answer), NULL);
    const GPtrArray *slices;
    GVariantBuilder vms;

    (void)source;
    (void)data;
    /* vgpud ends. */
    if (!names)
        return;
    slices = slices_all(look->vgpus->slices);
    g_variant_builder_init(&vms, G_VARIANT_TYPE("a{ss}"));
    for (guint i = 0; i < slices->len; i++) {
        const Slice *slice = g_ptr_array_index(slices, i);
        const char *vm = g_hash_table_lookup(names, slice->uuid);

        if ((vm || slice->domain[0]) &&
            tenants_shows(look->vgpus->tenants, slice->tenant, look->user))
            g_variant_builder_add(&vms, "{ss}", slice->uuid, vm ? vm : slice->domain);
    }
    vgpu_manager_complete_list_vms(host_manager(look->vgpus->host),
                                   g_steal_pointer(&look->invocation), g_variant_builder_end(&vms));
}

void vm_list(Vgpus *vgpus, GDBusMethodInvocation *invocation, const char *user)
{
    g_autoptr(GTask) task = g_task_new(NULL, vgpus->freed, found, NULL);
    Look *look = g_new0(Look, 1);

    look->vgpus = vgpus;
    look->invocation = invocation;
    look->user = g_strdup(user);
    look->vms = vms_ref(vgpus->vms);
    look->open = open_vgpus(vgpus);
    g_task_set_task_data(task, look, look_free);
    g_task_run_in_thread(task, find);
}
