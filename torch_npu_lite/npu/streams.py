"""Streams and events: ``torch.Stream`` and ``torch.Event`` under the names and with the defaults of ``torch.cuda``."""

from types import TracebackType
from typing import Any

import torch

from torch_npu_lite import _C
from torch_npu_lite.npu.device import Device, device_index


def _expect(kind: type[torch.Stream] | type[torch.Event], given: Any, method: str, hint: str = "") -> None:
    """PyTorch 2.13's own methods read whatever they are given as a stream or an event."""
    if not isinstance(given, kind) or given.device.type != "npu":
        raise TypeError(f"{method}() wants a torch.npu.{kind.__name__}, got {given!r}{hint}")


def _device(index: int) -> torch.device:
    return torch.device("npu", index)


class Stream(torch.Stream):
    """An in-order queue of work, from a pool of its device. A lower `priority` number is served first."""

    def __new__(cls, device: Device = None, priority: int = 0, **ids: int) -> "Stream":
        if ids:  # stream_id, device_index, device_type of an existing stream
            return super().__new__(cls, **ids)
        return super().__new__(cls, _device(device_index(device)), priority=priority)

    @property
    def priority(self) -> int:
        return _C.stream_priority(self.device_index, self.stream_id)

    @staticmethod
    def priority_range() -> tuple[int, int]:
        """Least and greatest priority."""
        return _C.least_priority, _C.greatest_priority

    def wait_event(self, event: torch.Event) -> None:
        """Later work of this stream starts after the event; the host does not wait."""
        _expect(torch.Event, event, "wait_event", "; wait_stream() takes a stream" * isinstance(event, torch.Stream))
        super().wait_event(event)

    def wait_stream(self, stream: torch.Stream) -> None:
        """Later work of this stream starts after what `stream` holds now; the host does not wait."""
        _expect(torch.Stream, stream, "wait_stream", "; wait_event() takes an event" * isinstance(stream, torch.Event))
        super().wait_stream(stream)

    def record_event(self, event: torch.Event | None = None) -> torch.Event:
        """Records `event`, or a new one, after what this stream holds now, and returns it."""
        event = Event() if event is None else event
        _expect(torch.Event, event, "record_event")
        event.record(self)
        return event

    def __repr__(self) -> str:
        return f"<torch.npu.Stream device={self.device} id={self.stream_id} priority={self.priority}>"


class ExternalStream(Stream):
    """A stream made by other code that uses the runtime, by its native handle. The other code owns it."""

    def __new__(cls, stream_ptr: int, device: Device = None, **_: Any) -> "ExternalStream":
        index = device_index(device)
        return _stream_of_id(cls, index, _C.stream_of_handle(index, stream_ptr))


class Event(torch.Event):
    """A point in a stream; made on the current device. `blocking` changes nothing: waits never spin for long."""

    def __new__(cls, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False) -> "Event":
        if interprocess:
            raise NotImplementedError("npu events cannot be shared between processes")
        return super().__new__(cls, "npu", enable_timing=enable_timing, blocking=blocking)

    def record(self, stream: torch.Stream | None = None) -> None:
        """Puts the event after what `stream`, or this thread's current one, holds now."""
        if stream is not None:
            _expect(torch.Stream, stream, "record")
        super().record(stream)

    def wait(self, stream: torch.Stream | None = None) -> None:
        """Later work of `stream`, or of this thread's current one, starts after the event; the host does not wait."""
        if stream is not None:
            _expect(torch.Stream, stream, "wait")
        super().wait(stream)

    def elapsed_time(self, end_event: torch.Event) -> float:
        """Milliseconds between two recorded events. PyTorch 2.13's own refuses an argument of a subclass."""
        if end_event.device.type != "npu":
            raise ValueError(f"expected an event of an npu device, got one of '{end_event.device}'")
        return _C.elapsed_time(self.event_id, end_event.event_id)

    def __repr__(self) -> str:
        if self.event_id == 0:
            return "<torch.npu.Event not recorded>"
        return f"<torch.npu.Event device={self.device} {'complete' if self.query() else 'pending'}>"


def _stream_of_id(cls: type[Stream], index: int, stream_id: int) -> Any:
    device_type = torch._C._autograd.DeviceType.PrivateUse1.value
    return torch.Stream.__new__(cls, stream_id=stream_id, device_index=index, device_type=device_type)


def get_stream_from_external(data_ptr: int, device: Device = None) -> Stream:
    """A stream made by other code that uses the runtime, by its native handle. The other code owns it."""
    index = device_index(device)
    return _stream_of_id(Stream, index, _C.stream_of_handle(index, data_ptr))


def is_current_stream_capturing() -> bool:
    """Streams do not record graphs yet."""
    return False


def current_stream(device: Device = None) -> Stream:
    """Of this thread."""
    index = device_index(device)
    return _stream_of_id(Stream, index, torch._C._accelerator_getStream(index).stream_id)


def default_stream(device: Device = None) -> Stream:
    return _stream_of_id(Stream, device_index(device), 0)


def set_stream(stream: torch.Stream | None) -> None:
    """Makes a stream, and its device, current for this thread; None changes nothing."""
    if stream is None:
        return
    if not isinstance(stream, torch.Stream) or stream.device.type != "npu":
        raise TypeError(f"expected a stream of an npu device, such as torch.npu.Stream(), got {stream!r}")
    torch._C._accelerator_setStream(stream)


class StreamContext:
    """Makes a stream and its device current inside the block, and restores both; None changes nothing."""

    def __init__(self, stream: torch.Stream | None) -> None:
        if stream is not None:
            _expect(torch.Stream, stream, "torch.npu.stream", "; torch.npu.device() takes a device")
        self.stream = stream
        self._previous: tuple[torch.Stream, int] | None = None

    def __enter__(self) -> None:
        if self.stream is not None:
            self._previous = current_stream(self.stream.device_index), _C.current_device()
            set_stream(self.stream)

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        if self._previous is not None:
            stream, device = self._previous
            set_stream(stream)
            _C.set_device(device)


def stream(stream: torch.Stream | None) -> StreamContext:
    return StreamContext(stream)
