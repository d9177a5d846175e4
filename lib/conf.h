/* SPDX-License-Identifier: MIT */
/* Files of settings, and the sizes in them. */
#ifndef LIB_CONF_H
#define LIB_CONF_H

#include <glib.h>

#include "lib/host_root.h"

/* Amounts of memory as people write them: "512M", "1G", "1/4". */

#define MIB (G_GUINT64_CONSTANT(1) << 20)

/**
 * Amount - bytes, or a part of something that is known later
 * @bytes: used if @denominator is 0
 */
typedef struct {
    guint64 bytes;
    guint numerator;
    guint denominator;
} Amount;

/* What size_parse() and amount_parse() accept, for error messages. */
#define SIZE_RULE   "a size of 1M or more, such as 512M or 2G (K, M, G, T are powers of 1024)"
#define AMOUNT_RULE SIZE_RULE ", or a part of the GPU's memory from 1/1024 to 1/1, such as 1/4"

#define CPU_RULE "per cent of one processor from 1% to 100000%, such as 250%"

/* FALSE if @text is not SIZE_RULE. */
gboolean size_parse(const char *text, guint64 *bytes);

/* FALSE if @text is not AMOUNT_RULE. */
gboolean amount_parse(const char *text, Amount *amount);

/* FALSE if @text is not CPU_RULE. */
gboolean cpu_parse(const char *text, guint *percent);

/* Bytes of @amount of @whole; parts are rounded down to full MiB, so may be 0. */
guint64 amount_resolve(const Amount *amount, guint64 whole);

/* "256 MiB", "1.5 GiB"; the caller frees. */
char *size_format(guint64 bytes);

/*
 * Keyfiles in which every group is "[WORD NAME]" and only known keys are allowed.
 *
 * Strict on purpose: a misspelt key that is silently ignored would divide a GPU in another way than
 * its operator wrote. Errors are REGISTRAR_ERROR_CONFIG and name file, group, key and the allowed
 * values.
 */

/**
 * ConfGroup - one group of a loaded file, to read values from
 * @file: its path on this machine, for messages
 * @name: the NAME of "[WORD NAME]"
 */
typedef struct {
    GKeyFile *keyfile;
    const char *file;
    const char *group;
    const char *name;
} ConfGroup;

/* Called for each group in the order of the file; FALSE with @error ends the walk. */
typedef gboolean (*ConfGroupFunc)(const ConfGroup *group, gpointer data, GError **error);

/*
 * Reads the file, checks all of it, then calls @func for each group.
 * @keys: the allowed keys, NULL-terminated.
 */
gboolean conf_foreach(HostRoot *root, const char *path, const char *word, const char *const *keys,
                      ConfGroupFunc func, gpointer data, GError **error);

/*
 * The host's paths of the *.conf files in @dirs, sorted by file name. A file in an earlier
 * directory replaces the file of the same name in a later one. Missing directories are no error.
 */
GPtrArray *conf_list(HostRoot *root, const char *const *dirs, GError **error);

/* The value of @key, without its surrounding blanks; NULL without @error if it is missing. */
char *conf_string(const ConfGroup *group, const char *key, GError **error);

/* Like conf_string() for a whole number from @min to @max. */
gboolean conf_number(const ConfGroup *group, const char *key, guint min, guint max, guint otherwise,
                     guint *value, GError **error);

/* Sets the error that names file, group, key, the value found and the @allowed ones. */
void conf_bad_value(const ConfGroup *group, const char *key, const char *value, const char *allowed,
                    GError **error);

/*
 * The one error domain of vgpu-registrar. Its codes are the program's exit codes, as the man page
 * lists them.
 */
#define REGISTRAR_ERROR registrar_error_quark()
GQuark registrar_error_quark(void);

typedef enum {
    REGISTRAR_ERROR_REFUSED = 1,    /* the driver, the GPU or the system refused */
    REGISTRAR_ERROR_USAGE = 2,      /* the command line */
    REGISTRAR_ERROR_NOT_SHARED = 3, /* gpus.conf does not share this GPU: nothing done */
    REGISTRAR_ERROR_CONFIG = 4,     /* a file is broken: nothing done */
    REGISTRAR_ERROR_NO_DRIVER = 5,  /* mdev_vgpu is not loaded */
    REGISTRAR_ERROR_ABSENT = 6,     /* no such GPU, or no driver is bound to it yet */
} RegistrarError;

#endif
