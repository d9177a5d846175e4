// SPDX-License-Identifier: MIT
/* Pieces of host memory, from a vault and an arbiter in processes of their own. */
#include "live.h"
#include "raw.h"
#include "vault_protocol.h"

#include "lib/descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define PIECE GOVERNOR_VAULT_UNIT

/* Slice "a" may have the last piece of GOVERNOR_VAULT_MOST and two more; the host four in all. */
static const char *const slices[] = {"a", "[slice]\nvram=6291456\nresident=2097152\n", "b",
                                     "[slice]\nvram=900000000\nresident=0\n", NULL};

struct vaults {
    struct live live;
    GPid vault;
};

static void start_vault(struct vaults *vaults)
{
    const char *argv[] = {VAULT, "--root", vaults->live.root, NULL};
    g_autofree char *path = g_build_filename(vaults->live.root, "run/vgpu/vault.sock", NULL);

    unlink(path);
    g_assert_true(g_spawn_async(NULL, (char **)argv, NULL, G_SPAWN_DO_NOT_REAP_CHILD, NULL, NULL,
                                &vaults->vault, NULL));
    while (!g_file_test(path, G_FILE_TEST_EXISTS))
        g_usleep(1000);
}

static void stop_vault(struct vaults *vaults)
{
    int status;

    kill(vaults->vault, SIGTERM);
    g_assert_cmpint(waitpid(vaults->vault, &status, 0), ==, vaults->vault);
    g_assert_cmpint(status, ==, 0);
}

static void open_vaults(struct vaults *vaults)
{
    live_open(&vaults->live, slices);
    live_configure(&vaults->live, NULL, "[gpu]\ncapacity=1000000000\ndisplaced=8388608\n");
    live_await(&vaults->live, "a", "promised", 2097152);
    start_vault(vaults);
}

static void close_vaults(struct vaults *vaults)
{
    stop_vault(vaults);
    live_close(&vaults->live);
}

static int join(const struct vaults *vaults, const char *slice)
{
    g_autofree char *path = live_socket(&vaults->live, slice);
    int fd = raw_member(path);

    g_assert_cmpint(fd, >=, 0);
    g_assert_true(raw_send(fd, GOVERNOR_MOVABLE, 0, 0, 0));
    return fd;
}

/* The descriptor and its number, or -1 and an errno in @number. */
static int take_piece(int member, uint64_t bytes, uint64_t *number)
{
    struct governor_message answer;
    struct iovec data = {.iov_base = &answer, .iov_len = sizeof(answer)};
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control = {0};
    struct msghdr packet = {.msg_iov = &data,
                            .msg_iovlen = 1,
                            .msg_control = &control,
                            .msg_controllen = sizeof(control)};
    int fd;

    g_assert_true(raw_send(member, GOVERNOR_VAULT, bytes, 0, 0));
    g_assert_cmpint(recvmsg(member, &packet, MSG_CMSG_CLOEXEC), ==, sizeof(answer));
    g_assert_cmpuint(answer.type, ==, GOVERNOR_VAULTED);
    *number = answer.value ? answer.value : answer.other;
    if (answer.value)
        return -1;
    memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&packet)), sizeof(fd));
    return fd;
}

static uint64_t pages_of(int fd)
{
    struct stat status;

    g_assert_cmpint(fstat(fd, &status), ==, 0);
    return (uint64_t)status.st_blocks * 512;
}

static void await_pages(int fd, uint64_t bytes)
{
    while (pages_of(fd) != bytes)
        g_usleep(1000);
}

/* All of it is there before anybody uses it, and nobody changes its size. */
static void test_piece(void)
{
    struct vaults vaults;
    uint64_t number, other;
    struct stat status;
    int member, fd, second;

    open_vaults(&vaults);
    member = join(&vaults, "a");
    fd = take_piece(member, PIECE, &number);
    g_assert_cmpint(fd, >=, 0);
    g_assert_cmpint(fstat(fd, &status), ==, 0);
    g_assert_cmpuint(status.st_size, ==, PIECE);
    g_assert_cmpuint(pages_of(fd), ==, PIECE);
    g_assert_cmpint(ftruncate(fd, 0), ==, -1);
    g_assert_cmpint(ftruncate(fd, 2 * PIECE), ==, -1);
    g_assert_cmpint(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), ==, -1);
    second = take_piece(member, PIECE, &other);
    g_assert_cmpint(second, >=, 0);
    g_assert_cmpuint(other, !=, number);
    /* Returned: it is empty, whoever still has it. */
    g_assert_true(raw_send(member, GOVERNOR_VAULT_RETURN, number, 0, 0));
    await_pages(fd, 0);
    g_assert_cmpuint(pages_of(second), ==, PIECE);
    close(fd);
    close(second);
    close(member);
    close_vaults(&vaults);
}

