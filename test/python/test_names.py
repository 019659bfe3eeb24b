"""torch.npu mirrors torch.cuda: each of its names exists, or says why not; those without a file of their own work."""

import gc

import pytest
import torch

from torch_npu_lite.npu import absent
from torch_npu_lite.testing import Gate


@pytest.mark.parametrize("name", torch.cuda.__all__)
def test_every_name_of_torch_cuda_exists_or_says_why_not(name):
    if hasattr(torch.npu, name):
        assert name in torch.npu.__all__ and name not in absent._REASON_OF
    else:
        with pytest.raises(AttributeError, match=rf"no attribute '{name}': .{{20,}}\."):
            getattr(torch.npu, name)


def test_names_of_the_memory_module_that_are_missing_say_why():
    for name in ("_record_memory_history", "_dump_snapshot", "_snapshot"):
        with pytest.raises(AttributeError, match=rf"'torch.npu.memory' has no attribute '{name}': .*memory_snapshot"):
            getattr(torch.npu.memory, name)
    assert not hasattr(torch.npu.memory, "frobnicate")


def test_every_name_of_torch_npu_exists():
    assert [name for name in torch.npu.__all__ if not hasattr(torch.npu, name)] == []
    assert sorted(set(torch.npu.__all__)) == sorted(torch.npu.__all__)


def test_a_name_that_nobody_has_is_an_ordinary_attribute_error():
    with pytest.raises(AttributeError, match=r"module 'torch.npu' has no attribute 'frobnicate'$"):
        torch.npu.frobnicate  # noqa: B018


def test_errors_are_those_of_torch():
    assert torch.npu.OutOfMemoryError is torch.OutOfMemoryError
    assert torch.npu.AcceleratorError is torch.AcceleratorError


def test_peers_are_all_other_devices():
    assert torch.npu.can_device_access_peer(0, 1)
    assert torch.npu.can_device_access_peer("npu:1", torch.device("npu:0"))
    assert not torch.npu.can_device_access_peer(1, 1)
    with pytest.raises(torch.AcceleratorError, match="invalid device index 9"):
        torch.npu.can_device_access_peer(0, 9)


def test_streams_of_other_code_are_found_by_their_handle():
    stream = torch.npu.Stream("npu:1")
    same = torch.npu.get_stream_from_external(stream.native_handle, "npu:1")
    assert isinstance(same, torch.npu.Stream) and same == stream
    with pytest.raises(ValueError, match="0x10 is not the handle of a stream of npu:0"):
        torch.npu.get_stream_from_external(16, 0)


def test_streams_do_not_capture():
    assert torch.npu.is_current_stream_capturing() is False


def test_device_properties_as_numbers():
    assert torch.npu.clock_rate() == torch.npu.get_device_properties().clock_mhz > 0
    assert torch.npu.is_tf32_supported() is False
    free, total = torch.npu.mem_get_info()
    assert torch.npu.device_memory_used() == total - free


def test_utilization_follows_the_work_of_the_compute_engines():
    x = torch.rand(512, 512, device="npu")
    torch.npu.synchronize()
    torch.npu.utilization()
    busy_before = torch.npu.engine_usage()["cube"]["busy_ns"]
    for _ in range(20):
        x @ x
    torch.npu.synchronize()
    busy = torch.npu.utilization()
    assert torch.npu.engine_usage()["cube"]["busy_ns"] > busy_before
    assert 1 <= busy <= 100
    assert 0 <= torch.npu.utilization(1) <= 100


@pytest.fixture
def sync_debug_mode():
    yield torch.npu.set_sync_debug_mode
    torch.npu.set_sync_debug_mode("default")


SYNCHRONIZING = {
    "item": lambda x: x.sum().item(),
    "cpu": lambda x: x.cpu(),
    "from pageable memory": lambda x: x.copy_(torch.ones(8)),
    "nonzero": lambda x: x.nonzero(),
    "bool": lambda x: bool((x > 0).all()),
    "stream": lambda x: torch.npu.current_stream().synchronize(),
}


@pytest.mark.parametrize("call", SYNCHRONIZING.values(), ids=SYNCHRONIZING.keys())
def test_calls_that_wait_can_be_refused_or_warned_of(sync_debug_mode, call):
    x = torch.ones(8, device="npu")
    torch.npu.synchronize()  # the mode does not depend on whether there is anything to wait for
    sync_debug_mode("error")
    with pytest.raises(RuntimeError, match="called a synchronizing NPU operation"):
        call(x)
    sync_debug_mode("warn")
    with pytest.warns(UserWarning, match="called a synchronizing NPU operation"):
        call(x)
    sync_debug_mode("default")
    call(x)


