/* SPDX-License-Identifier: MIT */
/*
 * Debian's mdevctl, with our callout as it is installed (but under the sanitizers), on a file tree,
 * beside vgpud. Only what the kernel would do is missing: a start that nothing is against makes no
 * device, and ends at its first attribute.
 */
#include <gio/gio.h>
#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/bus.h"
#include "tests/unit/file_tree.h"
#include "tests/unit/host-agent/agent_on_bus.h"
#include "tests/unit/host-agent/recorded_host.h"

#define CALLOUT AGENT_OUT "/../mdevctl-plugins/test/mdev-vgpu"
#define MDEVCTL "/usr/bin/mdevctl"
#define UUID    "c0ffee00-0000-4000-8000-000000000001"
#define UUID2   "c0ffee00-0000-4000-8000-000000000002"
#define GPU     "0000:02:00.0"
#define HALF    "amdgpu-vgpu-half"
#define PATH    "pci0000:00/0000:00:01.0/0000:02:00.0"
#define VGPU    "/sys/devices/" PATH "/" UUID "/vgpu/"
#define DEFINED "/etc/mdevctl.d/" GPU "/" UUID

static const char types[] = "[type vgpu-full]\nvram=1/1\n"
                            "[type vgpu-half]\nvram=1/2\nweight=400\n";

/* What mdevctl wants to see below its root. */
static HostRoot *tree_new(void)
{
    HostRoot *root = recorded_host_new("shared");
    g_autofree char *dir = root_path(root, "", NULL);
    g_autofree char *scripts = root_path(root, "/usr/lib/mdevctl/scripts.d/", NULL);
    g_autofree char *callouts = g_strconcat(scripts, "callouts", NULL);
    g_autofree char *notifiers = g_strconcat(scripts, "notifiers", NULL);
    g_autofree char *link = g_strconcat(callouts, "/mdev-vgpu", NULL);
    g_autofree char *definitions = root_path(root, "/etc/mdevctl.d", NULL);

    g_assert_cmpint(g_mkdir_with_parents(callouts, 0755), ==, 0);
    g_assert_cmpint(g_mkdir_with_parents(notifiers, 0755), ==, 0);
    g_assert_cmpint(g_mkdir_with_parents(definitions, 0755), ==, 0);
    g_assert_cmpint(symlink(CALLOUT, link), ==, 0);
    file_tree_write(root, "/etc/vgpu/types.d/10-test.conf", types);
    file_tree_write(root,
                    "/sys/class/mdev_bus/" GPU "/mdev_supported_types/" HALF "/available_instances",
                    "1\n");
    g_setenv("MDEVCTL_ENV_ROOT", dir, TRUE);
    return root;
}

static void add_vgpu(const AgentOnBus *at)
{
    recorded_host_add_vgpu(
        at->root, PATH, UUID, HALF,
        "state=device=running engine=ready|failure=|vram_bytes=4294967296|"
        "window_bytes=268435456|weight=400|cap=50|priority=1|display=1|requests=1|"
        "tenant=|class=|oversubscribe_bytes=|doorbells=1|interrupts=1|engine_losses=0");
    agent_update_vgpu(at->agent, UUID);
}

static void open_host(AgentOnBus *at)
{
    agent_on_bus_open_tree(at, tree_new());
}

static void assert_run(const char *program, const char *args, int status, const char *out,
                       const char *err)
{
    g_autofree char *line = g_strdup_printf("%s %s", program, args);
    Said said = run_beside(line);

    g_test_message("%s: %d\n%s%s", line, said.status, said.out, said.err);
    g_assert_cmpint(said.status, ==, status);
    g_assert_nonnull(strstr(said.out, out));
    g_assert_nonnull(strstr(said.err, err));
    said_clear(&said);
}

static void assert_mdevctl(const char *args, int status, const char *err)
{
    assert_run(MDEVCTL, args, status, "", err);
}

static gboolean file_exists(const AgentOnBus *at, const char *path)
{
    g_autofree char *full = root_path(at->root, path, NULL);

    return g_file_test(full, G_FILE_TEST_EXISTS);
}

