"""Things everybody does with a device, compared with the CPU."""

from __future__ import annotations

import copy
import io
import threading
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils import checkpoint

both = torch.testing.assert_close


def normal(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def integers(*shape: int, low: int = 0, high: int = 100, dtype: torch.dtype = torch.int64) -> Tensor:
    return torch.randint(low, high, shape, generator=torch.Generator().manual_seed(3)).to(dtype)


def check(function: Callable, *inputs: Tensor) -> None:
    """The function gives on npu what it gives on the CPU, and leaves its results on the device."""
    expected = function(*inputs)
    actual = function(*(x.to("npu") for x in inputs))
    for a, e in zip(as_tuple(actual), as_tuple(expected), strict=True):
        if isinstance(e, Tensor):
            assert a.device.type == "npu"
            both(a.cpu(), e)
        else:
            assert a == e


def as_tuple(result) -> tuple:
    return tuple(result) if isinstance(result, (tuple, list)) else (result,)


def check_gradients(module: nn.Module, *inputs: Tensor) -> None:
    """Outputs, gradients and buffers of a forward and backward pass are those of the CPU."""

    def run(device: str):
        moved = copy.deepcopy(module).to(device)
        leaves = [x.detach().clone().to(device).requires_grad_(x.is_floating_point()) for x in inputs]
        output = moved(*leaves)
        (output * torch.arange(output.numel(), device=device).view_as(output).cos()).sum().backward()
        gradients = [leaf.grad for leaf in leaves if leaf.requires_grad]
        return [output, *gradients, *(p.grad for p in moved.parameters()), *moved.buffers()]

    for a, e in zip(run("npu"), run("cpu"), strict=True):
        both(a.cpu(), e, rtol=1e-4, atol=1e-5)


# --- printing


@pytest.mark.parametrize(
    "tensor",
    [
        torch.tensor(1.5),
        torch.tensor([]),
        normal(3, 4),
        normal(200, 200),
        torch.tensor([1e-8, 1e8, float("nan"), float("inf")]),
        torch.tensor([True, False]),
        torch.arange(6).view(2, 3).t(),
        integers(4, dtype=torch.int8),
        normal(3, dtype=torch.complex64),
        normal(3).bfloat16(),
        normal(3, 4).half(),
    ],
    ids=lambda t: f"{str(t.dtype)[6:]}{list(t.shape)}",
)
def test_print_shows_values_and_device(tensor):
    plain, shown = repr(tensor), repr(tensor.to("npu"))
    assert "device='npu:0'" in shown
    assert "".join(shown.split()).replace(",device='npu:0'", "") == "".join(plain.split())


def test_print_shows_gradients_and_slices():
    x = torch.ones(2, 2, device="npu", requires_grad=True)
    assert "requires_grad=True" in repr(x) and "MulBackward0" in repr(x * 2)
    assert f"{torch.tensor(2.5, device='npu'):.2f}" == "2.50"


# --- indexing


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x[x > 0],
        lambda x: (x > 0).nonzero(),
        lambda x: torch.where(x > 0),
        lambda x: torch.where(x > 0, x, -x),
        lambda x: x.masked_fill(x > 0, 7.0),
        lambda x: x[1:4:2, ::2],
        lambda x: x[[3, 1], :][:, [0, 2]],
        lambda x: x[..., None, -1],
        lambda x: x.masked_select(x < 0.3),
        lambda x: x[x.sum(1) > 0],
        lambda x: x.unique(),
        lambda x: x.flip(0).roll(1, 1),
        lambda x: torch.cat([x, x[:2]]).chunk(3),
        lambda x: x.isnan().any().item(),
    ],
)
def test_indexing_and_masks(function):
    check(function, normal(6, 5))


def test_assignment_through_masks_and_indices():
    def assign(x: Tensor) -> Tensor:
        x = x.clone()
        x[x > 0.5] = 0.5
        x[0] = torch.arange(5.0, device=x.device)
        x[[1, 2], 3] = torch.tensor([8.0, 9.0], device=x.device)
        x[:, 4] += 1
        x[-1, -1] = 3
        return x

    check(assign, normal(6, 5))


# --- modules


