/* SPDX-License-Identifier: MIT */
/* Containers' slices: made, changed, removed by vgpuctl; what CDI says of them; the hook as a
 * program. */
#include <gio/gio.h>
#include <glib/gstdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent_on_bus.h"
#include "cdi_spec.h"
#include "fake_kernel.h"
#include "fake_systemd.h"
#include "file_tree.h"
#include "recorded_host.h"

#define UUID     "c0ffee00-0000-4000-8000-000000000001"
#define UUID2    "c0ffee00-0000-4000-8000-000000000002"
#define ADDRESS  "0000:02:00.0"
#define CDI_PATH "/run/cdi/mdev-vgpu.json"
#define LIBRARY  "/usr/lib/x86_64-linux-gnu/mdev-vgpu/libvgpu_governor.so"

static const char types[] = "[type vgpu-full]\nvram=1/1\n"
                            "[type vgpu-half]\nvram=1/2\nweight=400\n";

/* vgpu-engine-user, which writes down how it was called. */
static void add_user_program(const char *root)
{
    static const char path[] = "/usr/lib/mdev-vgpu/vgpu-engine-user";
    g_autofree char *full = g_strconcat(root, path, NULL);

    file_tree_write(root, path, "#!/bin/sh\necho \"$@\" >>\"$0.log\"\n");
    g_assert_cmpint(g_chmod(full, 0755), ==, 0);
}

static char *shared_tree(void)
{
    char *root = recorded_host_new("shared");

    file_tree_write(root, "/etc/vgpu/types.d/10-test.conf", types);
    file_tree_write(root, "/usr/share/vulkan/implicit_layer.d/VkLayer_vgpu_governor.json",
                    "{\"layer\": {\"library_path\": \"" LIBRARY "\"}}");
    add_user_program(root);
    return root;
}

static void open_shared(AgentOnBus *at)
{
    agent_on_bus_open_tree(at, shared_tree());
}

static gboolean exists(const AgentOnBus *at, const char *path)
{
    g_autofree char *full = g_strconcat(at->root, path, NULL);

    return g_file_test(full, G_FILE_TEST_EXISTS);
}

static char *text_of(const AgentOnBus *at, const char *path)
{
    g_autofree char *full = g_strconcat(at->root, path, NULL);
    char *text = NULL;

    g_file_get_contents(full, &text, NULL, NULL);
    return text;
}

static void assert_in_file(const AgentOnBus *at, const char *path, const char *part)
{
    g_autofree char *text = text_of(at, path);

    g_assert_nonnull(text);
    g_test_message("%s:\n%s", path, text);
    g_assert_nonnull(strstr(text, part));
}

static void assert_not_in_file(const AgentOnBus *at, const char *path, const char *part)
{
    g_autofree char *text = text_of(at, path);

    g_assert_true(!text || !strstr(text, part));
}

#define SHARE "/run/vgpu/governor/" ADDRESS "/slices/" UUID ".conf"

static void test_create(void)
{
    AgentOnBus at;

    open_shared(&at);
    assert_says("slice list", 0, "This host has no slice", "");
    assert_says("slice create half --door native --name web --uuid " UUID " --cap 30", 0,
                UUID "  web   native  " ADDRESS "  8.0 GiB  -     guaranteed", "");
    assert_says("slice list", 0, UUID, "");
    assert_says("slice show web", 0, "Type:              amdgpu-vgpu-half", "");
    assert_says("vgpu list", 0, "This host has no vGPU.", "");
    assert_says("vgpu show " UUID, 3, "", "there is no vGPU");
    assert_says("vgpu remove " UUID, 3, "", "there is no vGPU");
    assert_in_file(&at, SHARE, "[slice]\nweight=400\ncap=30\nhard=true\n");
    g_assert_true(exists(&at, "/run/vgpu/containers/" UUID "/slice"));
    g_assert_true(exists(&at, "/run/vgpu/slices/" UUID));
    assert_says("slice set web --cap 100 --vram 4G", 0, "", "");
    assert_in_file(&at, SHARE, "vram=4294967296\n");
    assert_in_file(&at, SHARE, "hard=false\n");
    agent_on_bus_restart(&at);
    assert_says("slice list", 0, "4.0 GiB", "");
    assert_in_file(&at, SHARE, "vram=4294967296\n");
    assert_says("slice remove web --dry-run", 0, "", "");
    assert_says("slice remove WEB", 3, "", "there is no slice WEB");
    assert_says("slice remove web", 0, "", "");
    g_assert_false(exists(&at, SHARE));
    g_assert_false(exists(&at, "/run/vgpu/containers/" UUID));
    g_assert_false(exists(&at, "/run/vgpu/slices/" UUID));
    g_assert_false(exists(&at, CDI_PATH));
    agent_on_bus_close(&at);
}

