/* SPDX-License-Identifier: MIT */
/*
 * The verbs of vgpu-registrar.
 */
#ifndef REGISTRAR_COMMANDS_H
#define REGISTRAR_COMMANDS_H

#include <stdio.h>

#include <glib.h>

#include "lib/host_root.h"

/**
 * Session - a command's environment
 * @gpu: the GPU in the command line; NULL: all
 * @out: results
 * @log: actions and reasons, one sentence a line
 */
typedef struct {
    HostRoot *root;
    const char *gpu;
    FILE *out;
    FILE *log;
} Session;

/**
 * Command - a verb
 * @takes_gpu: needs GPU or --all
 * @run: returns the exit code
 */
typedef struct {
    const char *name;
    const char *help;
    gboolean takes_gpu;
    int (*run)(const Session *session);
} Command;

/* NULL if there is none of that name. */
const Command *command_find(const char *name);

/* One line for each command, for --help; the caller frees. */
char *command_summary(void);

#endif
