"""The host runs ahead of the device, and events alone order streams. Gates force every order; nothing sleeps."""

from __future__ import annotations

import pytest
import torch
from models import MODELS, OPTIMIZERS, Training
from shared import needs_two_workers

from torch_npu_lite import timeline
from torch_npu_lite.testing import Gate

pytestmark = pytest.mark.timeout(120)


def on_side_stream(read):
    """Calls `read` on a stream that waits for nothing, so that it sees what memory holds now."""
    with torch.npu.stream(torch.npu.Stream()):
        return read()


@pytest.mark.parametrize("model", MODELS, ids=str)
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_whole_step_is_queued_behind_a_closed_gate(model, optimizer):
    training = Training(model, optimizer, foreach=True, device="npu").run(1)  # makes gradients and optimizer state
    expected = Training(model, optimizer, foreach=True, device="cpu").run(2)
    loss = torch.full((), -1.0, device="npu")
    torch.npu.synchronize()
    outputs = {name: tensor for name, tensor in training.tensors().items() if tensor.device.type == "npu"}
    before = on_side_stream(training.snapshot)

    with Gate():
        loss.copy_(training.step())
        changed = on_side_stream(
            lambda: [name for name, tensor in outputs.items() if not torch.equal(tensor.cpu(), before[name])]
        )
        loss_meanwhile = on_side_stream(loss.item)
        idle = torch.npu.current_stream().query()

    assert (changed, loss_meanwhile, idle) == ([], -1.0, False)
    torch.testing.assert_close(loss.cpu(), expected.losses[-1])
    actual, reference = training.snapshot(), expected.snapshot()
    for name in reference:
        torch.testing.assert_close(actual[name], reference[name], msg=lambda text, name=name: f"{name}: {text}")


def test_gate_opens_when_told_and_when_its_block_ends():
    stream = torch.npu.Stream()
    gate = Gate(stream)
    assert not stream.query()
    gate.open()
    stream.synchronize()
    with pytest.raises(KeyError), Gate(stream):
        raise KeyError
    stream.synchronize()
    assert stream.query()


def test_gate_on_one_stream_leaves_others_free():
    x = torch.ones(8, device="npu")
    torch.npu.synchronize()
    with Gate(torch.npu.Stream()):
        assert (x + 1).tolist() == [2.0] * 8


@pytest.mark.parametrize("gated", ["default", "other"])
def test_default_stream_is_not_ordered_with_others(gated):
    default, other = torch.npu.default_stream(), torch.npu.Stream()
    held, free = (default, other) if gated == "default" else (other, default)
    x = torch.zeros(4, device="npu")
    torch.npu.synchronize()
    with Gate(held):
        with torch.npu.stream(held):
            x += 1
        with torch.npu.stream(free):
            assert x.tolist() == [0.0] * 4
    held.synchronize()
    assert x.tolist() == [1.0] * 4


def test_event_orders_two_streams():
    producer, consumer = torch.npu.Stream(), torch.npu.Stream()
    x = torch.zeros(1000, device="npu")
    torch.npu.synchronize()
    with Gate(producer):
        with torch.npu.stream(producer):
            x.fill_(3)
        consumer.wait_event(producer.record_event())
        with torch.npu.stream(consumer):
            y = x + 1
        assert not consumer.query()
    consumer.synchronize()
    assert y.cpu().eq(4).all()


def test_wait_uses_the_latest_record_at_the_time_of_the_call():
    producer, consumer = torch.npu.Stream(), torch.npu.Stream()
    event = torch.npu.Event()
    producer.record_event(event)
    consumer.wait_event(event)
    with Gate(producer):
        producer.record_event(event)  # later than the wait
        consumer.synchronize()
        assert not event.query()
    event.synchronize()


def test_wait_for_an_event_that_was_never_recorded_does_nothing():
    stream = torch.npu.Stream()
    stream.wait_event(torch.npu.Event())
    stream.synchronize()
    assert stream.query()


def test_event_is_done_only_after_what_it_follows():
    event = torch.npu.Event()
    with Gate() as gate:
        torch.ones(4, device="npu").add_(1)
        event.record()
        assert not event.query()
        gate.open()
        event.synchronize()
        assert event.query()


def test_stream_waits_for_stream():
    producer, consumer = torch.npu.Stream(), torch.npu.Stream()
    with Gate(producer):
        consumer.wait_stream(producer)
        assert not consumer.query()
    consumer.synchronize()
    assert producer.query()


@pytest.mark.parametrize("pinned", [True, False], ids=["pinned", "pageable"])
def test_host_to_device_copy_is_queued(pinned):
    source = torch.arange(1000.0)
    source = source.pin_memory() if pinned else source
    target = torch.zeros(1000, device="npu")
    torch.npu.synchronize()
    with Gate():
        target.copy_(source, non_blocking=True)
        if not pinned:
            source.zero_()  # pageable memory is staged: the program may use it again
        assert on_side_stream(target.cpu).eq(0).all()
    assert torch.equal(target.cpu(), torch.arange(1000.0))


