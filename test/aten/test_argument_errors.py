"""What CPU refuses whatever the values, npu refuses too: at the call, with CPU's type of exception and CPU's words."""

from __future__ import annotations

import functools
import re

import pytest
import torch
from torch.profiler import ProfilerActivity, profile

from torch_npu_lite.testing import Gate

F = torch.nn.functional
aten = torch.ops.aten
INT8, HALF, LONG, BOOL = torch.int8, torch.float16, torch.int64, torch.bool


class Maker:
    """torch's factories on one device."""

    def __init__(self, device: str) -> None:
        self.device = device

    def ones(self, *sizes, **options):
        return torch.ones(*sizes, device=self.device, **options)

    def empty(self, *sizes, **options):
        return torch.empty(*sizes, device=self.device, **options)

    def zeros(self, *sizes, **options):
        return torch.zeros(*sizes, device=self.device, **options)

    def arange(self, *numbers, **options):
        return torch.arange(*numbers, device=self.device, **options)

    def tensor(self, data, **options):
        return torch.tensor(data, device=self.device, **options)

    def full(self, size, value, **options):
        return torch.full(size, value, device=self.device, **options)


def outcome(call, device: str):
    """The exception of a call, as its type and first sentence; None when it returns."""
    try:
        call(Maker(device))
    except Exception as error:
        text = str(error).split("\n")[0].split("  (Could this error")[0]
        return type(error), re.sub(r"\bnpu(:0)?\b", "cpu", text)
    return None


def expect_the_error_of_cpu(call) -> None:
    expected = outcome(call, "cpu")
    assert expected is not None, "CPU accepts this"
    assert outcome(call, "npu") == expected
    torch.npu.synchronize()  # nothing failed later


def expect_no_error(call) -> None:
    assert outcome(call, "cpu") is None
    assert outcome(call, "npu") is None
    torch.npu.synchronize()


def cases(calls: dict):
    return pytest.mark.parametrize("call", calls.values(), ids=calls.keys())


@cases(
    {
        "add": lambda m: m.ones(3, dtype=INT8).add(m.ones(3, dtype=INT8), alpha=300),
        "add_of_nothing": lambda m: m.ones(0, dtype=INT8).add(m.ones(0, dtype=INT8), alpha=300),
        "add_long": lambda m: m.ones(3, dtype=torch.int32).add(m.ones(3, dtype=torch.int32), alpha=2**40),
        "add_half": lambda m: m.ones(3, dtype=HALF).add(m.ones(3, dtype=HALF), alpha=1e40),
        "add_float": lambda m: m.ones(3).add_(m.ones(3), alpha=1e40),
        "sub": lambda m: m.ones(3).sub(m.ones(3), alpha=1e40),
        "addmm": lambda m: m.ones(3, 3).addmm(m.ones(3, 3), m.ones(3, 3), alpha=1e40),
        "addmm_int": lambda m: torch.addmm(*[m.ones(3, 3, dtype=INT8)] * 3, alpha=300),
        "baddbmm": lambda m: torch.baddbmm(*[m.ones(1, 3, 3)] * 3, beta=1e40),
        "addcmul": lambda m: torch.addcmul(*[m.ones(3)] * 3, value=1e40),
        "lerp": lambda m: torch.lerp(m.ones(3), m.ones(3), 1e40),
        "full_half": lambda m: m.full((3,), 1e40, dtype=HALF),
        "full_complex": lambda m: m.full((3,), 1j, dtype=torch.float32),
        "full_nan": lambda m: m.full((3,), float("nan"), dtype=torch.int32),
        "full_negative": lambda m: m.full((3,), -5.5, dtype=torch.uint8),
        "full_of_nothing": lambda m: m.full((0,), 300, dtype=INT8),
        "fill": lambda m: m.ones(3, dtype=INT8).fill_(300),
        "fill_strided": lambda m: m.ones(6, dtype=INT8)[::2].fill_(300),
        "setitem": lambda m: m.ones(3, dtype=INT8).__setitem__(0, 300),
        "clamp": lambda m: m.ones(3, dtype=INT8).clamp(max=300),
        "pow": lambda m: m.ones(3, dtype=INT8).pow(300),
        "masked_fill": lambda m: m.ones(3, dtype=HALF).masked_fill(m.ones(3, dtype=BOOL), -1e9),
        "index_fill": lambda m: m.ones(3, dtype=INT8).index_fill(0, m.tensor([0]), 300),
        "scatter": lambda m: m.ones(3, dtype=INT8).scatter(0, m.tensor([0]), 300),
        "threshold": lambda m: F.threshold(m.ones(3, dtype=INT8), 300, 1),
        "leaky_relu": lambda m: F.leaky_relu(m.ones(3), 1e40),
        "hardtanh": lambda m: F.hardtanh(m.ones(3, dtype=INT8), -300, 300),
        "hardshrink": lambda m: F.hardshrink(m.ones(3), 1e40),
        "softplus": lambda m: F.softplus(m.ones(3), beta=1e40),
        "elu": lambda m: F.elu(m.ones(3), alpha=1e40),
        "linspace": lambda m: torch.linspace(0, 300, 5, dtype=INT8, device=m.device),
        "where": lambda m: torch.where(m.ones(3, dtype=BOOL), m.ones(3, dtype=INT8), 300),
        "pad": lambda m: F.pad(m.ones(3, dtype=INT8), (1, 1), value=300),
        "randperm": lambda m: torch.randperm(300, dtype=INT8, device=m.device),
    }
)
def test_numbers_that_overflow_a_dtype(call):
    expect_the_error_of_cpu(call)
    expect_the_error_of_cpu(call)  # also when it is not the first of its kind


