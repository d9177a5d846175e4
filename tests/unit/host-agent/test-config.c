/* SPDX-License-Identifier: MIT */
/*
 * /etc/vgpu's declarations against commands' settings, reading both again while NVIDIA's library
 * does not answer, the audit of changes, and copies of the database.
 */
#include <gio/gio.h>
#include <glib/gstdio.h>
#include <string.h>

#include "host-agent/daemon/host/audit.h"
#include "lib/bus.h"
#include "lib/database.h"
#include "lib/systemd.h"
#include "tests/unit/file_tree.h"
#include "tests/unit/host-agent/agent_on_bus.h"
#include "tests/unit/host-agent/fake_kernel.h"
#include "tests/unit/host-agent/fake_systemd.h"
#include "tests/unit/host-agent/recorded_host.h"

#define UUID "c0ffee00-0000-4000-8000-000000000001"
#define GPU  "0000:02:00.0"

static const char types[] = "[type vgpu-full]\nvram=1/1\n"
                            "[type vgpu-half]\nvram=1/2\nweight=400\n";

static void open_declared(AgentOnBus *at)
{
    HostRoot *root = recorded_host_new("shared");

    file_tree_write(root, "/etc/vgpu/types.d/10-test.conf", types);
    file_tree_write(root, "/etc/vgpu/gpus.conf",
                    "# The card below the window.\n[gpu " GPU "]\nmode=shared\novercommit=1.5\n");
    file_tree_write(root, "/etc/vgpu/tenants.d/10-teams.conf",
                    "[tenant red]\nvram=8G\ncompute=150\nmodels=1002:*\nusers=alice; bob\n"
                    "[tenant blue]\nvgpus=3\n");
    agent_on_bus_open_tree(at, root);
}

static char *text_of(const AgentOnBus *at, const char *path)
{
    g_autofree char *full = root_path(at->root, path, NULL);
    char *text = NULL;

    g_assert_true(g_file_get_contents(full, &text, NULL, NULL));
    return text;
}

static void test_declared(void)
{
    AgentOnBus at;

    open_declared(&at);
    assert_says("tenant list", 0,
                "red     0 of 8.0 GiB  0 of 150   0 of any  1002:*  alice bob  declared", "");
    assert_says("tenant show blue", 0, "vGPUs and slices:  0 of 3\n", "");
    assert_says("gpu show 02:00.0", 0, "Mode set by:          declared\n", "");
    assert_says("config diff", 0, "", "");
    assert_says("config export", 0, "Nothing is set by command", "");
    assert_says("vgpu create full --tenant red", 7, "", "may have 8 GiB");
    assert_says("tenant remove blue", 6, "", "cannot remove tenant blue: it is declared in ");
    file_tree_write(at.root, "/etc/vgpu/tenants.d/10-teams.conf", "[tenant red]\nvram=20G\n");
    assert_says("reload", 0, "", "");
    assert_says("vgpu create full --tenant red", 0, "red", "");
    assert_says("tenant show blue", 3, "", "there is no tenant blue");
    agent_on_bus_close(&at);
}

/* Commands' settings stay in force, over restarts too, until the declarations are applied. */
static void test_by_command(void)
{
    AgentOnBus at;

    open_declared(&at);
    assert_says("tenant set red --vram 4G", 0, "", "");
    assert_says("tenant set green --user carol", 0, "", "");
    agent_on_bus_restart(&at);
    assert_says("tenant show red", 0, "VRAM:              0 of 4.0 GiB\n", "");
    assert_says("tenant show red", 0, "Set by:            by command, declared otherwise\n", "");
    assert_says("tenant show green", 0, "Set by:            by command\n", "");
    assert_says("config diff", 1, "tenant red: as ", "2 settings differ from /etc/vgpu");
    assert_says("config diff", 1, "tenant green: set by command, and not declared\n", "");
    assert_says("config apply --dry-run", 0, "tenant red: as ", "");
    assert_says("tenant show red", 0, "0 of 4.0 GiB", "");
    assert_says("config apply", 0, "tenant red: as ", "");
    assert_says("tenant show red", 0, "Set by:            declared\n", "");
    assert_says("tenant show red", 0, "0 of 8.0 GiB", "");
    assert_says("tenant show green", 0, "Set by:            by command\n", "");
    agent_on_bus_close(&at);
}

