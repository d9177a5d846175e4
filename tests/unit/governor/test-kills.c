// SPDX-License-Identifier: MIT
/*
 * SIGKILL at every write of a member to its page and to its socket: the peers go on, and nothing of
 * it stays. The calls by which it can be seen are wrapped by the linker, see governor.mk.
 */
#include "compute.h"
#include "governor_protocol.h"
#include "kill_point.h"
#include "live.h"

#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* Peers, before the one that is killed. */
#define PEERS 2
/* More would mean that the end is never reached. */
#define MOST_POINTS 200
/* Were it left behind, its slice would not get a turn again for so long. */
#define ESTIMATE_NS (5 * NS_PER_S)
/* So peers go on long before that. Of this many runs the shortest counts. */
#define GO_ON_NS (ESTIMATE_NS / 2)
#define MEASURED 3

/* Capped: always metered, and work in flight counts against the cap. */
static const char *const slices[] = {
    "a", "[slice]\nweight=50\ncap=50\nhard=true\nvram=1000000\nspill=3000000\n", "b",
    "[slice]\nweight=50\n", NULL};

void *__real_mmap(void *address, size_t length, int prot, int flags, int fd, off_t offset);
void *__wrap_mmap(void *address, size_t length, int prot, int flags, int fd, off_t offset);
void *__real_mremap(void *old, size_t old_size, size_t new_size, int flags, void *address);
void *__wrap_mremap(void *old, size_t old_size, size_t new_size, int flags, void *address);
ssize_t __real_send(int fd, const void *data, size_t length, int flags);
ssize_t __wrap_send(int fd, const void *data, size_t length, int flags);
ssize_t __real_recv(int fd, void *data, size_t length, int flags);
ssize_t __wrap_recv(int fd, void *data, size_t length, int flags);
ssize_t __real_recvmsg(int fd, struct msghdr *packet, int flags);
ssize_t __wrap_recvmsg(int fd, struct msghdr *packet, int flags);
int __real_connect(int fd, const struct sockaddr *address, socklen_t length);
int __wrap_connect(int fd, const struct sockaddr *address, socklen_t length);
int __real_close(int fd);
int __wrap_close(int fd);
int __real_poll(struct pollfd *fds, nfds_t count, int timeout);
int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout);
int __real_pthread_sigmask(int how, const sigset_t *set, sigset_t *before);
int __wrap_pthread_sigmask(int how, const sigset_t *set, sigset_t *before);

static bool armed;
static _Atomic bool thread_waits;

/* The page of usage is the one that is shared and writable. */
void *__wrap_mmap(void *address, size_t length, int prot, int flags, int fd, off_t offset)
{
    bool watch = armed && fd >= 0 && (flags & MAP_SHARED) && (prot & PROT_WRITE);
    void *page = __real_mmap(address, length, watch ? PROT_READ : prot, flags, fd, offset);

    if (watch)
        kill_point_watch(page, length);
    return page;
}

void *__wrap_mremap(void *old, size_t old_size, size_t new_size, int flags, void *address)
{
    void *page = __real_mremap(old, old_size, new_size, flags, address);

    if (armed && old == kill_point_watched())
        kill_point_watch(page, new_size);
    return page;
}

ssize_t __wrap_send(int fd, const void *data, size_t length, int flags)
{
    kill_point();
    return __real_send(fd, data, length, flags);
}

ssize_t __wrap_recv(int fd, void *data, size_t length, int flags)
{
    ssize_t got = __real_recv(fd, data, length, flags);

    if (got >= 0)
        kill_point();
    return got;
}

ssize_t __wrap_recvmsg(int fd, struct msghdr *packet, int flags)
{
    ssize_t got = __real_recvmsg(fd, packet, flags);

    kill_point();
    return got;
}

int __wrap_connect(int fd, const struct sockaddr *address, socklen_t length)
{
    kill_point();
    return __real_connect(fd, address, length);
}

int __wrap_close(int fd)
{
    kill_point();
    return __real_close(fd);
}

/* The member's own thread waits for two things at once, and nothing else does. */
int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout)
{
    if (count == 2)
        thread_waits = true;
    return __real_poll(fds, count, timeout);
}

/* A write is seen by a signal, in the member's own thread too. */
int __wrap_pthread_sigmask(int how, const sigset_t *set, sigset_t *before)
{
    sigset_t but;

    if (!set)
        return __real_pthread_sigmask(how, set, before);
    but = *set;
    sigdelset(&but, SIGSEGV);
    sigdelset(&but, SIGTRAP);
    return __real_pthread_sigmask(how, &but, before);
}

