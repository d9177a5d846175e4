/* SPDX-License-Identifier: MIT */
/* The audit of what nobody asked for by a call on the bus: an entry for each source. */
#include <glib/gstdio.h>
#include <string.h>

#include "host-agent/meter/pressure_watch.h"
#include "host-agent/daemon/host/audit.h"
#include "host-agent/store/tables.h"
#include "lib/bus.h"
#include "lib/schedule_conf.h"
#include "tests/unit/file_tree.h"
#include "tests/unit/host-agent/fake_arbiter.h"
#include "tests/unit/host-agent/fake_kernel.h"
#include "tests/unit/host-agent/recorded_host.h"
#include "tests/unit/host-agent/slices_kit.h"

#define PLACE      "pci0000:00/0000:00:01.0/" ADDRESS
#define VGPU       "/sys/devices/" PLACE "/" UUID "/vgpu/"
#define DEFINITION "/etc/mdevctl.d/" ADDRESS "/" UUID

/**
 * Audited - a host whose audit is kept
 * @all: the entries, "FIELD=value" in a line each
 */
typedef struct {
    AgentOnBus host;
    GString *all;
} Audited;

static void collect(const char *const *fields, void *data)
{
    for (; *fields; fields++)
        g_string_append_printf(data, "%s\n", *fields);
}

/* Takes @root. */
static void open_tree(Audited *at, HostRoot *root)
{
    at->all = g_string_new(NULL);
    agent_on_bus_open_tree(&at->host, root);
    audit_set_sink(collect, at->all);
}

static void open_audited(Audited *at)
{
    open_tree(at, shared_tree());
}

static void close_audited(Audited *at)
{
    agent_on_bus_close(&at->host);
    audit_set_sink(NULL, NULL);
    g_string_free(at->all, TRUE);
}

static guint count(const Audited *at, const char *words)
{
    guint found = 0;

    for (const char *place = at->all->str; (place = strstr(place, words)); place++)
        found++;
    return found;
}

/* @message: "switch: GPU ok by schedule: Mode …"; it is there once, as an entry without a user. */
static void assert_entry(const Audited *at, const char *message)
{
    g_autofree char *line = g_strconcat("MESSAGE=", message, NULL);

    iterate_until_said(at->all, line);
    if (count(at, line) != 1)
        g_error("%s is there more than once in %s", line, at->all->str);
}

static void assert_no_user(const Audited *at)
{
    g_assert_null(strstr(at->all->str, AUDIT_UID));
}

static void make_vgpu(HostRoot *root)
{
    recorded_host_add_vgpu(root, PLACE, UUID, "amdgpu-vgpu-half",
                           "state=device=closed engine=ready|failure=|vram_bytes=4294967296|"
                           "window_bytes=268435456|weight=100|cap=100|priority=0|requests=1|"
                           "doorbells=1|interrupts=1|engine_losses=0");
}

static char *in_hours(int hours)
{
    g_autoptr(GDateTime) now = g_date_time_new_now_utc();
    g_autoptr(GDateTime) time = g_date_time_add_hours(now, hours);

    return g_date_time_format(time, "%F %T");
}

static void test_schedule(void)
{
    Audited at;
    FakeSystemd systemd;
    g_autofree char *past = in_hours(-1);
    g_autofree char *calendar = g_strdup_printf("night\t%s\n", past);

    open_audited(&at);
    fake_systemd_start(&systemd, at.host.daemon);
    file_tree_write(at.host.root, "/etc/vgpu/gpus.conf", "[gpu " ADDRESS "]\nmode=shared\n");
    file_tree_write(at.host.root, "/calendar", calendar);
    file_tree_write(at.host.root, SCHEDULE_CONF,
                    "[at x]\ngpu=" ADDRESS "\nmode=passthrough\nat=night\nwarn=0\n");
    fake_kernel_use(at.host.root);
    agent_on_bus_restart(&at.host);
    assert_entry(&at, "switch: " ADDRESS " ok by schedule: Mode shared -> passthrough; "
                      "WantedMode shared -> passthrough\n");
    iterate_until_said(at.all, AUDIT_BEFORE "=Mode=shared; ");
    iterate_until_said(at.all, AUDIT_AFTER "=Mode=passthrough; ");
    assert_no_user(&at);
    fake_systemd_stop(&systemd);
    close_audited(&at);
}

