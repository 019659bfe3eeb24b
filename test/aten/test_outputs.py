"""Outputs whose layout or size a CPU kernel treats in a way of its own."""

from __future__ import annotations

import warnings

import pytest
import torch

from torch_npu_lite.testing import Gate

CHANNELS_LAST = {4: torch.channels_last, 5: torch.channels_last_3d}


@pytest.mark.parametrize(("mode", "dims"), [("replicate", 4), ("replicate", 5), ("reflect", 4), ("reflect", 5)])
def test_padding_of_channels_last(mode, dims):
    images = torch.randn(2, 3, *[5] * (dims - 2)).contiguous(memory_format=CHANNELS_LAST[dims])
    padding = [1, 2] * (dims - 2)
    expected = torch.nn.functional.pad(images, padding, mode)
    actual = torch.nn.functional.pad(images.to("npu"), padding, mode)
    assert actual.stride() == expected.stride()
    assert torch.equal(actual.cpu(), expected)


@pytest.mark.parametrize(("mode", "dims"), [("replicate", 4), ("replicate", 5), ("reflect", 4), ("reflect", 5)])
def test_gradients_of_padded_channels_last(mode, dims):
    images = torch.randn(2, 3, *(4, 5, 6)[: dims - 2]).contiguous(memory_format=CHANNELS_LAST[dims])

    def gradient(device: str) -> torch.Tensor:
        x = images.to(device).requires_grad_()
        padded = torch.nn.functional.pad(x, [1, 1] * (dims - 2), mode)
        weights = torch.arange(padded.numel(), dtype=torch.float32).reshape(padded.shape)
        return torch.autograd.grad(padded, x, weights.to(device))[0]

    actual, expected = gradient("npu"), gradient("cpu")
    assert actual.stride() == expected.stride()
    assert torch.equal(actual.cpu(), expected)


@pytest.mark.parametrize("function", [torch.tril, torch.triu])
def test_triangles_into_transposed_batches(function):
    matrices = torch.randn(3, 3, 5, 5)
    memory = torch.zeros(3 * 3 * 5 * 5 + 100, device="npu")
    out = memory[:-100].view(5, 5, 3, 3).permute(3, 2, 1, 0)
    function(matrices.to("npu"), out=out)
    assert torch.equal(out.cpu(), function(matrices))
    assert memory[-100:].count_nonzero().item() == 0


@pytest.mark.parametrize("sizes", [((3, 5), (4,)), ((3, 5), (3, 3, 5)), ((3, 1), (3, 5))])
@pytest.mark.parametrize("source", ["cpu", "npu"])
def test_copies_that_do_not_fit_are_refused_in_the_words_of_the_cpu(sizes, source):
    texts = []
    for device, other in (("cpu", "cpu"), ("npu", source)):
        with pytest.raises(RuntimeError) as refused:
            torch.zeros(sizes[0], device=device).copy_(torch.zeros(sizes[1], device=other))
        texts.append(str(refused.value).partition("\n")[0])
    assert texts[0] == texts[1]


def test_a_complex_source_of_a_real_copy_is_warned_of():
    torch.set_warn_always(True)
    try:
        with pytest.warns(UserWarning, match="Casting complex values to real discards the imaginary part"):
            torch.zeros(3, device="npu").copy_(torch.ones(3, dtype=torch.complex64, device="npu"))
    finally:
        torch.set_warn_always(False)


@pytest.mark.parametrize("function", [torch.sum, torch.mean, torch.prod, torch.cumsum, torch.cumprod, torch.logsumexp])
@pytest.mark.parametrize("way", ["out", "dtype"])
def test_imaginary_parts_that_a_reduction_drops_are_warned_of_at_the_call(function, way):
    if way == "dtype" and function is torch.logsumexp:
        pytest.skip("it has no dtype")
    numbers = torch.randn(3, 4, dtype=torch.complex64)
    on_npu = numbers.to("npu")

    def call(x: torch.Tensor) -> tuple[list[str], torch.Tensor]:
        options = {"out": torch.empty(0, device=x.device)} if way == "out" else {"dtype": torch.float32}
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            result = function(x, 1, **options)
        return sorted({str(warning.message).partition(" (")[0] for warning in caught}), result

    torch.set_warn_always(True)
    try:
        expected, wanted = call(numbers)
        with Gate(torch.npu.default_stream()):  # nothing runs yet
            actual, found = call(on_npu)
    finally:
        torch.set_warn_always(False)
    assert actual == expected
    assert torch.equal(found.cpu(), wanted)


COMPLEX = torch.complex(torch.arange(12.0).reshape(3, 4), torch.ones(3, 4))


