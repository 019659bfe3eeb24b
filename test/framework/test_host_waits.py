"""Training and evaluation do not make the host wait for the device."""

from __future__ import annotations

import pytest
import torch
from models import MODELS, OPTIMIZERS, Training

from torch_npu_lite.testing import Gate

pytestmark = pytest.mark.timeout(60)  # behind a closed gate a wait would not end


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
