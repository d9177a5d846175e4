// SPDX-License-Identifier: MIT
#include "orders.h"

#include <errno.h>
#include <glib.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define GPU   "0000:3b:00.0"
#define PAGE  4096
#define GIVES (1u << 30)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct orders_said said;
static uint64_t leave_until, take_until;
static uint64_t refused_leave, refused_take;
static unsigned int pieces_left = GIVES, next_piece;
static struct governor_grant *grant;
static int pages[2];
static int listener, connection;
static unsigned int joins;
static uint32_t moves = 1;

static int page_new(void)
{
    int fd = memfd_create("page", MFD_CLOEXEC);

    g_assert_cmpint(ftruncate(fd, PAGE), ==, 0);
    return fd;
}

static void answer(int fd, enum governor_message_type type, uint64_t value, uint64_t other,
                   const int *descriptors, unsigned int count)
{
    struct governor_message message = {
        .version = GOVERNOR_PROTOCOL_VERSION, .type = type, .value = value, .other = other};
    struct iovec data = {.iov_base = &message, .iov_len = sizeof(message)};
    union {
        char bytes[CMSG_SPACE(2 * sizeof(int))];
        struct cmsghdr align;
    } control = {0};
    struct msghdr packet = {.msg_iov = &data, .msg_iovlen = 1};

    if (count) {
        packet.msg_control = &control;
        packet.msg_controllen = CMSG_SPACE(count * sizeof(int));
        *CMSG_FIRSTHDR(&packet) = (struct cmsghdr){.cmsg_len = CMSG_LEN(count * sizeof(int)),
                                                   .cmsg_level = SOL_SOCKET,
                                                   .cmsg_type = SCM_RIGHTS};
        memcpy(CMSG_DATA(CMSG_FIRSTHDR(&packet)), descriptors, count * sizeof(int));
    }
    g_assert_cmpint(sendmsg(fd, &packet, MSG_NOSIGNAL), ==, sizeof(message));
}

static uint64_t now(void)
{
    struct timespec at;

    clock_gettime(CLOCK_MONOTONIC, &at);
    return (uint64_t)at.tv_sec * 1000000000u + (uint64_t)at.tv_nsec;
}

/* Under the lock. */
static void hand_out_piece(int fd, uint64_t bytes)
{
    int piece;

    g_assert_cmpuint(bytes % GOVERNOR_VAULT_UNIT, ==, 0);
    g_assert_cmpuint(bytes, <=, GOVERNOR_VAULT_MOST);
    if (said.pieces >= pieces_left) {
        answer(fd, GOVERNOR_VAULTED, ENOMEM, 0, NULL, 0);
        return;
    }
    piece = memfd_create("piece", MFD_CLOEXEC);
    g_assert_cmpint(ftruncate(piece, (off_t)bytes), ==, 0);
    said.pieces++;
    answer(fd, GOVERNOR_VAULTED, 0, next_piece++, &piece, 1);
    close(piece);
}

static void note_stuck(const struct governor_message *message)
{
    said.stuck++;
    said.reason = (enum governor_stuck)message->other;
    if (said.gave + refused_leave < leave_until)
        refused_leave += message->value;
    else
        refused_take += message->value;
}

static void note(int fd, const struct governor_message *message)
{
    switch (message->type) {
    case GOVERNOR_JOIN:
        joins++;
        answer(fd, GOVERNOR_WELCOME, 1, now(), pages, 2);
        break;
    case GOVERNOR_RESERVE:
        said.held += message->value;
        answer(fd, GOVERNOR_RESERVED, 0, 0, NULL, 0);
        break;
    case GOVERNOR_RELEASE:
        g_assert_cmpuint(message->value, <=, said.held - said.displaced);
        said.held -= message->value;
        break;
    case GOVERNOR_RELEASE_DISPLACED:
        g_assert_cmpuint(message->value, <=, said.displaced);
        said.held -= message->value;
        said.displaced -= message->value;
        break;
    case GOVERNOR_SHARE:
    case GOVERNOR_ATTACH:
        answer(fd, GOVERNOR_RESERVED, 0, 0, NULL, 0);
        break;
    case GOVERNOR_MOVABLE:
        said.movable++;
        said.unmovable = message->other;
        break;
    case GOVERNOR_FLOOR:
        said.unmovable = message->value;
        break;
    case GOVERNOR_CLEAN:
        said.cleans += message->value != 0;
        break;
    case GOVERNOR_COME:
        said.comes++;
        break;
    case GOVERNOR_GAVE:
        said.gave += message->value;
        said.uncopied += message->other ? 0 : message->value;
        said.displaced += message->value;
        break;
    case GOVERNOR_TOOK:
        g_assert_cmpuint(message->value, <=, said.displaced);
        said.took += message->value;
        said.displaced -= message->value;
        g_assert_cmpuint(said.took, <=, take_until);
        break;
    case GOVERNOR_STUCK:
        note_stuck(message);
        break;
    case GOVERNOR_VAULT:
        hand_out_piece(fd, message->value);
        break;
    case GOVERNOR_VAULT_RETURN:
        said.pieces--;
        break;
    default:
        break;
    }
}

