"""The backward pass follows the forward's streams, devices and threads. Gates force every order; nothing sleeps."""

from __future__ import annotations

import threading

import torch

from torch_npu_lite.testing import Gate


class WhereBackwardRuns(torch.autograd.Function):
    """The identity; its backward notes thread, device and stream."""

    notes: list[tuple[int, int, torch.Stream]] = []  # noqa: RUF012  (each test clears it)

    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, gradient):
        note = threading.get_ident(), torch.npu.current_device(), torch.npu.current_stream()
        WhereBackwardRuns.notes.append(note)
        return gradient


def test_backward_runs_on_the_forward_s_stream_and_device():
    WhereBackwardRuns.notes.clear()
    streams = [torch.npu.Stream(device) for device in ("npu:0", "npu:1")]
    x = torch.ones(3, requires_grad=True)
    for stream in streams:
        with torch.npu.stream(stream):
            WhereBackwardRuns.apply(x.to(stream.device) * 2).sum().backward()
    assert [device for _, device, _ in WhereBackwardRuns.notes] == [0, 1]
    assert [stream for *_, stream in WhereBackwardRuns.notes] == streams
    threads = {thread for thread, *_ in WhereBackwardRuns.notes}
    assert len(threads) == 2 and threading.get_ident() not in threads


def test_backward_returns_while_the_forward_s_stream_stands_and_the_caller_s_stream_waits():
    side = torch.npu.Stream()
    x = torch.ones(3, device="npu", requires_grad=True)
    torch.npu.synchronize()
    with Gate(side):
        with torch.npu.stream(side):
            y = (x * 2).sum()
        y.backward()
        seen = x.grad + 1  # on the default stream, which nobody told of `side`
        assert not side.query() and not torch.npu.current_stream().query()
    assert seen.tolist() == [3.0] * 3


def test_gradients_of_several_streams_accumulate_in_order():
    first, second = torch.npu.Stream(), torch.npu.Stream()
    x = torch.full((1000,), 2.0, device="npu", requires_grad=True)
    torch.npu.synchronize()
    gates = Gate(first), Gate(second)
    results = []
    for stream, power in ((first, 2), (second, 3)):
        with torch.npu.stream(stream):
            results.append((x**power).sum())
    torch.autograd.backward(results)
    seen = x.grad.clone()
    gates[1].open()
    gates[0].open()
    assert seen.cpu().unique().tolist() == [2 * 2.0 + 3 * 4.0]


def test_accumulation_over_steps_on_other_streams_waits_for_the_step_before():
    x = torch.ones(1000, device="npu", requires_grad=True)
    torch.npu.synchronize()
    gates = []
    for step in range(1, 5):
        stream = torch.npu.Stream()
        gates.append(Gate(stream))
        with torch.npu.stream(stream):
            y = (x * step).sum()
        y.backward()
    seen = x.grad.clone()
    for gate in reversed(gates):
        gate.open()
    assert seen.cpu().unique().tolist() == [10.0]


def test_backward_in_a_stream_waits_for_nothing_else():
    side = torch.npu.Stream()
    x = torch.ones(3, device="npu", requires_grad=True)
    torch.npu.synchronize()
    with Gate(), torch.npu.stream(side):
        leaf = x.detach().requires_grad_()
        (leaf * 3).sum().backward()
        assert leaf.grad.tolist() == [3.0] * 3  # the default stream still stands


def test_memory_freed_by_backward_is_not_reused_before_its_stream_has_read_it():
    side = torch.npu.Stream()
    x = torch.ones(100_000, device="npu", requires_grad=True)
    torch.npu.synchronize()
    with Gate(side):
        with torch.npu.stream(side):
            y = x.exp().log().sin().sum()
        y.backward()
        del y
        scratch = [torch.full((100_000,), float("nan"), device="npu") for _ in range(8)]
    torch.testing.assert_close(x.grad.cpu(), torch.cos(torch.ones(100_000)))
    assert all(tensor.isnan().all() for tensor in scratch)


def two_devices(first: str, second: str) -> list[torch.Tensor]:
    """A recurrence that changes devices at each step, with leaves on both and on the CPU."""
    torch.manual_seed(0)
    w, v, x = torch.randn(8, 8), torch.randn(8, 8), torch.randn(4, 8, requires_grad=True)
    w, v = w.to(first).requires_grad_(), v.to(second).requires_grad_()
    y = x
    for _ in range(4):
        y = torch.tanh(y.to(first) @ w)
        y = torch.tanh(y.to(second) @ v)
    (y.to(first).sum() + (x.to(first) * y.to(first)).sum()).backward()
    return [leaf.grad.cpu() for leaf in (w, v, x)]


def test_graph_over_both_devices_and_the_host():
    torch.testing.assert_close(two_devices("npu:0", "npu:1"), two_devices("cpu", "cpu"))


def test_graph_over_both_devices_is_queued_while_one_stands():
    w, v = (torch.full((4, 4), 0.5, device=device, requires_grad=True) for device in ("npu:0", "npu:1"))
    for device in (0, 1):
        torch.npu.synchronize(device)
    with Gate(torch.npu.current_stream("npu:1")):
        ((w @ w).to("npu:1", non_blocking=True) * v).sum().to("npu:0", non_blocking=True).backward()
        assert not torch.npu.current_stream("npu:0").query()
    torch.testing.assert_close(v.grad.cpu(), torch.ones(4, 4))
    torch.testing.assert_close(w.grad.cpu(), torch.full((4, 4), 2.0))


def run_in_threads(work, count: int) -> None:
    failures = []

    def guarded(index: int) -> None:
        try:
            work(index)
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=guarded, args=(index,)) for index in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_threads_accumulate_into_one_leaf():
    w = torch.zeros(1000, device="npu", requires_grad=True)
    torch.npu.synchronize()

    def work(index: int) -> None:
        with torch.npu.stream(torch.npu.Stream()):
            for _ in range(10):
                (w * index).sum().backward()

    run_in_threads(work, 8)
    assert w.grad.cpu().unique().tolist() == [10.0 * sum(range(8))]


def test_threads_train_over_both_devices():
    expected = two_devices("cpu", "cpu")
    results = {}

    def work(index: int) -> None:
        w, v = (torch.linspace(-1, 1, 16).reshape(4, 4).to(f"npu:{(index + k) % 2}").requires_grad_() for k in (0, 1))
        for _ in range(5):
            ((w @ w.t()).to(v.device) @ v).sum().backward()
        results[index] = w.grad.cpu(), v.grad.cpu()

    run_in_threads(work, 8)
    torch.testing.assert_close(two_devices("npu:1", "npu:0"), expected)
    for index in range(1, 8):
        assert all(map(torch.equal, results[index], results[0]))


def test_backward_inside_backward():
    """Reentrant: a custom backward that differentiates again, on the device's own thread."""

    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, gradient):
            with torch.enable_grad():
                x = ctx.saved_tensors[0].detach().requires_grad_()
                (x * x * gradient).sum().backward()
            return x.grad

    x = torch.arange(4.0, device="npu", requires_grad=True)
    y = x
    for _ in range(3):
        y = Twice.apply(y)
    y.sum().backward()
    assert x.grad.tolist() == [0.0, 8.0, 8.0 * 2**7, 8.0 * 3**7]
