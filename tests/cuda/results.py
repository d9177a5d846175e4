#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""results.py [NAME...]: what PyTorch computes, as a hash a line, for tests/cuda/on-card --remote.

It is run natively and with a worker, and the lines must be equal. A part that this PyTorch or this card cannot do says which
error it got, which must be the same, too. It knows nothing of slices.
"""
import hashlib
import os
import sys
import threading

os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"
import torch  # noqa: E402

torch.use_deterministic_algorithms(True, warn_only=True)
torch.backends.cudnn.benchmark = False


def numbers(*shape, dtype=torch.float32):
    """The same each time, whatever the card's generator does."""
    generator = torch.Generator().manual_seed(len(shape) + sum(shape))
    return torch.randn(*shape, generator=generator).to(dtype).cuda()


def gemm(dtype):
    return numbers(1024, 512, dtype=dtype) @ numbers(512, 768, dtype=dtype)


def fp8():
    a = numbers(256, 256).to(torch.float8_e4m3fn)
    b = numbers(256, 256).to(torch.float8_e4m3fn).t()
    one = torch.tensor(1.0, device="cuda")
    return torch._scaled_mm(a, b, scale_a=one, scale_b=one, out_dtype=torch.bfloat16)


def convolution():
    layer = torch.nn.functional.conv2d(numbers(8, 16, 64, 64), numbers(32, 16, 3, 3), padding=1)
    return torch.nn.functional.max_pool2d(torch.relu(layer), 2)


def sparse():
    dense = numbers(512, 512)
    return torch.sparse.mm((dense * (dense > 1)).to_sparse_csr(), numbers(512, 64))


def attention():
    q, k, v = (numbers(2, 8, 256, 64, dtype=torch.bfloat16) for _ in range(3))
    return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)


def compiled():
    return torch.compile(lambda x: torch.sin(x) * x + 1)(numbers(1 << 20))


def graph():
    x, step = numbers(1 << 20), torch.cuda.CUDAGraph()
    y = torch.zeros_like(x)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        y.add_(x)
    torch.cuda.current_stream().wait_stream(side)
    with torch.cuda.graph(step):
        y.add_(x)
    for _ in range(10):
        step.replay()
    return y


def threads():
    sums = [None] * 8

    def work(index):
        with torch.cuda.stream(torch.cuda.Stream()):
            x = numbers(256, 256 + index)
            for _ in range(50):
                x = torch.tanh(x * 1.01)
            torch.cuda.current_stream().synchronize()
            sums[index] = x.cpu()

    running = [threading.Thread(target=work, args=(index,)) for index in range(8)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    return torch.cat([x.flatten() for x in sums])


def pinned():
    x = torch.arange(1 << 22, dtype=torch.float32).pin_memory()
    back = torch.empty_like(x, pin_memory=True)
    back.copy_((x.to("cuda", non_blocking=True) * 2), non_blocking=True)
    torch.cuda.synchronize()
    return back


def out_of_memory():
    """An allocation that cannot be had is an error, and the next one works."""
    try:
        torch.empty(1 << 50, dtype=torch.uint8, device="cuda")
    except torch.OutOfMemoryError:
        return numbers(16)
    raise RuntimeError("it was given")


def properties():
    got = torch.cuda.get_device_properties(0)
    return f"{got.name} {got.major}.{got.minor} {got.multi_processor_count}"


PARTS = {
    "properties": properties,
    "gemm-fp32": lambda: gemm(torch.float32),
    "gemm-bf16": lambda: gemm(torch.bfloat16),
    "gemm-fp8": fp8,
    "convolution": convolution,
    "fft": lambda: torch.view_as_real(torch.fft.fft(numbers(64, 1024))),
    "sparse": sparse,
    "attention": attention,
    "compiled": compiled,
    "graph": graph,
    "threads": threads,
    "pinned": pinned,
    "out-of-memory": out_of_memory,
}


def describe(part):
    try:
        value = part()
    except Exception as error:
        return f"{type(error).__name__} {str(error).splitlines()[0][:80] if str(error) else ''}"
    if isinstance(value, str):
        return value
    torch.cuda.synchronize()
    return hashlib.sha256(value.detach().float().cpu().contiguous().numpy().tobytes()).hexdigest()[:16]


for name in sys.argv[1:] or PARTS:
    print(name, describe(PARTS[name]), flush=True)
