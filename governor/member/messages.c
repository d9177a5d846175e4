// SPDX-License-Identifier: MIT
/* Messages over the connection after the welcome, and to the thread that watches it. */
#include "member_state.h"

#include "clock.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define ANSWER_NS (2 * NS_PER_S)
/* The vault fills one piece at a time, and others may be before this one. */
#define VAULT_ANSWER_NS (10 * NS_PER_S)

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

bool link_wake(GovernorMember *member)
{
    return send(member->wake_fd, "", 1, MSG_NOSIGNAL | MSG_DONTWAIT) == 1;
}

/* One message, and the descriptor that may come with it; -1: none does. */
static ssize_t receive(int fd, struct governor_message *message, int *descriptor)
{
    struct iovec data = {.iov_base = message, .iov_len = sizeof(*message)};
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control = {0};
    struct msghdr packet = {.msg_iov = &data,
                            .msg_iovlen = 1,
                            .msg_control = &control,
                            .msg_controllen = sizeof(control.bytes)};
    ssize_t length = recvmsg(fd, &packet, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    const struct cmsghdr *header = length > 0 ? CMSG_FIRSTHDR(&packet) : NULL;

    *descriptor = -1;
    if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS &&
        header->cmsg_len == CMSG_LEN(sizeof(int)))
        memcpy(descriptor, CMSG_DATA(header), sizeof(int));
    return length;
}

/*
 * True if a whole answer of the type came. Otherwise the connection is unusable: a late answer
 * would be taken for the next one's.
 */
static bool receive_answer(GovernorMember *member, enum governor_message_type type,
                           struct governor_message *answer, int *descriptor)
{
    uint64_t until = clock_now() + (type == GOVERNOR_VAULTED ? VAULT_ANSWER_NS : ANSWER_NS), now;

    while ((now = clock_now()) < until) {
        struct pollfd fd = {.fd = member->fd, .events = POLLIN};
        ssize_t length;

        if (poll(&fd, 1, (int)((until - now) / NS_PER_MS) + 1) <= 0)
            continue;
        length = receive(member->fd, answer, descriptor);
        if (length < 0 && (errno == EAGAIN || errno == EINTR))
            continue;
        return length == sizeof(*answer) && answer->version == GOVERNOR_PROTOCOL_VERSION &&
               answer->type == type;
    }
    return false;
}

static bool ask_for(GovernorMember *member, const struct governor_message *request,
                    enum governor_message_type type, struct governor_message *answer,
                    int *descriptor)
{
    *descriptor = -1;
    if (send(member->fd, request, sizeof(*request), MSG_NOSIGNAL) == sizeof(*request) &&
        receive_answer(member, type, answer, descriptor)) {
        member->told_back = false;
        return true;
    }
    if (*descriptor >= 0)
        close(*descriptor);
    link_break(member);
    return false;
}

bool link_ask(GovernorMember *member, const struct governor_message *request,
              struct governor_message *answer)
{
    int descriptor;
    bool answered = ask_for(member, request, GOVERNOR_RESERVED, answer, &descriptor);

    if (answered && descriptor >= 0)
        close(descriptor);
    return answered;
}

bool link_ask_vault(GovernorMember *member, const struct governor_message *request,
                    struct governor_message *answer, int *fd)
{
    return ask_for(member, request, GOVERNOR_VAULTED, answer, fd);
}

void link_break(GovernorMember *member)
{
    shutdown(member->fd, SHUT_RDWR);
}