static void test_bad_requests(void)
{
    AgentOnBus at;

    open_shared(&at);
    assert_says("slice create half", 2, "", "--door is missing");
    assert_says("slice create half --door back", 2, "", "Door must be native, guarded or vfio");
    assert_says("slice create half --door vm", 2, "", "Door must be native, guarded or vfio");
    assert_says("slice create --door native", 2, "", "Type, or Vram, is missing");
    assert_says("slice create --door vfio --vram 2G", 2, "", "Type is missing");
    assert_says("slice create half --door native --name a/b", 2, "", "Name must be");
    assert_says("slice create half --door native --name " UUID, 2, "", "Name must be");
    assert_says("slice create half --door native --window 256M", 2, "", "are for vGPUs");
    assert_says("slice create third --door native", 3, "", "has a type \"third\"");
    assert_says("slice create half --door native --name web", 0, "web", "");
    assert_says("slice create half --door native --name web", 6, "",
                "there is a slice web already");
    assert_says("slice set web --vram 17G", 7, "", "stays as it is");
    agent_on_bus_close(&at);
}

/* vGPUs and slices have one ledger and one set of quotas. */
static void test_ledger(void)
{
    AgentOnBus at;

    open_shared(&at);
    assert_says("slice create --door native --vram 10G --uuid " UUID, 0, "10.0 GiB", "");
    assert_says("-o json slice show " UUID, 0, "\"Weight\" : 500", "");
    assert_says("vgpu create half", 7, "", "5.984 GiB of 15.98 GiB are free");
    assert_says("slice create half --door guarded", 7, "", "5.984 GiB of 15.98 GiB are free");
    assert_says("-o json gpu show 02:00.0", 0, "\"PromisedVram\" : 10737418240", "");
    assert_says("tenant set red --vram 12G --vgpus 2", 0, "", "");
    assert_says("slice set " UUID " --tenant red", 0, "", "");
    assert_says("tenant list", 0, "10.0 GiB of 12.0 GiB", "");
    assert_says("slice create --door native --vram 3G --tenant red", 7, "",
                "tenant red would have 13 GiB of VRAM");
    assert_says("slice create --door guarded --vram 1G --tenant red", 0, "red", "");
    assert_says("tenant remove red", 6, "", "tenant red has 2");
    agent_on_bus_restart(&at);
    assert_says("vgpu create half", 7, "", "4.984 GiB of 15.98 GiB are free");
    agent_on_bus_close(&at);
}

