"""A training step of a GPT-2 in PyTorch, at a given shape with random weights and tokens: tokens/s of the median step.

The model is written here in the plainest form that PyTorch runs fast: fused qkv, scaled_dot_product_attention where it exists,
tanh GELU, tied embedding, AdamW, gradient clipping.
"""
import argparse
import json
import math
import resource
import statistics
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

p = argparse.ArgumentParser()
for name, default in dict(layers=6, width=384, heads=6, vocab=50304, seq=64, batch=4, steps=8).items():
    p.add_argument("--" + name, type=int, default=default)
p.add_argument("--compile", action="store_true")
p.add_argument("--bf16", action="store_true")
p.add_argument("--device", default="cpu")
a = p.parse_args()
torch.manual_seed(1)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(a.width), nn.LayerNorm(a.width)
        self.qkv, self.out = nn.Linear(a.width, 3 * a.width), nn.Linear(a.width, a.width)
        self.up, self.down = nn.Linear(a.width, 4 * a.width), nn.Linear(4 * a.width, a.width)

    def forward(self, x):
        B, T, D = x.shape
        q, k, v = (y.view(B, T, a.heads, D // a.heads).transpose(1, 2) for y in self.qkv(self.n1(x)).split(D, 2))
        if hasattr(F, "scaled_dot_product_attention"):
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            s = (q @ k.transpose(-2, -1)) / math.sqrt(D // a.heads)
            s = s.masked_fill(MASK[:T, :T], float("-inf"))
            y = F.softmax(s, dim=-1) @ v
        x = x + self.out(y.transpose(1, 2).reshape(B, T, D))
        h = self.up(self.n2(x))
        try:
            h = F.gelu(h, approximate="tanh")
        except TypeError:
            h = F.gelu(h)
        return x + self.down(h)


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.tok, self.pos = nn.Embedding(a.vocab, a.width), nn.Embedding(a.seq, a.width)
        self.blocks, self.norm = nn.ModuleList(Block() for _ in range(a.layers)), nn.LayerNorm(a.width)
        nn.init.normal_(self.tok.weight, std=0.02)

    def forward(self, ids, targets):
        x = self.tok(ids) + self.pos(torch.arange(ids.shape[1], device=ids.device))
        for b in self.blocks:
            x = b(x)
        logits = F.linear(self.norm(x), self.tok.weight)
        return F.cross_entropy(logits.view(-1, a.vocab), targets.view(-1))




def done():
    """Waits for the device, so that a time is that of the work."""
    if a.device == "cuda":
        torch.cuda.synchronize()


MASK = torch.triu(torch.ones(a.seq, a.seq, dtype=torch.bool), 1).to(a.device)
model = GPT().to(a.device)
step_model = torch.compile(model) if a.compile else model
settings = dict(lr=3e-4, betas=(0.9, 0.95), weight_decay=0.1)
try:
    opt = torch.optim.AdamW(model.parameters(), fused=True, **settings)
except (RuntimeError, TypeError):  # releases that fuse on GPUs only
    opt = torch.optim.AdamW(model.parameters(), **settings)
times = []
for i in range(a.steps):
    ids = torch.randint(0, a.vocab, (a.batch, a.seq)).to(a.device)
    targets = torch.randint(0, a.vocab, (a.batch, a.seq)).to(a.device)
    done()
    start = time.perf_counter()
    opt.zero_grad(set_to_none=True)
    with torch.autocast(a.device, dtype=torch.bfloat16, enabled=a.bf16):
        loss = step_model(ids, targets)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    opt.step()
    done()
    times.append(time.perf_counter() - start)
med = statistics.median(times[2:])
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
print(json.dumps(dict(version=torch.__version__, step_ms=1e3 * med, tokens_per_s=a.batch * a.seq / med, resident_peak=peak, loss=loss.item())))
