"""host_waits.yaml names nothing that no longer exists, or no longer makes the host wait for the device."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator

import modes
import pytest
import test_foreach
import test_nested_samples
import test_ops
import test_sparse_samples
import torch
from compare import WAITS, as_it_is, matches
from outcomes import Outcome, pending_error
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.opinfo.core import OpInfo
from torch.testing._internal.opinfo.definitions.nested import njt_op_db

Calls = Iterator[tuple[str, Callable[[], Outcome]]]  # mode, call


def dtypes_of(op: OpInfo) -> list[torch.dtype]:
    """float32 first, where most is differentiable."""
    return sorted(op.supported_dtypes("cpu"), key=lambda dtype: (dtype is not torch.float32, str(dtype)))


def strided_calls(op: OpInfo) -> Calls:
    for dtype in dtypes_of(op):
        for _, _, mode, sample in test_ops.calls(op, dtype, None, (as_it_is,)):
            yield mode.__name__, functools.partial(modes.run, mode, op, sample, "npu")


def sparse_calls(op: OpInfo, layout: torch.layout) -> Calls:
    for dtype in dtypes_of(op):
        differentiable = op.supports_autograd and dtype in op.supported_backward_dtypes("cpu")
        for mode in (modes.backward, modes.forward) if differentiable else (modes.forward,):
            for sample in test_sparse_samples.samples_of(op, layout, dtype, requires_grad=mode is modes.backward):
                yield mode.__name__, functools.partial(test_sparse_samples.run, mode, op, sample, "npu")


def nested_calls(op: OpInfo) -> Calls:
    for mode in (modes.forward, modes.backward) if op.supports_autograd else (modes.forward,):
        for sample in test_nested_samples.samples_of(op, None, requires_grad=mode is modes.backward):
            yield mode.__name__, functools.partial(test_nested_samples.run, mode, op, sample, "npu")


def list_calls(op: OpInfo) -> Calls:
    for dtype, mode in itertools.product(dtypes_of(op), test_foreach.modes_of(op)):
        differentiable = mode is test_foreach.forward and dtype in op.supported_backward_dtypes("cpu")
        for sample in test_foreach.samples(op, dtype, differentiable, test_foreach.LENGTHS):
            yield mode.__name__, functools.partial(test_foreach.run, mode, sample, op, "npu")


def entries() -> Iterator[tuple[str, Callable[[], Calls]]]:
    """All that the list may name, and what is called for it."""
    for op in op_db:
        yield op.full_name, functools.partial(strided_calls, op)
        for layout in (torch.strided, *test_sparse_samples.LAYOUTS):
            if test_sparse_samples.has_samples(op, layout):
                name = f"{op.full_name} {test_sparse_samples.short(layout)}"
                yield name, functools.partial(sparse_calls, op, layout)
    for op in njt_op_db:
        if op.supports_njt:
            yield f"{op.full_name} jagged", functools.partial(nested_calls, op)
    for op in itertools.chain(*test_foreach.DATABASES.values()):
        yield op.name, functools.partial(list_calls, op)


ENTRIES = list(entries())
MODES = [mode.__name__ for mode in (modes.forward, modes.backward, modes.in_place, modes.with_out)]


def listed(entry: str) -> set[str]:
    """What the list says of an entry: its name, or its name and a mode."""
    patterns = {pattern for group in WAITS for pattern in group["entries"]}
    of_modes = {pattern for pattern in patterns if pattern.endswith(tuple(f" {mode}" for mode in MODES))}
    found = {f"{entry} {mode}" for mode in MODES if matches(f"{entry} {mode}", of_modes)}
    return found | ({entry} if matches(entry, patterns - of_modes) else set())


@pytest.mark.parametrize("pattern", [pattern for group in WAITS for pattern in group["entries"]])
def test_pattern_names_an_entry(pattern):
    assert any(matches(name, [pattern]) for entry, _ in ENTRIES for name in listed(entry))


@pytest.mark.conformance
@pytest.mark.parametrize(("entry", "calls"), [pytest.param(*e, id=e[0]) for e in ENTRIES if listed(e[0])])
def test_listed_entry_waits(entry, calls):
    left = listed(entry)
    for mode, call in calls():
        if not left:
            break
        outcome = call()
        if outcome.waits and outcome.error is None:
            left -= {entry, f"{entry} {mode}"}
    pending_error()
    assert not left, "no longer waits, take it out of host_waits.yaml"