/* From here on its pages are watched. */
static void arm(long number)
{
    armed = true;
    kill_point_arm(number);
}

static void use_memory(GovernorMember *member)
{
    g_assert_cmpint(governor_member_reserve(member, 1000, false), ==, GOVERNOR_MEMORY_DEVICE);
    g_assert_cmpint(governor_member_reserve(member, 999500, true), ==, GOVERNOR_MEMORY_SPILL);
}

static void use_time(GovernorMember *member)
{
    uint64_t debit;

    compute_count(member);
    debit = compute_begin(member, ESTIMATE_NS, false);
    g_usleep(100);
    governor_member_end(member, debit, 100 * NS_PER_US);
    governor_member_cancel(member, compute_begin(member, ESTIMATE_NS, false));
    debit = compute_begin(member, ESTIMATE_NS, false);
    compute_stalled(member);
    governor_member_end(member, debit, 100 * NS_PER_US);
    debit = compute_begin(member, ESTIMATE_NS, true);
    governor_member_end(member, debit, 100 * NS_PER_US);
}

/* All that a member does, once. */
static void live_once(struct live *live, const char *socket_path, struct live_report *report)
{
    GovernorMember *member;

    (void)live;
    arm((long)report->go);
    member = governor_member_new(socket_path, true);
    g_assert_nonnull(member);
    use_memory(member);
    use_time(member);
    governor_member_release(member, 1000, GOVERNOR_MEMORY_DEVICE);
    governor_member_release(member, 999500, GOVERNOR_MEMORY_SPILL);
    use_memory(member);
    governor_member_free(member);
    report->done = 1;
    _exit(0);
}

static void open_with_peers(struct live *live)
{
    live_open(live, slices);
    live_spawn(live, "a", live_work);
    live_spawn(live, "b", live_work);
    live_await_ready(live, 0);
    live_await_ready(live, 1);
}

/* The only one there is besides the peers, told to die at @point. */
static unsigned spawn_victim(struct live *live, LiveFunc function, long point)
{
    live->count = PEERS;
    live->reports[PEERS] = (struct live_report){.go = (uint64_t)point};
    return live_spawn(live, "a", function);
}

/* True if it died at its point, false if it reached its end. */
static bool await_death(struct live *live, unsigned victim)
{
    int status = 0;

    g_assert_cmpint(waitpid(live->members[victim], &status, 0), ==, live->members[victim]);
    live->members[victim] = 0;
    if (WIFEXITED(status)) {
        g_assert_cmpint(WEXITSTATUS(status), ==, 0);
        g_assert_cmpuint(live->reports[victim].done, ==, 1);
        return false;
    }
    g_assert_cmpint(WTERMSIG(status), ==, SIGKILL);
    return true;
}

/* How long it takes from now on until each peer has ended something that it began after now. */
static uint64_t peers_go_on_after(const struct live *live)
{
    uint64_t since = clock_now(), before[PEERS];

    for (unsigned i = 0; i < PEERS; i++)
        before[i] = live->reports[i].done;
    for (unsigned i = 0; i < PEERS; i++) {
        while (live->reports[i].done < before[i] + 2 && clock_now() - since < ESTIMATE_NS)
            g_usleep(200);
    }
    return clock_now() - since;
}

static void assert_nothing_left(const struct live *live)
{
    live_await(live, "a", "members", 1);
    live_await(live, "b", "members", 1);
    live_await(live, "a", "vram_used", 0);
    live_await(live, "a", "spill_used", 0);
}

/* Kills at each of its points one that executes @function; returns how many there are. */
static long kill_at_each(struct live *live, LiveFunc function)
{
    uint64_t longest = 0;
    long point = 0;
    bool died = true;

    for (; died; point++) {
        uint64_t gap = UINT64_MAX;

        g_assert_cmpint(point, <, MOST_POINTS);
        for (int i = 0; i < MEASURED && gap > GO_ON_NS; i++) {
            died = await_death(live, spawn_victim(live, function, point));
            gap = peers_go_on_after(live);
            assert_nothing_left(live);
        }
        if (gap > GO_ON_NS)
            g_test_message("killed at point %ld", point);
        g_assert_cmpuint(gap, <=, GO_ON_NS);
        longest = MAX(longest, gap);
    }
    g_test_message("%ld points, peers went on after %.1f ms at most", point - 1,
                   (double)longest / 1e6);
    return point - 1;
}

