// SPDX-License-Identifier: MIT
#include "connection.h"

#include "clock.h"
#include "lib/descriptor.h"
#include "moves.h"
#include "rate_limit.h"
#include "vault_link.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * Messages that are read at once, so that a member that sends many takes no more turns than one
 * that sends few.
 */
#define MESSAGES_IN_TURN 16

static bool drop_member(const struct connection *connection, const char *why)
{
    rate_limit_spend(connection->slice, RATE_DROP);
    g_message("slice %s: process %d is dropped: %s", connection->slice->id,
              (int)peer_pid(connection->fd), why);
    return false;
}

static bool send_reply(struct connection *connection, struct governor_message *message,
                       const int *fds, size_t count)
{
    message->version = connection->version;
    if (descriptor_send(connection->fd, message, sizeof(*message), MSG_DONTWAIT, fds, count) ==
        sizeof(*message))
        return true;
    return errno == EPIPE ? false : drop_member(connection, "it does not read its answers");
}

static bool refuse_member(struct connection *connection, int error, const char *why)
{
    struct governor_message refused = {.type = GOVERNOR_REFUSED, .value = (uint64_t)error};

    send_reply(connection, &refused, NULL, 0);
    return drop_member(connection, why);
}

/*
 * In the member's own version, so that a layer that was loaded before an upgrade can say why it
 * gets no GPU. It keeps its share, and retries for as long as it runs.
 */
static bool refuse_version(struct connection *connection)
{
    struct governor_message refused = {.type = GOVERNOR_REFUSED, .value = EPROTONOSUPPORT};
    struct slice *slice = connection->slice;

    send_reply(connection, &refused, NULL, 0);
    rate_limit_spend(slice, RATE_DROP);
    if (!slice->told_of_version)
        g_message(
            "slice %s: cannot govern process %d: its layer speaks version %u of the protocol, "
            "and this arbiter version %u. It keeps its last share. Restart it; a VM must be "
            "shut down and started",
            slice->id, (int)peer_pid(connection->fd), connection->version,
            GOVERNOR_PROTOCOL_VERSION);
    slice->told_of_version = true;
    return false;
}

static bool join_slice(struct connection *connection, const struct governor_message *message)
{
    struct slice *slice = connection->slice;
    struct governor_message welcome = {.type = GOVERNOR_WELCOME, .value = slice->number};
    int fds[2];
    bool sent;

    if (connection->joined)
        return drop_member(connection, "it joined twice");
    if (slice->connections->len > SLICE_MAX_MEMBERS)
        return refuse_member(connection, EUSERS, "the slice has the maximum number of members");
    if (!ledger_adopt(&slice->ledger, &connection->holding, message->value, message->other))
        return refuse_member(connection, EINVAL, "it declares an impossible amount of memory");
    connection->joined = true;
    if (!pages_new(&connection->pages, fds)) {
        ledger_forget(&slice->ledger, &connection->holding);
        connection->joined = false;
        return refuse_member(connection, errno, "there are no descriptors or memory for its pages");
    }
    for (unsigned i = 0; i < GOVERNOR_CLASSES; i++) {
        connection->members[i].grant = &connection->pages.grant->classes[i];
        connection->members[i].usage = &connection->pages.usage->classes[i];
        connection->members[i].came_at = &connection->pages.usage->came_at_ns[i];
        connection->members[i].expects_at = &connection->pages.usage->expects_at_ns[i];
        connection->members[i].preempts = &connection->pages.grant->preempts[i];
        scheduler_add_member(slice->scheduled[i], &connection->members[i], clock_now());
    }
    moves_join(connection);
    slice->arbiter->members++;
    status_changed(slice->arbiter);
    publish_members(slice);
    moves_publish_memory(slice);
    publish_engines(slice);
    welcome.other = clock_now();
    /* The member finds its settings in the page from its first look on. */
    turn_run(slice->arbiter);
    sent = send_reply(connection, &welcome, fds, 2);
    close(fds[0]);
    close(fds[1]);
    return sent;
}

static bool join_and_pay(struct connection *connection, const struct governor_message *message)
{
    uint64_t begin = rate_limit_clock();
    bool joined = join_slice(connection, message);

    rate_limit_spend_since(connection->slice, begin);
    return joined;
}

static bool reply_reserved(struct connection *connection, int error, uint64_t spilled)
{
    struct governor_message reserved = {
        .type = GOVERNOR_RESERVED, .value = (uint64_t)error, .other = spilled};

    if (!error)
        moves_publish_memory(connection->slice);
    return send_reply(connection, &reserved, NULL, 0);
}

