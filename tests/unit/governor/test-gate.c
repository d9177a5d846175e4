// SPDX-License-Identifier: MIT
/* The gate in front of the driver: nobody is inside while it is closed, and nobody is lost. */
#include "gate.h"

#include "clock.h"

#include <glib.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS 2
/* Of 64 bytes each; more than caches have. */
#define LINES (1u << 19)
#define WORDS (64 / sizeof(uint64_t))
#define LONG  (600 * NS_PER_S)

struct test {
    struct gate gate;
    _Atomic bool away;
    _Atomic bool ends;
    _Atomic unsigned asked;
    _Atomic unsigned seen_away;
    _Atomic uint64_t entered[THREADS];
};

struct visitor {
    struct test *test;
    unsigned number;
};

static void count_asked(void *data)
{
    ((struct test *)data)->asked++;
}

static void test_open(struct test *test, uint32_t state)
{
    *test = (struct test){0};
    g_assert_true(gate_init(&test->gate, count_asked, test));
    test->gate.state |= state;
}

/*
 * Stores that take long. Those behind them wait in the processor, and others do not see them, while
 * later loads go on: this is what makes a gate without fences hard.
 */
__attribute__((no_sanitize("address", "undefined", "thread"))) static void
fill_store_buffer(uint64_t *lines, uint32_t *at)
{
    for (unsigned i = 0; i < 40; i++) {
        *at = *at * 1664525 + 1013904223;
        lines[(*at >> 8) % LINES * WORDS] = i;
    }
}

/* As a door's call of the driver. */
static void *visit_driver(void *data)
{
    struct visitor *visitor = data;
    struct test *test = visitor->test;
    struct gate_seat *seat = gate_seat(&test->gate);
    uint64_t *lines = g_new0(uint64_t, LINES *WORDS);
    uint32_t at = visitor->number;

    while (!atomic_load_explicit(&test->ends, memory_order_relaxed)) {
        fill_store_buffer(lines, &at);
        gate_enter(&test->gate, seat);
        for (unsigned i = 0; i < 100; i++)
            if (atomic_load_explicit(&test->away, memory_order_relaxed))
                test->seen_away++;
        atomic_store_explicit(&test->entered[visitor->number], test->entered[visitor->number] + 1,
                              memory_order_relaxed);
        gate_leave(seat);
    }
    g_free(lines);
    return NULL;
}

/* Each of the threads has entered since. */
static void await_all(const struct test *test)
{
    uint64_t before[THREADS];

    for (unsigned i = 0; i < THREADS; i++)
        before[i] = test->entered[i];
    for (unsigned i = 0; i < THREADS; i++)
        while (test->entered[i] == before[i])
            g_usleep(10);
}

/* How often threads have entered. */
static uint64_t visits_of(const struct test *test)
{
    uint64_t visits = 0;

    for (unsigned i = 0; i < THREADS; i++)
        visits += test->entered[i];
    return visits;
}

/* Threads that enter all the time never see that the memory is away, and are never overlooked. */
static void check_litmus(uint32_t state, unsigned closings)
{
    struct visitor visitors[THREADS];
    pthread_t threads[THREADS];
    struct test test;
    uint64_t visits = UINT64_MAX;

    test_open(&test, state);
    for (unsigned i = 0; i < THREADS; i++) {
        visitors[i] = (struct visitor){&test, i};
        g_assert_cmpint(pthread_create(&threads[i], NULL, visit_driver, &visitors[i]), ==, 0);
    }
    for (unsigned i = 0; i < closings; i++) {
        if (i % 64 == 0)
            await_all(&test);
        g_assert_true(gate_close(&test.gate, LONG));
        g_assert_true(gate_was_passed(&test.gate) || visits_of(&test) == visits);
        visits = visits_of(&test);
        test.away = true;
        for (unsigned j = 0; j < i % 200; j++)
            g_assert_true(test.away);
        test.away = false;
        gate_open(&test.gate);
    }
    await_all(&test);
    test.ends = true;
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    g_assert_cmpuint(test.seen_away, ==, 0);
    g_assert_cmpuint(test.asked, <=, closings);
    gate_clear(&test.gate);
}

static void test_litmus(void)
{
    check_litmus(0, 100000);
}

/* Where membarrier is refused. */
static void test_litmus_fenced(void)
{
    check_litmus(GATE_FENCED, 5000);
}

static void *enter_once(void *data)
{
    struct visitor *visitor = data;
    struct gate_seat *seat = gate_seat(&visitor->test->gate);

    gate_enter(&visitor->test->gate, seat);
    visitor->test->entered[visitor->number]++;
    gate_leave(seat);
    return NULL;
}

