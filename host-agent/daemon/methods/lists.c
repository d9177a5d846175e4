/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/methods/lists.h"

#include <string.h>

#include "lib/bus.h"
#include "lib/gpu.h"
#include "lib/mdev.h"
#include "lib/vgpu.h"
#include "host-agent/daemon/containers/share_group.h"
#include "host-agent/daemon/host/call.h"
#include "host-agent/daemon/methods/vgpu_call.h"
#include "host-agent/model/request.h"
#include "host-agent/model/slice_keys.h"

/* A member of a dictionary, which keeps it; "": it has none. */

/**
 * Dict - of a slice, in the making
 * @keys: members that are wanted, as a set; NULL: all
 */
typedef struct {
    GVariantBuilder builder;
    GHashTable *keys;
} Dict;

static void dict_begin(Dict *dict, GHashTable *keys)
{
    g_variant_builder_init(&dict->builder, G_VARIANT_TYPE_VARDICT);
    dict->keys = keys;
}

static gboolean is_wanted(GHashTable *keys, const char *key)
{
    return !keys || g_hash_table_contains(keys, key);
}

static void add_text(Dict *dict, const char *key, const char *text)
{
    if (is_wanted(dict->keys, key))
        g_variant_builder_add(&dict->builder, "{sv}", key, g_variant_new_string(text ? text : ""));
}

static void add_number(Dict *dict, const char *key, guint64 number)
{
    if (is_wanted(dict->keys, key))
        g_variant_builder_add(&dict->builder, "{sv}", key, g_variant_new_uint64(number));
}

static void add_flag(Dict *dict, const char *key, gboolean value)
{
    if (is_wanted(dict->keys, key))
        g_variant_builder_add(&dict->builder, "{sv}", key, g_variant_new_boolean(value));
}

static gboolean is_listed(const SliceKey *key, const Slice *slice)
{
    return (key->uses & SLICE_KEY_LISTED) &&
           (!(key->uses & SLICE_KEY_CONTAINER) || slice_is_for_container(slice)) &&
           (!(key->uses & SLICE_KEY_OWNED) || *slice->owner);
}

/* vgpud's own values. */
static void add_slice(Dict *dict, const Slice *slice)
{
    for (guint i = 0; i < slice_keys_count; i++) {
        const SliceKey *key = &slice_keys[i];
        GVariant *value = is_listed(key, slice) && is_wanted(dict->keys, key->name)
                              ? slice_key_listed(key, slice)
                              : NULL;

        if (value)
            g_variant_builder_add(&dict->builder, "{sv}", key->name, value);
    }
}

/* The host's GPUs have Vulkan, except for some of NVIDIA's driver. */
static gboolean has_vulkan(const Host *host, const char *gpu)
{
    VgpuGpu *interface = host_gpu_interface(host, gpu);
    const char *missing = interface ? vgpu_gpu_get_vulkan_missing(interface) : NULL;

    return !missing || !*missing;
}

/* The driver's values; NULL: the vGPU is not started. @host may be NULL without @vgpu. */
static void add_vgpu(Dict *dict, const Host *host, const Vgpu *vgpu)
{
    add_text(dict, "Device", vgpu ? vgpu->device : "stopped");
    add_text(dict, "Engine", vgpu ? vgpu->engine : "none");
    add_text(dict, "Failure", vgpu ? vgpu->failure : "");
    add_number(dict, "Window", vgpu ? vgpu->window : 0);
    if (vgpu) {
        add_flag(dict, "Cuda", vgpu->cuda);
        add_flag(dict, "Vulkan", has_vulkan(host, vgpu->gpu));
    }
    add_number(dict, "Requests", vgpu ? vgpu->requests : 0);
    add_number(dict, "Doorbells", vgpu ? vgpu->doorbells : 0);
    add_number(dict, "Interrupts", vgpu ? vgpu->interrupts : 0);
    add_number(dict, "EngineLosses", vgpu ? vgpu->engine_losses : 0);
}

