/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/sync/cdi.h"

#include <string.h>
#include <json-glib/json-glib.h>

#include "lib/bus.h"
#include "host-agent/daemon/host/authority.h"
#include "host-agent/daemon/host/call.h"
#include "host-agent/daemon/sync/door.h"
#include "host-agent/store/tables.h"

/* The names in the programs' command lines. An owner's slices have a file of their own: one for all
 * would be written anew for each job. */
#define CDI_DIR      "/run/cdi"
#define CDI_PREFIX   "mdev-vgpu"
#define CDI_FILE     CDI_DIR "/" CDI_PREFIX ".json"
#define OWNER_PREFIX CDI_PREFIX "-owner-"
#define SUFFIX       ".json"

/**
 * CdiSync
 * @old_names: UUIDs of tenants' slices that are older than TENANT:NAME, to their names of then
 */
struct CdiSync {
    Host *host;
    Outputs *outputs;
    const Slices *slices;
    const Tenants *tenants;
    gboolean started;
    GHashTable *old_names;
};

/* Containers' devices in CDI (Container Device Interface). */

/*
 * The first version that allows names with a leading digit, as UUIDs may have; docker 25 supports
 * 0.6.0.
 */
#define CDI_VERSION "0.5.0"

#define HOOK         "/lib/mdev-vgpu/vgpu-container-hook"
#define HOOK_TIMEOUT 40
/*
 * When the container's mounts are made, and its process waits to change its root. Not
 * createContainer, at which a runtime starts the hook in the container's user namespace, whose root
 * cannot read the container's description.
 */
#define CREATED "createRuntime"

/* Where the containers' hook is installed; the system's path if it is nowhere. */
static const char *cdi_hook_find(HostRoot *root)
{
    gboolean is_local = !root_has(root, "/usr" HOOK) && root_has(root, "/usr/local" HOOK);

    return is_local ? "/usr/local" HOOK : "/usr" HOOK;
}

static void add_text(JsonBuilder *json, const char *name, const char *text)
{
    json_builder_set_member_name(json, name);
    json_builder_add_string_value(json, text);
}

static void begin_list(JsonBuilder *json, const char *name)
{
    json_builder_set_member_name(json, name);
    json_builder_begin_array(json);
}

static void add_list(JsonBuilder *json, const char *name, const char *const *texts)
{
    begin_list(json, name);
    for (guint i = 0; texts[i]; i++)
        json_builder_add_string_value(json, texts[i]);
    json_builder_end_array(json);
}

static void add_nodes(JsonBuilder *json, const Door *door)
{
    if (!door->nodes[0])
        return;
    begin_list(json, "deviceNodes");
    for (guint i = 0; door->nodes[i]; i++) {
        json_builder_begin_object(json);
        add_text(json, "path", door->nodes[i]);
        /* Not m: no other node is created there. */
        add_text(json, "permissions", "rw");
        /* A container's user need not be in the host's group of the node, and crun makes one
         * without any rights in a user namespace. The device cgroup says who may open it. */
        json_builder_set_member_name(json, "fileMode");
        json_builder_add_int_value(json, 0666);
        json_builder_end_object(json);
    }
    json_builder_end_array(json);
}

static void add_mounts(JsonBuilder *json, const Door *door)
{
    begin_list(json, "mounts");
    for (guint i = 0; i < door->mounts->len; i++) {
        const CudaMount *mount = g_ptr_array_index(door->mounts, i);

        json_builder_begin_object(json);
        add_text(json, "hostPath", mount->from);
        add_text(json, "containerPath", mount->to);
        add_list(json, "options", door_mount_options);
        json_builder_end_object(json);
    }
    json_builder_end_array(json);
}

static void begin_hook(JsonBuilder *json, const char *hook, const char *name,
                       const char *const *args)
{
    json_builder_begin_object(json);
    add_text(json, "hookName", name);
    add_text(json, "path", hook);
    add_list(json, "args", args);
    json_builder_set_member_name(json, "timeout");
    json_builder_add_int_value(json, HOOK_TIMEOUT);
}

static void add_hook(JsonBuilder *json, const char *hook, const char *name, const char *verb,
                     const char *uuid)
{
    const char *const args[] = {"vgpu-container-hook", verb, uuid, NULL};

    begin_hook(json, hook, name, args);
    json_builder_end_object(json);
}

/*
 * Enters the container. With an environment of its own it does not get the container's, in which an
 * image may have LD_PRELOAD (CVE-2025-23266 was that).
 */
static void add_inner_hook(JsonBuilder *json, const char *hook, const char *verb,
                           const char *folder)
{
    const char *const args[] = {"vgpu-container-hook", verb, folder, NULL};
    static const char *const env[] = {"LC_ALL=C.UTF-8", NULL};

    begin_hook(json, hook, CREATED, args);
    add_list(json, "env", env);
    json_builder_end_object(json);
}

