"""PyTorch's own modules and their samples (module_db): npu against CPU, training and evaluation, with gradients.

Results, gradients and buffers are the same bits, and what the CPU refuses npu refuses in the same words. float32 runs
in every test run, six samples a module. The long sweep takes every sample in every dtype of the entry, other layouts of
the inputs, and what programs do with modules: move, convert, copy, save and load them.
"""

from __future__ import annotations

import copy
import functools
import io
import itertools
import warnings
from collections.abc import Iterator

import pytest
import torch
from compare import LAYOUTS, Mover, apart, as_it_is, assert_like, matches, on_device, same_layout, tensors
from exceptions import exceptions
from outcomes import Differences, Outcome, difference, outcome_of
from torch.testing._internal.common_modules import ErrorModuleInput, ModuleErrorEnum, ModuleInfo, ModuleInput, module_db
from torch.testing._internal.opinfo.core import SampleInput

pytestmark = pytest.mark.usefixtures("like_small_tasks")

# Modules that draw random numbers on the device, always or in training: values differ.
RANDOM = ("nn.Lazy",)
RANDOM_IN_TRAINING = ("nn.RReLU", "nn.Dropout", "nn.AlphaDropout", "nn.FeatureAlphaDropout")
WAITING = exceptions("modules", "waits")
ROUNDED = exceptions("modules", "rounded")
PRECISIONS = 16  # of the dtype, by which rounded values may differ
CPU_DIFFERS = exceptions("modules", "differs")
NOT_COMPARED = exceptions("modules", "refused")
QUICK = torch.float32
QUICK_SAMPLES = 6
CONFORMANCE = pytest.mark.conformance


def modes(info: ModuleInfo) -> Iterator[tuple[bool, str]]:
    for training in (True, False) if info.train_and_eval_differ else (True,):
        yield training, f"{info.formatted_name}-{'training' if training else 'evaluation'}"


def quick_cases() -> list:
    return [pytest.param(info, training, id=name) for info in module_db for training, name in modes(info)]


def long_cases() -> list:
    return [
        pytest.param(info, training, dtype, id=f"{name}-{str(dtype).removeprefix('torch.')}")
        for info in module_db
        for training, name in modes(info)
        for dtype in info.supported_dtypes("cpu")
    ]


def draws(info: ModuleInfo, training: bool) -> bool:
    return info.name.startswith(RANDOM) or (training and info.name.startswith(RANDOM_IN_TRAINING))


def run(module: torch.nn.Module, sample: SampleInput, device: str) -> Outcome:
    """Calls a copy of `module` on `device`: its results, then gradients of parameters and inputs, and the buffers."""
    there = copy.deepcopy(module).to(device)
    arguments, keywords = Mover(device)((sample.input, dict(sample.kwargs)))
    torch.manual_seed(0)

    def call() -> Outcome:
        results = there(*arguments, **keywords)
        outputs = [tensor for tensor in tensors(results) if tensor.requires_grad]
        if outputs:
            torch.autograd.backward(outputs, [torch.ones_like(tensor) for tensor in outputs])
        gradients = [leaf.grad for leaf in (*there.parameters(), *tensors((arguments, keywords)))]
        return Outcome(results, [gradients, list(there.buffers())], (arguments, keywords))

    outcome = outcome_of(call)
    outcome.warnings = [text for text in outcome.warnings if "oneDNN" not in text]  # of what it cannot do on the CPU
    return outcome


def inputs(info: ModuleInfo, training: bool, dtype: torch.dtype, device: str) -> Iterator[ModuleInput]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        make = functools.partial(info.module_inputs_func, info, device=device, dtype=dtype, training=training)
        torch.manual_seed(0)
        made = list(make(requires_grad=dtype.is_floating_point or dtype.is_complex))
    return (given for given in made if given.forward_input is not None)


def make_module(info: ModuleInfo, given: ModuleInput) -> torch.nn.Module:
    torch.manual_seed(0)
    return info.module_cls(*given.constructor_input.args, **given.constructor_input.kwargs)


def samples(
    info: ModuleInfo, training: bool, dtype: torch.dtype = QUICK
) -> Iterator[tuple[torch.nn.Module, SampleInput]]:
    """Modules on the CPU with the samples that they take."""
    for given in inputs(info, training, dtype, "cpu"):
        sample = SampleInput(list(given.forward_input.args), kwargs=given.forward_input.kwargs)
        yield make_module(info, given).to(dtype).train(training), sample


