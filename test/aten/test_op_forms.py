"""The out= and in-place forms of operators, with the arguments that PyTorch's samples give to their functional form.

Samples of each entry of op_db run on the CPU, backward included, while a dispatch mode notes the operators they reach
and their arguments. Each form of theirs that the operator table lists is then called on the CPU and on npu.
"""

from __future__ import annotations

import functools
import itertools
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))

from torchgen.model import NativeFunction, NativeFunctionsGroup, SchemaKind  # noqa: E402

from gen import table  # noqa: E402
from gen.schema import Schemas  # noqa: E402

SCHEMAS = Schemas()
ROWS = table.load(ROOT / "csrc" / "aten" / "ops" / "npu_functions.yaml", SCHEMAS)
RANDOM = {"bernoulli", "binomial", "multinomial", "normal", "poisson", "randperm", "rrelu_with_noise"}

Recorded = dict[str, list[tuple[tuple, dict]]]


def form_of(function: NativeFunction) -> Any:
    packet, _, overload = str(function.func.name).partition(".")
    return getattr(getattr(torch.ops.aten, packet), overload or "default")


def functional_name(function: NativeFunction, group: NativeFunctionsGroup) -> str:
    name = str(group.functional.func.name)
    return f"aten::{name}" if "." in name else f"aten::{name}.default"


def forms() -> list:
    """Every out= and in-place operator of the table with the functional operator of its group."""
    found = []
    for row in ROWS:
        for function in row.functions:
            group = SCHEMAS.groups.get(str(function.func.name))
            other = function.func.kind() in (SchemaKind.out, SchemaKind.inplace)
            if group is not None and other and str(function.func.name.name.base) not in RANDOM:
                found.append(pytest.param(function, functional_name(function, group), id=str(function.func.name)))
    return found


class Recorder(TorchDispatchMode):
    """Notes the first arguments of each operator, copied before a kernel can change them."""

    kept = 3

    def __init__(self) -> None:
        super().__init__()
        self.calls: Recorded = {}

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        calls = self.calls.setdefault(f"{func._schema.name}.{func._overloadname}", [])
        if len(calls) < self.kept and (not calls or shapes(args) != shapes(calls[-1][0])):
            calls.append(pytree.tree_map_only(torch.Tensor, copy_of, (args, kwargs or {})))
        return func(*args, **(kwargs or {}))


def copy_of(tensor: torch.Tensor) -> torch.Tensor:
    with torch.utils._python_dispatch._disable_current_modes():
        return tensor.detach().clone()


def shapes(arguments: tuple) -> list:
    return [leaf.shape for leaf in pytree.tree_leaves(arguments) if isinstance(leaf, torch.Tensor)]


@functools.cache
def recorded() -> Recorded:
    recorder = Recorder()
    for op in op_db:
        if torch.float32 not in op.supported_dtypes("cpu") or op.full_name.startswith(("sparse", "to_sparse")):
            continue
        samples = op.sample_inputs("cpu", torch.float32, requires_grad=op.supports_autograd)
        for sample in itertools.islice(samples, 2):
            try:
                with recorder:
                    results = op(sample.input, *sample.args, **sample.kwargs)
                    outputs = [
                        x for x in pytree.tree_leaves(results) if isinstance(x, torch.Tensor) and x.requires_grad
                    ]
                    if outputs:
                        torch.autograd.backward(outputs, [torch.ones_like(x) for x in outputs])
            except Exception:  # the CPU refuses this sample
                continue
    return recorder.calls


def call(function: NativeFunction, arguments: tuple, keywords: dict, functional: Any, device: str) -> Any:
    """The form's results; for out= on tensors of the functional form's sizes and layout."""
    args, kwargs = pytree.tree_map_only(torch.Tensor, lambda x: x.clone().to(device), (arguments, keywords))
    form = form_of(function)
    names = [argument.name for argument in form._schema.arguments]
    kwargs = {name: value for name, value in kwargs.items() if name in names}
    if function.func.kind() is SchemaKind.out:
        results = pytree.tree_leaves(functional(*arguments, **keywords))
        outs = [argument.name for argument in function.func.arguments.out]
        kwargs |= {name: torch.zeros_like(x).to(device) for name, x in zip(outs, results, strict=True)}
    if device == "cpu":
        return pytree.tree_leaves(form(*args, **kwargs))
    torch.npu.op_stats(reset=True)
    return pytree.tree_leaves(form(*args, **kwargs))


@pytest.mark.parametrize(("function", "functional"), forms())
def test_form_like_cpu(function, functional, note_operators):
    calls = recorded().get(functional, [])
    if not calls:
        pytest.skip("no sample of op_db reaches it")
    packet, _, overload = functional.removeprefix("aten::").partition(".")
    base = getattr(getattr(torch.ops.aten, packet), overload)
    for arguments, keywords in calls:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                expected = call(function, arguments, keywords, base, "cpu")
            except Exception:  # such as an in-place form with other sizes
                continue
            actual = call(function, arguments, keywords, base, "npu")
        stats = torch.npu.op_stats(reset=True)
        note_operators(stats, test="test_op_forms", dtype="float32")
        assert [name for name, counts in stats.items() if counts["fallback"]] == []
        assert [x.stride() for x in actual] == [x.stride() for x in expected]
        torch.testing.assert_close([x.cpu() for x in actual], expected, rtol=2e-3, atol=2e-4, equal_nan=True)
