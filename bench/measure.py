"""Paired timing of one piece of work on the npu and on the CPU.

Both sides run in one process in blocks A B B A, so that slow changes of the machine cancel within a quadruple. The
result is the median over quadruples of npu time / CPU time, with a bootstrap interval: below 1 the npu is faster.
"""

from __future__ import annotations

import random
import statistics
import time
import timeit
from collections.abc import Callable
from dataclasses import asdict, dataclass

HOST_BATCH = 400  # launches between two synchronisations of a host-cost row: fewer than a stream's queue holds


@dataclass
class Side:
    """One side of a comparison."""

    timer: timeit.Timer
    synchronize: Callable[[], None]
    host_only: bool  # time what the host thread spends, not until the device is done

    def seconds(self, repeats: int) -> float:
        if self.host_only:
            total = 0.0
            for done in range(0, repeats, HOST_BATCH):
                total += self.timer.timeit(min(HOST_BATCH, repeats - done))
                self.synchronize()
            return total
        start = time.perf_counter()
        self.timer.timeit(repeats)
        self.synchronize()
        return time.perf_counter() - start


@dataclass
class Result:
    """Ratio of a row, its 95% interval and worst decile, and what one execution takes on each side."""

    ratio: float
    low: float
    high: float
    worst_decile: float
    npu_us: float
    cpu_us: float

    def to_json(self) -> dict[str, float]:
        return asdict(self)


def compare(npu: Side, cpu: Side, quadruples: int, block_s: float) -> Result:
    repeats = max(calibrate(npu, block_s), calibrate(cpu, block_s))
    ratios, npu_s, cpu_s = [], [], []
    for _ in range(quadruples):
        a1, b1 = npu.seconds(repeats), cpu.seconds(repeats)
        b2, a2 = cpu.seconds(repeats), npu.seconds(repeats)
        ratios.append((a1 + a2) / (b1 + b2))
        npu_s += [a1, a2]
        cpu_s += [b1, b2]
    low, high = interval(ratios)
    return Result(
        ratio=statistics.median(ratios),
        low=low,
        high=high,
        worst_decile=sorted(ratios)[-1 - len(ratios) // 10],
        npu_us=statistics.median(npu_s) / repeats * 1e6,
        cpu_us=statistics.median(cpu_s) / repeats * 1e6,
    )


def calibrate(side: Side, block_s: float) -> int:
    """Executions that fill a block. The first ones also warm caches and lazily made state."""
    side.seconds(2)
    repeats = 1
    while (taken := side.seconds(repeats)) < block_s / 4:
        repeats *= 2
    return max(1, round(repeats * block_s / taken))


def interval(values: list[float], resamples: int = 1000) -> tuple[float, float]:
    """95% bootstrap interval of the median."""
    generator = random.Random(0)
    medians = sorted(statistics.median(generator.choices(values, k=len(values))) for _ in range(resamples))
    return medians[int(0.025 * resamples)], medians[int(0.975 * resamples)]