static void assert_file(const AgentOnBus *at, const char *path, const char *text)
{
    g_autofree char *full = root_path(at->root, path, NULL);
    g_autofree char *found = NULL;

    g_assert_true(g_file_get_contents(full, &found, NULL, NULL));
    g_test_message("%s: %s", path, found);
    g_assert_nonnull(strstr(found, text));
}

/* A file of the tree, to be named on a command line; to be freed. */
static char *put_text(const AgentOnBus *at, const char *text)
{
    file_tree_write(at->root, "/device.json", text);
    return root_path(at->root, "/device.json", NULL);
}

static void test_whose(void)
{
    AgentOnBus at;
    const char *const get = "-e get -a capabilities -s none -u " UUID " -p " GPU;
    g_autofree char *ours = g_strconcat("-t " HALF " ", get, NULL);
    g_autofree char *others = g_strconcat("-t i915-GVTg_V5_4 ", get, NULL);
    g_autofree char *nearly = g_strconcat("-t vgpu-half ", get, NULL);

    open_host(&at);
    assert_run(CALLOUT, ours, 0, "\"version\":2", "");
    assert_run(CALLOUT, others, 2, "", "");
    assert_run(CALLOUT, nearly, 2, "", "");
    assert_run(CALLOUT, "-t " HALF, 1, "", "is run by mdevctl");
    assert_run(CALLOUT, "-t " HALF " -e pre -a stop -s none -u " UUID " -p " GPU, 0, "", "");
    /* A type that its file has lost is still that of the vGPUs that there are. */
    add_vgpu(&at);
    file_tree_write(at.root, "/etc/vgpu/types.d/10-test.conf", "[type other]\nvram=1/1\n");
    assert_run(CALLOUT, ours, 0, "\"version\":2", "");
    agent_on_bus_close(&at);
}

static void add_attribute(const char *name, const char *value, const char *err)
{
    g_autofree char *args =
        g_strdup_printf("modify -u " UUID " --addattr %s --value=%s", name, value);

    assert_mdevctl(args, 1, err);
}

/* Bad input gives an error that says what is right, and the definition stays unchanged. */
static void test_attributes_refused(void)
{
    AgentOnBus at;

    open_host(&at);
    assert_mdevctl("define -u " UUID " -p " GPU " -t " HALF, 0, "");
    add_attribute("vgpu/weight", "0", "vgpu/weight must be a number from 1 to 10000, not 0");
    add_attribute("vgpu/weight", "ten", "not ten");
    add_attribute("vgpu/cap", "101", "vgpu/cap must be a number from 1 to 100");
    add_attribute("vgpu/priority", "-1", "from 0 to 15, not -1");
    add_attribute("vgpu/vram_bytes", "8G", "bytes, without suffix, from 1 to");
    add_attribute("vgpu/window_bytes", "3145728", "must be a power of two");
    add_attribute("vgpu/colour", "blue", "the attribute vgpu/colour: those that can be set");
    add_attribute("vram", "1", "the attribute is vgpu/vram_bytes");
    add_attribute("weight", "1", "its name begins with vgpu/");
    add_attribute("tenant", "red", "its name begins with vgpu/");
    add_attribute("vgpu/tenant", "-red", "vgpu/tenant must be up to 63 letters, digits");
    add_attribute("vgpu/tenant", "", "for none, leave it out");
    add_attribute("vgpu/class", "firm", "must be guaranteed, burstable or best-effort: \"firm\"");
    add_attribute("vgpu/oversubscribe", "1", "the attribute is vgpu/oversubscribe_bytes");
    add_attribute("vgpu/oversubscribe_bytes", "1G", "bytes, without suffix, from 0 to");
    add_attribute("vgpu/cuda", "0", "the attribute vgpu/cuda: it belongs to the type: cuda= in");
    add_attribute("vgpu/policy", "equal", "policy= in /etc/vgpu/gpus.conf");
    add_attribute("policy", "equal", "policy= in /etc/vgpu/gpus.conf");
    add_attribute("display", "1", "its name begins with vgpu/");
    add_attribute("vgpu/display", "on", "vgpu/display must be a number from 0 to 1, not on");
    assert_file(&at, DEFINED, "\"attrs\": []");
    assert_mdevctl("modify -u " UUID " --addattr vgpu/weight --value 0x10", 0, "");
    assert_mdevctl("modify -u " UUID " --addattr power/control --value auto", 0, "");
    assert_says("-o json vgpu show " UUID, 0, "\"Weight\" : 16", "");
    agent_on_bus_close(&at);
}

