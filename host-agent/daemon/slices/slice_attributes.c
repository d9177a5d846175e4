/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/slices/slice_attributes.h"

const char *const slice_attribute_names[SLICE_ATTRIBUTES] = {
    "vram_bytes", "weight", "cap", "priority", "tenant", "class", "oversubscribe_bytes", "display"};

static void add_number(GStrvBuilder *texts, guint64 number)
{
    g_autofree char *text = g_strdup_printf("%" G_GUINT64_FORMAT, number);

    g_strv_builder_add(texts, text);
}

GStrv slice_attributes(const Slice *slice)
{
    g_autoptr(GStrvBuilder) texts = g_strv_builder_new();

    add_number(texts, slice->vram);
    add_number(texts, slice->weight);
    add_number(texts, slice->cap);
    add_number(texts, slice->priority);
    g_strv_builder_add(texts, slice->tenant);
    g_strv_builder_add(texts, slice_class_name(slice->class));
    add_number(texts, slice->oversubscribe);
    if (slice->display < 0)
        g_strv_builder_add(texts, "");
    else
        add_number(texts, (guint64)slice->display);
    return g_strv_builder_end(texts);
}
