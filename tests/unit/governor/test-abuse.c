// SPDX-License-Identifier: MIT
/*
 * Members that violate the protocol: they are dropped with a line in the log, and nobody else is
 * affected.
 */
#include "governor_protocol.h"
#include "ledger.h"
#include "lingering.h"
#include "live.h"
#include "raw.h"
#include "refuse_option.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *const slices[] = {"a", "[slice]\nvram=1000000\n", NULL};

static int connect_to_a(const struct live *live)
{
    g_autofree char *path = live_socket(live, "a");
    int fd = raw_connect(path);

    g_assert_cmpint(fd, >=, 0);
    return fd;
}

/* Of an object; the answer's errno. */
static uint64_t raw_ask(int fd, uint32_t type, uint64_t value, uint64_t inode)
{
    struct governor_message message = {.version = GOVERNOR_PROTOCOL_VERSION,
                                       .type = type,
                                       .value = value,
                                       .object = {.device = 1, .inode = inode}};

    g_assert_cmpint(send(fd, &message, sizeof(message), MSG_NOSIGNAL), ==, sizeof(message));
    g_assert_cmpint(recv(fd, &message, sizeof(message), 0), ==, sizeof(message));
    g_assert_cmpuint(message.type, ==, GOVERNOR_RESERVED);
    return message.value;
}

static void raw_detach(int fd, uint64_t inode)
{
    struct governor_message message = {.version = GOVERNOR_PROTOCOL_VERSION,
                                       .type = GOVERNOR_DETACH,
                                       .object = {.device = 1, .inode = inode}};

    send(fd, &message, sizeof(message), MSG_NOSIGNAL);
}

static int member_of_a(const struct live *live)
{
    g_autofree char *path = live_socket(live, "a");
    int fd = raw_member(path);

    g_assert_cmpint(fd, >=, 0);
    return fd;
}

static void assert_dropped(int fd)
{
    struct governor_message message;
    ssize_t length;

    while ((length = recv(fd, &message, sizeof(message), 0)) > 0)
        ;
    g_assert_true(length == 0 || errno == ECONNRESET);
    close(fd);
}

typedef struct {
    uint32_t type;
    uint64_t value;
    uint64_t other;
    const char *log;
} Abuse;

static const Abuse after_join[] = {
    {GOVERNOR_JOIN, 0, 0, "joined twice"},
    {GOVERNOR_RELEASE, 1, 0, "more memory than it holds"},
    {GOVERNOR_RELEASE, UINT64_MAX, UINT64_MAX, "more memory than it holds"},
    {GOVERNOR_RELEASE, 0, 1, "more memory than it holds"},
    {GOVERNOR_SHARE, 1, 0, "shares more memory than it holds"},
    {GOVERNOR_SHARE, 0, 0, "shares more memory than it holds"},
    {GOVERNOR_SHARE, 0, 1, "shares more memory than it holds"},
    {GOVERNOR_SHARE, UINT64_MAX, UINT64_MAX, "shares more memory than it holds"},
    {GOVERNOR_DETACH, 0, 0, "a shared object that it does not hold"},
    {GOVERNOR_DRIVER, UINT64_MAX, 0, "an impossible amount of memory"},
    {GOVERNOR_WELCOME, 0, 0, "an unknown message"},
    {77, 0, 0, "an unknown message"},
    {UINT32_MAX, 0, 0, "an unknown message"},
};

static const Abuse before_join[] = {
    {GOVERNOR_WANT, 0, 0, "before it joined"},
    {GOVERNOR_RESERVE, 1, 0, "before it joined"},
    {GOVERNOR_SHARE, 0, 0, "before it joined"},
    {GOVERNOR_ATTACH, 1, 0, "before it joined"},
    {GOVERNOR_DETACH, 0, 0, "before it joined"},
    {GOVERNOR_DRIVER, 1, 0, "before it joined"},
    {GOVERNOR_JOIN, UINT64_MAX, 0, "an impossible amount of memory"},
    {GOVERNOR_JOIN, 0, 1ull << 60, "an impossible amount of memory"},
};