@pytest.mark.parametrize("value", [-200, 300.5, float("inf"), True, 2**31])
def test_numbers_that_fit_are_converted_as_on_cpu(value):
    dtype = torch.uint8 if value == -200 else torch.float32
    for call in (
        lambda m: m.full((3,), value, dtype=dtype),
        lambda m: m.ones(3, dtype=dtype).masked_fill(m.ones(3, dtype=BOOL), value),
        lambda m: m.ones(3, dtype=BOOL).fill_(value),
    ):
        assert torch.equal(call(Maker("npu")).cpu(), call(Maker("cpu")))


def shifted(m, function):
    """function(input, out) where both are parts of one tensor and overlap."""
    x = m.arange(7.0)
    return function(x[:5], x[1:6])


@cases(
    {
        "cumsum": lambda m: shifted(m, lambda a, b: torch.cumsum(a, 0, out=b)),
        "abs": lambda m: shifted(m, lambda a, b: torch.abs(a, out=b)),
        "angle": lambda m: shifted(m, lambda a, b: torch.angle(a, out=b)),
        "nan_to_num": lambda m: shifted(m, lambda a, b: torch.nan_to_num(a, out=b)),
        "logical_not": lambda m: shifted(m, lambda a, b: torch.logical_not(a, out=b)),
        "where": lambda m: shifted(m, lambda a, b: torch.where(m.ones(5, dtype=BOOL), a, a, out=b)),
        "gather": lambda m: shifted(m, lambda a, b: torch.gather(a, 0, m.arange(5), out=b)),
        "scatter": lambda m: shifted(m, lambda a, b: a.scatter_(0, m.arange(5), b)),
        "put": lambda m: shifted(m, lambda a, b: a.put_(m.arange(5), b)),
        "index_add": lambda m: shifted(m, lambda a, b: a.index_add_(0, m.arange(5), b)),
        "index_copy": lambda m: shifted(m, lambda a, b: a.index_copy_(0, m.arange(5), b)),
        "index_put": lambda m: shifted(m, lambda a, b: a.index_put_((m.arange(5),), b)),
        "index_select": lambda m: (lambda x: torch.index_select(x, 0, m.arange(3), out=x))(m.ones(3)),
        "take": lambda m: (lambda x: torch.take(x, m.tensor([1, 2]), out=x[:2]))(m.arange(7.0)),
        "copy": lambda m: shifted(m, lambda a, b: a.copy_(b)),
        "add": lambda m: shifted(m, lambda a, b: a.add_(b)),
        "cat": lambda m: shifted(m, lambda a, b: torch.cat([a[:3], a[3:]], out=b)),
        "kthvalue": lambda m: (lambda x: torch.kthvalue(x, 2, out=(x[1], m.empty((), dtype=LONG))))(m.arange(7.0)),
    }
)
def test_outputs_that_overlap_inputs(call):
    expect_the_error_of_cpu(call)
    expect_the_error_of_cpu(call)


@cases(
    {
        "cumsum": lambda m: (lambda x: torch.cumsum(x, 0, out=x))(m.arange(7.0)),
        "mm": lambda m: (lambda x: torch.mm(x[:2, :2], x[:2, :2], out=x[2:, 2:]))(m.ones(4, 4)),
        "sum": lambda m: (lambda x: torch.sum(x, 0, out=x[0]))(m.ones(4, 4)),
        "masked_scatter": lambda m: shifted(m, lambda a, b: a.masked_scatter_(m.ones(5, dtype=BOOL), b)),
        "softmax": lambda m: shifted(m, lambda a, b: torch.softmax(a, 0, out=b)),
        "neighbours": lambda m: (lambda x: torch.cumsum(x[:3], 0, out=x[3:]))(m.arange(6.0)),
    }
)
def test_overlap_that_cpu_allows(call):
    expect_no_error(call)


