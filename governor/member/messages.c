// SPDX-License-Identifier: MIT
/* Messages over the connection after the welcome, and to the thread that watches it. */
#include "member_state.h"

#include "clock.h"
#include "lib/descriptor.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#define ANSWER_NS (2 * NS_PER_S)
/* The vault fills one piece at a time, and others may be before this one. */
#define VAULT_ANSWER_NS (10 * NS_PER_S)
/* Another thread may have taken the answer. */
#define VAULT_LOOK_MS 10

void link_tell(GovernorMember *member, enum governor_message_type type, uint64_t value,
               uint64_t other)
{
    struct governor_message message = message_of(type, value, other);

    if (member->link == LINK_JOINED)
        send(member->fd, &message, sizeof(message), MSG_NOSIGNAL | MSG_DONTWAIT);
}

void link_tell_back(GovernorMember *member, const struct governor_message *message)
{
    member->told_back = true;
    if (send(member->fd, message, sizeof(*message), MSG_NOSIGNAL) != sizeof(*message))
        link_break(member);
}

bool link_wake(GovernorMember *member)
{
    return send(member->wake_fd, "", 1, MSG_NOSIGNAL | MSG_DONTWAIT) == 1;
}

/* For the thread that waits for a piece of the vault. False: none does. */
static bool keep_piece(GovernorMember *member, const struct governor_message *answer, int fd)
{
    struct vault_ask *ask = member->vault_ask;

    if (answer->type != GOVERNOR_VAULTED || !ask || ask->came)
        return false;
    *ask = (struct vault_ask){.came = true, .answer = *answer, .fd = fd};
    return true;
}

/*
 * Takes a message that is there. 0: it is the answer to the thread that has link_lock. EAGAIN: none
 * is there, or it was for another thread. Otherwise the connection is unusable: a late answer would
 * be taken for the next one's.
 */
static int take_answer(GovernorMember *member, struct governor_message *answer)
{
    int fd;
    ssize_t length = descriptor_receive(member->fd, answer, sizeof(*answer), MSG_DONTWAIT, &fd, 1);

    if (length < 0 && errno == EAGAIN)
        return EAGAIN;
    if (length == sizeof(*answer) && answer->version == GOVERNOR_PROTOCOL_VERSION) {
        if (keep_piece(member, answer, fd))
            return EAGAIN;
        if (fd < 0 && answer->type == GOVERNOR_RESERVED)
            return 0;
    }
    if (fd >= 0)
        close(fd);
    return EPROTO;
}

static bool await_reserved(GovernorMember *member, struct governor_message *answer)
{
    uint64_t until = clock_now() + ANSWER_NS, now;
    int error = EAGAIN;

    while (error == EAGAIN && (now = clock_now()) < until) {
        struct pollfd fd = {.fd = member->fd, .events = POLLIN};

        if (poll(&fd, 1, (int)((until - now) / NS_PER_MS) + 1) > 0)
            error = take_answer(member, answer);
    }
    return !error;
}

static bool send_request(GovernorMember *member, const struct governor_message *request)
{
    return send(member->fd, request, sizeof(*request), MSG_NOSIGNAL) == sizeof(*request);
}

bool link_ask(GovernorMember *member, const struct governor_message *request,
              struct governor_message *answer)
{
    if (send_request(member, request) && await_reserved(member, answer)) {
        member->told_back = false;
        return true;
    }
    link_break(member);
    return false;
}

/*
 * Until the answer to @ask came, or the connection that it was made over ended. The vault fills one
 * piece at a time, so it may take long: link_lock is released meanwhile, and whoever asks for
 * something else then takes this answer, too.
 */
static void await_piece(GovernorMember *member, const struct vault_ask *ask)
{
    uint64_t until = clock_now() + VAULT_ANSWER_NS, connection = member->connections;

    while (!ask->came && member->link == LINK_JOINED && member->connections == connection) {
        struct pollfd fd = {.fd = member->fd, .events = POLLIN};
        struct governor_message other;

        if (clock_now() >= until || take_answer(member, &other) != EAGAIN) {
            link_break(member);
            return;
        }
        if (ask->came)
            return;
        pthread_mutex_unlock(&member->link_lock);
        poll(&fd, 1, VAULT_LOOK_MS);
        pthread_mutex_lock(&member->link_lock);
    }
}

int link_ask_vault(GovernorMember *member, uint64_t bytes, uint64_t *number)
{
    const struct governor_message request = message_of(GOVERNOR_VAULT, bytes, 0);
    struct vault_ask ask = {.fd = -1};

    while (member->vault_ask)
        pthread_cond_wait(&member->link_changed, &member->link_lock);
    if (member->link != LINK_JOINED)
        return -1;
    member->vault_ask = &ask;
    if (send_request(member, &request))
        await_piece(member, &ask);
    else
        link_break(member);
    member->vault_ask = NULL;
    pthread_cond_broadcast(&member->link_changed);
    *number = ask.answer.other;
    return ask.fd;
}

void link_break(GovernorMember *member)
{
    shutdown(member->fd, SHUT_RDWR);
}
