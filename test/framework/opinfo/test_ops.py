"""PyTorch's own operator samples (op_db): npu against CPU in values, dtypes, sizes, strides, lazy bits and aliasing.

Each sample of each dtype runs with gradients and without, in place, into outputs of several kinds, and with its tensors
laid out in other ways. What the CPU refuses npu refuses in the same words. No operator may fall back, and only entries
that host_waits.yaml names may wait for the device. Two float32 samples an operator run in every test run, the others in
the long sweep. Values are the same bits, save the entries that exceptions.yaml calls rounded.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from compare import LAYOUTS, as_it_is, assert_like, draws, matches, may_wait, on_device, same_layout
from exceptions import exceptions
from modes import modes_of, run
from outcomes import Differences
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.opinfo.core import OpInfo, SampleInput
from torch.utils import _pytree as pytree

pytestmark = pytest.mark.usefixtures("like_small_tasks")

QUICK = torch.float32
QUICK_SAMPLES = 2
SKIPPED = exceptions("operators", "skipped")
CPU_DIFFERS = exceptions("operators", "differs")
CONJUGATES = exceptions("operators", "lazy")
ROUNDED = exceptions("operators", "rounded")
# (rtol, atol) of rounded values.
TOLERANCE = {
    torch.float64: (1e-7, 1e-7),
    torch.complex128: (1e-7, 1e-7),
    torch.float32: (2e-3, 2e-4),
    torch.bfloat16: (5e-2, 5e-2),
    torch.float16: (2e-2, 2e-2),
}


def cases() -> Iterator:
    for op in op_db:
        if matches(op.full_name, SKIPPED):
            continue
        if QUICK in op.supported_dtypes("cpu"):
            yield pytest.param(op, QUICK, QUICK_SAMPLES, (as_it_is,), id=f"{op.full_name}-quick")
        for dtype in sorted(op.supported_dtypes("cpu"), key=str):
            name = f"{op.full_name}-{str(dtype).removeprefix('torch.')}"
            marks = (pytest.mark.conformance, pytest.mark.timeout(900))
            yield pytest.param(op, dtype, None, (as_it_is, *LAYOUTS), id=name, marks=marks)


def resolved(tree: Any) -> Any:
    return pytree.tree_map_only(torch.Tensor, torch.resolve_conj, tree)


def assertion_for(op: OpInfo, sample: SampleInput, dtype: torch.dtype) -> Callable[[Any, Any], None]:
    rounded = matches(f"{op.full_name} {str(dtype).removeprefix('torch.')}", ROUNDED)
    rtol, atol = TOLERANCE.get(dtype, TOLERANCE[torch.float32]) if rounded else (0, 0)
    like = functools.partial(assert_like, rtol=rtol, atol=atol, values=not draws(op.full_name, sample))
    if matches(op.full_name, CONJUGATES):
        return lambda actual, expected: like(actual, resolved(expected))
    return like


def calls(op: OpInfo, dtype: torch.dtype, count: int | None, changes: tuple) -> Iterator[tuple]:
    """(number of the sample, the sample in one of the layouts, mode) of all that is to be compared."""
    differentiable = op.supports_autograd and dtype in op.supported_backward_dtypes("cpu")
    samples = itertools.islice(op.sample_inputs("cpu", dtype, requires_grad=differentiable), count)
    for (i, original), change in itertools.product(enumerate(samples), changes):
        sample = change(original)
        if change is not as_it_is and same_layout(sample, original):
            continue
        for mode in modes_of(op, differentiable, layout_changed=change is not as_it_is):
            what = f"{op.full_name} {mode.__name__} {change.__name__}"
            if not matches(what, CPU_DIFFERS):
                yield i, what, mode, sample


@pytest.mark.parametrize(("op", "dtype", "count", "changes"), list(cases()))
def test_like_cpu(op, dtype, count, changes, note_operators, record_property):
    note = functools.partial(note_operators, test=f"op_db:{op.full_name}", dtype=str(dtype).removeprefix("torch."))
    differences = Differences()
    with on_device(note):
        for i, what, mode, sample in calls(op, dtype, count, changes):
            on_npu, expected = functools.partial(run, mode, op, sample, "npu"), run(mode, op, sample, "cpu")
            like, waiting = assertion_for(op, sample, dtype), may_wait(op.full_name, mode.__name__)
            differences.compare(str(i), what, on_npu, expected, like, waiting)
    assert differences.check(record_property) > 0