/* Nothing is changed if one tenant has more than is declared. */
static void test_apply_refused(void)
{
    AgentOnBus at;

    open_declared(&at);
    assert_says("tenant set red --vram 0 --compute 0", 0, "", "");
    assert_says("tenant set blue --vgpus 1", 0, "", "");
    assert_says("vgpu create full --tenant red", 0, "red", "");
    assert_says("config apply", 7, "", "tenant red");
    assert_says("tenant show blue", 0, "0 of 1\n", "");
    file_tree_write(at.root, "/etc/vgpu/tenants.d/10-teams.conf", "[tenant red]\nvram=lots\n");
    assert_says("config diff", 2, "", "vram=lots is not allowed: it must be a size");
    assert_says("reload", 2, "", "vram=lots is not allowed");
    assert_says("tenant show red", 0, "of any", "");
    agent_on_bus_close(&at);
}

static void test_mode(void)
{
    AgentOnBus at;
    g_autofree char *state = NULL;

    open_declared(&at);
    assert_says("gpu mode 02:00.0 host", 0, "", "");
    assert_says("gpu show 02:00.0", 0, "Mode set by:          by command, declared otherwise\n",
                "");
    assert_says("config diff", 1,
                "GPU " GPU
                ": mode shared as /etc/vgpu/gpus.conf declares it, not host as set by command\n",
                "");
    assert_says("config apply", 0, "GPU " GPU ": mode shared", "");
    state = text_of(&at, "/var/lib/vgpu/gpus.conf");
    g_assert_null(strstr(state, GPU));
    iterate_until_told("gpu list", GPU "  shared");
    assert_says("config diff", 0, "", "");
    agent_on_bus_close(&at);
}

/* A pool that gpus.conf does not give is no difference from it, and is not forgotten. */
static void test_pool(void)
{
    AgentOnBus at;
    g_autofree char *dir = NULL;
    g_autofree char *line = NULL;
    g_autofree char *gpus = NULL;

    open_declared(&at);
    dir = root_path(at.root, "", NULL);
    assert_says("gpu pool 02:00.0 kubernetes", 0, "", "");
    agent_on_bus_restart(&at);
    assert_says("gpu show 02:00.0", 0, "Pool set by:          by command\n", "");
    assert_says("config diff", 1,
                "GPU " GPU ": pool kubernetes is set by command, and not declared\n", "");
    assert_says("config apply", 0, "", "");
    assert_says("gpu show 02:00.0", 0, "Pool:                 kubernetes\n", "");
    file_tree_write(at.root, "/etc/vgpu/gpus.conf", "[gpu " GPU "]\nmode=shared\npool=slurm\n");
    assert_says("reload", 0, "", "");
    assert_says("gpu show 02:00.0", 0, "Pool set by:          by command, declared otherwise\n",
                "");
    assert_says("config diff", 1,
                "GPU " GPU ": pool slurm as /etc/vgpu/gpus.conf declares it, not kubernetes as set "
                "by command\n",
                "1 setting differs from /etc/vgpu");
    assert_says("config apply --dry-run", 0, "pool slurm as", "");
    assert_says("gpu show 02:00.0", 0, "Pool:                 kubernetes\n", "");
    assert_says("config apply", 0, "pool slurm as", "");
    assert_says("gpu show 02:00.0", 0, "Pool:                 slurm\n", "");
    assert_says("gpu show 02:00.0", 0, "Pool set by:          declared\n", "");
    assert_says("config diff", 0, "", "");
    file_tree_write(at.root, "/etc/vgpu/gpus.conf", "# Nothing.\n");
    assert_says("gpu pool 02:00.0 kubernetes", 0, "", "");
    line = g_strdup_printf("--root %s config export %s/etc/vgpu", dir, dir);
    assert_says(line, 0, "wrote ", "");
    gpus = text_of(&at, "/etc/vgpu/gpus.conf");
    g_assert_nonnull(strstr(gpus, "[gpu " GPU "]\npool=kubernetes\nmode=shared\n"));
    assert_says("config apply", 0, "", "");
    assert_says("config diff", 0, "", "");
    assert_says("gpu show 02:00.0", 0, "Pool set by:          declared\n", "");
    agent_on_bus_close(&at);
}

