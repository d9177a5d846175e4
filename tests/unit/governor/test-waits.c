// SPDX-License-Identifier: MIT
/* Work that waits for other work: of another queue, and of another process. */
#include "compute.h"
#include "tenant.h"

#include <signal.h>

/* When the layer reports that work has not begun, and when it repeats that. */
#define STALLED_NS       (3 * NS_PER_MS)
#define STALLED_AGAIN_NS (20 * NS_PER_MS)

/* As the layer's thread does for the oldest work of its queue if it has not begun. */
struct teller {
    GovernorMember *member;
    _Atomic uint64_t since; /* 0: nothing waits */
};

static void *tell(void *data)
{
    struct teller *teller = data;
    uint64_t first = 0, next = 0;

    for (;; g_usleep(500)) {
        uint64_t since = teller->since, now = clock_now();

        if (since != first)
            next = since + STALLED_NS;
        first = since;
        if (!since || now < next)
            continue;
        compute_stalled(teller->member);
        next = now + STALLED_AGAIN_NS;
    }
    return NULL;
}

static void teller_start(struct teller *teller, GovernorMember *member)
{
    *teller = (struct teller){.member = member};
    g_thread_new("tell", tell, teller);
}

/* It has been submitted since @teller knows of it, and waits for @word. */
static void end_after(GovernorMember *member, uint64_t debit, const _Atomic uint64_t *word,
                      uint64_t value)
{
    while (*word < value)
        g_usleep(100);
    line_await(line_submit(line, NS_PER_MS));
    governor_member_end(member, debit, NS_PER_MS);
}

#define ROUNDS 60

/* Of two processes: each waits for what the other does last, and both for one lease. */
static void cycle(struct live *live, const char *socket_path, struct live_report *report)
{
    GovernorMember *member = tenant_join(socket_path, report);
    bool first = report == &live->reports[0];
    const struct live_report *other = &live->reports[first ? 1 : 0];
    static struct teller teller;

    teller_start(&teller, member);
    while (!report->go)
        g_usleep(1000);
    for (uint64_t round = 1; round <= ROUNDS; round++) {
        /* The second answers the first, and the first continues from the second's last answer. */
        uint64_t value = first ? round - 1 : round;

        uint64_t debit = compute_begin(member, NS_PER_MS, round % 2);

        teller.since = clock_now();
        end_after(member, debit, &other->granted, value);
        teller.since = 0;
        report->granted = round;
    }
}

/* A millisecond, of a member since @began. */
static double rate_of(const struct live_report *report, uint64_t done, uint64_t began)
{
    return (double)(report->done - done) * 1e6 / (double)(clock_now() - began);
}

static void test_cycle(void)
{
    const char *const slices[] = {"a", "[slice]\n", "b", "[slice]\n", "c", "[slice]\n", NULL};
    struct live live;
    uint64_t began, done;
    double alone, beside;

    tenant_open(&live, slices);
    live_spawn(&live, "a", cycle);
    live_spawn(&live, "b", cycle);
    live_spawn(&live, "c", tenant_batches);
    live_await_word(&live.reports[2].done, 5);
    began = clock_now();
    done = live.reports[2].done;
    live_await_word(&live.reports[2].done, done + 100);
    alone = rate_of(&live.reports[2], done, began);
    began = clock_now();
    done = live.reports[2].done;
    live.reports[0].go = live.reports[1].go = 1;
    live_await_word(&live.reports[0].granted, ROUNDS);
    live_await_word(&live.reports[1].granted, ROUNDS);
    beside = rate_of(&live.reports[2], done, began);
    g_test_message("%d rounds; the third did %.3f of its batches", ROUNDS, beside / alone);
    /* While they wait for each other, the GPU is not kept for them. */
    g_assert_cmpfloat(beside, >, alone / 8);
    tenant_close(&live);
}

/* One process with two queues, each a thread. */
struct queues {
    GovernorMember *member;
    _Atomic uint64_t signalled;
    _Atomic uint64_t waited_for;
};