/* A switch that fails is there, too: nobody else was told. */
static void test_gpus_conf(void)
{
    Audited at;

    open_audited(&at);
    fake_kernel_use(at.host.root);
    file_tree_write(at.host.root, "/etc/vgpu/gpus.conf", "[gpu " ADDRESS "]\nmode=passthrough\n");
    fake_process(at.host.root, FAKE_PID_MIN, "Xorg", NULL, NULL, "dri/card0");
    file_tree_write(at.host.root, "/sys/devices/" PLACE "/drm/card0/uevent",
                    "MAJOR=226\nDEVNAME=dri/card0\n");
    agent_on_bus_restart(&at.host);
    iterate_until_said(at.all, AUDIT_RESULT "=failed: ");
    iterate_until_said(at.all, " (Xorg) has");
    fake_process_closes(at.host.root, FAKE_PID_MIN);
    agent_on_bus_restart(&at.host);
    assert_entry(&at, "switch: " ADDRESS " ok by gpus.conf: Mode shared -> passthrough\n");
    assert_no_user(&at);
    close_audited(&at);
}

static Said call(const char *method, const char *argument, const char *second)
{
    g_autofree char *name = g_strconcat("--method=" VGPU_MANAGER_INTERFACE ".", method, NULL);
    const char *argv[] = {"gdbus",
                          "call",
                          "--system",
                          "--dest=" VGPU_BUS_NAME,
                          "--object-path=" VGPU_MANAGER_PATH,
                          name,
                          argument,
                          second,
                          NULL};

    return run_program(argv);
}

/* @second: NULL: the method has one argument. */
static void assert_call_with(const char *method, const char *argument, const char *second)
{
    Said said = call(method, argument, second);

    g_test_message("%s: %s%s", method, said.out, said.err);
    g_assert_cmpint(said.status, ==, 0);
    said_clear(&said);
}

static void assert_call(const char *method, const char *argument)
{
    assert_call_with(method, argument, NULL);
}

static void test_libvirt(void)
{
    Audited at;

    open_audited(&at);
    assert_call("CreateSlices", "[{'Door': <'vm'>, 'Type': <'half'>, 'Domain': <'red'>, "
                                "'Uuids': <['" UUID "']>}]");
    assert_entry(&at, "CreateSlices: " UUID " ok by ");
    assert_call("ReleaseDomain", "red");
    assert_entry(&at, "remove: " UUID " ok by libvirt: removed\n");
    g_assert_cmpuint(count(&at, "MESSAGE="), ==, 2);
    close_audited(&at);
}

/* By a client of its own, which waits for no answer. */
static void send(GDBusConnection *client, const char *method, GVariant *arguments)
{
    g_autoptr(GDBusMessage) message = g_dbus_message_new_method_call(
        VGPU_BUS_NAME, VGPU_MANAGER_PATH, VGPU_MANAGER_INTERFACE, method);

    g_dbus_message_set_flags(message, G_DBUS_MESSAGE_FLAGS_NO_REPLY_EXPECTED);
    g_dbus_message_set_body(message, arguments);
    g_assert_true(g_dbus_connection_send_message(client, message, 0, NULL, NULL));
}

/* Runs in a thread of the connection. */
static GDBusMessage *count_answers(GDBusConnection *bus, GDBusMessage *message, gboolean incoming,
                                   void *data)
{
    (void)bus;
    if (incoming && g_dbus_message_get_reply_serial(message))
        g_atomic_int_inc((gint *)data);
    return message;
}

