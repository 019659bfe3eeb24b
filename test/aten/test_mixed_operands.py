"""Operands of several dtypes, numbers and sizes: strides, values, warnings and refusals are the CPU's."""

from __future__ import annotations

import pytest
import torch

INT, BOOL = torch.int64, torch.bool

LAYOUTS = {
    "expanded": lambda t: t(1, 3, 4).expand(2, 3, 4),
    "expanded_transposed": lambda t: t(3, 2, 1).expand(3, 2, 4).transpose(0, 1),
    "sliced_transposed": lambda t: t(3, 2, 8)[:, :, ::2].transpose(0, 1),
    "sliced_with_one": lambda t: t(3, 1, 8)[:, :, ::2].transpose(0, 1),
}


@pytest.mark.parametrize("right", LAYOUTS)
@pytest.mark.parametrize("left", LAYOUTS)
def test_strides_follow_the_copies_that_the_cpu_makes_of_promoted_operands(left, right):
    def results(device: str) -> list[torch.Tensor]:
        def ones(dtype: torch.dtype):
            return lambda *sizes: torch.ones(sizes, dtype=dtype, device=device)

        i, f = LAYOUTS[left](ones(INT)), LAYOUTS[right](ones(torch.float32))
        b = LAYOUTS[right](ones(BOOL))
        out = torch.empty(0, device=device)
        return [
            torch.where(b, i, f),
            torch.where(b.byte(), f, i),
            torch.addr(i[0], f[0, :, 0], i[0, 0]),
            torch.angle(i),
            torch.logit(b, 0.1),
            torch.add(i, f, out=out),
            torch.logical_xor(i, b),
        ]

    for actual, expected in zip(results("npu"), results("cpu"), strict=True):
        assert (actual.dtype, actual.shape, actual.stride()) == (expected.dtype, expected.shape, expected.stride())
        assert torch.equal(actual.cpu(), expected)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_ldexp_scales_exactly(dtype):
    values, exponents = torch.tensor([1e-30, 2.0, 1e30, 0.0]).to(dtype), torch.tensor([200, -20, -1100, 3])
    expected = torch.ldexp(values, exponents)
    on_npu, exponents_on_npu = values.npu(), exponents.npu()
    assert torch.equal(torch.ldexp(on_npu, exponents_on_npu).cpu(), expected)
    assert torch.equal(torch.ldexp(on_npu, exponents_on_npu, out=torch.empty_like(on_npu)).cpu(), expected)
    assert torch.equal(on_npu.clone().ldexp_(exponents_on_npu).cpu(), expected)
    assert torch.ldexp(on_npu, exponents_on_npu, out=on_npu.new_empty(4, dtype=torch.float64)).dtype == torch.float64


def test_a_kernel_that_took_one_number_may_refuse_another():
    flags, counts = torch.ones(3, dtype=BOOL, device="npu"), torch.ones(3, dtype=torch.uint16, device="npu")
    assert (flags >= 1).all()
    with pytest.raises(NotImplementedError, match="\"ge_cpu\" not implemented for 'ComplexFloat'"):
        flags >= 1j  # noqa: B015
    assert torch.equal(counts.pow(1).cpu(), counts.cpu())
    with pytest.raises(NotImplementedError, match="\"pow\" not implemented for 'UInt16'"):
        counts.pow(2)
    torch.npu.synchronize()  # nothing failed later


def test_kernels_that_warn_of_one_element_only_warn_at_the_call():
    always = torch.is_warn_always_enabled()
    torch.set_warn_always(True)
    try:
        torch.linalg.vector_norm(torch.ones(4, dtype=torch.complex64, device="npu"), 0)
        with pytest.warns(UserWarning, match="Casting complex values to real discards the imaginary part"):
            torch.linalg.vector_norm(torch.ones(1, 1, dtype=torch.complex64, device="npu"), 0)
    finally:
        torch.set_warn_always(always)
