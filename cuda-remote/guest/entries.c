// SPDX-License-Identifier: MIT
/* Only the addresses of the functions matter here, so their types are not those that they have. */
#include "entries.h"

#define E(number, name, base, since) void name(void);
#include "entries.inc"
#undef E

const struct entry entries[] = {
#define E(number, name, base, since) {#name, #base, name, since, number},
#include "entries.inc"
#undef E
};

const unsigned int entries_count = sizeof(entries) / sizeof(entries[0]);