static void add_device(JsonBuilder *json, const char *name, const Slice *slice, const Door *door,
                       const CudaDoor *cuda, const char *hook)
{
    json_builder_begin_object(json);
    add_text(json, "name", name);
    json_builder_set_member_name(json, "containerEdits");
    json_builder_begin_object(json);
    add_nodes(json, door);
    if (door->container_env[0])
        add_list(json, "env", (const char *const *)door->container_env);
    if (door->mounts->len)
        add_mounts(json, door);
    begin_list(json, "hooks");
    add_hook(json, hook, CREATED, "claim", slice->uuid);
    if (door->mounts->len)
        add_inner_hook(json, hook, "restore-mounts", NULL);
    if (door->cuda)
        add_inner_hook(json, hook, door->cuda, cuda->folder);
    add_hook(json, hook, "poststop", "release", slice->uuid);
    json_builder_end_array(json);
    json_builder_end_object(json);
    json_builder_end_object(json);
}

/*
 * CDI has one name space for all tenants: "NAME", or "TENANT:NAME", in which CDI allows the colon
 * and a tenant's name does not. "": none. To be freed.
 */
static char *device_name(const Slice *slice)
{
    return *slice->name && *slice->tenant ? g_strconcat(slice->tenant, ":", slice->name, NULL)
                                          : g_strdup(slice->name);
}

/*
 * Containers ask for a slice that is older than TENANT:NAME by its name alone, for one more
 * release. Only such a slice has that, so no other tenant can take the name.
 */
static gboolean has_old_name(const CdiSync *link, const Slice *slice)
{
    const char *name = g_hash_table_lookup(link->old_names, slice->uuid);

    return name && g_str_equal(name, slice->name) && !slices_find_named(link->slices, "", name);
}

/* A slice that cannot be used now is left out. */
static guint add_devices(const CdiSync *link, JsonBuilder *json, const GPtrArray *slices,
                         const DoorHost *of)
{
    const char *hook = cdi_hook_find(host_root(of->host));
    guint count = 0;

    begin_list(json, "devices");
    for (guint i = 0; i < slices->len; i++) {
        const Slice *slice = g_ptr_array_index(slices, i);
        g_autofree char *name = device_name(slice);
        g_autoptr(Door) door = door_find(of, slice);

        if (!door)
            continue;
        add_device(json, slice->uuid, slice, door, of->cuda, hook);
        if (*name)
            add_device(json, name, slice, door, of->cuda, hook);
        if (has_old_name(link, slice))
            add_device(json, slice->name, slice, door, of->cuda, hook);
        count++;
    }
    json_builder_end_array(json);
    return count;
}

/*
 * The specification, to be freed. @slices: of Slice, by their UUIDs; NULL if none can be used: CDI
 * has no specification without devices.
 */
static char *cdi_spec(const CdiSync *link, const GPtrArray *slices, const DoorHost *of)
{
    g_autoptr(JsonBuilder) json = json_builder_new();
    g_autoptr(JsonNode) root = NULL;
    g_autofree char *text = NULL;

    json_builder_begin_object(json);
    add_text(json, "cdiVersion", CDI_VERSION);
    add_text(json, "kind", DOOR_CDI_KIND);
    if (!add_devices(link, json, slices, of))
        return NULL;
    json_builder_end_object(json);
    root = json_builder_get_root(json);
    text = json_to_string(root, TRUE);
    return g_strconcat(text, "\n", NULL);
}

/* /run/cdi/mdev-vgpu.json, kept in step with the slices; and the methods GetCdi and GetDoor. */

static int by_uuid(const void *a, const void *b)
{
    return strcmp((*(const Slice *const *)a)->uuid, (*(const Slice *const *)b)->uuid);
}

/* Those of @owner, "": of none; NULL: all. */
static GPtrArray *slices_of(const CdiSync *link, const char *owner)
{
    const GPtrArray *slices = slices_all(link->slices);
    GPtrArray *list = g_ptr_array_new();

    for (guint i = 0; i < slices->len; i++) {
        const Slice *slice = g_ptr_array_index(slices, i);

        if (slice_is_for_container(slice) && (!owner || g_str_equal(slice->owner, owner)))
            g_ptr_array_add(list, (void *)slice);
    }
    g_ptr_array_sort(list, by_uuid);
    return list;
}

static char *spec_of_owner(const CdiSync *link, const char *owner)
{
    g_autoptr(DoorHost) of = door_host_new(link->host);
    g_autoptr(GPtrArray) slices = slices_of(link, owner);

    return cdi_spec(link, slices, of);
}

