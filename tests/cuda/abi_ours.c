// SPDX-License-Identifier: MIT
#include "abi.h"

#include "cuda_abi.h"

const struct abi_fact abi_ours[] = {ABI_FACTS{0}};
