// SPDX-License-Identifier: MIT
/* Memory that a member has returned and keeps for a moment. */
#include "live.h"
#include "raw.h"

#include <errno.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#define DEVICE GOVERNOR_MEMORY_DEVICE

static const char *const slices[] = {"a", "[slice]\nvram=1000000\n", NULL};

static GovernorMember *join(const struct live *live)
{
    g_autofree char *socket_path = live_socket(live, "a");
    GovernorMember *member = governor_member_new(socket_path, true);

    g_assert_nonnull(member);
    return member;
}

static void take(GovernorMember *member, uint64_t bytes)
{
    g_assert_cmpint(governor_member_reserve(member, bytes, false), ==, DEVICE);
}

static void assert_shown(GovernorMember *member, uint64_t bytes)
{
    uint64_t limit, used;

    governor_member_memory(member, &limit, &used);
    g_assert_cmpuint(used, ==, bytes);
}

/* What is taken again is not asked for: the arbiter cannot answer. */
static void test_kept(void)
{
    struct live live;
    GovernorMember *member;

    live_open(&live, slices);
    member = join(&live);
    take(member, 5000);
    take(member, 8000);
    g_assert_cmpint(kill(live.arbiter, SIGSTOP), ==, 0);
    for (unsigned i = 0; i < 1000; i++) {
        governor_member_release(member, 8000, DEVICE);
        take(member, 3000);
        take(member, 5000);
    }
    g_assert_cmpint(kill(live.arbiter, SIGCONT), ==, 0);
    assert_shown(member, 13000);
    g_assert_cmpint(live_status(&live, "a", "vram_used"), ==, 13000);
    governor_member_release(member, 8000, DEVICE);
    /* The program does not see that it is charged still. */
    assert_shown(member, 5000);
    live_await(&live, "a", "vram_used", 5000);
    assert_shown(member, 5000);
    governor_member_free(member);
    live_close(&live);
}

/* No more than a part of the limit; and none of it stands in the way of others. */
static void test_limit(void)
{
    struct live live;
    GovernorMember *one, *other;

    live_open(&live, slices);
    one = join(&live);
    other = join(&live);
    take(one, 500000);
    governor_member_release(one, 400000, DEVICE);
    live_await(&live, "a", "vram_used", 100000);
    take(one, 7000);
    take(other, 400000);
    governor_member_release(one, 7000, DEVICE);
    /* All that there is. */
    take(other, 500000);
    g_assert_cmpint(governor_member_reserve(other, 1, false), ==, GOVERNOR_MEMORY_NONE);
    governor_member_release(one, 7000, DEVICE);
    take(other, 7000);
    assert_shown(other, 1000000);
    governor_member_free(one);
    governor_member_free(other);
    live_close(&live);
}

/* The next arbiter is told what is held, and not what is kept. */
static void test_restart(void)
{
    struct live live;
    GovernorMember *member;

    live_open(&live, slices);
    member = join(&live);
    take(member, 9000);
    governor_member_release(member, 4000, DEVICE);
    live_kill_arbiter(&live, SIGKILL);
    live_start_arbiter(&live);
    live_await(&live, "a", "members", 1);
    g_assert_cmpint(live_status(&live, "a", "vram_used"), ==, 5000);
    take(member, 4000);
    assert_shown(member, 9000);
    governor_member_free(member);
    live_close(&live);
}

static int64_t reserve_raw(int fd, uint64_t bytes)
{
    struct governor_message answer;

    g_assert_true(raw_send(fd, GOVERNOR_RESERVE, bytes, 0, 0));
    g_assert_cmpint(recv(fd, &answer, sizeof(answer), 0), ==, sizeof(answer));
    return (int64_t)answer.value;
}

/* A member of before says nothing of what it has returned: nobody waits for it. */
static void test_earlier(void)
{
    struct live live;
    int earlier, other;
    g_autofree char *path = NULL;

    live_open(&live, slices);
    path = live_socket(&live, "a");
    earlier = raw_member(path);
    other = raw_member(path);
    g_assert_cmpint(reserve_raw(earlier, 600000), ==, 0);
    g_assert_true(raw_send(earlier, GOVERNOR_RELEASE, 100000, 0, 0));
    live_await(&live, "a", "vram_used", 500000);
    g_assert_cmpint(reserve_raw(other, 600000), ==, ENOMEM);
    close(earlier);
    close(other);
    live_close(&live);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/governor/spare/kept", test_kept);
    g_test_add_func("/governor/spare/limit", test_limit);
    g_test_add_func("/governor/spare/restart", test_restart);
    g_test_add_func("/governor/spare/earlier", test_earlier);
    return g_test_run();
}
