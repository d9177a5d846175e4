// SPDX-License-Identifier: MIT
#include "arbiter.h"

#include "clock.h"
#include "connection.h"
#include "moves.h"
#include "slice.h"
#include "vault_link.h"

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
    for (unsigned i = 0; i < GOVERNOR_CLASSES; i++)
        scheduler_init(&arbiter->schedulers[i], clock_now());
    moves_init(&arbiter->moves, arbiter, tree);
    vault_link_init(&arbiter->vault, tree, connection_vaulted);
    rights_init(&arbiter->rights, event);
    arbiter->slices = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, free_slice);
    turn_init(arbiter);
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
