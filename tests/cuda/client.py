#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A program that knows nothing of us, by ctypes: libraries by the names that Python's packages use."""
import ctypes
import sys

MIB = 1 << 20


def check(result, wanted=0):
    if result != wanted:
        sys.exit(f"{result} instead of {wanted}")


cuda = ctypes.CDLL("libcuda.so", mode=ctypes.RTLD_GLOBAL)
if ctypes.CDLL("libcuda.so.1")._handle != cuda._handle:
    sys.exit("libcuda.so and libcuda.so.1 are two libraries")
context, small, large = ctypes.c_void_p(), ctypes.c_uint64(), ctypes.c_uint64()
free, total = ctypes.c_size_t(), ctypes.c_size_t()
check(cuda.cuInit(0))
check(cuda.cuCtxCreate_v2(ctypes.byref(context), 0, 0))
check(cuda.cuMemAlloc_v2(ctypes.byref(small), ctypes.c_size_t(4 * MIB)))
check(cuda.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total)))
check(total.value, 64 * MIB)
check(free.value, 60 * MIB)

found = ctypes.c_void_p()
check(cuda.cuGetProcAddress(b"cuMemAlloc", ctypes.byref(found), 12000, ctypes.c_uint64(0)))
alloc = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t)(found.value)
check(alloc(ctypes.addressof(large), 61 * MIB), 2)

nvml = ctypes.CDLL("libnvidia-ml.so.1")
device, memory = ctypes.c_void_p(), (ctypes.c_uint64 * 3)()
check(nvml.nvmlInit_v2())
check(nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(device)))
check(nvml.nvmlDeviceGetMemoryInfo(device, memory))
check(list(memory), [64 * MIB, 60 * MIB, 4 * MIB])
