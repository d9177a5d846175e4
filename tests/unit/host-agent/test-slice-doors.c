/* SPDX-License-Identifier: MIT */
/* What containers get by each transport: CDI's specification, VFIO groups, guards. */
#include <acl/libacl.h>
#include <errno.h>
#include <glib/gstdio.h>
#include <sys/acl.h>
#include <sys/stat.h>

#include "host-agent/daemon/containers/transport.h"
#include "host-agent/daemon/host/accounts.h"
#include "tests/unit/file_tree.h"
#include "tests/unit/host-agent/fake_kernel.h"
#include "tests/unit/host-agent/nvidia_kit.h"
#include "tests/unit/host-agent/recorded_host.h"
#include "tests/unit/host-agent/slices_kit.h"

static const char native[] =
    "{\n"
    "  \"cdiVersion\" : \"0.5.0\",\n"
    "  \"kind\" : \"mdev-vgpu.org/slice\",\n"
    "  \"devices\" : [\n"
    "    {\n"
    "      \"name\" : \"" UUID "\",\n"
    "      \"containerEdits\" : {\n"
    "        \"deviceNodes\" : [\n"
    "          {\n"
    "            \"path\" : \"/dev/dri/renderD128\",\n"
    "            \"permissions\" : \"rw\",\n"
    "            \"fileMode\" : 438\n"
    "          }\n"
    "        ],\n"
    "        \"env\" : [\n"
    "          \"VGPU_GOVERNOR=1\",\n"
    "          \"VGPU_GOVERNOR_REQUIRED=1\",\n"
    "          \"VGPU_GOVERNOR_SLICES=/run/vgpu/slices\"\n"
    "        ],\n"
    "        \"mounts\" : [\n"
    "          {\n"
    "            \"hostPath\" : \"/run/vgpu/containers/" UUID "/slice\",\n"
    "            \"containerPath\" : \"/run/vgpu/slices/" ADDRESS "/" UUID "\",\n"
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
    "            \"hostPath\" : \"" MEMBER "\",\n"
    "            \"containerPath\" : \"" MEMBER "\",\n"
    "            \"options\" : [\n"
    "              \"ro\",\n"
    "              \"nosuid\",\n"
    "              \"nodev\",\n"
    "              \"bind\"\n"
    "            ]\n"
    "          },\n"
    "          {\n"
    "            \"hostPath\" : "
    "\"/run/vgpu/VkLayer_vgpu_governor.json\",\n"
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
    "            \"timeout\" : 40\n"
    "          },\n"
    "          {\n"
    "            \"hookName\" : \"createRuntime\",\n"
    "            \"path\" : \"/usr/lib/mdev-vgpu/vgpu-container-hook\",\n"
    "            \"args\" : [\n"
    "              \"vgpu-container-hook\",\n"
    "              \"restore-mounts\"\n"
    "            ],\n"
    "            \"timeout\" : 40,\n"
    "            \"env\" : [\n"
    "              \"LC_ALL=C.UTF-8\"\n"
    "            ]\n"
    "          },\n"
    "          {\n"
    "            \"hookName\" : \"poststop\",\n"
    "            \"path\" : \"/usr/lib/mdev-vgpu/vgpu-container-hook\",\n"
    "            \"args\" : [\n"
    "              \"vgpu-container-hook\",\n"
    "              \"release\",\n"
    "              \"" UUID "\"\n"
    "            ],\n"
    "            \"timeout\" : 40\n"
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
    g_autofree char *path = NULL;
    g_autofree char *copy = NULL;

    open_shared(&at);
    assert_says("cdi list", 0, "This host has no device", "");
    assert_says("cdi generate", 3, "", "no device for containers");
    g_assert_false(exists(&at, CDI_PATH));
    assert_says("slice create half --door native --uuid " UUID, 0, UUID, "");
    text = text_of(&at, CDI_PATH);
    g_assert_cmpstr(text, ==, native);
    /* It is enabled without a variable, which programs of "docker exec" do not have. */
    assert_in_file(&at, "/run/vgpu/VkLayer_vgpu_governor.json", LIBRARY);
    assert_not_in_file(&at, "/run/vgpu/VkLayer_vgpu_governor.json", "enable_environment");
    assert_says("cdi generate", 0, native, "");
    path = root_path(at.root, "/copy.json", NULL);
    copy = g_strconcat("cdi generate --file ", path, NULL);
    assert_says(copy, 0, "", "");
    assert_in_file(&at, "/copy.json", native);
    assert_says("slice create --vram 1G --door guarded --name db --uuid " UUID2, 0, "db", "");
    assert_says("cdi list", 0,
                "mdev-vgpu.org/slice=" UUID "\nmdev-vgpu.org/slice=" UUID2
                "\nmdev-vgpu.org/slice=db\n",
                "");
    assert_in_file(&at, CDI_PATH, "\"VN_DEBUG=vtest\"");
    assert_in_file(&at, CDI_PATH, "\"VTEST_SOCKET_NAME=/run/vgpu/vtest/db.sock\"");
    assert_in_file(&at, CDI_PATH, "\"/run/vgpu/guard/" UUID2 "/vtest.sock\"");
    assert_says("slice remove " UUID, 0, "", "");
    assert_not_in_file(&at, CDI_PATH, "native");
    assert_not_in_file(&at, CDI_PATH, "renderD128");
    assert_says("slice remove db", 0, "", "");
    g_assert_false(exists(&at, CDI_PATH));
    agent_on_bus_close(&at);
}

