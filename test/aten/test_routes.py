"""Which route a call takes, and that routes agree with the CPU."""

from __future__ import annotations

import pytest
import torch

from torch_npu_lite.testing import Gate


def routes(call) -> dict[str, set[str]]:
    """Operator -> routes that `call` took, after a reset."""
    torch.npu.op_stats(reset=True)
    call()
    found = torch.npu.op_stats()
    return {
        name: {route for route, count in counts.items() if count and route != "host_waits"}
        for name, counts in found.items()
    }


def compare(function, *arguments, rtol=1e-5, atol=1e-6) -> torch.Tensor:
    expected = function(*arguments)
    actual = function(*(a.npu() if isinstance(a, torch.Tensor) else a for a in arguments))
    assert actual.device.type == "npu"
    torch.testing.assert_close(actual.cpu(), expected, rtol=rtol, atol=atol)
    return actual


@pytest.fixture
def a() -> torch.Tensor:
    return torch.randn(6, 8, generator=torch.Generator().manual_seed(1))


@pytest.fixture
def b() -> torch.Tensor:
    return torch.randn(6, 8, generator=torch.Generator().manual_seed(2))


@pytest.mark.parametrize(
    ("name", "route", "call"),
    [
        ("aten::add.Tensor", "kernel", lambda x, y: x + y),
        ("aten::mul_.Tensor", "kernel", lambda x, y: x.mul_(y)),
        ("aten::add.Tensor", "iterator", lambda x, y: x + y[0]),
        ("aten::sin", "iterator", lambda x, y: x.sin()),
        ("aten::lt.Tensor", "iterator", lambda x, y: x < y),
        ("aten::addcmul", "iterator", lambda x, y: torch.addcmul(x, x, y, value=0.5)),
        ("aten::elu", "iterator", lambda x, y: torch.nn.functional.elu(x, alpha=0.5)),
        ("aten::add.Tensor", "library", lambda x, y: x + y.half()),
        ("aten::sum.dim_IntList", "library", lambda x, y: x.sum(1)),
        ("aten::sort.stable", "library", lambda x, y: torch.sort(x, stable=True)),
        ("aten::where.self", "library", lambda x, y: torch.where(x > 0, x, y)),
        ("aten::nonzero", "synchronous", lambda x, y: x.nonzero()),
        ("aten::as_strided", "view", lambda x, y: torch.as_strided(x, (2, 2), (1, 2))),
    ],
)
def test_route_of_an_operator(a, b, name, route, call):
    x, y = a.npu(), b.npu()
    assert routes(lambda: call(x, y))[name] == {route}


def test_an_operator_made_of_others_counts_once(a):
    x = a.npu()
    assert set(routes(lambda: torch.nn.functional.relu(x))) == {"aten::relu"}


def test_reset_clears_the_counts(a):
    a.npu().sin()
    assert torch.npu.op_stats(reset=True)
    assert torch.npu.op_stats() == {}


def test_only_waiting_operators_count_host_waits(a, b):
    x, y = a.npu(), b.npu()
    torch.npu.synchronize()
    gate = Gate()
    torch.npu.op_stats(reset=True)
    z = torch.softmax(x @ y.T, 1).sort().values.sum(0)
    assert sum(counts["host_waits"] for counts in torch.npu.op_stats().values()) == 0
    gate.open()
    torch.testing.assert_close(z.cpu(), torch.softmax(a @ b.T, 1).sort().values.sum(0))


@pytest.mark.parametrize("layout", ["contiguous", "transposed", "sliced", "expanded", "empty", "scalar"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.int64], ids=str)
def test_layouts_and_dtypes_of_an_element_wise_operator(a, layout, dtype):
    x = {
        "contiguous": lambda: a,
        "transposed": lambda: a.t(),
        "sliced": lambda: a[::2, 1::3],
        "expanded": lambda: a[:, :1].expand(6, 8),
        "empty": lambda: a[:0],
        "scalar": lambda: a[0, 0],
    }[layout]()
    x = (x * 10).to(dtype)
    compare(lambda t: torch.addcmul(t, t, t, value=2), x, rtol=1e-2, atol=1e-2)
    compare(lambda t: t.lt(1), x)