WARNING = {
    "eq": (lambda x, out: torch.eq(x, x, out=out), COMPLEX, torch.zeros(3, 4, dtype=torch.int32)),
    "norm": (lambda x: torch.linalg.vector_norm(x, 0, dim=1), COMPLEX[:, :1]),
    "index_reduce": (
        lambda x, index, source: x.index_reduce(0, index, source, "amax"),
        torch.ones(3, 4), torch.tensor([0, 2]), torch.ones(2, 4),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WARNING)
def test_what_a_kernel_warns_of_is_said_at_each_call(name):
    function, *arguments = WARNING[name]
    on_npu = [tensor.to("npu") for tensor in arguments]

    def said(tensors: list[torch.Tensor]) -> list[str]:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            function(*tensors)
        return [str(warning.message).partition(" (")[0] for warning in caught]

    torch.set_warn_always(True)
    try:
        expected = said(arguments)
        assert expected
        for _ in range(2):
            with Gate(torch.npu.default_stream()):  # nothing runs yet
                assert said(on_npu) == expected
            torch.npu.synchronize()
            assert said(on_npu) == expected  # and where the task runs at once, not twice
    finally:
        torch.set_warn_always(False)


@pytest.mark.parametrize("function", [torch.var, torch.std, torch.var_mean, torch.std_mean])
def test_a_kernel_warns_of_sizes_after_calls_that_were_well(function):
    def said(x: torch.Tensor, correction: int) -> int:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            function(x, dim=1, correction=correction)
        return len(caught)

    x = torch.ones(3, 5)
    on_npu = x.to("npu")
    with Gate(torch.npu.default_stream()):
        for correction in (1, 5, 1, 5):
            assert said(on_npu, correction) == said(x, correction)


@pytest.mark.parametrize(
    "call",
    [
        pytest.param(lambda x: x[torch.tensor([1, 0, 1], dtype=torch.uint8, device=x.device)], id="mask of bytes"),
        pytest.param(lambda x: x.scatter(0, torch.tensor([0], device=x.device), x[:1], reduce="add"), id="scatter"),
    ],
)
def test_what_the_host_warns_of_is_not_said_again_by_the_kernel(call):
    said = []
    torch.set_warn_always(True)
    try:
        for device in ("cpu", "npu"):
            x = torch.ones(3, device=device)
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                call(x)
            said.append(len(caught))
    finally:
        torch.set_warn_always(False)
    assert said == [1, 1]


EMPTY = {"transposed": torch.empty(0, 3).t(), "strided": torch.empty_strided((3, 0), (2, 2))}


@pytest.mark.parametrize("name", EMPTY)
@pytest.mark.parametrize("dtype", [torch.float32, torch.complex64, torch.int64])
@pytest.mark.parametrize("function", [
    torch.abs, torch.angle, torch.fft.fftshift, torch.frexp, torch.isinf, torch.isnan, torch.logical_not, torch.logit,
    torch.nan_to_num, torch.nn.functional.hardswish, torch.sgn,
])  # fmt: skip
def test_results_without_elements_have_the_strides_of_the_cpu(function, dtype, name):
    shape, stride = EMPTY[name].shape, EMPTY[name].stride()
    results = []
    for device in ("cpu", "npu"):
        try:
            found = function(torch.empty_strided(shape, stride, dtype=dtype, device=device))
        except RuntimeError as error:
            results.append(type(error))
        else:
            results.append([tensor.stride() for tensor in (found if isinstance(found, tuple) else (found,))])
    assert results[0] == results[1]


@pytest.mark.parametrize("function", [torch.max, torch.min])
def test_extremum_of_nothing_into_a_given_output(function):
    results = [function(torch.empty(0, device=d), out=torch.ones(3, device=d)) for d in ("cpu", "npu")]
    assert results[0].equal(results[1].cpu())


@pytest.mark.parametrize("exponent", [0, 1])
def test_powers_of_eight_bit_floats_that_need_no_kernel(exponent):
    numbers = torch.tensor([1.5, -2.0]).to(torch.float8_e5m2)
    assert torch.equal(torch.pow(numbers.to("npu"), exponent).float().cpu(), torch.pow(numbers, exponent).float())


@pytest.mark.parametrize("name", ["mse_loss_backward", "smooth_l1_loss_backward", "huber_loss_backward"])
def test_gradients_of_losses_of_operands_that_broadcast(name):
    options = () if name == "mse_loss_backward" else (1.0,)
    results = []
    for device in ("cpu", "npu"):
        operands = torch.ones(4, device=device), torch.ones(1, 1, device=device), torch.zeros(4, device=device)
        results.append(getattr(torch.ops.aten, name)(*operands, 0, *options))
    assert torch.equal(results[0], results[1].cpu()) and results[0].stride() == results[1].stride()


def gradient_of_prelu(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return torch.ops.aten._prelu_kernel_backward(x + weight, x, weight)[1]


@pytest.mark.parametrize("function", [torch.ops.aten._prelu_kernel, gradient_of_prelu])
@pytest.mark.parametrize("sizes", [((3,), (2, 3)), ((1, 4), (3, 1))])
def test_prelu_of_weights_that_make_it_larger(function, sizes):
    x, weight = map(torch.randn, sizes)
    expected, actual = function(x, weight), function(x.to("npu"), weight.to("npu"))
    assert torch.equal(actual.cpu(), expected) and actual.stride() == expected.stride()


def test_integers_of_elements_that_share_bytes():
    numbers = torch.arange(6.0).reshape(2, 3)
    scales = torch.tensor([0.1, 0.2]), torch.tensor([0.0, 1.0])
    quantized = [
        torch.quantize_per_channel(numbers.to(d), *(scale.to(d) for scale in scales), 0, torch.quint4x2)
        for d in ("cpu", "npu")
    ]
    assert torch.equal(quantized[0].int_repr(), quantized[1].int_repr().cpu())


def test_weights_packed_for_the_cpu_are_refused_with_the_reason():
    with pytest.raises(NotImplementedError, match="move its arguments to the CPU"):
        torch.fbgemm_pack_gemm_matrix_fp16(torch.ones(4, 4, device="npu"))


def test_norms_of_complex_numbers_drop_nothing():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        torch.linalg.vector_norm(torch.ones(3, dtype=torch.complex64, device="npu"))


@pytest.mark.parametrize("exponent", [0, 1, 2, 3, -1, 0.5])
def test_powers_of_complex_numbers_are_the_same_bits(exponent):
    numbers = torch.randn(20, dtype=torch.complex64)
    assert torch.equal((numbers.to("npu") ** exponent).cpu(), numbers**exponent)


def test_channels_last_without_a_batch_is_refused_at_the_call():
    images = torch.randn(2, 3, 6, 5).contiguous(memory_format=torch.channels_last)
    with pytest.raises(RuntimeError, match="Supports only ChannelsLast3d, Contiguous"):
        torch.nn.functional.max_pool3d(images.to("npu"), 3)


@pytest.mark.parametrize("format", [torch.contiguous_format, torch.channels_last])
@pytest.mark.parametrize("training", [False, True])
def test_rrelu_gives_contiguous_results(format, training):
    for x in (torch.randn(2, 3, 4, 5).to(memory_format=format), torch.randn(2, 3, 4, 5).transpose(0, 3)):
        expected = torch.nn.functional.rrelu(x, training=training)
        actual = torch.nn.functional.rrelu(x.to("npu"), training=training)
        assert actual.stride() == expected.stride()
        assert training or torch.equal(actual.cpu(), expected)


@pytest.mark.parametrize("dim", [0, 1, 2, -1])
@pytest.mark.parametrize("sizes", [(0,), (2, 3, 2)])
def test_stack_of_the_lower_level_into_a_given_output(dim, sizes):
    parts = [torch.arange(6.0).reshape(2, 3), torch.ones(2, 3)]
    results = []
    for device in ("cpu", "npu"):
        out = torch.empty(sizes if torch.stack(parts, dim).shape == sizes else 0, device=device)
        results.append(torch.ops.aten._stack.out([part.to(device) for part in parts], dim, out=out))
    assert torch.equal(results[1].cpu(), results[0])
    assert results[1].stride() == results[0].stride()


def test_a_shape_on_the_device_is_read_there():
    x = torch.arange(6.0, device="npu", requires_grad=True)
    y = torch._reshape_from_tensor(x, torch.tensor([2, 3], device="npu"))
    assert y.shape == (2, 3) and y.data_ptr() == x.data_ptr()
    (gradient,) = torch.autograd.grad((y * y).sum(), x)
    assert torch.equal(gradient, 2 * x.detach())
    with pytest.raises(RuntimeError):
        torch._reshape_from_tensor(x.detach(), torch.tensor([5], device="npu"))


HOST_LOOPS = {
    "saturate": lambda d: torch.ops.aten._saturate_weight_to_fp16(torch.ones(2, 3, device=d) * 1e6),
    "quantized weight": lambda d: torch.fbgemm_linear_quantize_weight(torch.ones(2, 3, device=d)),
}


@pytest.mark.parametrize("name", HOST_LOOPS)
def test_loops_of_the_host_read_tensors_of_the_device(name):
    expected, actual = HOST_LOOPS[name]("cpu"), HOST_LOOPS[name]("npu")
    torch.testing.assert_close(actual, expected, rtol=0, atol=0, check_device=False)
