/* SPDX-License-Identifier: MIT */
/* Prometheus's metrics, and the cost of reading them. */
#include <gio/gunixsocketaddress.h>
#include <glib/gstdio.h>
#include <string.h>

#include "host-agent/meter/vgpu_metrics.h"
#include "host-agent/meter/metrics_server.h"
#include "tests/unit/file_tree.h"
#include "tests/unit/host-agent/agent_on_bus.h"
#include "tests/unit/host-agent/recorded_host.h"

#define PLACE "pci0000:00/0000:00:01.0/0000:02:00.0"
#define GPU   "0000:02:00.0"
#define UUID  "c0ffee00-0000-4000-8000-000000000001"
#define DIR   "/sys/devices/" PLACE "/" UUID "/vgpu/"
#define CGROUP                                                                                     \
    "/sys/fs/cgroup/system.slice/system-vgpu\\x2dengine.slice/vgpu-engine@" UUID ".service/"

static void add_vgpu(HostRoot *root, const char *uuid, const char *state)
{
    g_autofree char *attributes = g_strdup_printf(
        "state=%s|failure=|vram_bytes=4294967296|window_bytes=268435456|weight=100|cap=50|"
        "priority=0|requests=12345|doorbells=17|interrupts=18|engine_losses=2|window_faults=5|"
        "window_published_bytes=4096|pinned_bytes=8192",
        state);

    recorded_host_add_vgpu(root, PLACE, uuid, "amdgpu-vgpu-half", attributes);
}

static const VgpuCounters *only(const GPtrArray *list)
{
    g_assert_cmpuint(list->len, ==, 1);
    return g_ptr_array_index(list, 0);
}

/* Of a closed vGPU only the state is read; parameters only after a reported change. */
static void test_closed(void)
{
    HostRoot *root = recorded_host_new("shared");
    g_autoptr(Counters) counters = counters_new(root);

    g_assert_cmpuint(counters_read(counters)->len, ==, 0);
    add_vgpu(root, UUID, "device=closed engine=ready");
    g_assert_cmpuint(only(counters_read(counters))->vgpu->requests, ==, 12345);
    file_tree_write(root, DIR "requests", "20000\n");
    file_tree_write(root, DIR "weight", "7\n");
    g_assert_cmpuint(only(counters_read(counters))->vgpu->requests, ==, 12345);
    counters_forget(counters, UUID);
    g_assert_cmpuint(only(counters_read(counters))->vgpu->weight, ==, 7);
    file_tree_write(root, DIR "weight", "8\n");
    counters_forget(counters, NULL);
    g_assert_cmpuint(only(counters_read(counters))->vgpu->weight, ==, 8);
    file_tree_write(root, DIR "weight", "9\n");
    g_assert_cmpuint(counters_read_one(counters, UUID)->vgpu->weight, ==, 9);
    file_tree_free(root);
}

static void count_call(Counters *counters, void *calls)
{
    (void)counters;
    ++*(guint *)calls;
}

static gboolean is_even(void *calls)
{
    return *(guint *)calls % 2 == 0;
}

static void look_away(gboolean watch, void *calls)
{
    (void)watch, (void)calls;
}

static const CountersSource counting = {.read = count_call, .rests = is_even, .watch = look_away};

/* A list of vGPUs and their states does not wait for the arbiters. */
static void test_look(void)
{
    HostRoot *root = recorded_host_new("shared");
    g_autoptr(Counters) counters = counters_new(root);
    guint calls = 0;

    counters_set_source(counters, &counting, &calls);
    add_vgpu(root, UUID, "device=closed engine=ready");
    g_assert_cmpstr(only(counters_look(counters))->vgpu->engine, ==, "ready");
    g_assert_cmpuint(calls, ==, 0);
    g_assert_cmpuint(only(counters_read(counters))->vgpu->requests, ==, 12345);
    g_assert_cmpuint(calls, ==, 1);
    file_tree_free(root);
}

