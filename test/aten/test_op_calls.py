"""Operators that PyTorch's samples (op_db) do not reach, called by name: npu against CPU."""

from __future__ import annotations

from collections.abc import Callable, Iterable
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

EDGES, COLUMNS = torch.tensor([0, 2, 2, 3]), torch.tensor([0, 1, 2])
PLACES = torch.tensor([[0, 2], [1, 3], [2, 0]])
ROWS = torch.tensor([[1, 2], [1, 2], [0, 3], [1, 2]])
PIXELS = (IMAGE[:, 0].abs() * 2).long().clamp(max=2)
FAR = torch.tensor([1.0, float("inf")])
ADAM = ([numbers(3, 4), numbers(5)], [numbers(3, 4), numbers(5)], *([numbers(3, 4).abs(), numbers(5).abs()],) * 3)
STEPS = [torch.tensor(2.0), torch.tensor(3.0)]
ADAM_OPTIONS = {"beta1": 0.9, "beta2": 0.99, "weight_decay": 0.1, "eps": 1e-8, "amsgrad": True, "maximize": False}
LEARNING_RATE = torch.tensor(0.1)

# operator, arguments, keywords
CALLS: list[tuple] = [
    (aten._add_relu.Tensor, (numbers(3, 4), numbers(3, 4))),
    (aten._add_relu.Scalar, (numbers(3, 4), 0.5)),
    (aten._add_relu_.Tensor, (numbers(3, 4), numbers(3, 4))),
    (aten._add_relu_.Scalar, (numbers(3, 4), 0.5)),
    (aten._aminmax.default, (numbers(3, 4),)),
    (aten._aminmax.dim, (numbers(3, 4), 1)),
    (
        aten._batch_norm_no_update.default,
        (IMAGE, numbers(3), numbers(3), numbers(3), numbers(3).abs(), 0.1, 1e-5),
    ),
    (aten._grid_sampler_2d_cpu_fallback.default, (IMAGE, numbers(2, 4, 5, 2), 0, 0, False)),
    (
        aten._grid_sampler_2d_cpu_fallback_backward.default,
        (numbers(2, 3, 4, 5), IMAGE, numbers(2, 4, 5, 2), 0, 0, False),
    ),
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
    (aten._amp_foreach_non_finite_check_and_unscale_.default, (STEPS, torch.zeros(1), torch.tensor([0.5]))),
    (aten._amp_foreach_non_finite_check_and_unscale_.default, ([FAR, numbers(3)], torch.zeros(1), torch.tensor([2.0]))),
    (aten._amp_update_scale_.default, (torch.tensor([64.0]), ZERO.clone(), torch.zeros(1), 2.0, 0.5, 4)),
    (aten._amp_update_scale_.default, (torch.tensor([64.0]), ZERO.clone(), torch.ones(1), 2.0, 0.5, 9)),
    (aten._assert_async.default, (torch.tensor(True),)),
    (aten._assert_async.msg, (torch.tensor(True), "fine")),
    (aten._convert_indices_from_coo_to_csr.default, (torch.tensor([0, 0, 2, 3]), 5)),
    (aten._convert_indices_from_coo_to_csr.default, (torch.tensor([0, 0, 2, 3]), 5), {"out_int32": True}),
    (aten._convert_indices_from_csr_to_coo.default, (EDGES, COLUMNS)),
    (aten._convert_indices_from_csr_to_coo.default, (EDGES, COLUMNS), {"out_int32": True, "transpose": True}),
    (aten._fused_adam_.tensor_lr, (*ADAM, STEPS), {"lr": LEARNING_RATE, **ADAM_OPTIONS}),
    (aten._fused_adamw_.tensor_lr, (*ADAM, STEPS), {"lr": LEARNING_RATE, **ADAM_OPTIONS}),
    (aten._native_batch_norm_legit.no_stats, (IMAGE, numbers(3), numbers(3), True, 0.1, 1e-5)),
    (
        aten._native_multi_head_attention.default,
        (*[numbers(2, 5, 8)] * 3, 8, 2, numbers(24, 8), numbers(24), numbers(8, 8), numbers(8)),
    ),
    (aten._upsample_bicubic2d_aa_backward.default, (numbers(2, 3, 4, 5), [4, 5], [2, 3, 6, 7], False)),
    (aten._upsample_lanczos2d_aa.default, (IMAGE, [4, 5], False)),
    (aten._upsample_lanczos2d_aa_backward.default, (numbers(2, 3, 4, 5), [4, 5], [2, 3, 6, 7], False)),
    (aten._upsample_nearest_exact2d.default, (IMAGE, [8, 9])),
    (aten._upsample_nearest_exact2d_backward.default, (numbers(2, 3, 8, 9), [8, 9], [2, 3, 6, 7])),
    (aten._upsample_nearest_exact3d_backward.default, (numbers(2, 3, 6, 7, 8), [6, 7, 8], [2, 3, 5, 6, 7])),
    (aten.upsample_nearest3d_backward.default, (numbers(2, 3, 6, 7, 8), [6, 7, 8], [2, 3, 5, 6, 7])),
    (aten.clamp_max.default, (numbers(3, 4), 0.5)),
    (aten.clamp_max_.default, (numbers(3, 4), 0.5)),
    (aten.scatter.value_reduce, (numbers(3, 4), 1, PLACES, 2.0), {"reduce": "multiply"}),
    (aten.scatter_.value_reduce, (numbers(3, 4), 1, PLACES, 2.0), {"reduce": "add"}),
    (aten.adaptive_avg_pool2d.default, (IMAGE, [3, 4])),
    (aten.adaptive_avg_pool3d.default, (VOLUME, [3, 4, 2])),
    (aten.clamp.default, (numbers(3, 4), -0.5, 0.5)),
    (aten.nll_loss2d_forward.default, (IMAGE, PIXELS, None, 1, -100)),
    (aten.nll_loss2d_backward.default, (torch.tensor(2.0), IMAGE, PIXELS, None, 1, -100, torch.tensor(84.0))),
    (aten.range.out, (1, 9, 2), {"out": torch.zeros(5)}),
    (aten.rrelu_with_noise.out, (numbers(3, 4), numbers(3, 4), 0.1, 0.3, False), {"out": torch.zeros(3, 4)}),
    (aten.adaptive_avg_pool3d_backward.grad_input, (numbers(2, 3, 3, 4, 2), VOLUME), {"grad_input": VOLUME}),
    (
        aten._slow_conv2d_backward.grad_input,
        (numbers(2, 4, 4, 5), IMAGE, FILTER, [3, 3], [1, 1], [0, 0]),
        {"grad_input": IMAGE, "grad_weight": FILTER, "grad_bias": BIAS},
    ),
    (
        aten._batch_norm_with_update.out,
        (IMAGE, *[numbers(3).abs()] * 4, 0.1, 1e-5),
        {
            "out": IMAGE,
            "save_mean": numbers(3),
            "save_invstd": numbers(3),
            "reserve": torch.zeros(0, dtype=torch.uint8),
        },
    ),
    (aten.reflection_pad2d.default, (IMAGE, [1, 2, 2, 1])),
    (aten.reflection_pad2d_backward.default, (numbers(2, 3, 9, 10), IMAGE, [1, 2, 2, 1])),
    (aten.reflection_pad3d_backward.default, (numbers(2, 3, 8, 7, 10), VOLUME, [1, 2, 1, 0, 2, 1])),
    (aten.replication_pad3d_backward.default, (numbers(2, 3, 8, 7, 10), VOLUME, [1, 2, 1, 0, 2, 1])),
    (aten.upsample_nearest2d.default, (IMAGE, [8, 9])),
    (aten.upsample_nearest2d_backward.default, (numbers(2, 3, 8, 9), [8, 9], [2, 3, 6, 7])),
    (aten.unique_dim.default, (ROWS, 0, True, True, True)),
    (aten.unique_dim_consecutive.default, (ROWS, 0, True, True)),
]
# What reads its switches, lengths or verdict on the host, as on every accelerator.
WAITING = {
    *("_ctc_loss.Tensor", "_ctc_loss.Tensor_out", "unique_dim", "unique_dim.out"),
    *("unique_dim_consecutive", "unique_dim_consecutive.out"),
}
# How many results have defined values; the others are workspaces.
DEFINED = {"_ctc_loss": 1, "_make_dep_token": 0}
KEYWORDS: dict[str, Callable[[str], dict]] = {
    "_make_dep_token": lambda device: {"device": device},
    "tril_indices": lambda device: {"device": device},
    "triu_indices": lambda device: {"device": device, "dtype": torch.int32},
    "_segment_reduce_backward": lambda device: {"lengths": torch.tensor([2, 3], device=device)},
}