#define GUARDED_LAYER   "/usr/local/lib/mdev-vgpu/VkLayer_vgpu_guarded.json"
#define GUARDED_LIBRARY "/usr/local/lib/x86_64-linux-gnu/mdev-vgpu/libvgpu_guarded.so"

/* Programs of "docker exec" have no variables: a guarded slice is found by a mounted layer. */
static void test_guarded_layer(void)
{
    AgentOnBus at;
    HostRoot *root = shared_tree();

    file_tree_write(root, GUARDED_LAYER,
                    "{\"layer\": {\"library_path\": \"" GUARDED_LIBRARY "\"}}");
    agent_on_bus_open_tree(&at, root);
    assert_says("slice create half --door native --uuid " UUID, 0, UUID, "");
    assert_not_in_file(&at, CDI_PATH, "guarded");
    assert_says("slice create half --door guarded --uuid " UUID2, 0, UUID2, "");
    assert_in_file(&at, CDI_PATH, "\"hostPath\" : \"" GUARDED_LIBRARY "\"");
    assert_in_file(&at, CDI_PATH, "\"containerPath\" : \"" GUARDED_LIBRARY "\"");
    assert_in_file(&at, CDI_PATH, "\"hostPath\" : \"" GUARDED_LAYER "\"");
    assert_in_file(&at, CDI_PATH,
                   "\"containerPath\" : "
                   "\"/usr/share/vulkan/implicit_layer.d/VkLayer_vgpu_guarded.json\"");
    agent_on_bus_close(&at);
}

/* A GPU without CUDA gives a slice that says no door, or "auto", the door that binds all programs.
 */
static void test_auto(void)
{
    AgentOnBus at;

    open_shared(&at);
    assert_says("slice create half --uuid " UUID, 0, "guarded", "");
    assert_says("slice create half --door auto --uuid " UUID2, 0, "guarded", "");
    agent_on_bus_restart(&at);
    assert_says("-o json slice show " UUID2, 0, "\"Door\" : \"guarded\"", "");
    agent_on_bus_close(&at);
}