static void test_room(void)
{
    AgentOnBus at;

    open_host(&at);
    assert_says("vgpu create full", 0, "closed", "");
    assert_mdevctl("define --auto -u " UUID " -p " GPU " -t " HALF, 1,
                   "mdev-vgpu: there is no room for vGPU " UUID ": on GPU " GPU " 0 MiB of");
    g_assert_false(file_exists(&at, DEFINED));
    assert_mdevctl("define -u " UUID " -p " GPU " -t " HALF, 0, "");
    assert_mdevctl("start -u " UUID, 1, "there is no room for vGPU " UUID);
    assert_mdevctl("modify -u " UUID " --auto", 1, "0 MiB of 15.98 GiB are free");
    assert_mdevctl("modify -u " UUID " --addattr vgpu/vram_bytes --value 68719476736", 1,
                   "can't have 64 GiB: all vGPUs of GPU " GPU " together have 15.98 GiB");
    assert_file(&at, DEFINED, "\"start\": \"manual\"");
    assert_mdevctl("modify --force -u " UUID " --auto", 0, "0 MiB of 15.98 GiB are free");
    assert_file(&at, DEFINED, "\"start\": \"auto\"");
    agent_on_bus_close(&at);
}

static void test_quota(void)
{
    AgentOnBus at;

    open_host(&at);
    assert_says("tenant set red --vram 4G", 0, "", "");
    assert_mdevctl("define -u " UUID " -p " GPU " -t " HALF, 0, "");
    assert_mdevctl("modify -u " UUID " --addattr vgpu/vram_bytes --value 1048576", 0, "");
    assert_says("vgpu set " UUID " --tenant red", 0, "", "");
    assert_mdevctl("start -u " UUID, 1, "Error removing device");
    assert_mdevctl("modify -u " UUID " --addattr vgpu/vram_bytes --value 8589934592", 0, "");
    assert_mdevctl("start -u " UUID, 1, "tenant red would have");
    agent_on_bus_close(&at);
}

/*
 * The driver learns a vGPU's memory before it is made, whoever runs mdevctl and whether or not
 * vgpud runs; and that one was not made. Without a number in the definition, or with a refusal, it
 * learns nothing.
 */
static void test_announced(void)
{
    AgentOnBus at;

    open_host(&at);
    file_tree_write(at.root, "/dev/vgpu-control", "");
    assert_mdevctl("define -u " UUID " -p " GPU " -t " HALF, 0, "");
    assert_mdevctl("start -u " UUID, 0, "");
    assert_file(&at, "/dev/vgpu-control", GPU " " HALF " c0ff..01 0\n");
    file_tree_write(at.root, "/dev/vgpu-control", "");
    assert_mdevctl("modify -u " UUID " --addattr vgpu/vram_bytes --value 1048576", 0, "");
    assert_mdevctl("start -u " UUID, 1, "Error removing device");
    assert_file(&at, "/dev/vgpu-control",
                GPU " " HALF " c0ff..01 1048576\n" GPU " " HALF " c0ff..01 0\n");

    file_tree_write(at.root, "/dev/vgpu-control", "");
    g_setenv("VGPU_CHECKED", "1", TRUE);
    assert_mdevctl("start -u " UUID, 1, "Error removing device");
    g_unsetenv("VGPU_CHECKED");
    assert_file(&at, "/dev/vgpu-control", "c0ff..01 1048576\n");

    file_tree_write(at.root, "/dev/vgpu-control", "none\n");
    assert_says("vgpu create full", 0, "closed", "");
    assert_mdevctl("start -u " UUID, 1, "there is no room for vGPU " UUID);
    assert_file(&at, "/dev/vgpu-control", "none\n");
    agent_on_bus_close(&at);
}