/* @host may be NULL without @vgpu. */
static GVariant *dictionary_of_slice(const Host *host, const Slice *slice, const Vgpu *vgpu)
{
    Dict dict;

    dict_begin(&dict, NULL);
    add_slice(&dict, slice);
    if (slice_is_vgpu(slice))
        add_vgpu(&dict, host, vgpu);
    return g_variant_builder_end(&dict.builder);
}

GVariant *list_slices_called(const Host *host, const Slices *slices, const GStrv uuids)
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

GVariant *list_slices(const GPtrArray *slices)
{
    GVariantBuilder list;

    g_variant_builder_init(&list, G_VARIANT_TYPE("aa{sv}"));
    for (guint i = 0; i < slices->len; i++)
        g_variant_builder_add_value(&list,
                                    dictionary_of_slice(NULL, g_ptr_array_index(slices, i), NULL));
    return g_variant_builder_end(&list);
}

/* FindSlices. */

#define DOOR(transport) (1u << SLICE_TRANSPORT_##transport)
#define DOORS_ALL       (DOOR(VM) | DOOR(VFIO) | DOOR(NATIVE) | DOOR(GUARDED))

/**
 * Search - a call of FindSlices
 * @user: sees the slices of its tenants only; NULL: all
 * @doors: of DOOR()
 * @keys: members that are wanted, as a set; NULL: all
 * @vms: UUIDs of vGPUs to the VMs that have them open; NULL: not asked
 * @use: UUIDs to what the meter knows of them, of a{sv}; NULL: not asked, or it does not answer
 * @invocation: until it is answered
 */
typedef struct {
    const Vgpus *vgpus;
    GDBusMethodInvocation *invocation;
    char *user;
    guint doors;
    GHashTable *keys;
    GHashTable *vms;
    GHashTable *use;
} Search;

static void search_free(Search *search)
{
    g_free(search->user);
    g_clear_pointer(&search->keys, g_hash_table_unref);
    g_clear_pointer(&search->vms, g_hash_table_unref);
    g_clear_pointer(&search->use, g_hash_table_unref);
    g_free(search);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Search, search_free)

static int by_uuid(const void *a, const void *b)
{
    return strcmp((*(Slice *const *)a)->uuid, (*(Slice *const *)b)->uuid);
}

/* All slices by UUID; of Slice, owned by @slices. */
static GPtrArray *sorted_slices(const Slices *slices)
{
    GPtrArray *sorted = g_ptr_array_copy((GPtrArray *)slices_all(slices), NULL, NULL);

    g_ptr_array_set_free_func(sorted, NULL);
    g_ptr_array_sort(sorted, by_uuid);
    return sorted;
}

/* What a container's slice has besides. */
static void add_container(Dict *dict, const Vgpus *vgpus, const Slice *slice)
{
    const char *first = share_group_first(vgpus->slices, vgpus->claims, slice);
    g_autofree char *containers = claims_containers(vgpus->claims, slice->uuid);

    add_text(dict, "Container", containers);
    add_text(dict, "CountedWith", first == slice->uuid ? "" : first);
}

/* Members that the meter need not be asked for, besides attributes. */
static const char *const own_keys[] = {
    "Device",    "Engine",     "Failure",      "Window", "Cuda",      "Vulkan",      "Requests",
    "Doorbells", "Interrupts", "EngineLosses", "Vm",     "Container", "CountedWith", NULL};

static gboolean wants_use(const Search *search)
{
    GHashTableIter iter;
    void *key;

    if (!search->keys)
        return TRUE;
    g_hash_table_iter_init(&iter, search->keys);
    while (g_hash_table_iter_next(&iter, &key, NULL))
        if (!slice_key_find(key) && !g_strv_contains(own_keys, key))
            return TRUE;
    return FALSE;
}

/* What the meter knows; Metered, if it does not answer. */
static void add_use(Dict *dict, const Search *search, const char *uuid)
{
    GVariant *use = search->use ? g_hash_table_lookup(search->use, uuid) : NULL;
    GVariantIter iter;
    const char *key;
    GVariant *value;

    if (!search->use && wants_use(search))
        g_variant_builder_add(&dict->builder, "{sv}", "Metered", g_variant_new_boolean(FALSE));
    if (!use)
        return;
    g_variant_iter_init(&iter, use);
    while (g_variant_iter_loop(&iter, "{&sv}", &key, &value))
        if (is_wanted(dict->keys, key))
            g_variant_builder_add(&dict->builder, "{sv}", key, value);
}

