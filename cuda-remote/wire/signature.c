// SPDX-License-Identifier: MIT
#include "signature.h"

#include "signatures.inc"

static size_t multiply_or_too_large(uint64_t a, uint64_t b)
{
    uint64_t product;

    return __builtin_mul_overflow(a, b, &product) || product > PTRDIFF_MAX ? SIGNATURE_TOO_LARGE
                                                                           : (size_t)product;
}

size_t signature_bytes(const struct signature *of, unsigned int at, const uint64_t *words,
                       const uint64_t *numbers)
{
    const struct argument *argument = &of->arguments[at];
    uint64_t count = argument->fixed;

    if (argument->count >= 0)
        count = argument->is_indirect ? numbers[argument->count] : words[argument->count];
    count = count > argument->minus ? count - argument->minus : 0;
    return multiply_or_too_large(count, argument->bytes);
}

size_t signature_extent(const struct signature *of, unsigned int at, const uint64_t *words)
{
    const struct argument *argument = &of->arguments[at];
    size_t row = argument->count < 0
                     ? argument->fixed
                     : multiply_or_too_large(words[argument->count], argument->bytes);
    size_t before, sum;

    if (argument->rows < 0)
        return row;
    if (!words[argument->rows] || !row)
        return 0;
    before = multiply_or_too_large(words[argument->rows] - 1, words[argument->pitch]);
    if (row == SIGNATURE_TOO_LARGE || before == SIGNATURE_TOO_LARGE ||
        __builtin_add_overflow(row, before, &sum))
        return SIGNATURE_TOO_LARGE;
    return sum;
}
