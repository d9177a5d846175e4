/* SPDX-License-Identifier: MIT */
#include "host-agent/vgpuctl/json.h"

#include <stdio.h>
#include <string.h>

JsonNode *json_of_interface(GDBusProxy *proxy)
{
    g_auto(GStrv) names = g_dbus_proxy_get_cached_property_names(proxy);
    JsonObject *object = json_object_new();

    for (guint i = 0; names && names[i]; i++) {
        g_autoptr(GVariant) value = g_dbus_proxy_get_cached_property(proxy, names[i]);

        json_object_set_member(object, names[i], json_gvariant_serialize(value));
    }
    return json_node_init_object(json_node_alloc(), object);
}

void json_print(JsonNode *node)
{
    g_autofree char *text = json_to_string(node, TRUE);

    puts(text);
    json_node_unref(node);
}
