/* SPDX-License-Identifier: MIT */
/* Several slices in one container: CDI's entries, and the settings of the GPU's arbiter. */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/file_tree.h"
#include "tests/unit/host-agent/slices_kit.h"

#define UUID3 "c0ffee00-0000-4000-8000-000000000003"

/* A quarter and a half of the GPU, with transport native. */
static void open_two(AgentOnBus *at)
{
    open_shared(at);
    process(at, 77, 1000);
    process(at, 78, 1001);
    assert_says("slice create --vram 4G --weight 100 --cap 30 --priority 2 --door native --name a "
                "--uuid " UUID,
                0, UUID, "");
    assert_says("slice create --vram 8G --weight 300 --cap 40 --priority 1 --oversubscribe 1G "
                "--door native --name b --uuid " UUID2,
                0, UUID2, "");
}

static void assert_apart(const AgentOnBus *at)
{
    assert_in_file(at, SHARE_OF(UUID), "vram=4294967296\n");
    assert_in_file(at, SHARE_OF(UUID), "weight=100\ncap=30\nhard=true\npriority=2\n");
    assert_in_file(at, SHARE_OF(UUID2), "vram=8589934592\n");
    assert_in_file(at, SHARE_OF(UUID2), "weight=300\ncap=40\nhard=true\npriority=1\n");
}

static void assert_together(const AgentOnBus *at)
{
    assert_in_file(at, SHARE_OF(UUID), "vram=12884901888\nspill=1073741824\n");
    assert_in_file(at, SHARE_OF(UUID), "weight=400\ncap=70\nhard=true\npriority=1\n");
    g_assert_false(exists(at, SHARE_OF(UUID2)));
}

/* Slices of one GPU are one share of it, in any order, as long as the container exists. */
static void test_native(void)
{
    AgentOnBus at;

    open_two(&at);
    assert_apart(&at);
    assert_hook_of(&at, UUID2, "claim", WEB, 0, "");
    assert_apart(&at);
    assert_hook_of(&at, UUID, "claim", WEB, 0, "");
    assert_together(&at);
    assert_says("slice show b", 0, "Counted with:           " UUID, "");
    assert_says("slice show a", 0, "Counted with:           -", "");
    assert_says("gpu users 02:00.0", 0, "container web has slice " UUID2, "");
    assert_says("slice set b --weight 500", 0, "", "");
    assert_in_file(&at, SHARE_OF(UUID), "weight=600\n");
    assert_says("slice set b --weight 300", 0, "", "");
    agent_on_bus_restart(&at);
    assert_together(&at);
    assert_hook_of(&at, UUID2, "release", WEB, 0, "");
    assert_apart(&at);
    assert_hook_of(&at, UUID, "release", WEB, 0, "");
    assert_apart(&at);
    agent_on_bus_close(&at);
}

/* The sum of caps is no more than the GPU, and one without a cap removes it from both. */
static void test_most(void)
{
    AgentOnBus at;

    open_two(&at);
    assert_says("slice set b --cap 80 --weight 10000", 0, "", "");
    assert_hook_of(&at, UUID, "claim", WEB, 0, "");
    assert_hook_of(&at, UUID2, "claim", WEB, 0, "");
    assert_in_file(&at, SHARE_OF(UUID), "weight=10000\ncap=0\nhard=false\n");
    agent_on_bus_close(&at);
}

/* The engines of either; if one may use all of the GPU's engines, both may. */
static void test_engines(void)
{
    AgentOnBus at;

    open_two(&at);
    assert_says("slice set a --engines compute", 0, "", "");
    assert_says("slice set b --engines encode,transfer", 0, "", "");
    assert_hook_of(&at, UUID, "claim", WEB, 0, "");
    assert_hook_of(&at, UUID2, "claim", WEB, 0, "");
    assert_in_file(&at, SHARE_OF(UUID), "engines=compute,transfer,encode\n");
    assert_says("slice set b --engines all", 0, "", "");
    assert_not_in_file(&at, SHARE_OF(UUID), "engines=");
    assert_hook_of(&at, UUID2, "release", WEB, 0, "");
    assert_in_file(&at, SHARE_OF(UUID), "engines=compute\n");
    agent_on_bus_close(&at);
}

