"""Training steps on npu give what they give on the CPU, for real modules and optimizers, without the fallback."""

from __future__ import annotations

import functools

import pytest
import torch
from models import MODELS, OPTIMIZERS, Model, Training

STEPS = 10

every_training = [
    pytest.mark.parametrize("model", MODELS, ids=str),
    pytest.mark.parametrize("optimizer", OPTIMIZERS),
    pytest.mark.parametrize("foreach", [False, True], ids=["single", "foreach"]),
]


def parametrize_trainings(test):
    for mark in every_training:
        test = mark(test)
    return test


@functools.cache
def train(model: Model, optimizer: str, foreach: bool, device: str) -> dict[str, torch.Tensor]:
    return Training(model, optimizer, foreach, device).run(STEPS).snapshot()


@parametrize_trainings
def test_ten_steps_equal_the_cpu(model, optimizer, foreach):
    actual = train(model, optimizer, foreach, "npu")
    expected = train(model, optimizer, foreach, "cpu")
    assert actual.keys() == expected.keys()
    for name in expected:
        torch.testing.assert_close(actual[name], expected[name], msg=lambda text, name=name: f"{name}: {text}")


@parametrize_trainings
def test_loss_falls(model, optimizer, foreach):
    losses = train(model, optimizer, foreach, "npu")["losses"]
    assert losses[-1] < 0.95 * losses[0]


@parametrize_trainings
def test_two_runs_are_bit_equal(model, optimizer, foreach):
    first = train(model, optimizer, foreach, "npu")
    second = Training(model, optimizer, foreach, "npu").run(STEPS).snapshot()
    assert [name for name in first if not torch.equal(first[name], second[name])] == []


@parametrize_trainings
def test_no_operator_falls_back_to_the_cpu(model, optimizer, foreach):
    training = Training(model, optimizer, foreach, "npu")
    torch.npu.op_stats(reset=True)
    training.run(2)
    assert [name for name, counts in torch.npu.op_stats().items() if counts["fallback"]] == []


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_second_device_gives_the_same_bits(model):
    first = train(model, "adamw", True, "npu:0")
    second = train(model, "adamw", True, "npu:1")
    assert [name for name in first if not torch.equal(first[name], second[name])] == []


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_module_keeps_its_parameters_when_it_moves(model):
    module = model.build()
    parameters = list(module.parameters())
    addresses = [id(parameter) for parameter in parameters]
    module.to("npu")
    assert [id(parameter) for parameter in module.parameters()] == addresses
    assert all(parameter.device.type == "npu" for parameter in parameters)
    module.cpu()
    assert [id(parameter) for parameter in module.parameters()] == addresses


def test_optimizer_built_before_the_move_updates_the_moved_parameters():
    module = torch.nn.Linear(3, 2)
    optimizer = torch.optim.SGD(module.parameters(), lr=1.0)
    module.to("npu")
    before = module.weight.detach().clone()
    module(torch.ones(1, 3, device="npu")).sum().backward()
    optimizer.step()
    torch.testing.assert_close(module.weight.detach(), before - 1)
