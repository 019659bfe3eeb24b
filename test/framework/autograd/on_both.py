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


def assert_refused_like_cpu(program: Callable[[str], Any]) -> None:
    """`program` raises the same error on both, in the same words but for the names of tensor types and devices."""
    errors = []
    for device in ("cpu", "npu"):
        with pytest.raises(Exception) as caught:  # which, the CPU says
            program(device)
        text = re.sub(r"npu(\w+)Type", r"torch.\1Tensor", str(caught.value))  # what ATen calls FloatTensor and others
        text = text.replace("torch.npu.", "torch.").replace("npu:0", "cpu").replace("npu", "cpu")
        errors.append((caught.type, text))
    assert errors[1] == errors[0]