static void clear_log(const struct live *live)
{
    g_assert_cmpint(truncate(live->log, 0), ==, 0);
}

static void test_messages(void)
{
    struct live live;
    int fd;

    live_open(&live, slices);
    for (gsize i = 0; i < G_N_ELEMENTS(after_join); i++) {
        fd = member_of_a(&live);
        clear_log(&live);
        raw_send(fd, after_join[i].type, after_join[i].value, after_join[i].other, 0);
        assert_dropped(fd);
        live_await_log(&live, after_join[i].log);
    }
    for (gsize i = 0; i < G_N_ELEMENTS(before_join); i++) {
        fd = connect_to_a(&live);
        clear_log(&live);
        raw_send(fd, before_join[i].type, before_join[i].value, before_join[i].other, 0);
        assert_dropped(fd);
        live_await_log(&live, before_join[i].log);
    }
    live_await(&live, "a", "members", 0);
    live_await(&live, "a", "vram_used", 0);
    live_close(&live);
}

static void test_lengths(void)
{
    struct governor_message message = {.version = GOVERNOR_PROTOCOL_VERSION + 1,
                                       .type = GOVERNOR_JOIN};
    const uint32_t first = 1, version = GOVERNOR_PROTOCOL_VERSION;
    char large[4096] = {0};
    struct live live;
    int fd;

    live_open(&live, slices);
    fd = connect_to_a(&live);
    send(fd, &message, sizeof(message), 0);
    g_assert_cmpint(recv(fd, &message, sizeof(message), 0), ==, sizeof(message));
    g_assert_cmpuint(message.type, ==, GOVERNOR_REFUSED);
    g_assert_cmpuint(message.value, ==, EPROTONOSUPPORT);
    assert_dropped(fd);
    /* In a version that it understands. */
    g_assert_cmpuint(message.version, ==, GOVERNOR_PROTOCOL_VERSION + 1);
    live_await_log(&live, "Restart it; a VM must be shut down and started");
    /* Those that it speaks as well it speaks to whoever does. */
    for (uint32_t i = GOVERNOR_PROTOCOL_OLDEST - 1; i <= GOVERNOR_PROTOCOL_VERSION; i++) {
        message = (struct governor_message){.version = i, .type = GOVERNOR_JOIN};
        fd = connect_to_a(&live);
        send(fd, &message, sizeof(message), 0);
        g_assert_cmpint(recv(fd, &message, sizeof(message), 0), ==, sizeof(message));
        g_assert_cmpuint(message.version, ==, i);
        g_assert_cmpuint(message.type, ==,
                         i < GOVERNOR_PROTOCOL_OLDEST ? GOVERNOR_REFUSED : GOVERNOR_WELCOME);
        close(fd);
    }
    /* As long as the messages of the first version were. */
    memcpy(large, &first, sizeof(first));
    fd = connect_to_a(&live);
    send(fd, large, 24, 0);
    g_assert_cmpint(recv(fd, &message, sizeof(message), 0), ==, sizeof(message));
    g_assert_cmpuint(message.value, ==, EPROTONOSUPPORT);
    assert_dropped(fd);
    memcpy(large, &version, sizeof(version));
    for (size_t length = 1; length < sizeof(large); length = length * 3) {
        fd = connect_to_a(&live);
        clear_log(&live);
        send(fd, large, length, 0);
        assert_dropped(fd);
        live_await_log(&live, "wrong length");
    }
    live_close(&live);
}

/* Names are believed, but not beyond what may be remembered; what one has is no other's to give
 * back. */
