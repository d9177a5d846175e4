// SPDX-License-Identifier: MIT
/*
 * Images of code. An image has no length among its arguments: it is in the image, by the formats of
 * ELF and of fat binaries; what is neither is text.
 */
#include "remote.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FATBIN_WRAPPER 0x466243b1u
#define FATBIN         0xba55ed50u

enum {
    OPTION_INFO_LOG = 3,
    OPTION_INFO_LOG_BYTES = 4,
    OPTION_ERROR_LOG = 5,
    OPTION_ERROR_LOG_BYTES = 6,
};

enum { INPUT_PTX = 1 };

struct wrapper {
    uint32_t magic, version;
    const void *fatbin;
    const void *prelinked;
};

struct fatbin {
    uint32_t magic;
    uint16_t version, header;
    uint64_t bytes;
};

static size_t larger_size(size_t a, size_t b)
{
    return a > b ? a : b;
}

static size_t elf_bytes(const Elf64_Ehdr *elf)
{
    const Elf64_Shdr *sections = (const void *)((const uint8_t *)elf + elf->e_shoff);
    size_t bytes = larger_size(elf->e_shoff + (size_t)elf->e_shnum * elf->e_shentsize,
                               elf->e_phoff + (size_t)elf->e_phnum * elf->e_phentsize);

    for (unsigned int i = 0; elf->e_shoff && i < elf->e_shnum; i++)
        if (sections[i].sh_type != SHT_NOBITS)
            bytes = larger_size(bytes, sections[i].sh_offset + sections[i].sh_size);
    return bytes;
}

/* @image: NULL when this returns if it is none. */
static size_t image_bytes(const void **image)
{
    const struct wrapper *wrapper = *image;
    const struct fatbin *fatbin;

    if (wrapper->magic == FATBIN_WRAPPER)
        *image = wrapper->fatbin;
    fatbin = *image;
    if (fatbin && fatbin->magic == FATBIN)
        return fatbin->header + fatbin->bytes;
    if (fatbin && !memcmp(fatbin, ELFMAG, SELFMAG))
        return elf_bytes(*image);
    return fatbin ? strlen(*image) + 1 : 0;
}

/* The program's options, and where their results go. */
struct options {
    unsigned int count;
    void **values;
    struct hand_option sent[HAND_OPTIONS_MOST];
    uint64_t results[HAND_OPTIONS_MOST];
    struct part info, error;
};

static bool use_options(struct options *options, unsigned int count, const unsigned int *ids,
                        void **values)
{
    *options = (struct options){.count = count, .values = values};
    if (count > HAND_OPTIONS_MOST || (count && (!ids || !values)))
        return false;
    for (unsigned int i = 0; i < count; i++) {
        bool is_log = ids[i] == OPTION_INFO_LOG || ids[i] == OPTION_ERROR_LOG;
        struct part *log = ids[i] <= OPTION_INFO_LOG_BYTES ? &options->info : &options->error;

        options->sent[i] =
            (struct hand_option){.id = ids[i], .value = is_log ? 0 : (uintptr_t)values[i]};
        if (is_log)
            log->at = values[i];
        else if (ids[i] == OPTION_INFO_LOG_BYTES || ids[i] == OPTION_ERROR_LOG_BYTES)
            log->bytes = (uint32_t)(uintptr_t)values[i];
    }
    if (!options->info.at)
        options->info.bytes = 0;
    if (!options->error.at)
        options->error.bytes = 0;
    options->info.bytes = options->info.bytes > HAND_LOG_MOST ? HAND_LOG_MOST : options->info.bytes;
    options->error.bytes =
        options->error.bytes > HAND_LOG_MOST ? HAND_LOG_MOST : options->error.bytes;
    return true;
}

/* The driver writes results in place of some values. */
static void take_results(struct options *options, const struct exchange *load)
{
    if (load->out_bytes < options->count * sizeof(uint64_t))
        return;
    for (unsigned int i = 0; i < options->count; i++)
        if (options->sent[i].id != OPTION_INFO_LOG && options->sent[i].id != OPTION_ERROR_LOG)
            options->values[i] = (void *)(uintptr_t)options->results[i];
}

static CUresult send_image(unsigned int number, struct hand_image *head, const void *image,
                           struct options *options, const struct hand_option *library_options,
                           const char *name, uint64_t *made)
{
    struct exchange load = {.number = number, .head = head, .head_bytes = sizeof(*head)};
    CUresult result;

    head->options = options->count;
    head->info_log = (uint32_t)options->info.bytes;
    head->error_log = (uint32_t)options->error.bytes;
    head->name_bytes = name ? (uint32_t)strnlen(name, HAND_NAME_MOST - 1) + 1 : 0;
    exchange_in(&load, image, head->bytes);
    exchange_in(&load, options->sent, options->count * sizeof(options->sent[0]));
    exchange_in(&load, library_options, head->library_options * sizeof(*library_options));
    exchange_in(&load, name, head->name_bytes);
    exchange_out(&load, options->results, options->count * sizeof(options->results[0]));
    exchange_out(&load, options->info.at, options->info.bytes);
    exchange_out(&load, options->error.at, options->error.bytes);
    result = exchange_run(&load);
    take_results(options, &load);
    *made = load.extra;
    return result;
}

