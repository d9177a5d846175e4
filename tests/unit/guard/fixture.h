/* SPDX-License-Identifier: MIT */
/*
 * A session of vgpu-guard between a client that the test plays and a fake virglrenderer. The test
 * writes all of the client's data, lets the session run until that is read, and reads the answers.
 */
#ifndef GUARD_FIXTURE_H
#define GUARD_FIXTURE_H

#include "fake_virgl.h"
#include "session.h"
#include "vtest_client.h"

struct fixture {
    struct session session;
    int client; /* the client's end of the connection */
    int guard;
};

void fixture_set_up(struct fixture *f, gconstpointer data);
void fixture_tear_down(struct fixture *f, gconstpointer data);

/* The client sends no more. Asserts that the session ends without a fault. */
void fixture_run(struct fixture *f);

/* The same; asserts that it is dropped with a fault that matches @pattern. */
void fixture_run_dropped(struct fixture *f, const char *pattern);

/* Whether a wait's descriptor is ready, and whether it has hung up without data. */
bool fixture_is_ready(int fd);
bool fixture_is_lost(int fd);

#define guard_test(path, function)                                                                 \
    g_test_add(path, struct fixture, NULL, fixture_set_up, function, fixture_tear_down)

#endif /* GUARD_FIXTURE_H */