/* Before a container is given them. */
static void name_nodes(const Host *host)
{
    const GPtrArray *gpus = host_gpus(host);

    for (guint i = 0; i < gpus->len; i++) {
        const Gpu *gpu = g_ptr_array_index(gpus, i);

        if (gpu->mode == GPU_MODE_SHARED)
            cuda_door_name_nodes(host_root(host), gpu->pci->address);
    }
}

static char *path_of_owner(const char *owner)
{
    return *owner ? g_strconcat(CDI_DIR "/" OWNER_PREFIX, owner, SUFFIX, NULL) : g_strdup(CDI_FILE);
}

/* The file of @owner; "": of the slices without one. */
static gboolean want_file_of(Wants *wants, const char *owner, void *data)
{
    const CdiSync *link = data;
    g_autofree char *path = path_of_owner(owner);
    g_autofree char *text = spec_of_owner(link, owner);

    name_nodes(link->host);
    if (!text)
        return TRUE;
    want_dir(wants, DIR_STAYS, CDI_DIR, 0755);
    want_file(wants, path, text);
    return TRUE;
}

static const OutputKind file_kind = {
    .level = G_LOG_LEVEL_WARNING,
    .trouble = {"cannot offer slices of owner \"", "\" to containers"},
    .want = want_file_of,
};

/*
 * Notes in whose file a slice is. The vGPUs of VMs, of which there may be a thousand, are in none.
 */
static gboolean want_owner(Wants *wants, const char *uuid, void *data)
{
    const CdiSync *link = data;
    const Slice *slice = slices_find(link->slices, uuid);

    if (!link->started)
        return FALSE;
    if (slice && slice_is_for_container(slice))
        want_note(wants, slice->owner);
    return TRUE;
}

/* A slice of an owner changes its owner's file only. */
static void update_files(const char *uuid, const char *before, void *data)
{
    CdiSync *link = data;
    const char *now = outputs_note(link->outputs, &cdi_kind, uuid);

    if (now)
        outputs_update(link->outputs, &file_kind, link, now);
    if (before && g_strcmp0(before, now) != 0)
        outputs_update(link->outputs, &file_kind, link, before);
}

const OutputKind cdi_kind = {
    .level = G_LOG_LEVEL_WARNING,
    .trouble = {"slice ", " is in no file"},
    .want = want_owner,
    .updated = update_files,
};

void cdi_sync_refresh(CdiSync *link)
{
    const GPtrArray *slices = slices_all(link->slices);
    g_autoptr(GHashTable) owners = g_hash_table_new(g_str_hash, g_str_equal);
    GHashTableIter iter;
    void *owner;

    if (!link->started)
        return;
    g_hash_table_add(owners, (void *)"");
    for (guint i = 0; i < slices->len; i++) {
        const Slice *slice = g_ptr_array_index(slices, i);

        outputs_update(link->outputs, &cdi_kind, link, slice->uuid);
        if (slice_is_for_container(slice))
            g_hash_table_add(owners, slice->owner);
    }
    g_hash_table_iter_init(&iter, owners);
    while (g_hash_table_iter_next(&iter, &owner, NULL))
        outputs_update(link->outputs, &file_kind, link, owner);
}

/* The owners' files of an earlier vgpud. Another end is of a file that it was writing when it was
 * killed. */
static void find_left(CdiSync *link)
{
    HostRoot *root = host_root(link->host);
    g_auto(GStrv) paths = root_glob(root, CDI_DIR "/" OWNER_PREFIX "*");

    for (guint i = 0; paths[i]; i++) {
        const char *name = paths[i] + strlen(CDI_DIR "/" OWNER_PREFIX);
        g_autofree char *owner = NULL;

        if (!g_str_has_suffix(name, SUFFIX)) {
            root_remove(root, paths[i]);
            continue;
        }
        owner = g_strndup(name, strlen(name) - strlen(SUFFIX));
        want_file(outputs_left(link->outputs, &file_kind, link, owner), paths[i], "");
    }
}

void cdi_sync_start(CdiSync *link)
{
    link->started = TRUE;
    find_left(link);
    want_file(outputs_left(link->outputs, &file_kind, link, ""), CDI_FILE, "");
    outputs_update_all(link->outputs, &file_kind);
    cdi_sync_refresh(link);
}

static void get_allowed(GDBusMethodInvocation *invocation, const Caller *caller, void *data)
{
    const CdiSync *link = data;
    g_autofree char *text = spec_of_owner(link, NULL);

    (void)caller;
    call_answer_value(invocation, g_variant_new_string(text ? text : ""));
}