static GVariant *dictionary_of(const Search *search, const Slice *slice)
{
    const Vgpus *vgpus = search->vgpus;
    const char *vm = search->vms ? g_hash_table_lookup(search->vms, slice->uuid) : NULL;
    Dict dict;

    dict_begin(&dict, search->keys);
    add_slice(&dict, slice);
    if (search->vms && slice_is_vgpu(slice))
        add_text(&dict, "Vm", vm ? vm : slice->domain);
    if (slice_is_for_container(slice))
        add_container(&dict, vgpus, slice);
    if (slice_is_vgpu(slice))
        add_vgpu(&dict, vgpus->host, vgpu_states_known(host_vgpu_states(vgpus->host), slice->uuid));
    add_use(&dict, search, slice->uuid);
    return g_variant_builder_end(&dict.builder);
}

/* Floating, of type aa{sv}. */
static GVariant *find_slices(const Search *search)
{
    const Vgpus *vgpus = search->vgpus;
    g_autoptr(GPtrArray) sorted = sorted_slices(vgpus->slices);
    GVariantBuilder list;

    vgpu_states_look(host_vgpu_states(vgpus->host));
    g_variant_builder_init(&list, G_VARIANT_TYPE("aa{sv}"));
    for (guint i = 0; i < sorted->len; i++) {
        const Slice *slice = g_ptr_array_index(sorted, i);

        if (search->doors & (1u << slice->transport) &&
            tenants_shows(vgpus->tenants, slice->tenant, search->user))
            g_variant_builder_add_value(&list, dictionary_of(search, slice));
    }
    return g_variant_builder_end(&list);
}

static void answer_search(const Search *search)
{
    call_answer_value(search->invocation, find_slices(search));
}

static GHashTable *set_of(const char *const *keys)
{
    GHashTable *set = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);

    for (; *keys; keys++)
        g_hash_table_add(set, g_strdup(*keys));
    return set;
}

static gboolean parse_doors(const GStrv names, guint *doors, GError **error)
{
    SliceTransport door;

    *doors = names ? 0 : DOORS_ALL;
    for (guint i = 0; names && names[i]; i++) {
        if (!slice_transport_parse(names[i], &door)) {
            g_set_error(error, AGENT_ERROR, AGENT_ERROR_INVALID,
                        "Doors must be of vm, vfio, native and guarded: \"%s\"", names[i]);
            return FALSE;
        }
        *doors |= 1u << door;
    }
    return TRUE;
}

static gboolean parse_filter(Search *search, GError **error)
{
    g_autoptr(GVariant) filter = g_variant_get_child_value(call_parameters(search->invocation), 0);
    g_auto(GStrv) doors = NULL;
    g_auto(GStrv) keys = NULL;
    const DictKey known[] = {
        {"Doors", 'a', &doors, NULL, 0, 0},
        {"Keys", 'a', &keys, NULL, 0, 0},
    };

    if (!dict_read(filter, known, G_N_ELEMENTS(known), error) ||
        !parse_doors(doors, &search->doors, error))
        return FALSE;
    search->keys = keys ? set_of((const char *const *)keys) : NULL;
    return TRUE;
}

/* The meter is asked what slices use. */

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

/* The answer of ListUse; NULL: the list has no use. */
static void use_told(GVariant *answer, const GError *error, void *data)
{
    g_autoptr(Search) search = data;

    (void)error;
    search->use = answer ? use_by_uuid(answer) : NULL;
    answer_search(search);
}

/* Takes @search. */
static void ask_meter(Search *search)
{
    if (wants_use(search)) {
        meter_ask(search->vgpus->life->meter, "ListUse", g_variant_new("()"), use_told, search);
        return;
    }
    answer_search(search);
    search_free(search);
}

/* A thread looks which VMs have vGPUs open. */

/**
 * Look
 * @search: NULL: answered
 * @open: UUIDs of vGPUs that are open
 */
