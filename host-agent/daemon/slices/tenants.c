/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/slices/tenants.h"

#include <string.h>

#include "host-agent/daemon/host/accounts.h"
#include "host-agent/daemon/host/authority.h"
#include "host-agent/daemon/host/call.h"
#include "host-agent/model/request.h"
#include "host-agent/store/tables.h"
#include "lib/bus.h"

struct Tenants {
    Host *host;
    const Slices *slices;
    GPtrArray *declared;   /* of Tenant */
    GPtrArray *by_command; /* of Tenant, by name: what the database has */
    GPtrArray *list;       /* of Tenant, by name: what is in force */
    Accounts *accounts;    /* their users */
    void (*changed)(void *data);
    void *changed_data;
};

static int by_name(const void *a, const void *b)
{
    return strcmp((*(Tenant *const *)a)->name, (*(Tenant *const *)b)->name);
}

static void tell_change(void *data)
{
    const Tenants *tenants = data;

    if (tenants->changed)
        tenants->changed(tenants->changed_data);
}

/* As tenants name them: users and groups. */
static GStrv users_named(const Tenants *tenants)
{
    g_autoptr(GStrvBuilder) names = g_strv_builder_new();

    for (guint i = 0; i < tenants->list->len; i++) {
        const Tenant *tenant = g_ptr_array_index(tenants->list, i);

        if (tenant->users)
            g_strv_builder_addv(names, (const char **)tenant->users);
    }
    return g_strv_builder_end(names);
}

/* What is in force: what was set by command, and what is declared besides. */
static void merge_lists(Tenants *tenants)
{
    GPtrArray *list = g_ptr_array_new_with_free_func((GDestroyNotify)tenant_free);

    for (guint i = 0; i < tenants->by_command->len; i++)
        g_ptr_array_add(list, tenant_copy(g_ptr_array_index(tenants->by_command, i)));
    for (guint i = 0; i < tenants->declared->len; i++) {
        const Tenant *declared = g_ptr_array_index(tenants->declared, i);

        if (!tenants_conf_find(tenants->by_command, declared->name))
            g_ptr_array_add(list, tenant_copy(declared));
    }
    g_ptr_array_sort(list, by_name);
    g_clear_pointer(&tenants->list, g_ptr_array_unref);
    tenants->list = list;
    accounts_look_up(tenants->accounts, users_named(tenants));
    tell_change(tenants);
}

/* What the database has now. */
static gboolean read_list(Tenants *tenants, GError **error)
{
    GPtrArray *list = tenant_table_read(host_db(tenants->host), error);

    if (!list)
        return FALSE;
    g_clear_pointer(&tenants->by_command, g_ptr_array_unref);
    tenants->by_command = list;
    merge_lists(tenants);
    return TRUE;
}

void tenants_declare(Tenants *tenants, GPtrArray *entries)
{
    g_clear_pointer(&tenants->declared, g_ptr_array_unref);
    tenants->declared = entries;
    merge_lists(tenants);
}

void tenants_watch(Tenants *tenants, void (*func)(void *data), void *data)
{
    tenants->changed = func;
    tenants->changed_data = data;
}

const Tenant *tenants_find(const Tenants *tenants, const char *name)
{
    return tenants_conf_find(tenants->list, name);
}

/* "": a tenant that there is not. */
static const char *source_of(const Tenants *tenants, const char *name)
{
    if (!tenants_conf_find(tenants->by_command, name))
        return "declared";
    return tenants_conf_find(tenants->declared, name) ? "by command, declared otherwise"
                                                      : "by command";
}

gboolean tenants_has_user(const Tenants *tenants, const char *name, const char *user)
{
    const Tenant *tenant = tenants_find(tenants, name);

    for (guint i = 0; tenant && tenant->users && tenant->users[i]; i++) {
        const char *const *members = accounts_members(tenants->accounts, tenant->users[i]);

        if (members ? g_strv_contains(members, user) : g_str_equal(tenant->users[i], user))
            return TRUE;
    }
    return FALSE;
}

gboolean tenants_add_uids(const Tenants *tenants, const char *name, GArray *uids)
{
    const Tenant *tenant = tenants_find(tenants, name);
    gboolean all = TRUE;

    for (guint i = 0; tenant && tenant->users && tenant->users[i]; i++) {
        const char *user = tenant->users[i];
        const char *const *members = accounts_members(tenants->accounts, user);

        for (guint k = 0; members && members[k]; k++)
            all = accounts_add_uid(tenants->accounts, members[k], uids) && all;
        if (!members)
            all = !account_is_group(user) && accounts_add_uid(tenants->accounts, user, uids) && all;
    }
    return all;
}

