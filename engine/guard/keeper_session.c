// SPDX-License-Identifier: MIT
/* A session's messages to the keeper. */
#include "keeper.h"

#include "keeper_wire.h"

#include <sys/socket.h>

static bool keep(int connection, enum keeper_call call, uint32_t id, int fd, bool *gone)
{
    const struct keeper_packet packet = {.call = call, .id = id};
    char answer = 0;

    *gone = !keeper_send(connection, &packet, fd) || recv(connection, &answer, 1, 0) != 1;
    return !*gone && answer;
}

bool keeper_keep(int connection, uint32_t id, int fd, bool *gone)
{
    return keep(connection, KEEPER_KEEP, id, fd, gone);
}

bool keeper_keep_shm(int connection, uint32_t id, int fd, bool *gone)
{
    return keep(connection, KEEPER_KEEP_SHM, id, fd, gone);
}

void keeper_release(int connection, uint32_t id)
{
    const struct keeper_packet packet = {.call = KEEPER_RELEASE, .id = id};

    keeper_send(connection, &packet, -1);
}
