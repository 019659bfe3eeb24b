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
from compare import WAITS, as_it_is, matches, may_wait, waiting
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.opinfo.core import OpInfo
from torch.testing._internal.opinfo.definitions.nested import njt_op_db

Calls = Iterator[Callable[[], object]]


def dtypes_of(op: OpInfo) -> list[torch.dtype]:
    """float32 first, where most is differentiable."""
    return sorted(op.supported_dtypes("cpu"), key=lambda dtype: (dtype is not torch.float32, str(dtype)))


def strided_calls(op: OpInfo) -> Calls:
    for dtype in dtypes_of(op):
        for _, _, mode, sample in test_ops.calls(op, dtype, None, (as_it_is,)):
            yield functools.partial(modes.run, mode, op, sample, "npu")


def sparse_calls(op: OpInfo, layout: torch.layout) -> Calls:
    for dtype in dtypes_of(op):
        differentiable = op.supports_autograd and dtype in op.supported_backward_dtypes("cpu")
        for mode in (modes.backward, modes.forward) if differentiable else (modes.forward,):
            for sample in test_sparse_samples.samples_of(op, layout, dtype, requires_grad=mode is modes.backward):
                yield functools.partial(test_sparse_samples.run, mode, op, sample, "npu")


def nested_calls(op: OpInfo) -> Calls:
    for sample in test_nested_samples.samples_of(op, requires_grad=op.supports_autograd):
        mode = modes.backward if op.supports_autograd else modes.forward
        yield functools.partial(test_nested_samples.run, mode, op, sample, "npu")


def list_calls(op: OpInfo) -> Calls:
    for dtype, mode in itertools.product(dtypes_of(op), test_foreach.modes_of(op)):
        for sample in test_foreach.samples(op, dtype, mode is test_foreach.forward, test_foreach.LENGTHS):
            yield functools.partial(test_foreach.run, mode, sample, op, "npu")


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


@pytest.mark.parametrize("pattern", [pattern for group in WAITS for pattern in group["entries"]])
def test_pattern_names_an_entry(pattern):
    assert [name for name, _ in ENTRIES if matches(name, [pattern])]


@pytest.mark.conformance
@pytest.mark.parametrize(("name", "calls"), [pytest.param(*e, id=e[0]) for e in ENTRIES if may_wait(e[0])])
def test_listed_entry_waits(name, calls):
    for call in calls():
        torch.npu.op_stats(reset=True)
        call()
        if waiting(torch.npu.op_stats()):
            return
    pytest.fail(f"{name} no longer waits: take it out of host_waits.yaml")
