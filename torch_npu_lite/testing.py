"""What tests of asynchronous code need: a gate that holds a stream back for as long as the test wants."""

from types import TracebackType

import torch

from torch_npu_lite import _C, npu


class Gate:
    """Holds back everything that is queued on a stream after it, until opened.

    with Gate() as gate:                # closed, on the current stream
        y = x + 1                       # returns, but nothing runs
        assert not torch.npu.current_stream().query()
    y.cpu()                             # leaving the block opened it
    """

    def __init__(self, stream: torch.Stream | None = None) -> None:
        stream = npu.current_stream() if stream is None else stream
        self._gate = _C.Gate(stream.device_index, stream.stream_id)

    def open(self) -> None:
        """Lets the stream go on; opening twice is fine."""
        self._gate.open()

    def is_open(self) -> bool:
        return self._gate.is_open()

    def __enter__(self) -> "Gate":
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.open()