static GVariant *dict_of(const Slice *slice, const Door *door)
{
    g_autofree char *options = g_strjoinv(",", (char **)door_mount_options);
    g_autofree char *cdi = slice_is_for_container(slice)
                               ? g_strconcat(DOOR_CDI_KIND "=", slice->uuid, NULL)
                               : g_strdup("");
    GVariantBuilder devices, mounts;
    GVariantDict dict;

    g_variant_builder_init(&devices, G_VARIANT_TYPE("a(ss)"));
    for (guint i = 0; door->nodes[i]; i++)
        g_variant_builder_add(&devices, "(ss)", door->nodes[i], door->nodes[i]);
    g_variant_builder_init(&mounts, G_VARIANT_TYPE("a(sss)"));
    for (guint i = 0; i < door->mounts->len; i++) {
        const CudaMount *mount = g_ptr_array_index(door->mounts, i);

        g_variant_builder_add(&mounts, "(sss)", mount->from, mount->to, options);
    }
    g_variant_dict_init(&dict, NULL);
    g_variant_dict_insert_value(&dict, "Env",
                                g_variant_new_strv((const char *const *)door->env, -1));
    g_variant_dict_insert_value(&dict, "ContainerEnv",
                                g_variant_new_strv((const char *const *)door->container_env, -1));
    g_variant_dict_insert_value(&dict, "Devices", g_variant_builder_end(&devices));
    g_variant_dict_insert_value(&dict, "Mounts", g_variant_builder_end(&mounts));
    g_variant_dict_insert(&dict, "Cdi", "s", cdi);
    g_variant_dict_insert(&dict, "Mdev", "s", door->mdev ? door->mdev : "");
    return g_variant_dict_end(&dict);
}

static const char *name_of_call(GDBusMethodInvocation *invocation)
{
    const char *name;

    g_variant_get(g_dbus_method_invocation_get_parameters(invocation), "(&s)", &name);
    return name;
}

static const Slice *slice_of_call(const CdiSync *link, GDBusMethodInvocation *invocation,
                                  const Caller *caller)
{
    return tenants_find_slice(link->tenants, name_of_call(invocation), caller->user);
}

static void answer_no_slice(const CdiSync *link, GDBusMethodInvocation *invocation,
                            const Caller *caller)
{
    const char *name = name_of_call(invocation);
    g_autofree char *called = tenants_slices_called(link->tenants, name, caller->user);

    call_refuse(invocation, AGENT_ERROR_NOT_FOUND,
                "there is no slice %s%s; \"vgpuctl slice list\" lists the existing ones", name,
                called);
}

static void answer_door(const CdiSync *link, GDBusMethodInvocation *invocation,
                        const Caller *caller)
{
    const Slice *slice = slice_of_call(link, invocation, caller);
    g_autoptr(DoorHost) of = slice ? door_host_new(link->host) : NULL;
    g_autoptr(Door) door = of ? door_find(of, slice) : NULL;

    if (door)
        call_answer_value(invocation, dict_of(slice, door));
    else if (slice)
        call_refuse(
            invocation, AGENT_ERROR_IN_USE,
            "slice %s of GPU %s cannot be used now: the GPU is not shared, the slice is being made "
            "or removed, or the governor's layer is not installed",
            slice->uuid, slice->gpu);
    else
        answer_no_slice(link, invocation, caller);
}

static void door_allowed(GDBusMethodInvocation *invocation, const Caller *caller, void *data)
{
    answer_door(data, invocation, caller);
}

/* Who may use the slice may ask how. Others do not learn whether it exists. */
static void door_own(GDBusMethodInvocation *invocation, const Caller *caller, void *data)
{
    const CdiSync *link = data;
    const Slice *slice = slice_of_call(link, invocation, caller);

    if (slice && (slice->uid == (gint64)caller->uid ||
                  tenants_has_user(link->tenants, slice->tenant, caller->user)))
        answer_door(link, invocation, caller);
    else
        authority_refuse(invocation, caller, ACTION_SEE, NULL);
}

CdiSync *cdi_sync_new(Host *host, Outputs *outputs, const Slices *slices, const Tenants *tenants)
{
    CdiSync *link = g_new0(CdiSync, 1);
    g_autoptr(GError) error = NULL;

    link->host = host;
    link->outputs = outputs;
    link->slices = slices;
    link->tenants = tenants;
    link->old_names = old_name_table_read(host_db(host), &error);
    if (!link->old_names) {
        g_warning("containers find tenants' slices as TENANT:NAME only: %s", error->message);
        link->old_names = g_hash_table_new(g_str_hash, g_str_equal);
    }
    authority_answer(host_manager(host), "handle-get-cdi", ACTION_SEE, get_allowed, NULL, link);
    authority_answer(host_manager(host), "handle-get-door", ACTION_SEE, door_allowed, door_own,
                     link);
    return link;
}

void cdi_sync_free(CdiSync *link)
{
    g_signal_handlers_disconnect_by_data(host_manager(link->host), link);
    g_hash_table_unref(link->old_names);
    g_free(link);
}
