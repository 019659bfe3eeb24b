"""copy_ between every pair of devices, layouts and dtypes, against the CPU; and what the host waits for."""

import itertools

import pytest
import torch

from torch_npu_lite import timeline
from torch_npu_lite.testing import Gate

DEVICES = ["cpu", "npu:0", "npu:1"]
LAYOUTS = {
    "contiguous": lambda x: x.contiguous(),
    "transposed": lambda x: x.t().contiguous().t(),
    "sliced": lambda x: torch.stack((x, x), dim=-1)[..., 0],
    "expanded": lambda x: x[:1].expand(x.shape),
    "offset": lambda x: torch.cat((x[:1], x))[1:],
}
WRITABLE = [name for name in LAYOUTS if name != "expanded"]
DTYPES = [
    torch.float32,
    torch.float64,
    torch.bfloat16,
    torch.float16,
    torch.int64,
    torch.int8,
    torch.bool,
    torch.complex64,
]


def values(shape=(6, 5), dtype=torch.float32):
    x = torch.arange(torch.Size(shape).numel()).reshape(shape) % 50 - 3
    return x.to(dtype)


@pytest.mark.parametrize("source, target", list(itertools.product(DEVICES, DEVICES)))
@pytest.mark.parametrize("from_layout, to_layout", list(itertools.product(LAYOUTS, WRITABLE)))
def test_devices_and_layouts(source, target, from_layout, to_layout):
    x = values()
    src = LAYOUTS[from_layout](x.to(source))
    dst = LAYOUTS[to_layout](torch.zeros_like(x).to(target))
    dst.copy_(src)
    assert torch.equal(dst.cpu(), LAYOUTS[from_layout](x))


@pytest.mark.parametrize("source, target", [("cpu", "npu:0"), ("npu:0", "cpu"), ("npu:0", "npu:0"), ("npu:0", "npu:1")])
@pytest.mark.parametrize("from_dtype, to_dtype", list(itertools.product(DTYPES, DTYPES)))
def test_devices_and_dtypes(source, target, from_dtype, to_dtype):
    if from_dtype.is_complex and not to_dtype.is_complex:
        pytest.skip("discards the imaginary part with a warning; see test_complex_to_real")
    x = values(dtype=from_dtype)
    dst = torch.zeros(x.shape, dtype=to_dtype, device=target)
    dst.copy_(x.to(source))
    assert torch.equal(dst.cpu(), x.to(to_dtype))


@pytest.mark.parametrize("source, target", [("cpu", "npu"), ("npu", "cpu"), ("npu", "npu")])
def test_complex_to_real(source, target):
    torch.set_warn_always(True)
    x = values(dtype=torch.complex64) * (1 + 2j)
    with pytest.warns(UserWarning, match="discards the imaginary part") as caught:
        result = torch.zeros(x.shape, device=target).copy_(x.to(source).conj())
    torch.set_warn_always(False)
    assert len(caught) == 1
    assert torch.equal(result.cpu(), x.real)


def test_complex_to_bool():
    x = torch.tensor([0, 1j, 1 + 1j])
    assert x.to("npu").to(torch.bool).tolist() == [False, True, True]


@pytest.mark.parametrize("source, target", list(itertools.product(DEVICES, DEVICES)))
def test_lazy_bits(source, target):
    x = torch.randn(3, 4, dtype=torch.complex64)
    for view in (torch.Tensor.conj, torch._neg_view, lambda t: t.conj().imag):
        src = view(x.to(source))
        assert torch.equal(src.to(target).cpu(), view(x).resolve_conj().resolve_neg())
    dst = torch.zeros_like(x).to(target)
    dst.conj().copy_(x.to(source))
    assert torch.equal(dst.cpu(), x.conj().resolve_conj())


@pytest.mark.parametrize("source, target", [("cpu", "npu"), ("npu", "cpu"), ("npu", "npu")])
def test_broadcast_and_empty(source, target):
    dst = torch.zeros(3, 4, device=target)
    dst.copy_(torch.arange(4.0, device=source))
    assert torch.equal(dst.cpu(), torch.arange(4.0).expand(3, 4))
    torch.zeros(0, 4, device=target).copy_(torch.zeros(0, 4, device=source))


@pytest.mark.parametrize("count", [1, 100, 1 << 12, 1 << 14, 1 << 18, (1 << 21) + 13])
@pytest.mark.parametrize("pinned", [False, True])
@pytest.mark.parametrize("non_blocking", [False, True])
def test_sizes_to_the_device_and_back(count, pinned, non_blocking):
    x = torch.arange(float(count))
    x = x.pin_memory() if pinned else x
    y = x.to("npu", non_blocking=non_blocking)
    back = torch.empty(count, pin_memory=pinned).copy_(y, non_blocking=non_blocking)
    torch.npu.synchronize()
    assert torch.equal(back, x)


