"""The outcome of a call on npu against the CPU's, and what a test of many calls has found to differ."""

from __future__ import annotations

import collections
from collections.abc import Callable
from typing import Any

from compare import Outcome, assert_like
from refusals import difference_of_errors, pending_error

SHOWN = 12  # differences of one test


def difference(call: Callable[[], Outcome], expected: Outcome, like: Callable[[Any, Any], None] = assert_like) -> str:
    """Why the outcome of `call` is not the expected one; empty when it is. `like` asserts that results agree."""
    try:
        actual = call()
        if expected.error is not None:
            return difference_of_errors(actual, expected) or ""
        if actual.error is not None:
            return f"npu refuses: {actual.error!r}"
        like(actual.results, expected.results)
        like(actual.gradients, expected.gradients)
        assert actual.aliases == expected.aliases, f"aliases {actual.aliases} instead of {expected.aliases}"
        assert actual.warnings == expected.warnings, f"warnings {actual.warnings} instead of {expected.warnings}"
    except Exception as error:  # what differs, or an error of the device that reading a result reports
        return f"{type(error).__name__}: {error} {pending_error() or ''}"
    return ""


class Differences:
    """Compares calls; at the end says what has differed, and in which calls."""

    def __init__(self) -> None:
        self.found: dict[str, list[str]] = collections.defaultdict(list)
        self.counts: collections.Counter[str] = collections.Counter()

    def compare(
        self, where: str, what: str, call: Callable[[], Outcome], expected: Outcome, like: Callable = assert_like
    ) -> None:
        """`where` tells the sample, which may differ in the same way as others, `what` what is done with it."""
        self.counts["compared" if expected.error is None else "refused"] += 1
        if text := difference(call, expected, like):
            self.found[f"{what}: {text}"].append(where)

    def check(self, record_property: Callable[[str, object], None]) -> int:
        """Fails when something has differed; else gives the number of calls that the CPU has not refused."""
        for name, value in self.counts.items():
            record_property(name, value)
        lines = [f"samples {', '.join(where[:5])} ({len(where)}): {what}" for what, where in self.found.items()]
        assert not lines, f"{len(lines)} differences\n" + "\n".join(lines[:SHOWN])
        return self.counts["compared"]
