"""Training does not make the host wait for the device, and what does wait is counted."""

from __future__ import annotations

import pytest
import torch
from models import MODELS, OPTIMIZERS, Training

from torch_npu_lite.testing import Gate

pytestmark = pytest.mark.timeout(60)  # behind a closed gate a wait would not end


def keep_busy(stream: torch.Stream) -> torch.Event:
    """Queues work that outlasts the next call by far; complete with the event that it returns."""
    with torch.npu.stream(stream):
        x = torch.ones(1024, 1024, device="npu")
        for _ in range(10):
            x = x @ x / 1024
    return stream.record_event()


def waiting_operators() -> list[str]:
    return [name for name, counts in torch.npu.op_stats().items() if counts["host_waits"]]


@pytest.mark.parametrize("model", MODELS, ids=str)
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_training_steps_never_wait(model, optimizer):
    training = Training(model, optimizer, foreach=True, device="npu").run(1)
    torch.npu.op_stats(reset=True)
    with Gate():
        training.run(1)
    assert waiting_operators() == []


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_evaluation_never_waits(model):
    training = Training(model, "sgd", foreach=True, device="npu")
    training.module.eval()
    torch.npu.op_stats(reset=True)
    with torch.no_grad(), Gate():
        training.module(training.inputs)
    assert waiting_operators() == []


@pytest.mark.parametrize(
    ("operator", "call"),
    [
        ("aten::_local_scalar_dense", lambda x: x.sum().item()),
        ("aten::nonzero", lambda x: x.nonzero()),
        ("aten::copy_", lambda x: x.cpu()),
    ],
    ids=["item", "nonzero", "to cpu"],
)
def test_an_operator_that_needs_the_result_is_counted_as_waiting(operator, call):
    x = torch.ones(4, 4, device="npu")
    torch.npu.current_stream().wait_event(keep_busy(torch.npu.Stream()))
    torch.npu.op_stats(reset=True)
    call(x)
    assert operator in waiting_operators()


def test_operators_are_counted_once_by_full_name_and_route():
    x = torch.ones(4, device="npu")
    torch.npu.op_stats(reset=True)
    for _ in range(3):
        x + x
    x.view(2, 2)
    stats = torch.npu.op_stats(reset=True)
    assert stats["aten::add.Tensor"]["kernel"] == 3
    assert sum(stats["aten::view"].values()) == stats["aten::view"]["view"] == 1
    assert torch.npu.op_stats() == {}
