/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/slices/returns.h"

#include "host-agent/model/way_back.h"
#include "host-agent/store/tables.h"

/**
 * Return - of a slice that is suspended, or was lately
 * @is_out: it is suspended for room
 * @is_tried: its way back has begun
 */
typedef struct {
    char *uuid;
    WayBack way;
    gboolean is_out;
    gboolean is_tried;
} Return;

struct Returns {
    Host *host;
    const Slices *slices;
    GPtrArray *list; /* of Return, the longest suspended first */
};

static void return_free(void *data)
{
    Return *one = data;

    g_free(one->uuid);
    g_free(one);
}

static Return *find(const Returns *returns, const char *uuid)
{
    for (guint i = 0; i < returns->list->len; i++) {
        Return *one = g_ptr_array_index(returns->list, i);

        if (g_str_equal(one->uuid, uuid))
            return one;
    }
    return NULL;
}

static Return *add_return(Returns *returns, const char *uuid)
{
    Return *one = g_new0(Return, 1);

    one->uuid = g_strdup(uuid);
    g_ptr_array_add(returns->list, one);
    return one;
}

static void take_stored(const char *uuid, guint64 bytes, void *data)
{
    Return *one = add_return(data, uuid);

    way_back_begin(&one->way, bytes, 0);
    one->is_out = TRUE;
}

Returns *returns_new(Host *host, const Slices *slices)
{
    Returns *returns = g_new0(Returns, 1);
    g_autoptr(GError) error = NULL;

    returns->host = host;
    returns->slices = slices;
    returns->list = g_ptr_array_new_with_free_func(return_free);
    if (!way_back_table_read(host_db(host), take_stored, returns, &error))
        g_message("%s", error->message);
    return returns;
}

void returns_free(Returns *returns)
{
    g_ptr_array_unref(returns->list);
    g_free(returns);
}

static void store(const Returns *returns, const char *uuid, guint64 bytes)
{
    g_autoptr(GError) error = NULL;

    if (!way_back_table_set(host_db(returns->host), uuid, bytes, &error))
        g_message("%s", error->message);
}

void returns_note(Returns *returns, const Slice *slice, guint64 bytes, gint64 now_us)
{
    Return *one = find(returns, slice->uuid);

    if (!one)
        one = add_return(returns, slice->uuid);
    way_back_begin(&one->way, bytes, now_us);
    one->is_out = TRUE;
    one->is_tried = FALSE;
    store(returns, slice->uuid, bytes);
}

void returns_forget(Returns *returns, const char *uuid)
{
    Return *one = find(returns, uuid);

    if (!one)
        return;
    store(returns, uuid, 0);
    g_ptr_array_remove(returns->list, one);
}

/* It goes on, whoever let it; that it did lately is remembered. */
static void note_back(const Returns *returns, Return *one)
{
    one->is_out = FALSE;
    one->is_tried = FALSE;
    store(returns, one->uuid, 0);
}

static void forget_gone(Returns *returns)
{
    for (guint i = returns->list->len; i; i--) {
        const Return *one = g_ptr_array_index(returns->list, i - 1);

        if (!slices_find(returns->slices, one->uuid))
            returns_forget(returns, one->uuid);
    }
}

/* TRUE: one that is on its way out or back on @gpu must be waited for. */
static gboolean is_any_moving(const Returns *returns, const char *gpu)
{
    for (guint i = 0; i < returns->list->len; i++) {
        const Return *one = g_ptr_array_index(returns->list, i);
        const Slice *slice = slices_find(returns->slices, one->uuid);

        if (g_str_equal(slice->gpu, gpu) && slices_are_busy(returns->slices, one->uuid))
            return TRUE;
    }
    return FALSE;
}

/* What has become of those on @gpu since the last time. */
static void look_again(const Returns *returns, const char *gpu)
{
    for (guint i = 0; i < returns->list->len; i++) {
        Return *one = g_ptr_array_index(returns->list, i);
        const Slice *slice = slices_find(returns->slices, one->uuid);

        if (!one->is_out || !g_str_equal(slice->gpu, gpu))
            continue;
        if (!slice->suspended)
            note_back(returns, one);
        else if (one->is_tried)
            way_back_fail(&one->way);
        one->is_tried = FALSE;
    }
}

static void close_ways(const Returns *returns, const char *gpu)
{
    for (guint i = 0; i < returns->list->len; i++) {
        Return *one = g_ptr_array_index(returns->list, i);

        if (g_str_equal(slices_find(returns->slices, one->uuid)->gpu, gpu))
            way_back_close(&one->way);
    }
}

const Slice *returns_next(Returns *returns, const char *gpu, guint64 free, guint64 mark,
                          gint64 now_us)
{
    forget_gone(returns);
    if (is_any_moving(returns, gpu))
        return NULL;
    look_again(returns, gpu);
    for (guint i = 0; i < returns->list->len; i++) {
        Return *one = g_ptr_array_index(returns->list, i);
        const Slice *slice = slices_find(returns->slices, one->uuid);

        if (!one->is_out || !g_str_equal(slice->gpu, gpu) ||
            !way_back_is_open(&one->way, free, mark, now_us))
            continue;
        one->is_tried = TRUE;
        close_ways(returns, gpu);
        return slice;
    }
    return NULL;
}
