"""PyTorch's operators over lists of tensors (the foreach databases): npu against CPU.

Each sample runs out of place with gradients and in place, on lists as they come, of strided tensors, of tensors without
elements, and of mixed dtypes and layouts. Values are the same bits, and what the CPU refuses npu refuses in the same
words. Short lists of float32 run in every test run (of the unary operators only a few), the rest in the long sweep.
"""

from __future__ import annotations

import copy
import functools
import itertools
import random
from collections.abc import Callable, Iterator

import pytest
import torch
from compare import Mover, may_wait, on_device, tensors
from outcomes import Differences, Outcome, outcome_of
from torch.testing._internal.common_methods_invocations import (
    foreach_binary_op_db,
    foreach_other_op_db,
    foreach_pointwise_op_db,
    foreach_reduce_op_db,
    foreach_unary_op_db,
)
from torch.testing._internal.opinfo.core import ForeachFuncInfo, SampleInput

pytestmark = pytest.mark.usefixtures("like_small_tasks")

DATABASES = {
    "unary": foreach_unary_op_db,
    "binary": foreach_binary_op_db,
    "pointwise": foreach_pointwise_op_db,
    "reduce": foreach_reduce_op_db,
    "other": foreach_other_op_db,
}
QUICK = torch.float32
QUICK_LENGTH = 5
QUICK_UNARY = ("_foreach_abs", "_foreach_exp", "_foreach_neg", "_foreach_sqrt", "_foreach_zero")
LENGTHS = [20, 23]
LONG_LIST = 500


def forward(op: ForeachFuncInfo, arguments: list, keywords: dict) -> Outcome:
    results = op.method_variant(*arguments, **keywords)
    leaves = [tensor for tensor in tensors(arguments) if tensor.requires_grad]
    outputs = [tensor for tensor in tensors(results) if tensor.requires_grad]
    weights = [torch.full_like(tensor, 0.5) for tensor in outputs]
    gradients = torch.autograd.grad(outputs, leaves, weights, allow_unused=True) if outputs else ()
    return Outcome(results, list(gradients), arguments)


def in_place(op: ForeachFuncInfo, arguments: list, keywords: dict) -> Outcome:
    with torch.no_grad():
        op.inplace_variant(*arguments, **keywords)
        return Outcome(arguments[0], [], arguments)


def run(mode: Callable, sample: SampleInput, op: ForeachFuncInfo, device: str) -> Outcome:
    arguments, keywords = Mover(device)(([sample.input, *sample.args], dict(sample.kwargs)))
    return outcome_of(lambda: mode(op, arguments, keywords))


def compare(op: ForeachFuncInfo, dtype: torch.dtype, calls: Iterator, note_operators, record_property) -> int:
    """Runs (mode, sample) pairs on both devices; gives the number of those that the CPU has not refused."""
    note = functools.partial(note_operators, test=f"foreach:{op.name}", dtype=str(dtype).removeprefix("torch."))
    differences = Differences()
    with on_device(note):
        for i, (mode, sample) in enumerate(calls):
            on_npu, expected = functools.partial(run, mode, sample, op, "npu"), run(mode, sample, op, "cpu")
            differences.compare(str(i), mode.__name__, on_npu, expected, may_wait=may_wait(op.name, mode.__name__))
    return differences.check(record_property)


def modes_of(op: ForeachFuncInfo) -> list[Callable]:
    if op.method_variant is op.inplace_variant:
        return [in_place]
    return [forward, in_place] if op.inplace_variant is not None else [forward]


def samples(op: ForeachFuncInfo, dtype: torch.dtype, requires_grad: bool, lengths: list[int]) -> Iterator[SampleInput]:
    make = functools.partial(op.sample_inputs, "cpu", dtype, requires_grad=requires_grad)
    yield from make(num_input_tensors=lengths)
    if lengths is LENGTHS:
        yield from make(num_input_tensors=lengths, noncontiguous=True)
        yield from make(num_input_tensors=lengths, allow_higher_dtype_scalars=True, same_size=True)
        yield from op.sample_zero_size_inputs("cpu", dtype, requires_grad)


def mixed(sample: SampleInput) -> SampleInput:
    """Every second tensor of the first list in another floating dtype, every third in another layout."""

    def change(i: int, tensor: torch.Tensor) -> torch.Tensor:
        if i % 2:
            tensor = tensor.to(torch.float64)
        return tensor.mT.contiguous().mT if i % 3 == 0 and tensor.dim() > 1 else tensor

    sample.input = [change(i, tensor.detach()) for i, tensor in enumerate(sample.input)]
    return sample


def cases() -> list:
    found = []
    for family, database in DATABASES.items():
        for op in database:
            for dtype in sorted(op.supported_dtypes("cpu"), key=str):
                name = f"{family}-{op.name.removeprefix('_foreach_')}-{str(dtype).removeprefix('torch.')}"
                quick = dtype is QUICK and (family != "unary" or op.name in QUICK_UNARY)
                marks = [] if quick else [pytest.mark.conformance]
                found.append(pytest.param(op, dtype, LENGTHS if marks else [QUICK_LENGTH], id=name, marks=marks))
            found.append(
                pytest.param(op, QUICK, LENGTHS, id=f"{family}-{op.name[9:]}-long", marks=pytest.mark.conformance)
            )
    return found


@pytest.mark.parametrize(("op", "dtype", "lengths"), cases())
def test_like_cpu(op, dtype, lengths, note_operators, record_property):
    differentiable = op.supports_autograd and dtype in op.supported_backward_dtypes("cpu")

    def calls() -> Iterator:
        for mode in modes_of(op):
            random.seed(0)
            torch.manual_seed(0)
            yield from ((mode, sample) for sample in samples(op, dtype, differentiable and mode is forward, lengths))

    if compare(op, dtype, calls(), note_operators, record_property) == 0:
        pytest.skip("the CPU refuses every sample of this dtype, and so does npu")


ENTRIES = [pytest.param(op, id=op.name) for database in DATABASES.values() for op in database]


@pytest.mark.conformance
@pytest.mark.parametrize("op", ENTRIES)
def test_lists_of_mixed_tensors(op, note_operators, record_property):
    random.seed(0)
    torch.manual_seed(0)
    lists = op.sample_inputs("cpu", QUICK, num_input_tensors=[QUICK_LENGTH], same_size=True)
    calls = ((mode, mixed(copy.copy(sample))) for sample in lists for mode in modes_of(op))
    compare(op, QUICK, calls, note_operators, record_property)


@pytest.mark.conformance
@pytest.mark.parametrize("op", ENTRIES)
def test_lists_of_many_tensors(op, note_operators, record_property):
    random.seed(0)
    torch.manual_seed(0)
    lists = itertools.islice(op.sample_inputs("cpu", QUICK, num_input_tensors=[LONG_LIST]), 4)
    assert compare(op, QUICK, ((modes_of(op)[0], sample) for sample in lists), note_operators, record_property) > 0
