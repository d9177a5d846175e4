// SPDX-License-Identifier: MIT
/* The keeper: what clients were given stays charged until nobody else has it. */
#include "keeper.h"

#include "dmabuf.h"
#include "guard_limits.h"
#include "keeper_session.h"
#include "kept.h"

#include <fcntl.h>
#include <glib.h>
#include <poll.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define SIZE 8192
#define PATH "/the/socket"

/* Replaces the arbiter: what is charged, and what is refused. */
static struct {
    _Atomic uint64_t charged;
    _Atomic uint64_t room;
    _Atomic int members;
} slice;

/* The kernel's number of references to any buffer; 0: unknown. */
static _Atomic uint64_t references;

uint64_t dmabuf_references(int fd G_GNUC_UNUSED)
{
    return references;
}

uint64_t dmabuf_bytes(int fd)
{
    struct stat status;

    g_assert_no_errno(fstat(fd, &status));
    return (uint64_t)status.st_size;
}

GovernorMember *governor_member_new(const char *socket_path, bool required)
{
    g_assert_cmpstr(socket_path, ==, PATH);
    g_assert_false(required);
    slice.members++;
    return (GovernorMember *)&slice;
}

void governor_member_free(GovernorMember *member)
{
    g_assert_true(member == (GovernorMember *)&slice);
    slice.members--;
}

bool governor_member_import(GovernorMember *member, struct governor_object *object, uint64_t bytes)
{
    g_assert_true(member == (GovernorMember *)&slice);
    if (bytes > slice.room)
        return false;
    slice.room -= bytes;
    slice.charged += bytes;
    object->bytes = bytes;
    return true;
}

void governor_member_forget(GovernorMember *member G_GNUC_UNUSED, struct governor_object *object)
{
    slice.charged -= object->bytes;
    slice.room += object->bytes;
}

static void set_up(struct kept_table *table, gconstpointer data G_GNUC_UNUSED)
{
    slice.charged = 0;
    slice.room = 1 << 30;
    references = 2;
    kept_init(table);
    table->member = governor_member_new(PATH, false);
}

static void tear_down(struct kept_table *table, gconstpointer data G_GNUC_UNUSED)
{
    kept_clear(table);
    governor_member_free(table->member);
    g_assert_cmpuint(slice.charged, ==, 0);
}

static int make_buffer(void)
{
    int fd = memfd_create("buffer", MFD_CLOEXEC);

    g_assert_no_errno(ftruncate(fd, SIZE));
    return fd;
}

static bool is_open(int fd)
{
    return fcntl(fd, F_GETFD) >= 0;
}

static void test_kept(struct kept_table *table, gconstpointer data G_GNUC_UNUSED)
{
    int fd = make_buffer();

    g_assert_true(kept_add(table, 7, 1, fd, false));
    g_assert_cmpuint(slice.charged, ==, SIZE);
    /* The session holds it, whoever else does. */
    references = 1;
    g_assert_cmpuint(kept_sweep(table), ==, 0);
    references = 2;
    kept_release(table, 7, 1);
    g_assert_cmpuint(kept_sweep(table), ==, 0);
    g_assert_cmpuint(slice.charged, ==, SIZE);
    g_assert_cmpuint(kept_released_bytes(table), ==, SIZE);
    references = 1;
    g_assert_cmpuint(kept_sweep(table), ==, 1);
    g_assert_cmpuint(slice.charged, ==, 0);
    g_assert_false(is_open(fd));
}

/* The keeper's own two are not somebody else's. */
static void test_copies(struct kept_table *table, gconstpointer data G_GNUC_UNUSED)
{
    int fd = make_buffer();

    references = 4;
    g_assert_true(kept_add(table, 7, 1, dup(fd), false));
    g_assert_true(kept_add(table, 8, 1, fd, false));
    kept_release_all(table, 7);
    references = 3;
    g_assert_cmpuint(kept_sweep(table), ==, 0);
    kept_release_all(table, 8);
    g_assert_cmpuint(kept_sweep(table), ==, 0);
    /* Its own two, and then its own one. */
    references = 2;
    g_assert_cmpuint(kept_sweep(table), ==, 1);
    references = 1;
    g_assert_cmpuint(kept_sweep(table), ==, 1);
}

static void test_refused(struct kept_table *table, gconstpointer data G_GNUC_UNUSED)
{
    int fd = make_buffer();

    slice.room = SIZE - 1;
    g_assert_false(kept_add(table, 7, 1, fd, false));
    g_assert_false(is_open(fd));
    slice.room = 1 << 30;
    references = 0;
    g_assert_false(kept_add(table, 7, 1, make_buffer(), false));
    references = 2;
    g_assert_true(kept_add(table, 7, 1, make_buffer(), false));
    g_assert_false(kept_add(table, 7, 1, make_buffer(), false));
    g_assert_cmpuint(slice.charged, ==, SIZE);
    kept_release(table, 8, 1);
    kept_release(table, 7, 2);
    g_assert_cmpuint(table->released->len, ==, 0);
}

