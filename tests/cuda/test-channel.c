// SPDX-License-Identifier: MIT
/*
 * Both ends of a channel (cuda-remote/wire/channel.h) in one process, so that a sanitizer sees what
 * one writes while the other reads. At each step of their protocol they wait for a random time
 * (remote/steps.c), and nobody who sleeps looks again by himself: a wake-up that is lost is a test
 * that does not end.
 */
#include "channel.h"

#include <glib.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define RECORDS      1500u
#define HANG_SECONDS 120u

static struct channel_shared *channel;
static _Atomic bool is_ending;

/* What the engine of a VM has: a fence that it signals when the worker sends CONTROL_ANSWERED. */
static pthread_mutex_t engine = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t signalled = PTHREAD_COND_INITIALIZER;
static bool has_fence;

static void tell_answered(void)
{
    pthread_mutex_lock(&engine);
    has_fence = false;
    pthread_cond_signal(&signalled);
    pthread_mutex_unlock(&engine);
}

static void await_fence(uint64_t asked)
{
    pthread_mutex_lock(&engine);
    has_fence = atomic_load(&channel->worker.done) < asked;
    while (has_fence)
        pthread_cond_wait(&signalled, &engine);
    pthread_mutex_unlock(&engine);
}

/* What the parts of a record have in them, by its ticket. */
static uint8_t byte_of(uint64_t ticket, size_t at)
{
    return (uint8_t)(ticket * 31 + at * 7);
}

/* Answers with the ticket, which the client has put where the address of bulk memory is. */
static void give_answer(const struct channel_record *record, uint64_t done)
{
    struct channel_answer *answer = (struct channel_answer *)channel->answer;

    *answer = (struct channel_answer){.result = record->number, .extra = record->bulk};
    channel_answer(channel, done);
    if (channel_wake_client(channel))
        tell_answered();
}

static void *serve(void *data)
{
    _Alignas(8) static uint8_t space[CHANNEL_RECORD_MOST];
    const struct channel_record *record = (const struct channel_record *)space;
    const uint8_t *parts = (const uint8_t *)(record + 1);
    uint64_t head = 0, done = 0, expected = 1;

    for (;;) {
        int taken = channel_take(channel, &head, space);

        g_assert_cmpint(taken, >=, 0);
        if (!taken && is_ending)
            return data;
        if (!taken) {
            channel_await_record(channel, head, &is_ending);
            continue;
        }
        atomic_store_explicit(&channel->worker.head, head, memory_order_release);
        g_assert_cmpuint(record->bulk, ==, expected++);
        for (size_t i = 0; i < record->bytes - sizeof(*record); i++)
            g_assert_cmpuint(parts[i], ==, byte_of(record->bulk, i));
        if (record->flags & RECORD_ANSWER)
            give_answer(record, ++done);
    }
}

static void send_record(uint64_t ticket, size_t bytes, bool is_waited)
{
    struct channel_record *record;
    uint8_t *parts;

    while (!(record = channel_reserve(channel, bytes)))
        sched_yield();
    record->number = (uint16_t)(ticket % 1000 + 1);
    record->flags = is_waited ? RECORD_ANSWER : 0;
    record->bulk = ticket;
    parts = (uint8_t *)(record + 1);
    for (size_t i = 0; i < record->bytes - sizeof(*record); i++)
        parts[i] = byte_of(ticket, i);
    if (channel_publish(channel, record))
        channel_wake(&channel->worker.state);
}

/* As guest/transport_virtio.c does it. */
static void await_far(uint64_t asked)
{
    atomic_exchange(&channel->client.state, CHANNEL_ASLEEP_FAR);
    channel_step();
    if (atomic_load(&channel->worker.done) != asked)
        await_fence(asked);
    atomic_store(&channel->client.state, CHANNEL_AWAKE);
}

static void await_answer(uint64_t ticket, uint64_t asked, bool is_far)
{
    const struct channel_answer *answer = (const struct channel_answer *)channel->answer;

    while (atomic_load_explicit(&channel->worker.done, memory_order_acquire) < asked)
        if (is_far)
            await_far(asked);
        else
            channel_await_answer(channel, asked, 0);
    g_assert_cmpuint(answer->result, ==, ticket % 1000 + 1);
    g_assert_cmpuint(answer->extra, ==, ticket);
}

static void test_no_wake_up_is_lost(gconstpointer is_far)
{
    g_autoptr(GRand) rand = g_rand_new_with_seed(45);
    uint64_t asked = 0;
    pthread_t worker;

    alarm(HANG_SECONDS);
    is_ending = false;
    channel =
        mmap(NULL, sizeof(*channel), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    g_assert_true(channel != MAP_FAILED);
    g_assert_cmpint(pthread_create(&worker, NULL, serve, NULL), ==, 0);
    for (uint64_t ticket = 1; ticket <= RECORDS; ticket++) {
        bool is_large = !g_rand_int_range(rand, 0, 8), is_waited = !g_rand_int_range(rand, 0, 3);
        size_t most = is_large ? CHANNEL_RECORD_MOST : 256;

        send_record(ticket,
                    (size_t)g_rand_int_range(rand, sizeof(struct channel_record), (int)most + 1),
                    is_waited);
        if (is_waited)
            await_answer(ticket, ++asked, is_far);
    }
    is_ending = true;
    channel_wake(&channel->worker.state);
    pthread_join(worker, NULL);
    alarm(0);
    g_assert_cmpuint(channel->worker.head, >, 4 * CHANNEL_RING_BYTES);
    munmap(channel, sizeof(*channel));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_data_func("/channel/no-wake-up-is-lost", NULL, test_no_wake_up_is_lost);
    g_test_add_data_func("/channel/no-wake-up-is-lost-in-a-vm", "far", test_no_wake_up_is_lost);
    return g_test_run();
}
