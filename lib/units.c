/* SPDX-License-Identifier: MIT */
#include "lib/units.h"

#include <string.h>

#define MAX_DENOMINATOR 1024
#define MAX_CPU         100000

/* The digits at the start of @text; FALSE where there are none, or too many. */
static gboolean parse_digits(const char *text, guint64 *value, const char **end)
{
    if (!g_ascii_isdigit(text[0]))
        return FALSE;
    *value = g_ascii_strtoull(text, (char **)end, 10);
    return *value != G_MAXUINT64;
}

static gboolean suffix_shift(const char *suffix, guint *shift)
{
    static const char letters[] = "KMGT";
    const char *letter;

    *shift = 0;
    if (!suffix[0])
        return TRUE;
    letter = strchr(letters, g_ascii_toupper(suffix[0]));
    if (!letter || suffix[1])
        return FALSE;
    *shift = 10 * (guint)(letter - letters + 1);
    return TRUE;
}

gboolean size_parse(const char *text, guint64 *bytes)
{
    const char *suffix;
    guint64 value;
    guint shift;

    if (!parse_digits(text, &value, &suffix) || !suffix_shift(suffix, &shift))
        return FALSE;
    if (value > (G_MAXUINT64 >> 1 >> shift) || value << shift < MIB)
        return FALSE;
    *bytes = value << shift;
    return TRUE;
}

gboolean amount_parse(const char *text, Amount *amount)
{
    guint64 numerator, denominator;
    const char *end;

    *amount = (Amount){ 0 };
    if (!strchr(text, '/'))
        return size_parse(text, &amount->bytes);

    if (!parse_digits(text, &numerator, &end) || *end != '/')
        return FALSE;
    if (!parse_digits(end + 1, &denominator, &end) || *end)
        return FALSE;
    if (numerator < 1 || numerator > denominator || denominator > MAX_DENOMINATOR)
        return FALSE;
    amount->numerator = (guint)numerator;
    amount->denominator = (guint)denominator;
    return TRUE;
}

gboolean cpu_parse(const char *text, guint *percent)
{
    const char *end;
    guint64 value;

    if (!parse_digits(text, &value, &end) || !g_str_equal(end, "%"))
        return FALSE;
    if (value < 1 || value > MAX_CPU)
        return FALSE;
    *percent = (guint)value;
    return TRUE;
}

guint64 amount_resolve(const Amount *amount, guint64 whole)
{
    guint64 part;

    if (!amount->denominator)
        return amount->bytes;
    /* Divided first, so that the product can't overflow; the rest is added exactly. */
    part = whole / amount->denominator * amount->numerator +
           whole % amount->denominator * amount->numerator / amount->denominator;
    return part / MIB * MIB;
}

char *size_format(guint64 bytes)
{
    static const char *const names[] = { "MiB", "GiB", "TiB" };
    gdouble value = (gdouble)bytes / (gdouble)MIB;
    guint unit = 0;

    while (value >= 1024 && unit + 1 < G_N_ELEMENTS(names)) {
        value /= 1024;
        unit++;
    }
    return g_strdup_printf("%.4g %s", value, names[unit]);
}