static void test_objects(void)
{
    struct live live;
    int one, other;

    live_open(&live, slices);
    one = member_of_a(&live);
    other = member_of_a(&live);
    g_assert_cmpuint(raw_ask(one, GOVERNOR_ATTACH, 0, 1), ==, EINVAL);
    g_assert_cmpuint(raw_ask(one, GOVERNOR_ATTACH, UINT64_MAX, 1), ==, EINVAL);
    g_assert_cmpuint(raw_ask(one, GOVERNOR_ATTACH, 1000001, 1), ==, ENOMEM);
    g_assert_cmpint(live_status(&live, "a", "vram_used"), ==, 0);
    g_assert_cmpuint(raw_ask(one, GOVERNOR_ATTACH, 1000, UINT64_MAX), ==, 0);
    /* What others hold is at most as large as anybody says, within the limit. */
    g_assert_cmpuint(raw_ask(other, GOVERNOR_ATTACH, UINT64_MAX, UINT64_MAX), ==, EINVAL);
    g_assert_cmpuint(raw_ask(other, GOVERNOR_ATTACH, 1000001, UINT64_MAX), ==, ENOMEM);
    live_await(&live, "a", "vram_used", 1000);
    g_assert_cmpuint(raw_ask(other, GOVERNOR_ATTACH, 10, UINT64_MAX), ==, 0);
    g_assert_cmpuint(raw_ask(other, GOVERNOR_ATTACH, 1500, UINT64_MAX), ==, 0);
    live_await(&live, "a", "vram_used", 1500);
    clear_log(&live);
    raw_detach(other, 7);
    assert_dropped(other);
    live_await_log(&live, "does not hold");
    for (uint64_t i = 1; i < LEDGER_MEMBER_OBJECTS; i++)
        g_assert_cmpuint(raw_ask(one, GOVERNOR_ATTACH, 1, i), ==, 0);
    g_assert_cmpuint(raw_ask(one, GOVERNOR_ATTACH, 1, 5000), ==, ENOSPC);
    g_assert_cmpuint(raw_ask(one, GOVERNOR_ATTACH, 1, 5), ==, 0);
    g_assert_cmpuint(raw_ask(one, GOVERNOR_RESERVE, 10, 0), ==, 0);
    g_assert_cmpuint(raw_ask(one, GOVERNOR_SHARE, 10, 5000), ==, ENOSPC);
    live_await(&live, "a", "vram_used", 1500 + LEDGER_MEMBER_OBJECTS - 1 + 10);
    other = member_of_a(&live);
    clear_log(&live);
    raw_detach(other, 5);
    assert_dropped(other);
    live_await_log(&live, "does not hold");
    close(one);
    live_await(&live, "a", "vram_used", 0);
    live_close(&live);
}

/* A member that sends requests and never reads is dropped before it costs anything. */
static void test_deaf(void)
{
    struct live live;
    int fds[2], fd;

    live_open(&live, slices);
    fd = connect_to_a(&live);
    g_assert_true(raw_join(fd, fds));
    for (int i = 0; i < 100000; i++) {
        struct governor_message message = {
            .version = GOVERNOR_PROTOCOL_VERSION, .type = GOVERNOR_RESERVE, .value = 1};

        if (send(fd, &message, sizeof(message), MSG_NOSIGNAL) < 0)
            break;
    }
    live_await(&live, "a", "members", 0);
    live_await_log(&live, "does not read");
    close(fd);
    close(fds[0]);
    close(fds[1]);
    live_close(&live);
}

