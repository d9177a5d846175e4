// SPDX-License-Identifier: MIT
#include "fixture.h"

#include "guard_limits.h"
#include "sync.h"

#include <sys/resource.h>
#include <unistd.h>

struct syncs {
    struct sync_table table;
    const char *fault;
};

static void set_up(struct syncs *s, gconstpointer data G_GNUC_UNUSED)
{
    sync_table_init(&s->table);
    s->fault = NULL;
}

static void tear_down(struct syncs *s, gconstpointer data G_GNUC_UNUSED)
{
    sync_table_clear(&s->table);
    g_assert_cmpuint(s->table.entries, ==, 0);
}

#define ENTRIES(...)                                                                               \
    ((struct sync_entries){(const uint32_t[]){__VA_ARGS__},                                        \
                           sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t) / 3})

static uint64_t value_of(struct syncs *s, uint32_t id)
{
    uint64_t value = 0;

    g_assert_true(sync_read(&s->table, id, &value, &s->fault));
    return value;
}

static int wait_for(struct syncs *s, bool any, uint32_t timeout, struct sync_entries entries)
{
    bool fresh;
    int fd = sync_wait(&s->table, entries, any, timeout, &fresh, &s->fault);

    g_assert_cmpint(fd, >=, 0);
    return fresh ? fd : dup(fd);
}

static void test_values(struct syncs *s, gconstpointer data G_GNUC_UNUSED)
{
    uint32_t id = sync_create(&s->table, 7ull << 32 | 1, &s->fault);

    g_assert_cmpuint(value_of(s, id), ==, 7ull << 32 | 1);
    g_assert_true(sync_write(&s->table, ENTRIES(id, 9, 0), &s->fault));
    g_assert_cmpuint(value_of(s, id), ==, 9);
    g_assert_true(sync_unref(&s->table, id, &s->fault));
    g_assert_false(sync_unref(&s->table, id, &s->fault));
    g_assert_cmpuint(sync_create(&s->table, 0, &s->fault), ==, id);
}

static void test_wait_all(struct syncs *s, gconstpointer data G_GNUC_UNUSED)
{
    uint32_t a = sync_create(&s->table, 0, &s->fault);
    uint32_t b = sync_create(&s->table, 0, &s->fault);
    int fd = wait_for(s, false, UINT32_MAX, ENTRIES(a, 1, 0, b, 2, 0));

    g_assert_true(sync_write(&s->table, ENTRIES(a, 1, 0), &s->fault));
    g_assert_true(sync_write(&s->table, ENTRIES(b, 1, 0), &s->fault));
    g_assert_false(fixture_is_ready(fd));
    g_assert_true(sync_write(&s->table, ENTRIES(b, 3, 0), &s->fault));
    g_assert_true(fixture_is_ready(fd));
    close(fd);
}

static void test_wait_any(struct syncs *s, gconstpointer data G_GNUC_UNUSED)
{
    uint32_t a = sync_create(&s->table, 0, &s->fault);
    uint32_t b = sync_create(&s->table, 5, &s->fault);
    int fd = wait_for(s, true, UINT32_MAX, ENTRIES(a, 1, 0, b, 6, 0));
    int now = wait_for(s, true, 0, ENTRIES(a, 1, 0, b, 5, 0));
    int none = wait_for(s, false, 0, (struct sync_entries){0});

    g_assert_true(fixture_is_ready(now));
    g_assert_true(fixture_is_ready(none));
    g_assert_false(fixture_is_ready(fd));
    g_assert_true(sync_write(&s->table, ENTRIES(a, 1, 0), &s->fault));
    g_assert_true(fixture_is_ready(fd));
    close(fd);
    close(now);
    close(none);
}