/* Without the governor's layer nobody gets the GPU's own node. */
static void test_no_layer(void)
{
    AgentOnBus at;
    HostRoot *root = recorded_host_new("shared");

    file_tree_write(root, "/etc/vgpu/types.d/10-test.conf", slices_types);
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
    /* The test's mdevctl makes no group. */
    g_assert_false(exists(&at, CDI_PATH));
    file_tree_link(at.root, "/sys/devices/pci0000:00/0000:00:01.0/" ADDRESS "/" UUID "/iommu_group",
                   "/sys/kernel/iommu_groups/16");
    agent_refresh(at.agent);
    assert_in_file(&at, CDI_PATH, "\"path\" : \"/dev/vfio/vfio\"");
    assert_in_file(&at, CDI_PATH, "\"path\" : \"/dev/vfio/16\"");
    assert_not_in_file(&at, CDI_PATH, "GOVERNOR");
    agent_on_bus_restart(&at);
    assert_says("slice list", 0, "vm    vfio", "");
    /* Its container has begun, and has not opened it yet. */
    recorded_host_remove_vgpu(at.root, UUID);
    recorded_host_add_vgpu(at.root, "pci0000:00/0000:00:01.0/" ADDRESS, UUID, "amdgpu-vgpu-half",
                           VGPU_ATTRIBUTES);
    agent_update_vgpu(at.agent, UUID);
    process(&at, 77, 1000);
    assert_hook(&at, "claim", WEB, 0, "");
    assert_says("slice stop vm", 6, "", "container web has it");
    assert_says("gpu mode 02:00.0 host", 6, "", "container web has slice " UUID);
    assert_hook(&at, "release", WEB, 0, "");
    assert_says("slice set vm --weight 7", 0, "", "");
    assert_says("-o json vgpu show " UUID, 0, "\"Weight\" : 7", "");
    assert_says("slice remove vm", 0, "", "");
    assert_says("vgpu list", 0, "This host has no vGPU.", "");
    /* The smallest type that has so much. */
    assert_says("slice create --door vfio --vram 3G --uuid " UUID, 0, "vfio", "");
    assert_says("-o json vgpu show " UUID, 0, "\"Vram\" : 3221225472", "");
    assert_says("-o json vgpu show " UUID, 0, "vgpu-half", "");
    assert_says("slice create --door vfio --vram 64G", 3, "",
                "no GPU of this host has a type with that much memory");
    assert_says("slice create --door vfio --vram 14G", 7, "", "");
    agent_on_bus_close(&at);
}

static void test_guards(void)
{
    AgentOnBus at;
    FakeSystemd systemd;

    open_shared(&at);
    fake_systemd_start(&systemd, at.daemon);
    assert_says("slice create half --door guarded --uuid " UUID, 0, "guarded", "");
    iterate_until_said(systemd.started, "vgpu-guard@");
    assert_in_file(&at, "/run/vgpu/guard/" UUID ".conf", "[slice]\ngpu=" ADDRESS "\n");
    g_assert_cmpstr(systemd.started->str, ==, "vgpu-guard@" UUID ".service\n");
    g_assert_true(exists(&at, "/run/vgpu/guard/" UUID));
    g_assert_false(exists(&at, "/run/vgpu/containers/" UUID));
    agent_on_bus_restart(&at);
    assert_says("slice list", 0, UUID, "");
    assert_says("slice remove " UUID, 0, "", "");
    assert_says("slice list", 0, "no slice", "");
    iterate_until_said(systemd.stopped, "vgpu-guard@" UUID ".service\n");
    assert_says("slice list", 0, "no slice", "");
    assert_in_file(&at, "/usr/lib/mdev-vgpu/vgpu-engine-user.log", "remove " UUID " guard\n");
    assert_in_file(&at, "/usr/lib/mdev-vgpu/vgpu-engine-user.log", "add " UUID " guard\n");
    g_assert_false(exists(&at, "/run/vgpu/guard/" UUID ".conf"));
    g_assert_false(exists(&at, "/run/vgpu/guard/" UUID));
    /* The remains of a killed vgpud. */
    file_tree_write(at.root, "/run/vgpu/guard/" UUID2 ".conf", "[slice]\ngpu=" ADDRESS "\n");
    file_tree_write(at.root, "/run/vgpu/containers/" UUID2 "/slice/governor.sock", "");
    agent_on_bus_restart(&at);
    assert_says("slice list", 0, "no slice", "");
    iterate_until_said(systemd.stopped, "vgpu-guard@" UUID2 ".service\n");
    g_assert_false(exists(&at, "/run/vgpu/containers/" UUID2));
    fake_systemd_stop(&systemd);
    agent_on_bus_close(&at);
}

#define USER_PROGRAM "/usr/lib/mdev-vgpu/vgpu-engine-user"

