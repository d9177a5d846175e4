// SPDX-License-Identifier: MIT
#include "keeper_wire.h"

#include "lib/descriptor.h"

bool keeper_send(int connection, const struct keeper_packet *packet, int fd)
{
    return descriptor_send(connection, packet, sizeof(*packet), 0, &fd, 1) == sizeof(*packet);
}

enum keeper_received keeper_receive(int connection, struct keeper_packet *packet, int *fd)
{
    ssize_t length = descriptor_receive(connection, packet, sizeof(*packet), MSG_DONTWAIT, fd, 1);

    if (length < 0 && errno == EAGAIN)
        return KEEPER_NOTHING;
    if (length == sizeof(*packet))
        return KEEPER_PACKET;
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
    return KEEPER_END;
}