/* Each GPU has its own arbiter and its own share: nothing is summed. */
static void test_two_gpus(void)
{
    AgentOnBus at;
    HostRoot *root = shared_tree();

    file_tree_write(root, "/etc/vgpu/gpus.conf", "[gpu soft:a]\nmode=shared\nvram=8G\n");
    file_tree_write(
        root, "/sys/devices/virtual/vgpu-soft/a/mdev_supported_types/vgpu-soft-half/name", "x\n");
    agent_on_bus_open_tree(&at, root);
    process(&at, 77, 1000);
    assert_says("slice create --vram 1G --door native --gpu soft:a --uuid " UUID, 0, "soft:a", "");
    assert_says("slice create --vram 2G --door native --gpu " ADDRESS " --uuid " UUID2, 0, ADDRESS,
                "");
    assert_hook_of(&at, UUID, "claim", WEB, 0, "");
    assert_hook_of(&at, UUID2, "claim", WEB, 0, "");
    assert_in_file(&at, "/run/vgpu/governor/soft:a/slices/" UUID ".conf", "vram=1073741824\n");
    assert_in_file(&at, SHARE_OF(UUID2), "vram=2147483648\n");
    assert_says("slice show " UUID2, 0, "Counted with:           -", "");
    assert_in_file(&at, CDI_PATH, "\"/run/vgpu/slices/soft:a/" UUID "\"");
    assert_in_file(&at, CDI_PATH, "\"/run/vgpu/slices/" ADDRESS "/" UUID2 "\"");
    agent_on_bus_close(&at);
}

/* A claim of one's own slice for another tenant's container changes nothing for that. */
static void test_two_tenants(void)
{
    AgentOnBus at;

    open_two(&at);
    assert_says("tenant set red", 0, "", "");
    assert_says("slice set a --tenant red", 0, "", "");
    assert_hook_of(&at, UUID2, "claim", WEB, 0, "");
    assert_hook_of(&at, UUID, "claim", WEB, 0, "");
    assert_apart(&at);
    assert_says("slice set red/a --tenant ''", 6, "", "is used by container web");
    assert_apart(&at);
    assert_hook_of(&at, UUID, "release", WEB, 0, "");
    assert_says("slice set red/a --tenant ''", 0, "", "");
    assert_hook_of(&at, UUID, "claim", WEB, 0, "");
    assert_together(&at);
    agent_on_bus_close(&at);
}

/* Slices of two containers do not affect each other. */
static void test_two_containers(void)
{
    AgentOnBus at;

    open_two(&at);
    assert_hook_of(&at, UUID, "claim", WEB, 0, "");
    assert_hook_of(&at, UUID2, "claim", DB, 0, "");
    assert_apart(&at);
    agent_on_bus_close(&at);
}

/* A guard has its own socket, and so its own share. */
static void test_guarded(void)
{
    AgentOnBus at;

    open_two(&at);
    assert_says("slice create --vram 1G --door guarded --name c --uuid " UUID3, 0, UUID3, "");
    assert_hook_of(&at, UUID, "claim", WEB, 0, "");
    assert_hook_of(&at, UUID3, "claim", WEB, 0, "");
    assert_apart(&at);
    assert_in_file(&at, SHARE_OF(UUID3), "vram=1073741824\n");
    assert_says("slice show c", 0, "Counted with:           -", "");
    agent_on_bus_close(&at);
}

/* The second is refused: the container's process ends, and the first is free again. */
static void test_half(void)
{
    AgentOnBus at;

    open_two(&at);
    assert_hook_of(&at, UUID2, "claim", DB, 0, "");
    assert_hook_of(&at, UUID, "claim", WEB, 0, "");
    assert_hook_of(&at, UUID2, "claim", WEB, 1, "container db has it");
    assert_apart(&at);
    process_ends(&at, 77);
    agent_look_at_containers(at.agent);
    assert_says("slice show a", 0, "Container:              -", "");
    assert_says("slice show b", 0, "Container:              db", "");
    process(&at, 77, 2000);
    assert_hook_of(&at, UUID, "claim", WEB, 0, "");
    assert_hook_of(&at, UUID2, "claim", WEB, 1, "container db has it");
    assert_hook_of(&at, UUID, "release", WEB, 0, "");
    assert_says("slice remove a", 0, "", "");
    agent_on_bus_close(&at);
}

