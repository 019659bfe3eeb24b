"""Streams under torch.npu, torch.Stream and torch.accelerator. Gates force the order."""

import pytest
import torch

from torch_npu_lite.testing import Gate


def test_streams_come_from_a_pool_and_never_are_the_default_stream():
    streams = [torch.npu.Stream() for _ in range(64)]
    ids = {stream.stream_id for stream in streams}
    assert 0 not in ids
    assert len(ids) == 32


def test_stream_is_a_torch_stream():
    stream = torch.npu.Stream(device="npu:1", priority=-1)
    assert isinstance(stream, torch.Stream)
    assert stream.device == torch.device("npu:1")
    assert stream.priority == -1
    assert "priority=-1" in repr(stream)
    least, greatest = torch.npu.Stream.priority_range()
    assert greatest < least == 0
    assert torch.npu.Stream(priority=-1000).priority == greatest
    assert torch.Stream(device="npu").device_index == 0


def test_current_and_default_stream():
    assert torch.npu.current_stream() == torch.npu.default_stream()
    stream = torch.npu.Stream()
    with torch.npu.stream(stream):
        assert torch.npu.current_stream() == stream
        assert torch.accelerator.current_stream() == stream
        with torch.npu.stream(None):
            assert torch.npu.current_stream() == stream
    assert torch.npu.current_stream() == torch.npu.default_stream()


def test_context_restores_stream_and_device_after_an_error():
    with pytest.raises(KeyError), torch.npu.stream(torch.npu.Stream(1)):
        assert torch.npu.current_device() == 1
        raise KeyError
    assert torch.npu.current_device() == 0
    assert torch.npu.current_stream(1) == torch.npu.default_stream(1)


def test_generic_stream_is_a_context_manager():
    stream = torch.Stream("npu")
    with stream:
        assert torch.npu.current_stream() == stream
    assert torch.npu.current_stream() != stream


def test_set_stream():
    stream = torch.npu.Stream()
    torch.npu.set_stream(stream)
    assert torch.npu.current_stream() == stream
    torch.accelerator.set_stream(torch.npu.default_stream())
    assert torch.npu.current_stream().stream_id == 0


def test_query_and_synchronize():
    stream = torch.npu.Stream()
    gate = Gate(stream)
    assert not stream.query()
    gate.open()
    stream.synchronize()
    assert stream.query()


def test_wait_stream_and_wait_event_order_streams():
    producer, by_stream, by_event = torch.npu.Stream(), torch.npu.Stream(), torch.npu.Stream()
    gate = Gate(producer)
    by_stream.wait_stream(producer)
    by_event.wait_event(producer.record_event())
    for waiting in (by_stream, by_event):
        waiting.record_event()
        assert not waiting.query()
    gate.open()
    by_stream.synchronize()
    by_event.synchronize()


def test_external_stream_is_the_same_stream():
    stream = torch.npu.Stream()
    external = torch.npu.ExternalStream(stream.native_handle)
    assert external == stream
    with pytest.raises(ValueError, match="handle"):
        torch.npu.ExternalStream(12345)


def test_streams_hash_and_compare_by_device_and_id():
    stream = torch.npu.Stream()
    same = torch.Stream(stream_id=stream.stream_id, device_index=stream.device_index, device_type=stream.device_type)
    assert stream == same and hash(stream) == hash(same)
    assert stream != torch.npu.Stream(1)


def test_backward_runs_on_the_stream_of_forward():
    stream = torch.npu.Stream()
    x = torch.ones(4, device="npu", requires_grad=True)
    torch.npu.synchronize()
    with torch.npu.stream(stream):
        y = (x * x).sum()
    gate = Gate(stream)
    y.backward()
    torch.npu.default_stream().synchronize() if x.grad is None else None
    assert not stream.query()
    gate.open()
    torch.npu.synchronize()
    assert x.grad.tolist() == [2.0] * 4


def test_record_stream_keeps_a_block_from_reuse():
    side = torch.npu.Stream()
    torch.npu.empty_cache()
    x = torch.ones(1 << 18, device="npu")
    torch.npu.synchronize()
    address = x.data_ptr()
    gate = Gate(side)
    x.record_stream(side)
    del x
    y = torch.empty(1 << 18, device="npu")
    assert y.data_ptr() != address
    gate.open()
    torch.npu.synchronize()


WITH_MEMBERS = {
    "coo": (lambda: torch.ones(512, 512, device="npu").to_sparse(), lambda tensor: tensor._values()),
    "csr": (lambda: torch.ones(512, 512, device="npu").to_sparse_csr(), lambda tensor: tensor.values()),
    "nested": (lambda: torch.nested.nested_tensor([torch.ones(256, 512)] * 2, device="npu"), lambda t: t.values()),
    "quantized": (lambda: torch.quantize_per_tensor(torch.ones(1 << 20), 1, 0, torch.quint8).npu(), lambda t: t),
}


@pytest.mark.filterwarnings("ignore::UserWarning")  # these layouts are prototypes
@pytest.mark.parametrize("kind", WITH_MEMBERS)
def test_record_stream_keeps_members_from_reuse(kind):
    make, member = WITH_MEMBERS[kind]
    side = torch.npu.Stream()
    x = make()
    torch.npu.synchronize()
    address = member(x).data_ptr()
    with Gate(side):
        x.record_stream(side)
        del x
        assert torch.empty(1 << 18, device="npu").data_ptr() != address
    assert torch.npu.op_stats()["aten::record_stream"]["fallback"] == 0


@pytest.mark.parametrize("stream", [torch.Stream("cpu"), "npu:0", 3])
def test_only_streams_of_npu_can_be_made_current(stream):
    before = torch.npu.current_stream()
    with pytest.raises(TypeError, match="expected a stream of an npu device"):
        torch.npu.set_stream(stream)
    assert torch.npu.current_stream() == before


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda s, e: s.wait_event(torch.npu.Stream()),
            r"wait_event\(\) wants .*; wait_stream\(\) takes a stream",
        ),
        (lambda s, e: s.wait_event(None), r"wait_event\(\) wants a torch.npu.Event, got None"),
        (lambda s, e: s.wait_stream(e), r"wait_stream\(\) wants .*Stream, got .*; wait_event\(\) takes an event"),
        (
            lambda s, e: s.wait_stream(torch.Stream("cpu")),
            r"wait_stream\(\) wants .*, got torch.Stream",
        ),
        (lambda s, e: s.wait_stream(5), r"wait_stream\(\) wants a torch.npu.Stream, got 5"),
        (lambda s, e: s.record_event(s), r"record_event\(\) wants a torch.npu.Event, got <torch.npu.Stream"),
        (lambda s, e: e.record("npu"), r"record\(\) wants a torch.npu.Stream, got 'npu'"),
        (lambda s, e: e.wait(e), r"wait\(\) wants a torch.npu.Stream, got <torch.npu.Event"),
        (
            lambda s, e: torch.npu.stream("npu:1"),
            r"stream\(\) wants .*got 'npu:1'; torch.npu.device\(\) takes",
        ),
    ],
)
def test_streams_and_events_are_not_taken_for_each_other(call, words):
    """PyTorch's own methods read whatever they are given as what they expect, and then order nothing."""
    with pytest.raises(TypeError, match=words):
        call(torch.npu.Stream(), torch.npu.Event())