/* TRUE: nothing has changed since the last reading of all by the caller. */
static gboolean rests_after_reading(Counters *counters)
{
    guint64 serial;

    counters_read(counters);
    serial = counters_serial(counters);
    counters_read(counters); /* by others */
    return counters_rest(counters, serial);
}

/* Nobody need look at what rests: neither at closed vGPUs that did not change, nor at arbiters. */
static void test_rest(void)
{
    HostRoot *root = recorded_host_new("shared");
    g_autoptr(Counters) counters = counters_new(root);
    guint64 serial;
    guint calls = 0;

    add_vgpu(root, UUID, "device=closed engine=ready");
    g_assert_false(rests_after_reading(counters));
    counters_set_watched(counters, TRUE);
    g_assert_true(rests_after_reading(counters));
    serial = counters_serial(counters);
    counters_forget(counters, "c0ffee00-0000-4000-8000-000000000099"); /* a new one */
    g_assert_false(counters_rest(counters, serial));
    file_tree_write(root, DIR "state", "device=running engine=ready\n");
    counters_forget(counters, UUID);
    g_assert_false(rests_after_reading(counters));
    /* Others have seen it close, and the caller has not. */
    serial = counters_serial(counters);
    file_tree_write(root, DIR "state", "device=closed engine=ready\n");
    counters_forget(counters, UUID);
    counters_read(counters);
    g_assert_false(counters_rest(counters, serial));
    g_assert_true(rests_after_reading(counters));
    counters_set_source(counters, &counting, &calls);
    counters_read(counters);
    serial = counters_serial(counters);
    g_assert_false(counters_rest(counters, serial));
    counters_read(counters);
    g_assert_true(counters_rest(counters, serial));
    counters_note_change(counters);
    g_assert_false(counters_rest(counters, serial));
    file_tree_free(root);
}

/* Once more after it was closed: its last work counts, too. */
static void test_open(void)
{
    HostRoot *root = recorded_host_new("shared");
    g_autoptr(Counters) counters = counters_new(root);

    add_vgpu(root, UUID, "device=running engine=ready");
    g_assert_cmpuint(only(counters_read(counters))->window_faults, ==, 5);
    file_tree_write(root, DIR "window_faults", "6\n");
    g_assert_cmpuint(only(counters_read(counters))->window_faults, ==, 6);
    file_tree_write(root, DIR "window_faults", "7\n");
    file_tree_write(root, DIR "state", "device=closed engine=ready\n");
    g_assert_cmpuint(only(counters_read(counters))->window_faults, ==, 7);
    g_assert_cmpstr(only(counters_read(counters))->vgpu->device, ==, "closed");
    recorded_host_remove_vgpu(root, UUID);
    g_assert_cmpuint(counters_read(counters)->len, ==, 0);
    g_assert_null(counters_read_one(counters, UUID));
    file_tree_free(root);
}

/* The same name, but another vGPU: nothing of the first is left. */
static void test_made_anew(void)
{
    HostRoot *root = recorded_host_new("shared");
    g_autoptr(Counters) counters = counters_new(root);

    add_vgpu(root, UUID, "device=closed engine=ready");
    g_assert_cmpuint(only(counters_read(counters))->vgpu->requests, ==, 12345);
    recorded_host_remove_vgpu(root, UUID);
    file_tree_write(root, "/sys/bus/mdev/other", ""); /* has the inode number of the first */
    add_vgpu(root, UUID, "device=closed engine=ready");
    file_tree_write(root, DIR "requests", "1\n");
    g_assert_cmpuint(only(counters_read(counters))->vgpu->requests, ==, 1);
    file_tree_free(root);
}

