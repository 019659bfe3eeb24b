"""Samples of op_db with one operand of another size: what the CPU refuses npu refuses too, at the call.

Each operand in turn is one element longer or shorter in its last dimension, has a dimension more, or another dtype.
Whether a call is refused and the exception's type count; values and words do not. What depends on values may come late.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import torch
from compare import matches, tensors
from exceptions import exceptions
from modes import run
from outcomes import Outcome, depends_on_values, pending_error
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.opinfo.core import OpInfo, SampleInput
from torch.utils import _pytree as pytree

# The CPU checks the offsets of embedding_bag only where several threads share the bags.
pytestmark = pytest.mark.usefixtures("like_small_tasks")

QUICK = ("addmm", "addbmm", "flip", "index_fill", "index_put", "index_select", "nn.functional.group_norm", "renorm")
SAMPLES = 4
SKIPPED = exceptions("operators", "skipped")


def longer(tensor: torch.Tensor) -> torch.Tensor:
    if tensor.dim() == 0:
        return tensor.expand(3)
    first = tensor.narrow(-1, 0, 1) if tensor.size(-1) else tensor.new_zeros((*tensor.shape[:-1], 1))
    return torch.cat([tensor, first], -1)


def shorter(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.narrow(-1, 0, tensor.size(-1) - 1) if tensor.dim() and tensor.size(-1) > 1 else tensor[None]


def with_a_dimension(tensor: torch.Tensor) -> torch.Tensor:
    return tensor[None]


def of_another_dtype(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.to(torch.float32 if tensor.dtype == torch.float64 else torch.float64)


CHANGES = (longer, shorter, with_a_dimension, of_another_dtype)


def changed(sample: SampleInput) -> Iterator[tuple[str, SampleInput]]:
    whole = (sample.input, sample.args, sample.kwargs)
    for number, tensor in enumerate(tensors(whole)):
        for change in CHANGES:
            other = change(tensor.detach())
            replace: Callable = lambda leaf, old=tensor, new=other: new if leaf is old else leaf  # noqa: E731
            first, rest, keywords = pytree.tree_map(replace, whole)
            yield f"operand {number} {change.__name__}", SampleInput(first, args=rest, kwargs=keywords)


@torch.no_grad()
def called(op: OpInfo, sample: SampleInput, arguments: list, keywords: dict) -> Outcome:
    return Outcome(op(*arguments, **keywords))


def difference(op: OpInfo, sample: SampleInput, expected: Exception) -> str | None:
    outcome = run(called, op, sample, "npu")
    actual = outcome.error
    late = pending_error()
    if type(actual) is type(expected):
        return None
    if actual is None and str(expected) in str(late) and depends_on_values(str(expected), outcome.left):
        return None
    return f"{actual!r:.200}, later {late!r:.200}, instead of {expected!r:.200}"


def cases() -> Iterator:
    for op in op_db:
        if matches(op.full_name, SKIPPED) or torch.float32 not in op.supported_dtypes("cpu"):
            continue
        marks = () if op.full_name in QUICK else (pytest.mark.conformance, pytest.mark.timeout(600))
        yield pytest.param(op, id=op.full_name, marks=marks)


@pytest.mark.parametrize("op", cases())
def test_other_sizes_are_refused_at_the_call(op, record_property):
    differences, refused = [], 0
    for number, sample in zip(range(SAMPLES), op.sample_inputs("cpu", torch.float32), strict=False):
        for name, other in changed(sample):
            expected = run(called, op, other, "cpu").error
            if expected is None:
                continue
            refused += 1
            found = difference(op, other, expected)
            if found:
                differences.append(f"sample {number}, {name}: {found}")
    record_property("refused", refused)
    assert not differences, "\n".join(differences[:12])