static CUresult load_module(unsigned int number, CUmodule *module, const void *image,
                            unsigned int count, const unsigned int *ids, void **values)
{
    struct hand_image head = {0};
    struct options options;
    uint64_t made;
    CUresult result;

    if (!module || !image || !use_options(&options, count, ids, values))
        return CUDA_ERROR_INVALID_VALUE;
    head.bytes = image_bytes(&image);
    result = send_image(number, &head, image, &options, NULL, NULL, &made);
    if (result == CUDA_SUCCESS)
        *module = (CUmodule)(uintptr_t)object_of_number(made);
    return result;
}

EXPORT CUresult cuModuleLoadData(CUmodule *module, const void *image);
CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
    return load_module(CALL_cuModuleLoadData, module, image, 0, NULL, NULL);
}

EXPORT CUresult cuModuleLoadFatBinary(CUmodule *module, const void *image);
CUresult cuModuleLoadFatBinary(CUmodule *module, const void *image)
{
    return load_module(CALL_cuModuleLoadFatBinary, module, image, 0, NULL, NULL);
}

EXPORT CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int count,
                                   unsigned int *ids, void **values);
CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int count,
                            unsigned int *ids, void **values)
{
    return load_module(CALL_cuModuleLoadDataEx, module, image, count, ids, values);
}

/* Files are the program's, which the worker does not see. NULL: it cannot be read. */
static void *read_file(const char *path, size_t *size)
{
    FILE *file = path ? fopen(path, "rbe") : NULL;
    uint8_t *data = NULL;
    long bytes = -1;

    if (file && fseek(file, 0, SEEK_END) == 0)
        bytes = ftell(file);
    if (bytes >= 0 && fseek(file, 0, SEEK_SET) == 0)
        data = calloc(1, (size_t)bytes + 64);
    if (data && fread(data, 1, (size_t)bytes, file) != (size_t)bytes) {
        free(data);
        data = NULL;
    }
    if (file)
        fclose(file);
    *size = data ? (size_t)bytes : 0;
    return data;
}

#define CUDA_ERROR_FILE_NOT_FOUND ((CUresult)301)

EXPORT CUresult cuModuleLoad(CUmodule *module, const char *path);
CUresult cuModuleLoad(CUmodule *module, const char *path)
{
    size_t size;
    void *image = read_file(path, &size);
    CUresult result = image ? cuModuleLoadData(module, image) : CUDA_ERROR_FILE_NOT_FOUND;

    free(image);
    return result;
}

#define LIBRARY_OPTIONS                                                                            \
    unsigned int *ids, void **values, unsigned int count, unsigned int *library_ids,               \
        void **library_values, unsigned int library_count

EXPORT CUresult cuLibraryLoadData(CUlibrary *library, const void *image, LIBRARY_OPTIONS);
CUresult cuLibraryLoadData(CUlibrary *library, const void *image, LIBRARY_OPTIONS)
{
    struct hand_option library_options[8] = {{0}};
    struct hand_image head = {.library_options = library_count};
    struct options options;
    uint64_t made;
    CUresult result;

    if (!library || !image || library_count > 8 || (library_count && !library_ids) ||
        !use_options(&options, count, ids, values))
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned int i = 0; i < library_count; i++)
        library_options[i].id = library_ids[i];
    (void)library_values;
    head.bytes = image_bytes(&image);
    result =
        send_image(CALL_cuLibraryLoadData, &head, image, &options, library_options, NULL, &made);
    if (result == CUDA_SUCCESS)
        *library = (CUlibrary)(uintptr_t)object_of_number(made);
    return result;
}

EXPORT CUresult cuLibraryLoadFromFile(CUlibrary *library, const char *path, LIBRARY_OPTIONS);
CUresult cuLibraryLoadFromFile(CUlibrary *library, const char *path, LIBRARY_OPTIONS)
{
    size_t size;
    void *image = read_file(path, &size);
    CUresult result = image ? cuLibraryLoadData(library, image, ids, values, count, library_ids,
                                                library_values, library_count)
                            : CUDA_ERROR_FILE_NOT_FOUND;

    free(image);
    return result;
}

/*
 * A link: its options' buffers are the program's until it is destroyed, and get their text with
 * each call. What was linked is the program's as long.
 */
struct link {
    struct options options;
    void *linked;
};

typedef struct CUlinkState_st *CUlinkState;

static struct link *link_of(CUlinkState state, uint64_t *number)
{
    return object_kept((uintptr_t)state, number);
}

#define CREATE_LINK(name)                                                                          \
    EXPORT CUresult name(unsigned int count, unsigned int *ids, void **values,                     \
                         CUlinkState *state);                                                      \
    CUresult name(unsigned int count, unsigned int *ids, void **values, CUlinkState *state)        \
    {                                                                                              \
        return create_link(count, ids, values, state);                                             \
    }

