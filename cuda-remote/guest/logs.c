// SPDX-License-Identifier: MIT
/* What the driver says in its log, which is the worker's: it goes into a file of the program's. */
#include "remote.h"

#include <stdio.h>
#include <string.h>

/* The driver has no more. */
#define LOG_MOST 25600u

CUresult cuLogsDumpToMemory(unsigned int *iterator, char *buffer, size_t *size, unsigned int flags);

EXPORT CUresult cuLogsDumpToFile(unsigned int *iterator, const char *path, unsigned int flags);
CUresult cuLogsDumpToFile(unsigned int *iterator, const char *path, unsigned int flags)
{
    char text[LOG_MOST + 1];
    size_t bytes = sizeof(text);
    CUresult result =
        path ? cuLogsDumpToMemory(iterator, text, &bytes, flags) : CUDA_ERROR_INVALID_VALUE;
    FILE *file;
    bool is_written;

    if (result != CUDA_SUCCESS)
        return result;
    file = fopen(path, "we");
    if (!file)
        return CUDA_ERROR_INVALID_VALUE;
    bytes = strnlen(text, sizeof(text));
    is_written = fwrite(text, 1, bytes, file) == bytes;
    return fclose(file) == 0 && is_written ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