@pytest.mark.parametrize(
    "module",
    [
        nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2)),
        nn.Sequential(nn.Conv2d(3, 6, 3, stride=2, groups=3), nn.BatchNorm2d(6, affine=False), nn.AvgPool2d(2)),
        nn.Sequential(nn.ConvTranspose2d(3, 4, 3, stride=2), nn.InstanceNorm2d(4), nn.AdaptiveAvgPool2d(2)),
        nn.Sequential(nn.GroupNorm(3, 3), nn.Conv2d(3, 4, 1, bias=False), nn.Upsample(scale_factor=2, mode="bilinear")),
        nn.Sequential(nn.Flatten(), nn.LayerNorm(192), nn.Linear(192, 10), nn.LogSoftmax(1)),
    ],
    ids=[
        "batch norm and max pool",
        "grouped and average pool",
        "transposed and instance norm",
        "group norm and upsample",
        "layer norm",
    ],
)
def test_forward_and_backward_of_layers(module):
    check_gradients(module, normal(4, 3, 8, 8))


@pytest.mark.parametrize("cell", [nn.LSTM, nn.GRU, nn.RNN])
@pytest.mark.parametrize("bidirectional", [False, True])
def test_recurrent_layers(cell, bidirectional):
    class Outputs(nn.Module):
        def __init__(self):
            super().__init__()
            self.cell = cell(5, 7, num_layers=2, bidirectional=bidirectional, batch_first=True)

        def forward(self, x):
            return self.cell(x)[0]

    check_gradients(Outputs(), normal(3, 6, 5))


@pytest.mark.parametrize("cell", [nn.LSTMCell, nn.GRUCell, nn.RNNCell])
def test_recurrent_cells(cell):
    torch.manual_seed(0)
    module = cell(5, 7)
    device_module = copy.deepcopy(module).to("npu")
    for a, e in zip(as_tuple(device_module(normal(3, 5).npu())), as_tuple(module(normal(3, 5))), strict=True):
        both(a.cpu(), e)


@pytest.mark.parametrize("mask", ["none", "boolean", "added", "causal"])
@pytest.mark.parametrize("training", [True, False], ids=["train", "eval"])
def test_scaled_dot_product_attention(mask, training):
    def attend(device: str) -> list[Tensor]:
        q, k, v = (normal(2, 4, 6, 8, seed=seed).to(device).requires_grad_(training) for seed in range(3))
        masks = {"boolean": torch.ones(6, 6).tril().bool(), "added": normal(6, 6, seed=4)}
        given = masks[mask].to(device) if mask in masks else None
        with torch.set_grad_enabled(training):
            output = functional.scaled_dot_product_attention(q, k, v, attn_mask=given, is_causal=mask == "causal")
        if not training:
            return [output]
        output.sin().sum().backward()
        return [output, q.grad, k.grad, v.grad]

    for a, e in zip(attend("npu"), attend("cpu"), strict=True):
        both(a.cpu(), e)


MASKS = {"rows": lambda m: m, "columns": lambda m: m.t(), "one_column": lambda m: m[:, :1].expand(6, 6)}


@pytest.mark.parametrize("mask", MASKS)
def test_masks_of_any_strides_take_the_kernel_of_the_cpu(mask):
    def choice(device: str) -> int:
        q = normal(2, 4, 6, 8).to(device)
        return torch._fused_sdp_choice(q, q, q, MASKS[mask](normal(6, 6).to(device)))

    assert choice("npu") == choice("cpu")


def test_attention_without_a_gradient_gives_none():
    q = normal(2, 2, 3, 8).to("npu").requires_grad_()
    output = torch._C._functions.UndefinedGrad()(functional.scaled_dot_product_attention(q, q, q))
    assert torch.autograd.grad(output, q, torch.zeros_like(output), allow_unused=True) == (None,)


def test_attention_with_dropout_zeroes_and_scales():
    q = torch.zeros(1, 1, 64, 64, device="npu")
    v = torch.eye(64, device="npu").view(1, 1, 64, 64)
    weights = functional.scaled_dot_product_attention(q, q, v, dropout_p=0.25) * 64
    both(weights.unique().cpu(), torch.tensor([0.0, 1 / 0.75]))
    assert 0.70 < (weights > 0).float().mean().item() < 0.80