def test_large_tensors_are_cut_into_tiles():
    x = torch.randn(300, 1000, generator=torch.Generator().manual_seed(0))
    for t in (x, x.t(), x[:, ::2]):
        compare(torch.sin, t)
        compare(lambda s: s.clone().sinh_(), t)


def test_numbers_among_tensors_keep_promotion(a):
    half = a.to(torch.bfloat16)
    for x in (a, half, (a * 10).int(), a > 0):
        for number in (2, 2.5, True):
            compare(lambda t, n=number: t * n, x, rtol=1e-2)
            compare(lambda t, n=number: torch.fmod(t.float(), n + 1), x, rtol=1e-2)
    compare(lambda t: torch.atan2(t, torch.tensor(0.5)), a)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_one_element_among_half_precision_tensors(a, dtype):
    x = a.to(dtype)
    for one in (x[0, 0], x[:1, :1], x[0, 0].expand(6, 8)):
        for function in (torch.mul, torch.div, torch.atan2, torch.maximum, torch.sub):
            compare(function, x, one)
            compare(function, one, x)
    long = torch.randn(65537, generator=torch.Generator().manual_seed(4)).to(dtype)  # the last tile is one element
    compare(torch.mul, long, long)
    wide = long[:65536].reshape(2, -1).repeat(1, 3)  # a tile is one row
    compare(torch.mul, wide, wide[:, :1])


def test_a_number_is_read_when_it_is_submitted(a):
    factor = torch.tensor(2.0)
    x = a.npu()
    with Gate():
        result = torch.atan2(x, factor)
        factor.fill_(100)
    torch.testing.assert_close(result.cpu(), torch.atan2(a, torch.tensor(2.0)))


def test_out_and_in_place_forms(a, b):
    x, y = a.npu(), b.npu()
    out = torch.empty(0, device="npu")
    assert torch.atan2(x, y, out=out) is out
    torch.testing.assert_close(out.cpu(), torch.atan2(a, b))
    strided = torch.zeros(6, 16, device="npu")[:, ::2]
    torch.cumsum(x, 1, out=strided)
    torch.testing.assert_close(strided.cpu(), a.cumsum(1))
    x.cumsum_(0)
    torch.testing.assert_close(x.cpu(), a.cumsum(0))


def test_errors_of_shapes_dtypes_and_devices_come_at_once(a):
    x = a.npu()
    with pytest.raises(RuntimeError, match="must match the size"):
        torch.atan2(x, x[:, :3])
    with pytest.raises(RuntimeError, match=r"same device.*cpu|cpu.*same device"):
        torch.mm(x, a.t())
    with pytest.raises(RuntimeError, match="same device"):
        torch.atan2(x, a)
    with pytest.raises(RuntimeError, match="cannot be multiplied"):
        torch.mm(x, x)
    torch.npu.synchronize()


def test_tensors_of_two_devices_do_not_mix(a):
    if torch.npu.device_count() < 2:
        pytest.skip("needs two devices (NPU_SIM_DEVICES=2)")
    with pytest.raises(RuntimeError, match=r"npu:0.*npu:1|npu:1.*npu:0"):
        torch.mm(a.to("npu:0"), a.t().to("npu:1"))


def test_lazy_conjugates_reach_the_kernel():
    z = torch.randn(4, 4, dtype=torch.complex64, generator=torch.Generator().manual_seed(3))
    compare(lambda t: t.conj() @ t, z, rtol=1e-4, atol=1e-4)
    compare(lambda t: t.conj() * t, z, rtol=1e-4, atol=1e-4)
    compare(lambda t: torch.view_as_real(t.conj().resolve_conj()), z)


