/* SPDX-License-Identifier: MIT */
/* Which container has which slice: by the hook as a program, and without any report. */
#include <string.h>
#include <unistd.h>

#include "lib/bus.h"
#include "tests/unit/file_tree.h"
#include "tests/unit/host-agent/fake_kernel.h"
#include "tests/unit/host-agent/slices_kit.h"

static void test_hook(void)
{
    AgentOnBus at;

    open_shared(&at);
    process(&at, 77, 1000);
    process(&at, 78, 1001);
    assert_hook(&at, "claim", WEB, 1, "there is no slice " UUID);
    assert_says("slice create half --door native --uuid " UUID, 0, UUID, "");
    assert_hook(&at, "claim", "{}", 1, "not a container's state");
    assert_hook(&at, "claim", "{", 1, "cannot give the container slice " UUID);
    assert_hook(&at, "claim", "{\"id\":\"gone\",\"pid\":99}", 1, "has no process 99");
    assert_hook(&at, "claim", WEB, 0, "");
    assert_says("slice list", 0, "web", "");
    assert_says("gpu users 02:00.0", 0, "container web has slice " UUID, "");
    assert_hook(&at, "claim", WEB, 0, "");
    assert_hook(&at, "claim", DB, 1, "container web has it");
    assert_says("slice remove " UUID, 6, "", "container web has slice");
    agent_on_bus_restart(&at);
    assert_says("slice remove " UUID, 6, "", "container web has slice");
    assert_hook(&at, "release", DB, 0, "");
    assert_says("slice show " UUID, 0, "Container:              web", "");
    assert_hook(&at, "release", WEB, 0, "");
    assert_says("slice show " UUID, 0, "Container:              -", "");
    assert_hook(&at, "claim", DB, 0, "");
    assert_says("slice remove " UUID " --force", 0, "", "");
    assert_hook(&at, "release", DB, 0, "");
    agent_on_bus_close(&at);
}

/* What a container's annotations, or a runtime that is none, may put there. */
static void test_states(void)
{
    static const char *const bad[] = {
        "[]",
        "null",
        "7",
        "{\"id\":\"\",\"pid\":77}",
        "{\"id\":7,\"pid\":77}",
        "{\"id\":[\"web\"],\"pid\":77}",
        "{\"id\":null,\"pid\":77}",
        "{\"id\":\"web\",\"pid\":-1}",
        "{\"id\":\"web\",\"pid\":4294967373}",
    };
    AgentOnBus at;
    g_autofree char *long_state = g_strnfill(2 * 1024 * 1024, ' ');

    open_shared(&at);
    process(&at, 77, 1000);
    assert_says("slice create half --door native --uuid " UUID, 0, UUID, "");
    for (guint i = 0; i < G_N_ELEMENTS(bad); i++) {
        assert_hook(&at, "claim", bad[i], 1, "not a container's state");
        assert_hook(&at, "release", bad[i], 0, "not a container's state");
    }
    memcpy(long_state, WEB, strlen(WEB) - 1);
    long_state[2 * 1024 * 1024 - 1] = '}';
    assert_hook(&at, "claim", long_state, 1, "standard input has more than 1048576 bytes");
    assert_hook(&at, "claim", "", 1, "cannot give the container slice " UUID);
    assert_hook(&at, "claim", "{\"id\":\"web\",\"pid\":{}}", 1, "has no process 0");
    assert_hook(&at, "claim", "{\"id\":\"web\",\"pid\":\"77\"}", 1, "has no process 0");
    assert_says("slice show " UUID, 0, "Container:              -", "");
    assert_hook(&at, "claim", WEB, 0, "");
    agent_on_bus_close(&at);
}

static void test_usage(void)
{
    Said said = run_beside(CONTAINER_HOOK " --version");

    g_assert_cmpint(said.status, ==, 0);
    g_assert_cmpstr(said.out, ==, "vgpu-container-hook " VGPU_VERSION "\n");
    said_clear(&said);
    for (guint i = 0; i < 3; i++) {
        static const char *const lines[] = {CONTAINER_HOOK, CONTAINER_HOOK " claim",
                                            CONTAINER_HOOK " steal " UUID};

        said = run_beside(lines[i]);
        g_assert_cmpint(said.status, ==, 2);
        g_assert_nonnull(strstr(said.err, "claim|release SLICE"));
        said_clear(&said);
    }
}

/* Whoever reads it knows what to do. */
static void test_old_release(void)
{
    static const char *const lines[] = {CONTAINER_HOOK " mounts", CONTAINER_HOOK " cuda /x",
                                        CONTAINER_HOOK " cuda-remote /x"};

    for (guint i = 0; i < G_N_ELEMENTS(lines); i++) {
        Said said = run_beside(lines[i]);

        g_assert_cmpint(said.status, ==, 1);
        g_assert_nonnull(strstr(said.err, "of an older release: restart vgpud"));
        said_clear(&said);
    }
}