/*
 * What it will have returned in a moment, and no more than it holds. Members of before that are
 * silent about it.
 */
static uint64_t still_to_return(const struct connection *connection)
{
    uint64_t said = atomic_load(&connection->pages.usage->returned);

    return said > connection->returned
               ? MIN(said - connection->returned, connection->holding.device)
               : 0;
}

static uint64_t returned_by_others(const struct connection *connection)
{
    const GPtrArray *all = connection->slice->connections;
    uint64_t bytes = 0;

    for (guint i = 0; i < all->len; i++) {
        const struct connection *other = g_ptr_array_index(all, i);

        if (other != connection && other->joined)
            bytes += still_to_return(other);
    }
    return bytes;
}

/* Whether @bytes, which were refused, will fit then. */
static bool would_fit(const struct connection *connection, uint64_t bytes)
{
    const struct ledger *ledger = &connection->slice->ledger;
    uint64_t used = ledger->used - MIN(ledger->used, returned_by_others(connection));

    return used <= ledger->limit && bytes <= ledger->limit - used;
}

/* The ledger's @error for @bytes, as the member is told it. */
static int limit_error(const struct connection *connection, uint64_t bytes, int error)
{
    return error == ENOMEM && would_fit(connection, bytes) ? EAGAIN : error;
}

/* From the slice's limit, and then from the card. */
static int reserve_bytes(struct connection *connection, const struct governor_message *message,
                         uint64_t *spilled)
{
    struct ledger *ledger = &connection->slice->ledger;
    int error;

    if (moves_has_waiting(connection))
        return EBUSY;
    error =
        ledger_reserve(ledger, &connection->holding, message->value, message->other != 0, spilled);
    if (error || *spilled)
        return limit_error(connection, message->value, error);
    error = moves_reserve(connection, message->value);
    if (error && error != EINPROGRESS)
        ledger_release(ledger, &connection->holding, message->value, 0);
    return error;
}

/* It is charged for as long as it has it, and does not move. */
static int attach_object(struct connection *connection, const struct governor_message *message)
{
    struct slice *slice = connection->slice;
    uint64_t used = slice->ledger.used;
    int error =
        ledger_attach(&slice->ledger, &connection->holding, &message->object, message->value);

    if (error || moves_has_room(slice, slice->ledger.used - used))
        return limit_error(connection, message->value, error);
    ledger_detach(&slice->ledger, &connection->holding, &message->object);
    return ENOMEM;
}

/* RESERVE and ATTACH: they can take more of the slice's memory. */
static bool answer_reserve(struct connection *connection, const struct governor_message *message)
{
    struct slice *slice = connection->slice;
    uint64_t spilled = 0;
    int error;

    if (!slice->arbiter->settled) {
        if (connection->has_postponed)
            return drop_member(connection, "it requested memory again before it had an answer");
        connection->postponed = *message;
        connection->has_postponed = true;
        return true;
    }
    error = message->type == GOVERNOR_ATTACH ? attach_object(connection, message)
                                             : reserve_bytes(connection, message, &spilled);
    return reply_reserved(connection, error, spilled);
}

static bool answer_share(struct connection *connection, const struct governor_message *message)
{
    int error = ledger_share(&connection->slice->ledger, &connection->holding, &message->object,
                             message->value, message->other);

    if (error == EINVAL || (!error && !moves_release(connection, message->value - message->other)))
        return drop_member(connection, "it shares more memory than it holds");
    return reply_reserved(connection, error, 0);
}

static bool detach_object(struct connection *connection, const struct governor_message *message)
{
    struct slice *slice = connection->slice;

    if (!ledger_detach(&slice->ledger, &connection->holding, &message->object))
        return drop_member(connection, "it returned a shared object that it does not hold");
    moves_publish_memory(slice);
    return true;
}

bool connection_resume(struct connection *connection)
{
    if (!connection->has_postponed)
        return true;
    connection->has_postponed = false;
    return answer_reserve(connection, &connection->postponed);
}

static bool release_memory(struct connection *connection, const struct governor_message *message)
{
    struct slice *slice = connection->slice;

    if (!ledger_release(&slice->ledger, &connection->holding, message->value, message->other) ||
        !moves_release(connection, message->value - message->other))
        return drop_member(connection, "it returned more memory than it holds");
    connection->returned += message->value - message->other;
    moves_publish_memory(slice);
    return true;
}

