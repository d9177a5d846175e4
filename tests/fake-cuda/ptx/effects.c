// SPDX-License-Identifier: MIT
/* What copies, fills and kernels do to memory. */
#include "content.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../card.h"
#include "../timing.h"

/* Thread-instructions that the card does in a nanosecond, and what a launch takes at least. */
#define INSTRUCTIONS_A_NS 500
#define LEAST_NS          1000
#define STEPS             2000000000ull

enum kind { EFFECT_COPY, EFFECT_FILL, EFFECT_LAUNCH };

/* Rows of a copy or a fill; a plain one has one row. */
struct rows {
    uint64_t to, from;
    uint64_t to_pitch, from_pitch;
    uint64_t to_slice, from_slice;
    uint64_t width, height, depth;
    uint32_t value, size;
};

struct effect {
    enum kind kind;
    struct rows rows;
    struct ptx_launch launch;
    uint8_t parameters[];
};

/* One at a time: of all streams and threads. */
static pthread_mutex_t running = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local struct effect *begun;

void effect_begin(struct effect *effect)
{
    free(begun);
    begun = effect;
}

struct effect *effect_take(void)
{
    struct effect *taken = begun;

    begun = NULL;
    return taken;
}

/* A function of the host that has not run, in any stream of this process. */
static bool host_functions_wait(void)
{
    struct timing *timing = timing_enter();
    uint32_t self = timing_self(timing);
    bool found = false;

    for (uint32_t i = 0; i < timing->model.active_count && !found; i++) {
        const struct model_stream *stream = &timing->model.streams[timing->model.active[i]];
        uint32_t at = stream->first;

        for (uint32_t k = 0; stream->process == self && k < stream->count; k++) {
            found |= timing->model.ops[at].kind == TIMING_HOST;
            at = timing->model.ops[at].next;
        }
    }
    timing_leave(timing);
    return found;
}

/* Memory of the card in full, or of the host. */
static uint8_t *reach(uint64_t address, uint64_t bytes)
{
    struct ptx_range range = content_find(NULL, address);
    CUdeviceptr base;

    if (range.bytes)
        return bytes <= range.bytes - (address - range.address)
                   ? range.host + (address - range.address)
                   : NULL;
    return fake_size_of(address, &base) ? NULL : (uint8_t *)(uintptr_t)address;
}

static void fill_row(uint8_t *to, const struct rows *rows)
{
    if (rows->size == 1)
        memset(to, (int)(rows->value & 0xff), rows->width);
    for (uint64_t i = 0; rows->size > 1 && i + rows->size <= rows->width; i += rows->size)
        memcpy(to + i, &rows->value, rows->size);
}

static CUresult move_row(const struct rows *rows, uint64_t y, uint64_t z, bool fills)
{
    uint8_t *to = reach(rows->to + y * rows->to_pitch + z * rows->to_slice, rows->width);
    const uint8_t *from =
        fills ? NULL : reach(rows->from + y * rows->from_pitch + z * rows->from_slice, rows->width);

    if (!to || (!fills && !from))
        return CUDA_ERROR_INVALID_VALUE;
    if (fills)
        fill_row(to, rows);
    else
        memmove(to, from, rows->width);
    return CUDA_SUCCESS;
}

static CUresult move_rows(const struct rows *rows, bool fills)
{
    CUresult result = CUDA_SUCCESS;

    for (uint64_t z = 0; z < rows->depth; z++)
        for (uint64_t y = 0; y < rows->height && result == CUDA_SUCCESS && rows->width; y++)
            result = move_row(rows, y, z, fills);
    return result;
}

static CUresult run_kernel(const struct effect *effect)
{
    struct ptx_launch launch = effect->launch;
    enum ptx_result result;

    launch.parameters = effect->parameters;
    launch.steps = card_setting("FAKE_CUDA_STEPS", STEPS);
    result = ptx_run(&launch);
    if (result != PTX_DONE && card_setting("FAKE_CUDA_VERBOSE", 0))
        fprintf(stderr, "fake card: %s ended with %d%s%s, after %llu instructions\n",
                ptx_name(launch.kernel), (int)result, *launch.error.reason ? ": " : "",
                launch.error.reason, (unsigned long long)launch.steps);
    return (CUresult)result;
}

/* What goes wrong on the card fails the calls that follow. */
static CUresult run(const struct effect *effect, CUstream stream, bool per_thread)
{
    CUresult result;

    if (host_functions_wait())
        timing_await(stream, per_thread);
    pthread_mutex_lock(&running);
    result = effect->kind == EFFECT_LAUNCH ? run_kernel(effect)
                                           : move_rows(&effect->rows, effect->kind == EFFECT_FILL);
    pthread_mutex_unlock(&running);
    if (result != CUDA_SUCCESS && effect->kind == EFFECT_LAUNCH) {
        const struct model_op fault = {.engine = MODEL_COMPUTE,
                                       .kind = TIMING_FAULT,
                                       .length_ns = LEAST_NS,
                                       .data = {(uint64_t)result, 0}};

        return timing_submit(stream, per_thread, &fault);
    }
    return result;
}