static void hook_ended(GObject *process, GAsyncResult *result, void *data)
{
    g_subprocess_wait_finish(G_SUBPROCESS(process), result, NULL);
    *(gboolean *)data = TRUE;
}

static gboolean is_true(gconstpointer data)
{
    return *(const gboolean *)data;
}

/* A container is not refused because the machine, or vgpud, was busy for some seconds. */
static void test_busy_agent(void)
{
    AgentOnBus at;
    g_autoptr(GSubprocess) hook = NULL;
    GOutputStream *input;
    gboolean ended = FALSE;

    open_shared(&at);
    process(&at, 77, 1000);
    assert_says("slice create half --door native --uuid " UUID, 0, UUID, "");
    hook =
        g_subprocess_new(G_SUBPROCESS_FLAGS_STDIN_PIPE, NULL, CONTAINER_HOOK, "claim", UUID, NULL);
    input = g_subprocess_get_stdin_pipe(hook);
    g_assert_true(g_output_stream_write_all(input, WEB, strlen(WEB), NULL, NULL, NULL));
    g_assert_true(g_output_stream_close(input, NULL, NULL));
    /* Nobody runs vgpud's main loop for longer than others wait. */
    g_usleep(AGENT_PATIENCE_MS * 1250);
    g_subprocess_wait_async(hook, NULL, hook_ended, &ended);
    iterate_until(is_true, &ended);
    g_assert_cmpint(g_subprocess_get_exit_status(hook), ==, 0);
    assert_says("slice list", 0, "web", "");
    agent_on_bus_close(&at);
}

/*
 * There is no report, as when a machine's runtime is killed; or the number belongs to another
 * process by now.
 */
static void test_silent_end(void)
{
    AgentOnBus at;

    open_shared(&at);
    process(&at, 77, 1000);
    assert_says("slice create half --door native --ephemeral --uuid " UUID, 0, UUID, "");
    assert_hook(&at, "claim", WEB, 0, "");
    agent_look_at_containers(at.agent);
    assert_says("slice list", 0, "web", "");
    process(&at, 77, 2000);
    assert_says("slice show " UUID, 0, "Container:              -", "");
    agent_look_at_containers(at.agent);
    assert_says("slice list", 0, "no slice", "");
    g_assert_false(exists(&at, CDI_PATH));
    assert_says("slice create half --door native --uuid " UUID, 0, UUID, "");
    assert_hook(&at, "claim", WEB, 0, "");
    process_ends(&at, 77);
    agent_look_at_containers(at.agent);
    assert_says("slice remove " UUID, 0, "", "");
    agent_on_bus_close(&at);
}

static gboolean has_slices(void)
{
    Said said = vgpuctl("slice list");
    gboolean none = strstr(said.out, "no slice") != NULL;

    said_clear(&said);
    return !none;
}

static void test_ephemeral(void)
{
    AgentOnBus at;

    open_shared(&at);
    process(&at, 77, 1000);
    assert_says("slice create half --door native --ephemeral --uuid " UUID, 0, UUID, "");
    assert_hook(&at, "claim", WEB, 0, "");
    assert_hook(&at, "release", WEB, 0, "");
    assert_says("slice list", 0, "no slice", "");
    assert_says("slice create half --door vfio --ephemeral --uuid " UUID, 0, UUID, "");
    g_assert_false(exists(&at, "/etc/mdevctl.d/" ADDRESS "/" UUID));
    assert_hook(&at, "claim", WEB, 0, "");
    assert_hook(&at, "release", WEB, 0, "");
    for (guint i = 0; has_slices(); i++)
        g_assert_cmpuint(i, <, 1000);
    g_assert_false(exists(&at, "/sys/bus/mdev/devices/" UUID));
    agent_on_bus_close(&at);
}

/* mdevctl was called, and has ended some time ago. */
static gboolean is_tried(gconstpointer data)
{
    g_autofree char *left = text_of(data, "/mdevctl-fails");

    g_usleep(10000);
    return strstr(left, "stop 0") != NULL;
}

static gboolean is_gone(gconstpointer data)
{
    Said said = vgpuctl("slice show " UUID);
    gboolean gone = said.status == 3;

    (void)data;
    said_clear(&said);
    return gone;
}

/* Each look tries again, as soon as vgpud has noticed mdevctl's end. */
static gboolean is_removed(gconstpointer data)
{
    const AgentOnBus *at = data;
    Said said = vgpuctl("slice show " UUID);
    gboolean removed = said.status == 3;

    said_clear(&said);
    if (!removed)
        agent_refresh(at->agent);
    return removed;
}

