#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""train.py SECONDS [AT]: a tenant as they are: trains a small network with PyTorch, and prints its steps a second.

AT, of CLOCK_MONOTONIC, is when it begins to count; it trains from its start on, and for a second longer. It reads the loss
after each ten steps, as training programs do. It knows nothing of slices.
"""
import sys
import time

import torch

WARM_UP_STEPS = 50


def main(seconds, at=None):
    torch.manual_seed(1)
    model = torch.nn.Sequential(
        torch.nn.Linear(1024, 4096), torch.nn.ReLU(), torch.nn.Linear(4096, 4096), torch.nn.ReLU(), torch.nn.Linear(4096, 10)
    ).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    data = torch.randn(2048, 1024, device="cuda")
    labels = torch.randint(10, (2048,), device="cuda")

    def steps(count):
        for _ in range(count):
            optimizer.zero_grad(set_to_none=True)
            loss = torch.nn.functional.cross_entropy(model(data), labels)
            loss.backward()
            optimizer.step()
        return loss.item()

    steps(WARM_UP_STEPS)
    at = at or time.monotonic() + 2
    if time.monotonic() > at:
        sys.exit("it has started too late")
    while time.monotonic() < at:
        steps(10)
    begin, done = time.monotonic(), 0
    while time.monotonic() < begin + seconds:
        steps(10)
        done += 10
    rate = done / (time.monotonic() - begin)
    while time.monotonic() < begin + seconds + 1:
        steps(10)
    print(f"{rate:.2f}")


main(*map(float, sys.argv[1:]))
