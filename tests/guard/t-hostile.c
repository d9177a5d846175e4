// SPDX-License-Identifier: MIT
/*
 * Hostile clients of a running vgpu-guard (VTEST_SOCKET_NAME): messages cut short at every point,
 * lengths and numbers that are wrong, descriptors that nobody asked for, syncs and clients by the
 * thousand, clients that say nothing. Each is dropped, or refused, or has its way within the
 * limits; another client goes on being served.
 */
#include "vtest_client.h"

#include "guard_limits.h"

#include <glib.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define PAGE    4096u
#define RANDOMS 60
#define SEED    4711

static int connect_guard(void)
{
    return client_connect(g_getenv("VTEST_SOCKET_NAME"));
}

/* One that means well gets its context, memory that it can map, and its answers. */
static void assert_served(void)
{
    int fd = connect_guard();
    uint32_t answer[2];
    int blob;
    uint32_t *map;

    client_hello(fd);
    g_assert_cmpuint(client_blob(fd, 0, PAGE, &blob), ==, 1);
    map = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, blob, 0);
    g_assert_true(map != MAP_FAILED);
    map[0] = 1;
    munmap(map, PAGE);
    close(blob);
    g_assert_true(client_send(fd, VTEST_SYNC_CREATE, 7, 0));
    client_answer(fd, VTEST_SYNC_CREATE, answer, 1);
    g_assert_true(client_send(fd, VTEST_SYNC_READ, answer[0]));
    client_answer(fd, VTEST_SYNC_READ, answer, 2);
    g_assert_cmpuint(answer[0], ==, 7);
    close(fd);
}

static void assert_dropped(int fd)
{
    g_assert_true(client_is_dropped(fd));
    close(fd);
}

static void test_served(void)
{
    assert_served();
}

static GByteArray *make_conversation(void)
{
    static const uint32_t words[] = {
        5, VTEST_CREATE_RENDERER, 0x74736574, /* "test", and a byte more below */
    };
    static const uint32_t rest[] = {
        0,
        VTEST_PING_PROTOCOL_VERSION,
        2,
        VTEST_GET_CAPSET,
        4,
        0,
        1,
        VTEST_CONTEXT_INIT,
        4,
        6,
        VTEST_RESOURCE_CREATE_BLOB,
        2,
        1,
        PAGE,
        0,
        0,
        0,
        2,
        VTEST_SYNC_CREATE,
        0,
        0,
        5,
        VTEST_SYNC_WAIT,
        0,
        1000,
        1,
        1,
        0,
        10,
        VTEST_SUBMIT_CMD2,
        1,
        1,
        0,
        0,
        7,
        1,
        0,
        1,
        1,
        0,
        1,
        VTEST_SYNC_READ,
        1,
        1,
        VTEST_RESOURCE_UNREF,
        1,
    };
    GByteArray *bytes = g_byte_array_new();

    g_byte_array_append(bytes, (const uint8_t *)words, sizeof(words));
    g_byte_array_append(bytes, (const uint8_t *)"", 1);
    g_byte_array_append(bytes, (const uint8_t *)rest, sizeof(rest));
    return bytes;
}

/* Leaves without reading an answer, after each number of bytes in turn. */
static void test_cut_anywhere(void)
{
    g_autoptr(GByteArray) bytes = make_conversation();

    for (guint size = 0; size <= bytes->len; size += 3) {
        int fd = connect_guard();

        client_write(fd, bytes->data, size);
        close(fd);
    }
    assert_served();
}

static void test_wrong_messages(void)
{
    static const uint32_t wrong[][8] = {
        {0, 99},
        {UINT32_MAX, VTEST_SUBMIT_CMD2},
        {1, VTEST_SYNC_CREATE, 0},
        {1, VTEST_SYNC_READ, 1},
        {1, VTEST_RESOURCE_UNREF, 77},
        {6, VTEST_RESOURCE_CREATE_BLOB, 2, 1, 0, 0, 0, 0},
        {6, VTEST_RESOURCE_CREATE_BLOB, 1, 1, PAGE, 0, 0, 0},
        {1, VTEST_SUBMIT_CMD2, UINT32_MAX},
        {1, VTEST_CONTEXT_INIT, 4},
        {3, VTEST_SYNC_WRITE, UINT32_MAX, 0, 0},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(wrong); i++) {
        int fd = connect_guard();

        client_hello(fd);
        client_write(fd, wrong[i], sizeof(wrong[i]));
        assert_dropped(fd);
    }
    assert_served();
}

