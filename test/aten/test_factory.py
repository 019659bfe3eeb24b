"""Creation of tensors, and what changes a tensor's storage, against the CPU."""

import pytest
import torch


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.int64, torch.bool, torch.complex64, torch.uint8])
@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (2, 3, 4)])
def test_empty_has_the_layout_of_cpu(shape, dtype):
    npu, cpu = (torch.empty(shape, dtype=dtype, device=device) for device in ("npu", "cpu"))
    assert (npu.shape, npu.stride(), npu.dtype) == (cpu.shape, cpu.stride(), cpu.dtype)
    assert npu.device == torch.device("npu:0")


@pytest.mark.parametrize("memory_format", [torch.contiguous_format, torch.channels_last])
def test_memory_format(memory_format):
    x = torch.empty(2, 3, 4, 5, device="npu", memory_format=memory_format)
    assert x.is_contiguous(memory_format=memory_format)
    assert torch.empty_like(x).stride() == x.stride()


def test_empty_strided():
    x = torch.empty_strided((2, 3), (1, 4), device="npu:1")
    assert x.stride() == (1, 4) and x.device.index == 1
    assert x.untyped_storage().nbytes() == (1 + 2 * 4 + 1) * 4


@pytest.mark.parametrize(
    "make",
    [
        lambda **k: torch.zeros(3, 2, **k),
        lambda **k: torch.full((2, 2), 7, **k),
        lambda **k: torch.arange(2, 20, 3, **k),
        lambda **k: torch.linspace(0, 1, 7, **k),
        lambda **k: torch.eye(3, **k),
        lambda **k: torch.tensor([[1, 2], [3, 4]], **k),
        lambda **k: torch.as_tensor([1.5, 2.5], **k),
        lambda **k: torch.tril_indices(3, 3, **k),
        lambda **k: torch.hann_window(8, **k),
    ],
)
def test_factories_equal_cpu(make):
    actual = make(device="npu")
    assert actual.is_npu
    torch.testing.assert_close(actual.cpu(), make(device="cpu"))


def test_empty_does_not_change_the_current_device():
    torch.empty(1, device="npu:1")
    assert torch.npu.current_device() == 0


@pytest.mark.parametrize("start, shape", [((4,), (2, 2)), ((2,), (3, 5)), ((3, 5), (2,)), ((0,), (4,))])
def test_resize_keeps_elements(start, shape):
    count = torch.Size(start).numel()
    cpu = torch.arange(float(count)).reshape(start)
    npu = cpu.npu()
    npu.resize_(shape)
    cpu.resize_(shape)
    kept = min(count, torch.Size(shape).numel())
    assert npu.shape == cpu.shape and npu.stride() == cpu.stride()
    assert torch.equal(npu.cpu().flatten()[:kept], cpu.flatten()[:kept])


def test_resize_of_a_view_with_an_offset():
    base = torch.arange(6.0, device="npu")
    view = base[4:]
    view.resize_(4)
    assert base.untyped_storage().nbytes() == 8 * 4
    assert view[:2].tolist() == [4.0, 5.0]


def test_out_argument_is_resized():
    out = torch.empty(0, device="npu")
    torch.add(torch.ones(3, device="npu"), 1, out=out)
    assert out.tolist() == [2.0] * 3


def test_set():
    x = torch.arange(6.0, device="npu")
    y = torch.empty(0, device="npu")
    y.set_(x)
    assert y.data_ptr() == x.data_ptr() and y.is_set_to(x)
    y.set_(x.untyped_storage(), 1, (2, 2), (2, 1))
    assert y.tolist() == [[1.0, 2.0], [3.0, 4.0]]
    y.set_()
    assert y.numel() == 0 and y.device == x.device
    with pytest.raises(RuntimeError, match="device"):
        y.set_(torch.ones(2).untyped_storage())


@pytest.mark.parametrize("dtype", [torch.float32, torch.int32, torch.bool])
def test_uninitialized_memory_is_filled_when_asked(dtype):
    torch.use_deterministic_algorithms(True)
    try:
        npu, cpu = (torch.empty(5, dtype=dtype, device=device) for device in ("npu", "cpu"))
        torch.testing.assert_close(npu.cpu(), cpu, equal_nan=True)
        npu.resize_(9)
        torch.testing.assert_close(npu.cpu(), cpu.resize_(9), equal_nan=True)
    finally:
        torch.use_deterministic_algorithms(False)


@pytest.mark.parametrize("options", [(10,), (10, False), (7, True, 3.0), (1,), (0,)], ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_kaiser_window(options, dtype):
    npu = torch.kaiser_window(*options, dtype=dtype, device="npu")
    assert npu.device.type == "npu"
    assert torch.equal(npu.cpu(), torch.kaiser_window(*options, dtype=dtype))


def test_range_into_a_given_tensor():
    results = [torch.ops.aten.range.out_(1, 5, out=torch.empty(0, device=device)) for device in ("npu", "cpu")]
    assert results[0].tolist() == results[1].tolist()
