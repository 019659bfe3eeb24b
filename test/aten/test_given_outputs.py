"""Outputs of the caller's (out=) that are not as the operator would make them: what happens is what the CPU does."""

from __future__ import annotations

import warnings

import pytest
import torch

from torch_npu_lite.testing import Gate


def outcome(call, device: str, out: torch.Tensor) -> tuple:
    """What became of `out`, or the error, and the warnings of the call."""
    given = out.to(device)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            call(device, given)
            error = None
        except RuntimeError as found:
            error = str(found).partition("\n")[0]
    left = (given.cpu().tolist(), given.stride(), given.dtype) if error is None else None
    return left, error, [str(w.message) for w in caught]


def addr(device, out):
    torch.addr(*(torch.ones(size, device=device) for size in ((2, 3), 2, 3)), out=out)


def addbmm(device, out):
    torch.addbmm(*(torch.ones(size, device=device) for size in ((2, 3), (4, 2, 5), (4, 5, 3))), out=out)


def addbmm_of_expanded(device, out):
    torch.addbmm(*(torch.ones(1, device=device).expand(size) for size in ((2, 3), (4, 2, 5), (4, 5, 3))), out=out)


def cholesky_inverse(device, out):
    torch.cholesky_inverse(torch.eye(3, device=device) * 2, out=out)


def arange(device, out):
    torch.arange(6, device=device, out=out)


def arange_of_nothing(device, out):
    torch.arange(0, device=device, out=out)


def kthvalue(device, out):
    indices = torch.zeros(1, dtype=torch.long, device=device)
    torch.kthvalue(torch.tensor([[3.0, 1.0, 2.0]], device=device), 2, out=(out, indices))


def mode(device, out):
    torch.mode(torch.ones(3, 2, device=device), 1, out=(out, torch.zeros(3, dtype=torch.long, device=device)))


def searchsorted(device, out):
    torch.searchsorted(torch.arange(4.0, device=device), torch.ones(5, device=device), out=out)


def floor_divide(device, out):
    torch.floor_divide(torch.tensor([7, 8, 9], device=device), torch.tensor([2, -3, 4], device=device), out=out)


def scaled_mm(device, out):
    eights = torch.full((16, 64), 8.0, device=device).to(torch.float8_e4m3fn)  # of which products of 64 saturate
    one = torch.ones((), device=device)
    torch._scaled_mm(eights, eights.t(), one, one, out=out)


CALLS = [addr, addbmm, addbmm_of_expanded, cholesky_inverse, arange, arange_of_nothing, kthvalue, mode, searchsorted]
CALLS += [floor_divide, scaled_mm]


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.complex64, torch.int64])
@pytest.mark.parametrize("size", [(2, 3), (3, 3), (5,), (1,), (0, 2), (2, 2, 2)])
def test_as_on_the_cpu(call, dtype, size):
    out = torch.zeros(size, dtype=dtype)
    assert outcome(call, "npu", out) == outcome(call, "cpu", out)


@pytest.mark.parametrize("sizes", [(2, 2), (0,)])
def test_nothing_is_tried_when_an_output_fits_or_is_empty(sizes):
    batch, matrix, out = (torch.ones(size, device="npu") for size in ((4, 2, 2), (2, 2), sizes))
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        torch.addbmm(matrix, batch, batch, out=out)
    assert sum(event.name == "aten::addbmm" for event in profile.events()) == 1
    assert out.tolist() == [[9.0, 9.0], [9.0, 9.0]]


def test_the_device_is_not_waited_for():
    out = torch.zeros(5, dtype=torch.complex64, device="npu")
    with Gate():
        addr("npu", out.resize_(2, 3))
    assert out.tolist() == [[2, 2, 2], [2, 2, 2]]


def test_division_of_expanded_integers_is_tried_as_well():
    """One element in memory stands for several in the tensor."""
    number = torch.tensor([7], device="npu").expand(4)
    out = torch.zeros(7, dtype=torch.int32, device="npu")
    with pytest.warns(UserWarning, match="was resized"):
        torch.floor_divide(number, 2, out=out)
    assert out.tolist() == [3, 3, 3, 3]
