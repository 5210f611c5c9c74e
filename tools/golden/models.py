"""Tiny random models of every supported architecture, with what PyTorch and transformers compute on them.

    python -m venv /tmp/golden && /tmp/golden/bin/pip install -r tools/golden/requirements.txt
    /tmp/golden/bin/python tools/golden/models.py hf/testdata

Each folder has config.json and safetensors files as save_pretrained writes them, and golden.safetensors: input_ids [B S], logits [B S V],
loss, "grad.NAME" of every parameter (of the mean loss over all next tokens, float32, dropout off), greedy [N]: the likeliest
continuation of the first eight tokens of the first sample, and losses [8] of steps of AdamW on the batch.
"""
import shutil
import sys
from pathlib import Path

import torch
from safetensors.torch import save_file
from transformers import (GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM, MistralConfig, MistralForCausalLM, Qwen2Config,
                          Qwen2ForCausalLM, Qwen3Config, Qwen3ForCausalLM)

VOCAB, SEQ, BATCH = 97, 16, 4
LLAMA = dict(vocab_size=VOCAB, hidden_size=24, intermediate_size=40, num_hidden_layers=4, num_attention_heads=4, num_key_value_heads=2,
             max_position_embeddings=64, attn_implementation="eager")

# name, config, model, type of the stored weights, bytes of a shard.
MODELS = [
    ("gpt2", GPT2Config(vocab_size=VOCAB, n_positions=32, n_embd=24, n_layer=4, n_head=4, attn_implementation="eager"),
     GPT2LMHeadModel, torch.float32, "1GB"),
    ("llama", LlamaConfig(**LLAMA, rope_theta=500.0, rms_norm_eps=1e-5, rope_scaling={
        "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 16}),
     LlamaForCausalLM, torch.float32, "60KB"),
    ("mistral", MistralConfig(**LLAMA, sliding_window=None, rope_theta=1000.0, rope_scaling={"rope_type": "linear", "factor": 4.0}),
     MistralForCausalLM, torch.bfloat16, "1GB"),
    ("qwen2", Qwen2Config(**LLAMA, tie_word_embeddings=True, rope_theta=100.0, rope_scaling={
        "rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16}),
     Qwen2ForCausalLM, torch.float32, "1GB"),
    ("qwen3", Qwen3Config(**LLAMA, head_dim=8, rope_theta=10000.0), Qwen3ForCausalLM, torch.float16, "50KB"),
]


def randomise(model):
    """Values that leave no parameter idle: norms near one, everything else with a spread that matters."""
    for name, p in model.named_parameters():
        with torch.no_grad():
            if p.dim() == 1 and "weight" in name:
                p.normal_(1.0, 0.2)
            else:
                p.normal_(0.0, 0.15)


def train(model, ids, steps=8):
    """Losses of a few steps on the one batch: AdamW at a constant rate, with decay of matrices and tables only."""
    params = [p for p in model.parameters()]
    groups = [{"params": [p for p in params if p.dim() > 1], "weight_decay": 0.1}, {"params": [p for p in params if p.dim() == 1], "weight_decay": 0.0}]
    opt = torch.optim.AdamW(groups, lr=3e-3, betas=(0.9, 0.95), eps=1e-8)
    losses = []
    for _ in range(steps):
        opt.zero_grad()
        loss = model(input_ids=ids, labels=ids).loss
        loss.backward()
        opt.step()
        losses.append(loss.item())
    return losses


def make(out, seed, name, config, cls, dtype, shard):
    torch.manual_seed(seed)
    model = cls(config).eval()
    randomise(model)
    folder = out / name
    shutil.rmtree(folder, ignore_errors=True)
    model.to(dtype).save_pretrained(folder, max_shard_size=shard)
    (folder / "generation_config.json").unlink(missing_ok=True)
    model = cls.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
    ids = torch.randint(0, VOCAB, (BATCH, SEQ))
    result = model(input_ids=ids, labels=ids)
    result.loss.backward()
    golden = {"input_ids": ids.int(), "logits": result.logits.detach(), "loss": result.loss.detach().reshape(1)}
    for n, p in model.named_parameters():
        golden["grad." + n] = p.grad.detach()
    model.generation_config.pad_token_id = 0
    model.generation_config.eos_token_id = None
    greedy = model.generate(ids[:1, :8], max_new_tokens=12, do_sample=False)
    golden["greedy"] = greedy[0, 8:].int()
    golden["losses"] = torch.tensor(train(model, ids))
    save_file({k: v.contiguous() for k, v in golden.items()}, folder / "golden.safetensors")
    print(name, f"loss {result.loss.item():.6f}", sum(f.stat().st_size for f in folder.iterdir()), "bytes")


if __name__ == "__main__":
    torch.use_deterministic_algorithms(True)
    torch.set_num_threads(1)
    for i, m in enumerate(MODELS):
        make(Path(sys.argv[1]), 100 + i, *m)
