"""Operators on all of PyTorch's samples with every task cut into tiles of one element: npu against CPU.

The samples are small, so that only NPU_SIM_TILE_ELEMENTS=1 cuts them; the device reads it once, and make conformance
sets it. Every seam between tiles is crossed: point-wise operators, reductions, copies, indices, products of matrices.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator

import pytest
import torch
from compare import apart, as_it_is, assert_like, draws, matches, may_wait, noncontiguous, on_device
from exceptions import exceptions
from modes import run
from outcomes import Differences
from test_ops import assertion_for, calls
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.opinfo.core import BinaryUfuncInfo, OpInfo, ReductionOpInfo, SampleInput, UnaryUfuncInfo

SETTING = "NPU_SIM_TILE_ELEMENTS"
pytestmark = [
    pytest.mark.usefixtures("like_small_tasks"),
    pytest.mark.conformance,
    pytest.mark.timeout(900),
    pytest.mark.skipif(os.environ.get(SETTING) != "1", reason=f"wants the setting {SETTING}=1"),
]

CLASSES = (UnaryUfuncInfo, BinaryUfuncInfo, ReductionOpInfo)
# Entries of op_db that are of no class of their own.
FAMILIES = {
    "point-wise": (
        "addcdiv", "addcmul", "clamp", "lerp", "logaddexp2", "nn.functional.gelu", "nn.functional.glu",
        "nn.functional.hardswish", "nn.functional.leaky_relu", "where",
    ),
    "reduction": (
        "aminmax", "cum*", "log_softmax*", "logcumsumexp", "logsumexp", "max.reduction*", "min.reduction*", "norm*",
        "softmax*", "std_mean*", "trace", "var_mean*",
    ),
    "copy": (
        "*_copy", "cat", "clone", "constant_pad_nd", "contiguous", "flip*", "hstack", "nn.functional.pad.*", "repeat",
        "roll", "rot90", "stack", "tile", "to", "tril", "triu", "vstack",
    ),
    "index": (
        "__getitem__", "gather", "index*", "masked_*", "nn.functional.embedding", "nonzero", "put", "scatter*", "take*",
    ),
    "GEMM": (
        "__rmatmul__", "add*mm*", "addmv", "addr", "baddbmm", "bmm", "dot", "matmul", "mm", "mv",
        "nn.functional.linear", "outer", "vdot",
    ),
}  # fmt: skip

SKIPPED = exceptions("operators", "skipped")
ROUNDED = exceptions("tiles", "rounded")  # and complex numbers
PRECISIONS = 16  # of the dtype, by which these may differ


def cases() -> Iterator:
    patterns = [pattern for family in FAMILIES.values() for pattern in family]
    for op in op_db:
        if matches(op.full_name, SKIPPED) or not (isinstance(op, CLASSES) or matches(op.full_name, patterns)):
            continue
        for dtype in sorted(op.supported_dtypes("cpu"), key=str):
            yield pytest.param(op, dtype, id=f"{op.full_name}-{str(dtype).removeprefix('torch.')}")


def assertion_in_tiles(op: OpInfo, sample: SampleInput, dtype: torch.dtype) -> Callable:
    if not (dtype.is_complex or matches(op.full_name, ROUNDED)):
        return assertion_for(op, sample, dtype)
    rounding = apart(dtype if dtype.is_complex or dtype.is_floating_point else torch.float32, PRECISIONS)
    return functools.partial(assert_like, **rounding, values=not draws(op.full_name, sample))


@pytest.mark.parametrize(("op", "dtype"), list(cases()))
def test_like_cpu(op, dtype, note_operators, record_property):
    note = functools.partial(note_operators, test=f"op_db:{op.full_name}", dtype=str(dtype).removeprefix("torch."))
    differences = Differences()
    with on_device(note):
        for i, what, mode, sample in calls(op, dtype, None, (as_it_is, noncontiguous)):
            on_npu, expected = functools.partial(run, mode, op, sample, "npu"), run(mode, op, sample, "cpu")
            like, waiting = assertion_in_tiles(op, sample, dtype), may_wait(op.full_name, mode.__name__)
            differences.compare(str(i), what, on_npu, expected, like, waiting)
    assert differences.check(record_property) > 0
