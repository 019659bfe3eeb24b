"""torch.npu's device functions, and what torch.accelerator makes of them."""

import pytest
import torch


@pytest.fixture(autouse=True)
def first_device():
    yield
    torch.npu.set_device(0)


def test_default_number_of_devices(run_child):
    result = run_child("print(torch.npu.device_count(), torch.npu.is_available(), torch.npu.is_initialized())")
    assert result.stdout.split() == ["2", "True", "False"], result.stderr


def test_set_device_and_current_device():
    torch.npu.set_device(1)
    assert torch.npu.current_device() == 1
    assert torch.empty(1, device="npu").device == torch.device("npu:1")
    torch.npu.set_device("npu:0")
    assert torch.npu.current_device() == 0
    torch.npu.set_device(-1)
    assert torch.npu.current_device() == 0


def test_device_context_restores_the_previous_device():
    with torch.npu.device(1):
        assert torch.npu.current_device() == 1
        with torch.npu.device("npu:0"):
            assert torch.npu.current_device() == 0
        assert torch.npu.current_device() == 1
    assert torch.npu.current_device() == 0


def test_device_of_follows_a_tensor():
    with torch.npu.device_of(torch.empty(1, device="npu:1")):
        assert torch.npu.current_device() == 1
    with torch.npu.device_of(torch.empty(1)):
        assert torch.npu.current_device() == 0


@pytest.mark.parametrize("bad", [7, "npu:7"])
def test_bad_device_names_the_range(bad):
    with pytest.raises(RuntimeError, match=r"7.*\b[01]\b"):
        torch.npu.set_device(bad)
    with pytest.raises(RuntimeError, match="7"):
        torch.empty(1, device=f"npu:{7}")
    with pytest.raises(RuntimeError):
        torch.npu.synchronize(-3)
    with pytest.raises(ValueError, match="cpu"):
        torch.npu.set_device("cpu")


def test_accelerator_is_npu():
    assert torch.accelerator.is_available()
    assert torch.accelerator.device_count() == torch.npu.device_count()
    assert torch.accelerator.current_accelerator().type == "npu"
    torch.accelerator.set_device_index(1)
    assert torch.npu.current_device() == torch.accelerator.current_device_index() == 1
    with torch.accelerator.device_index(0):
        assert torch.npu.current_device() == 0
    torch.accelerator.synchronize()


def test_properties():
    properties = torch.npu.get_device_properties()
    assert properties.total_memory == torch.npu.mem_get_info()[1]
    assert properties.cube_cores > 0 and properties.vector_cores > 0
    assert torch.npu.get_device_name() == properties.name
    assert torch.npu.get_device_capability(1) == (properties.major, properties.minor)
    assert torch.npu.is_bf16_supported() and torch.bfloat16 in torch.npu.get_amp_supported_dtype()


def test_methods_of_tensors_modules_and_storages():
    tensor = torch.ones(3).npu()
    assert tensor.is_npu and not tensor.cpu().is_npu
    assert tensor.npu(1).device.index == 1
    assert torch.nn.Linear(2, 2).npu().weight.is_npu
    assert torch.ones(2).untyped_storage().npu().device.type == "npu"


def test_engine_usage_counts_tasks():
    before = torch.npu.engine_usage()["vector"]["tasks"]
    torch.ones(4, device="npu").add_(1)
    torch.npu.synchronize()
    usage = torch.npu.engine_usage()
    assert usage["vector"]["tasks"] > before
    assert set(usage) == {"cube", "vector", "dma_in", "dma_out", "cpu", "rng"}


def test_default_device():
    with torch.device("npu:1"):
        assert torch.zeros(2).device == torch.device("npu:1")