EXPANDED = {
    "copy": lambda x, m: x.copy_(m.ones(3)),
    "add": lambda x, m: x.add_(1),
    "clamp": lambda x, m: x.clamp_(0),
    "cumsum": lambda x, m: x.cumsum_(0),
    "fill_tensor": lambda x, m: x.fill_(m.tensor(3.0)),
    "index_add": lambda x, m: x.index_add_(0, m.tensor([0]), m.ones(1)),
    "masked_scatter": lambda x, m: x.masked_scatter_(m.ones(3, dtype=BOOL), m.ones(3)),
    "normal": lambda x, m: x.normal_(),
    "put": lambda x, m: x.put_(m.tensor([0]), m.ones(1)),
    "random": lambda x, m: x.random_(),
    "scatter": lambda x, m: x.scatter_(0, m.tensor([0]), 1),
    "uniform": lambda x, m: x.uniform_(),
    "take": lambda x, m: torch.take(m.arange(7.0), m.arange(3), out=x),
}


@cases(EXPANDED)
def test_writing_to_elements_that_share_memory(call):
    expect_the_error_of_cpu(lambda m: call(m.zeros(1).expand(3), m))


@pytest.mark.parametrize("value", [2, 0, 2.5])
def test_filling_elements_that_share_memory(value):
    for make in (lambda m: m.zeros(2, 1).expand(2, 3), lambda m: m.zeros(4).as_strided((2, 2), (1, 1))):
        cpu, npu = make(Maker("cpu")), make(Maker("npu"))
        assert torch.equal(npu.fill_(value).cpu(), cpu.fill_(value))
        assert torch.equal(npu.zero_().cpu(), cpu.zero_())


@cases(
    {
        "max": lambda m: m.empty(0).max(),
        "min": lambda m: m.empty(2, 0).min(),
        "argmax": lambda m: m.empty(0).argmax(),
        "amax": lambda m: m.empty(0).amax(),
        "aminmax": lambda m: m.empty(0).aminmax(),
        "mode": lambda m: m.empty(0).mode(),
        "mode_dim": lambda m: m.empty(2, 0).mode(1),
        "median_dim": lambda m: m.empty(2, 0).median(1),
        "nanmedian_dim": lambda m: m.empty(2, 0).nanmedian(-1),
        "kthvalue": lambda m: m.empty(2, 0).kthvalue(1, 1),
        "max_dim": lambda m: m.empty(2, 0).max(1),
        "norm": lambda m: m.empty(2, 0).norm(p=float("inf"), dim=1),
        "quantile": lambda m: m.empty(0).quantile(0.5),
        "take": lambda m: m.empty(0).take(m.tensor([1])),
    }
)
def test_reductions_of_nothing(call):
    expect_the_error_of_cpu(call)


@cases(
    {
        "median": lambda m: m.empty(0).median(),
        "nanmedian": lambda m: m.empty(0).nanmedian(),
        "mode": lambda m: m.empty(2, 0).mode(0).values,
        "median_dim": lambda m: m.empty(2, 0).median(0).values,
        "kthvalue": lambda m: m.empty(2, 0).kthvalue(1, 0).values,
        "cummax": lambda m: m.empty(2, 0).cummax(1).values,
        "logcumsumexp": lambda m: m.empty(2, 0).logcumsumexp(1),
        "std": lambda m: m.empty(2, 0).std(1),
        "nansum": lambda m: m.empty(2, 0).nansum(1),
        "prod": lambda m: m.empty(2, 0).prod(1),
        "trace": lambda m: m.empty(0, 5).trace(),
        "dot": lambda m: m.empty(0).dot(m.empty(0)),
        "histc": lambda m: m.empty(0).histc(),
        "logsumexp": lambda m: m.empty(0).logsumexp(0),
    }
)
def test_reductions_of_nothing_that_have_a_result(call):
    torch.testing.assert_close(call(Maker("npu")).cpu(), call(Maker("cpu")), equal_nan=True)