/* The grant cannot be written in any way, and neither page can be made smaller. */
static void test_pages(void)
{
    struct live live;
    int fds[2], fd, again;
    void *page;
    g_autofree char *path = NULL;

    live_open(&live, slices);
    fd = connect_to_a(&live);
    g_assert_true(raw_join(fd, fds));
    g_assert_true(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fds[0], 0) == MAP_FAILED);
    page = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fds[0], 0);
    g_assert_true(page != MAP_FAILED);
    g_assert_cmpint(mprotect(page, 4096, PROT_READ | PROT_WRITE), <, 0);
    g_assert_cmpint(pwrite(fds[0], "x", 1, 0), <, 0);
    path = g_strdup_printf("/proc/self/fd/%d", fds[0]);
    again = open(path, O_RDWR | O_CLOEXEC);
    g_assert_true(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, again, 0) == MAP_FAILED);
    g_assert_cmpint(fallocate(fds[0], FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096), <, 0);
    for (int i = 0; i < 2; i++) {
        g_assert_cmpint(ftruncate(fds[i], 0), <, 0);
        g_assert_cmpint(ftruncate(fds[i], 8192), <, 0);
        g_assert_cmpint(fcntl(fds[i], F_ADD_SEALS, F_SEAL_WRITE), <, 0);
    }
    munmap(page, 4096);
    close(again);
    close(fds[0]);
    close(fds[1]);
    close(fd);
    live_close(&live);
}

/* Anything at all in the page that it may write, and messages at any time. */
static void test_nonsense_usage(void)
{
    struct live live;
    int fds[2], fd;
    uint64_t *page;

    live_open(&live, slices);
    live_spawn(&live, "a", live_work);
    fd = connect_to_a(&live);
    g_assert_true(raw_join(fd, fds));
    page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fds[1], 0);
    g_assert_true(page != MAP_FAILED);
    for (int i = 0; i < 20000; i++) {
        page[g_test_rand_int_range(0, sizeof(struct governor_usage) / sizeof(*page))] =
            ((uint64_t)g_test_rand_int() << 32 | (uint64_t)g_test_rand_int()) >>
            g_test_rand_int_range(0, 64);
        raw_send(fd, (uint32_t)g_test_rand_int_range(GOVERNOR_WANT, GOVERNOR_RESERVE), 0,
                 (uint64_t)g_test_rand_int_range(0, GOVERNOR_CLASSES), 0);
    }
    live_reset(&live);
    g_usleep(500000);
    g_assert_cmpuint(live.reports[0].done, >, 20);
    munmap(page, 4096);
    close(fds[0]);
    close(fds[1]);
    close(fd);
    live_await(&live, "a", "members", 1);
    live_close(&live);
}

/* Far less than a descriptor of lingering_send() takes. */
static void assert_answers(const struct live *live)
{
    gint64 begin = g_get_monotonic_time();

    live_status(live, "a", "members");
    g_assert_cmpint(g_get_monotonic_time() - begin, <, LINGERING_S * G_TIME_SPAN_SECOND / 2);
}

/* With a message that would otherwise be welcome. False: the kernel refuses it. */
static bool pass_lingering(int fd)
{
    const struct governor_message idle = {.version = GOVERNOR_PROTOCOL_VERSION,
                                          .type = GOVERNOR_IDLE};

    if (lingering_send(fd, &idle, sizeof(idle)))
        return true;
    g_assert_cmpint(errno, ==, EPERM);
    return false;
}

/* What is to be read next, and what is behind a message for which the member is dropped. */
static void lingering_messages(void)
{
    struct live live;
    int next, behind;

    live_open(&live, slices);
    next = member_of_a(&live);
    if (pass_lingering(next))
        live_await_log(&live, "it sent descriptors");
    assert_answers(&live);
    close(next);
    behind = member_of_a(&live);
    kill(live.arbiter, SIGSTOP);
    raw_send(behind, GOVERNOR_RELEASE, 1, 0, 0);
    pass_lingering(behind);
    kill(live.arbiter, SIGCONT);
    assert_answers(&live);
    assert_dropped(behind);
    assert_answers(&live);
    live_await(&live, "a", "members", 0);
    live_close(&live);
}

/* Of a process that is gone, and of one that was not accepted before the slice ended. */
static void lingering_ends(void)
{
    struct live live;
    int fd;

    live_open(&live, slices);
    fd = member_of_a(&live);
    kill(live.arbiter, SIGSTOP);
    pass_lingering(fd);
    close(fd);
    kill(live.arbiter, SIGCONT);
    assert_answers(&live);
    kill(live.arbiter, SIGSTOP);
    fd = connect_to_a(&live);
    pass_lingering(fd);
    live_configure(&live, "a", NULL);
    kill(live.arbiter, SIGCONT);
    assert_answers(&live);
    live_await(&live, "a", "members", -1);
    close(fd);
    live_close(&live);
}

