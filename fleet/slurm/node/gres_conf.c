/* SPDX-License-Identifier: MIT */
/* gres.conf of this node, and the map from Slurm's indices to cards. */
#include <gio/gio.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include "fleet/slurm/node/agent.h"
#include "fleet/slurm/node/node.h"
#include "fleet/slurm/node/slurm_files.h"

#define OUR_LINE "# Written by vgpu-slurm gres-conf\n"

void agent_card_free(void *data)
{
    AgentCard *card = data;

    g_free(card->gpu);
    g_free(card->model);
    g_strfreev(card->nodes);
    g_free(card->cpus);
    g_free(card->links);
    g_free(card);
}

void node_cards_free(NodeCards *cards)
{
    for (guint i = 0; i < NODE_CARDS_MAX; i++) {
        g_free(cards->addresses[i]);
        g_free(cards->models[i]);
    }
    g_free(cards);
}

NodeCards *node_cards_read(HostRoot *root, GError **error)
{
    g_autofree char *text = root_read(root, NODE_CARDS, error);
    g_auto(GStrv) lines = NULL;
    NodeCards *cards;

    if (!text)
        return NULL;
    lines = g_strsplit(text, "\n", -1);
    cards = g_new0(NodeCards, 1);
    for (guint i = 0; lines[i]; i++) {
        char address[64], model[FLEET_NAME_MAX];
        guint index;
        int words = sscanf(lines[i], "%u %63s %31s", &index, address, model);

        if (words < 2 || index >= NODE_CARDS_MAX)
            continue;
        g_free(cards->addresses[index]);
        g_free(cards->models[index]);
        cards->addresses[index] = g_strdup(address);
        cards->models[index] = words == 3 ? g_strdup(model) : NULL;
    }
    return cards;
}

gboolean node_card_is_other(const NodeCards *cards, guint index, const char *model)
{
    gboolean known = FALSE;

    for (guint i = 0; i < NODE_CARDS_MAX; i++)
        known = known || !g_strcmp0(cards->models[i], model);
    return known && g_strcmp0(cards->models[index], model);
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

static int by_model_and_address(const void *a, const void *b)
{
    const AgentCard *first = *(AgentCard *const *)a, *second = *(AgentCard *const *)b;
    int models = strcmp(first->model, second->model);

    return models ? models : strcmp(first->gpu, second->gpu);
}

/*
 * Slurm numbers a node's cards in the order of the types in Gres= of slurm.conf, and within a type
 * in that of gres.conf. So cards of a model stay together in all that is written here.
 */
static void sort_cards(GPtrArray *cards)
{
    /* A copy by g_ptr_array_copy() would free the cards, too. */
    g_autoptr(GPtrArray) before = g_ptr_array_new();

    g_ptr_array_extend(before, cards, NULL, NULL);
    g_ptr_array_sort(cards, by_model_and_address);
    for (guint i = 0; i < cards->len; i++) {
        AgentCard *card = cards->pdata[i];
        g_auto(GStrv) links = g_strsplit(card->links, ",", -1);
        g_autoptr(GString) sorted = g_string_new(NULL);
        guint was;

        for (guint j = 0; j < cards->len && g_strv_length(links) == cards->len; j++)
            if (g_ptr_array_find(before, cards->pdata[j], &was))
                g_string_append_printf(sorted, "%s%s", j ? "," : "", links[was]);
        g_free(card->links);
        card->links = g_strdup(sorted->str);
    }
}

/*
 * Slurm pairs a card's shards with the card by the text of File=, so both lines name the same node,
 * the one that jobs use. @of: what each line begins with, to be for one node only.
 */
static char *gres_text(const GPtrArray *cards, const char *of)
{
    GString *text = g_string_new(OUR_LINE);

    g_string_append_printf(text, "%sAutoDetect=off\n", of);
    for (guint i = 0; i < cards->len; i++) {
        const AgentCard *card = cards->pdata[i];

        g_string_append_printf(text, "%sName=gpu Type=%s File=%s", of, card->model,
                               card->nodes[g_strv_length(card->nodes) - 1]);
        if (card->cpus[0])
            g_string_append_printf(text, " Cores=%s", card->cpus);
        if (card->links[0])
            g_string_append_printf(text, " Links=%s", card->links);
        g_string_append_c(text, '\n');
    }
    for (guint i = 0; i < cards->len; i++) {
        const AgentCard *card = cards->pdata[i];

        g_string_append_printf(text, "%sName=shard Type=%s Count=%u File=%s\n", of, card->model,
                               card->vram, card->nodes[g_strv_length(card->nodes) - 1]);
    }
    return g_string_free(text, FALSE);
}

static char *map_text(const GPtrArray *cards)
{
    GString *text =
        g_string_new("# Written by vgpu-slurm gres-conf: Slurm's index of a card, its address, "
                     "its model\n");

    for (guint i = 0; i < cards->len; i++) {
        const AgentCard *card = cards->pdata[i];

        g_string_append_printf(text, "%u %s %s\n", i, card->gpu, card->model);
    }
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

/* A site's own file may have the lines of all of its nodes. */
static gboolean gres_conf_is_ours(HostRoot *root, const char *path)
{
    g_autofree char *text = root_read(root, path, NULL);
    g_auto(GStrv) lines = slurm_files_lines(text);
    gboolean empty = TRUE;

    for (guint i = 0; lines[i]; i++)
        empty = empty && !*lines[i];
    return empty || g_str_has_prefix(text, OUR_LINE);
}

static gboolean gres_conf_write(HostRoot *root, const char *dir, const char *gres, GError **error)
{
    g_autofree char *path = g_build_filename(dir, "gres.conf", NULL);

    if (gres_conf_is_ours(root, path))
        return root_write(root, path, gres, 0644, error);
    g_set_error(error, G_IO_ERROR, G_IO_ERROR_EXISTS,
                "%s was not written by vgpu-slurm gres-conf, and nothing was changed. Run "
                "vgpu-slurm gres-conf --node --write, and put the lines that it prints into that "
                "file instead of those of this node",
                path);
    return FALSE;
}

int node_gres_conf(HostRoot *root, gboolean for_node, gboolean write)
{
    g_autofree char *why = NULL, *gres = NULL, *map = NULL, *line = NULL, *node = node_name(),
                    *of = NULL, *dir = slurm_files_dir(root);
    gboolean file = write && !for_node && !g_str_equal(dir, SLURM_FILES_CACHE);
    g_autoptr(GPtrArray) cards = NULL;
    g_autoptr(GError) error = NULL;

    if (agent_list_cards(&cards, &why) != AGENT_OK) {
        node_say(LOG_ERR, "cannot list the cards: %s", why);
        return EXIT_FAILURE;
    }
    sort_cards(cards);
    of = for_node || (write && !file) ? g_strdup_printf("NodeName=%s ", node) : g_strdup("");
    gres = gres_text(cards, of);
    map = map_text(cards);
    line = node_gres(cards);
    if ((file && !gres_conf_write(root, dir, gres, &error)) ||
        (write && !root_write(root, NODE_CARDS, map, 0644, &error))) {
        node_say(LOG_ERR, "%s", error->message);
        return EXIT_FAILURE;
    }
    if (!file)
        printf("%s", gres);
    printf("# slurm.conf, on the line of this node: %s\n", line);
    return EXIT_SUCCESS;
}