/*
 * The export declares the present state: when it is applied, nothing changes, and no command's
 * setting is left.
 */
static void test_export(void)
{
    AgentOnBus at;
    g_autofree char *dir = NULL;
    g_autofree char *line = NULL;
    g_autofree char *gpus = NULL;
    g_autofree char *teams = NULL;

    open_declared(&at);
    dir = root_path(at.root, "", NULL);
    assert_says("gpu mode 02:00.0 host", 0, "", "");
    assert_says("tenant set red --vram 1536M", 0, "", "");
    assert_says("tenant set green --user carol", 0, "", "");
    line = g_strdup_printf("--root %s config export %s/etc/vgpu", dir, dir);
    assert_says(line, 0, "wrote ", "");
    gpus = text_of(&at, "/etc/vgpu/gpus.conf");
    g_assert_nonnull(strstr(gpus, "# The card below the window.\n"));
    g_assert_nonnull(strstr(gpus, "mode=host\novercommit=1.5\n"));
    teams = text_of(&at, "/etc/vgpu/tenants.d/10-teams.conf");
    g_assert_cmpstr(teams, ==,
                    "[tenant red]\nvram=1536M\ncompute=150\nmodels=1002:*\nusers=alice;bob\n"
                    "\n[tenant blue]\nvgpus=3\n");
    assert_says("config apply", 0, "", "");
    assert_says("config diff", 0, "", "");
    assert_says("tenant show red", 0, "VRAM:              0 of 1.5 GiB\n", "");
    assert_says("tenant show green", 0, "Set by:            declared\n", "");
    assert_says("gpu show 02:00.0", 0, "Mode set by:          declared\n", "");
    agent_on_bus_close(&at);
}

/* The number belongs to the mode: without it the GPU would be cut again, and otherwise. */
static void test_export_partitions(void)
{
    g_autofree char *dir = NULL;
    g_autofree char *line = NULL;
    AgentOnBus at;

    open_declared(&at);
    dir = root_path(at.root, "", NULL);
    file_tree_write(at.root, "/var/lib/vgpu/gpus.conf",
                    "[gpu " GPU "]\nmode=partitioned\npartitions=4\n");
    agent_refresh(at.agent);
    line = g_strdup_printf("--root %s config export", dir);
    assert_says(line, 0, "mode=partitioned\n", "");
    assert_says(line, 0, "partitions=4\n", "");
    agent_on_bus_close(&at);
}

/* A group that goes by the card is the GPU's. */
static void test_export_by_card(void)
{
    g_autofree char *dir = NULL;
    g_autofree char *line = NULL;
    g_autofree char *gpus = NULL;
    AgentOnBus at;

    open_declared(&at);
    dir = root_path(at.root, "", NULL);
    file_tree_write(at.root, "/sys/devices/pci0000:00/0000:00:01.0/" GPU "/unique_id", "1a2b\n");
    file_tree_write(at.root, "/etc/vgpu/gpus.conf", "[gpu uuid=1a2b]\nmode=shared\n");
    assert_says("reload", 0, "", "");
    assert_says("gpu show 02:00.0", 0, "Mode set by:          declared\n", "");
    assert_says("gpu mode 02:00.0 host", 0, "", "");
    line = g_strdup_printf("--root %s config export %s/etc/vgpu", dir, dir);
    assert_says(line, 0, "wrote ", "");
    gpus = text_of(&at, "/etc/vgpu/gpus.conf");
    g_assert_cmpstr(gpus, ==, "[gpu uuid=1a2b]\nmode=host\n");
    agent_on_bus_close(&at);
}