/* A tenant that the definition names has its quota enforced, like one that vgpuctl names. */
static void test_named_tenant(void)
{
    AgentOnBus at;

    open_host(&at);
    assert_says("tenant set red --vram 4G --vgpus 1", 0, "", "");
    assert_says("tenant set blue --model 10de:*", 0, "", "");
    assert_mdevctl("define -u " UUID " -p " GPU " -t " HALF, 0, "");
    add_attribute("vgpu/tenant", "ghost", "there is no tenant ghost");
    assert_file(&at, DEFINED, "\"attrs\": []");
    assert_mdevctl("modify -u " UUID " --addattr vgpu/tenant --value red", 0, "");
    assert_mdevctl("modify -u " UUID " --auto", 1, "mdev-vgpu: tenant red would have 7.992 GiB");
    assert_mdevctl("start -u " UUID, 1, "tenant red would have 7.992 GiB of VRAM, and may have");
    assert_mdevctl("modify -u " UUID " --addattr vgpu/vram_bytes --value 1048576", 0, "");
    assert_mdevctl("modify -u " UUID " --addattr vgpu/class --value best-effort", 0, "");
    assert_mdevctl("modify -u " UUID " --addattr vgpu/oversubscribe_bytes --value 4096", 0, "");
    assert_mdevctl("start -u " UUID, 1, "Error removing device");
    assert_says("-o json vgpu show " UUID, 0, "\"Tenant\" : \"red\"", "");
    assert_says("-o json vgpu show " UUID, 0, "\"Class\" : \"best-effort\"", "");
    assert_says("-o json vgpu show " UUID, 0, "\"Compute\" : 0", "");
    assert_says("-o json vgpu show " UUID, 0, "\"Oversubscribe\" : 4096", "");
    agent_on_bus_restart(&at);
    assert_says("-o json vgpu show " UUID, 0, "\"Tenant\" : \"red\"", "");
    /* What is defined would be the next tenant's of that name. */
    assert_says("tenant remove red", 6, "", "tenant red has 1 vGPUs and slices");
    assert_mdevctl("define -u " UUID2 " -p " GPU " -t " HALF, 0, "");
    assert_mdevctl("undefine -u " UUID2, 0, "");
    agent_on_bus_close(&at);
}

/* Nor gets it a second vGPU of one name. */
static void test_named_tenant_has_name(void)
{
    AgentOnBus at;

    open_host(&at);
    assert_says("tenant set red", 0, "", "");
    assert_says("tenant set blue", 0, "", "");
    assert_mdevctl("define -u " UUID " -p " GPU " -t " HALF, 0, "");
    assert_mdevctl("define -u " UUID2 " -p " GPU " -t " HALF, 0, "");
    assert_says("vgpu set " UUID " --tenant red --name web", 0, "", "");
    assert_says("vgpu set " UUID2 " --tenant blue --name web", 0, "", "");
    assert_mdevctl("modify -u " UUID2 " --addattr vgpu/tenant --value red", 1,
                   "the name web is taken; choose another name");
    assert_says("-o json vgpu show " UUID2, 0, "\"Tenant\" : \"blue\"", "");
    agent_on_bus_close(&at);
}

/* Models are checked if a vGPU is new, as by vgpuctl. */
static void test_named_tenant_model(void)
{
    AgentOnBus at;
    g_autofree char *file = NULL;
    g_autofree char *line = NULL;

    open_host(&at);
    assert_says("tenant set blue --model 10de:*", 0, "", "");
    file = put_text(&at, "{\"mdev_type\":\"" HALF
                         "\",\"start\":\"manual\",\"attrs\":[{\"vgpu/tenant\":\"blue\"}]}");
    line = g_strdup_printf("define -u " UUID " -p " GPU " --jsonfile %s", file);
    assert_mdevctl(line, 1, "the tenant may not use this model");
    g_assert_false(file_exists(&at, DEFINED));
    agent_on_bus_close(&at);
}

