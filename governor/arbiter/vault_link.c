// SPDX-License-Identifier: MIT
#include "vault_link.h"

#include "lib/descriptor.h"
#include "vault_protocol.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* Nobody has so many pieces. A process that returns what it has not may not fill the memory. */
#define UNSENT_MOST 65536

/* @pidfd: of whom it is for; -1: a piece is returned */
struct unsent {
    struct vault_request request;
    int pidfd;
};

static struct vault_link *link_of(const struct connection *connection)
{
    return &connection->slice->arbiter->vault;
}

void vault_link_init(struct vault_link *link, const char *tree,
                     bool (*tell)(struct connection *connection, int error, uint64_t number,
                                  int memory))
{
    *link = (struct vault_link){
        .path = g_build_filename(tree, VAULT_SOCKET, NULL), .fd = -1, .tell = tell};
    link->asked = g_hash_table_new(NULL, NULL);
    link->unsent = g_queue_new();
}

static void free_unsent(void *data)
{
    struct unsent *unsent = data;

    if (unsent->pidfd >= 0)
        close(unsent->pidfd);
    g_free(unsent);
}

/* What a vault that has ended was not told is nothing to the next one. */
static void close_link(struct vault_link *link)
{
    link->io = sd_event_source_disable_unref(link->io);
    if (link->fd >= 0)
        close(link->fd);
    link->fd = -1;
    g_queue_clear_full(link->unsent, free_unsent);
}

void vault_link_clear(struct vault_link *link)
{
    close_link(link);
    g_queue_free(link->unsent);
    g_hash_table_destroy(link->asked);
    g_free(link->path);
}

/* With a descriptor, if @pidfd is one. */
static bool send_request(const struct vault_link *link, const struct vault_request *request,
                         int pidfd)
{
    return descriptor_send(link->fd, request, sizeof(*request), MSG_DONTWAIT, &pidfd, 1) ==
           sizeof(*request);
}

/* A vault that is slow reads them later. */
static void send_unsent(struct vault_link *link)
{
    const struct unsent *next;

    while ((next = g_queue_peek_head(link->unsent)) &&
           send_request(link, &next->request, next->pidfd))
        free_unsent(g_queue_pop_head(link->unsent));
    sd_event_source_set_io_events(link->io, EPOLLIN | (next ? EPOLLOUT : 0));
}

/* Takes @pidfd. False: too many wait. */
static bool queue_request(struct vault_link *link, const struct vault_request *request, int pidfd)
{
    struct unsent *unsent = g_new0(struct unsent, 1);

    *unsent = (struct unsent){*request, pidfd};
    if (link->unsent->length >= UNSENT_MOST) {
        free_unsent(unsent);
        return false;
    }
    g_queue_push_tail(link->unsent, unsent);
    send_unsent(link);
    return true;
}

/* @slice: its id; "": of whatever slice it is, for nobody got it. */
static void return_piece(struct vault_link *link, const char *slice, uint64_t number)
{
    struct vault_request request = {.type = VAULT_RETURN, .number = number};

    g_strlcpy(request.slice, slice, sizeof(request.slice));
    queue_request(link, &request, -1);
}

/* The vault has ended: all that wait are refused. */
static void fail_all(struct vault_link *link)
{
    g_autoptr(GList) waiting = g_hash_table_get_values(link->asked);

    close_link(link);
    g_hash_table_remove_all(link->asked);
    for (GList *at = waiting; at; at = at->next) {
        struct connection *connection = at->data;

        connection->vault_ticket = 0;
        link->tell(connection, ENOMEM, 0, -1);
    }
}

/* False: the vault has ended; or nothing is there, and @answer's ticket is 0. */
static bool receive_answer(int fd, struct vault_answer *answer, int *memory)
{
    ssize_t length = descriptor_receive(fd, answer, sizeof(*answer), MSG_DONTWAIT, memory, 1);

    if (length == sizeof(*answer))
        return true;
    if (*memory >= 0)
        close(*memory);
    answer->ticket = 0;
    return length < 0 && errno == EAGAIN;
}

/* The piece is the process's own, whose end the vault sees. */
static void pass_answer(struct vault_link *link, const struct vault_answer *answer, int memory)
{
    struct connection *connection =
        g_hash_table_lookup(link->asked, GSIZE_TO_POINTER(answer->ticket));
    bool told = false;

    if (connection) {
        vault_link_forget(connection);
        told = link->tell(connection, (int)answer->error, answer->number, memory);
    }
    if (!told && !answer->error)
        return_piece(link, "", answer->number);
    if (memory >= 0)
        close(memory);
}

static int on_answer(sd_event_source *source, int fd, uint32_t revents, void *data)
{
    struct vault_link *link = data;
    struct vault_answer answer;
    int memory;

    (void)source;
    if (revents & EPOLLOUT)
        send_unsent(link);
    if (!receive_answer(fd, &answer, &memory))
        fail_all(link);
    else if (answer.ticket)
        pass_answer(link, &answer, memory);
    return 0;
}

static int connect_link(struct vault_link *link, sd_event *event)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd;

    if (link->fd >= 0)
        return 0;
    if (strlen(link->path) >= sizeof(address.sun_path))
        return ENAMETOOLONG;
    memcpy(address.sun_path, link->path, strlen(link->path) + 1);
    fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return errno;
    if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
        close(fd);
        return ENOENT;
    }
    link->fd = fd;
    if (sd_event_add_io(event, &link->io, fd, EPOLLIN, on_answer, link) >= 0)
        return 0;
    close_link(link);
    return ENOMEM;
}

/* What lies beyond the promise can be displaced, and with the last piece a little more. */
static uint64_t slice_limit(const struct slice_settings *settings)
{
    return settings->vram - settings->resident + GOVERNOR_VAULT_MOST;
}

int vault_link_ask(struct connection *connection, uint64_t bytes)
{
    struct slice *slice = connection->slice;
    struct vault_link *link = link_of(connection);
    const struct slice_settings *settings = &slice->scheduled[0]->settings;
    struct vault_request request = {.type = VAULT_TAKE,
                                    .bytes = bytes,
                                    .slice_limit = slice_limit(settings),
                                    .budget = slice->arbiter->settings.displaced};
    int error = connect_link(link, slice->arbiter->event), pidfd;

    if (error)
        return error;
    pidfd = fcntl(connection->pidfd, F_DUPFD_CLOEXEC, 0);
    if (pidfd < 0)
        return errno;
    request.ticket = ++link->tickets;
    g_strlcpy(request.slice, slice->id, sizeof(request.slice));
    if (!queue_request(link, &request, pidfd))
        return ENOMEM;
    connection->vault_ticket = request.ticket;
    g_hash_table_insert(link->asked, GSIZE_TO_POINTER(request.ticket), connection);
    return 0;
}

void vault_link_forget(struct connection *connection)
{
    g_hash_table_remove(link_of(connection)->asked, GSIZE_TO_POINTER(connection->vault_ticket));
    connection->vault_ticket = 0;
}

void vault_link_return(struct connection *connection, uint64_t number)
{
    struct vault_link *link = link_of(connection);

    if (!connect_link(link, connection->slice->arbiter->event))
        return_piece(link, connection->slice->id, number);
}
