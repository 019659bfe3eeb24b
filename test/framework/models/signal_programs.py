"""Models of transformers for speech, time series and trajectories."""

from __future__ import annotations

import torch
from programs import BATCH, VOCABULARY, Inputs, architecture, both_attentions, generator, normal, tokens
from vision_programs import VIT


def speech(seconds: float = 0.1) -> Inputs:
    return {"input_values": normal(BATCH, int(16000 * seconds))}


def transcribed_speech() -> Inputs:
    return speech() | {"labels": torch.randint(5, 20, (BATCH, 2), generator=generator())}


def spectrogram_to_text() -> Inputs:
    return {"input_features": normal(BATCH, 16, 60), "labels": tokens(length=8)["labels"]}


def spoken_text() -> Inputs:
    return tokens(labels=False) | {"labels": normal(BATCH, 8, 16)}


SPEECH = {
    "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48,
    "conv_dim": [16, 16, 16],
    "conv_stride": [5, 4, 4], "conv_kernel": [10, 8, 4], "num_feat_extract_layers": 3, "num_conv_pos_embeddings": 8,
    "num_conv_pos_embedding_groups": 2, "vocab_size": 32, "pad_token_id": 0, "ctc_zero_infinity": True,
    "apply_spec_augment": False,
}  # fmt: skip
WHISPER = {
    "vocab_size": VOCABULARY, "num_mel_bins": 16, "d_model": 32, "encoder_layers": 2, "decoder_layers": 2,
    "encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 48, "decoder_ffn_dim": 48,
    "max_source_positions": 30, "max_target_positions": 40, "pad_token_id": 1, "bos_token_id": 2, "eos_token_id": 3,
    "decoder_start_token_id": 4, "suppress_tokens": None, "begin_suppress_tokens": None,
}  # fmt: skip

AUDIO = [
    *both_attentions("wav2vec2", "ForCTC", transcribed_speech, **SPEECH),
    *both_attentions("hubert", "ForCTC", transcribed_speech, **SPEECH),
    architecture("wavlm", "ForCTC", transcribed_speech, num_buckets=16, max_bucket_distance=32, **SPEECH),
    architecture("unispeech-sat", "ForCTC", transcribed_speech, **SPEECH),
    architecture("sew", "ForCTC", transcribed_speech, squeeze_factor=2, **SPEECH),
    architecture("wav2vec2-conformer", "ForCTC", transcribed_speech, position_embeddings_type="rotary", **SPEECH),
    *both_attentions("whisper", "WhisperForConditionalGeneration", spectrogram_to_text, **WHISPER),
    architecture(
        "speecht5",
        "SpeechT5ForTextToSpeech",
        spoken_text,
        vocab_size=VOCABULARY,
        hidden_size=32,
        encoder_layers=2,
        encoder_attention_heads=4,
        encoder_ffn_dim=48,
        decoder_layers=2,
        decoder_attention_heads=4,
        decoder_ffn_dim=48,
        num_mel_bins=16,
        speech_decoder_prenet_units=16,
        speaker_embedding_dim=8,
        speech_decoder_postnet_units=16,
        speech_decoder_postnet_layers=2,
        reduction_factor=2,
    ),
    architecture(
        "audio-spectrogram-transformer",
        "ForAudioClassification",
        lambda: {"input_values": normal(BATCH, 32, 16), "labels": torch.tensor([0, 1])},
        max_length=32,
        num_mel_bins=16,
        frequency_stride=8,
        time_stride=8,
        **VIT,
    ),
    architecture(
        "encodec",
        "EncodecModel",
        lambda: {"input_values": normal(BATCH, 1, 640)},
        num_filters=4,
        hidden_size=16,
        codebook_size=16,
        codebook_dim=16,
        upsampling_ratios=[4, 2],
        num_lstm_layers=1,
    ),
]


def series() -> Inputs:
    past, future = 8 + 3, 4
    return {
        "past_values": normal(BATCH, past),
        "past_time_features": normal(BATCH, past, 2),
        "past_observed_mask": torch.ones(BATCH, past),
        "future_values": normal(BATCH, future),
        "future_time_features": normal(BATCH, future, 2),
    }


FORECAST = {
    "prediction_length": 4, "context_length": 8, "lags_sequence": [1, 2, 3], "num_time_features": 2, "d_model": 16,
    "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 2, "decoder_attention_heads": 2,
    "encoder_ffn_dim": 24, "decoder_ffn_dim": 24,
}  # fmt: skip
PATCHES = {"context_length": 32, "patch_length": 8, "patch_stride": 8, "num_input_channels": 2, "d_model": 16}


def channels() -> Inputs:
    return {"past_values": normal(BATCH, 32, 2), "future_values": normal(BATCH, 4, 2)}


def trajectory() -> Inputs:
    return {
        "states": normal(BATCH, 6, 5), "actions": normal(BATCH, 6, 3), "returns_to_go": normal(BATCH, 6, 1),
        "rewards": normal(BATCH, 6, 1), "timesteps": torch.arange(6).expand(BATCH, -1),
        "attention_mask": torch.ones(BATCH, 6, dtype=torch.long),
    }  # fmt: skip


SERIES = [
    architecture("time_series_transformer", "TimeSeriesTransformerForPrediction", series, **FORECAST),
    architecture("informer", "InformerForPrediction", series, **FORECAST),
    architecture("autoformer", "AutoformerForPrediction", series, moving_average=3, label_length=4, **FORECAST),
    architecture(
        "patchtst",
        "PatchTSTForPrediction",
        channels,
        prediction_length=4,
        num_hidden_layers=2,
        num_attention_heads=2,
        ffn_dim=24,
        **PATCHES,
    ),
    architecture("patchtsmixer", "PatchTSMixerForPrediction", channels, prediction_length=4, num_layers=2, **PATCHES),
    architecture(
        "decision_transformer",
        "DecisionTransformerModel",
        trajectory,
        state_dim=5,
        act_dim=3,
        hidden_size=32,
        max_ep_len=16,
        n_layer=2,
        n_head=4,
    ),
]

PROGRAMS = [*AUDIO, *SERIES]
