// SPDX-License-Identifier: MIT
/* Batches of copies, and the forms of the first CUDA. */
#include "client.h"

#include <string.h>

struct attributes {
    unsigned int order;
    int places[4];
    unsigned int flags;
};

#define BATCH                                                                                      \
    CUdeviceptr *to, CUdeviceptr *from, size_t *sizes, size_t count,                               \
        struct attributes *attributes, size_t *indices, size_t attributes_count

CUresult cuMemcpyBatchAsync(BATCH, size_t *failed, CUstream stream);
CUresult cuMemcpyBatchAsync_ptsz(BATCH, size_t *failed, CUstream stream);
CUresult cuMemcpyBatchAsync_v2(BATCH, CUstream stream);
CUresult cuMemcpyBatchAsync_v2_ptsz(BATCH, CUstream stream);

#define BATCH_3D size_t count, CUDA_MEMCPY3D_BATCH_OP *list

CUresult cuMemcpy3DBatchAsync(BATCH_3D, size_t *failed, unsigned long long flags, CUstream stream);
CUresult cuMemcpy3DBatchAsync_ptsz(BATCH_3D, size_t *failed, unsigned long long flags,
                                   CUstream stream);
CUresult cuMemcpy3DBatchAsync_v2(BATCH_3D, unsigned long long flags, CUstream stream);
CUresult cuMemcpy3DBatchAsync_v2_ptsz(BATCH_3D, unsigned long long flags, CUstream stream);
CUresult cuMemcpy3DWithAttributesAsync(CUDA_MEMCPY3D_BATCH_OP *of, unsigned long long flags,
                                       CUstream stream);
CUresult cuMemcpy3DWithAttributesAsync_ptsz(CUDA_MEMCPY3D_BATCH_OP *of, unsigned long long flags,
                                            CUstream stream);
CUresult cuMemcpy2D(const CUDA_MEMCPY2D_v1 *copy);
CUresult cuMemcpy2DUnaligned(const CUDA_MEMCPY2D_v1 *copy);
CUresult cuMemcpy2DAsync(const CUDA_MEMCPY2D_v1 *copy, CUstream stream);
CUresult cuMemcpy3D(const CUDA_MEMCPY3D_v1 *copy);
CUresult cuMemcpy3DAsync(const CUDA_MEMCPY3D_v1 *copy, CUstream stream);
CUresult cuArray3DCreate_v2(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR *of);

#define BYTES 512u

static uint8_t sent[BYTES], got[BYTES];

/* From the program to the GPU, within it, and back, in one batch of two and one of one. */
static void move_in_batches(CUstream stream)
{
    CUdeviceptr at = allocate_device(4 * BYTES);
    CUdeviceptr to[] = {at, at + 2 * BYTES}, from[] = {(uintptr_t)sent, (uintptr_t)sent};
    CUdeviceptr last_to[] = {at + BYTES, (uintptr_t)got}, last_from[] = {at, at + 2 * BYTES};
    size_t sizes[] = {BYTES, BYTES}, indices[] = {0, 1}, failed = 7;
    struct attributes attributes[] = {{.order = 1}, {.order = 3}};

    ok(cuMemcpyBatchAsync(to, from, sizes, 2, attributes, indices, 2, &failed, stream));
    must(failed == SIZE_MAX);
    ok(cuMemcpyBatchAsync_v2(last_to, last_from, sizes, 2, attributes, indices, 1, stream));
    ok(cuStreamSynchronize(stream));
    must(!memcmp(sent, got, BYTES));
    memset(got, 0, BYTES);
    last_from[1] = at + BYTES;
    ok(cuMemcpyBatchAsync_ptsz(last_to, last_from, sizes, 2, attributes, indices, 2, &failed,
                               NULL));
    ok(cuMemcpyBatchAsync_v2_ptsz(last_to, last_from, sizes, 2, attributes, indices, 2, NULL));
    ok(cuCtxSynchronize());
    must(!memcmp(sent, got, BYTES));
}

static void refuse_wrong_batches(CUstream stream)
{
    CUdeviceptr at = allocate_device(BYTES);
    CUdeviceptr to[] = {at, (uintptr_t)got}, from[] = {(uintptr_t)sent, 0x7f0000000000};
    size_t sizes[] = {BYTES, BYTES}, indices[] = {0, 1}, failed = 7;
    struct attributes attributes[] = {{.order = 1}, {.order = 3}};

    is(cuMemcpyBatchAsync(to, from, sizes, 2, attributes, indices, 2, &failed, stream),
       CUDA_ERROR_INVALID_VALUE);
    must(failed == 1);
    indices[1] = 2;
    is(cuMemcpyBatchAsync(to, from, sizes, 2, attributes, indices, 2, &failed, stream),
       CUDA_ERROR_INVALID_VALUE);
    must(failed == SIZE_MAX);
    indices[1] = 0;
    is(cuMemcpyBatchAsync_v2(to, from, sizes, 1, attributes, indices, 2, stream),
       CUDA_ERROR_INVALID_VALUE);
    attributes[0].order = 0;
    is(cuMemcpyBatchAsync_v2(to, from, sizes, 1, attributes, indices, 1, stream),
       CUDA_ERROR_INVALID_VALUE);
    is(cuMemcpyBatchAsync_v2(to, NULL, sizes, 1, attributes, indices, 1, stream),
       CUDA_ERROR_INVALID_VALUE);
}