/* Other slices' pieces are none of a member's business. */
static void test_limits(void)
{
    struct vaults vaults;
    uint64_t numbers[4], error;
    int a, b, fds[4], fd;

    open_vaults(&vaults);
    a = join(&vaults, "a");
    b = join(&vaults, "b");
    for (unsigned i = 0; i < 4; i++) {
        fds[i] = take_piece(i < 2 ? a : b, PIECE, &numbers[i]);
        g_assert_cmpint(fds[i], >=, 0);
    }
    /* Of the host. */
    g_assert_cmpint(take_piece(a, PIECE, &error), ==, -1);
    g_assert_cmpuint(error, ==, ENOMEM);
    g_assert_true(raw_send(b, GOVERNOR_VAULT_RETURN, numbers[0], 0, 0));
    g_assert_cmpint(take_piece(b, PIECE, &error), ==, -1);
    g_assert_cmpuint(pages_of(fds[0]), ==, PIECE);
    g_assert_true(raw_send(a, GOVERNOR_VAULT_RETURN, numbers[0], 0, 0));
    fd = take_piece(b, PIECE, &numbers[0]);
    g_assert_cmpint(fd, >=, 0);
    /* Of the slice. */
    live_configure(&vaults.live, NULL, "[gpu]\ncapacity=1000000000\ndisplaced=4000000000\n");
    live_configure(&vaults.live, "b", "[slice]\nvram=4194304\nresident=0\n");
    live_await(&vaults.live, "b", "vram_limit", 4194304);
    g_assert_cmpint(take_piece(b, GOVERNOR_VAULT_MOST, &error), ==, -1);
    for (unsigned i = 0; i < 4; i++)
        close(fds[i]);
    close(fd);
    close(a);
    close(b);
    close_vaults(&vaults);
}

static int join_with_grant(const struct vaults *vaults, const struct governor_grant **grant)
{
    g_autofree char *path = live_socket(&vaults->live, "a");
    int fds[2], fd = raw_connect(path);

    g_assert_cmpint(fd, >=, 0);
    g_assert_true(raw_join(fd, fds));
    g_assert_true(raw_send(fd, GOVERNOR_MOVABLE, 0, 0, 0));
    *grant = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fds[0], 0);
    g_assert_true(*grant != MAP_FAILED);
    close(fds[0]);
    close(fds[1]);
    return fd;
}

/* If a process finds none, others of its slice are told to return theirs. */
static void test_returns(void)
{
    const struct governor_grant *of_first, *of_second;
    struct vaults vaults;
    uint64_t numbers[4], error;
    int first, second, fd;

    open_vaults(&vaults);
    first = join_with_grant(&vaults, &of_first);
    second = join_with_grant(&vaults, &of_second);
    for (unsigned i = 0; i < 4; i++) {
        fd = take_piece(first, PIECE, &numbers[i]);
        g_assert_cmpint(fd, >=, 0);
        close(fd);
    }
    g_assert_cmpuint(atomic_load(&of_first->returns), ==, 0);
    g_assert_cmpint(take_piece(second, PIECE, &error), ==, -1);
    g_assert_cmpuint(atomic_load(&of_first->returns), ==, 1);
    g_assert_cmpuint(atomic_load(&of_second->returns), ==, 0);
    g_assert_true(raw_send(first, GOVERNOR_VAULT_RETURN, numbers[0], 0, 0));
    while ((fd = take_piece(second, PIECE, &error)) < 0)
        g_usleep(1000);
    close(fd);
    close(first);
    close(second);
    close_vaults(&vaults);
}

