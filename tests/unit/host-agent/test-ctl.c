/* SPDX-License-Identifier: MIT */
/*
 * How vgpuctl lists, shows, filters, prints and waits; against a vgpud on the test's private bus.
 */
#include <gio/gio.h>
#include <string.h>

#include "lib/bus.h"
#include "tests/unit/file_tree.h"
#include "tests/unit/host-agent/agent_on_bus.h"
#include "tests/unit/host-agent/recorded_host.h"

#define VGPUCTL AGENT_OUT "/vgpuctl"
#define UUID    "c0ffee00-0000-4000-8000-000000000001"
#define UUID2   "c0ffee00-0000-4000-8000-000000000002"
#define GPU     "0000:02:00.0"

static const char types[] = "[type vgpu-full]\nvram=1/1\n"
                            "[type vgpu-half]\nvram=1/2\nweight=400\nclass=burstable\n";

static void open_shared(AgentOnBus *at)
{
    HostRoot *root = recorded_host_new("shared");

    file_tree_write(root, "/etc/vgpu/types.d/10-test.conf", types);
    agent_on_bus_open_tree(at, root);
}

/* All output of vgpuctl. */
static void assert_prints(const char *args, const char *out)
{
    Said said = vgpuctl(args);

    g_test_message("vgpuctl %s: %d\n%s", args, said.status, said.err);
    g_assert_cmpint(said.status, ==, 0);
    g_assert_cmpstr(said.out, ==, out);
    said_clear(&said);
}

/* A noun's help has its commands and no others. */
static void test_help(void)
{
    AgentOnBus at;
    Said said;

    open_shared(&at);
    assert_says("--help", 0, "  gpu mode GPU MODE ", "");
    assert_says("vgpu set --help", 0, "--weight=N", "");
    said = vgpuctl("vgpu --help");
    g_assert_cmpint(said.status, ==, 0);
    g_assert_nonnull(strstr(said.out, "] vgpu COMMAND\n"));
    g_assert_nonnull(strstr(said.out, "\n  vgpu start VGPU... "));
    g_assert_null(strstr(said.out, "\n  gpu "));
    g_assert_null(strstr(said.out, "\n  slice "));
    said_clear(&said);
    agent_on_bus_close(&at);
}

static void test_names(void)
{
    AgentOnBus at;

    open_shared(&at);
    assert_says("vgpu create half -n 2 --name web", 2, "", "Name needs a Count of 1: \"web\"");
    assert_says("vgpu create half --name 7up", 2, "", "Name must be up to 63 letters");
    assert_says("vgpu create half --define --name web --uuid " UUID, 0, "web", "");
    assert_says("vgpu create half --name web", 6, "", "the name web is taken");
    assert_says("vgpu list", 0, "-       -   web\n", "");
    assert_says("vgpu show web", 0, UUID, "");
    assert_says("vgpu set web --weight 9", 0, "", "");
    assert_says("-o json vgpu show web", 0, "\"Weight\" : 9", "");
    assert_says("vgpu create half --name db --uuid " UUID2, 0, "db", "");
    assert_says("vgpu set db --name web", 6, "", "the name web is taken");
    assert_says("vgpu set web --name www", 0, "", "");
    agent_on_bus_restart(&at);
    assert_says("vgpu show web", 3, "", "there is no vGPU web; \"vgpuctl slice list\"");
    assert_says("vgpu set www --name ''", 0, "", "");
    assert_says("vgpu show www", 3, "", "there is no vGPU www");
    assert_says("vgpu remove db", 0, "", "");
    agent_on_bus_close(&at);
}

