// SPDX-License-Identifier: MIT
/* A session's messages to the keeper. */
#include "keeper.h"

#include "keeper_wire.h"

#include <sys/socket.h>

bool keeper_keep(int connection, uint32_t id, int fd, bool *gone)
{
    const struct keeper_packet packet = {.call = KEEPER_KEEP, .id = id};
    char answer = 0;

    *gone = !keeper_send(connection, &packet, fd) || recv(connection, &answer, 1, 0) != 1;
    return !*gone && answer;
}

void keeper_release(int connection, uint32_t id)
{
    const struct keeper_packet packet = {.call = KEEPER_RELEASE, .id = id};

    keeper_send(connection, &packet, -1);
}
