/* SPDX-License-Identifier: MIT */
/* Slices of programs: the processes of a claim, who may claim, and its end. */
#include <errno.h>
#include <glib/gstdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host-agent/daemon/containers/claim_process.h"
#include "host-agent/daemon/containers/claims.h"
#include "host-agent/daemon/host/audit.h"
#include "host-agent/daemon/host/accounts.h"
#include "lib/bus.h"
#include "lib/processes.h"
#include "tests/unit/file_tree.h"
#include "tests/unit/host-agent/fake_arbiter.h"
#include "tests/unit/host-agent/fake_polkit.h"
#include "tests/unit/host-agent/slices_kit.h"

#define SCOPE  "/user.slice/user-1000.slice/user@1000.service/app.slice/vgpu-run-" UUID ".scope"
#define EVENTS "/sys/fs/cgroup" SCOPE "/cgroup.events"

static void put_process(HostRoot *root, const char *state, const char *cgroup)
{
    g_autofree char *stat = g_strdup_printf(
        "77 (a) b) %s 1 1 1 0 -1 4194560 1 0 0 0 1 1 0 0 20 0 1 0 1000 1 1\n", state);

    file_tree_write(root, "/proc/77/stat", stat);
    file_tree_write(root, "/proc/77/cgroup", cgroup);
}

static void test_process(void)
{
    HostRoot *root = file_tree_new();

    g_assert_cmpuint(claim_process_started(root, 77), ==, 0);
    put_process(root, "S", "0::/\n");
    g_assert_cmpuint(claim_process_started(root, 77), ==, 1000);
    put_process(root, "Z", "0::/\n");
    g_assert_cmpuint(claim_process_started(root, 77), ==, 0);
    file_tree_free(root);
}

/* Only the scope that was made for this slice: another one may be there for as long as its user is.
 */
static void test_scope(void)
{
    static const char *const others[] = {
        "0::/user.slice/user-1000.slice/session-3.scope\n",
        "0::/system.slice/vgpu-run-" UUID2 ".scope\n",
        "0::/system.slice/vgpu-run-" UUID ".scope/below\n",
        "1:name=systemd:" SCOPE "\n",
        "",
    };
    HostRoot *root = file_tree_new();
    g_autofree char *own = NULL;

    for (guint i = 0; i < G_N_ELEMENTS(others); i++) {
        g_autofree char *scope = NULL;

        put_process(root, "S", others[i]);
        scope = claim_process_scope(root, 77, UUID);
        g_assert_cmpstr(scope, ==, "");
    }
    put_process(root, "S", "1:name=systemd:/\n0::" SCOPE "\n");
    own = claim_process_scope(root, 77, UUID);
    g_assert_cmpstr(own, ==, SCOPE);
    file_tree_free(root);
}

static void test_alive(void)
{
    HostRoot *root = file_tree_new();
    Claim claim = {
        .uuid = (char *)UUID, .pid = 77, .started = 1000, .user = 0, .cgroup = (char *)""};

    put_process(root, "S", "0::/\n");
    g_assert_true(claim_process_is_alive(root, &claim));
    put_process(root, "Z", "0::/\n");
    g_assert_false(claim_process_is_alive(root, &claim));
    claim.cgroup = (char *)SCOPE;
    g_assert_false(claim_process_is_alive(root, &claim));
    file_tree_write(root, EVENTS, "populated 1\nfrozen 0\n");
    g_assert_true(claim_process_is_alive(root, &claim));
    file_tree_write(root, EVENTS, "populated 0\nfrozen 0\n");
    g_assert_false(claim_process_is_alive(root, &claim));
    file_tree_free(root);
}

