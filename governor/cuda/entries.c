// SPDX-License-Identifier: MIT
#include "entry_points.h"

#include <stddef.h>

#include "wrappers.h"

#include "entries.inc"