static void test_too_many(struct kept_table *table, gconstpointer data G_GNUC_UNUSED)
{
    int fd = make_buffer();

    /* One descriptor for all: the table does not look. */
    for (uint32_t i = 0; i < GUARD_KEPT_MAX; i++)
        g_assert_true(kept_add(table, 7, i, fcntl(fd, F_DUPFD_CLOEXEC, 0), false));
    g_assert_false(kept_add(table, 7, GUARD_KEPT_MAX, fcntl(fd, F_DUPFD_CLOEXEC, 0), false));
    close(fd);
}

/* The keeper's process, as a thread. */
struct live {
    struct keeper keeper;
    int control;
    GThread *thread;
};

static gpointer run_keeper(gpointer data)
{
    keeper_run(((struct live *)data)->control, PATH);
    close(((struct live *)data)->control);
    return NULL;
}

static void live_set_up(struct live *live, gconstpointer data G_GNUC_UNUSED)
{
    int ends[2];

    slice.charged = 0;
    slice.room = 1 << 30;
    references = 2;
    g_assert_no_errno(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends));
    live->keeper.control = ends[0];
    live->control = ends[1];
    live->thread = g_thread_new("keeper", run_keeper, live);
}

static void live_tear_down(struct live *live, gconstpointer data G_GNUC_UNUSED)
{
    close(live->keeper.control);
    g_thread_join(live->thread);
    g_assert_cmpint(slice.members, ==, 0);
    g_assert_cmpuint(slice.charged, ==, 0);
}

static void wait_for_charge(uint64_t bytes)
{
    for (unsigned i = 0; i < 60000 && slice.charged != bytes; i++)
        g_usleep(1000);
    g_assert_cmpuint(slice.charged, ==, bytes);
}

static void session_begin(struct keeper_session *session, const struct live *live)
{
    keeper_session_init(session);
    session->connection = keeper_connect(&live->keeper);
    g_assert_cmpint(session->connection, >=, 0);
}

static void session_end(struct keeper_session *session)
{
    close(session->connection);
    keeper_session_clear(session);
}

static uint32_t keep_one(struct keeper_session *session, bool *gone)
{
    int fd = make_buffer();
    uint32_t number = keeper_keep(session, fd, false, gone);

    close(fd);
    return number;
}

/* The worker has answered a fence that came behind. */
static void release_buffer(struct keeper_session *session, uint32_t number)
{
    keeper_release_after(session, number, 1);
    keeper_fence_done(session, 1);
}

static void test_session(struct live *live, gconstpointer data G_GNUC_UNUSED)
{
    struct keeper_session one, two;
    uint32_t number;
    bool gone;

    session_begin(&one, live);
    session_begin(&two, live);
    g_assert_cmpint(slice.members, ==, 0);
    number = keep_one(&one, &gone);
    g_assert_cmpuint(number, !=, 0);
    g_assert_cmpuint(keep_one(&two, &gone), !=, 0);
    g_assert_cmpint(slice.members, ==, 1);
    wait_for_charge(2 * SIZE);
    release_buffer(&one, number);
    g_usleep(50000);
    g_assert_cmpuint(slice.charged, ==, 2 * SIZE);
    references = 1;
    wait_for_charge(SIZE);
    slice.room = 0;
    g_assert_cmpuint(keep_one(&one, &gone), ==, 0);
    g_assert_false(gone);
    references = 2;
    session_end(&two);
    g_usleep(50000);
    g_assert_cmpuint(slice.charged, ==, SIZE);
    session_end(&one);
    references = 1;
    wait_for_charge(0);
    /* Nobody is there any more: no member of the slice either. */
    for (unsigned i = 0; i < 60000 && slice.members; i++)
        g_usleep(1000);
    g_assert_cmpint(slice.members, ==, 0);
}

/* As a worker makes it, with a page of content. */
static int shared_memory(void)
{
    int fd = memfd_create("shm", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    g_assert_no_errno(ftruncate(fd, SIZE));
    g_assert_no_errno(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW));
    g_assert_cmpint(write(fd, "content", 7), ==, 7);
    return fd;
}

static bool is_empty(int fd)
{
    struct stat status;

    g_assert_no_errno(fstat(fd, &status));
    g_assert_cmpint(status.st_size, ==, SIZE);
    return status.st_blocks == 0;
}

static void wait_until_empty(int fd)
{
    for (unsigned i = 0; i < 60000 && !is_empty(fd); i++)
        g_usleep(1000);
    g_assert_true(is_empty(fd));
}