/* Nobody is taken for ended because vgpud can't look now. */
static void test_not_known(void)
{
    HostRoot *root = file_tree_new();
    Claim claim = {
        .uuid = (char *)UUID, .pid = 77, .started = 1000, .user = 0, .cgroup = (char *)""};
    struct rlimit before;

    put_process(root, "S", "0::/\n");
    g_assert_cmpint(getrlimit(RLIMIT_NOFILE, &before), ==, 0);
    g_assert_cmpint(
        setrlimit(RLIMIT_NOFILE, &(struct rlimit){.rlim_cur = 0, .rlim_max = before.rlim_max}), ==,
        0);
    g_assert_true(claim_process_is_alive(root, &claim));
    claim.cgroup = (char *)SCOPE;
    g_assert_true(claim_process_is_alive(root, &claim));
    g_assert_true(vm_is_running(root, "red"));
    g_assert_cmpint(setrlimit(RLIMIT_NOFILE, &before), ==, 0);
    g_assert_true(claim_process_is_alive(root, &claim));
    g_assert_false(vm_is_running(root, "red"));
    put_process(root, "Z", "0::/\n");
    g_assert_false(claim_process_is_alive(root, &claim));
    /* A directory in place of the file can't be read either. */
    file_tree_write(root, EVENTS "/file", "");
    g_assert_true(claim_process_is_alive(root, &claim));
    file_tree_free(root);
}

static gboolean is_over(gconstpointer data)
{
    return *(const gboolean *)data;
}

static void note(void *data)
{
    *(gboolean *)data = TRUE;
}

/* The kernel reports a process's end: it is not polled. */
static void test_watch(void)
{
    const char *argv[] = {"cat", NULL};
    g_autoptr(HostRoot) root = host_root_new(NULL, NULL);
    g_autoptr(GSubprocess) process = g_subprocess_newv(argv, G_SUBPROCESS_FLAGS_STDIN_PIPE, NULL);
    Claim claim = {.uuid = (char *)UUID, .user = 0, .cgroup = (char *)""};
    gboolean over = FALSE;
    ClaimWatch *watch;

    claim.pid = (guint)g_ascii_strtoull(g_subprocess_get_identifier(process), NULL, 10);
    claim.started = claim_process_started(root, claim.pid);
    watch = claim_watch_new(root, &claim, note, &over);
    g_assert_true(claim_watch_is_complete(watch));
    g_assert_true(claim_process_is_alive(root, &claim));
    while (g_main_context_iteration(NULL, FALSE))
        ;
    g_assert_false(over);
    g_output_stream_close(g_subprocess_get_stdin_pipe(process), NULL, NULL);
    iterate_until(is_over, &over);
    g_assert_false(claim_process_is_alive(root, &claim));
    claim_watch_free(watch);
}

static void open_with_processes(AgentOnBus *at)
{
    HostRoot *root = shared_tree();

    file_tree_link(root, "/proc", "/proc");
    agent_on_bus_open_tree(at, root);
}

/* The caller is the program: gdbus in place of vgpuctl, which waits for an arbiter. */
static Said call_run_of(const char *request, const char *program)
{
    const char *const argv[] = {"gdbus",
                                "call",
                                "--system",
                                "--dest=" VGPU_BUS_NAME,
                                "--object-path=" VGPU_MANAGER_PATH,
                                "--method=org.mdev_vgpu.Host1.Manager.RunSlice",
                                request,
                                program,
                                NULL};

    return run_program(argv);
}

static Said call_run(const char *request)
{
    return call_run_of(request, "/usr/bin/train");
}

static const char nobody[] = "{\"slices\":[]}\n";

static void test_call(void)
{
    AgentOnBus at;
    FakeArbiter arbiter;
    Said said;

    open_with_processes(&at);
    fake_arbiter_open_with(&arbiter, at.root, nobody);
    said = call_run("{'Vram': <uint64 1073741824>, 'Uuids': <['" UUID "']>}");
    g_test_message("%s%s", said.out, said.err);
    g_assert_cmpint(said.status, ==, 0);
    g_assert_nonnull(strstr(said.out, "'Ephemeral': <true>"));
    g_assert_nonnull(strstr(said.out, "'VGPU_GOVERNOR_REQUIRED': '1'"));
    g_assert_nonnull(strstr(said.out, "/run/vgpu/containers/" UUID "/g'"));
    said_clear(&said);
    /* It has ended meanwhile. */
    iterate_until_told("slice list", "no slice");
    g_assert_false(exists(&at, "/run/vgpu/containers/" UUID));
    g_assert_false(exists(&at, CDI_PATH));
    fake_arbiter_close(&arbiter);
    agent_on_bus_close(&at);
}

