// SPDX-License-Identifier: MIT
/*
 * Programs that reach CUDA by a slice's guard: each has a worker of its own, which is a member of
 * the slice and ends with it. What is ended here ends nobody else; neither does a client that keeps
 * no rules.
 */
#include "remote/guard.h"
#include "remote/program.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "control.h"

#define LIMIT (64 * MIB)
#define MOST  64 /* clients of a guard */
#define ARENA 0x110000000000ull

static void check_computes(const struct guard *guard)
{
    program_await(program_start("compute", guard_environment(guard), NULL), 0);
}

/* The worker that was started last; 0: there is none. */
static GPid last_worker(const struct guard *guard, unsigned int *count)
{
    g_autofree char *path = g_strdup_printf("/proc/%d/task/%d/children", guard->pid, guard->pid);
    g_autofree char *children = NULL;
    GPid last = 0;

    *count = 0;
    g_assert_true(g_file_get_contents(path, &children, NULL, NULL));
    for (char *at = children; *at; at += strspn(at, " ")) {
        GPid pid = (GPid)strtol(at, &at, 10);

        *count += pid != 0;
        last = pid > last ? pid : last;
    }
    return last;
}

static void await_workers(const struct guard *guard, unsigned int wanted)
{
    unsigned int count;

    do
        last_worker(guard, &count);
    while (count != wanted && (g_usleep(1000), true));
}

static void open_all(struct guard *guard)
{
    g_setenv("FAKE_CUDA_CONTENT", "1", TRUE);
    kit_open(LIMIT);
    *guard = guard_open("a");
}

static void close_all(struct guard *guard)
{
    await_workers(guard, 0);
    kit_charged(0);
    guard_close(guard);
    kit_close();
    g_unsetenv("FAKE_CUDA_CONTENT");
}

/* It computes, has no more than its slice, and leaves nothing behind. */
static void test_computes(void)
{
    struct guard guard;

    open_all(&guard);
    check_computes(&guard);
    program_await(program_start("limit", guard_environment(&guard), NULL), 0);
    program_await(program_start("threads", guard_environment(&guard), NULL), 0);
    close_all(&guard);
}

/* A guard that reaches no arbiter has no GPU for anybody. */
static void test_no_arbiter(void)
{
    struct guard guard;

    open_all(&guard);
    live_kill_arbiter(&kit_live, SIGKILL);
    program_await(program_start("no-arbiter", guard_environment(&guard), NULL), 0);
    live_start_arbiter(&kit_live);
    check_computes(&guard);
    close_all(&guard);
}

/* Who comes for Vulkan is not left waiting, where there is none. */
static void test_no_vulkan(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct guard guard;
    char none;
    int fd;

    open_all(&guard);
    g_strlcpy(address.sun_path, guard.vulkan, sizeof(address.sun_path));
    fd = socket(AF_UNIX, SOCK_STREAM, 0);
    g_assert_cmpint(connect(fd, (const struct sockaddr *)&address, sizeof(address)), ==, 0);
    g_assert_cmpint(read(fd, &none, 1), <=, 0);
    close(fd);
    close_all(&guard);
}

/* Its memory is the card's again, soon; its neighbour has noticed nothing. */
static void test_client_killed(void)
{
    struct guard guard;
    GPid neighbour, pid;
    gint64 begin;

    open_all(&guard);
    neighbour = program_start_holding("goes-on", guard_environment(&guard));
    pid = program_start_holding("hold", guard_environment(&guard));
    g_assert_cmpuint(kit_on_card(), >=, 32 * MIB);
    begin = g_get_monotonic_time();
    kill(pid, SIGKILL);
    while (kit_on_card() >= 32 * MIB)
        g_usleep(500);
    g_test_message("back after %d us", (int)(g_get_monotonic_time() - begin));
    program_await(pid, SIGKILL);
    kill(neighbour, SIGTERM);
    program_await(neighbour, 0);
    close_all(&guard);
}