static int connection_of_child(const struct vaults *vaults, pid_t *child, int *piece)
{
    int pair[2];

    g_assert_cmpint(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), ==, 0);
    *child = fork();
    if (!*child) {
        uint64_t number;
        int member = join(vaults, "a");
        int fd = take_piece(member, PIECE, &number);
        char *at = mmap(NULL, PIECE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

        memset(at, 'x', PIECE);
        g_assert_cmpint(write(pair[1], &fd, sizeof(fd)), ==, sizeof(fd));
        pause();
        _exit(0);
    }
    close(pair[1]);
    g_assert_cmpint(read(pair[0], piece, sizeof(*piece)), ==, sizeof(*piece));
    return pair[0];
}

/* With its process its pages go, and not with the arbiter. */
static void test_ends(void)
{
    struct vaults vaults;
    g_autofree char *path = NULL;
    uint64_t number;
    pid_t child;
    int end, piece, fd, member;

    open_vaults(&vaults);
    end = connection_of_child(&vaults, &child, &piece);
    path = g_strdup_printf("/proc/%d/fd/%d", (int)child, piece);
    fd = open(path, O_RDWR | O_CLOEXEC);
    g_assert_cmpint(fd, >=, 0);
    live_kill_arbiter(&vaults.live, SIGKILL);
    live_start_arbiter(&vaults.live);
    live_await(&vaults.live, "a", "promised", 2097152);
    g_assert_cmpuint(pages_of(fd), ==, PIECE);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    await_pages(fd, 0);
    close(fd);
    /*
     * Without a vault there are no more pieces, but those that there are keep what they hold. With
     * the next one there are.
     */
    member = join(&vaults, "a");
    fd = take_piece(member, PIECE, &number);
    g_assert_cmpint(fd, >=, 0);
    stop_vault(&vaults);
    g_assert_cmpuint(pages_of(fd), ==, PIECE);
    g_assert_cmpint(take_piece(member, PIECE, &number), ==, -1);
    start_vault(&vaults);
    end = take_piece(member, PIECE, &number);
    g_assert_cmpint(end, >=, 0);
    close(member);
    close(end);
    close(fd);
    close_vaults(&vaults);
}

#define RETURNS 5000

static int listen_at(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

    g_strlcpy(address.sun_path, path, sizeof(address.sun_path));
    g_assert_cmpint(bind(fd, (struct sockaddr *)&address, sizeof(address)), ==, 0);
    g_assert_cmpint(listen(fd, 1), ==, 0);
    return fd;
}

/* A vault that does not read. */
static int listen_as_vault(const struct live *live)
{
    g_autofree char *path = g_build_filename(live->root, "run/vgpu/vault.sock", NULL);

    return listen_at(path);
}

/*
 * A slow vault gets all that was returned to it, also what the socket had no room for, and after
 * that what was asked for.
 */
static void test_slow(void)
{
    struct vaults vaults;
    struct vault_request request;
    struct governor_message answer;
    int listener, vault, member;

    live_open(&vaults.live, slices);
    live_configure(&vaults.live, NULL, "[gpu]\ncapacity=1000000000\ndisplaced=8388608\n");
    live_await(&vaults.live, "a", "promised", 2097152);
    listener = listen_as_vault(&vaults.live);
    member = join(&vaults, "a");
    for (uint64_t i = 1; i <= RETURNS; i++)
        g_assert_true(raw_send(member, GOVERNOR_VAULT_RETURN, i, 0, 0));
    vault = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    g_assert_cmpint(vault, >=, 0);
    g_assert_true(raw_send(member, GOVERNOR_VAULT, PIECE, 0, 0));
    /* The arbiter has read all of them when it answers this. */
    g_assert_true(raw_send(member, GOVERNOR_RESERVE, 0, 0, 0));
    g_assert_cmpint(recv(member, &answer, sizeof(answer), 0), ==, sizeof(answer));
    g_assert_cmpuint(answer.type, ==, GOVERNOR_RESERVED);
    for (uint64_t i = 1; i <= RETURNS; i++) {
        g_assert_cmpint(recv(vault, &request, sizeof(request), 0), ==, sizeof(request));
        g_assert_cmpuint(request.type, ==, VAULT_RETURN);
        g_assert_cmpuint(request.number, ==, i);
    }
    g_assert_cmpint(recv(vault, &request, sizeof(request), 0), ==, sizeof(request));
    g_assert_cmpuint(request.type, ==, VAULT_TAKE);
    close(member);
    close(vault);
    close(listener);
    live_close(&vaults.live);
}