/* Calls that want no answer: nobody waits for their entries, and nothing is kept of them. */
static void test_no_reply(void)
{
    Audited at;
    g_autoptr(GDBusConnection) client = NULL;
    gint answers = 0;
    guint filter;

    open_audited(&at);
    client =
        g_dbus_connection_new_for_address_sync(g_test_dbus_get_bus_address(at.host.daemon),
                                               G_DBUS_CONNECTION_FLAGS_AUTHENTICATION_CLIENT |
                                                   G_DBUS_CONNECTION_FLAGS_MESSAGE_BUS_CONNECTION,
                                               NULL, NULL, NULL);
    g_assert_nonnull(client);
    filter = g_dbus_connection_add_filter(client, count_answers, &answers, NULL);
    send(client, "SetTenant", g_variant_new_parsed("('red', {'Vgpus': <uint32 3>})"));
    assert_entry(&at, "SetTenant: red ok by ");
    send(client, "RemoveTenant", g_variant_new_parsed("('blue',)"));
    send(client, "CreateSlices",
         g_variant_new_parsed("([{'Door': <'native'>, 'Type': <'half'>, 'Uuids': <['" UUID
                              "']>}],)"));
    assert_entry(&at, "CreateSlices: " UUID " ok by ");
    g_assert_cmpuint(count(&at, "MESSAGE="), ==, 2);
    assert_says("tenant list", 0, "red", "");
    g_assert_cmpint(g_atomic_int_get(&answers), ==, 0);
    g_dbus_connection_remove_filter(client, filter);
    g_dbus_connection_close_sync(client, NULL, NULL);
    close_audited(&at);
}

/* Its claim, by a call, and its end, reported or not; an ephemeral slice goes with it. */
static void test_container(void)
{
    Audited at;

    open_audited(&at);
    process(&at.host, 77, 1000);
    assert_says("slice create half --door native --uuid " UUID, 0, UUID, "");
    assert_hook(&at.host, "claim", WEB, 0, "");
    assert_entry(&at, "ClaimSlice: " UUID " ok by root: User - -> web\n");
    assert_hook(&at.host, "release", WEB, 0, "");
    assert_entry(&at, "released: " UUID " ok by container: User web -> -\n");
    assert_says("slice create half --door native --ephemeral --uuid " UUID2, 0, UUID2, "");
    assert_hook_of(&at.host, UUID2, "claim", WEB, 0, "");
    process_ends(&at.host, 77);
    agent_look_at_containers(at.host.agent);
    assert_entry(&at, "remove: " UUID2 " ok by container: removed\n");
    g_assert_null(strstr(at.all->str, "released: " UUID2));
    close_audited(&at);
}

/* A program of "vgpuctl run", whose end the kernel or systemd's scope tells. */
static void test_systemd(void)
{
    Audited at;
    FakeArbiter arbiter;
    HostRoot *root = shared_tree();

    file_tree_link(root, "/proc", "/proc");
    fake_arbiter_open_with(&arbiter, root, "{\"slices\":[]}\n");
    open_tree(&at, root);
    assert_call_with("RunSlice", "{'Vram': <uint64 1073741824>, 'Uuids': <['" UUID "']>}",
                     "/usr/bin/train");
    assert_entry(&at, "remove: " UUID " ok by systemd: removed\n");
    fake_arbiter_close(&arbiter);
    close_audited(&at);
}

/* What a crash has left in the journal is finished at the next start. */
static void test_recovery(void)
{
    Audited at;
    OperationRow row = {.kind = (char *)"remove",
                        .objects = (char *[]){(char *)UUID, NULL},
                        .data = (char *)"",
                        .caller = (char *)"alice",
                        .step = (char *)"stop"};

    open_audited(&at);
    assert_says("vgpu create half --uuid " UUID, 0, UUID, "");
    g_assert_true(operation_table_begin(host_db(agent_host(at.host.agent)), &row, NULL));
    agent_on_bus_restart(&at.host);
    assert_entry(&at, "remove: " UUID " ok by recovery: removed\n");
    g_assert_null(strstr(at.all->str, AUDIT_USER "=alice"));
    close_audited(&at);
}

/* It ends with the vGPU that another stops. */
static void test_suspension(void)
{
    Audited at;

    open_audited(&at);
    assert_says("vgpu create half --define --uuid " UUID, 0, UUID, "");
    recorded_host_remove_vgpu(at.host.root, UUID);
    make_vgpu(at.host.root);
    agent_update_vgpu(at.host.agent, UUID);
    g_assert_true(slices_set_suspended(agent_slices(at.host.agent), UUID, TRUE, NULL));
    recorded_host_remove_vgpu(at.host.root, UUID);
    agent_update_vgpu(at.host.agent, UUID);
    assert_entry(&at, "resume: " UUID " ok by kernel: Suspended yes -> no\n");
    close_audited(&at);
}

