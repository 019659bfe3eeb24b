"""PyTorch's reference samples for unary, binary and reduction operators, and its reference implementations, on npu.

The reference samples are larger, stranger and more numerous than the ordinary ones: a million elements, extreme
values, arbitrary strides, every scalar type. The reference implementations (torch._refs) are Python programs over basic
operators. Each result is the CPU's bit by bit, and what the CPU refuses npu refuses in the same words. A few operators
run in every test run, all of them in the long sweep.
"""

from __future__ import annotations

import functools
import itertools
import warnings
from collections.abc import Iterable, Iterator

import pytest
import torch
from compare import Mover, apart, assert_like, draws, matches, may_wait, on_device
from exceptions import exceptions
from outcomes import Differences, Outcome, outcome_of
from torch.testing._internal.common_methods_invocations import binary_ufuncs, python_ref_db, reduction_ops, unary_ufuncs
from torch.testing._internal.opinfo.core import OpInfo, SampleInput

pytestmark = pytest.mark.usefixtures("like_small_tasks")

OPERATORS = [
    op
    for op in (*unary_ufuncs, *binary_ufuncs, *reduction_ops)
    if not op.full_name.startswith(("_refs.", "jiterator_"))  # jiterator compiles kernels for CUDA alone
]
QUICK = ("exp", "sign", "div.floor_rounding", "maximum", "sum", "amax", "_refs.nn.functional.gelu", "_refs.var_mean")
QUICK_SAMPLES = 8
REFS_SAMPLES = 20
REFS_SKIPPED = exceptions("references", "skipped")
REFS_OTHERWISE = exceptions("references", "differs")
REFS_ROUNDED = exceptions("references", "rounded")
REFS_WAITING = exceptions("references", "waits")
PRECISIONS = 64  # of the dtype, by which rounded values may differ


def cases(database: Iterable[OpInfo]) -> list:
    found = []
    for op in database:
        if matches(op.full_name, REFS_SKIPPED):
            continue
        for dtype in sorted(op.supported_dtypes("cpu"), key=str):
            short = str(dtype).removeprefix("torch.")
            if matches(f"{op.full_name} {short}", REFS_OTHERWISE):
                continue
            name = f"{op.full_name}-{short}"
            if op.full_name in QUICK and dtype in (torch.float32, torch.int64):
                found.append(pytest.param(op, dtype, QUICK_SAMPLES, id=f"{name}-quick"))
            found.append(pytest.param(op, dtype, None, id=name, marks=pytest.mark.conformance))
    return found


def run(op: OpInfo, sample: SampleInput, device: str) -> Outcome:
    arguments, keywords = Mover(device)(([sample.input, *sample.args], dict(sample.kwargs)))
    if "device" in keywords:
        keywords["device"] = device
    torch.manual_seed(0)
    return outcome_of(lambda: Outcome(op(*arguments, **keywords), [], (arguments, keywords)))


def compare(op: OpInfo, dtype: torch.dtype, samples: Iterator[SampleInput], kind: str, note_operators, record_property):
    note = functools.partial(note_operators, test=f"{kind}:{op.full_name}", dtype=str(dtype).removeprefix("torch."))
    differences = Differences()
    rounding = apart(dtype, PRECISIONS if op.full_name in REFS_ROUNDED else 0)
    waiting = op.full_name in REFS_WAITING or may_wait(op.full_name.removeprefix("_refs."), "forward")
    with on_device(note):
        for i, sample in enumerate(samples):
            like = functools.partial(assert_like, **rounding, values=not draws(op.full_name, sample))
            on_npu, expected = functools.partial(run, op, sample, "npu"), run(op, sample, "cpu")
            differences.compare(str(i), kind, on_npu, expected, like, waiting)
    if differences.check(record_property) == 0:
        pytest.skip("the CPU refuses every sample of this dtype, and so does npu")


def quietly(samples: Iterable[SampleInput], most: int | None) -> Iterator[SampleInput]:
    """The first samples, without the warnings of making them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.manual_seed(0)
        yield from itertools.islice(samples, most)


@pytest.mark.parametrize(("op", "dtype", "most"), cases(OPERATORS))
def test_reference_samples(op, dtype, most, note_operators, record_property):
    samples = quietly(op.reference_inputs("cpu", dtype), most)
    compare(op, dtype, samples, "reference", note_operators, record_property)


@pytest.mark.parametrize(("op", "dtype", "most"), cases(python_ref_db))
def test_reference_implementations(op, dtype, most, note_operators, record_property):
    samples = quietly(op.sample_inputs("cpu", dtype), most or REFS_SAMPLES)
    compare(op, dtype, samples, "refs", note_operators, record_property)
