"""PyTorch's own samples of sparse tensors in all layouts: npu against CPU, with gradients, in place and with out=.

Indices, values and gradients are the same bits, and what the CPU refuses npu refuses in the same words. Only what
host_waits.yaml names may wait for the device. A sample of each operator runs in every test run, all samples of all
dtypes in the long sweep.
"""

from __future__ import annotations

import functools
import itertools
import unittest
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from compare import assert_like, may_wait, on_device
from modes import backward, forward, in_place, run, with_out
from outcomes import Differences
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.opinfo.core import OpInfo, SampleInput

pytestmark = pytest.mark.usefixtures("like_small_tasks")

LAYOUTS = (torch.sparse_coo, torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc)
QUICK_LAYOUTS = (torch.strided, torch.sparse_coo)
QUICK = torch.float32
QUICK_SAMPLES = 1
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
    for op, layout in itertools.product(op_db, (torch.strided, *LAYOUTS)):
        if not has_samples(op, layout):
            continue
        name = f"{op.full_name}-{short(layout)}"
        if layout in QUICK_LAYOUTS and QUICK in op.supported_dtypes("cpu"):
            yield pytest.param(op, layout, QUICK, QUICK_SAMPLES, id=f"{name}-quick")
        for dtype in sorted(op.supported_dtypes("cpu"), key=str):
            yield pytest.param(op, layout, dtype, None, id=f"{name}-{short(dtype)}", marks=pytest.mark.conformance)


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
                try:
                    sparse = sample.input.detach().to_sparse(layout=layout, blocksize=blocks)
                except RuntimeError:  # matrices of a batch with unequal counts have no compressed layout
                    continue
                sample.input = sparse.requires_grad_(requires_grad)
                yield sample


@pytest.mark.parametrize(("op", "layout", "dtype", "count"), list(cases()))
def test_like_cpu(op, layout, dtype, count, note_operators, record_property):
    differentiable = op.supports_autograd and dtype in op.supported_backward_dtypes("cpu")
    modes = [*([backward] if differentiable else []), forward]
    modes += [in_place] if op.inplace_variant is not None else []
    modes += [with_out] if op.supports_out else []
    note = functools.partial(note_operators, test=f"op_db:{op.full_name}", dtype=short(dtype))
    like = functools.partial(assert_like, values=op.full_name not in RANDOM)
    differences = Differences()
    with on_device(note):
        for mode in modes:
            samples = samples_of(op, layout, dtype, requires_grad=mode is backward)
            for i, sample in enumerate(itertools.islice(samples, count)):
                on_npu, expected = functools.partial(run, mode, op, sample, "npu"), run(mode, op, sample, "cpu")
                waiting = may_wait(f"{op.full_name} {short(layout)}", mode.__name__)
                differences.compare(str(i), mode.__name__, on_npu, expected, like, waiting)
    compared = differences.check(record_property)
    if not differences.counts:
        pytest.skip("PyTorch has no such sample")
    assert compared > 0