static void write_fdinfo(HostRoot *root, const char *file, const char *client, const char *text)
{
    g_autofree char *path = g_strconcat("/proc/4711/fdinfo/", file, NULL);
    g_autofree char *link = g_strconcat("/proc/4711/fd/", file, NULL);
    g_autofree char *there = root_path(root, link, NULL);
    g_autofree char *full = g_strdup_printf("pos:\t0\nflags:\t02\ndrm-driver:\tamdgpu\n"
                                            "drm-client-id:\t%s\ndrm-pdev:\t" GPU "\n%s",
                                            client, text);

    file_tree_write(root, path, full);
    if (!g_file_test(there, G_FILE_TEST_IS_SYMLINK))
        file_tree_link(root, link, "/dev/dri/renderD128");
}

static void test_drm(void)
{
    HostRoot *root = recorded_host_new("shared");
    g_autoptr(DrmClients) clients = drm_clients_new(root, UUID, GPU);
    DrmUse use = {0};

    file_tree_write(root, CGROUP "cgroup.procs", "4711\n");
    file_tree_link(root, "/proc/4711/fd/3", "/dev/null");
    file_tree_write(root, "/proc/4711/fdinfo/3", "pos: 0\n");
    write_fdinfo(root, "4", "10",
                 "drm-memory-vram:\t1024 KiB\ndrm-engine-gfx:\t1000 ns\n"
                 "drm-engine-compute:\t500 ns\ndrm-engine-capacity-gfx:\t2\n");
    /* A duplicate of the same file. */
    write_fdinfo(root, "5", "10", "drm-memory-vram:\t1024 KiB\ndrm-engine-gfx:\t1000 ns\n");
    write_fdinfo(root, "6", "11", "drm-resident-vram:\t2 MiB\ndrm-engine-gfx:\t70 ns\n");
    drm_clients_read(clients, &use);
    g_assert_true(use.known && use.vram_known);
    g_assert_cmpuint(use.gpu_ns, ==, 1570);
    g_assert_cmpuint(use.vram, ==, 3 << 20);
    drm_clients_read(clients, &use);
    g_assert_cmpuint(use.gpu_ns, ==, 1570);                    /* nothing twice */
    file_tree_write(root, "/proc/4711/fdinfo/6", "pos:\t0\n"); /* closed */
    write_fdinfo(root, "7", "12", "drm-engine-gfx:\t1 ns\n");  /* not searched again so soon */
    drm_clients_read(clients, &use);
    g_assert_cmpuint(use.gpu_ns, ==, 1570); /* its past usage stays */
    g_assert_cmpuint(use.vram, ==, 1 << 20);
    file_tree_free(root);
}

static void test_no_drm(void)
{
    HostRoot *root = recorded_host_new("shared");
    g_autoptr(DrmClients) clients = drm_clients_new(root, UUID, GPU);
    DrmUse use = {0};

    drm_clients_read(clients, &use);
    g_assert_false(use.known || use.vram_known);
    file_tree_free(root);
}

static void test_exposition(void)
{
    Exposition *exposition = exposition_new();
    g_autoptr(GString) labels = g_string_new(NULL);
    g_autofree char *text = NULL;
    gsize length;

    exposition_label(labels, "a", "x");
    exposition_label(labels, "name", "a \"b\" \\ c\nd");
    exposition_family(exposition, "vgpu_test", METRIC_GAUGE, "Words.");
    exposition_count(exposition, "", 0);
    exposition_count(exposition, labels->str, G_MAXUINT64);
    exposition_number(exposition, "", 17163091968.0);
    exposition_number(exposition, "", 0.25);
    text = exposition_end(exposition, &length);
    g_assert_cmpuint(length, ==, strlen(text));
    g_assert_cmpstr(text, ==,
                    "# HELP vgpu_test Words.\n# TYPE vgpu_test gauge\nvgpu_test 0\n"
                    "vgpu_test{a=\"x\",name=\"a \\\"b\\\" \\\\ c\\nd\"} 18446744073709551615\n"
                    "vgpu_test 17163091968\nvgpu_test 0.25\n");
}

