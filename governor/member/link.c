// SPDX-License-Identifier: MIT
/*
 * The connection to the arbiter. A thread waits for its end, and then tries to reconnect. Whoever
 * sends a request reads the answer.
 */
#include "member_state.h"

#include "clock.h"
#include "lib/descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* An arbiter that was there is back soon; one that never was there may never come. */
#define BACKOFF_MIN_MS   5
#define BACKOFF_MAX_MS   50
#define BACKOFF_NEVER_MS 2000
#define ANSWER_LOOK_MS   100
#define CONNECT_S        2

/* A descriptor, or -1 and errno. ETIMEDOUT: so many wait there already that there is no room. */
static int connect_to(const char *path, uint64_t until_ns)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct timeval timeout = {.tv_sec = CONNECT_S};
    int fd, error;

    if (strlen(path) >= sizeof(address.sun_path)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(address.sun_path, path, strlen(path) + 1);
    fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
    do
        error = connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ? errno : 0;
    while (error == EINTR && clock_now() < until_ns);
    if (!error)
        return fd;
    close(fd);
    errno = error == EAGAIN || error == EINTR ? ETIMEDOUT : error;
    return -1;
}

static void close_all(const int *fds, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (fds[i] >= 0)
            close(fds[i]);
}

static void say_late(GovernorMember *member, uint64_t now, uint64_t until_ns)
{
    if (!member->said_late)
        member_say("vgpu-governor: the GPU's arbiter does not answer at %s; this program waits for "
                   "it, for %u s more (is the host very busy, or vgpu-arbiter stopped?)",
                   member->socket_path, (unsigned)((until_ns - now) / NS_PER_S));
    member->said_late = true;
}

/*
 * An arbiter that has not refused is only slow, so the request stays where it is. The program's
 * signals are no answer. False: there was none until @until_ns.
 */
static bool await_answer(GovernorMember *member, int fd, uint64_t until_ns)
{
    uint64_t late_at = clock_now() + JOIN_NS, now;

    while ((now = clock_now()) < until_ns) {
        struct pollfd answer = {.fd = fd, .events = POLLIN};

        if (now >= late_at)
            say_late(member, now, until_ns);
        if (poll(&answer, 1, ANSWER_LOOK_MS) > 0)
            return true;
    }
    return false;
}

/* 0, or an errno; the caller closes @fds. @at: of the arbiter's clock. */
static int receive_welcome(int fd, int fds[2], uint64_t *at)
{
    struct governor_message message;
    ssize_t length = descriptor_receive(fd, &message, sizeof(message), MSG_DONTWAIT, fds, 2);
    int error = length >= 0 ? EPROTO : errno == EMSGSIZE ? EPROTONOSUPPORT : errno;

    if (length == sizeof(message) && message.version == GOVERNOR_PROTOCOL_VERSION) {
        *at = message.other;
        if (message.type == GOVERNOR_WELCOME && fds[1] >= 0)
            return 0;
        if (message.type == GOVERNOR_REFUSED && message.value && message.value < 4096)
            error = (int)message.value;
    } else if (length >= (ssize_t)sizeof(message.version) &&
               message.version != GOVERNOR_PROTOCOL_VERSION) {
        error = EPROTONOSUPPORT;
    } else if (!length) { /* the arbiter has ended meanwhile */
        error = ECONNREFUSED;
    }
    close_all(fds, 2);
    return error;
}

static void *map_page(int fd, int prot)
{
    void *page = mmap(NULL, PAGE_BYTES, prot, MAP_SHARED, fd, 0);

    return page == MAP_FAILED ? NULL : page;
}

/*
 * Counters per connection start again; work in flight stays. When it began is written first: this
 * process may be killed in between, and is charged for work in flight since it began.
 */
static void carry_over(GovernorMember *member, struct governor_usage *usage)
{
    for (unsigned i = 0; i < GOVERNOR_CLASSES; i++) {
        struct governor_class_usage *words = &usage->classes[i];
        struct lane *lane = &member->lanes[i];

        lane->gpu_ns = lane->waited_ns = lane->throttled_ns = lane->spans = 0;
        lane->passes_seen = 0;
        marker_restart(lane);
        atomic_store(&words->began_at_ns, lane->began_at_ns);
        atomic_store(&words->ended_at_ns, lane->ended_at_ns);
        atomic_store(&words->in_flight_ns, lane->in_flight_ns);
        atomic_store(&words->waiting, turn_waiting(lane));
    }
    atomic_store(&usage->pages, member->pages);
}

