"""The ways a sweep calls an entry of op_db: with gradients, without, in place, and into outputs of the caller's."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch
from compare import Mover, tensors
from outcomes import Outcome, outcome_of
from torch.testing._internal.opinfo.core import OpInfo, SampleInput
from torch.utils import _pytree as pytree

Call = Callable[..., Any]

# Operators that take sizes from CPU tensors, on every accelerator.
SIZES_ON_THE_HOST = ("tensor_split",)
# A dtype that holds every value of another one, and one that out= refuses for results of that dtype.
WIDER = {torch.float32: torch.complex64, torch.int64: torch.float32, torch.bool: torch.int32}
NARROWER = {torch.float32: torch.int64, torch.int64: torch.bool, torch.bool: torch.int8, torch.complex64: torch.float32}


def gradients_of(sample: SampleInput, results: Any, arguments: Any) -> list:
    leaves = [tensor for tensor in tensors(arguments) if tensor.requires_grad]
    outputs = tensors(sample.output_process_fn_grad(results))
    outputs = [tensor for tensor in outputs if tensor.requires_grad]
    if not leaves or not outputs:
        return []
    # full_like makes no sparse tensors.
    weights = [torch.full_like(t, 0.5) if t.layout is torch.strided else t.detach().clone() for t in outputs]
    return list(torch.autograd.grad(outputs, leaves, weights, allow_unused=True))


def backward(op: OpInfo, sample: SampleInput, arguments: list, keywords: dict) -> Outcome:
    results = op(*arguments, **keywords)
    return Outcome(results, gradients_of(sample, results, (arguments, keywords)), (arguments, keywords))


@torch.no_grad()
def forward(op: OpInfo, sample: SampleInput, arguments: list, keywords: dict) -> Outcome:
    return Outcome(op(*arguments, **keywords), [], (arguments, keywords))


@torch.no_grad()
def in_place(op: OpInfo, sample: SampleInput, arguments: list, keywords: dict) -> Outcome:
    results = op.inplace_variant(*arguments, **keywords)
    return Outcome(results, [], (arguments, keywords))


def into(name: str, like: Call) -> Call:
    """The mode that writes into `like(result)` for each result of a call."""

    @torch.no_grad()
    def mode(op: OpInfo, sample: SampleInput, arguments: list, keywords: dict) -> Outcome:
        out = pytree.tree_map(like, op(*arguments, **keywords))
        return Outcome((op(*arguments, **keywords, out=out), out), [], out)

    mode.__name__ = name
    return mode


def of_dtype(dtypes: dict) -> Call:
    return lambda tensor: torch.zeros_like(tensor, dtype=dtypes.get(tensor.dtype, torch.int32))


def transposed(tensor: torch.Tensor) -> torch.Tensor:
    return torch.zeros(tensor.shape[::-1], dtype=tensor.dtype, device=tensor.device).permute(*range(tensor.dim())[::-1])


with_out = into("out", torch.zeros_like)
OUTS = (
    into("out-empty", lambda tensor: tensor.new_empty(0)),
    into("out-larger", lambda tensor: tensor.new_zeros((*tensor.shape, 2))),
    into("out-transposed", transposed),
    into("out-wider", of_dtype(WIDER)),
    into("out-narrower", of_dtype(NARROWER)),
)


def modes_of(op: OpInfo, differentiable: bool, layout_changed: bool) -> Iterator[Call]:
    if differentiable:
        yield backward
    if not (differentiable and layout_changed):
        yield forward
    if op.inplace_variant is not None:
        yield in_place
    if op.supports_out:
        yield with_out
        if not layout_changed:
            yield from OUTS


def moved(op: OpInfo, sample: SampleInput, device: str) -> tuple[list, dict]:
    """Copies of the sample's arguments on `device`, save sizes that belong on the host."""
    move = Mover(device)
    rest = sample.args if op.name in SIZES_ON_THE_HOST else move(sample.args)
    return [move(sample.input), *rest], move(dict(sample.kwargs))


def run(mode: Call, op: OpInfo, sample: SampleInput, device: str) -> Outcome:
    """Calls `op` on copies of the sample's tensors on `device`, where factories without a device make theirs too."""
    arguments, keywords = moved(op, sample, device)
    placed = any(isinstance(leaf, (torch.Tensor, torch.device)) for leaf in pytree.tree_leaves((arguments, keywords)))
    torch.manual_seed(0)
    with contextlib.nullcontext() if placed else torch.device(device):
        outcome = outcome_of(lambda: mode(op, sample, arguments, keywords))
    outcome.left = tensors((arguments, keywords))
    return outcome