/* Two layers of three rows of which each has a gap, to a place without gaps. */
static void move_layers(CUstream stream)
{
    CUdeviceptr at = allocate_device(BYTES);
    CUDA_MEMCPY3D_BATCH_OP list[] = {
        {.src = {1, {(uintptr_t)sent, 20, 5, 0}},
         .dst = {1, {at, 0, 0, 0}},
         .extent = {16, 3, 2},
         .srcAccessOrder = 1},
        {.src = {1, {at, 16, 3, 0}},
         .dst = {1, {(uintptr_t)got, 0, 0, 0}},
         .extent = {16, 3, 2},
         .srcAccessOrder = 3},
    };
    size_t failed = 7;

    memset(got, 0, BYTES);
    ok(cuMemcpy3DBatchAsync(2, list, &failed, 0, stream));
    ok(cuStreamSynchronize(stream));
    for (unsigned int row = 0; row < 6; row++)
        must(!memcmp(got + 16 * row, sent + 20 * (row / 3 * 5 + row % 3), 16));
    ok(cuMemcpy3DBatchAsync_ptsz(2, list, &failed, 0, NULL));
    ok(cuMemcpy3DBatchAsync_v2(2, list, 0, stream));
    ok(cuMemcpy3DBatchAsync_v2_ptsz(2, list, 0, NULL));
    ok(cuMemcpy3DWithAttributesAsync(list, 0, stream));
    ok(cuMemcpy3DWithAttributesAsync_ptsz(list, 0, NULL));
    must(failed == SIZE_MAX);
    is(cuMemcpy3DBatchAsync(2, list, &failed, 1, stream), CUDA_ERROR_INVALID_VALUE);
    list[1].extent.height = 0;
    is(cuMemcpy3DBatchAsync(2, list, &failed, 0, stream), CUDA_ERROR_INVALID_VALUE);
    must(failed == 1);
    is(cuMemcpy3DWithAttributesAsync(NULL, 0, stream), CUDA_ERROR_INVALID_VALUE);
}

/* Elements are those of the array: of 8 bytes, so that a row of the program's has 64. */
static void move_elements(CUstream stream)
{
    const CUDA_ARRAY3D_DESCRIPTOR of = {.Width = 8, .Height = 4, .Format = 0x20, .NumChannels = 2};
    CUDA_MEMCPY3D_BATCH_OP copy = {
        .src = {1, {(uintptr_t)sent, 0, 0, 0}}, .extent = {8, 4, 1}, .srcAccessOrder = 1};
    CUarray array;

    ok(cuArray3DCreate_v2(&array, &of));
    copy.dst = (CUmemcpy3DOperand){2, {(uintptr_t)array, 0, 0, 0}};
    ok(cuMemcpy3DBatchAsync_v2(1, &copy, 0, stream));
    copy.src.where[1] = 7;
    is(cuMemcpy3DBatchAsync_v2(1, &copy, 0, stream), CUDA_ERROR_INVALID_VALUE);
    copy.src.where[1] = SIZE_MAX / 4;
    is(cuMemcpy3DBatchAsync_v2(1, &copy, 0, stream), CUDA_ERROR_INVALID_VALUE);
    copy.src.where[1] = 0;
    copy.dst.where[0] = (uintptr_t)stream;
    is(cuMemcpy3DBatchAsync_v2(1, &copy, 0, stream), CUDA_ERROR_INVALID_HANDLE);
    copy.dst.type = 3;
    is(cuMemcpy3DBatchAsync_v2(1, &copy, 0, stream), CUDA_ERROR_INVALID_VALUE);
}

/* Their addresses reach no memory of today's cards, but the program's rows do. */
static void move_in_old_forms(CUstream stream)
{
    CUDA_MEMCPY2D_v1 flat = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                             .srcHost = sent,
                             .srcPitch = 20,
                             .srcXInBytes = 4,
                             .dstMemoryType = CU_MEMORYTYPE_HOST,
                             .dstHost = got,
                             .dstPitch = 16,
                             .WidthInBytes = 16,
                             .Height = 3};
    CUDA_MEMCPY3D_v1 deep = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                             .srcHost = sent,
                             .srcPitch = 20,
                             .srcHeight = 5,
                             .srcZ = 1,
                             .dstMemoryType = CU_MEMORYTYPE_HOST,
                             .dstHost = got,
                             .dstPitch = 16,
                             .dstHeight = 3,
                             .WidthInBytes = 16,
                             .Height = 3,
                             .Depth = 2};

    memset(got, 0, BYTES);
    ok(cuMemcpy2D(&flat));
    for (unsigned int row = 0; row < 3; row++)
        must(!memcmp(got + 16 * row, sent + 20 * row + 4, 16));
    ok(cuMemcpy2DUnaligned(&flat));
    ok(cuMemcpy2DAsync(&flat, stream));
    ok(cuMemcpy3D(&deep));
    for (unsigned int row = 0; row < 6; row++)
        must(!memcmp(got + 16 * row, sent + 100 + 20 * (row / 3 * 5 + row % 3), 16));
    ok(cuMemcpy3DAsync(&deep, stream));
    flat.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    flat.dstDevice = 0x10000;
    is(cuMemcpy2D(&flat), CUDA_ERROR_INVALID_VALUE);
    is(cuMemcpy3DAsync(NULL, stream), CUDA_ERROR_INVALID_VALUE);
}

void check_copy_forms(void)
{
    CUstream stream;

    begin_context();
    ok(cuStreamCreate(&stream, 0));
    for (unsigned int i = 0; i < BYTES; i++)
        sent[i] = (uint8_t)(i * 7 + 1);
    move_in_batches(stream);
    refuse_wrong_batches(stream);
    move_layers(stream);
    move_elements(stream);
    move_in_old_forms(stream);
}
