"""Storages: resizing, saving, loading, copies of objects, DLPack."""

import copy
import io

import pytest
import torch


def saved(obj, **load):
    buffer = io.BytesIO()
    torch.save(obj, buffer)
    buffer.seek(0)
    return torch.load(buffer, **load)


def test_save_and_load_keep_the_device():
    x = torch.arange(6.0, device="npu:1").reshape(2, 3).t()
    y = saved(x)
    assert y.device == x.device and y.stride() == x.stride()
    assert torch.equal(y.cpu(), x.cpu())


@pytest.mark.parametrize("target", ["cpu", "npu:0"])
def test_map_location(target):
    x = torch.arange(6.0, device="npu:1")
    y = saved({"x": x}, map_location=target)["x"]
    assert y.device == torch.device(target)
    assert torch.equal(y.cpu(), x.cpu())


def test_cpu_file_loads_onto_npu():
    assert saved(torch.ones(3), map_location="npu").device.type == "npu"


def test_optimizer_and_module_round_trip():
    module = torch.nn.Linear(3, 2).npu()
    optimizer = torch.optim.Adam(module.parameters())
    module(torch.ones(1, 3, device="npu")).sum().backward()
    optimizer.step()
    state = saved({"module": module.state_dict(), "optimizer": optimizer.state_dict()})
    other = torch.nn.Linear(3, 2).npu()
    other.load_state_dict(state["module"])
    assert torch.equal(other.weight.cpu(), module.weight.cpu())


def test_deepcopy_is_independent():
    x = torch.ones(3, device="npu")
    y = copy.deepcopy(x)
    y += 1
    assert x.tolist() == [1.0] * 3 and y.tolist() == [2.0] * 3


def test_storage_resize_keeps_contents():
    x = torch.arange(4.0, device="npu")
    x.untyped_storage().resize_(64)
    assert x.tolist() == [0.0, 1.0, 2.0, 3.0]
    x.untyped_storage().resize_(0)
    assert x.untyped_storage().nbytes() == 0


def test_tensors_share_a_storage():
    x = torch.zeros(6, device="npu")
    y = torch.empty(0, device="npu").set_(x.untyped_storage(), 2, (2, 2), (2, 1))
    y.fill_(1)
    assert x.tolist() == [0, 0, 1, 1, 1, 1]


def test_module_to_keeps_the_identity_of_parameters():
    module = torch.nn.Linear(2, 2)
    parameters = list(module.parameters())
    module(torch.ones(1, 2)).sum().backward()
    module.to("npu")
    assert all(a is b for a, b in zip(parameters, module.parameters(), strict=True))
    assert parameters[0].is_npu and parameters[0].grad.is_npu
    module.to("cpu")
    assert not parameters[0].is_npu and not parameters[0].grad.is_npu


def test_data_of_another_device_can_be_assigned():
    x = torch.zeros(2)
    x.data = torch.ones(2, device="npu")
    assert x.is_npu and x.tolist() == [1.0, 1.0]


def test_dlpack_round_trip():
    x = torch.arange(4.0, device="npu:1")
    y = torch.from_dlpack(x)
    assert y.device == x.device and y.data_ptr() == x.data_ptr()


def test_lazy_clone_copies_on_write():
    x = torch.zeros(1000, device="npu")
    y = x._lazy_clone()
    y += 1
    assert x.sum().item() == 0 and y.sum().item() == 1000


@pytest.mark.parametrize("dtype", [torch.int32, torch.float64, torch.complex64])
def test_bytes_of_a_storage_can_be_swapped(dtype):
    x = torch.arange(6).to(dtype)
    y = x.npu()
    x.untyped_storage().byteswap(dtype)
    y.untyped_storage().byteswap(dtype)
    assert torch.equal(y.cpu().view(torch.uint8), x.view(torch.uint8))
