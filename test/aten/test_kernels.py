"""The kernel route: bit-equal to the CPU, and taken where it should be."""

from __future__ import annotations

import operator
from collections.abc import Callable

import pytest
import torch

FLOATING = [torch.float32, torch.float64, torch.bfloat16, torch.float16]
INTEGRAL = [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8]
BITS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
SHAPES = [(), (1,), (16,), (1003,), (7, 5, 3), (2, 2, 2, 2, 2, 2), (300, 1001)]


def values(shape: tuple[int, ...], dtype: torch.dtype, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    if not dtype.is_floating_point:
        return torch.randint(-(2**62), 2**62, shape, generator=generator).to(dtype)
    tensor = (torch.randn(shape, generator=generator) * 3).to(dtype)
    special = torch.tensor([float("nan"), 0.0, -0.0, float("inf"), -float("inf"), 1e-40, 65504.0], dtype=dtype)
    flat = tensor.reshape(-1)
    if flat.numel() > 100:
        flat[3 : 3 + len(special)] = special
        flat[-len(special) :] = special.flip(0)
    return tensor


def assert_same_bits(actual: torch.Tensor, expected: torch.Tensor) -> None:
    actual = actual.cpu()
    assert (actual.dtype, actual.shape, actual.stride()) == (expected.dtype, expected.shape, expected.stride())
    same = actual.view(torch.int8) == expected.view(torch.int8) if expected.dtype == torch.bool else None
    if same is None:
        size = expected.element_size()
        same = actual.view(BITS[size]) == expected.view(BITS[size]) if size <= 8 else actual == expected
    if expected.is_floating_point():
        same |= actual.isnan() & expected.isnan()
    assert bool(same.all()), f"{int((~same).sum())} of {same.numel()} elements differ"


def route_of(name: str, run: Callable[[], object]) -> dict[str, int]:
    torch.npu.op_stats(reset=True)
    run()
    return {key: count for key, count in torch.npu.op_stats()[name].items() if count}


def check(run: Callable[..., torch.Tensor], *tensors: torch.Tensor) -> None:
    assert_same_bits(run(*(t.to("npu") for t in tensors)), run(*tensors))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", FLOATING + INTEGRAL, ids=str)
def test_arithmetic_has_the_bits_of_the_cpu(dtype: torch.dtype, shape: tuple[int, ...]) -> None:
    a, b = values(shape, dtype, 1), values(shape, dtype, 2)
    for op in (operator.add, operator.sub, operator.mul):
        check(op, a, b)
    alphas: tuple[float, ...] = (2, -1, 0.3) if dtype.is_floating_point else (3, -1)
    if dtype in (torch.bfloat16, torch.float16):
        alphas = (-1,)  # others depend on where the CPU's vector loops end
    for alpha in alphas:
        check(lambda x, y, alpha=alpha: torch.add(x, y, alpha=alpha), a, b)
        check(lambda x, y, alpha=alpha: torch.sub(x, y, alpha=alpha), a, b)
    for op in (torch.relu, torch.neg):
        check(op, a)
    if dtype.is_floating_point:
        check(operator.truediv, a, b)
        check(torch.exp, a)


@pytest.mark.parametrize("dtype", FLOATING + INTEGRAL, ids=str)
def test_numbers_follow_the_cpu(dtype: torch.dtype) -> None:
    a = values((1003,), dtype)
    check(lambda x: x * True + True, a)
    with pytest.raises(RuntimeError, match="with a bool tensor is not supported"):
        a.to("npu") - True
    for number in (2, -7, 300) + ((0.1, 1e6, float("nan")) if dtype.is_floating_point else ()):
        for op in (operator.add, operator.sub, operator.mul):
            check(lambda x, op=op, number=number: op(x, number), a)
        check(lambda x, number=number: torch.add(x, number, alpha=3), a)
        check(lambda x, number=number: x / number, a)
        check(lambda x, number=number: number - x, a)
    if not dtype.is_floating_point:
        check(lambda x: x * 0.5, a)  # promotes
        with pytest.raises(RuntimeError, match="alpha must not be a floating point number"):
            torch.add(a.to("npu"), a.to("npu"), alpha=0.5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64], ids=str)
