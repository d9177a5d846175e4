// SPDX-License-Identifier: MIT
/* Messages over the connection after the welcome. */
#include "member_state.h"

#include "clock.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

#define ANSWER_NS (2 * NS_PER_S)

void link_tell(GovernorMember *member, enum governor_message_type type, uint64_t value,
               uint64_t other)
{
    struct governor_message message = {
        .version = GOVERNOR_PROTOCOL_VERSION, .type = type, .value = value, .other = other};

    if (member->link == LINK_JOINED)
        send(member->fd, &message, sizeof(message), MSG_NOSIGNAL | MSG_DONTWAIT);
}

void link_tell_back(GovernorMember *member, const struct governor_message *message)
{
    member->told_back = true;
    if (send(member->fd, message, sizeof(*message), MSG_NOSIGNAL) != sizeof(*message))
        link_break(member);
}

/*
 * True if a whole answer came. Otherwise the connection is unusable: a late answer would be taken
 * for the next one's.
 */
static bool receive_answer(GovernorMember *member, struct governor_message *answer)
{
    uint64_t until = clock_now() + ANSWER_NS, now;

    while ((now = clock_now()) < until) {
        struct pollfd fd = {.fd = member->fd, .events = POLLIN};
        ssize_t length;

        if (poll(&fd, 1, (int)((until - now) / NS_PER_MS) + 1) <= 0)
            continue;
        length = recv(member->fd, answer, sizeof(*answer), MSG_DONTWAIT);
        if (length < 0 && (errno == EAGAIN || errno == EINTR))
            continue;
        return length == sizeof(*answer) && answer->version == GOVERNOR_PROTOCOL_VERSION &&
               answer->type == GOVERNOR_RESERVED;
    }
    return false;
}

bool link_ask(GovernorMember *member, const struct governor_message *request,
              struct governor_message *answer)
{
    if (send(member->fd, request, sizeof(*request), MSG_NOSIGNAL) == sizeof(*request) &&
        receive_answer(member, answer)) {
        member->told_back = false;
        return true;
    }
    link_break(member);
    return false;
}

void link_break(GovernorMember *member)
{
    shutdown(member->fd, SHUT_RDWR);
}