gboolean tenants_any_has_user(const Tenants *tenants, const char *user)
{
    for (guint i = 0; i < tenants->list->len; i++) {
        const Tenant *tenant = g_ptr_array_index(tenants->list, i);

        if (tenants_has_user(tenants, tenant->name, user))
            return TRUE;
    }
    return FALSE;
}

const Slice *tenants_find_slice(const Tenants *tenants, const char *text, const char *user)
{
    g_autofree char *lower = g_ascii_strdown(text, -1);
    const Slice *found = slices_find(tenants->slices, lower);
    const char *slash = strchr(text, '/');
    guint count = 0;

    if (found)
        return found;
    if (slash) {
        g_autofree char *tenant = g_strndup(text, (gsize)(slash - text));

        return *tenant ? slices_find_named(tenants->slices, tenant, slash + 1) : NULL;
    }
    for (guint i = 0; user && i < tenants->list->len; i++) {
        const Tenant *tenant = g_ptr_array_index(tenants->list, i);
        const Slice *slice = tenants_has_user(tenants, tenant->name, user)
                                 ? slices_find_named(tenants->slices, tenant->name, text)
                                 : NULL;

        count += slice != NULL;
        found = slice ? slice : found;
    }
    return count > 1 ? NULL : count ? found : slices_find_named(tenants->slices, "", text);
}

char *tenants_slices_called(const Tenants *tenants, const char *name, const char *user)
{
    gboolean all = !user || !tenants_any_has_user(tenants, user);
    const GPtrArray *slices = slices_all(tenants->slices);
    GString *text = g_string_new("");

    for (guint i = 0; *name && i < slices->len; i++) {
        const Slice *slice = g_ptr_array_index(slices, i);

        if (*slice->tenant && g_str_equal(slice->name, name) &&
            (all || tenants_has_user(tenants, slice->tenant, user)))
            g_string_append_printf(text, "%s%s/%s", text->len ? " and " : "; there is ",
                                   slice->tenant, name);
    }
    return g_string_free(text, FALSE);
}

gboolean tenants_user_may_use(const Tenants *tenants, const char *user, const Room *room)
{
    for (guint i = 0; i < tenants->list->len; i++) {
        const Tenant *tenant = g_ptr_array_index(tenants->list, i);

        if (tenants_has_user(tenants, tenant->name, user) && tenant_may_use(tenant, room))
            return TRUE;
    }
    return FALSE;
}

gboolean tenants_shows(const Tenants *tenants, const char *name, const char *user)
{
    return !user || tenants_has_user(tenants, name, user);
}

static gboolean set_not_found(const char *name, GError **error)
{
    g_set_error(error, AGENT_ERROR, AGENT_ERROR_NOT_FOUND,
                "there is no tenant %s; \"vgpuctl tenant list\" lists the existing ones, and "
                "\"vgpuctl tenant set %s\" makes it",
                name, name);
    return FALSE;
}

gboolean tenants_check(const Tenants *tenants, const char *name, GError **error)
{
    return tenants_find(tenants, name) || set_not_found(name, error);
}

gboolean tenants_admit(const Tenants *tenants, const char *name, const TenantUse *more,
                       GError **error)
{
    const Tenant *tenant = tenants_find(tenants, name);
    TenantUse use;

    if (!*name)
        return TRUE;
    if (!tenant)
        return set_not_found(name, error);
    use = tenant_use(name, slices_all(tenants->slices));
    use.vram += more->vram;
    use.compute += more->compute;
    use.vgpus += more->vgpus;
    use.displaced += more->displaced;
    return tenant_admit(tenant, &use, error);
}

static GVariant *dictionary_of(const Tenants *tenants, const Tenant *tenant)
{
    const TenantUse use = tenant_use(tenant->name, slices_all(tenants->slices));
    GVariantDict dict;

    g_variant_dict_init(&dict, NULL);
    g_variant_dict_insert(&dict, "Name", "s", tenant->name);
    g_variant_dict_insert(&dict, "Vram", "t", tenant->vram);
    g_variant_dict_insert(&dict, "Compute", "u", tenant->compute);
    g_variant_dict_insert(&dict, "Vgpus", "u", tenant->vgpus);
    g_variant_dict_insert(&dict, "Displaced", "t", tenant->displaced);
    g_variant_dict_insert(&dict, "Models", "^as", tenant->models);
    g_variant_dict_insert(&dict, "Users", "^as", tenant->users);
    g_variant_dict_insert(&dict, "Source", "s", source_of(tenants, tenant->name));
    g_variant_dict_insert(&dict, "UsedVram", "t", use.vram);
    g_variant_dict_insert(&dict, "UsedCompute", "u", use.compute);
    g_variant_dict_insert(&dict, "UsedVgpus", "u", use.vgpus);
    g_variant_dict_insert(&dict, "UsedDisplaced", "t", use.displaced);
    return g_variant_dict_end(&dict);
}

