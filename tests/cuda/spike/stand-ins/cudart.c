// SPDX-License-Identifier: MIT
/* libcudart.so.13 as far as the spike calls it: it asks the driver as NVIDIA's runtime does, for a
 * table that is known, or with STAND_IN_UNKNOWN=1 for one that nobody knows. */
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

int cudaGetDeviceCount(int *count)
{
    static const uint8_t known[16] = {0x42, 0xd8, 0x5a, 0x81, 0x23, 0xf6, 0xcb, 0x47,
                                      0x82, 0x98, 0xf6, 0xe7, 0x8a, 0x3a, 0xec, 0xdc};
    static const uint8_t unknown[16] = {0x13, 0x37};
    int (*find)(const char *, void **, int, uint64_t, int *);
    int (*get_table)(const void **, const void *) = NULL;
    const void *table;
    int status;

    find = (int (*)(const char *, void **, int, uint64_t, int *))dlsym(
        dlopen("libcuda.so.1", RTLD_NOW), "cuGetProcAddress_v2");
    if (!find || find("cuGetExportTable", (void **)&get_table, 12000, 0, &status) || !get_table)
        return 1;
    get_table(&table, getenv("STAND_IN_UNKNOWN") ? unknown : known);
    *count = 1;
    return 0;
}

int cudaMalloc(void **at, size_t bytes)
{
    *at = NULL;
    return !bytes;
}

int cudaMemset(void *at, int value, size_t bytes)
{
    return at || value != 1 || !bytes;
}

int cudaDeviceSynchronize(void)
{
    return 0;
}