def test_multihead_attention_layer():
    class SelfAttention(nn.Module):
        def __init__(self):
            super().__init__()
            self.attention = nn.MultiheadAttention(16, 4, batch_first=True)

        def forward(self, x):
            return self.attention(x, x, x)[0]

    check_gradients(SelfAttention(), normal(2, 5, 16))


def test_embedding():
    class Embed(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Embedding(20, 4, padding_idx=0)

        def forward(self, x):
            return self.table(x)

    check_gradients(Embed(), integers(3, 5, high=20))


# --- dtypes


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128])
@pytest.mark.parametrize(
    "function",
    [
        lambda x: x * x,
        lambda x: x.conj(),
        lambda x: x.conj() * 2 + x,
        lambda x: x.abs(),
        lambda x: (x.real, x.imag),
        lambda x: x.conj().imag,
        lambda x: torch.view_as_real(x.conj().resolve_conj()),
        lambda x: x @ x.conj().t(),
        lambda x: torch.fft.ifft(torch.fft.fft(x)),
        lambda x: x.angle().exp(),
    ],
)
def test_complex_numbers(function, dtype):
    check(function, normal(4, 4, dtype=dtype))


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64, torch.bool])
@pytest.mark.parametrize(
    "function",
    [
        lambda x: x + x,
        lambda x: x * 3,
        lambda x: x & 1,
        lambda x: x | (x == 5),
        lambda x: x ^ x.flip(0),
        lambda x: ~x,
        lambda x: x.sum(),
        lambda x: x.sum(0),
        lambda x: x / 2,
        lambda x: (x == x[0], x.logical_not(), x.any(), x.all()),
        lambda x: x.float().mean(),
        lambda x: x.max(),
    ],
)
def test_integers_and_booleans(function, dtype):
    check(function, integers(5, 7, dtype=dtype))


@pytest.mark.parametrize(
    "function",
    [
        lambda x, y: x + y,
        lambda x, y: x * y.double(),
        lambda x, y: x.half() + y.float(),
        lambda x, y: x.bfloat16() * 2.5,
        lambda x, y: y // 7 + y % 5,
        lambda x, y: y / 3,
        lambda x, y: y + 0.5,
        lambda x, y: (y > 50) + x,
        lambda x, y: torch.tensor(2.0) * x + torch.tensor(3),
        lambda x, y: y * torch.tensor(2.5),
        lambda x, y: torch.tensor(1.0, dtype=torch.float64) - x,
        lambda x, y: x.sum() * x,
        lambda x, y: torch.where(y > 50, x, 0.0),
        lambda x, y: torch.pow(2.0, x),
        lambda x, y: x.clamp(min=-0.5).to(torch.int32),
    ],
)
def test_mixed_dtypes_and_scalars_of_the_cpu(function):
    check(function, normal(4, 5), integers(4, 5))


def test_scalar_of_the_cpu_is_read_when_the_operator_is_called():
    from torch_npu_lite.testing import Gate

    x, scale = torch.ones(3, device="npu"), torch.tensor(2.0)
    with Gate():
        y = x * scale
        scale.fill_(100)
    assert y.tolist() == [2.0] * 3


# --- reductions and order


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.sort(dim=1, stable=True),
        lambda x: x.sort(dim=0, descending=True),
        lambda x: x.topk(3),
        lambda x: x.argsort(dim=1),
        lambda x: (x.argmax(1), x.argmin(), x.max(0)[0]),
        lambda x: x.cumsum(1),
        lambda x: (x.mean(), x.std(), x.var(0), x.norm()),
        lambda x: x.softmax(-1).log(),
        lambda x: x.median(),
        lambda x: torch.einsum("ij,kj->ik", x, x),
        lambda x: x.view(-1).histc(5),
        lambda x: torch.linalg.inv(x @ x.t() + 5 * torch.eye(6, device=x.device)),
        lambda x: (x.t() @ x).triu().trace(),
    ],
)
def test_reductions_sorting_and_linear_algebra(function):
    check(function, normal(6, 8))


# --- random numbers


