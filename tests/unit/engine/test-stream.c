// SPDX-License-Identifier: MIT
/* Streaming copies are copies: of any size, from and to any place, of no byte more. */
#include "stream.h"

#include <glib.h>
#include <stdint.h>

#define MOST 200u

/* Of exactly that size, so that ASan sees a byte too many. */
static void check_copy(size_t from, size_t to, size_t size)
{
    uint8_t *source = g_malloc(from + size), *dest = g_malloc0(to + size + 1);

    for (size_t i = 0; i < from + size; i++)
        source[i] = (uint8_t)(i * 7 + 1);
    stream_copy(dest + to, source + from, size);
    g_assert_cmpmem(dest + to, size, source + from, size);
    for (size_t i = 0; i < to; i++)
        g_assert_cmpuint(dest[i], ==, 0);
    g_assert_cmpuint(dest[to + size], ==, 0);
    g_free(source);
    g_free(dest);
}

static void test_copies(void)
{
    for (size_t from = 0; from < 17; from++) {
        for (size_t to = 0; to < 3; to++) {
            for (size_t size = 1; size < MOST; size++)
                check_copy(from, to, size);
        }
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/stream/copies", test_copies);
    return g_test_run();
}