CUresult effect_end(CUstream stream, bool per_thread, CUresult submitted)
{
    struct effect *effect = effect_take();
    CUresult result = submitted;

    if (effect && submitted == CUDA_SUCCESS)
        result = run(effect, stream, per_thread);
    free(effect);
    return result;
}

CUresult effect_repeat(const struct effect *effect, CUstream stream, bool per_thread)
{
    return run(effect, stream, per_thread);
}

struct effect *effect_make_launch(const struct ptx_launch *launch, const uint8_t *parameters)
{
    uint32_t bytes = ptx_parameter_bytes(launch->kernel);
    struct effect *effect = calloc(1, sizeof(*effect) + bytes + 8);

    if (!effect)
        return NULL;
    effect->kind = EFFECT_LAUNCH;
    effect->launch = *launch;
    memcpy(effect->parameters, parameters, bytes);
    return effect;
}

const uint8_t *effect_parameters(const struct effect *effect)
{
    return effect->parameters;
}

/* By what it has to run through once: how often it comes round is not known before. */
uint64_t effect_length_ns(const struct effect *effect)
{
    const struct ptx_launch *launch = &effect->launch;
    uint64_t threads = (uint64_t)launch->block[0] * launch->block[1] * launch->block[2];

    for (unsigned int i = 0; i < 3; i++)
        threads *= launch->grid[i];
    return LEAST_NS + threads * ptx_length(launch->kernel) / INSTRUCTIONS_A_NS;
}

enum shape_of_move { MOVE_LINEAR, MOVE_PEER, MOVE_FILL, MOVE_FILL_2D, MOVE_2D, MOVE_3D };

/* @stream: which argument it is; 0: none. */
static const struct move {
    const char *name;
    enum shape_of_move shape;
    unsigned int stream;
    uint32_t size;
} moves[] = {
    {"cuMemcpy", MOVE_LINEAR, 0, 0},
    {"cuMemcpyAsync", MOVE_LINEAR, 3, 0},
    {"cuMemcpyHtoD_v2", MOVE_LINEAR, 0, 0},
    {"cuMemcpyHtoDAsync_v2", MOVE_LINEAR, 3, 0},
    {"cuMemcpyDtoH_v2", MOVE_LINEAR, 0, 0},
    {"cuMemcpyDtoHAsync_v2", MOVE_LINEAR, 3, 0},
    {"cuMemcpyDtoD_v2", MOVE_LINEAR, 0, 0},
    {"cuMemcpyDtoDAsync_v2", MOVE_LINEAR, 3, 0},
    {"cuMemcpyPeer", MOVE_PEER, 0, 0},
    {"cuMemcpyPeerAsync", MOVE_PEER, 5, 0},
    {"cuMemsetD8_v2", MOVE_FILL, 0, 1},
    {"cuMemsetD16_v2", MOVE_FILL, 0, 2},
    {"cuMemsetD32_v2", MOVE_FILL, 0, 4},
    {"cuMemsetD8Async", MOVE_FILL, 3, 1},
    {"cuMemsetD16Async", MOVE_FILL, 3, 2},
    {"cuMemsetD32Async", MOVE_FILL, 3, 4},
    {"cuMemsetD2D8_v2", MOVE_FILL_2D, 0, 1},
    {"cuMemsetD2D16_v2", MOVE_FILL_2D, 0, 2},
    {"cuMemsetD2D32_v2", MOVE_FILL_2D, 0, 4},
    {"cuMemsetD2D8Async", MOVE_FILL_2D, 5, 1},
    {"cuMemsetD2D16Async", MOVE_FILL_2D, 5, 2},
    {"cuMemsetD2D32Async", MOVE_FILL_2D, 5, 4},
    {"cuMemcpy2D_v2", MOVE_2D, 0, 0},
    {"cuMemcpy2DUnaligned_v2", MOVE_2D, 0, 0},
    {"cuMemcpy2DAsync_v2", MOVE_2D, 1, 0},
    {"cuMemcpy3D_v2", MOVE_3D, 0, 0},
    {"cuMemcpy3DAsync_v2", MOVE_3D, 1, 0},
};

/* Without _ptds or _ptsz. */
static size_t plain_length(const char *name)
{
    size_t length = strlen(name);

    return length > 5 &&
                   (!strcmp(name + length - 5, "_ptds") || !strcmp(name + length - 5, "_ptsz"))
               ? length - 5
               : length;
}

