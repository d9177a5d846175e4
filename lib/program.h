/* SPDX-License-Identifier: MIT */
/* Runs another program for a limited time. */
#ifndef LIB_PROGRAM_H
#define LIB_PROGRAM_H

#include <gio/gio.h>

/**
 * Program - a program to run
 * @argv: up to NULL; the first is found by PATH
 * @environment: "NAME=VALUE", up to NULL, besides this process's own; NULL: none
 * @input: what it reads; NULL: nothing
 * @seconds: until it is killed
 * @own_output: it writes to where this process writes, and nothing of it is read here
 */
typedef struct {
    const char *const *argv;
    const char *const *environment;
    const char *input;
    guint seconds;
    gboolean own_output;
} Program;

/*
 * The error is a sentence with the command line. It is a G_SPAWN_ERROR if the program cannot be
 * started, G_IO_ERROR_TIMED_OUT if it was killed at its limit, else G_IO_ERROR_FAILED with what the
 * program said.
 */

/* Called once, later, in the thread's main context. @output: as long as it runs; NULL with @error.
 */
typedef void (*ProgramFunc)(const char *output, const GError *error, void *data);

/*
 * @cancellable: kills it; @func is called when it has ended, because until then it may still change
 * something. May be NULL.
 */
void program_start(const Program *program, GCancellable *cancellable, ProgramFunc func, void *data);

/*
 * Waits for it; no source of the caller's main loop runs meanwhile. @output: its standard output,
 * to be freed; may be NULL.
 */
gboolean program_run(const Program *program, char **output, GError **error);

/*
 * This process may have as many files open as its hard limit allows, from now on. Programs that it
 * starts have the former limit: some use select(), or close all numbers up to the limit.
 */
void program_raise_files(void);

/* For a program that is not run by the functions above, with that limit. To be unreferenced. */
GSubprocessLauncher *program_launcher(GSubprocessFlags flags);

#endif
