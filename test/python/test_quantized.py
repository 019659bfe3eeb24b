"""Quantized tensors on npu: made, read, copied, saved; fake quantisation and training for it."""

from __future__ import annotations

import copy
import io
import re
import warnings

import pytest
import torch
from torch import nn

DTYPES = (torch.quint8, torch.qint8, torch.qint32)


@pytest.fixture(autouse=True)
def no_fallback():
    torch.npu.op_stats(reset=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
    assert [name for name, counts in torch.npu.op_stats().items() if counts["fallback"]] == []


def values(device: str) -> torch.Tensor:
    torch.manual_seed(0)
    return torch.randn(4, 6).to(device)


def per_tensor(device: str, dtype: torch.dtype = torch.quint8) -> torch.Tensor:
    return torch.quantize_per_tensor(values(device), 0.1, 10, dtype)


def per_channel(device: str, dtype: torch.dtype = torch.qint8) -> torch.Tensor:
    scales = torch.tensor([0.1, 0.2, 0.05, 0.3], dtype=torch.float64).to(device)
    zero_points = torch.tensor([1, 2, 3, 4]).to(device)
    return torch.quantize_per_channel(values(device), scales, zero_points, 0, dtype)


def float_parameters(device: str, dtype: torch.dtype = torch.quint8) -> torch.Tensor:
    scales, zero_points = torch.full((4,), 0.1).to(device), torch.full((4,), 7.0).to(device)
    return torch.quantize_per_channel(values(device), scales, zero_points, 0, dtype)


KINDS = {"per tensor": per_tensor, "per channel": per_channel, "float parameters": float_parameters}


def assert_same(actual: torch.Tensor, expected: torch.Tensor) -> None:
    assert actual.device.type == "npu" and actual.is_quantized == expected.is_quantized
    if not expected.is_quantized:
        torch.testing.assert_close(actual.cpu(), expected)
        return
    assert (actual.dtype, actual.qscheme()) == (expected.dtype, expected.qscheme())
    assert actual.stride() == expected.stride()
    assert torch.equal(actual.int_repr().cpu(), expected.int_repr())
    if expected.qscheme() == torch.per_tensor_affine:
        assert (actual.q_scale(), actual.q_zero_point()) == (expected.q_scale(), expected.q_zero_point())
    else:
        assert actual.q_per_channel_axis() == expected.q_per_channel_axis()
        assert actual.q_per_channel_scales().device.type == "npu"
        assert torch.equal(actual.q_per_channel_scales().cpu(), expected.q_per_channel_scales())
        assert torch.equal(actual.q_per_channel_zero_points().cpu(), expected.q_per_channel_zero_points())


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", KINDS)
def test_quantize_and_dequantize(kind, dtype):
    if kind == "float parameters" and dtype is not torch.quint8:
        pytest.skip("PyTorch quantizes with float parameters to quint8 and quint4x2 only")
    tensor, expected = KINDS[kind]("npu", dtype), KINDS[kind]("cpu", dtype)
    assert_same(tensor, expected)
    assert_same(tensor.dequantize(), expected.dequantize())


def test_four_bit_numbers():
    expected = float_parameters("cpu", torch.quint4x2)
    tensor = float_parameters("npu", torch.quint4x2)
    assert_same(tensor, expected)
    assert_same(expected.to("npu"), expected)
    assert torch.equal(tensor.cpu().int_repr(), expected.int_repr())


@pytest.mark.parametrize("kind", KINDS)
def test_copies_between_devices(kind):
    host = KINDS[kind]("cpu")
    tensor = host.to("npu")
    assert_same(tensor, host)
    assert torch.equal(tensor.cpu().int_repr(), host.int_repr())
    assert_same(tensor.to("npu:1").to("npu:0"), host)
    if kind != "float parameters":  # PyTorch makes no empty tensor like one of those
        assert_same(torch.empty_like(tensor).copy_(tensor), host)


def test_copy_from_floats_quantizes():
    host = per_tensor("cpu").copy_(torch.ones(4, 6))
    assert_same(per_tensor("npu").copy_(torch.ones(4, 6)), host)
    assert_same(per_tensor("npu").copy_(torch.ones(4, 6, device="npu")), host)
    with pytest.raises(RuntimeError, match="not allowed, please use dequantize"):
        torch.ones(4, 6, device="npu").copy_(per_tensor("npu"))


@pytest.mark.parametrize(
    "source",
    [
        torch.ones(6),
        torch.ones(4, 6, dtype=torch.float64),
        torch.ones(6, 4).t(),
        torch.ones(4, 5),
        torch.ones(3).long(),
    ],
)
def test_copies_that_do_more_than_quantize_are_refused_in_the_words_of_the_cpu(source):
    texts = []
    for target, other in (("cpu", "cpu"), ("npu", "npu"), ("npu", "cpu"), ("cpu", "npu")):
        with pytest.raises(RuntimeError, match="Quantized copy only works with") as refused:
            per_tensor(target).copy_(source.to(other))
        texts.append(str(refused.value))
    assert len(set(texts)) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_save_and_load(kind):
    tensor = KINDS[kind]("npu")
    file = io.BytesIO()
    torch.save(tensor, file)
    file.seek(0)
    assert_same(torch.load(file), tensor.cpu())
    file.seek(0)
    assert torch.equal(torch.load(file, map_location="cpu").int_repr(), tensor.cpu().int_repr())


CALLS = {
    "clone": torch.clone,
    "view": lambda t: t.view(6, 4),
    "transpose": lambda t: t.t(),
    "slice": lambda t: t[1:3, ::2],
    "unsqueeze": lambda t: t.unsqueeze(0),
    "squeeze": lambda t: t[:1].squeeze(0),
    "flip": lambda t: t.flip(0),
    "relu": torch.relu,
    "clamp": lambda t: t.clamp(0.0, 1.0),
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
    "hardtanh": nn.functional.hardtanh,
    "leaky_relu": lambda t: nn.functional.leaky_relu(t, 0.1),
    "mean": lambda t: t.mean(1),
    "max": lambda t: t.max(),
    "min of rows": lambda t: t.min(1)[0],
    "sort": lambda t: t.sort(1)[0],
    "topk": lambda t: t.topk(2)[0],
    "cat": lambda t: torch.cat([t, t]),
    "cat into": lambda t: torch.cat([t[:2], t[2:]], out=t.clone()),
    "reflection_pad1d": lambda t: nn.functional.pad(t, (2, 1), mode="reflect"),
    "reflection_pad2d": lambda t: nn.functional.pad(t.view(1, 1, 4, 6), (2, 1, 1, 2), mode="reflect"),
    "equal": lambda t: torch.tensor(torch.equal(t, t.clone()), device=t.device),
    "eq": lambda t: t == t,
    "gt": lambda t: t > 0.5,
    "index_select": lambda t: t.index_select(0, torch.tensor([2, 0], device=t.device)),
    "index": lambda t: t[torch.tensor([2, 0], device=t.device)],
    "masked_fill": lambda t: t.masked_fill(torch.ones(4, 6, dtype=torch.bool, device=t.device), 0.5),
    "fill_": lambda t: t.clone().fill_(0.3),
    "max_pool2d": lambda t: nn.functional.max_pool2d(t.view(1, 1, 4, 6), 2),
    "avg_pool2d": lambda t: nn.functional.avg_pool2d(t.view(1, 1, 4, 6), 2),
    "adaptive_avg_pool2d": lambda t: nn.functional.adaptive_avg_pool2d(t.view(1, 1, 4, 6), 2),
    "interpolate": lambda t: nn.functional.interpolate(t.view(1, 1, 4, 6), scale_factor=2, mode="nearest"),
    "bilinear": lambda t: nn.functional.interpolate(t.view(1, 1, 4, 6), scale_factor=2, mode="bilinear"),
    "dynamic": lambda t: torch.quantize_per_tensor_dynamic(t.dequantize(), torch.quint8, False),
    "tensor parameters": lambda t: torch.quantize_per_tensor(
        t.dequantize(), torch.tensor(0.1, device=t.device), torch.tensor(3, device=t.device), torch.quint8
    ),
    "from integers": lambda t: torch._make_per_tensor_quantized_tensor(t.int_repr(), 0.5, 3),
    "list": lambda t: torch.quantize_per_tensor(
        [t.dequantize()], torch.tensor([0.1], device=t.device), torch.tensor([3], device=t.device), torch.quint8
    )[0],
}


@pytest.mark.parametrize("name", CALLS)
def test_calls_like_cpu(name):
    assert_same(CALLS[name](per_tensor("npu")), CALLS[name](per_tensor("cpu")))


def test_integers_lie_as_on_cpu():
    for view in (lambda t: t, lambda t: t.t(), lambda t: t[:, ::2], lambda t: t.view(1, 2, 3, 4).permute(0, 3, 1, 2)):
        actual, expected = view(per_tensor("npu")).int_repr(), view(per_tensor("cpu")).int_repr()
        assert actual.stride() == expected.stride() and torch.equal(actual.cpu(), expected)


def test_views_share_memory():
    tensor = per_tensor("npu")
    tensor[0].fill_(0.7)
    assert torch.allclose(tensor.dequantize()[0], torch.full((6,), 0.7, device="npu"))


def test_print():
    assert "quantization_scheme=torch.per_tensor_affine" in str(per_tensor("npu"))
    assert "npu:0" in str(per_channel("npu"))


def fake_per_tensor(x: torch.Tensor) -> torch.Tensor:
    return torch.fake_quantize_per_tensor_affine(x, 0.1, 3, 0, 255)


def fake_per_channel(x: torch.Tensor) -> torch.Tensor:
    scales, zero_points = torch.full((4,), 0.1), torch.zeros(4, dtype=torch.int32)
    return torch.fake_quantize_per_channel_affine(x, scales.to(x.device), zero_points.to(x.device), 0, -20, 20)


def fake_learnable(x: torch.Tensor) -> torch.Tensor:
    scale, zero_point = torch.tensor([0.1], device=x.device), torch.tensor([2.0], device=x.device)
    return torch._fake_quantize_learnable_per_tensor_affine(x, scale, zero_point, 0, 255, 1.0)


@pytest.mark.parametrize("fake", [fake_per_tensor, fake_per_channel, fake_learnable])
def test_fake_quantization_and_its_gradient(fake):
    def run(device: str) -> list[torch.Tensor]:
        x = (values(device) * 10).requires_grad_()
        result = fake(x)
        result.sum().backward()
        return [result, x.grad]

    for a, e in zip(run("npu"), run("cpu"), strict=True):
        assert_same(a, e)


def test_quantization_aware_training_like_cpu():
    from torch.ao import quantization

    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(144, 3))
    model.qconfig = quantization.get_default_qat_qconfig("fbgemm")
    prepared = quantization.prepare_qat(quantization.fuse_modules_qat(model.train(), [["0", "1", "2"]]))
    batches = torch.randn(3, 2, 1, 8, 8)

    def train(device: str) -> list[torch.Tensor]:
        trained = copy.deepcopy(prepared).to(device)
        steps = torch.optim.SGD(trained.parameters(), lr=0.01)
        losses = []
        for batch in batches.to(device):
            steps.zero_grad()
            loss = trained(batch).square().mean()
            loss.backward()
            steps.step()
            losses.append(loss.detach())
        return [*losses, *(parameter.detach() for parameter in trained.parameters())]

    for a, e in zip(train("npu"), train("cpu"), strict=True):
        torch.testing.assert_close(a.cpu(), e, rtol=1e-3, atol=1e-4)


def test_elements_that_share_bytes_are_copied_whole_or_not_at_all():
    four_bits = torch.quantize_per_tensor(torch.arange(24.0).reshape(4, 6) % 16, 1.0, 0, torch.quint4x2)
    on_npu = four_bits.to("npu")
    assert_same(on_npu, four_bits)
    for part, other in ((on_npu[0], on_npu[1]), (on_npu[:2], on_npu[2:])):
        with pytest.raises(NotImplementedError, match=re.escape("\"copy_kernel\" not implemented for 'QUInt4x2'")):
            part.copy_(other)
    with pytest.raises(NotImplementedError, match="QUInt4x2"):
        on_npu.t().contiguous()
    assert_same(on_npu, four_bits)


def test_optimal_parameters_like_cpu():
    arguments = (6, 200, 0.16, 8)
    expected = torch.choose_qparams_optimized(torch.arange(24.0), *arguments)
    actual = torch.choose_qparams_optimized(torch.arange(24.0, device="npu"), *arguments)
    assert [tensor.cpu() for tensor in actual] == list(expected)