typedef struct {
    Search *search;
    Vms *vms;
    GStrv open;
} Look;

static void look_free(void *data)
{
    Look *look = data;

    if (look->search)
        g_clear_object(&look->search->invocation);
    g_clear_pointer(&look->search, search_free);
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

static void look_for_vms(GTask *task, void *source, void *data, GCancellable *cancellable)
{
    const Look *look = data;

    (void)source;
    (void)cancellable;
    g_task_return_pointer(task, vms_look(look->vms, (const char *const *)look->open),
                          (GDestroyNotify)g_hash_table_unref);
}

static void found_vms(GObject *source, GAsyncResult *answer, void *data)
{
    Look *look = g_task_get_task_data(G_TASK(answer));
    GHashTable *names = g_task_propagate_pointer(G_TASK(answer), NULL);
    Search *search;

    (void)source;
    (void)data;
    /* vgpud ends. */
    if (!names)
        return;
    search = g_steal_pointer(&look->search);
    search->vms = names;
    ask_meter(search);
}

void slices_find_asked(Vgpus *vgpus, GDBusMethodInvocation *invocation, const char *user)
{
    g_autoptr(Search) search = g_new0(Search, 1);
    g_autoptr(GError) error = NULL;
    g_autoptr(GTask) task = NULL;
    Look *look;

    search->vgpus = vgpus;
    search->invocation = invocation;
    search->user = g_strdup(user);
    if (!parse_filter(search, &error)) {
        call_fail(invocation, error);
        return;
    }
    if (!is_wanted(search->keys, "Vm")) {
        ask_meter(g_steal_pointer(&search));
        return;
    }
    look = g_new0(Look, 1);
    look->search = g_steal_pointer(&search);
    look->vms = vms_ref(vgpus->vms);
    look->open = open_vgpus(vgpus);
    task = g_task_new(NULL, vgpus->freed, found_vms, NULL);
    g_task_set_task_data(task, look, look_free);
    g_task_run_in_thread(task, look_for_vms);
}

/* ListTypes: the types of vGPUs, on the GPUs that the caller may use. */

static void add_value(GVariantBuilder *dict, const char *key, GVariant *value)
{
    g_variant_builder_add(dict, "{sv}", key, value);
}

/* From /etc/vgpu; types of other drivers are not included. */
static void add_offer(GVariantBuilder *dict, const Offer *offer)
{
    const struct vgpu_type_desc *desc = offer->desc;

    add_value(dict, "Vram", g_variant_new_uint64(desc->vram_bytes));
    add_value(dict, "Window", g_variant_new_uint64(desc->window_bytes));
    add_value(dict, "Oversubscribe", g_variant_new_uint64(offer->oversubscribe));
    add_value(dict, "Class", g_variant_new_string(slice_class_name(offer->class)));
    add_value(dict, "Compute", g_variant_new_uint32(offer->compute));
    add_value(dict, "Weight", g_variant_new_uint32(desc->weight));
    add_value(dict, "Cap", g_variant_new_uint32(desc->cap));
    add_value(dict, "Priority", g_variant_new_uint32(desc->priority));
    add_value(dict, "Display", g_variant_new_uint32(desc->scanouts));
    add_value(dict, "Cuda", g_variant_new_boolean(desc->cuda != 0));
}

static GVariant *dictionary_of_type(const Vgpus *vgpus, const Gpu *gpu, const MdevType *type)
{
    GVariantBuilder dict;
    Offer offer;

    g_variant_builder_init(&dict, G_VARIANT_TYPE_VARDICT);
    add_value(&dict, "Id", g_variant_new_string(type->id));
    add_value(&dict, "Gpu", g_variant_new_string(type->gpu));
    add_value(&dict, "Description", g_variant_new_string(type->description));
    add_value(&dict, "Available", g_variant_new_uint32(type->available));
    add_value(&dict, "Instances", g_variant_new_uint32(g_strv_length(type->uuids)));
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
                                    dictionary_of_type(vgpus, gpu, g_ptr_array_index(types, i)));
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
    call_answer_value(invocation, g_variant_builder_end(&types));
}