@cases(
    {
        "abs": lambda m: m.ones(3, dtype=BOOL).abs(),
        "neg": lambda m: m.ones(3, dtype=BOOL).neg(),
        "floor": lambda m: m.ones(3, dtype=torch.complex64).floor(),
        "log_softmax": lambda m: F.log_softmax(m.ones(2, 3, dtype=BOOL), 1),
        "cdist": lambda m: torch.cdist(m.ones(2, 3, dtype=LONG), m.ones(2, 3, dtype=LONG)),
        "cholesky_inverse": lambda m: torch.cholesky_inverse(m.ones(3, 3, dtype=LONG)),
        "matrix_exp": lambda m: m.ones(3, 3, dtype=LONG).matrix_exp(),
        "nansum": lambda m: m.ones(3, dtype=torch.complex64).nansum(),
        "mm": lambda m: m.ones(3, 3, dtype=BOOL) @ m.ones(3, 3, dtype=BOOL),
        "sort": lambda m: m.ones(3, dtype=torch.complex64).sort(),
        "cummax": lambda m: m.ones(3, dtype=torch.complex64).cummax(0),
        "logcumsumexp": lambda m: m.ones(3, dtype=LONG).logcumsumexp(0),
        "median": lambda m: m.ones(3, dtype=BOOL).median(),
        "std": lambda m: m.ones(3, dtype=LONG).std(),
        "var_mean": lambda m: torch.var_mean(m.ones(3, dtype=LONG)),
        "frexp": lambda m: m.ones(3, dtype=LONG).frexp(),
        "complex": lambda m: torch.complex(m.ones(3), m.ones(3, dtype=LONG)),
        "polar_out": lambda m: torch.polar(m.ones(3), m.ones(3), out=m.empty(3)),
        "searchsorted_out": lambda m: torch.searchsorted(m.ones(3), m.ones(3), out=m.empty(3)),
        "masked_scatter": lambda m: m.ones(3).masked_scatter(m.ones(3), m.ones(3)),
        "take": lambda m: m.ones(3).take(m.ones(3)),
        "nll_loss": lambda m: F.nll_loss(m.ones(2, 3, dtype=BOOL), m.ones(2, dtype=LONG)),
    }
)
def test_dtypes_that_a_kernel_lacks(call):
    expect_the_error_of_cpu(call)
    expect_the_error_of_cpu(call)


