"""PyTorch's own optimizers and their sample settings (optim_db): some steps on npu equal those on the CPU.

Each setting runs in every implementation that the optimizer has: for-loop, foreach, fused, differentiable. Parameters
are the same bits, and what the CPU refuses npu refuses in the same words. Saved states go on where they stopped, on
either device.
"""

from __future__ import annotations

import functools
import io
import itertools
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from compare import on_device
from exceptions import exceptions
from outcomes import Differences, outcome_of
from torch.testing._internal.common_optimizers import OptimizerErrorEnum, OptimizerInfo, OptimizerInput, optim_db
from torch.utils import _pytree as pytree

pytestmark = pytest.mark.usefixtures("like_small_tasks")

STEPS = 3
QUICK = torch.float32
DTYPES = (torch.float32, torch.float64, torch.bfloat16, torch.complex64)
# Where implementations are compared with each other: foreach rounds ASGD's rate to float32.
TOLERANCE = {"rtol": 1e-4, "atol": 1e-5}
LOOPS = ("Adafactor",)  # a loop on every device, unless told otherwise
# Optimizers that refuse the parameters of these tests, with the reason.
SKIPPED = exceptions("optimizers", "skipped")
OPTIMIZERS = [info for info in optim_db if info.name not in SKIPPED]
CAPTURABLE = [info for info in OPTIMIZERS if info.has_capturable_arg]

Implementation = dict[str, bool]


def implementations(info: OptimizerInfo, dtype: torch.dtype = QUICK) -> list[Implementation]:
    """As PyTorch chooses, then each by its flag, the others off. Fused kernels take real numbers only."""
    flags = [flag for flag in info.supported_impls if flag != "fused" or not dtype.is_complex]
    return [{}, *({flag: flag == chosen for flag in flags} for chosen in (None, *flags))] if flags else [{}]


def dtypes(info: OptimizerInfo) -> list[torch.dtype]:
    return [dtype for dtype in DTYPES if info.supports_complex or not dtype.is_complex]


def parameters(info: OptimizerInfo, device: str, dtype: torch.dtype) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    sizes = [(4, 3), (6, 5)] if info.name == "Muon" else [(4, 3), (3,), (2, 2, 2), (6, 5), ()]
    made = [torch.randn(size, generator=generator, dtype=dtype).to(device) for size in sizes]
    return [weight.requires_grad_() for weight in made]


def moved(settings: dict[str, Any], device: str) -> dict[str, Any]:
    """Tensors with sizes go to the device; numbers as 0-dim tensors may stay on the CPU, as on every accelerator."""
    return pytree.tree_map_only(torch.Tensor, lambda tensor: tensor.to(device) if tensor.dim() else tensor, settings)


def step(optimizer: torch.optim.Optimizer, weights: list[torch.Tensor], steps: int) -> None:
    def loss() -> torch.Tensor:
        optimizer.zero_grad()
        value = sum((weight * weight.conj()).real.sum() + weight.real.sum() for weight in weights)
        value.backward()
        return value

    for _ in range(steps):
        optimizer.step(loss)


def differentiable_step(optimizer: torch.optim.Optimizer, weights: list[torch.Tensor], steps: int) -> None:
    """Parameters that are results themselves, as a program that differentiates through its optimizer has."""
    for _ in range(steps):
        for weight in weights:
            weight.grad = (2 * weight + 1).detach()
        optimizer.step(lambda: sum(weight.real.sum() for weight in weights))


def train(info: OptimizerInfo, settings: dict[str, Any], device: str, dtype: torch.dtype) -> list[torch.Tensor]:
    weights = parameters(info, device, dtype)
    differentiable = settings.get("differentiable", False)
    if differentiable:
        weights = [weight.detach().clone() for weight in weights]
    optimizer = info.optim_cls(weights, **moved(settings, device))
    (differentiable_step if differentiable else step)(optimizer, weights, STEPS)
    return [weight.detach() for weight in weights]


def assert_same(actual: list[torch.Tensor], expected: list[torch.Tensor]) -> None:
    torch.testing.assert_close([tensor.cpu() for tensor in actual], expected, **TOLERANCE)


def samples(info: OptimizerInfo) -> Iterator[OptimizerInput]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield from info.optim_inputs_func(device="cpu")


def cases() -> list:
    return [
        pytest.param(info, dtype, id=f"{info.name}-{dtype}", marks=() if dtype is QUICK else (pytest.mark.conformance,))
        for info in OPTIMIZERS
        for dtype in dtypes(info)
    ]


def chosen_on_npu(info: OptimizerInfo, settings: dict[str, Any]) -> dict[str, Any]:
    """The settings with the implementation that PyTorch takes on accelerators: foreach where there is one."""
    chosen = any(flag in settings for flag in info.supported_impls)
    chooses = "foreach" in info.supported_impls and info.name not in LOOPS
    return {**settings, "foreach": True} if chooses and not chosen else settings


