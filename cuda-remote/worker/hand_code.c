// SPDX-License-Identifier: MIT
/* Images of code: loaded, or linked and then loaded. They are copied before the driver reads them.
 */
#include "hand.h"
#include "worker.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "numbers.h"

enum {
    OPTION_INFO_LOG = 3,
    OPTION_INFO_LOG_BYTES = 4,
    OPTION_ERROR_LOG = 5,
    OPTION_ERROR_LOG_BYTES = 6,
    LIBRARY_BINARY_IS_PRESERVED = 1,
    LIBRARY_OPTIONS_MOST = 2,
};

/* What the driver may write to until the image is loaded, or the link destroyed. */
struct options {
    unsigned int count;
    unsigned int ids[HAND_OPTIONS_MOST];
    void *values[HAND_OPTIONS_MOST];
    char info[HAND_LOG_MOST], error[HAND_LOG_MOST];
};

struct image {
    const struct hand_image *head;
    const void *bytes;
    const char *name;
    struct options *options;
    unsigned int library_ids[LIBRARY_OPTIONS_MOST];
    void *library_values[LIBRARY_OPTIONS_MOST];
    unsigned int library_count;
};

/* Numbers only; what would be a pointer is one of ours, or refused. */
static bool use_option(struct options *options, const struct hand_option *option)
{
    static const unsigned char are_numbers[] = {0,  1,  2,  7,  8,  9,  10, 11, 12, 13, 14, 15,
                                                16, 20, 21, 22, 23, 24, 29, 30, 31, 32, 33, 34};
    void *value = NULL;
    bool is_known = true;

    if (option->id == OPTION_INFO_LOG)
        value = options->info;
    else if (option->id == OPTION_ERROR_LOG)
        value = options->error;
    else if (option->id == OPTION_INFO_LOG_BYTES || option->id == OPTION_ERROR_LOG_BYTES)
        value = (void *)(uintptr_t)(option->value > HAND_LOG_MOST ? HAND_LOG_MOST : option->value);
    else {
        is_known = memchr(are_numbers, (int)option->id, sizeof(are_numbers)) && option->id < 256;
        value = (void *)(uintptr_t)option->value;
    }
    options->ids[options->count] = option->id;
    options->values[options->count++] = value;
    return is_known;
}

/* A log without its size, or the other way round, would be one of the size that the driver likes.
 */
static bool logs_are_whole(const struct options *options)
{
    unsigned int has = 0;

    for (unsigned int i = 0; i < options->count; i++)
        if (options->ids[i] >= OPTION_INFO_LOG && options->ids[i] <= OPTION_ERROR_LOG_BYTES)
            has ^= 1u << options->ids[i];
    return (has == 0 || has == (3u << OPTION_INFO_LOG) || has == (3u << OPTION_ERROR_LOG) ||
            has == (15u << OPTION_INFO_LOG));
}

static CUresult take_options(struct request *request, struct image *image, size_t *at)
{
    const struct hand_option *sent =
        request_part(request, at, image->head->options * sizeof(*sent));
    const struct hand_option *library =
        request_part(request, at, image->head->library_options * sizeof(*library));
    bool is_known = true;

    if (!sent || !library)
        return CUDA_ERROR_INVALID_VALUE;
    for (uint32_t i = 0; i < image->head->options; i++)
        is_known &= use_option(image->options, &sent[i]);
    for (uint32_t i = 0; i < image->head->library_options; i++) {
        /* It is not: our copy ends with the call. */
        if (library[i].id == LIBRARY_BINARY_IS_PRESERVED)
            continue;
        image->library_ids[image->library_count] = library[i].id;
        image->library_values[image->library_count++] = NULL;
        is_known = false;
    }
    return is_known && logs_are_whole(image->options) ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
}

