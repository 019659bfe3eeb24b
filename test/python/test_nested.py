"""Programs with nested tensors on npu, strided and jagged."""

from __future__ import annotations

import io

import pytest
import torch
from torch import nn
from torch.nn import functional

LAYOUTS = (torch.strided, torch.jagged)


@pytest.fixture(autouse=True)
def no_fallback():
    torch.npu.op_stats(reset=True)
    yield
    assert [name for name, counts in torch.npu.op_stats().items() if counts["fallback"]] == []


def nested(layout: torch.layout, device: str = "npu", requires_grad: bool = False) -> torch.Tensor:
    torch.manual_seed(1)
    parts = [torch.randn(length, 8).to(device) for length in (2, 5, 3)]
    return torch.nested.nested_tensor(parts, layout=layout, device=device, requires_grad=requires_grad)


def assert_same(actual: torch.Tensor, expected: torch.Tensor) -> None:
    """The same parts, on npu."""
    assert actual.device.type == "npu" and actual.is_nested == expected.is_nested
    if not expected.is_nested:
        torch.testing.assert_close(actual.cpu(), expected)
        return
    for a, e in zip(actual.unbind(), expected.unbind(), strict=True):
        torch.testing.assert_close(a.cpu(), e)


def attention(tensor: torch.Tensor) -> torch.Tensor:
    if tensor.layout is torch.jagged:
        heads = tensor.unflatten(-1, (2, 4)).transpose(1, 2)
    else:
        heads = tensor.view(3, -1, 2, 4).transpose(1, 2).contiguous()
    return functional.scaled_dot_product_attention(heads, heads, heads)


def linear(tensor: torch.Tensor) -> torch.Tensor:
    torch.manual_seed(2)
    return functional.linear(tensor, torch.randn(6, 8).to(tensor.device), torch.randn(6).to(tensor.device))


BOTH = {
    "linear": linear,
    "attention": attention,
    "softmax": lambda t: torch.softmax(t, -1),
    "layer_norm": lambda t: functional.layer_norm(
        t, (8,), torch.full((8,), 2.0, device=t.device), torch.ones(8, device=t.device)
    ),
    "relu": torch.relu,
    "gelu": functional.gelu,
    "silu": functional.silu,
    "tanh": torch.tanh,
    "add": lambda t: t + t,
    "mul": lambda t: t * 2,
    "to_padded_tensor": lambda t: torch.nested.to_padded_tensor(t, -1.0),
    "clone": torch.clone,
    "unbind": lambda t: t.unbind()[1],
    "dropout in evaluation": lambda t: functional.dropout(t, 0.5, training=False),
}
STRIDED = {
    "bmm": lambda t: torch.bmm(t, t.transpose(1, 2)),
    "matmul": lambda t: t @ t.transpose(1, 2),
    "chunk": lambda t: t.chunk(2, -1)[1],
    "select": lambda t: t.select(0, 1),
    "cos": torch.cos,
    "sum": lambda t: t.sum(-1, keepdim=True),
    "masked_fill": lambda t: t.masked_fill(t > 0, 1.0),
    "to another dtype": lambda t: t.to(torch.float64),
}
CASES = [(layout, name, call) for layout in LAYOUTS for name, call in BOTH.items()]
CASES += [(torch.strided, name, call) for name, call in STRIDED.items()]


@pytest.mark.parametrize(("layout", "name", "call"), CASES, ids=[f"{case[1]}-{case[0]}" for case in CASES])
def test_calls_and_gradients_like_cpu(layout, name, call):
    def run(device: str, gradients: bool) -> list[torch.Tensor]:
        tensor = nested(layout, device, requires_grad=gradients)
        result = call(tensor)
        if not gradients:
            return [result]
        result.backward(torch.ones_like(result))
        return [result, tensor.grad]

    for gradients in (False, True):
        try:
            expected = run("cpu", gradients)
        except (RuntimeError, NotImplementedError, ValueError):  # no such derivative
            assert gradients
            continue
        for a, e in zip(run("npu", gradients), expected, strict=True):
            assert_same(a, e)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_copies_between_devices(layout):
    host = nested(layout, "cpu")
    assert_same(host.to("npu"), host)
    there_and_back = host.to("npu").to("cpu")
    assert there_and_back.device.type == "cpu"
    assert_same(there_and_back.to("npu"), host)


def test_save_and_load():
    tensor = nested(torch.strided)
    file = io.BytesIO()
    torch.save(tensor, file)
    file.seek(0)
    assert_same(torch.load(file, weights_only=False), tensor.cpu())


def test_jagged_to_padded_and_back():
    def run(device: str) -> list[torch.Tensor]:
        values = torch.arange(20.0).view(10, 2).to(device).requires_grad_()
        offsets = torch.tensor([0, 2, 7, 10], device=device)
        padded = torch.ops.aten._jagged_to_padded_dense_forward(values, [offsets], [5], -1.0)
        back = torch.ops.aten._padded_dense_to_jagged_forward(padded, [offsets], 10)
        return [padded, back, torch.ops.aten._padded_dense_to_jagged_forward(padded, [offsets])]

    for a, e in zip(run("npu"), run("cpu"), strict=True):
        assert_same(a, e)


def test_nested_from_a_mask():
    mask = torch.tensor([[True, True, False], [True, False, False]])
    values = torch.arange(12.0).view(2, 3, 2)
    expected = torch._nested_tensor_from_mask(values, mask)
    assert_same(torch._nested_tensor_from_mask(values.npu(), mask.npu()), expected)


def test_encoder_takes_the_nested_path_in_evaluation():
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    encoder = nn.TransformerEncoder(layer, 2).eval()
    values = torch.randn(3, 5, 8)
    padding = torch.arange(5) >= torch.tensor([2, 5, 3])[:, None]
    with torch.no_grad():
        expected = encoder(values, src_key_padding_mask=padding)
        actual = encoder.to("npu")(values.npu(), src_key_padding_mask=padding.npu())
    assert_same(actual, expected)
    assert any(name.startswith("aten::_nested_tensor_from_mask") for name in torch.npu.op_stats())
