// SPDX-License-Identifier: MIT
/*
 * What libraries ask of memory, and private tables of which cuFFT calls one function each. Sizes of
 * tables are those that a driver of the branch 550 has.
 */
#include "content.h"

#include <string.h>

/* As cuda.h numbers them; memory here has no name in the host. */
bool pointer_attribute(void *data, unsigned int attribute, CUdeviceptr at)
{
    if (!content_is_on())
        return false;
    switch (attribute) {
    case 1:
        *(CUcontext *)data = fake_current();
        return true;
    case 3:
        *(CUdeviceptr *)data = at;
        return true;
    case 7:
        *(uint64_t *)data = content_find(NULL, at).address >> 20;
        return true;
    case 13:
        *(uint8_t *)data = 1;
        return true;
    default:
        return false;
    }
}

/* Calls back for each function of the module. 1: it has done so. */
static int call_functions(void *context, const void *module,
                          void (*function)(void *user, CUfunction function), void *user)
{
    const struct image *image = module ? code_image(module) : NULL;
    CUfunction found = NULL;

    (void)context;
    for (unsigned int i = 0; image && (found = image_function_at(image, i)); i++)
        function(user, found);
    return 1;
}

static CUresult do_nothing(void)
{
    return CUDA_SUCCESS;
}

#define FUNCTIONS_BYTES 736
#define CONTEXTS_BYTES  688

static const struct {
    unsigned char id[16];
    uintptr_t table[FUNCTIONS_BYTES / 8];
} tables[] = {
    {{0x6e, 0x16, 0x3f, 0xbe, 0xb9, 0x58, 0x44, 0x4d, 0x83, 0x5c, 0xe1, 0x82, 0xaf, 0xf1, 0x99,
      0x1e},
     {[0] = FUNCTIONS_BYTES, [7] = (uintptr_t)call_functions}},
    {{0x21, 0x31, 0x8c, 0x60, 0x97, 0x14, 0x32, 0x48, 0x8c, 0xa6, 0x41, 0xff, 0x73, 0x24, 0xc8,
      0xf2},
     {[0] = CONTEXTS_BYTES, [4] = (uintptr_t)do_nothing, [5] = (uintptr_t)do_nothing}},
};

const void *table_find(const void *id)
{
    for (unsigned int i = 0; id && content_is_on() && i < sizeof(tables) / sizeof(tables[0]); i++)
        if (!memcmp(id, tables[i].id, sizeof(tables[i].id)))
            return tables[i].table;
    return NULL;
}
