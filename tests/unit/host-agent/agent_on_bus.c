/* SPDX-License-Identifier: MIT */
#include "tests/unit/host-agent/agent_on_bus.h"

#include <sqlite3.h>
#include <string.h>

#include "lib/bus.h"
#include "tests/unit/file_tree.h"
#include "tests/unit/host-agent/recorded_host.h"

#define VGPUCTL AGENT_OUT "/vgpuctl"

static void name_acquired(GDBusConnection *bus, const char *name, void *data)
{
    (void)bus;
    (void)name;
    *(gboolean *)data = TRUE;
}

static void connect_bus(AgentOnBus *at)
{
    GError *error = NULL;

    at->bus =
        g_dbus_connection_new_for_address_sync(g_test_dbus_get_bus_address(at->daemon),
                                               G_DBUS_CONNECTION_FLAGS_AUTHENTICATION_CLIENT |
                                                   G_DBUS_CONNECTION_FLAGS_MESSAGE_BUS_CONNECTION,
                                               NULL, NULL, &error);
    g_assert_no_error(error);
}

static void tell_meter(void *data, const char *signal, GVariant *arguments)
{
    const AgentOnBus *at = data;

    if (at->meter)
        meter_hear(at->meter, signal, arguments);
}

static void ask_meter(void *data, const char *method, GVariant *arguments, MeterAnswerFunc func,
                      void *func_data)
{
    const AgentOnBus *at = data;

    meter_answer(at->meter, method, arguments, func, func_data);
}

static void call_agent(void *data, const char *method, GVariant *arguments)
{
    const AgentOnBus *at = data;

    metering_call(agent_metering(at->agent), method, arguments);
}

void agent_on_bus_start_meter(AgentOnBus *at)
{
    const AgentLink link = {at, call_agent};
    g_autoptr(GVariant) state = g_variant_ref_sink(metering_state(agent_metering(at->agent)));
    GError *error = NULL;

    at->meter = meter_new(at->root, &link, state, &error);
    g_assert_no_error(error);
    agent_set_meter(at->agent, &(MeterLink){at, tell_meter, ask_meter});
}

void agent_on_bus_stop_meter(AgentOnBus *at)
{
    agent_set_meter(at->agent, &(MeterLink){NULL, NULL, NULL});
    g_clear_pointer(&at->meter, meter_free);
}

void agent_on_bus_start(AgentOnBus *at)
{
    gboolean acquired = FALSE;
    GError *error = NULL;

    connect_bus(at);
    at->agent = agent_new(at->root, &error);
    g_assert_no_error(error);
    agent_export(at->agent, at->bus);
    agent_on_bus_start_meter(at);
    at->owner = g_bus_own_name_on_connection(at->bus, VGPU_BUS_NAME, G_BUS_NAME_OWNER_FLAGS_NONE,
                                             name_acquired, NULL, &acquired, NULL);
    while (!acquired)
        g_main_context_iteration(NULL, TRUE);
}

void agent_on_bus_stop(AgentOnBus *at)
{
    /* The journal's entry of the last call is written after the answer. */
    while (g_main_context_iteration(NULL, FALSE)) {
    }
    g_clear_handle_id(&at->owner, g_bus_unown_name);
    agent_on_bus_stop_meter(at);
    agent_free(at->agent);
    g_dbus_connection_close_sync(at->bus, NULL, NULL);
    g_object_unref(at->bus);
}

/* bin/ has an mdevctl that works on the tree. */
static void use_fake_mdevctl(HostRoot *root)
{
    const char *path = g_getenv("PATH");
    g_autofree char *dir = root_path(root, "", NULL);
    g_autofree char *longer = g_strconcat(HOSTS "/../bin:", path, NULL);

    if (!g_str_has_prefix(path, HOSTS))
        g_setenv("PATH", longer, TRUE);
    g_setenv("FAKE_ROOT", dir, TRUE);
}

void agent_on_bus_open(AgentOnBus *at, const char *host)
{
    agent_on_bus_open_tree(at, recorded_host_new(host));
}

void agent_on_bus_open_tree(AgentOnBus *at, HostRoot *root)
{
    at->root = root;
    use_fake_mdevctl(root);
    at->daemon = g_test_dbus_new(G_TEST_DBUS_NONE);
    g_test_dbus_up(at->daemon);
    g_setenv("DBUS_SYSTEM_BUS_ADDRESS", g_test_dbus_get_bus_address(at->daemon), TRUE);
    agent_on_bus_start(at);
}

void agent_on_bus_restart(AgentOnBus *at)
{
    agent_on_bus_stop(at);
    agent_on_bus_start(at);
}

