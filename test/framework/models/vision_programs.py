"""Models of transformers for images, and for images and text."""

from __future__ import annotations

import torch
from programs import (
    BATCH,
    VOCABULARY,
    Inputs,
    architecture,
    both_attentions,
    classified_pixels,
    generator,
    normal,
    pixels,
    tokens,
)

VIT = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "image_size": 32,
    "patch_size": 8,
}
STAGES = {"depths": [1, 1], "num_labels": 3}


def masked_patches() -> Inputs:
    return pixels() | {"bool_masked_pos": torch.arange(16).remainder(3).eq(0).expand(BATCH, -1)}


def segmented_pixels(size: int = 32) -> Inputs:
    return pixels(size) | {"labels": torch.randint(3, (BATCH, size, size), generator=generator())}


def depth_pixels(size: int = 32) -> Inputs:
    return pixels(size) | {"labels": normal(BATCH, size, size).abs() + 0.1}


def boxed_pixels() -> Inputs:
    boxes = torch.tensor([[0.5, 0.5, 0.4, 0.4], [0.3, 0.6, 0.2, 0.2]])
    targets = [{"class_labels": torch.tensor([0, 1]), "boxes": boxes} for _ in range(BATCH)]
    return pixels(64) | {"labels": targets}


def image_and_text() -> Inputs:
    return pixels() | tokens(labels=False)


def noise_mask() -> Inputs:
    return pixels() | {"noise": normal(BATCH, 16).abs()}


def prompted_pixels() -> Inputs:
    return pixels(64) | {
        "input_points": normal(BATCH, 1, 2, 2).abs() * 20,
        "input_labels": torch.ones(BATCH, 1, 2).long(),
    }


BACKBONE = {"embedding_size": 8, "hidden_sizes": [8, 16], "depths": [1, 1], "layer_type": "basic"}
DETR = {
    "d_model": 32, "encoder_layers": 1, "decoder_layers": 2, "encoder_attention_heads": 4, "decoder_attention_heads": 4,
    "encoder_ffn_dim": 48, "decoder_ffn_dim": 48, "num_queries": 6, "num_labels": 3,
}  # fmt: skip


def resnet_backbone():
    from transformers import ResNetConfig

    return ResNetConfig(**BACKBONE, out_features=["stage2"])


