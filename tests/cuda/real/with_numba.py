# SPDX-License-Identifier: MIT
"""Kernels of Numba: a sum, a reduction in shared memory with an atomic, a histogram."""
import sys

import numpy
from numba import cuda, float32


@cuda.jit
def add(z, x, y):
    i = cuda.grid(1)
    if i < z.size:
        z[i] = x[i] + y[i]


@cuda.jit
def total(out, x):
    shared = cuda.shared.array(128, float32)
    at = cuda.threadIdx.x
    i = cuda.grid(1)
    shared[at] = x[i] if i < x.size else 0
    cuda.syncthreads()
    step = 64
    while step:
        if at < step:
            shared[at] += shared[at + step]
        cuda.syncthreads()
        step //= 2
    if at == 0:
        cuda.atomic.add(out, 0, shared[0])


@cuda.jit
def count(bins, values):
    i = cuda.grid(1)
    if i < values.size:
        cuda.atomic.add(bins, values[i] % bins.size, 1)


def check(what, is_right):
    if not is_right:
        sys.exit(what + " is wrong")


def main():
    x = numpy.arange(1000, dtype=numpy.float32)
    y = x * 2
    z = numpy.zeros_like(x)
    add[8, 128](z, x, y)
    check("the sum", (z == x + y).all())
    out = numpy.zeros(1, numpy.float32)
    total[8, 128](out, x)
    check("the reduction", out[0] == x.sum())
    values = (numpy.arange(5000) * 7919 % 1013).astype(numpy.int32)
    bins = numpy.zeros(16, numpy.int32)
    count[40, 128](bins, values)
    check("the histogram", (bins == numpy.bincount(values % 16, minlength=16)).all())
    try:
        cuda.device_array(80 << 20, numpy.uint8)
        check("the limit", False)
    except cuda.cudadrv.driver.CudaAPIError as error:
        check("the limit's error", error.code == 2)
    print(cuda.current_context().get_memory_info().total >> 20)


main()