@pytest.mark.parametrize("count", [16, 1 << 20])
def test_pageable_source_may_change_once_an_async_copy_returned(count):
    x = torch.ones(count)
    with Gate():
        y = x.to("npu", non_blocking=True)
        x.fill_(2)
    assert y.cpu().unique().tolist() == [1.0]


@pytest.mark.parametrize("make", [lambda x: x, torch.Tensor.double, lambda x: x.pin_memory()])
def test_blocking_copy_is_done_at_return_so_any_stream_may_use_it(make):
    x = torch.ones(512, 512, device="npu")
    for _ in range(8):
        x = x @ x / 512
    y = torch.zeros(20, 2, device="npu")
    y[:, 0].copy_(make(torch.arange(20.0)))
    assert torch.npu.current_stream().query()


def test_async_copies_of_pinned_memory_are_queued():
    x = torch.ones(1 << 18).pin_memory()
    device = torch.full((1 << 18,), 3.0, device="npu")
    back = torch.zeros(1 << 18).pin_memory()
    torch.npu.synchronize()
    with Gate():
        there = x.to("npu", non_blocking=True)
        back.copy_(device, non_blocking=True)
        assert back.sum().item() == 0
    torch.npu.synchronize()
    assert back.unique().tolist() == [3.0] and there.cpu().unique().tolist() == [1.0]


def test_copy_between_devices_is_queued_and_ordered_by_both_current_streams():
    source = torch.ones(1 << 16, device="npu:0")
    target = torch.zeros(1 << 16, device="npu:1")
    for device in range(2):
        torch.npu.synchronize(device)
    before, after = Gate(torch.npu.current_stream(0)), Gate(torch.npu.current_stream(1))
    source.add_(1)
    target.sub_(5)
    target.copy_(source)
    target.mul_(10)
    before.open()
    assert not torch.npu.current_stream(0).query()  # waits for the destination's stream
    after.open()
    assert target.cpu().unique().tolist() == [20.0]


def test_host_reads_wait():
    x = torch.zeros(1 << 16, device="npu")
    stream = torch.npu.Stream()
    torch.npu.synchronize()
    gate = Gate(stream)
    with torch.npu.stream(stream):
        x.add_(1)
        gate.open()
        assert x.cpu().unique().tolist() == [1.0]


def test_engines():
    host = torch.ones(1 << 18).pin_memory()
    with timeline.record() as recorded:
        there = host.to("npu", non_blocking=True)
        across = there.to("npu:1")
        within = across.clone()
        within.cpu()
    engines = {(task.device, task.engine) for task in recorded.tasks if task.name == "aten::copy_"}
    assert engines == {(0, "dma_in"), (0, "dma_out"), (1, "vector"), (1, "dma_out")}


def test_partial_overlap_is_refused():
    x = torch.arange(10.0, device="npu")
    with pytest.raises(RuntimeError, match=r"partial|overlap|memory location"):
        x[1:].copy_(x[:-1])


def test_copy_to_itself_is_fine():
    x = torch.arange(10.0, device="npu")
    assert x.copy_(x).tolist() == list(map(float, range(10)))


def test_item_of_every_dtype():
    for dtype in [*DTYPES, torch.uint8, torch.int16, torch.int32, torch.complex128, torch.uint32]:
        x = torch.tensor(1, dtype=dtype)
        assert x.npu().item() == x.item()
        assert type(x.npu().item()) is type(x.item())


def test_item_waits_for_the_current_stream():
    x = torch.zeros(1, device="npu")
    torch.npu.op_stats(reset=True)
    with Gate() as gate:
        x.add_(1)
        gate.open()
        assert x.item() == 1
    assert torch.npu.op_stats()["aten::_local_scalar_dense"]["synchronous"] == 1


def test_pinned_memory_seen_through_numpy_is_held_until_the_copy_is_done():
    pinned = torch.empty(1 << 20, pin_memory=True).fill_(3)
    inside = torch.from_numpy(pinned.numpy()[1000:])
    device = torch.empty(inside.numel(), device="npu")
    with Gate():
        device.copy_(inside, non_blocking=True)
        del pinned, inside
        again = torch.empty(1 << 20, pin_memory=True).fill_(7)
    assert bool((device.cpu() == 3).all())
    assert again[0] == 7