/* Who is kept outside asks, but only the first one, and all go on. */
static void test_asks_once(void)
{
    struct visitor visitors[THREADS];
    pthread_t threads[THREADS];
    struct test test;

    test_open(&test, 0);
    g_assert_true(gate_close(&test.gate, LONG));
    for (unsigned i = 0; i < THREADS; i++) {
        visitors[i] = (struct visitor){&test, i};
        g_assert_cmpint(pthread_create(&threads[i], NULL, enter_once, &visitors[i]), ==, 0);
    }
    while (!test.asked)
        g_usleep(100);
    g_usleep(20000);
    for (unsigned i = 0; i < THREADS; i++)
        g_assert_cmpuint(test.entered[i], ==, 0);
    gate_open(&test.gate);
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    g_assert_cmpuint(test.asked, ==, 1);
    gate_clear(&test.gate);
}

/* One that was opened tells whether somebody has passed since, also if it could not be closed. */
static void check_passed(uint32_t state)
{
    struct test test;
    struct gate_seat *seat;

    test_open(&test, state);
    seat = gate_seat(&test.gate);
    g_assert_true(gate_close(&test.gate, LONG));
    gate_open(&test.gate);
    g_assert_true(gate_close(&test.gate, LONG));
    g_assert_false(gate_was_passed(&test.gate));
    gate_open(&test.gate);
    gate_enter(&test.gate, seat);
    g_assert_false(gate_close(&test.gate, NS_PER_MS));
    gate_leave(seat);
    g_assert_true(gate_close(&test.gate, LONG));
    g_assert_true(gate_was_passed(&test.gate));
    gate_open(&test.gate);
    gate_clear(&test.gate);
}

static void test_passed(void)
{
    check_passed(0);
    check_passed(GATE_FENCED);
}

/* A call that does not end in time opens the gate, for all. */
static void test_limit(void)
{
    struct test test;
    struct gate_seat *seat;
    struct visitor visitor = {&test, 0};
    pthread_t thread;

    test_open(&test, 0);
    seat = gate_seat(&test.gate);
    gate_enter(&test.gate, seat);
    g_assert_false(gate_close(&test.gate, NS_PER_MS));
    g_assert_cmpint(pthread_create(&thread, NULL, enter_once, &visitor), ==, 0);
    pthread_join(thread, NULL);
    g_assert_cmpuint(test.entered[0], ==, 1);
    gate_leave(seat);
    g_assert_true(gate_close(&test.gate, LONG));
    gate_open(&test.gate);
    gate_clear(&test.gate);
}

/* Seats of threads that have ended are used again. */
static void test_seats(void)
{
    struct test test;
    struct visitor visitor = {&test, 0};
    unsigned count = 0;

    test_open(&test, 0);
    for (unsigned i = 0; i < 100; i++) {
        pthread_t thread;

        g_assert_cmpint(pthread_create(&thread, NULL, enter_once, &visitor), ==, 0);
        pthread_join(thread, NULL);
    }
    for (const struct gate_seat *seat = test.gate.seats; seat; seat = seat->next)
        count++;
    g_assert_cmpuint(count, ==, 1);
    gate_clear(&test.gate);
}

static void *enter_and_stay(void *data)
{
    struct visitor *visitor = data;

    gate_enter(&visitor->test->gate, gate_seat(&visitor->test->gate));
    visitor->test->entered[visitor->number]++;
    while (!visitor->test->ends)
        g_usleep(1000);
    gate_leave(gate_seat(&visitor->test->gate));
    return NULL;
}

/* A child has none of its parent's threads, and its gate can be closed. */
static void test_fork(void)
{
    struct test test;
    struct visitor visitor = {&test, 0};
    pthread_t thread;
    pid_t child;
    int status;

    test_open(&test, 0);
    g_assert_cmpint(pthread_create(&thread, NULL, enter_and_stay, &visitor), ==, 0);
    while (!test.entered[0])
        g_usleep(100);
    child = fork();
    if (!child) {
        gate_renew(&test.gate, gate_seat(&test.gate));
        if (!gate_close(&test.gate, LONG))
            _exit(1);
        gate_open(&test.gate);
        gate_enter(&test.gate, gate_seat(&test.gate));
        _exit(0);
    }
    g_assert_cmpint(waitpid(child, &status, 0), ==, child);
    g_assert_cmpint(status, ==, 0);
    test.ends = true;
    pthread_join(thread, NULL);
    gate_clear(&test.gate);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/governor/gate/litmus", test_litmus);
    g_test_add_func("/governor/gate/litmus-fenced", test_litmus_fenced);
    g_test_add_func("/governor/gate/asks-once", test_asks_once);
    g_test_add_func("/governor/gate/passed", test_passed);
    g_test_add_func("/governor/gate/limit", test_limit);
    g_test_add_func("/governor/gate/seats", test_seats);
    g_test_add_func("/governor/gate/fork", test_fork);
    return g_test_run();
}