/* A slice that cannot be given back now is given back later, without anybody's help. */
static void test_not_given_back(void)
{
    AgentOnBus at;

    open_shared(&at);
    process(&at, 77, 1000);
    assert_says("slice create half --door vfio --ephemeral --uuid " UUID, 0, UUID, "");
    assert_hook(&at, "claim", WEB, 0, "");
    file_tree_write(at.root, "/mdevctl-fails", "stop 1");
    /* vgpud warns of that. */
    g_log_set_always_fatal(G_LOG_LEVEL_ERROR);
    assert_hook(&at, "release", WEB, 0, "");
    iterate_until(is_tried, &at);
    iterate_until(is_removed, &at);
    g_log_set_always_fatal(G_LOG_LEVEL_ERROR | G_LOG_LEVEL_CRITICAL | G_LOG_LEVEL_WARNING);
    assert_says("slice list", 0, "no slice", "");
    agent_on_bus_close(&at);
}

/* A restart in between forgets nothing. */
static void test_not_given_back_before(void)
{
    AgentOnBus at;

    open_shared(&at);
    process(&at, 77, 1000);
    assert_says("slice create half --door vfio --ephemeral --uuid " UUID, 0, UUID, "");
    assert_says("slice create half --door native --ephemeral --uuid " UUID2, 0, UUID2, "");
    assert_hook(&at, "claim", WEB, 0, "");
    file_tree_write(at.root, "/mdevctl-fails", "stop 1");
    /* vgpud warns of that. */
    g_log_set_always_fatal(G_LOG_LEVEL_ERROR);
    assert_hook(&at, "release", WEB, 0, "");
    iterate_until(is_tried, &at);
    iterate_until_told("operation list", "Nothing is being done.");
    agent_on_bus_restart(&at);
    iterate_until(is_gone, &at);
    g_log_set_always_fatal(G_LOG_LEVEL_ERROR | G_LOG_LEVEL_CRITICAL | G_LOG_LEVEL_WARNING);
    /* Nobody has used this one yet. */
    assert_says("slice list", 0, UUID2, "");
    agent_on_bus_close(&at);
}

static void assert_taken(const AgentOnBus *at, guint pid, guint32 user, gboolean taken)
{
    g_autoptr(Claims) claims = claims_new(agent_host(at->agent), agent_slices(at->agent), NULL);
    Slice slice = {
        .uuid = (char *)UUID, .gpu = (char *)ADDRESS, .transport = SLICE_TRANSPORT_NATIVE};
    g_autoptr(GError) error = NULL;

    g_assert_cmpint(claims_take(claims, &slice, "web", pid, &user, &error), ==, taken);
    if (!taken)
        g_assert_nonnull(strstr(error->message, "does not belong to user"));
    claims_forget(claims, UUID);
}

/*
 * A member of a tenant cannot claim a slice for init, which never ends, or for another user's
 * process.
 */
static void test_owner(void)
{
    AgentOnBus at;
    g_autofree char *own = g_strdup_printf("/proc/%d/ns/user", getpid());

    open_shared(&at);
    process(&at, 1, 10);
    process(&at, 77, 1000);
    file_tree_write(at.root, "/proc/1/status", "Name:\tsystemd\nUid:\t0\t0\t0\t0\n");
    file_tree_write(at.root, "/proc/77/status", "Name:\tsh\nUid:\t1000\t0\t0\t0\n");
    assert_taken(&at, 77, 1000, TRUE);
    assert_taken(&at, 77, 1001, FALSE);
    assert_taken(&at, 1, 1000, FALSE);
    /* The namespace that this test is in was made by root. */
    file_tree_link(at.root, "/proc/77/ns/user", own);
    assert_taken(&at, 77, 0, TRUE);
    assert_taken(&at, 77, 1001, FALSE);
    agent_on_bus_close(&at);
}

/* A colleague cannot give back the slice of a container that runs, nor claim it in its name. */
static void test_release_of_another(void)
{
    AgentOnBus at;
    guint32 user = 1000, colleague = 1001;
    Slice slice = {
        .uuid = (char *)UUID, .gpu = (char *)ADDRESS, .transport = SLICE_TRANSPORT_NATIVE};
    g_autoptr(Claims) claims = NULL;
    g_autoptr(GError) error = NULL;

    open_shared(&at);
    process(&at, 77, 1000);
    file_tree_write(at.root, "/proc/77/status", "Name:\tsh\nUid:\t1000\t0\t0\t0\n");
    claims = claims_new(agent_host(at.agent), agent_slices(at.agent), NULL);
    g_assert_true(claims_take(claims, &slice, "web", 77, &user, NULL));
    g_assert_true(claims_may_release(claims, UUID, "web", 1000, NULL));
    g_assert_false(claims_may_release(claims, UUID, "web", 1001, &error));
    g_assert_error(error, AGENT_ERROR, AGENT_ERROR_NOT_AUTHORIZED);
    g_assert_true(claims_may_release(claims, UUID, "db", 1001, NULL));
    g_clear_error(&error);
    process(&at, 78, 1001);
    file_tree_write(at.root, "/proc/78/status", "Name:\tsleep\nUid:\t1001\t0\t0\t0\n");
    g_assert_false(claims_take(claims, &slice, "web", 78, &colleague, &error));
    g_assert_error(error, AGENT_ERROR, AGENT_ERROR_NOT_AUTHORIZED);
    root_remove(at.root, "/proc/77/stat");
    g_assert_true(claims_may_release(claims, UUID, "web", 1001, NULL));
    claims_forget(claims, UUID);
    g_clear_pointer(&claims, claims_free);
    agent_on_bus_close(&at);
}