def call(operator: Any, arguments: tuple, keywords: dict, device: str, note: Callable) -> tuple[list, list]:
    """Results, and the arguments as they are afterwards."""
    given = (arguments, keywords)
    moved, keywords = pytree.tree_map(lambda x: x.clone().to(device) if isinstance(x, torch.Tensor) else x, given)
    keywords = keywords | KEYWORDS.get(operator._schema.name.removeprefix("aten::"), lambda _: {})(device)
    if device == "npu":
        torch.npu.op_stats(reset=True)
    results = [result for result in pytree.tree_leaves(operator(*moved, **keywords)) if result is not None]
    if device == "npu":
        stats = torch.npu.op_stats(reset=True)
        note(stats, test="test_op_calls", dtype="")
        name = str(operator).removeprefix("aten.").removesuffix(".default")
        assert [op for op, counts in stats.items() if counts["fallback"]] == []
        if name not in WAITING:
            assert [op for op, counts in stats.items() if counts["host_waits"]] == []
    return results, [argument for argument in pytree.tree_leaves(moved) if isinstance(argument, torch.Tensor)]


def parameters(calls: Iterable[tuple]) -> list:
    return [pytest.param(*c[:2], *(c[2:] or [{}]), id=str(c[0]).removeprefix("aten.")) for c in calls]


