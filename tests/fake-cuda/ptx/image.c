// SPDX-License-Identifier: MIT
/*
 * Images with PTX, as modules of the fake driver: their variables are in the card's memory, their
 * kernels have handles by which they are launched.
 */
#include "content.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../card.h"

#define ARCHITECTURE 100
#define MOST_ALIGN   256
#define MOST_SHARED  (227u << 10)
#define MOST_THREADS 1024u
#define HANDLE_ROWS  1024u
#define MOST_FILE    (256l << 20)

#define NO_BINARY     ((CUresult)209)
#define INVALID_PTX   ((CUresult)218)
#define INVALID_IMAGE ((CUresult)200)

/* What the parameters of a launch are given in, if not by their addresses. */
#define PARAMETERS_AT    ((void *)1)
#define PARAMETERS_BYTES ((void *)2)

/* CUfunction and CUkernel. */
struct handle {
    struct image *image;
    const struct ptx_function *kernel;
    struct handle *in_image, *in_row;
};

struct image {
    struct ptx_module *module;
    struct handle *handles;
    CUdeviceptr variables;
    uint64_t bytes;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct handle *rows[HANDLE_ROWS];
static _Thread_local struct ptx_error last_error;

static struct handle **row_of(const void *handle)
{
    return &rows[((uintptr_t)handle >> 4) % HANDLE_ROWS];
}

static struct handle *find_handle(const void *handle)
{
    struct handle *found;

    pthread_mutex_lock(&lock);
    found = *row_of(handle);
    while (found && found != handle)
        found = found->in_row;
    pthread_mutex_unlock(&lock);
    return found;
}

static void add_handles(struct image *image)
{
    const struct ptx_function *kernel;
    struct handle **last = &image->handles;

    pthread_mutex_lock(&lock);
    for (unsigned int i = 0; (kernel = ptx_kernel_at(image->module, i)); i++) {
        struct handle *handle = calloc(1, sizeof(*handle));

        if (!handle)
            abort();
        *handle = (struct handle){.image = image, .kernel = kernel, .in_row = *row_of(handle)};
        *row_of(handle) = handle;
        *last = handle;
        last = &handle->in_image;
    }
    pthread_mutex_unlock(&lock);
}

static void remove_handles(struct image *image)
{
    pthread_mutex_lock(&lock);
    while (image->handles) {
        struct handle *handle = image->handles, **at = row_of(handle);

        while (*at != handle)
            at = &(*at)->in_row;
        *at = handle->in_row;
        image->handles = handle->in_image;
        free(handle);
    }
    pthread_mutex_unlock(&lock);
}

/* One after the other in memory of their own. */
static CUresult place_variables(struct image *image)
{
    struct ptx_range range;
    uint64_t bytes = 0;

    for (struct ptx_variable *at = ptx_variables(image->module); at; at = at->next) {
        uint64_t align = at->align > 16 ? at->align : 16;

        bytes = (bytes + align - 1) / align * align;
        at->address = bytes;
        bytes += at->bytes;
    }
    image->bytes = bytes;
    if (!bytes)
        return CUDA_SUCCESS;
    if (fake_address(bytes + MOST_ALIGN, fake_device(), &image->variables) != CUDA_SUCCESS)
        return CUDA_ERROR_OUT_OF_MEMORY;
    /* Whoever unloads the image may have ended the context. */
    fake_keep(image->variables);
    range = content_find(NULL, image->variables);
    for (struct ptx_variable *at = ptx_variables(image->module); at; at = at->next)
        at->address += image->variables;
    for (struct ptx_variable *at = ptx_variables(image->module); at; at = at->next)
        ptx_initialise(image->module, at, range.host + (at->address - image->variables));
    return CUDA_SUCCESS;
}

unsigned int image_architecture(void)
{
    return (unsigned int)card_setting("FAKE_CUDA_CAPABILITY", 100);
}

/* A number is one of the older tests' images. */
static CUresult refuse(const char *data, bool is_image)
{
    const char *reason = is_image ? "there is no PTX in it for this card" : "it is no image";

    snprintf(last_error.reason, sizeof(last_error.reason), "%s", reason);
    if (*data >= '0' && *data <= '9')
        return CUDA_SUCCESS;
    return is_image ? NO_BINARY : INVALID_IMAGE;
}

CUresult image_load(struct image **made, const void *data)
{
    struct image *image;
    CUresult result;
    bool is_image;
    char *text;

    *made = NULL;
    last_error = (struct ptx_error){0};
    if (!content_is_on())
        return CUDA_SUCCESS;
    text = ptx_unpack(data, image_architecture(), &is_image);
    if (!text)
        return refuse(data, is_image);
    image = calloc(1, sizeof(*image));
    image->module = ptx_parse(text, strlen(text), &last_error);
    free(text);
    if (!image->module && card_setting("FAKE_CUDA_VERBOSE", 0))
        fprintf(stderr, "fake card: PTX, line %u: %s\n", last_error.line, last_error.reason);
    result = image->module ? place_variables(image) : INVALID_PTX;
    if (result != CUDA_SUCCESS) {
        ptx_free(image->module);
        free(image);
        return result;
    }
    add_handles(image);
    *made = image;
    return CUDA_SUCCESS;
}

CUresult image_load_file(struct image **made, const char *path)
{
    FILE *file = content_is_on() ? fopen(path, "rb") : NULL;
    CUresult result = CUDA_SUCCESS;
    char *data = NULL;
    long bytes = 0;

    *made = NULL;
    if (!file)
        return CUDA_SUCCESS;
    if (!fseek(file, 0, SEEK_END))
        bytes = ftell(file);
    rewind(file);
    if (bytes > 0 && bytes < MOST_FILE)
        data = calloc(1, (size_t)bytes + 64);
    if (data && fread(data, 1, (size_t)bytes, file) == (size_t)bytes)
        result = image_load(made, data);
    free(data);
    fclose(file);
    return result;
}

void image_unload(struct image *image)
{
    if (!image)
        return;
    remove_handles(image);
    if (image->variables)
        fake_forget(image->variables);
    ptx_free(image->module);
    free(image);
}

uint64_t image_bytes(const struct image *image)
{
    return image ? image->bytes : 0;
}

CUresult image_function(const struct image *image, const char *name, CUfunction *function)
{
    const struct ptx_function *kernel = ptx_kernel(image->module, name);
    struct handle *handle = image->handles;

    while (handle && handle->kernel != kernel)
        handle = handle->in_image;
    if (!handle)
        return CUDA_ERROR_NOT_FOUND;
    *function = (CUfunction)handle;
    return CUDA_SUCCESS;
}

CUfunction image_function_at(const struct image *image, unsigned int at)
{
    struct handle *handle = image->handles;

    while (handle && at--)
        handle = handle->in_image;
    return (CUfunction)handle;
}

CUresult image_global(const struct image *image, const char *name, CUdeviceptr *at, size_t *bytes)
{
    const struct ptx_variable *variable = ptx_variables(image->module);

    while (variable && strcmp(variable->name, name) != 0)
        variable = variable->next;
    if (!variable)
        return CUDA_ERROR_NOT_FOUND;
    if (at)
        *at = variable->address;
    if (bytes)
        *bytes = variable->bytes;
    return CUDA_SUCCESS;
}

/* Options of the JIT: buffers for what it says and for errors, each with its size. */
void image_explain(unsigned int count, const unsigned int *options, void **values)
{
    char *buffer = NULL;
    size_t bytes = 0;

    for (unsigned int i = 0; options && values && i < count; i++) {
        if (options[i] == 5)
            buffer = values[i];
        if (options[i] == 6)
            bytes = (size_t)(uintptr_t)values[i] & UINT32_MAX;
    }
    if (buffer && bytes)
        snprintf(buffer, bytes, "%s", last_error.reason);
}

static CUresult copy_parameters(const struct ptx_function *kernel, void **parameters,
                                uint8_t *bytes)
{
    const struct ptx_parameter *wanted;
    unsigned int count = ptx_parameters(kernel, &wanted);

    if (count && !parameters)
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned int i = 0; i < count; i++) {
        if (!parameters[i])
            return CUDA_ERROR_INVALID_VALUE;
        memcpy(bytes + wanted[i].offset, parameters[i], wanted[i].bytes);
    }
    return CUDA_SUCCESS;
}