@cases(
    {
        "arange": lambda m: torch.arange(1, 2, 0.1, dtype=LONG, device=m.device),
        "bucketize": lambda m: torch.bucketize(m.ones(3), m.ones(3, 3)),
        "dot_dims": lambda m: m.ones(3, 3).dot(m.ones(3)),
        "dot_sizes": lambda m: m.ones(3).dot(m.ones(4)),
        "dot_dtypes": lambda m: m.ones(3).vdot(m.ones(3, dtype=HALF)),
        "eye": lambda m: torch.eye(3, -1, device=m.device),
        "gelu": lambda m: F.gelu(m.ones(3), approximate="cosh"),
        "histc_bins": lambda m: m.ones(3).histc(bins=-1),
        "histc_range": lambda m: m.ones(3).histc(bins=3, min=4, max=2),
        "huber_loss": lambda m: F.huber_loss(m.ones(3), m.ones(3), delta=0),
        "kthvalue": lambda m: m.ones(3).kthvalue(5),
        "layer_norm": lambda m: torch.native_layer_norm(m.ones(2, 3), [3], m.ones(1, 3), None, 1e-5),
        "logcumsumexp": lambda m: m.ones(3).logcumsumexp(2),
        "masked_fill": lambda m: m.ones(3).masked_fill(m.ones(3, dtype=BOOL), m.ones(1)),
        "max_pool3d": lambda m: F.max_pool3d(m.ones(1, 0, 4, 4, 4), 2),
        "max_unpool2d": lambda m: F.max_unpool2d(m.ones(1, 1, 2, 2), m.ones(1, 1, 2, 1, dtype=LONG), 2),
        "multi_margin_loss": lambda m: F.multi_margin_loss(m.ones(2, 3), m.ones(2, 3, dtype=LONG)),
        "multilabel_margin_loss": lambda m: F.multilabel_margin_loss(m.ones(2, 3), m.ones(3, dtype=LONG)),
        "roll": lambda m: m.ones(3).roll((1, 2), 0),
        "roll_dim": lambda m: m.ones(3).roll(1, 2),
        "searchsorted": lambda m: torch.searchsorted(m.ones(2, 3), m.ones(3, 3)),
        "trace": lambda m: m.ones(3).trace(),
        "adaptive_avg_pool2d": lambda m: aten._adaptive_avg_pool2d(m.ones(1, 2, 4, 4), [2]),
        "adaptive_avg_pool2d_dims": lambda m: aten._adaptive_avg_pool2d(m.ones(4, 4), [2, 2]),
        "adaptive_avg_pool3d": lambda m: aten._adaptive_avg_pool3d(m.ones(1, 2, 4, 4, 0), [2, 2, 2]),
        "ctc_loss_total": lambda m: ctc_loss(m, m.ones(6, dtype=LONG), [5, 5], [3, 4]),
        "ctc_loss_huge": lambda m: ctc_loss(m, m.ones(6, dtype=LONG), [5, 5], [200_000_000, 3]),
        "ctc_loss_columns": lambda m: ctc_loss(m, m.ones(2, 3, dtype=LONG), [5, 5], [3, 4]),
        "ctc_loss_negative": lambda m: ctc_loss(m, m.ones(2, 3, dtype=LONG), [5, 5], [3, -3]),
        "ctc_loss_input": lambda m: ctc_loss(m, m.ones(2, 3, dtype=LONG), [6, 5], [3, 3]),
        "embedding_bag_weights": lambda m: embedding_bag(m, 0, m.ones(3)),
        "embedding_bag_weights_dims": lambda m: embedding_bag(m, 0, m.ones(())),
        "embedding_bag_mean": lambda m: embedding_bag(m, 1, m.ones(4)),
        "fold_kernel": lambda m: F.fold(m.ones(1, 8, 9), (4, 4), 0),
        "fold_channels": lambda m: F.fold(m.ones(1, 7, 9), (4, 4), 2),
        "fold_size": lambda m: aten.col2im(m.ones(1, 8, 9), [4], [2, 2], [1, 1], [0, 0], [1, 1]),
        "grid_sampler": lambda m: aten.grid_sampler_2d(m.ones(1, 1, 4, 4), m.ones(2, 4, 4, 2), 0, 0, False),
        "histogram_bins": lambda m: torch.histogram(m.ones(3), 0),
        "histogram_edges": lambda m: torch.histogram(m.ones(3), m.ones(3, 3)),
        "histogramdd_bins": lambda m: torch.histogramdd(m.ones(3, 2), [0, 2]),
        "histogramdd_dims": lambda m: torch.histogramdd(m.ones(3, 2), [2]),
        "linear_combination": lambda m: aten._compute_linear_combination(m.ones(()), m.ones(2, 2)),
        "max_unpool2d_output": lambda m: aten.max_unpool2d(m.ones(1, 1, 2, 2), m.ones(1, 1, 2, 2, dtype=LONG), [4]),
        "max_unpool2d_dims": lambda m: aten.max_unpool2d(m.ones(2, 2), m.ones(2, 2, dtype=LONG), [4, 4]),
        "reflection_pad2d": lambda m: aten.reflection_pad2d(m.ones(1, 1, 4, 4), [1, 1]),
        "reflection_pad2d_large": lambda m: aten.reflection_pad2d(m.ones(1, 4, 4), [1, 1, 5, 1]),
        "segment_reduce": lambda m: torch.segment_reduce(m.ones(()), "sum", lengths=m.ones(2, dtype=LONG)),
        "cholesky_inverse": lambda m: torch.cholesky_inverse(m.ones(3, 4)),
        "embedding_dense_backward": lambda m: aten.embedding_dense_backward(
            m.ones(3, 4), m.ones(4, dtype=LONG), 5, -1, False
        ),
        "fake_quantize_axis": lambda m: torch.fake_quantize_per_channel_affine(
            m.ones(3, 4), m.ones(3), m.ones(3, dtype=torch.int32), 7, 0, 255
        ),
        "fold_blocks": lambda m: F.fold(m.ones(1, 8, 8), (4, 4), 2),
        "group_norm": lambda m: torch.native_group_norm(m.ones(2, 4, 3), None, None, 2, 4, 3, 0, 1e-5),
        "group_norm_batch": lambda m: torch.native_group_norm(m.ones(2, 4, 3), None, None, 3, 4, 3, 2, 1e-5),
        "group_norm_weight": lambda m: torch.native_group_norm(m.ones(2, 4, 3), m.ones(3), None, 2, 4, 3, 2, 1e-5),
        "histogram_weight": lambda m: torch.histogram(m.ones(3), 3, weight=m.ones(4)),
        "int_mm": lambda m: torch._int_mm(m.ones(20, 16, dtype=INT8), m.ones(8, 8, dtype=INT8)),
        "max_unpool3d_stride": lambda m: aten.max_unpool3d(
            m.ones(1, 1, 2, 2, 2), m.ones(1, 1, 2, 2, 2, dtype=LONG), [4, 4, 4], [0, 2, 2], [0, 0, 0]
        ),
        "nll_loss2d": lambda m: F.nll_loss(m.ones(2, 3, 4, 4), m.ones(2, 4, 5, dtype=LONG)),
        "nll_loss2d_weight": lambda m: F.nll_loss(m.ones(2, 3, 4, 4), m.ones(2, 4, 4, dtype=LONG), m.ones(4)),
        "ormqr": lambda m: torch.ormqr(m.ones(3, 3), m.ones(4), m.ones(3, 3)),
        "solve_triangular": lambda m: torch.linalg.solve_triangular(m.ones(3, 3), m.ones(4, 3), upper=True),
        "standard_gamma_grad": lambda m: aten._standard_gamma_grad(m.ones(3), m.ones(4)),
        "weight_int8pack_mm": lambda m: torch._weight_int8pack_mm(
            m.ones(4, 32, dtype=torch.bfloat16), m.ones(16, 16, dtype=INT8), m.ones(16, dtype=torch.bfloat16)
        ),
        "unfold_dilation": lambda m: F.unfold(m.ones(1, 8, 9, 9), 2, dilation=0),
        "unfold_stride": lambda m: F.unfold(m.ones(1, 8, 9, 9), 2, stride=0),
        "unfold_kernel": lambda m: F.unfold(m.ones(1, 8, 9, 9), 20),
        "unfold_length": lambda m: aten.im2col(m.ones(1, 8, 9, 9), [2], [1, 1], [0, 0], [1, 1]),
    }
)
def test_sizes_and_options_that_a_kernel_refuses(call):
    expect_the_error_of_cpu(call)


