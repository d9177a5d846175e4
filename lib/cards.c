/* SPDX-License-Identifier: MIT */
#include "lib/cards.h"

#include <string.h>

#include "lib/gpu_identity.h"
#include "lib/gpu_name.h"

#define NOTES   "/var/lib/vgpu/cards"
#define DEVICES "/sys/bus/pci/devices"
#define UNKNOWN "-"

/* "10de:2684 GPU-…"; "-" in place of a number that cannot be read now. */
static char *card_text(HostRoot *root, const PciDevice *card)
{
    g_autofree char *uuid = gpu_uuid(root, card);

    return g_strdup_printf("%04x:%04x %s", card->vendor, card->device, *uuid ? uuid : UNKNOWN);
}

static const char *uuid_of(const char *text)
{
    return strchr(text, ' ') + 1;
}

/* Lines of "ADDRESS VENDOR:DEVICE UUID", by their addresses. */
static GHashTable *read_notes(HostRoot *root)
{
    GHashTable *notes = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    g_autofree char *text = root_read(root, NOTES, NULL);
    g_auto(GStrv) lines = g_strsplit(text ? text : "", "\n", -1);

    for (guint i = 0; lines[i]; i++) {
        char *rest = strchr(lines[i], ' ');

        if (rest && strchr(rest + 1, ' '))
            g_hash_table_insert(notes, g_strndup(lines[i], (gsize)(rest - lines[i])),
                                g_strdup(rest + 1));
    }
    return notes;
}

/* Of one model, and their numbers do not differ as far as they are known. */
static gboolean may_be_same(const char *a, const char *b)
{
    gsize model = (gsize)(uuid_of(a) - a);

    return strncmp(a, b, model) == 0 &&
           (g_str_equal(uuid_of(a), UNKNOWN) || g_str_equal(uuid_of(b), UNKNOWN) ||
            g_ascii_strcasecmp(uuid_of(a), uuid_of(b)) == 0);
}

/* By its driver; NULL: no driver says so. */
static char *find_present(HostRoot *root, const char *uuid)
{
    g_auto(GStrv) addresses = sysfs_list(root, DEVICES);

    for (guint i = 0; addresses[i]; i++) {
        g_autoptr(PciDevice) card = pci_device_read(root, addresses[i]);
        guint base = card ? card->class >> 16 : 0;
        g_autofree char *its = base == PCI_CLASS_DISPLAY || base == PCI_CLASS_ACCELERATOR
                                   ? gpu_uuid(root, card)
                                   : NULL;

        if (its && g_ascii_strcasecmp(its, uuid) == 0)
            return g_strdup(addresses[i]);
    }
    return NULL;
}

char *card_find(HostRoot *root, const char *uuid)
{
    g_autoptr(GHashTable) notes = NULL;
    char *found = find_present(root, uuid);
    GHashTableIter iter;
    void *address, *text;

    if (found)
        return found;
    /* Without its own driver, as while it is passed through, it is where it was. */
    notes = read_notes(root);
    g_hash_table_iter_init(&iter, notes);
    while (!found && g_hash_table_iter_next(&iter, &address, &text)) {
        g_autoptr(PciDevice) card =
            g_ascii_strcasecmp(uuid_of(text), uuid) == 0 ? pci_device_read(root, address) : NULL;
        g_autofree char *now = card ? card_text(root, card) : NULL;

        if (now && may_be_same(text, now))
            found = g_strdup(address);
    }
    return found;
}

static gboolean write_notes(HostRoot *root, GHashTable *notes, GError **error)
{
    g_autoptr(GString) text = g_string_new(NULL);
    g_autoptr(GList) addresses = g_list_sort(g_hash_table_get_keys(notes), (GCompareFunc)strcmp);
    g_autofree char *before = root_read(root, NOTES, NULL);

    for (GList *at = addresses; at; at = at->next)
        g_string_append_printf(text, "%s %s\n", (const char *)at->data,
                               (const char *)g_hash_table_lookup(notes, at->data));
    return g_strcmp0(before, text->str) == 0 || root_write(root, NOTES, text->str, 0600, error);
}

gboolean card_note(HostRoot *root, const GPtrArray *cards,
                   void (*other)(const PciDevice *card, const char *was, void *data), void *data,
                   GError **error)
{
    g_autoptr(GHashTable) notes = read_notes(root);

    for (guint i = 0; i < cards->len; i++) {
        const PciDevice *card = g_ptr_array_index(cards, i);
        g_autofree char *now = card_text(root, card);
        const char *was = g_hash_table_lookup(notes, card->address);

        if (gpu_name_is_soft(card->address))
            continue;
        if (was && !may_be_same(was, now))
            other(card, was, data);
        /* A number that cannot be read now is still the card's. */
        if (!was || !may_be_same(was, now) || !g_str_equal(uuid_of(now), UNKNOWN))
            g_hash_table_insert(notes, g_strdup(card->address), g_steal_pointer(&now));
    }
    return write_notes(root, notes, error);
}