/* @user: NULL: sees all. */
static void answer_list(const Tenants *tenants, GDBusMethodInvocation *invocation, const char *user)
{
    GVariantBuilder list;

    g_variant_builder_init(&list, G_VARIANT_TYPE("aa{sv}"));
    for (guint i = 0; i < tenants->list->len; i++) {
        const Tenant *tenant = g_ptr_array_index(tenants->list, i);

        if (tenants_shows(tenants, tenant->name, user))
            g_variant_builder_add_value(&list, dictionary_of(tenants, tenant));
    }
    call_answer_value(invocation, g_variant_builder_end(&list));
}

static void list_all(GDBusMethodInvocation *invocation, const Caller *caller, void *data)
{
    (void)caller;
    answer_list(data, invocation, NULL);
}

/* Who may use a tenant may see what it may have, and has. */
static void list_own(GDBusMethodInvocation *invocation, const Caller *caller, void *data)
{
    if (tenants_any_has_user(data, caller->user))
        answer_list(data, invocation, caller->user);
    else
        authority_ask(invocation, ACTION_SEE, list_all, data);
}

/* The tenant as it is, or a new one without limits. */
static Tenant *copy_or_new(const Tenants *tenants, const char *name)
{
    const Tenant *known = tenants_find(tenants, name);
    Tenant *tenant = known ? tenant_copy(known) : g_new0(Tenant, 1);

    if (known)
        return tenant;
    tenant->name = g_strdup(name);
    tenant->models = g_new0(char *, 1);
    tenant->users = g_new0(char *, 1);
    return tenant;
}

static gboolean check_list(const char *key, const GStrv list, GError **error)
{
    for (guint i = 0; list[i]; i++) {
        if (*list[i] && !strpbrk(list[i], "\n\r"))
            continue;
        g_set_error(error, AGENT_ERROR, AGENT_ERROR_INVALID,
                    "%s has an entry that is empty or has a line break", key);
        return FALSE;
    }
    return TRUE;
}

static gboolean set_tenant(Tenants *tenants, const char *name, GVariant *quotas, GError **error)
{
    g_autoptr(Tenant) tenant = copy_or_new(tenants, name);
    gboolean dry_run = FALSE;
    TenantUse use;
    const DictKey keys[] = {
        {"Vram", 't', &tenant->vram, NULL, 0, 0},
        {"Compute", 'u', &tenant->compute, NULL, 0, 0},
        {"Vgpus", 'u', &tenant->vgpus, NULL, 0, 0},
        {"Models", 'a', &tenant->models, NULL, 0, 0},
        {"Users", 'a', &tenant->users, NULL, 0, 0},
        {"DryRun", 'b', &dry_run, NULL, 0, 0},
        {"Displaced", 't', &tenant->displaced, NULL, 0, 0},
    };

    if (!tenant_name_valid(name)) {
        g_set_error(error, AGENT_ERROR, AGENT_ERROR_INVALID,
                    "\"%s\" can't be the name of a tenant: it must be up to 63 letters, digits, "
                    "\"_\", \"-\" and \".\"",
                    name);
        return FALSE;
    }
    if (!dict_read(quotas, keys, G_N_ELEMENTS(keys), error) ||
        !check_list("Models", tenant->models, error) || !check_list("Users", tenant->users, error))
        return FALSE;
    use = tenant_use(name, slices_all(tenants->slices));
    if (!tenant_admit(tenant, &use, error))
        return FALSE;
    return dry_run ||
           (tenant_table_put(host_db(tenants->host), tenant, error) && read_list(tenants, error));
}

static void set_authorized(GDBusMethodInvocation *invocation, const Caller *caller, void *data)
{
    Tenants *tenants = data;
    g_autoptr(GError) error = NULL;
    g_autoptr(GVariant) quotas = NULL;
    const char *name;

    g_variant_get(g_dbus_method_invocation_get_parameters(invocation), "(&s@a{sv})", &name,
                  &quotas);
    if (!set_tenant(tenants, name, quotas, &error)) {
        call_fail(invocation, error);
        return;
    }
    g_message("tenant %s was set by %s", name, caller->user);
    call_answer(invocation, NULL);
}

