// SPDX-License-Identifier: MIT
/*
 * A client's bytes in as few system calls as possible, whatever the pieces; and what a client finds
 * when the guard has gone.
 */
#include "vtest_client.h"
#include "wire.h"

#include <errno.h>
#include <glib.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LONG_MESSAGE (1u << 20)
#define PIECES       20000u

/* Four of these and some short pieces fill a socket; one of these and the short pieces, a quarter.
 */
#define ROOM        212992
#define LARGE_PIECE (10 * WIRE_BUFFER)

struct pair {
    int client;
    int guard;
    struct wire wire;
};

/* Instead of libc's: those of the guard's end are counted. */
static struct {
    int fd;
    unsigned int receives;
    unsigned int sends;
    unsigned int waits;
} calls;

ssize_t recvmsg(int fd, struct msghdr *message, int flags);
ssize_t send(int fd, const void *data, size_t size, int flags);
int epoll_wait(int fd, struct epoll_event *events, int most, int timeout);
int sendmmsg(int fd, struct mmsghdr *messages, unsigned int count, int flags);

ssize_t recvmsg(int fd, struct msghdr *message, int flags)
{
    calls.receives += fd == calls.fd;
    return syscall(SYS_recvmsg, fd, message, flags);
}

int epoll_wait(int fd, struct epoll_event *events, int most, int timeout)
{
    calls.waits++;
    return (int)syscall(SYS_epoll_wait, fd, events, most, timeout);
}

ssize_t send(int fd, const void *data, size_t size, int flags)
{
    calls.sends += fd == calls.fd;
    return syscall(SYS_sendto, fd, data, size, flags, NULL, 0);
}

int sendmmsg(int fd, struct mmsghdr *messages, unsigned int count, int flags)
{
    calls.sends += fd == calls.fd;
    return (int)syscall(SYS_sendmmsg, fd, messages, count, flags);
}

static void set_up(struct pair *p, gconstpointer data G_GNUC_UNUSED)
{
    int fds[2];

    g_assert_no_errno(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds));
    p->client = fds[0];
    p->guard = fds[1];
    g_assert_true(wire_init(&p->wire, p->guard));
    calls.fd = p->guard;
    calls.receives = calls.sends = calls.waits = 0;
}

static void tear_down(struct pair *p, gconstpointer data G_GNUC_UNUSED)
{
    wire_clear(&p->wire);
    close(p->client);
    if (p->guard >= 0)
        close(p->guard);
}

/* Header and data, as a session reads them. */
static void read_message(struct pair *p, uint32_t command)
{
    uint32_t header[VTEST_HEADER_WORDS];
    uint32_t data[64];

    g_assert_cmpint(wire_read(&p->wire, header, sizeof(header)), ==, WIRE_OK);
    g_assert_cmpuint(header[1], ==, command);
    g_assert_cmpuint(header[0], <=, G_N_ELEMENTS(data));
    g_assert_cmpint(wire_read(&p->wire, data, header[0] * sizeof(*data)), ==, WIRE_OK);
}

/* What Mesa 26.2 writes for a submission with a fence, and then waits for: 188 bytes in 15 pieces.
 */
static void write_submission(int fd)
{
    static const uint32_t submit[] = {15, VTEST_SUBMIT_CMD2};
    static const uint32_t submit_last[] = {15, VTEST_SUBMIT_CMD2};
    static const uint32_t wait[] = {5, VTEST_SYNC_WAIT};
    static const uint32_t words[16] = {0};

    client_message(fd, VTEST_SYNC_WRITE, words, 3);
    client_write(fd, submit, sizeof(submit));
    client_write(fd, words, 4);
    client_write(fd, words, 32);
    client_write(fd, words, 12);
    client_write(fd, words, 12);
    client_write(fd, submit_last, sizeof(submit_last));
    client_write(fd, words, 4);
    client_write(fd, words, 32);
    client_write(fd, words, 24);
    client_write(fd, wait, sizeof(wait));
    client_write(fd, words, 4);
    client_write(fd, words, 4);
    client_write(fd, words, 12);
}