static CUresult create_link(unsigned int count, unsigned int *ids, void **values,
                            CUlinkState *state)
{
    struct link *link = calloc(1, sizeof(*link));
    struct hand_image head = {0};
    uint64_t made;
    CUresult result = CUDA_ERROR_INVALID_VALUE;

    if (link && state && use_options(&link->options, count, ids, values))
        result = send_image(CALL_cuLinkCreate_v2, &head, "", &link->options, NULL, NULL, &made);
    if (result != CUDA_SUCCESS) {
        free(link);
        return result;
    }
    *state = (CUlinkState)(uintptr_t)object_of_number(made);
    object_keep((uintptr_t)*state, made, link);
    return CUDA_SUCCESS;
}
CREATE_LINK(cuLinkCreate)
CREATE_LINK(cuLinkCreate_v2)

static CUresult add_to_link(CUlinkState state, unsigned int type, const void *data, size_t bytes,
                            const char *name, unsigned int count, unsigned int *ids, void **values)
{
    struct hand_image head = {.bytes = bytes, .type = type};
    struct options options;
    struct link *link = link_of(state, &head.link);
    uint64_t made;

    if (!link || !data || !use_options(&options, count, ids, values))
        return link ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE;
    return send_image(CALL_cuLinkAddData_v2, &head, data, &options, NULL, name, &made);
}

#define ADD_TO_LINK(name)                                                                          \
    EXPORT CUresult name(CUlinkState state, unsigned int type, void *data, size_t bytes,           \
                         const char *called, unsigned int count, unsigned int *ids,                \
                         void **values);                                                           \
    CUresult name(CUlinkState state, unsigned int type, void *data, size_t bytes,                  \
                  const char *called, unsigned int count, unsigned int *ids, void **values)        \
    {                                                                                              \
        return add_to_link(state, type, data, bytes, called, count, ids, values);                  \
    }
ADD_TO_LINK(cuLinkAddData)
ADD_TO_LINK(cuLinkAddData_v2)

/* Of a file's text the 0 behind it is sent, too. The linker's messages have the file's name. */
static CUresult add_file_to_link(CUlinkState state, unsigned int type, const char *path,
                                 unsigned int count, unsigned int *ids, void **values)
{
    size_t size;
    void *data = read_file(path, &size);
    CUresult result = CUDA_ERROR_FILE_NOT_FOUND;

    if (data)
        result =
            add_to_link(state, type, data, size + (type == INPUT_PTX), path, count, ids, values);
    free(data);
    return result;
}

#define ADD_FILE_TO_LINK(name)                                                                     \
    EXPORT CUresult name(CUlinkState state, unsigned int type, const char *path,                   \
                         unsigned int count, unsigned int *ids, void **values);                    \
    CUresult name(CUlinkState state, unsigned int type, const char *path, unsigned int count,      \
                  unsigned int *ids, void **values)                                                \
    {                                                                                              \
        return add_file_to_link(state, type, path, count, ids, values);                            \
    }
ADD_FILE_TO_LINK(cuLinkAddFile)
ADD_FILE_TO_LINK(cuLinkAddFile_v2)

EXPORT CUresult cuLinkComplete(CUlinkState state, void **cubin, size_t *bytes);
CUresult cuLinkComplete(CUlinkState state, void **cubin, size_t *bytes)
{
    struct hand_object head;
    struct link *link = link_of(state, &head.object);
    struct exchange complete = {
        .number = CALL_cuLinkComplete, .head = &head, .head_bytes = sizeof(head)};
    struct exchange fetch = {.number = HAND_LINKED, .head = &head, .head_bytes = sizeof(head)};
    CUresult result;

    if (!link || !cubin)
        return link ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE;
    exchange_out(&complete, link->options.results,
                 link->options.count * sizeof(link->options.results[0]));
    exchange_out(&complete, link->options.info.at, link->options.info.bytes);
    exchange_out(&complete, link->options.error.at, link->options.error.bytes);
    result = exchange_run(&complete);
    take_results(&link->options, &complete);
    if (result != CUDA_SUCCESS)
        return result;
    free(link->linked);
    link->linked = malloc(complete.extra ? complete.extra : 1);
    if (!link->linked)
        return CUDA_ERROR_OUT_OF_MEMORY;
    exchange_out(&fetch, link->linked, complete.extra);
    result = exchange_run(&fetch);
    *cubin = link->linked;
    if (bytes)
        *bytes = complete.extra;
    return result;
}

EXPORT CUresult cuLinkDestroy(CUlinkState state);
CUresult cuLinkDestroy(CUlinkState state)
{
    struct hand_object head;
    struct link *link = link_of(state, &head.object);
    struct exchange destroy = {
        .number = CALL_cuLinkDestroy, .head = &head, .head_bytes = sizeof(head)};
    CUresult result = exchange_run(&destroy);

    if (link && result == CUDA_SUCCESS) {
        free(link->linked);
        link->linked = NULL;
    }
    return result;
}
