# SPDX-License-Identifier: MIT
"""PyCUDA: PTX, given as a file, is loaded and computes; pages of the host; the limit."""
import sys

import numpy
import pycuda.driver as cuda


def check(what, is_right):
    if not is_right:
        sys.exit(what + " is wrong")


def add(module):
    x = numpy.arange(1000, dtype=numpy.float32)
    z = numpy.zeros(1024, numpy.float32)
    module.get_function("add")(
        cuda.InOut(z), cuda.In(x), cuda.In(x * 3), numpy.int32(1000), block=(256, 1, 1), grid=(4, 1))
    check("the sum", (z[:1000] == x * 4).all() and not z[1000:].any())


def reduce(module):
    x = numpy.arange(1000, dtype=numpy.float32)
    pinned = cuda.pagelocked_empty(1, numpy.float32)
    stream = cuda.Stream()
    start, end = cuda.Event(), cuda.Event()
    at, out = cuda.to_device(x), cuda.mem_alloc(4)
    cuda.memset_d32(out, 0, 1)
    start.record(stream)
    module.get_function("reduce")(
        at, out, numpy.int32(1000), block=(256, 1, 1), grid=(4, 1), stream=stream)
    end.record(stream)
    cuda.memcpy_dtoh_async(pinned, out, stream)
    stream.synchronize()
    check("the reduction", pinned[0] == x.sum())
    check("the time", start.time_till(end) > 0)


def main():
    cuda.init()
    context = cuda.Device(0).make_context()
    try:
        module = cuda.module_from_file(sys.argv[1])
        add(module)
        reduce(module)
        try:
            cuda.mem_alloc(80 << 20)
            check("the limit", False)
        except cuda.MemoryError:
            pass
        print(cuda.mem_get_info()[1] >> 20)
    finally:
        context.pop()


main()