/* @fd: what the member was given; -1: nothing */
struct asking {
    GovernorMember *member;
    uint64_t number;
    int fd;
};

static void *ask_vault(void *data)
{
    struct asking *asking = data;

    asking->fd = governor_member_vault(asking->member, PIECE, &asking->number);
    return NULL;
}

static void send_piece(int socket, const void *answer, size_t bytes)
{
    int piece = memfd_create("piece", MFD_CLOEXEC);

    g_assert_cmpint(ftruncate(piece, PIECE), ==, 0);
    g_assert_cmpint(descriptor_send(socket, answer, bytes, 0, &piece, 1), ==, bytes);
    close(piece);
}

/* While one thread of a member waits for a vault that is slow, the others go on. */
static void test_beside(void)
{
    struct vaults vaults;
    struct vault_request request;
    struct vault_answer answer = {.number = 7};
    struct asking asking;
    g_autofree char *path = NULL;
    pthread_t thread;
    int listener, vault;

    live_open(&vaults.live, slices);
    live_configure(&vaults.live, NULL, "[gpu]\ncapacity=1000000000\ndisplaced=8388608\n");
    live_await(&vaults.live, "a", "promised", 2097152);
    listener = listen_as_vault(&vaults.live);
    path = live_socket(&vaults.live, "a");
    asking.member = governor_member_new(path, true);
    g_assert_nonnull(asking.member);
    governor_member_movable(asking.member);
    g_assert_cmpint(pthread_create(&thread, NULL, ask_vault, &asking), ==, 0);
    vault = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    g_assert_cmpint(vault, >=, 0);
    g_assert_cmpint(recv(vault, &request, sizeof(request), 0), ==, sizeof(request));
    for (unsigned i = 0; i < 3; i++) {
        g_assert_cmpint(governor_member_reserve(asking.member, 4096, false), ==,
                        GOVERNOR_MEMORY_DEVICE);
        governor_member_release(asking.member, 4096, GOVERNOR_MEMORY_DEVICE);
    }
    answer.ticket = request.ticket;
    send_piece(vault, &answer, sizeof(answer));
    pthread_join(thread, NULL);
    g_assert_cmpint(asking.fd, >=, 0);
    g_assert_cmpuint(asking.number, ==, 7);
    close(asking.fd);
    governor_member_free(asking.member);
    close(vault);
    close(listener);
    live_close(&vaults.live);
}

static void expect(int member, uint32_t type)
{
    struct governor_message message;

    g_assert_cmpint(recv(member, &message, sizeof(message), 0), ==, sizeof(message));
    g_assert_cmpuint(message.type, ==, type);
}

static int welcome(int listener)
{
    const struct governor_message message = {.version = GOVERNOR_PROTOCOL_VERSION,
                                             .type = GOVERNOR_WELCOME};
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC), pages[2];

    g_assert_cmpint(fd, >=, 0);
    expect(fd, GOVERNOR_JOIN);
    for (unsigned i = 0; i < 2; i++) {
        pages[i] = memfd_create("page", MFD_CLOEXEC);
        g_assert_cmpint(ftruncate(pages[i], 4096), ==, 0);
    }
    g_assert_cmpint(descriptor_send(fd, &message, sizeof(message), 0, pages, 2), ==,
                    sizeof(message));
    close(pages[0]);
    close(pages[1]);
    return fd;
}

static void *join_at(void *path)
{
    return governor_member_new(path, true);
}

static void *reserve(void *member)
{
    return GINT_TO_POINTER(governor_member_reserve(member, 4096, false));
}

