/* SPDX-License-Identifier: MIT */
/* What a task finds in its environment: the variables of its card and of no other. */
#include <glib.h>

#include "fleet/slurm/node/job_file.h"

static const char job_text[] = "vgpu1\n"
                               "card 2 2\n"
                               "A=two\n"
                               "B=x=y\n"
                               "card 5 1\n"
                               "A=five\n";

static bool note_variable(const char *name, const char *value, void *data)
{
    g_string_append_printf(data, "%s=%s;", name, value);
    return true;
}

static bool refuse_variable(const char *name, const char *value, void *data)
{
    (void)name;
    (void)value;
    (void)data;
    return false;
}

static void check_file(const char *text, int card, unsigned local, const char *found)
{
    g_autofree char *copy = g_strdup(text);
    g_autoptr(GString) seen = g_string_new(NULL);
    bool ok = job_file_task(copy, card, local, note_variable, seen);

    g_assert_cmpstr(ok ? seen->str : NULL, ==, found);
}

static void test_by_card(void)
{
    check_file(job_text, 2, 9, "A=two;B=x=y;");
    check_file(job_text, 5, 0, "A=five;");
    check_file(job_text, 3, 0, NULL);
}

static void test_by_place(void)
{
    check_file(job_text, -1, 0, "A=two;B=x=y;");
    check_file(job_text, -1, 1, "A=two;B=x=y;");
    check_file(job_text, -1, 2, "A=five;");
    check_file(job_text, -1, 3, "A=two;B=x=y;");
}

static void test_bad(void)
{
    g_autofree char *copy = g_strdup(job_text);

    check_file("", -1, 0, NULL);
    check_file("vgpu2\ncard 0 1\n", -1, 0, NULL);
    check_file("vgpu1\n", -1, 0, NULL);
    check_file("vgpu1\ncard 0 0\nA=b\n", -1, 0, NULL);
    check_file("vgpu1\ncard 0 1\nnothing\n", -1, 0, NULL);
    g_assert_false(job_file_task(copy, 2, 0, refuse_variable, NULL));
}

static void test_refused(void)
{
    static const char text[] = "vgpu1\nrefused the card is too small\n";

    g_assert_cmpstr(job_file_refused(text), ==, "the card is too small\n");
    check_file(text, -1, 0, NULL);
    g_assert_null(job_file_refused(job_text));
    g_assert_null(job_file_refused("vgpu1\n"));
    g_assert_null(job_file_refused(""));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/fleet/job-file/by-card", test_by_card);
    g_test_add_func("/fleet/job-file/by-place", test_by_place);
    g_test_add_func("/fleet/job-file/bad", test_bad);
    g_test_add_func("/fleet/job-file/refused", test_refused);
    return g_test_run();
}
