/* SPDX-License-Identifier: MIT */
/*
 * Which card is at which address. Addresses change if a card is added or moved; a card's own number
 * does not. vgpud notes both, because only the card's own driver can read the number.
 */
#ifndef LIB_CARDS_H
#define LIB_CARDS_H

#include "lib/host_root.h"
#include "lib/pci.h"

/* In place of an address, in [gpu NAME] of gpus.conf. */
#define CARD_PREFIX "uuid="

/* The address of the card with that number (gpu_uuid()); NULL: this host has none. To be freed. */
char *card_find(HostRoot *root, const char *uuid);

/**
 * card_note() - notes @cards, of const PciDevice, and forgets nothing of addresses that have none
 * now
 * @other: is called for each whose address had another card before, described by @was
 *
 * FALSE if the notes could not be written.
 */
gboolean card_note(HostRoot *root, const GPtrArray *cards,
                   void (*other)(const PciDevice *card, const char *was, void *data), void *data,
                   GError **error);

#endif
