"""PyTorch's own samples of sparse tensors in all layouts: npu against CPU, with gradients, in place and with out=."""

from __future__ import annotations

import itertools
import unittest
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from compare import tensors
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.opinfo.core import OpInfo, SampleInput
from torch.utils import _pytree as pytree

LAYOUTS = (torch.sparse_coo, torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc)
QUICK_LAYOUTS = (torch.strided, torch.sparse_coo)
QUICK = torch.float32
LONG = (torch.float64, torch.complex64, torch.bfloat16, torch.int64, torch.bool)
RANDOM = ("randn_like",)
# Entries of op_db that make or take sparse tensors in their ordinary samples.
ABOUT_SPARSE = ("sparse.sampled_addmm", "sparse.mm.reduce", "to_sparse")


def short(name: Any) -> str:
    return str(name).removeprefix("torch.")


def has_samples(op: OpInfo, layout: torch.layout) -> bool:
    if layout is torch.strided:
        return op.full_name in ABOUT_SPARSE
    return op.supports_sparse_layout(layout)


def cases() -> Iterator:
    for op, layout, dtype in itertools.product(op_db, (torch.strided, *LAYOUTS), (QUICK, *LONG)):
        if has_samples(op, layout) and dtype in op.supported_dtypes("cpu"):
            marks = () if dtype is QUICK and layout in QUICK_LAYOUTS else (pytest.mark.conformance,)
            yield pytest.param(op, layout, dtype, id=f"{op.full_name}-{short(layout)}-{short(dtype)}", marks=marks)


def samples_of(op: OpInfo, layout: torch.layout, dtype: torch.dtype, requires_grad: bool) -> Iterator[SampleInput]:
    """Samples on the CPU: PyTorch's sparse ones, or its dense ones made sparse where it has no others."""
    if layout is torch.strided:
        yield from op.sample_inputs("cpu", dtype, requires_grad=requires_grad)
        return
    try:
        yield from op.sample_inputs_sparse(layout, "cpu", dtype, requires_grad=requires_grad)
    except unittest.SkipTest:
        return
    except NotImplementedError:
        for sample in op.sample_inputs("cpu", dtype, requires_grad=requires_grad):
            if isinstance(sample.input, torch.Tensor) and sample.input.dim() >= 2:
                blocks = (1, 1) if layout in (torch.sparse_bsr, torch.sparse_bsc) else None
                sparse = sample.input.detach().to_sparse(layout=layout, blocksize=blocks)
                sample.input = sparse.requires_grad_(requires_grad)
                yield sample


def moved(tree: Any, device: str) -> Any:
    def one(leaf: Any) -> Any:
        if isinstance(leaf, torch.device):
            return torch.device(device)
        if not isinstance(leaf, torch.Tensor):
            return leaf
        return leaf.detach().to(device, copy=True).requires_grad_(leaf.requires_grad)

    return pytree.tree_map(one, tree)


def forward(op: OpInfo, sample: SampleInput, arguments: list, keywords: dict) -> list[torch.Tensor]:
    """Results, then gradients."""
    results = tensors(sample.output_process_fn_grad(op(*arguments, **keywords)))
    outputs = [result for result in results if result.requires_grad]
    leaves = [tensor for tensor in tensors((arguments, keywords)) if tensor.requires_grad]
    if not outputs or not leaves:
        return results
    weights = [torch.ones_like(output) for output in outputs]
    gradients = torch.autograd.grad(outputs, leaves, weights, allow_unused=True)
    return [*results, *(gradient for gradient in gradients if gradient is not None)]


def in_place(op: OpInfo, sample: SampleInput, arguments: list, keywords: dict) -> list[torch.Tensor]:
    with torch.no_grad():
        op.inplace_variant(*arguments, **keywords)
    return [arguments[0]]


def with_out(op: OpInfo, sample: SampleInput, arguments: list, keywords: dict) -> list[torch.Tensor]:
    with torch.no_grad():
        out = torch.zeros_like(op(*arguments, **keywords))
        op(*arguments, **keywords, out=out)
    return [out]


def check(mode, op: OpInfo, sample: SampleInput, note) -> bool:
    """Whether the CPU takes the sample, so that there was something to compare."""
    arguments, keywords = [sample.input, *sample.args], dict(sample.kwargs)
    if "device" in keywords:
        keywords["device"] = torch.device("cpu")
    try:
        expected = mode(op, sample, *moved((arguments, keywords), "cpu"))
    except Exception:  # the CPU refuses this sample
        return False
    torch.npu.op_stats(reset=True)
    actual = mode(op, sample, *moved((arguments, keywords), "npu"))
    stats = torch.npu.op_stats(reset=True)
    note(stats)
    assert [name for name, counts in stats.items() if counts["fallback"]] == []
    assert all(tensor.device.type == "npu" for tensor in actual)
    assert [(a.layout, a.dtype, a.shape) for a in actual] == [(e.layout, e.dtype, e.shape) for e in expected]
    if op.full_name not in RANDOM:
        torch.testing.assert_close([a.cpu() for a in actual], expected, rtol=2e-3, atol=2e-4, equal_nan=True)
    torch.npu.synchronize()
    return True


@pytest.mark.parametrize(("op", "layout", "dtype"), list(cases()))
def test_like_cpu(op, layout, dtype, note_operators):
    def note(stats: dict) -> None:
        note_operators(stats, test=f"op_db:{op.full_name}", dtype=short(dtype))

    differentiable = op.supports_autograd and dtype in op.supported_backward_dtypes("cpu")
    modes = [forward]
    modes += [in_place] if op.inplace_variant is not None else []
    modes += [with_out] if op.supports_out else []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for mode in modes:
            samples = samples_of(op, layout, dtype, requires_grad=differentiable and mode is forward)
            for sample in itertools.islice(samples, 1 if dtype is QUICK else 6):
                check(mode, op, sample, note)