static void test_start_stop(void)
{
    AgentOnBus at;

    open_shared(&at);
    assert_says("vgpu create half --define --name web --uuid " UUID, 0, "closed", "");
    assert_says("vgpu create half --uuid " UUID2, 0, "closed", "");
    assert_says("vgpu stop web", 0, "", "");
    assert_says("vgpu list --state stopped -o name", 0, UUID "\n", "");
    assert_says("vgpu stop web", 0, "", "");
    assert_says("vgpu start web", 0, "", "");
    assert_says("vgpu show web", 0, "Device:                 closed\n", "");
    assert_says("vgpu stop web " UUID2, 1, "", "cannot stop vGPU " UUID2 ": it has no definition");
    assert_says("vgpu list --state stopped -o name", 0, UUID "\n", "");
    assert_says("vgpu start web", 0, "", "");
    file_tree_write(at.root, "/sys/devices/pci0000:00/0000:00:01.0/" GPU "/" UUID "/vgpu/state",
                    "device=running engine=ready\n");
    assert_says("vgpu stop web", 6, "", "it is open in a VM");
    assert_says("vgpu stop ghost", 3, "", "there is no vGPU ghost");
    agent_on_bus_close(&at);
}

/* A failed object does not prevent the others. */
static void test_several(void)
{
    AgentOnBus at;

    open_shared(&at);
    assert_says("vgpu create half -n 2 --uuid " UUID " --uuid " UUID2, 0, UUID2, "");
    assert_says("vgpu show " UUID " ghost " UUID2, 3, UUID2, "there is no vGPU ghost");
    assert_says("-o json vgpu show " UUID " " UUID2, 0, "[\n  {\n", "");
    assert_says("vgpu set " UUID " ghost " UUID2 " --weight 5", 3, "",
                "vgpuctl: there is no slice ghost");
    assert_says("-o json vgpu show " UUID2, 0, "\"Weight\" : 5", "");
    assert_says("vgpu remove " UUID " ghost " UUID2, 3, "", "1 of 3 failed, see above");
    assert_says("vgpu list", 0, "This host has no vGPU.", "");
    assert_says("gpu show 02:00.0 0000:99:00.0", 3, "amdgpu-vgpu-full", "no GPU 0000:99:00.0");
    assert_says("gpu users 02:00.0 03:00.0", 0, GPU ": Nobody uses this GPU.\n0000:03:00.0: ", "");
    assert_says("gpu users", 0, GPU ": Nobody uses this GPU.\n0000:03:00.0: ", "");
    assert_says("events -n 10", 2, "", "\"vgpuctl audit -n N\" shows the last changes");
    assert_says("tenant set red", 0, "", "");
    assert_says("tenant set blue", 0, "", "");
    assert_says("tenant remove red green blue", 3, "", "there is no tenant green");
    assert_says("tenant list", 0, "There is no tenant", "");
    agent_on_bus_close(&at);
}

static void test_filters(void)
{
    AgentOnBus at;

    open_shared(&at);
    assert_says("tenant set red", 0, "", "");
    assert_says("vgpu create half --tenant red --uuid " UUID, 0, UUID, "");
    assert_says("vgpu create half --uuid " UUID2, 0, UUID2, "");
    assert_prints("vgpu list -o name", UUID "\n" UUID2 "\n");
    assert_prints("vgpu list -o name --tenant red", UUID "\n");
    assert_prints("vgpu list -o name --tenant ''", UUID2 "\n");
    assert_prints("vgpu list -o name --type half --gpu 02:00.0 --state closed",
                  UUID "\n" UUID2 "\n");
    assert_prints("vgpu list -o name --type full", "");
    assert_prints("vgpu list -o name --gpu '0000:0[3-9]*'", "");
    assert_prints("vgpu list -o name --state running --state ready", UUID "\n" UUID2 "\n");
    assert_prints("vgpu list -o json --state lost", "[]\n");
    assert_says("vgpu list --state gone", 2, "",
                "--state cannot be \"gone\": it must be one of used, free, running");
    assert_prints("gpu list -o name --state shared", GPU "\n");
    assert_prints("gpu list -o name --state passthrough", "0000:03:00.0\n");
    assert_prints("gpu list -o name --state draining", "");
    assert_says("gpu drain 02:00.0", 0, "", "");
    assert_prints("gpu list -o name --state draining", GPU "\n");
    assert_prints("tenant list -o name --tenant red", "red\n");
    assert_prints("type list -o name --type half", "amdgpu-vgpu-half\n");
    assert_says("slice list --state used", 0, "no slice", "");
    agent_on_bus_close(&at);
}

