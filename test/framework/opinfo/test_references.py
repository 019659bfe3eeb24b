"""PyTorch's reference samples for unary, binary and reduction operators, and its reference implementations, on npu.

The reference samples are larger, stranger and more numerous than the ordinary ones: a million elements, extreme
values, arbitrary strides, every scalar type. Each result equals that of the CPU, and that of NumPy where the CPU's
does. The reference implementations (torch._refs) are Python programs over basic operators; on npu they give what they
give on the CPU. A few operators run in every test run, all of them in the long sweep.
"""

from __future__ import annotations

import functools
import itertools
import warnings
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest
import torch
from compare import Mover, assert_like, draws, matches, may_wait, on_device, tensors
from torch.testing._internal.common_methods_invocations import binary_ufuncs, python_ref_db, reduction_ops, unary_ufuncs
from torch.testing._internal.opinfo.core import OpInfo, SampleInput
from torch.utils import _pytree as pytree

OPERATORS = [
    op
    for op in (*unary_ufuncs, *binary_ufuncs, *reduction_ops)
    if not op.full_name.startswith(("_refs.", "jiterator_"))  # jiterator compiles kernels for CUDA alone
]
QUICK = ("exp", "sign", "div.floor_rounding", "maximum", "sum", "amax", "_refs.nn.functional.gelu", "_refs.var_mean")
QUICK_SAMPLES = 8
REFS_SAMPLES = 20
TOLERANCE = {torch.bfloat16: (2e-2, 2e-2), torch.float16: (2e-3, 2e-3), torch.complex32: (2e-3, 2e-3)}
# Reference implementations that are left out, with the reason.
REFS_SKIPPED = {
    "_refs.empty*": "uninitialised memory",
    "_refs.new_empty*": "uninitialised memory",
    "_refs.to": "its samples name the CPU",
    "_refs.tensor_split": "takes its sizes from a CPU tensor on every accelerator",
    "_refs.item": "its result is a number that only the host can hold",
}


def cases(database: Iterable[OpInfo]) -> list:
    found = []
    for op in database:
        if matches(op.full_name, REFS_SKIPPED):
            continue
        for dtype in sorted(op.supported_dtypes("cpu"), key=str):
            quick = op.full_name in QUICK and dtype in (torch.float32, torch.int64)
            name = f"{op.full_name}-{str(dtype).removeprefix('torch.')}"
            marks = () if quick else (pytest.mark.conformance,)
            found.append(pytest.param(op, dtype, QUICK_SAMPLES if quick else None, id=name, marks=marks))
    return found


def call(op: OpInfo, sample: SampleInput, device: str, note: Callable) -> Any:
    arguments, keywords = Mover(device)(([sample.input, *sample.args], dict(sample.kwargs)))
    if "device" in keywords:
        keywords["device"] = device
    torch.manual_seed(0)
    if device == "cpu":
        return op(*arguments, **keywords)
    with on_device(note, waits_allowed=may_wait(op.full_name.removeprefix("_refs."))):
        return op(*arguments, **keywords)


def from_numpy(op: OpInfo, sample: SampleInput) -> Any:
    """What the operator's NumPy reference gives; None where there is none, or it cannot take the sample."""
    if op.ref is None:
        return None
    try:
        numpy_sample = sample.numpy()
        with np.errstate(all="ignore"):
            return op.ref(numpy_sample.input, *numpy_sample.args, **numpy_sample.kwargs)
    except Exception:  # a dtype that NumPy lacks, or an argument that it calls otherwise
        return None


def agrees(results: Any, reference: Any, tolerance: tuple[float, float]) -> bool:
    rtol, atol = tolerance
    pairs = itertools.zip_longest(tensors(results), pytree.tree_leaves(reference))
    try:
        for result, expected in pairs:
            expected = torch.as_tensor(np.asarray(expected)).to(result.dtype)
            torch.testing.assert_close(
                result.detach().cpu().resolve_conj(), expected, rtol=rtol, atol=atol, equal_nan=True, check_stride=False
            )
    except Exception:  # other shapes or dtypes than PyTorch's, or values apart
        return False
    return True


def check(op: OpInfo, sample: SampleInput, dtype: torch.dtype, note: Callable) -> bool:
    """Whether the CPU takes the sample, so that there was something to compare."""
    try:
        expected = call(op, sample, "cpu", note)
    except Exception:  # the CPU refuses this sample
        return False
    tolerance = TOLERANCE.get(dtype, (1e-5, 1e-5))
    actual = call(op, sample, "npu", note)
    assert_like(actual, expected, rtol=tolerance[0], atol=tolerance[1], values=not draws(op.full_name, sample))
    reference = from_numpy(op, sample)
    if reference is not None and agrees(expected, reference, tolerance):
        assert agrees(actual, reference, tolerance)
    return True


@pytest.mark.parametrize(("op", "dtype", "most"), cases(OPERATORS))
def test_reference_samples(op, dtype, most, note_operators):
    note = functools.partial(note_operators, test=f"reference:{op.full_name}", dtype=str(dtype).removeprefix("torch."))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        samples = itertools.islice(op.reference_inputs("cpu", dtype), most)
        assert sum(check(op, sample, dtype, note) for sample in samples) > 0


@pytest.mark.parametrize(("op", "dtype", "most"), cases(python_ref_db))
def test_reference_implementations(op, dtype, most, note_operators):
    note = functools.partial(note_operators, test=f"refs:{op.full_name}", dtype=str(dtype).removeprefix("torch."))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        samples = itertools.islice(op.sample_inputs("cpu", dtype), most or REFS_SAMPLES)
        assert sum(check(op, sample, dtype, note) for sample in samples) > 0
