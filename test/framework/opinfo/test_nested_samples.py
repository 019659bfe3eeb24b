"""PyTorch's own samples of jagged tensors (njt_op_db): npu against CPU, forward and gradients, bit by bit.

What the CPU refuses npu refuses in the same words. Only what host_waits.yaml names may wait for the device. A few
samples run in every test run, all of them in the long sweep.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator

import pytest
import torch
from compare import assert_like, draws, may_wait, on_device
from modes import backward, forward, run
from outcomes import Differences
from torch.testing._internal.opinfo.core import OpInfo, SampleInput
from torch.testing._internal.opinfo.definitions.nested import njt_op_db

pytestmark = pytest.mark.usefixtures("like_small_tasks")

QUICK = ("nn.functional.linear", "matmul", "add", "relu", "sum", "clone", "to", "nn.functional.rms_norm", "where")
QUICK_SAMPLES = 2
UNINITIALISED = ("empty_like",)
# PyTorch's derivative of several parts of a jagged tensor ends the process, on the CPU too.
WITHOUT_DERIVATIVE = ("split_with_sizes",)


def cases() -> Iterator:
    for op in njt_op_db:
        if op.supports_njt and torch.float32 in op.supported_dtypes("cpu") and not op.name.startswith("jiterator"):
            if op.full_name in QUICK:
                yield pytest.param(op, QUICK_SAMPLES, id=f"{op.full_name}-quick")
            yield pytest.param(op, None, id=op.full_name, marks=pytest.mark.conformance)


def all_samples(op: OpInfo, requires_grad: bool) -> Iterator[SampleInput]:
    """Samples on the CPU; a sampler may end with an error where PyTorch has none to offer."""
    iterator = iter(op.sample_inputs("cpu", torch.float32, requires_grad=requires_grad))
    while True:
        try:
            yield next(iterator)
        except (StopIteration, RuntimeError, NotImplementedError):
            return


def samples_of(op: OpInfo, count: int | None, requires_grad: bool) -> list[SampleInput]:
    """All samples, or about `count` from all over the list: neighbours are alike."""
    samples = list(all_samples(op, requires_grad))
    return samples if count is None else samples[:: max(1, len(samples) // count)]


@pytest.mark.parametrize(("op", "count"), list(cases()))
def test_like_cpu(op, count, note_operators, record_property):
    modes = [forward, *([backward] if op.supports_autograd and op.full_name not in WITHOUT_DERIVATIVE else [])]

    note = functools.partial(note_operators, test=f"njt_op_db:{op.full_name}", dtype="float32")
    differences = Differences()
    refusal = "there are none"
    with on_device(note):
        for mode in modes:
            for i, sample in enumerate(samples_of(op, count, requires_grad=mode is backward)):
                random = draws(op.full_name, sample) or op.full_name in UNINITIALISED
                like = functools.partial(assert_like, values=not random)
                on_npu, expected = functools.partial(run, mode, op, sample, "npu"), run(mode, op, sample, "cpu")
                waiting = may_wait(f"{op.full_name} jagged", mode.__name__)
                differences.compare(str(i), mode.__name__, on_npu, expected, like, waiting)
                if expected.error is not None:
                    refusal = f"{type(expected.error).__name__}: {expected.error}"
    if not differences.check(record_property):
        pytest.skip(f"the CPU refuses all samples in the same words, such as: {refusal}")