static const char native[] = "{\n"
                             "  \"cdiVersion\" : \"0.5.0\",\n"
                             "  \"kind\" : \"mdev-vgpu.org/slice\",\n"
                             "  \"devices\" : [\n"
                             "    {\n"
                             "      \"name\" : \"" UUID "\",\n"
                             "      \"containerEdits\" : {\n"
                             "        \"deviceNodes\" : [\n"
                             "          {\n"
                             "            \"path\" : \"/dev/dri/renderD128\",\n"
                             "            \"permissions\" : \"rw\"\n"
                             "          }\n"
                             "        ],\n"
                             "        \"env\" : [\n"
                             "          \"VGPU_GOVERNOR=1\",\n"
                             "          \"VGPU_GOVERNOR_REQUIRED=1\",\n"
                             "          \"VGPU_GOVERNOR_SOCKET=/run/vgpu/governor/governor.sock\"\n"
                             "        ],\n"
                             "        \"mounts\" : [\n"
                             "          {\n"
                             "            \"hostPath\" : \"/run/vgpu/containers/" UUID "/slice\",\n"
                             "            \"containerPath\" : \"/run/vgpu/governor\",\n"
                             "            \"options\" : [\n"
                             "              \"ro\",\n"
                             "              \"nosuid\",\n"
                             "              \"nodev\",\n"
                             "              \"bind\"\n"
                             "            ]\n"
                             "          },\n"
                             "          {\n"
                             "            \"hostPath\" : \"" LIBRARY "\",\n"
                             "            \"containerPath\" : \"" LIBRARY "\",\n"
                             "            \"options\" : [\n"
                             "              \"ro\",\n"
                             "              \"nosuid\",\n"
                             "              \"nodev\",\n"
                             "              \"bind\"\n"
                             "            ]\n"
                             "          },\n"
                             "          {\n"
                             "            \"hostPath\" : "
                             "\"/usr/share/vulkan/implicit_layer.d/VkLayer_vgpu_governor.json\",\n"
                             "            \"containerPath\" : "
                             "\"/usr/share/vulkan/implicit_layer.d/VkLayer_vgpu_governor.json\",\n"
                             "            \"options\" : [\n"
                             "              \"ro\",\n"
                             "              \"nosuid\",\n"
                             "              \"nodev\",\n"
                             "              \"bind\"\n"
                             "            ]\n"
                             "          }\n"
                             "        ],\n"
                             "        \"hooks\" : [\n"
                             "          {\n"
                             "            \"hookName\" : \"createRuntime\",\n"
                             "            \"path\" : \"/usr/lib/mdev-vgpu/vgpu-container-hook\",\n"
                             "            \"args\" : [\n"
                             "              \"vgpu-container-hook\",\n"
                             "              \"claim\",\n"
                             "              \"" UUID "\"\n"
                             "            ],\n"
                             "            \"timeout\" : 10\n"
                             "          },\n"
                             "          {\n"
                             "            \"hookName\" : \"poststop\",\n"
                             "            \"path\" : \"/usr/lib/mdev-vgpu/vgpu-container-hook\",\n"
                             "            \"args\" : [\n"
                             "              \"vgpu-container-hook\",\n"
                             "              \"release\",\n"
                             "              \"" UUID "\"\n"
                             "            ],\n"
                             "            \"timeout\" : 10\n"
                             "          }\n"
                             "        ]\n"
                             "      }\n"
                             "    }\n"
                             "  ]\n"
                             "}\n";

static void test_cdi(void)
{
    AgentOnBus at;
    g_autofree char *text = NULL;
    g_autofree char *copy = NULL;

    open_shared(&at);
    assert_says("cdi list", 0, "This host has no device", "");
    assert_says("cdi generate", 3, "", "no device for containers");
    g_assert_false(exists(&at, CDI_PATH));
    assert_says("slice create half --door native --uuid " UUID, 0, UUID, "");
    text = text_of(&at, CDI_PATH);
    g_assert_cmpstr(text, ==, native);
    assert_says("cdi generate", 0, native, "");
    copy = g_strconcat("cdi generate --file ", at.root, "/copy.json", NULL);
    assert_says(copy, 0, "", "");
    assert_in_file(&at, "/copy.json", native);
    assert_says("slice create --vram 1G --door guarded --name db --uuid " UUID2, 0, "db", "");
    assert_says("cdi list", 0,
                "mdev-vgpu.org/slice=" UUID "\nmdev-vgpu.org/slice=" UUID2
                "\nmdev-vgpu.org/slice=db\n",
                "");
    assert_in_file(&at, CDI_PATH, "\"VN_DEBUG=vtest\"");
    assert_in_file(&at, CDI_PATH, "\"VTEST_SOCKET_NAME=/run/vgpu/vtest.sock\"");
    assert_in_file(&at, CDI_PATH, "\"/run/vgpu/guard/" UUID2 "/vtest.sock\"");
    assert_says("slice remove " UUID, 0, "", "");
    assert_not_in_file(&at, CDI_PATH, "native");
    assert_not_in_file(&at, CDI_PATH, "renderD128");
    assert_says("slice remove db", 0, "", "");
    g_assert_false(exists(&at, CDI_PATH));
    agent_on_bus_close(&at);
}

/* Without the governor's layer nobody is given the GPU's own node. */
static void test_no_layer(void)
{
    AgentOnBus at;
    char *root = recorded_host_new("shared");

    file_tree_write(root, "/etc/vgpu/types.d/10-test.conf", types);
    agent_on_bus_open_tree(&at, root);
    assert_says("slice create half --door native", 0, "native", "");
    g_assert_false(exists(&at, CDI_PATH));
    agent_on_bus_close(&at);
}

