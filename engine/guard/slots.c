// SPDX-License-Identifier: MIT
#include "slots.h"

void slots_init(struct slots *slots, GDestroyNotify destroy)
{
    slots->items = g_ptr_array_new_with_free_func(destroy);
    slots->free = g_array_new(FALSE, FALSE, sizeof(uint32_t));
}

void slots_clear(struct slots *slots)
{
    /* Free numbers are not objects; GLib would pass them to the destructor. */
    for (guint i = slots->items->len; i-- > 0;) {
        if (!slots->items->pdata[i])
            g_ptr_array_steal_index_fast(slots->items, i);
    }
    g_ptr_array_unref(slots->items);
    g_array_unref(slots->free);
}

uint32_t slots_count(const struct slots *slots)
{
    return slots->items->len - slots->free->len;
}

uint32_t slots_add(struct slots *slots, void *item)
{
    uint32_t id;

    if (slots->free->len == 0) {
        g_ptr_array_add(slots->items, item);
        return slots->items->len;
    }
    id = g_array_index(slots->free, uint32_t, slots->free->len - 1);
    g_array_set_size(slots->free, slots->free->len - 1);
    slots->items->pdata[id - 1] = item;
    return id;
}

void *slots_find(const struct slots *slots, uint32_t id)
{
    return id > 0 && id <= slots->items->len ? slots->items->pdata[id - 1] : NULL;
}

void *slots_take(struct slots *slots, uint32_t id)
{
    void *item = slots_find(slots, id);

    if (item) {
        slots->items->pdata[id - 1] = NULL;
        g_array_append_val(slots->free, id);
    }
    return item;
}
