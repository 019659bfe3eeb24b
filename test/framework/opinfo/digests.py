"""Digests of what op_db's operators give on npu, for comparing runs bit by bit; also a program that prints them.

    python digests.py SHARD SHARDS [SAMPLES]    one JSON object a line: {"case": ..., "digest": ...}

The environment says how the device runs (NPU_LAUNCH_BLOCKING, NPU_SIM_WORKERS, ...). A case is an operator, a dtype and
a sample; its digest covers results, gradients and what an in-place form leaves: sizes, strides and bits. A call that
fails has the digest "error": when and as what an error of the device is raised depends on the way it runs.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import torch
from compare import Mover, matches, tensors
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.opinfo.core import OpInfo, SampleInput

SAMPLES = 6  # of an operator and dtype
# Entries that are left out, with the reason.
SKIPPED = {
    "linalg.lstsq*": "PyTorch leaves LAPACK's pivots uninitialised: the CPU's last bits change from call to call",
    "empty*": "uninitialised memory",
    "new_empty*": "uninitialised memory",
    "sparse.*": "sparse tensors have no bytes of their own",
    "to_sparse": "sparse tensors have no bytes of their own",
}


def digest(tree: Any) -> str:
    found = hashlib.sha256()
    for tensor in tensors(tree):
        tensor = tensor.detach()
        found.update(repr((tensor.dtype, tensor.shape, tensor.stride())).encode())
        plain = tensor.cpu().resolve_conj().resolve_neg().contiguous()
        found.update(plain.flatten().view(torch.uint8).numpy().tobytes())
    return found.hexdigest()[:16]


def results_of(op: OpInfo, sample: SampleInput) -> list:
    """Results and gradients of a call, and of its in-place form, on npu."""
    given = ([sample.input, *sample.args], dict(sample.kwargs))
    arguments, keywords = Mover("npu")(given)
    if "device" in keywords:
        keywords["device"] = "npu"
    torch.manual_seed(0)
    results = op(*arguments, **keywords)
    leaves = [tensor for tensor in tensors((arguments, keywords)) if tensor.requires_grad]
    outputs = [tensor for tensor in tensors(sample.output_process_fn_grad(results)) if tensor.requires_grad]
    weights = [torch.full_like(tensor, 0.5) for tensor in outputs]
    gradients = torch.autograd.grad(outputs, leaves, weights, allow_unused=True) if outputs and leaves else ()
    changed = None
    if op.inplace_variant is not None:
        # A form that refuses the sample leaves its operand as it was, in every way of running.
        with torch.no_grad(), contextlib.suppress(RuntimeError, TypeError, ValueError):
            fresh, _ = Mover("npu")(given)
            changed = op.inplace_variant(*fresh, **keywords)
    return [results, gradients, changed]


def digest_of(op: OpInfo, sample: SampleInput) -> str:
    try:
        found = digest(results_of(op, sample))
        torch.npu.synchronize()
    except Exception:  # the operator refuses the sample; the device may say so later than the call
        with contextlib.suppress(RuntimeError):
            torch.npu.synchronize()
        return "error"
    return found


def digests(entries: list[OpInfo], most: int = SAMPLES) -> Iterator[tuple[str, str]]:
    """(case, digest) of the entries' samples in every dtype that the CPU supports."""
    for op in entries:
        if matches(op.full_name, SKIPPED):
            continue
        for dtype in sorted(op.supported_dtypes("cpu"), key=str):
            differentiable = op.supports_autograd and dtype in op.supported_backward_dtypes("cpu")
            samples = op.sample_inputs("cpu", dtype, requires_grad=differentiable)
            for i, sample in enumerate(itertools.islice(samples, most)):
                yield f"{op.full_name}-{str(dtype).removeprefix('torch.')}-{i}", digest_of(op, sample)


def shard_of(shard: int, shards: int) -> list[OpInfo]:
    return op_db[shard::shards]


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    numbers = [int(argument) for argument in sys.argv[1:]]
    for case, value in digests(shard_of(*numbers[:2]), *numbers[2:]):
        print(json.dumps({"case": case, "digest": value}), flush=True)
