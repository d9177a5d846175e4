/* SPDX-License-Identifier: MIT */
#include "fleet/kubernetes/plugin/card.h"

#include "fleet/kubernetes/names.h"

Card *card_new(const AgentGpu *gpu, const Seats *seats)
{
    Card *card = g_new0(Card, 1);

    card->name = kube_device_name(gpu->address);
    card->address = g_strdup(gpu->address);
    card->seats = seats;
    card->door = seats->door;
    return card;
}

void card_free(Card *card)
{
    g_free(card->name);
    g_free(card->address);
    g_free(card->said);
    g_free(card);
}

gboolean card_is_usable(const Card *card)
{
    return card->is_there && card->is_cut && card->is_healthy;
}

gboolean card_set(Card *card, const AgentGpu *gpu)
{
    gboolean was = card_is_usable(card);
    gint numa = card->numa;

    card->is_there = gpu && !gpu->is_draining;
    if (card->is_there)
        card->is_back = FALSE;
    if (gpu) {
        card->is_healthy = !gpu->problem;
        card->numa = gpu->numa;
    }
    return was != card_is_usable(card) || numa != card->numa;
}

char *card_owner(const Card *card)
{
    return g_strconcat(KUBE_SEATS_OWNER, card->name, NULL);
}

GPtrArray *card_slices(const Card *card, const char *tenant)
{
    GPtrArray *slices = g_ptr_array_new_with_free_func((GDestroyNotify)agent_slice_free);

    for (guint i = 0; i < card->seats->count; i++) {
        AgentSlice *slice = g_new0(AgentSlice, 1);

        slice->part = g_strdup_printf("%u", i);
        slice->gpu = g_strdup(card->address);
        slice->type = g_strdup(card->seats->type);
        slice->compute = -1;
        slice->door = g_strdup(card->door);
        slice->class = g_strdup(card->seats->class);
        slice->tenant = g_strdup(tenant);
        g_ptr_array_add(slices, slice);
    }
    return slices;
}

Held card_held(const GPtrArray *owned, const char *owner, guint seats)
{
    Held held = {0};

    for (guint i = 0; i < owned->len; i++) {
        const AgentOwned *slice = owned->pdata[i];
        guint64 number;

        if (!g_str_equal(slice->owner, owner))
            continue;
        held.count++;
        held.is_used = held.is_used || *slice->container;
        held.is_other = held.is_other ||
                        !g_ascii_string_to_unsigned(slice->part, 10, 0, G_MAXUINT, &number, NULL) ||
                        number >= seats;
    }
    return held;
}

char *card_kept_for(const Held *held, const KubeConf *conf, const char *owner)
{
    if (held->is_used)
        return g_strdup("its seats are given back when no container uses any of them");
    if (conf->with_cdi)
        return NULL;
    return g_strdup_printf("its seats are not given back: with cdi=no nobody tells which of them "
                           "are in use. When its pods have ended, run: vgpuctl owner release %s",
                           owner);
}

void card_say(Card *card, const char *problem)
{
    if (problem && g_strcmp0(problem, card->said))
        g_warning("GPU %s: %s", card->address, problem);
    g_free(card->said);
    card->said = g_strdup(problem);
}