static void test_formats(void)
{
    AgentOnBus at;

    open_shared(&at);
    assert_says("vgpu create half --name web --uuid " UUID, 0, "VGPU ", "");
    assert_says("vgpu list -o wide", 0, "COMPUTE  WEIGHT  CAP", "");
    assert_says("vgpu list -o yaml", 0, "- Autostart: false\n  Cap: 100\n", "");
    assert_says("vgpu show web -o yaml", 0, "Weight: 400\n", "");
    assert_says("gpu show 02:00.0 -o yaml", 0, "MdevTypes:\n  - \"amdgpu-vgpu-full\"\n", "");
    assert_says("topo -o yaml", 0, "distances:\n  -\n    - \"X\"\n", "");
    assert_prints("vgpu list --no-headers", UUID
                  "  " GPU "  amdgpu-vgpu-half  closed  ready  8.0 GiB  burstable  -  -  web\n");
    assert_says("slice list --no-headers", 0, UUID "  web  vm  ", "");
    assert_prints("cdi list -o yaml", "[]\n");
    assert_says("operation list", 0, "Nothing is being done.", "");
    assert_says("--root /nowhere vgpu list", 2, "",
                "cannot use the root directory /nowhere: No such file or directory");
    assert_says("operation cancel x", 2, "", "\"x\" is not the number of an operation");
    assert_says("operation cancel 99", 3, "", "99");
    agent_on_bus_close(&at);
}

static void test_show(void)
{
    AgentOnBus at;

    open_shared(&at);
    assert_says("tenant set red --vram 10G --user alice --user bob", 0, "", "");
    assert_says("tenant show red", 0, "Users:             alice bob\n", "");
    assert_says("tenant show red", 0, "VRAM:              0 of 10.0 GiB\n", "");
    assert_says("tenant show green", 3, "", "there is no tenant green; \"vgpuctl tenant list\"");
    assert_says("type show half", 0, "VRAM:              8.0 GiB\n", "");
    assert_says("type show half", 0, "Class:             burstable\n", "");
    assert_says("type show amdgpu-vgpu-full", 0, "Type:              amdgpu-vgpu-full\n", "");
    assert_says("type show third", 3, "", "there is no type third");
    agent_on_bus_close(&at);
}

/* vgpuctl's output on a terminal, errors included. */
static char *on_terminal(const char *args)
{
    g_autofree char *command = g_strconcat(VGPUCTL " ", args, NULL);
    const char *const argv[] = {"script", "-qec", command, "/dev/null", NULL};
    Said said = run_program(argv);
    char *out = g_steal_pointer(&said.out);

    g_test_message("%s", out);
    said_clear(&said);
    return out;
}

#define ESCAPE "\033["

static void test_colour(void)
{
    AgentOnBus at;
    g_autofree char *coloured = NULL;
    g_autofree char *plain = NULL;
    Said said;

    open_shared(&at);
    g_setenv("TERM", "xterm", TRUE);
    coloured = on_terminal("gpu list");
    g_assert_nonnull(strstr(coloured, ESCAPE "32mshared"));
    said = vgpuctl("gpu list");
    g_assert_null(strstr(said.out, ESCAPE));
    said_clear(&said);
    g_setenv("NO_COLOR", "1", TRUE);
    plain = on_terminal("gpu list");
    g_assert_null(strstr(plain, ESCAPE));
    g_assert_nonnull(strstr(plain, "shared"));
    g_unsetenv("NO_COLOR");
    agent_on_bus_close(&at);
}

/* A VM has the vGPU open all the time. */
static void open_with_vm(AgentOnBus *at)
{
    open_shared(at);
    recorded_host_add_vgpu(at->root, "pci0000:00/0000:00:01.0/" GPU, UUID, "amdgpu-vgpu-half",
                           "state=device=running engine=ready|vram_bytes=8589934592|"
                           "window_bytes=268435456|weight=100|cap=50|priority=1");
    agent_refresh(at->agent);
}