@pytest.mark.parametrize(("operator", "arguments", "keywords"), parameters(CALLS))
def test_like_cpu(operator, arguments, keywords, note_operators):
    actual, changed = call(operator, arguments, keywords, "npu", note_operators)
    expected, given = call(operator, arguments, keywords, "cpu", note_operators)
    assert [(a.dtype, a.shape, a.stride()) for a in actual] == [(e.dtype, e.shape, e.stride()) for e in expected]
    defined = DEFINED.get(operator._schema.name.removeprefix("aten::"), len(expected))
    torch.testing.assert_close([a.cpu() for a in actual[:defined]], expected[:defined], equal_nan=True)
    torch.testing.assert_close([argument.cpu() for argument in changed], given, equal_nan=True)


def out_form(operator: Any) -> Any:
    """The overload with the same arguments that writes into given outputs; None where there is none."""
    wanted = [(argument.name, str(argument.type)) for argument in operator._schema.arguments]
    forms = (getattr(operator.overloadpacket, name) for name in operator.overloadpacket.overloads())
    for form in forms:
        given = [(a.name, str(a.type)) for a in form._schema.arguments if not a.is_out]
        if given == wanted and len(given) < len(form._schema.arguments):
            return form
    return None


def outputs_of(form: Any, operator: Any, arguments: tuple, keywords: dict, device: str, note: Callable) -> list:
    results, _ = call(operator, arguments, keywords, device, note)
    names = [argument.name for argument in form._schema.arguments if argument.is_out]
    outputs = {name: torch.zeros_like(result) for name, result in zip(names, results, strict=True)}
    return call(form, arguments, {**keywords, **outputs}, device, note)[0]


@pytest.mark.parametrize(("operator", "arguments", "keywords"), parameters(c for c in CALLS if out_form(c[0])))
def test_out_form_like_cpu(operator, arguments, keywords, note_operators):
    form = out_form(operator)
    actual, expected = (
        outputs_of(form, operator, arguments, keywords, device, note_operators) for device in ("npu", "cpu")
    )
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


ASSERTIONS = {
    "_functional_assert_async": lambda x, text: aten._functional_assert_async.msg(
        x, text, aten._make_dep_token(device="npu")
    ),
    "_assert_async.msg": aten._assert_async.msg,
}


@pytest.mark.parametrize("check", [pytest.param(call, id=name) for name, call in ASSERTIONS.items()])
def test_a_failed_assertion_is_reported_when_the_device_is_synchronised(check):
    check(torch.tensor(True, device="npu"), "fine")
    torch.npu.synchronize()
    check(torch.tensor(False, device="npu"), "the sum is off")
    with pytest.raises(torch.AcceleratorError, match="the sum is off"):
        torch.npu.synchronize()


def test_what_can_take_the_place_of_a_tensor_s_data():
    tensor = torch.ones(3, device="npu")
    assert aten._has_compatible_shallow_copy_type(tensor, torch.zeros(2, 2, device="npu"))
    assert not aten._has_compatible_shallow_copy_type(tensor, torch.ones(3, device="npu").to_sparse())


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
