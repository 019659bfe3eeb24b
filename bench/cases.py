"""What is measured: each case builds the same work for a device and says what the ratio should be."""

from __future__ import annotations

import timeit
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

MIB = 1 << 20
Make = Callable[[str], "Work"]


@dataclass
class Work:
    """Executable work. `statement` is run in `names`; evaluated once, it also gives the result to check."""

    statement: str
    names: dict[str, Any]

    def timer(self) -> timeit.Timer:
        return timeit.Timer(self.statement, globals=self.names)

    def result(self) -> torch.Tensor | float | None:
        return eval(self.statement, self.names)


@dataclass
class Case:
    name: str
    make: Make
    goal: float | None  # npu / CPU eager
    host_only: bool = False
    check: bool = True


def randn(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0))


def expression(statement: str, *shape: int) -> Make:
    """An expression over the tensors a, b, c of one shape."""

    def make(device: str) -> Work:
        a, b, c = (randn(3, *shape) + 2).to(device).unbind()
        return Work(statement, {"torch": torch, "a": a.clone(), "b": b.clone(), "c": c.clone(), "device": device})

    return make


def product(size: int) -> Make:
    def make(device: str) -> Work:
        return Work("a @ b", {"a": randn(size, size).to(device), "b": randn(2, size, size)[1].to(device)})

    return make


def copy(direction: str, size: int, pinned: bool) -> Make:
    """A copy into memory that exists. On the CPU side both ends are pageable memory."""

    def make(device: str) -> Work:
        host = randn(size // 4)
        if device == "cpu":
            return Work("target.copy_(source)", {"target": torch.empty_like(host), "source": host})
        other = host.pin_memory() if pinned else host
        there = host.to(device)
        source, target = (other, torch.empty_like(there)) if direction == "H2D" else (there, torch.empty_like(other))
        if direction == "D2H" and pinned:
            target = target.pin_memory()
        statement = f"target.copy_(source, non_blocking={pinned})"
        return Work(statement, {"target": target, "source": source})

    return make


def mlp() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(*[layer for _ in range(8) for layer in (nn.Linear(256, 256), nn.ReLU())])


def conv2d() -> nn.Module:
    torch.manual_seed(0)
    return nn.Conv2d(16, 32, 3, padding=1)


def forward(model: Callable[[], nn.Module], *shape: int) -> Make:
    def make(device: str) -> Work:
        names = {"model": model().to(device), "x": randn(*shape).to(device), "torch": torch}
        exec("def run():\n  with torch.no_grad():\n    return model(x)", names)
        return Work("run()", names)

    return make


def training_step(model: Callable[[], nn.Module], *shape: int) -> Make:
    def make(device: str) -> Work:
        network = model().to(device)
        x = randn(*shape).to(device)
        optimizer = torch.optim.SGD(network.parameters(), lr=1e-3)

        def run() -> torch.Tensor:
            loss = network(x).square().mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            return loss.detach()

        return Work("run()", {"run": run})

    return make


def all_cases() -> list[Case]:
    elements = 64 * MIB // 4
    cases = [
        Case("host: a + b, 16 elements", expression("a + b", 16), 0.9, host_only=True),
        Case("host: a * b, 16 elements", expression("a * b", 16), 0.9, host_only=True),
        Case("host: relu(a), 16 elements", expression("torch.relu(a)", 16), 0.9, host_only=True),
        Case("host: a * 2.0, 16 elements", expression("a * 2.0", 16), 0.9, host_only=True),
        Case("empty(1024)", expression("torch.empty(1024, device=device)", 16), 1.0, host_only=True, check=False),
        Case("(a + a)[0].item()", expression("(a + a)[0].item()", 16), 1.3),
        Case("a + b, 64 MB", expression("a + b", elements), 1.0),
        Case("relu(a * b + a) * 2, 64 MB", expression("torch.relu(a * b + a) * 2", elements), 1.0),
    ]
    for direction in ("H2D", "D2H"):
        for label, size in (("64 KB", 64 << 10), ("4 MB", 4 * MIB), ("64 MB", 64 * MIB)):
            for pinned in (True, False):
                memory = "pinned" if pinned else "pageable"
                cases.append(Case(f"{direction} {label}, {memory}", copy(direction, size, pinned), 1.0))
    return [
        *cases,
        Case("mm 256", product(256), 1.1),
        Case("mm 1024", product(1024), 1.1),
        Case("conv2d 16->32, 8x16x48x48", forward(conv2d, 8, 16, 48, 48), 1.0),
        Case("conv2d training step", training_step(conv2d, 8, 16, 48, 48), 1.0),
        Case("MLP 8x256, batch 8, forward", forward(mlp, 8, 256), 1.0),
        Case("MLP 8x256, batch 8, SGD step", training_step(mlp, 8, 256), 1.0),
    ]
