/* SPDX-License-Identifier: MIT */
#include "tests/unit/host-agent/vgpus_kit.h"

#include <string.h>

#include "tests/unit/file_tree.h"
#include "tests/unit/host-agent/recorded_host.h"

static const char types[] = "[type vgpu-full]\nvram=1/1\n"
                            "[type vgpu-half]\nvram=1/2\nweight=400\n";

void vgpus_open(AgentOnBus *at)
{
    HostRoot *root = recorded_host_new("shared");

    file_tree_write(root, "/etc/vgpu/types.d/10-test.conf", types);
    agent_on_bus_open_tree(at, root);
}

gboolean vgpus_have(const AgentOnBus *at, const char *path)
{
    g_autofree char *full = root_path(at->root, path, NULL);

    return g_file_test(full, G_FILE_TEST_EXISTS);
}

void assert_text_of(const AgentOnBus *at, const char *path, const char *text)
{
    g_autofree char *full = root_path(at->root, path, NULL);
    g_autofree char *found = NULL;

    g_assert_true(g_file_get_contents(full, &found, NULL, NULL));
    g_assert_cmpstr(g_strstrip(found), ==, text);
}

void assert_text_in(const AgentOnBus *at, const char *path, const char *part, gboolean there)
{
    g_autofree char *full = root_path(at->root, path, NULL);
    g_autofree char *found = NULL;

    g_assert_true(g_file_get_contents(full, &found, NULL, NULL));
    g_test_message("%s: %s", path, found);
    g_assert_true((strstr(found, part) != NULL) == there);
}
