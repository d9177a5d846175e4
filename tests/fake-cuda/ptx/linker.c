// SPDX-License-Identifier: MIT
/* The JIT's linker: what it makes of texts of PTX is one text. */
#include "content.h"

#include <stdlib.h>
#include <string.h>

#define INPUT_PTX       1
#define INPUT_FATBINARY 2

struct linker {
    char *text;
    size_t bytes;
};

static CUresult create(void **made)
{
    if (!made)
        return CUDA_ERROR_INVALID_VALUE;
    *made = calloc(1, sizeof(struct linker));
    return *made ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult append(struct linker *linker, const char *text, size_t bytes)
{
    char *more = realloc(linker->text, linker->bytes + bytes + 2);

    if (!more)
        return CUDA_ERROR_OUT_OF_MEMORY;
    memcpy(more + linker->bytes, text, bytes);
    linker->text = more;
    linker->bytes += bytes;
    memcpy(linker->text + linker->bytes, "\n", 2);
    linker->bytes++;
    return CUDA_SUCCESS;
}

static CUresult add(void *state, int type, const void *data, size_t bytes)
{
    CUresult result;
    bool is_image;
    char *text;

    if (!state || !data || !content_is_on())
        return state ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
    if (type == INPUT_PTX)
        return append(state, data, strnlen(data, bytes));
    text = type == INPUT_FATBINARY ? ptx_unpack(data, image_architecture(), &is_image) : NULL;
    if (!text)
        return (CUresult)209;
    result = append(state, text, strlen(text));
    free(text);
    return result;
}

CUresult cuLinkCreate_v2(unsigned int count, void *options, void **values, void **state)
{
    ENTER();
    (void)count;
    (void)options;
    (void)values;
    return create(state);
}

CUresult cuLinkAddData_v2(void *state, int type, void *data, size_t bytes, const char *name,
                          unsigned int count, void *options, void **values)
{
    ENTER();
    (void)name;
    (void)count;
    (void)options;
    (void)values;
    return add(state, type, data, bytes);
}

CUresult cuLinkComplete(void *state, void **image, size_t *bytes)
{
    struct linker *linker = state;

    ENTER();
    if (!linker)
        return CUDA_ERROR_INVALID_HANDLE;
    if (image)
        *image = linker->text;
    if (bytes)
        *bytes = linker->bytes + 1;
    return CUDA_SUCCESS;
}

CUresult cuLinkDestroy(void *state)
{
    struct linker *linker = state;

    ENTER();
    if (!linker)
        return CUDA_ERROR_INVALID_HANDLE;
    free(linker->text);
    free(linker);
    return CUDA_SUCCESS;
}