static void test_every_write(void)
{
    struct live live;

    if (!kill_point_supported()) {
        g_test_skip("no single steps on this processor");
        return;
    }
    open_with_peers(&live);
    /* Joining has 8, reserving 2, and a submission with its end 10 at the least. */
    g_assert_cmpint(kill_at_each(&live, live_once), >, 50);
    live_close(&live);
}

/* A child is a member of its own from its first call on: it dies in that. */
static void fork_and_call(struct live *live, const char *socket_path, struct live_report *report)
{
    GovernorMember *member;
    pid_t child;
    int status = 0;

    (void)live;
    arm(KILL_POINT_NEVER);
    member = governor_member_new(socket_path, true);
    use_memory(member);
    /* A thread that is about to start may hold a lock of the sanitizer, forever in a child. */
    while (!thread_waits)
        g_usleep(1000);
    child = fork();
    if (!child) {
        arm((long)report->go);
        use_memory(member);
        use_time(member);
        _exit(0);
    }
    g_assert_cmpint(waitpid(child, &status, 0), ==, child);
    g_assert_true(status == 0 || (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL));
    report->granted = status != 0;
    /* Its parent is unchanged. */
    use_time(member);
    report->done = 1;
}

static void test_child(void)
{
    struct live live;
    long point = 0;
    bool died = true;

    if (!kill_point_supported()) {
        g_test_skip("no single steps on this processor");
        return;
    }
    open_with_peers(&live);
    for (; died; point++) {
        unsigned victim = spawn_victim(&live, fork_and_call, point);

        g_assert_cmpint(point, <, MOST_POINTS);
        live_await_word(&live.reports[victim].done, 1);
        died = live.reports[victim].granted;
        live_await(&live, "a", "members", 2);
        live_await(&live, "a", "vram_used", 1000);
        live_await(&live, "a", "spill_used", 999500);
        live_kill(&live, victim, SIGKILL);
    }
    g_test_message("%ld points", point - 1);
    g_assert_cmpint(point - 1, >, 20);
    assert_nothing_left(&live);
    live_close(&live);
}

/* Another arbiter comes, and the member dies while it joins that. */
static void hold_and_rejoin(struct live *live, const char *socket_path, struct live_report *report)
{
    GovernorMember *member;

    (void)live;
    arm(KILL_POINT_NEVER);
    member = governor_member_new(socket_path, true);
    use_memory(member);
    /* What may have been executed of it by the time of death stays charged: not much. */
    compute_begin(member, 20 * NS_PER_MS, false);
    arm((long)report->go);
    report->ready = 1;
    while (!report->done)
        g_usleep(1000);
    _exit(0);
}

static bool has_died(const struct live *live, unsigned victim)
{
    siginfo_t info = {0};

    g_assert_cmpint(waitid(P_PID, (id_t)live->members[victim], &info, WEXITED | WNOHANG | WNOWAIT),
                    ==, 0);
    return info.si_pid != 0;
}

/* It has joined again, or has died on the way. */
static void await_rejoining(const struct live *live, unsigned victim)
{
    while (!has_died(live, victim) && live_status(live, "a", "members") != 2)
        g_usleep(2000);
    /* The welcome is sent before the last of its points. */
    g_usleep(20000);
}

static void test_rejoin(void)
{
    struct live live;
    bool died = true;
    long point = 0;

    if (!kill_point_supported()) {
        g_test_skip("no single steps on this processor");
        return;
    }
    open_with_peers(&live);
    for (; died; point++) {
        unsigned victim = spawn_victim(&live, hold_and_rejoin, point);

        live_await_ready(&live, victim);
        live_kill_arbiter(&live, SIGKILL);
        live_start_arbiter(&live);
        g_assert_cmpint(point, <, MOST_POINTS);
        await_rejoining(&live, victim);
        live.reports[victim].done = 1;
        died = await_death(&live, victim);
        assert_nothing_left(&live);
        live_go_on(&live, PEERS);
    }
    g_test_message("%ld points", point - 1);
    /* Four words of the page, connecting, and messages on the socket. */
    g_assert_cmpint(point - 1, >=, 7);
    live_close(&live);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/governor/kills/every-write", test_every_write);
    g_test_add_func("/governor/kills/child", test_child);
    g_test_add_func("/governor/kills/rejoin", test_rejoin);
    return g_test_run();
}