/* Names that go to terminals and logs must have no control characters. */
static void test_bad_name(void)
{
    AgentOnBus at;

    open_shared(&at);
    process(&at, 77, 1000);
    assert_says("slice create half --door native --uuid " UUID, 0, UUID, "");
    assert_hook(&at, "claim", "{\"id\":\"web\\u001b[2J\",\"pid\":77}", 1,
                "the container's id must have");
    assert_hook(&at, "claim", "{\"id\":\"web\\nb\",\"pid\":77}", 1, "the container's id must have");
    agent_on_bus_close(&at);
}

/*
 * A GPU that is drained, or about to change its mode, accepts nobody, and is not taken from its
 * users.
 */
static void test_modes(void)
{
    AgentOnBus at;

    open_shared(&at);
    fake_kernel_use(at.root);
    process(&at, 77, 1000);
    assert_says("slice create half --door native --uuid " UUID, 0, UUID, "");
    assert_says("gpu drain 02:00.0", 0, "", "");
    assert_hook(&at, "claim", WEB, 1, "the GPU is being drained");
    assert_says("gpu resume 02:00.0", 0, "", "");
    assert_hook(&at, "claim", WEB, 0, "");
    assert_says("gpu mode 02:00.0 host", 6, "", "container web has slice " UUID);
    assert_hook(&at, "release", WEB, 0, "");
    assert_says("gpu mode 02:00.0 host", 0, "", "");
    assert_says("slice list", 0, UUID, "");
    assert_says("cdi list", 0, "no device", "");
    assert_hook(&at, "claim", WEB, 1, "the GPU is not shared now");
    assert_says("gpu mode 02:00.0 shared", 0, "", "");
    assert_says("cdi list", 0, UUID, "");
    agent_on_bus_close(&at);
}

/* Three calls, of which each waits for two seconds at most, and D-Bus by itself for 25. */
static void assert_without_agent(const AgentOnBus *at, const char *why)
{
    gint64 begin = g_get_monotonic_time();

    assert_hook(at, "claim", WEB, 1, why);
    assert_hook(at, "release", WEB, 0, why);
    assert_hook(at, "release", WEB, 0, "vgpud will do it later");
    g_assert_cmpint(g_get_monotonic_time() - begin, <, 20 * G_USEC_PER_SEC);
}

/* Without vgpud a container does not start, and ends anyway. */
static void test_no_vgpud(void)
{
    AgentOnBus at;

    open_shared(&at);
    g_setenv("DBUS_SYSTEM_BUS_ADDRESS", "unix:path=/nowhere", TRUE);
    assert_without_agent(&at, "vgpud can't be reached (Could not connect");
    g_setenv("DBUS_SYSTEM_BUS_ADDRESS", g_test_dbus_get_bus_address(at.daemon), TRUE);
    g_bus_unown_name(at.owner);
    assert_without_agent(&at, "org.mdev_vgpu.Host1");
    at.owner = 0;
    agent_on_bus_restart(&at);
    agent_on_bus_close(&at);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/slice-claims/release-of-another", test_release_of_another);
    g_test_add_func("/slice-claims/hook", test_hook);
    g_test_add_func("/slice-claims/states", test_states);
    g_test_add_func("/slice-claims/usage", test_usage);
    g_test_add_func("/slice-claims/old-release", test_old_release);
    g_test_add_func("/slice-claims/busy-agent", test_busy_agent);
    g_test_add_func("/slice-claims/silent-end", test_silent_end);
    g_test_add_func("/slice-claims/ephemeral", test_ephemeral);
    g_test_add_func("/slice-claims/not-given-back", test_not_given_back);
    g_test_add_func("/slice-claims/not-given-back-before", test_not_given_back_before);
    g_test_add_func("/slice-claims/owner", test_owner);
    g_test_add_func("/slice-claims/bad-name", test_bad_name);
    g_test_add_func("/slice-claims/modes", test_modes);
    g_test_add_func("/slice-claims/no-vgpud", test_no_vgpud);
    return g_test_run();
}