def test_device_to_pinned_host_copy_is_queued():
    source = torch.arange(1000.0, device="npu")
    target = torch.zeros(1000).pin_memory()
    torch.npu.synchronize()
    with Gate():
        target.copy_(source, non_blocking=True)
        assert target.eq(0).all()
    torch.npu.current_stream().synchronize()
    assert torch.equal(target, torch.arange(1000.0))


def test_pinned_memory_outlives_the_copies_that_read_it():
    target = torch.zeros(1 << 16, device="npu")
    torch.npu.synchronize()
    with Gate():
        target.copy_(torch.full((1 << 16,), 5.0).pin_memory(), non_blocking=True)
        others = [torch.full((1 << 16,), 9.0).pin_memory() for _ in range(4)]  # must not take over its memory
    assert target.cpu().eq(5).all()
    del others


def test_memory_freed_early_is_not_reused_by_another_stream():
    side = torch.npu.Stream()
    x = torch.full((1 << 18,), 2.0, device="npu")
    torch.npu.synchronize()
    with Gate(side):
        with torch.npu.stream(side):
            y = x + 1
        x.record_stream(side)
        del x
        others = [torch.zeros(1 << 18, device="npu") for _ in range(4)]
        torch.npu.current_stream().synchronize()
    side.synchronize()
    assert y.cpu().eq(3).all()
    del others


def overlap_of(streams: list[torch.npu.Stream]) -> int:
    """Nanoseconds during which tasks of both streams ran, after their gates were opened together."""
    matrices = [torch.randn(512, 512, device="npu") for _ in streams]
    torch.npu.synchronize()
    with timeline.record() as recorded:
        gates = [Gate(stream) for stream in streams]
        for stream, matrix in zip(streams, matrices, strict=True):
            with torch.npu.stream(stream):
                for _ in range(20):
                    matrix = matrix.exp().neg()
        for gate in gates:
            gate.open()
    spans = [
        timeline.merge(
            [(task.start_ns, task.end_ns) for task in recorded.tasks if task.stream == stream.stream_id and task.engine]
        )
        for stream in streams
    ]
    return timeline.length(timeline.intersect(*spans))


@needs_two_workers
def test_two_streams_overlap():
    streams = [torch.npu.Stream(), torch.npu.Stream()]
    # A busy machine may give this process one core for a while.
    assert any(overlap_of(streams) > 0 for _ in range(100))


def hidden_copy_time(batches) -> tuple[int, list[torch.Tensor]]:
    """How long a stream of copies ran at the same time as a stream of products, and what the copies made."""
    copies, compute = torch.npu.Stream(), torch.npu.Stream()
    a = torch.randn(512, 512, device="npu")
    torch.npu.synchronize()
    with timeline.record() as recorded:
        gates = [Gate(copies), Gate(compute)]
        with torch.npu.stream(compute):
            for _ in range(10):
                a @ a
        with torch.npu.stream(copies):
            arrived = [batch.to("npu", non_blocking=True) for batch in batches]
        for gate in gates:
            gate.open()
    return recorded.overlap().hidden_ns, arrived


@needs_two_workers
def test_copies_overlap_matrix_products():
    batches = [torch.randn(1 << 20).pin_memory() for _ in range(10)]
    for _ in range(100):  # a busy machine may give this process one core for a while
        hidden_ns, arrived = hidden_copy_time(batches)
        assert all(torch.equal(device.cpu(), host) for device, host in zip(arrived, batches, strict=True))
        if hidden_ns > 0:
            return
    pytest.fail("copies ran only while no product ran")


def test_copies_in_the_computing_stream_never_overlap():
    a = torch.randn(256, 256, device="npu")
    batch = torch.randn(1 << 18).pin_memory()
    torch.npu.synchronize()
    with timeline.record() as recorded:
        for _ in range(10):
            batch.to("npu", non_blocking=True)
            a @ a
    assert recorded.overlap().hidden_ns == 0
    assert recorded.overlap().dma_ns > 0


def test_backward_runs_on_the_streams_of_the_forward():
    stream = torch.npu.Stream()
    w = torch.ones(4, device="npu", requires_grad=True)
    torch.npu.synchronize()
    with Gate(stream):
        with torch.npu.stream(stream):
            (w * 3).sum().backward()
        assert not stream.query()
        assert torch.npu.default_stream().query()
    stream.synchronize()
    assert w.grad.tolist() == [3.0] * 4


def test_synchronize_waits_for_every_stream():
    streams = [torch.npu.Stream() for _ in range(3)]
    x = torch.zeros(3, device="npu")
    torch.npu.synchronize()
    for index, stream in enumerate(streams):
        with Gate(stream), torch.npu.stream(stream):
            x[index] += index + 1
    torch.npu.synchronize()
    assert all(stream.query() for stream in streams)
    assert x.tolist() == [1.0, 2.0, 3.0]