/* Also those that are stopped or suspended: a later tenant of that name would inherit them. */
static guint count_slices(const Tenants *tenants, const char *name)
{
    const GPtrArray *slices = slices_all(tenants->slices);
    guint count = 0;

    for (guint i = 0; i < slices->len; i++)
        count += g_str_equal(((const Slice *)g_ptr_array_index(slices, i))->tenant, name);
    return count;
}

static gboolean remove_tenant(Tenants *tenants, const char *name, GError **error)
{
    guint count = count_slices(tenants, name);
    const Tenant *declared = tenants_conf_find(tenants->declared, name);

    if (!tenants_check(tenants, name, error))
        return FALSE;
    if (declared) {
        g_set_error(error, AGENT_ERROR, AGENT_ERROR_IN_USE,
                    "cannot remove tenant %s: it is declared in %s; remove it there, then "
                    "\"vgpuctl reload\"",
                    name, declared->file);
        return FALSE;
    }
    if (count) {
        g_set_error(error, AGENT_ERROR, AGENT_ERROR_IN_USE,
                    "tenant %s has %u vGPUs and slices, those that are stopped or suspended "
                    "included; remove them, or give them to another tenant, first",
                    name, count);
        return FALSE;
    }
    return tenant_table_remove(host_db(tenants->host), name, error) && read_list(tenants, error);
}

static void remove_authorized(GDBusMethodInvocation *invocation, const Caller *caller, void *data)
{
    Tenants *tenants = data;
    g_autoptr(GError) error = NULL;
    const char *name;

    g_variant_get(g_dbus_method_invocation_get_parameters(invocation), "(&s)", &name);
    if (!remove_tenant(tenants, name, &error)) {
        call_fail(invocation, error);
        return;
    }
    g_message("tenant %s was removed by %s", name, caller->user);
    call_answer(invocation, NULL);
}

static gboolean is_other(const Tenant *tenant, const Tenant *declared)
{
    return tenant->vram != declared->vram || tenant->compute != declared->compute ||
           tenant->vgpus != declared->vgpus || tenant->displaced != declared->displaced ||
           !g_strv_equal((const char *const *)tenant->models,
                         (const char *const *)declared->models) ||
           !g_strv_equal((const char *const *)tenant->users, (const char *const *)declared->users);
}

gboolean tenants_apply(Tenants *tenants, const GPtrArray *entries, gboolean dry_run,
                       GStrvBuilder *changes, GError **error)
{
    g_autoptr(GPtrArray) undone = g_ptr_array_new_with_free_func(g_free);

    for (guint i = 0; i < tenants->by_command->len; i++) {
        const Tenant *tenant = g_ptr_array_index(tenants->by_command, i);
        const Tenant *declared = tenants_conf_find(entries, tenant->name);
        const TenantUse use = tenant_use(tenant->name, slices_all(tenants->slices));

        if (!declared)
            continue;
        if (!tenant_admit(declared, &use, error))
            return FALSE;
        g_ptr_array_add(undone, g_strdup(tenant->name));
        if (is_other(tenant, declared))
            g_strv_builder_take(
                changes, g_strdup_printf("tenant %s: as %s declares it, not as set by command",
                                         tenant->name, declared->file));
    }
    for (guint i = 0; !dry_run && i < undone->len; i++)
        if (!tenant_table_remove(host_db(tenants->host), g_ptr_array_index(undone, i), error))
            return FALSE;
    return dry_run || read_list(tenants, error);
}

Tenants *tenants_new(Host *host, const Slices *slices, GError **error)
{
    Tenants *tenants = g_new0(Tenants, 1);
    VgpuManager *manager = host_manager(host);

    tenants->host = host;
    tenants->slices = slices;
    tenants->declared = g_ptr_array_new();
    tenants->accounts = accounts_new(tell_change, tenants);
    if (!read_list(tenants, error)) {
        tenants_free(tenants);
        return NULL;
    }
    authority_answer(manager, "handle-list-tenants", ACTION_SEE, list_all, list_own, tenants);
    authority_answer(manager, "handle-set-tenant", ACTION_ADMINISTER, set_authorized, NULL,
                     tenants);
    authority_answer(manager, "handle-remove-tenant", ACTION_ADMINISTER, remove_authorized, NULL,
                     tenants);
    return tenants;
}

void tenants_free(Tenants *tenants)
{
    g_signal_handlers_disconnect_by_data(host_manager(tenants->host), tenants);
    accounts_free(tenants->accounts);
    g_clear_pointer(&tenants->list, g_ptr_array_unref);
    g_clear_pointer(&tenants->by_command, g_ptr_array_unref);
    g_clear_pointer(&tenants->declared, g_ptr_array_unref);
    g_free(tenants);
}
