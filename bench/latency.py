"""Latencies that have no counterpart on the CPU: events, streams, idleness. Absolute, from Python to Python."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

npu: Any = torch.get_device_module("npu")


@dataclass
class Latency:
    name: str
    value: float
    unit: str


def median_ns(body: Callable[[int], None], repeats: int, rounds: int = 30) -> float:
    """`body(repeats)` does the thing that often; the median over rounds of the time of one."""
    body(repeats)
    taken = []
    for _ in range(rounds):
        start = time.perf_counter_ns()
        body(repeats)
        taken.append((time.perf_counter_ns() - start) / repeats)
        npu.synchronize()
    return statistics.median(taken)


def event_record(repeats: int) -> None:
    event = npu.Event()
    for _ in range(repeats):
        event.record()


def stream_hop(first: torch.Stream, second: torch.Stream) -> Callable[[int], None]:
    """Record on a stream with work, wait on another one with work behind, synchronise that."""
    a, b = torch.ones(16, device="npu"), torch.ones(16, device="npu")
    event = npu.Event()

    def hop(repeats: int) -> None:
        for _ in range(repeats):
            with npu.stream(first):
                a.add_(1)
            event.record(first)
            second.wait_event(event)
            with npu.stream(second):
                b.add_(1)
            second.synchronize()

    return hop


def idle_cpu_share(seconds: float) -> float:
    """Percent of one core that the process takes while it does nothing, right after work."""
    torch.ones(16, device="npu").add_(1)
    npu.synchronize()
    start, cpu = time.perf_counter(), time.process_time()
    time.sleep(seconds)
    return 100 * (time.process_time() - cpu) / (time.perf_counter() - start)


def measure(idle_s: float) -> list[Latency]:
    first, second = npu.Stream(), npu.Stream()
    return [
        Latency("event record", median_ns(event_record, 300), "ns"),
        Latency("stream hop: record, wait, synchronise", median_ns(stream_hop(first, second), 100), "ns"),
        Latency(f"idle CPU share over {idle_s:g} s", idle_cpu_share(idle_s), "% of a core"),
    ]