def test_index_with_cpu_indices_and_masks(a):
    index = torch.tensor([4, 0, 2])
    mask = a[:, 0] > 0
    torch.testing.assert_close(a.npu()[index].cpu(), a[index])
    torch.testing.assert_close(a.npu()[mask.npu()].cpu(), a[mask])
    x, y = a.npu(), a.clone()
    x[index, 1] = 7
    y[index, 1] = 7
    x[mask.npu()] = 0
    y[mask] = 0
    torch.testing.assert_close(x.cpu(), y)


def test_an_index_out_of_range_is_reported_by_the_next_synchronising_call(a):
    x = a.npu()
    x[torch.tensor([1, 99], device="npu")]
    with pytest.raises(RuntimeError, match="index"):
        torch.npu.synchronize()
    torch.testing.assert_close((x + x).cpu(), a + a)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.complex64, torch.complex128, torch.int64])
@pytest.mark.parametrize("number", [1j, 2.5, 3, True])
def test_numbers_of_every_kind_meet_tensors_of_every_kind(dtype, number):
    x = torch.ones(5, dtype=dtype)
    for operator in (torch.add, torch.mul, torch.div, torch.ne):
        expected = operator(x, number)
        actual = operator(x.npu(), number)
        assert actual.dtype == expected.dtype
        torch.testing.assert_close(actual.cpu(), expected)


def test_a_product_with_a_zero_tensor_is_a_zero_tensor():
    zeros, x = torch._efficientzerotensor((4,), device="npu"), torch.ones(4, device="npu")
    for product in (torch.dot(zeros, x), torch.vdot(x, zeros), torch.inner(zeros, x)):
        assert product._is_zerotensor() and product.is_npu and product.item() == 0
    with pytest.raises(RuntimeError, match="inconsistent tensor size"):
        torch.dot(zeros, x[:3])
    with pytest.raises(RuntimeError, match="ZeroTensors are immutable"):
        zeros.copy_(x)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64])
def test_histc_counts_integers_as_accelerators_do(dtype):
    x = torch.tensor([0, 1, 1, 3, 9, 100], dtype=dtype, device="npu")
    assert torch.histc(x, bins=4, min=0, max=3).tolist() == [1, 2, 0, 1]
    assert torch.histc(x, bins=50, min=0, max=49)[:10].tolist() == [1, 2, 0, 1, 0, 0, 0, 0, 0, 1]
    assert torch.histc(x, bins=2).tolist() == [5, 1]
    assert torch.histc(x[1:3], bins=3).tolist() == [0, 2, 0]
    assert torch.histc(x, bins=4).dtype == dtype


@pytest.mark.parametrize("approximate", ["none", "tanh"])
def test_gelu_is_that_of_the_cpu_to_the_last_bit(approximate):
    x = torch.randn(1000, generator=torch.Generator().manual_seed(0))
    for part, npu in ((x, x.npu()), (x[::2], x.npu()[::2])):
        expected = torch.nn.functional.gelu(part, approximate=approximate)
        assert torch.equal(torch.nn.functional.gelu(npu, approximate=approximate).cpu(), expected)
        backward = torch.ops.aten.gelu_backward
        expected = backward(part, part, approximate=approximate)
        assert torch.equal(backward(npu, npu, approximate=approximate).cpu(), expected)


@pytest.mark.parametrize(
    "sizes", [((8, 16), (4, 16, 8)), ((4, 8, 16), (16, 8)), ((8, 16), (16, 8)), ((4, 8, 16), (4, 16, 8))]
)
def test_products_of_groups_do_not_read_the_offsets_on_the_host(sizes):
    a, b = (torch.randn(size, generator=torch.Generator().manual_seed(0)) for size in sizes)
    ends = torch.tensor([2, 4, 6, 8], dtype=torch.int32) * (2 if sizes == ((8, 16), (16, 8)) else 1)
    ends = None if a.dim() == b.dim() == 3 else ends
    expected = torch._grouped_mm(a, b, ends)
    a, b, ends = a.npu(), b.npu(), None if ends is None else ends.npu()
    with Gate():
        result = torch._grouped_mm(a, b, ends)
    assert torch.equal(result.cpu(), expected) and result.stride() == expected.stride()
