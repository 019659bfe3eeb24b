"""Events under torch.npu and torch.Event."""

import pytest
import torch

from torch_npu_lite.testing import Gate


def test_event_that_was_never_recorded_is_complete():
    event = torch.npu.Event()
    assert event.query()
    event.synchronize()
    event.wait(torch.npu.Stream())


def test_event_is_a_torch_event_of_npu():
    event = torch.npu.Event()
    assert isinstance(event, torch.Event)
    assert event.device.type == "npu"
    with pytest.raises(NotImplementedError):
        torch.npu.Event(interprocess=True)


def test_query_follows_the_recorded_work():
    gate = Gate()
    event = torch.npu.current_stream().record_event()
    assert not event.query()
    gate.open()
    event.synchronize()
    assert event.query()


def test_later_record_replaces_the_earlier():
    stream = torch.npu.Stream()
    event = torch.npu.Event()
    event.record(stream)
    event.synchronize()
    with Gate(stream):
        event.record(stream)
        assert not event.query()
    event.synchronize()


def test_wait_uses_the_record_at_the_time_of_the_call():
    first, second, waiting = torch.npu.Stream(), torch.npu.Stream(), torch.npu.Stream()
    event = torch.npu.Event()
    event.record(first)
    event.synchronize()
    event.wait(waiting)
    gate = Gate(second)
    event.record(second)
    waiting.synchronize()  # would not return if it waited for the second record
    gate.open()
    event.synchronize()


def test_elapsed_time():
    start, end = torch.npu.Event(enable_timing=True), torch.npu.Event(enable_timing=True)
    start.record()
    torch.ones(1 << 16, device="npu").exp_()
    end.record()
    end.synchronize()
    assert 0 < start.elapsed_time(end) < 60_000
    assert end.elapsed_time(start) < 0


def test_elapsed_time_needs_timing_and_completion():
    plain = torch.npu.Event()
    plain.record()
    timed = torch.npu.Event(enable_timing=True)
    timed.record()
    torch.npu.synchronize()
    with pytest.raises((ValueError, RuntimeError)):
        plain.elapsed_time(timed)
    with Gate():
        late = torch.npu.Event(enable_timing=True)
        late.record()
        with pytest.raises((ValueError, RuntimeError)):
            timed.elapsed_time(late)


def test_an_event_says_where_it_is_and_how_far():
    event = torch.npu.Event()
    assert repr(event) == "<torch.npu.Event not recorded>"
    with Gate():
        torch.ones(1, device="npu")
        event.record()
        assert repr(event) == "<torch.npu.Event device=npu:0 pending>"
    event.synchronize()
    assert repr(event) == "<torch.npu.Event device=npu:0 complete>"


def test_generic_event():
    event = torch.Event("npu", enable_timing=True)
    event.record(torch.npu.current_stream())
    event.synchronize()
    assert event.query()
