"""Tells PyTorch about npu: the official registration hooks, and workarounds for what they miss."""

import atexit
import warnings
from enum import IntEnum

import torch

from torch_npu_lite import _C, npu
from torch_npu_lite._on_import import when_imported


def register() -> None:
    torch.utils.rename_privateuse1_backend("npu")
    torch._register_device_module("npu", npu)
    torch.utils.generate_methods_for_privateuse1_backend(for_tensor=True, for_module=True, for_storage=True)
    torch.utils.checkpoint.DefaultDeviceType.set_device_type("npu")
    when_imported("torch._dynamo", register_with_dynamo)
    when_imported("torch._functorch._aot_autograd.utils", register_with_aot_autograd)
    when_imported("torch._subclasses.fake_impls", register_with_fake_tensors)
    work_around_dlpack()
    work_around_byteswap()
    atexit.register(_C.shutdown)
    accelerator = torch._C._get_accelerator().type
    if accelerator not in ("npu", "cpu"):
        warnings.warn(
            f"PyTorch's current accelerator is '{accelerator}': torch.accelerator and pinned memory belong to it. "
            "Tensors on 'npu' work; hide the other device to use npu everywhere.",
            RuntimeWarning,
            stacklevel=2,
        )


def register_with_dynamo() -> None:
    """Never in the way of programs that use Dynamo on other devices."""
    try:
        from torch_npu_lite import _dynamo

        _dynamo.register()
    except Exception as error:  # what of Dynamo we build on is not its stable interface
        warnings.warn(f"torch.compile does not know npu devices: {error!r}", RuntimeWarning, stacklevel=2)


def register_with_fake_tensors() -> None:
    """Never in the way of programs that use fake tensors of other devices."""
    try:
        from torch_npu_lite import _fake

        _fake.register()
    except Exception as error:  # the rules are not PyTorch's stable interface
        warnings.warn(f"fake convolutions on npu will not keep channels last: {error!r}", RuntimeWarning, stacklevel=2)


def register_with_aot_autograd() -> None:
    """Compiled code that recomputes a random operator in the backward pass gives both calls generators of one state."""
    from torch._functorch._aot_autograd import utils

    utils.register_graphsafe_rng_device_type("npu")


def work_around_dlpack() -> None:
    """Tensor.__dlpack_device__ of PyTorch 2.13 knows an out-of-tree device only by the name "privateuse1", which no
    renamed device has, so torch.from_dlpack and array-API consumers refuse npu tensors."""
    from torch.utils.dlpack import DLDeviceType

    original = torch.Tensor.__dlpack_device__

    def __dlpack_device__(self: torch.Tensor) -> tuple[IntEnum, int]:  # noqa: N807
        if self.device.type == "npu":
            return DLDeviceType.kDLExtDev, self.device.index
        return original(self)

    torch.Tensor.__dlpack_device__ = __dlpack_device__  # type: ignore[method-assign]


def work_around_byteswap() -> None:
    """UntypedStorage.byteswap of PyTorch 2.13 swaps in the host's memory whatever the storage's device, and crashes."""
    original = torch.UntypedStorage.byteswap

    def byteswap(self: torch.storage._StorageBase, dtype: torch.dtype) -> None:
        host = self if self.device.type != "npu" else self.cpu()
        original(host, dtype)
        if host is not self:
            self.copy_(host)

    torch.UntypedStorage.byteswap = byteswap  # type: ignore[method-assign]
