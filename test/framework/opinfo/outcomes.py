"""The outcome of a call on npu against the CPU's, and what a test of many calls has found to differ."""

from __future__ import annotations

import collections
import re
import warnings
from collections.abc import Callable
from typing import Any

import torch
from compare import assert_like, tensors
from torch.utils import _pytree as pytree

DEVICE = re.compile(r"\b(sparse(?:csr)?|nestedtensor)?(?:npu|privateuseone|privateuse1|cpu)\b(?::0)?", re.IGNORECASE)
TENSOR_TYPE = re.compile(r"\b(?:npu|CPU)(\w+)Type\b")  # what PyTorch calls torch.FloatTensor, at some places or on npu
POSITION = re.compile(r"\S+\.(?:cpp|h):\d+: ")
RAGGED = re.compile(r"\bj\d+\b")  # the size of a ragged dimension, numbered as they come
# What PyTorch says once of whatever tensor comes first, those that kernels make for themselves included.
HINTS = (
    "ComplexHalf support is experimental", "Sparse invariant checks are", "TypedStorage is deprecated",
    *(f"Sparse {layout} tensor support is in beta" for layout in ("CSR", "CSC", "BSR", "BSC")),
)  # fmt: skip
# What torch.npu.set_sync_debug_mode("warn") says of a call that waits for the device, busy or not.
WAIT = re.compile(r"called a synchronizing NPU operation: .* cause: (.*) \(torch\.npu\.set_sync_debug_mode\)")
# Errors by values: of indices, lengths, pivots and distributions; and of a mask, whose count the host does not know.
OF_VALUES = (
    *("out of bounds", "out of DATA bounds", "out of range", "pivots passed to lu_unpack must be between"),
    *("Expected all rows of lengths along axis to sum to", "Expected segment_length >= 0"),
    *("probability tensor contains", "invalid multinomial distribution", "cannot be converted to type"),
    "ZeroDivisionError",
)
OF_MASKS = ("shape mismatch: value tensor", "number of elements of source < number of ones in mask")
SHOWN = 12  # differences of one test


class Outcome:
    """What a call gave: results, gradients, warnings, and what it left in its arguments; or its error."""

    def __init__(self, results: Any = None, gradients: Any = None, arguments: Any = None, error: Any = None) -> None:
        self.results = results
        self.gradients = gradients
        self.error = error
        self.warnings: list[str] = []
        self.placed = any(isinstance(leaf, (torch.Tensor, torch.device)) for leaf in pytree.tree_leaves(arguments))
        self.waits: list[str] = []  # what the host waited for
        self.left: list[torch.Tensor] = []  # the arguments after the call, where the caller keeps them
        owners = [memory_of(tensor) for tensor in tensors(arguments)]
        self.aliases = [
            [i for i, owner in enumerate(owners) if owner and owner == memory_of(tensor)] for tensor in tensors(results)
        ]


def memory_of(tensor: torch.Tensor) -> int:
    """Where a tensor's storage lies; 0 for sparse tensors, which have none of their own."""
    return tensor.untyped_storage().data_ptr() if tensor.layout is torch.strided else 0


def without_device(text: str) -> str:
    """The first line of a message, as the CPU would say it; where in C++ it was given does not matter."""
    line = text.partition("\n")[0].partition(" (Triggered internally")[0]
    line = RAGGED.sub("j", POSITION.sub("", TENSOR_TYPE.sub(r"torch.\1Tensor", line)))
    return DEVICE.sub(r"\1cpu", line)


def outcome_of(call: Callable[[], Outcome | Any]) -> Outcome:
    """What a call gave, its error, its warnings and its waits included."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        torch.npu.set_sync_debug_mode("warn")
        try:
            found = call()
        except Exception as error:
            found = Outcome(error=error)
        finally:
            torch.npu.set_sync_debug_mode("default")
    outcome = found if isinstance(found, Outcome) else Outcome(found)
    said = {str(warning.message) for warning in caught}
    outcome.waits = sorted({found[1] for text in said if (found := WAIT.match(text))})
    others = {without_device(text) for text in said if not WAIT.match(text)}
    outcome.warnings = sorted(text for text in others if not text.startswith(HINTS))
    return outcome


def pending_error() -> Exception | None:
    """The first of the device's pending errors; all of them are taken off, one for each synchronising call."""
    try:
        torch.npu.synchronize()
    except torch.AcceleratorError as error:
        pending_error()
        return error
    return None


def depends_on_values(text: str, arguments: list[torch.Tensor]) -> bool:
    """Whether an error says what only those see who read the elements of tensors."""
    masked = any(tensor.dtype in (torch.bool, torch.uint8) for tensor in arguments)
    texts = (*OF_VALUES, *OF_MASKS) if masked else OF_VALUES
    return any(words in text for words in texts) and "Dimension out of range" not in text


def difference_of_errors(actual: Outcome, expected: Outcome, late: Exception | None = None) -> str | None:
    """Why npu has not refused what the CPU has refused, in type and text; None when it has.

    A refusal that depends on values may come at the next synchronising call, as a device error that ends with the text:
    `late`, if the caller has made that call.
    """
    late = late or pending_error()
    text = without_device(str(expected.error))
    if actual.error is None:
        if late is not None and text in without_device(str(late)) and depends_on_values(text, actual.left):
            return None
        return f"{late or 'no error'} instead of {expected.error!r}"
    if late is not None:
        return f"{late} after {actual.error!r}"
    if (type(actual.error), without_device(str(actual.error))) != (type(expected.error), text):
        return f"{actual.error!r} instead of {expected.error!r}"
    return None


def difference(
    call: Callable[[], Outcome],
    expected: Outcome,
    like: Callable[[Any, Any], None] = assert_like,
    may_wait: bool = True,
) -> str:
    """Why the outcome of `call` is not the expected one; empty when it is. `like` asserts that results agree.

    A call that is refused may wait for the device in any case: its message shows values.
    """
    try:
        actual = call()
        if expected.error is not None:
            return difference_of_errors(actual, expected) or ""
        if actual.error is not None:
            return f"npu refuses: {actual.error!r}"
        assert may_wait or not actual.waits, f"the host waits: {', '.join(actual.waits)}"
        elsewhere = [tensor.device for tensor in tensors((actual.results, actual.gradients)) if not tensor.is_npu]
        assert not elsewhere or not actual.placed, f"results on {elsewhere}"  # those of numbers lie on the CPU
        like(actual.results, expected.results)
        like(actual.gradients, expected.gradients)
        like(actual.left, expected.left)
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
        self,
        where: str,
        what: str,
        call: Callable[[], Outcome],
        expected: Outcome,
        like: Callable = assert_like,
        may_wait: bool = True,
    ) -> None:
        """`where` tells the sample, which may differ in the same way as others, `what` what is done with it."""
        self.counts["compared" if expected.error is None else "refused"] += 1
        if text := difference(call, expected, like, may_wait):
            self.found[f"{what}: {text}"].append(where)

    def check(self, record_property: Callable[[str, object], None]) -> int:
        """Fails when something has differed; else gives the number of calls that the CPU has not refused."""
        for name, value in self.counts.items():
            record_property(name, value)
        lines = [f"samples {', '.join(where[:5])} ({len(where)}): {what}" for what, where in self.found.items()]
        assert not lines, f"{len(lines)} differences\n" + "\n".join(lines[:SHOWN])
        return self.counts["compared"]
