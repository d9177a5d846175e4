/* SPDX-License-Identifier: MIT */
/* vgpuctl owner: what engines have made for their jobs. */
#include "host-agent/vgpuctl/command.h"
#include "host-agent/vgpuctl/listing.h"
#include "host-agent/vgpuctl/output.h"
#include "host-agent/vgpuctl/slice_options.h"

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
        .none = "No scheduler's job has slices of this host.",
    };
    static const Filter filter = {0};
    g_autoptr(GVariant) owners = client_get(client, "ListOwners", NULL, "listing owners", error);

    (void)args;
    return owners && objects_list(options, &listing, with_counts(owners), &filter, error);
}

static gboolean dry_run;

const GOptionEntry owner_release_options[] = {
    {"dry-run", 0, 0, G_OPTION_ARG_NONE, &dry_run, "Only show what the slices have used", NULL},
    G_OPTION_ENTRY_NULL,
};

/**
 * Releasing
 * @totals: of each owner, with its name
 */
typedef struct {
    const Options *options;
    GVariantBuilder totals;
} Releasing;

static void add_seconds(GString *text, GVariant *totals, const char *key, const char *what)
{
    guint64 ns = 0;

    if (g_variant_lookup(totals, key, "t", &ns))
        g_string_append_printf(text, ", %s %.1f s", what, (double)ns / 1e9);
}

/* "slurm:c:4711: 2 slices, GPU time 12.3 s, waited 0.5 s, throttled 0.0 s, at most 64.0 MiB" */
static void print_totals(const Options *options, const char *name, GVariant *totals)
{
    g_autoptr(GString) text = g_string_new(NULL);
    g_autofree char *peak = dict_bytes(totals, "PeakVram");
    guint64 uj = 0;
    guint slices = 0;

    g_variant_lookup(totals, "Slices", "u", &slices);
    g_string_printf(text, "%s: %u slice%s", name, slices, slices == 1 ? "" : "s");
    add_seconds(text, totals, "GpuTime", "GPU time");
    add_seconds(text, totals, "Waited", "waited");
    add_seconds(text, totals, "Throttled", "throttled");
    if (peak)
        g_string_append_printf(text, ", at most %s", peak);
    if (g_variant_lookup(totals, "Energy", "t", &uj))
        g_string_append_printf(text, ", %.1f J", (double)uj / 1e6);
    output_line(options, "%s", text->str);
}

static void add_named(GVariantBuilder *list, const char *name, GVariant *totals)
{
    g_auto(GVariantDict) dict = G_VARIANT_DICT_INIT(totals);

    g_variant_dict_insert(&dict, "Owner", "s", name);
    g_variant_builder_add_value(list, g_variant_dict_end(&dict));
}

static gboolean release_owner(Client *client, const char *name, void *data, GError **error)
{
    Releasing *releasing = data;
    g_autofree char *what = g_strdup_printf("releasing the slices of %s", name);
    g_auto(GVariantDict) options = G_VARIANT_DICT_INIT(NULL);
    g_autoptr(GVariant) answer = NULL;
    g_autoptr(GVariant) totals = NULL;

    call_dict_add_flag(&options, "DryRun", dry_run);
    answer =
        client_call(client, "ReleaseOwner",
                    g_variant_new("(s@a{sv})", name, g_variant_dict_end(&options)), what, error);
    if (!answer)
        return FALSE;
    totals = g_variant_get_child_value(answer, 0);
    if (!output_is_document(releasing->options))
        print_totals(releasing->options, name, totals);
    add_named(&releasing->totals, name, totals);
    return TRUE;
}

gboolean owner_release_command(Client *client, const Options *options, char **args, GError **error)
{
    Releasing releasing = {.options = options};
    g_autoptr(GVariant) list = NULL;
    gboolean done;

    g_variant_builder_init(&releasing.totals, G_VARIANT_TYPE("aa{sv}"));
    done = each_name(client, args, "releasing owners", release_owner, &releasing, error);
    list = g_variant_ref_sink(g_variant_builder_end(&releasing.totals));
    if (output_is_document(options))
        output_variant(options, list);
    return done;
}
