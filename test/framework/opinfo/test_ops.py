"""PyTorch's own operator samples (op_db): npu against CPU in values, dtypes, sizes, strides, lazy bits and aliasing.

Each sample runs forward with gradients, in place and with out=. No operator may fall back, and only entries that
host_waits.yaml names may wait for the device. float32 runs in every test run, two samples an operator; more samples,
other dtypes and other layouts of the inputs belong to the long sweep.
"""

from __future__ import annotations

import functools
import itertools
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from compare import LAYOUTS, Mover, Outcome, as_it_is, assert_like, draws, matches, may_wait, on_device, tensors
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.opinfo.core import OpInfo, SampleInput
from torch.utils import _pytree as pytree

# Entries ("prefix*" for several) that are left out, with the reason.
SKIPPED = {
    "sparse.*": "npu tensors are strided",
    "to_sparse": "npu tensors are strided",
    "tensor_split": "takes its sizes from a CPU tensor on every accelerator",
    "empty*": "uninitialised memory",
    "new_empty*": "uninitialised memory",
    "to": "its samples name the CPU",
}
# With other layouts: the CPU's own out= form, or its layout, is at fault or depends on more than its arguments.
LAYOUT_SKIPPED = {
    "*native_batch_norm*": "the CPU's out= form leaves results of strided inputs unwritten",
    "nn.functional.conv_transpose3d": "the layout of small gradients depends on the kernel that the CPU picks",
    "nn.functional.pad.replicate_negative": "the CPU keeps the layout of a slice",
}
# The CPU's result is a lazy conjugate; that of npu holds the values.
RESOLVED = ("linalg.lu_solve",)
QUICK = torch.float32
LONG = (torch.float64, torch.bfloat16, torch.float16, torch.complex64, torch.int64, torch.int8, torch.bool)
TOLERANCE = {torch.bfloat16: (5e-2, 5e-2), torch.float16: (2e-2, 2e-2)}

Call = Callable[..., Any]


def cases() -> Iterator:
    for op in op_db:
        if matches(op.full_name, SKIPPED):
            continue
        for dtype, change in itertools.product((QUICK, *LONG), (as_it_is, *LAYOUTS)):
            if dtype not in op.supported_dtypes("cpu"):
                continue
            if change in LAYOUTS and (dtype is not QUICK or matches(op.full_name, LAYOUT_SKIPPED)):
                continue
            name = "-".join(
                [op.full_name, str(dtype).removeprefix("torch."), *([change.__name__] * (change in LAYOUTS))]
            )
            marks = () if dtype is QUICK and change is as_it_is else (pytest.mark.conformance,)
            yield pytest.param(op, dtype, change, id=name, marks=marks)


def gradients_of(sample: SampleInput, results: Any, arguments: Any) -> list:
    leaves = [tensor for tensor in tensors(arguments) if tensor.requires_grad]
    outputs = tensors(sample.output_process_fn_grad(results))
    outputs = [tensor for tensor in outputs if tensor.requires_grad]
    if not leaves or not outputs:
        return []
    weights = [torch.full_like(tensor, 0.5) for tensor in outputs]
    return list(torch.autograd.grad(outputs, leaves, weights, allow_unused=True))


def forward(op: OpInfo, sample: SampleInput, arguments: list, keywords: dict) -> Outcome:
    results = op(*arguments, **keywords)
    return Outcome(results, gradients_of(sample, results, (arguments, keywords)), (arguments, keywords))


def in_place(op: OpInfo, sample: SampleInput, arguments: list, keywords: dict) -> Outcome:
    with torch.no_grad():
        return Outcome(op.inplace_variant(*arguments, **keywords), [], (arguments, keywords))


def with_out(op: OpInfo, sample: SampleInput, arguments: list, keywords: dict) -> Outcome:
    with torch.no_grad():
        out = pytree.tree_map(torch.zeros_like, op(*arguments, **keywords))
        return Outcome(op(*arguments, **keywords, out=out), [], out)


def with_empty_out(op: OpInfo, sample: SampleInput, arguments: list, keywords: dict) -> Outcome:
    with torch.no_grad():
        out = pytree.tree_map(lambda tensor: tensor.new_empty(0), op(*arguments, **keywords))
        op(*arguments, **keywords, out=out)
        return Outcome(out, [], [])


def modes_of(op: OpInfo) -> list[Call]:
    found: list[Call] = [forward]
    if op.inplace_variant is not None:
        found.append(in_place)
    if op.supports_out:
        found += [with_out, with_empty_out]
    return found


def run(mode: Call, op: OpInfo, sample: SampleInput, device: str, note: Call) -> Outcome:
    move = Mover(device)
    arguments, keywords = move([sample.input, *sample.args]), move(dict(sample.kwargs))
    if "device" in keywords:
        keywords["device"] = device
    torch.manual_seed(0)
    if device == "cpu":
        return mode(op, sample, arguments, keywords)
    with on_device(note, waits_allowed=may_wait(op.full_name)):
        return mode(op, sample, arguments, keywords)


def compare(actual: Any, expected: Any, op: OpInfo, dtype: torch.dtype, random: bool) -> None:
    rtol, atol = TOLERANCE.get(dtype, (2e-3, 2e-4))
    if matches(op.full_name, RESOLVED):
        expected = pytree.tree_map_only(torch.Tensor, torch.resolve_conj, expected)
    assert_like(actual, expected, rtol=rtol, atol=atol, values=not random)


def check(mode: Call, op: OpInfo, sample: SampleInput, dtype: torch.dtype, note: Call) -> None:
    try:
        expected = run(mode, op, sample, "cpu", note)
    except Exception:  # the CPU refuses this sample
        return
    actual = run(mode, op, sample, "npu", note)
    random = draws(op.full_name, sample)
    compare(actual.results, expected.results, op, dtype, random)
    compare(actual.gradients, expected.gradients, op, dtype, random)
    assert actual.aliases == expected.aliases
    torch.npu.synchronize()


@pytest.mark.parametrize(("op", "dtype", "change"), list(cases()))
def test_like_cpu(op, dtype, change, note_operators):
    note = functools.partial(note_operators, test=f"op_db:{op.full_name}", dtype=str(dtype).removeprefix("torch."))
    differentiable = op.supports_autograd and dtype in op.supported_backward_dtypes("cpu")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for mode in modes_of(op):
            samples = op.sample_inputs("cpu", dtype, requires_grad=differentiable and mode is forward)
            for sample in itertools.islice(samples, 2 if (dtype, change) == (QUICK, as_it_is) else 6):
                check(mode, op, change(sample), dtype, note)
