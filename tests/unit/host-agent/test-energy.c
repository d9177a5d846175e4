/* SPDX-License-Identifier: MIT */
/* A GPU's energy among its slices: by time, by promise, alone, and when counters begin again. */
#include <glib.h>
#include <string.h>

#include "host-agent/model/energy.h"
#include "host-agent/meter/metrics_server.h"
#include "lib/bus.h"
#include "tests/unit/file_tree.h"
#include "tests/unit/host-agent/slices_kit.h"

#define GPU    "0000:01:00.0"
#define WHOLE  100
#define SECOND G_USEC_PER_SEC
#define NS     G_GUINT64_CONSTANT(1000000000)

static guint64 taken(Energy *energy, const char *uuid)
{
    guint64 uj = 0;

    g_assert_true(energy_take(energy, uuid, &uj));
    return uj;
}

/* a and b have half and a quarter of the GPU, from the beginning. */
static Energy *two(void)
{
    Energy *energy = energy_new();

    energy_note(energy, "a", GPU, 50, 0);
    energy_note(energy, "b", GPU, 25, 0);
    energy_note(energy, "c", "0000:02:00.0", 50, 0);
    energy_read(energy, GPU, 1000000, WHOLE, 0);
    return energy;
}

static void test_first(void)
{
    g_autoptr(Energy) energy = two();
    guint64 uj;

    g_assert_false(energy_take(energy, "a", &uj));
    energy_read(energy, GPU, 1000000, WHOLE, SECOND);
    g_assert_cmpuint(taken(energy, "a"), ==, 0);
    g_assert_false(energy_take(energy, "c", &uj));
    g_assert_false(energy_take(energy, "nobody", &uj));
}

/* Nobody works: what is not promised is nobody's. */
static void test_idle(void)
{
    g_autoptr(Energy) energy = two();

    energy_read(energy, GPU, 1000000 + 8000, WHOLE, SECOND);
    g_assert_cmpuint(taken(energy, "a"), ==, 4000);
    g_assert_cmpuint(taken(energy, "b"), ==, 2000);
    g_assert_cmpuint(taken(energy, "b"), ==, 0);
}

/* Some counters are read by somebody else, and not so often. */
static void test_read_before(void)
{
    g_autoptr(Energy) energy = two();

    energy_count(energy, "a", NS / 4, 1);
    energy_read(energy, GPU, 1000000, WHOLE, 0);
    energy_read(energy, GPU, 1000000 + 8000, WHOLE, SECOND);
    /* A quarter of the time it had the GPU, and of the rest the half. */
    g_assert_cmpuint(taken(energy, "a"), ==, 2000 + 3000);
}

/* Half of the time is worked: a quarter of it by a, the rest by b. */
static void test_busy(void)
{
    g_autoptr(Energy) energy = two();

    energy_count(energy, "a", NS / 8, 1);
    energy_count(energy, "b", NS / 8 * 3, 1);
    energy_read(energy, GPU, 1000000 + 8000, WHOLE, SECOND);
    g_assert_cmpuint(taken(energy, "a"), ==, 1000 + 2000);
    g_assert_cmpuint(taken(energy, "b"), ==, 3000 + 1000);
    /* The counters have not moved since. */
    energy_count(energy, "a", NS / 8, 1);
    energy_count(energy, "b", NS / 8 * 3, 1);
    energy_read(energy, GPU, 1000000 + 16000, WHOLE, 2 * SECOND);
    g_assert_cmpuint(taken(energy, "a"), ==, 4000);
}

/* More work than time, as with overlapping work: no more than all of it. */
static void test_overlap(void)
{
    g_autoptr(Energy) energy = two();

    energy_count(energy, "a", 3 * NS, 1);
    energy_count(energy, "b", 1 * NS, 1);
    energy_read(energy, GPU, 1000000 + 8000, WHOLE, SECOND);
    g_assert_cmpuint(taken(energy, "a"), ==, 6000);
    g_assert_cmpuint(taken(energy, "b"), ==, 2000);
}

/* The work of one that is alone is not measured. */
static void test_lone(void)
{
    g_autoptr(Energy) energy = two();

    energy_count(energy, "a", 0, 7);
    energy_count(energy, "b", 0, 0);
    energy_read(energy, GPU, 1000000 + 8000, WHOLE, SECOND);
    g_assert_cmpuint(taken(energy, "a"), ==, 8000);
    g_assert_cmpuint(taken(energy, "b"), ==, 0);
    energy_count(energy, "a", 0, 8);
    energy_count(energy, "b", 0, 1);
    energy_read(energy, GPU, 1000000 + 16000, WHOLE, 2 * SECOND);
    g_assert_cmpuint(taken(energy, "a"), ==, 4000);
    g_assert_cmpuint(taken(energy, "b"), ==, 2000);
}

