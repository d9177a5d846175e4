/* SPDX-License-Identifier: MIT */
#include "fleet/slurm/node/detail.h"

#include <stdlib.h>
#include <string.h>

#include "fleet/request/submit.h"

/* Adds a card of the type between the colons of "gpu:a100:3(" at @type. The new count, or -1. */
static int add_card(CardPromise *cards, int count, const char *type, unsigned long index,
                    unsigned long shards)
{
    size_t length = strcspn(type, ":(");
    CardPromise *card = &cards[count];

    if (count == NODE_CARDS_MAX || index >= NODE_CARDS_MAX || shards > FLEET_MIB_MAX)
        return -1;
    for (int i = 0; i < count; i++)
        if (cards[i].index == index && !cards[i].shards == !shards)
            return count;
    *card = (CardPromise){.index = (unsigned)index, .shards = (uint32_t)shards};
    if (type[length] == ':' && length < sizeof(card->model))
        memcpy(card->model, type, length);
    return count + 1;
}

/* "0-1,3)": whole cards. The number of cards so far, or -1. */
static int take_cards(const char *type, const char *text, CardPromise *cards, int count)
{
    char *end = (char *)text;

    do {
        unsigned long first = strtoul(end, &end, 10);
        unsigned long last = *end == '-' ? strtoul(end + 1, &end, 10) : first;

        for (unsigned long index = first; index <= last && count >= 0; index++)
            count = add_card(cards, count, type, index, 0);
    } while (count >= 0 && *end++ == ',');
    return count >= 0 && end[-1] == ')' ? count : -1;
}

/* "0/81920,300/81920)": MiB of each card. */
static int take_shards(const char *type, const char *text, CardPromise *cards, int count)
{
    char *end = (char *)text;

    for (unsigned index = 0;; index++) {
        unsigned long shards = strtoul(end, &end, 10);

        if (*end++ != '/')
            return -1;
        end += strspn(end, "0123456789");
        if (shards && (count = add_card(cards, count, type, index, shards)) < 0)
            return -1;
        if (*end++ != ',')
            return end[-1] == ')' ? count : -1;
    }
}

int detail_parse(const char *detail, CardPromise *cards)
{
    int count = 0;

    while (detail && *detail && count >= 0) {
        const char *open = strchr(detail, '('), *close = open ? strchr(open, ')') : NULL;

        if (!strncmp(detail, "gpu:", 4)) {
            if (!close || strncmp(open, "(IDX:", 5))
                return -1;
            count = take_cards(detail + 4, open + 5, cards, count);
        } else if (!strncmp(detail, "shard:", 6)) {
            if (!close)
                return -1;
            count = take_shards(detail + 6, open + 1, cards, count);
        }
        /* Others may have no parentheses. */
        if (open && strcspn(detail, ",") > (size_t)(open - detail))
            detail = close ? close : open;
        detail += strcspn(detail, ",");
        detail += *detail == ',';
    }
    return count;
}

bool detail_check(CardPromise *cards, unsigned count, const FleetRequest *request,
                  const DetailCount *counted, const FleetConf *conf, char *error)
{
    bool full = request->kind == FLEET_SIZE_FULL;
    uint32_t per_task = counted->per_task;

    if (!full && (!per_task || submit_memory_cost(request, conf) > per_task))
        return fleet_error(error, "its text asks for %u MiB, and Slurm counts %u for a task",
                           request->size, per_task);
    for (unsigned i = 0; i < count; i++) {
        CardPromise *card = &cards[i];

        if (full != !card->shards)
            return fleet_error(error, "its text asks for %s, and on card %u it has %s",
                               full ? "whole cards" : "slices", card->index,
                               full ? "shards" : "the whole");
        if (!full && card->shards < per_task && !counted->whole_node)
            return fleet_error(error, "%u shards of card %u are fewer than the %u of a task",
                               card->shards, card->index, per_task);
        card->tasks = full ? 1 : card->shards / per_task;
    }
    return true;
}
