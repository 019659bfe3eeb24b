"""PyTorch's own modules and their samples (module_db): npu against CPU, training and evaluation, with gradients.

float32 runs in every test run, six samples a module. The long sweep takes every sample in every dtype of the entry,
other layouts of the inputs, and what programs do with modules: move, convert, copy, save and load them.
"""

from __future__ import annotations

import copy
import functools
import io
import itertools
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from compare import on_device, tensors
from torch.testing._internal.common_modules import ModuleErrorEnum, ModuleInfo, ModuleInput, module_db
from torch.utils import _pytree as pytree

# Modules that draw parameters or regions on the device: values differ.
RANDOM = ("nn.Lazy", "nn.FractionalMaxPool", "nn.RReLU", "nn.Dropout", "nn.AlphaDropout", "nn.FeatureAlphaDropout")
# Modules that make the host wait, with the reason.
WAITING = {
    "nn.CTCLoss": "lengths on the device are read on the host",
    "nn.TransformerEncoder": "PyTorch compares the mask with a causal one on the host",
    "nn.TransformerDecoderLayer": "PyTorch compares the mask with a causal one on the host",
    "nn.Transformer": "PyTorch compares the mask with a causal one on the host",
    "nn.BatchNorm1d": "without momentum PyTorch reads the count of batches on the host",
    "nn.BatchNorm2d": "without momentum PyTorch reads the count of batches on the host",
    "nn.BatchNorm3d": "without momentum PyTorch reads the count of batches on the host",
    "nn.LinearCrossEntropyLoss": "PyTorch selects the targets that count by a mask",
    "nn.GaussianNLLLoss": "PyTorch checks on the host that variances are positive",
}
# Modules whose samples the CPU refuses, with the reason.
NOT_COMPARED = {
    "nn.FractionalMaxPool2d": "the samples hold random numbers of another dtype than the input",
    "nn.FractionalMaxPool3d": "the samples hold random numbers of another dtype than the input",
}
QUICK = torch.float32
QUICK_SAMPLES = 6
TOLERANCE = {torch.float16: (2e-2, 2e-2), torch.bfloat16: (5e-2, 5e-2)}
CONFORMANCE = pytest.mark.conformance

Layout = Callable[[torch.Tensor], torch.Tensor]


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


def move(tree: Any, device: str, like: Layout) -> Any:
    def one(tensor: torch.Tensor) -> torch.Tensor:
        return like(tensor.detach()).to(device).requires_grad_(tensor.requires_grad)

    return pytree.tree_map_only(torch.Tensor, one, tree)


def as_it_is(tensor: torch.Tensor) -> torch.Tensor:
    return tensor


