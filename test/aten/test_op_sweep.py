"""PyTorch's own operator samples (op_db): npu against CPU, forward and backward.

float32 runs in every test run, a few samples an operator; the other dtypes and more samples belong to the long sweep.
"""

from __future__ import annotations

import itertools
import warnings

import pytest
import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.opinfo.core import OpInfo, SampleInput
from torch.utils import _pytree as pytree

# Names (or "prefix*") of entries whose results cannot be compared, with the reason.
SKIPPED = {
    "sparse.*": "npu tensors are strided",
    "to_sparse": "npu tensors are strided",
    "tensor_split": "takes its sizes from a CPU tensor on every accelerator",
    "as_strided.partial_views": "its samples are views of larger storages, which .npu() does not copy",
    "empty*": "uninitialised memory",
    "new_empty*": "uninitialised memory",
    "nn.functional.multi_head_attention_forward": "its samples drop out",
    "nn.functional.fractional_max_pool*": "draws its regions at random",
    "svd_lowrank": "projects at random",
    "pca_lowrank": "projects at random",
}
RANDOM = (
    "rand",
    "dropout",
    "normal",
    "bernoulli",
    "multinomial",
    "uniform",
    "exponential",
    "cauchy",
    "geometric",
    "rrelu",
)
QUICK = torch.float32
LONG = (torch.float64, torch.bfloat16, torch.float16, torch.complex64, torch.int64, torch.int8, torch.bool)
TOLERANCE = {torch.bfloat16: (5e-2, 5e-2), torch.float16: (2e-2, 2e-2)}


def reason_to_skip(op: OpInfo) -> str | None:
    if any(word in op.name for word in RANDOM):
        return "draws random numbers"
    for name, reason in SKIPPED.items():
        if op.full_name == name or (name.endswith("*") and op.full_name.startswith(name[:-1])):
            return reason
    return None


def cases():
    for op in op_db:
        if reason_to_skip(op):
            continue
        for dtype in (QUICK, *LONG):
            if dtype in op.supported_dtypes("cpu"):
                marks = () if dtype is QUICK else (pytest.mark.conformance,)
                yield pytest.param(op, dtype, id=f"{op.full_name}-{str(dtype).removeprefix('torch.')}", marks=marks)


def move(tree, device: str):
    def one(leaf):
        if isinstance(leaf, torch.Tensor):
            return leaf.detach().to(device).requires_grad_(leaf.requires_grad)
        return torch.device(device) if isinstance(leaf, torch.device) else leaf

    return pytree.tree_map(one, tree)


def call(op: OpInfo, sample: SampleInput, device: str):
    """The results, and the gradients of the tensor arguments."""
    arguments, keywords = move(((sample.input, *sample.args), dict(sample.kwargs)), device)
    if "device" in keywords:
        keywords["device"] = device
    torch.manual_seed(0)
    results = op(*arguments, **keywords)
    leaves = [t for t in pytree.tree_leaves((arguments, keywords)) if isinstance(t, torch.Tensor) and t.requires_grad]
    outputs = [t for t in pytree.tree_leaves(results) if isinstance(t, torch.Tensor) and t.requires_grad]
    if not leaves or not outputs:
        return results, []
    loss = sum(torch.view_as_real(t.resolve_conj()).sum() if t.is_complex() else t.sum() for t in outputs)
    return results, torch.autograd.grad(loss, leaves, allow_unused=True)


def compare(actual, expected, dtype: torch.dtype) -> None:
    rtol, atol = TOLERANCE.get(dtype, (2e-3, 2e-4))

    def one(a, e):
        if isinstance(e, torch.Tensor):
            torch.testing.assert_close(
                a.detach().cpu(), e.detach(), rtol=rtol, atol=atol, equal_nan=True, check_stride=False
            )

    pytree.tree_map(one, actual, expected)


@pytest.mark.parametrize(("op", "dtype"), list(cases()))
def test_like_cpu(op, dtype):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what falls back says so; test_op_table.py lists it
        samples = op.sample_inputs("cpu", dtype, requires_grad=op.supports_autograd and dtype.is_floating_point)
        for sample in itertools.islice(samples, 2 if dtype is QUICK else 6):
            if sample.kwargs.get("dropout_p"):
                continue
            try:
                expected, expected_gradients = call(op, sample, "cpu")
            except Exception:  # the CPU refuses this sample
                continue
            actual, gradients = call(op, sample, "npu")
            compare(actual, expected, dtype)
            for gradient, expected_gradient in zip(gradients, expected_gradients, strict=True):
                if expected_gradient is not None:
                    compare(gradient, expected_gradient, dtype)
        torch.npu.synchronize()
