// SPDX-License-Identifier: MIT
/*
 * Modules and libraries. An image is a number in text: how many bytes it takes of the card. A
 * module takes them at once, and so does a library with CUDA_MODULE_LOADING=EAGER. Else it takes
 * them in the context in which it is first asked for. A function, whose name is such a number,
 * takes them when it is asked for. With FAKE_CUDA_CONTENT an image may have PTX, too
 * (ptx/content.h).
 */
#include "fake.h"

#include <stdlib.h>
#include <string.h>

#include "ptx/content.h"

/* @image: NULL: a number. */
struct code {
    struct image *image;
    uint64_t wanted;
    uint64_t taken;
    CUcontext context;
};

static uint64_t bytes_of(const char *text)
{
    return strtoull(text, NULL, 10);
}

/* It ends with its context. */
static CUresult take(struct code *code, uint64_t bytes)
{
    CUresult result = fake_grow_context(bytes);

    if (result != CUDA_SUCCESS)
        return result;
    code->context = fake_current();
    code->taken += bytes;
    return CUDA_SUCCESS;
}

struct image *code_image(const void *module)
{
    return ((const struct code *)module)->image;
}

static CUresult make(struct code **made, struct image *image, uint64_t bytes, bool at_once)
{
    CUresult result = CUDA_SUCCESS;

    *made = calloc(1, sizeof(**made));
    (*made)->image = image;
    (*made)->wanted = bytes;
    if (at_once)
        result = take(*made, (*made)->wanted);
    if (result != CUDA_SUCCESS) {
        image_unload(image);
        free(*made);
    }
    return result;
}

static CUresult load(struct code **made, const char *data, bool at_once)
{
    struct image *image;
    CUresult result;

    if (!made || !data)
        return CUDA_ERROR_INVALID_VALUE;
    if (!spike_compiles())
        return FAKE_COMPILER_NOT_FOUND;
    result = image_load(&image, data);
    if (result != CUDA_SUCCESS)
        return result;
    return make(made, image, image ? image_bytes(image) : bytes_of(data), at_once);
}

/* The name of a file, or a number. */
static CUresult load_file(struct code **made, const char *name, bool at_once)
{
    struct image *image;
    CUresult result;

    if (!made || !name)
        return CUDA_ERROR_INVALID_VALUE;
    result = image_load_file(&image, name);
    if (result != CUDA_SUCCESS)
        return result;
    return make(made, image, image ? image_bytes(image) : bytes_of(name), at_once);
}

static bool is_eager(void)
{
    const char *mode = getenv("CUDA_MODULE_LOADING");

    return mode && !strcmp(mode, "EAGER");
}

CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode *mode)
{
    ENTER();
    *mode = is_eager() ? CU_MODULE_EAGER_LOADING : CU_MODULE_LAZY_LOADING;
    return CUDA_SUCCESS;
}

static CUresult unload(struct code *code)
{
    if (!code)
        return CUDA_ERROR_INVALID_HANDLE;
    fake_shrink_context(code->context, code->taken);
    image_unload(code->image);
    free(code);
    return CUDA_SUCCESS;
}

CUresult cuModuleLoad(CUmodule *module, const char *name)
{
    ENTER();
    return load_file((struct code **)module, name, true);
}

CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
    ENTER();
    return load((struct code **)module, image, true);
}

CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int count, void *options,
                            void **values)
{
    CUresult result;

    ENTER();
    result = load((struct code **)module, image, true);
    if (result != CUDA_SUCCESS)
        image_explain(count, options, values);
    return result;
}

CUresult cuModuleLoadFatBinary(CUmodule *module, const void *image)
{
    ENTER();
    return load((struct code **)module, image, true);
}

CUresult cuModuleUnload(CUmodule module)
{
    ENTER();
    return unload((struct code *)module);
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
    ENTER();
    if (!module)
        return CUDA_ERROR_INVALID_HANDLE;
    if (code_image(module))
        return image_function(code_image(module), name, function);
    *function = (CUfunction)(uintptr_t)1000;
    return take((struct code *)module, bytes_of(name));
}

CUresult cuLibraryLoadData(CUlibrary *library, const void *image, void *options, void **values,
                           unsigned int count, void *more, void **more_values,
                           unsigned int more_count)
{
    ENTER();
    (void)options;
    (void)values;
    (void)count;
    (void)more;
    (void)more_values;
    (void)more_count;
    return load((struct code **)library, image, is_eager());
}

CUresult cuLibraryLoadFromFile(CUlibrary *library, const char *name, void *options, void **values,
                               unsigned int count, void *more, void **more_values,
                               unsigned int more_count)
{
    ENTER();
    (void)options;
    (void)values;
    (void)count;
    (void)more;
    (void)more_values;
    (void)more_count;
    return load_file((struct code **)library, name, is_eager());
}

CUresult cuLibraryUnload(CUlibrary library)
{
    ENTER();
    return unload((struct code *)library);
}

/* That of the library is the library. */
CUresult cuLibraryGetModule(CUmodule *module, CUlibrary library)
{
    struct code *code = (struct code *)library;

    ENTER();
    if (!code)
        return CUDA_ERROR_INVALID_HANDLE;
    *module = (CUmodule)library;
    return take(code, code->wanted - code->taken);
}

CUresult cuLibraryGetGlobal(CUdeviceptr *at, size_t *bytes, CUlibrary library, const char *name)
{
    struct code *code = (struct code *)library;

    ENTER();
    if (!code)
        return CUDA_ERROR_INVALID_HANDLE;
    if (code->image) {
        CUresult result = image_global(code->image, name, at, bytes);

        return result == CUDA_SUCCESS ? take(code, code->wanted - code->taken) : result;
    }
    *at = 4096;
    *bytes = code->wanted;
    return take(code, code->wanted - code->taken);
}