/* A number that is given back while somebody waits for it. */
static void test_unref_waited(struct syncs *s, gconstpointer data G_GNUC_UNUSED)
{
    uint32_t id = sync_create(&s->table, 0, &s->fault);
    uint64_t fence = sync_fence_begin(&s->table, 1, ENTRIES(id, 4, 0), &s->fault);
    int fd = wait_for(s, false, UINT32_MAX, ENTRIES(id, 4, 0));

    g_assert_true(sync_unref(&s->table, id, &s->fault));
    g_assert_cmpuint(sync_create(&s->table, 0, &s->fault), ==, id);
    sync_fence_done(&s->table, 1, fence);
    g_assert_true(fixture_is_ready(fd));
    g_assert_cmpuint(value_of(s, id), ==, 0);
    close(fd);
}

/* A fence stands for those before it on its ring, and for no other ring's. */
static void test_fences(struct syncs *s, gconstpointer data G_GNUC_UNUSED)
{
    uint32_t a = sync_create(&s->table, 0, &s->fault);
    uint32_t b = sync_create(&s->table, 0, &s->fault);
    uint32_t c = sync_create(&s->table, 0, &s->fault);
    uint64_t second;
    uint64_t third;

    sync_fence_begin(&s->table, 1, ENTRIES(a, 1, 0), &s->fault);
    sync_fence_begin(&s->table, 2, ENTRIES(b, 1, 0), &s->fault);
    second = sync_fence_begin(&s->table, 1, ENTRIES(a, 2, 0), &s->fault);
    third = sync_fence_begin(&s->table, 1, ENTRIES(c, 3, 0), &s->fault);
    sync_fence_done(&s->table, 1, second);
    g_assert_cmpuint(value_of(s, a), ==, 2);
    g_assert_cmpuint(value_of(s, b), ==, 0);
    g_assert_cmpuint(value_of(s, c), ==, 0);
    sync_fence_cancel(&s->table, third);
    g_assert_false(sync_fence_pending(&s->table, 1));
    g_assert_true(sync_fence_pending(&s->table, 2));
    sync_fence_done(&s->table, 1, UINT64_MAX);
    g_assert_cmpuint(value_of(s, c), ==, 0);
}

/*
 * If there is no room for more, waits whose client has closed its end, or whose time is over, are
 * removed.
 */
static void test_room(struct syncs *s, gconstpointer data G_GNUC_UNUSED)
{
    uint32_t id = sync_create(&s->table, 0, &s->fault);
    g_autofree int *fds = g_new(int, GUARD_WAITS_MAX);
    bool fresh;

    for (uint32_t i = 0; i < GUARD_WAITS_MAX; i++)
        fds[i] = wait_for(s, false, i == 1 ? 0 : UINT32_MAX, ENTRIES(id, 1, 0));
    close(fds[1]);
    close(fds[0]);
    fds[0] = wait_for(s, false, UINT32_MAX, ENTRIES(id, 1, 0));
    fds[1] = wait_for(s, false, UINT32_MAX, ENTRIES(id, 1, 0));
    g_assert_cmpint(sync_wait(&s->table, ENTRIES(id, 1, 0), false, 0, &fresh, &s->fault), ==, -1);
    g_assert_cmpstr(s->fault, ==, "it waits for too many syncs");
    for (uint32_t i = 0; i < GUARD_WAITS_MAX; i++)
        close(fds[i]);
}

/* Waits that are over when they come have one pipe, which also knows nothing of others. */
static void test_reached(struct syncs *s, gconstpointer data G_GNUC_UNUSED)
{
    uint32_t id = sync_create(&s->table, 5, &s->fault);
    bool fresh;
    int first = sync_wait(&s->table, ENTRIES(id, 5, 0), false, 0, &fresh, &s->fault);

    g_assert_false(fresh);
    g_assert_true(fixture_is_ready(first));
    g_assert_cmpint(sync_wait(&s->table, ENTRIES(id, 4, 0), false, 0, &fresh, &s->fault), ==,
                    first);
    g_assert_cmpint(s->table.waits.length, ==, 0);
    g_assert_cmpint(sync_wait(&s->table, ENTRIES(id + 1, 4, 0), false, 0, &fresh, &s->fault), ==,
                    -1);
    g_assert_cmpstr(s->fault, ==, "it names a sync that it does not have");
}