static void *signalling_queue(void *data)
{
    struct queues *queues = data;

    for (uint64_t round = 1; round <= ROUNDS; round++) {
        /* After the wait has been submitted, and when that has stalled. */
        while (queues->waited_for < round)
            g_usleep(100);
        g_usleep(round % 3 ? 0 : 5000);
        for (int i = 0; i < 4; i++) {
            uint64_t debit = compute_begin(queues->member, NS_PER_MS, false);

            line_await(line_submit(line, NS_PER_MS / 4));
            governor_member_end(queues->member, debit, NS_PER_MS / 4);
        }
        queues->signalled = round;
    }
    return NULL;
}

static void two_queues(struct live *live, const char *socket_path, struct live_report *report)
{
    static struct queues queues;
    static struct teller teller;
    GThread *thread;

    (void)live;
    queues.member = tenant_join(socket_path, report);
    teller_start(&teller, queues.member);
    thread = g_thread_new("queue", signalling_queue, &queues);
    for (uint64_t round = 1; round <= ROUNDS; round++) {
        uint64_t debits[3];

        /* More than one, as what comes after it on the queue waits too. */
        teller.since = clock_now();
        for (int i = 0; i < 3; i++)
            debits[i] = compute_begin(queues.member, NS_PER_MS, round % 2);
        queues.waited_for = round;
        for (int i = 0; i < 3; i++)
            end_after(queues.member, debits[i], &queues.signalled, round);
        teller.since = 0;
        report->granted = round;
    }
    g_thread_join(thread);
}

static void test_queues(void)
{
    const char *const slices[] = {"a", "[slice]\n", "b", "[slice]\n", NULL};
    struct live live;
    uint64_t began;

    tenant_open(&live, slices);
    live_spawn(&live, "b", tenant_batches);
    live_await_word(&live.reports[0].done, 5);
    began = clock_now();
    live_spawn(&live, "a", two_queues);
    live_await_word(&live.reports[1].granted, ROUNDS);
    g_test_message("%d rounds in %.2f s", ROUNDS, (double)(clock_now() - began) / 1e9);
    tenant_close(&live);
}

#define QUEUES 4

/* While it is told to go, all of its submissions wait for something that is signalled right after.
 */
struct evader {
    GovernorMember *member;
    struct live_report *report;
};

static void *deferring_queue(void *data)
{
    struct evader *evader = data;

    for (;;) {
        uint64_t debit = compute_begin(evader->member, 2 * NS_PER_MS, evader->report->go > 0);

        line_await(line_submit(line, 2 * NS_PER_MS));
        governor_member_end(evader->member, debit, 2 * NS_PER_MS);
        evader->report->used_ns += 2 * NS_PER_MS;
        evader->report->done++;
    }
    return NULL;
}

static void all_deferred(struct live *live, const char *socket_path, struct live_report *report)
{
    static struct evader evader;

    (void)live;
    evader = (struct evader){tenant_join(socket_path, report), report};
    for (int i = 1; i < QUEUES; i++)
        g_thread_new("queue", deferring_queue, &evader);
    deferring_queue(&evader);
}

#define WINDOWS 10

/* Batches that were ended in windows of 300 ms: by b, and by a. */
struct batches {
    double other, evader;
};

static void add_window(struct live *live, struct batches *batches)
{
    live_reset(live);
    g_usleep(300000);
    batches->other += (double)live->reports[0].done;
    batches->evader += (double)live->reports[1].done;
}

static void open_with_b(struct live *live)
{
    const char *const slices[] = {"a", "[slice]\n", "b", "[slice]\n", NULL};

    tenant_open(live, slices);
    live_spawn(live, "b", tenant_batches);
    live_await_word(&live->reports[0].done, 5);
}

/*
 * To let work wait is no way round one's share, nor do others lose by it: in every other window the
 * same work does not wait.
 */