/* Two threads wait for an arbiter, which answers the one that asked first first. */
static void test_crossing(void)
{
    const struct governor_message vaulted = {
        .version = GOVERNOR_PROTOCOL_VERSION, .type = GOVERNOR_VAULTED, .other = 7};
    const struct governor_message reserved = {.version = GOVERNOR_PROTOCOL_VERSION,
                                              .type = GOVERNOR_RESERVED};
    g_autofree char *folder = g_dir_make_tmp("vault-XXXXXX", NULL);
    g_autofree char *path = g_build_filename(folder, "arbiter.sock", NULL);
    int listener = listen_at(path), fd;
    pthread_t asks, reserves;
    struct asking asking;
    void *kind;

    g_assert_cmpint(pthread_create(&asks, NULL, join_at, path), ==, 0);
    fd = welcome(listener);
    pthread_join(asks, (void **)&asking.member);
    g_assert_nonnull(asking.member);
    g_assert_cmpint(pthread_create(&asks, NULL, ask_vault, &asking), ==, 0);
    expect(fd, GOVERNOR_VAULT);
    g_assert_cmpint(pthread_create(&reserves, NULL, reserve, asking.member), ==, 0);
    expect(fd, GOVERNOR_RESERVE);
    send_piece(fd, &vaulted, sizeof(vaulted));
    g_assert_cmpint(send(fd, &reserved, sizeof(reserved), 0), ==, sizeof(reserved));
    pthread_join(asks, NULL);
    pthread_join(reserves, &kind);
    g_assert_cmpint(asking.fd, >=, 0);
    g_assert_cmpuint(asking.number, ==, 7);
    g_assert_cmpint(GPOINTER_TO_INT(kind), ==, GOVERNOR_MEMORY_DEVICE);
    close(asking.fd);
    /* It ends instead of an answer. */
    g_assert_cmpint(pthread_create(&asks, NULL, ask_vault, &asking), ==, 0);
    expect(fd, GOVERNOR_VAULT);
    close(fd);
    pthread_join(asks, NULL);
    g_assert_cmpint(asking.fd, ==, -1);
    governor_member_free(asking.member);
    close(listener);
    unlink(path);
    rmdir(folder);
}

/* What was displaced comes back when the slice does not move any more, and its pieces, too. */
static void test_moves_no_more(void)
{
    struct vaults vaults;
    uint64_t number;
    int member, fd;

    open_vaults(&vaults);
    member = join(&vaults, "a");
    fd = take_piece(member, PIECE, &number);
    g_assert_cmpint(fd, >=, 0);
    live_configure(&vaults.live, "a", "[slice]\nvram=6291456\n");
    live_await(&vaults.live, "a", "promised", 6291456);
    g_assert_true(raw_send(member, GOVERNOR_VAULT_RETURN, number, 0, 0));
    await_pages(fd, 0);
    close(fd);
    close(member);
    close_vaults(&vaults);
}

static void assert_dropped(int fd)
{
    struct governor_message message;

    while (recv(fd, &message, sizeof(message), 0) > 0)
        ;
    close(fd);
}

static void test_lies(void)
{
    struct vaults vaults;
    const uint64_t sizes[] = {0, 1, PIECE + 1, GOVERNOR_VAULT_MOST + PIECE, UINT64_MAX};
    g_autofree char *path = NULL;
    uint64_t error;
    int member;

    open_vaults(&vaults);
    for (gsize i = 0; i < G_N_ELEMENTS(sizes); i++) {
        member = join(&vaults, "a");
        raw_send(member, GOVERNOR_VAULT, sizes[i], 0, 0);
        assert_dropped(member);
    }
    live_await_log(&vaults.live, "it asks for host memory in a wrong way");
    /* Who has not said that its memory moves needs none. */
    path = live_socket(&vaults.live, "a");
    member = raw_member(path);
    g_assert_cmpint(take_piece(member, PIECE, &error), ==, -1);
    raw_send(member, GOVERNOR_VAULT_RETURN, 7, 0, 0);
    g_assert_cmpint(take_piece(member, PIECE, &error), ==, -1);
    close(member);
    close_vaults(&vaults);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/governor/vault/piece", test_piece);
    g_test_add_func("/governor/vault/limits", test_limits);
    g_test_add_func("/governor/vault/returns", test_returns);
    g_test_add_func("/governor/vault/ends", test_ends);
    g_test_add_func("/governor/vault/slow", test_slow);
    g_test_add_func("/governor/vault/beside", test_beside);
    g_test_add_func("/governor/vault/crossing", test_crossing);
    g_test_add_func("/governor/vault/moves-no-more", test_moves_no_more);
    g_test_add_func("/governor/vault/lies", test_lies);
    return g_test_run();
}
