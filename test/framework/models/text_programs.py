"""Language models of transformers: encoders, decoders, both, state spaces, mixtures of experts."""

from __future__ import annotations

import torch
from programs import LENGTH, VOCABULARY, Inputs, architecture, both_attentions, tokens

SIZES = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "max_position_embeddings": 64,
    "pad_token_id": 1,
}
GROUPED = SIZES | {"num_key_value_heads": 2, "bos_token_id": 2, "eos_token_id": 3}  # decoders of today
EXPERTS = GROUPED | {"num_experts_per_tok": 2, "moe_intermediate_size": 16}
SEQUENCES = {
    "vocab_size": VOCABULARY,
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 48,
    "max_position_embeddings": 64,
    "pad_token_id": 1,
    "bos_token_id": 2,
    "eos_token_id": 3,
    "decoder_start_token_id": 3,
    "forced_eos_token_id": None,
}
T5 = {
    "vocab_size": VOCABULARY,
    "d_model": 32,
    "d_kv": 8,
    "d_ff": 48,
    "num_layers": 2,
    "num_heads": 4,
    "decoder_start_token_id": 0,
}


def no_mask() -> Inputs:
    return tokens(mask=False)


def padded_to(length: int):
    return lambda: tokens(length=length)


def layout() -> Inputs:
    inputs = tokens()
    corner = inputs["input_ids"].unsqueeze(-1).expand(-1, -1, 2) % 20
    return inputs | {"bbox": torch.cat([corner, corner + 10], dim=-1)}


ENCODERS = [
    *both_attentions("bert", "ForMaskedLM", tokens, **SIZES),
    *both_attentions("roberta", "ForMaskedLM", tokens, **SIZES),
    *both_attentions(
        "distilbert", "ForMaskedLM", tokens, vocab_size=VOCABULARY, dim=32, n_layers=2, n_heads=4, hidden_dim=48
    ),
    *both_attentions("electra", "ForMaskedLM", tokens, embedding_size=16, **SIZES),
    *both_attentions("albert", "ForMaskedLM", tokens, embedding_size=16, **SIZES),
    architecture("deberta", "ForMaskedLM", tokens, relative_attention=True, pos_att_type=["c2p", "p2c"], **SIZES),
    architecture("deberta-v2", "ForMaskedLM", tokens, relative_attention=True, pos_att_type=["c2p", "p2c"], **SIZES),
    architecture("mpnet", "ForMaskedLM", tokens, **SIZES),
    *both_attentions(
        "modernbert", "ForMaskedLM", tokens, **SIZES, bos_token_id=2, eos_token_id=3, cls_token_id=2, sep_token_id=3
    ),
    architecture("convbert", "ForMaskedLM", tokens, embedding_size=16, conv_kernel_size=3, num_groups=1, **SIZES),
    architecture("squeezebert", "ForMaskedLM", tokens, embedding_size=32, **SIZES),
    architecture(
        "nystromformer",
        "ForMaskedLM",
        lambda: tokens(length=64, mask=False),
        num_landmarks=8,
        segment_means_seq_len=64,
        **SIZES,
    ),
    architecture("roformer", "ForMaskedLM", tokens, embedding_size=32, **SIZES),
    architecture("longformer", "ForMaskedLM", padded_to(16), attention_window=8, **SIZES),
    architecture(
        "big_bird",
        "ForMaskedLM",
        padded_to(64),
        block_size=4,
        num_random_blocks=2,
        **SIZES | {"max_position_embeddings": 128},
    ),
    architecture("fnet", "ForMaskedLM", no_mask, tpu_short_seq_length=LENGTH, **SIZES),
    architecture(
        "funnel",
        "ForMaskedLM",
        tokens,
        block_sizes=[1, 1],
        num_decoder_layers=1,
        d_model=32,
        n_head=4,
        d_head=8,
        d_inner=48,
        vocab_size=VOCABULARY,
    ),
    architecture(
        "xlnet", "XLNetLMHeadModel", tokens, vocab_size=VOCABULARY, d_model=32, n_layer=2, n_head=4, d_inner=48
    ),
    architecture(
        "perceiver",
        "ForMaskedLM",
        padded_to(64),
        vocab_size=VOCABULARY,
        num_latents=8,
        d_latents=32,
        d_model=16,
        num_blocks=1,
        num_self_attends_per_block=2,
        num_self_attention_heads=4,
        num_cross_attention_heads=4,
        qk_channels=32,
        v_channels=32,
        max_position_embeddings=64,
    ),
    architecture("layoutlm", "ForMaskedLM", layout, max_2d_position_embeddings=64, **SIZES),
    architecture("esm", "ForMaskedLM", tokens, mask_token_id=4, position_embedding_type="rotary", **SIZES),
]

