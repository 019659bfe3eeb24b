"""Convolutions, whose batch is cut into pieces that run at the same time: the result is the CPU's, run after run."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional
from torch.testing import assert_close

# (input, weight, transposed, keywords)
SHAPES = {
    "two tiles": ((2, 16, 32, 32), (32, 16, 3, 3), False, {"padding": 1}),
    "as many tiles as there may be": ((32, 8, 24, 24), (16, 8, 3, 3), False, {}),
    "a batch that does not divide": ((17, 8, 33, 31), (16, 8, 5, 3), False, {"stride": 2, "dilation": (1, 2)}),
    "one image": ((1, 16, 40, 40), (32, 16, 3, 3), False, {"padding": 1}),
    "groups": ((8, 16, 40, 40), (32, 4, 3, 3), False, {"groups": 4, "padding": 1}),
    "depthwise": ((8, 64, 40, 40), (64, 1, 5, 5), False, {"groups": 64}),
    "transposed": ((6, 16, 24, 24), (16, 32, 3, 3), True, {"stride": 2, "output_padding": 1}),
    "one dimension": ((16, 32, 512), (64, 32, 5), False, {"padding": 2}),
    "three dimensions": ((4, 8, 12, 20, 20), (16, 8, 3, 3, 3), False, {"padding": 1}),
    "pieces for which PyTorch takes another kernel": ((8, 64, 16, 16), (256, 64, 3, 3), False, {}),
    "pointwise": ((8, 64, 28, 28), (128, 64, 1, 1), False, {}),
    "few positions, large weight": ((8, 256, 4, 4), (256, 256, 3, 3), False, {"padding": 1}),
    "empty batch": ((0, 8, 24, 24), (16, 8, 3, 3), False, {}),
}


def run(device: str, shape: str, dtype: torch.dtype, layout: torch.memory_format) -> list[torch.Tensor]:
    sizes, weight_sizes, transposed, keywords = SHAPES[shape]
    random = torch.Generator().manual_seed(7)
    x = torch.randn(sizes, generator=random, dtype=dtype)
    weight = torch.randn(weight_sizes, generator=random, dtype=dtype) / 8
    bias = torch.ones(weight_sizes[1] * keywords.get("groups", 1) if transposed else weight_sizes[0], dtype=dtype)
    if x.dim() == 4:
        x, weight = x.to(memory_format=layout), weight.to(memory_format=layout)
    leaves = [t.detach().to(device).requires_grad_() for t in (x, weight, bias)]
    convolve = getattr(functional, f"conv{'_transpose' if transposed else ''}{x.dim() - 2}d")
    out = convolve(*leaves, **keywords)
    out.backward(torch.linspace(-1, 1, out.numel(), dtype=dtype).view_as(out).to(device))
    return [out.detach(), *(leaf.grad for leaf in leaves)]


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last], ids=["contiguous", "channels_last"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("shape", SHAPES)
def test_equals_cpu_and_itself(shape: str, dtype: torch.dtype, layout: torch.memory_format) -> None:
    expected = run("cpu", shape, dtype, layout)
    first, second = run("npu", shape, dtype, layout), run("npu", shape, dtype, layout)
    for cpu, npu, again in zip(expected, first, second, strict=True):
        tolerance = {torch.float32: 1e-4, torch.float64: 1e-9, torch.bfloat16: 2e-2}[dtype]
        scale = float(cpu.abs().max()) if cpu.numel() else 1.0
        assert_close(npu.cpu(), cpu, rtol=tolerance, atol=tolerance * scale)
        assert npu.stride() == cpu.stride()
        assert torch.equal(npu.cpu(), again.cpu())
