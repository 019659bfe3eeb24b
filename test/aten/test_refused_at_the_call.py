"""What CPU refuses by numbers, by dtypes however large the operands, or by values on the host: refused at the call."""

from __future__ import annotations

import itertools

import pytest
import torch
from test_argument_errors import cases, expect_no_error, expect_the_error_of_cpu, outcome

from torch_npu_lite.testing import Gate

F = torch.nn.functional
BOOL, LONG, HALF = torch.bool, torch.int64, torch.float16


@pytest.mark.parametrize("alpha", [True, 2, 1.5, 1j])
@pytest.mark.parametrize("out", [BOOL, LONG, torch.float32, torch.complex64])
@pytest.mark.parametrize("function", [torch.add, torch.sub])
@pytest.mark.parametrize("inputs", list(itertools.product([BOOL, LONG, torch.float32], repeat=2)))
def test_alpha_goes_with_the_inputs_whatever_the_output(alpha, out, inputs, function):
    results = []

    def call(m):
        given = m.zeros(2, dtype=out)
        function(m.ones(2, dtype=inputs[0]), m.ones(2, dtype=inputs[1]), alpha=alpha, out=given)
        results.append(given.cpu())

    expected = outcome(call, "cpu")
    assert outcome(call, "npu") == expected
    torch.npu.synchronize()  # nothing failed later
    if expected is None:
        assert torch.equal(*results)


LARGE = {
    "linear": lambda m: F.linear(m.ones(2000, 1200), m.ones(1200, 1200, dtype=HALF)),
    "matmul_of_integers": lambda m: m.ones(1200, 1200, dtype=LONG) @ m.ones(1200, 1200),
    "bmm": lambda m: m.ones(2, 1200, 1200) @ m.ones(2, 1200, 1200, dtype=torch.float64),
    "baddbmm": lambda m: torch.baddbmm(m.ones(1), m.ones(2, 1200, 1200), m.ones(2, 1200, 1200, dtype=torch.bfloat16)),
    "conv_of_half": lambda m: F.conv2d(m.ones(2, 96, 200, 200), m.ones(96, 96, 3, 3, dtype=HALF)),
    "conv_of_bytes": lambda m: F.conv2d(m.ones(2, 96, 200, 200, dtype=torch.uint8), m.ones(96, 96, 3, 3)),
    "conv_transpose": lambda m: F.conv_transpose2d(m.ones(2, 96, 200, 200), m.ones(96, 96, 3, 3, dtype=torch.float64)),
    "grid": lambda m: F.grid_sample(
        m.ones(4, 8, 48, 48, 48, dtype=torch.float64), m.ones(4, 9, 9, 9, 3), align_corners=False
    ),
    "bias": lambda m: F.conv_transpose2d(m.ones(2, 96, 200, 200), m.ones(96, 96, 3, 3), m.ones(96, dtype=HALF)),
}


@cases(LARGE)
def test_operands_of_several_dtypes_too_large_to_rehearse(call):
    expect_the_error_of_cpu(call)
    expect_the_error_of_cpu(call)  # also when it is not the first of its kind


