/* SPDX-License-Identifier: MIT */
/*
 * polkit on the test's bus, and callers that are no administrators: vgpud takes every caller for
 * one user, who may use the own tenant's GPUs and nothing else. It can let callers wait.
 */
#ifndef TESTS_UNIT_FAKE_POLKIT_H
#define TESTS_UNIT_FAKE_POLKIT_H

#include "tests/unit/host-agent/agent_on_bus.h"

/* In passwd(5) of every host. */
#define FAKE_USER "nobody"

typedef struct {
    GDBusConnection *bus;
    GDBusConnection *agent_bus;
    guint owner;
    guint object;
    guint filter;
    guint32 uid;
    gboolean holds;
    GPtrArray *held; /* of GDBusMethodInvocation: questions that are not answered yet */
} FakePolkit;

/* Once in a process: libpolkit keeps its connection. Until it is stopped, or the agent is. */
void fake_polkit_start(FakePolkit *polkit, const AgentOnBus *at);

/* Questions whether a caller may use the own tenant's GPUs wait from now on until @holds is FALSE.
 */
void fake_polkit_hold(FakePolkit *polkit, gboolean holds);

/* Later callers are administrators, or are not again. */
void fake_polkit_set_administrators(FakePolkit *polkit, gboolean are);

/* From then on callers are administrators again. */
void fake_polkit_stop(FakePolkit *polkit);

#endif