/* On the same clock, the arbiter's @at is between the request and the answer. */
static int64_t offset_to(uint64_t asked_at, uint64_t at)
{
    uint64_t now = clock_now();

    return at >= asked_at && at <= now ? 0 : (int64_t)(at - (asked_at + (now - asked_at) / 2));
}

/* Under lock. */
static void set_clock(GovernorMember *member, int64_t offset)
{
    uint64_t moved = (uint64_t)(offset - member->clock_offset);

    member->clock_offset = offset;
    for (unsigned i = 0; i < GOVERNOR_CLASSES && moved; i++) {
        struct lane *lane = &member->lanes[i];

        lane->began_at_ns += moved;
        lane->ended_at_ns += moved;
        for (unsigned j = 0; j < LANE_QUEUES; j++)
            lane->queues[j].runs_since_ns += moved;
        lane->ran = (struct coverage){0};
    }
}

static bool take_pages(GovernorMember *member, const int fds[2], int64_t clock_offset)
{
    void *grant = map_page(fds[0], PROT_READ);
    void *usage = map_page(fds[1], PROT_READ | PROT_WRITE);
    bool moved = grant && usage;

    pthread_mutex_lock(&member->lock);
    if (moved) {
        set_clock(member, clock_offset);
        carry_over(member, usage);
        /*
         * Threads that wait on the old page are not woken through the new one; they look at
         * intervals.
         */
        for (unsigned i = 0; i < GOVERNOR_CLASSES; i++)
            futex_wake(&member->grant->classes[i].sequence);
        futex_wake(&member->grant->orders);
        moved = mremap(usage, PAGE_BYTES, PAGE_BYTES, MREMAP_MAYMOVE | MREMAP_FIXED,
                       member->usage) != MAP_FAILED &&
                mremap(grant, PAGE_BYTES, PAGE_BYTES, MREMAP_MAYMOVE | MREMAP_FIXED,
                       member->grant) != MAP_FAILED;
        /* No sequence has this value: the next thread that waits reports it. */
        for (unsigned i = 0; i < GOVERNOR_CLASSES; i++)
            member->lanes[i].wanted = atomic_load(&member->grant->classes[i].sequence) - 1;
    }
    pthread_mutex_unlock(&member->lock);
    if (!moved && grant)
        munmap(grant, PAGE_BYTES);
    if (!moved && usage)
        munmap(usage, PAGE_BYTES);
    return moved;
}

static ino_t inode_of(int fd)
{
    struct stat status;

    return fstat(fd, &status) == 0 && S_ISSOCK(status.st_mode) ? status.st_ino : 0;
}

/*
 * It keeps the old connection's number, so that a thread that is about to write to it needs no
 * lock.
 */
static bool take_connection(GovernorMember *member, int fd)
{
    if (member->fd >= 0) {
        if (dup3(fd, member->fd, O_CLOEXEC) < 0)
            return false;
        close(fd);
    } else {
        member->fd = fd;
    }
    member->fd_inode = inode_of(member->fd);
    return true;
}

int link_join(GovernorMember *member, uint64_t until_ns)
{
    struct governor_message join =
        message_of(GOVERNOR_JOIN, member->held + objects_bytes(member, GOVERNOR_MEMORY_DEVICE),
                   member->held_spilled + objects_bytes(member, GOVERNOR_MEMORY_SPILL));
    int fd = connect_to(member->socket_path, until_ns);
    uint64_t asked_at = clock_now(), at = 0;
    int fds[2], error;

    if (fd < 0) {
        error = errno;
        if (error == ETIMEDOUT && asked_at < until_ns)
            say_late(member, asked_at, until_ns);
        return error;
    }
    if (send(fd, &join, sizeof(join), MSG_NOSIGNAL) != sizeof(join))
        error = ECONNREFUSED;
    else if (!await_answer(member, fd, until_ns))
        error = ETIMEDOUT;
    else
        error = receive_welcome(fd, fds, &at);
    if (!error) {
        if (!take_pages(member, fds, offset_to(asked_at, at)))
            error = ENOMEM;
        close_all(fds, 2);
    }
    if (!error && !take_connection(member, fd))
        error = errno;
    if (error) {
        close(fd);
        return error;
    }
    if (member->driver)
        memory_tell_driver(member);
    if (!objects_declare(member))
        return EPROTO;
    member->link = LINK_JOINED;
    moving_declare(member);
    pthread_cond_broadcast(&member->link_changed);
    return 0;
}

