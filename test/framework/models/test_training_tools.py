"""What trains models around PyTorch: peft, accelerate, transformers' Trainer; and diffusers' sampling loops.

accelerate takes npu for its device when torch_npu is installed, or when ACCELERATE_TORCH_DEVICE names it. The second is
how programs choose this package's npu; Trainer asks accelerate, so it follows.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator

import pytest
import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState, GradientState, PartialState
from comparison import Usage, differences, move, run, seed, unlisted_waits, watch
from diffusers import DDIMScheduler, DDPMPipeline, DDPMScheduler, EulerDiscreteScheduler
from library_programs import PROGRAMS as LIBRARIES
from peft import LoraConfig, PeftModel, get_peft_model
from text_programs import PROGRAMS as TEXT
from torch import Tensor, nn
from torch.utils.data import DataLoader
from transformers import Trainer, TrainingArguments

pytestmark = pytest.mark.conformance

LLAMA = next(program for program in TEXT if program.name == "llama-sdpa")
UNET = next(program for program in LIBRARIES if program.name == "UNet2DModel")


# --- peft


def lora(model: nn.Module) -> nn.Module:
    settings = LoraConfig(r=4, lora_alpha=8, target_modules=["q_proj", "v_proj"], init_lora_weights=False)
    seed(1)
    return get_peft_model(model, settings)


def test_lora_trains_its_adapters_as_on_the_cpu(record_property):
    seed()
    module, inputs, usage = lora(LLAMA.build()), LLAMA.make_inputs(), Usage()
    expected = run(module, inputs, "cpu", Usage())
    actual = run(module, inputs, "npu", usage)
    usage.record(record_property)
    assert sum(name.startswith("gradient") for name in actual) == 8  # two matrices for two projections of two layers
    assert differences(actual, expected) == {}
    assert usage.fallbacks == []
    assert unlisted_waits(usage) == []


def test_lora_adapters_are_saved_loaded_and_merged(tmp_path):
    seed()
    base, inputs = LLAMA.build(), move(LLAMA.make_inputs(), "npu")
    adapted = lora(copy.deepcopy(base)).to("npu").eval()
    expected = adapted(**inputs).logits
    adapted.save_pretrained(tmp_path)
    loaded = PeftModel.from_pretrained(copy.deepcopy(base).to("npu"), tmp_path).eval()
    assert {parameter.device for parameter in loaded.parameters()} == {torch.device("npu:0")}
    assert torch.equal(loaded(**inputs).logits, expected)
    merged = loaded.merge_and_unload()
    assert not torch.equal(merged(**inputs).logits, base.to("npu")(**inputs).logits)
    torch.testing.assert_close(merged(**inputs).logits, expected, rtol=1e-5, atol=1e-5)


# --- accelerate and Trainer


def forget_accelerate() -> None:
    for state in (AcceleratorState, GradientState, PartialState):
        state._reset_state()


@pytest.fixture
def accelerate_on(monkeypatch) -> Iterator[None]:
    """Lets a test choose accelerate's device; it is kept for the life of a process otherwise."""

    def choose(device: str) -> None:
        forget_accelerate()
        monkeypatch.setenv("ACCELERATE_TORCH_DEVICE", device)

    yield choose
    forget_accelerate()


def accelerated_losses(mixed_precision: str) -> list[float]:
    accelerator = Accelerator(mixed_precision=mixed_precision)
    seed()
    model = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 2))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    generator = torch.Generator().manual_seed(5)
    samples = [(torch.randn(6, generator=generator), index % 2) for index in range(16)]
    model, optimizer, loader = accelerator.prepare(model, optimizer, DataLoader(samples, batch_size=4))
    losses = []
    for inputs, labels in loader:
        assert inputs.device.type == accelerator.device.type
        with accelerator.autocast():
            loss = nn.functional.cross_entropy(model(inputs), labels)
        accelerator.backward(loss)
        accelerator.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        losses.append(accelerator.gather(loss).item())
    return losses


@pytest.mark.parametrize("mixed_precision", ["no", "bf16"])
def test_accelerate_trains_as_on_the_cpu(mixed_precision, accelerate_on):
    accelerate_on("cpu")
    expected = accelerated_losses(mixed_precision)
    accelerate_on("npu")
    actual = accelerated_losses(mixed_precision)
    # The lists of npu's autocast are those of accelerators, not the CPU's: results agree as far as bfloat16 goes.
    assert actual == (expected if mixed_precision == "no" else pytest.approx(expected, rel=1e-2))


def test_trainer_trains_as_on_the_cpu(accelerate_on, tmp_path):
    inputs = LLAMA.make_inputs()
    samples = [{name: value[index % 2] for name, value in inputs.items()} for index in range(8)]

    def losses(device: str) -> list[float]:
        accelerate_on(device)
        seed()
        model = LLAMA.build()
        arguments = TrainingArguments(
            output_dir=str(tmp_path / device), per_device_train_batch_size=2, max_steps=4, save_steps=2,
            logging_steps=1, learning_rate=1e-3, report_to=[], disable_tqdm=True,
        )  # fmt: skip
        trainer = Trainer(model=model, args=arguments, train_dataset=samples)
        trainer.train()
        assert next(model.parameters()).device.type == device
        return [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]

    actual, expected = losses("npu"), losses("cpu")
    assert len(expected) == 4
    assert actual == expected


# --- diffusers


@torch.no_grad()
def denoise(scheduler, device: str) -> Tensor:
    seed()
    unet = UNET.build().to(device).eval()
    scheduler.set_timesteps(5, device=device)
    sample = (UNET.make_inputs()["sample"] * scheduler.init_noise_sigma).to(device)
    for step in scheduler.timesteps:
        prediction = unet(scheduler.scale_model_input(sample, step), step).sample
        sample = scheduler.step(prediction, step, sample).prev_sample
    return sample


@pytest.mark.parametrize("scheduler", [DDIMScheduler, EulerDiscreteScheduler])
def test_a_denoising_loop_ends_where_the_cpu_does(scheduler, record_property):
    expected = denoise(scheduler(), "cpu")
    usage = Usage()
    with watch(usage):
        actual = denoise(scheduler(), "npu")
    usage.record(record_property)
    assert actual.device == torch.device("npu:0")
    assert torch.equal(actual.cpu(), expected)
    assert usage.fallbacks == []


def test_a_diffusion_pipeline_is_repeated_by_its_generator():
    seed()
    diffusion = DDPMPipeline(unet=UNET.build(), scheduler=DDPMScheduler()).to("npu")
    diffusion.set_progress_bar_config(disable=True)

    def image(number: int) -> Tensor:
        generator = torch.Generator("npu").manual_seed(number)
        return torch.from_numpy(diffusion(generator=generator, num_inference_steps=3, output_type="np").images)

    assert diffusion.device == torch.device("npu:0")
    assert torch.equal(image(1), image(1))
    assert not torch.equal(image(1), image(2))