VISION = [
    *both_attentions("vit", "ForImageClassification", classified_pixels, **VIT),
    *both_attentions("deit", "DeiTForImageClassification", classified_pixels, **VIT),
    *both_attentions("beit", "ForImageClassification", classified_pixels, use_relative_position_bias=True, **VIT),
    *both_attentions("dinov2", "ForImageClassification", classified_pixels, **VIT),
    architecture(
        "vit_mae",
        "ViTMAEForPreTraining",
        noise_mask,
        decoder_hidden_size=32,
        decoder_num_hidden_layers=1,
        decoder_num_attention_heads=4,
        decoder_intermediate_size=48,
        **VIT,
    ),
    architecture(
        "swin",
        "ForImageClassification",
        classified_pixels,
        image_size=32,
        patch_size=4,
        embed_dim=8,
        num_heads=[2, 2],
        window_size=4,
        **STAGES,
    ),
    architecture(
        "swinv2",
        "ForImageClassification",
        classified_pixels,
        image_size=32,
        patch_size=4,
        embed_dim=8,
        num_heads=[2, 2],
        window_size=4,
        **STAGES,
    ),
    architecture(
        "convnext",
        "ForImageClassification",
        lambda: classified_pixels(64),
        num_stages=2,
        hidden_sizes=[8, 16],
        **STAGES,
    ),
    architecture(
        "convnextv2",
        "ForImageClassification",
        lambda: classified_pixels(64),
        num_stages=2,
        hidden_sizes=[8, 16],
        **STAGES,
    ),
    architecture("resnet", "ForImageClassification", classified_pixels, **BACKBONE),
    architecture(
        "regnet", "ForImageClassification", classified_pixels, groups_width=4, **BACKBONE | {"layer_type": "y"}
    ),
    architecture(
        "bit",
        "ForImageClassification",
        classified_pixels,
        embedding_size=8,
        hidden_sizes=[16, 32],
        num_groups=4,
        **STAGES,
    ),
    architecture(
        "mobilenet_v2", "ForImageClassification", lambda: classified_pixels(64), depth_multiplier=0.25, num_labels=2
    ),
    architecture(
        "mobilevit",
        "ForImageClassification",
        classified_pixels,
        image_size=32,
        hidden_sizes=[8, 12, 16],
        neck_hidden_sizes=[8, 8, 12, 12, 16, 16, 16],
        num_attention_heads=2,
        mlp_ratio=2.0,
    ),
    architecture(
        "efficientnet",
        "ForImageClassification",
        classified_pixels,
        width_coefficient=0.25,
        depth_coefficient=0.5,
        image_size=32,
        hidden_dim=320,
        num_labels=2,
    ),
    architecture(
        "poolformer",
        "ForImageClassification",
        classified_pixels,
        hidden_sizes=[8, 8, 16, 16],
        depths=[1, 1, 1, 1],
        num_labels=2,
    ),
    architecture(
        "pvt",
        "ForImageClassification",
        lambda: classified_pixels(64),
        image_size=64,
        hidden_sizes=[8, 8, 16, 16],
        depths=[1, 1, 1, 1],
        num_attention_heads=[1, 1, 2, 2],
        num_labels=2,
    ),
    architecture(
        "cvt",
        "ForImageClassification",
        lambda: classified_pixels(64),
        embed_dim=[8, 16, 32],
        num_heads=[1, 2, 4],
        depth=[1, 2, 3],
        drop_rate=[0.0] * 3,
        drop_path_rate=[0.0] * 3,
        num_labels=2,
    ),
    architecture(
        "focalnet",
        "ForImageClassification",
        classified_pixels,
        image_size=32,
        patch_size=4,
        embed_dim=8,
        focal_levels=[1, 1],
        focal_windows=[3, 3],
        **STAGES,
    ),
    architecture(
        "segformer",
        "ForSemanticSegmentation",
        lambda: segmented_pixels(64),
        hidden_sizes=[8, 8, 16, 16],
        depths=[1, 1, 1, 1],
        num_attention_heads=[1, 1, 2, 2],
        decoder_hidden_size=16,
        num_labels=3,
    ),
    architecture(
        "glpn",
        "ForDepthEstimation",
        lambda: depth_pixels(64),
        hidden_sizes=[8, 8, 16, 16],
        depths=[1, 1, 1, 1],
        num_attention_heads=[1, 1, 2, 2],
        decoder_hidden_size=8,
    ),
    architecture(
        "dpt",
        "ForSemanticSegmentation",
        segmented_pixels,
        neck_hidden_sizes=[8, 8, 8, 8],
        fusion_hidden_size=8,
        backbone_out_indices=[0, 1, 2, 3],
        is_hybrid=False,
        num_labels=3,
        **VIT | {"num_hidden_layers": 4},
    ),
    architecture(
        "yolos",
        "ForObjectDetection",
        lambda: pixels(32),
        num_detection_tokens=4,
        num_labels=3,
        **VIT | {"image_size": [32, 32]},
    ),
    architecture(
        "detr",
        "ForObjectDetection",
        lambda: pixels(64),
        use_timm_backbone=False,
        use_pretrained_backbone=False,
        backbone=None,
        backbone_config=resnet_backbone(),
        **DETR,
    ),
    architecture(
        "conditional_detr",
        "ForObjectDetection",
        lambda: pixels(64),
        use_timm_backbone=False,
        use_pretrained_backbone=False,
        backbone=None,
        backbone_config=resnet_backbone(),
        **DETR,
    ),
    architecture(
        "sam",
        "SamModel",
        prompted_pixels,
        vision_config={
            "hidden_size": 32,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "mlp_dim": 48,
            "image_size": 64,
            "patch_size": 16,
            "output_channels": 16,
            "num_pos_feats": 8,
            "window_size": 2,
            "global_attn_indexes": [1],
        },
        prompt_encoder_config={"hidden_size": 16, "image_size": 64, "patch_size": 16},
        mask_decoder_config={"hidden_size": 16, "mlp_dim": 32, "num_attention_heads": 4, "iou_head_hidden_dim": 16},
    ),
]

TEXT_SIDE = {
    "vocab_size": VOCABULARY, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
    "intermediate_size": 48, "max_position_embeddings": 64, "pad_token_id": 1, "bos_token_id": 2,
    "eos_token_id": 3, "projection_dim": 16,
}  # fmt: skip
PAIR = {"text_config": TEXT_SIDE, "vision_config": VIT | {"projection_dim": 16}}


def llava_inputs() -> Inputs:
    inputs = pixels() | tokens(length=24, mask=False)
    inputs["input_ids"][:, 2:18] = 99  # the image's 16 patches
    return inputs


def regions() -> Inputs:
    return tokens(labels=False) | {"visual_feats": normal(BATCH, 4, 16), "visual_pos": normal(BATCH, 4, 4).abs()}


MULTIMODAL = [
    *both_attentions("clip", "CLIPModel", lambda: image_and_text() | {"return_loss": True}, projection_dim=16, **PAIR),
    *both_attentions("siglip", "SiglipModel", lambda: image_and_text() | {"return_loss": True}, **PAIR),
    architecture(
        "blip",
        "BlipForConditionalGeneration",
        lambda: pixels() | tokens(),
        projection_dim=16,
        image_text_hidden_size=16,
        text_config=TEXT_SIDE | {"encoder_hidden_size": 32, "is_decoder": True},
        vision_config=VIT,
    ),
    architecture("vilt", "ViltForImageAndTextRetrieval", image_and_text, vocab_size=VOCABULARY, **VIT),
    architecture(
        "lxmert",
        "LxmertModel",
        regions,
        vocab_size=VOCABULARY,
        hidden_size=32,
        num_attention_heads=4,
        intermediate_size=48,
        l_layers=1,
        x_layers=1,
        r_layers=1,
        visual_feat_dim=16,
        max_position_embeddings=64,
    ),
    architecture(
        "llava",
        "LlavaForConditionalGeneration",
        llava_inputs,
        image_token_index=99,
        image_seq_length=16,
        vision_feature_select_strategy="default",
        text_config={"model_type": "llama", **TEXT_SIDE, "num_key_value_heads": 2},
        vision_config={"model_type": "clip_vision_model", **VIT},
    ),
]


PROGRAMS = [*VISION, *MULTIMODAL]