static void read_submission(struct pair *p)
{
    read_message(p, VTEST_SYNC_WRITE);
    read_message(p, VTEST_SUBMIT_CMD2);
    read_message(p, VTEST_SUBMIT_CMD2);
    read_message(p, VTEST_SYNC_WAIT);
}

/* One look for each, and now and then one that makes room. */
static void test_submissions(struct pair *p, gconstpointer data G_GNUC_UNUSED)
{
    write_submission(p->client);
    read_submission(p);
    g_assert_cmpuint(calls.receives, ==, 1);
    g_assert_cmpuint(calls.waits, ==, 1);
    for (int i = 0; i < 99; i++) {
        write_submission(p->client);
        read_submission(p);
    }
    g_assert_cmpuint(calls.receives, <=, 140);
    g_assert_cmpuint(calls.waits, ==, 100);
}

static void *read_and_send(void *data)
{
    struct pair *p = data;
    char answer;

    /* The guard's thread sleeps by now, or soon will. */
    g_usleep(20000);
    g_assert_cmpint(recv(p->client, &answer, 1, 0), ==, 1);
    g_usleep(20000);
    client_write(p->client, "x", 1);
    return NULL;
}

/* A client that reads its answer does not wake its session. */
static void test_sleep(struct pair *p, gconstpointer data G_GNUC_UNUSED)
{
    struct rusage before, after;
    GThread *thread;
    char byte;

    g_assert_true(wire_write(&p->wire, "", 1));
    thread = g_thread_new("client", read_and_send, p);
    getrusage(RUSAGE_THREAD, &before);
    g_assert_cmpint(wire_read(&p->wire, &byte, 1), ==, WIRE_OK);
    getrusage(RUSAGE_THREAD, &after);
    g_assert_cmpint(after.ru_nvcsw - before.ru_nvcsw, <=, 1);
    g_thread_join(thread);
}

static void test_answer(struct pair *p, gconstpointer data G_GNUC_UNUSED)
{
    static const uint32_t answer[] = {1, VTEST_RESOURCE_CREATE_BLOB, 7};
    uint32_t id;

    g_assert_true(wire_write_fd(&p->wire, answer, sizeof(answer), p->guard));
    g_assert_cmpuint(calls.sends, ==, 1);
    client_answer(p->client, VTEST_RESOURCE_CREATE_BLOB, &id, 1);
    g_assert_cmpuint(id, ==, 7);
    close(client_answer_fd(p->client));
}

/* However much has been read, a client that waits for an answer gets an error and not an end. */
static void test_reset(struct pair *p, gconstpointer messages)
{
    char byte;

    for (int i = 0; i < GPOINTER_TO_INT(messages); i++) {
        write_submission(p->client);
        read_submission(p);
    }
    close(p->guard);
    p->guard = -1;
    g_assert_cmpint(recv(p->client, &byte, 1, 0), ==, -1);
    g_assert_cmpint(errno, ==, ECONNRESET);
}

static void *write_pieces(void *data)
{
    for (uint32_t i = 0; i < PIECES; i++)
        client_write(GPOINTER_TO_INT(data), &i, sizeof(i));
    return NULL;
}

/* A client that writes ahead does not wait for a guard that waits for it. */
static void test_ahead(struct pair *p, gconstpointer data G_GNUC_UNUSED)
{
    GThread *thread = g_thread_new("client", write_pieces, GINT_TO_POINTER(p->client));
    g_autofree uint32_t *words = g_new(uint32_t, PIECES);

    g_assert_cmpint(wire_read(&p->wire, words, PIECES * sizeof(*words)), ==, WIRE_OK);
    for (uint32_t i = 0; i < PIECES; i++)
        g_assert_cmpuint(words[i], ==, i);
    g_thread_join(thread);
}

static void *write_long(void *data)
{
    g_autofree uint8_t *bytes = g_malloc(LONG_MESSAGE);

    for (uint32_t i = 0; i < LONG_MESSAGE; i++)
        bytes[i] = (uint8_t)(i * 7 + (i >> 12));
    client_write(GPOINTER_TO_INT(data), bytes, LONG_MESSAGE);
    shutdown(GPOINTER_TO_INT(data), SHUT_WR);
    return NULL;
}