/* Who waits is killed, and vgpud ends while another waits. */
static void test_drain_wait_ends(void)
{
    const char *const argv[] = {AGENT_OUT "/vgpuctl", "gpu", "drain", "--wait", GPU, NULL};
    g_autoptr(GString) log = g_string_new(NULL);
    AgentOnBus at;

    open_with_vm(&at);
    take_log(log);
    for (guint i = 0; i < 2; i++) {
        g_autoptr(GSubprocess) waits =
            g_subprocess_newv(argv, G_SUBPROCESS_FLAGS_STDERR_SILENCE, NULL);

        iterate_until_said(log, "waits until it is no longer in use: a VM has vGPU " UUID);
        g_string_truncate(log, 0);
        if (i == 0)
            g_subprocess_force_exit(waits);
        else
            agent_on_bus_restart(&at);
        g_assert_true(g_subprocess_wait(waits, NULL, NULL));
    }
    assert_says("gpu resume " GPU, 0, "", "");
    end_log();
    agent_on_bus_close(&at);
}

static void test_drain_wait(void)
{
    AgentOnBus at;
    g_autofree char *waited = NULL;

    open_shared(&at);
    assert_says("gpu drain --timeout 3 " GPU, 2, "", "--timeout needs --wait");
    assert_says("gpu drain --wait " GPU, 0, "", "");
    assert_says("gpu resume " GPU, 0, "", "");
    agent_on_bus_close(&at);
    open_with_vm(&at);
    g_setenv("TERM", "xterm", TRUE);
    waited = on_terminal("gpu drain --wait --timeout 4 02:00.0");
    g_assert_nonnull(strstr(waited, "waiting for the users of GPU 02:00.0: 2 s, at most "));
    g_assert_nonnull(
        strstr(waited, "after 4 seconds still in use: a VM has vGPU " UUID " (running); "));
    assert_says("gpu drain --wait --timeout 1 02:00.0", 6, "", "\"vgpuctl gpu resume " GPU "\"");
    assert_says("-o json gpu show " GPU, 0, "\"Draining\" : true", "");
    agent_on_bus_close(&at);
}

static void line_came(GObject *stream, GAsyncResult *answer, void *data)
{
    (void)stream;
    *(GAsyncResult **)data = g_object_ref(answer);
}

/* Reads lines of a running command until one has these words. */
static void assert_line(GDataInputStream *stream, const char *words)
{
    gboolean found = FALSE;

    while (!found) {
        GAsyncResult *answer = NULL;
        g_autofree char *line = NULL;

        g_data_input_stream_read_line_async(stream, G_PRIORITY_DEFAULT, NULL, line_came, &answer);
        while (!answer)
            g_main_context_iteration(NULL, TRUE);
        line = g_data_input_stream_read_line_finish(stream, answer, NULL, NULL);
        g_object_unref(answer);
        g_assert_nonnull(line);
        found = strstr(line, words) != NULL;
    }
}

/* A restart of vgpud ends no --watch, and each document of JSON is a line. */
static void test_watch_restart(void)
{
    AgentOnBus at;
    g_autoptr(GSubprocess) process = NULL;
    g_autoptr(GDataInputStream) out = NULL, err = NULL;

    open_shared(&at);
    process = g_subprocess_new(G_SUBPROCESS_FLAGS_STDOUT_PIPE | G_SUBPROCESS_FLAGS_STDERR_PIPE,
                               NULL, VGPUCTL, "vgpu", "list", "--watch", "-o", "json", NULL);
    g_assert_nonnull(process);
    out = g_data_input_stream_new(g_subprocess_get_stdout_pipe(process));
    err = g_data_input_stream_new(g_subprocess_get_stderr_pipe(process));
    assert_line(out, "[]");
    agent_on_bus_stop(&at);
    assert_line(err, "waiting for it");
    agent_on_bus_start(&at);
    assert_says("vgpu create half --uuid " UUID, 0, UUID, "");
    assert_line(out, "\"Uuid\":\"" UUID "\"");
    g_subprocess_force_exit(process);
    g_subprocess_wait(process, NULL, NULL);
    agent_on_bus_close(&at);
}

