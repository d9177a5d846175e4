#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""models.py KIND SECONDS: work as it is done with PyTorch, for tests/cuda/on-card --remote: its steps a second.

KIND: train (a transformer of 350 million parameters, eager), lora (adapters of 16 on one of 1.3 billion that is frozen), decode
(one token at a time, eager), decode-graph (the same as a CUDA graph). Weights are random. It knows nothing of slices.
"""
import sys
import time

import torch
from torch import nn

SIZES = {"train": (1024, 24), "lora": (2048, 24), "decode": (2048, 24), "decode-graph": (2048, 24)}


class Adapted(nn.Module):
    """A layer that stays as it is, and two small ones that learn."""

    def __init__(self, layer, rank=16):
        super().__init__()
        self.layer = layer.requires_grad_(False)
        self.down = nn.Linear(layer.in_features, rank, bias=False)
        self.up = nn.Linear(rank, layer.out_features, bias=False)

    def forward(self, x):
        return self.layer(x) + self.up(self.down(x))


class Block(nn.Module):
    def __init__(self, width, make):
        super().__init__()
        self.heads = width // 64
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = make(width, 3 * width), make(width, width)
        self.wide, self.narrow = make(width, 4 * width), make(4 * width, width)

    def forward(self, x):
        q, k, v = (
            part.unflatten(-1, (self.heads, 64)).transpose(1, 2) for part in self.qkv(self.before(x)).chunk(3, -1)
        )
        seen = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(seen.transpose(1, 2).flatten(2))
        return x + self.narrow(nn.functional.gelu(self.wide(self.between(x))))


def make_model(kind):
    width, depth = SIZES[kind]
    make = (lambda a, b: Adapted(nn.Linear(a, b))) if kind == "lora" else nn.Linear
    model = nn.Sequential(*(Block(width, make) for _ in range(depth))).to("cuda", torch.bfloat16)
    if kind == "lora":
        for name, parameter in model.named_parameters():
            parameter.requires_grad_("up" in name or "down" in name)
    return model, width


def training(kind):
    model, width = make_model(kind)
    optimizer = torch.optim.AdamW((p for p in model.parameters() if p.requires_grad), lr=1e-4)
    data = torch.randn(4, 512, width, device="cuda", dtype=torch.bfloat16)

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss = (model(data) - data).pow(2).mean()
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def decoding(kind):
    model, width = make_model(kind)
    token = torch.randn(1, 1, width, device="cuda", dtype=torch.bfloat16)
    graph = torch.cuda.CUDAGraph() if kind == "decode-graph" else None

    @torch.no_grad()
    def once():
        token.copy_(torch.tanh(model(token)))

    if graph:
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            once()
        torch.cuda.current_stream().wait_stream(side)
        with torch.cuda.graph(graph), torch.no_grad():
            token.copy_(torch.tanh(model(token)))

    def step():
        graph.replay() if graph else once()
        return token[0, 0, 0].item()

    return step


def main(kind, seconds):
    torch.manual_seed(1)
    step = decoding(kind) if kind.startswith("decode") else training(kind)
    for _ in range(10):
        step()
    begin, done = time.monotonic(), 0
    while time.monotonic() < begin + seconds:
        step()
        done += 1
    print(f"{done / (time.monotonic() - begin):.3f}")


main(sys.argv[1], float(sys.argv[2]))
