// SPDX-License-Identifier: MIT
/*
 * The functions that FFmpeg's header declares, too, have the signatures that the table gives them.
 * Signatures are written with the names of types, so that the table's are read with FFmpeg's types
 * here.
 */
#include "abi.h"

#include <ffnvcodec/dynlink_cuda.h>
#include <stddef.h>

typedef unsigned long long cuuint64_t;

#include "shared-prototypes.inc"

#define S(symbol, type)                                                                            \
    _Static_assert(__builtin_types_compatible_p(symbol##_prototype, type),                         \
                   #symbol " is not as the table has it");
#include "shared-symbols.inc"

const struct abi_fact abi_theirs[] = {ABI_FACTS{0}};