static bool set_driver(struct connection *connection, const struct governor_message *message)
{
    struct slice *slice = connection->slice;

    if (!ledger_set_driver(&slice->ledger, &connection->holding, message->value))
        return drop_member(connection, "it declares an impossible amount of memory of its driver");
    moves_publish_memory(slice);
    return true;
}

static bool reply_vaulted(struct connection *connection, int error, uint64_t number, int memory)
{
    struct governor_message vaulted = {
        .type = GOVERNOR_VAULTED, .value = (uint64_t)error, .other = number};

    return send_reply(connection, &vaulted, &memory, memory >= 0);
}

bool connection_vaulted(struct connection *connection, int error, uint64_t number, int memory)
{
    struct arbiter *arbiter = connection->slice->arbiter;

    if (error)
        moves_return_pieces(connection);
    if (reply_vaulted(connection, error, number, memory))
        return true;
    connection_free(connection);
    turn_ask(arbiter, ARBITER_ALL_CLASSES);
    return false;
}

static bool ask_vault(struct connection *connection, uint64_t bytes)
{
    int error;

    if (connection->vault_ticket || !bytes || bytes > GOVERNOR_VAULT_MOST ||
        bytes % GOVERNOR_VAULT_UNIT)
        return drop_member(connection, "it asks for host memory in a wrong way");
    error = moves_may_displace(connection) ? vault_link_ask(connection, bytes) : ENOMEM;
    return error ? reply_vaulted(connection, ENOMEM, 0, -1) : true;
}

/* What a member of a slice whose memory moves says of that. */
static bool of_moves(struct connection *connection, const struct governor_message *message)
{
    const char *wrong = moves_message(connection, message);

    return wrong ? drop_member(connection, wrong) : true;
}

/* WANT, IDLE and STALLED. */
static bool of_class(struct connection *connection, const struct governor_message *message)
{
    struct sched_member *member;

    if (message->other >= GOVERNOR_CLASSES)
        return drop_member(connection,
                           "it sent a message about a class of work that does not exist");
    member = &connection->members[message->other];
    scheduler_heard(member);
    if (message->type == GOVERNOR_STALLED)
        scheduler_stalled(member, clock_now());
    turn_ask(connection->slice->arbiter, 1u << message->other);
    return true;
}

static bool of_member(struct connection *connection, const struct governor_message *message)
{
    switch (message->type) {
    case GOVERNOR_WANT:
    case GOVERNOR_IDLE:
    case GOVERNOR_STALLED:
        return of_class(connection, message);
    case GOVERNOR_RESERVE:
    case GOVERNOR_ATTACH:
        return answer_reserve(connection, message);
    case GOVERNOR_RELEASE:
        return release_memory(connection, message);
    case GOVERNOR_SHARE:
        return answer_share(connection, message);
    case GOVERNOR_DETACH:
        return detach_object(connection, message);
    case GOVERNOR_DRIVER:
        return set_driver(connection, message);
    case GOVERNOR_MOVABLE ... GOVERNOR_RELEASE_DISPLACED:
        return of_moves(connection, message);
    case GOVERNOR_VAULT:
        return ask_vault(connection, message->value);
    case GOVERNOR_VAULT_RETURN:
        vault_link_return(connection, message->value);
        return true;
    default:
        return drop_member(connection, "it sent an unknown message");
    }
}

bool connection_message(struct connection *connection, const void *data, size_t length)
{
    struct governor_message message = {0};

    /* A message of another version may have another length, too. */
    memcpy(&message, data, MIN(length, sizeof(message)));
    connection->version = message.version;
    if (length >= sizeof(message.version) &&
        (message.version < GOVERNOR_PROTOCOL_OLDEST || message.version > GOVERNOR_PROTOCOL_VERSION))
        return refuse_version(connection);
    if (length != sizeof(message))
        return drop_member(connection, "it sent a message of a wrong length");
    if (message.type == GOVERNOR_JOIN)
        return join_and_pay(connection, &message);
    if (!connection->joined)
        return drop_member(connection, "it sent a message before it joined");
    return of_member(connection, &message);
}

/* Handles @count messages of one turn. False: drop the connection. */
static bool handle_messages(struct connection *connection, const struct mmsghdr *packets, int count)
{
    for (int i = 0; i < count; i++) {
        const struct iovec *data = packets[i].msg_hdr.msg_iov;

        rate_limit_spend(connection->slice, RATE_MESSAGE);
        if (!packets[i].msg_len ||
            !connection_message(connection, data->iov_base, packets[i].msg_len))
            return false;
    }
    return true;
}

