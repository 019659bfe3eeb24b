"""The child of a suite run: collects tests with pytest, runs those it is told to and reports each as it happens.

    python worker.py COMMANDS EVENTS PYTEST_ARGUMENT...

COMMANDS and EVENTS are file descriptors of pipes that carry one JSON value a line. A command is a list of test ids, run
in that order. Events are {"event": "collected", "ids", "errors"} once, then {"event": "start", "id"},
{"event": "outcome", "id", "result", ...} for each test, and {"event": "done"} after each command. The child ends when
COMMANDS is closed. A file of its own so that starting it imports neither this package nor torch.
"""

from __future__ import annotations

import json
import os
import resource
import sys
from collections.abc import Iterator
from typing import Any

import pytest

DETAIL_LINES = 60  # of a failure's report
REASON_LENGTH = 240


def first_line(text: str) -> str:
    """The first line that says something, cut to REASON_LENGTH."""
    line = next((line.strip() for line in text.splitlines() if line.strip()), "no message")
    return line if len(line) <= REASON_LENGTH else line[: REASON_LENGTH - 3] + "..."


def reason_of(report: pytest.TestReport | pytest.CollectReport) -> str:
    """Why a test was skipped or failed, in one line."""
    if isinstance(report.longrepr, tuple):
        return first_line(str(report.longrepr[2])).removeprefix("Skipped: ")
    if getattr(report, "wasxfail", None):
        return first_line(report.wasxfail.removeprefix("reason: "))
    crash = getattr(report.longrepr, "reprcrash", None)
    if crash is not None:
        return first_line(crash.message)
    errors = [line for line in report.longreprtext.splitlines() if line.startswith("E ")]
    return first_line(errors[0].removeprefix("E ") if errors else report.longreprtext)


def late_errors() -> list[str]:
    """What the devices of npu still have to report, when the test has brought them up; waits for all that is queued."""
    npu = getattr(sys.modules.get("torch"), "npu", None)
    if npu is None or not npu.is_initialized():
        return []
    found: list[str] = []
    for device in range(npu.device_count()):
        while (error := late_error(npu, device)) and error not in found[-1:]:  # a lost device says the same for ever
            found.append(error)
    return found


def late_error(npu: Any, device: int) -> str:
    """The device's next pending error, which a synchronising call takes off; empty when there is none."""
    try:
        npu.synchronize(device)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


def charged(result: dict[str, Any], late: list[str]) -> dict[str, Any]:
    """A test's result with the errors of the device that it has left behind: they fail it."""
    if not late:
        return result
    details = "\n".join([*result.get("details", "").splitlines(), "errors that the device reported later:", *late])
    if result["result"] in ("failed", "xfailed"):
        return {**result, "details": details}
    return {**result, "result": "failed", "reason": first_line(f"reported later: {late[0]}"), "details": details}


def result_of(reports: list[pytest.TestReport]) -> dict[str, Any]:
    """One result from a test's set-up, call, clean-up and subtests: the worst, but some subtests may be skipped."""
    result: dict[str, Any] = {
        "seconds": round(sum(report.duration for report in reports), 3),
        "figures": {name: value for report in reports for name, value in report.user_properties},
    }
    if failed := next((report for report in reports if report.failed), None):
        details = "\n".join(failed.longreprtext.splitlines()[-DETAIL_LINES:])
        return {"result": "failed", "reason": reason_of(failed), "details": details, **result}
    subtests = [report for report in reports if isinstance(report, pytest.SubtestReport)]
    if any(report.passed for report in subtests):
        reports = [report for report in reports if report not in subtests]
    if skipped := next((report for report in reports if report.skipped), None):
        return {
            "result": "xfailed" if hasattr(skipped, "wasxfail") else "skipped",
            "reason": reason_of(skipped),
            **result,
        }
    return {"result": "passed", **result}


class Worker:
    """The pytest plugin that takes the place of pytest's own loop over the tests."""

    def __init__(self, commands: int, events: int) -> None:
        for descriptor in (commands, events):
            os.set_inheritable(descriptor, False)
        self.commands = open(commands, encoding="utf-8")  # noqa: SIM115 - open as long as the process lives
        self.events = events
        self.errors: list[dict[str, Any]] = []
        self.reports: list[pytest.TestReport] = []

    def send(self, event: str, **values: Any) -> None:
        data = (json.dumps({"event": event, **values}, default=str) + "\n").encode()
        while data:
            data = data[os.write(self.events, data) :]

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            details = "\n".join(report.longreprtext.splitlines()[-DETAIL_LINES:])
            self.errors.append({"id": report.nodeid, "reason": reason_of(report), "details": details})

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        items = {item.nodeid: item for item in session.items}
        self.send("collected", ids=list(items), errors=self.errors)
        for line in self.commands:
            self.run(items, json.loads(line))
            self.send("done")
        return True

    def run(self, items: dict[str, pytest.Item], ids: list[str]) -> None:
        chosen = []
        for test in ids:
            if test in items:
                chosen.append(items[test])
            else:
                reason = "was collected by one process and not by another: its id must not depend on the process"
                self.send("outcome", id=test, result="failed", reason=reason, details=reason, seconds=0)
        for item, following in zip(chosen, [*chosen[1:], None], strict=True):
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.reports = []
        self.send("start", id=nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.reports.append(report)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_logfinish(self, nodeid: str) -> Iterator[None]:
        yield
        self.send("outcome", id=nodeid, **charged(result_of(self.reports), late_errors()))


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a crash is an outcome here, not a file of gigabytes
    sys.path[0] = os.getcwd()  # as python -m pytest has it
    sys.exit(pytest.main(sys.argv[3:], plugins=[Worker(int(sys.argv[1]), int(sys.argv[2]))]))
