/* SPDX-License-Identifier: MIT */
/*
 * vgpud's main loop does not do slow work: names of users, a look at all processes, an arbiter that
 * hangs.
 */
#include <dlfcn.h>
#include <pwd.h>
#include <stdio.h>
#include <unistd.h>

#include "tests/unit/file_tree.h"
#include "tests/unit/host-agent/agent_on_bus.h"
#include "tests/unit/host-agent/fake_arbiter.h"
#include "tests/unit/host-agent/slices_kit.h"

#define GPU      "0000:02:00.0"
#define GOVERNOR "/run/vgpu/governor/" GPU

static GThread *main_thread;
static int by_main, by_others; /* queries for users, atomic */

static void count_question(void)
{
    g_atomic_int_inc(g_thread_self() == main_thread ? &by_main : &by_others);
}

/* Replaces libc's, for vgpud too. */
#define FORWARD(function, ...)                                                                     \
    do {                                                                                           \
        count_question();                                                                          \
        return ((__typeof__(&(function)))dlsym(RTLD_NEXT, #function))(__VA_ARGS__);                \
    } while (0)

struct passwd *getpwuid(uid_t uid)
{
    FORWARD(getpwuid, uid);
}

struct passwd *getpwnam(const char *name)
{
    FORWARD(getpwnam, name);
}

int getpwuid_r(uid_t uid, struct passwd *entry, char *text, size_t size, struct passwd **found)
{
    FORWARD(getpwuid_r, uid, entry, text, size, found);
}

int getpwnam_r(const char *name, struct passwd *entry, char *text, size_t size,
               struct passwd **found)
{
    FORWARD(getpwnam_r, name, entry, text, size, found);
}

static gboolean were_asked(gconstpointer most)
{
    return g_atomic_int_get(&by_others) >= GPOINTER_TO_INT(most);
}

static void test_users(void)
{
    AgentOnBus at;

    agent_on_bus_open(&at, "shared");
    by_main = by_others = 0;
    assert_says("vgpu list", 0, "", "");
    g_assert_cmpint(by_others, >, 0);
    by_others = 0;
    assert_says("tenant set red --user jo --user ann", 0, "", "");
    iterate_until(were_asked, GINT_TO_POINTER(3)); /* the caller, jo and ann */
    g_assert_cmpint(by_main, ==, 0);
    agent_on_bus_close(&at);
}

static void share_gpu(AgentOnBus *at)
{
    agent_on_bus_open(at, "shared");
    file_tree_write(at->root, "/etc/vgpu/types.d/10.conf", "[type half]\nvram=1/2\n");
    file_tree_write(at->root, "/etc/vgpu/gpus.conf", "[gpu " GPU "]\nmode=shared\n");
    assert_says("reload", 0, "", "");
}

/* Reads all counters five times; how often the arbiter was asked. */
static int questions_of_five(const AgentOnBus *at, FakeArbiter *arbiter)
{
    Counters *counters = host_view_counters(meter_view(at->meter));

    g_atomic_int_set(&arbiter->asked, 0);
    for (guint i = 0; i < 5; i++) {
        counters_read(counters);
        g_assert_cmpuint(counters_use(counters, UUID)->vram_used, ==, 4096);
    }
    return g_atomic_int_get(&arbiter->asked);
}

/* One that is at rest is asked once. With 1,024 vGPUs a scrape parsed half a megabyte of zeros. */
static void test_rest(void)
{
    AgentOnBus at;
    FakeArbiter arbiter;

    share_gpu(&at);
    fake_arbiter_open(&arbiter, at.root);
    g_assert_cmpint(questions_of_five(&at, &arbiter), ==, 5);
    file_tree_write(at.root, GOVERNOR "/rest", "17\n");
    g_assert_cmpint(questions_of_five(&at, &arbiter), ==, 1);
    g_assert_cmpint(questions_of_five(&at, &arbiter), ==, 0);
    file_tree_write(at.root, GOVERNOR "/rest", "18\n");
    g_assert_cmpint(questions_of_five(&at, &arbiter), ==, 1);
    root_remove(at.root, GOVERNOR "/rest");
    g_assert_cmpint(questions_of_five(&at, &arbiter), ==, 5);
    fake_arbiter_close(&arbiter);
    agent_on_bus_close(&at);
}

static void iterate_until_sampled(UsageSampler *sampler)
{
    while (usage_sampler_rests(sampler))
        g_main_context_iteration(NULL, TRUE);
}

/* While no arbiter has users there are no samples; the first user of any of them begins the next.
 */
static void test_wake(void)
{
    AgentOnBus at;
    FakeArbiter arbiter;
    UsageSampler *sampler;

    share_gpu(&at);
    meter_set_agent_up(at.meter, TRUE);
    sampler = meter_usage(at.meter);
    fake_arbiter_open(&arbiter, at.root);
    usage_sampler_tick(sampler, 60);
    usage_sampler_tick(sampler, 60);
    g_assert_false(usage_sampler_rests(sampler));
    file_tree_write(at.root, GOVERNOR "/rest", "17\n");
    usage_sampler_tick(sampler, 60);
    usage_sampler_tick(sampler, 60);
    g_assert_true(usage_sampler_rests(sampler));
    root_remove(at.root, GOVERNOR "/rest");
    iterate_until_sampled(sampler);
    file_tree_write(at.root, GOVERNOR "/rest", "18\n");
    usage_sampler_tick(sampler, 60);
    usage_sampler_tick(sampler, 60);
    g_assert_true(usage_sampler_rests(sampler));
    /* Between two ticks somebody came and went. */
    file_tree_write(at.root, GOVERNOR "/rest", "19\n");
    iterate_until_sampled(sampler);
    fake_arbiter_close(&arbiter);
    agent_on_bus_close(&at);
}

/* An arbiter that gave no answer is asked again, even if it says that it is at rest. */
static void test_rest_without_answer(void)
{
    AgentOnBus at;
    FakeArbiter arbiter;

    share_gpu(&at);
    file_tree_write(at.root, GOVERNOR "/rest", "17\n");
    counters_read(host_view_counters(meter_view(at.meter)));
    fake_arbiter_open(&arbiter, at.root);
    g_assert_cmpint(questions_of_five(&at, &arbiter), ==, 1);
    fake_arbiter_close(&arbiter);
    agent_on_bus_close(&at);
}

/* It is waited for once. */
static void test_arbiter(void)
{
    AgentOnBus at;
    int fd;

    share_gpu(&at);
    fd = fake_arbiter_listen(at.root);
    for (guint i = 0; i < 50; i++)
        counters_read(host_view_counters(meter_view(at.meter)));
    g_assert_cmpuint(fake_arbiter_count(fd), ==, 1);
    close(fd);
    agent_on_bus_close(&at);
}

int main(int argc, char **argv)
{
    main_thread = g_thread_self();
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/loop/users", test_users);
    g_test_add_func("/loop/arbiter", test_arbiter);
    g_test_add_func("/loop/rest", test_rest);
    g_test_add_func("/loop/wake", test_wake);
    g_test_add_func("/loop/rest-without-answer", test_rest_without_answer);
    return g_test_run();
}
