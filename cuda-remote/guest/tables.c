// SPDX-License-Identifier: MIT
/*
 * cuGetExportTable: tables of functions that libraries of NVIDIA's ask for. Only those are here of
 * which it is known, by what unmodified libraries call, what they have to do; all others are
 * refused as the driver refuses a table that it does not know. A table begins with its size in
 * bytes; the sizes are those of a driver of the branch 550.
 */
#include "remote.h"

#include <stdlib.h>
#include <string.h>

CUresult cuModuleGetFunctionCount(unsigned int *count, CUmodule module);
CUresult cuModuleEnumerateFunctions(CUfunction *functions, unsigned int count, CUmodule module);

/* Calls back for each function of a module. Other than elsewhere, 1 is success. */
static int call_functions(CUcontext context, CUmodule module,
                          void (*call)(void *user, CUfunction function), void *user)
{
    CUfunction *functions;
    unsigned int count = 0;
    int is_done = 0;

    (void)context;
    if (cuModuleGetFunctionCount(&count, module) != CUDA_SUCCESS)
        return 0;
    functions = calloc(count + 1, sizeof(*functions));
    if (functions && cuModuleEnumerateFunctions(functions, count, module) == CUDA_SUCCESS) {
        for (unsigned int i = 0; i < count; i++)
            call(user, functions[i]);
        is_done = 1;
    }
    free(functions);
    return is_done;
}

static CUresult do_nothing(void)
{
    return CUDA_SUCCESS;
}

static CUresult refuse_slot(void)
{
    return (CUresult)remote_refuse("a function of NVIDIA's tables", "it is not published");
}

#define MODULES_BYTES     736
#define CONTEXTS_BYTES    688
#define REFUSES(from, to) [from... to] = (uintptr_t)refuse_slot

static const struct {
    unsigned char id[16];
    uintptr_t table[MODULES_BYTES / 8];
} tables[] = {
    {{0x6e, 0x16, 0x3f, 0xbe, 0xb9, 0x58, 0x44, 0x4d, 0x83, 0x5c, 0xe1, 0x82, 0xaf, 0xf1, 0x99,
      0x1e},
     {[0] = MODULES_BYTES,
      REFUSES(1, 6),
      [7] = (uintptr_t)call_functions,
      REFUSES(8, MODULES_BYTES / 8 - 1)}},
    {{0x21, 0x31, 0x8c, 0x60, 0x97, 0x14, 0x32, 0x48, 0x8c, 0xa6, 0x41, 0xff, 0x73, 0x24, 0xc8,
      0xf2},
     {[0] = CONTEXTS_BYTES,
      REFUSES(1, 3),
      [4] = (uintptr_t)do_nothing,
      REFUSES(5, CONTEXTS_BYTES / 8 - 1)}},
};

EXPORT CUresult cuGetExportTable(const void **table, const void *id);
CUresult cuGetExportTable(const void **table, const void *id)
{
    if (!table || !id)
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
        if (!memcmp(id, tables[i].id, sizeof(tables[i].id))) {
            *table = tables[i].table;
            return CUDA_SUCCESS;
        }
    *table = NULL;
    return CUDA_ERROR_INVALID_VALUE;
}
