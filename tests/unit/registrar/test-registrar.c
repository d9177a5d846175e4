/* SPDX-License-Identifier: MIT */
/*
 * Unit tests of vgpu-registrar: its parts in trees of their own, with a driver that only listens.
 */
#include <glib.h>

#include "tests.h"

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    add_file_tests();
    add_command_tests();
    return g_test_run();
}
