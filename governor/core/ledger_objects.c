// SPDX-License-Identifier: MIT
#include "ledger.h"

#include <errno.h>

/* How many times one member may hold one object; more makes no sense. */
#define MOST_TIMES 65536

/* A tree, because members choose the names: none can make it slow. */
static int compare_names(const void *one, const void *other, void *data)
{
    const struct governor_object_name *a = one, *b = other;

    (void)data;
    if (a->inode != b->inode)
        return a->inode < b->inode ? -1 : 1;
    return a->device < b->device ? -1 : a->device > b->device;
}

static struct ledger_object *find_object(const struct ledger *ledger,
                                         const struct governor_object_name *name)
{
    return ledger->objects ? g_tree_lookup(ledger->objects, name) : NULL;
}

static unsigned times_held(const struct holding *holding, const struct ledger_object *object)
{
    if (!object || !holding->objects)
        return 0;
    return GPOINTER_TO_UINT(g_hash_table_lookup(holding->objects, object));
}

static bool has_room(const struct ledger *ledger, const struct holding *holding,
                     const struct ledger_object *object)
{
    unsigned has = times_held(holding, object);

    if (has)
        return has < MOST_TIMES;
    return ledger->objects_held < LEDGER_SLICE_OBJECTS &&
           (!holding->objects || g_hash_table_size(holding->objects) < LEDGER_MEMBER_OBJECTS);
}

static struct ledger_object *add_object(struct ledger *ledger,
                                        const struct governor_object_name *name)
{
    struct ledger_object *object = g_new0(struct ledger_object, 1);

    object->name = *name;
    if (!ledger->objects)
        ledger->objects = g_tree_new_full(compare_names, NULL, NULL, g_free);
    g_tree_insert(ledger->objects, &object->name, object);
    return object;
}

static void hold_object(struct ledger *ledger, struct holding *holding,
                        struct ledger_object *object)
{
    unsigned has = times_held(holding, object);

    if (!holding->objects)
        holding->objects = g_hash_table_new(NULL, NULL);
    g_hash_table_insert(holding->objects, object, GUINT_TO_POINTER(has + 1));
    if (has)
        return;
    object->members++;
    ledger->objects_held++;
}

/* A member does not hold it any more; with the last one its charge ends. */
static void drop_object(struct ledger *ledger, struct ledger_object *object)
{
    ledger->objects_held--;
    if (--object->members)
        return;
    ledger->used -= object->device;
    ledger->spill_used -= object->spilled;
    g_tree_remove(ledger->objects, &object->name);
    if (!g_tree_nnodes(ledger->objects))
        g_clear_pointer(&ledger->objects, g_tree_unref);
}

/* More than the object's size so far; members may know different parts of it. */
static uint64_t growth_of_object(const struct ledger_object *object, uint64_t bytes)
{
    uint64_t so_far = object->device + object->spilled;

    return bytes > so_far ? bytes - so_far : 0;
}

static void grow_object(struct ledger *ledger, struct ledger_object *object, uint64_t device,
                        uint64_t spilled)
{
    object->device += device;
    object->spilled += spilled;
    ledger->used += device;
    ledger->spill_used += spilled;
}

int ledger_share(struct ledger *ledger, struct holding *holding,
                 const struct governor_object_name *name, uint64_t bytes, uint64_t spilled)
{
    struct ledger_object *object = find_object(ledger, name);
    uint64_t more, on_device;

    if (!bytes)
        return EINVAL;
    if (!has_room(ledger, holding, object))
        return ENOSPC;
    if (!ledger_release(ledger, holding, bytes, spilled))
        return EINVAL;
    if (!object)
        object = add_object(ledger, name);
    more = growth_of_object(object, bytes);
    on_device = more < bytes - spilled ? more : bytes - spilled;
    grow_object(ledger, object, on_device, more - on_device);
    hold_object(ledger, holding, object);
    return 0;
}

int ledger_attach(struct ledger *ledger, struct holding *holding,
                  const struct governor_object_name *name, uint64_t bytes)
{
    struct ledger_object *object = find_object(ledger, name);
    uint64_t more = object ? growth_of_object(object, bytes) : bytes, spilled;
    struct holding charge = {0};
    int error = 0;

    if (!has_room(ledger, holding, object))
        return ENOSPC;
    if (more || !object)
        error = ledger_reserve(ledger, &charge, more, false, &spilled);
    if (error)
        return error;
    if (!object)
        object = add_object(ledger, name);
    object->device += charge.device;
    hold_object(ledger, holding, object);
    return 0;
}

bool ledger_detach(struct ledger *ledger, struct holding *holding,
                   const struct governor_object_name *name)
{
    struct ledger_object *object = find_object(ledger, name);
    unsigned has = times_held(holding, object);

    if (!has)
        return false;
    if (has > 1) {
        g_hash_table_insert(holding->objects, object, GUINT_TO_POINTER(has - 1));
        return true;
    }
    g_hash_table_remove(holding->objects, object);
    drop_object(ledger, object);
    return true;
}

void ledger_detach_all(struct ledger *ledger, struct holding *holding)
{
    GHashTableIter iter;
    void *object;

    if (!holding->objects)
        return;
    g_hash_table_iter_init(&iter, holding->objects);
    while (g_hash_table_iter_next(&iter, &object, NULL))
        drop_object(ledger, object);
    g_clear_pointer(&holding->objects, g_hash_table_unref);
}

void ledger_forget(struct ledger *ledger, struct holding *holding)
{
    ledger_detach_all(ledger, holding);
    ledger_set_driver(ledger, holding, 0);
    ledger->used -= holding->device;
    ledger->spill_used -= holding->spilled;
    *holding = (struct holding){0};
}
