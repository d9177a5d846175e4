// SPDX-License-Identifier: MIT
#include "fixture.h"

#include "renderer.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

void fixture_set_up(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    g_autoptr(GError) error = NULL;
    int fds[2];

    g_assert_no_errno(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds));
    f->client = fds[0];
    f->guard = fds[1];
    fake_virgl_init();
    fake_virgl.may_block = true;
    session_init(&f->session, f->guard);
    g_assert_true(renderer_start(session_fence_done, &f->session, &error));
    g_assert_no_error(error);
}

void fixture_tear_down(struct fixture *f, gconstpointer data G_GNUC_UNUSED)
{
    session_clear(&f->session);
    g_assert_cmpuint(g_hash_table_size(fake_virgl.resources), ==, 0);
    g_assert_cmpuint(g_hash_table_size(fake_virgl.contexts), ==, 0);
    renderer_stop();
    fake_virgl_clear();
    close(f->client);
    close(f->guard);
}

void fixture_run(struct fixture *f)
{
    shutdown(f->client, SHUT_WR);
    if (!session_run(&f->session))
        g_error("dropped: %s", f->session.fault);
}

void fixture_run_dropped(struct fixture *f, const char *pattern)
{
    shutdown(f->client, SHUT_WR);
    g_assert_false(session_run(&f->session));
    g_assert_nonnull(f->session.fault);
    if (!g_pattern_match_simple(pattern, f->session.fault))
        g_error("dropped for \"%s\", not for \"%s\"", f->session.fault, pattern);
}

static short events_of(int fd)
{
    struct pollfd end = {.fd = fd, .events = POLLIN};

    g_assert_cmpint(poll(&end, 1, 0), >=, 0);
    return end.revents;
}

bool fixture_is_ready(int fd)
{
    return events_of(fd) & POLLIN;
}

bool fixture_is_lost(int fd)
{
    return (events_of(fd) & (POLLIN | POLLHUP)) == POLLHUP;
}