static void keep_connection(int fd)
{
    pthread_mutex_lock(&lock);
    connection = fd;
    pthread_mutex_unlock(&lock);
}

static void *serve(void *data)
{
    struct governor_message message;
    int fd;

    while ((fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
        keep_connection(fd);
        while (recv(fd, &message, sizeof(message), 0) == sizeof(message)) {
            pthread_mutex_lock(&lock);
            note(fd, &message);
            pthread_cond_broadcast(&changed);
            pthread_mutex_unlock(&lock);
        }
        keep_connection(-1);
        close(fd);
    }
    return data;
}

void orders_do_not_move(void)
{
    moves = 0;
}

void orders_limit_pieces(unsigned int pieces)
{
    pthread_mutex_lock(&lock);
    pieces_left = pieces;
    pthread_mutex_unlock(&lock);
}

void orders_open(void)
{
    g_autofree char *root = g_dir_make_tmp("orders-XXXXXX", NULL);
    g_autofree char *dir = g_build_filename(root, GPU, "a", NULL);
    g_autofree char *path = g_build_filename(dir, "governor.sock", NULL);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    pthread_t thread;

    g_assert_cmpint(g_mkdir_with_parents(dir, 0755), ==, 0);
    g_strlcpy(address.sun_path, path, sizeof(address.sun_path));
    listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    g_assert_cmpint(bind(listener, (struct sockaddr *)&address, sizeof(address)), ==, 0);
    g_assert_cmpint(listen(listener, 1), ==, 0);
    pages[0] = page_new();
    pages[1] = page_new();
    grant = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, pages[0], 0);
    g_assert_true(grant != MAP_FAILED);
    grant->members = 1;
    grant->moves = moves;
    g_setenv("VGPU_GOVERNOR_SLICES", root, TRUE);
    g_assert_cmpint(pthread_create(&thread, NULL, serve, NULL), ==, 0);
    pthread_detach(thread);
}

void orders_look(struct orders_said *copy)
{
    pthread_mutex_lock(&lock);
    *copy = said;
    pthread_mutex_unlock(&lock);
}

static void tell_waiters(void)
{
    atomic_store(&grant->leave_until, leave_until);
    atomic_store(&grant->take_until, take_until);
    atomic_fetch_add(&grant->orders, 1);
    syscall(SYS_futex, &grant->orders, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void orders_hold_turns(bool hold)
{
    for (unsigned int i = 0; i < GOVERNOR_CLASSES; i++) {
        struct governor_class_grant *class = &grant->classes[i];

        atomic_store(&class->mode, hold ? GOVERNOR_MODE_METERED : GOVERNOR_MODE_FREE);
        atomic_fetch_add(&class->sequence, 1);
        syscall(SYS_futex, &class->sequence, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
    }
}

void orders_leave(uint64_t bytes)
{
    pthread_mutex_lock(&lock);
    if (said.gave + refused_leave > leave_until)
        leave_until = said.gave + refused_leave;
    leave_until += bytes;
    tell_waiters();
    pthread_mutex_unlock(&lock);
}

void orders_take(uint64_t bytes)
{
    pthread_mutex_lock(&lock);
    take_until += bytes;
    tell_waiters();
    pthread_mutex_unlock(&lock);
}

void orders_copy(void)
{
    pthread_mutex_lock(&lock);
    atomic_fetch_add(&grant->copies, 1);
    tell_waiters();
    pthread_mutex_unlock(&lock);
}

void orders_copy_some(uint64_t bytes)
{
    atomic_store(&grant->copies_most, bytes);
    orders_copy();
}

void orders_begin_again(void)
{
    pthread_mutex_lock(&lock);
    atomic_store(&grant->copies, 0);
    joins = 0;
    shutdown(connection, SHUT_RDWR);
    while (!joins)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

void orders_return_pieces(void)
{
    pthread_mutex_lock(&lock);
    atomic_fetch_add(&grant->returns, 1);
    tell_waiters();
    pthread_mutex_unlock(&lock);
}

void orders_await_pieces(unsigned int pieces)
{
    pthread_mutex_lock(&lock);
    while (said.pieces > pieces)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

void orders_await_cleans(unsigned int cleans)
{
    pthread_mutex_lock(&lock);
    while (said.cleans < cleans)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

void orders_await_left(void)
{
    pthread_mutex_lock(&lock);
    while (said.gave + refused_leave < leave_until)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

void orders_await_taken(void)
{
    pthread_mutex_lock(&lock);
    while (said.took + refused_take < take_until)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

void orders_await_comes(unsigned int comes)
{
    pthread_mutex_lock(&lock);
    while (said.comes < comes)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

void orders_await_held(uint64_t bytes)
{
    pthread_mutex_lock(&lock);
    while (said.held != bytes)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

void orders_await_unmovable(uint64_t bytes)
{
    pthread_mutex_lock(&lock);
    while (said.unmovable != bytes)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}