def test_calls_that_do_not_wait_are_let_through(sync_debug_mode):
    x = torch.ones(8, 8, device="npu")
    pinned = torch.empty(8, 8, pin_memory=True)
    sync_debug_mode(2)
    assert torch.npu.get_sync_debug_mode() == 2
    with Gate() as gate:
        y = (x @ x).relu().sum(0)
        x.copy_(torch.zeros(8, 8), non_blocking=True)
        pinned.copy_(x, non_blocking=True)
        torch.npu.current_stream().record_event()
        assert not gate.is_open()
    torch.npu.synchronize()  # waiting for a whole device is the program's own decision
    sync_debug_mode(0)
    assert y.tolist() == [64.0] * 8


@pytest.mark.parametrize("mode", ["loud", 3, -1])
def test_sync_debug_modes_that_do_not_exist(mode):
    with pytest.raises(RuntimeError, match="expected one of 'default', 'warn', 'error'"):
        torch.npu.set_sync_debug_mode(mode)
    assert torch.npu.get_sync_debug_mode() == 0


def test_snapshot_shows_tensors_in_their_segments():
    gc.collect()
    x = torch.empty(1000, device="npu")
    y = torch.empty(3 << 20, device="npu:1")
    torch.npu.synchronize()
    found = {}
    for segment in torch.npu.memory_snapshot():
        assert sum(block["size"] for block in segment["blocks"]) == segment["total_size"]
        for block in segment["blocks"]:
            found[block["address"]] = segment, block
    segment, block = found[x.data_ptr()]
    assert (segment["device"], segment["segment_type"], segment["stream"]) == (0, "small", 0)
    assert (block["size"], block["requested_size"], block["state"]) == (4096, 4000, "active_allocated")
    segment, block = found[y.data_ptr()]
    assert (segment["device"], segment["segment_type"]) == (1, "large")
    assert segment["allocated_size"] >= block["size"] >= y.nbytes
    with pytest.raises(ValueError, match=r"no memory pool \(0, 7\)"):
        torch.npu.memory_snapshot((0, 7))


def test_snapshot_agrees_with_the_statistics():
    torch.npu.synchronize()
    segments = [segment for segment in torch.npu.memory_snapshot() if segment["device"] == 0]
    assert sum(s["total_size"] for s in segments) == torch.npu.memory_reserved(0)
    assert sum(s["allocated_size"] for s in segments) == torch.npu.memory_allocated(0)


def test_nested_statistics_are_the_flat_ones():
    torch.empty(1, device="npu")
    nested = torch.npu.memory_stats_as_nested_dict()
    flat = torch.npu.memory_stats()
    assert nested["allocated_bytes"]["all"]["allocated"] == flat["allocated_bytes.all.allocated"]
    assert nested["num_ooms"] == flat["num_ooms"]


def test_statistics_of_pinned_memory():
    torch.npu.synchronize()
    torch.accelerator.empty_host_cache()  # takes back what copies held
    torch.npu.reset_peak_host_memory_stats()
    before = torch.npu.host_memory_stats()
    x = torch.empty(1 << 20, dtype=torch.uint8, pin_memory=True)
    stats = torch.npu.host_memory_stats()
    assert stats["active_bytes.current"] - before["active_bytes.current"] == x.nbytes
    assert stats["active_requests.current"] - before["active_requests.current"] == 1
    assert stats["allocated_bytes.current"] >= stats["active_bytes.current"]
    nested = torch.npu.host_memory_stats_as_nested_dict()
    assert nested["active_bytes"]["current"] == stats["active_bytes.current"]
    assert set(nested["host_alloc_time"]) == {"total", "max", "min", "count", "avg"}
    torch.npu.reset_accumulated_host_memory_stats()
    assert torch.npu.host_memory_stats()["active_bytes.allocated"] == 0


def test_deprecated_names_still_work():
    for old, new in (("memory_cached", "memory_reserved"), ("max_memory_cached", "max_memory_reserved")):
        with pytest.warns(FutureWarning, match=new):
            assert getattr(torch.npu, old)() == getattr(torch.npu, new)()
    with pytest.warns(FutureWarning, match="resets all peaks"):
        torch.npu.reset_max_memory_allocated()
    assert torch.npu.get_allocator_backend() == "native"