static void assert_sample(const char *text, const char *sample)
{
    g_autofree char *line = g_strconcat("\n", sample, "\n", NULL);

    if (!strstr(text, line))
        g_error("no line %s in\n%s", sample, text);
}

/* promtool, if it is installed, accepts it. */
static void assert_conforms(const char *text)
{
    g_autofree char *promtool = g_find_program_in_path("promtool");
    g_autoptr(GSubprocess) process = NULL;
    g_autofree char *said = NULL;

    if (!promtool)
        return;
    process = g_subprocess_new(G_SUBPROCESS_FLAGS_STDIN_PIPE | G_SUBPROCESS_FLAGS_STDOUT_PIPE |
                                   G_SUBPROCESS_FLAGS_STDERR_MERGE,
                               NULL, promtool, "check", "metrics", NULL);
    g_assert_nonnull(process);
    g_assert_true(g_subprocess_communicate_utf8(process, text, NULL, &said, NULL, NULL));
    g_assert_cmpstr(said, ==, "");
    g_assert_cmpint(g_subprocess_get_exit_status(process), ==, 0);
}

static void test_host(void)
{
    static const char labels[] = "vgpu=\"" UUID "\",gpu=\"" GPU "\",tenant=\"\"";
    AgentOnBus at;
    g_autofree char *text = NULL;
    g_autofree char *doorbells = g_strdup_printf("vgpu_vgpu_doorbells_total{%s} 17", labels);
    g_autofree char *info = g_strdup_printf(
        "vgpu_vgpu_info{%s,type=\"amdgpu-vgpu-half\",class=\"guaranteed\",owner=\"\"} 1", labels);
    gsize length;

    agent_on_bus_open(&at, "shared");
    add_vgpu(at.root, UUID, "device=running engine=ready");
    file_tree_write(at.root, "/sys/devices/" PLACE "/mem_info_vram_used", "1000000\n");
    file_tree_write(at.root, "/sys/devices/" PLACE "/hwmon/hwmon0/temp1_input", "54500\n");
    file_tree_write(at.root, "/sys/devices/" PLACE "/hwmon/hwmon0/power1_average", "85500000\n");
    file_tree_write(at.root, "/sys/devices/" PLACE "/gpu_busy_percent", "48\n");
    agent_refresh(at.agent);
    text = scrape_text(meter_scrape(at.meter), &length);
    g_assert_cmpuint(length, ==, strlen(text));
    g_assert_nonnull(strstr(text, "\nvgpu_agent_start_time_seconds "));
    assert_sample(text, "vgpu_build_info{version=\"" VGPU_VERSION "\"} 1");
    assert_sample(text, "vgpu_gpu_vram_bytes{gpu=\"" GPU "\"} 17163091968");
    assert_sample(text, "vgpu_gpu_vram_used_bytes{gpu=\"" GPU "\"} 1000000");
    assert_sample(text, "vgpu_gpu_vram_promised_bytes{gpu=\"" GPU "\"} 4294967296");
    assert_sample(text, "vgpu_gpu_temperature_celsius{gpu=\"" GPU "\"} 54.5");
    assert_sample(text, "vgpu_gpu_power_watts{gpu=\"" GPU "\"} 85.5");
    assert_sample(text, "vgpu_gpu_busy_ratio{gpu=\"" GPU "\"} 0.48");
    assert_sample(text, "vgpu_gpu_link_width_lanes{gpu=\"" GPU "\"} 16");
    assert_sample(text, "vgpu_gpu_healthy{gpu=\"" GPU "\"} 1");
    assert_sample(text, doorbells);
    assert_sample(text, info);
    assert_sample(text, "vgpu_tenant_vgpus{tenant=\"\"} 1");
    assert_conforms(text);
    /* In a processor of AMD's (here by the measurements' form 3), what it has of the host's memory.
     */
    file_tree_write(at.root, "/sys/devices/" PLACE "/mem_info_gtt_total", "115964116992\n");
    file_tree_write(at.root, "/sys/devices/" PLACE "/mem_info_gtt_used", "500\n");
    file_tree_write(at.root, "/sys/devices/" PLACE "/gpu_metrics", "\x60\x01\x03\x01");
    g_free(text);
    text = scrape_text(meter_scrape(at.meter), &length);
    assert_sample(text, "vgpu_gpu_vram_used_bytes{gpu=\"" GPU "\"} 1000500");
    agent_on_bus_close(&at);
}

