"""Errors of a call on npu against those of the same call on the CPU."""

from __future__ import annotations

import torch
from compare import Outcome, without_device


def pending_error() -> Exception | None:
    """The first of the device's pending errors; all of them are taken off, one for each synchronising call."""
    try:
        torch.npu.synchronize()
    except torch.AcceleratorError as error:
        pending_error()
        return error
    return None


def difference_of_errors(actual: Outcome, expected: Outcome, late: Exception | None = None) -> str | None:
    """Why npu has not refused what the CPU has refused, in type and text; None when it has.

    A refusal that depends on values may come at the next synchronising call, as a device error that ends with the text:
    `late`, if the caller has made that call.
    """
    late = late or pending_error()
    text = without_device(str(expected.error))
    if actual.error is None:
        if late is not None and text in without_device(str(late)):
            return None
        return f"{late or 'no error'} instead of {expected.error!r}"
    if late is not None:
        return f"{late} after {actual.error!r}"
    if (type(actual.error), without_device(str(actual.error))) != (type(expected.error), text):
        return f"{actual.error!r} instead of {expected.error!r}"
    return None