@cases(
    {
        "zero_point": lambda m: torch.fake_quantize_per_tensor_affine(m.ones(3), 0.1, 300, 0, 255),
        "bounds": lambda m: torch.fake_quantize_per_tensor_affine(m.ones(3), 0.1, 3, 255, 0),
        "axis": lambda m: torch.fake_quantize_per_channel_affine(
            m.ones(3, 2), m.ones(3), m.ones(3, dtype=torch.int32), 5, 0, 255
        ),
        "addr_of_a_scalar": lambda m: m.tensor(1.0).addr_(m.ones(2), m.ones(3)),
        "addr_of_a_row": lambda m: m.ones(1, 3).addr_(m.ones(2), m.ones(3)),
        "lengths": lambda m: torch.segment_reduce(m.ones(3), "sum", lengths=m.tensor([1.0, 2.0])),
        "offsets": lambda m: torch.segment_reduce(m.ones(3), "sum", offsets=m.tensor([0.0, 3.0])),
        "masked_fill": lambda m: m.ones(10, 1, 5).masked_fill_(m.ones(10, 10, 5, dtype=BOOL), 1.0),
        "masked_fill_rank": lambda m: m.ones(5).masked_fill_(m.ones(2, 5, dtype=BOOL), m.tensor(1.0)),
        "masked_fill_sizes": lambda m: m.ones(3, 4).masked_fill_(m.ones(3, 5, dtype=BOOL), 1.0),
        "floor_divide": lambda m: m.ones(5, 1).floor_divide_(m.ones(5)),
        "shift": lambda m: m.ones(5, 1, dtype=LONG).__ilshift__(m.ones(5, dtype=LONG)),
        "add_relu": lambda m: torch.ops.aten._add_relu_.Tensor(m.ones(5, 1), m.ones(5)),
        "group_norm": lambda m: torch.native_group_norm(m.ones(2, 3, 6).mT, None, None, 2, 6, 3, 2, 1e-5),
        "fill": lambda m: m.zeros(2).fill_(m.zeros(2)),
        "svd_driver": lambda m: torch.linalg.svd(m.ones(3, 3), driver="gesvd"),
        "search_side": lambda m: torch.searchsorted(m.arange(3.0), 1.0, side="foo"),
        "search_sides": lambda m: torch.searchsorted(m.arange(3.0), 1.0, side="left", right=True),
        "search_rows": lambda m: torch.searchsorted(m.ones(2, 3), 1.0),
        "search_sorter": lambda m: torch.searchsorted(m.arange(3.0), 1.0, sorter=m.arange(2)),
        "bucketize": lambda m: torch.bucketize(1.0, m.ones(2, 3)),
        "cdist": lambda m: torch.cdist(m.ones(2, 3), m.ones(2, 3), p=-1.0),
        "remainder": lambda m: m.ones(3, dtype=LONG) % 0,
        "fmod": lambda m: torch.fmod(m.ones(3, dtype=LONG), torch.tensor(0)),
        "floor_division": lambda m: m.ones(3, dtype=LONG) // 0,
        "rounded_division": lambda m: torch.div(m.ones(3, dtype=LONG), 0, rounding_mode="trunc"),
        "remainder_of_bytes": lambda m: m.ones(3, dtype=torch.uint8) % 256,
        "division_in_no_mode": lambda m: torch.div(m.ones(3, dtype=LONG), 0, rounding_mode="foo"),
        "division_into_bool": lambda m: torch.fmod(m.ones(3, dtype=LONG), 0, out=m.empty(3, dtype=BOOL)),
        "unsigned_remainder": lambda m: m.ones(3, dtype=torch.uint64) % torch.tensor(2**63, dtype=torch.uint64),
        "svd_driver_of_a_vector": lambda m: torch.linalg.svd(m.ones(3), driver="gesvd"),
        "quantization_bounds": lambda m: torch.fake_quantize_per_tensor_affine(
            m.ones(3), m.tensor(0.1), m.tensor(0, dtype=torch.int32), 7, 1
        ),
        "growth_tracker": lambda m: torch._amp_update_scale_(
            m.ones(1), m.ones(2, dtype=torch.int32), m.zeros(1), 2.0, 0.5, 3
        ),
        "inverse_scale": lambda m: torch._amp_foreach_non_finite_check_and_unscale_([m.ones(2)], m.zeros(1), m.ones(2)),
        "promotion": lambda m: m.ones(4, dtype=torch.uint16).__ilshift__(m.ones(4, dtype=BOOL)),
        "randperm": lambda m: torch.randperm(2, dtype=BOOL, device=m.device),
        "indices": lambda m: m.ones(4).index_put((m.zeros(4, dtype=LONG), m.zeros(3, 0, dtype=LONG)), m.ones(1)),
        "addr": lambda m: torch.addr(m.ones(2, 2), m.ones(2, 2), m.ones(2)),
        "geqrf": lambda m: torch.geqrf(m.ones(2)),
        "masked_scatter": lambda m: m.ones(10, 1, 5).masked_scatter_(m.ones(10, 10, 5, dtype=BOOL), m.ones(500)),
        "narrow_copy": lambda m: torch.narrow_copy(m.ones(3, 4), 2, 0, 1, out=m.empty(0)),
        "narrow_copy_start": lambda m: torch.narrow_copy(m.ones(3, 4), 1, 5, 0),
        "narrow_copy_function": lambda m: torch.narrow_copy(m.ones(3, 4), 1, 3, 2),
        "narrow_copy_length": lambda m: torch.narrow_copy(m.ones(3, 4), 1, 0, -1, out=m.empty(0)),
    }
)
def test_numbers_and_sizes(call):
    expect_the_error_of_cpu(call)


def test_zeros_of_a_rehearsal_are_no_zero_points():
    def call(m):
        zero_points = m.tensor([1, 2, 3], dtype=torch.int32)
        return torch.fake_quantize_per_channel_affine(m.ones(3, 2), m.ones(3), zero_points, 0, 1, 255)

    expect_no_error(call)


MASK = torch.tensor([[True, False, True], [False, True, False]])


@pytest.mark.parametrize("sizes", [(2,), (4, 1), (2, 3), (3, 5), (2, 4), (3, 3, 4)])
def test_values_for_a_mask_on_the_host_are_counted_there(sizes):
    def call(m):
        m.zeros(2, 3, 4)[MASK] = m.ones(*sizes)

    expected = outcome(call, "cpu")
    assert expected is not None
    with Gate(torch.npu.default_stream()):
        assert outcome(call, "npu") == expected  # without a wait for the device


@pytest.mark.parametrize("sizes", [(), (4,), (3, 4), (1, 4), (3, 1)])
def test_values_that_fit_a_mask_on_the_host(sizes):
    results = []
    for device in ("cpu", "npu"):
        x = torch.zeros(2, 3, 4, device=device)
        x[MASK] = torch.arange(1.0, 1 + torch.Size(sizes).numel(), device=device).reshape(sizes)
        x[torch.tensor([True, False]), :, torch.tensor([0])] = 7.0
        results.append(x.cpu())
    assert torch.equal(*results)


@cases(
    {
        "svd": lambda m: torch.linalg.svd(m.ones(0, 3), driver="gesvd"),
        "scales": lambda m: torch._amp_foreach_non_finite_check_and_unscale_([], m.zeros(1), m.ones(2)),
        "remainder": lambda m: m.ones(0, dtype=LONG) % 0,
        "floats": lambda m: m.ones(3) % 0,
    }
)
def test_nothing_to_compute_is_not_refused(call):
    expect_no_error(call)