static void assert_refused(const char *request, const char *words)
{
    Said said = call_run(request);

    g_test_message("%s: %s", request, said.err);
    g_assert_cmpint(said.status, ==, 1);
    g_assert_nonnull(strstr(said.err, words));
    said_clear(&said);
}

/* Its name is in root's events. */
static void test_program(void)
{
    AgentOnBus at;
    Said said;

    open_with_processes(&at);
    said = call_run_of("{'Vram': <uint64 1073741824>}", "train\nslice web was removed by root");
    g_assert_cmpint(said.status, ==, 1);
    g_assert_nonnull(strstr(said.err, "the program's name can't have control characters"));
    said_clear(&said);
    assert_says("slice list", 0, "no slice", "");
    agent_on_bus_close(&at);
}

static void test_refused(void)
{
    AgentOnBus at;
    g_autofree char *manifest = NULL;

    open_with_processes(&at);
    assert_refused("{'Vram': <uint64 1073741824>, 'Door': <'guarded'>}", "has no Door");
    assert_refused("{'Vram': <uint64 1073741824>, 'DryRun': <true>}", "has no DryRun");
    assert_refused("{'Vram': <uint64 99999999999>}", "no room");
    assert_refused("{'Vram': <uint64 1073741824>, 'Tenant': <'red'>}", "red");
    manifest =
        root_path(at.root, "/usr/share/vulkan/implicit_layer.d/VkLayer_vgpu_governor.json", NULL);
    g_assert_cmpint(g_unlink(manifest), ==, 0);
    assert_refused("{'Vram': <uint64 1073741824>}", "install the package vgpu-governor");
    assert_says("slice list", 0, "no slice", "");
    agent_on_bus_close(&at);
}

#define BOOT_ID "/proc/sys/kernel/random/boot_id"

/* A crash in between leaves a claim, which ends with its process, and no slice that stays. */
static void test_claim_first(void)
{
    AgentOnBus at;
    FakeArbiter arbiter;
    Said said;

    open_with_processes(&at);
    fake_arbiter_open_with(&arbiter, at.root, nobody);
    g_assert_true(db_run(host_db(agent_host(at.agent)), NULL,
                         "CREATE TRIGGER claimed BEFORE INSERT ON slice"
                         " WHEN NOT EXISTS (SELECT 1 FROM claim WHERE uuid = NEW.uuid)"
                         " BEGIN SELECT RAISE(ABORT, 'no claim'); END",
                         ""));
    said = call_run("{'Vram': <uint64 1073741824>, 'Uuids': <['" UUID "']>}");
    g_test_message("%s%s", said.out, said.err);
    g_assert_cmpint(said.status, ==, 0);
    said_clear(&said);
    iterate_until_told("slice list", "no slice");
    fake_arbiter_close(&arbiter);
    agent_on_bus_close(&at);
}

static void count_claim(sqlite3_stmt *row, void *data)
{
    (void)row;
    ++*(guint *)data;
}

static void assert_claims(const AgentOnBus *at, guint count)
{
    guint seen = 0;

    g_assert_true(db_each(host_db(agent_host(at->agent)), NULL, count_claim, &seen,
                          "SELECT 1 FROM claim", ""));
    g_assert_cmpuint(seen, ==, count);
}

/* The slice that could not be stored leaves no claim. */
static void test_not_stored(void)
{
    AgentOnBus at;

    open_with_processes(&at);
    g_assert_true(db_run(host_db(agent_host(at.agent)), NULL,
                         "CREATE TRIGGER full BEFORE INSERT ON slice"
                         " BEGIN SELECT RAISE(ABORT, 'no space'); END",
                         ""));
    assert_refused("{'Vram': <uint64 1073741824>}", "no space");
    assert_claims(&at, 0);
    assert_says("slice list", 0, "no slice", "");
    agent_on_bus_close(&at);
}