/* One that came after it does not keep its connection open. */
static void test_dropped_before_another(void)
{
    int first = connect_guard();
    int second;

    client_name(first);
    g_assert_true(client_send(first, VTEST_PING_PROTOCOL_VERSION));
    client_answer(first, VTEST_PING_PROTOCOL_VERSION, NULL, 0);
    second = connect_guard();
    client_name(second);
    g_assert_true(client_send(second, VTEST_PING_PROTOCOL_VERSION));
    client_answer(second, VTEST_PING_PROTOCOL_VERSION, NULL, 0);
    client_send(first, VTEST_SYNC_READ, 1);
    assert_dropped(first);
    g_assert_true(client_send(second, VTEST_PING_PROTOCOL_VERSION));
    client_answer(second, VTEST_PING_PROTOCOL_VERSION, NULL, 0);
    close(second);
}

static void test_random_bytes(void)
{
    g_autoptr(GRand) rand = g_rand_new_with_seed(SEED);

    for (int i = 0; i < RANDOMS; i++) {
        int fd = connect_guard();
        uint32_t words[64];

        for (size_t k = 0; k < G_N_ELEMENTS(words); k++)
            words[k] = g_rand_int(rand) & (g_rand_boolean(rand) ? 0x1f : UINT32_MAX);
        if (i % 2)
            client_hello(fd);
        client_write(fd, words, sizeof(words));
        shutdown(fd, SHUT_WR);
        assert_dropped(fd);
    }
    assert_served();
}

/* Commands for a renderer that are none: the worker ends, and the client is told. */
static void test_garbage_commands(void)
{
    int fd = connect_guard();
    uint32_t words[1 + 6 + 64] = {1, 0, 7, 64};

    memset(words + 7, 0xff, 64 * sizeof(uint32_t));
    client_hello(fd);
    for (int i = 0; i < 1000; i++) {
        if (!client_message(fd, VTEST_SUBMIT_CMD2, words, G_N_ELEMENTS(words)))
            break;
    }
    assert_dropped(fd);
    assert_served();
}

/* A blob of memory that its context does not have is refused; what is asked for after it is there.
 */
static void test_unknown_memory(void)
{
    int fd = connect_guard();
    int blob;

    client_hello(fd);
    g_assert_cmpuint(client_blob(fd, 12345, PAGE, &blob), ==, 0);
    g_assert_true(mmap(NULL, PAGE, PROT_READ, MAP_SHARED, blob, 0) == MAP_FAILED);
    close(blob);
    close(fd);
    assert_served();
}

static void test_shared_memory_limit(void)
{
    const uint64_t part = GUARD_SHM_BYTES_MAX / 4;
    int fd = connect_guard();
    uint32_t id = 0;
    int blob;

    client_hello(fd);
    for (uint32_t i = 1; i <= 4; i++) {
        id = client_blob(fd, 0, part, &blob);
        g_assert_cmpuint(id, ==, i);
        close(blob);
    }
    g_assert_cmpuint(client_blob(fd, 0, PAGE, &blob), ==, 0);
    close(blob);
    g_assert_true(client_send(fd, VTEST_RESOURCE_UNREF, id));
    g_assert_cmpuint(client_blob(fd, 0, PAGE, &blob), ==, id);
    close(blob);
    close(fd);
}

/* Its shared memory can't be made smaller under the worker. */
static void test_sealed(void)
{
    int fd = connect_guard();
    int blob;

    client_hello(fd);
    g_assert_cmpuint(client_blob(fd, 0, PAGE, &blob), ==, 1);
    g_assert_cmpint(ftruncate(blob, 0), ==, -1);
    g_assert_cmpint(ftruncate(blob, PAGE * 2), ==, -1);
    close(blob);
    close(fd);
}

static void test_many_syncs(void)
{
    int fd = connect_guard();
    uint32_t id;

    client_hello(fd);
    for (uint32_t i = 1; i <= GUARD_SYNCS_MAX; i++) {
        g_assert_true(client_send(fd, VTEST_SYNC_CREATE, 0, 0));
        client_answer(fd, VTEST_SYNC_CREATE, &id, 1);
        g_assert_cmpuint(id, ==, i);
    }
    client_send(fd, VTEST_SYNC_CREATE, 0, 0);
    assert_dropped(fd);
    assert_served();
}

/* Waits for ever, keeps what it gets, and asks for more. */
static void test_many_waits(void)
{
    int fd = connect_guard();
    g_autofree int *waits = g_new(int, GUARD_WAITS_MAX);
    uint32_t id;

    client_hello(fd);
    g_assert_true(client_send(fd, VTEST_SYNC_CREATE, 0, 0));
    client_answer(fd, VTEST_SYNC_CREATE, &id, 1);
    for (uint32_t i = 0; i < GUARD_WAITS_MAX; i++) {
        g_assert_true(client_send(fd, VTEST_SYNC_WAIT, 0, UINT32_MAX, id, 1, 0));
        client_answer(fd, VTEST_SYNC_WAIT, NULL, 0);
        waits[i] = client_answer_fd(fd);
    }
    client_send(fd, VTEST_SYNC_WAIT, 0, UINT32_MAX, id, 1, 0);
    assert_dropped(fd);
    for (uint32_t i = 0; i < GUARD_WAITS_MAX; i++)
        close(waits[i]);
    assert_served();
}