@pytest.mark.parametrize(("info", "training"), quick_cases())
def test_like_cpu(info, training, note_operators, record_property):
    chosen = itertools.islice(samples(info, training), QUICK_SAMPLES)
    compare(info, training, QUICK, chosen, (as_it_is,), note_operators, record_property)


@CONFORMANCE
@pytest.mark.parametrize(("info", "training", "dtype"), long_cases())
def test_like_cpu_in_every_dtype_and_layout(info, training, dtype, note_operators, record_property):
    chosen = samples(info, training, dtype)
    compare(info, training, dtype, chosen, (as_it_is, *LAYOUTS), note_operators, record_property)


def compare(info, training, dtype, chosen, changes, note_operators, record_property) -> None:
    short = str(dtype).removeprefix("torch.")
    like = functools.partial(assert_like, values=not draws(info, training))
    rounded = functools.partial(like, **apart(dtype, PRECISIONS))
    differences = Differences()
    note = functools.partial(note_operators, test=f"module_db:{info.name}", dtype=short)
    with on_device(note):
        for (i, (module, original)), change in itertools.product(enumerate(chosen), changes):
            sample, what = change(original), f"{info.name} {change.__name__} {short}"
            if matches(what, CPU_DIFFERS) or (change is not as_it_is and same_layout(sample, original)):
                continue
            on_npu, expected = functools.partial(run, module, sample, "npu"), run(module, sample, "cpu")
            close, waiting = rounded if matches(what, ROUNDED) else like, info.name in WAITING
            differences.compare(str(i), what, on_npu, expected, close, waiting)
    assert differences.check(record_property) > 0 or info.name in NOT_COMPARED


def device_of(module: torch.nn.Module) -> set[str]:
    return {tensor.device.type for tensor in itertools.chain(module.parameters(), module.buffers())}


@CONFORMANCE
@pytest.mark.parametrize(("info", "training"), quick_cases())
def test_modules_travel(info, training):
    """Moved, converted, copied, saved and loaded modules keep their parameters' identity and their values."""
    for given in inputs(info, training, QUICK, "cpu"):
        if info.is_lazy:
            continue
        module = make_module(info, given).to(QUICK)
        state = {name: value.clone() for name, value in module.state_dict().items()}
        parameters = list(module.parameters())
        module.to("npu")
        assert device_of(module) <= {"npu"}
        assert all(one is other for one, other in zip(module.parameters(), parameters, strict=True))
        file = io.BytesIO()
        torch.save(module.state_dict(), file)
        file.seek(0)
        fresh = make_module(info, given).to("npu")
        fresh.load_state_dict(torch.load(file))
        file.seek(0)
        on_cpu = torch.load(file, map_location="cpu")
        for other in (fresh.state_dict(), copy.deepcopy(module).state_dict(), on_cpu, module.cpu().state_dict()):
            assert other.keys() == state.keys()
            for name, value in other.items():
                assert value.cpu().equal(state[name]), name


@CONFORMANCE
@pytest.mark.parametrize(("info", "training"), quick_cases())
def test_modules_convert_on_the_device(info, training):
    """As on the CPU: half(), double() and to(dtype) change floating parameters; new ones can be made there at once."""
    for here, there in zip(*(inputs(info, training, QUICK, device) for device in ("cpu", "npu")), strict=True):
        if info.is_lazy:
            continue
        module = make_module(info, here)
        for dtype in (torch.half, torch.double):
            converted = copy.deepcopy(module).to("npu").to(dtype)
            assert_like(converted.state_dict(), copy.deepcopy(module).to(dtype).state_dict())
        with torch.device("npu"):
            born = make_module(info, there)
        assert device_of(born) <= {"npu"}
        assert_like(born.state_dict(), module.state_dict(), values=False)


@pytest.mark.parametrize("info", [i for i in module_db if i.module_error_inputs_func], ids=lambda i: i.formatted_name)
def test_errors_like_cpu(info):
    def outcome(error: ErrorModuleInput, device: str) -> Outcome:
        def call() -> None:
            made, given = error.module_error_input.constructor_input, error.module_error_input.forward_input
            module = info.module_cls(*Mover(device)(made.args), **Mover(device)(made.kwargs)).to(device)
            assert error.error_on is ModuleErrorEnum.FORWARD_ERROR
            module(*Mover(device)(given.args), **Mover(device)(given.kwargs))

        return outcome_of(call)

    for training, _ in modes(info):
        make = functools.partial(info.module_error_inputs_func, info, device="cpu", dtype=QUICK, requires_grad=False)
        for error in make(training=training):
            expected = outcome(error, "cpu")
            assert isinstance(expected.error, error.error_type)
            assert difference(lambda error=error: outcome(error, "npu"), expected) == ""
