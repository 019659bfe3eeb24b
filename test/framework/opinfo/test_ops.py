"""PyTorch's own operator samples (op_db): npu against CPU in values, dtypes, sizes, strides, lazy bits and aliasing.

Each sample of each dtype runs with gradients and without, in place, into outputs of several kinds, and with its tensors
laid out in other ways. What the CPU refuses npu refuses in the same words. No operator may fall back, and only entries
that host_waits.yaml names may wait for the device. Two float32 samples an operator run in every test run, the others in
the long sweep. Values are the same bits, save the entries that ROUNDED names.
"""

from __future__ import annotations

import collections
import functools
import itertools
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from compare import LAYOUTS, Outcome, as_it_is, assert_like, draws, matches, may_wait, on_device, same_layout
from differences import CONJUGATES, CPU_DIFFERS, NOT_COMPARED, ROUNDED, SKIPPED, TOLERANCE
from modes import Call, modes_of, run
from refusals import difference_of_errors, pending_error
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.opinfo.core import OpInfo, SampleInput
from torch.utils import _pytree as pytree

QUICK = torch.float32
QUICK_SAMPLES = 2
SHOWN = 12


def cases() -> Iterator:
    for op in op_db:
        if matches(op.full_name, SKIPPED):
            continue
        if QUICK in op.supported_dtypes("cpu"):
            yield pytest.param(op, QUICK, QUICK_SAMPLES, (as_it_is,), id=f"{op.full_name}-quick")
        for dtype in sorted(op.supported_dtypes("cpu"), key=str):
            name = f"{op.full_name}-{str(dtype).removeprefix('torch.')}"
            marks = (pytest.mark.conformance, pytest.mark.timeout(900))
            yield pytest.param(op, dtype, None, (as_it_is, *LAYOUTS), id=name, marks=marks)


def difference(mode: Call, op: OpInfo, sample: SampleInput, dtype: torch.dtype, expected: Outcome) -> str | None:
    """Why npu's outcome is not the CPU's; None when it is."""
    try:
        actual = run(mode, op, sample, "npu")
        if expected.error is not None:
            return difference_of_errors(actual, expected)
        if actual.error is not None:
            return f"npu refuses: {actual.error!r}"
        rounded = matches(f"{op.full_name} {str(dtype).removeprefix('torch.')}", ROUNDED)
        rtol, atol = TOLERANCE.get(dtype, TOLERANCE[torch.float32]) if rounded else (0, 0)
        close = functools.partial(assert_like, rtol=rtol, atol=atol, values=not draws(op.full_name, sample))
        if matches(op.full_name, CONJUGATES):
            expected.results, expected.gradients = resolved(expected.results), resolved(expected.gradients)
        close(actual.results, expected.results)
        close(actual.gradients, expected.gradients)
        assert actual.aliases == expected.aliases, f"aliases {actual.aliases} instead of {expected.aliases}"
        assert actual.warnings == expected.warnings, f"warnings {actual.warnings} instead of {expected.warnings}"
    except Exception as error:
        return f"{type(error).__name__}: {error} {pending_error() or ''}"
    return None


def resolved(tree: Any) -> Any:
    return pytree.tree_map_only(torch.Tensor, torch.resolve_conj, tree)


@pytest.fixture(autouse=True)
def settings() -> Iterator[None]:
    """Small tasks of npu run on one thread, so that the CPU does as well; a warning is given every time."""
    threads, always = torch.get_num_threads(), torch.is_warn_always_enabled()
    torch.set_num_threads(1)
    torch.set_warn_always(True)
    yield
    torch.set_num_threads(threads)
    torch.set_warn_always(always)


def calls(op: OpInfo, dtype: torch.dtype, count: int | None, changes: tuple) -> Iterator[tuple]:
    """(number of the sample, the sample in one of the layouts, mode) of all that is to be compared."""
    differentiable = op.supports_autograd and dtype in op.supported_backward_dtypes("cpu")
    samples = itertools.islice(op.sample_inputs("cpu", dtype, requires_grad=differentiable), count)
    for (i, original), change in itertools.product(enumerate(samples), changes):
        sample = change(original)
        if change is not as_it_is and same_layout(sample, original):
            continue
        for mode in modes_of(op, differentiable, layout_changed=change is not as_it_is):
            what = f"{op.full_name} {mode.__name__} {change.__name__}"
            if not matches(what, CPU_DIFFERS):
                yield i, what, mode, sample


@pytest.mark.parametrize(("op", "dtype", "count", "changes"), list(cases()))
def test_like_cpu(op, dtype, count, changes, note_operators, record_property):
    note = functools.partial(note_operators, test=f"op_db:{op.full_name}", dtype=str(dtype).removeprefix("torch."))
    differences: dict[str, list[str]] = collections.defaultdict(list)
    counts: collections.Counter[str] = collections.Counter()
    with on_device(note, waits_allowed=may_wait(op.full_name)):
        for i, what, mode, sample in calls(op, dtype, count, changes):
            expected = run(mode, op, sample, "cpu")
            counts["compared" if expected.error is None else "refused"] += 1
            found = difference(mode, op, sample, dtype, expected)
            if found:
                differences[f"{what}: {found}"].append(str(i))
    for name, value in counts.items():
        record_property(name, value)
    lines = [f"samples {', '.join(where[:5])} ({len(where)}): {what}" for what, where in differences.items()]
    assert not lines, f"{len(lines)} differences\n" + "\n".join(lines[:SHOWN])
    assert counts["compared"] > 0 or matches(op.full_name, NOT_COMPARED)