def ctc_loss(m, targets, input_lengths, target_lengths):
    return aten._ctc_loss(m.ones(5, 2, 4), targets, input_lengths, target_lengths, 0, False)


def embedding_bag(m, mode, weights):
    indices, offsets = m.zeros(4, dtype=LONG), m.tensor([0, 2])
    return torch.embedding_bag(m.ones(5, 3), indices, offsets, False, mode, False, weights)


def spatial(m, dims):
    """An input and a weight for a convolution of `dims` dimensions, and the sizes of its kernel."""
    return m.ones(1, 1, *[4] * dims), m.ones(1, 1, *[2] * dims), [2] * dims


@cases(
    {
        "conv2d_stride": lambda m: aten._slow_conv2d_forward(*spatial(m, 2), None, [0, 0], [0, 0]),
        "conv2d_strides": lambda m: aten._slow_conv2d_forward(*spatial(m, 2), None, [1], [0, 0]),
        "conv2d_paddings": lambda m: aten._slow_conv2d_forward(*spatial(m, 2), None, [1, 1], [0]),
        "conv3d_stride": lambda m: torch._C._nn.slow_conv3d(*spatial(m, 3), None, [0, 0, 0]),
        "conv3d_strides": lambda m: aten.slow_conv3d_forward(*spatial(m, 3), None, [1], [0, 0, 0]),
        "conv3d_paddings": lambda m: aten.slow_conv3d_forward(*spatial(m, 3), None, [1, 1, 1], [0]),
        "dilated2d_stride": lambda m: torch._C._nn.slow_conv_dilated2d(*spatial(m, 2), None, [0, 0]),
        "dilated2d_dilation": lambda m: aten.slow_conv_dilated2d(*spatial(m, 2), None, [1, 1], [0, 0], [0, 0]),
        "dilated2d_dilations": lambda m: aten.slow_conv_dilated2d(*spatial(m, 2), None, [1, 1], [0, 0], [1]),
        "dilated3d_stride": lambda m: torch._C._nn.slow_conv_dilated3d(*spatial(m, 3), None, [0, 0, 0]),
        "transpose3d_stride": lambda m: torch._C._nn.slow_conv_transpose3d(*spatial(m, 3), None, [0, 0, 0]),
        "transpose3d_strides": lambda m: aten.slow_conv_transpose3d(*spatial(m, 3), None, [1]),
        "transpose3d_dims": lambda m: aten.slow_conv_transpose3d(m.ones(4), *spatial(m, 3)[1:], None, [1, 1, 1]),
    }
)
def test_strides_and_sizes_of_convolutions(call):
    expect_the_error_of_cpu(call)


def convolution(m, stride, padding=(0, 0), dilation=(1, 1), transposed=False, output_padding=(0, 0), groups=1):
    x, weight, _ = spatial(m, 2)
    arguments = (stride, padding, dilation, transposed, output_padding, groups)
    return aten.convolution_overrideable(x, weight, None, *arguments)