static void test_vfio(void)
{
    AgentOnBus at;

    open_shared(&at);
    assert_says("slice create half --door vfio --name vm --uuid " UUID, 0, "vfio", "");
    assert_says("vgpu list", 0, UUID, "");
    g_assert_true(exists(&at, "/etc/mdevctl.d/" ADDRESS "/" UUID));
    /* mdevctl as the test has it makes no group. */
    g_assert_false(exists(&at, CDI_PATH));
    file_tree_link(at.root, "/sys/devices/pci0000:00/0000:00:01.0/" ADDRESS "/" UUID "/iommu_group",
                   "/sys/kernel/iommu_groups/16");
    agent_refresh(at.agent);
    assert_in_file(&at, CDI_PATH, "\"path\" : \"/dev/vfio/vfio\"");
    assert_in_file(&at, CDI_PATH, "\"path\" : \"/dev/vfio/16\"");
    assert_not_in_file(&at, CDI_PATH, "GOVERNOR");
    agent_on_bus_restart(&at);
    assert_says("slice list", 0, "vm    vfio", "");
    assert_says("slice set vm --weight 7", 0, "", "");
    assert_says("-o json vgpu show " UUID, 0, "\"Weight\" : 7", "");
    assert_says("slice remove vm", 0, "", "");
    assert_says("vgpu list", 0, "This host has no vGPU.", "");
    agent_on_bus_close(&at);
}

static void wait_for(const GString *calls, const char *part)
{
    for (guint i = 0; !strstr(calls->str, part); i++) {
        g_assert_cmpuint(i, <, 1000);
        g_main_context_iteration(NULL, FALSE);
        g_usleep(10000);
    }
}

static void test_guards(void)
{
    AgentOnBus at;
    FakeSystemd systemd;

    open_shared(&at);
    fake_systemd_start(&systemd, at.daemon);
    assert_says("slice create half --door guarded --uuid " UUID, 0, "guarded", "");
    wait_for(systemd.started, "vgpu-guard@");
    assert_in_file(&at, "/run/vgpu/guard/" UUID ".conf", "[slice]\ngpu=" ADDRESS "\n");
    g_assert_cmpstr(systemd.started->str, ==, "vgpu-guard@" UUID ".service\n");
    g_assert_true(exists(&at, "/run/vgpu/guard/" UUID));
    g_assert_false(exists(&at, "/run/vgpu/containers/" UUID));
    agent_on_bus_restart(&at);
    assert_says("slice list", 0, UUID, "");
    assert_says("slice remove " UUID, 0, "", "");
    assert_says("slice list", 0, "no slice", "");
    wait_for(systemd.stopped, "vgpu-guard@" UUID ".service\n");
    assert_says("slice list", 0, "no slice", "");
    assert_in_file(&at, "/usr/lib/mdev-vgpu/vgpu-engine-user.log", "remove " UUID " guard\n");
    assert_in_file(&at, "/usr/lib/mdev-vgpu/vgpu-engine-user.log", "add " UUID " guard\n");
    g_assert_false(exists(&at, "/run/vgpu/guard/" UUID ".conf"));
    g_assert_false(exists(&at, "/run/vgpu/guard/" UUID));
    /* What a vgpud that was killed has left. */
    file_tree_write(at.root, "/run/vgpu/guard/" UUID2 ".conf", "[slice]\ngpu=" ADDRESS "\n");
    file_tree_write(at.root, "/run/vgpu/containers/" UUID2 "/slice/governor.sock", "");
    agent_on_bus_restart(&at);
    assert_says("slice list", 0, "no slice", "");
    wait_for(systemd.stopped, "vgpu-guard@" UUID2 ".service\n");
    g_assert_false(exists(&at, "/run/vgpu/containers/" UUID2));
    fake_systemd_stop(&systemd);
    agent_on_bus_close(&at);
}

/* A process that began at @started. */
static void process(const AgentOnBus *at, guint pid, guint started)
{
    g_autofree char *path = g_strdup_printf("/proc/%u/stat", pid);
    g_autofree char *text = g_strdup_printf(
        "%u (a b) c) S 1 1 1 0 -1 4194560 1 0 0 0 1 1 0 0 20 0 1 0 %u 1 1\n", pid, started);

    file_tree_write(at->root, path, text);
}

static void process_ends(const AgentOnBus *at, guint pid)
{
    g_autofree char *path = g_strdup_printf("%s/proc/%u/stat", at->root, pid);

    g_assert_cmpint(g_unlink(path), ==, 0);
}

