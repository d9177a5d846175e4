/* SPDX-License-Identifier: MIT */
#include "fleet/kubernetes/plugin/choose.h"

#include <string.h>

/**
 * Seat
 * @card: length of the card's part of @name
 * @rank: chosen in this order, then by name
 */
typedef struct {
    const char *name;
    gsize card;
    guint rank;
} Seat;

static gsize card_of(const char *name)
{
    const char *mark = g_strrstr(name, SEAT_MARK);

    return mark ? (gsize)(mark - name) : strlen(name);
}

static gboolean is_same_card(const Seat *a, const Seat *b)
{
    return a->card == b->card && !strncmp(a->name, b->name, a->card);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const Seat *)a)->name, ((const Seat *)b)->name);
}

static int by_rank(const void *a, const void *b)
{
    const Seat *x = a, *y = b;

    return x->rank != y->rank ? (x->rank > y->rank) - (x->rank < y->rank) : by_name(a, b);
}

/* The n-th of its card, or how many its card has. The seats are sorted by name. */
static void rank_seats(GArray *seats, gboolean spread)
{
    for (guint i = 0, next; i < seats->len; i = next) {
        for (next = i; next < seats->len && is_same_card(&g_array_index(seats, Seat, i),
                                                         &g_array_index(seats, Seat, next));
             next++)
            g_array_index(seats, Seat, next).rank = next - i;
        for (guint k = i; k < next && !spread; k++)
            g_array_index(seats, Seat, k).rank = next - i;
    }
}

static gboolean has_name(const char *const *names, gsize count, const char *name)
{
    for (gsize i = 0; i < count; i++)
        if (g_str_equal(names[i], name))
            return TRUE;
    return FALSE;
}

GStrv choose_seats(const char *const *available, gsize available_count, const char *const *required,
                   gsize required_count, gsize count, gboolean spread)
{
    g_autoptr(GArray) seats = g_array_new(FALSE, FALSE, sizeof(Seat));
    g_autoptr(GStrvBuilder) chosen = g_strv_builder_new();

    if (required_count > count || available_count < count)
        return NULL;
    for (gsize i = 0; i < required_count; i++)
        g_strv_builder_add(chosen, required[i]);
    for (gsize i = 0; i < available_count; i++) {
        Seat seat = {available[i], card_of(available[i]), 0};

        if (!has_name(required, required_count, available[i]))
            g_array_append_val(seats, seat);
    }
    count -= required_count;
    if (seats->len < count)
        return NULL;
    g_array_sort(seats, by_name);
    rank_seats(seats, spread);
    g_array_sort(seats, by_rank);
    for (gsize i = 0; i < count; i++)
        g_strv_builder_add(chosen, g_array_index(seats, Seat, i).name);
    return g_strv_builder_end(chosen);
}