/* An HTTP client in a separate thread, because the server uses the main loop. */
typedef struct {
    GSocketAddress *address;
    const char *request;
    char *answer;
    gint done;
} HttpRequest;

static void *ask(void *data)
{
    HttpRequest *request = data;
    g_autoptr(GSocketClient) client = g_socket_client_new();
    g_autoptr(GSocketConnection) connection =
        g_socket_client_connect(client, G_SOCKET_CONNECTABLE(request->address), NULL, NULL);
    GString *answer = g_string_new(NULL);
    char buffer[4096];
    gssize length;

    g_assert_nonnull(connection);
    g_assert_true(g_output_stream_write_all(g_io_stream_get_output_stream(G_IO_STREAM(connection)),
                                            request->request, strlen(request->request), NULL, NULL,
                                            NULL));
    while ((length = g_input_stream_read(g_io_stream_get_input_stream(G_IO_STREAM(connection)),
                                         buffer, sizeof(buffer), NULL, NULL)) > 0)
        g_string_append_len(answer, buffer, length);
    request->answer = g_string_free(answer, FALSE);
    g_atomic_int_set(&request->done, 1);
    g_main_context_wakeup(NULL);
    return NULL;
}

static char *fetch(GSocketAddress *address, const char *text)
{
    HttpRequest request = {.address = address, .request = text};
    GThread *thread = g_thread_new("client", ask, &request);

    while (!g_atomic_int_get(&request.done))
        g_main_context_iteration(NULL, TRUE);
    g_thread_join(thread);
    return request.answer;
}

/* More than a socket's buffer takes at once. */
static char *much(void *data, gsize *length)
{
    GString *text = g_string_new("begin\n");

    (void)data;
    for (guint i = 0; i < 100000; i++)
        g_string_append(text, "vgpu_test_total 123456789\n");
    g_string_append(text, "end\n");
    *length = text->len;
    return g_string_free(text, FALSE);
}

static void assert_serves(GSocketAddress *address)
{
    static const struct {
        const char *request;
        const char *status;
    } cases[] = {
        {"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", "HTTP/1.1 200"},
        {"HEAD /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", "HTTP/1.1 200"},
        {"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", "HTTP/1.1 404"},
        {"DELETE /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", "HTTP/1.1 405"},
        {"nonsense\r\n\r\n", ""},
    };

    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *answer = fetch(address, cases[i].request);

        g_test_message("%s: %.60s", cases[i].status, answer);
        g_assert_true(g_str_has_prefix(answer, cases[i].status));
        g_assert_true(g_str_has_suffix(answer, "end\n") == (i == 0));
    }
}

/* @data: how often it was asked. */
static char *counted(void *data, gsize *length)
{
    char *text = g_strdup_printf("vgpu_test_total %u\n", ++*(guint *)data);

    *length = strlen(text);
    return text;
}

static gint64 test_time;

static gint64 test_clock(void)
{
    return test_time;
}