/* A definition, a changed one, and none any more. */
static void test_mdevctl(void)
{
    Audited at;
    g_autofree char *path = NULL;

    open_audited(&at);
    path = root_path(at.host.root, DEFINITION, NULL);
    file_tree_write(at.host.root, DEFINITION,
                    "{\"mdev_type\": \"amdgpu-vgpu-half\", \"start\": \"manual\", \"attrs\": []}");
    agent_update_vgpu(at.host.agent, UUID);
    assert_entry(&at, "found: " UUID " ok by mdevctl: created\n");
    file_tree_write(at.host.root, DEFINITION,
                    "{\"mdev_type\": \"amdgpu-vgpu-half\", \"start\": \"auto\", \"attrs\": []}");
    agent_update_vgpu(at.host.agent, UUID);
    assert_entry(&at, "found: " UUID " ok by mdevctl: Autostart no -> yes\n");
    agent_on_bus_restart(&at.host);
    g_assert_cmpint(g_unlink(path), ==, 0);
    agent_update_vgpu(at.host.agent, UUID);
    assert_entry(&at, "found: " UUID " ok by mdevctl: removed\n");
    g_assert_cmpuint(count(&at, "MESSAGE="), ==, 3);
    assert_no_user(&at);
    close_audited(&at);
}

/* By a person, in sysfs. That a vGPU is there when vgpud starts is no change. */
static void test_kernel(void)
{
    Audited at;

    open_audited(&at);
    make_vgpu(at.host.root);
    agent_update_vgpu(at.host.agent, UUID);
    assert_entry(&at, "found: " UUID " ok by kernel: created\n");
    file_tree_write(at.host.root, VGPU "weight", "7\n");
    agent_update_vgpu(at.host.agent, UUID);
    assert_entry(&at, "found: " UUID " ok by kernel: Weight 100 -> 7\n");
    agent_on_bus_restart(&at.host);
    g_assert_cmpuint(count(&at, "MESSAGE="), ==, 2);
    assert_says("vgpu set " UUID " --weight 8", 0, "", "");
    assert_entry(&at, "SetSlice: " UUID " ok by ");
    agent_update_vgpu(at.host.agent, UUID);
    g_assert_cmpuint(count(&at, "MESSAGE="), ==, 3);
    close_audited(&at);
}

/* A GPU that goes, and comes with another driver. */
static void test_gpu(void)
{
    Audited at;
    g_autofree char *link = NULL;
    g_autofree char *aside = NULL;

    open_audited(&at);
    link = root_path(at.host.root, "/sys/bus/pci/devices/" ADDRESS, NULL);
    aside = root_path(at.host.root, "/aside", NULL);
    g_assert_cmpint(g_rename(link, aside), ==, 0);
    agent_refresh(at.host.agent);
    assert_entry(&at, "found: " ADDRESS " ok by kernel: removed\n");
    g_assert_cmpint(g_rename(aside, link), ==, 0);
    agent_refresh(at.host.agent);
    assert_entry(&at, "found: " ADDRESS " ok by kernel: created\n");
    assert_says("gpu drain " ADDRESS, 0, "", "");
    assert_entry(&at, "Drain: " ADDRESS " ok by ");
    agent_refresh(at.host.agent);
    g_assert_cmpuint(count(&at, AUDIT_USER "=kernel"), ==, 2);
    close_audited(&at);
}

/* Whose slices an engine has made and released, and to which engine the GPU belongs. */
static void test_owner(void)
{
    Audited at;

    open_audited(&at);
    assert_call("CreateSlices",
                "[{'Owner': <'slurm:c:1'>, 'Part': <'0'>, 'Door': <'native'>, 'Vram': <uint64 "
                "1073741824>}, {'Owner': <'slurm:c:1'>, 'Part': <'1'>, 'Door': <'native'>, "
                "'Vram': <uint64 1073741824>}]");
    iterate_until_said(at.all, "; Owner=slurm:c:1");
    g_assert_cmpuint(count(&at, "MESSAGE=CreateSlices: "), ==, 2);
    assert_call_with("ReleaseOwner", "slurm:c:1", "{}");
    iterate_until_said(at.all, "removed\n");
    g_assert_cmpuint(count(&at, "MESSAGE=ReleaseOwner: "), ==, 2);
    g_assert_cmpuint(count(&at, AUDIT_UID), ==, 4);
    assert_says("gpu pool " ADDRESS " slurm", 0, "", "");
    assert_entry(&at, "SetPool: " ADDRESS " ok by ");
    iterate_until_said(at.all, "Pool local -> slurm");
    close_audited(&at);
}