static void test_long(struct pair *p, gconstpointer data G_GNUC_UNUSED)
{
    GThread *thread = g_thread_new("client", write_long, GINT_TO_POINTER(p->client));
    g_autofree uint8_t *bytes = g_malloc(LONG_MESSAGE);

    g_assert_cmpint(wire_read(&p->wire, bytes, 1), ==, WIRE_OK);
    g_assert_cmpint(wire_read(&p->wire, bytes + 1, LONG_MESSAGE - 1), ==, WIRE_OK);
    for (uint32_t i = 0; i < LONG_MESSAGE; i++)
        g_assert_cmpuint(bytes[i], ==, (uint8_t)(i * 7 + (i >> 12)));
    g_assert_cmpint(wire_read(&p->wire, bytes, 1), ==, WIRE_END);
    g_thread_join(thread);
}

static void test_cut(struct pair *p, gconstpointer data G_GNUC_UNUSED)
{
    uint32_t word;

    client_write(p->client, "abc", 3);
    shutdown(p->client, SHUT_WR);
    g_assert_cmpint(wire_read(&p->wire, &word, sizeof(word)), ==, WIRE_CUT);
}

/* One event for two pieces and the end, and a descriptor between the pieces. */
static void test_events(struct pair *p, gconstpointer data G_GNUC_UNUSED)
{
    uint8_t bytes[5];

    client_write(p->client, "ab", 2);
    g_assert_true(client_write_fd(p->client, p->client));
    client_write(p->client, "cd", 2);
    shutdown(p->client, SHUT_WR);
    g_assert_cmpint(wire_read(&p->wire, bytes, 2), ==, WIRE_OK);
    g_assert_cmpint(wire_read(&p->wire, bytes + 2, 1), ==, WIRE_OK);
    g_assert_cmpint(wire_read(&p->wire, bytes + 3, 2), ==, WIRE_OK);
    g_assert_cmpmem(bytes, 5, "ab\0cd", 5);
    g_assert_cmpint(wire_read(&p->wire, bytes, 1), ==, WIRE_END);
}

/* The same without the end. */
static void test_descriptor(struct pair *p, gconstpointer data G_GNUC_UNUSED)
{
    uint8_t bytes[3];

    client_write(p->client, "a", 1);
    g_assert_true(client_write_fd(p->client, p->client));
    client_write(p->client, "b", 1);
    for (int i = 0; i < 3; i++)
        g_assert_cmpint(wire_read(&p->wire, bytes + i, 1), ==, WIRE_OK);
    g_assert_cmpmem(bytes, 3, "a\0b", 3);
}

static bool count_down(void *data)
{
    int *left = data;

    return --*left > 0;
}

/* Silence makes room, too: the client may have more to say than its socket holds. */
static void test_idle(struct pair *p, gconstpointer data G_GNUC_UNUSED)
{
    int left = 3;
    uint32_t words[2];

    p->wire.idle_ms = 1;
    p->wire.idle = count_down;
    p->wire.data = &left;
    client_write(p->client, "abcdef", 6);
    g_assert_cmpint(wire_read(&p->wire, words, sizeof(words)), ==, WIRE_IDLE);
    g_assert_cmpint(left, ==, 0);
    g_assert_cmpuint(p->wire.left, ==, 0);
}

/* data: the client's end. */
static bool write_one(void *data)
{
    client_write(GPOINTER_TO_INT(data), "a", 1);
    return true;
}

static bool refuse_input(void *data G_GNUC_UNUSED)
{
    return false;
}