/* The file that a new tenant gets by its name may declare others. */
static void test_export_into(void)
{
    AgentOnBus at;
    g_autofree char *dir = NULL;
    g_autofree char *line = NULL;
    g_autofree char *printed = NULL;
    g_autofree char *green = NULL;

    open_declared(&at);
    dir = root_path(at.root, "", NULL);
    file_tree_write(at.root, "/etc/vgpu/tenants.d/green.conf",
                    "[tenant green-a]\nvgpus=1\n[tenant green-b]\nvgpus=2\n");
    assert_says("reload", 0, "", "");
    assert_says("tenant set green --user carol", 0, "", "");
    printed = g_strdup_printf("--root %s config export", dir);
    assert_says(printed, 0,
                "[tenant green-a]\nvgpus=1\n\n[tenant green-b]\nvgpus=2\n\n[tenant green]\n", "");
    assert_says("tenant set green-b --vram 1G", 0, "", "");
    line = g_strdup_printf("--root %s config export %s/etc/vgpu", dir, dir);
    assert_says(line, 0, "wrote ", "");
    green = text_of(&at, "/etc/vgpu/tenants.d/green.conf");
    g_assert_cmpstr(green, ==,
                    "[tenant green-a]\nvgpus=1\n\n[tenant green-b]\nvram=1G\nvgpus=2\n\n[tenant "
                    "green]\nusers=carol\n");
    assert_says("config apply", 0, "", "");
    assert_says("config diff", 0, "", "");
    agent_on_bus_close(&at);
}

#define OTHER    "0000:04:00.0"
#define GIB      (G_GUINT64_CONSTANT(1) << 30)
#define BOTH     "[gpu " GPU "]\nmode=shared\nvram=8G\n[gpu " OTHER "]\nmode=shared\n"
#define LESS     "[gpu " GPU "]\nmode=shared\nvram=8G\n[gpu " OTHER "]\nmode=shared\nvram=4G\n"
#define NO_BLUE  "[tenant red]\nvram=8G\n"
#define TEAMS    "/etc/vgpu/tenants.d/10-teams.conf"
#define TYPES    "/etc/vgpu/types.d/10-test.conf"
#define UPDATE   "update " GPU " "
#define OTHER_OF "update " OTHER " "

static void assert_lines(const char *expected)
{
    g_autofree char *done = fake_kernel_done();

    g_assert_cmpstr(done, ==, expected);
}

/* A reload brings the driver what the files say, and fails if the driver refuses that. */
static void test_driver(void)
{
    AgentOnBus at;

    open_declared(&at);
    file_tree_write(at.root, TYPES, "[type vgpu-full]\nvram=1/1\n[type vgpu-half]\nvram=1/4\n");
    /* Without the module there is nobody to tell. */
    assert_says("reload", 0, "", "");
    fake_kernel_use(at.root);
    assert_says("reload", 0, "", "");
    assert_lines(UPDATE "25744637952 vgpu-full vgpu-half\n");
    assert_says("config apply --dry-run", 0, "", "");
    assert_lines(UPDATE "25744637952 vgpu-full vgpu-half\n");
    assert_says("vgpu create half --uuid " UUID, 0, "", "");
    assert_says("tenant set red --vram 4G", 0, "", "");
    file_tree_write(at.root, TYPES, "[type vgpu-half]\nvram=1/4\n[type more]\nvram=1/8\n");
    file_tree_write(at.root, TEAMS, NO_BLUE);
    assert_says("reload", 1, "", "types can't be added or taken away while it has vGPUs: ");
    assert_says("tenant show blue", 0, "0 of 3\n", "");
    assert_says("config apply", 1, "", "types can't be added or taken away");
    assert_says("tenant show red", 0, "VRAM:              0 of 4.0 GiB\n", "");
    /* vgpud knows the type of before, and not the new one. */
    assert_says("vgpu create more", 3, "", "more");
    assert_says("vgpu create full --dry-run", 7, "", "");
    assert_says("vgpu remove " UUID, 0, "", "");
    assert_says("config apply", 0, "tenant red: as ", "");
    assert_lines(UPDATE "25744637952 vgpu-full vgpu-half\n" UPDATE "25744637952 vgpu-half more\n");
    assert_says("tenant show blue", 3, "", "there is no tenant blue");
    agent_on_bus_close(&at);
}