/* "slice create && podman run": when vgpuctl has ended, there is the socket that podman mounts. */
static void test_guard_awaited(void)
{
    AgentOnBus at;
    FakeSystemd systemd;
    g_autofree char *dir = NULL;
    g_autofree char *socket = NULL;
    g_autofree char *program = NULL;
    g_autofree char *line = NULL;

    open_shared(&at);
    fake_systemd_start(&systemd, at.daemon);
    file_tree_write(at.root, "/run/systemd/system/a.service", "");
    dir = root_path(at.root, "", NULL);
    line = g_strdup_printf("--root %s slice create half --door guarded --uuid " UUID, dir);
    socket = root_path(at.root, "/run/vgpu/guard/" UUID "/vtest.sock", NULL);
    program = g_strdup_printf("#!/bin/sh\nsleep 0.3\n: >%s\n", socket);
    file_tree_write(at.root, USER_PROGRAM, program);
    assert_says(line, 0, "guarded", "");
    g_assert_true(g_file_test(socket, G_FILE_TEST_EXISTS));
    fake_systemd_stop(&systemd);
    agent_on_bus_close(&at);
}

/* A guard whose user cannot be made, or has no program that makes it, is tried again by itself. */
static void test_guard_fails(void)
{
    AgentOnBus at;
    FakeSystemd systemd;
    g_autoptr(GString) log = g_string_new(NULL);
    g_autofree char *text = NULL, *program = NULL, *aside = NULL;

    open_shared(&at);
    fake_systemd_start(&systemd, at.daemon);
    take_log(log);
    text = text_of(&at, USER_PROGRAM);
    file_tree_write(at.root, USER_PROGRAM, "#!/bin/sh\necho 'mkdir: /run is full' >&2\nexit 1\n");
    assert_says("slice create half --door guarded --uuid " UUID, 0, "guarded", "");
    iterate_until_said(log, "slice " UUID " has no guard");
    g_assert_nonnull(strstr(log->str, "mkdir: /run is full"));
    g_assert_null(strstr(log->str, "in the package"));

    program = root_path(at.root, USER_PROGRAM, NULL);
    aside = g_strconcat(program, ".aside", NULL);
    g_string_truncate(log, 0);
    g_assert_cmpint(g_rename(program, aside), ==, 0);
    assert_says("reload", 0, "", "");
    iterate_until_said(log, "in the package vgpu-engine");

    g_assert_cmpint(g_rename(aside, program), ==, 0);
    file_tree_write(at.root, USER_PROGRAM, text);
    g_assert_null(strstr(systemd.started->str, "vgpu-guard@"));
    iterate_until_said(systemd.started, "vgpu-guard@" UUID ".service\n");
    end_log();
    fake_systemd_stop(&systemd);
    agent_on_bus_close(&at);
}

#define NO_LIMIT "<uint64 18446744073709551615>"
#define GUARD(uuid, cpu, weight, memory)                                                           \
    "('vgpu-guard@" uuid ".service', true, [('CPUQuotaPerSecUSec', " cpu                           \
    "), ('CPUWeight', " weight "), ('MemoryMax', " memory ")])\n"
#define CONTROL "/run/systemd/system.control/vgpu-guard@" UUID ".service.d/50-MemoryMax.conf"

/* Waits for a call, and forgets it. */
static void assert_set(FakeSystemd *systemd, const char *set)
{
    iterate_until_said(systemd->set, "\n");
    g_assert_cmpstr(systemd->set->str, ==, set);
    g_string_truncate(systemd->set, 0);
}

/* A guard has the limits that an engine has: of its type, or of its size. */
static void test_guard_limits(void)
{
    AgentOnBus at;
    FakeSystemd systemd;

    open_shared(&at);
    fake_systemd_start(&systemd, at.daemon);
    assert_says("slice create half --door guarded --uuid " UUID, 0, "guarded", "");
    assert_set(&systemd, GUARD(UUID, NO_LIMIT, "<uint64 400>", "<uint64 12876513280>"));
    file_tree_write(at.root, CONTROL, "");
    file_tree_write(at.root, "/etc/vgpu/types.d/10-test.conf",
                    "[type vgpu-half]\nvram=1/2\nweight=400\ncpu=150%\nmemory=2G\n");
    assert_says("reload", 0, "", "");
    assert_set(&systemd, GUARD(UUID, "<uint64 1500000>", "<uint64 400>", "<uint64 2147483648>"));
    assert_says("slice set " UUID " --weight 7", 0, "", "");
    assert_set(&systemd, GUARD(UUID, "<uint64 1500000>", "<uint64 7>", "<uint64 2147483648>"));

    /* Another guard, of which systemd knows nothing. */
    assert_says("tenant set red", 0, "", "");
    assert_says("slice set " UUID " --tenant red", 0, "", "");
    assert_set(&systemd, GUARD(UUID, "<uint64 1500000>", "<uint64 7>", "<uint64 2147483648>"));

    assert_says("slice create --door guarded --vram 1G --weight 100 --uuid " UUID2, 0, "", "");
    assert_set(&systemd, GUARD(UUID2, NO_LIMIT, NO_LIMIT, "<uint64 5368709120>"));
    fake_systemd_stop(&systemd);
    agent_on_bus_close(&at);
}

