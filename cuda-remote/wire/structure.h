/* SPDX-License-Identifier: MIT */
/* Structures of the driver's that hold objects or addresses: which of their bytes these are. */
#ifndef CUDA_REMOTE_STRUCTURE_H
#define CUDA_REMOTE_STRUCTURE_H

#include "signature.h"

/* As a row of structures.def says it. @object: OBJECT_NONE: it is an address. */
struct structure_field {
    uint8_t structure;
    uint8_t object;
    bool is_written; /* by the driver alone */
    uint16_t offset;
    int16_t selector;
    uint32_t value;
    uint32_t fixed;
    int16_t bytes, times, rows, pitch;
};

extern const struct structure_field structure_fields[];
extern const unsigned int structure_fields_count;

/* False: it is of a kind of which it is not known what it holds. */
bool structure_is_known(unsigned int structure, const uint8_t *at);
/* In this structure it is there. */
bool structure_has(const struct structure_field *field, const uint8_t *structure);
uint64_t structure_value(const struct structure_field *field, const uint8_t *structure);
void structure_put(const struct structure_field *field, uint8_t *structure, uint64_t value);
/* The bytes that are at an address. SIGNATURE_TOO_LARGE: no machine has so many. */
size_t structure_extent(const struct structure_field *field, const uint8_t *structure);

#endif