/* Whoever has the memfd: its content is given back when it is released, or its session ends. */
static void test_shm(struct live *live, gconstpointer data G_GNUC_UNUSED)
{
    struct keeper_session one, two;
    int first = shared_memory(), second = shared_memory(), other = shared_memory();
    uint32_t number;
    bool gone;

    session_begin(&one, live);
    session_begin(&two, live);
    number = keeper_keep(&one, first, true, &gone);
    g_assert_cmpuint(number, !=, 0);
    g_assert_cmpuint(keeper_keep(&one, second, true, &gone), !=, 0);
    g_assert_cmpuint(keeper_keep(&two, other, true, &gone), !=, 0);
    release_buffer(&one, number);
    wait_until_empty(first);
    g_assert_false(is_empty(second));
    session_end(&one);
    wait_until_empty(second);
    g_assert_false(is_empty(other));
    session_end(&two);
    wait_until_empty(other);
    close(first);
    close(second);
    close(other);
}

/* A client cannot keep the content by a seal of its own. */
static void test_shm_seals(struct live *live, gconstpointer data G_GNUC_UNUSED)
{
    struct keeper_session session;
    int fd = shared_memory();
    int sealed = shared_memory();
    bool gone;

    session_begin(&session, live);
    g_assert_no_errno(fcntl(sealed, F_ADD_SEALS, F_SEAL_FUTURE_WRITE));
    g_assert_cmpuint(keeper_keep(&session, sealed, true, &gone), ==, 0);
    g_assert_false(gone);
    g_assert_cmpuint(keeper_keep(&session, fd, true, &gone), !=, 0);
    session.last--; /* the same number again */
    g_assert_cmpuint(keeper_keep(&session, fd, true, &gone), ==, 0);
    g_assert_cmpint(fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE), ==, -1);
    g_assert_cmpuint(keeper_keep(&session, session.connection, true, &gone), ==, 0);
    g_assert_false(gone);
    session_end(&session);
    wait_until_empty(fd);
    close(fd);
    close(sealed);
}

static bool is_ended(int connection)
{
    struct pollfd end = {.fd = connection, .events = POLLIN};
    char byte;

    return poll(&end, 1, 60000) == 1 && recv(connection, &byte, 1, MSG_DONTWAIT) <= 0;
}

/* A session that a client has taken over. */
static void test_hostile(struct live *live, gconstpointer data G_GNUC_UNUSED)
{
    static const uint32_t words[] = {99, 1, 2};
    struct keeper_session good;
    bool gone;

    session_begin(&good, live);
    for (size_t size = 1; size <= sizeof(words); size++) {
        int bad = keeper_connect(&live->keeper);

        g_assert_cmpint(send(bad, words, size, 0), ==, (ssize_t)size);
        g_assert_true(is_ended(bad));
        close(bad);
    }
    /* Without a descriptor. */
    g_assert_cmpuint(keeper_keep(&good, -1, false, &gone), ==, 0);
    g_assert_false(gone);
    g_assert_cmpuint(keep_one(&good, &gone), !=, 0);
    references = 1;
    session_end(&good);
    wait_for_charge(0);
}

static void test_gone(struct live *live, gconstpointer data G_GNUC_UNUSED)
{
    struct keeper_session session;
    bool gone = false;

    session_begin(&session, live);
    shutdown(live->keeper.control, SHUT_RDWR);
    g_assert_true(is_ended(session.connection));
    g_assert_cmpuint(keep_one(&session, &gone), ==, 0);
    g_assert_true(gone);
    session_end(&session);
    g_assert_cmpint(keeper_connect(&live->keeper), ==, -1);
}

/* The fences of a session's worker come in order, and each ends all before it. */
static void test_release(struct live *live, gconstpointer data G_GNUC_UNUSED)
{
    int first = shared_memory(), second = shared_memory(), third = shared_memory();
    struct keeper_session session;
    bool gone;

    session_begin(&session, live);
    keeper_release_after(&session, keeper_keep(&session, first, true, &gone), 5);
    keeper_release_after(&session, keeper_keep(&session, second, true, &gone), 6);
    keeper_release_after(&session, keeper_keep(&session, third, true, &gone), 9);
    keeper_fence_done(&session, 4);
    g_usleep(50000);
    g_assert_false(is_empty(first));
    keeper_fence_done(&session, 8);
    wait_until_empty(first);
    wait_until_empty(second);
    g_assert_false(is_empty(third));
    session_end(&session);
    wait_until_empty(third);
    close(first);
    close(second);
    close(third);
}

#define TABLE_TEST(name, function)                                                                 \
    g_test_add("/guard/keeper/" name, struct kept_table, NULL, set_up, function, tear_down)
#define LIVE_TEST(name, function)                                                                  \
    g_test_add("/guard/keeper/" name, struct live, NULL, live_set_up, function, live_tear_down)

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    TABLE_TEST("kept", test_kept);
    TABLE_TEST("copies", test_copies);
    TABLE_TEST("refused", test_refused);
    TABLE_TEST("too-many", test_too_many);
    LIVE_TEST("session", test_session);
    LIVE_TEST("shm", test_shm);
    LIVE_TEST("shm-seals", test_shm_seals);
    LIVE_TEST("release", test_release);
    LIVE_TEST("hostile", test_hostile);
    LIVE_TEST("gone", test_gone);
    return g_test_run();
}
