"""Device memory: what is used, what is cached, what is left. Keys and meanings are those of ``torch.cuda``."""

from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

import torch
from typing_extensions import deprecated

from torch_npu_lite import _C
from torch_npu_lite.npu.absent import explain
from torch_npu_lite.npu.device import Device, device_count, device_index, is_initialized


def empty_cache() -> None:
    """Gives the unused memory of all devices back to them."""
    torch.accelerator.memory.empty_cache()


def memory_stats(device: Device = None) -> OrderedDict[str, Any]:
    return torch.accelerator.memory.memory_stats(device_index(device))


def memory_stats_as_nested_dict(device: Device = None) -> dict[str, Any]:
    return torch._C._accelerator_getDeviceStats(device_index(device)) if is_initialized() else {}


def memory_allocated(device: Device = None) -> int:
    """Bytes in tensors."""
    return memory_stats(device).get("allocated_bytes.all.current", 0)


def max_memory_allocated(device: Device = None) -> int:
    return memory_stats(device).get("allocated_bytes.all.peak", 0)


def memory_reserved(device: Device = None) -> int:
    """Bytes that the caching allocator holds, in tensors or cached."""
    return memory_stats(device).get("reserved_bytes.all.current", 0)


def max_memory_reserved(device: Device = None) -> int:
    return memory_stats(device).get("reserved_bytes.all.peak", 0)


def reset_peak_memory_stats(device: Device = None) -> None:
    torch.accelerator.memory.reset_peak_memory_stats(device_index(device))


def reset_accumulated_memory_stats(device: Device = None) -> None:
    torch.accelerator.memory.reset_accumulated_memory_stats(device_index(device))


@deprecated("it resets all peaks; use reset_peak_memory_stats()", category=FutureWarning)
def reset_max_memory_allocated(device: Device = None) -> None:
    reset_peak_memory_stats(device)


@deprecated("it resets all peaks; use reset_peak_memory_stats()", category=FutureWarning)
def reset_max_memory_cached(device: Device = None) -> None:
    reset_peak_memory_stats(device)


@deprecated("memory_cached() has the name memory_reserved() now", category=FutureWarning)
def memory_cached(device: Device = None) -> int:
    return memory_reserved(device)


@deprecated("max_memory_cached() has the name max_memory_reserved() now", category=FutureWarning)
def max_memory_cached(device: Device = None) -> int:
    return max_memory_reserved(device)


def host_memory_stats() -> OrderedDict[str, Any]:
    """Statistics of pinned host memory; times are in microseconds."""
    return OrderedDict(sorted(_flatten("", host_memory_stats_as_nested_dict())))


def host_memory_stats_as_nested_dict() -> dict[str, Any]:
    return _C.host_memory_stats() if is_initialized() else {}


def reset_peak_host_memory_stats() -> None:
    _C.reset_peak_host_memory_stats()


def reset_accumulated_host_memory_stats() -> None:
    _C.reset_accumulated_host_memory_stats()


def _flatten(prefix: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _flatten(f"{prefix}.{key}" if prefix else key, inner)
    else:
        yield prefix, value


def memory_snapshot(mempool_id: tuple[int, int] | None = None, include_traces: bool = True) -> list[dict[str, Any]]:
    """The segments of all devices and their blocks, by address. Nothing records where blocks were allocated: `frames`
    are empty, and `include_traces` changes nothing."""
    if mempool_id not in (None, (0, 0)):
        raise ValueError(f"there is no memory pool {mempool_id}; all memory is in the pool (0, 0)")
    return [segment for device in range(device_count()) for segment in _C.memory_snapshot(device)]


def get_allocator_backend() -> str:
    """ "native": a caching allocator that works as PyTorch's own."""
    return "native"


def _set_allocator_settings(settings: str) -> None:
    """Changes what PYTORCH_ALLOC_CONF sets, for allocations from now on."""
    _C.check_allocator_settings("settings", settings)
    torch._C._accelerator_setAllocatorSettings(settings)


def mem_get_info(device: Device = None) -> tuple[int, int]:
    """Free and total bytes of the device, whoever uses the rest."""
    return torch.accelerator.memory.get_memory_info(device_index(device))


def device_memory_used(device: Device = None) -> int:
    """Bytes of the device that are in use, whoever uses them."""
    free, total = mem_get_info(device)
    return total - free


def set_per_process_memory_fraction(fraction: float, device: Device = None) -> None:
    """Limits the caching allocator to a part of the device; beyond it allocations fail as on a full device."""
    _C.set_memory_fraction(device_index(device), float(fraction))


def get_per_process_memory_fraction(device: Device = None) -> float:
    return _C.memory_fraction(device_index(device))


def caching_allocator_alloc(size: int, device: Device = None, stream: torch.Stream | None = None) -> int:
    """Raw memory for other code, from the allocator that tensors use: its device address."""
    from torch_npu_lite.npu.streams import current_stream

    stream = current_stream(device) if stream is None else stream
    return _C.allocate(stream.device_index, stream.stream_id, size)


def caching_allocator_delete(mem_ptr: int) -> None:
    _C.free(mem_ptr)


def _bytes(value: int) -> str:
    for unit in ("B  ", "KiB", "MiB", "GiB"):
        if abs(value) < 10240 or unit == "GiB":
            return f"{value} {unit}"
        value //= 1024
    raise AssertionError


_ROWS = (
    ("Allocated memory", "allocated_bytes", _bytes),
    ("Requested memory", "requested_bytes", _bytes),
    ("Active memory", "active_bytes", _bytes),
    ("Reserved memory", "reserved_bytes", _bytes),
    ("Non-releasable memory", "inactive_split_bytes", _bytes),
    ("Allocations", "allocation", str),
    ("Active allocations", "active", str),
    ("Segments", "segment", str),
    ("Non-releasable blocks", "inactive_split", str),
)
_COLUMNS = ("current", "peak", "allocated", "freed")


def memory_summary(device: Device = None, abbreviated: bool = False) -> str:
    """The statistics of a device as a table for people; `abbreviated` leaves the pools out."""
    index = device_index(device)
    stats = memory_stats(index)
    width = 24 + 15 * len(_COLUMNS)
    lines = [f"npu:{index} memory".center(width), "=" * width]
    if is_initialized():
        free, total = mem_get_info(index)
        lines.append(f"free {_bytes(free).strip()} of {_bytes(total).strip()}".center(width))
    failures, retries = stats.get("num_ooms", 0), stats.get("num_alloc_retries", 0)
    lines.append(f"out of memory: {failures}, cache released to fit: {retries}".center(width))
    lines += ["=" * width, "Metric".ljust(24) + "".join(c.capitalize().rjust(15) for c in _COLUMNS), "-" * width]
    pools = ("all",) if abbreviated else ("all", "large_pool", "small_pool")
    for title, key, show in _ROWS:
        for pool in pools:
            name = title if pool == "all" else f"  from {pool.replace('_', ' ')}"
            values = (show(stats.get(f"{key}.{pool}.{column}", 0)) for column in _COLUMNS)
            lines.append(name.ljust(24) + "".join(value.rjust(15) for value in values))
    lines.append("=" * width)
    return "\n".join(lines)


def __getattr__(name: str) -> Any:
    raise AttributeError(explain(name, "torch.npu.memory"))