static void test_descriptors(void)
{
    int fd = connect_guard();

    client_name(fd);
    for (int i = 0; i < 200; i++) {
        static const uint32_t ping[] = {0, VTEST_PING_PROTOCOL_VERSION};

        /* The first byte of a length of zero, with a descriptor. */
        g_assert_true(client_write_fd(fd, fd));
        g_assert_true(client_write(fd, (const char *)ping + 1, sizeof(ping) - 1));
        client_answer(fd, VTEST_PING_PROTOCOL_VERSION, NULL, 0);
    }
    close(fd);
}

/* Some say nothing, some stop in the middle, some never read: who comes after them is served all
 * the same. */
static void test_silent(void)
{
    static const uint32_t half[] = {2, VTEST_SYNC_CREATE, 0};
    int fds[12];

    for (size_t i = 0; i < G_N_ELEMENTS(fds); i++) {
        fds[i] = connect_guard();
        if (i % 3 == 0)
            continue;
        client_hello(fds[i]);
        if (i % 3 == 1) {
            client_write(fds[i], half, sizeof(half));
            continue;
        }
        for (int k = 0; k < 20000; k++) {
            const uint32_t capset[] = {2, VTEST_GET_CAPSET, 4, 0};

            if (send(fds[i], capset, sizeof(capset), MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
                break;
        }
    }
    assert_served();
    for (size_t i = 0; i < G_N_ELEMENTS(fds); i++)
        close(fds[i]);
}

static uint32_t count_closed(const int *fds, size_t count)
{
    uint32_t closed = 0;
    char byte;

    for (size_t i = 0; i < count; i++)
        closed += recv(fds[i], &byte, 1, MSG_DONTWAIT) == 0;
    return closed;
}

/* How many clients have their names taken at once, of one more than there may be. */
static void test_many_clients(void)
{
    int fds[GUARD_CLIENTS_MAX + 1];
    uint32_t dropped = 0;

    /* Those of the tests before are still on their way out. */
    g_usleep(6 * G_USEC_PER_SEC);
    for (size_t i = 0; i < G_N_ELEMENTS(fds); i++) {
        fds[i] = connect_guard();
        if (i < GUARD_CLIENTS_MAX - 8) {
            client_name(fds[i]);
            g_assert_true(client_send(fds[i], VTEST_PING_PROTOCOL_VERSION));
            client_answer(fds[i], VTEST_PING_PROTOCOL_VERSION, NULL, 0);
        }
    }
    /*
     * Those at the end may share the guard with a client beside this test. A busy guard is late,
     * but drops none for its silence so soon.
     */
    for (int i = 0; i < 80 && !dropped; i++) {
        g_usleep(50000);
        dropped = count_closed(fds + GUARD_CLIENTS_MAX - 8, 9);
    }
    g_assert_cmpuint(dropped, >=, 1);
    g_assert_cmpuint(dropped, <=, 8);
    for (size_t i = 0; i < G_N_ELEMENTS(fds); i++)
        close(fds[i]);
    g_usleep(6 * G_USEC_PER_SEC);
    assert_served();
}

int main(int argc, char **argv)
{
    struct rlimit files;

    g_test_init(&argc, &argv, NULL);
    if (!g_getenv("VTEST_SOCKET_NAME")) {
        g_printerr("t-hostile: VTEST_SOCKET_NAME names the socket of the guard to attack\n");
        return EXIT_FAILURE;
    }
    /* For what it keeps. */
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    g_test_add_func("/hostile/served", test_served);
    g_test_add_func("/hostile/cut-anywhere", test_cut_anywhere);
    g_test_add_func("/hostile/wrong-messages", test_wrong_messages);
    g_test_add_func("/hostile/dropped-before-another", test_dropped_before_another);
    g_test_add_func("/hostile/random-bytes", test_random_bytes);
    g_test_add_func("/hostile/garbage-commands", test_garbage_commands);
    g_test_add_func("/hostile/unknown-memory", test_unknown_memory);
    g_test_add_func("/hostile/shared-memory-limit", test_shared_memory_limit);
    g_test_add_func("/hostile/sealed", test_sealed);
    g_test_add_func("/hostile/many-syncs", test_many_syncs);
    g_test_add_func("/hostile/many-waits", test_many_waits);
    g_test_add_func("/hostile/descriptors", test_descriptors);
    g_test_add_func("/hostile/silent", test_silent);
    g_test_add_func("/hostile/many-clients", test_many_clients);
    return g_test_run();
}