@pytest.mark.parametrize(("info", "dtype"), cases())
def test_like_cpu(info, dtype, note_operators, record_property):
    differences = Differences()
    compared = dict.fromkeys(map(str, implementations(info, dtype)), 0)
    with on_device(functools.partial(note_operators, test=f"optim_db:{info.name}", dtype=str(dtype))):
        for i, (sample, implementation) in enumerate(itertools.product(samples(info), implementations(info, dtype))):
            settings = {**sample.kwargs, **implementation}
            on_cpu = functools.partial(train, info, chosen_on_npu(info, settings), "cpu", dtype)
            on_npu = functools.partial(train, info, settings, "npu", dtype)
            expected = outcome_of(on_cpu)
            differences.compare(str(i), str(implementation), functools.partial(outcome_of, on_npu), expected)
            compared[str(implementation)] += expected.error is None
    differences.check(record_property)
    assert 0 not in compared.values(), compared


@pytest.mark.parametrize("info", CAPTURABLE, ids=lambda info: info.name)
def test_capturable_keeps_the_count_of_steps_on_the_device(info):
    """The CPU has no capturable optimizers: it computes the same with a count on the host. npu must not wait."""
    for sample in itertools.islice(samples(info), 4):
        settings = {**sample.kwargs, "capturable": False}
        if any(isinstance(value, torch.Tensor) for value in settings.values()):
            continue
        expected = train(info, {**settings, "foreach": False}, "cpu", QUICK)
        for foreach in (False, True):
            on_npu = functools.partial(train, info, {**settings, "foreach": foreach, "capturable": True}, "npu", QUICK)
            with on_device(lambda stats: None):
                actual = outcome_of(on_npu)
            assert actual.error is None
            assert set(actual.waits) <= {"blocking copy to the device"}  # parameters are made from those of the CPU
            assert_same(actual.results, expected)


@pytest.mark.conformance
@pytest.mark.parametrize("info", OPTIMIZERS, ids=lambda info: info.name)
def test_saved_states_go_on_where_they_stopped(info):
    for sample, implementation in itertools.product(samples(info), implementations(info)[:2]):
        settings = {**sample.kwargs, **implementation}
        expected = train(info, settings, "cpu", QUICK)
        for first, second in itertools.product(("cpu", "npu"), repeat=2):
            weights = parameters(info, first, QUICK)
            optimizer = info.optim_cls(weights, **moved(settings, first))
            step(optimizer, weights, 1)
            file = io.BytesIO()
            torch.save(optimizer.state_dict(), file)
            file.seek(0)
            weights = [weight.detach().to(second).requires_grad_() for weight in weights]
            optimizer = info.optim_cls(weights, **moved(settings, second))
            optimizer.load_state_dict(torch.load(file, map_location=second, weights_only=False))
            step(optimizer, weights, STEPS - 1)
            assert_same([weight.detach() for weight in weights], expected)


@pytest.mark.conformance
@pytest.mark.parametrize("info", [i for i in OPTIMIZERS if i.supports_multiple_devices], ids=lambda info: info.name)
def test_parameters_on_several_devices(info):
    for sample, implementation in itertools.product(samples(info), implementations(info)[1:3]):
        settings = {**sample.kwargs, **implementation}
        if any(isinstance(value, torch.Tensor) for value in pytree.tree_leaves(settings)):
            continue
        expected = train(info, settings, "cpu", QUICK)
        devices = itertools.cycle(("npu:0", "cpu", "npu:1"))
        weights = [weight.detach().to(next(devices)).requires_grad_() for weight in parameters(info, "cpu", QUICK)]
        optimizer = info.optim_cls(weights, **settings)
        for _ in range(STEPS):
            for weight in weights:
                weight.grad = 2 * weight.detach() + 1
            optimizer.step()
        assert_same([weight.detach() for weight in weights], expected)


def on_npu(tree: Any) -> Any:
    """Parameters with their gradients; a tensor that occurs twice stays one tensor."""
    known: dict[int, torch.Tensor] = {}

    def move(tensor: torch.Tensor) -> torch.Tensor:
        if id(tensor) not in known:
            known[id(tensor)] = tensor.detach().to("npu").requires_grad_(tensor.requires_grad)
            known[id(tensor)].grad = tensor.grad if tensor.grad is None else tensor.grad.to("npu")
        return known[id(tensor)]

    return pytree.tree_map_only(torch.Tensor, move, tree)


@pytest.mark.parametrize("info", OPTIMIZERS, ids=lambda info: info.name)
def test_errors_like_cpu(info):
    for error in info.optim_error_inputs_func(device="cpu", dtype=QUICK):
        sample = error.optimizer_error_input
        given = parameters(info, "npu", QUICK)[:2] if sample.params is None else on_npu(sample.params)
        expect = pytest.warns if issubclass(error.error_type, Warning) else pytest.raises
        with expect(error.error_type, match=error.error_regex):
            optimizer = info.optim_cls(given, **sample.kwargs)
            if error.error_on is OptimizerErrorEnum.STEP_ERROR:
                optimizer.step()


def test_sparse_adam_like_cpu():
    weights = []
    for device in ("cpu", "npu"):
        torch.manual_seed(0)
        rows = torch.nn.Embedding(10, 3, sparse=True).to(device)
        optimizer = torch.optim.SparseAdam(rows.parameters(), lr=0.1)
        for step in range(STEPS):
            optimizer.zero_grad()
            rows(torch.tensor([1, 4, 4, step], device=device)).square().sum().backward()
            optimizer.step()
        weights.append(rows.weight.detach().cpu())
    assert torch.equal(*weights)
