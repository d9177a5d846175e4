/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/operations/queues.h"

/**
 * struct Queues
 * @by_object: object to GQueue, which is never empty
 */
struct Queues {
    GHashTable *by_object;
};

static void free_queue(void *queue)
{
    g_queue_free(queue);
}

Queues *queues_new(void)
{
    Queues *queues = g_new0(Queues, 1);

    queues->by_object = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, free_queue);
    return queues;
}

void queues_free(Queues *queues)
{
    g_hash_table_unref(queues->by_object);
    g_free(queues);
}

void queues_add(Queues *queues, const char *const *objects, void *who)
{
    for (guint i = 0; objects[i]; i++) {
        GQueue *queue = g_hash_table_lookup(queues->by_object, objects[i]);

        if (!queue) {
            queue = g_queue_new();
            g_hash_table_insert(queues->by_object, g_strdup(objects[i]), queue);
        }
        g_queue_push_tail(queue, who);
    }
}

void queues_remove(Queues *queues, const char *const *objects, void *who)
{
    for (guint i = 0; objects[i]; i++) {
        GQueue *queue = g_hash_table_lookup(queues->by_object, objects[i]);

        if (queue)
            g_queue_remove(queue, who);
        if (queue && g_queue_is_empty(queue))
            g_hash_table_remove(queues->by_object, objects[i]);
    }
}

void *queues_first(const Queues *queues, const char *object)
{
    GQueue *queue = g_hash_table_lookup(queues->by_object, object);

    return queue ? g_queue_peek_head(queue) : NULL;
}

gboolean queues_has_all(const Queues *queues, const char *const *objects, const void *who)
{
    for (guint i = 0; objects[i]; i++)
        if (queues_first(queues, objects[i]) != who)
            return FALSE;
    return TRUE;
}