/* If one GPU's driver refuses it, the GPUs before it are as they were. */
static void test_driver_refuses(void)
{
    AgentOnBus at;

    open_declared(&at);
    recorded_host_add(at.root, "pci0000:00/0000:00:04.0/" OTHER " class=0x038000 vendor=0x1002 "
                               "device=0x73bf driver=amdgpu group=9 vram=17163091968 "
                               "types=amdgpu-vgpu-full,amdgpu-vgpu-half");
    file_tree_write(at.root, "/etc/vgpu/gpus.conf",
                    "[gpu " GPU "]\nmode=shared\n[gpu " OTHER "]\nmode=shared\n");
    agent_on_bus_restart(&at);
    fake_kernel_use(at.root);
    fake_kernel_promise(OTHER, 6 * GIB);
    file_tree_write(at.root, "/etc/vgpu/gpus.conf", LESS);
    assert_says("reload", 1, "", "GPU " OTHER ": its vGPUs were promised more memory than");
    assert_lines(UPDATE "8589934592 vgpu-full vgpu-half\n" UPDATE
                        "17163091968 vgpu-full vgpu-half\n");
    assert_says("gpu show " GPU, 0, "VRAM:", "");
    /* A mistake that shows only when the types meet the GPU changes none. */
    fake_kernel_use(at.root);
    file_tree_write(at.root, TYPES, "[type vgpu-half]\ngpu=0000:09:*\nvram=1/2\n");
    assert_says("reload", 2, "", "no type is for it");
    assert_lines("");
    file_tree_write(at.root, TYPES, types);
    file_tree_write(at.root, "/etc/vgpu/gpus.conf", BOTH);
    assert_says("reload", 0, "", "");
    assert_lines(UPDATE "8589934592 vgpu-full vgpu-half\n" OTHER_OF
                        "17163091968 vgpu-full vgpu-half\n");
    agent_on_bus_close(&at);
}

static void collect(const char *const *fields, void *data)
{
    GString *all = data;

    for (; *fields; fields++)
        g_string_append_printf(all, "%s\n", *fields);
}

/*
 * A change is in the journal with caller, object, old and new state; a call that changes nothing is
 * not.
 */
static void test_audit(void)
{
    AgentOnBus at;
    g_autoptr(GString) all = g_string_new(NULL);

    open_declared(&at);
    audit_set_sink(collect, all);
    assert_says("vgpu list", 0, "", "");
    assert_says("vgpu create half --dry-run", 0, "", "");
    assert_says("vgpu set " UUID " --weight 3", 3, "", "");
    g_assert_cmpstr(all->str, ==, "");
    assert_says("vgpu create half --name web --uuid " UUID, 0, "", "");
    iterate_until_said(all,
                       AUDIT_METHOD "=CreateSlices\n" AUDIT_OBJECT "=" UUID "\n" AUDIT_USER "=");
    iterate_until_said(all, AUDIT_BEFORE "=\n" AUDIT_AFTER "=Gpu=" GPU "; Type=amdgpu-vgpu-half; ");
    assert_says("vgpu set web --weight 7", 0, "", "");
    iterate_until_said(all, "MESSAGE=SetSlice: " UUID " ok by ");
    iterate_until_said(all, ": Weight 400 -> 7\n");
    assert_says("tenant set red --vram 9G", 0, "", "");
    iterate_until_said(all, ": Vram 8589934592 -> 9663676416\n");
    assert_says("gpu drain 02:00.0", 0, "", "");
    iterate_until_said(all, AUDIT_OBJECT "=" GPU "\n");
    iterate_until_said(all, ": Draining no -> yes\n");
    assert_says("vgpu remove web", 0, "", "");
    iterate_until_said(all, "MESSAGE=RemoveSlice: " UUID " ok by ");
    iterate_until_said(all, "=Gpu=" GPU);
    assert_says("config apply", 0, "", "");
    iterate_until_said(all, AUDIT_METHOD "=ApplyConfig\n" AUDIT_OBJECT "=/etc/vgpu\n");
    audit_set_sink(NULL, NULL);
    agent_on_bus_close(&at);
}

