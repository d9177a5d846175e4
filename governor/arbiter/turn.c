// SPDX-License-Identifier: MIT
/* When the schedulers run, and what follows. */
#include "arbiter_state.h"
#include "clock.h"

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

static void run_classes(struct arbiter *arbiter, unsigned classes)
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

void turn_run(struct arbiter *arbiter)
{
    run_classes(arbiter, ARBITER_ALL_CLASSES);
}

static int on_timer(sd_event_source *source, uint64_t usec, void *data)
{
    struct arbiter *arbiter = data;
    uint64_t now = clock_now();
    unsigned due = 0;

    (void)source;
    (void)usec;
    for (unsigned i = 0; i < GOVERNOR_CLASSES; i++)
        due |= (unsigned)(arbiter->next[i] <= now) << i;
    run_classes(arbiter, due);
    return 0;
}

static int on_look(sd_event_source *source, void *data)
{
    struct arbiter *arbiter = data;
    unsigned asked = arbiter->asked;

    (void)source;
    arbiter->asked = 0;
    run_classes(arbiter, asked);
    return 0;
}

void turn_init(struct arbiter *arbiter)
{
    for (unsigned i = 0; i < GOVERNOR_CLASSES; i++)
        arbiter->next[i] = TIME_NEVER;
    sd_event_add_time(arbiter->event, &arbiter->timer, CLOCK_MONOTONIC, 0, 1, on_timer, arbiter);
    sd_event_source_set_enabled(arbiter->timer, SD_EVENT_OFF);
    sd_event_add_defer(arbiter->event, &arbiter->look, on_look, arbiter);
    sd_event_source_set_enabled(arbiter->look, SD_EVENT_OFF);
}
