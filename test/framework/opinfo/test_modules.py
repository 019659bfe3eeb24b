"""PyTorch's own modules and their samples (module_db): npu against CPU, training and evaluation, with gradients."""

from __future__ import annotations

import copy
import itertools
import warnings
from typing import Any

import pytest
import torch
from compare import tensors
from torch.testing._internal.common_modules import ModuleInfo, ModuleInput, module_db
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
    "nn.GaussianNLLLoss": "PyTorch checks on the host that variances are positive",
}
# Modules whose samples the CPU refuses in training, with the reason.
NOT_COMPARED = {
    "nn.FractionalMaxPool2d": "the samples hold random numbers of another dtype than the input",
    "nn.FractionalMaxPool3d": "the samples hold random numbers of another dtype than the input",
}
QUICK_SAMPLES = 6


def cases() -> list:
    found = []
    for info in module_db:
        for training in (True, False) if info.train_and_eval_differ else (True,):
            name = f"{info.formatted_name}-{'training' if training else 'evaluation'}"
            found.append(pytest.param(info, training, id=name))
    return found


def move(tree: Any, device: str) -> Any:
    def one(tensor: torch.Tensor) -> torch.Tensor:
        return tensor.detach().to(device).requires_grad_(tensor.requires_grad)

    return pytree.tree_map_only(torch.Tensor, one, tree)


def run(module: torch.nn.Module, sample: ModuleInput, device: str) -> list[torch.Tensor]:
    """Results, then the gradients of parameters and inputs."""
    module = copy.deepcopy(module).to(device)
    arguments, keywords = move(sample.forward_input.args, device), move(sample.forward_input.kwargs, device)
    torch.manual_seed(0)
    results = tensors(module(*arguments, **keywords))
    outputs = [tensor for tensor in results if tensor.requires_grad]
    if outputs:
        torch.autograd.backward(outputs, [torch.ones_like(tensor) for tensor in outputs])
    leaves = [*module.parameters(), *tensors((arguments, keywords))]
    return [*results, *(leaf.grad for leaf in leaves if leaf.grad is not None)]


def check(info: ModuleInfo, module: torch.nn.Module, sample: ModuleInput, note) -> bool:
    """Whether the CPU takes the sample, so that there was something to compare."""
    try:
        expected = run(module, sample, "cpu")
    except Exception:  # the CPU refuses this sample
        return False
    torch.npu.synchronize()
    torch.npu.op_stats(reset=True)
    actual = run(module, sample, "npu")
    stats = torch.npu.op_stats(reset=True)
    note(stats, test=f"module_db:{info.name}", dtype="float32")
    assert [name for name, counts in stats.items() if counts["fallback"]] == []
    if info.name not in WAITING:
        # A blocking copy of the host's waits by contract, where it is not run at once.
        assert [name for name, counts in stats.items() if counts["host_waits"] and name != "aten::copy_"] == []
    assert [(a.shape, a.stride()) for a in actual] == [(e.shape, e.stride()) for e in expected]
    if not info.name.startswith(RANDOM):
        torch.testing.assert_close([a.cpu() for a in actual], expected, rtol=2e-3, atol=2e-4, equal_nan=True)
    torch.npu.synchronize()
    return True


@pytest.mark.parametrize(("info", "training"), cases())
def test_like_cpu(info, training, note_operators):
    samples = info.module_inputs_func(info, device="cpu", dtype=torch.float32, requires_grad=True, training=training)
    compared = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for sample in itertools.islice(samples, QUICK_SAMPLES):
            if sample.forward_input is None:
                continue
            torch.manual_seed(0)
            module = info.module_cls(*sample.constructor_input.args, **sample.constructor_input.kwargs)
            compared += check(info, module.train(training), sample, note_operators)
    assert compared > 0 or info.name in NOT_COMPARED