/* The program is told, and lives; its neighbour has noticed nothing; the next one has a worker. */
static void test_worker_killed(void)
{
    unsigned int count;
    struct guard guard;
    GPid neighbour, pid;

    open_all(&guard);
    neighbour = program_start_holding("goes-on", guard_environment(&guard));
    pid = program_start_holding("lost", guard_environment(&guard));
    kill(last_worker(&guard, &count), SIGKILL);
    g_assert_cmpuint(count, ==, 2);
    program_await(pid, 0);
    check_computes(&guard);
    kill(neighbour, SIGTERM);
    program_await(neighbour, 0);
    close_all(&guard);
}

/* A worker that does not even notice that its program has gone. */
static void test_worker_hangs(void)
{
    unsigned int count;
    struct guard guard;
    GPid pid;

    open_all(&guard);
    pid = program_start_holding("hold", guard_environment(&guard));
    kill(last_worker(&guard, &count), SIGSTOP);
    kill(pid, SIGKILL);
    program_await(pid, SIGKILL);
    await_workers(&guard, 0);
    check_computes(&guard);
    close_all(&guard);
}

/* With the guard its workers end, and their programs are told. */
static void test_guard_killed(void)
{
    struct guard guard;
    GPid pid;

    open_all(&guard);
    pid = program_start_holding("lost", guard_environment(&guard));
    kill(guard.pid, SIGKILL);
    g_assert_cmpint(waitpid(guard.pid, NULL, 0), ==, guard.pid);
    program_await(pid, 0);
    kit_charged(0);
    guard_clear(&guard);
    guard = guard_open("a");
    check_computes(&guard);
    close_all(&guard);
}

static int connect_to(const struct guard *guard)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

    g_strlcpy(address.sun_path, guard->socket, sizeof(address.sun_path));
    g_assert_cmpint(connect(fd, (const struct sockaddr *)&address, sizeof(address)), ==, 0);
    return fd;
}

/* As many as there may be, which say nothing: one more is refused, until one of them goes. */
static void test_flood(void)
{
    int fds[MOST];
    struct guard guard;

    open_all(&guard);
    for (unsigned int i = 0; i < MOST; i++)
        fds[i] = connect_to(&guard);
    await_workers(&guard, MOST);
    program_await(program_start("refused", guard_environment(&guard), NULL), 0);
    close(fds[0]);
    await_workers(&guard, MOST - 1);
    check_computes(&guard);
    for (unsigned int i = 1; i < MOST; i++)
        close(fds[i]);
    /* And those who go at once. */
    for (unsigned int i = 0; i < 500; i++)
        close(connect_to(&guard));
    check_computes(&guard);
    close_all(&guard);
}

/* They send what is no message, or too much, or descriptors; none reads an answer. */
static void test_hostile(void)
{
    const struct control_hello hello = {
        .message = {CONTROL_MAGIC, CONTROL_HELLO, ARENA, 1ull << 34}, .major = CONTROL_MAJOR};
    const struct control_message ask = {CONTROL_MAGIC, 77, 0, 0};
    static const char much[65536];
    struct guard guard;
    GPid neighbour;

    open_all(&guard);
    neighbour = program_start_holding("goes-on", guard_environment(&guard));
    for (unsigned int round = 0; round < 40; round++) {
        int fd = connect_to(&guard), on = 1;

        g_assert_cmpint(fcntl(fd, F_SETFL, O_NONBLOCK), ==, 0);
        setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on));
        if (round % 4 == 0)
            g_assert_cmpint(send(fd, much, sizeof(much), MSG_NOSIGNAL), ==, sizeof(much));
        else if (round % 4 == 1)
            g_assert_cmpint(send(fd, &hello, round, MSG_NOSIGNAL), ==, round);
        else
            g_assert_cmpint(send(fd, &hello, sizeof(hello), MSG_NOSIGNAL), ==, sizeof(hello));
        /* Until there is no room for more: its worker waits for it to read. */
        while (round % 4 == 3 && send(fd, &ask, sizeof(ask), MSG_NOSIGNAL) > 0)
            g_usleep(100);
        close(fd);
    }
    await_workers(&guard, 1);
    check_computes(&guard);
    kill(neighbour, SIGTERM);
    program_await(neighbour, 0);
    close_all(&guard);
}

