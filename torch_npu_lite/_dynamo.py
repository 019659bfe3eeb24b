"""What torch.compile's front end, Dynamo, has to know about npu devices. Imported once Dynamo is."""

from typing import Any

import torch
from torch._dynamo import trace_rules
from torch._dynamo.device_interface import (
    DeviceInterface,
    caching_worker_current_devices,
    caching_worker_device_properties,
    register_interface_for_device,
)

from torch_npu_lite import npu
from torch_npu_lite.npu.device import Device, device_index


class _Worker:
    """For processes that compile and must not initialise devices: they see what the parent has recorded."""

    @staticmethod
    def set_device(device: int) -> None:
        caching_worker_current_devices["npu"] = device

    @staticmethod
    def current_device() -> int:
        return caching_worker_current_devices.get("npu", npu.current_device())

    @staticmethod
    def get_device_properties(device: Device = None) -> Any:
        index = _Worker.current_device() if device is None else device_index(device)
        if "npu" not in caching_worker_device_properties:
            every = [npu.get_device_properties(i) for i in range(npu.device_count())]
            caching_worker_device_properties["npu"] = every
        return caching_worker_device_properties["npu"][index]


class NpuInterface(DeviceInterface):
    device = npu.device
    Event = npu.Event
    Stream = npu.Stream
    Worker = _Worker  # type: ignore[assignment]

    current_device = staticmethod(npu.current_device)
    set_device = staticmethod(npu.set_device)
    exchange_device = staticmethod(npu._exchange_device)  # type: ignore[assignment]
    maybe_exchange_device = staticmethod(npu._maybe_exchange_device)  # type: ignore[assignment]
    device_count = staticmethod(npu.device_count)
    is_available = staticmethod(npu.is_available)
    stream = staticmethod(npu.stream)
    current_stream = staticmethod(npu.current_stream)
    set_stream = staticmethod(npu.set_stream)
    synchronize = staticmethod(npu.synchronize)
    memory_allocated = staticmethod(npu.memory_allocated)
    is_bf16_supported = staticmethod(npu.is_bf16_supported)

    @staticmethod
    def _set_stream_by_id(stream_id: int, device_index: int, device_type: int) -> None:
        stream = torch.Stream(stream_id=stream_id, device_index=device_index, device_type=device_type)
        npu.set_stream(stream)

    @staticmethod
    def get_raw_stream(device_idx: int) -> int:
        return npu.current_stream(device_idx).native_handle  # type: ignore[attr-defined]

    @staticmethod
    def get_compute_capability(device: Device = None) -> int:
        major, minor = npu.get_device_capability(device)
        return major * 10 + minor


def register() -> None:
    # Its Python functions call into C++, where Dynamo cannot look: they run as they are, between compiled pieces.
    trace_rules.add("torch_npu_lite")
    for name in ("npu", *(f"npu:{index}" for index in range(npu.device_count()))):
        register_interface_for_device(name, NpuInterface)
