"""Programs without data: fake tensors of npu, torch.export, and torch.library's own checks of operators."""

from __future__ import annotations

import inspect
import io

import pytest
import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.export import Dim, export
from torch.export.passes import move_to_device_pass


class Model(nn.Module):
    """Parameters, buffers, branches on sizes, a factory on its input's device, and a layer that trains differently."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(1, 4, 3, padding=1)
        self.norm = nn.BatchNorm2d(4)
        self.attention = nn.MultiheadAttention(4, 2, batch_first=True)
        self.register_buffer("scale", torch.linspace(0.5, 1.5, 4))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = self.norm(self.convolution(x)).relu().flatten(2).transpose(1, 2)
        position = torch.arange(y.shape[1], device=y.device) / y.shape[1]
        y = y * self.scale + position[:, None]
        attended, _ = self.attention(y, y, y)
        return attended, attended.mean((1, 2)).sigmoid()


@pytest.fixture
def model() -> nn.Module:
    torch.manual_seed(0)
    return Model().eval()


def assert_same(actual: tuple, expected: tuple, device: str) -> None:
    for a, e in zip(actual, expected, strict=True):
        assert a.device.type == device
        torch.testing.assert_close(a.cpu(), e, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("strict", [False, True])
def test_exported_program_runs_on_npu_with_other_sizes(model, strict):
    x, larger = torch.randn(2, 1, 4, 4), torch.randn(7, 1, 4, 4)
    expected = [model(x), model(larger)]
    program = export(model.npu(), (x.npu(),), dynamic_shapes={"x": {0: Dim("batch", min=2)}}, strict=strict)
    for given, result in zip((x, larger), expected, strict=True):
        assert_same(program.module()(given.npu()), result, "npu")
    file = io.BytesIO()
    torch.export.save(program, file)
    file.seek(0)
    assert_same(torch.export.load(file).module()(larger.npu()), expected[1], "npu")


@pytest.mark.parametrize(("source", "target"), [("cpu", "npu"), ("npu", "cpu"), ("npu:0", "npu:1")])
def test_exported_program_moves_between_devices(model, source, target):
    x = torch.randn(2, 1, 4, 4)
    expected = model(x)
    program = move_to_device_pass(export(model.to(source), (x.to(source),)), target)
    assert_same(program.module()(x.to(target)), expected, torch.device(target).type)


def test_exported_training_graph_differentiates(model):
    x = torch.randn(2, 1, 4, 4)
    program = export(model.npu().train(), (x.npu(),))
    module = program.module()
    module(x.npu())[1].sum().backward()
    gradients = {name: parameter.grad for name, parameter in module.named_parameters()}
    model.cpu()(x)[1].sum().backward()
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(gradients[name].cpu(), parameter.grad, rtol=1e-3, atol=1e-5)


def describe_program() -> list[tuple]:
    """Layers, random numbers, views, copies, factories and derivatives on npu; all of the results but their values."""
    layer = nn.Linear(4, 5, device="npu")
    x = torch.randn(3, 4, device="npu:1").to("npu:0").requires_grad_()
    y = nn.functional.dropout(layer(x), 0.5).t().softmax(0)
    gradients = torch.autograd.grad(y.sum(), (x, layer.weight))
    results = y, y.argmax(1), y.half(), x.cpu(), y[:, 1:], x @ x.t(), torch.arange(3, device=x.device), *gradients
    return [(t.device, t.shape, t.stride(), t.dtype, t.requires_grad) for t in results]


def test_nothing_is_initialised_by_tensors_without_data(run_child):
    child = run_child(
        f"""
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx

{inspect.getsource(describe_program)}
with FakeTensorMode():
    described = describe_program()
    graph = make_fx(lambda x: x.relu() + torch.ones(2, device=x.device))(torch.ones(3, 2, device="npu"))
assert not torch.npu.is_initialized()
assert described == describe_program()
assert graph(torch.ones(1, 2, device="npu")).tolist() == [[2, 2]]
assert torch.npu.is_initialized()
"""
    )
    assert child.returncode == 0, child.stderr


def test_fake_tensors_may_live_on_devices_that_this_machine_has_not():
    with FakeTensorMode():
        x = torch.ones(3, device="npu:7")
        assert (x * 2).sum().device == torch.device("npu:7")
        with pytest.raises(RuntimeError, match="npu:7 and npu:0"):
            x + torch.ones(3, device="npu:0")
    with pytest.raises(RuntimeError, match="invalid device index 7"):
        torch.ones(3, device="npu:7")


def test_fake_tensors_follow_the_current_device_once_there_is_one():
    torch.npu.init()
    with torch.npu.device(1), FakeTensorMode():
        assert torch.ones(3, device="npu").device.index == 1


OPERATORS = {
    "gelu": (torch.ops.aten.gelu.default, lambda x: (x,)),
    "addmm": (torch.ops.aten.addmm.default, lambda x: (x[0], x, x)),
    "index_put_": (
        torch.ops.aten.index_put_.default,
        lambda x: (x.clone(), [torch.tensor([0, 2], device=x.device)], x[:2]),
    ),
}
# PyTorch's check of the autograd registration knows CPU, CUDA and XPU only.
OPERATOR_CHECKS = ("test_schema", "test_faketensor", "test_aot_dispatch_dynamic")


@pytest.mark.parametrize(("operator", "arguments"), OPERATORS.values(), ids=OPERATORS)
def test_operators_pass_the_checks_of_torch_library(operator, arguments):
    x = torch.randn(4, 4, device="npu", requires_grad=True)
    torch.library.opcheck(operator, arguments(x), test_utils=OPERATOR_CHECKS)
