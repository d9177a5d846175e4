/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/methods/vgpu_call.h"
#include "host-agent/daemon/slices/definition_check.h"
#include "lib/bus.h"

static void check(GDBusMethodInvocation *invocation, const Caller *caller, void *data)
{
    const Vgpus *vgpus = data;
    g_autoptr(GVariant) options = NULL;
    g_autoptr(GError) error = NULL;
    g_auto(DefinitionCheck) asked = {0};

    (void)caller;
    g_variant_get(g_dbus_method_invocation_get_parameters(invocation), "(&s&s&s@a{sv})",
                  &asked.uuid, &asked.parent, &asked.type, &options);
    if (definition_check_parse(options, &asked, &error) &&
        definition_check(vgpus->host, vgpus->offers, vgpus->slices, vgpus->tenants, &asked, &error))
        vgpu_manager_complete_check_definition(host_manager(vgpus->host), invocation);
    else
        g_dbus_method_invocation_return_gerror(invocation, error);
}

gboolean vgpu_check_handle(VgpuManager *interface, GDBusMethodInvocation *invocation,
                           const char *uuid, const char *parent, const char *type,
                           GVariant *options, void *data)
{
    (void)interface;
    (void)uuid;
    (void)parent;
    (void)type;
    (void)options;
    authority_ask(invocation, ACTION_SEE, check, data);
    return TRUE;
}