static void write_vgpu(const AgentOnBus *at, const char *name, const char *value)
{
    g_autofree char *path = g_strconcat(VGPU, name, NULL);

    file_tree_write(at->root, path, value);
    agent_update_vgpu(at->agent, UUID);
}

/* Values written to the driver are adopted; malformed or empty ones change nothing. */
static void test_written_tenant(void)
{
    AgentOnBus at;

    open_host(&at);
    add_vgpu(&at);
    assert_says("tenant set red --vram 4G", 0, "", "");
    assert_says("-o json vgpu show " UUID, 0, "\"Tenant\" : \"\"", "");
    assert_says("-o json vgpu show " UUID, 0, "\"Class\" : \"guaranteed\"", "");
    write_vgpu(&at, "tenant", "red\n");
    write_vgpu(&at, "class", "burstable\n");
    write_vgpu(&at, "oversubscribe_bytes", "8192\n");
    write_vgpu(&at, "tenant", "../x\n");
    write_vgpu(&at, "class", "firm\n");
    write_vgpu(&at, "oversubscribe_bytes", "9223372036854775807\n");
    assert_says("-o json vgpu show " UUID, 0, "\"Tenant\" : \"red\"", "");
    assert_says("-o json vgpu show " UUID, 0, "\"Class\" : \"burstable\"", "");
    assert_says("-o json vgpu show " UUID, 0, "\"Oversubscribe\" : 8192", "");
    write_vgpu(&at, "tenant", "\n");
    write_vgpu(&at, "class", "\n");
    write_vgpu(&at, "oversubscribe_bytes", "\n");
    agent_on_bus_restart(&at);
    assert_says("-o json vgpu show " UUID, 0, "\"Tenant\" : \"red\"", "");
    assert_says("-o json vgpu show " UUID, 0, "\"Oversubscribe\" : 8192", "");
    assert_says("tenant list", 0, "red     4.0 GiB of 4.0 GiB", "");
    agent_on_bus_close(&at);
}

/* Waits until vgpud has noticed it by itself, and shows @part. @status: of vgpuctl then. */
static void wait_for_vgpu(const char *uuid, int status, const char *part)
{
    g_autofree char *args = g_strdup_printf("-o json vgpu show %s", uuid);
    gboolean heard = FALSE;

    for (guint i = 0; !heard && i < 600; i++) {
        Said said = vgpuctl(args);

        heard = said.status == status && strstr(said.out, part);
        said_clear(&said);
        if (!heard)
            g_usleep(100000);
    }
    g_assert_true(heard);
}

/* Why there is no notifier: of what mdevctl does to definitions vgpud hears without one. */
static void test_heard_of(void)
{
    AgentOnBus at;

    open_host(&at);
    /* The first definition of a GPU makes a directory. */
    assert_mdevctl("define -u " UUID " -p " GPU " -t " HALF, 0, "");
    wait_for_vgpu(UUID, 0, "\"Autostart\" : false");
    assert_mdevctl("modify -u " UUID " --auto", 0, "");
    wait_for_vgpu(UUID, 0, "\"Autostart\" : true");
    assert_mdevctl("modify -u " UUID " --manual", 0, "");
    wait_for_vgpu(UUID, 0, "\"Autostart\" : false");
    assert_mdevctl("define --auto -u " UUID2 " -p " GPU " -t " HALF, 0, "");
    wait_for_vgpu(UUID2, 0, "\"Autostart\" : true");
    assert_mdevctl("modify -u " UUID2 " --addattr vgpu/weight --value 21", 0, "");
    wait_for_vgpu(UUID2, 0, "\"Weight\" : 21");
    assert_mdevctl("undefine -u " UUID, 0, "");
    wait_for_vgpu(UUID, 3, "");
    agent_on_bus_close(&at);
}

