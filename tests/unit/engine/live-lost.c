// SPDX-License-Identifier: MIT
/*
 * Render workers are killed under a program that believes its fences. A fence is behind commands in
 * a ring, and the ring's head shows whether they were executed: an answer without an error must
 * never come before. KILLS=N: number of rounds.
 */
#include "live.h"
#include "mesa_ring.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define PROGRAM  1u
#define FATAL    2u
#define COMMANDS 500u
#define FENCED   (VIRTIO_GPU_FLAG_FENCE | VIRTIO_GPU_FLAG_INFO_RING_IDX)
#define MOST_US  3000

/* A fence may well be reported a moment after the worker's end. */
#define AFTERWARDS (50 * G_TIME_SPAN_MILLISECOND)

/* vkEnumerateInstanceVersion, of which no answer is wanted. */
static const uint32_t some_command[] = {137, 0, 1, 0};

static struct {
    unsigned int kills;
    unsigned int right;
    unsigned int wrong;
    unsigned int withheld;
} count;

static uint32_t head_of(const uint32_t *ring)
{
    return __atomic_load_n(ring + MESA_RING_HEAD, __ATOMIC_ACQUIRE);
}

static uint32_t submit_work(uint32_t *ring)
{
    uint32_t words[COMMANDS * G_N_ELEMENTS(some_command)];

    for (uint32_t i = 0; i < COMMANDS; i++)
        memcpy(words + i * G_N_ELEMENTS(some_command), some_command, sizeof(some_command));
    live_put_in_ring(ring, words, G_N_ELEMENTS(words));
    return live_wait_for_ring(PROGRAM, FENCED, ring[MESA_RING_TAIL]);
}

static void believe_fence(const uint32_t *ring, uint32_t fence)
{
    uint32_t type = live_type_of(fence);

    if (type == VIRTIO_GPU_RESP_OK_NODATA && head_of(ring) != ring[MESA_RING_TAIL])
        count.wrong++;
    else if (type == VIRTIO_GPU_RESP_OK_NODATA)
        count.right++;
    else if (type == 0)
        count.withheld++;
}

static void *kill_later(void *data)
{
    g_usleep((gulong)g_random_int_range(0, MOST_US));
    kill(GPOINTER_TO_INT(data), SIGKILL);
    return NULL;
}

/* @stopped: the worker does nothing any more when it is killed, so its fence is surely not done. */
static void kill_under_work(bool stopped)
{
    gint64 until = 0;
    uint32_t *ring, fence;
    GThread *killer;
    pid_t worker;

    live_create_context(PROGRAM);
    worker = live_worker();
    ring = live_make_ring(PROGRAM);
    if (stopped)
        kill(worker, SIGSTOP);
    fence = submit_work(ring);
    killer = g_thread_new("killer", kill_later, GINT_TO_POINTER(worker));
    while (!until || g_get_monotonic_time() < until) {
        live_turn();
        if (!until && (ring[MESA_RING_STATUS] & FATAL))
            until = g_get_monotonic_time() + AFTERWARDS;
    }
    g_thread_join(killer);
    believe_fence(ring, fence);
    count.kills++;

    g_assert_cmphex(live_type_of(live_destroy_context(PROGRAM)), ==, VIRTIO_GPU_RESP_OK_NODATA);
    g_assert_cmphex(live_type_of(fence), !=, 0);
    live_reset();
}

static void test_kills(void)
{
    const char *kills = g_getenv("KILLS");

    for (int left = kills ? atoi(kills) : 10; left > 0; left--)
        kill_under_work(left % 2);
    g_test_message("%u kills: %u fences withheld, %u done before, %u wrong", count.kills,
                   count.withheld, count.right, count.wrong);
    g_assert_cmpuint(count.wrong, ==, 0);
    g_assert_cmpuint(count.withheld, >=, count.kills / 2);
}

int main(int argc, char **argv)
{
    int status;

    live_begin(&argc, &argv, 600);
    g_log_set_always_fatal(G_LOG_FATAL_MASK); /* it is logged that a worker has ended */
    g_test_add_func("/live/kills", test_kills);
    status = g_test_run();
    live_end();
    return status;
}