static void test_watch(void)
{
    AgentOnBus at;
    g_autoptr(GSubprocess) process = NULL;
    g_autoptr(GDataInputStream) stream = NULL;

    open_shared(&at);
    process = g_subprocess_new(G_SUBPROCESS_FLAGS_STDOUT_PIPE, NULL, VGPUCTL, "vgpu", "list",
                               "--watch", NULL);
    g_assert_nonnull(process);
    stream = g_data_input_stream_new(g_subprocess_get_stdout_pipe(process));
    assert_line(stream, "This host has no vGPU.");
    assert_says("vgpu create half --uuid " UUID, 0, UUID, "");
    assert_line(stream, UUID);
    assert_says("vgpu remove " UUID, 0, "", "");
    assert_line(stream, "This host has no vGPU.");
    g_subprocess_force_exit(process);
    g_subprocess_wait(process, NULL, NULL);
    assert_says("reload --watch", 2, "", "Unknown option --watch");
    agent_on_bus_close(&at);
}

/*
 * Calls of our interfaces, and those for which polkit must not ask people. Runs in a thread of the
 * connection.
 */
typedef struct {
    gint calls;
    gint silent;
} Calls;

static GDBusMessage *count_calls(GDBusConnection *bus, GDBusMessage *message, gboolean incoming,
                                 void *data)
{
    Calls *calls = data;
    const char *interface = g_dbus_message_get_interface(message);

    (void)bus;
    if (!incoming || g_dbus_message_get_message_type(message) != G_DBUS_MESSAGE_TYPE_METHOD_CALL ||
        !g_str_has_prefix(interface, VGPU_BUS_NAME))
        return message;
    g_atomic_int_inc(&calls->calls);
    if (!(g_dbus_message_get_flags(message) &
          G_DBUS_MESSAGE_FLAGS_ALLOW_INTERACTIVE_AUTHORIZATION)) {
        g_printerr("# no prompt for %s\n", g_dbus_message_get_member(message));
        g_atomic_int_inc(&calls->silent);
    }
    return message;
}

static void test_prompt(void)
{
    static const char *const lines[] = {
        "vgpu list",
        "vgpu list -o wide",
        "vgpu create half --define --name web",
        "vgpu set web --weight 3",
        "vgpu start web",
        "vgpu stop web",
        "vgpu show web",
        "vgpu remove web",
        "slice create half --door native --name s",
        "slice list",
        "slice set s --weight 4",
        "slice remove s",
        "cdi list",
        "operation list",
        "operation cancel 9",
        "config diff",
        "cdi generate",
        "type list",
        "tenant set red",
        "tenant list",
        "tenant remove red",
        "schedule list",
        "topo",
        "report",
        "reload",
        "gpu users 02:00.0",
        "gpu drain 02:00.0",
        "gpu resume 02:00.0",
        "gpu clear 02:00.0",
        "gpu mode --dry-run 02:00.0 host",
        "top --once",
    };
    AgentOnBus at;
    Calls calls = {0};
    guint filter;

    open_shared(&at);
    filter = g_dbus_connection_add_filter(at.bus, count_calls, &calls, NULL);
    for (guint i = 0; i < G_N_ELEMENTS(lines); i++) {
        Said said = vgpuctl(lines[i]);

        said_clear(&said);
    }
    g_dbus_connection_remove_filter(at.bus, filter);
    g_assert_cmpint(g_atomic_int_get(&calls.calls), >=, (int)G_N_ELEMENTS(lines));
    g_assert_cmpint(g_atomic_int_get(&calls.silent), ==, 0);
    agent_on_bus_close(&at);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/ctl/help", test_help);
    g_test_add_func("/ctl/names", test_names);
    g_test_add_func("/ctl/start-stop", test_start_stop);
    g_test_add_func("/ctl/several", test_several);
    g_test_add_func("/ctl/filters", test_filters);
    g_test_add_func("/ctl/formats", test_formats);
    g_test_add_func("/ctl/show", test_show);
    g_test_add_func("/ctl/colour", test_colour);
    g_test_add_func("/ctl/drain-wait", test_drain_wait);
    g_test_add_func("/ctl/drain-wait-ends", test_drain_wait_ends);
    g_test_add_func("/ctl/watch", test_watch);
    g_test_add_func("/ctl/watch-restart", test_watch_restart);
    g_test_add_func("/ctl/prompt", test_prompt);
    return g_test_run();
}
