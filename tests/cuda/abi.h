/* SPDX-License-Identifier: MIT */
/* Layouts and numbers that two headers declare of one interface: ours, and FFmpeg's. */
#ifndef TESTS_CUDA_ABI_H
#define TESTS_CUDA_ABI_H

struct abi_fact {
    const char *name;
    unsigned long value;
};

extern const struct abi_fact abi_ours[];
extern const struct abi_fact abi_theirs[];

#define SIZE(type)         {"sizeof " #type, sizeof(type)},
#define FIELD(type, field) {#type "." #field, offsetof(type, field)},
#define NUMBER(name)       {#name, name},

#define ABI_FACTS                                                                                  \
    SIZE(CUdevice)                                                                                 \
    SIZE(CUdeviceptr)                                                                              \
    SIZE(CUcontext)                                                                                \
    SIZE(CUDA_ARRAY_DESCRIPTOR)                                                                    \
    FIELD(CUDA_ARRAY_DESCRIPTOR, Height)                                                           \
    FIELD(CUDA_ARRAY_DESCRIPTOR, Format)                                                           \
    FIELD(CUDA_ARRAY_DESCRIPTOR, NumChannels)                                                      \
    SIZE(CUDA_ARRAY3D_DESCRIPTOR)                                                                  \
    FIELD(CUDA_ARRAY3D_DESCRIPTOR, Depth)                                                          \
    FIELD(CUDA_ARRAY3D_DESCRIPTOR, Format)                                                         \
    FIELD(CUDA_ARRAY3D_DESCRIPTOR, Flags)                                                          \
    SIZE(CUDA_EXTERNAL_MEMORY_HANDLE_DESC)                                                         \
    FIELD(CUDA_EXTERNAL_MEMORY_HANDLE_DESC, handle)                                                \
    FIELD(CUDA_EXTERNAL_MEMORY_HANDLE_DESC, size)                                                  \
    SIZE(CUDA_MEMCPY2D)                                                                            \
    FIELD(CUDA_MEMCPY2D, srcMemoryType)                                                            \
    FIELD(CUDA_MEMCPY2D, dstMemoryType)                                                            \
    FIELD(CUDA_MEMCPY2D, WidthInBytes)                                                             \
    FIELD(CUDA_MEMCPY2D, Height)                                                                   \
    NUMBER(CUDA_SUCCESS)                                                                           \
    NUMBER(CU_AD_FORMAT_UNSIGNED_INT8)                                                             \
    NUMBER(CU_AD_FORMAT_UNSIGNED_INT16)                                                            \
    NUMBER(CU_AD_FORMAT_UNSIGNED_INT32)                                                            \
    NUMBER(CU_AD_FORMAT_SIGNED_INT8)                                                               \
    NUMBER(CU_AD_FORMAT_SIGNED_INT16)                                                              \
    NUMBER(CU_AD_FORMAT_SIGNED_INT32)                                                              \
    NUMBER(CU_AD_FORMAT_HALF)                                                                      \
    NUMBER(CU_AD_FORMAT_FLOAT)                                                                     \
    NUMBER(CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD)                                               \
    NUMBER(CU_MEMORYTYPE_HOST)                                                                     \
    NUMBER(CU_MEMORYTYPE_DEVICE)                                                                   \
    NUMBER(CU_MEMORYTYPE_ARRAY)

#endif