static CUresult take_image(struct request *request, struct image *image, struct options *options)
{
    size_t at = request->flags & RECORD_BULK ? 0 : sizeof(*image->head);

    image->head = (const void *)request->head;
    image->options = options;
    if (request->head_bytes < sizeof(*image->head) || image->head->options > HAND_OPTIONS_MOST ||
        image->head->library_options > LIBRARY_OPTIONS_MOST ||
        image->head->name_bytes > HAND_NAME_MOST) {
        request->is_broken = true;
        return CUDA_ERROR_INVALID_VALUE;
    }
    image->bytes = request_part(request, &at, image->head->bytes);
    if (!image->bytes)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (take_options(request, image, &at) != CUDA_SUCCESS)
        return CUDA_ERROR_NOT_SUPPORTED;
    image->name = request_part(request, &at, image->head->name_bytes);
    if (!image->name || (image->head->name_bytes && image->name[image->head->name_bytes - 1])) {
        request->is_broken = true;
        return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

static void give_log(struct request *request, const char *log, uint32_t bytes)
{
    uint32_t most = bytes > HAND_LOG_MOST ? HAND_LOG_MOST : bytes;
    char *to = most ? request_answer(request, most) : NULL;

    if (to)
        memcpy(to, log, most);
}

/* Also if the image was refused: then the logs say why. */
static void give_options(struct request *request, const struct hand_image *head,
                         const struct options *options)
{
    for (uint32_t i = 0; i < head->options && i < options->count; i++) {
        uint64_t *value = request_answer(request, sizeof(*value));
        bool is_ours = options->ids[i] == OPTION_INFO_LOG || options->ids[i] == OPTION_ERROR_LOG;

        if (value)
            *value = is_ours ? 0 : (uintptr_t)options->values[i];
    }
    give_log(request, options->info, head->info_log);
    give_log(request, options->error, head->error_log);
}

static CUresult load_module(struct request *request, struct image *image, void **made)
{
    CUresult (*plain)(void **, const void *) = driver_function(request->number);
    CUresult (*with)(void **, const void *, unsigned int, unsigned int *, void **) =
        driver_function(CALL_cuModuleLoadDataEx);

    if (!plain || !with)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (request->number == CALL_cuModuleLoadDataEx)
        return with(made, image->bytes, image->options->count, image->options->ids,
                    image->options->values);
    return plain(made, image->bytes);
}

static CUresult load_library(struct image *image, void **made)
{
    CUresult (*load)(void **, const void *, unsigned int *, void **, unsigned int, unsigned int *,
                     void **, unsigned int) = driver_function(CALL_cuLibraryLoadData);

    if (!load)
        return CUDA_ERROR_NOT_SUPPORTED;
    return load(made, image->bytes, image->options->ids, image->options->values,
                image->options->count, image->library_ids, image->library_values,
                image->library_count);
}

CUresult hand_load(struct request *request)
{
    bool is_library = request->number == CALL_cuLibraryLoadData;
    struct options *options = calloc(1, sizeof(*options));
    struct image image = {0};
    CUresult result = options ? take_image(request, &image, options) : CUDA_ERROR_OUT_OF_MEMORY;
    void *made = NULL;

    if (result == CUDA_SUCCESS) {
        result = is_library ? load_library(&image, &made) : load_module(request, &image, &made);
        give_options(request, image.head, options);
    }
    if (result == CUDA_SUCCESS)
        request->extra = object_number(is_library ? OBJECT_CUlibrary : OBJECT_CUmodule, made,
                                       is_library ? 0 : current_context());
    free(options);
    return result;
}

/* @cubin: of a link that is complete; the driver's, until the link ends. */
struct link {
    struct link *next;
    uint64_t number;
    struct options options;
    struct hand_image head;
    const void *cubin;
    size_t bytes;
};

/* Held while one is used, by one thread at a time, as it is natively: a program that breaks this
 * rule must not find a link that another of its threads has just ended. */
static pthread_mutex_t links_lock = PTHREAD_MUTEX_INITIALIZER;
static struct link *links;

static struct link *link_of(uint64_t number)
{
    struct link *at = links;

    while (at && at->number != number)
        at = at->next;
    return at;
}

static CUresult create_link(struct request *request)
{
    CUresult (*create)(unsigned int, unsigned int *, void **, void **) =
        driver_function(request->number);
    struct link *link = calloc(1, sizeof(*link));
    struct image image = {0};
    CUresult result = link ? take_image(request, &image, &link->options) : CUDA_ERROR_OUT_OF_MEMORY;
    void *made = NULL;

    if (result == CUDA_SUCCESS)
        result = create
                     ? create(link->options.count, link->options.ids, link->options.values, &made)
                     : CUDA_ERROR_NOT_SUPPORTED;
    if (result != CUDA_SUCCESS) {
        free(link);
        return result;
    }
    link->head = *image.head;
    request->extra = link->number = object_number(OBJECT_CUlinkState, made, current_context());
    link->next = links;
    links = link;
    return CUDA_SUCCESS;
}

static CUresult add_to_link(struct request *request)
{
    CUresult (*add)(void *, unsigned int, const void *, size_t, const char *, unsigned int,
                    unsigned int *, void **) = driver_function(request->number);
    struct options *options = calloc(1, sizeof(*options));
    struct image image = {0};
    CUresult result = options ? take_image(request, &image, options) : CUDA_ERROR_OUT_OF_MEMORY;
    struct link *link = result == CUDA_SUCCESS ? link_of(image.head->link) : NULL;
    void *state;

    if (result == CUDA_SUCCESS &&
        (!link || !object_find(OBJECT_CUlinkState, image.head->link, &state)))
        result = CUDA_ERROR_INVALID_HANDLE;
    if (result == CUDA_SUCCESS) {
        result = add ? add(state, image.head->type, image.bytes, image.head->bytes,
                           image.head->name_bytes ? image.name : NULL, options->count, options->ids,
                           options->values)
                     : CUDA_ERROR_NOT_SUPPORTED;
        give_options(request, &link->head, &link->options);
    }
    free(options);
    return result;
}

static CUresult complete_link(struct request *request, struct link *link, void *state)
{
    CUresult (*complete)(void *, void **, size_t *) = driver_function(request->number);
    void *cubin = NULL;
    CUresult result = complete ? complete(state, &cubin, &link->bytes) : CUDA_ERROR_NOT_SUPPORTED;

    if (result == CUDA_SUCCESS) {
        link->cubin = cubin;
        request->extra = link->bytes;
    }
    give_options(request, &link->head, &link->options);
    return result;
}

/* A copy: the link may end before it is sent. */
static CUresult give_linked(struct request *request, const struct link *link)
{
    void *to;

    if (!link->cubin)
        return CUDA_ERROR_INVALID_VALUE;
    if (request->flags & RECORD_BULK)
        request->out_most = signature_align(link->bytes);
    to = request_answer(request, link->bytes);
    if (!to)
        return CUDA_ERROR_OUT_OF_MEMORY;
    memcpy(to, link->cubin, link->bytes);
    return CUDA_SUCCESS;
}

static CUresult destroy_link(struct request *request, struct link *link, void *state)
{
    CUresult (*destroy)(void *) = driver_function(request->number);
    CUresult result = destroy ? destroy(state) : CUDA_ERROR_NOT_SUPPORTED;
    struct link **at = &links;

    while (*at && *at != link)
        at = &(*at)->next;
    if (*at)
        *at = link->next;
    object_end(link->number);
    free(link);
    return result;
}

static CUresult use_link(struct request *request)
{
    const struct hand_object *head = (const void *)request->head;
    struct link *link;
    void *state;

    if (request->number == CALL_cuLinkCreate_v2)
        return create_link(request);
    if (request->number == CALL_cuLinkAddData_v2)
        return add_to_link(request);
    if (request->head_bytes < sizeof(*head))
        return CUDA_ERROR_INVALID_VALUE;
    link = link_of(head->object);
    if (!link || !object_find(OBJECT_CUlinkState, head->object, &state))
        return CUDA_ERROR_INVALID_HANDLE;
    switch (request->number) {
    case CALL_cuLinkComplete:
        return complete_link(request, link, state);
    case HAND_LINKED:
        return give_linked(request, link);
    default:
        return destroy_link(request, link, state);
    }
}

CUresult hand_link(struct request *request)
{
    CUresult result;

    pthread_mutex_lock(&links_lock);
    result = use_link(request);
    pthread_mutex_unlock(&links_lock);
    return result;
}
