"""Ways to train a model: autocast, activation checkpoints, channels_last, dropout."""

from __future__ import annotations

import copy

import pytest
import torch
from comparison import STEPS, Usage, differences, evaluate, move, run, seed, train
from programs import Program
from signal_programs import PROGRAMS as SIGNALS
from text_programs import PROGRAMS as TEXT
from torch import nn
from vision_programs import PROGRAMS as IMAGES

pytestmark = pytest.mark.conformance

programs = {program.name: program for program in [*TEXT, *IMAGES, *SIGNALS]}


def choose(*names: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("program", [programs[name] for name in names], ids=str)


class Autocast(nn.Module):
    """A model under bfloat16 autocast of the device it lies on."""

    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model

    def forward(self, **inputs):
        device = next(self.model.parameters()).device.type
        with torch.autocast(device, torch.bfloat16):
            return self.model(**inputs)


@choose("bert-sdpa", "gpt2-sdpa", "llama-sdpa", "t5", "vit-sdpa", "resnet", "convnext", "whisper-sdpa", "clip-sdpa")
def test_autocast_to_bfloat16_stays_near_the_cpu(program: Program, record_property):
    """The lists of npu's autocast are those of accelerators, not the CPU's: results agree as far as bfloat16 goes."""
    seed()
    module, inputs, usage = Autocast(program.build()), program.make_inputs(), Usage()
    expected = run(module, inputs, "cpu", Usage())
    actual = run(module, inputs, "npu", usage)
    usage.record(record_property)
    losses = [name for name in expected if name.startswith("loss")]
    assert len(losses) == STEPS
    for name in losses:
        torch.testing.assert_close(actual[name].cpu().float(), expected[name].float(), rtol=2e-2, atol=2e-2)
    assert usage.fallbacks == []


@choose(
    "bert-sdpa",
    "gpt2-sdpa",
    "llama-sdpa",
    "gemma3_text-sdpa",
    "t5",
    "bart-sdpa",
    "vit-sdpa",
    "wav2vec2-sdpa",
    "whisper-sdpa",
)
@pytest.mark.parametrize("reentrant", [False, True], ids=["", "reentrant"])
def test_activation_checkpoints_train_as_on_the_cpu(program: Program, reentrant: bool):
    seed()
    model, inputs = program.build(), program.make_inputs()
    model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": reentrant})
    if reentrant:
        model.enable_input_require_grads()
    expected, actual = train(copy.deepcopy(model), inputs), train(model.to("npu"), move(inputs, "npu"))
    assert differences(actual, expected) == {}


@choose("resnet", "regnet", "mobilenet_v2", "convnext", "segformer", "vit-sdpa")
def test_channels_last_is_kept_as_on_the_cpu(program: Program):
    seed()
    model = program.build().to(memory_format=torch.channels_last)
    inputs = program.make_inputs()
    inputs["pixel_values"] = inputs["pixel_values"].contiguous(memory_format=torch.channels_last)
    inputs["output_hidden_states"] = True
    expected, actual = run(model, inputs, "cpu", Usage()), run(model, inputs, "npu", Usage())
    assert differences(actual, expected) == {}


@choose("gpt2-sdpa", "llama-eager")
def test_dropout_is_repeated_by_the_seed(program: Program):
    def losses(rate: float, number: int) -> list[float]:
        seed()
        model = program.build()
        for module in model.modules():
            if isinstance(module, nn.Dropout):
                module.p = rate
            if hasattr(module, "attention_dropout"):
                module.attention_dropout = rate
        model.to("npu").train()
        inputs = move(program.make_inputs(), "npu")
        seed(number)
        return [model(**inputs).loss.item() for _ in range(2)]

    assert losses(0.5, 1) == losses(0.5, 1)
    assert losses(0.5, 1) != losses(0.5, 2)
    assert losses(0.5, 1)[0] != losses(0.5, 1)[1]


@choose("bert-sdpa", "gpt2-sdpa", "vit-sdpa", "whisper-sdpa")
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=["bfloat16", "float16"])
def test_half_precision_models_evaluate_as_on_the_cpu(program: Program, dtype: torch.dtype):
    seed()
    model = program.build().to(dtype)
    inputs = {
        name: value.to(dtype) if torch.is_tensor(value) and value.is_floating_point() else value
        for name, value in program.make_inputs().items()
    }
    expected = evaluate(model, inputs)
    actual = evaluate(copy.deepcopy(model).to("npu"), move(inputs, "npu"))
    assert differences(actual, expected) == {}
