"""When each task ran: recorded from the runtime, measured, drawn, and exported to trace viewers.

with timeline.record() as t:
    train()
print(t.overlap())           # nanoseconds of DMA that compute hid, and of all DMA
t.save_png("timeline.png")
t.save_trace("timeline.json")   # opens in https://ui.perfetto.dev
"""

import contextlib
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from torch_npu_lite import _C, npu
from torch_npu_lite._C import RecordedTask

Spans = list[tuple[int, int]]  # (start, end), in nanoseconds

_COMPUTE = {"cube", "vector", "rng"}
_DMA = {"dma_in", "dma_out"}
_COLORS = {
    "cube": "#c44e52",
    "vector": "#4c72b0",
    "rng": "#8172b2",
    "dma_in": "#55a868",
    "dma_out": "#ccb974",
    "cpu": "#777777",
}


class Overlap(NamedTuple):
    hidden_ns: int  # time in which DMA and compute ran side by side
    dma_ns: int  # time in which DMA ran

    @property
    def fraction(self) -> float:
        return self.hidden_ns / self.dma_ns if self.dma_ns else 0.0


class Timeline:
    """The tasks of a recording that have ended, ordered by start. Control tasks (waits, signals) have no engine."""

    def __init__(self, tasks: Iterable[RecordedTask] = ()) -> None:
        self.tasks: list[RecordedTask] = []
        self.add(tasks)

    def add(self, tasks: Iterable[RecordedTask]) -> None:
        self.tasks = sorted((*self.tasks, *(task for task in tasks if task.end_ns)), key=lambda task: task.start_ns)

    def overlap(self) -> Overlap:
        dma = merge(spans(self.tasks, _DMA))
        compute = merge(spans(self.tasks, _COMPUTE))
        return Overlap(length(intersect(dma, compute)), length(dma))

    def save_trace(self, path: str | Path) -> None:
        """Chrome's trace format: a process for each device, a thread for each stream."""
        events: list[dict[str, object]] = []
        for device in sorted({task.device for task in self.tasks}):
            events.append({"name": "process_name", "ph": "M", "pid": device, "args": {"name": f"npu:{device}"}})
        for device, stream in sorted({(task.device, task.stream) for task in self.tasks}):
            name = {"name": f"stream {stream}"}
            events.append({"name": "thread_name", "ph": "M", "pid": device, "tid": stream, "args": name})
        for task in self.tasks:
            waited = (task.start_ns - task.submit_ns) / 1e3 if task.submit_ns else None
            events.append(
                {
                    "name": task.name,
                    "cat": task.engine or "control",
                    "ph": "X",
                    "ts": task.start_ns / 1e3,
                    "dur": (task.end_ns - task.start_ns) / 1e3,
                    "pid": task.device,
                    "tid": task.stream,
                    "args": {"engine": task.engine, "number": task.number, "queued_us": waited, "failed": task.failed},
                }
            )
        Path(path).write_text(json.dumps({"traceEvents": events, "displayTimeUnit": "ns"}))

    def save_png(self, path: str | Path) -> None:
        """One row for each stream and engine; needs matplotlib."""
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        rows: dict[tuple[int, int, str], Spans] = {}
        for task in self.tasks:
            for engine in task.engine.split("+") if task.engine else ():
                rows.setdefault((task.device, task.stream, engine), []).append((task.start_ns, task.end_ns))
        start = min((task.start_ns for task in self.tasks), default=0)
        figure = Figure(figsize=(14, 1.2 + 0.45 * max(1, len(rows))))
        axes = figure.add_subplot()
        for y, (key, busy) in enumerate(sorted(rows.items())):
            bars = [((begin - start) / 1e6, (end - begin) / 1e6) for begin, end in busy]
            axes.broken_barh(bars, (y - 0.4, 0.8), facecolors=_COLORS[key[2]])
        names = [f"npu:{device} stream {stream}\n{engine}" for device, stream, engine in sorted(rows)]
        axes.set_yticks(range(len(rows)), names)
        axes.set_xlabel("milliseconds")
        hidden, dma = self.overlap()
        copies = f"{hidden / 1e6:.1f} of {dma / 1e6:.1f} ms of copies hidden behind compute"
        axes.set_title(f"{len(self.tasks)} tasks, {copies}")
        figure.tight_layout()
        FigureCanvasAgg(figure).print_png(str(path))


def spans(tasks: Iterable[RecordedTask], engines: set[str]) -> Spans:
    return [(task.start_ns, task.end_ns) for task in tasks if engines & set(task.engine.split("+"))]


def merge(spans: Spans) -> Spans:
    """The same time as disjoint spans, in order."""
    merged: Spans = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((start, end))
    return merged


def intersect(a: Spans, b: Spans) -> Spans:
    """Time that is in both; both are disjoint and in order."""
    common: Spans = []
    i = j = 0
    while i < len(a) and j < len(b):
        start, end = max(a[i][0], b[j][0]), min(a[i][1], b[j][1])
        if start < end:
            common.append((start, end))
        if a[i][1] < b[j][1]:
            i += 1
        else:
            j += 1
    return common


def length(spans: Spans) -> int:
    return sum(end - start for start, end in spans)


@contextlib.contextmanager
def record() -> Iterator[Timeline]:
    """Records all devices inside the block; waits for them at its end."""
    result = Timeline()
    recorder = _C.Recorder()
    try:
        yield result
        for device in range(npu.device_count()):
            if npu.is_initialized():
                npu.synchronize(device)
    finally:
        recorder.stop()
        result.add(recorder.tasks())