static void add_entry(const char *const *fields, void *data)
{
    for (guint i = 0; fields[i]; i++)
        g_string_append_printf(data, "%s\n", fields[i]);
}

/* What "vgpuctl run" has stored. */
static void put_program(const AgentOnBus *at, const char *uuid)
{
    Claim claim = {.uuid = (char *)uuid,
                   .container = (char *)"train[77]",
                   .pid = 77,
                   .started = 1000,
                   .user = 1000,
                   .cgroup = (char *)""};

    g_assert_true(claim_table_put(host_db(agent_host(at->agent)), "first", &claim, NULL));
}

/* As many programs as a user may have: all are this process. */
static void put_programs(const AgentOnBus *at)
{
    Claim claim = {.container = (char *)"train", .user = geteuid(), .member = CLAIM_NO_USER};

    claim.cgroup = (char *)"";
    claim.pid = (guint)getpid();
    claim.started = claim_process_started(at->root, claim.pid);
    for (guint i = 0; i < CLAIMS_MAX_OF_USER; i++) {
        g_autofree char *uuid = g_strdup_printf("c0ffee00-0000-4000-8001-%012u", i);

        claim.uuid = uuid;
        g_assert_true(claim_table_put(host_db(agent_host(at->agent)), "", &claim, NULL));
    }
}

/* Claims of one user must not take all of vgpud's descriptors. */
static void test_too_many(void)
{
    AgentOnBus at;

    open_with_processes(&at);
    put_programs(&at);
    agent_on_bus_restart(&at);
    assert_refused("{'Vram': <uint64 1073741824>}", "end one of them first");
    assert_says("slice list", 0, "no slice", "");
    assert_claims(&at, CLAIMS_MAX_OF_USER);
    agent_on_bus_close(&at);
}

/* What an arbiter says of a slice that nobody uses; of one that was restarted now, or long ago. */
#define NOBODY "{\"slices\":[{\"id\":\"" UUID "\",\"pids\":[]}]}\n"
#define LATELY                                                                                     \
    "{\"restarted_ns\":9000000000000000000,\"slices\":[{\"id\":\"" UUID "\",\"pids\":[]}]}\n"
#define BEFORE "{\"restarted_ns\":1000000000,\"slices\":[{\"id\":\"" UUID "\",\"pids\":[]}]}\n"
#define CHILD  "{\"slices\":[{\"id\":\"" UUID "\",\"pids\":[78]}]}\n"

/* A program without a scope has ended, and its children may use the slice. */
static void open_with_children(AgentOnBus *at)
{
    open_shared(at);
    process(at, 77, 1000);
    assert_says("slice create --vram 1G --door native --ephemeral --uuid " UUID, 0, UUID, "");
    put_program(at, UUID);
    agent_on_bus_restart(at);
    process_ends(at, 77);
}

static void assert_ends(const char *said, gboolean ends)
{
    FakeArbiter arbiter;
    AgentOnBus at;

    open_with_children(&at);
    fake_arbiter_open_with(&arbiter, at.root, said);
    agent_look_at_containers(at.agent);
    assert_says("slice show " UUID, ends ? 3 : 0, ends ? "" : "train[77]", "");
    fake_arbiter_close(&arbiter);
    agent_on_bus_close(&at);
}

/* The arbiter knows them, and nobody else; what it does not say ends no program. */
static void test_children(void)
{
    assert_ends(NOBODY, TRUE);
    assert_ends(CHILD, FALSE);
    assert_ends(BEFORE, TRUE);
    assert_ends(LATELY, FALSE);
    assert_ends("{\"slices\":", FALSE);
}

