/* SPDX-License-Identifier: MIT */
/* gres.conf of this node, and the map from Slurm's indices to cards. */
#include <gio/gio.h>
#include <stdio.h>
#include <stdlib.h>
#include <syslog.h>

#include "fleet/slurm/node/agent.h"
#include "fleet/slurm/node/node.h"

#define GRES_CONF "/etc/slurm/gres.conf"

GPtrArray *node_cards_read(HostRoot *root, GError **error)
{
    g_autofree char *text = root_read(root, NODE_CARDS, error);
    g_autoptr(GPtrArray) cards = g_ptr_array_new_with_free_func(g_free);
    g_auto(GStrv) lines = NULL;

    if (!text)
        return NULL;
    lines = g_strsplit(text, "\n", -1);
    g_ptr_array_set_size(cards, NODE_MAX_CARDS);
    for (guint i = 0; lines[i]; i++) {
        char address[64];
        guint index;

        if (sscanf(lines[i], "%u %63s", &index, address) == 2 && index < NODE_MAX_CARDS) {
            g_free(cards->pdata[index]);
            cards->pdata[index] = g_strdup(address);
        }
    }
    return g_steal_pointer(&cards);
}

gboolean node_conf_read(HostRoot *root, FleetConf *conf, GError **error)
{
    g_autofree char *text = NULL;
    char sentence[FLEET_ERROR_MAX];

    fleet_conf_init(conf);
    if (!root_has(root, NODE_CONF))
        return TRUE;
    text = root_read(root, NODE_CONF, error);
    if (!text)
        return FALSE;
    if (fleet_conf_parse(text, conf, sentence))
        return TRUE;
    g_set_error(error, G_IO_ERROR, G_IO_ERROR_INVALID_DATA, "%s: %s", NODE_CONF, sentence);
    return FALSE;
}

/*
 * Slurm pairs a card's shards with the card by the text of File=, so both lines name the same node,
 * the one that jobs use.
 */
static char *gres_text(const GPtrArray *cards)
{
    GString *text = g_string_new("# Written by vgpu-slurm gres-conf\nAutoDetect=off\n");

    for (guint i = 0; i < cards->len; i++) {
        const AgentCard *card = cards->pdata[i];

        g_string_append_printf(text, "Name=gpu Type=%s File=%s", card->model,
                               card->nodes[g_strv_length(card->nodes) - 1]);
        if (card->cpus[0])
            g_string_append_printf(text, " Cores=%s", card->cpus);
        if (card->links[0])
            g_string_append_printf(text, " Links=%s", card->links);
        g_string_append_c(text, '\n');
    }
    for (guint i = 0; i < cards->len; i++) {
        const AgentCard *card = cards->pdata[i];

        g_string_append_printf(text, "Name=shard Type=%s Count=%u File=%s\n", card->model,
                               card->vram, card->nodes[g_strv_length(card->nodes) - 1]);
    }
    return g_string_free(text, FALSE);
}

static char *map_text(const GPtrArray *cards)
{
    GString *text =
        g_string_new("# Written by vgpu-slurm gres-conf: Slurm's index of a card, its address\n");

    for (guint i = 0; i < cards->len; i++)
        g_string_append_printf(text, "%u %s\n", i, ((AgentCard *)cards->pdata[i])->gpu);
    return g_string_free(text, FALSE);
}

/* "Gres=gpu:a100-80g:8,shard:a100-80g:655360", for the line of this node in slurm.conf. */
static char *node_gres(const GPtrArray *cards)
{
    GString *gpus = g_string_new("Gres="), *shards = g_string_new(NULL);

    for (guint i = 0; i < cards->len;) {
        const char *model = ((AgentCard *)cards->pdata[i])->model;
        guint count = 0, vram = 0;

        for (; i < cards->len && g_str_equal(((AgentCard *)cards->pdata[i])->model, model); i++) {
            vram += ((AgentCard *)cards->pdata[i])->vram;
            count++;
        }
        g_string_append_printf(gpus, "gpu:%s:%u,", model, count);
        g_string_append_printf(shards, "%sshard:%s:%u", shards->len ? "," : "", model, vram);
    }
    g_string_append(gpus, shards->str);
    g_string_free(shards, TRUE);
    return g_string_free(gpus, FALSE);
}

int node_gres_conf(HostRoot *root, gboolean write)
{
    g_autofree char *why = NULL, *gres = NULL, *map = NULL, *line = NULL;
    g_autoptr(GPtrArray) cards = NULL;
    g_autoptr(GError) error = NULL;

    if (agent_list_cards(&cards, &why) != AGENT_OK) {
        node_say(LOG_ERR, "cannot list the cards: %s", why);
        return EXIT_FAILURE;
    }
    gres = gres_text(cards);
    map = map_text(cards);
    line = node_gres(cards);
    if (!write) {
        printf("%s", gres);
    } else if (!root_write(root, GRES_CONF, gres, 0644, &error) ||
               !root_write(root, NODE_CARDS, map, 0644, &error)) {
        node_say(LOG_ERR, "%s", error->message);
        return EXIT_FAILURE;
    }
    printf("# slurm.conf, on the line of this node: %s\n", line);
    return EXIT_SUCCESS;
}
