"""PyTorch's own samples of jagged tensors (njt_op_db): npu against CPU, forward and gradients, bit by bit.

What the CPU refuses npu refuses in the same words. Only what host_waits.yaml names may wait for the device, and the
operators of WAITING.
"""

from __future__ import annotations

import collections
import functools
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from compare import Outcome, assert_like, draws, may_wait, on_device, tensors
from modes import Call, backward, forward, outcome_of
from refusals import difference_of_errors, pending_error
from torch.testing._internal.opinfo.core import OpInfo, SampleInput
from torch.testing._internal.opinfo.definitions.nested import njt_op_db
from torch.utils import _pytree as pytree

QUICK = ("nn.functional.linear", "matmul", "add", "relu", "sum", "clone", "to", "nn.functional.rms_norm", "where")
QUICK_SAMPLES, SAMPLES = 2, 12
UNINITIALISED = ("empty_like",)
# PyTorch's derivative of several parts of a jagged tensor ends the process, on the CPU too.
WITHOUT_DERIVATIVE = ("split_with_sizes",)
# PyTorch's kernels that walk the parts of jagged tensors on the host.
WAITING = ("aten::_jagged_to_padded_dense_forward", "aten::_padded_dense_to_jagged_forward")


def cases() -> Iterator:
    for op in njt_op_db:
        if op.supports_njt and torch.float32 in op.supported_dtypes("cpu") and not op.name.startswith("jiterator"):
            marks = () if op.full_name in QUICK else (pytest.mark.conformance,)
            yield pytest.param(op, id=op.full_name, marks=marks)


def all_samples(op: OpInfo, requires_grad: bool) -> Iterator[SampleInput]:
    """Samples on the CPU; a sampler may end with an error where PyTorch has none to offer."""
    iterator = iter(op.sample_inputs("cpu", torch.float32, requires_grad=requires_grad))
    while True:
        try:
            yield next(iterator)
        except (StopIteration, RuntimeError, NotImplementedError):
            return


def samples_of(op: OpInfo, requires_grad: bool) -> list[SampleInput]:
    """About as many as wanted, from all over the list: neighbours are alike."""
    samples = list(all_samples(op, requires_grad))
    return samples[:: max(1, len(samples) // (QUICK_SAMPLES if op.full_name in QUICK else SAMPLES))]


def moved(tree: Any, device: str) -> Any:
    """`tree` on `device`; tensors that share their offsets go on sharing them."""

    def one(leaf: Any) -> Any:
        if isinstance(leaf, torch.device):
            return torch.device(device)
        if not isinstance(leaf, torch.Tensor):
            return leaf
        return leaf.detach().to(device).requires_grad_(leaf.requires_grad)

    return pytree.tree_map(one, tree)


def run(mode: Call, op: OpInfo, sample: SampleInput, device: str) -> Outcome:
    arguments, keywords = moved(([sample.input, *sample.args], dict(sample.kwargs)), device)
    torch.manual_seed(0)
    return outcome_of(lambda: mode(op, sample, arguments, keywords))


def parts(tensor: torch.Tensor) -> list[Any]:
    """The strided tensors that a jagged tensor consists of; what has no lengths of its own has None."""
    return [tensor.values(), tensor.offsets(), tensor.lengths()] if tensor.is_nested else [tensor]


def difference(mode: Call, op: OpInfo, sample: SampleInput, expected: Outcome) -> str | None:
    """Why npu's outcome is not the CPU's; None when it is."""
    try:
        actual = run(mode, op, sample, "npu")
        if expected.error is not None:
            return difference_of_errors(actual, expected)
        if actual.error is not None:
            return f"npu refuses: {actual.error!r}"
        random = draws(op.full_name, sample) or op.full_name in UNINITIALISED
        found, wanted = (tensors((outcome.results, outcome.gradients)) for outcome in (actual, expected))
        for a, e in zip(found, wanted, strict=True):
            assert (a.device.type, a.is_nested) == ("npu", e.is_nested)
            assert_like(parts(a.detach()), parts(e.detach()), values=not random)
    except Exception as error:
        return f"{type(error).__name__}: {error} {pending_error() or ''}"
    return None


@pytest.mark.parametrize("op", list(cases()))
def test_like_cpu(op, note_operators):
    modes = [forward, *([backward] if op.supports_autograd and op.full_name not in WITHOUT_DERIVATIVE else [])]

    note = functools.partial(note_operators, test=f"njt_op_db:{op.full_name}", dtype="float32")
    found: dict[str, list[str]] = collections.defaultdict(list)
    refusals: dict[str, None] = {}
    compared = 0
    with on_device(note, waits_allowed=may_wait(f"{op.full_name} jagged"), known=WAITING):
        for mode in modes:
            for i, sample in enumerate(samples_of(op, requires_grad=mode is backward)):
                expected = run(mode, op, sample, "cpu")
                if expected.error is None:
                    compared += 1
                else:
                    refusals[f"{type(expected.error).__name__}: {expected.error}"] = None
                what = difference(mode, op, sample, expected)
                if what:
                    found[f"{mode.__name__}: {what}"].append(str(i))
    assert not found, "\n".join(f"samples {', '.join(where)}: {what}" for what, where in found.items())
    if not compared:
        pytest.skip(f"the CPU refuses all samples in the same words: {next(iter(refusals), 'there are none')}")
