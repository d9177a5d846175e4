/* SPDX-License-Identifier: MIT */
/*
 * Amounts of memory as people write them: "512M", "1G", "1/4".
 */
#ifndef LIB_UNITS_H
#define LIB_UNITS_H

#include <glib.h>

#define MIB (G_GUINT64_CONSTANT(1) << 20)

/**
 * Amount - bytes, or a part of something that is known later
 * @bytes: used where @denominator is 0
 */
typedef struct {
    guint64 bytes;
    guint numerator;
    guint denominator;
} Amount;

/* What size_parse() and amount_parse() accept, for error messages. */
#define SIZE_RULE "a size of 1M or more, such as 512M or 2G (K, M, G, T are powers of 1024)"
#define AMOUNT_RULE SIZE_RULE ", or a part of the GPU's memory from 1/1024 to 1/1, such as 1/4"

#define CPU_RULE    "per cent of one processor from 1% to 100000%, such as 250%"

/* FALSE where @text is not SIZE_RULE. */
gboolean size_parse(const char *text, guint64 *bytes);

/* FALSE where @text is not AMOUNT_RULE. */
gboolean amount_parse(const char *text, Amount *amount);

/* FALSE where @text is not CPU_RULE. */
gboolean cpu_parse(const char *text, guint *percent);

/* Bytes of @amount where the whole is @whole; parts are rounded down to full MiB, so may be 0. */
guint64 amount_resolve(const Amount *amount, guint64 whole);

/* "256 MiB", "1.5 GiB"; the caller frees. */
char *size_format(guint64 bytes);

#endif
