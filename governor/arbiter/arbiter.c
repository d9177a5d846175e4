// SPDX-License-Identifier: MIT
#include "arbiter.h"
#include "clock.h"

/* Members reconnect within 100 ms. */
#define SETTLE_NS (250 * NS_PER_MS)

static void run(struct arbiter *arbiter, unsigned classes);

static int on_timer(sd_event_source *source, uint64_t usec, void *data)
{
    struct arbiter *arbiter = data;
    uint64_t now = clock_now();
    unsigned due = 0;

    (void)source;
    (void)usec;
    for (unsigned i = 0; i < GOVERNOR_CLASSES; i++)
        due |= (unsigned)(arbiter->next[i] <= now) << i;
    run(arbiter, due);
    return 0;
}

static int on_look(sd_event_source *source, void *data)
{
    struct arbiter *arbiter = data;
    unsigned asked = arbiter->asked;

    (void)source;
    arbiter->asked = 0;
    run(arbiter, asked);
    return 0;
}

static void free_slice(void *slice)
{
    slice_free(slice);
}

void arbiter_init(struct arbiter *arbiter, sd_event *event, const char *tree, const char *gpu)
{
    *arbiter = (struct arbiter){.event = event, .settled = true};
    arbiter->gpu = g_strdup(gpu);
    arbiter->conf_dir = g_build_filename(tree, "/run/vgpu/governor", gpu, NULL);
    arbiter->slices_dir = g_build_filename(tree, "/run/vgpu/slices", NULL);
    for (unsigned i = 0; i < GOVERNOR_CLASSES; i++) {
        scheduler_init(&arbiter->schedulers[i], clock_now());
        arbiter->next[i] = TIME_NEVER;
    }
    moves_init(&arbiter->moves, arbiter);
    vault_link_init(&arbiter->vault, tree);
    rights_init(&arbiter->rights, event);
    arbiter->slices = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, free_slice);
    sd_event_add_time(event, &arbiter->timer, CLOCK_MONOTONIC, 0, 1, on_timer, arbiter);
    sd_event_source_set_enabled(arbiter->timer, SD_EVENT_OFF);
    sd_event_add_defer(event, &arbiter->look, on_look, arbiter);
    sd_event_source_set_enabled(arbiter->look, SD_EVENT_OFF);
}

void arbiter_clear(struct arbiter *arbiter)
{
    g_hash_table_destroy(arbiter->slices);
    moves_clear(&arbiter->moves);
    vault_link_clear(&arbiter->vault);
    rights_clear(&arbiter->rights);
    status_end(arbiter);
    partners_end(arbiter);
    for (unsigned i = 0; i < GOVERNOR_CLASSES; i++)
        scheduler_clear(&arbiter->schedulers[i]);
    sd_event_source_disable_unref(arbiter->timer);
    sd_event_source_disable_unref(arbiter->look);
    sd_event_source_disable_unref(arbiter->settle_timer);
    sd_event_source_disable_unref(arbiter->gpu_inotify);
    sd_event_source_disable_unref(arbiter->slices_inotify);
    sd_event_source_disable_unref(arbiter->status);
    g_free(arbiter->gpu);
    g_free(arbiter->conf_dir);
    g_free(arbiter->slices_dir);
}

static void tell_members(const struct sched_slice *slice)
{
    for (guint i = 0; i < slice->members->len; i++) {
        struct sched_member *member = g_ptr_array_index(slice->members, i);

        if (member->changed)
            pages_wake(member->grant);
        member->changed = false;
    }
}

static void run_class(struct arbiter *arbiter, unsigned class)
{
    bool asks = false;
    GHashTableIter iter;
    void *slice;

    arbiter->next[class] = scheduler_run(&arbiter->schedulers[class], clock_now());
    g_hash_table_iter_init(&iter, arbiter->slices);
    while (g_hash_table_iter_next(&iter, NULL, &slice)) {
        const struct sched_slice *scheduled = ((const struct slice *)slice)->scheduled[class];

        tell_members(scheduled);
        asks |= scheduled->asks_partners;
    }
    if (asks)
        partners_ask(arbiter);
}

static void run(struct arbiter *arbiter, unsigned classes)
{
    uint64_t next = TIME_NEVER;

    for (unsigned i = 0; i < GOVERNOR_CLASSES; i++) {
        if (classes & 1u << i)
            run_class(arbiter, i);
        next = MIN(next, arbiter->next[i]);
    }
    if (next == TIME_NEVER) {
        sd_event_source_set_enabled(arbiter->timer, SD_EVENT_OFF);
        return;
    }
    /* Rounded up: too early would be useless. */
    sd_event_source_set_time(arbiter->timer, next / NS_PER_US + 1);
    sd_event_source_set_enabled(arbiter->timer, SD_EVENT_ONESHOT);
}

void arbiter_schedule(struct arbiter *arbiter)
{
    run(arbiter, ARBITER_ALL_CLASSES);
}

/*
 * Sources that became ready at the same time are dispatched first, because they have waited longer.
 */
void arbiter_schedule_soon(struct arbiter *arbiter, unsigned classes)
{
    arbiter->asked |= classes;
    sd_event_source_set_enabled(arbiter->look, SD_EVENT_ONESHOT);
}

static bool resume_one(struct slice *slice)
{
    for (guint i = 0; i < slice->connections->len; i++) {
        struct connection *connection = g_ptr_array_index(slice->connections, i);

        if (!connection_resume(connection)) {
            connection_free(connection);
            return true;
        }
    }
    return false;
}

static int on_settled(sd_event_source *source, uint64_t usec, void *data)
{
    struct arbiter *arbiter = data;
    GHashTableIter iter;
    void *slice;

    (void)source;
    (void)usec;
    arbiter->settled = true;
    g_hash_table_iter_init(&iter, arbiter->slices);
    while (g_hash_table_iter_next(&iter, NULL, &slice)) {
        /* Dropping one changes the list. */
        while (resume_one(slice))
            ;
    }
    moves_run(arbiter);
    return 0;
}

void arbiter_settle(struct arbiter *arbiter)
{
    if (arbiter->settle_timer)
        return;
    if (sd_event_add_time(arbiter->event, &arbiter->settle_timer, CLOCK_MONOTONIC,
                          (clock_now() + SETTLE_NS) / NS_PER_US, 1000, on_settled, arbiter) >= 0)
        arbiter->settled = false;
}
