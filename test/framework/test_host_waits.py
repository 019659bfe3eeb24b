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


COUNTED = {
    "nonzero_static": lambda x: torch.nonzero_static(x, size=4, fill_value=7),
    "nonzero_static_of_less": lambda x: torch.nonzero_static(x, size=2),
    "repeat_interleave": lambda x: torch.repeat_interleave(x[1], x[0], output_size=3),
    "repeat_interleave_of_rows": lambda x: x.repeat_interleave(x[0], dim=1, output_size=3),
}


@pytest.mark.parametrize("name", COUNTED)
def test_results_whose_size_is_an_argument_are_not_waited_for(name):
    numbers = torch.tensor([[1, 0, 2], [0, 3, 0]])
    x = numbers.to("npu")
    with Gate():
        actual = COUNTED[name](x)
    assert torch.equal(actual.cpu(), COUNTED[name](numbers))


def test_a_wrong_output_size_is_reported_by_the_device():
    result = torch.repeat_interleave(torch.tensor([1, 2], device="npu"), output_size=5)
    with pytest.raises(torch.AcceleratorError, match="allocated size does not match required size"):
        result.cpu()


def test_padding_of_jagged_tensors_is_not_waited_for():
    parts = [torch.arange(8.0).view(2, 4), torch.ones(3, 4)]
    on_host = torch.nested.nested_tensor(parts, layout=torch.jagged)
    on_npu = torch.nested.nested_tensor(parts, layout=torch.jagged, device="npu")
    values, offsets = on_npu.values(), [on_npu.offsets()]
    with Gate():
        padded = torch.ops.aten._jagged_to_padded_dense_forward(values, offsets, [3], -1.0)
        back = torch.ops.aten._padded_dense_to_jagged_forward(padded, offsets, 5)
    expected = torch.ops.aten._jagged_to_padded_dense_forward(on_host.values(), [on_host.offsets()], [3], -1.0)
    assert torch.equal(padded.cpu(), expected)
    assert torch.equal(back.cpu(), on_host.values())
    assert torch.equal(torch.ops.aten._padded_dense_to_jagged_forward(padded, offsets).cpu(), on_host.values())