/* A killed one releases all of them; an ephemeral one is removed. */
static void test_killed(void)
{
    AgentOnBus at;

    open_two(&at);
    assert_says("slice create --vram 1G --weight 50 --door native --ephemeral --uuid " UUID3, 0,
                UUID3, "");
    assert_hook_of(&at, UUID, "claim", WEB, 0, "");
    assert_hook_of(&at, UUID2, "claim", WEB, 0, "");
    assert_hook_of(&at, UUID3, "claim", WEB, 0, "");
    assert_in_file(&at, SHARE_OF(UUID), "weight=450\n");
    process_ends(&at, 77);
    agent_look_at_containers(at.agent);
    assert_apart(&at);
    g_assert_false(exists(&at, SHARE_OF(UUID3)));
    assert_says("slice show " UUID3, 3, "", "there is no slice");
    assert_says("slice remove a", 0, "", "");
    assert_says("slice remove b", 0, "", "");
    agent_on_bus_close(&at);
}

/* If the first of them is removed by force, the second keeps its own. */
static void test_forced(void)
{
    AgentOnBus at;

    open_two(&at);
    assert_hook_of(&at, UUID, "claim", WEB, 0, "");
    assert_hook_of(&at, UUID2, "claim", WEB, 0, "");
    assert_says("slice remove a", 6, "", "container web has slice");
    assert_says("slice remove a --force", 0, "", "");
    g_assert_false(exists(&at, SHARE_OF(UUID)));
    assert_in_file(&at, SHARE_OF(UUID2), "vram=8589934592\n");
    agent_on_bus_close(&at);
}

static guint count(const char *text, const char *part)
{
    guint found = 0;

    for (text = strstr(text, part); text; text = strstr(text + 1, part))
        found++;
    return found;
}

/*
 * No two mounts at one path except of the same file, and no variable with two values except the
 * choice of a socket.
 */
static void test_cdi(void)
{
    AgentOnBus at;
    g_autofree char *text = NULL;

    open_two(&at);
    assert_says("slice create --vram 1G --door guarded --name c --uuid " UUID3, 0, UUID3, "");
    text = text_of(&at, CDI_PATH);
    /* Each is listed by its UUID and by its name. */
    g_assert_cmpuint(count(text, "\"/run/vgpu/slices/" ADDRESS "/" UUID "\""), ==, 2);
    g_assert_cmpuint(count(text, "\"/run/vgpu/slices/" ADDRESS "/" UUID2 "\""), ==, 2);
    g_assert_cmpuint(count(text, "\"VGPU_GOVERNOR_SLICES=/run/vgpu/slices\""), ==, 4);
    g_assert_cmpuint(count(text, "\"containerPath\" : \"/run/vgpu/vtest/c.sock\""), ==, 2);
    g_assert_cmpuint(count(text, "\"VTEST_SOCKET_NAME=/run/vgpu/vtest/c.sock\""), ==, 2);
    agent_on_bus_close(&at);
}

/* The arbiter would take a file that goes for the slice's end, and drop its programs. */
static void test_restart(void)
{
    g_autofree char *path = NULL;
    struct stat now;
    AgentOnBus at;
    int fd;

    open_two(&at);
    path = root_path(at.root, SHARE_OF(UUID), NULL);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    g_assert_cmpint(fd, >=, 0);
    agent_on_bus_restart(&at);
    g_assert_cmpint(fstat(fd, &now), ==, 0);
    g_assert_cmpuint(now.st_nlink, ==, 1);
    close(fd);
    assert_apart(&at);
    agent_on_bus_close(&at);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/slice-several/native", test_native);
    g_test_add_func("/slice-several/most", test_most);
    g_test_add_func("/slice-several/engines", test_engines);
    g_test_add_func("/slice-several/two-gpus", test_two_gpus);
    g_test_add_func("/slice-several/two-tenants", test_two_tenants);
    g_test_add_func("/slice-several/two-containers", test_two_containers);
    g_test_add_func("/slice-several/guarded", test_guarded);
    g_test_add_func("/slice-several/half", test_half);
    g_test_add_func("/slice-several/restart", test_restart);
    g_test_add_func("/slice-several/killed", test_killed);
    g_test_add_func("/slice-several/forced", test_forced);
    g_test_add_func("/slice-several/cdi", test_cdi);
    return g_test_run();
}