/* A list of what follows, until NULL. */
static CUresult copy_buffer(const struct ptx_function *kernel, void **extra, uint8_t *bytes)
{
    const void *from = NULL;
    size_t size = 0;

    for (; *extra; extra += 2) {
        if (*extra == PARAMETERS_AT)
            from = extra[1];
        else if (*extra == PARAMETERS_BYTES)
            size = *(size_t *)extra[1];
        else
            return CUDA_ERROR_INVALID_VALUE;
    }
    if (!from && ptx_parameter_bytes(kernel))
        return CUDA_ERROR_INVALID_VALUE;
    if (size > ptx_parameter_bytes(kernel))
        size = ptx_parameter_bytes(kernel);
    memcpy(bytes, from, size);
    return CUDA_SUCCESS;
}

static bool fits(const struct shape *shape)
{
    uint64_t threads = (uint64_t)shape->block[0] * shape->block[1];

    for (unsigned int i = 0; i < 3; i++)
        if (!shape->grid[i] || !shape->block[i] || shape->block[i] > MOST_THREADS ||
            shape->grid[i] > (i ? UINT16_MAX : INT32_MAX))
            return false;
    return threads * shape->block[2] <= MOST_THREADS && shape->shared <= MOST_SHARED;
}

struct effect *effect_of_launch(CUfunction function, const struct shape *shape, void **parameters,
                                void **extra, CUresult *result)
{
    const struct handle *handle = content_is_on() ? find_handle(function) : NULL;
    struct effect *effect = NULL;
    struct ptx_launch launch;
    uint8_t *bytes;

    *result = CUDA_SUCCESS;
    if (!handle)
        return NULL;
    launch = (struct ptx_launch){.module = handle->image->module,
                                 .kernel = handle->kernel,
                                 .dynamic_shared = shape->shared,
                                 .is_cooperative = shape->is_cooperative,
                                 .find = content_find};
    memcpy(launch.grid, shape->grid, sizeof(launch.grid));
    memcpy(launch.block, shape->block, sizeof(launch.block));
    bytes = calloc(1, ptx_parameter_bytes(handle->kernel) + 8);
    if (!fits(shape) || !bytes)
        *result = CUDA_ERROR_INVALID_VALUE;
    else
        *result = extra && !parameters ? copy_buffer(handle->kernel, extra, bytes)
                                       : copy_parameters(handle->kernel, parameters, bytes);
    if (*result == CUDA_SUCCESS)
        effect = effect_make_launch(&launch, bytes);
    free(bytes);
    return effect;
}

