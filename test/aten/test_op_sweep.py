"""PyTorch's own operator samples (op_db): npu against CPU in values, dtypes, sizes, strides, lazy bits and aliasing.

Each sample runs forward with gradients, in place and with out=. No operator may fall back, and only entries that
host_waits.yaml names may wait for the device. float32 runs in every test run, two samples an operator; more samples,
other dtypes and other layouts of the inputs belong to the long sweep.
"""

from __future__ import annotations

import fnmatch
import functools
import itertools
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
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
# Entries whose values differ because they draw random numbers; all else is compared.
RANDOM = (
    "*rand*", "*dropout*", "*normal*", "*bernoulli*", "*multinomial*", "uniform", "exponential", "cauchy", "geometric",
    "*rrelu*", "*_lowrank", "nn.functional.fractional_max_pool*", "nn.functional.multi_head_attention_forward",
)  # fmt: skip
QUICK = torch.float32
LONG = (torch.float64, torch.bfloat16, torch.float16, torch.complex64, torch.int64, torch.int8, torch.bool)
TOLERANCE = {torch.bfloat16: (5e-2, 5e-2), torch.float16: (2e-2, 2e-2)}
WAITS = yaml.safe_load((Path(__file__).parent / "host_waits.yaml").read_text())

Call = Callable[..., Any]


def as_it_is(sample: SampleInput) -> SampleInput:
    return sample


def noncontiguous(sample: SampleInput) -> SampleInput:
    return sample.noncontiguous()


def laid_out(sample: SampleInput, like: Call) -> SampleInput:
    def change(tensor: torch.Tensor) -> torch.Tensor:
        return like(tensor.detach()).requires_grad_(tensor.requires_grad)

    parts = (sample.input, sample.args, sample.kwargs)
    sample.input, sample.args, sample.kwargs = pytree.tree_map_only(torch.Tensor, change, parts)
    return sample


def permuted(sample: SampleInput) -> SampleInput:
    return laid_out(sample, lambda t: t.transpose(0, -1).contiguous().transpose(0, -1) if t.dim() > 1 else t)


def channels_last(sample: SampleInput) -> SampleInput:
    formats = {4: torch.channels_last, 5: torch.channels_last_3d}
    return laid_out(sample, lambda t: t.contiguous(memory_format=formats.get(t.dim(), torch.contiguous_format)))


LAYOUTS = (noncontiguous, permuted, channels_last)


def matches(name: str, patterns) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def may_wait(op: OpInfo) -> bool:
    return any(matches(op.full_name, group["entries"]) for group in WAITS)


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


class Mover:
    """Copies tensors to a device as they lie in memory: views of one storage stay views of one storage."""

    def __init__(self, device: str) -> None:
        self.device = device
        self.storages: dict[int, tuple[torch.Tensor, torch.UntypedStorage]] = {}
        self.tensors: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}

    def __call__(self, tree: Any) -> Any:
        return pytree.tree_map(self.one, tree)

    def one(self, leaf: Any) -> Any:
        if isinstance(leaf, torch.device):
            return torch.device(self.device)
        if not isinstance(leaf, torch.Tensor):
            return leaf
        if id(leaf) not in self.tensors:
            self.tensors[id(leaf)] = (self.tensor(leaf), leaf)
        return self.tensors[id(leaf)][0]

    def tensor(self, source: torch.Tensor) -> torch.Tensor:
        moved = torch.empty(0, dtype=source.dtype, device=self.device)
        with torch.no_grad():
            moved.set_(self.storage(source), source.storage_offset(), source.shape, source.stride())
        moved = torch._conj(moved) if source.is_conj() else moved
        moved = torch._neg_view(moved) if source.is_neg() else moved
        return moved.requires_grad_() if source.requires_grad else moved

    def storage(self, source: torch.Tensor) -> torch.UntypedStorage:
        storage = source.untyped_storage()
        key = storage.data_ptr() or id(source)
        if key not in self.storages:
            data = torch.empty(0, dtype=torch.uint8).set_(storage).clone()
            self.storages[key] = (data.to(self.device), storage)
        return self.storages[key][0].untyped_storage()


def tensors(tree: Any) -> list[torch.Tensor]:
    return [leaf for leaf in pytree.tree_leaves(tree) if isinstance(leaf, torch.Tensor)]


class Outcome:
    """What a call gave: results, gradients, and which argument each result shares memory with."""

    def __init__(self, results: Any, gradients: list, arguments: Any) -> None:
        self.results = results
        self.gradients = gradients
        owners = [tensor.untyped_storage().data_ptr() for tensor in tensors(arguments)]
        self.aliases = [
            [i for i, owner in enumerate(owners) if owner and owner == tensor.untyped_storage().data_ptr()]
            for tensor in tensors(results)
        ]


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
    torch.npu.synchronize()
    torch.npu.op_stats(reset=True)
    outcome = mode(op, sample, arguments, keywords)
    stats = torch.npu.op_stats(reset=True)
    note(stats)
    assert [name for name, counts in stats.items() if counts["fallback"]] == []
    if not may_wait(op):
        # A blocking copy of the host's waits by contract, where it is not run at once.
        stats.pop("aten::copy_", None)
        assert [name for name, counts in stats.items() if counts["synchronous"] or counts["host_waits"]] == []
    return outcome


def layout(tensor: torch.Tensor) -> tuple:
    strides = tensor.stride() if tensor.numel() else None
    return tensor.dtype, tensor.shape, strides, tensor.storage_offset(), tensor.is_conj(), tensor.is_neg()


def compare(actual: Any, expected: Any, op: OpInfo, dtype: torch.dtype, random: bool) -> None:
    rtol, atol = TOLERANCE.get(dtype, (2e-3, 2e-4))
    if matches(op.full_name, RESOLVED):
        expected = pytree.tree_map_only(torch.Tensor, torch.resolve_conj, expected)
    for a, e in zip(pytree.tree_leaves(actual), pytree.tree_leaves(expected), strict=True):
        if not isinstance(e, torch.Tensor):
            assert type(a) is type(e)
            continue
        assert layout(a) == layout(e)
        if not random:
            torch.testing.assert_close(a.detach().cpu(), e.detach(), rtol=rtol, atol=atol, equal_nan=True)


def check(mode: Call, op: OpInfo, sample: SampleInput, dtype: torch.dtype, note: Call) -> None:
    try:
        expected = run(mode, op, sample, "cpu", note)
    except Exception:  # the CPU refuses this sample
        return
    actual = run(mode, op, sample, "npu", note)
    random = matches(op.full_name, RANDOM) or bool(sample.kwargs.get("dropout_p"))
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