@cases(
    {
        "convolution_stride": lambda m: convolution(m, [0, 0]),
        "convolution_strides": lambda m: convolution(m, [1]),
        "convolution_padding": lambda m: convolution(m, [1, 1], padding=[0]),
        "convolution_dilation": lambda m: convolution(m, [1, 1], dilation=[1]),
        "convolution_output_padding": lambda m: convolution(m, [1, 1], transposed=True, output_padding=[]),
        "convolution_groups": lambda m: convolution(m, [1, 1], groups=0),
        "fft_r2c": lambda m: aten._fft_r2c(m.ones(4), [], 0, True),
        "fft_r2c_scalar": lambda m: aten._fft_r2c(m.ones(()), [0], 0, True),
        "fft_c2r": lambda m: aten._fft_c2r(m.ones(4, dtype=torch.complex64), [], 0, 4),
        "fft_c2r_size": lambda m: aten._fft_c2r(m.ones(4, dtype=torch.complex64), [0], 0, 0),
        "fft_c2c_twice": lambda m: aten._fft_c2c(m.ones(4, 4, dtype=torch.complex64), [0, -2], 0, True),
        "pdist": lambda m: aten._pdist_forward(m.ones(()), 2.0),
        "multi_head_attention": lambda m: aten._native_multi_head_attention(
            *[m.ones(3)] * 3, 3, 1, m.ones(9, 3), m.ones(9), m.ones(3, 3), m.ones(3)
        ),
    }
)
def test_sizes_that_only_npu_words(call):
    with pytest.raises((RuntimeError, IndexError)):
        call(Maker("npu"))
    torch.npu.synchronize()


@cases(
    {
        "div": lambda m, late: torch.div(
            *[m.ones(3, dtype=torch.complex64)] * 2, rounding_mode="floor" if late else None
        ),
        "scatter_reduce": lambda m, late: m.ones(3, dtype=BOOL).scatter_reduce(
            0, m.zeros(3, dtype=LONG), m.ones(3, dtype=BOOL), "mean" if late else "sum"
        ),
    }
)
def test_options_that_decide_about_dtypes(call):
    """A rehearsal of one option says nothing about another."""
    for late in (False, True, False, True):
        one = functools.partial(call, late=late)
        assert outcome(one, "npu") == outcome(one, "cpu")
        torch.npu.synchronize()


def test_an_error_of_sizes_does_not_hide_one_of_dtypes():
    def product(m, columns):
        return m.ones(4, 4).ormqr(m.ones(columns), m.ones(4, 4, dtype=torch.float64))

    expect_the_error_of_cpu(functools.partial(product, columns=3))
    expect_the_error_of_cpu(functools.partial(product, columns=4))


@cases(
    {
        "bernoulli": lambda m: torch.bernoulli(m.ones(3), 2.0),
        "bernoulli_dtype": lambda m: torch.bernoulli(m.ones(3, dtype=LONG)),
        "binomial": lambda m: torch.binomial(m.ones(3), m.ones(3, dtype=torch.float64)),
        "binomial_dtype": lambda m: torch.binomial(m.ones(3, dtype=LONG), m.ones(3, dtype=LONG)),
        "cauchy": lambda m: m.ones(3).cauchy_(0, -1),
        "cauchy_dtype": lambda m: m.ones(3, dtype=LONG).cauchy_(),
        "dirichlet_dtype": lambda m: torch._sample_dirichlet(m.ones(3, dtype=LONG)),
        "dropout": lambda m: torch.native_dropout(m.ones(3), 2.0, True),
        "dropout_dtype": lambda m: torch.native_dropout(m.ones(3, dtype=LONG), 0.5, True),
        "exponential": lambda m: m.ones(3).exponential_(0),
        "exponential_dtype": lambda m: m.ones(3, dtype=LONG).exponential_(),
        "gamma_dtype": lambda m: torch._standard_gamma(m.ones(3, dtype=LONG)),
        "geometric": lambda m: m.ones(3).geometric_(0),
        "geometric_dtype": lambda m: m.ones(3, dtype=BOOL).geometric_(0.5),
        "log_normal": lambda m: m.ones(3).log_normal_(0, -1),
        "log_normal_dtype": lambda m: m.ones(3, dtype=LONG).log_normal_(),
        "multinomial": lambda m: torch.multinomial(m.ones(3), 4),
        "multinomial_dtype": lambda m: torch.multinomial(m.ones(3, dtype=LONG), 1),
        "multinomial_out": lambda m: torch.multinomial(m.ones(3), 2, out=m.empty(2)),
        "normal": lambda m: torch.normal(m.ones(3), -1.0),
        "normal_sizes": lambda m: torch.normal(m.ones(3), m.ones(4)),
        "normal_complex": lambda m: torch.normal(m.ones(3), m.ones(3, dtype=torch.complex64)),
        "normal_dtype": lambda m: torch.normal(m.ones(3, dtype=LONG), m.ones(3)),
        "normal_out": lambda m: torch.normal(m.ones(3), m.ones(3), out=m.empty(3, dtype=LONG)),
        "normal_": lambda m: m.ones(3, dtype=LONG).normal_(),
        "poisson_dtype": lambda m: torch.poisson(m.ones(3, dtype=LONG)),
        "rand_out": lambda m: torch.rand(3, out=m.empty(3, dtype=LONG), device=m.device),
        "randint": lambda m: torch.randint(0, 300, (2,), dtype=INT8, device=m.device),
        "random_to": lambda m: m.ones(3, dtype=INT8).random_(0, 300),
        "random_from": lambda m: m.ones(3, dtype=INT8).random_(-300, 3),
        "random_dtype": lambda m: m.ones(3, dtype=torch.complex64).random_(),
        "randperm_dtype": lambda m: torch.randperm(3, dtype=torch.complex64, device=m.device),
        "randperm_half": lambda m: torch.randperm(70000, dtype=HALF, device=m.device),
        "rrelu": lambda m: torch.rrelu(m.ones(3), 2, 1, True),
        "rrelu_nan": lambda m: torch.rrelu(m.ones(3), float("nan"), 1, True),
        "rrelu_dtype": lambda m: torch.rrelu(m.ones(3, dtype=LONG), 0.1, 1, True),
        "uniform": lambda m: m.ones(3).uniform_(2, 1),
    }
)
def test_parameters_of_distributions(call):
    expect_the_error_of_cpu(call)