/* What the client of a deferred wait was given. */
static struct {
    int fd;
    unsigned int count;
} answer;

static bool give_answer(void *data, int fd)
{
    g_assert_true(data == &answer);
    answer.fd = dup(fd); /* as the client's socket does */
    answer.count++;
    return answer.fd >= 0;
}

static bool refuse_answer(void *data G_GNUC_UNUSED, int fd G_GNUC_UNUSED)
{
    answer.count++;
    return false;
}

static void answer_by(struct syncs *s)
{
    s->table.answer = give_answer;
    s->table.data = &answer;
    answer.count = 0;
}

static int ask_wait(struct syncs *s, uint32_t timeout, uint32_t id, uint32_t value)
{
    bool fresh;

    return sync_wait(&s->table, ENTRIES(id, value, 0), false, timeout, &fresh, &s->fault);
}

/* After a quick wait the next is answered when it is over, by the pipe of all that are. */
static void test_deferred(struct syncs *s, gconstpointer data G_GNUC_UNUSED)
{
    uint32_t id = sync_create(&s->table, 0, &s->fault);
    int brief;

    answer_by(s);
    s->table.quick = true;
    brief = wait_for(s, false, 5, ENTRIES(id, 9, 0)); /* it would become longer */
    g_assert_cmpint(ask_wait(s, UINT32_MAX, id, 3), ==, SYNC_DEFERRED);
    g_assert_true(sync_write(&s->table, ENTRIES(id, 2, 0), &s->fault));
    g_assert_cmpuint(answer.count, ==, 0);
    g_assert_true(sync_write(&s->table, ENTRIES(id, 3, 0), &s->fault));
    g_assert_cmpuint(answer.count, ==, 1);
    g_assert_true(fixture_is_ready(answer.fd));
    close(answer.fd);
    close(brief);
    g_assert_true(sync_wait_settle(&s->table, &s->fault));
    g_assert_cmpuint(answer.count, ==, 1);
}

/* One that is not over soon gets a pipe of its own, and so do the next ones. */
static void test_settled(struct syncs *s, gconstpointer data G_GNUC_UNUSED)
{
    uint32_t id = sync_create(&s->table, 0, &s->fault);

    answer_by(s);
    s->table.quick = true;
    g_assert_cmpint(ask_wait(s, UINT32_MAX, id, 1), ==, SYNC_DEFERRED);
    g_assert_true(sync_wait_settle(&s->table, &s->fault));
    g_assert_cmpuint(answer.count, ==, 1);
    g_assert_false(fixture_is_ready(answer.fd));
    g_usleep(2 * SYNC_QUICK_US);
    g_assert_true(sync_write(&s->table, ENTRIES(id, 1, 0), &s->fault));
    g_assert_true(fixture_is_ready(answer.fd));
    g_assert_cmpuint(answer.count, ==, 1);
    close(answer.fd);
    close(wait_for(s, false, UINT32_MAX, ENTRIES(id, 2, 0)));
}

static struct rlimit limit_files(rlim_t files)
{
    struct rlimit before, limit;

    g_assert_cmpint(getrlimit(RLIMIT_NOFILE, &before), ==, 0);
    limit = before;
    limit.rlim_cur = files;
    g_assert_cmpint(setrlimit(RLIMIT_NOFILE, &limit), ==, 0);
    return before;
}

/* It is over while there is no pipe to say so by. The one that it gets later says it at once. */
static void test_no_pipe(struct syncs *s, gconstpointer data G_GNUC_UNUSED)
{
    uint32_t id = sync_create(&s->table, 0, &s->fault);
    struct rlimit before;

    answer_by(s);
    s->table.quick = true;
    g_assert_cmpint(ask_wait(s, UINT32_MAX, id, 1), ==, SYNC_DEFERRED);
    before = limit_files(0);
    g_assert_true(sync_write(&s->table, ENTRIES(id, 1, 0), &s->fault));
    g_assert_false(sync_wait_settle(&s->table, &s->fault));
    g_assert_cmpstr(s->fault, ==, "there are no pipes left for its waits");
    limit_files(before.rlim_cur);
    g_assert_cmpuint(answer.count, ==, 0);
    g_assert_true(sync_wait_settle(&s->table, &s->fault));
    g_assert_cmpuint(answer.count, ==, 1);
    g_assert_true(fixture_is_ready(answer.fd));
    g_assert_cmpuint(s->table.waits.length, ==, 0);
    close(answer.fd);
}

