/* SPDX-License-Identifier: MIT */
#include "fleet/kubernetes/dra/quantity.h"

/* More are no amount of anything here, and the API writes none of them. */
#define DIGITS_MAX   40
#define EXPONENT_MAX 18

typedef struct {
    const char *word;
    guint base;
    int exponent;
} Suffix;

static const Suffix suffixes[] = {
    {"", 10, 0},   {"n", 10, -9}, {"u", 10, -6}, {"m", 10, -3}, {"k", 10, 3},  {"M", 10, 6},
    {"G", 10, 9},  {"T", 10, 12}, {"P", 10, 15}, {"E", 10, 18}, {"Ki", 2, 10}, {"Mi", 2, 20},
    {"Gi", 2, 30}, {"Ti", 2, 40}, {"Pi", 2, 50}, {"Ei", 2, 60},
};

/* "e9", "E-3", or a suffix. */
static gboolean parse_suffix(const char *text, guint *base, int *exponent)
{
    gint64 number;

    for (guint i = 0; i < G_N_ELEMENTS(suffixes); i++) {
        if (g_str_equal(text, suffixes[i].word)) {
            *base = suffixes[i].base;
            *exponent = suffixes[i].exponent;
            return TRUE;
        }
    }
    if ((*text != 'e' && *text != 'E') ||
        !g_ascii_string_to_signed(text + 1 + (text[1] == '+'), 10, -EXPONENT_MAX, EXPONENT_MAX,
                                  &number, NULL))
        return FALSE;
    *base = 10;
    *exponent = (int)number;
    return TRUE;
}

/*
 * @digits with a point before the last @after of them, times @base to the power of @exponent. In
 * 128 bits nothing overflows: digits below 2^64, factors of at most 10^18 or 2^60.
 */
static gboolean scale_digits(const char *digits, guint after, guint base, int exponent,
                             guint64 *value)
{
    unsigned __int128 whole = 0, divisor = 1, factor = 1;

    for (const char *at = digits; *at; at++) {
        whole = whole * 10 + (unsigned)(*at - '0');
        if (whole > G_MAXUINT64)
            return FALSE;
    }
    if (after > EXPONENT_MAX)
        return FALSE;
    for (guint i = 0; i < after; i++)
        divisor *= 10;
    for (int i = 0; i < ABS(exponent); i++) {
        if (exponent > 0)
            factor *= base;
        else
            divisor *= base;
    }
    whole = (whole * factor + divisor - 1) / divisor;
    *value = (guint64)whole;
    return whole <= G_MAXUINT64;
}

gboolean quantity_parse(const char *text, guint64 *value)
{
    char digits[DIGITS_MAX + 1];
    guint count = 0, after = 0, base;
    gboolean has_point = FALSE;
    int exponent;

    if (*text == '+')
        text++;
    for (; g_ascii_isdigit(*text) || (*text == '.' && !has_point); text++) {
        if (*text == '.') {
            has_point = TRUE;
        } else if (count == DIGITS_MAX) {
            return FALSE;
        } else {
            digits[count++] = *text;
            after += has_point;
        }
    }
    digits[count] = '\0';
    return count && parse_suffix(text, &base, &exponent) &&
           scale_digits(digits, after, base, exponent, value);
}

char *quantity_format(guint64 bytes)
{
    static const char *const words[] = {"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};
    guint i = 0;

    for (; bytes && bytes % 1024 == 0 && i + 1 < G_N_ELEMENTS(words); i++)
        bytes /= 1024;
    return g_strdup_printf("%" G_GUINT64_FORMAT "%s", bytes, words[i]);
}
