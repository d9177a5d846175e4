/* SPDX-License-Identifier: MIT */
/* vgpuctl owner: what engines have made for their jobs. */
#include "host-agent/vgpuctl/command.h"
#include "host-agent/vgpuctl/listing.h"
#include "host-agent/vgpuctl/output.h"

/* How many slices, as the list has their UUIDs. */
static GVariant *with_counts(GVariant *owners)
{
    GVariantBuilder list;

    g_variant_builder_init(&list, G_VARIANT_TYPE("aa{sv}"));
    for (gsize i = 0; i < g_variant_n_children(owners); i++) {
        g_autoptr(GVariant) owner = g_variant_get_child_value(owners, i);
        g_autoptr(GVariant) slices = g_variant_lookup_value(owner, "Slices", NULL);
        g_auto(GVariantDict) dict = G_VARIANT_DICT_INIT(owner);

        g_variant_dict_insert(&dict, "Count", "u",
                              slices ? (guint)g_variant_n_children(slices) : 0);
        g_variant_builder_add_value(&list, g_variant_dict_end(&dict));
    }
    return g_variant_ref_sink(g_variant_builder_end(&list));
}

gboolean owner_list_command(Client *client, const Options *options, char **args, GError **error)
{
    static const Column columns[] = {
        {"OWNER", "Owner", dict_text, 0},
        {"SLICES", "Count", dict_number, 0},
        {"UID", "Uid", dict_number, 0},
    };
    static const Listing listing = {
        .columns = columns,
        .columns_count = G_N_ELEMENTS(columns),
        .name = "Owner",
        .none = "No engine has slices of this host.",
    };
    static const Filter filter = {0};
    g_autoptr(GVariant) owners = client_get(client, "ListOwners", NULL, "listing owners", error);

    (void)args;
    return owners && objects_list(options, &listing, with_counts(owners), &filter, error);
}

static gboolean release(Client *client, const char *name, void *data, GError **error)
{
    g_autofree char *what = g_strdup_printf("releasing the slices of %s", name);
    g_autoptr(GVariant) answer =
        client_call(client, "ReleaseOwner", g_variant_new("(sa{sv})", name, NULL), what, error);

    (void)data;
    return answer != NULL;
}

gboolean owner_release_command(Client *client, const Options *options, char **args, GError **error)
{
    (void)options;
    return each_name(client, args, "releasing owners", release, NULL, error);
}