void agent_on_bus_close(AgentOnBus *at)
{
    agent_on_bus_stop(at);
    g_test_dbus_down(at->daemon);
    g_object_unref(at->daemon);
    file_tree_free(at->root);
}

static void ended(GObject *process, GAsyncResult *answer, void *data)
{
    Said *said = data;
    g_autoptr(GError) error = NULL;

    g_subprocess_communicate_utf8_finish(G_SUBPROCESS(process), answer, &said->out, &said->err,
                                         &error);
    g_assert_no_error(error);
    said->status = g_subprocess_get_exit_status(G_SUBPROCESS(process));
}

Said run_program(const char *const *argv)
{
    g_autoptr(GSubprocess) process = g_subprocess_newv(
        argv, G_SUBPROCESS_FLAGS_STDOUT_PIPE | G_SUBPROCESS_FLAGS_STDERR_PIPE, NULL);
    Said said = {.status = -1};

    g_assert_nonnull(process);
    g_subprocess_communicate_utf8_async(process, NULL, NULL, ended, &said);
    while (said.status < 0)
        g_main_context_iteration(NULL, TRUE);
    return said;
}

Said run_beside(const char *line)
{
    g_auto(GStrv) argv = NULL;

    g_assert_true(g_shell_parse_argv(line, NULL, &argv, NULL));
    return run_program((const char *const *)argv);
}

void wait_until_settled(const AgentOnBus *at, const char *address)
{
    VgpuGpu *gpu = host_gpu_interface(agent_host(at->agent), address);

    g_assert_nonnull(gpu);
    while (*vgpu_gpu_get_switching(gpu))
        g_main_context_iteration(NULL, TRUE);
}

void iterate_until(gboolean (*true_now)(gconstpointer data), gconstpointer data)
{
    gint64 end = g_get_monotonic_time() + PATIENCE_US;

    while (!true_now(data)) {
        g_assert_cmpint(g_get_monotonic_time(), <, end);
        if (!g_main_context_iteration(NULL, FALSE))
            g_usleep(1000);
    }
}

typedef struct {
    const GString *text;
    const char *words;
} Expected;

static gboolean is_said(gconstpointer data)
{
    const Expected *expected = data;

    return strstr(expected->text->str, expected->words) != NULL;
}

void iterate_until_said(const GString *text, const char *words)
{
    const Expected expected = {text, words};

    iterate_until(is_said, &expected);
}

Said vgpuctl(const char *args)
{
    g_autofree char *line = g_strconcat(VGPUCTL " ", args, NULL);

    return run_beside(line);
}

void said_clear(Said *said)
{
    g_free(said->out);
    g_free(said->err);
}

void iterate_until_told(const char *args, const char *out)
{
    gint64 end = g_get_monotonic_time() + PATIENCE_US;
    gboolean told = FALSE;

    while (!told) {
        Said said = vgpuctl(args);

        told = strstr(said.out, out) != NULL;
        said_clear(&said);
        g_assert_cmpint(g_get_monotonic_time(), <, end);
    }
}

void assert_says(const char *args, int status, const char *out, const char *err)
{
    Said said = vgpuctl(args);

    g_test_message("vgpuctl %s: %d\n%s%s", args, said.status, said.out, said.err);
    if (said.status != status || !strstr(said.out, out) || !strstr(said.err, err))
        g_error("\"vgpuctl %s\" ended with %d and not %d, or did not say \"%s%s\" but \"%s%s\"",
                args, said.status, status, out, err, said.out, said.err);
    said_clear(&said);
}

void run_sql(const AgentOnBus *at, const char *file, const char *sql, int *number)
{
    g_autofree char *path = root_path(at->root, file, NULL);
    sqlite3_stmt *statement;
    sqlite3 *database;

    g_assert_cmpint(sqlite3_open(path, &database), ==, SQLITE_OK);
    g_assert_cmpint(sqlite3_prepare_v2(database, sql, -1, &statement, NULL), ==, SQLITE_OK);
    if (sqlite3_step(statement) == SQLITE_ROW && number)
        *number = sqlite3_column_int(statement, 0);
    sqlite3_finalize(statement);
    g_assert_cmpint(sqlite3_close(database), ==, SQLITE_OK);
}

static void add_to_log(const char *domain, GLogLevelFlags level, const char *message, void *log)
{
    g_string_append_printf(log, "%s\n", message);
    g_log_default_handler(domain, level, message, NULL);
}

void take_log(GString *log)
{
    g_log_set_always_fatal(G_LOG_FATAL_MASK);
    g_log_set_default_handler(add_to_log, log);
}

void end_log(void)
{
    g_log_set_default_handler(g_log_default_handler, NULL);
    g_log_set_always_fatal(G_LOG_FATAL_MASK | G_LOG_LEVEL_CRITICAL | G_LOG_LEVEL_WARNING);
}
