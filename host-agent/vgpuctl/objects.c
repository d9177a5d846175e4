/* SPDX-License-Identifier: MIT */
#include "host-agent/vgpuctl/objects.h"

#include "host-agent/vgpuctl/each.h"
#include "host-agent/vgpuctl/filter.h"

static const char *member(GVariant *object, const char *key)
{
    const char *value = "";

    g_variant_lookup(object, key, "&s", &value);
    return value;
}

gboolean object_is_slice(GVariant *object, const char *name)
{
    return g_ascii_strcasecmp(member(object, "Uuid"), name) == 0 ||
           (*name && g_str_equal(member(object, "Name"), name));
}

gboolean object_is_named(GVariant *object, const char *name)
{
    return g_str_equal(member(object, "Name"), name);
}

gboolean object_is_type(GVariant *object, const char *name)
{
    return filter_type_is(member(object, "Id"), name);
}

static guint add_called(GPtrArray *found, GVariant *objects, const char *name, ObjectIs is)
{
    guint before = found->len;

    for (gsize i = 0; i < g_variant_n_children(objects); i++) {
        g_autoptr(GVariant) object = g_variant_get_child_value(objects, i);

        if (is(object, name))
            g_ptr_array_add(found, g_steal_pointer(&object));
    }
    return found->len - before;
}

static void unref(void *object)
{
    g_variant_unref(object);
}

gboolean objects_show(const Options *options, const Listing *listing, GVariant *objects,
                      char **names, ObjectIs is, const char *what, const char *list_command,
                      GError **error)
{
    g_autoptr(GPtrArray) found = g_ptr_array_new_with_free_func(unref);
    g_autoptr(GError) missing = NULL;

    for (char **name = names; *name; name++) {
        if (add_called(found, objects, *name, is))
            continue;
        if (missing)
            each_print_error(missing);
        g_clear_error(&missing);
        missing = g_error_new(VGPUCTL_ERROR, VGPUCTL_NOT_FOUND,
                              "there is no %s %s; \"vgpuctl %s\" shows those that there are", what,
                              *name, list_command);
    }
    if (found->len)
        listing_show(options, listing, found, g_strv_length(names) > 1);
    if (!missing)
        return TRUE;
    g_propagate_error(error, g_steal_pointer(&missing));
    return FALSE;
}
