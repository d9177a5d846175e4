/* SPDX-License-Identifier: MIT */
/*
 * vgpud in the test's own process, under its sanitizers, on a private bus; its meter beside it,
 * without the bus between them; and the installed vgpuctl.
 */
#ifndef TESTS_UNIT_AGENT_ON_BUS_H
#define TESTS_UNIT_AGENT_ON_BUS_H

#include "host-agent/daemon/agent.h"
#include "host-agent/meter/meter.h"
#include "lib/host_root.h"

typedef struct {
    HostRoot *root;
    GTestDBus *daemon;
    GDBusConnection *bus;
    Agent *agent;
    Meter *meter;
    guint owner;
} AgentOnBus;

/* On the recorded host of that name. */
void agent_on_bus_open(AgentOnBus *at, const char *host);

/* On an existing file tree; takes @root. */
void agent_on_bus_open_tree(AgentOnBus *at, HostRoot *root);

/* The agent ends and starts again, on the same files and the same bus. */
void agent_on_bus_restart(AgentOnBus *at);

/* The same in two parts; in between the bus is without an agent. */
void agent_on_bus_stop(AgentOnBus *at);
void agent_on_bus_start(AgentOnBus *at);

void agent_on_bus_close(AgentOnBus *at);

/* The meter ends and starts again; in between vgpud has none. */
void agent_on_bus_stop_meter(AgentOnBus *at);
void agent_on_bus_start_meter(AgentOnBus *at);

/* A command's standard output and error, and its exit status. */
typedef struct {
    char *out;
    char *err;
    int status;
} Said;

/* Runs a command line, split like a shell does, while the agent runs. */
Said run_beside(const char *line);
/* Runs a program while the agent runs. */
Said run_program(const char *const *argv);

/* Runs vgpuctl with arguments as in a shell, while the agent runs. */
Said vgpuctl(const char *args);

void said_clear(Said *said);

/* Timeout for events that will come: a busy machine is no failure. */
#define PATIENCE_US (60 * G_USEC_PER_SEC)

/* Until no switch of the GPU is under way. */
void wait_until_settled(const AgentOnBus *at, const char *address);

/* Runs the agent until @true_now returns true. */
void iterate_until(gboolean (*true_now)(gconstpointer data), gconstpointer data);

/* Runs vgpuctl until it prints something with @out in it. */
void iterate_until_told(const char *args, const char *out);

/* Runs the agent until @text has these words. */
void iterate_until_said(const GString *text, const char *words);

/* vgpuctl ends with @status and prints something with @out in it, and @err to standard error. */
void assert_says(const char *args, int status, const char *out, const char *err);

/* What is logged from now on is added to @log, and warnings are no failures. */
void take_log(GString *log);
/* As before. */
void end_log(void);

#define STATE_DB "/var/lib/vgpu/state.db"
#define METER_DB "/var/lib/vgpu/meter.db"

/* @number: of the statement's first row; may be NULL. */
void run_sql(const AgentOnBus *at, const char *file, const char *sql, int *number);

#endif