/* It hangs, or is being restarted, as in an upgrade. The main loop waits for it once. */
static void test_silent_arbiter(void)
{
    AgentOnBus at;
    FakeArbiter arbiter;
    int hung;

    open_with_children(&at);
    agent_look_at_containers(at.agent);
    assert_says("slice show " UUID, 0, "train[77]", "");
    hung = fake_arbiter_listen(at.root);
    for (guint i = 0; i < 50; i++)
        agent_look_at_containers(at.agent);
    g_assert_cmpuint(fake_arbiter_count(hung), <, 50);
    assert_says("slice show " UUID, 0, "train[77]", "");
    close(hung);
    fake_arbiter_open_with(&arbiter, at.root, NOBODY);
    agent_look_at_containers(at.agent);
    iterate_until_told("slice list", "no slice");
    fake_arbiter_close(&arbiter);
    agent_on_bus_close(&at);
}

/*
 * No program survives it. The process that has the number now is another, also if it began as late.
 */
static void test_reboot(void)
{
    g_autoptr(GString) audit = g_string_new(NULL);
    AgentOnBus at;

    open_shared(&at);
    file_tree_write(at.root, BOOT_ID, "first\n");
    agent_on_bus_restart(&at);
    process(&at, 77, 1000);
    assert_says("slice create --vram 1G --door native --ephemeral --name web", 0, "", "");
    assert_says("slice create --vram 1G --door native --ephemeral --uuid " UUID, 0, UUID, "");
    assert_says("slice create --vram 1G --door native --uuid " UUID2, 0, UUID2, "");
    assert_says("slice create --vram 1G --door native --ephemeral --name unclaimed", 0, "", "");
    assert_hook_of(&at, "web", "claim", WEB, 0, "");
    assert_hook_of(&at, UUID2, "claim", WEB, 0, "");
    put_program(&at, UUID);
    agent_on_bus_restart(&at);
    assert_says("slice list", 0, "train[77]", "");
    agent_on_bus_stop(&at);
    file_tree_write(at.root, BOOT_ID, "second\n");
    audit_set_sink(add_entry, audit);
    agent_on_bus_start(&at);
    assert_says("slice show " UUID, 3, "", "there is no slice");
    assert_says("slice show web", 3, "", "there is no slice");
    assert_says("slice show unclaimed", 0, "Ephemeral:              yes", "");
    assert_says("slice show " UUID2, 0, "Container:              -", "");
    g_assert_nonnull(strstr(audit->str, AUDIT_USER "=" AUDIT_BY_RECOVERY "\n"));
    g_assert_null(strstr(audit->str, AUDIT_USER "=" AUDIT_BY_CONTAINER "\n"));
    assert_claims(&at, 0);
    audit_set_sink(NULL, NULL);
    agent_on_bus_close(&at);
}

/* Without the boot's id nobody is known to be of another one: processes decide. */
static void test_no_boot_id(void)
{
    AgentOnBus at;

    open_shared(&at);
    file_tree_write(at.root, BOOT_ID, "first\n");
    agent_on_bus_restart(&at);
    process(&at, 77, 1000);
    assert_says("slice create --vram 1G --door native --ephemeral --uuid " UUID, 0, UUID, "");
    assert_hook(&at, "claim", WEB, 0, "");
    root_remove(at.root, BOOT_ID);
    agent_on_bus_restart(&at);
    assert_says("slice show " UUID, 0, "Container:              web", "");
    agent_on_bus_close(&at);
}

/**
 * Late - calls while polkit has not answered
 * @answers: and errors, one a line
 */
typedef struct {
    FakePolkit *polkit;
    guint begun;
    GString *answers;
} Late;

static void note_answer(GObject *bus, GAsyncResult *result, void *data)
{
    Late *late = data;
    g_autoptr(GError) error = NULL;
    g_autoptr(GVariant) answer =
        g_dbus_connection_call_finish(G_DBUS_CONNECTION(bus), result, &error);

    g_test_message("%s", answer ? "done" : error->message);
    g_string_append_printf(late->answers, "%s\n", answer ? "done" : error->message);
    late->begun--;
}

static gboolean all_are_held(gconstpointer data)
{
    const Late *late = data;

    return late->polkit->held->len == late->begun;
}

