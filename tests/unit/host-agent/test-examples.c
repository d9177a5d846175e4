/* SPDX-License-Identifier: MIT */
/* The files of /etc/vgpu that the guides show are accepted without changes. */
#include <string.h>

#include "lib/vgpud_conf.h"
#include "lib/gpus.h"
#include "lib/schedule_conf.h"
#include "lib/tenants_conf.h"
#include "lib/types.h"
#include "tests/unit/file_tree.h"

#define INDENT "    "
#define BEGIN  INDENT "# /etc/vgpu/"

/* Everything that is read from /etc/vgpu, from any file. */
static void assert_taken(HostRoot *root, const char *path)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) types = types_load(root, &error);
    g_autoptr(GPtrArray) gpus = error ? NULL : gpus_load(root, &error);
    g_autoptr(GPtrArray) times = error ? NULL : schedule_conf_load(root, &error);
    g_autoptr(VgpudConf) conf = error ? NULL : vgpud_conf_load(root, &error);
    g_autoptr(GPtrArray) tenants = error ? NULL : tenants_conf_load(root, &error);

    g_test_message("%s", path);
    g_assert_no_error(error);
    if (strstr(path, "types.d"))
        g_assert_cmpuint(types->len, >, 0);
    if (strstr(path, "gpus.conf"))
        g_assert_cmpuint(gpus->len, >, 0);
    if (strstr(path, "schedule.conf"))
        g_assert_cmpuint(times->len, >, 0);
    if (strstr(path, "tenants.d"))
        g_assert_cmpuint(tenants->len, >, 0);
}

/* From @line, its first one, to the first that is not indented. Returns that. */
static char **try_example(char **line)
{
    HostRoot *root = file_tree_new();
    const char *path = *line + strlen(INDENT "# ");
    g_autoptr(GString) text = g_string_new(NULL);

    for (; *line && g_str_has_prefix(*line, INDENT); line++)
        g_string_append_printf(text, "%s\n", *line + strlen(INDENT));
    file_tree_write(root, path, text->str);
    assert_taken(root, path);
    file_tree_free(root);
    return line;
}

/* Returns how many files of /etc/vgpu the page shows. */
static guint try_page(const char *page)
{
    g_autofree char *path = g_strdup_printf(HOSTS "/../../../../docs/%s", page);
    g_autofree char *text = NULL;
    g_auto(GStrv) lines = NULL;
    guint count = 0;

    g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
    lines = g_strsplit(text, "\n", -1);
    for (char **line = lines; *line;) {
        if (!g_str_has_prefix(*line, BEGIN)) {
            line++;
            continue;
        }
        line = try_example(line);
        count++;
    }
    return count;
}

static void test_guides(void)
{
    g_assert_cmpuint(try_page("operator.md"), >=, 6);
    g_assert_cmpuint(try_page("tenants.md"), >=, 1);
    g_assert_cmpuint(try_page("watch.md"), >=, 2);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/examples/guides", test_guides);
    return g_test_run();
}