/* -1 with EPERM: the next message has descriptors, and stays where it is. */
static ssize_t receive_one(int fd, struct msghdr *packet)
{
    if (!rights_next(fd))
        return recvmsg(fd, packet, MSG_DONTWAIT);
    errno = EPERM;
    return -1;
}

static int receive_messages(const struct connection *connection, struct mmsghdr *packets)
{
    int count = 0;

    if (!connection->takes_rights)
        return recvmmsg(connection->fd, packets, MESSAGES_IN_TURN, MSG_DONTWAIT, NULL);
    while (count < MESSAGES_IN_TURN) {
        ssize_t length = receive_one(connection->fd, &packets[count].msg_hdr);

        if (length < 0)
            return count ? count : -1;
        packets[count++].msg_len = (unsigned)length;
    }
    return count;
}

static int on_readable(sd_event_source *source, int fd, uint32_t revents, void *data)
{
    struct connection *connection = data;
    struct arbiter *arbiter = connection->slice->arbiter;
    /* One extra byte reveals a message that is too long. */
    char buffers[MESSAGES_IN_TURN][sizeof(struct governor_message) + 1];
    struct iovec vectors[MESSAGES_IN_TURN];
    struct mmsghdr packets[MESSAGES_IN_TURN] = {0};
    int count;

    (void)fd;
    (void)revents;
    if (!rate_limit_admits(connection->slice, source))
        return 0;
    for (size_t i = 0; i < MESSAGES_IN_TURN; i++) {
        vectors[i] = (struct iovec){.iov_base = buffers[i], .iov_len = sizeof(buffers[i])};
        packets[i].msg_hdr.msg_iov = &vectors[i];
        packets[i].msg_hdr.msg_iovlen = 1;
    }
    count = receive_messages(connection, packets);
    if (count < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (count < 0 && errno == EPERM)
        drop_member(connection, "it sent descriptors");
    if (count > 0 && handle_messages(connection, packets, count))
        return 0;
    connection_free(connection);
    turn_ask(arbiter, ARBITER_ALL_CLASSES);
    return 0;
}

static int on_death(sd_event_source *source, int fd, uint32_t revents, void *data)
{
    struct connection *connection = data;
    struct arbiter *arbiter = connection->slice->arbiter;

    (void)source;
    (void)fd;
    (void)revents;
    connection_free(connection);
    turn_ask(arbiter, ARBITER_ALL_CLASSES);
    return 0;
}

static bool watch_connection(struct connection *connection)
{
    sd_event *event = connection->slice->arbiter->event;

    if (connection->pidfd < 0)
        return drop_member(connection, "the kernel does not know its process any more");
    if (sd_event_add_io(event, &connection->io, connection->fd, EPOLLIN, on_readable, connection) >=
            0 &&
        sd_event_add_io(event, &connection->death, connection->pidfd, EPOLLIN, on_death,
                        connection) >= 0)
        return true;
    return drop_member(connection, "there are no descriptors or memory to watch it");
}

struct connection *connection_new(struct slice *slice, int fd)
{
    struct connection *connection = g_new0(struct connection, 1);

    connection->slice = slice;
    connection->fd = fd;
    connection->pidfd = peer_pidfd(fd);
    connection->takes_rights = rights_possible(fd);
    g_ptr_array_add(slice->connections, connection);
    if (watch_connection(connection))
        return connection;
    connection_free(connection);
    return NULL;
}

void connection_free(struct connection *connection)
{
    struct slice *slice = connection->slice;
    uint64_t begin = rate_limit_clock();

    for (unsigned i = 0; i < GOVERNOR_CLASSES; i++) {
        if (connection->members[i].slice)
            scheduler_remove_member(&slice->arbiter->schedulers[i], &connection->members[i],
                                    clock_now());
    }
    g_ptr_array_remove_fast(slice->connections, connection);
    sd_event_source_disable_unref(connection->io);
    sd_event_source_disable_unref(connection->death);
    vault_link_forget(connection);
    rate_limit_close(slice, connection->fd);
    if (connection->pidfd >= 0)
        close(connection->pidfd);
    if (connection->joined) {
        moves_leave(connection);
        ledger_forget(&slice->ledger, &connection->holding);
        publish_members(slice);
        moves_publish_memory(slice);
        slice->arbiter->members--;
        status_changed(slice->arbiter);
    }
    pages_free(&connection->pages);
    g_free(connection);
    rate_limit_spend_since(slice, begin);
}
