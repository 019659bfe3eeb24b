"""Fake tensors, traced graphs and compiled calls over op_db.

Metadata of npu is that of real results, graphs give these results, and compiled calls what they give on the CPU.

make test runs a few operators, the long sweep all of them.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import modes
import pytest
import torch
from compare import assert_like, draws, layout, matches, tensors
from exceptions import exceptions
from outcomes import Outcome
from torch import Tensor
from torch._dynamo.utils import counters
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.opinfo.core import OpInfo, SampleInput
from torch.utils import _pytree as pytree

QUICK = ("addmm", "linalg.svd", "nn.functional.conv2d", "randn_like", "unbind")
DTYPES = (torch.float32, torch.int64, torch.complex64)
MODES = ("real", "fake", "symbolic")
SAMPLES = 3
SKIPPED = exceptions("tracing", "skipped")
# "entry-dtype" whose fake results differ from real ones, with the reason.
DIFFERENT = {
    "linalg.lu_solve-complex64": "npu's results hold the values where PyTorch's rule gives lazy conjugates",
    "*native_batch_norm*": "in evaluation PyTorch's rule saves statistics on all but the CPU, whose kernel saves none",
}

Arguments = tuple[tuple, dict]


def arguments_on(device: str, op: OpInfo, sample: SampleInput) -> Arguments:
    positional, keywords = modes.moved(op, sample, device)
    if "device" in keywords:
        keywords["device"] = device
    return tuple(positional), keywords


def described(results: Any) -> list:
    """All of the results but their values; devices without their number, which the CPU has not."""
    leaves = pytree.tree_leaves(results)
    return [{**layout(leaf), "device": leaf.device.type} if isinstance(leaf, Tensor) else type(leaf) for leaf in leaves]


def attempt(function: Callable) -> Any:
    torch.manual_seed(0)
    try:
        return function()
    except Exception as error:
        return error


def real(op: OpInfo, arguments: Arguments) -> Any:
    return attempt(lambda: op(*arguments[0], **arguments[1]))


def fake(op: OpInfo, arguments: Arguments) -> Any:
    mode = FakeTensorMode()
    positional, keywords = pytree.tree_map_only(Tensor, mode.from_tensor, arguments)

    def call() -> Any:
        with mode:
            return op(*positional, **keywords)

    return attempt(call)


def cases(variants: tuple, quick: tuple, known: dict[str, str]) -> Iterator:
    for op, variant in itertools.product(op_db, variants):
        dtype = variant if isinstance(variant, torch.dtype) else torch.float32
        if dtype in op.supported_dtypes("cpu") and not matches(op.full_name, SKIPPED):
            marks = [] if op.full_name in QUICK and variant in quick else [pytest.mark.conformance]
            name = f"{op.full_name}-{variant}".replace("torch.", "")
            different = [reason for pattern, reason in known.items() if matches(name, [pattern])]
            marks += [pytest.mark.xfail(reason=reason, raises=AssertionError, strict=True) for reason in different]
            yield pytest.param(op, variant, id=name, marks=marks)


def compiled_cases() -> Iterator:
    """Every eighth entry: compiling takes a second on each device."""
    for op in op_db[::8]:
        if torch.float32 in op.supported_dtypes("cpu") and not matches(op.full_name, SKIPPED):
            yield pytest.param(op, id=op.full_name, marks=pytest.mark.conformance)


@pytest.mark.parametrize(("op", "dtype"), list(cases(DTYPES, quick=(torch.float32,), known=DIFFERENT)))
def test_fake_results_are_described_as_real_ones(op, dtype, record_property):
    compared = 0
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        for sample in itertools.islice(op.sample_inputs("cpu", dtype), SAMPLES):
            on_cpu, on_npu = arguments_on("cpu", op, sample), arguments_on("npu", op, sample)
            expected = fake(op, on_cpu)
            if isinstance(expected, Exception):
                continue
            actual = fake(op, on_npu)
            if isinstance(actual, Exception):
                raise actual
            if described(expected) == described(real(op, on_cpu)):  # else PyTorch's own rule is at fault
                assert described(actual) == described(real(op, on_npu))
            else:
                assert list(map(layout, tensors(actual))) == list(map(layout, tensors(expected)))
            compared += 1
    record_property("samples", compared)
    if not compared:
        pytest.skip("the CPU's fake tensors refuse all samples")


def trace(op: OpInfo, arguments: Arguments, mode: str) -> Any:
    """The results of the graph that the call was traced to."""

    def call(arguments: Arguments) -> Any:
        return op(*arguments[0], **arguments[1])

    def run() -> Any:
        graph = make_fx(call, tracing_mode=mode)(arguments)
        torch.manual_seed(0)
        return graph(arguments)

    return attempt(run)


@pytest.mark.parametrize(("op", "mode"), list(cases(MODES, quick=("fake",), known={})))
def test_traced_graph_gives_the_operator_s_results(op, mode, record_property):
    compared = 0
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        for sample in itertools.islice(op.sample_inputs("cpu", torch.float32), 1 if mode == "symbolic" else 2):
            if isinstance(trace(op, arguments_on("cpu", op, sample), mode), Exception):
                continue
            on_npu = arguments_on("npu", op, sample)
            actual, expected = trace(op, on_npu, mode), real(op, on_npu)
            if isinstance(actual, Exception):
                raise actual
            expected = pytree.tree_map_only(Tensor, Tensor.cpu, expected)
            actual = pytree.tree_map_only(Tensor, Tensor.cpu, actual)
            assert_like(actual, expected, rtol=1e-5, atol=1e-6, values=not draws(op.full_name, sample))
            compared += 1
    record_property("samples", compared)
    if not compared:
        pytest.skip("the CPU refuses all samples")


def compiled(op: OpInfo, sample: SampleInput, device: str) -> tuple[Outcome, int]:
    """What a compiled call gives, with gradients where there are any, and how many graphs it was compiled to."""
    torch._dynamo.reset()
    counters.clear()
    function = op.get_op()
    call = torch.compile(lambda *args, **kwargs: function(*args, **kwargs), backend="aot_eager")
    mode = modes.backward if op.supports_autograd else modes.forward
    outcome = modes.run(lambda _, *rest: mode(call, *rest), op, sample, device)
    return outcome, counters["stats"]["unique_graphs"]


@pytest.mark.parametrize("op", list(compiled_cases()))
def test_compiled_call_gives_what_it_gives_on_the_cpu(op):
    sample = next(iter(op.sample_inputs("cpu", torch.float32, requires_grad=op.supports_autograd)))
    expected, graphs = compiled(op, sample, "cpu")
    if expected.error is not None or not graphs:
        pytest.skip(
            f"the CPU runs no graph: {expected.error!r}" if expected.error else "left to Python, on the CPU too"
        )
    actual, found = compiled(op, sample, "npu")
    if actual.error is not None:
        raise actual.error
    assert found == graphs
    values = not draws(op.full_name, sample)
    assert_like(actual.results, expected.results, values=values)
    assert_like(actual.gradients, expected.gradients, values=values)
    assert actual.aliases == expected.aliases


@pytest.mark.parametrize("way", [torch.conv2d, torch.conv_transpose2d])
@pytest.mark.parametrize("memory_format", [torch.contiguous_format, torch.channels_last])
def test_fake_convolutions_lie_as_real_ones(way, memory_format):
    image = torch.ones(2, 4, 6, 6, device="npu").to(memory_format=memory_format)
    weight = torch.ones(4, 4, 3, 3, device="npu")

    def strides(*operands: Tensor) -> list:
        operands = tuple(operand.detach().requires_grad_() for operand in operands)
        result = way(*operands)
        return [result.device, result.stride(), *(g.stride() for g in torch.autograd.grad(result.sum(), operands))]

    with FakeTensorMode() as mode:
        fake = strides(mode.from_tensor(image), mode.from_tensor(weight))
    assert fake == strides(image, weight)
    compiled = torch.compile(lambda *operands: way(*operands).stride(), backend="aot_eager")
    assert compiled(image, weight) == way(image, weight).stride()