static const struct move *find_move(const char *name)
{
    size_t length = plain_length(name);

    for (unsigned int i = 0; i < sizeof(moves) / sizeof(moves[0]); i++)
        if (strlen(moves[i].name) == length && !memcmp(moves[i].name, name, length))
            return &moves[i];
    return NULL;
}

static uint64_t place(CUmemorytype type, const void *host, CUdeviceptr device)
{
    return type == CU_MEMORYTYPE_HOST ? (uintptr_t)host : device;
}

/* False: of an array, which has no content. */
static bool read_2d(const CUDA_MEMCPY2D *copy, struct rows *rows)
{
    if (copy->srcMemoryType == CU_MEMORYTYPE_ARRAY || copy->dstMemoryType == CU_MEMORYTYPE_ARRAY)
        return false;
    *rows = (struct rows){.to = place(copy->dstMemoryType, copy->dstHost, copy->dstDevice) +
                                copy->dstXInBytes + copy->dstY * copy->dstPitch,
                          .from = place(copy->srcMemoryType, copy->srcHost, copy->srcDevice) +
                                  copy->srcXInBytes + copy->srcY * copy->srcPitch,
                          .to_pitch = copy->dstPitch ? copy->dstPitch : copy->WidthInBytes,
                          .from_pitch = copy->srcPitch ? copy->srcPitch : copy->WidthInBytes,
                          .width = copy->WidthInBytes,
                          .height = copy->Height,
                          .depth = 1};
    return true;
}

static bool read_3d(const CUDA_MEMCPY3D *copy, struct rows *rows)
{
    uint64_t to_pitch = copy->dstPitch ? copy->dstPitch : copy->WidthInBytes;
    uint64_t from_pitch = copy->srcPitch ? copy->srcPitch : copy->WidthInBytes;
    uint64_t to_slice = to_pitch * (copy->dstHeight ? copy->dstHeight : copy->Height);
    uint64_t from_slice = from_pitch * (copy->srcHeight ? copy->srcHeight : copy->Height);

    if (copy->srcMemoryType == CU_MEMORYTYPE_ARRAY || copy->dstMemoryType == CU_MEMORYTYPE_ARRAY)
        return false;
    *rows =
        (struct rows){.to = place(copy->dstMemoryType, copy->dstHost, copy->dstDevice) +
                            copy->dstXInBytes + copy->dstY * to_pitch + copy->dstZ * to_slice,
                      .from = place(copy->srcMemoryType, copy->srcHost, copy->srcDevice) +
                              copy->srcXInBytes + copy->srcY * from_pitch + copy->srcZ * from_slice,
                      .to_pitch = to_pitch,
                      .from_pitch = from_pitch,
                      .to_slice = to_slice,
                      .from_slice = from_slice,
                      .width = copy->WidthInBytes,
                      .height = copy->Height,
                      .depth = copy->Depth};
    return true;
}

static bool read_move(const struct move *move, const long *a, struct rows *rows)
{
    *rows = (struct rows){.to = (uint64_t)a[0], .height = 1, .depth = 1, .size = move->size};
    switch (move->shape) {
    case MOVE_LINEAR:
    case MOVE_PEER:
        rows->from = (uint64_t)a[move->shape == MOVE_PEER ? 2 : 1];
        rows->width = (uint64_t)a[move->shape == MOVE_PEER ? 4 : 2];
        return true;
    case MOVE_FILL:
        rows->value = (uint32_t)a[1];
        rows->width = (uint64_t)a[2] * move->size;
        return true;
    case MOVE_FILL_2D:
        rows->to_pitch = (uint64_t)a[1];
        rows->value = (uint32_t)a[2];
        rows->width = (uint64_t)a[3] * move->size;
        rows->height = (uint64_t)a[4];
        return true;
    case MOVE_2D:
        return a[0] && read_2d((const CUDA_MEMCPY2D *)a[0], rows);
    default:
        return a[0] && read_3d((const CUDA_MEMCPY3D *)a[0], rows);
    }
}

struct effect *effect_of_move(const char *name, const long *arguments, CUstream *stream,
                              bool *per_thread)
{
    const struct move *move = content_is_on() ? find_move(name) : NULL;
    struct effect *effect;
    struct rows rows;

    if (!move || !read_move(move, arguments, &rows))
        return NULL;
    effect = calloc(1, sizeof(*effect));
    if (!effect)
        return NULL;
    effect->kind = move->size ? EFFECT_FILL : EFFECT_COPY;
    effect->rows = rows;
    *stream = move->stream ? (CUstream)arguments[move->stream] : NULL;
    *per_thread = plain_length(name) != strlen(name);
    return effect;
}
