/* SPDX-License-Identifier: MIT */
/*
 * Loops of an engine or a guest must not fill the host's log, nor keep udev busy. Listeners must
 * get the last event nevertheless.
 */
#include <fcntl.h>
#include <linux/netlink.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "testbed.h"

#define BROKEN_LIVES 10
#define FLOOD_MS     3000
#define REMOVE_MS    10000
#define MOST_LINES   40
#define MOST_TOLD    80

typedef struct {
    int log;
    int events;
    char *uuid;
} Listener;

static Listener listener_new(const Testbed *tb)
{
    struct sockaddr_nl address = {.nl_family = AF_NETLINK, .nl_groups = 1};
    int most = 16 * 1024 * 1024;
    Listener listener = {
        .log = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC),
        .events =
            socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_KOBJECT_UEVENT),
        .uuid = g_strdup(tb->uuid),
    };

    g_assert_cmpint(listener.log, >=, 0);
    g_assert_cmpint(lseek(listener.log, 0, SEEK_END), >=, 0);
    g_assert_cmpint(listener.events, >=, 0);
    setsockopt(listener.events, SOL_SOCKET, SO_RCVBUFFORCE, &most, sizeof(most));
    g_assert_cmpint(bind(listener.events, (struct sockaddr *)&address, sizeof(address)), ==, 0);
    return listener;
}

static unsigned take_events(Listener *listener)
{
    g_autofree char *end = g_strconcat("/", listener->uuid, NULL);
    char text[8192];
    unsigned count = 0;
    ssize_t length;

    while ((length = recv(listener->events, text, sizeof(text) - 1, 0)) > 0) {
        text[length] = '\0';
        count += g_str_has_prefix(text, "change@") && g_str_has_suffix(text, end);
    }
    g_assert_cmpint(errno, ==, EAGAIN);
    return count;
}

static void listener_check(Listener *listener)
{
    char text[8192];
    unsigned lines = 0, told = take_events(listener);
    ssize_t length;

    while ((length = read(listener->log, text, sizeof(text) - 1)) > 0) {
        text[length] = '\0';
        lines += strstr(text, listener->uuid) != NULL;
    }
    g_test_message("%u lines in the log, %u events", lines, told);
    g_assert_cmpuint(lines, <=, MOST_LINES);
    g_assert_cmpuint(told, <=, MOST_TOLD);
}

static void listener_free(Listener *listener)
{
    close(listener->log);
    close(listener->events);
    g_free(listener->uuid);
}

static int open_node(const char *uuid)
{
    g_autofree char *node = g_build_filename("/dev/vgpu", uuid, NULL);

    return open(node, O_RDWR | O_NONBLOCK | O_CLOEXEC);
}

/* One engine's life, with a reason for its end. */
static void attach_and_fail(int fd)
{
    struct vgpu_engine_ready ready = {.argsz = sizeof(ready), .num_capsets = 1};
    struct vgpu_engine_fail fail = {.argsz = sizeof(fail), .reason = "I can't go on"};

    if (ioctl(fd, VGPU_ENGINE_ATTACH))
        return;
    g_assert_cmpint(ioctl(fd, VGPU_ENGINE_READY, &ready), ==, 0);
    g_assert_cmpint(ioctl(fd, VGPU_ENGINE_FAIL, &fail), ==, 0);
}

static void test_engine_fails(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_VGPU);
    Listener listener = listener_new(tb);
    int64_t end = now_ms() + FLOOD_MS;
    int fd = open_node(tb->uuid);
    unsigned lives;

    g_assert_cmpint(fd, >=, 0);
    attach_and_fail(fd);
    for (lives = 0; now_ms() < end; lives++) {
        int other = open_node(tb->uuid);

        /* A file is valid for one life. */
        g_assert_cmpint(ioctl(fd, VGPU_ENGINE_ATTACH), ==, -1);
        g_assert_cmpint(errno, ==, EBUSY);
        attach_and_fail(other);
        close(other);
    }
    close(fd);
    g_test_message("%u lives of an engine", lives);
    g_assert_cmpuint(lives, >, 20);
    listener_check(&listener);

    /* The end of the flood is reported, though late. */
    g_usleep(1500000);
    take_events(&listener);
    testbed_advance(tb, TESTBED_AT_ENGINE);
    g_assert_true(wait_until(take_events(&listener) > 0, 5000));
    listener_free(&listener);

    /* Thousands of ended engines must not have left work that the vGPU's removal waits for. */
    end = now_ms() + REMOVE_MS;
    g_clear_pointer(&tb, testbed_free);
    g_assert_cmpint(now_ms(), <, end);
}

/*
 * Without an engine each start of the guest's driver logs a line; with one, each reset of a queue
 * that it broke.
 */
static void test_guest_resets(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    Listener listener = listener_new(tb);
    int64_t end = now_ms() + FLOOD_MS;
    unsigned lives;

    for (lives = 0; now_ms() < end; lives++) {
        if (lives == BROKEN_LIVES) {
            engine_peer_kill(tb->engine);
            tb->engine = NULL;
            assert_ok(mdev_set_reset_timeout_ms(10));
        }
        tb->guest.ram_used = 0;
        guest_up(&tb->guest, GUEST_FEATURES);
        tb->guest.queue[0].avail->idx += 1000;
        guest_queue_kick_always(&tb->guest.queue[0]);
        if (lives < BROKEN_LIVES)
            g_assert_true(wait_until(guest_status(&tb->guest) & VIRTIO_CONFIG_S_NEEDS_RESET, 5000));
    }
    g_test_message("%u starts of the guest's driver", lives);
    g_assert_cmpuint(lives, >, 20);
    listener_check(&listener);
    listener_free(&listener);
}

