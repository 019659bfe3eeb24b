"""Runs a piece of a program on the CPU and on npu, and compares what it returns or raises."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.utils import _pytree as pytree


def outcome(program: Callable[[str], Any], device: str) -> Any:
    torch.manual_seed(0)
    return pytree.tree_map_only(torch.Tensor, lambda tensor: tensor.detach().cpu(), program(device))


def assert_like_cpu(program: Callable[[str], Any], **tolerance: float) -> None:
    """`program` gets the name of a device; its random numbers have to come from the CPU."""
    actual, expected = (pytree.tree_leaves(outcome(program, device)) for device in ("npu", "cpu"))
    for a, e in zip(actual, expected, strict=True):
        if isinstance(e, torch.Tensor):
            torch.testing.assert_close(a, e, **tolerance)
        else:
            assert a == e


def cpu_text(error: BaseException) -> str:
    """The error's text as it would be on the CPU: in the names of tensor types and devices."""
    text = re.sub(r"npu(\w+)Type", r"torch.\1Tensor", str(error))  # what ATen calls FloatTensor and others
    return re.sub(r"\bnpu\b(:0)?", "cpu", text.replace("torch.npu.", "torch."))


def assert_refused_like_cpu(program: Callable[[str], Any]) -> None:
    """`program` raises the same error on both, in the same words but for the names of tensor types and devices."""
    errors = []
    for device in ("cpu", "npu"):
        with pytest.raises(Exception) as caught:  # which, the CPU says
            program(device)
        errors.append((caught.type, cpu_text(caught.value)))
    assert errors[1] == errors[0]
