// SPDX-License-Identifier: MIT
#include "structure.h"

#include <string.h>

const struct structure_field structure_fields[] = {
#define OBJECT_AT(type, at, is, selected_by, when)                                                 \
    {.structure = STRUCTURE_##type,                                                                \
     .object = OBJECT_##is,                                                                        \
     .offset = at,                                                                                 \
     .selector = selected_by,                                                                      \
     .value = when},
#define WRITTEN_AT(type, at, is)                                                                   \
    {.structure = STRUCTURE_##type,                                                                \
     .object = OBJECT_##is,                                                                        \
     .is_written = true,                                                                           \
     .offset = at,                                                                                 \
     .selector = -1},
#define ADDRESS_AT(type, at, selected_by, when, has, bytes_at, times_at, rows_at, pitch_at)        \
    {.structure = STRUCTURE_##type,                                                                \
     .offset = at,                                                                                 \
     .selector = selected_by,                                                                      \
     .value = when,                                                                                \
     .fixed = has,                                                                                 \
     .bytes = bytes_at,                                                                            \
     .times = times_at,                                                                            \
     .rows = rows_at,                                                                              \
     .pitch = pitch_at},
#define KEPT(type)
#include "structures.def"
#undef KEPT
#undef ADDRESS_AT
#undef WRITTEN_AT
#undef OBJECT_AT
};
const unsigned int structure_fields_count = sizeof(structure_fields) / sizeof(structure_fields[0]);

static uint64_t read_at(const uint8_t *structure, int at, size_t bytes)
{
    uint64_t value = 0;

    memcpy(&value, structure + at, bytes);
    return value;
}

bool structure_is_known(unsigned int structure, const uint8_t *at)
{
    enum { OPERATION_LAST = 6, OPERATION_REDUCTION = 8 };
    uint64_t operation;

    if (structure != STRUCTURE_CUstreamBatchMemOpParams)
        return true;
    operation = read_at(at, 0, 4);
    return (operation && operation <= OPERATION_LAST) || operation == OPERATION_REDUCTION;
}

bool structure_has(const struct structure_field *field, const uint8_t *structure)
{
    return field->selector < 0 || read_at(structure, field->selector, 4) == field->value;
}

uint64_t structure_value(const struct structure_field *field, const uint8_t *structure)
{
    return read_at(structure, field->offset, 8);
}

void structure_put(const struct structure_field *field, uint8_t *structure, uint64_t value)
{
    memcpy(structure + field->offset, &value, sizeof(value));
}

size_t structure_extent(const struct structure_field *field, const uint8_t *structure)
{
    uint64_t bytes = field->fixed, before = 0;

    if (field->bytes >= 0)
        bytes = read_at(structure, field->bytes, 8);
    if (field->times >= 0 &&
        __builtin_mul_overflow(bytes, read_at(structure, field->times, 4), &bytes))
        return SIGNATURE_TOO_LARGE;
    if (field->rows >= 0) {
        uint64_t rows = read_at(structure, field->rows, 8);

        if (!rows)
            return 0;
        if (__builtin_mul_overflow(rows - 1, read_at(structure, field->pitch, 8), &before))
            return SIGNATURE_TOO_LARGE;
    }
    return __builtin_add_overflow(bytes, before, &bytes) || bytes > PTRDIFF_MAX
               ? SIGNATURE_TOO_LARGE
               : (size_t)bytes;
}