static gboolean all_are_answered(gconstpointer data)
{
    return ((const Late *)data)->begun == 0;
}

static void assert_all_refused(const char *answers)
{
    g_auto(GStrv) lines = g_strsplit(answers, "\n", -1);

    for (guint i = 0; *lines[i]; i++)
        g_assert_nonnull(strstr(lines[i], "may not do this"));
}

/* One at a time: libpolkit waits for its service with locks, and here that is in this process. */
static void begin_call(Late *late, const char *method, const char *arguments)
{
    g_dbus_connection_call(late->polkit->bus, VGPU_BUS_NAME, VGPU_MANAGER_PATH,
                           VGPU_MANAGER_INTERFACE, method, g_variant_new_parsed(arguments), NULL,
                           G_DBUS_CALL_FLAGS_NONE, PATIENCE_US / 1000, NULL, note_answer, late);
    late->begun++;
    iterate_until(all_are_held, late);
}

/* While polkit is asked about a slice of the own tenant, its name becomes another tenant's. */
static void assert_no_late_call(FakePolkit *polkit)
{
    g_autoptr(GString) answers = g_string_new(NULL);
    Late late = {polkit, 0, answers};

    assert_says("slice create --vram 1G --door native --tenant red --name train", 0, "", "");
    fake_polkit_hold(polkit, TRUE);
    begin_call(&late, "RemoveSlice", "('train', {'Force': <true>})");
    begin_call(&late, "SetSlice", "('train', {'Cap': <uint32 1>})");
    begin_call(&late, "SuspendSlice", "('train', @a{sv} {})");
    begin_call(&late, "ClaimSlice", "('train', 'web', uint32 1)");
    fake_polkit_set_administrators(polkit, TRUE);
    assert_says("slice remove train", 3, "", "no slice train; there is red/train; ");
    assert_says("slice remove red/train", 0, "", "");
    assert_says("slice create --vram 1G --door native --tenant blue --name train", 0, "", "");
    fake_polkit_set_administrators(polkit, FALSE);
    fake_polkit_hold(polkit, FALSE);
    iterate_until(all_are_answered, &late);
    assert_all_refused(answers->str);
    fake_polkit_set_administrators(polkit, TRUE);
    assert_says("slice show blue/train", 0, "Tenant:                 blue", "");
    assert_says("slice remove blue/train", 0, "", "");
    fake_polkit_set_administrators(polkit, FALSE);
}

static int members_of(const char *name, GStrv *members)
{
    if (!g_str_equal(name, "ml"))
        return ENOENT;
    *members = g_strdupv((char *[]){(char *)"bin", (char *)FAKE_USER, NULL});
    return 0;
}

/* The members of a group may use a tenant that names it, until it is named no longer. */
static void assert_group(FakePolkit *polkit)
{
    Said said = {0};

    accounts_set_group_lookup(members_of);
    fake_polkit_set_administrators(polkit, TRUE);
    assert_says("tenant set green --user @none", 0, "", "");
    assert_says("tenant set green --user @ml", 0, "", "");
    fake_polkit_set_administrators(polkit, FALSE);
    /* A thread looks it up. */
    for (guint i = 0; i < 600; i++) {
        said = vgpuctl("tenant list");
        if (strstr(said.out, "green"))
            break;
        said_clear(&said);
    }
    g_assert_nonnull(said.out);
    g_assert_nonnull(strstr(said.out, "@ml"));
    said_clear(&said);
    assert_says("slice create --vram 1G --door native --tenant green --name g", 0, "", "");
    assert_says("slice remove green/g", 0, "", "");
    fake_polkit_set_administrators(polkit, TRUE);
    assert_says("tenant set green --user @none", 0, "", "");
    fake_polkit_set_administrators(polkit, FALSE);
    assert_refused("{'Vram': <uint64 1073741824>, 'Tenant': <'green'>}", "may not do this");
    accounts_set_group_lookup(NULL);
}

/*
 * Each tenant has names of its own. A name means the caller's tenant's slice, or one without a
 * tenant, never another tenant's; the others have the tenant in front. CDI has one name space.
 */