/* Another tenant gets another guard, and nobody's program is ended for it. */
static void test_guards_and_tenants(void)
{
    AgentOnBus at;
    FakeSystemd systemd;

    open_shared(&at);
    fake_systemd_start(&systemd, at.daemon);
    process(&at, 77, 1000);
    assert_says("tenant set red", 0, "", "");
    assert_says("tenant set blue", 0, "", "");
    assert_says("slice create half --door guarded --tenant red --uuid " UUID, 0, "guarded", "");
    iterate_until_said(systemd.started, "vgpu-guard@");
    g_string_truncate(systemd.started, 0);
    assert_says("slice set " UUID " --weight 7", 0, "", "");
    assert_hook(&at, "claim", WEB, 0, "");
    assert_says("slice set " UUID " --tenant blue", 6, "",
                "slice " UUID " is used by container web, so its tenant can't change");
    assert_hook(&at, "release", WEB, 0, "");
    g_assert_null(strstr(systemd.stopped->str, "vgpu-guard@"));
    assert_says("slice set " UUID " --tenant blue", 0, "", "");
    iterate_until_said(systemd.stopped, "vgpu-guard@" UUID ".service\n");
    iterate_until_said(systemd.started, "vgpu-guard@" UUID ".service\n");
    assert_in_file(&at, "/run/vgpu/guard/" UUID ".conf", "[slice]\ngpu=" ADDRESS "\ntenant=blue\n");
    /* A vgpud that was killed before it had ended the guard. */
    file_tree_write(at.root, "/run/vgpu/guard/" UUID ".conf",
                    "[slice]\ngpu=" ADDRESS "\ntenant=red\n");
    g_string_truncate(systemd.started, 0);
    g_string_truncate(systemd.stopped, 0);
    agent_on_bus_restart(&at);
    assert_says("slice list", 0, UUID, "");
    iterate_until_said(systemd.stopped, "vgpu-guard@" UUID ".service\n");
    iterate_until_said(systemd.started, "vgpu-guard@" UUID ".service\n");
    fake_systemd_stop(&systemd);
    agent_on_bus_close(&at);
}

/* Guards release a GPU whose mode changes, and come back with it. */
static void test_guards_and_modes(void)
{
    AgentOnBus at;
    FakeSystemd systemd;

    open_shared(&at);
    fake_kernel_use(at.root);
    fake_systemd_start(&systemd, at.daemon);
    process(&at, 77, 1000);
    assert_says("slice create half --door guarded --uuid " UUID, 0, "guarded", "");
    iterate_until_said(systemd.started, "vgpu-guard@");
    assert_hook(&at, "claim", WEB, 0, "");
    assert_says("gpu mode 02:00.0 host", 6, "", "container web has slice " UUID);
    g_assert_null(strstr(systemd.stopped->str, "vgpu-guard@"));
    assert_hook(&at, "release", WEB, 0, "");
    assert_says("gpu mode 02:00.0 host", 0, "", "");
    iterate_until_said(systemd.stopped, "vgpu-guard@" UUID ".service\n");
    g_string_truncate(systemd.started, 0);
    assert_says("gpu mode 02:00.0 shared", 0, "", "");
    iterate_until_said(systemd.started, "vgpu-guard@" UUID ".service\n");
    assert_says("cdi list", 0, UUID, "");
    fake_systemd_stop(&systemd);
    agent_on_bus_close(&at);
}

static void assert_acl(HostRoot *root, const char *expected)
{
    g_autofree char *path = root_path(root, CONTAINERS_DIR, UUID, NULL);
    acl_t acl = acl_get_file(path, ACL_TYPE_ACCESS);
    char *text;

    g_assert_nonnull(acl);
    text = acl_to_any_text(acl, NULL, ',', TEXT_ABBREVIATE | TEXT_NUMERIC_IDS);
    g_assert_cmpstr(text, ==, expected);
    acl_free(text);
    acl_free(acl);
}