static void send_control(int fd, uint32_t kind, uint64_t address, uint64_t bytes)
{
    const struct control_message message = {CONTROL_MAGIC, kind, address, bytes};

    g_assert_cmpint(send(fd, &message, sizeof(message), MSG_NOSIGNAL), ==, sizeof(message));
}

/*
 * What a program does until it computes, so many steps of it; then it is as if it was killed. With
 * 1, 3 and 5 it has not read the answer.
 */
static void begin_and_end(const struct guard *guard, unsigned int steps)
{
    const struct control_hello hello = {
        .message = {CONTROL_MAGIC, CONTROL_HELLO, ARENA, 1ull << 34}, .major = CONTROL_MAJOR};
    struct control_welcome answer;
    int fd = connect_to(guard);

    if (steps > 0)
        g_assert_cmpint(send(fd, &hello, sizeof(hello), MSG_NOSIGNAL), ==, sizeof(hello));
    if (steps > 1)
        g_assert_cmpint(recv(fd, &answer, sizeof(answer), 0), ==, sizeof(answer));
    if (steps > 2)
        send_control(fd, CONTROL_SHARE_NEW, ARENA + (1ull << 32), 1ull << 30);
    if (steps > 3)
        g_assert_cmpint(recv(fd, &answer, sizeof(answer), 0), >, 0);
    if (steps > 4)
        send_control(fd, CONTROL_CHANNEL, ARENA, 0);
    if (steps > 5)
        g_assert_cmpint(recv(fd, &answer, sizeof(answer), 0), >, 0);
    if (steps > 6)
        send_control(fd, CONTROL_CHANNEL_END, ARENA, 0);
    close(fd);
}

static void test_ends_at_each_step(void)
{
    struct guard guard;

    open_all(&guard);
    for (unsigned int round = 0; round < 24; round++)
        begin_and_end(&guard, round % 8);
    await_workers(&guard, 0);
    check_computes(&guard);
    close_all(&guard);
}

/* The same in the middle of a call; the card has its memory again when the worker has ended, and
 * the neighbour has noticed nothing. */
static void test_dies_in_each_call(void)
{
    static const char *const ways[] = {"dies-starting", "dies-posting", "dies-called",
                                       "dies-waiting",  "dies-copying", "dies-sharing",
                                       "dies-ending"};
    struct guard guard;
    uint64_t before;
    GPid neighbour;

    open_all(&guard);
    neighbour = program_start_holding("goes-on", guard_environment(&guard));
    before = kit_on_card();
    for (unsigned int i = 0; i < G_N_ELEMENTS(ways); i++) {
        g_test_message("%s", ways[i]);
        program_await(program_start(ways[i], guard_environment(&guard), NULL), SIGKILL);
        await_workers(&guard, 1);
        g_assert_cmpuint(kit_on_card(), ==, before);
    }
    check_computes(&guard);
    kill(neighbour, SIGTERM);
    program_await(neighbour, 0);
    close_all(&guard);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/guard/computes", test_computes);
    g_test_add_func("/guard/no-arbiter", test_no_arbiter);
    g_test_add_func("/guard/no-vulkan", test_no_vulkan);
    g_test_add_func("/guard/client-killed", test_client_killed);
    g_test_add_func("/guard/worker-killed", test_worker_killed);
    g_test_add_func("/guard/worker-hangs", test_worker_hangs);
    g_test_add_func("/guard/guard-killed", test_guard_killed);
    g_test_add_func("/guard/flood", test_flood);
    g_test_add_func("/guard/hostile", test_hostile);
    g_test_add_func("/guard/ends-at-each-step", test_ends_at_each_step);
    g_test_add_func("/guard/dies-in-each-call", test_dies_in_each_call);
    return g_test_run();
}
