// SPDX-License-Identifier: MIT
/*
 * Modules and libraries: code, and the variables that it has on the GPU, which can be large. Only
 * NVML says how much they take. What does not fit is dropped again.
 */
#include "charge.h"
#include "join.h"
#include "own.h"
#include "real.h"
#include "room.h"

static bool own_fits(struct gpu *gpu)
{
    return own_settle(gpu) || (room_make(gpu) && own_settle(gpu));
}

/* After a call that may have loaded into the current context. */
static CUresult settle_loaded(CUresult result)
{
    struct gpu *gpu = result == CUDA_SUCCESS && !real_depth ? gpu_current() : NULL;

    return !gpu || own_fits(gpu) ? result : gpu_refusal(gpu);
}

static void settle_current(void)
{
    struct gpu *gpu = gpu_current();

    if (gpu)
        own_settle(gpu);
}

static CUresult loaded_module(CUresult result, CUmodule *module)
{
    CUresult refused = settle_loaded(result);

    if (refused == result)
        return result;
    DRIVER(cuModuleUnload, *module);
    settle_current();
    *module = NULL;
    return refused;
}

CUresult cuModuleLoad(CUmodule *module, const char *fname)
{
    return loaded_module(DRIVER(cuModuleLoad, module, fname), module);
}

CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
    return loaded_module(DRIVER(cuModuleLoadData, module, image), module);
}

CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int numOptions,
                            CUjit_option *options, void **optionValues)
{
    return loaded_module(
        DRIVER(cuModuleLoadDataEx, module, image, numOptions, options, optionValues), module);
}

CUresult cuModuleLoadFatBinary(CUmodule *module, const void *fatCubin)
{
    return loaded_module(DRIVER(cuModuleLoadFatBinary, module, fatCubin), module);
}

CUresult cuModuleUnload(CUmodule hmod)
{
    CUresult result = DRIVER(cuModuleUnload, hmod);

    if (result == CUDA_SUCCESS && !real_depth)
        settle_current();
    return result;
}

/*
 * Unless the program wants it otherwise, libraries are loaded where they are used. Programs have
 * hundreds, and NVML takes its time.
 */
static bool loads_later(void)
{
    CUmoduleLoadingMode mode = CU_MODULE_EAGER_LOADING;

    DRIVER(cuModuleGetLoadingMode, &mode);
    return mode == CU_MODULE_LAZY_LOADING;
}

/* A library is of all contexts. One whose slice is not there has nothing loaded. */
static void note_full(struct gpu *gpu, void *full)
{
    if (gpu->member && !own_fits(gpu))
        *(bool *)full = true;
}

static void settle_each(struct gpu *gpu, void *data)
{
    (void)data;
    own_settle(gpu);
}

static CUresult loaded_library(CUresult result, CUlibrary *library)
{
    bool full = false;

    if (result != CUDA_SUCCESS || real_depth || loads_later())
        return result;
    gpu_each(note_full, &full);
    if (!full)
        return result;
    DRIVER(cuLibraryUnload, *library);
    gpu_each(settle_each, NULL);
    *library = NULL;
    return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuLibraryLoadData(CUlibrary *library, const void *code, CUjit_option *jitOptions,
                           void **jitOptionsValues, unsigned int numJitOptions,
                           CUlibraryOption *libraryOptions, void **libraryOptionValues,
                           unsigned int numLibraryOptions)
{
    return loaded_library(DRIVER(cuLibraryLoadData, library, code, jitOptions, jitOptionsValues,
                                 numJitOptions, libraryOptions, libraryOptionValues,
                                 numLibraryOptions),
                          library);
}

CUresult cuLibraryLoadFromFile(CUlibrary *library, const char *fileName, CUjit_option *jitOptions,
                               void **jitOptionsValues, unsigned int numJitOptions,
                               CUlibraryOption *libraryOptions, void **libraryOptionValues,
                               unsigned int numLibraryOptions)
{
    return loaded_library(DRIVER(cuLibraryLoadFromFile, library, fileName, jitOptions,
                                 jitOptionsValues, numJitOptions, libraryOptions,
                                 libraryOptionValues, numLibraryOptions),
                          library);
}

CUresult cuLibraryUnload(CUlibrary library)
{
    CUresult result = DRIVER(cuLibraryUnload, library);

    if (result == CUDA_SUCCESS && !real_depth)
        gpu_each(settle_each, NULL);
    return result;
}

/*
 * A context has a library from here on, unless it was loaded at once. What does not fit stays until
 * the library is unloaded, but the program does not get it.
 */
CUresult cuLibraryGetModule(CUmodule *pMod, CUlibrary library)
{
    return settle_loaded(DRIVER(cuLibraryGetModule, pMod, library));
}

CUresult cuLibraryGetGlobal(CUdeviceptr *dptr, size_t *bytes, CUlibrary library, const char *name)
{
    return settle_loaded(DRIVER(cuLibraryGetGlobal, dptr, bytes, library, name));
}