static void test_audit_command(void)
{
    AgentOnBus at;
    g_autofree char *asked = NULL;

    open_declared(&at);
    assert_says("audit", 0, "alice  SetVgpu       " UUID "  ok      Weight 400 -> 7\n", "");
    assert_says("audit", 0, "bob    RemoveTenant  red", "");
    assert_says("audit -o json --user alice --since -2h -n 5", 0,
                "\"After\" : \"Weight=7; Cap=100\"", "");
    asked = text_of(&at, "/journalctl-asked");
    g_assert_nonnull(
        strstr(asked, "MESSAGE_ID=" AUDIT_MESSAGE_ID " _SYSTEMD_UNIT=vgpud.service\n"));
    g_assert_nonnull(strstr(asked, "--since=-2h " AUDIT_USER "=alice --lines=5\n"));
    file_tree_write(at.root, "/journalctl-fails", "");
    assert_says("audit", 1, "", "cannot read the journal: No journal files");
    agent_on_bus_close(&at);
}

static void test_difference(void)
{
    static const char *const cases[][3] = {
        {"", "A=1", "created"},       {"A=1", "", "removed"},
        {"A=1; B=2", "A=1; B=2", ""}, {"A=1; B=2; AB=3", "A=5; B=2; AB=4", "A 1 -> 5; AB 3 -> 4"},
        {"A=", "A=x", "A - -> x"},
    };

    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *text = audit_difference(cases[i][0], cases[i][1]);

        g_assert_cmpstr(text, ==, cases[i][2]);
    }
}

#define NVIDIA   "0000:18:00.0"
#define PLACE    "/sys/devices/pci0000:15/" NVIDIA
#define READINGS "/run/vgpu/readings/" NVIDIA
#define SHARE    "/run/vgpu/governor/" NVIDIA "/slices/" UUID ".conf"

static void write_readings(HostRoot *root)
{
    file_tree_write(root, READINGS, "[gpu]\ntime=1\nmemory=17179869184\n");
}

/* One of NVIDIA's, which is shared. */
static void open_nvidia(AgentOnBus *at, FakeSystemd *systemd)
{
    HostRoot *root = recorded_host_new("empty");

    recorded_host_add(root, "pci0000:15/" NVIDIA " class=0x030200 vendor=0x10de device=0x2330 "
                            "driver=nvidia group=13 drm=card0,renderD128 "
                            "types=nvidia-vgpu-full,nvidia-vgpu-half");
    file_tree_write(root, "/etc/vgpu/types.d/10-test.conf", types);
    file_tree_write(root, "/etc/vgpu/gpus.conf", "[gpu " NVIDIA "]\nmode=shared\n");
    write_readings(root);
    agent_on_bus_open_tree(at, root);
    fake_systemd_start(systemd, at->daemon);
}

static gboolean is_told_of_slice(const AgentOnBus *at)
{
    g_autofree char *path = root_path(at->root, SHARE, NULL);

    return g_file_test(path, G_FILE_TEST_EXISTS);
}

/* Its memory is the same while its driver is bound, whether or not NVIDIA's library answers. */
static void test_gap_in_readings(void)
{
    AgentOnBus at;
    FakeSystemd systemd;

    open_nvidia(&at, &systemd);
    assert_says("slice create half --door native --uuid " UUID, 0, UUID, "");
    g_assert_true(is_told_of_slice(&at));
    root_remove(at.root, READINGS);
    assert_says("reload", 0, "", "");
    g_assert_true(is_told_of_slice(&at));
    assert_says("gpu show " NVIDIA, 0, "16.0 GiB (an earlier reading of NVIDIA's library)", "");
    assert_says("config apply", 0, "", "");
    assert_says("slice create half --door native", 0, "native", "");
    /* systemd gets all calls in their order. */
    unit_call(at.bus, "StartUnit", "last.service");
    iterate_until_said(systemd.started, "last.service\n");
    g_assert_null(strstr(systemd.stopped->str, "vgpu-arbiter@"));
    fake_systemd_stop(&systemd);
    agent_on_bus_close(&at);
}