def permuted(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.transpose(0, -1).contiguous().transpose(0, -1) if tensor.dim() > 1 else tensor


def channels_last(tensor: torch.Tensor) -> torch.Tensor:
    formats = {4: torch.channels_last, 5: torch.channels_last_3d}
    return tensor.contiguous(memory_format=formats.get(tensor.dim(), torch.contiguous_format))


def run(module: torch.nn.Module, sample: ModuleInput, device: str, like: Layout = as_it_is) -> list[torch.Tensor]:
    """Results, then the gradients of parameters and inputs, then the buffers."""
    module = copy.deepcopy(module).to(device)
    arguments, keywords = move((sample.forward_input.args, sample.forward_input.kwargs), device, like)
    torch.manual_seed(0)
    results = tensors(module(*arguments, **keywords))
    outputs = [tensor for tensor in results if tensor.requires_grad]
    if outputs:
        torch.autograd.backward(outputs, [torch.ones_like(tensor) for tensor in outputs])
    leaves = [*module.parameters(), *tensors((arguments, keywords))]
    gradients = [leaf.grad for leaf in leaves if leaf.grad is not None]
    return [*results, *gradients, *module.buffers()]


def assert_same(info: ModuleInfo, actual: list[torch.Tensor], expected: list[torch.Tensor], dtype: torch.dtype) -> None:
    assert [(a.dtype, a.shape, a.stride()) for a in actual] == [(e.dtype, e.shape, e.stride()) for e in expected]
    if not info.name.startswith(RANDOM):
        rtol, atol = TOLERANCE.get(dtype, (2e-3, 2e-4))
        torch.testing.assert_close([a.cpu() for a in actual], expected, rtol=rtol, atol=atol, equal_nan=True)


def check(
    info: ModuleInfo, module: torch.nn.Module, sample: ModuleInput, dtype: torch.dtype, like: Layout, note: Callable
) -> bool:
    """Whether the CPU takes the sample, so that there was something to compare."""
    try:
        expected = run(module, sample, "cpu", like)
    except Exception:  # the CPU refuses this sample
        return False
    with on_device(note, waits_allowed=info.name in WAITING):
        actual = run(module, sample, "npu", like)
    assert_same(info, actual, expected, dtype)
    return True


def samples(
    info: ModuleInfo, training: bool, dtype: torch.dtype = QUICK
) -> Iterator[tuple[torch.nn.Module, ModuleInput]]:
    """Modules on the CPU with the samples that they take."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        make = info.module_inputs_func
        for sample in make(info, device="cpu", dtype=dtype, requires_grad=dtype.is_floating_point, training=training):
            if sample.forward_input is None:
                continue
            torch.manual_seed(0)
            module = info.module_cls(*sample.constructor_input.args, **sample.constructor_input.kwargs)
            yield module.to(dtype).train(training), sample


@pytest.mark.parametrize(("info", "training"), quick_cases())
def test_like_cpu(info, training, note_operators):
    note = functools.partial(note_operators, test=f"module_db:{info.name}", dtype="float32")
    chosen = itertools.islice(samples(info, training), QUICK_SAMPLES)
    compared = sum([check(info, module, sample, QUICK, as_it_is, note) for module, sample in chosen])
    assert compared > 0 or info.name in NOT_COMPARED


@CONFORMANCE
@pytest.mark.parametrize(("info", "training", "dtype"), long_cases())
def test_like_cpu_in_every_dtype_and_layout(info, training, dtype, note_operators):
    note = functools.partial(note_operators, test=f"module_db:{info.name}", dtype=str(dtype).removeprefix("torch."))
    compared = 0
    for module, sample in samples(info, training, dtype):
        for like in (as_it_is, permuted, channels_last):
            compared += check(info, module, sample, dtype, like, note)
    assert compared > 0 or info.name in NOT_COMPARED


def device_of(module: torch.nn.Module) -> set[str]:
    return {tensor.device.type for tensor in itertools.chain(module.parameters(), module.buffers())}


@CONFORMANCE
@pytest.mark.parametrize(("info", "training"), quick_cases())
def test_modules_travel(info, training):
    """Moved, converted, copied, saved and loaded modules keep their parameters' identity and their values."""
    for module, sample in samples(info, training):
        if info.is_lazy:
            continue
        state = {name: value.clone() for name, value in module.state_dict().items()}
        parameters = list(module.parameters())
        module.to("npu")
        assert device_of(module) <= {"npu"}
        assert all(one is other for one, other in zip(module.parameters(), parameters, strict=True))
        file = io.BytesIO()
        torch.save(module.state_dict(), file)
        file.seek(0)
        made = sample.constructor_input
        fresh = info.module_cls(*made.args, **made.kwargs).to("npu")
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
    for module, sample in samples(info, training):
        if info.is_lazy:
            continue
        for dtype in (torch.half, torch.double):
            there, here = copy.deepcopy(module).to("npu").to(dtype), copy.deepcopy(module).to(dtype)
            for actual, expected in zip(there.state_dict().values(), here.state_dict().values(), strict=True):
                torch.testing.assert_close(actual.cpu(), expected, rtol=0, atol=0)
        made = sample.constructor_input
        torch.manual_seed(0)
        with torch.device("npu"):
            born = info.module_cls(*made.args, **made.kwargs)
        assert device_of(born) <= {"npu"}


@pytest.mark.parametrize("info", [i for i in module_db if i.module_error_inputs_func], ids=lambda i: i.formatted_name)
def test_errors_like_cpu(info):
    for training, _ in modes(info):
        for error in info.module_error_inputs_func(
            info, device="npu", dtype=QUICK, requires_grad=False, training=training
        ):
            made, given = error.module_error_input.constructor_input, error.module_error_input.forward_input
            with pytest.raises(error.error_type, match=error.error_regex):
                module = info.module_cls(*made.args, **made.kwargs).to("npu")
                assert error.error_on is ModuleErrorEnum.FORWARD_ERROR
                module(*given.args, **given.kwargs)
