"""PyTorch's own samples of jagged tensors (njt_op_db): npu against CPU, forward and gradients."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from compare import draws, tensors
from torch.testing._internal.opinfo.core import OpInfo, SampleInput
from torch.testing._internal.opinfo.definitions.nested import njt_op_db
from torch.utils import _pytree as pytree

QUICK = ("nn.functional.linear", "matmul", "add", "relu", "sum", "clone", "to", "nn.functional.rms_norm", "where")
UNINITIALISED = ("empty_like",)
# PyTorch's derivative of several parts of a jagged tensor ends the process, on the CPU too.
WITHOUT_DERIVATIVE = ("split_with_sizes",)


def cases() -> Iterator:
    for op in njt_op_db:
        if op.supports_njt and torch.float32 in op.supported_dtypes("cpu"):
            marks = () if op.full_name in QUICK else (pytest.mark.conformance,)
            yield pytest.param(op, id=op.full_name, marks=marks)


def samples_of(op: OpInfo) -> Iterator[SampleInput]:
    """Samples on the CPU; a sampler may end with an error where PyTorch has none to offer."""
    iterator = iter(op.sample_inputs("cpu", torch.float32, requires_grad=op.supports_autograd))
    while True:
        try:
            yield next(iterator)
        except (StopIteration, RuntimeError, NotImplementedError):
            return


def moved(tree: Any, device: str) -> Any:
    """`tree` on `device`; tensors that share their offsets go on sharing them."""

    def one(leaf: Any) -> Any:
        if isinstance(leaf, torch.device):
            return torch.device(device)
        if not isinstance(leaf, torch.Tensor):
            return leaf
        return leaf.detach().to(device).requires_grad_(leaf.requires_grad)

    return pytree.tree_map(one, tree)


def run(op: OpInfo, sample: SampleInput, device: str) -> list[torch.Tensor]:
    """Results, then gradients."""
    arguments, keywords = moved(([sample.input, *sample.args], dict(sample.kwargs)), device)
    torch.manual_seed(0)
    results = tensors(op(*arguments, **keywords))
    outputs = [result for result in results if result.requires_grad]
    leaves = [tensor for tensor in tensors((arguments, keywords)) if tensor.requires_grad]
    if not outputs or not leaves or op.full_name in WITHOUT_DERIVATIVE:
        return results
    weights = [torch.ones_like(output) for output in outputs]
    gradients = torch.autograd.grad(outputs, leaves, weights, allow_unused=True)
    return [*results, *(gradient for gradient in gradients if gradient is not None)]


def parts(tensor: torch.Tensor) -> list[torch.Tensor]:
    return [tensor.values(), tensor.offsets()] if tensor.is_nested else [tensor]


def check(op: OpInfo, sample: SampleInput) -> None:
    try:
        expected = run(op, sample, "cpu")
    except Exception:  # the CPU refuses this sample
        return
    torch.npu.op_stats(reset=True)
    actual = run(op, sample, "npu")
    assert [name for name, counts in torch.npu.op_stats().items() if counts["fallback"]] == []
    assert [a.is_nested for a in actual] == [e.is_nested for e in expected]
    random = draws(op.full_name, sample) or op.full_name in UNINITIALISED
    for a, e in zip(actual, expected, strict=True):
        for part, wanted in zip(parts(a), parts(e), strict=True):
            assert (part.shape, part.stride(), part.dtype) == (wanted.shape, wanted.stride(), wanted.dtype)
            if not random:
                torch.testing.assert_close(part.detach().cpu(), wanted.detach(), rtol=2e-3, atol=2e-4, equal_nan=True)


@pytest.mark.parametrize("op", list(cases()))
def test_like_cpu(op):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for sample in itertools.islice(samples_of(op), 2 if op.full_name in QUICK else 6):
            check(op, sample)
