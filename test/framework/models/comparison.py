"""Runs one program on the CPU and on npu, from the same weights and inputs, and says which results are not the same."""

from __future__ import annotations

import copy
import fnmatch
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy
import torch
import yaml
from exceptions import exceptions
from torch import Tensor, nn
from torch.utils import _pytree as pytree

STEPS = 5
WAITS = yaml.safe_load((Path(__file__).parent / "host_waits.yaml").read_text())
TORCH = Path(torch.__file__).parent
# Larger than PyTorch's 1e-8: gradients that are zero but for rounding (of a bias before a normalisation, of the bias of
# attention's keys) would become full steps in a direction that rounding picks, on the CPU just as here.
EPS = 1e-3
ROUNDED = exceptions("models", "rounded")  # programs whose last bits differ in training; all others give the CPU's bits
APART = 2e-5  # of the largest magnitude of a tensor, by which they may
SMALL = (
    5e-5  # what smaller tensors are measured by: gradients that are zero but for rounding have no scale of their own
)


@dataclass
class Usage:
    """What a program did to the device, for the record."""

    fallbacks: list[str] = field(default_factory=list)
    host_waits: Counter[str] = field(default_factory=Counter)  # file and function that waited -> times
    peak_bytes: int = 0
    seconds: dict[str, float] = field(default_factory=dict)

    def record(self, record_property: Callable[[str, object], None]) -> None:
        record_property("fallbacks", len(self.fallbacks))
        record_property("host_waits", sum(self.host_waits.values()))
        record_property("waits_in", ", ".join(sorted(site.split("/")[-1] for site in self.host_waits)))
        record_property("peak_bytes", self.peak_bytes)


def caller() -> str:
    """The innermost function on the stack that is not PyTorch's or ours: the line that made the host wait."""
    for frame in reversed(traceback.extract_stack()):
        path = Path(frame.filename)
        if path.name == "graph.py" and path.parent.name == "autograd":
            return "torch/autograd backward"  # the engine's own thread has no Python frames
        if path.parent.name == "optim":
            return f"torch/optim/{path.name} {frame.name}"
        generated = frame.filename.startswith("<")
        if generated or path == Path(__file__) or path.is_relative_to(TORCH) or path.name == "warnings.py":
            continue
        parts = path.parts
        start = parts.index("site-packages") + 1 if "site-packages" in parts else len(parts) - 1
        return f"{'/'.join(parts[start:])} {frame.name}"
    return "unknown"


@contextmanager
def watch(usage: Usage) -> Iterator[None]:
    """Notes fallback calls, host waits and who caused them, and peak memory of what runs inside."""
    sites: Counter[str] = Counter()

    def note(message: Warning | str, *_: Any, **__: Any) -> None:
        if "synchronizing NPU operation" in str(message):
            sites[caller()] += 1

    torch.npu.synchronize()
    torch.npu.reset_peak_memory_stats()
    torch.npu.op_stats(reset=True)
    always = torch.is_warn_always_enabled()
    torch.set_warn_always(True)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = note
        torch.npu.set_sync_debug_mode("warn")
        try:
            yield
        finally:
            torch.npu.set_sync_debug_mode("default")
            torch.set_warn_always(always)
    stats = torch.npu.op_stats(reset=True)
    usage.fallbacks += [name for name, counts in stats.items() if counts["fallback"]]
    usage.host_waits.update(sites)
    usage.peak_bytes = max(usage.peak_bytes, torch.npu.max_memory_allocated())


def move(tree: Any, device: str) -> Any:
    return pytree.tree_map_only(torch.Tensor, lambda tensor: tensor.to(device), tree)


def tensors(tree: Any) -> dict[str, Tensor]:
    """The tensors of a model's output, numbered."""
    leaves = [leaf for leaf in pytree.tree_leaves(tree) if isinstance(leaf, Tensor)]
    return {str(index): leaf for index, leaf in enumerate(leaves)}


def loss_of(outputs: Any) -> Tensor:
    """The model's own loss, or the mean square of what it computes."""
    loss = getattr(outputs, "loss", None)
    if loss is not None:
        return loss
    results = [tensor for tensor in tensors(outputs).values() if tensor.requires_grad]
    return torch.stack([tensor.abs().float().square().mean() for tensor in results]).mean()


def seed(value: int = 0) -> None:
    torch.manual_seed(value)
    numpy.random.seed(value)  # the models draw masks from numpy's global generator


def train(module: nn.Module, inputs: dict[str, Any], steps: int = STEPS) -> dict[str, Tensor]:
    """Losses of `steps` steps of AdamW, then what they left: gradients, parameters and buffers."""
    module.train()
    optimizer = torch.optim.AdamW(module.parameters(), lr=1e-3, eps=EPS, foreach=True)
    losses = []
    for step in range(steps):
        seed(step)
        optimizer.zero_grad()
        loss = loss_of(module(**inputs))
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    left = {f"loss {step}": loss for step, loss in enumerate(losses)}
    for name, parameter in module.named_parameters():
        left[f"parameter {name}"] = parameter.detach()
        if parameter.grad is not None:
            left[f"gradient {name}"] = parameter.grad
    return left | {f"buffer {name}": buffer for name, buffer in module.named_buffers()}


def evaluate(module: nn.Module, inputs: dict[str, Any]) -> dict[str, Tensor]:
    module.eval()
    seed()
    with torch.no_grad():
        return tensors(module(**inputs))


def run(module: nn.Module, inputs: dict[str, Any], device: str, usage: Usage) -> dict[str, Tensor]:
    """Evaluation, then training; the results stay on `device`."""
    module = copy.deepcopy(module).to(device)
    inputs = move(inputs, device)
    start = time.perf_counter()
    with watch(usage):
        results = {f"evaluation {name}": tensor for name, tensor in evaluate(module, inputs).items()}
        results |= train(module, inputs)
    torch.npu.synchronize()
    usage.seconds[device] = time.perf_counter() - start
    return results


def layout(tensor: Tensor) -> list[int]:
    """The strides that matter: those of dimensions with more than one element."""
    return [stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True) if size > 1 and tensor.numel()]


def wide(tensor: Tensor) -> Tensor:
    return tensor.cpu().to(torch.complex128 if tensor.is_complex() else torch.float64)


def differences(actual: dict[str, Tensor], expected: dict[str, Tensor]) -> dict[str, float]:
    """The tensors whose values are not the CPU's: by how much of their magnitude. All but values must be equal."""
    assert list(actual) == list(expected)
    found = {}
    for name, value in expected.items():
        result = actual[name]
        assert (result.dtype, result.shape, layout(result)) == (value.dtype, value.shape, layout(value)), name
        assert value.isfinite().all() and result.isfinite().all(), f"{name} is not finite"
        apart = (wide(result) - wide(value)).abs()
        if apart.any():
            found[name] = apart.max().item() / max(wide(value).abs().max().item(), SMALL)
    return found


def unlisted_waits(usage: Usage) -> list[str]:
    """The functions that made the host wait and that host_waits.yaml does not name."""
    listed = [pattern for group in WAITS for pattern in group["functions"]]
    return [site for site in usage.host_waits if not any(fnmatch.fnmatchcase(site, pattern) for pattern in listed)]