/* The hook, with a container's state as its input. */
static void assert_hook(const AgentOnBus *at, const char *verb, const char *state, int status,
                        const char *err)
{
    g_autofree char *input = g_strconcat(at->root, "/state.json", NULL);
    g_autofree char *line =
        g_strdup_printf("sh -c '" CONTAINER_HOOK " %s " UUID " <%s'", verb, input);
    Said said;

    file_tree_write(at->root, "/state.json", state);
    said = run_beside(line);
    g_test_message("%s %s: %d %s", verb, state, said.status, said.err);
    g_assert_cmpint(said.status, ==, status);
    g_assert_nonnull(strstr(said.err, err));
    g_assert_cmpstr(said.out, ==, "");
    said_clear(&said);
}

#define WEB "{\"ociVersion\":\"1.0.2\",\"id\":\"web\",\"status\":\"created\",\"pid\":77}"
#define DB  "{\"id\":\"db\",\"pid\":78}"

static void test_hook(void)
{
    AgentOnBus at;

    open_shared(&at);
    process(&at, 77, 1000);
    process(&at, 78, 1001);
    assert_hook(&at, "claim", WEB, 1, "there is no slice " UUID);
    assert_says("slice create half --door native --uuid " UUID, 0, UUID, "");
    assert_hook(&at, "claim", "{}", 1, "no container's state");
    assert_hook(&at, "claim", "{", 1, "the container can't have slice " UUID);
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
    assert_says("slice show " UUID, 0, "Container:         web", "");
    assert_hook(&at, "release", WEB, 0, "");
    assert_says("slice show " UUID, 0, "Container:         -", "");
    assert_hook(&at, "claim", DB, 0, "");
    assert_says("slice remove " UUID " --force", 0, "", "");
    assert_hook(&at, "release", DB, 0, "");
    agent_on_bus_close(&at);
}

/* Of the doors with one socket a container has one slice. */
static void test_two_in_one(void)
{
    AgentOnBus at;
    static const char second[] =
        "sh -c 'echo \"{\\\"id\\\":\\\"web\\\",\\\"pid\\\":77}\" | " CONTAINER_HOOK " claim " UUID2
        "'";
    Said said;

    open_shared(&at);
    process(&at, 77, 1000);
    assert_says("slice create half --door native --uuid " UUID, 0, UUID, "");
    assert_says("slice create --vram 1G --door guarded --uuid " UUID2, 0, UUID2, "");
    assert_hook(&at, "claim", WEB, 0, "");
    said = run_beside(second);
    g_assert_cmpint(said.status, ==, 1);
    g_assert_nonnull(strstr(said.err, "has slice " UUID " already"));
    said_clear(&said);
    agent_on_bus_close(&at);
}

/* Nobody tells, as when a machine's runtime is killed; or the same number is another process by
 * now. */
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
    assert_says("slice show " UUID, 0, "Container:         -", "");
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

/* Guards let go of a GPU that is to be something else, and come back with it. */
static void test_guards_and_modes(void)
{
    AgentOnBus at;
    FakeSystemd systemd;

    open_shared(&at);
    fake_kernel_use(at.root);
    fake_systemd_start(&systemd, at.daemon);
    process(&at, 77, 1000);
    assert_says("slice create half --door guarded --uuid " UUID, 0, "guarded", "");
    wait_for(systemd.started, "vgpu-guard@");
    assert_hook(&at, "claim", WEB, 0, "");
    assert_says("gpu mode 02:00.0 host", 6, "", "container web has slice " UUID);
    g_assert_null(strstr(systemd.stopped->str, "vgpu-guard@"));
    assert_hook(&at, "release", WEB, 0, "");
    assert_says("gpu mode 02:00.0 host", 0, "", "");
    wait_for(systemd.stopped, "vgpu-guard@" UUID ".service\n");
    g_string_truncate(systemd.started, 0);
    assert_says("gpu mode 02:00.0 shared", 0, "", "");
    wait_for(systemd.started, "vgpu-guard@" UUID ".service\n");
    assert_says("cdi list", 0, UUID, "");
    fake_systemd_stop(&systemd);
    agent_on_bus_close(&at);
}

