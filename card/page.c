/* SPDX-License-Identifier: MIT */
/* The sheet for a person. */
#include "card.h"

static const char *text_of(JsonObject *object, const char *member)
{
    return json_object_get_string_member_with_default(object, member, "");
}

static const char *yes_or_no(gboolean is)
{
    return is ? "yes" : "no";
}

static void add_heading(GString *page, const char *text)
{
    g_string_append_printf(page, "\n## %s\n\n", text);
}

/* Calls @one for each object of a list; does nothing if there is no such list. */
static void each_object(JsonObject *sheet, const char *name,
                        void (*one)(GString *page, JsonObject *object), GString *page)
{
    JsonArray *list =
        json_object_has_member(sheet, name) ? json_object_get_array_member(sheet, name) : NULL;

    for (guint i = 0; list && i < json_array_get_length(list); i++)
        one(page, json_array_get_object_element(list, i));
}

static void add_heap(GString *page, JsonObject *object)
{
    g_string_append_printf(
        page, "- memory: %" G_GINT64_FORMAT " MiB%s%s\n", json_object_get_int_member(object, "mib"),
        json_object_get_boolean_member(object, "device_local") ? ", the GPU's own" : "",
        json_object_get_boolean_member(object, "host_visible") ? ", the CPU sees it" : "");
}

static void add_queue(GString *page, JsonObject *object)
{
    g_string_append_printf(page, "- %" G_GINT64_FORMAT " queue(s): %s\n",
                           json_object_get_int_member(object, "queues"), text_of(object, "does"));
}

static void write_machine(GString *page, JsonObject *sheet)
{
    JsonObject *gpu = json_object_get_object_member(sheet, "gpu");
    JsonObject *machine = json_object_get_object_member(sheet, "machine");

    g_string_append_printf(page, "# %s\n\n", text_of(gpu, "name"));
    g_string_append_printf(page, "- driver: %s %s, Vulkan %s\n", text_of(gpu, "driver"),
                           text_of(gpu, "driver_info"), text_of(gpu, "api"));
    if (json_object_has_member(gpu, "address"))
        g_string_append_printf(page, "- PCI device %s, driver %s\n", text_of(gpu, "address"),
                               text_of(gpu, "kernel_driver"));
    each_object(gpu, "heaps", add_heap, page);
    each_object(gpu, "queues", add_queue, page);
    g_string_append_printf(
        page,
        "- host: %s, Linux %s, %s, %" G_GINT64_FORMAT " processors, %" G_GINT64_FORMAT " MiB\n",
        text_of(machine, "system"), text_of(machine, "kernel"), text_of(machine, "processor"),
        json_object_get_int_member(machine, "processors"),
        json_object_get_int_member(machine, "memory_mib"));
    g_string_append_printf(page, "- measured on %s by vgpu-card of mdev-vgpu %s\n",
                           text_of(machine, "date"), text_of(sheet, "version"));
}

static void add_door(GString *page, JsonObject *object)
{
    g_string_append_printf(page, "| %s | %s | %s |\n", text_of(object, "door"),
                           yes_or_no(json_object_get_boolean_member(object, "works")),
                           text_of(object, "why"));
}

static void add_ability(GString *page, JsonObject *object)
{
    g_string_append_printf(page, "| %s | %s | %s | %s |\n", text_of(object, "name"),
                           yes_or_no(json_object_get_boolean_member(object, "has")),
                           text_of(object, "text"), text_of(object, "for"));
}

static void add_governed(GString *page, JsonObject *object)
{
    g_string_append_printf(page, "| %s | %s | %s | %.4g | %.4g |\n", text_of(object, "row"),
                           text_of(object, "unit"), text_of(object, "expected"),
                           json_object_get_double_member(object, "with"),
                           json_object_get_double_member(object, "without"));
}

static void add_number(GString *page, JsonObject *row, const char *place)
{
    JsonObject *value =
        json_object_has_member(row, place) ? json_object_get_object_member(row, place) : NULL;

    if (value)
        g_string_append_printf(page, " %.4g (%.4g-%.4g) |",
                               json_object_get_double_member(value, "median"),
                               json_object_get_double_member(value, "low"),
                               json_object_get_double_member(value, "high"));
    else
        g_string_append(page, " - |");
}

static void add_speed(GString *page, JsonObject *row)
{
    g_string_append_printf(page, "| %s | %s |", text_of(row, "row"), text_of(row, "unit"));
    add_number(page, row, "native");
    add_number(page, row, "governed");
    add_number(page, row, "guarded");
    g_string_append_c(page, '\n');
}

static void add_failure(GString *page, JsonObject *object)
{
    g_string_append_printf(page, "- %s: %s\n", text_of(object, "what"), text_of(object, "why"));
}

static void add_finding(GString *page, JsonObject *object)
{
    if (g_str_equal(text_of(object, "severity"), "ok"))
        return;
    g_string_append_printf(page, "- %s, %s: %s", text_of(object, "severity"),
                           text_of(object, "subject"), text_of(object, "text"));
    if (json_object_has_member(object, "advice"))
        g_string_append_printf(page, " (%s)", text_of(object, "advice"));
    g_string_append_c(page, '\n');
}

char *page_of(JsonObject *sheet)
{
    GString *page = g_string_new(NULL);

    write_machine(page, sheet);
    add_heading(page, "What can be shared");
    g_string_append(page, "| door | works | why |\n| --- | --- | --- |\n");
    each_object(sheet, "doors", add_door, page);
    add_heading(page, "What the driver supports");
    g_string_append(page, "| what | | seen | needed for |\n| --- | --- | --- | --- |\n");
    each_object(sheet, "abilities", add_ability, page);
    add_heading(page, "Shares, caps and limits");
    g_string_append(
        page,
        "\"without\" is the same run without a governor. A result that is as expected there, too, "
        "proves nothing.\n\n"
        "| what | unit | expected | with | without |\n| --- | --- | --- | --- | --- |\n");
    each_object(sheet, "governor", add_governed, page);
    add_heading(page, "Speed");
    g_string_append(
        page,
        "Median of the rounds (lowest-highest). Governed: in a slice, alone. Guarded: through "
        "the guarded door, in a slice, alone.\n\n"
        "| row | unit | native | governed | guarded |\n| --- | --- | --- | --- | --- |\n");
    each_object(sheet, "speed", add_speed, page);
    add_heading(page, "What this host lacks for VMs (vgpuctl doctor)");
    each_object(sheet, "host", add_finding, page);
    add_heading(page, "Missing results");
    if (json_object_has_member(sheet, "failed"))
        each_object(sheet, "failed", add_failure, page);
    else
        g_string_append(page, "Nothing.\n");
    add_heading(page, "For the README's table");
    g_string_append_printf(page, "%s\n", text_of(sheet, "seen_on"));
    return g_string_free(page, FALSE);
}