/* It was asked for, and is not there: no systemd was on the bus then. */
static void test_stopped_arbiter(void)
{
    AgentOnBus at;
    FakeSystemd systemd;

    open_nvidia(&at, &systemd);
    g_assert_cmpstr(systemd.started->str, ==, "");
    assert_says("reload", 0, "", "");
    iterate_until_said(systemd.started, "vgpu-arbiter@" NVIDIA ".service\n");
    fake_systemd_stop(&systemd);
    agent_on_bus_close(&at);
}

/* vgpud starts in such a gap; what runs goes on, and the GPU is served when it is over. */
static void test_start_in_gap(void)
{
    AgentOnBus at;
    FakeSystemd systemd;

    open_nvidia(&at, &systemd);
    assert_says("slice create half --door native --uuid " UUID, 0, UUID, "");
    root_remove(at.root, READINGS);
    agent_on_bus_restart(&at);
    iterate_until_said(systemd.started, "vgpu-arbiter@" NVIDIA ".service\n");
    assert_says("reload", 0, "", "");
    assert_says("slice create half --door native", 3, "", "has a type \"half\"");
    g_assert_true(is_told_of_slice(&at));
    write_readings(at.root);
    agent_refresh(at.agent);
    assert_says("slice create half --door native", 0, "native", "");
    g_assert_null(strstr(systemd.stopped->str, "vgpu-arbiter@"));
    fake_systemd_stop(&systemd);
    agent_on_bus_close(&at);
}

/* A reload that leaves it without a type takes nothing from the work that runs. */
static void test_no_type(void)
{
    AgentOnBus at;
    FakeSystemd systemd;

    open_nvidia(&at, &systemd);
    assert_says("slice create half --door native --uuid " UUID, 0, UUID, "");
    file_tree_write(at.root, "/etc/vgpu/types.d/10-test.conf",
                    "[type vgpu-half]\nvram=1/2\ngpu=1002:*\n");
    assert_says("reload", 0, "", "");
    assert_says("slice create half --door native", 3, "", "has a type \"half\"");
    g_assert_true(is_told_of_slice(&at));
    unit_call(at.bus, "StartUnit", "last.service");
    iterate_until_said(systemd.started, "last.service\n");
    g_assert_null(strstr(systemd.stopped->str, "vgpu-arbiter@"));
    fake_systemd_stop(&systemd);
    agent_on_bus_close(&at);
}

/* Another GPU may be in its place when a driver is bound again. */
static void test_other_memory(void)
{
    AgentOnBus at;
    FakeSystemd systemd;

    open_nvidia(&at, &systemd);
    root_remove(at.root, READINGS);
    root_remove(at.root, PLACE "/driver");
    agent_refresh(at.agent);
    file_tree_link(at.root, PLACE "/driver", "../../../bus/pci/drivers/nvidia");
    agent_refresh(at.agent);
    assert_says("-o json gpu show " NVIDIA, 0, "\"Driver\" : \"nvidia\"", "");
    assert_says("-o json gpu show " NVIDIA, 0, "\"Vram\" : 0", "");
    file_tree_write(at.root, READINGS, "[gpu]\nmemory=8589934592\n");
    agent_refresh(at.agent);
    assert_says("gpu show " NVIDIA, 0, "8.0 GiB (NVIDIA's library)", "");
    fake_systemd_stop(&systemd);
    agent_on_bus_close(&at);
}

static void set_version(const AgentOnBus *at, const char *file, guint version)
{
    g_autofree char *sql = g_strdup_printf("PRAGMA user_version = %u", version);

    run_sql(at, file, sql, NULL);
}

/* vgpud's own database is as it was. */
static void assert_keeps_version(const AgentOnBus *at)
{
    int version = 0;

    run_sql(at, STATE_DB, "PRAGMA user_version", &version);
    g_assert_cmpint(version, ==, DATABASE_VERSION);
    g_assert_false(root_has(at->root, "/var/lib/vgpu/state.db.part"));
}

