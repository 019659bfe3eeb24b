"""PyTorch's numerical checks of derivatives over op_db: what passes on the CPU passes on npu.

Each entry is checked in float64 and complex128 with PyTorch's own settings for it (wrapper, fast mode, batched
gradients, tolerance for nondeterminism). The CPU is asked only where npu fails: it must then fail for the same reason.
make test runs a few operators, the long sweep all of them with up to NPU_GRADCHECK_SAMPLES samples each (default 20; 0
for all there are).
"""

from __future__ import annotations

import copy
import itertools
import os
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from compare import Mover
from exceptions import exceptions
from modes import SIZES_ON_THE_HOST
from outcomes import without_device
from torch.testing._internal.autograd_function_db import autograd_function_db
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.common_utils import TestGradients as Gradients
from torch.testing._internal.opinfo.core import OpInfo, SampleInput
from torch.utils import _pytree as pytree

DTYPES = (torch.float64, torch.complex128)
SAMPLES = int(os.environ.get("NPU_GRADCHECK_SAMPLES", 20)) or None
QUICK = ("addmm", "index_put", "nn.functional.layer_norm", "nn.functional.conv2d", "var")
QUICK_SAMPLES = 2
SKIPPED = exceptions("derivatives", "skipped")

helper = Gradients()


@dataclass(frozen=True)
class Check:
    """One of the ways in which PyTorch's own test of a device checks an operator."""

    name: str
    suite: str  # the names under which PyTorch's skips speak of it
    applies: Callable[[OpInfo], bool]
    kind: str = "gradcheck"
    in_place: bool = False
    forward: bool = False

    def __call__(self, op: OpInfo, device: str, dtype: torch.dtype) -> None:
        function = helper._get_safe_inplace(op.get_inplace()) if self.in_place else op.get_op()
        batched = op.check_inplace_batched_forward_grad if self.in_place else op.check_batched_forward_grad
        modes = {
            "check_forward_ad": True,
            "check_backward_ad": False,
            "check_batched_grad": False,
            "check_batched_forward_grad": batched,
        }
        helper._check_helper(device, dtype, op, function, self.kind, **(modes if self.forward else {}))

    def left_out(self, op: OpInfo, dtype: torch.dtype) -> bool:
        """Whether PyTorch skips the check on the CPU, or expects it to fail there."""

        def probe() -> None: ...

        for decorate in op.get_decorators(self.suite, self.name, "cpu", dtype, {}):
            probe = decorate(probe)
        marks = ("__unittest_skip__", "__unittest_expecting_failure__")
        return any(getattr(probe, mark, False) for mark in marks)


BACKWARD, FORWARD = "TestBwdGradients", "TestFwdGradients"
CHECKS = (
    Check("test_fn_grad", BACKWARD, lambda op: op.supports_autograd),
    Check("test_inplace_grad", BACKWARD, lambda op: op.supports_inplace_autograd, in_place=True),
    Check("test_fn_gradgrad", BACKWARD, lambda op: op.supports_gradgrad, "bwgrad_bwgrad"),
    Check(
        "test_inplace_gradgrad",
        BACKWARD,
        lambda op: op.supports_gradgrad and op.supports_inplace_autograd,
        "bwgrad_bwgrad",
        in_place=True,
    ),
    Check("test_forward_mode_AD", FORWARD, lambda op: op.supports_forward_ad, forward=True),
    Check(
        "test_inplace_forward_mode_AD",
        FORWARD,
        lambda op: op.supports_forward_ad and op.supports_inplace_autograd,
        in_place=True,
        forward=True,
    ),
    Check("test_fn_fwgrad_bwgrad", FORWARD, lambda op: op.supports_fwgrad_bwgrad, "fwgrad_bwgrad"),
)


def cases() -> Iterator:
    for op, dtype, check in itertools.product((*op_db, *autograd_function_db), DTYPES, CHECKS):
        if dtype not in op.supported_backward_dtypes("cpu") or not check.applies(op):
            continue
        if (check.in_place and op.get_inplace() is None) or check.left_out(op, dtype) or op.full_name in SKIPPED:
            continue
        name = "-".join([op.full_name, str(dtype).removeprefix("torch."), check.name.removeprefix("test_")])
        if op.full_name in QUICK and dtype is torch.float64 and not check.in_place:
            yield pytest.param(op, dtype, check, QUICK_SAMPLES, id=f"{name}-quick")
        yield pytest.param(op, dtype, check, SAMPLES, id=name, marks=pytest.mark.conformance)


def on(device: str, op: OpInfo, sample: SampleInput) -> SampleInput:
    move = Mover(device)

    def one(leaf: Any) -> Any:
        sparse = isinstance(leaf, torch.Tensor) and leaf.layout is not torch.strided
        return leaf.detach().to(device).requires_grad_(leaf.requires_grad) if sparse else move.one(leaf)

    moved = copy.copy(sample)
    moved.input, moved.kwargs = pytree.tree_map(one, (sample.input, sample.kwargs))
    moved.args = sample.args if op.name in SIZES_ON_THE_HOST else pytree.tree_map(one, sample.args)
    return moved


class Limited:
    """An operator's entry that yields its first samples only, and counts them.

    They are drawn on the CPU: whether a numerical derivative comes near a jump of the operator depends on the numbers.
    """

    def __init__(self, op: OpInfo, most: int | None) -> None:
        self.count = 0
        self.samples = op.sample_inputs
        self.most = most
        self.op = copy.copy(op)
        self.op.sample_inputs = self.sample_inputs

    def sample_inputs(self, device: str, *arguments: Any, **options: Any) -> Iterator[SampleInput]:
        for sample in itertools.islice(self.samples("cpu", *arguments, **options), self.most):
            self.count += 1
            yield on(device, self.op, sample)


def attempt(check: Check, op: OpInfo, device: str, dtype: torch.dtype) -> Exception | None:
    torch.manual_seed(0)
    try:
        check(op, device, dtype)
    except Exception as error:
        return error
    return None


def words(error: Exception) -> str:
    return f"{type(error).__name__}: {without_device(str(error))}"


@pytest.mark.parametrize(("op", "dtype", "check", "most"), list(cases()))
def test_derivatives_pass_where_they_do_on_the_cpu(op, dtype, check, most, record_property):
    limited = Limited(op, most)
    torch.npu.op_stats(reset=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        failure = attempt(check, limited.op, "npu", dtype)
        expected = None if failure is None else attempt(check, limited.op, "cpu", dtype)
    if failure is not None and (expected is None or words(failure) != words(expected)):
        raise failure from expected
    if expected is not None:
        pytest.skip(f"fails on the CPU too: {words(expected)}")
    assert [name for name, counts in torch.npu.op_stats(reset=True).items() if counts["fallback"]] == []
    assert limited.count > 0
    record_property("samples", limited.count)