/* One that began in the middle; one that is gone; promises beyond the GPU. */
static void test_changes(void)
{
    g_autoptr(Energy) energy = two();

    energy_note(energy, "d", GPU, 50, SECOND / 2);
    energy_read(energy, GPU, 1000000 + 8000, WHOLE, SECOND);
    g_assert_cmpuint(taken(energy, "d"), ==, 2000);
    energy_forget(energy, "a");
    energy_note(energy, "b", GPU, 150, 0);
    energy_read(energy, GPU, 1000000 + 16000, WHOLE, 2 * SECOND);
    g_assert_cmpuint(taken(energy, "d"), ==, 2000);
    g_assert_cmpuint(taken(energy, "b"), ==, 2000 + 6000);
    /* The counter begins again. */
    energy_read(energy, GPU, 10, WHOLE, 3 * SECOND);
    g_assert_cmpuint(taken(energy, "d"), ==, 0);
    energy_read(energy, GPU, 10 + 8000, WHOLE, 4 * SECOND);
    g_assert_cmpuint(taken(energy, "d"), ==, 2000);
}

/* Parts of a microjoule are not lost. */
static void test_small(void)
{
    g_autoptr(Energy) energy = two();
    guint64 sum = 0;

    for (guint64 i = 1; i <= 300; i++) {
        energy_read(energy, GPU, 1000000 + i, WHOLE, (gint64)i * SECOND);
        sum += taken(energy, "b");
    }
    g_assert_cmpuint(sum, ==, 75);
}

#define PLACE   "/sys/devices/pci0000:00/0000:00:01.0/" ADDRESS
#define COUNTER PLACE "/hwmon/hwmon3/energy1_input"

typedef struct {
    GVariant *value;
    gboolean done;
} Answer;

static void answered(GObject *bus, GAsyncResult *result, void *data)
{
    Answer *answer = data;

    answer->value = g_dbus_connection_call_finish(G_DBUS_CONNECTION(bus), result, NULL);
    answer->done = TRUE;
}

static gboolean is_done(gconstpointer data)
{
    return ((const Answer *)data)->done;
}

static GVariant *call(const AgentOnBus *at, const char *method, GVariant *parameters)
{
    Answer answer = {0};

    g_dbus_connection_call(at->bus, VGPU_BUS_NAME, VGPU_MANAGER_PATH, VGPU_MANAGER_INTERFACE,
                           method, parameters, NULL, G_DBUS_CALL_FLAGS_NONE, -1, NULL, answered,
                           &answer);
    iterate_until(is_done, &answer);
    g_assert_nonnull(answer.value);
    return answer.value;
}

static void make(const AgentOnBus *at, const char *owner)
{
    g_autofree char *text = g_strdup_printf(
        "([{'Owner': <'%s'>, 'Part': <'0'>, 'Door': <'native'>, 'Vram': <uint64 4294967296>}],)",
        owner);

    g_variant_unref(call(at, "CreateSlices", g_variant_new_parsed(text)));
}

/* Microjoules; -1: not said. */
static gint64 release(const AgentOnBus *at, const char *owner)
{
    g_autoptr(GVariant) answer = call(at, "ReleaseOwner", g_variant_new("(sa{sv})", owner, NULL));
    g_autoptr(GVariant) totals = g_variant_get_child_value(answer, 0);
    guint64 uj;

    return g_variant_lookup(totals, "Energy", "t", &uj) ? (gint64)uj : -1;
}

/* A quarter of the recorded GPU, whose memory is 15.98 GiB; how long it takes does not matter. */
static void test_recorded(void)
{
    AgentOnBus at;
    g_autofree char *text = NULL;
    gint64 uj;
    gsize length;

    open_shared(&at);
    make(&at, "none");
    g_assert_cmpint(release(&at, "none"), ==, -1);
    file_tree_write(at.root, PLACE "/hwmon/hwmon1/power1_average", "30000000\n");
    file_tree_write(at.root, COUNTER, "5000000000\n");
    make(&at, "a");
    /* It begins to read soon. */
    assert_says("owner list", 0, "a ", "");
    file_tree_write(at.root, COUNTER, "5000800000\n");
    g_free(scrape_text(meter_scrape(at.meter), &length));
    file_tree_write(at.root, COUNTER, "5001600000\n");
    agent_on_bus_restart(&at);
    text = scrape_text(meter_scrape(at.meter), &length);
    g_assert_nonnull(strstr(text, "\nvgpu_gpu_energy_joules_total{gpu=\"" ADDRESS "\"} 5001.6\n"));
    g_assert_null(strstr(text, "vgpu_job_energy_joules_total{owner=\"none\"}"));
    assert_says("owner list", 0, "a ", "");
    file_tree_write(at.root, COUNTER, "5002400000\n");
    uj = release(&at, "a");
    g_test_message("%" G_GINT64_FORMAT, uj);
    /* Twice a quarter of 800,000; what was used while vgpud did not run is nobody's. */
    g_assert_cmpint(uj, >, 395000);
    g_assert_cmpint(uj, <, 405000);
    g_clear_pointer(&text, g_free);
    text = scrape_text(meter_scrape(at.meter), &length);
    g_assert_nonnull(strstr(text, "\nvgpu_job_energy_joules_total{owner=\"a\"} 0.40"));
    agent_on_bus_close(&at);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/energy/first", test_first);
    g_test_add_func("/energy/idle", test_idle);
    g_test_add_func("/energy/read-before", test_read_before);
    g_test_add_func("/energy/busy", test_busy);
    g_test_add_func("/energy/overlap", test_overlap);
    g_test_add_func("/energy/lone", test_lone);
    g_test_add_func("/energy/changes", test_changes);
    g_test_add_func("/energy/small", test_small);
    g_test_add_func("/energy/recorded", test_recorded);
    return g_test_run();
}
