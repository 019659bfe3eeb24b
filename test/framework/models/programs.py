"""Architectures of transformers as rows: model type, head, a batch, a small configuration. Nothing is downloaded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import transformers
from torch import Tensor, nn
from transformers import AutoConfig, PreTrainedConfig

VOCABULARY = 100
BATCH = 2
LENGTH = 12

Inputs = dict[str, Any]


@dataclass(frozen=True)
class Program:
    """A model and a batch for it, both random and the same at every call."""

    name: str
    build: Callable[[], nn.Module]
    make_inputs: Callable[[], Inputs]

    def __str__(self) -> str:
        return self.name


def without_randomness(config: PreTrainedConfig) -> PreTrainedConfig:
    """Turns off dropout of every kind, and the key-value caches that training has no use for."""
    for name, value in list(vars(config).items()):
        if isinstance(value, PreTrainedConfig):
            without_randomness(value)
        elif isinstance(value, float) and ("drop" in name or name.startswith("mask_time_prob")):
            setattr(config, name, 0.0)
    config.use_cache = False
    return config


def architecture(
    model_type: str, head: str, make_inputs: Callable[[], Inputs], attention: str | None = None, **settings: Any
) -> Program:
    """A row: `AutoModel<head>` of `model_type`, or the class named `head`, configured by `settings`."""

    def build() -> nn.Module:
        config = without_randomness(AutoConfig.for_model(model_type, **settings))
        model_class = getattr(transformers, head, None) or getattr(transformers, f"AutoModel{head}")
        make = getattr(model_class, "from_config", None) or model_class._from_config
        model = make(config, attn_implementation=attention) if attention else make(config)
        for module in model.modules():
            if isinstance(module, nn.modules.dropout._DropoutNd):
                module.p = 0.0  # some rates are no part of the configuration
        return model

    return Program(f"{model_type}-{attention}" if attention else model_type, build, make_inputs)


def both_attentions(model_type: str, head: str, make_inputs: Callable[[], Inputs], **settings: Any) -> list[Program]:
    """The architecture with attention written out and with scaled_dot_product_attention."""
    return [architecture(model_type, head, make_inputs, attention, **settings) for attention in ("eager", "sdpa")]


def generator() -> torch.Generator:
    return torch.Generator().manual_seed(11)


def tokens(length: int = LENGTH, vocabulary: int = VOCABULARY, labels: bool = True, mask: bool = True) -> Inputs:
    """Two sentences, the second padded."""
    ids = torch.randint(5, vocabulary, (BATCH, length), generator=generator())
    inputs: Inputs = {"input_ids": ids}
    if mask:
        inputs["attention_mask"] = torch.ones_like(ids)
        inputs["attention_mask"][1, length - length // 4 :] = 0
    if labels:
        inputs["labels"] = ids.clone()
    return inputs


def normal(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=generator())


def pixels(size: int = 32) -> Inputs:
    return {"pixel_values": normal(BATCH, 3, size, size)}


def classified_pixels(size: int = 32) -> Inputs:
    return pixels(size) | {"labels": torch.tensor([0, 1])}