/* The host's users, as a directory server has them. */
static gint lookup_error;
static gint lookups;

static int look_up(const char *name, uid_t *uid)
{
    int error = g_atomic_int_get(&lookup_error);

    (void)name;
    *uid = 1000;
    g_atomic_int_inc(&lookups);
    return error;
}

static gboolean is_looked_up(gconstpointer data)
{
    return g_atomic_int_get(&lookups) >= *(const gint *)data;
}

/* Each begins when the answer of the one before was taken. */
static void iterate_until_looked_up(gint more)
{
    const gint wanted = g_atomic_int_get(&lookups) + more;

    iterate_until(is_looked_up, &wanted);
}

static gboolean is_open_to_user(gconstpointer data)
{
    const AgentOnBus *at = data;
    g_autofree char *path = root_path(at->root, CONTAINERS_DIR, UUID, NULL);
    GStatBuf found;

    return !g_stat(path, &found) && (found.st_mode & 0777) == 0710;
}

static void remove_directories(const AgentOnBus *at)
{
    g_autofree char *path = root_path(at->root, CONTAINERS_DIR, UUID, NULL);
    g_autofree char *command = g_strconcat("rm -r ", path, NULL);

    g_assert_true(g_spawn_command_line_sync(command, NULL, NULL, NULL, NULL));
}

/*
 * A server that is not reached when vgpud starts, or later: users keep their access, and get it as
 * soon as there is an answer. At first it may say that there is no such user.
 */
static void test_directory_server(void)
{
    static const int errors[] = {ENOENT, EIO};
    AgentOnBus at;

    accounts_set_user_lookup(look_up);
    open_shared(&at);
    assert_says("tenant set red --user alice", 0, "", "");
    assert_says("slice create half --door native --tenant red --uuid " UUID, 0, UUID, "");
    for (guint i = 0; i < G_N_ELEMENTS(errors); i++) {
        agent_on_bus_stop(&at);
        g_atomic_int_set(&lookup_error, errors[i]);
        remove_directories(&at);
        agent_on_bus_start(&at);
        iterate_until_looked_up(1);
        g_assert_false(is_open_to_user(&at));
        g_atomic_int_set(&lookup_error, 0);
        iterate_until(is_open_to_user, &at);
        assert_acl(at.root, "u::rwx,u:1000:--x,g::---,m::--x,o::---");
    }
    g_atomic_int_set(&lookup_error, EIO);
    assert_says("tenant set red --user alice --vgpus 9", 0, "", "");
    iterate_until_looked_up(2);
    g_assert_true(is_open_to_user(&at));
    /* A vgpud that starts does not know what the server said before. */
    agent_on_bus_restart(&at);
    iterate_until_looked_up(2);
    g_assert_true(is_open_to_user(&at));
    /* Nobody keeps another tenant's slice for that. */
    assert_says("tenant set blue --user bob", 0, "", "");
    assert_says("slice set " UUID " --tenant blue", 0, "", "");
    g_assert_false(is_open_to_user(&at));
    accounts_set_user_lookup(NULL);
    agent_on_bus_close(&at);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/slice-doors/cdi", test_cdi);
    g_test_add_func("/slice-doors/auto", test_auto);
    g_test_add_func("/slice-doors/guarded-layer", test_guarded_layer);
    g_test_add_func("/slice-doors/no-layer", test_no_layer);
    g_test_add_func("/slice-doors/directory-server", test_directory_server);
    g_test_add_func("/slice-doors/vfio", test_vfio);
    g_test_add_func("/slice-doors/guards", test_guards);
    g_test_add_func("/slice-doors/guard-awaited", test_guard_awaited);
    g_test_add_func("/slice-doors/guard-fails", test_guard_fails);
    g_test_add_func("/slice-doors/guards-limits", test_guard_limits);
    g_test_add_func("/slice-doors/guards-and-modes", test_guards_and_modes);
    g_test_add_func("/slice-doors/guards-and-tenants", test_guards_and_tenants);
    return g_test_run();
}