DECODERS = [
    *both_attentions(
        "gpt2", "ForCausalLM", tokens, vocab_size=VOCABULARY, n_positions=64, n_embd=32, n_layer=2, n_head=4
    ),
    architecture(
        "gpt_neo",
        "ForCausalLM",
        tokens,
        vocab_size=VOCABULARY,
        hidden_size=32,
        num_layers=2,
        num_heads=4,
        window_size=4,
        attention_types=[[["global", "local"], 1]],
        max_position_embeddings=64,
    ),
    *both_attentions("gpt_neox", "ForCausalLM", tokens, **SIZES),
    architecture(
        "gptj",
        "ForCausalLM",
        tokens,
        vocab_size=VOCABULARY,
        n_positions=64,
        n_embd=32,
        n_layer=2,
        n_head=4,
        rotary_dim=4,
    ),
    architecture(
        "codegen",
        "ForCausalLM",
        tokens,
        vocab_size=VOCABULARY,
        n_positions=64,
        n_embd=32,
        n_layer=2,
        n_head=4,
        rotary_dim=4,
    ),
    *both_attentions("opt", "ForCausalLM", tokens, ffn_dim=48, word_embed_proj_dim=32, **SIZES),
    architecture("bloom", "ForCausalLM", tokens, vocab_size=VOCABULARY, hidden_size=32, n_layer=2, n_head=4),
    *both_attentions("falcon", "ForCausalLM", tokens, **SIZES),
    *both_attentions("llama", "ForCausalLM", tokens, **GROUPED),
    *both_attentions("mistral", "ForCausalLM", tokens, sliding_window=4, **GROUPED),
    *both_attentions("qwen2", "ForCausalLM", tokens, **GROUPED),
    *both_attentions("qwen3", "ForCausalLM", tokens, head_dim=8, **GROUPED),
    *both_attentions("gemma", "ForCausalLM", tokens, head_dim=8, **GROUPED),
    architecture(
        "gemma2", "ForCausalLM", tokens, "eager", head_dim=8, query_pre_attn_scalar=8, sliding_window=4, **GROUPED
    ),
    *both_attentions(
        "gemma3_text", "ForCausalLM", tokens, head_dim=8, query_pre_attn_scalar=8, sliding_window=4, **GROUPED
    ),
    *both_attentions("phi", "ForCausalLM", tokens, **GROUPED),
    *both_attentions("phi3", "ForCausalLM", tokens, **GROUPED),
    *both_attentions("stablelm", "ForCausalLM", tokens, **GROUPED),
    *both_attentions("olmo2", "ForCausalLM", tokens, **GROUPED),
    *both_attentions("cohere", "ForCausalLM", tokens, **GROUPED),
    *both_attentions("granite", "ForCausalLM", tokens, **GROUPED),
    *both_attentions("starcoder2", "ForCausalLM", tokens, **GROUPED),
]

