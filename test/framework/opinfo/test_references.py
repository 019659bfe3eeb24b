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
from compare import Mover, assert_like, draws, matches, on_device, waits_of
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
# Reference implementations that are left out, with the reason.
REFS_SKIPPED = {
    "_refs.empty*": "uninitialised memory",
    "_refs.new_empty*": "uninitialised memory",
    "_refs.to": "its samples name the CPU",
    "_refs.tensor_split": "takes its sizes from a CPU tensor on every accelerator",
    "_refs.item": "its result is a number that only the host can hold",
}
# "entry dtype" of reference implementations that compute in another way on the CPU, by PyTorch's own choice.
REFS_OTHERWISE = {
    f"_refs.native_layer_norm {dtype}": "the mean is of the input's dtype on the CPU, and float32 elsewhere"
    for dtype in ("bfloat16", "float16")
}
REFS_ROUNDED = {
    "_refs.arange": "counts in double on the CPU, and in float elsewhere",
    "_refs.native_group_norm": "unites scale and shift first on the CPU",
}
PRECISIONS = 64  # of the dtype, by which rounded values may differ
# Those that index with a tensor of one whole number, which PyTorch reads on the host.
REFS_WAITING = ("_refs.bucketize", "_refs.nn.functional.nll_loss")


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
    apart = PRECISIONS * torch.finfo(dtype).eps if op.full_name in REFS_ROUNDED and dtype.is_floating_point else 0
    waits = None if op.full_name in REFS_WAITING else waits_of(op.full_name.removeprefix("_refs."), "forward")
    with on_device(note):
        for i, sample in enumerate(samples):
            like = functools.partial(assert_like, rtol=apart, atol=apart, values=not draws(op.full_name, sample))
            on_npu, expected = functools.partial(run, op, sample, "npu"), run(op, sample, "cpu")
            differences.compare(str(i), kind, on_npu, expected, like, waits)
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
