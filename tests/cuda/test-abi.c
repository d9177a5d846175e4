// SPDX-License-Identifier: MIT
/* Our declarations of CUDA's interface against FFmpeg's. Functions are compared when this is
 * compiled (abi_theirs.c). */
#include <glib.h>

#include "abi.h"

static void test_layouts(void)
{
    unsigned int i = 0;

    for (; abi_ours[i].name; i++) {
        g_assert_cmpstr(abi_ours[i].name, ==, abi_theirs[i].name);
        if (abi_ours[i].value != abi_theirs[i].value)
            g_error("%s is %lu here and %lu there", abi_ours[i].name, abi_ours[i].value,
                    abi_theirs[i].value);
    }
    g_assert_cmpuint(i, >, 20);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/abi/layouts", test_layouts);
    return g_test_run();
}
