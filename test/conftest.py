"""Fixtures of all test folders."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
import unittest
from collections.abc import Callable, Iterable, Iterator

import pytest
from shared import ROOT, child_environment

pytest.register_assert_rewrite("compare")  # shared by test/framework/opinfo: its assertions should show values

Child = Callable[..., subprocess.CompletedProcess]


@pytest.fixture
def run_child() -> Child:
    """Runs a program in a new Python that has imported torch, with `settings` as environment; returns how it ended."""

    def run(program: str, *, timeout: float = 120, preexec: Callable | None = None, **settings: str):
        source = "import torch\n" + textwrap.dedent(program)
        return subprocess.run(
            [sys.executable, "-c", source],
            env=child_environment(**settings),
            preexec_fn=preexec,
            capture_output=True,
            text=True,
            timeout=timeout,
        )

    return run


def running_test_case() -> Callable | None:
    """The method of the unittest.TestCase that is running, if one is."""
    frame = sys._getframe(1)
    while frame is not None:
        case = frame.f_locals.get("self")
        if isinstance(case, unittest.TestCase):
            return getattr(type(case), case._testMethodName, None)
        frame = frame.f_back
    return None


@pytest.fixture(autouse=True, scope="session")
def quick_samples() -> None:
    """Lets OpInfo make samples in 1 ms instead of 55: to name the test it reads the sources of the whole stack."""
    for name in ("torch.testing._internal.common_utils", "torch.testing._internal.opinfo.core"):
        if name in sys.modules:
            sys.modules[name].extract_test_fn = running_test_case


RECORDING = bool(os.environ.get("RECORD_OP_TESTS"))
entered: dict[str, set[tuple[str, str]]] = {}  # operator -> (test, dtype), for tools/op_report.py


@pytest.fixture
def note_operators() -> Callable[..., None]:
    """Notes that a test has reached operators."""

    def note(operators: Iterable[str], test: str, dtype: str) -> None:
        for operator in operators:
            if operator.startswith("aten::"):
                entered.setdefault(operator, set()).add((test, dtype))

    return note


@pytest.fixture(autouse=True)
def note_test(request: pytest.FixtureRequest, note_operators: Callable[..., None]) -> Iterator[None]:
    """Notes what a test has reached since it last looked at the counters."""
    yield
    if RECORDING and "torch_npu_lite" in sys.modules:
        note_operators(sys.modules["torch"].npu.op_stats(reset=True), test=request.path.stem, dtype="")


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Adds what was noted to the record when RECORD_OP_TESTS is set: a line an operator, for readable changes."""
    if not entered or not RECORDING:
        return
    path = ROOT / "test" / "aten" / "op_tests.json"
    record = json.loads(path.read_text()) if path.exists() else {}
    for operator, uses in entered.items():
        known = record.get(operator, {"dtypes": [], "tests": []})
        dtypes = sorted({*known["dtypes"], *(dtype for _, dtype in uses if dtype)})
        tests = sorted({*known["tests"], *(test for test, _ in uses)}, key=lambda test: (len(test), test))
        record[operator] = {"dtypes": dtypes, "tests": tests[:5]}
    lines = (f"{json.dumps(operator)}: {json.dumps(uses)}" for operator, uses in sorted(record.items()))
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")