CUresult image_parameter(const void *function, size_t at, size_t *offset, size_t *bytes)
{
    const struct handle *handle = find_handle(function);
    const struct ptx_parameter *list;

    if (!handle || at >= ptx_parameters(handle->kernel, &list))
        return CUDA_ERROR_INVALID_VALUE;
    if (offset)
        *offset = list[at].offset;
    if (bytes)
        *bytes = list[at].bytes;
    return CUDA_SUCCESS;
}

/* As the driver numbers them. */
bool image_attribute(const void *function, unsigned int attribute, int *value)
{
    const struct handle *handle = content_is_on() ? find_handle(function) : NULL;

    if (!handle)
        return false;
    switch (attribute) {
    case 1:
        *value = (int)ptx_shared_bytes(handle->kernel);
        return true;
    case 3:
        *value = (int)ptx_local_bytes(handle->kernel);
        return true;
    case 4:
        *value = (int)ptx_registers(handle->kernel);
        return true;
    default:
        return false;
    }
}

CUresult cuFuncGetName(const char **name, CUfunction function)
{
    const struct handle *handle = find_handle(function);

    ENTER();
    if (!name || !handle)
        return CUDA_ERROR_INVALID_HANDLE;
    *name = ptx_name(handle->kernel);
    return CUDA_SUCCESS;
}

/* A kernel of a library is its function, too. */
CUresult cuKernelGetFunction(CUfunction *function, void *kernel)
{
    ENTER();
    if (!function)
        return CUDA_ERROR_INVALID_VALUE;
    *function = kernel;
    return CUDA_SUCCESS;
}

/* Modules that are numbers have no variables; without content all of them are at 0. */
static CUresult module_global(const void *module, const char *name, CUdeviceptr *at, size_t *bytes)
{
    const struct image *image = module ? code_image(module) : NULL;

    if (image && name)
        return image_global(image, name, at, bytes);
    if (at)
        *at = 0;
    if (bytes)
        *bytes = 0;
    return content_is_on() ? CUDA_ERROR_NOT_FOUND : CUDA_SUCCESS;
}

CUresult cuModuleGetGlobal_v2(CUdeviceptr *at, size_t *bytes, CUmodule module, const char *name)
{
    ENTER();
    return module_global(module, name, at, bytes);
}

CUresult cuLibraryGetKernel(void **kernel, CUlibrary library, const char *name)
{
    ENTER();
    if (!library || !kernel)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!code_image(library)) {
        *kernel = (void *)(uintptr_t)1000;
        return CUDA_SUCCESS;
    }
    return image_function(code_image(library), name, (CUfunction *)kernel);
}

static CUresult count_functions(const void *module, unsigned int *count)
{
    if (!module || !count)
        return CUDA_ERROR_INVALID_HANDLE;
    for (*count = 0; code_image(module) && image_function_at(code_image(module), *count);)
        ++*count;
    return CUDA_SUCCESS;
}

static CUresult list_functions(const void *module, CUfunction *list, unsigned int most)
{
    CUfunction function = NULL;

    if (!module || !list)
        return CUDA_ERROR_INVALID_HANDLE;
    for (unsigned int i = 0; i < most && code_image(module); i++) {
        function = image_function_at(code_image(module), i);
        if (!function)
            break;
        list[i] = function;
    }
    return CUDA_SUCCESS;
}

CUresult cuModuleGetFunctionCount(unsigned int *count, CUmodule module)
{
    ENTER();
    return count_functions(module, count);
}

CUresult cuModuleEnumerateFunctions(CUfunction *list, unsigned int most, CUmodule module)
{
    ENTER();
    return list_functions(module, list, most);
}

CUresult cuLibraryGetKernelCount(unsigned int *count, CUlibrary library)
{
    ENTER();
    return count_functions(library, count);
}

CUresult cuLibraryEnumerateKernels(void **list, unsigned int most, CUlibrary library)
{
    ENTER();
    return list_functions(library, (CUfunction *)list, most);
}