void link_lost(GovernorMember *member)
{
    const struct governor_grant *grant = member->grant;
    uint32_t members = atomic_load(&grant->members);
    uint64_t limit = atomic_load(&grant->memory_limit), used = atomic_load(&grant->memory_used);
    uint64_t spill = atomic_load(&grant->spill_limit), spilled = atomic_load(&grant->spill_used);

    members = members ? members : 1;
    pthread_mutex_lock(&member->link_lock);
    /* Each member's part of what was left: together they stay within the limit. */
    member->orphan_room = !limit ? UINT64_MAX : used < limit ? (limit - used) / members : 0;
    member->orphan_spill = spilled < spill ? (spill - spilled) / members : 0;
    member->lost_at = clock_now();
    spare_forget(member);
    pthread_mutex_lock(&member->lock);
    for (unsigned i = 0; i < GOVERNOR_CLASSES; i++) {
        double share = atomic_load(&grant->classes[i].share_ppm) / 1e6;

        budget_init(&member->lanes[i].budget, share / members, share * 20 * NS_PER_MS,
                    member_now(member));
    }
    member->link = LINK_ORPHAN;
    pthread_mutex_unlock(&member->lock);
    pthread_cond_broadcast(&member->link_changed);
    pthread_mutex_unlock(&member->link_lock);
    for (unsigned i = 0; i < GOVERNOR_CLASSES; i++)
        futex_wake(&member->grant->classes[i].sequence);
    futex_wake(&member->grant->orders);
    turn_progress(member);
}

/* Otherwise there is nothing to receive because it is shut down. */
static bool was_woken(const GovernorMember *member)
{
    char byte;

    return recv(member->stop_fd, &byte, 1, MSG_DONTWAIT) == 1;
}

/* True if the thread must end. */
static bool await_stop(GovernorMember *member, int timeout_ms)
{
    struct pollfd fds[] = {
        {.fd = member->stop_fd, .events = POLLIN | POLLRDHUP},
        {.fd = member->link == LINK_JOINED ? member->fd : -1, .events = POLLRDHUP},
    };

    poll(fds, 2, timeout_ms);
    return fds[0].revents && !was_woken(member);
}

static bool connection_ended(GovernorMember *member)
{
    struct pollfd fd = {.fd = member->fd, .events = POLLRDHUP};

    return poll(&fd, 1, 0) > 0;
}

static int longer_backoff(int backoff, int most)
{
    return backoff * 2 < most ? backoff * 2 : most;
}

static void *link_thread(void *data)
{
    GovernorMember *member = data;
    int backoff = BACKOFF_MIN_MS;
    bool looks = false;

    for (;;) {
        bool joined = member->link == LINK_JOINED;

        if (await_stop(member, !joined ? backoff : looks ? SPARE_LOOK_MS : -1))
            return NULL;
        if (joined) {
            looks = spare_look(member);
            if (connection_ended(member))
                link_lost(member);
            backoff = BACKOFF_MIN_MS;
            continue;
        }
        backoff =
            longer_backoff(backoff, member->link == LINK_NEVER ? BACKOFF_NEVER_MS : BACKOFF_MAX_MS);
        pthread_mutex_lock(&member->link_lock);
        link_join(member, clock_now() + JOIN_NS);
        pthread_mutex_unlock(&member->link_lock);
        turn_progress(member);
    }
}

/*
 * Signals belong to the program: none is delivered to this thread. Its stack has the default size,
 * in which the program's static TLS is sure to have room: glibc takes that from the stack.
 */
static int start_thread(GovernorMember *member)
{
    sigset_t all, before;
    int error;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    error = pthread_create(&member->thread, NULL, link_thread, member);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

bool link_start(GovernorMember *member)
{
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, pair) < 0)
        return false;
    member->stop_fd = pair[0];
    member->wake_fd = pair[1];
    member->stop_inode = inode_of(member->stop_fd);
    member->wake_inode = inode_of(member->wake_fd);
    errno = start_thread(member);
    if (!errno)
        return true;
    close_all(pair, 2);
    member->stop_fd = member->wake_fd = -1;
    return false;
}

void link_stop(GovernorMember *member)
{
    if (member->stop_fd >= 0) {
        shutdown(member->stop_fd, SHUT_RDWR);
        pthread_join(member->thread, NULL);
        close(member->stop_fd);
        close(member->wake_fd);
    }
    if (member->fd >= 0)
        close(member->fd);
}

void link_forget(GovernorMember *member)
{
    if (member->fd >= 0 && inode_of(member->fd) == member->fd_inode)
        close(member->fd);
    if (member->stop_fd >= 0 && inode_of(member->stop_fd) == member->stop_inode)
        close(member->stop_fd);
    if (member->wake_fd >= 0 && inode_of(member->wake_fd) == member->wake_inode)
        close(member->wake_fd);
    member->fd = member->stop_fd = member->wake_fd = -1;
}
