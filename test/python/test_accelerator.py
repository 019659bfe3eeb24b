"""torch.accelerator, torch.Stream and torch.Event: device-independent programs run on npu."""

import gc

import pytest
import torch

from torch_npu_lite.testing import Gate

MIB = 1 << 20
accelerator = torch.accelerator


@pytest.fixture(autouse=True)
def on_device_0():
    yield
    torch.npu.set_device(0)
    torch.npu.set_stream(torch.npu.default_stream(0))


def test_npu_is_the_accelerator():
    assert accelerator.is_available()
    assert accelerator.current_accelerator() == torch.device("npu")
    assert accelerator.current_accelerator(check_available=True) == torch.device("npu")
    assert accelerator.device_count() == torch.npu.device_count()


def test_current_device():
    accelerator.set_device_index("npu:1")
    assert accelerator.current_device_index() == torch.npu.current_device() == 1
    assert torch.ones(1, device="npu").device.index == 1
    accelerator.set_device_index(-1)
    assert accelerator.current_device_index() == 1
    with accelerator.device_index(0):
        assert torch.npu.current_device() == 0
        with accelerator.device_index(None):
            assert torch.npu.current_device() == 0
    assert torch.npu.current_device() == 1
    with pytest.raises(torch.AcceleratorError, match="invalid device index 77"):
        accelerator.set_device_index(77)


def test_deprecated_names_of_the_current_device():
    with pytest.warns(FutureWarning):
        accelerator.set_device_idx(1)
    with pytest.warns(FutureWarning):
        assert accelerator.current_device_idx() == 1


def test_devices_of_other_types_are_refused():
    for function in (accelerator.set_device_index, accelerator.memory_stats, accelerator.synchronize):
        with pytest.raises(ValueError, match="doesn't match the current accelerator npu"):
            function("cuda:0")


def test_capability_lists_dtypes():
    dtypes = accelerator.get_device_capability()["supported_dtypes"]
    assert {torch.float32, torch.bfloat16, torch.int64, torch.bool, torch.complex64} <= dtypes


def test_streams():
    stream = torch.Stream("npu:1", priority=-1)
    assert isinstance(stream, torch.Stream) and stream.device == torch.device("npu:1")
    previous = accelerator.current_stream("npu:1")
    accelerator.set_stream(stream)
    assert accelerator.current_stream() == stream == torch.npu.current_stream(1)
    assert accelerator.current_device_index() == 1
    accelerator.set_stream(previous)
    with stream:
        assert accelerator.current_stream() == stream
    assert accelerator.current_stream() == previous
    assert stream.native_handle != previous.native_handle


def test_stream_query_synchronize_and_wait():
    producer, consumer = torch.Stream(), torch.Stream()
    x = torch.zeros(4, device="npu")
    torch.npu.synchronize()
    with Gate(producer) as gate:
        with producer:
            x += 1
        consumer.wait_stream(producer)
        with consumer:
            y = x * 3
        assert not producer.query() and not consumer.query() and not gate.is_open()
    consumer.synchronize()
    assert producer.query() and consumer.query()
    assert y.tolist() == [3.0] * 4


def test_events():
    stream = torch.Stream("npu")
    event, timed = torch.Event("npu"), torch.Event(enable_timing=True)
    later = torch.Event(enable_timing=True)
    assert event.query()
    with Gate(stream):
        timed.record(stream)
        event = stream.record_event(event)
        assert event.device == torch.device("npu:0")
        assert not event.query()
        torch.npu.current_stream().wait_event(event)
        event.wait(torch.Stream())
        assert not torch.npu.current_stream().query()
    event.synchronize()
    later.record(stream)
    later.synchronize()
    assert event.query() and timed.elapsed_time(later) >= 0


def test_synchronize_waits_for_all_streams_of_one_device():
    stream = torch.Stream("npu:1")
    with Gate(stream) as gate:
        accelerator.synchronize("npu:0")
        assert not stream.query()
        gate.open()
        accelerator.synchronize("npu:1")
        assert stream.query()
    accelerator.synchronize()


def test_memory_statistics_are_those_of_npu():
    gc.collect()
    x = torch.empty(3 * MIB, dtype=torch.uint8, device="npu:1")
    for device in ("npu:1", 1, torch.device("npu", 1)):
        assert accelerator.memory_stats(device) == torch.npu.memory_stats(1)
        assert accelerator.memory_allocated(device) == torch.npu.memory_allocated(1) >= x.nbytes
        assert accelerator.memory_reserved(device) == torch.npu.memory_reserved(1) >= x.nbytes
        assert accelerator.get_memory_info(device) == torch.npu.mem_get_info(1)
    with accelerator.device_index(1):
        assert accelerator.memory_allocated() == torch.npu.memory_allocated(1)


def test_peaks_and_sums_can_be_reset():
    gc.collect()
    x = torch.empty(8 * MIB, dtype=torch.uint8, device="npu")
    peak = accelerator.max_memory_allocated()
    del x
    accelerator.reset_peak_memory_stats()
    assert accelerator.max_memory_allocated() <= peak - 8 * MIB
    assert accelerator.max_memory_reserved() == accelerator.memory_reserved()
    accelerator.reset_accumulated_memory_stats(0)
    assert accelerator.memory_stats()["allocated_bytes.all.allocated"] == 0


def test_unused_memory_goes_back():
    gc.collect()
    x = torch.empty(64 * MIB, dtype=torch.uint8, device="npu")
    reserved = accelerator.memory_reserved()
    del x
    accelerator.empty_cache()
    assert accelerator.memory_reserved() <= reserved - 64 * MIB


def test_unused_pinned_memory_goes_back():
    torch.empty(16 * MIB, dtype=torch.uint8, pin_memory=True)
    before = torch.npu.host_memory_stats()["allocated_bytes.current"]
    accelerator.empty_host_cache()
    assert torch.npu.host_memory_stats()["allocated_bytes.current"] <= before - 16 * MIB


def test_questions_do_not_initialise(run_child):
    child = run_child(
        """
        a = torch.accelerator
        print(a.is_available(), a.device_count(), dict(a.memory_stats(0)), a.memory_allocated(1))
        a.empty_cache(), a.reset_peak_memory_stats(0), a.reset_accumulated_memory_stats(0)
        print(torch.npu.is_initialized())
        """
    )
    assert (child.returncode, child.stdout) == (0, "True 2 {} 0\nFalse\n"), child.stderr


def test_graphs_say_that_they_are_not_there():
    with pytest.raises(Exception, match=r"(?i)graph"):
        accelerator.Graph()
