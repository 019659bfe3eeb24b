"""Text generation with a key-value cache: the CPU's tokens, greedy and with beams; samples that a seed repeats."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from comparison import Usage, move, seed, unlisted_waits, watch
from programs import Program
from signal_programs import PROGRAMS as SIGNALS
from text_programs import PROGRAMS as TEXT
from torch import nn
from vision_programs import PROGRAMS as IMAGES

pytestmark = pytest.mark.conformance

GENERATORS = [
    "gpt2-sdpa", "gpt_neox-sdpa", "opt-sdpa", "bloom", "falcon-sdpa", "llama-eager", "llama-sdpa", "mistral-sdpa",
    "qwen3-sdpa", "gemma3_text-sdpa", "phi3-sdpa", "mixtral-sdpa", "mamba", "mamba2", "rwkv", "xlnet", "t5",
    "bart-sdpa", "marian-sdpa", "whisper-sdpa",
]  # fmt: skip
NO_BEAMS = ["rwkv"]  # transformers cannot reorder its state
METHODS: dict[str, dict[str, Any]] = {
    "greedy": {"do_sample": False},
    "greedy-static-cache": {"do_sample": False, "cache_implementation": "static"},
    "beams": {"do_sample": False, "num_beams": 3},
}
NEW_TOKENS = 12
REPETITION_PENALTY = 3.0  # random weights like to repeat a token, which would prove little

programs = {program.name: program for program in [*TEXT, *IMAGES, *SIGNALS]}
every_generator = pytest.mark.parametrize("program", [programs[name] for name in GENERATORS], ids=str)


def build(program: Program) -> tuple[nn.Module, dict[str, Any]]:
    """The model with weights so large that tokens vary, and a batch without labels, padded on the left for decoders."""
    seed()
    model = program.build().eval()
    for parameter in model.parameters():
        if parameter.dim() > 1:
            parameter.data.mul_(8)
    model.config.use_cache = model.generation_config.use_cache = True
    model.generation_config.eos_token_id, model.generation_config.pad_token_id = None, 1
    inputs = {name: value for name, value in program.make_inputs().items() if name != "labels"}
    if "attention_mask" in inputs and not model.config.is_encoder_decoder:
        inputs["attention_mask"] = inputs["attention_mask"].flip(-1)
    return model, inputs


@pytest.mark.parametrize("method", METHODS)
@every_generator
def test_generates_the_tokens_of_the_cpu(program, method, record_property):
    if method == "beams" and program.name in NO_BEAMS:
        pytest.skip("transformers has no beam search for it")
    model, inputs = build(program)
    settings = {"max_new_tokens": NEW_TOKENS, "repetition_penalty": REPETITION_PENALTY, **METHODS[method]}
    expected = model.generate(**inputs, **settings)
    assert len(expected.unique()) > NEW_TOKENS / 2, "too few tokens to tell anything"

    model, inputs, usage = copy.deepcopy(model).to("npu"), move(inputs, "npu"), Usage()
    with watch(usage):
        actual = model.generate(**inputs, **settings)
    usage.record(record_property)
    assert torch.equal(actual.cpu(), expected)
    assert usage.fallbacks == []
    assert unlisted_waits(usage) == []


@every_generator
def test_samples_are_repeated_by_the_seed(program):
    model, inputs = build(program)
    model, inputs = model.to("npu"), move(inputs, "npu")

    def sample(number: int) -> list:
        seed(number)
        return model.generate(**inputs, max_new_tokens=NEW_TOKENS, do_sample=True, top_k=50, temperature=3.0).tolist()

    first = sample(1)
    assert sample(1) == first
    assert sample(2) != first
