"""Operators that PyTorch's samples (op_db) do not reach, called by name: npu against CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.utils import _pytree as pytree

aten = torch.ops.aten


def numbers(*sizes: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    generator = torch.Generator().manual_seed(sum(sizes) + len(sizes))
    values = torch.randn(sizes, generator=generator)
    return values.to(dtype) if dtype.is_floating_point else (values * 10).to(dtype)


def channels_last(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.contiguous(memory_format=torch.channels_last)


SCALE, ZERO = torch.tensor([0.1]), torch.tensor([3], dtype=torch.int32)
SCALES, ZEROS = torch.tensor([0.1, 0.2, 0.3]), torch.tensor([0.0, 1.0, 2.0])
IMAGE, FILTER, BIAS = numbers(2, 3, 6, 7), numbers(4, 3, 3, 3), numbers(4)
VOLUME, FILTER3 = numbers(2, 3, 5, 6, 7), numbers(4, 3, 3, 3, 3)
INDICES, OFFSETS = torch.tensor([1, 2, 4, 5, 4, 3]), torch.tensor([0, 2, 4])
LOG_PROBS = numbers(12, 2, 5).log_softmax(2)
TARGETS = torch.tensor([[1, 2, 3], [2, 1, 4]])
SIGNED, MORE = numbers(17, 32, dtype=torch.int8), numbers(32, 24, dtype=torch.int8)
WHOLE = numbers(1, 3, 4)

SHIFTS = torch.arange(32, dtype=torch.int8) % 4
MASK = numbers(2, 3, 4, 4) > 1
HEADS = numbers(2, 3, 16, 8)

# operator, arguments, keywords
CALLS: list[tuple] = [
    (aten._add_relu.Tensor, (numbers(3, 4), numbers(3, 4))),
    (aten._add_relu.Scalar, (numbers(3, 4), 0.5)),
    (aten._add_relu_.Tensor, (numbers(3, 4), numbers(3, 4))),
    (aten._add_relu_.Scalar, (numbers(3, 4), 0.5)),
    (aten._aminmax.default, (numbers(3, 4),)),
    (aten._aminmax.dim, (numbers(3, 4), 1)),
    (aten._cdist_backward.default, (numbers(3, 4), numbers(3, 5), numbers(4, 5), 2.0, numbers(3, 4).abs())),
    (aten._compute_linear_combination.default, (numbers(3, 4, 4), numbers(2, 3))),
    (aten._ctc_loss.Tensor, (LOG_PROBS, TARGETS, torch.tensor([12, 11]), torch.tensor([3, 2]))),
    (aten._ctc_loss.default, (LOG_PROBS, TARGETS, [12, 11], [3, 2])),
    (aten._grouped_mm.default, (numbers(8, 16), numbers(4, 16, 8), torch.tensor([2, 4, 6, 8], dtype=torch.int32))),
    (aten._standard_gamma_grad.default, (WHOLE[0, 0].abs(), WHOLE.abs())),
    (aten._dirichlet_grad.default, (WHOLE.softmax(-1), WHOLE.abs() + 1, (WHOLE.abs() + 1).sum(-1, True))),
    (aten._embedding_bag.default, (numbers(7, 4), INDICES, OFFSETS, False, 0)),
    (aten._embedding_bag.default, (numbers(7, 4), INDICES, OFFSETS, False, 1)),
    (aten._embedding_bag.default, (numbers(7, 4), INDICES, OFFSETS, False, 2)),
    (aten._embedding_bag.default, (numbers(7, 4), INDICES, OFFSETS, False, 0, False, None, True)),
    (aten._embedding_bag_forward_only.default, (numbers(7, 4), INDICES, OFFSETS.int(), False, 1)),
    (aten._embedding_bag_forward_only.default, (numbers(7, 4), INDICES, OFFSETS, False, 2, False, None, True)),
    (aten._fake_quantize_learnable_per_channel_affine.default, (numbers(2, 3, 4), SCALES, ZEROS, 1, 0, 255)),
    (
        aten._fake_quantize_learnable_per_channel_affine_backward.default,
        (numbers(2, 3, 4), numbers(2, 3, 4), SCALES, ZEROS, 1, 0, 255),
    ),
    (aten._fake_quantize_learnable_per_tensor_affine.default, (numbers(2, 3), SCALE, ZERO.float(), 0, 255)),
    (
        aten._fake_quantize_learnable_per_tensor_affine_backward.default,
        (numbers(2, 3), numbers(2, 3), SCALE, ZERO.float(), 0, 255),
    ),
    (
        aten._fake_quantize_per_tensor_affine_cachemask_tensor_qparams.default,
        (numbers(2, 3), SCALE, ZERO, torch.tensor([1], dtype=torch.uint8), 0, 255),
    ),
    (aten._int_mm.default, (SIGNED, MORE)),
    (aten._make_dep_token.default, ()),
    (aten._segment_reduce_backward.default, (numbers(2, 3), numbers(2, 3), numbers(5, 3), "sum")),
    (aten._slow_conv2d_forward.default, (IMAGE, FILTER, [3, 3], BIAS, [2, 1], [1, 0])),
    (aten._slow_conv2d_forward.default, (channels_last(IMAGE), FILTER, [3, 3], None, [1, 1], [1, 1])),
    (
        aten._slow_conv2d_backward.output_mask,
        (numbers(2, 4, 4, 5), IMAGE, FILTER, [3, 3], [1, 1], [0, 0], [True, True, True]),
    ),
    (aten._standard_gamma_grad.default, (numbers(3, 4).abs() + 1, numbers(3, 4).abs())),
    (aten._weight_int8pack_mm.default, (numbers(3, 32, dtype=torch.bfloat16), SIGNED[:16], numbers(16).bfloat16())),
    (aten.fake_quantize_per_channel_affine_cachemask.default, (numbers(2, 3, 4), SCALES, ZEROS.int(), 1, 0, 255)),
    (aten.fake_quantize_per_tensor_affine_cachemask.default, (numbers(2, 3).T, 0.1, 3, 0, 255)),
    (aten.glu_jvp.default, (numbers(4, 3), numbers(4, 6), numbers(4, 6), 1)),
    (
        aten.glu_backward_jvp.default,
        (numbers(4, 6), numbers(4, 3), numbers(4, 6), numbers(4, 3), numbers(4, 6), 1),
    ),
    (aten.slow_conv3d_forward.default, (VOLUME, FILTER3, [3, 3, 3], BIAS, [1, 2, 1], [1, 0, 1])),
    (aten.slow_conv_dilated2d.default, (IMAGE, FILTER, [3, 3], BIAS, [1, 1], [1, 1], [2, 1])),
    (aten.slow_conv_dilated3d.default, (VOLUME, FILTER3, [3, 3, 3], BIAS, [1, 1, 1], [1, 1, 1], [1, 2, 1])),
    (aten.slow_conv_transpose2d.default, (IMAGE, numbers(3, 4, 3, 3), [3, 3], BIAS, [2, 2], [1, 1], [1, 0], [1, 1])),
    (
        aten.slow_conv_transpose3d.default,
        (VOLUME, numbers(3, 4, 3, 3, 3), [3, 3, 3], BIAS, [2, 1, 2], [1, 1, 0], [1, 0, 0], [1, 1, 1]),
    ),
    (aten.__ilshift__.Scalar, (SIGNED, 2)),
    (aten.__ilshift__.Tensor, (SIGNED, SHIFTS)),
    (aten.__irshift__.Scalar, (SIGNED, 2)),
    (aten.__irshift__.Tensor, (SIGNED, SHIFTS)),
    (aten.__lshift__.Scalar, (SIGNED, 2)),
    (aten.__lshift__.Tensor, (SIGNED, SHIFTS)),
    (aten.__rshift__.Scalar, (SIGNED, 2)),
    (aten.__rshift__.Tensor, (SIGNED, SHIFTS)),
    (aten._addmm_activation.default, (numbers(3, 5), numbers(3, 4), numbers(4, 5))),
    (aten._masked_softmax.default, (numbers(2, 3, 4, 4), MASK, -1, 2)),
    (aten._masked_softmax_backward.default, (numbers(2, 3, 4, 4), numbers(2, 3, 4, 4).softmax(-1), MASK, -1)),
    (aten._scaled_dot_product_flash_attention_for_cpu.default, (HEADS, HEADS * 2, HEADS + 1, 0.0, True)),
    (aten._upsample_bicubic2d_aa.default, (IMAGE, [4, 5], False)),
    (aten._upsample_nearest_exact3d.default, (VOLUME, [6, 7, 8])),
    (aten.upsample_nearest3d.default, (VOLUME, [6, 7, 8])),
    (aten._weight_norm_interface.default, (numbers(3, 4), numbers(3, 1).abs(), 0)),
    (aten.batch_norm_update_stats.default, (IMAGE, numbers(3), numbers(3).abs(), 0.1)),
    (aten.bucketize.Scalar, (0.3, numbers(5).sort()[0])),
    (aten.embedding_renorm_.default, (numbers(7, 4), INDICES, 0.5, 2.0)),
    (aten.isin.Scalar_Tensor, (4, INDICES)),
    (aten.isin.Tensor_Scalar, (INDICES, 4)),
    (aten.norm.ScalarOpt_dim_dtype, (numbers(3, 4), 2, [1], False), {"dtype": torch.float64}),
    (aten.reflection_pad3d.default, (VOLUME, [1, 2, 1, 0, 2, 1])),
    (aten.remainder.Scalar_Tensor, (7, numbers(3, 4))),
    (aten.replication_pad3d.default, (VOLUME, [1, 2, 1, 0, 2, 1])),
    (aten.searchsorted.Scalar, (numbers(5).sort()[0], 0.3)),
    (aten.tril_indices.default, (4, 5, 1)),
    (aten.triu_indices.default, (4, 5, -1)),
    (aten.triu_indices.default, (0, 5, 0)),
]
# What reads its switches, lengths or verdict on the host, as on every accelerator.
WAITING = {"_ctc_loss.Tensor"}
# How many results have defined values; the others are workspaces.
DEFINED = {"_ctc_loss": 1, "_make_dep_token": 0}
KEYWORDS: dict[str, Callable[[str], dict]] = {
    "_make_dep_token": lambda device: {"device": device},
    "tril_indices": lambda device: {"device": device},
    "triu_indices": lambda device: {"device": device, "dtype": torch.int32},
    "_segment_reduce_backward": lambda device: {"lengths": torch.tensor([2, 3], device=device)},
}


def call(operator: Any, arguments: tuple, keywords: dict, device: str, note: Callable) -> list:
    moved = pytree.tree_map(lambda x: x.clone().to(device) if isinstance(x, torch.Tensor) else x, arguments)
    keywords = keywords | KEYWORDS.get(operator._schema.name.removeprefix("aten::"), lambda _: {})(device)
    if device == "npu":
        torch.npu.op_stats(reset=True)
    results = pytree.tree_leaves(operator(*moved, **keywords))
    if device == "npu":
        stats = torch.npu.op_stats(reset=True)
        note(stats, test="test_op_calls", dtype="")
        name = str(operator).removeprefix("aten.").removesuffix(".default")
        assert [op for op, counts in stats.items() if counts["fallback"]] == []
        if name not in WAITING:
            assert [op for op, counts in stats.items() if counts["host_waits"]] == []
    return results


@pytest.mark.parametrize(
    ("operator", "arguments", "keywords"),
    [pytest.param(*entry[:2], *(entry[2:] or [{}]), id=str(entry[0]).removeprefix("aten.")) for entry in CALLS],
)
def test_like_cpu(operator, arguments, keywords, note_operators):
    actual, expected = (call(operator, arguments, keywords, device, note_operators) for device in ("npu", "cpu"))
    assert [(a.dtype, a.shape, a.stride()) for a in actual] == [(e.dtype, e.shape, e.stride()) for e in expected]
    defined = DEFINED.get(operator._schema.name.removeprefix("aten::"), len(expected))
    torch.testing.assert_close([a.cpu() for a in actual[:defined]], expected[:defined], equal_nan=True)


def test_batch_norm_of_images_of_one_element_is_that_of_the_cpu_to_the_last_bit():
    layouts = ((144, 144), (1, 1))  # channels last, contiguous: the same memory

    def run(device: str) -> list[torch.Tensor]:
        x, grad = (numbers(2, 144, 1, 1).to(device).as_strided((2, 144, 1, 1), (144, 1, *last)) for last in layouts)
        weight, mean, var = (numbers(144).abs().to(device) for _ in range(3))
        out = aten.native_batch_norm(x, weight, weight, mean, var, False, 0.1, 1e-3)[0]
        return [out, *aten.native_batch_norm_backward(grad, x, weight, mean, var, None, None, False, 1e-3, [True] * 3)]

    for actual, expected in zip(run("npu"), run("cpu"), strict=True):
        assert torch.equal(actual.cpu(), expected) and actual.stride() == expected.stride()


def test_a_zero_tensor_takes_no_memory_and_acts_as_zeros():
    zeros = torch._efficientzerotensor((3, 4), device="npu")
    assert zeros._is_zerotensor() and zeros.device.type == "npu"
    ones = torch.ones(3, 4, device="npu")
    assert (ones * zeros)._is_zerotensor()
    torch.testing.assert_close((ones + zeros).cpu(), torch.ones(3, 4))
    torch.testing.assert_close(zeros.clone().cpu(), torch.zeros(3, 4))


def test_a_failed_functional_assertion_is_reported_when_the_device_is_synchronised():
    token = aten._make_dep_token(device="npu")
    aten._functional_assert_async.msg(torch.tensor(True, device="npu"), "fine", token)
    torch.npu.synchronize()
    aten._functional_assert_async.msg(torch.tensor(False, device="npu"), "the sum is off", token)
    with pytest.raises(torch.AcceleratorError, match="the sum is off"):
        torch.npu.synchronize()


def test_moving_average_fake_quantization_trains_its_statistics_like_the_cpu():
    def run(device: str) -> list[torch.Tensor]:
        on = torch.tensor([1], device=device)
        low, high = (torch.tensor([value], device=device) for value in (float("inf"), -float("inf")))
        scale, zero = torch.ones(1, device=device), torch.zeros(1, dtype=torch.int32, device=device)
        results = [
            torch.fused_moving_avg_obs_fake_quant(x.to(device), on, on, low, high, scale, zero, 0.1, 0, 255, 0)
            for x in (numbers(3, 4), numbers(5, 6))
        ]
        return [tensor.cpu() for tensor in (*results, low, high, scale, zero)]

    torch.testing.assert_close(run("npu"), run("cpu"))