/* A GPU that is drained, or to be something else, lets nobody in, and is not taken from who has it.
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

static void assert_without_agent(const AgentOnBus *at, const char *why)
{
    gint64 begin = g_get_monotonic_time();

    assert_hook(at, "claim", WEB, 1, why);
    assert_hook(at, "release", WEB, 0, why);
    assert_hook(at, "release", WEB, 0, "by vgpud later");
    g_assert_cmpint(g_get_monotonic_time() - begin, <, 3 * 3 * G_USEC_PER_SEC);
}

/* vgpud that is not there: a container doesn't start, and ends all the same. */
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

/* Users of the tenant get through to the socket, others don't. */
static void test_directories(void)
{
    AgentOnBus at;
    g_autofree char *outer = NULL;
    struct stat status;

    open_shared(&at);
    assert_says("tenant set red --user root --user nobody --user nosuchuser", 0, "", "");
    assert_says("slice create half --door native --tenant red --uuid " UUID, 0, UUID, "");
    outer = g_strconcat(at.root, "/run/vgpu/containers/" UUID, NULL);
    g_assert_cmpint(g_stat(outer, &status), ==, 0);
    /* With an ACL the group's bits are its mask. */
    g_assert_cmpuint(status.st_mode & 0777, ==, 0710);
    assert_says("slice set " UUID " --tenant ''", 0, "", "");
    g_assert_cmpint(g_stat(outer, &status), ==, 0);
    g_assert_cmpuint(status.st_mode & 0777, ==, 0700);
    agent_on_bus_close(&at);
}

static void test_metrics(void)
{
    AgentOnBus at;
    gsize length;
    g_autofree char *text = NULL;

    open_shared(&at);
    process(&at, 77, 1000);
    assert_says("tenant set red", 0, "", "");
    assert_says("slice create --vram 4G --door native --name web --tenant red --uuid " UUID, 0,
                "web", "");
    assert_hook(&at, "claim", WEB, 0, "");
    text = scrape_text(agent_scrape(at.agent), &length);
    g_assert_nonnull(strstr(text, "vgpu_slice_info{slice=\"" UUID "\",gpu=\"" ADDRESS
                                  "\",tenant=\"red\",name=\"web\",door=\"native\","
                                  "class=\"guaranteed\",container=\"web\"} 1\n"));
    g_assert_nonnull(strstr(text, "vgpu_slice_vram_promised_bytes{slice=\"" UUID "\",gpu=\"" ADDRESS
                                  "\",tenant=\"red\"} 4294967296\n"));
    g_assert_nonnull(strstr(text, "vgpu_tenant_vgpus{tenant=\"red\"} 1\n"));
    /* No arbiter tells. */
    g_assert_null(strstr(text, "vgpu_slice_processes{"));
    g_assert_null(strstr(text, "vgpu_vgpu_info{"));
    usage_sampler_sample(agent_usage(at.agent), 3600);
    assert_says("report --tenant red", 0, "native", "");
    agent_on_bus_close(&at);
}

static void test_names(void)
{
    g_assert_true(slice_name_valid("web"));
    g_assert_true(slice_name_valid("a.b-c_d9"));
    g_assert_false(slice_name_valid(""));
    g_assert_false(slice_name_valid("9web"));
    g_assert_false(slice_name_valid("web-"));
    g_assert_false(slice_name_valid("we b"));
    g_assert_false(slice_name_valid("web\n"));
    g_assert_false(slice_name_valid("c0ffee00-0000-4000-8000-000000000001"));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/slices/names", test_names);
    g_test_add_func("/slices/create", test_create);
    g_test_add_func("/slices/bad-requests", test_bad_requests);
    g_test_add_func("/slices/ledger", test_ledger);
    g_test_add_func("/slices/cdi", test_cdi);
    g_test_add_func("/slices/no-layer", test_no_layer);
    g_test_add_func("/slices/vfio", test_vfio);
    g_test_add_func("/slices/guards", test_guards);
    g_test_add_func("/slices/hook", test_hook);
    g_test_add_func("/slices/two-in-one", test_two_in_one);
    g_test_add_func("/slices/silent-end", test_silent_end);
    g_test_add_func("/slices/ephemeral", test_ephemeral);
    g_test_add_func("/slices/modes", test_modes);
    g_test_add_func("/slices/guards-and-modes", test_guards_and_modes);
    g_test_add_func("/slices/no-vgpud", test_no_vgpud);
    g_test_add_func("/slices/directories", test_directories);
    g_test_add_func("/slices/metrics", test_metrics);
    return g_test_run();
}
