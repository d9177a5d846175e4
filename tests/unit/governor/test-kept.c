// SPDX-License-Identifier: MIT
/* Who has kept memory that it said it gave, by readings that the test makes up. */
#include <glib.h>

#include "clock.h"
#include "kept.h"

#define PID 7
#define MIB (1ull << 20)
#define GIB (1ull << 30)

static struct readings readings;

/* A second after the one before, in which the process has @bytes. */
static void read_bytes(uint64_t bytes)
{
    uint64_t *value = g_new(uint64_t, 1);

    if (!readings.memory)
        readings.memory = g_hash_table_new_full(NULL, NULL, NULL, g_free);
    *value = bytes;
    g_hash_table_insert(readings.memory, GSIZE_TO_POINTER(PID), value);
    readings.at += NS_PER_S;
}

static void judge(struct kept_account *account, uint64_t there, uint64_t out)
{
    const struct kept_claim claim = {.pid = PID, .there = there, .out = out};

    kept_judge(account, &readings, &claim);
}

/* What it has beside its account may have grown since that was seen: code, stacks. */
static void test_grown(void)
{
    struct kept_account account = {0};

    read_bytes(4 * GIB + 400 * MIB);
    judge(&account, 4 * GIB, 0);
    kept_note_change(&account, readings.at);
    read_bytes(GIB + 900 * MIB);
    judge(&account, GIB, 3 * GIB);
    g_assert_true(account.judged);
    g_assert_cmpuint(account.kept, ==, 0);
    read_bytes(4 * GIB);
    judge(&account, GIB, 3 * GIB);
    g_assert_cmpuint(account.kept, >, GIB);
}

/* Nobody is held by a false judgement for long, and not again by the same. */
static void test_forgiven(void)
{
    struct kept_account account = {0};
    uint64_t since;

    read_bytes(4 * GIB);
    judge(&account, GIB, 3 * GIB);
    since = readings.at;
    g_assert_cmpuint(account.kept, >, GIB);
    read_bytes(4 * GIB);
    judge(&account, GIB, 3 * GIB);
    g_assert_cmpuint(kept_forgive(&account, since + 29 * NS_PER_S), ==, 0);
    g_assert_cmpuint(kept_forgive(&account, since + 30 * NS_PER_S), >, GIB);
    g_assert_cmpuint(kept_forgive(&account, since + 60 * NS_PER_S), ==, 0);
    read_bytes(4 * GIB);
    judge(&account, GIB, 3 * GIB);
    g_assert_cmpuint(account.kept, ==, 0);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/governor/kept/grown", test_grown);
    g_test_add_func("/governor/kept/forgiven", test_forgiven);
    return g_test_run();
}