/* Who asks again within a second gets the same answer, and keeps vgpud busy with nothing. */
static void test_kept(void)
{
    static const char request[] = "GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    HostRoot *root = file_tree_new();
    g_autofree char *path = root_path(root, "/run/vgpu/metrics", NULL);
    g_autoptr(GSocketAddress) address = g_unix_socket_address_new(path);
    guint asked = 0;
    MetricsServer *server =
        metrics_server_new(root, "unix:/run/vgpu/metrics", counted, &asked, NULL);

    metrics_server_set_clock(server, test_clock);
    for (guint i = 0; i < 3; i++) {
        g_autofree char *answer = fetch(address, request);

        g_assert_true(
            g_str_has_suffix(answer, i < 2 ? "\nvgpu_test_total 1\n" : "\nvgpu_test_total 2\n"));
        test_time += 600 * 1000;
    }
    metrics_server_free(server);
    file_tree_free(root);
}

static void test_unix_server(void)
{
    HostRoot *root = file_tree_new();
    g_autofree char *path = root_path(root, "/run/vgpu/metrics", NULL);
    g_autoptr(GSocketAddress) address = g_unix_socket_address_new(path);
    g_autoptr(GError) error = NULL;
    MetricsServer *server;

    file_tree_write(root, "/run/vgpu/metrics", ""); /* a leftover */
    server = metrics_server_new(root, "unix:/run/vgpu/metrics", much, NULL, &error);
    g_assert_no_error(error);
    assert_serves(address);
    metrics_server_free(server);
    g_assert_cmpint(g_access(path, F_OK), !=, 0);
    file_tree_free(root);
}

static void test_inet_server(void)
{
    g_autoptr(GSocketAddress) address = g_inet_socket_address_new_from_string("127.0.0.1", 19835);
    g_autoptr(GError) error = NULL;
    g_autoptr(GError) taken = NULL;
    g_autoptr(HostRoot) root = host_root_new(NULL, NULL);
    MetricsServer *server = metrics_server_new(root, "127.0.0.1:19835", much, NULL, &error);

    g_assert_no_error(error);
    assert_serves(address);
    g_assert_null(metrics_server_new(root, "127.0.0.1:19835", much, NULL, &taken));
    g_test_message("%s", taken->message);
    g_assert_nonnull(strstr(taken->message, "cannot serve metrics at 127.0.0.1:19835"));
    metrics_server_free(server);
}

#define MANY 1024

/*
 * Reading many closed ones costs one small file each; the time is printed, not judged, because it
 * depends on the machine.
 */
static void test_many(void)
{
    AgentOnBus at;
    g_autofree char *text = NULL;
    gint64 begin;
    gsize length;

    agent_on_bus_open(&at, "shared");
    for (guint i = 0; i < MANY; i++) {
        g_autofree char *uuid = g_strdup_printf("c0ffee00-0000-4000-8000-%012x", i);

        add_vgpu(at.root, uuid, "device=closed engine=ready");
    }
    agent_refresh(at.agent);
    text = scrape_text(meter_scrape(at.meter), &length);
    g_free(text);
    begin = g_get_monotonic_time();
    text = scrape_text(meter_scrape(at.meter), &length);
    g_test_message("%u vGPUs: %" G_GINT64_FORMAT " us, %zu bytes", MANY,
                   g_get_monotonic_time() - begin, length);
    assert_sample(text, "vgpu_gpu_vgpus{gpu=\"" GPU "\"} 1024");
    assert_conforms(text);
    agent_on_bus_close(&at);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/metrics/closed", test_closed);
    g_test_add_func("/metrics/look", test_look);
    g_test_add_func("/metrics/rest", test_rest);
    g_test_add_func("/metrics/open", test_open);
    g_test_add_func("/metrics/made-anew", test_made_anew);
    g_test_add_func("/metrics/drm", test_drm);
    g_test_add_func("/metrics/no-drm", test_no_drm);
    g_test_add_func("/metrics/exposition", test_exposition);
    g_test_add_func("/metrics/host", test_host);
    g_test_add_func("/metrics/unix-server", test_unix_server);
    g_test_add_func("/metrics/kept", test_kept);
    g_test_add_func("/metrics/inet-server", test_inet_server);
    g_test_add_func("/metrics/many", test_many);
    return g_test_run();
}