/* A repeated request makes nothing, and a tried one neither. */
static void test_nothing_made(void)
{
    static const char asked[] = "{'Owner': <'slurm:c:1'>, 'Part': <'0'>, 'Door': <'native'>, "
                                "'Vram': <uint64 1073741824>%s}";
    g_autofree char *once = g_strdup_printf(asked, "");
    g_autofree char *first = g_strdup_printf("[%s]", once);
    g_autofree char *more =
        g_strdup_printf("[%s, {'Owner': <'slurm:c:1'>, 'Part': <'1'>, 'Door': <'native'>, "
                        "'Vram': <uint64 1073741824>}]",
                        once);
    g_autofree char *tried = g_strdup_printf(asked, ", 'DryRun': <true>");
    g_autofree char *trial = g_strdup_printf("[%s]", tried);
    Audited at;

    open_audited(&at);
    assert_call("CreateSlices", first);
    g_assert_cmpuint(count(&at, "MESSAGE=CreateSlices: "), ==, 1);
    assert_call("CreateSlices", first);
    assert_call("CreateSlices", trial);
    g_assert_cmpuint(count(&at, "MESSAGE=CreateSlices: "), ==, 1);
    assert_call("CreateSlices", more);
    g_assert_cmpuint(count(&at, "MESSAGE=CreateSlices: "), ==, 2);
    close_audited(&at);
}

/* A held finding, and its end by a call, which is one entry. */
static void test_health(void)
{
    Audited at;

    open_audited(&at);
    file_tree_write(at.host.root, "/sys/devices/" PLACE "/aer_dev_fatal",
                    "Undefined 0\nTOTAL_ERR_FATAL 1\n");
    agent_refresh(at.host.agent);
    assert_entry(&at, "found: " ADDRESS " ok by health: Healthy yes -> no; HealthReasons - -> ");
    agent_refresh(at.host.agent);
    assert_says("gpu clear " ADDRESS, 0, "", "");
    assert_entry(&at, "ClearHealth: " ADDRESS " ok by ");
    g_assert_cmpuint(count(&at, AUDIT_USER "=health"), ==, 1);
    close_audited(&at);
}

#define SECOND ((gint64)G_USEC_PER_SEC)

static void test_memory_pressure(void)
{
    Audited at;
    FakeSystemd systemd;
    HostRoot *root = shared_tree();

    file_tree_write(root, "/etc/vgpu/gpus.conf", "[gpu " ADDRESS "]\nmode=shared\nwater-mark=1G\n");
    file_tree_write(root, "/etc/vgpu/types.d/10-test.conf",
                    "[type vgpu-half]\nvram=4G\nclass=best-effort\n");
    make_vgpu(root);
    open_tree(&at, root);
    fake_systemd_start(&systemd, at.host.daemon);
    file_tree_write(root, "/sys/devices/" PLACE "/mem_info_vram_used", "17000000000\n");
    for (gint64 second = 1; second <= 21; second += 10)
        pressure_watch_look(meter_pressure(at.host.meter), second * SECOND);
    assert_entry(&at, "evicted: " UUID " ok by memory-pressure: Engine ready -> stopped\n");
    g_assert_cmpstr(systemd.stopped->str, ==, "vgpu-engine@" UUID ".service\n");
    assert_no_user(&at);
    fake_systemd_stop(&systemd);
    close_audited(&at);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/audit/schedule", test_schedule);
    g_test_add_func("/audit/gpus-conf", test_gpus_conf);
    g_test_add_func("/audit/libvirt", test_libvirt);
    g_test_add_func("/audit/no-reply", test_no_reply);
    g_test_add_func("/audit/container", test_container);
    g_test_add_func("/audit/systemd", test_systemd);
    g_test_add_func("/audit/recovery", test_recovery);
    g_test_add_func("/audit/mdevctl", test_mdevctl);
    g_test_add_func("/audit/kernel", test_kernel);
    g_test_add_func("/audit/gpu", test_gpu);
    g_test_add_func("/audit/owner", test_owner);
    g_test_add_func("/audit/nothing-made", test_nothing_made);
    g_test_add_func("/audit/suspension", test_suspension);
    g_test_add_func("/audit/health", test_health);
    g_test_add_func("/audit/memory-pressure", test_memory_pressure);
    return g_test_run();
}
