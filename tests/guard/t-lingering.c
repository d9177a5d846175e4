// SPDX-License-Identifier: MIT
/*
 * Clients of a vgpu-guard, process GUARD, that send a descriptor whose last close() takes seconds.
 * The guard must not be who closes it.
 */
#include "guard_limits.h"
#include "lingering.h"
#include "vtest_client.h"

#include <glib.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

static pid_t guard;

static int connect_guard(void)
{
    return client_connect(g_getenv("VTEST_SOCKET_NAME"));
}

static void be_served(int fd)
{
    client_name(fd);
    g_assert_true(client_send(fd, VTEST_PING_PROTOCOL_VERSION));
    client_answer(fd, VTEST_PING_PROTOCOL_VERSION, NULL, 0);
}

static void assert_soon(gint64 begin)
{
    g_assert_cmpint(g_get_monotonic_time() - begin, <, LINGERING_S * G_USEC_PER_SEC / 2);
}

/* With a command that does not exist: its session reads it, and ends. */
static void test_of_a_client(void)
{
    static const uint32_t wrong[] = {0, VTEST_NUM_COMMANDS};

    for (int i = 0; i < 3; i++) {
        int fd = connect_guard(), other;
        gint64 begin;

        be_served(fd);
        begin = g_get_monotonic_time();
        g_assert_true(lingering_send(fd, wrong, sizeof(wrong)));
        g_assert_true(client_is_dropped(fd));
        close(fd);
        other = connect_guard();
        be_served(other);
        close(other);
        assert_soon(begin);
    }
}

/* Nobody reads what it sends. */
static void test_of_one_too_many(void)
{
    int fds[GUARD_CLIENTS_MAX], refused[2];
    gint64 begin;

    /* Those of the test before are gone. */
    g_usleep(6 * G_USEC_PER_SEC);
    for (size_t i = 0; i < G_N_ELEMENTS(fds); i++) {
        fds[i] = connect_guard();
        be_served(fds[i]);
    }
    kill(guard, SIGSTOP);
    begin = g_get_monotonic_time();
    for (size_t i = 0; i < G_N_ELEMENTS(refused); i++) {
        refused[i] = connect_guard();
        g_assert_true(lingering_send(refused[i], "", 1));
    }
    kill(guard, SIGCONT);
    for (size_t i = 0; i < G_N_ELEMENTS(refused); i++) {
        g_assert_true(client_is_dropped(refused[i]));
        close(refused[i]);
    }
    assert_soon(begin);
    for (size_t i = 0; i < G_N_ELEMENTS(fds); i++)
        close(fds[i]);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    if (!g_getenv("VTEST_SOCKET_NAME") || argc != 2) {
        g_printerr("usage: VTEST_SOCKET_NAME=PATH t-lingering GUARD\n");
        return EXIT_FAILURE;
    }
    guard = (pid_t)atoi(argv[1]);
    g_test_add_func("/guard/lingering/of-a-client", test_of_a_client);
    g_test_add_func("/guard/lingering/of-one-too-many", test_of_one_too_many);
    return g_test_run();
}
