"""Digests of what op_db's operators give on npu, for comparing runs bit by bit; also a program that prints them.

    PYTHONPATH=test python digests.py SHARD SHARDS [SAMPLES]    one JSON object a line: {"case": ..., "digest": ...}

The environment says how the device runs (NPU_LAUNCH_BLOCKING, NPU_SIM_WORKERS, ...). A case is an operator, a dtype, a
sample, a mode and a layout; its digest covers sizes, strides and bits of results and gradients. What the CPU refuses as
well, in the same words, has these words for a digest: when the device reports an error, and as what, depends on the way
it runs. Any other error is a digest that begins with FAILED.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import torch
from compare import matches, noncontiguous, same_layout
from exceptions import exceptions
from modes import Call, backward, forward, in_place, run, with_out
from outcomes import difference_of_errors, pending_error, without_device
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.opinfo.core import OpInfo, SampleInput
from torch.utils import _pytree as pytree

REFUSED, FAILED = "refused: ", "failed: "
SKIPPED = exceptions("ways", "skipped")


def digest(tree: Any) -> str:
    found = hashlib.sha256()
    for leaf in pytree.tree_leaves(tree):
        if not isinstance(leaf, torch.Tensor):
            found.update(repr(leaf).encode())
            continue
        tensor = leaf.detach()
        found.update(repr((tensor.dtype, tensor.shape, tensor.stride())).encode())
        plain = tensor.cpu().resolve_conj().resolve_neg().clone(memory_format=torch.contiguous_format)
        found.update(plain.flatten().view(torch.uint8).numpy().tobytes())
    return found.hexdigest()[:16]


def digest_of(mode: Call, op: OpInfo, sample: SampleInput) -> str:
    actual = run(mode, op, sample, "npu")
    late = pending_error()
    if actual.error is None and late is None:
        return digest((actual.results, actual.gradients))
    expected = run(mode, op, sample, "cpu")
    if expected.error is None:
        return f"{FAILED}{(actual.error or late)!r}, and the CPU gives a result"
    if difference := difference_of_errors(actual, expected, late):
        return f"{FAILED}{difference}"
    return f"{REFUSED}{type(expected.error).__name__}: {without_device(str(expected.error))}"


def modes_of(op: OpInfo, differentiable: bool) -> list[Call]:
    applies = {backward: differentiable, in_place: op.inplace_variant is not None, with_out: op.supports_out}
    return [forward, *(mode for mode, does in applies.items() if does)]


def calls(op: OpInfo, dtype: torch.dtype, most: int | None) -> Iterator[tuple[str, Call, SampleInput]]:
    """(case, mode, sample) of all calls of an entry: each sample as it is, and with strided tensors."""
    differentiable = op.supports_autograd and dtype in op.supported_backward_dtypes("cpu")
    samples = op.sample_inputs("cpu", dtype, requires_grad=differentiable)
    for i, original in enumerate(itertools.islice(samples, most)):
        strided = noncontiguous(original)
        layouts = {"": original} if same_layout(strided, original) else {"": original, "-strided": strided}
        for (layout, sample), mode in itertools.product(layouts.items(), modes_of(op, differentiable)):
            yield f"{op.full_name}-{str(dtype).removeprefix('torch.')}-{i}-{mode.__name__}{layout}", mode, sample


def digests(entries: list[OpInfo], most: int | None = None) -> Iterator[tuple[str, str]]:
    """(case, digest) of the entries' samples, or of the first `most`, in every dtype that the CPU supports."""
    for op in entries:
        if not matches(op.full_name, SKIPPED):
            for dtype in sorted(op.supported_dtypes("cpu"), key=str):
                for case, mode, sample in calls(op, dtype, most):
                    yield case, digest_of(mode, op, sample)


def shard_of(shard: int, shards: int) -> list[OpInfo]:
    return op_db[shard::shards]


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    numbers = [int(argument) for argument in sys.argv[1:]]
    for case, value in digests(shard_of(*numbers[:2]), *numbers[2:]):
        print(json.dumps({"case": case, "digest": value}), flush=True)
