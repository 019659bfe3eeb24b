"""What a suite run consists of: an area is a set of tests, an outcome is what became of one of them."""

from __future__ import annotations

import dataclasses
import json
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

RESULTS = ("passed", "skipped", "xfailed", "failed", "crashed", "hung")


@dataclasses.dataclass(frozen=True)
class Area:
    """Tests that are run and reported together.

    With `devices`, the tests are run once for each, `{device}` in arguments and environment stands for its name, and
    a test's CPU run says whether it counts. Without, each test compares with the CPU itself and skips when the CPU
    cannot do what it tests.
    """

    name: str
    title: str
    paths: tuple[str, ...]  # files and folders, relative to `directory`
    arguments: tuple[str, ...] = ()  # more arguments of pytest, such as -m and -k
    environment: Mapping[str, str] = dataclasses.field(default_factory=dict)
    directory: Path = dataclasses.field(default_factory=Path.cwd)  # the children's working directory
    devices: tuple[str, ...] = ()
    timeout: float = 300  # seconds that one test may take
    tests_per_process: int = 1000  # then a new child, so that leaks do not pile up
    figures_of_each: bool = False  # keep what every test has recorded, not its sums over the area
    cpu_only: str = "is not among npu's tests"  # why the suite has a test for the CPU and not for npu

    def on(self, device: str) -> Area:
        """The run of this area on one device."""
        return dataclasses.replace(
            self,
            name=f"{self.name}.{device}",
            title=f"{self.title} on {device}",
            arguments=tuple(argument.replace("{device}", device) for argument in self.arguments),
            environment={name: value.replace("{device}", device) for name, value in self.environment.items()},
            devices=(),
        )


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What became of one test: `result` is one of RESULTS, `reason` one line unless it passed.

    Or, if `is_test` is false, why the tests of a file could not be collected; its id is the file's.
    """

    id: str
    result: str
    reason: str = ""
    seconds: float = 0
    details: str = ""  # the end of a failure's report or of a dead child's output
    figures: Mapping[str, Any] = dataclasses.field(default_factory=dict)  # what the test gave to record_property
    is_test: bool = True

    @property
    def passed(self) -> bool:
        return self.result == "passed"

    @property
    def failed(self) -> bool:
        return self.result in ("failed", "crashed", "hung")

    def text(self) -> str:
        """The reason, headed by the result where the reason does not tell."""
        return self.reason if self.result in ("failed", "skipped", "xfailed") else f"{self.result}: {self.reason}"


class Journal:
    """The outcomes of a run in a file, one JSON value a line, written as they come so that nothing is lost.

    With `resume` it goes on after the last whole line: what a killed run has half written is cut off.
    """

    def __init__(self, path: Path, resume: bool = False) -> None:
        self.path = path
        self.outcomes: dict[str, Outcome] = {}
        path.parent.mkdir(parents=True, exist_ok=True)
        if resume and path.exists():
            whole, newline, _ = path.read_bytes().rpartition(b"\n")
            os.truncate(path, len(whole + newline))
            for line in whole.splitlines():
                outcome = Outcome(**json.loads(line))
                self.outcomes[outcome.id] = outcome
        self.file = path.open("a" if resume else "w")

    def write(self, outcome: Outcome) -> None:
        self.outcomes[outcome.id] = outcome
        self.file.write(json.dumps(dataclasses.asdict(outcome)) + "\n")
        self.file.flush()

    def close(self) -> None:
        self.file.close()


@dataclasses.dataclass
class Comparison:
    """An area's outcomes on npu against those on the CPU; all names are test ids without the device."""

    passed_on_cpu: int = 0
    passed_on_npu: int = 0
    passed: list[str] = dataclasses.field(default_factory=list)  # their ids, of those passed on npu
    skipped: dict[str, int] = dataclasses.field(default_factory=dict)  # passed on neither: reason -> tests
    # Passed on the CPU only, or not collected: id -> reason.
    differences: dict[str, str] = dataclasses.field(default_factory=dict)
    failures: dict[str, str] = dataclasses.field(default_factory=dict)  # of differences, those that failed: id -> how
    figures: dict[str, Mapping[str, Any]] = dataclasses.field(default_factory=dict)  # of tests that record properties

    @property
    def tests(self) -> int:
        """How many there were, passed or not."""
        return len(self.passed) + len(self.differences) + sum(self.skipped.values())


def by_reason(differences: Mapping[str, str]) -> dict[str, list[str]]:
    """Test ids by reason, the reason with most tests first."""
    found: dict[str, list[str]] = {}
    for test, reason in differences.items():
        found.setdefault(reason, []).append(test)
    return dict(sorted(found.items(), key=lambda item: (-len(item[1]), item[0])))


def generic_id(test: str, device: str) -> str:
    """A device-type test's id without the device: TestFooCPU::test_a_cpu_int8 -> TestFoo::test_a_int8."""
    suffix = {"cpu": "CPU", "npu": "(?:NPU|PRIVATEUSE1)"}[device]
    return re.sub(rf"(::\w+?){suffix}::(\w+)_{device}(?=_|$|\[)", r"\1::\2", test)


def tests_of(outcomes: Iterable[Outcome], device: str, found: Comparison) -> dict[str, Outcome]:
    """The outcomes of tests by generic id. What was not collected is noted as a failure, on whatever device."""
    tests: dict[str, Outcome] = {}
    for outcome in outcomes:
        if outcome.is_test:
            tests[generic_id(outcome.id, device)] = outcome
        else:
            found.differences[outcome.id] = f"not collected: {outcome.text()}"
            found.failures[outcome.id] = outcome.result
    return tests


def compare(npu: Iterable[Outcome], cpu: Iterable[Outcome] | None = None, cpu_only: str = Area.cpu_only) -> Comparison:
    """Compares outcomes by id. Without `cpu` each test compares itself: those that skip do not pass on the CPU."""
    found = Comparison()
    on_npu = tests_of(npu, "npu", found)
    on_cpu = None if cpu is None else tests_of(cpu, "cpu", found)
    for test, outcome in on_npu.items():
        reference = outcome if on_cpu is None else on_cpu.get(test)
        expected = outcome.result != "skipped" if on_cpu is None else reference is not None and reference.passed
        found.passed_on_cpu += expected
        if outcome.passed:
            found.passed_on_npu += 1
            found.passed.append(test)
        if outcome.figures:
            found.figures[test] = outcome.figures
        if expected and not outcome.passed:
            found.differences[test] = outcome.text()
            if outcome.failed:
                found.failures[test] = outcome.result
        elif not outcome.passed:
            reason = reference.text() if reference is not None else "not a test of the CPU"
            found.skipped[reason] = found.skipped.get(reason, 0) + 1
    for test, reference in (on_cpu or {}).items():
        if test not in on_npu and reference.passed:
            found.passed_on_cpu += 1
            found.differences[test] = cpu_only
    return found