@cases(
    {
        "bernoulli": lambda m: torch.bernoulli(m.tensor([0.5, 2.0])),
        "bernoulli_": lambda m: m.ones(2).bernoulli_(m.tensor([0.5, -2.0])),
        "normal": lambda m: torch.normal(m.ones(3), -m.ones(3)),
        "normal_std": lambda m: torch.normal(1.0, -m.ones(3)),
        "poisson": lambda m: torch.poisson(-m.ones(3)),
        "multinomial": lambda m: torch.multinomial(m.zeros(3), 2),
    }
)
def test_parameters_on_the_device_are_checked_there(call):
    _, text = outcome(call, "cpu")
    call(Maker("npu"))
    with pytest.raises(RuntimeError, match=re.escape(text)):
        torch.npu.synchronize()


def test_resizing_an_out_tensor_of_a_distribution_warns():
    out = torch.ones(1, device="npu")
    with pytest.warns(UserWarning, match="was resized"):
        torch.normal(torch.ones(3, device="npu"), 1.0, out=out)
    assert out.shape == (3,)


def test_a_storage_that_cannot_grow_leaves_the_tensor_as_it_was():
    x = torch.arange(4.0, device="npu").reshape(2, 2)
    with pytest.raises(torch.OutOfMemoryError):
        x.resize_(10**12)
    with pytest.raises(torch.OutOfMemoryError):
        x.set_(x.untyped_storage(), 0, (10**12,), (1,))
    assert x.shape == (2, 2) and x.tolist() == [[0.0, 1.0], [2.0, 3.0]]


def test_pivots_are_safe_in_a_rehearsal():
    a = torch.randn(2, 5, 5, generator=torch.Generator().manual_seed(1))
    b = torch.ones(2, 5, 1)
    factors = torch.linalg.lu_factor(a)
    expected = torch.linalg.lu_solve(*factors, b)
    torch.testing.assert_close(torch.linalg.lu_solve(*(f.npu() for f in factors), b.npu()).cpu(), expected)
    for actual, part in zip(torch.lu_unpack(*(f.npu() for f in factors)), torch.lu_unpack(*factors), strict=True):
        torch.testing.assert_close(actual.cpu(), part)


def test_mode_into_given_tensors():
    x = torch.tensor([[1.0, 2.0, 2.0], [3.0, 3.0, 1.0]])
    values, indices = torch.empty(0, device="npu"), torch.empty(0, dtype=LONG, device="npu")
    torch.mode(x.npu(), 1, out=(values, indices))
    assert values.tolist() == [2.0, 3.0] and x.gather(1, indices.cpu()[:, None])[:, 0].tolist() == [2.0, 3.0]


def test_refusing_does_not_wait_for_the_device():
    x = torch.ones(3, dtype=torch.bool, device="npu")
    with Gate(), pytest.raises(NotImplementedError):
        x.abs()


def test_observers_see_operators_once_whoever_runs_their_tasks():
    x = torch.randn(1, 2, 8, 8, device="npu")
    weight = torch.randn(2, 2, 3, 3, device="npu")
    with profile(activities=[ProfilerActivity.CPU]) as recorded:
        for _ in range(5):
            F.conv2d(x, weight)
            torch.npu.synchronize()
    counts = {event.key: event.count for event in recorded.key_averages()}
    assert counts["aten::convolution"] == 5
    assert not [key for key in counts if "slow_conv2d" in key or "mkldnn" in key]