def test_in_place_and_out_forms(dtype: torch.dtype) -> None:
    a, b = values((300, 7), dtype, 1), values((300, 7), dtype, 2)
    check(lambda x, y: x.clone().add_(y), a, b)
    check(lambda x, y: x.clone().mul_(y), a, b)
    check(lambda x: x.clone().sub_(2), a)
    check(lambda x: x.clone().relu_(), a)
    check(lambda x, y: torch.mul(x, y, out=torch.empty_like(x)), a, b)
    check(lambda x, y: torch.add(x, y, out=y), a, b)
    npu = a.to("npu")
    assert npu.add_(1) is npu


def test_dense_layouts_keep_their_strides() -> None:
    a, b = values((20, 30), torch.float32, 1).t(), values((20, 30), torch.float32, 2).t()
    check(operator.add, a, b)
    check(torch.relu, a)
    image = values((2, 3, 4, 5), torch.float32).contiguous(memory_format=torch.channels_last)
    check(lambda x: x * 2.0, image)


@pytest.mark.parametrize(
    ("name", "run"),
    [
        ("aten::add.Tensor", lambda a: a + a),
        ("aten::sub.Tensor", lambda a: a - 2),
        ("aten::mul.Tensor", lambda a: a * 2.0),
        ("aten::div.Tensor", lambda a: a / a),
        ("aten::add_.Tensor", lambda a: a.add_(a)),
        ("aten::mul.out", lambda a: torch.mul(a, a, out=torch.empty_like(a))),
        ("aten::relu", torch.relu),
        ("aten::neg", torch.neg),
        ("aten::exp", torch.exp),
        ("aten::fill_.Scalar", lambda a: a.fill_(3)),
        ("aten::zero_", lambda a: a.zero_()),
        ("aten::mm", lambda a: a.view(4, 4) @ a.view(4, 4).t()),
        ("aten::bmm", lambda a: torch.bmm(a.new_ones(2, 8, 8), a.new_ones(2, 8, 8))),
        ("aten::addmm", lambda a: torch.addmm(a[:4], a.view(4, 4), a.view(4, 4))),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_hot_cases_take_the_kernel_route(name: str, run: Callable[[torch.Tensor], torch.Tensor]) -> None:
    a = torch.ones(16, device="npu")
    assert route_of(name, lambda: run(a)) == {"kernel": 1}


@pytest.mark.parametrize(
    "strides", [((2, 1), (1, 2)), ((1, 2), (1, 1)), ((2, 1, 3), (3, 7, 1)), ((1, 1), (5, 4))], ids=str
)
def test_strides_of_dimensions_of_one_element_are_those_of_the_cpu(strides: tuple) -> None:
    calls = (
        lambda x: x * 3, lambda x: x / 2, lambda x: x + 1, lambda x: x - x, lambda x: x * x, torch.exp, torch.neg,
        torch.relu, lambda x: x + 2 * x, torch.clone, lambda x: x.to(torch.float64), lambda x: x.sum(0, keepdim=True),
    )  # fmt: skip
    x = values((12,), torch.float32)
    for call in calls:
        assert call(x.to("npu").as_strided(*strides)).stride() == call(x.as_strided(*strides)).stride()


def test_cases_that_are_not_hot_still_equal_the_cpu() -> None:
    a = values((8, 9), torch.float32)
    check(lambda x: x[:, ::2] + x[:, ::2], a)  # gaps
    check(lambda x: x + x[0], a)  # broadcast
    check(lambda x: x + x.to(torch.float64), a)  # promotion
    check(lambda x: x * torch.tensor(2.5), a)  # a CPU tensor that is no Python number
    check(lambda x: x[:0] + x[:0], a)  # nothing
    z = torch.complex(a, a)
    check(lambda x: torch.view_as_real((x.conj() * 2).resolve_conj()), z)


def test_overlap_is_refused_as_on_the_cpu() -> None:
    memory = torch.ones(20, device="npu")
    with pytest.raises(RuntimeError, match="unsupported operation"):
        torch.add(memory[:10], memory[:10], out=memory[1:11])
    with pytest.raises(RuntimeError, match="unsupported operation"):
        memory[1:11].copy_(memory[:10])


@pytest.mark.parametrize("source", [*FLOATING, *INTEGRAL, torch.bool], ids=str)
@pytest.mark.parametrize("target", [*FLOATING, *INTEGRAL, torch.bool], ids=str)
def test_casts_have_the_bits_of_the_cpu(source: torch.dtype, target: torch.dtype) -> None:
    a = values((1003,), torch.float32 if source.is_floating_point else torch.int64).to(source)
    if source.is_floating_point and not target.is_floating_point:
        a = torch.nan_to_num(a, 0.0, 100.0, -100.0).clamp(-100, 100)  # outside, the result is not defined
        a = a.abs() if target == torch.uint8 else a
    check(lambda x: x.to(target, copy=True), a)


@pytest.mark.parametrize("dtype", [*FLOATING, *INTEGRAL, torch.bool, torch.complex64, torch.complex128], ids=str)
def test_fill_writes_what_the_cpu_writes(dtype: torch.dtype) -> None:
    for number in (0, 1, 7, True, 2.5) + ((1 + 2j,) if dtype.is_complex else ()):
        for shape in ((), (1003,), (5, 7)):
            actual = torch.empty(shape, dtype=dtype, device="npu").fill_(number).cpu()
            assert torch.equal(actual, torch.empty(shape, dtype=dtype).fill_(number))
    strided = torch.zeros(6, 4, dtype=dtype, device="npu")
    strided[:, ::2].fill_(1)
    assert torch.equal(strided.cpu()[0], torch.tensor([1, 0, 1, 0], dtype=dtype))


def test_fill_refuses_what_the_cpu_refuses() -> None:
    with pytest.raises(RuntimeError, match="cannot be converted to type int8_t without overflow"):
        torch.zeros(4, dtype=torch.int8, device="npu").fill_(300)
    with pytest.raises(RuntimeError, match="cannot be converted to type float without overflow"):
        torch.zeros(4, device="npu").fill_(1 + 2j)


MATRICES = {
    "row-major": lambda m, n: torch.randn(m, n),
    "transposed": lambda m, n: torch.randn(n, m).t(),
    "rows with gaps": lambda m, n: torch.randn(m, n + 3)[:, :n],
    "every other row": lambda m, n: torch.randn(2 * m, n)[::2],
}


@pytest.mark.parametrize("left", MATRICES)
@pytest.mark.parametrize("right", MATRICES)
@pytest.mark.parametrize("sizes", [(1, 1, 1), (3, 5, 4), (1, 300, 200), (300, 1, 7), (200, 190, 210)], ids=str)
def test_matrix_products_of_every_layout(left: str, right: str, sizes: tuple[int, int, int]) -> None:
    torch.manual_seed(0)
    m, n, k = sizes
    a, b = MATRICES[left](m, k), MATRICES[right](k, n)
    bias = torch.randn(n)
    npu_a, npu_b = a.to("npu"), b.to("npu")
    for run in (
        torch.mm,
        lambda x, y: torch.addmm(bias.to(x.device), x, y),
        lambda x, y: torch.addmm(torch.ones(m, n, device=x.device), x, y, beta=0.5, alpha=2),
        lambda x, y: torch.mm(x, y, out=torch.empty(m, n, device=x.device)),
    ):
        torch.testing.assert_close(run(npu_a, npu_b).cpu(), run(a, b), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_batched_products_and_linear(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    a, b = torch.randn(6, 30, 40, dtype=dtype), torch.randn(6, 20, 40, dtype=dtype)
    weight, bias = torch.randn(50, 40, dtype=dtype), torch.randn(50, dtype=dtype)
    for run in (
        lambda x, y, w, c: torch.bmm(x, y.transpose(1, 2)),
        lambda x, y, w, c: torch.bmm(x.transpose(0, 1).contiguous().transpose(0, 1), y.mT),
        lambda x, y, w, c: torch.nn.functional.linear(x, w, c),
        lambda x, y, w, c: x[0].clone().addmm_(x[0] @ w.t(), w),
    ):
        npu = (t.to("npu") for t in (a, b, weight, bias))
        torch.testing.assert_close(run(*npu).cpu(), run(a, b, weight, bias), rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("sizes", [(4, 8, 12), (4, 8, 4), (64, 8, 1), (20, 20, 1), (1, 64, 64), (20, 20, 20)])
def test_batched_products_are_those_of_the_cpu_to_the_last_bit(sizes: tuple[int, int, int]) -> None:
    m, k, n = sizes
    generator = torch.Generator().manual_seed(0)
    a, b = torch.randn(6, m, k, generator=generator), torch.randn(6, k, n, generator=generator)
    assert torch.equal(torch.bmm(a.to("npu"), b.to("npu")).cpu(), torch.bmm(a, b))


@pytest.mark.parametrize("strides", [((5, 1), (5, 1)), ((1, 3), (1, 3)), ((5, 1), (1, 5))], ids=str)
def test_products_of_one_element_are_those_of_the_cpu_to_the_last_bit(strides: tuple) -> None:
    values = torch.randn(2, 15, generator=torch.Generator().manual_seed(0))

    def products(of: torch.Tensor) -> torch.Tensor:
        row, column = of[0].as_strided((1, 3), strides[0]), of[1].as_strided((3, 1), strides[1], 15)
        return torch.cat((torch.mm(row, column), torch.addmm(torch.ones_like(column[:1]), row, column))).cpu()

    assert torch.equal(products(values.to("npu")), products(values))


@pytest.mark.parametrize("strides", [(2, 2), (2, 100), (7, 1), (1, 7), (3, 1), (1, 1)], ids=str)
def test_products_with_strided_vectors_are_those_of_the_cpu_to_the_last_bit(strides: tuple[int, int]) -> None:
    memory = torch.randn(400, generator=torch.Generator().manual_seed(0))
    matrix = torch.randn(3, 50, generator=torch.Generator().manual_seed(1))

    def products(of: torch.Tensor, by: torch.Tensor) -> list[torch.Tensor]:
        column, row = of.as_strided((50, 1), strides), of.as_strided((1, 50), strides[::-1])
        found = [by @ column, row @ by.t(), column @ by[:, :1].t(), torch.bmm(by[None], column[None])]
        return [result.cpu() for result in (*found, torch.addmm(by[:, :1], by, column))]

    for actual, expected in zip(products(memory.to("npu"), matrix.to("npu")), products(memory, matrix), strict=True):
        assert torch.equal(actual, expected)


def test_addmm_with_beta_zero_does_not_read_self() -> None:
    nan = torch.full((3, 3), float("nan"), device="npu")
    ones = torch.ones(3, 3, device="npu")
    assert torch.equal(torch.addmm(nan, ones, ones, beta=0).cpu(), torch.full((3, 3), 3.0))


def test_products_are_the_same_in_every_run() -> None:
    a = torch.randn(257, 300, device="npu")
    first = a @ a.t()
    assert all(torch.equal(first.cpu(), (a @ a.t()).cpu()) for _ in range(20))


def test_results_live_on_the_device_of_their_operands() -> None:
    a = torch.ones(16, device="npu:1")
    assert (a + a).device == torch.device("npu:1")
    assert (a.view(4, 4) @ a.view(4, 4)).device == torch.device("npu:1")
    assert torch.equal((a * 2.0 + a).cpu(), torch.full((16,), 3.0))