def test_dropout_rate_scale_and_reproducibility():
    x = torch.ones(200, 200, device="npu")
    torch.manual_seed(5)
    first = functional.dropout(x, 0.3)
    torch.manual_seed(5)
    assert torch.equal(first, functional.dropout(x, 0.3))
    assert not torch.equal(first, functional.dropout(x, 0.3))
    assert 0.68 < (first > 0).float().mean().item() < 0.72
    both(first.max().item(), 1 / 0.7)


def test_dropout_backward_uses_the_mask_of_the_forward():
    x = torch.ones(1000, device="npu", requires_grad=True)
    y = functional.dropout(x, 0.5)
    y.sum().backward()
    assert torch.equal(x.grad, y.detach())


@pytest.mark.parametrize(
    ("draw", "mean", "deviation"),
    [
        (lambda: torch.rand(100_000, device="npu"), 0.5, 0.2887),
        (lambda: torch.randn(100_000, device="npu"), 0.0, 1.0),
        (lambda: torch.randint(0, 11, (100_000,), device="npu").float(), 5.0, 3.1623),
        (lambda: torch.full((100_000,), 0.25, device="npu").bernoulli(), 0.25, 0.433),
        (lambda: torch.empty(100_000, device="npu").exponential_(), 1.0, 1.0),
    ],
    ids=["rand", "randn", "randint", "bernoulli", "exponential_"],
)
def test_distributions(draw, mean, deviation):
    torch.manual_seed(1)
    sample = draw()
    assert abs(sample.mean().item() - mean) < 0.02 * max(1, deviation)
    assert abs(sample.std().item() / deviation - 1) < 0.02


def test_randperm_and_multinomial():
    assert torch.randperm(100, device="npu").sort()[0].tolist() == list(range(100))
    drawn = torch.multinomial(torch.tensor([0.0, 1.0, 3.0], device="npu"), 1000, replacement=True)
    counts = drawn.cpu().bincount(minlength=3)
    assert counts[0] == 0 and 650 < counts[2] < 850


def test_generators_are_independent_of_each_other_and_of_time():
    from torch_npu_lite.testing import Gate

    def draw(gated: bool) -> Tensor:
        generator = torch.Generator("npu").manual_seed(9)
        if not gated:
            return torch.cat([torch.randn(5, device="npu", generator=generator) for _ in range(2)])
        with Gate():
            torch.rand(3, device="npu")  # another generator
            return torch.cat([torch.randn(5, device="npu", generator=generator) for _ in range(2)])

    assert torch.equal(draw(False), draw(True))


# --- checkpoints, copies, defaults


def test_activation_checkpointing():
    layer = nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.5), nn.ReLU()).to("npu")
    x = normal(4, 8).npu().requires_grad_()
    torch.manual_seed(2)
    layer(x).sum().backward()
    expected, x.grad = x.grad, None
    torch.manual_seed(2)
    checkpoint.checkpoint(layer, x, use_reentrant=False).sum().backward()
    assert torch.equal(x.grad, expected)


def test_deepcopy_is_independent():
    module = nn.Linear(3, 3).npu()
    other = copy.deepcopy(module)
    with torch.no_grad():
        module.weight.zero_()
    assert other.weight.device.type == "npu"
    assert other.weight.abs().sum().item() > 0


@pytest.mark.parametrize("target", ["cpu", "npu:0", "npu:1", None])
@pytest.mark.parametrize("source", ["cpu", "npu:0", "npu:1"])
def test_save_and_load_with_map_location(source, target):
    file = io.BytesIO()
    x = normal(4, 5).to(source)
    torch.save({"x": x, "column": x[:, 1], "module": nn.Linear(2, 2).to(source).state_dict()}, file)
    file.seek(0)
    loaded = torch.load(file, map_location=target)
    assert str(loaded["x"].device) == str(loaded["module"]["weight"].device) == (target or source)
    both(loaded["x"].cpu(), normal(4, 5))
    loaded["x"][0, 1] = 42
    assert loaded["column"][0].item() == 42  # still one storage


def test_set_default_device():
    torch.set_default_device("npu:1")
    try:
        assert torch.ones(2).device == nn.Linear(2, 2).weight.device == torch.device("npu:1")
    finally:
        torch.set_default_device(None)
    with torch.device("npu"):
        assert torch.arange(3).device.type == "npu"