MIXTURES = [
    *both_attentions("mixtral", "ForCausalLM", tokens, num_local_experts=4, **EXPERTS),
    *both_attentions(
        "qwen2_moe",
        "ForCausalLM",
        tokens,
        num_experts=4,
        shared_expert_intermediate_size=16,
        decoder_sparse_step=1,
        **EXPERTS,
    ),
    *both_attentions("qwen3_moe", "ForCausalLM", tokens, num_experts=4, decoder_sparse_step=1, head_dim=8, **EXPERTS),
    *both_attentions(
        "deepseek_v3",
        "ForCausalLM",
        tokens,
        n_routed_experts=4,
        n_shared_experts=1,
        n_group=2,
        topk_group=1,
        first_k_dense_replace=1,
        kv_lora_rank=8,
        q_lora_rank=8,
        qk_rope_head_dim=4,
        qk_nope_head_dim=4,
        v_head_dim=8,
        **EXPERTS | {"num_key_value_heads": 4},
    ),
    architecture(
        "gpt_oss", "ForCausalLM", tokens, "eager", num_local_experts=4, head_dim=8, sliding_window=4, **EXPERTS
    ),
    architecture("switch_transformers", "ForSeq2SeqLM", tokens, num_experts=4, router_jitter_noise=0.0, **T5),
]

STATE_SPACES = [
    architecture(
        "mamba", "ForCausalLM", tokens, vocab_size=VOCABULARY, hidden_size=32, state_size=8, num_hidden_layers=2
    ),
    architecture(
        "mamba2",
        "ForCausalLM",
        tokens,
        vocab_size=VOCABULARY,
        hidden_size=32,
        state_size=8,
        head_dim=8,
        num_heads=8,
        expand=2,
        n_groups=1,
        chunk_size=4,
        num_hidden_layers=2,
    ),
    architecture(
        "rwkv",
        "ForCausalLM",
        no_mask,
        vocab_size=VOCABULARY,
        hidden_size=32,
        num_hidden_layers=2,
        attention_hidden_size=32,
        intermediate_size=48,
        context_length=64,
    ),
    architecture(
        "jamba",
        "ForCausalLM",
        tokens,
        attn_layer_period=2,
        attn_layer_offset=1,
        expert_layer_period=2,
        expert_layer_offset=1,
        num_experts=2,
        use_mamba_kernels=False,
        mamba_d_state=4,
        **EXPERTS,
    ),
    architecture(
        "reformer",
        "ReformerModelWithLMHead",
        padded_to(16),
        vocab_size=VOCABULARY,
        hidden_size=32,
        attention_head_size=8,
        num_attention_heads=2,
        attn_layers=["local", "local"],
        num_buckets=2,
        local_attn_chunk_length=4,
        lsh_attn_chunk_length=4,
        feed_forward_size=48,
        axial_pos_embds=False,
        is_decoder=True,
        max_position_embeddings=64,
        hash_seed=0,
    ),
]

SEQUENCE_TO_SEQUENCE = [
    *both_attentions("bart", "ForSeq2SeqLM", tokens, **SEQUENCES),
    *both_attentions("mbart", "ForSeq2SeqLM", tokens, **SEQUENCES),
    *both_attentions("pegasus", "ForSeq2SeqLM", tokens, **SEQUENCES),
    *both_attentions("marian", "MarianMTModel", tokens, **SEQUENCES),
    *both_attentions("m2m_100", "ForSeq2SeqLM", tokens, **SEQUENCES),
    *both_attentions("blenderbot", "ForSeq2SeqLM", tokens, **SEQUENCES),
    architecture("t5", "ForSeq2SeqLM", tokens, **T5),
    architecture("mt5", "ForSeq2SeqLM", tokens, **T5),
    architecture("longt5", "ForSeq2SeqLM", padded_to(16), local_radius=3, **T5),
    architecture(
        "led",
        "ForSeq2SeqLM",
        padded_to(16),
        attention_window=8,
        **SEQUENCES | {"max_position_embeddings": None},
        max_encoder_position_embeddings=64,
        max_decoder_position_embeddings=64,
    ),
    architecture(
        "prophetnet",
        "ForSeq2SeqLM",
        tokens,
        vocab_size=VOCABULARY,
        hidden_size=32,
        num_encoder_layers=2,
        num_decoder_layers=2,
        num_encoder_attention_heads=4,
        num_decoder_attention_heads=4,
        encoder_ffn_dim=48,
        decoder_ffn_dim=48,
        max_position_embeddings=64,
        ngram=2,
        num_buckets=8,
    ),
]

PROGRAMS = [*ENCODERS, *DECODERS, *MIXTURES, *STATE_SPACES, *SEQUENCE_TO_SEQUENCE]
