// SPDX-License-Identifier: MIT
/* libcufft.so.12 as far as the spike calls it: it calls the slot of the driver's table that cuFFT
 * calls; with STAND_IN_UNKNOWN=1 also one of another table that is not known to be called. */
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

typedef int slot(uintptr_t, uintptr_t, uintptr_t, uintptr_t);

static const uint8_t modules[16] = {0x6e, 0x16, 0x3f, 0xbe, 0xb9, 0x58, 0x44, 0x4d,
                                    0x83, 0x5c, 0xe1, 0x82, 0xaf, 0xf1, 0x99, 0x1e};
static const uint8_t hooks[16] = {0x21, 0x31, 0x8c, 0x60, 0x97, 0x14, 0x32, 0x48,
                                  0x8c, 0xa6, 0x41, 0xff, 0x73, 0x24, 0xc8, 0xf2};

static const uintptr_t *find_table(const uint8_t *id)
{
    int (*get)(const void **, const void *) = (int (*)(const void **, const void *))dlsym(
        dlopen("libcuda.so.1", RTLD_NOW), "cuGetExportTable");
    const void *table = NULL;

    return get && !get(&table, id) ? table : NULL;
}

int cufftPlan1d(int *plan, int length, int type, int batch)
{
    const uintptr_t *table = find_table(modules);

    *plan = length + type + batch;
    return !table || ((slot *)table[7])(0, 0, 0, 4711) != 1;
}

int cufftExecC2C(int plan, void *from, void *to, int direction)
{
    const uintptr_t *table = find_table(hooks);
    int number = getenv("STAND_IN_UNKNOWN") ? 5 : 4;

    return !plan || from != to || direction != -1 || !table ||
           ((slot *)table[number])(1, (uintptr_t)from, 3, 4) != 0;
}
