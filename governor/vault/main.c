// SPDX-License-Identifier: MIT
/*
 * vgpu-vault: the host's memory for what is displaced from GPUs. It is a process of its own because
 * filling a piece takes as long as writing it, and because pieces outlive the arbiter that asked
 * for them. One thread: a piece at a time.
 */
#include "pieces.h"

#include "lib/descriptor.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#define EXIT_USAGE 2

struct vault {
    sd_event *event;
    struct pieces pieces;
};

static void close_peer(sd_event_source *source, int fd)
{
    sd_event_source_set_enabled(source, SD_EVENT_OFF);
    sd_event_source_unref(source);
    close(fd);
}

/* -1: the end, or no request; 0: nothing is there. */
static int receive_request(int fd, struct vault_request *request, int *pidfd)
{
    ssize_t length = descriptor_receive(fd, request, sizeof(*request), MSG_DONTWAIT, pidfd, 1);

    if (length < 0)
        return errno == EAGAIN ? 0 : -1;
    return length == sizeof(*request) && memchr(request->slice, 0, sizeof(request->slice)) ? 1 : -1;
}

static bool send_answer(int fd, const struct vault_answer *answer, int memory)
{
    return descriptor_send(fd, answer, sizeof(*answer), MSG_DONTWAIT, &memory, 1) ==
           sizeof(*answer);
}

/* Takes @pidfd. False: the peer is gone, and the piece, too. */
static bool give_piece(struct vault *vault, int fd, struct vault_request *request, int pidfd)
{
    struct vault_answer answer = {.ticket = request->ticket};
    int memory = pieces_take(&vault->pieces, request, pidfd, &answer.number);

    answer.error = memory < 0 ? (uint64_t)errno : 0;
    if (send_answer(fd, &answer, memory))
        return true;
    request->number = answer.number;
    pieces_return(&vault->pieces, request);
    return false;
}

static bool handle_request(struct vault *vault, int fd, struct vault_request *request, int pidfd)
{
    if (request->type == VAULT_TAKE && pidfd >= 0 && request->bytes)
        return give_piece(vault, fd, request, pidfd);
    if (pidfd >= 0)
        close(pidfd);
    if (request->type != VAULT_RETURN)
        return false;
    pieces_return(&vault->pieces, request);
    return true;
}

static int on_request(sd_event_source *source, int fd, uint32_t revents, void *data)
{
    struct vault_request request;
    int pidfd, received;

    (void)revents;
    received = receive_request(fd, &request, &pidfd);
    if (!received || (received > 0 && handle_request(data, fd, &request, pidfd)))
        return 0;
    if (received < 0 && pidfd >= 0)
        close(pidfd);
    close_peer(source, fd);
    return 0;
}

static int on_connect(sd_event_source *source, int fd, uint32_t revents, void *data)
{
    struct vault *vault = data;
    sd_event_source *peer_source = NULL;
    int peer = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

    (void)source;
    (void)revents;
    if (peer >= 0 &&
        sd_event_add_io(vault->event, &peer_source, peer, EPOLLIN, on_request, vault) < 0)
        close(peer);
    return 0;
}

/*
 * Bound under another name and renamed, so that nobody finds it before it listens. -1: said why.
 */
static int listen_at(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    g_autofree char *made = g_strconcat(path, ".new", NULL);
    mode_t mask = umask(0177);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool listens = false;

    if (fd >= 0 && strlen(made) < sizeof(address.sun_path)) {
        strcpy(address.sun_path, made);
        unlink(made);
        listens = bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0 &&
                  listen(fd, SOMAXCONN) == 0 && rename(made, path) == 0;
    }
    umask(mask);
    if (listens)
        return fd;
    g_printerr("vgpu-vault: cannot listen at %s: %s\n", path, g_strerror(errno));
    if (fd >= 0)
        close(fd);
    return -1;
}

static int serve_socket(const char *path)
{
    struct vault vault = {0};
    sigset_t signals;
    int fd, ret = -1;

    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    if (sd_event_default(&vault.event) < 0 ||
        sd_event_add_signal(vault.event, NULL, SIGTERM, NULL, NULL) < 0)
        return EXIT_FAILURE;
    pieces_init(&vault.pieces, vault.event);
    fd = listen_at(path);
    if (fd >= 0 && sd_event_add_io(vault.event, NULL, fd, EPOLLIN, on_connect, &vault) >= 0) {
        sd_notify(0, "READY=1");
        ret = sd_event_loop(vault.event);
    }
    pieces_clear(&vault.pieces);
    sd_event_unref(vault.event);
    return ret < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    g_autofree char *path = NULL;

    if (argc == 2 && strcmp(argv[1], "--version") == 0) {
        printf("vgpu-vault %s\n", VGPU_VERSION);
        return EXIT_SUCCESS;
    }
    if (argc != 1 && (argc != 3 || strcmp(argv[1], "--root") != 0)) {
        g_printerr("usage: vgpu-vault [--root DIR]\n");
        return EXIT_USAGE;
    }
    path = g_build_filename(argc == 3 ? argv[2] : "/", VAULT_SOCKET, NULL);
    return serve_socket(path);
}
