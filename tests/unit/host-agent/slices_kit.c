/* SPDX-License-Identifier: MIT */
#include "tests/unit/host-agent/slices_kit.h"

#include <glib/gstdio.h>
#include <string.h>

#include "tests/unit/file_tree.h"
#include "tests/unit/host-agent/recorded_host.h"

const char slices_types[] = "[type vgpu-full]\nvram=1/1\n"
                            "[type vgpu-half]\nvram=1/2\nweight=400\n";

/* vgpu-engine-user, which records its arguments, and gives the unit its user. */
static void add_user_program(HostRoot *root)
{
    static const char path[] = "/usr/lib/mdev-vgpu/vgpu-engine-user";
    g_autofree char *full = root_path(root, path, NULL);

    file_tree_write(root, path,
                    "#!/bin/sh\n"
                    "echo \"$@\" >>\"$0.log\"\n"
                    "run=${0%/usr/*}/run/systemd\n"
                    "rm -rf \"$run/system/vgpu-$3@$2.service.d\"\n"
                    "[ \"$1\" = add ] || exec rm -rf \"$run/system.control/vgpu-$3@$2.service.d\"\n"
                    "mkdir -p \"$run/system/vgpu-$3@$2.service.d\"\n"
                    "echo >\"$run/system/vgpu-$3@$2.service.d/vgpu.conf\"\n");
    g_assert_cmpint(g_chmod(full, 0755), ==, 0);
}

void complete_tree(HostRoot *root)
{
    file_tree_write(root, "/etc/vgpu/types.d/10-test.conf", slices_types);
    file_tree_write(root, "/usr/share/vulkan/implicit_layer.d/VkLayer_vgpu_governor.json",
                    "{\"layer\": {\"library_path\": \"" LIBRARY "\", "
                    "\"enable_environment\": {\"VGPU_GOVERNOR\": \"1\"}}}");
    add_user_program(root);
}

HostRoot *shared_tree(void)
{
    HostRoot *root = recorded_host_new("shared");

    complete_tree(root);
    return root;
}

void open_shared(AgentOnBus *at)
{
    agent_on_bus_open_tree(at, shared_tree());
}

gboolean exists(const AgentOnBus *at, const char *path)
{
    g_autofree char *full = root_path(at->root, path, NULL);

    return g_file_test(full, G_FILE_TEST_EXISTS);
}

char *text_of(const AgentOnBus *at, const char *path)
{
    g_autofree char *full = root_path(at->root, path, NULL);
    char *text = NULL;

    g_file_get_contents(full, &text, NULL, NULL);
    return text;
}

void assert_in_file(const AgentOnBus *at, const char *path, const char *part)
{
    g_autofree char *text = text_of(at, path);

    g_assert_nonnull(text);
    g_test_message("%s:\n%s", path, text);
    g_assert_nonnull(strstr(text, part));
}

void assert_not_in_file(const AgentOnBus *at, const char *path, const char *part)
{
    g_autofree char *text = text_of(at, path);

    g_assert_true(!text || !strstr(text, part));
}

void process(const AgentOnBus *at, guint pid, guint started)
{
    g_autofree char *path = g_strdup_printf("/proc/%u/stat", pid);
    g_autofree char *text = g_strdup_printf(
        "%u (a b) c) S 1 1 1 0 -1 4194560 1 0 0 0 1 1 0 0 20 0 1 0 %u 1 1\n", pid, started);

    file_tree_write(at->root, path, text);
}

void process_ends(const AgentOnBus *at, guint pid)
{
    g_autofree char *number = g_strdup_printf("%u", pid);
    g_autofree char *path = root_path(at->root, "/proc", number, "stat", NULL);

    g_assert_cmpint(g_unlink(path), ==, 0);
}

void assert_hook_of(const AgentOnBus *at, const char *uuid, const char *verb, const char *state,
                    int status, const char *err)
{
    g_autofree char *input = root_path(at->root, "/state.json", NULL);
    g_autofree char *line =
        g_strdup_printf("sh -c '" CONTAINER_HOOK " %s %s <%s'", verb, uuid, input);
    Said said;

    file_tree_write(at->root, "/state.json", state);
    said = run_beside(line);
    g_test_message("%s %s %s: %d %s", verb, uuid, state, said.status, said.err);
    g_assert_cmpint(said.status, ==, status);
    g_assert_nonnull(strstr(said.err, err));
    g_assert_cmpstr(said.out, ==, "");
    said_clear(&said);
}

void assert_hook(const AgentOnBus *at, const char *verb, const char *state, int status,
                 const char *err)
{
    assert_hook_of(at, UUID, verb, state, status, err);
}
