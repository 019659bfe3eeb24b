"""Devices: which there are, which one is current, when they are done."""

from typing import Any

import torch

from torch_npu_lite import _C
from torch_npu_lite._C import DeviceProperties

Device = torch.device | str | int | None


def device_index(device: Device) -> int:
    """The index a user means; None and "npu" mean the current device."""
    if device is None:
        return _C.current_device()
    if isinstance(device, int):
        return device
    device = torch.device(device)
    if device.type != "npu":
        raise ValueError(f"expected an npu device, got '{device}'")
    return _C.current_device() if device.index is None else device.index


def is_available() -> bool:
    """Initialises nothing; False when the configuration is unusable."""
    return device_count() > 0


def device_count() -> int:
    """Initialises nothing; 0 when the configuration is unusable, which the first use of a device reports."""
    try:
        return _C.device_count()
    except (RuntimeError, ValueError):
        return 0


def init() -> None:
    """Initialises the runtime, which the first use of a device does anyway."""
    _C.initialize()


def _lazy_init() -> None:
    _C.initialize()


def is_initialized() -> bool:
    return _C.is_initialized()


def _is_in_bad_fork() -> bool:
    """True in a child process whose parent had initialised: devices cannot be used there."""
    return _C.in_bad_fork()


def current_device() -> int:
    return _C.current_device()


def set_device(device: Device) -> None:
    """Makes `device` current for this thread; a negative index changes nothing."""
    index = device_index(device)
    if index >= 0:
        _C.set_device(index)


def _exchange_device(index: int) -> int:
    previous = _C.current_device()
    if index < 0:
        return -1
    _C.set_device(index)
    return previous


def _maybe_exchange_device(index: int) -> int:
    return _exchange_device(index)


class device:  # noqa: N801
    """Context manager: makes a device current, and restores the previous one. A negative index changes nothing."""

    def __init__(self, device: Device) -> None:
        self.idx = device_index(device)
        self.prev_idx = -1

    def __enter__(self) -> None:
        self.prev_idx = _exchange_device(self.idx)

    def __exit__(self, *_: object) -> None:
        _exchange_device(self.prev_idx)


class device_of(device):  # noqa: N801
    """Context manager: makes the device of a tensor or storage current, if that is an npu device."""

    def __init__(self, obj: Any) -> None:
        super().__init__(obj.device if obj.device.type == "npu" else -1)


def synchronize(device: Device = None) -> None:
    """Waits for everything queued on all streams of a device. Reports the device's first pending error."""
    _C.synchronize(device_index(device))


def get_device_properties(device: Device = None) -> DeviceProperties:
    return _C.device_properties(device_index(device))


def get_device_name(device: Device = None) -> str:
    return get_device_properties(device).name


def get_device_capability(device: Device = None) -> tuple[int, int]:
    properties = get_device_properties(device)
    return properties.major, properties.minor


def engine_usage(device: Device = None) -> dict[str, dict[str, int]]:
    """Of each engine: how many units it has, how long they were busy in sum (ns), how many tasks they ran."""
    return _C.engine_usage(device_index(device))