/* The log of the database that stays is kept: it may have what the database has not. */
static void assert_restore_fails(const AgentOnBus *at, const char *restore)
{
    g_autofree char *path = root_path(at->root, "/var/lib/vgpu/state.db", NULL);
    g_autofree char *aside = root_path(at->root, "/var/lib/vgpu/aside", NULL);
    g_autofree char *log = g_strconcat(path, "-wal", NULL);

    g_assert_cmpint(g_rename(path, aside), ==, 0);
    file_tree_write(at->root, "/var/lib/vgpu/state.db/in/the/way", "");
    file_tree_write(at->root, "/var/lib/vgpu/state.db-wal", "log");
    assert_says(restore, 1, "", "cannot write ");
    g_assert_true(g_file_test(log, G_FILE_TEST_EXISTS));
    g_unlink(log);
    root_remove(at->root, "/var/lib/vgpu/state.db/in/the/way");
    root_rmdir(at->root, "/var/lib/vgpu/state.db/in/the");
    root_rmdir(at->root, "/var/lib/vgpu/state.db/in");
    root_rmdir(at->root, "/var/lib/vgpu/state.db");
    g_assert_cmpint(g_rename(aside, path), ==, 0);
}

/* A backup is made while vgpud runs; it is restored only while vgpud does not run. */
static void test_database(void)
{
    AgentOnBus at;
    g_autofree char *dir = NULL;
    g_autofree char *backup = NULL;
    g_autofree char *restore = NULL;
    g_autofree char *junk = NULL;

    open_declared(&at);
    dir = root_path(at.root, "", NULL);
    backup = g_strdup_printf("--root %s database backup %s/copy.db", dir, dir);
    restore = g_strdup_printf("--root %s database restore %s/copy.db", dir, dir);
    junk = g_strdup_printf("--root %s database restore %s/etc/vgpu/gpus.conf", dir, dir);
    assert_says("tenant set green --user carol", 0, "", "");
    assert_says(backup, 0, "wrote ", "");
    assert_says("tenant remove green", 0, "", "");
    assert_says(restore, 6, "", "cannot restore the database while vgpud runs");
    agent_on_bus_stop(&at);
    assert_says(junk, 1, "", "cannot use ");
    set_version(&at, "/copy.db", 1000);
    assert_says(restore, 1, "", "copy.db: it is of a newer vgpud (version 1000, this one knows ");
    assert_keeps_version(&at);
    set_version(&at, "/copy.db", DATABASE_VERSION);
    assert_restore_fails(&at, restore);
    assert_says(restore, 0, "restored ", "");
    agent_on_bus_start(&at);
    assert_says("tenant show green", 0, "carol", "");
    agent_on_bus_close(&at);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/config/export-partitions", test_export_partitions);
    g_test_add_func("/config/export-by-card", test_export_by_card);
    g_test_add_func("/config/declared", test_declared);
    g_test_add_func("/config/by-command", test_by_command);
    g_test_add_func("/config/apply-refused", test_apply_refused);
    g_test_add_func("/config/mode", test_mode);
    g_test_add_func("/config/pool", test_pool);
    g_test_add_func("/config/export", test_export);
    g_test_add_func("/config/export-into", test_export_into);
    g_test_add_func("/config/driver", test_driver);
    g_test_add_func("/config/driver-refuses", test_driver_refuses);
    g_test_add_func("/config/audit", test_audit);
    g_test_add_func("/config/audit-command", test_audit_command);
    g_test_add_func("/config/difference", test_difference);
    g_test_add_func("/config/gap-in-readings", test_gap_in_readings);
    g_test_add_func("/config/start-in-gap", test_start_in_gap);
    g_test_add_func("/config/stopped-arbiter", test_stopped_arbiter);
    g_test_add_func("/config/no-type", test_no_type);
    g_test_add_func("/config/other-memory", test_other_memory);
    g_test_add_func("/config/database", test_database);
    return g_test_run();
}
