"""Runs the tests of an area in child processes; a crash or a hang costs only the test that was running."""

from __future__ import annotations

import collections
import os
import threading
from collections.abc import Callable
from pathlib import Path

from .area import Area, Journal, Outcome
from .child import COLLECT_TIMEOUT, Child, ChildEndedError, StoppedError
from .progress import Progress

SHARD = 50  # tests that a child is given at a time, at most


class CollectionError(RuntimeError):
    """The child ended before it had collected the tests, for `reason`; the message holds the end of its output too."""

    def __init__(self, title: str, end: ChildEndedError) -> None:
        super().__init__(f"{title}: no tests collected, {end.reason}:\n{end.output}")
        self.reason = end.reason


class Run:
    """One run of one area: `outcomes` after run(), also when that was interrupted."""

    def __init__(self, area: Area, journal: Path, jobs: int, progress: Progress, *, resume: bool = False) -> None:
        """`journal` is the file of outcomes; with `resume`, tests that it holds are not run again."""
        self.area, self.jobs, self.progress = area, jobs, progress
        self.journal = Journal(journal, resume)
        self.stopping = threading.Event()
        self.lock = threading.Lock()  # guards what follows, the journal and the progress
        self.chosen: set[str] = set()  # ids of this run; a resumed journal may hold tests that are gone
        self.waiting: collections.deque[str] = collections.deque()
        self.faults: list[BaseException] = []

    @property
    def outcomes(self) -> list[Outcome]:
        return [outcome for outcome in self.journal.outcomes.values() if outcome.id in self.chosen]

    def run(self, select: Callable[[str], bool] = lambda test: True) -> None:
        """Runs the tests whose ids `select` accepts. KeyboardInterrupt ends the children, then passes on."""
        first = self.start_child()
        try:
            tests = [test for test in self.collect(first) if select(test)]
            self.chosen.update(tests)
            self.waiting.extend(test for test in tests if test not in self.journal.outcomes)
            self.progress.start(self.area.title, len(self.chosen), self.outcomes)
            self.serve_all(first)
        finally:
            self.stopping.set()
            first.close()
            self.journal.close()
            self.progress.finish()

    def serve_all(self, first: Child) -> None:
        """Runs what is waiting with as many children as there is work for; raises what went wrong with any."""
        count = min(self.jobs, len(self.waiting))
        threads = [threading.Thread(target=self.serve, args=(first if i == 0 else None,)) for i in range(count)]
        for thread in threads:
            thread.start()
        try:
            for thread in threads:
                thread.join()
        finally:  # also when Ctrl-C ends the wait
            self.stopping.set()
            for thread in threads:
                thread.join()
        if self.faults:
            raise self.faults[0]

    def start_child(self) -> Child:
        threads = max(1, (os.cpu_count() or 1) // self.jobs)
        return Child(self.area, threads, self.stopping)

    def collect(self, child: Child) -> list[str]:
        """The ids of all tests; files that cannot be collected become failures."""
        try:
            collected = next(child.events_of(COLLECT_TIMEOUT))
        except ChildEndedError as end:
            raise CollectionError(self.area.title, end) from None
        with self.lock:
            for error in collected["errors"]:
                self.chosen.add(error["id"])
                if error["id"] not in self.journal.outcomes:
                    self.progress.line(f"  failed: {error['id']}: not collected: {error['reason']}")
                    self.journal.write(Outcome(**error, result="failed", is_test=False))
        return list(collected["ids"])

    def serve(self, child: Child | None) -> None:
        """A thread's work: keeps one child busy until no test is waiting."""
        try:
            while shard := self.take():
                if child is not None and child.tests >= self.area.tests_per_process:
                    child.close()
                    child = None
                if child is None:
                    child = self.start_child()
                    self.collect(child)
                if not self.run_shard(child, shard):
                    child.close()
                    child = None
        except StoppedError:
            pass
        except BaseException as fault:
            with self.lock:
                self.faults.append(fault)
            self.stopping.set()
        finally:
            if child is not None:
                child.close()

    def take(self) -> list[str]:
        """The next tests to run: neighbours, since they share fixtures; few near the end, so that all children work."""
        with self.lock:
            size = min(SHARD, max(1, len(self.waiting) // (4 * self.jobs)))
            return [self.waiting.popleft() for _ in range(min(size, len(self.waiting)))]

    def run_shard(self, child: Child, shard: list[str]) -> bool:
        """Runs tests in a child. False when it died: what it was running is recorded, the rest waits for another."""
        left = dict.fromkeys(shard)
        running: str | None = None
        try:
            child.run(shard)
            for event in child.events_of(self.area.timeout):
                if event["event"] == "done":
                    for test in left:  # a plug-in ran it in its own way and told pytest nothing
                        self.record(Outcome(test, "failed", "pytest reported no result"))
                    return True
                if event["event"] == "start":
                    running = event["id"]
                else:
                    del event["event"]
                    left.pop(event["id"], None)
                    self.record(Outcome(**event))
        except ChildEndedError as end:
            if running in left:
                test, reason = running, end.reason
            else:  # charged to the next test, or to the last one: it is known only that none was running
                test = next(iter(left), shard[-1])
                reason = f"{end.reason}, between tests: {f'after {running}' if running else 'before the first one'}"
            left.pop(test, None)
            self.record(Outcome(test, end.result, reason, details=end.output))
            with self.lock:
                self.waiting.extendleft(reversed(left))
        return False

    def record(self, outcome: Outcome) -> None:
        with self.lock:
            self.journal.write(outcome)
            self.progress.add(outcome)
