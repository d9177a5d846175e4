/* SPDX-License-Identifier: MIT */
/* Programs that measure: started, read, and always ended. */
#ifndef CARD_PROGRAM_H
#define CARD_PROGRAM_H

#include <gio/gio.h>

typedef struct Program Program;

/**
 * ProgramSpec - how to run a program
 * @argv: NULL-terminated; the first is its path
 * @env: all of its environment
 * @limit_s: after that many seconds it is ended, and has failed
 * @processor: the only one that it may run on; -1: any
 */
typedef struct {
    const char *const *argv;
    const char *const *env;
    guint limit_s;
    int processor;
} ProgramSpec;

/* @error names the program. */
Program *program_start(const ProgramSpec *spec, GError **error);

/* The next line of its output, to be freed. NULL if it has ended. */
char *program_line(Program *program, GError **error);

/* Writes to its standard input. */
gboolean program_tell(Program *program, const char *text, GError **error);

/* Waits for its end. Returns the rest of its output, to be freed; NULL if it failed. */
char *program_finish(Program *program, GError **error);

/* The last line that it wrote to standard error, to be freed: usually the reason of its failure. */
char *program_last_words(const Program *program);

/* Ends it and its children, if it has not ended, and frees it. NULL is allowed. */
void program_free(Program *program);

/* From start to end. */
char *program_run(const ProgramSpec *spec, GError **error);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(Program, program_free)

#endif
