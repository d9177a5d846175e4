// SPDX-License-Identifier: MIT
#include "spare.h"

#include "lib/descriptor.h"

/* The client's, and the keeper's if there is one. */
#define FDS_MAX 2

bool spare_send(int link, const struct spare_client *client)
{
    const int fds[FDS_MAX] = {client->fd, client->keeper};

    return descriptor_send(link, client, sizeof(*client), 0, fds, FDS_MAX) == sizeof(*client);
}

bool spare_receive(int link, struct spare_client *client)
{
    int fds[FDS_MAX];

    if (descriptor_receive(link, client, sizeof(*client), 0, fds, FDS_MAX) != sizeof(*client) ||
        fds[0] < 0)
        return false;
    client->fd = fds[0];
    client->keeper = fds[1];
    return true;
}