static void test_gpu_state(void)
{
    AgentOnBus at;

    open_host(&at);
    assert_mdevctl("define -u " UUID " -p 0000:03:00.0 -t " HALF, 0, "");
    assert_mdevctl("define -u " UUID " -p " GPU " -t " HALF, 0, "");
    assert_mdevctl("undefine -u " UUID " -p 0000:03:00.0", 0, "");
    vgpu_gpu_set_draining(host_gpu_interface(agent_host(at.agent), GPU), TRUE);
    assert_mdevctl("start -u " UUID, 1, "is being drained");
    vgpu_gpu_set_switching(host_gpu_interface(agent_host(at.agent), GPU), "shared");
    assert_mdevctl("start -u " UUID, 0, "");
    vgpu_gpu_set_draining(host_gpu_interface(agent_host(at.agent), GPU), FALSE);
    vgpu_gpu_set_switching(host_gpu_interface(agent_host(at.agent), GPU), "");
    vgpu_gpu_set_healthy(host_gpu_interface(agent_host(at.agent), GPU), FALSE);
    assert_mdevctl("start -u " UUID, 1, "is not healthy");
    agent_on_bus_close(&at);
}

/* What a running vGPU has makes a definition that has the same. */
static void test_round_trip(void)
{
    AgentOnBus at;
    g_autofree char *file = NULL;
    g_autofree char *line = NULL;
    Said running;
    Said defined;

    open_host(&at);
    add_vgpu(&at);
    write_vgpu(&at, "class", "best-effort\n");
    write_vgpu(&at, "oversubscribe_bytes", "0\n");
    running = run_beside(MDEVCTL " list -u " UUID " --dumpjson");
    g_assert_cmpint(running.status, ==, 0);
    g_assert_nonnull(strstr(running.out, "\"vgpu/vram_bytes\": \"4294967296\""));
    g_assert_nonnull(strstr(running.out, "\"vgpu/priority\": \"1\""));
    g_assert_nonnull(strstr(running.out, "\"vgpu/display\": \"1\""));
    g_assert_nonnull(strstr(running.out, "\"vgpu/class\": \"best-effort\""));
    g_assert_nonnull(strstr(running.out, "\"vgpu/oversubscribe_bytes\": \"0\""));
    g_assert_null(strstr(running.out, "vgpu/tenant"));
    file = put_text(&at, running.out);
    assert_mdevctl("define -u " UUID, 0, "");
    defined = run_beside(MDEVCTL " list --defined -u " UUID " --dumpjson");
    g_assert_cmpstr(defined.out, ==, running.out);
    said_clear(&defined);
    assert_mdevctl("undefine -u " UUID, 0, "");
    line = g_strdup_printf("define -u " UUID " -p " GPU " --jsonfile %s", file);
    assert_mdevctl(line, 0, "");
    defined = run_beside(MDEVCTL " list --defined -u " UUID " --dumpjson");
    g_assert_cmpstr(defined.out, ==, running.out);
    said_clear(&defined);
    said_clear(&running);
    agent_on_bus_close(&at);
}

static void modify_live(const AgentOnBus *at, const char *options, const char *attrs, int status,
                        const char *err)
{
    g_autofree char *json =
        g_strdup_printf("{\"mdev_type\":\"" HALF "\",\"start\":\"manual\",\"attrs\":[%s]}", attrs);
    g_autofree char *file = put_text(at, json);
    g_autofree char *args =
        g_strdup_printf("modify --live %s -u " UUID " --jsonfile %s", options, file);

    assert_mdevctl(args, status, err);
}

