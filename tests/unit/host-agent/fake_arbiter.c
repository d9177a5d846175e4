/* SPDX-License-Identifier: MIT */
#include "tests/unit/host-agent/fake_arbiter.h"

#include <fcntl.h>
#include <glib/gstdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "host-agent/daemon/engines/arbiter.h"
#include "tests/unit/host-agent/slices_kit.h"

/* An answer that has not come by then never comes. */
#define PATIENCE_US (60 * G_USEC_PER_SEC)

static const char members[] = "{\"slices\":[{\"id\":\"" UUID2 "\",\"pids\":[5]},"
                              "{\"id\":\"" UUID "\",\"vram_used\":4096,\"pids\":[77,78]}]}\n";

static void *tell_members(void *data)
{
    FakeArbiter *arbiter = data;
    int peer;

    while ((peer = accept(arbiter->listener, NULL, NULL)) >= 0) {
        const char *text = g_atomic_pointer_get(&arbiter->text);

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

int fake_arbiter_listen(HostRoot *root)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    g_autofree char *path = root_path(root, "/run/vgpu/governor", ADDRESS, "status.sock", NULL);
    g_autofree char *dir = g_path_get_dirname(path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    arbiter_wait_us = ARBITER_WAIT_US;
    g_assert_cmpint(g_mkdir_with_parents(dir, 0755), ==, 0);
    g_unlink(path);
    g_assert_cmpuint(g_strlcpy(address.sun_path, path, sizeof(address.sun_path)), <,
                     sizeof(address.sun_path));
    g_assert_cmpint(bind(fd, (const struct sockaddr *)&address, sizeof(address)), ==, 0);
    g_assert_cmpint(listen(fd, 128), ==, 0);
    return fd;
}

guint fake_arbiter_count(int listener)
{
    guint count = 0;
    int peer;

    g_assert_cmpint(fcntl(listener, F_SETFL, O_NONBLOCK), ==, 0);
    while ((peer = accept(listener, NULL, NULL)) >= 0) {
        close(peer);
        count++;
    }
    return count;
}

void fake_arbiter_open_with(FakeArbiter *arbiter, HostRoot *root, const char *text)
{
    arbiter->listener = fake_arbiter_listen(root);
    arbiter_wait_us = PATIENCE_US;
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