/* Entries of the table of each of the greedy guest's requests, so that answering takes a while. */
#define GREEDY_TABLE 16
#define GREEDY_RING  256
#define GREEDY_MS    2000
/* It goes on, at most so long, until so much was answered that it is a flood. */
#define GREEDY_MOST_MS 60000
#define GREEDY_FLOOD   (10u * GREEDY_RING)
/* A ring each 10 ms. */
#define MOST_ANSWERS(ms) ((unsigned)(ms) / 10 * GREEDY_RING)
/* Without a pause of this that the guest sees: the pauses are short at first. */
#define PAUSE_US     1000
#define MOST_AT_ONCE (5 * GREEDY_RING)

/* All of the ring names one head. */
static void offer_one_head(GuestQueue *q)
{
    GuestBuf out[GREEDY_TABLE - 1], in;
    int head;

    for (unsigned i = 0; i < G_N_ELEMENTS(out); i++) {
        guest_alloc(q->guest, 32, 16, &out[i].iova);
        out[i].len = 32;
    }
    guest_alloc(q->guest, 32, 16, &in.iova);
    in.len = 32;
    head = guest_queue_add(q, out, G_N_ELEMENTS(out), &in, 1, true);
    g_assert_cmpint(head, >=, 0);
    for (unsigned i = 0; i < q->size; i++)
        q->avail->ring[i] = (uint16_t)head;
}

typedef struct {
    GuestQueue *q;
    atomic_uint answers;
    atomic_bool over;
    unsigned most_at_once;
} Greedy;

static void stay_on(size_t cpu)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    sched_setaffinity(0, sizeof(set), &set);
}

/* Offers the whole ring again whenever something of it was answered. */
static void *be_greedy(void *data)
{
    Greedy *greedy = data;
    volatile uint16_t *used = &greedy->q->used->idx, *avail = &greedy->q->avail->idx;
    uint16_t last = *used, now;
    int64_t last_us = 0;
    unsigned at_once = 0;

    stay_on(1);
    for (; !atomic_load(&greedy->over); last = now) {
        int64_t now_us = g_get_monotonic_time();

        now = *used;
        *avail = (uint16_t)(now + greedy->q->size);
        if (now == last)
            continue;
        atomic_fetch_add(&greedy->answers, (uint16_t)(now - last));
        at_once = (now_us - last_us < PAUSE_US ? at_once : 0) + (uint16_t)(now - last);
        greedy->most_at_once = MAX(greedy->most_at_once, at_once);
        last_us = now_us;
    }
    return NULL;
}

static bool greedy_goes_on(const Greedy *greedy, int64_t begin)
{
    int64_t ms = now_ms() - begin;

    return ms < GREEDY_MS || (ms < GREEDY_MOST_MS && atomic_load(&greedy->answers) <= GREEDY_FLOOD);
}

/*
 * With its engine gone, a guest gets its answers by the driver's own work while its ring is full,
 * and nobody's share limits that.
 */
static void test_greedy_guest(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_OPEN);
    Greedy greedy = {.q = &tb->guest.queue[0]};
    unsigned kicks = 0, before;
    GThread *thread;
    int64_t begin, ms;

    guest_probe(&tb->guest, &tb->dev, &tb->ram);
    tb->stage = TESTBED_AT_GUEST;
    guest_reset(&tb->guest);
    g_assert_true(guest_negotiate(&tb->guest, GUEST_FEATURES));
    guest_queue_setup(&tb->guest, 0, GREEDY_RING);
    guest_set_status(&tb->guest, guest_status(&tb->guest) | VIRTIO_CONFIG_S_DRIVER_OK);
    engine_peer_kill(tb->engine);
    tb->engine = NULL;
    g_assert_true(wait_until(guest_status(&tb->guest) & VIRTIO_CONFIG_S_NEEDS_RESET, 5000));
    offer_one_head(greedy.q);
    thread = g_thread_new("greedy", be_greedy, &greedy);
    stay_on(0);
    begin = now_ms();
    do {
        before = atomic_load(&greedy.answers);
        guest_queue_kick_always(greedy.q);
        kicks++;
        /* The thread may have been too late once; then the guest has to kick again. */
        while (wait_until(atomic_load(&greedy.answers) != before, 20) &&
               greedy_goes_on(&greedy, begin))
            before = atomic_load(&greedy.answers);
    } while (greedy_goes_on(&greedy, begin));
    ms = now_ms() - begin;
    atomic_store(&greedy.over, true);
    g_thread_join(thread);
    g_test_message("%u answers in %u ms for %u kicks, %u at once", atomic_load(&greedy.answers),
                   (unsigned)ms, kicks, greedy.most_at_once);
    g_assert_cmpuint(atomic_load(&greedy.answers), >, GREEDY_FLOOD);
    g_assert_cmpuint(atomic_load(&greedy.answers), <=, MOST_ANSWERS(ms));
    g_assert_cmpuint(greedy.most_at_once, <=, MOST_AT_ONCE);
}

int main(int argc, char **argv)
{
    driver_test_init(argc, argv);
    driver_test_add("/floods/engine-fails", test_engine_fails);
    driver_test_add("/floods/guest-resets", test_guest_resets);
    driver_test_add("/floods/greedy-guest", test_greedy_guest);
    return driver_test_run();
}