static void test_live(void)
{
    AgentOnBus at;
    g_autofree char *cap = NULL;

    open_host(&at);
    add_vgpu(&at);
    assert_mdevctl("define -u " UUID, 0, "");
    modify_live(&at, "", "{\"vgpu/weight\":\"7\"},{\"vgpu/vram_bytes\":\"8589934592\"}", 0, "");
    assert_file(&at, VGPU "weight", "7\n");
    assert_file(&at, VGPU "vram_bytes", "8589934592\n");
    assert_file(&at, VGPU "cap", "50\n");
    assert_file(&at, DEFINED, "\"vgpu/weight\": \"400\"");
    agent_update_vgpu(at.agent, UUID);
    assert_says("-o json vgpu show " UUID, 0, "\"Weight\" : 7", "");
    modify_live(&at, "", "{\"vgpu/weight\":\"8\"},{\"vgpu/vram_bytes\":\"17179869184\"}", 1,
                "together have 15.98 GiB");
    assert_file(&at, VGPU "weight", "7\n");
    assert_says("tenant set red --vram 4G", 0, "", "");
    modify_live(&at, "", "{\"vgpu/tenant\":\"ghost\"}", 1, "there is no tenant ghost");
    modify_live(&at, "", "{\"vgpu/tenant\":\"red\"}", 1, "tenant red would have 8 GiB");
    assert_file(&at, VGPU "tenant", "\n");
    modify_live(&at, "", "{\"vgpu/tenant\":\"red\"},{\"vgpu/vram_bytes\":\"4294967296\"}", 0, "");
    assert_file(&at, VGPU "tenant", "red\n");
    agent_update_vgpu(at.agent, UUID);
    assert_says("-o json vgpu show " UUID, 0, "\"Tenant\" : \"red\"", "");
    modify_live(&at, "", "{\"vgpu/class\":\"burstable\"}", 0, "");
    assert_file(&at, VGPU "class", "burstable\n");
    modify_live(&at, "--defined", "{\"vgpu/weight\":\"9\"},{\"vgpu/vram_bytes\":\"4294967296\"}", 0,
                "");
    assert_file(&at, VGPU "weight", "9\n");
    assert_file(&at, DEFINED, "\"vgpu/weight\": \"9\"");
    /* The driver refuses the second of two: the first is as it was. */
    cap = root_path(at.root, VGPU "cap", NULL);
    g_assert_cmpint(unlink(cap), ==, 0);
    g_assert_cmpint(g_mkdir(cap, 0755), ==, 0);
    modify_live(&at, "", "{\"vgpu/weight\":\"10\"},{\"vgpu/cap\":\"5\"}", 1,
                ": the driver does not accept cap=5");
    assert_file(&at, VGPU "weight", "9\n");
    agent_on_bus_close(&at);
}

static void check_definition(const char *parent, const char *options, int status, const char *err)
{
    g_autofree char *args = g_strdup_printf(
        "call --system --dest " VGPU_BUS_NAME " --object-path " VGPU_MANAGER_PATH
        " --method " VGPU_MANAGER_INTERFACE ".CheckDefinition " UUID " %s " HALF " \"%s\"",
        parent, options);

    assert_run("gdbus", args, status, "", err);
}

/* The method itself, as somebody else than the callout may call it. */
static void test_method(void)
{
    AgentOnBus at;

    open_host(&at);
    check_definition(GPU, "{'Action': <'start'>}", 0, "");
    check_definition(GPU, "{}", 1, "Action must be define, modify, start or live");
    check_definition(GPU, "{'Action': <'stop'>}", 1, "not \"stop\"");
    check_definition(GPU, "{'Action': <'start'>, 'Colour': <'blue'>}", 1, "Colour");
    check_definition(GPU, "{'Action': <'start'>, 'Vram': <uint64 0>}", 1, "Vram must be from 1");
    check_definition(GPU, "{'Action': <'start'>, 'Cap': <uint32 101>}", 1,
                     "Cap must be from 1 to 100");
    check_definition(GPU, "{'Action': <'start'>, 'Class': <'firm'>}", 1,
                     "Class must be guaranteed");
    check_definition(GPU, "{'Action': <'start'>, 'Tenant': <'../x'>}", 1,
                     "Tenant must be up to 63");
    check_definition(GPU, "{'Action': <'start'>, 'Tenant': <''>}", 0, "");
    check_definition("0000:77:00.0", "{'Action': <'start'>}", 0, "");
    assert_says("vgpu create half --uuid " UUID, 0, UUID, "");
    check_definition("0000:03:00.0", "{'Action': <'define'>}", 1, "on GPU " GPU " already");
    agent_on_bus_close(&at);
}

/* Runs mdevctl while nothing here moves, so that vgpud does not answer. The callout waits for two
 * seconds, and D-Bus by itself for 25. */
