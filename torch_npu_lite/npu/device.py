"""Devices: which there are, which one is current, when they are done."""

import time
import warnings
from typing import Any

import torch

from torch_npu_lite import _C
from torch_npu_lite._C import DeviceProperties

Device = torch.device | str | int | None


def device_index(device: Device) -> int:
    """The index a user means; None and "npu" mean the current device. Raises for a device that does not exist."""
    index = any_device_index(device)
    _C.check_device(index)
    return index


def any_device_index(device: Device) -> int:
    """The same, existing or not: where a negative index changes nothing."""
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
    """Initialises nothing; 0, with a warning, when the configuration is unusable, which a first use would raise."""
    try:
        return _C.device_count()
    except (RuntimeError, ValueError) as error:
        warnings.warn(f"no npu device is available: {error}", RuntimeWarning, stacklevel=2)
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
    index = any_device_index(device)
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
        self.idx = any_device_index(device)
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


def can_device_access_peer(device: Device, peer_device: Device) -> bool:
    """Whether copies between two devices go straight from memory to memory: between any two different ones."""
    index, peer = device_index(device), device_index(peer_device)
    for each in (index, peer):
        get_device_properties(each)  # says which devices there are
    return index != peer


def clock_rate(device: Device = None) -> int:
    """The nominal clock in MHz; it says nothing about the speed of the simulation."""
    return get_device_properties(device).clock_mhz


def is_tf32_supported() -> bool:
    """float32 is computed with all its digits."""
    return False


_SYNC_DEBUG_MODES = ("default", "warn", "error")


def set_sync_debug_mode(debug_mode: int | str) -> None:
    """What happens when a call makes the host wait for the work of a stream (``.item()``, ``.cpu()``, ``nonzero()``):
    nothing ("default" or 0), a warning ("warn" or 1), a RuntimeError ("error" or 2)."""
    for mode, name in enumerate(_SYNC_DEBUG_MODES):
        if debug_mode in (mode, name):
            return _C.set_sync_debug_mode(mode)
    raise RuntimeError(f"debug_mode is {debug_mode!r}, expected one of 'default', 'warn', 'error' or 0, 1, 2")


def get_sync_debug_mode() -> int:
    return _C.sync_debug_mode()


_COMPUTE_ENGINES = ("cube", "vector", "rng")
_seen_at: dict[int, tuple[int, int]] = {}  # device -> time and busy time of the latest utilization(), in ns
_loaded_ns = time.monotonic_ns()


def utilization(device: Device = None) -> int:
    """Percent of the time since the last call, or since loading, in which the compute engines ran tasks. Tasks that run
    side by side count each, up to 100."""
    index = device_index(device)
    usage = engine_usage(index)
    now, busy = time.monotonic_ns(), sum(usage[engine]["busy_ns"] for engine in _COMPUTE_ENGINES)
    then, busy_then = _seen_at.get(index, (_loaded_ns, 0))
    _seen_at[index] = now, busy
    return min(100, 100 * (busy - busy_then) // max(1, now - then))


def engine_usage(device: Device = None) -> dict[str, dict[str, int]]:
    """Of each engine: how many units it has, how long they were busy in sum (ns), how many tasks they ran."""
    return _C.engine_usage(device_index(device))