static void assert_names(const AgentOnBus *at, FakePolkit *polkit)
{
    g_autofree char *path = root_path(at->root, "/run/cdi/mdev-vgpu.json", NULL);
    g_autofree char *spec = NULL;

    fake_polkit_set_administrators(polkit, TRUE);
    assert_says("slice create --vram 1G --door native --tenant blue --name web", 0, "", "");
    fake_polkit_set_administrators(polkit, FALSE);
    assert_says("slice set web --cap 5", 5, "", "may not do this");
    assert_says("slice set blue/web --cap 5", 5, "", "may not do this");
    assert_says("slice create --vram 1G --door native --tenant red --name web", 0, "", "");
    assert_says("slice create --vram 1G --door native --tenant red --name web", 6, "",
                "the name web is taken");
    assert_says("slice set web --cap 5", 0, "", "");
    assert_says("slice show red/web", 0, "Cap:                    5\n", "");
    fake_polkit_set_administrators(polkit, TRUE);
    assert_says("slice show blue/web", 0, "Cap:                    100\n", "");
    assert_says("slice set blue/web --tenant red", 6, "", "the name web is taken");
    assert_says("slice create --vram 1G --door native --name web", 0, "", "");
    agent_refresh(at->agent);
    g_assert_true(g_file_get_contents(path, &spec, NULL, NULL));
    g_assert_nonnull(strstr(spec, "\"name\" : \"red:web\""));
    g_assert_nonnull(strstr(spec, "\"name\" : \"blue:web\""));
    g_assert_nonnull(strstr(spec, "\"name\" : \"web\""));
    assert_says("slice remove web", 0, "", "");
    assert_says("slice remove web", 3, "", "there is no slice web; there is ");
    assert_says("slice remove blue/web", 0, "", "");
    fake_polkit_set_administrators(polkit, FALSE);
    assert_says("slice remove web", 0, "", "");
    assert_says("slice remove web", 5, "", "may not do this");
}

static guint devices_called(const AgentOnBus *at, const char *name)
{
    g_autofree char *path = root_path(at->root, "/run/cdi/mdev-vgpu.json", NULL);
    g_autofree char *text = g_strdup_printf("\"name\" : \"%s\"", name);
    g_autofree char *spec = NULL;
    g_auto(GStrv) parts = NULL;

    agent_refresh(at->agent);
    g_assert_true(g_file_get_contents(path, &spec, NULL, NULL));
    parts = g_strsplit(spec, text, -1);
    return g_strv_length(parts) - 1;
}

/*
 * What containers call a slice that was there before tenants had names of their own stays, and is
 * never another tenant's.
 */
static void test_old_name(void)
{
    AgentOnBus at;

    open_with_processes(&at);
    assert_says("tenant set red", 0, "", "");
    assert_says("tenant set blue", 0, "", "");
    assert_says("slice create --vram 1G --door native --tenant red --name web", 0, "", "");
    g_assert_cmpuint(devices_called(&at, "web"), ==, 0);
    agent_on_bus_stop(&at);
    run_sql(&at, STATE_DB, "DROP TABLE old_name", NULL);
    run_sql(&at, STATE_DB, "DROP TABLE way_back", NULL);
    run_sql(&at, STATE_DB, "ALTER TABLE slice DROP COLUMN resident", NULL);
    run_sql(&at, STATE_DB, "ALTER TABLE tenant DROP COLUMN displaced", NULL);
    run_sql(&at, STATE_DB, "PRAGMA user_version = 14", NULL);
    agent_on_bus_start(&at);
    assert_says("slice create --vram 1G --door native --tenant blue --name web", 0, "", "");
    g_assert_cmpuint(devices_called(&at, "web"), ==, 1);
    g_assert_cmpuint(devices_called(&at, "red:web"), ==, 1);
    assert_says("slice create --vram 1G --door native --name web", 0, "", "");
    g_assert_cmpuint(devices_called(&at, "web"), ==, 1);
    assert_says("slice remove web", 0, "", "");
    g_assert_cmpuint(devices_called(&at, "web"), ==, 1);
    assert_says("slice remove red/web", 0, "", "");
    g_assert_cmpuint(devices_called(&at, "web"), ==, 0);
    g_assert_cmpuint(devices_called(&at, "blue:web"), ==, 1);
    agent_on_bus_close(&at);
}

