"""What a person sees of a run: a bar on a terminal, lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import IO

from .area import Outcome

INTERVAL = 15  # seconds between lines


class Progress:
    """Counts an area's tests. Not thread-safe: the caller holds its lock."""

    def start(self, title: str, total: int, done: Sequence[Outcome] = ()) -> None:
        """Begins an area of `total` tests, of which `done` need not run again."""
        self.title, self.total = title, total
        self.before = self.done = len(done)
        self.failed = sum(outcome.failed for outcome in done)
        self.began = time.monotonic()
        self.show()

    def add(self, outcome: Outcome) -> None:
        self.done += 1
        self.failed += outcome.failed
        if outcome.failed:
            self.line(f"  {outcome.result}: {outcome.id}: {outcome.reason}")
        self.show()

    def finish(self) -> None:
        """Ends the area that was started, if one was."""

    def show(self) -> None:
        """Shows the counts."""
        raise NotImplementedError

    def line(self, text: str) -> None:
        """Prints a line that stays."""
        raise NotImplementedError

    def seconds_left(self) -> float | None:
        ran = self.done - self.before
        return (time.monotonic() - self.began) / ran * (self.total - self.done) if ran else None


class LineProgress(Progress):
    """A line every INTERVAL seconds, at the start and at the end of each area."""

    def __init__(self, stream: IO[str] | None = None) -> None:
        self.stream = stream or sys.stdout
        self.total = self.done = self.shown = 0
        self.next = 0.0

    def start(self, title: str, total: int, done: Sequence[Outcome] = ()) -> None:
        self.next = 0.0
        super().start(title, total, done)

    def show(self) -> None:
        if time.monotonic() < self.next:
            return
        self.next = time.monotonic() + INTERVAL
        self.shown = self.done
        left = self.seconds_left()
        remaining = "" if left is None else f", about {duration(left)} left"
        self.line(f"{self.title}: {self.done} of {self.total} tests, {self.failed} failed{remaining}")

    def finish(self) -> None:
        if self.shown < self.done:
            self.next = 0.0
            self.show()

    def line(self, text: str) -> None:
        print(text, file=self.stream, flush=True)


class BarProgress(Progress):
    """A bar with the time left, by rich."""

    def __init__(self) -> None:
        import rich.progress

        self.bars = rich.progress.Progress(
            "{task.description}",
            rich.progress.BarColumn(),
            rich.progress.MofNCompleteColumn(),
            "{task.fields[failed]} failed",
            rich.progress.TimeElapsedColumn(),
            rich.progress.TimeRemainingColumn(),
        )

    def start(self, title: str, total: int, done: Sequence[Outcome] = ()) -> None:
        self.bars.start()
        self.task = self.bars.add_task(title, total=total, failed=0)
        super().start(title, total, done)

    def show(self) -> None:
        self.bars.update(self.task, completed=self.done, failed=self.failed)

    def finish(self) -> None:
        self.bars.stop()

    def line(self, text: str) -> None:
        self.bars.console.print(text, markup=False, highlight=False)


def duration(seconds: float) -> str:
    minutes = round(seconds / 60)
    return f"{seconds:.0f} s" if minutes < 2 else f"{minutes} min" if minutes < 120 else f"{minutes / 60:.1f} h"


def make_progress() -> Progress:
    """A bar where standard output is a terminal and rich is installed, lines elsewhere."""
    if sys.stdout.isatty():
        try:
            return BarProgress()
        except ImportError:
            pass
    return LineProgress()
