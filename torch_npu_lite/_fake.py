"""What FakeTensorMode has to know about npu. Imported once its rules are."""

from collections.abc import Callable
from typing import Any

import torch
from torch._ops import OpOverload
from torch._subclasses import fake_impls
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.utils import _pytree as pytree

aten = torch.ops.aten
CONVOLUTIONS = (
    aten.convolution.default,
    aten._convolution.default,
    aten._convolution.deprecated,
    aten.convolution_backward.default,
)


def on(device: torch.device, fake_mode: FakeTensorMode, tree: Any) -> Any:
    """The fake tensors of a tree as ones of another device."""

    def moved(tensor: FakeTensor) -> torch.Tensor:
        with fake_mode:
            return torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device=device)

    return pytree.tree_map_only(FakeTensor, moved, tree)


def by_rule_of_cpu(rule: Callable) -> Callable:
    """PyTorch's rule of convolutions finds the memory format by the kernel that a device takes: npu takes the CPU's."""

    def convolution(fake_mode: FakeTensorMode, func: OpOverload, *args: Any, **kwargs: Any) -> Any:
        operands = [leaf for leaf in pytree.tree_leaves((args, kwargs)) if isinstance(leaf, FakeTensor)]
        device = operands[0].fake_device
        if device.type != "npu" or any(operand.fake_device != device for operand in operands):
            return rule(fake_mode, func, *args, **kwargs)
        args, kwargs = on(torch.device("cpu"), fake_mode, (args, kwargs))
        return on(device, fake_mode, rule(fake_mode, func, *args, **kwargs))

    return convolution


def register() -> None:
    rules = fake_impls.op_implementations_dict
    for operator in CONVOLUTIONS:
        if operator in rules:
            rules[operator] = by_rule_of_cpu(rules[operator])