static void test_all_deferred(void)
{
    struct batches deferred = {0}, usual = {0};
    struct live live;
    double part;

    open_with_b(&live);
    live_spawn(&live, "a", all_deferred);
    live_await_word(&live.reports[1].done, 5);
    for (unsigned i = 0; i < WINDOWS; i++) {
        live.reports[1].go = i % 2;
        add_window(&live, i % 2 ? &deferred : &usual);
    }
    part = deferred.evader / (deferred.evader + deferred.other);
    g_test_message("deferred work had %.3f of the GPU, otherwise %.3f; both %.0f and %.0f", part,
                   usual.evader / (usual.evader + usual.other), deferred.evader + deferred.other,
                   usual.evader + usual.other);
    g_assert_cmpfloat(part, <, usual.evader / (usual.evader + usual.other) + 0.2);
    g_assert_cmpfloat(deferred.evader + deferred.other, >, 0.8 * (usual.evader + usual.other));
    tenant_close(&live);
}

/* Defers 10 ms after 10 ms, and lets nothing begin before it is told to. */
static void defer(struct live *live, const char *socket_path, struct live_report *report)
{
    GovernorMember *member = tenant_join(socket_path, report);
    uint64_t debits[64];

    (void)live;
    for (unsigned i = 0; i < G_N_ELEMENTS(debits); i++) {
        uint64_t began = clock_now();

        debits[i] = compute_begin(member, 10 * NS_PER_MS, true);
        if (i == 4)
            report->longest_gap_ns = clock_now() - began;
        report->done++;
        if (report->go)
            break;
    }
    for (unsigned i = 0; i < report->done; i++)
        governor_member_end(member, governor_member_begun(member, debits[i]), 10 * NS_PER_MS);
    /* There is room again. */
    for (unsigned i = 0; i < 3; i++)
        report->granted += compute_begin(member, NS_PER_MS, true) > 0;
    for (;;)
        pause();
}

/* What is deferred is bounded: all of it may begin at once, outside of any lease. */
static void test_deferred(void)
{
    const char *const slices[] = {"a", "[slice]\ncap=90\nhard=true\n", NULL};
    struct live live;

    tenant_open(&live, slices);
    live_spawn(&live, "a", defer);
    /* The thread that waits may be the one that would let it begin. */
    live_await_word(&live.reports[0].done, 5);
    g_assert_cmpuint(live.reports[0].longest_gap_ns, >=, NS_PER_S);
    live.reports[0].go = 1;
    live_await_word(&live.reports[0].granted, 3);
    tenant_close(&live);
}

/* Defers 10 ms after 10 ms, and never lets any begin. */
static void defer_for_ever(struct live *live, const char *socket_path, struct live_report *report)
{
    GovernorMember *member = tenant_join(socket_path, report);

    (void)live;
    for (;;) {
        compute_begin(member, 10 * NS_PER_MS, true);
        report->done++;
    }
}

/*
 * Work that waits for room has no lease meanwhile: the other slice keeps the GPU as busy as alone,
 * before that and after it.
 */
static void test_deferred_beside_another(void)
{
    struct batches alone = {0}, beside = {0};
    struct live live;

    open_with_b(&live);
    for (unsigned i = 0; i < WINDOWS / 2; i++)
        add_window(&live, &alone);
    live_spawn(&live, "a", defer_for_ever);
    live_await_word(&live.reports[1].done, 4);
    for (unsigned i = 0; i < WINDOWS; i++)
        add_window(&live, &beside);
    live_kill(&live, 1, SIGKILL);
    for (unsigned i = 0; i < WINDOWS / 2; i++)
        add_window(&live, &alone);
    g_test_message("alone %.0f batches, beside work that waits for room %.0f", alone.other,
                   beside.other);
    g_assert_cmpfloat(beside.other, >, 0.7 * alone.other);
    tenant_close(&live);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/governor/waits/cycle", test_cycle);
    g_test_add_func("/governor/waits/queues", test_queues);
    g_test_add_func("/governor/waits/all-deferred", test_all_deferred);
    g_test_add_func("/governor/waits/deferred", test_deferred);
    g_test_add_func("/governor/waits/deferred-beside-another", test_deferred_beside_another);
    return g_test_run();
}