/* It is over, and its client cannot be told: the wait stays, and the session learns why. */
static void test_unsent(struct syncs *s, gconstpointer data G_GNUC_UNUSED)
{
    uint32_t id = sync_create(&s->table, 0, &s->fault);

    answer_by(s);
    s->table.answer = refuse_answer;
    s->table.quick = true;
    g_assert_cmpint(ask_wait(s, UINT32_MAX, id, 1), ==, SYNC_DEFERRED);
    g_assert_true(sync_write(&s->table, ENTRIES(id, 1, 0), &s->fault));
    g_assert_cmpuint(answer.count, ==, 1);
    g_assert_cmpuint(s->table.waits.length, ==, 1);
    g_assert_false(sync_wait_settle(&s->table, &s->fault));
    g_assert_cmpstr(s->fault, ==, "the answer to its wait cannot be sent");
    g_assert_cmpuint(answer.count, ==, 2);
}

static void test_limits(struct syncs *s, gconstpointer data G_GNUC_UNUSED)
{
    uint32_t id = sync_create(&s->table, 0, &s->fault);
    g_autofree uint32_t *words = g_new0(uint32_t, (GUARD_SYNC_ENTRIES_MAX + 1) * 3);
    struct sync_entries many = {words, GUARD_SYNC_ENTRIES_MAX + 1};
    bool fresh;

    for (uint32_t i = 0; i <= GUARD_SYNC_ENTRIES_MAX; i++)
        words[i * 3] = id;
    g_assert_cmpuint(sync_fence_begin(&s->table, 0, many, &s->fault), ==, 0);
    words[1] = 1; /* not reached */
    g_assert_cmpint(sync_wait(&s->table, many, false, 0, &fresh, &s->fault), ==, -1);
    words[1] = 0;
    g_assert_false(sync_write(&s->table, many, &s->fault));
    many.count--;
    g_assert_cmpuint(sync_fence_begin(&s->table, 0, many, &s->fault), !=, 0);
    g_assert_cmpuint(sync_fence_begin(&s->table, 0, ENTRIES(id, 1, 0), &s->fault), ==, 0);
    /* One that is wrong takes back those before it. */
    sync_fence_done(&s->table, 0, 1);
    words[3 * (GUARD_SYNC_ENTRIES_MAX - 1)] = id + 1;
    g_assert_cmpuint(sync_fence_begin(&s->table, 0, many, &s->fault), ==, 0);
    g_assert_cmpuint(s->table.entries, ==, 0);

    for (uint32_t i = 1; i < GUARD_SYNCS_MAX; i++)
        g_assert_cmpuint(sync_create(&s->table, 0, &s->fault), !=, 0);
    g_assert_cmpuint(sync_create(&s->table, 0, &s->fault), ==, 0);
    g_assert_cmpstr(s->fault, ==, "it has too many syncs");
}

#define sync_test(path, function) g_test_add(path, struct syncs, NULL, set_up, function, tear_down)

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    sync_test("/sync/values", test_values);
    sync_test("/sync/wait-all", test_wait_all);
    sync_test("/sync/wait-any", test_wait_any);
    sync_test("/sync/unref-waited", test_unref_waited);
    sync_test("/sync/fences", test_fences);
    sync_test("/sync/room", test_room);
    sync_test("/sync/limits", test_limits);
    sync_test("/sync/reached", test_reached);
    sync_test("/sync/deferred", test_deferred);
    sync_test("/sync/settled", test_settled);
    sync_test("/sync/no-pipe", test_no_pipe);
    sync_test("/sync/unsent", test_unsent);
    return g_test_run();
}