/* Before Linux 6.16. */
static void on_old_kernel(void (*test)(void))
{
    live_refuse_option(OPTION_PASSRIGHTS, ENOPROTOOPT);
    test();
    live_refuse_option(0, 0);
}

static void test_lingering_messages(void)
{
    lingering_messages();
    on_old_kernel(lingering_messages);
}

static void test_lingering_ends(void)
{
    lingering_ends();
    on_old_kernel(lingering_ends);
}

/* With a kernel that answers SO_PEERPIDFD by @error. */
static void open_without_pidfd(struct live *live, int error)
{
    live_refuse_option(OPTION_PEERPIDFD, error);
    live_open(live, slices);
    live_refuse_option(0, 0);
}

/* Its number may be another process' by now. */
static void test_gone_peer(void)
{
    struct live live;

    open_without_pidfd(&live, ESRCH);
    assert_dropped(connect_to_a(&live));
    live_await_log(&live, "the kernel does not know its process any more");
    live_close(&live);
}

static bool can_be_another(void)
{
    if (geteuid() == 0)
        return true;
    g_test_skip("needs root, to be somebody else");
    return false;
}

/* Before Linux 6.5 there is nothing but the number, and who made the connection. */
static void test_number_of_another(void)
{
    struct live live;
    pid_t pid;

    if (!can_be_another())
        return;
    open_without_pidfd(&live, ENOPROTOOPT);
    close(member_of_a(&live));
    kill(live.arbiter, SIGSTOP);
    pid = fork();
    if (!pid) {
        int fd = connect_to_a(&live);

        g_assert_no_errno(setresuid(65534, 65534, 65534));
        raise(SIGSTOP);
        close(fd);
        _exit(0);
    }
    g_assert_cmpint(waitpid(pid, NULL, WUNTRACED), ==, pid);
    kill(live.arbiter, SIGCONT);
    live_await_log(&live, "the kernel does not know its process any more");
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    live_close(&live);
}

/* An arbiter may see no other user's process where /proc is mounted with hidepid=. */
static void test_hidden_peer(void)
{
    struct live live;
    int status;
    pid_t pid;

    if (!can_be_another())
        return;
    live_hide_processes(true);
    open_without_pidfd(&live, ENOPROTOOPT);
    live_hide_processes(false);
    pid = fork();
    if (!pid) {
        g_autofree char *path = live_socket(&live, "a");
        g_autofree char *dir = g_path_get_dirname(path);

        g_assert_no_errno(chdir(dir));
        g_assert_no_errno(setresuid(65534, 65534, 65534));
        _exit(raw_member("governor.sock") < 0);
    }
    g_assert_cmpint(waitpid(pid, &status, 0), ==, pid);
    g_assert_cmpint(status, ==, 0);
    live_close(&live);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/governor/abuse/messages", test_messages);
    g_test_add_func("/governor/abuse/lengths", test_lengths);
    g_test_add_func("/governor/abuse/objects", test_objects);
    g_test_add_func("/governor/abuse/deaf", test_deaf);
    g_test_add_func("/governor/abuse/pages", test_pages);
    g_test_add_func("/governor/abuse/nonsense-usage", test_nonsense_usage);
    g_test_add_func("/governor/abuse/lingering-messages", test_lingering_messages);
    g_test_add_func("/governor/abuse/lingering-ends", test_lingering_ends);
    g_test_add_func("/governor/abuse/gone-peer", test_gone_peer);
    g_test_add_func("/governor/abuse/number-of-another", test_number_of_another);
    g_test_add_func("/governor/abuse/hidden-peer", test_hidden_peer);
    return g_test_run();
}