/* Silence of less than a millisecond; once, and idle() is not asked. */
static void test_soon(struct pair *p, gconstpointer data G_GNUC_UNUSED)
{
    uint8_t byte;

    p->wire.soon_us = 1;
    p->wire.soon = write_one;
    p->wire.idle = refuse_input;
    p->wire.data = GINT_TO_POINTER(p->client);
    g_assert_cmpint(wire_read(&p->wire, &byte, 1), ==, WIRE_OK);
    g_assert_cmpuint(p->wire.soon_us, ==, 0);
    p->wire.soon_us = 1;
    p->wire.soon = refuse_input;
    g_assert_cmpint(wire_read(&p->wire, &byte, 1), ==, WIRE_IDLE);
}

/* data: the client's end. */
static bool check_room(void *data)
{
    struct pollfd client = {.fd = GPOINTER_TO_INT(data), .events = POLLOUT};

    g_assert_cmpint(poll(&client, 1, 0), ==, 1);
    return false;
}

/* Reads all, and has room for the client when it waits for more. */
static void read_and_wait(struct pair *p, uint8_t *bytes, size_t size)
{
    g_assert_cmpint(wire_read(&p->wire, bytes, size), ==, WIRE_OK);
    p->wire.idle_ms = 1;
    p->wire.idle = check_room;
    p->wire.data = GINT_TO_POINTER(p->client);
    g_assert_cmpint(wire_read(&p->wire, bytes, 1), ==, WIRE_IDLE);
}

/*
 * The client's write waits for room when the guard has read all. The last that is read is little,
 * but in it is the end of a large piece.
 */
static void test_full(struct pair *p, gconstpointer data G_GNUC_UNUSED)
{
    const int half = ROOM / 2;
    g_autofree uint8_t *bytes = g_malloc0(2 * ROOM);
    size_t size = 100;

    g_assert_no_errno(setsockopt(p->client, SOL_SOCKET, SO_SNDBUF, &half, sizeof(half)));
    client_write(p->client, bytes, size);
    for (int i = 0; i < 3; i++, size += LARGE_PIECE)
        client_write(p->client, bytes, LARGE_PIECE);
    for (; send(p->client, bytes, 4, MSG_DONTWAIT) == 4; size += 4)
        ;
    g_assert_cmpint(errno, ==, EAGAIN);
    read_and_wait(p, bytes, size);
}

/* Sockets of a host that gives them less room hold fewer of the shortest pieces. */
static void test_narrow(struct pair *p, gconstpointer data G_GNUC_UNUSED)
{
    const int half = ROOM / 8;
    uint8_t bytes[ROOM / 64];
    size_t size = 0;

    g_assert_no_errno(setsockopt(p->client, SOL_SOCKET, SO_SNDBUF, &half, sizeof(half)));
    g_assert_no_errno(setsockopt(p->guard, SOL_SOCKET, SO_SNDBUF, &half, sizeof(half)));
    wire_clear(&p->wire);
    g_assert_true(wire_init(&p->wire, p->guard));
    for (; send(p->client, "1234", 4, MSG_DONTWAIT) == 4; size += 4)
        ;
    g_assert_cmpint(errno, ==, EAGAIN);
    read_and_wait(p, bytes, size);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
#define WIRE_TEST(path, data, run) g_test_add(path, struct pair, data, set_up, run, tear_down)
    WIRE_TEST("/wire/submissions", NULL, test_submissions);
    WIRE_TEST("/wire/sleep", NULL, test_sleep);
    WIRE_TEST("/wire/answer", NULL, test_answer);
    WIRE_TEST("/wire/reset", GINT_TO_POINTER(1), test_reset);
    WIRE_TEST("/wire/reset-later", GINT_TO_POINTER(3), test_reset);
    WIRE_TEST("/wire/ahead", NULL, test_ahead);
    WIRE_TEST("/wire/long", NULL, test_long);
    WIRE_TEST("/wire/events", NULL, test_events);
    WIRE_TEST("/wire/descriptor", NULL, test_descriptor);
    WIRE_TEST("/wire/cut", NULL, test_cut);
    WIRE_TEST("/wire/idle", NULL, test_idle);
    WIRE_TEST("/wire/soon", NULL, test_soon);
    WIRE_TEST("/wire/full", NULL, test_full);
    WIRE_TEST("/wire/narrow", NULL, test_narrow);
    return g_test_run();
}