/* A tenant's user may promise time of the tenant's, above what a slice of that size has. */
static void test_member(void)
{
    AgentOnBus at;
    FakePolkit polkit;

    open_with_processes(&at);
    assert_says("tenant set red --user " FAKE_USER " --compute 50", 0, "", "");
    assert_says("tenant set blue", 0, "", "");
    fake_polkit_start(&polkit, &at);
    assert_refused("{'Vram': <uint64 1073741824>, 'Compute': <uint32 30>}", "may not do this");
    assert_refused("{'Vram': <uint64 1073741824>, 'Tenant': <'red'>, 'Compute': <uint32 60>}",
                   "tenant red would have 60 % of compute, and may have 50 %");
    assert_refused("{'Vram': <uint64 1073741824>, 'Tenant': <'red'>, 'Compute': <uint32 30>, "
                   "'Weight': <uint32 241>}",
                   "weight 241 is at the cost of others: a slice of its size has 50, and only an "
                   "administrator can give it more");
    assert_refused("{'Tenant': <'red'>, 'Vram': <uint64 1073741824>, 'Tenant': <'blue'>}",
                   "Tenant is there twice");
    assert_refused("{'Tenant': <'red'>, 'Vram': <uint64 1073741824>, 'Tenant': <''>}",
                   "Tenant is there twice");
    /* It was made; that the program is another user's is the test's own fault. */
    assert_refused("{'Vram': <uint64 1073741824>, 'Tenant': <'red'>, 'Compute': <uint32 30>}",
                   "does not belong to user");
    assert_says("slice create --vram 1G --compute 30 --door native --tenant red --uuid " UUID, 0,
                UUID, "");
    assert_says("slice set " UUID " --compute 45", 0, "", "");
    assert_in_file(&at, SHARE_OF(UUID), "share=450000\n");
    assert_says("slice remove " UUID, 0, "", "");
    assert_says("vgpu create half --tenant red --compute 50 --uuid " UUID, 0, UUID, "");
    assert_says("vgpu set " UUID " --compute 20", 0, "", "");
    assert_says("-o json vgpu show " UUID, 0, "\"Weight\" : 400", "");
    assert_says("vgpu set " UUID " --compute 45", 0, "", "");
    assert_says("-o json vgpu show " UUID, 0, "\"Weight\" : 400", "");
    assert_says("vgpu set " UUID " --weight 401", 5, "", "vgpu-half has 400");
    assert_says("vgpu remove " UUID, 0, "", "");
    assert_no_late_call(&polkit);
    assert_names(&at, &polkit);
    assert_group(&polkit);
    fake_polkit_stop(&polkit);
    agent_on_bus_close(&at);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/run/process", test_process);
    g_test_add_func("/run/scope", test_scope);
    g_test_add_func("/run/alive", test_alive);
    g_test_add_func("/run/not-known", test_not_known);
    g_test_add_func("/run/too-many", test_too_many);
    g_test_add_func("/run/call", test_call);
    g_test_add_func("/run/refused", test_refused);
    g_test_add_func("/run/program", test_program);
    g_test_add_func("/run/member", test_member);
    g_test_add_func("/run/old-name", test_old_name);
    g_test_add_func("/run/watch", test_watch);
    g_test_add_func("/run/claim-first", test_claim_first);
    g_test_add_func("/run/not-stored", test_not_stored);
    g_test_add_func("/run/children", test_children);
    g_test_add_func("/run/silent-arbiter", test_silent_arbiter);
    g_test_add_func("/run/reboot", test_reboot);
    g_test_add_func("/run/no-boot-id", test_no_boot_id);
    return g_test_run();
}
