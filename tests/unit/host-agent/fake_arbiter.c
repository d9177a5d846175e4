/* SPDX-License-Identifier: MIT */
#include "tests/unit/host-agent/fake_arbiter.h"

#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/unit/host-agent/slices_kit.h"

static const char members[] = "{\"slices\":[{\"id\":\"" UUID2 "\",\"pids\":[5]},"
                              "{\"id\":\"" UUID "\",\"vram_used\":4096,\"pids\":[77,78]}]}\n";

static void *tell_members(void *data)
{
    FakeArbiter *arbiter = data;
    const char *text = arbiter->text;
    int peer;

    while ((peer = accept(arbiter->listener, NULL, NULL)) >= 0) {
        g_atomic_int_inc(&arbiter->asked);
        g_assert_cmpint(send(peer, text, strlen(text), MSG_NOSIGNAL), ==, strlen(text));
        close(peer);
    }
    return NULL;
}

void fake_arbiter_open(FakeArbiter *arbiter, HostRoot *root)
{
    fake_arbiter_open_with(arbiter, root, members);
}

void fake_arbiter_open_with(FakeArbiter *arbiter, HostRoot *root, const char *text)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    g_autofree char *path = root_path(root, "/run/vgpu/governor", ADDRESS, "status.sock", NULL);
    g_autofree char *dir = g_path_get_dirname(path);

    g_assert_cmpint(g_mkdir_with_parents(dir, 0755), ==, 0);
    g_strlcpy(address.sun_path, path, sizeof(address.sun_path));
    arbiter->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    g_assert_cmpint(bind(arbiter->listener, (const struct sockaddr *)&address, sizeof(address)), ==,
                    0);
    g_assert_cmpint(listen(arbiter->listener, 8), ==, 0);
    arbiter->text = text;
    arbiter->asked = 0;
    arbiter->thread = g_thread_new("arbiter", tell_members, arbiter);
}

void fake_arbiter_close(FakeArbiter *arbiter)
{
    shutdown(arbiter->listener, SHUT_RDWR);
    g_thread_join(arbiter->thread);
    close(arbiter->listener);
}
