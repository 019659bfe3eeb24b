"""Models of diffusers and x-transformers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from diffusers import (
    AutoencoderKL,
    ControlNetModel,
    DiTTransformer2DModel,
    UNet1DModel,
    UNet2DConditionModel,
    UNet2DModel,
    VQModel,
)
from programs import BATCH, LENGTH, VOCABULARY, Inputs, Program, generator, normal, tokens
from torch import nn
from x_transformers import (
    AutoregressiveWrapper,
    ContinuousTransformerWrapper,
    Decoder,
    Encoder,
    TransformerWrapper,
    ViTransformerWrapper,
    XTransformer,
)

BLOCKS = {"block_out_channels": (8, 16), "layers_per_block": 1, "norm_num_groups": 4}
ATTENTION_UNET = {
    "down_block_types": ("DownBlock2D", "AttnDownBlock2D"),
    "up_block_types": ("AttnUpBlock2D", "UpBlock2D"),
}
CROSS_UNET = {
    "down_block_types": ("CrossAttnDownBlock2D", "DownBlock2D"),
    "up_block_types": ("UpBlock2D", "CrossAttnUpBlock2D"),
}
CODER = {
    "down_block_types": ("DownEncoderBlock2D",) * 2,
    "up_block_types": ("UpDecoderBlock2D",) * 2,
    "latent_channels": 4,
}


def timesteps() -> torch.Tensor:
    return torch.tensor([3, 700])


def noised_image() -> Inputs:
    return {"sample": normal(BATCH, 3, 16, 16), "timestep": timesteps()}


def prompted_latents() -> Inputs:
    return {"sample": normal(BATCH, 4, 16, 16), "timestep": timesteps(), "encoder_hidden_states": normal(BATCH, 6, 16)}


def controlled_latents() -> Inputs:
    return prompted_latents() | {"controlnet_cond": normal(BATCH, 3, 32, 32)}


def classed_latents() -> Inputs:
    return {"hidden_states": normal(BATCH, 4, 8, 8), "timestep": timesteps(), "class_labels": torch.tensor([1, 2])}


def diffusion_transformer() -> nn.Module:
    model = DiTTransformer2DModel(
        sample_size=8, patch_size=2, num_layers=2, num_attention_heads=2, attention_head_dim=8, in_channels=4,
        num_embeds_ada_norm=10, norm_num_groups=4, dropout=0.0,
    )  # fmt: skip
    for block in model.transformer_blocks:
        block.norm1.emb.class_embedder.dropout_prob = 0.0  # it forgets classes at random
    return model


DIFFUSERS = [
    Program(
        "UNet2DModel",
        lambda: UNet2DModel(sample_size=16, attention_head_dim=4, **ATTENTION_UNET, **BLOCKS),
        noised_image,
    ),
    Program(
        "UNet2DConditionModel",
        lambda: UNet2DConditionModel(
            sample_size=16, cross_attention_dim=16, attention_head_dim=4, **CROSS_UNET, **BLOCKS
        ),
        prompted_latents,
    ),
    Program(
        "AutoencoderKL",
        lambda: AutoencoderKL(sample_size=16, **CODER, **BLOCKS),
        lambda: {"sample": normal(BATCH, 3, 16, 16)},
    ),
    Program(
        "VQModel",
        lambda: VQModel(sample_size=16, num_vq_embeddings=16, **CODER, **BLOCKS),
        lambda: {"sample": normal(BATCH, 3, 16, 16)},
    ),
    Program(
        "ControlNetModel",
        lambda: ControlNetModel(
            cross_attention_dim=16,
            attention_head_dim=4,
            conditioning_embedding_out_channels=(4, 8),
            down_block_types=CROSS_UNET["down_block_types"],
            **BLOCKS,
        ),
        controlled_latents,
    ),
    Program("DiTTransformer2DModel", diffusion_transformer, classed_latents),
    Program(
        "UNet1DModel",
        lambda: UNet1DModel(
            sample_size=16,
            in_channels=4,
            out_channels=4,
            extra_in_channels=64,
            block_out_channels=(32, 64),
            down_block_types=("DownBlock1DNoSkip", "AttnDownBlock1D"),
            up_block_types=("AttnUpBlock1D", "UpBlock1DNoSkip"),
            time_embedding_type="fourier",
            use_timestep_embedding=False,
        ),
        lambda: {"sample": normal(BATCH, 4, 16), "timestep": timesteps()},
    ),
]

LAYERS = {"dim": 32, "depth": 2, "heads": 4, "attn_dim_head": 8, "ff_mult": 2}


def language(decoder: Callable[[], nn.Module]) -> nn.Module:
    return AutoregressiveWrapper(TransformerWrapper(num_tokens=VOCABULARY, max_seq_len=64, attn_layers=decoder()))


def sentence() -> Inputs:
    return {"x": tokens()["input_ids"]}


def pair_of_sentences() -> Inputs:
    ids = torch.randint(5, VOCABULARY, (2, BATCH, LENGTH), generator=generator())
    return {"src": ids[0], "tgt": ids[1]}


def decoder_program(name: str, **settings: Any) -> Program:
    return Program(f"x-transformers-{name}", lambda: language(lambda: Decoder(**LAYERS, **settings)), sentence)


X_TRANSFORMERS = [
    decoder_program("decoder"),
    decoder_program("rotary-flash", rotary_pos_emb=True, attn_flash=True),
    decoder_program("alibi-glu", alibi_pos_bias=True, alibi_num_heads=2, ff_glu=True, ff_swish=True, use_rmsnorm=True),
    decoder_program("t5-bias-qk-norm", rel_pos_bias=True, attn_qk_norm=True, residual_attn=True),
    decoder_program("kv-heads-gated", attn_kv_heads=2, attn_gate_values=True, sandwich_norm=True, shift_tokens=1),
    Program(
        "x-transformers-encoder-decoder",
        lambda: XTransformer(
            dim=32,
            tie_token_emb=True,
            enc_num_tokens=VOCABULARY,
            enc_depth=1,
            enc_heads=4,
            enc_max_seq_len=64,
            dec_num_tokens=VOCABULARY,
            dec_depth=1,
            dec_heads=4,
            dec_max_seq_len=64,
        ),
        pair_of_sentences,
    ),
    Program(
        "x-transformers-vit",
        lambda: ViTransformerWrapper(image_size=32, patch_size=8, num_classes=4, attn_layers=Encoder(**LAYERS)),
        lambda: {"img": normal(BATCH, 3, 32, 32)},
    ),
    Program(
        "x-transformers-continuous",
        lambda: ContinuousTransformerWrapper(dim_in=6, dim_out=5, max_seq_len=32, attn_layers=Encoder(**LAYERS)),
        lambda: {"x": normal(BATCH, 16, 6), "mask": torch.ones(BATCH, 16).bool()},
    ),
]

PROGRAMS = [*DIFFUSERS, *X_TRANSFORMERS]
