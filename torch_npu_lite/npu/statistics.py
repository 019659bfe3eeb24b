"""Statistics of operators: which were called, how they ran, what made the host wait, and where the time went."""

import html
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from torch_npu_lite import _C

Counts = dict[str, int]


def op_stats(reset: bool = False) -> dict[str, Counts]:
    """Calls by operator and route since the start or the last reset, and how often the host waited.

    ``{"aten::add.Tensor": {"view": 0, "kernel": 1, ..., "host_waits": 0}}``. A call counts once, by what the program
    called: operators that a composed operator calls are part of it. A wait counts also when what it is for has
    happened already, so the number does not depend on timing.

    Args:
        reset: start again from zero, times included.
    """
    found = ((name, counts["calls"], counts["host_waits"]) for name, counts in _C.op_counts(reset).items())
    return {name: {**calls, "host_waits": sum(waits.values())} for name, calls, waits in found if any(calls.values())}


class record_op_times:  # noqa: N801  (used as a function, like torch.no_grad)
    """Switches on or off that :func:`op_report` has times; a context manager that switches back at its end.

    ::

        with torch.npu.record_op_times():
            train()
            torch.npu.synchronize()
        print(torch.npu.op_report())

    Off at first: recording takes a lock three times for each task, and costs nothing while it is off. Tasks that were
    submitted while it was on count when they end, so synchronize before it is switched off or a report is read.
    """

    def __init__(self, enabled: bool = True) -> None:
        self._before = _C.record_op_times(enabled)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        _C.record_op_times(self._before)


@dataclass(frozen=True)
class OpRow:
    """One operator of an :class:`OpReport`."""

    operator: str
    calls: Counts = field(default_factory=dict)  # by route
    host_waits: Counts = field(default_factory=dict)  # by cause
    tasks: int = 0  # that ended while times were recorded
    queued_ms: float = 0.0  # from submission to start, summed over the tasks
    run_ms: float = 0.0  # from start to end, likewise

    @property
    def total_calls(self) -> int:
        return sum(self.calls.values())

    @property
    def total_waits(self) -> int:
        return sum(self.host_waits.values())


_KEYS: dict[str, Callable[[OpRow], Any]] = {
    "cost": lambda row: (-row.run_ms, -row.total_waits, -row.total_calls),
    "run": lambda row: -row.run_ms,
    "queued": lambda row: -row.queued_ms,
    "waits": lambda row: -row.total_waits,
    "calls": lambda row: -row.total_calls,
    "operator": lambda row: row.operator,
}
_TITLES = ("operator", "calls", "by route", "host waits", "tasks", "queued ms", "run ms", "the host waited for")
_NO_TIMES = "(no times: they are recorded within torch.npu.record_op_times())"
_NUMBERS = {1, 3, 4, 5, 6}  # columns that are aligned to the right


@dataclass(frozen=True)
class OpReport:
    """What :func:`op_report` returns: printed it is a table, ``rows`` and ``total`` are its data."""

    rows: list[OpRow]
    total: OpRow
    hidden: int = 0  # rows left out by the limit; the total has them

    def lines(self) -> list[tuple[str, ...]]:
        """The table as text, a tuple of cells for each line: titles, rows, total."""
        return [_TITLES, *(_cells(row) for row in [*self.rows, self.total])]

    def __str__(self) -> str:
        lines = self.lines()
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        text = [
            "  ".join(
                cell.rjust(width) if column in _NUMBERS else cell.ljust(width)
                for column, (cell, width) in enumerate(zip(line, widths, strict=True))
            ).rstrip()
            for line in lines
        ]
        rule = "-" * max(map(len, text))
        note = [f"({self.hidden} more operators)"] if self.hidden else []
        hint = [] if self.total.tasks else [_NO_TIMES]
        return "\n".join([text[0], rule, *text[1:-1], *note, rule, text[-1], *hint])

    def _repr_html_(self) -> str:
        """For notebooks."""
        head, *body = (
            "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in line)
            for line, tag in zip(self.lines(), ["th", *["td"] * (len(self.rows) + 1)], strict=True)
        )
        return f"<table><tr>{head}</tr>{''.join(f'<tr>{line}</tr>' for line in body)}</table>"


def _listed(counts: Counts) -> str:
    shown = sorted((item for item in counts.items() if item[1]), key=lambda item: -item[1])
    return ", ".join(f"{name} {count:,}" for name, count in shown)


def _cells(row: OpRow) -> tuple[str, ...]:
    timed = (f"{row.tasks:,}", f"{row.queued_ms:.3f}", f"{row.run_ms:.3f}") if row.tasks else ("", "", "")
    waits = f"{row.total_waits:,}" if row.host_waits else ""
    return (row.operator, f"{row.total_calls:,}", _listed(row.calls), waits, *timed, _listed(row.host_waits))


def _sum(rows: list[OpRow]) -> OpRow:
    calls: Counts = {}
    waits: Counts = {}
    for row in rows:
        for target, counts in ((calls, row.calls), (waits, row.host_waits)):
            for name, count in counts.items():
                target[name] = target.get(name, 0) + count
    tasks, queued, run = (sum(getattr(row, name) for row in rows) for name in ("tasks", "queued_ms", "run_ms"))
    return OpRow("total", calls, waits, tasks, queued, run)


def op_report(sort: str = "cost", limit: int | None = None, reset: bool = False) -> OpReport:
    """A table of what the devices of this process have done since the start or the last reset, one operator a line.

    Columns: calls in all and by route; how often the host waited for the device and what for; with
    :func:`record_op_times` also tasks, how long they were queued and how long they ran. Work and waits of an operator
    that is composed of others are its own. Waits of no operator, such as ``torch.npu.synchronize()``, are on a line of
    their own, and so are tasks of no operator, such as host functions. Does not wait for the device.

    Args:
        sort: ``"cost"`` (time run, then host waits, then calls), ``"run"``, ``"queued"``, ``"waits"``, ``"calls"``:
            largest first; or ``"operator"``, by name.
        limit: show that many operators; the total is over all.
        reset: start again from zero.

    Example::

        >>> print(torch.npu.op_report(sort="waits", limit=10))
    """
    if sort not in _KEYS:
        raise ValueError(f"op_report cannot sort by {sort!r}; choose one of {', '.join(_KEYS)}")
    if limit is not None and limit < 0:
        raise ValueError(f"op_report cannot show {limit} operators; limit is None or a number from 0")
    rows = [
        OpRow(name, c["calls"], c["host_waits"], c["tasks"], c["queued_ns"] / 1e6, c["run_ns"] / 1e6)
        for name, c in _C.op_counts(reset).items()
    ]
    rows.sort(key=_KEYS[sort])
    shown = rows[:limit]
    return OpReport(shown, _sum(rows), len(rows) - len(shown))