# --- events, devices, threads


def test_elapsed_time_grows_with_work():
    start, middle, end = (torch.npu.Event(enable_timing=True) for _ in range(3))
    x = torch.ones(256, 256, device="npu")
    start.record()
    middle.record()
    for _ in range(20):
        x = x @ x / 256
    end.record()
    end.synchronize()
    assert 0 <= start.elapsed_time(middle) < start.elapsed_time(end)


def test_two_devices_with_copies_between_them():
    x = normal(50, 50).to("npu:0")
    y = (x * 2).to("npu:1")
    z = (y + 1).to("npu:0", non_blocking=True)
    assert (str(y.device), str(z.device)) == ("npu:1", "npu:0")
    both(z.cpu(), normal(50, 50) * 2 + 1)
    y.copy_(torch.zeros_like(x))
    assert y.abs().sum().item() == 0


def test_current_device_decides_where_tensors_go():
    with torch.npu.device(1):
        assert torch.ones(1, device="npu").device.index == 1
    assert torch.ones(1, device="npu").device.index == 0


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.int32, torch.bool])
@pytest.mark.parametrize("layout", [lambda x: x, lambda x: x.t(), lambda x: x[::2, 1:], lambda x: x[0, 0].expand(3, 4)])
def test_copies_between_layouts_and_dtypes(layout, dtype):
    x = normal(6, 8)
    both(layout(x.npu()).to(dtype).cpu(), layout(x).to(dtype))
    both(layout(x).npu().cpu(), layout(x))
    target = torch.empty(layout(x).shape, dtype=dtype)
    both(target.copy_(layout(x.npu())), layout(x).to(dtype))


def test_eight_threads_at_once():
    results: dict[int, Tensor] = {}

    def work(number: int) -> None:
        device = f"npu:{number % 2}"
        torch.npu.set_device(device)
        layer = nn.Linear(16, 16)
        with torch.no_grad():
            layer.weight.copy_(normal(16, 16, seed=number))
            layer.bias.zero_()
        layer.to(device)
        stream = torch.npu.Stream() if number % 3 else torch.npu.current_stream()
        with torch.npu.stream(stream):
            x = normal(8, 16, seed=number).to(device).requires_grad_()
            for _ in range(10):
                layer(x).tanh().sum().backward()
            results[number] = x.grad.cpu()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number in range(8):
        x = normal(8, 16, seed=number).requires_grad_()
        ((x @ normal(16, 16, seed=number).t()).tanh().sum() * 10).backward()
        both(results[number], x.grad)


# --- the rest of PyTorch's device interfaces


def test_accelerator_interface_is_the_same_device():
    assert torch.accelerator.current_accelerator().type == "npu"
    assert torch.accelerator.device_count() == torch.npu.device_count()
    stream = torch.Stream("npu")
    with stream:
        event = (torch.ones(2, device="npu") * 2).npu() is not None and stream.record_event()
    event.synchronize()
    torch.accelerator.synchronize()


def test_convenience_methods():
    x = torch.ones(2)
    assert x.npu().is_npu and not x.is_npu
    assert next(nn.Linear(1, 1).npu().parameters()).is_npu
    assert x.npu(1).device.index == 1


def test_autocast_computes_in_low_precision():
    layer = nn.Linear(8, 8).npu()
    with torch.autocast("npu", dtype=torch.bfloat16):
        y = layer(torch.ones(2, 8, device="npu"))
    assert y.dtype == torch.bfloat16
    both(y.float().cpu(), layer.cpu()(torch.ones(2, 8)), rtol=2e-2, atol=2e-2)


def test_gradient_clipping_and_hooks():
    layer = nn.Linear(8, 8).npu()
    seen = []
    layer.weight.register_hook(lambda grad: seen.append(grad.device.type))
    (layer(torch.ones(2, 8, device="npu")).sum() * 100).backward()
    norm = nn.utils.clip_grad_norm_(layer.parameters(), 1.0)
    assert seen == ["npu"] and norm.device.type == "npu"
    both(torch.sqrt(sum((p.grad**2).sum() for p in layer.parameters())).item(), 1.0, rtol=1e-3, atol=1e-3)