static void assert_alone(const char *args, const char *err)
{
    g_autofree char *line = g_strconcat(MDEVCTL " ", args, NULL);
    g_autofree char *said = NULL;
    int status;
    gint64 begin = g_get_monotonic_time();

    g_assert_true(g_spawn_command_line_sync(line, NULL, &said, &status, NULL));
    g_test_message("%s: %d after %" G_GINT64_FORMAT " ms\n%s", line, status,
                   (g_get_monotonic_time() - begin) / 1000, said);
    g_assert_true(g_spawn_check_wait_status(status, NULL));
    g_assert_nonnull(strstr(said, err));
    g_assert_cmpint(g_get_monotonic_time() - begin, <, 20 * G_USEC_PER_SEC);
}

/* vGPUs come and go without vgpud, which is not even started. */
static void test_without_agent(void)
{
    AgentOnBus at;

    open_host(&at);
    assert_says("vgpu create full", 0, "closed", "");
    assert_alone("define --auto -u " UUID " -p " GPU " -t " HALF,
                 "vgpud does not answer; the driver");
    g_bus_unown_name(at.owner);
    while (g_main_context_iteration(NULL, FALSE))
        ;
    assert_alone("modify -u " UUID " --addattr vgpu/weight --value 3", "vgpud can't be reached");
    g_setenv("DBUS_SYSTEM_BUS_ADDRESS", "unix:path=/nowhere", TRUE);
    assert_alone("modify -u " UUID " --addattr vgpu/weight --value 4", "vgpud can't be reached");
    assert_file(&at, DEFINED, "\"vgpu/weight\": \"4\"");
    at.owner = g_bus_own_name_on_connection(at.bus, VGPU_BUS_NAME, G_BUS_NAME_OWNER_FLAGS_NONE,
                                            NULL, NULL, NULL, NULL);
    agent_on_bus_close(&at);
}

/* vgpud's own mdevctl: while it runs vgpud answers, and what vgpud has decided it is not asked
 * again. */
static void test_own_mdevctl(void)
{
    AgentOnBus at;
    g_autofree char *old = g_strdup(g_getenv("PATH"));

    open_host(&at);
    add_vgpu(&at);
    assert_mdevctl("define -u " UUID, 0, "");
    g_setenv("PATH", "/usr/bin:/bin", TRUE);
    assert_says("vgpu set " UUID " --weight 5", 1, "", "an operation works on vGPU " UUID);
    assert_file(&at, VGPU "weight", "400\n");
    g_setenv(VGPU_CHECKED_ENV, "1", TRUE);
    assert_says("vgpu set " UUID " --weight 5", 0, "", "");
    assert_file(&at, VGPU "weight", "5\n");
    assert_file(&at, DEFINED, "\"vgpu/weight\": \"5\"");
    g_unsetenv(VGPU_CHECKED_ENV);
    g_setenv("PATH", old, TRUE);
    agent_on_bus_close(&at);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/mdevctl/whose", test_whose);
    g_test_add_func("/mdevctl/attributes-refused", test_attributes_refused);
    g_test_add_func("/mdevctl/room", test_room);
    g_test_add_func("/mdevctl/announced", test_announced);
    g_test_add_func("/mdevctl/quota", test_quota);
    g_test_add_func("/mdevctl/named-tenant", test_named_tenant);
    g_test_add_func("/mdevctl/named-tenant-has-name", test_named_tenant_has_name);
    g_test_add_func("/mdevctl/named-tenant-model", test_named_tenant_model);
    g_test_add_func("/mdevctl/written-tenant", test_written_tenant);
    g_test_add_func("/mdevctl/heard-of", test_heard_of);
    g_test_add_func("/mdevctl/gpu-state", test_gpu_state);
    g_test_add_func("/mdevctl/round-trip", test_round_trip);
    g_test_add_func("/mdevctl/live", test_live);
    g_test_add_func("/mdevctl/method", test_method);
    g_test_add_func("/mdevctl/without-agent", test_without_agent);
    g_test_add_func("/mdevctl/own-mdevctl", test_own_mdevctl);
    return g_test_run();
}
